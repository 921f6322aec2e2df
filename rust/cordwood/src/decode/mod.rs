//! The decoder accepts a window of the file and returns one event. It does no I/O, and holds only
//! the bytes of one fragmented or decompressed record.

mod decoder;
mod log_end;
mod look;
mod opened;
mod options;
mod pieces;
mod recycled;
mod repairs;
mod run;
mod span;
mod step;
#[cfg(test)]
mod tests;
mod unpack;
mod window;

pub use self::decoder::Decoder;
pub use self::options::{OnCorruption, RECORD_LEN_MAX, ReadOptions};
pub use self::pieces::Pieces;
pub use self::span::{DataAt, RecordSpan};
pub use self::step::{End, Step};
pub use self::window::Window;

pub(crate) use self::decoder::Growth;
#[cfg(test)]
pub(crate) use self::opened::OPENED;
pub(crate) use self::opened::Rest;
