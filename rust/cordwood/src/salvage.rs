//! Where a block can be read again behind damage: pure, no I/O, no state. `docs/format/reading.md`, "Salvage", has the rule.

use crate::checksum::{crc32c, extend, mask, multiply, unmask, x_to_chunks};
use crate::format::{BLOCK_LEN, HEADER_LEN, Header, Kind};
use crate::fragment::checksum_of;

/// Where to go on behind damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resume {
    /// How many bytes are lost: all that there are, if nothing behind them can be trusted.
    pub(crate) len: usize,
    /// Whether each byte was tried, which may be done once in a block.
    pub(crate) has_scanned: bool,
}

/// Says where to go on behind the damaged header that `rest` begins with.
///
/// `rest` goes on to the end of the block or of the file, and `left` counts to the end of the block. `may_scan` says that no byte of the
/// block has been tried yet.
#[cold]
pub(crate) fn resume(rest: &[u8], left: usize, may_scan: bool) -> Resume {
    let found = |len| Resume {
        len,
        has_scanned: false,
    };
    let Some(header) = header_at(rest, 0) else {
        return found(rest.len());
    };
    let ends = Ends::new(rest, left);
    let stated_end = stated_end(rest, 0);
    // 1. The length is right, and a sound fragment follows.
    if let Some(end) = stated_end
        && is_whole(rest, end)
    {
        return found(end);
    }
    // 2. One bit of the length was flipped: then the checksum is right for the true one.
    if let Some(len) = true_len(header, rest)
        && (ends.is_end(HEADER_LEN + len) || is_whole(rest, HEADER_LEN + len))
    {
        return found(HEADER_LEN + len);
    }
    // 3. The length is right, nothing can follow, and the type does not speak against it.
    if let Some(end) = stated_end
        && Kind::from_wire(header.kind).is_some()
        && ends.is_hard_end(end)
    {
        return found(end);
    }
    // 4. Any place from which sound fragments lead to the end.
    let scanned = if may_scan { scan(rest, &ends) } else { None };
    // 5. The length is right, and zeros follow. A wrong length may well lead there, so this comes last.
    let end = stated_end.filter(|&end| ends.is_end(end));
    Resume {
        len: scanned.or(end).unwrap_or(rest.len()),
        has_scanned: may_scan,
    }
}

/// The true length of a payload, if exactly one bit of the length that `header` states is wrong and nothing else.
///
/// `rest` begins with the header, and the payload lies in it.
pub(crate) fn true_len(header: Header, rest: &[u8]) -> Option<usize> {
    let payload = &rest[HEADER_LEN..];
    let mut lens: [usize; 16] = std::array::from_fn(|bit| usize::from(header.len ^ 1 << bit));
    lens.sort_unstable();
    let stored = unmask(header.masked_crc);
    let (mut crc, mut done) = (crc32c(&[header.kind]), 0);
    for len in lens.into_iter().take_while(|&len| len <= payload.len()) {
        crc = extend(crc, &payload[done..len]);
        done = len;
        if crc == stored {
            return Some(len);
        }
    }
    None
}

/// The header that begins at `at`, if it lies in `rest`.
fn header_at(rest: &[u8], at: usize) -> Option<Header> {
    rest.get(at..)?.first_chunk().map(Header::decode)
}

/// Where the fragment at `at` ends by its length, if that is in `rest`.
fn stated_end(rest: &[u8], at: usize) -> Option<usize> {
    let end = at + HEADER_LEN + usize::from(header_at(rest, at)?.len);
    (end <= rest.len()).then_some(end)
}

/// A header that stands for zeros up to the end of the block, and is no fragment.
fn is_zero(header: Header) -> bool {
    header.kind == 0 && header.len == 0
}

/// Whether a fragment of any type with a right checksum begins at `at`.
fn is_whole(rest: &[u8], at: usize) -> bool {
    header_at(rest, at)
        .zip(stated_end(rest, at))
        .is_some_and(|(header, end)| {
            !is_zero(header) && header.masked_crc == mask(checksum_of(header.kind, &rest[at + HEADER_LEN..end]))
        })
}

/// Where fragments may end.
struct Ends {
    rest_len: usize,
    left: usize,
    /// From here on there are only zeros, if any.
    zeros: usize,
}

impl Ends {
    fn new(rest: &[u8], left: usize) -> Self {
        let zeros = rest.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        Ends {
            rest_len: rest.len(),
            left,
            zeros,
        }
    }

    /// Whether no fragment can follow: the end of the block or its trailer, or the end of the file.
    fn is_hard_end(&self, at: usize) -> bool {
        at == self.rest_len || self.left - at < HEADER_LEN
    }

    /// Whether a writer may have ended here: also in front of zeros.
    fn is_end(&self, at: usize) -> bool {
        at >= self.zeros || self.is_hard_end(at)
    }

    /// Whether a write that was cut short by the end of the file may have begun here.
    fn is_torn(&self, rest: &[u8], at: usize) -> bool {
        let end = header_at(rest, at).map_or(self.rest_len + 1, |header| at + HEADER_LEN + usize::from(header.len));
        self.rest_len < self.left && end > self.rest_len && end <= self.left
    }
}

/// What may stand at a place for a chain to lead on there.
mod place {
    /// A chain begins here, or a writer may have ended here.
    pub(super) const SOUND: u8 = 1;
    /// The same, or one damaged fragment whose length leads to such a place, or a torn write.
    pub(super) const PASSABLE: u8 = 2;
}

/// The first place behind the first byte at which a chain begins: sound fragments one behind the other, up to an end.
///
/// From the back to the front, so that what follows a place is known when it is its turn, and each is looked at once.
fn scan(rest: &[u8], ends: &Ends) -> Option<usize> {
    let sums = Sums::new(rest);
    let mut places = vec![0; rest.len() + 1];
    let mut first = None;
    for at in (1..=rest.len()).rev() {
        let mut found = 0;
        let next = stated_end(rest, at).map_or(0, |end| places[end]);
        if next != 0
            && let Some((header, end)) = header_at(rest, at).zip(stated_end(rest, at))
        {
            if next & place::PASSABLE != 0
                && !is_zero(header)
                && unmask(header.masked_crc) == sums.crc(at + HEADER_LEN - 1, end)
            {
                found = place::SOUND | place::PASSABLE;
                first = Some(at);
            } else if next & place::SOUND != 0 {
                found = place::PASSABLE;
            }
        }
        if ends.is_end(at) {
            found = place::SOUND | place::PASSABLE;
        } else if found == 0 && ends.is_torn(rest, at) {
            found = place::PASSABLE;
        }
        places[at] = found;
    }
    first
}

/// The checksum of any part of some bytes at a cost that does not depend on its length. Without it, a file could be made in which each
/// of thousands of places in a block needs the checksum of half the block.
struct Sums<'a> {
    bytes: &'a [u8],
    /// The CRC of the bytes before each chunk.
    crcs: [u32; BLOCK_LEN / CHUNK_LEN + 1],
}

const CHUNK_LEN: usize = crate::checksum::CHUNK_LEN;

impl<'a> Sums<'a> {
    /// `bytes` are at most a block.
    fn new(bytes: &'a [u8]) -> Self {
        let mut crcs = [0; BLOCK_LEN / CHUNK_LEN + 1];
        let mut crc = 0;
        for (chunk, next) in bytes.chunks_exact(CHUNK_LEN).zip(&mut crcs[1..]) {
            crc = extend(crc, chunk);
            *next = crc;
        }
        Sums { bytes, crcs }
    }

    /// The CRC of `bytes[begin..end]`.
    fn crc(&self, begin: usize, end: usize) -> u32 {
        let (first, last) = (begin.div_ceil(CHUNK_LEN), end / CHUNK_LEN);
        if first >= last {
            return crc32c(&self.bytes[begin..end]);
        }
        let head = crc32c(&self.bytes[begin..first * CHUNK_LEN]);
        // The CRC of two pieces is that of the first, moved over the second, plus (which is minus) that of the second.
        let moved = |crc| multiply(crc, x_to_chunks(last - first));
        let whole_chunks = moved(self.crcs[first]) ^ self.crcs[last];
        extend(moved(head) ^ whole_chunks, &self.bytes[last * CHUNK_LEN..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(kind: u8, payload: &[u8]) -> Vec<u8> {
        let masked_crc = mask(checksum_of(kind, payload));
        let header = Header {
            masked_crc,
            len: payload.len() as u16,
            kind,
        };
        [&header.encode(), payload].concat()
    }

    /// Where reading goes on in a file of these parts, of which the first is damaged.
    fn resume_len(parts: &[&[u8]]) -> usize {
        resume(&parts.concat(), BLOCK_LEN, true).len
    }

    fn damaged(mut fragment: Vec<u8>, at: usize, bits: u8) -> Vec<u8> {
        fragment[at] ^= bits;
        fragment
    }

    #[test]
    fn sums_agree_with_checksums() {
        let bytes: Vec<u8> = (0..2000u32).map(|i| ((i * i) >> 3) as u8).collect();
        let sums = Sums::new(&bytes);
        for begin in (0..bytes.len()).step_by(7) {
            for end in (begin..=bytes.len()).step_by(11) {
                assert_eq!(sums.crc(begin, end), crc32c(&bytes[begin..end]), "{begin}..{end}");
            }
        }
        let block = vec![0xa5; BLOCK_LEN];
        assert_eq!(Sums::new(&block).crc(0, BLOCK_LEN), crc32c(&block));
        assert_eq!(Sums::new(&block).crc(1, BLOCK_LEN - 1), crc32c(&block[2..]));
    }

    #[test]
    fn the_length_is_believed_if_a_sound_fragment_follows() {
        let good = fragment(1, b"good");
        for at in [0, 6, 8] {
            let bad = damaged(fragment(1, b"bad"), at, 0x10);
            assert_eq!(resume_len(&[&bad, &good]), bad.len());
            assert_eq!(resume_len(&[&bad, &good, b"junk that is no end"]), bad.len());
            assert_eq!(resume_len(&[&bad, &[0; 20]]), bad.len());
            assert_eq!(resume_len(&[&bad]), bad.len());
        }
    }

    #[test]
    fn a_flipped_bit_of_the_length_is_undone() {
        // The payload ends with a log, which a search byte by byte finds first.
        let payload = [b"payload".as_slice(), &fragment(1, b"inner")].concat();
        let good = fragment(1, b"good");
        for (at, bits) in [(4, 1), (4, 0x80), (5, 1), (5, 0x80)] {
            let bad = damaged(fragment(1, &payload), at, bits);
            assert_eq!(resume_len(&[&bad, &good]), bad.len(), "{at} {bits}");
        }
    }

    #[test]
    fn behind_a_destroyed_header_a_chain_is_searched() {
        let bad = [0xff; 50];
        let (good, zeros) = (fragment(1, b"good"), [0; 30]);
        let torn = &fragment(1, b"torn")[..9];
        let flipped = damaged(fragment(1, b"flipped"), 9, 1);
        assert_eq!(resume_len(&[&bad, &good]), 50);
        assert_eq!(resume_len(&[&bad, &good, &good, &zeros]), 50);
        assert_eq!(resume_len(&[&bad, &good, torn]), 50);
        assert_eq!(resume_len(&[&bad, &good, &torn[..3]]), 50);
        assert_eq!(resume_len(&[&bad, &good, &fragment(80, b"unknown"), &good]), 50);
        assert_eq!(resume_len(&[&bad, &good, &flipped, &good]), 50);
        assert_eq!(resume_len(&[&bad, &good, &flipped]), 50);
        // What is no chain: it does not reach an end, or has no sound fragment.
        assert_eq!(resume_len(&[&bad, &good, &bad]), 50 + good.len() + 50);
        assert_eq!(resume_len(&[&bad, &good, &bad, &good]), 50 + good.len() + 50);
        assert_eq!(resume_len(&[&bad, &zeros]), 50 + zeros.len());
        assert_eq!(resume_len(&[&bad, torn]), 50 + torn.len());
    }

    #[test]
    fn a_block_is_searched_once() {
        let rest = [&[0xff; 50], fragment(1, b"good").as_slice()].concat();
        assert!(resume(&rest, BLOCK_LEN, true).has_scanned);
        assert_eq!(resume(&rest, BLOCK_LEN, false).len, rest.len());
    }

    /// The same bytes where the block ends: a trailer ends a chain, and what would be torn in a longer block does not.
    #[test]
    fn the_end_of_the_block_ends_a_chain() {
        let rest = [&[0xff; 50], fragment(1, b"good").as_slice()].concat();
        for trailer in 0..HEADER_LEN {
            let rest = [&rest, vec![7; trailer].as_slice()].concat();
            assert_eq!(resume(&rest, rest.len(), true).len, 50, "{trailer}");
        }
        let torn = [&rest, &fragment(1, b"torn")[..10]].concat();
        assert_eq!(resume(&torn, torn.len(), true).len, torn.len());
        assert_eq!(resume(&torn, torn.len() + 1, true).len, 50);
    }
}
