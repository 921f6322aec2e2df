//! The encoder: a record in, the bytes of its fragments out. It does no I/O.

use crate::checksum::mask;
use crate::copy::append;
use crate::format::{HEADER_LEN, Header, Kind, block_left, trailer_len};
use crate::fragment::checksum_of;

/// Cuts records into fragments. Its only state is the length of the file so far.
///
/// The bytes are those that LevelDB writes. Source: LevelDB `db/log_writer.cc`.
///
/// ```
/// use cordwood::Encoder;
/// let mut file = Vec::new();
/// let mut encoder = Encoder::new(0);
/// assert_eq!(encoder.encode(b"foo", &mut file), 0);
/// assert_eq!(file, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo");
/// ```
#[derive(Debug, Clone)]
pub struct Encoder {
    offset: u64,
}

impl Encoder {
    /// An encoder for a file of `file_len` bytes: 0 for a new one. The last record of the file must be whole.
    pub fn new(file_len: u64) -> Self {
        Encoder { offset: file_len }
    }

    /// The length of the file with all that has been encoded, in bytes.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Appends the record's fragments to `out`, the trailer of the block before included, and returns the file offset of the
    /// record's first header.
    ///
    /// `out` grows by [`encoded_len`](crate::encoded_len)`(self.offset(), record.len())` bytes.
    #[inline]
    pub fn encode(&mut self, record: &[u8], out: &mut Vec<u8>) -> u64 {
        if HEADER_LEN + record.len() <= block_left(self.offset) {
            let record_offset = self.offset;
            self.fragment(Kind::Full, record, out);
            return record_offset;
        }
        self.encode_parts(record, out)
    }

    /// [`encode`](Self::encode) at the end of a block.
    fn encode_parts(&mut self, record: &[u8], out: &mut Vec<u8>) -> u64 {
        self.trailer(out);
        let record_offset = self.offset;
        let mut rest = record;
        let mut is_first = true;
        loop {
            let room = block_left(self.offset) - HEADER_LEN;
            let (payload, behind) = rest.split_at(rest.len().min(room));
            let kind = Kind::of_part(is_first, behind.is_empty());
            self.fragment(kind, payload, out);
            if behind.is_empty() {
                return record_offset;
            }
            rest = behind;
            is_first = false;
        }
    }

    /// Fills up a block that has no room for a header. It is written with the record that follows, as in LevelDB.
    fn trailer(&mut self, out: &mut Vec<u8>) {
        let len = trailer_len(self.offset);
        out.resize(out.len() + len, 0);
        self.offset += len as u64;
    }

    #[inline]
    fn fragment(&mut self, kind: Kind, payload: &[u8], out: &mut Vec<u8>) {
        let kind = kind as u8;
        // A payload is at most FRAGMENT_LEN_MAX bytes: the caller cuts at the end of the block.
        let header = Header {
            masked_crc: mask(checksum_of(kind, payload)),
            len: payload.len() as u16,
            kind,
        };
        out.reserve(HEADER_LEN + payload.len());
        out.extend_from_slice(&header.encode());
        append(out, payload);
        self.offset += (HEADER_LEN + payload.len()) as u64;
    }
}
