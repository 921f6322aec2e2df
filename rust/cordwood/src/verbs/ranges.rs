//! One file in several threads: each reads a range of it, and their results are joined in the order
//! of the ranges.

use std::num::NonZeroUsize;
use std::thread;

use crate::decode::{End, OnCorruption, ReadOptions};
use crate::dialect::Dialect;
use crate::error::Error;
use crate::format::BLOCK_LEN;
use crate::reader::{Reader, Source};

/// Splits the range of `options` at block boundaries into at most `count` parts of about the same
/// length, for [`verify_ranges`](super::verify_ranges) or for readers on several machines. Together
/// they return the events of the whole range, each once.
///
/// There is only one part under [`OnCorruption::Stop`], in a dialect with log numbers, where the
/// end of the log depends on what comes before, and if `file_len` is not known. Without a dialect,
/// [`Dialect::LEVELDB`] is assumed.
///
/// ```
/// use std::num::NonZeroUsize;
/// use cordwood_log::{ReadOptions, verbs};
/// let parts = verbs::split_ranges(&ReadOptions::default(), Some(100_000), NonZeroUsize::new(2).unwrap());
/// assert_eq!((parts[0].start, parts[0].end), (0, Some(65_536)));
/// assert_eq!((parts[1].start, parts[1].end), (65_536, None));
/// ```
pub fn split_ranges(options: &ReadOptions, file_len: Option<u64>, count: NonZeroUsize) -> Vec<ReadOptions> {
    let dialect = options.dialect.unwrap_or(Dialect::LEVELDB);
    let first = dialect.block_begin(options.start);
    let len = file_len.map_or(0, |file_len| {
        options.end.unwrap_or(u64::MAX).min(file_len).saturating_sub(first)
    });
    let block_count = len.div_ceil(BLOCK_LEN as u64);
    let count = match options.on_corruption {
        OnCorruption::Stop => 1,
        _ if dialect.has_log_numbers() => 1,
        _ => block_count.clamp(1, count.get() as u64),
    };
    let part_len = block_count.div_ceil(count) * BLOCK_LEN as u64;
    let mut ranges = Vec::new();
    let mut rest = options.clone();
    for part in 1..count {
        let edge = first + part * part_len;
        if edge >= first + len {
            break;
        }
        ranges.push(rest.clone().with_range(rest.start..edge));
        rest.start = edge;
    }
    ranges.push(rest);
    ranges
}

/// Runs `work` for all readers concurrently, the first in this thread and each other in its own,
/// and joins the results in order.
pub(super) fn on_threads<S: Source + Send, T: Send>(
    mut readers: Vec<Reader<S>>,
    work: impl Fn(&mut Reader<S>) -> Result<T, Error> + Sync,
    join: impl Fn(T, T) -> T,
) -> Result<Option<T>, Error> {
    let Some((first, others)) = readers.split_first_mut() else {
        return Ok(None);
    };
    let work = &work;
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for reader in others {
            let thread = thread::Builder::new().spawn_scoped(scope, move || work(reader));
            threads.push(thread.map_err(|source| Error::Io { path: None, source })?);
        }
        let mut all = work(first)?;
        for thread in threads {
            let next = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            all = join(all, next?);
        }
        Ok(Some(all))
    })
}

/// What was found in a range, as far as it affects the end of the joined ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Events {
    None,
    OnlyTornTail,
    Some,
}

impl Events {
    pub(super) fn of(record_count: u64, skipped_len: u64, torn_len: u64) -> Self {
        match (record_count, skipped_len) {
            (0, 0) => Events::None,
            (0, len) if len == torn_len => Events::OnlyTornTail,
            _ => Events::Some,
        }
    }
}

/// How a range and the one after it end together.
///
/// In a range without events nothing begins: the one before it has read past it, so its end is
/// used. Its end is also used if that is a torn record and the next range has only more of the torn
/// tail.
pub(super) fn joined_end((events, end): (Events, End), (next_events, next_end): (Events, End)) -> End {
    let is_torn = matches!((end, next_end), (End::TornTail { .. }, End::TornTail { .. }));
    match (events, next_events) {
        (Events::None, _) => next_end,
        (_, Events::None) => end,
        (_, Events::OnlyTornTail) if is_torn => end,
        _ => next_end,
    }
}
