//! Builds the calls of a writer from a fuzzer's bytes.

use arbitrary::{Arbitrary, Result, Unstructured};
use cordwood::OnTornTail;

use crate::file::{Payload, several};

/// The choices of [`OnTornTail`]. Zero bytes select the default.
#[derive(Arbitrary, Debug, Clone, Copy)]
#[expect(missing_docs, reason = "they are those of the crate")]
pub enum Choice {
    Refuse,
    Truncate,
    PadToBlock,
}

impl From<Choice> for OnTornTail {
    fn from(choice: Choice) -> Self {
        match choice {
            Choice::Refuse => OnTornTail::Refuse,
            Choice::Truncate => OnTornTail::Truncate,
            Choice::PadToBlock => OnTornTail::PadToBlock,
        }
    }
}

/// One session of a writer: the file is opened, records are appended, and the file is closed.
#[derive(Debug)]
pub struct Session<'a> {
    /// How the file is opened.
    pub choice: Choice,
    /// Selects the record at which the checkpoint is, if the file is opened with a checkpoint.
    pub checkpoint: Option<u8>,
    /// The records to append.
    pub records: Vec<Payload<'a>>,
}

impl<'a> Arbitrary<'a> for Session<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Session {
            choice: u.arbitrary()?,
            checkpoint: u.arbitrary()?,
            records: several(u)?,
        })
    }
}
