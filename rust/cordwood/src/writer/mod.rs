//! Writers, which run an [`Encoder`](crate::codec::Encoder) in a loop.

#[cfg(feature = "fs")]
mod append;
#[cfg(feature = "fs")]
mod log_file;
mod log_writer;
mod options;
#[cfg(feature = "fs")]
mod segmented;
mod sink;
#[cfg(feature = "fs")]
mod storage;

#[cfg(feature = "fs")]
pub use log_file::{FlushPolicy, LogFile, LogFileOptions, LogStatus, OnTornTail, SyncPolicy};
pub use log_writer::Writer;
pub use options::WriterOptions;
#[cfg(feature = "test-storage")]
pub use segmented::Directory;
#[cfg(feature = "fs")]
pub use segmented::SegmentedLog;
pub use sink::Sink;
#[cfg(feature = "test-storage")]
pub use storage::Storage;

/// The number of bytes to buffer before a write. At this size, the buffer and the records both stay
/// in the processor's cache.
const BUFFER_LEN: usize = 1 << 18;
