//! The calls of a writer to a log, from a fuzzer's bytes.

use arbitrary::{Arbitrary, Result, Unstructured};
use cordwood::OnTornTail;

use crate::file::{Payload, several};

/// [`OnTornTail`]. Zeros are the default.
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

/// The file is opened, these records are appended, and it is closed.
#[derive(Debug)]
pub struct Session<'a> {
    /// How it is opened.
    pub choice: Choice,
    /// The number of a record from which the file is read, if only a part is.
    pub checkpoint: Option<u8>,
    /// The appended records.
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
