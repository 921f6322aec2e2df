//! Writers: loops around the [`Encoder`](crate::codec::Encoder).

mod log_file;
mod log_writer;
mod options;
mod recover;
mod sink;
mod storage;
mod tail;
mod unsynced;

pub use log_file::{LogFile, LogStatus};
pub use log_writer::Writer;
pub use options::{FlushPolicy, LogFileOptions, OnTornTail, SyncPolicy};
pub use sink::Sink;
pub use storage::Storage;

/// The number of bytes buffered before they are written: few enough to stay in the processor's
/// cache together with the records.
const BUFFER_LEN: usize = 1 << 18;
