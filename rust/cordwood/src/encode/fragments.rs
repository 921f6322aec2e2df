//! Splits the payloads of records, containers and metadata into fragments.

use crate::checksum::{Job, Kernel, mask, run, state_after};
use crate::container::{Codec, Mark};
use crate::copy::append;
use crate::dialect::{Dialect, Form, Grid, LogFormat, MARK, SET_ZSTD};
use crate::format::{BLOCK_LEN, HEADER_LEN, Header, Kind};

/// The fragments in a file. An open container is not a fragment yet.
#[derive(Debug, Clone)]
pub(super) struct Fragments {
    /// The length of the file.
    pub(super) offset: u64,
    pub(super) format: LogFormat,
    /// The form of record fragments.
    pub(super) form: Form,
    has_leveldb_headers: bool,
    /// The file offset where a file header or a packed log's mark is written. This is 0 unless the
    /// mark must be repeated after padding. In that case, it is the end of the padding.
    pub(super) start_at: u64,
}

/// Returns the maximum number of bytes that a record of `record_len` bytes can take up, including
/// the bytes at the start of a file.
pub(crate) fn bound_of(record_len: usize, form: Form) -> usize {
    // Each block that the record may touch gets a header. Compression can lengthen the record, but
    // by fewer bytes than these headers take up.
    let block_count = record_len / (BLOCK_LEN - form.header_len()) + 3;
    record_len.saturating_add(block_count * 2 * form.header_len())
}

/// Returns the form of record fragments in a log with this number.
fn form_of(log_number: Option<u32>) -> Form {
    log_number.map_or(Form::Plain, |_| Form::Recyclable)
}

/// Returns the codec of the containers in a packed log.
pub(super) fn codec_of(format: &LogFormat) -> Codec {
    if format.is_zstd() { Codec::Zstd } else { Codec::Stored }
}

impl Fragments {
    pub(super) fn new(offset: u64, format: LogFormat) -> Self {
        Fragments {
            offset,
            format,
            form: form_of(format.log_number),
            has_leveldb_headers: format == Dialect::LEVELDB.into() || format.dialect.is_packed(),
            start_at: 0,
        }
    }

    /// Returns the number of bytes from the next fragment to the end of its block. Offsets are
    /// counted from the start of the file.
    #[inline]
    pub(super) fn block_left(&self) -> usize {
        Grid::new(self.format.dialect, 0).block_left(self.offset)
    }

    /// Sets the log number for the records that follow. Without a number, fragments have types 1 to
    /// 4.
    pub(super) fn set_number(&mut self, number: Option<u32>) {
        self.format = self.format.numbered(number);
        self.form = form_of(number.and(self.format.log_number));
    }

    /// Advances the offset by `len` appended bytes. Wrapping is safe, because 2^64 is a multiple of
    /// the block length.
    #[inline(always)]
    pub(super) fn advance(&mut self, len: usize) {
        self.offset = self.offset.wrapping_add(len as u64);
    }

    /// Writes the bytes that a file starts with. See [`Encoder::start`](super::Encoder::start).
    #[inline]
    pub(super) fn start(&mut self, out: &mut Vec<u8>) {
        if self.offset == self.start_at {
            self.write_start(out);
        }
    }

    #[cold]
    fn write_start(&mut self, out: &mut Vec<u8>) {
        if self.offset == 0 {
            out.extend_from_slice(self.format.dialect.prefix());
            self.offset = self.format.dialect.prefix().len() as u64;
        }
        if self.format.dialect.is_packed() {
            self.write(MARK, Form::Plain, &Mark::new(codec_of(&self.format)).encode(), out);
        } else if self.format.is_zstd() {
            let (kind, payload) = SET_ZSTD;
            self.write(kind, Form::Plain, &payload, out);
        }
    }

    /// Splits `payload` into fragments of this form and appends them. The current block must have
    /// room for a header.
    pub(super) fn fragments<E>(
        &mut self,
        form: Form,
        payload: &[u8],
        out: &mut Vec<u8>,
        mut take: impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = payload;
        let mut is_first = true;
        loop {
            let room = self.block_left() - form.header_len();
            let (part, after) = rest.split_at(rest.len().min(room));
            let kind = Kind::of_part(is_first, after.is_empty());
            self.fragment(kind, form, part, out);
            take(out)?;
            if after.is_empty() {
                return Ok(());
            }
            rest = after;
            is_first = false;
        }
    }

    /// Fills the current block with a trailer if it has no room for a header. As in LevelDB, the
    /// trailer is written along with the next record.
    pub(super) fn fill_block(&mut self, out: &mut Vec<u8>) {
        let left = self.block_left();
        if left < self.form.header_len() {
            out.resize(out.len() + left, 0);
            self.advance(left);
        }
    }

    fn fragment(&mut self, kind: Kind, form: Form, payload: &[u8], out: &mut Vec<u8>) {
        if self.has_leveldb_headers {
            return self.plain(form.kind_byte(kind), payload, out);
        }
        self.write(form.kind_byte(kind), form, payload, out);
    }

    /// Appends a LevelDB fragment (7-byte header, masked CRC-32C). This is the fast path.
    #[inline]
    pub(super) fn plain(&mut self, kind: u8, payload: &[u8], out: &mut Vec<u8>) {
        run(Plain { kind, payload, out });
        self.advance(HEADER_LEN + payload.len());
    }

    fn write(&mut self, kind: u8, form: Form, payload: &[u8], out: &mut Vec<u8>) {
        let number = self.format.log_number.unwrap_or_default().to_le_bytes();
        let number = if form.has_log_number() { &number[..] } else { &[] };
        let checksum = self.format.dialect.checksum();
        let head = checksum.extend(checksum.crc(&[kind]), number);
        let header = Header {
            masked_crc: checksum.store(checksum.extend(head, payload)),
            len: payload.len() as u16,
            kind,
        };
        out.reserve(form.header_len() + payload.len());
        out.extend_from_slice(&header.encode());
        out.extend_from_slice(number);
        append(out, payload);
        self.advance(form.header_len() + payload.len());
    }
}

/// The checksum state after each possible kind byte. A checksum covers the kind byte and then the
/// payload.
const STATES: [u32; 0x80] = {
    let mut states = [0; 0x80];
    let mut kind = 0;
    while kind < states.len() {
        states[kind] = state_after(kind as u8);
        kind += 1;
    }
    states
};

/// A job that appends a fragment with a LevelDB header. It is compiled with the checksum kernel's
/// instructions.
pub(super) struct Plain<'a> {
    /// The type byte of the fragment, which is less than 0x80.
    pub(super) kind: u8,
    pub(super) payload: &'a [u8],
    pub(super) out: &'a mut Vec<u8>,
}

impl Job for Plain<'_> {
    type Output = ();

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) {
        append_plain(kernel, self);
    }
}

/// Appends a fragment with a LevelDB header and a payload of at most [`FRAGMENT_LEN_MAX`] bytes.
#[inline(always)]
pub(super) fn append_plain<K: Kernel>(kernel: K, fragment: Plain<'_>) {
    let Plain { kind, payload, out } = fragment;
    out.reserve(HEADER_LEN + payload.len());
    // The checksum isn't known until the payload has been copied.
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_LEN]);
    let state = kernel.append(STATES[usize::from(kind)], payload, out);
    let header = Header {
        masked_crc: mask(!state),
        len: payload.len() as u16,
        kind,
    };
    out[start..start + HEADER_LEN].copy_from_slice(&header.encode());
}
