//! Finds where reading can resume in a block after damage. This module is pure: it does no I/O and
//! has no state. The rules are in `docs/format/reading.md`, "Salvage".

use crate::damage::Scanner;
use crate::damage::bit_flip::{explanations, one_bit_off, true_len};
use crate::dialect::{Dialect, Form, LogFormat, Role};
use crate::format::{HEADER_LEN, Header, KIND_AT, without_zeros};

/// Finds where to resume after the damaged header at the start of `rest`. Returns the number of
/// lost bytes. If no later fragment can be trusted, all of `rest` is lost.
///
/// `rest` extends to the end of the block or of the file, and `left` is the number of bytes to the
/// end of the block. `form` is the form of the log's fragments, if known. `may_scan` is called
/// before the search that tries every byte as the start of a fragment. `may_scan` should return
/// true once per block.
#[cold]
pub(crate) fn resume(
    format: &LogFormat,
    form: Option<Form>,
    rest: &[u8],
    left: usize,
    may_scan: impl FnOnce() -> bool,
) -> usize {
    let dialect = format.dialect;
    let is_whole = |at| is_whole(dialect, rest, at) && may_have_form(format, form, rest, at);
    let Some(header) = header_at(rest, 0) else {
        return rest.len();
    };
    let ends = Ends::new(rest, left);
    // 1. One bit in the length was flipped, so the checksum is valid for the true length. This is
    //    proof, whereas the later checks are guesses. If all fragments have about the same length,
    //    a wrong length can point to another fragment by chance. If the payload contains a log, a
    //    wrong length can also point to a fragment inside the payload. Bytes after the last
    //    possible end of the fragment are not checksummed, because up to 16 KiB may follow each
    //    short record.
    let header_len = dialect.meaning(header.kind).form.header_len();
    let may_end = |end| ends.is_end(end) || stated_end(dialect, rest, end).is_some();
    let longest = one_bit_off(header.len)
        .map(|len| header_len + len)
        .filter(|&end| end <= rest.len() && may_end(end))
        .last();
    if let Some(longest) = longest
        && let Some(len) = true_len(dialect, header, &rest[..longest])
    {
        let end = header_len + len;
        if ends.is_end(end) || is_whole(end) {
            return end;
        }
    }
    // The end is also certain if the fragment carries this log's number and was written completely.
    // This holds even if bytes of an older log follow.
    if let Some(end) = written_len(format, None, rest) {
        return end;
    }
    // 2. The length is right, and a valid fragment follows.
    let stated_end = stated_end(dialect, rest, 0);
    if let Some(end) = stated_end
        && is_whole(end)
    {
        return end;
    }
    // 3. The length is right, the type is that of a record's fragment, and no fragment can follow.
    if let Some(end) = stated_end
        && matches!(dialect.meaning(header.kind).role, Role::Fragment(_))
        && ends.is_hard_end(end)
    {
        return end;
    }
    // 4. An unbroken chain of valid fragments extends from some position to the end.
    if may_scan()
        && let Some(start) = scan(format, form, rest, &ends)
    {
        return start;
    }
    // 5. The length is right, and zeros follow. This check comes last because a wrong length can
    //    easily point to zeros, too.
    stated_end.filter(|&end| ends.is_end(end)).unwrap_or(rest.len())
}

/// Returns the header at position `at`, if `rest` contains the whole header.
fn header_at(rest: &[u8], at: usize) -> Option<Header> {
    rest.get(at..)?.first_chunk().map(Header::decode)
}

/// Returns the position where the fragment at position `at` ends according to its header. Returns
/// `None` if this is past the end of `rest`.
fn stated_end(dialect: Dialect, rest: &[u8], at: usize) -> Option<usize> {
    let header = header_at(rest, at)?;
    let end = at + dialect.meaning(header.kind).form.header_len() + usize::from(header.len);
    (end <= rest.len()).then_some(end)
}

/// Checks whether a fragment of any type starts at position `at` and has a valid checksum.
fn is_whole(dialect: Dialect, rest: &[u8], at: usize) -> bool {
    header_at(rest, at).is_some_and(|header| !header.is_zero() && dialect.valid(&rest[at..], true).is_some())
}

/// Returns the form of the valid fragment at position `at`, if it belongs to a record in this log
/// and the dialect has log numbers. All fragments in such a log have the same form.
fn own_form(format: &LogFormat, rest: &[u8], at: usize) -> Option<Form> {
    let meaning = format.dialect.meaning(header_at(rest, at)?.kind);
    let is_own = matches!(meaning.role, Role::Fragment(_)) && !format.is_stale(&rest[at..], meaning.form);
    (is_own && format.dialect.has_log_numbers()).then_some(meaning.form)
}

/// Checks whether the valid fragment at position `at` may belong to this log. `form` is the form of
/// the log's fragments, if known. A fragment of a different form is part of a payload.
fn may_have_form(format: &LogFormat, form: Option<Form>, rest: &[u8], at: usize) -> bool {
    form.is_none_or(|form| own_form(format, rest, at).is_none_or(|own| own == form))
}

/// Checks whether reading can resume at position `at`: either a valid fragment starts there, or a
/// writer may have stopped there. `rest` and `left` are as in [`resume`].
#[cold]
pub(crate) fn can_resume(dialect: Dialect, rest: &[u8], left: usize, at: usize) -> bool {
    Ends::new(rest, left).is_end(at) || is_whole(dialect, rest, at)
}

/// The log that the fragments after damage belong to. The file may contain remnants of an older
/// log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// A fragment of this log that was written completely. It proves that this log continued.
    OfThisLog,
    /// Valid fragments from another log, but none from this log.
    OfAnother,
    None,
}

/// Looks for valid fragments after the first byte of `rest`, and for a damaged fragment at the
/// start of `rest`. `rest` extends to the end of the block or of the file. `form` is the form of
/// the log's fragments, if known.
#[cold]
pub(crate) fn evidence(format: &LogFormat, form: Option<Form>, rest: &[u8]) -> Evidence {
    if written_len(format, form, rest).is_some() || contains_own(format, form, rest) {
        return Evidence::OfThisLog;
    }
    let scanner = Scanner::new(rest);
    match (1..rest.len()).any(|at| scanner.fragment(format, at, true).is_some()) {
        true => Evidence::OfAnother,
        false => Evidence::None,
    }
}

/// Returns the length of the damaged fragment at the start of `rest`, if it carries this log's
/// number and was written completely. `form` is the form of the log's fragments, if known.
///
/// Any one of these proves that the write was complete:
///
/// * Flipping one bit back makes the checksum valid.
/// * Changing the length makes the checksum valid.
/// * This log's end-of-log trailer follows. An older log can't have left it.
///
/// In a log with synced offsets, only the trailer or a later fragment proves that the write was
/// complete. Nothing else shows that the fragment was synced.
#[cold]
pub(crate) fn written_len(format: &LogFormat, form: Option<Form>, rest: &[u8]) -> Option<usize> {
    let (dialect, number) = (format.dialect, format.log_number?);
    let is_own = |bytes: &[u8], role: Role, found: Form| {
        matches!(role, Role::Fragment(_) | Role::Metadata(_))
            && found == Form::Recyclable
            && form.is_none_or(|own| own == found)
            && Dialect::log_number_at(bytes, found) == Some(number)
    };
    let by_flip = explanations(rest, dialect).into_iter().find_map(|place| {
        let written = place.flipped_in(rest);
        let valid = dialect.valid(&written, true)?;
        is_own(&written, valid.role, valid.form).then_some(valid.end)
    });
    if by_flip.is_some() {
        return by_flip;
    }
    let header = header_at(rest, 0)?;
    let meaning = dialect.meaning(header.kind);
    let stated_end = meaning.form.header_len() + usize::from(header.len);
    // The log number is in the same place in both forms that have one, with or without a synced
    // offset.
    let is_closed = Dialect::log_number_at(rest, meaning.form) == Some(number)
        && form.is_none_or(|own| own == meaning.form)
        && rest.get(stated_end..).is_some_and(|after| format.is_end_trailer(after));
    if is_closed && matches!(meaning.role, Role::Fragment(_)) {
        return Some(stated_end);
    }
    if !is_own(rest, meaning.role, meaning.form) {
        return None;
    }
    let (head, payload) = rest.split_at_checked(meaning.form.header_len())?;
    let checksum = dialect.checksum();
    let stored = checksum.load(header.masked_crc);
    let len = checksum.prefix_with(stored, checksum.crc(&head[KIND_AT..]), payload)?;
    Some(head.len() + len)
}

/// Checks whether a valid fragment of the log starts after the first byte of `rest`. `rest` extends
/// to the end of the block or of the file.
#[cold]
pub(crate) fn contains_own(format: &LogFormat, form: Option<Form>, rest: &[u8]) -> bool {
    // This check comes first because an old file may contain thousands of blocks without this log's
    // number.
    let number = format.log_number.filter(|_| form.is_some_and(Form::has_log_number));
    if number.is_some_and(|number| !contains_number(number, rest)) {
        return false;
    }
    let scanner = Scanner::new(rest);
    let is_own_form = |at| {
        let header = header_at(rest, at);
        header.is_some_and(|header| form.is_none_or(|form| form == format.dialect.meaning(header.kind).form))
    };
    (1..rest.len()).any(|at| is_own_form(at) && scanner.fragment(format, at, false).is_some())
}

/// Checks whether `bytes` contains the bytes of `number`.
fn contains_number(number: u32, bytes: &[u8]) -> bool {
    let [a, b, c, d] = number.to_le_bytes();
    let from = |at| bytes.get(at..).unwrap_or_default();
    let places = from(0).iter().zip(from(1)).zip(from(2)).zip(from(3));
    // The loop does not stop early, so that the compiler can compare many positions at once.
    places.fold(false, |found, (((w, x), y), z)| {
        found | ((*w == a) & (*x == b) & (*y == c) & (*z == d))
    })
}

/// The positions at which fragments may end.
struct Ends {
    rest_len: usize,
    left: usize,
    /// The start of the zeros at the end, or the end itself if there are no zeros.
    zeros: usize,
}

impl Ends {
    fn new(rest: &[u8], left: usize) -> Self {
        Ends {
            rest_len: rest.len(),
            left,
            zeros: without_zeros(rest).len(),
        }
    }

    /// Checks whether `at` is at the end of the block, in its trailer, or at the end of the file.
    /// No fragment can start there.
    fn is_hard_end(&self, at: usize) -> bool {
        at == self.rest_len || self.left - at < HEADER_LEN
    }

    /// Checks whether a writer may have stopped at position `at`: either no fragment can follow, or
    /// only zeros follow.
    fn is_end(&self, at: usize) -> bool {
        at >= self.zeros || self.is_hard_end(at)
    }

    /// Returns the first position for which [`is_end`](Self::is_end) is true. All later positions
    /// are also ends.
    fn first(&self) -> usize {
        let trailer = (self.left + 1).saturating_sub(HEADER_LEN);
        self.zeros.min(trailer)
    }
}

/// How a chain can continue at a position.
mod place {
    /// A chain starts here, or a writer may have stopped here.
    pub(super) const VALID: u8 = 1;
    /// The position is `VALID`, or one of these starts here: a torn write, or a damaged fragment
    /// whose length points to a `VALID` position.
    pub(super) const PASSABLE: u8 = 2;
    /// The position is past the end of the file. An interrupted write may have been meant to end
    /// here.
    pub(super) const TORN: u8 = 4;
}

/// Returns the first position at which a chain starts, not counting the position of the first byte.
/// A chain is a series of consecutive valid fragments. It reaches an end, or its last fragment
/// carries the log's number.
///
/// In a dialect with log numbers, all fragments in the log have the same form. If `form` is `None`,
/// the last fragment that carries the log's number determines the form of the fragments before it.
///
/// The search works from back to front, so that each position is visited once, when the positions
/// after it are already known. Most bytes in a block, if read as the start of a header, don't point
/// to a fragment or an end. Each of these bytes costs one table lookup, with no branch that depends
/// on the byte.
fn scan(format: &LogFormat, mut form: Option<Form>, rest: &[u8], ends: &Ends) -> Option<usize> {
    let dialect = format.dialect;
    let header_lens: [u8; 256] = std::array::from_fn(|kind| dialect.meaning(kind as u8).form.header_len() as u8);
    let other_lens: [Option<u8>; 256] =
        std::array::from_fn(|kind| dialect.other_form(kind as u8).map(|form| form.header_len() as u8));
    let scanner = Scanner::new(rest);
    let is_right = |at: usize, end: usize| scanner.valid(dialect, at).is_some_and(|valid| at + valid.end == end);
    // A chain may also end with a fragment of this log. Remnants of an older log may follow such a
    // fragment.
    let is_own = |at: usize, kind: u8| {
        format
            .log_number
            .is_some_and(|number| Dialect::log_number_at(&rest[at..], dialect.meaning(kind).form) == Some(number))
    };
    // The table extends to the end of the longest fragment that a header can describe.
    let mut places = vec![0; rest.len() + dialect.header_len_max() + usize::from(u16::MAX) + 1];
    if ends.left > rest.len() {
        places[rest.len() + 1..=ends.left].fill(place::TORN);
    }
    let first_end = ends.first();
    places[first_end..=rest.len()].fill(place::VALID | place::PASSABLE);
    // A header that starts at or after this position is cut off.
    let cut = (rest.len() + 1).saturating_sub(HEADER_LEN);
    places[cut.min(first_end)..first_end].fill(place::PASSABLE);

    let mut first = None;
    for at in (1..cut.min(first_end)).rev() {
        let Some(header) = header_at(rest, at) else {
            continue;
        };
        let end_with = |header_len: u8| at + usize::from(header_len) + usize::from(header.len);
        let mut end = end_with(header_lens[usize::from(header.kind)]);
        // If the type has two forms, the form with a valid checksum determines the end.
        if let Some(other) = other_lens[usize::from(header.kind)].map(end_with)
            && places[end] | places[other] != 0
            && is_right(at, other)
        {
            end = other;
        }
        let next = places[end];
        let may_be = next & place::PASSABLE != 0 || is_own(at, header.kind);
        if next == 0 && !may_be {
            continue;
        }
        places[at] = if may_be && !header.is_zero() && is_right(at, end) && may_have_form(format, form, rest, at) {
            first = Some(at);
            if is_own(at, header.kind) {
                form = form.or_else(|| own_form(format, rest, at));
            }
            place::VALID | place::PASSABLE
        } else if next & (place::VALID | place::TORN) != 0 {
            place::PASSABLE
        } else {
            0
        };
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::BLOCK_LEN;

    #[test]
    fn finds_a_log_number_at_any_position() {
        let number: u32 = 0x0201_0201;
        for len in 0..80 {
            for at in 0..=len {
                let mut bytes = vec![1; len];
                for (place, byte) in bytes[at..].iter_mut().zip(number.to_le_bytes()) {
                    *place = byte;
                }
                let is_there = bytes.windows(4).any(|window| window == number.to_le_bytes());
                assert_eq!(contains_number(number, &bytes), is_there, "{at} of {len}");
            }
        }
    }

    fn fragment(kind: u8, payload: &[u8]) -> Vec<u8> {
        let masked_crc = Dialect::LEVELDB.checksum().stored(&[&[kind], payload].concat());
        let header = Header {
            masked_crc,
            len: payload.len() as u16,
            kind,
        };
        [&header.encode(), payload].concat()
    }

    /// Returns where reading resumes in a file that consists of `parts`. The first part is damaged.
    fn resume_len(parts: &[&[u8]]) -> usize {
        resume(&Dialect::LEVELDB.into(), None, &parts.concat(), BLOCK_LEN, || true)
    }

    fn damaged(mut fragment: Vec<u8>, at: usize, bits: u8) -> Vec<u8> {
        fragment[at] ^= bits;
        fragment
    }

    #[test]
    fn a_length_field_is_trusted_if_a_valid_fragment_follows() {
        let good = fragment(1, b"good");
        for at in [0, 6, 8] {
            let bad = damaged(fragment(1, b"bad"), at, 0x10);
            assert_eq!(resume_len(&[&bad, &good]), bad.len());
            assert_eq!(resume_len(&[&bad, &good, b"junk that is no end"]), bad.len());
            assert_eq!(resume_len(&[&bad, &[0; 20]]), bad.len());
            assert_eq!(resume_len(&[&bad]), bad.len());
        }
    }

    /// Three bits in the length are wrong, so the length points into the payload, where no fragment
    /// starts.
    #[test]
    fn a_length_field_is_not_trusted_if_no_fragment_follows() {
        let bad = damaged(fragment(1, &[b'x'; 40]), 4, 0b11_1000);
        let good = fragment(1, b"good");
        assert_eq!(resume_len(&[&bad, &good]), bad.len());
    }

    /// A header with type 0 and length 0 is not a fragment, even if its checksum is valid. A header
    /// in which only the type or only the length is 0 does start a fragment.
    #[test]
    fn a_zero_header_is_not_a_fragment() {
        let bad = damaged(fragment(1, b"bad"), 0, 0x10);
        let junk = b"junk that is no end";
        let zero = fragment(0, b"");
        assert_eq!(resume_len(&[&bad, &zero, junk]), bad.len() + zero.len() + junk.len());
        assert_eq!(resume_len(&[&[0xff; 50], &zero]), 50 + zero.len());
        for whole in [fragment(0, b"type 0"), fragment(1, b"")] {
            assert_eq!(resume_len(&[&bad, &whole, junk]), bad.len());
            assert_eq!(resume_len(&[&[0xff; 50], &whole]), 50);
        }
    }

    /// Creates a fragment with this log number.
    fn numbered(kind: u8, number: u32, payload: &[u8]) -> Vec<u8> {
        let mut fragment = fragment(kind, &[&number.to_le_bytes(), payload].concat());
        fragment[4] -= 4;
        fragment
    }

    /// In a Pebble log whose number is 5, a header that looks destroyed is followed by fragments.
    #[test]
    fn valid_fragments_identify_their_log() {
        let format = LogFormat::new(Dialect::PEBBLE).with_log_number(5);
        let evidence_of =
            |form, parts: &[&[u8]]| evidence(&format, form, &[&[0xff; 20], parts.concat().as_slice()].concat());
        let (own, other) = (numbered(5, 5, b"own"), numbered(5, 6, b"other"));
        let (plain, unknown) = (fragment(1, b"plain"), fragment(80, b"unknown"));
        for form in [None, Some(Form::Recyclable)] {
            assert_eq!(evidence_of(form, &[]), Evidence::None);
            assert_eq!(evidence_of(form, &[&own]), Evidence::OfThisLog);
            assert_eq!(evidence_of(form, &[&other]), Evidence::OfAnother);
            assert_eq!(evidence_of(form, &[&other, b"junk", &own]), Evidence::OfThisLog);
            assert_eq!(evidence_of(form, &[&damaged(own.clone(), 0, 1)]), Evidence::None);
            assert_eq!(evidence_of(form, &[&damaged(other.clone(), 0, 1)]), Evidence::None);
            assert_eq!(evidence_of(form, &[&unknown]), Evidence::None);
        }
        // All fragments in a log have the same form, but a fragment from another log is evidence in
        // any form.
        assert_eq!(evidence_of(None, &[&plain]), Evidence::OfThisLog);
        assert_eq!(evidence_of(Some(Form::Recyclable), &[&plain]), Evidence::None);
        assert_eq!(evidence_of(Some(Form::Synced), &[&own]), Evidence::None);
        assert_eq!(evidence_of(Some(Form::Synced), &[&other]), Evidence::OfAnother);
    }

    #[test]
    fn a_flipped_bit_in_the_length_is_corrected() {
        // The payload ends with a log, which a byte-by-byte search would find first.
        let payload = [b"payload".as_slice(), &fragment(1, b"inner")].concat();
        let good = fragment(1, b"good");
        for (at, bits) in [(4, 1), (4, 0x80), (5, 1), (5, 0x80)] {
            let bad = damaged(fragment(1, &payload), at, bits);
            assert_eq!(resume_len(&[&bad, &good]), bad.len(), "{at} {bits}");
        }
    }

    /// There are fragments inside the payload and after it, so wrong lengths also point to
    /// fragments.
    #[test]
    fn in_a_block_of_fragments_any_flipped_bit_in_a_length_is_corrected() {
        let inner = fragment(1, b"");
        let payload = inner.repeat(1000);
        let good = fragment(1, b"good");
        for bit in 0..15 {
            let bad = damaged(fragment(2, &payload), 4 + bit / 8, 1 << (bit % 8));
            assert_eq!(resume_len(&[&bad, &good.repeat(1500)]), bad.len(), "{bit}");
            let block = [bad.as_slice(), &good.repeat(1500)].concat();
            let true_len = true_len(Dialect::LEVELDB, Header::decode(block.first_chunk().unwrap()), &block);
            assert_eq!(true_len, Some(payload.len()), "{bit}");
        }
    }

    #[test]
    fn lengths_that_differ_in_one_bit_are_tried_in_ascending_order() {
        for len in [0, 1, 2, 93, 0x5555, 0x8000, u16::MAX] {
            let mut lens: Vec<usize> = (0..16).map(|bit| usize::from(len ^ 1 << bit)).collect();
            lens.sort_unstable();
            assert_eq!(one_bit_off(len).collect::<Vec<_>>(), lens, "{len}");
        }
    }

    #[test]
    fn searches_for_a_chain_of_fragments_after_a_destroyed_header() {
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
        // These bytes are not chains: either they don't lead to an end, or they contain no valid
        // fragment.
        assert_eq!(resume_len(&[&bad, &good, &bad]), 50 + good.len() + 50);
        assert_eq!(resume_len(&[&bad, &good, &bad, &good]), 50 + good.len() + 50);
        assert_eq!(resume_len(&[&bad, &zeros]), 50 + zeros.len());
        assert_eq!(resume_len(&[&bad, torn]), 50 + torn.len());
    }

    /// Implements [`scan`]'s rule directly, one position at a time.
    fn naive_scan(format: &LogFormat, mut form: Option<Form>, rest: &[u8], ends: &Ends) -> Option<usize> {
        let dialect = format.dialect;
        let mut places = vec![(false, false); rest.len() + 1];
        let mut first = None;
        for at in (1..=rest.len()).rev() {
            let Some(header) = header_at(rest, at).filter(|_| !ends.is_end(at)) else {
                places[at] = (ends.is_end(at), true);
                continue;
            };
            let fragment = dialect.valid(&rest[at..], true);
            let end = at
                + fragment.map_or_else(
                    || dialect.meaning(header.kind).form.header_len() + usize::from(header.len),
                    |valid| valid.end,
                );
            let (is_sound, is_passable) = places.get(end).copied().unwrap_or_default();
            let number = fragment.and_then(|valid| Dialect::log_number_at(&rest[at..], valid.form));
            let is_own = number.is_some() && number == format.log_number;
            let of_record = fragment.filter(|valid| {
                let is_stale = format.log_number.is_some() && number.is_some() && !is_own;
                matches!(valid.role, Role::Fragment(_)) && !is_stale && dialect != Dialect::LEVELDB
            });
            let has_form = form.is_none() || of_record.is_none_or(|valid| form == Some(valid.form));
            if (is_passable || is_own) && !header.is_zero() && fragment.is_some() && has_form {
                places[at] = (true, true);
                first = Some(at);
                form = form.or(of_record.filter(|_| is_own).map(|valid| valid.form));
            } else {
                let is_torn = end > rest.len() && end <= ends.left;
                places[at] = (false, is_sound || is_torn);
            }
        }
        first
    }

    /// The inputs are valid fragments with damage and possible headers between them, at the end of
    /// a block and of a file.
    #[test]
    fn scan_finds_the_same_place_as_a_naive_scan() {
        let mut random = 1_u64;
        let mut next = move |max: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize % max
        };
        let formats = [Dialect::LEVELDB, Dialect::PEBBLE, Dialect::WANDB, Dialect::ROCKSDB].map(LogFormat::new);
        let numbered = LogFormat::new(Dialect::PEBBLE).with_log_number(0x0101_0101);
        let (mut found, mut own_count) = (0, 0);
        for round in 0..600 {
            let mut rest = vec![0xff; next(40)];
            while rest.len() < 300 {
                let mut one = fragment(next(13) as u8, &vec![next(3) as u8; next(30)]);
                // Fragments of types 5 to 8 have a log number before the payload, and fragments of
                // type 11 may have one.
                if matches!(one[KIND_AT], 5..=8 | 11) && next(2) == 0 {
                    one[4] = one[4].saturating_sub(4);
                }
                match next(8) {
                    0 => one[next(7)] ^= 1 << next(8),
                    1 => one.truncate(next(7)),
                    2 => one = (0..next(60)).map(|_| next(13) as u8).collect(),
                    _ => {}
                }
                rest.extend(one);
            }
            rest.resize(rest.len() + [0, 5, 20][next(3)], 0);
            rest.truncate(rest.len() - next(12));
            for left in [rest.len(), rest.len() + next(10), rest.len() + next(3000)] {
                let ends = Ends::new(&rest, left);
                for format in formats.iter().chain([&numbered]) {
                    for form in [None, Some(Form::Plain), Some(Form::Recyclable)] {
                        let expected = naive_scan(format, form, &rest, &ends);
                        let actual = scan(format, form, &rest, &ends);
                        assert_eq!(actual, expected, "{round} {format:?} {form:?} {left}");
                        found += usize::from(expected.is_some());
                    }
                }
                let places = [&numbered, &formats[1]].map(|format| scan(format, None, &rest, &ends));
                own_count += usize::from(places[0] != places[1]);
            }
        }
        assert!(found > 1000, "{found} chains");
        assert!(own_count > 50, "{own_count} chains that end with a number");
    }

    #[test]
    fn a_damaged_block_is_searched_only_once() {
        let rest = [&[0xff; 50], fragment(1, b"good").as_slice()].concat();
        let mut is_asked = false;
        let may_scan = || {
            is_asked = true;
            true
        };
        assert_eq!(resume(&Dialect::LEVELDB.into(), None, &rest, BLOCK_LEN, may_scan), 50);
        assert!(is_asked);
        assert_eq!(
            resume(&Dialect::LEVELDB.into(), None, &rest, BLOCK_LEN, || false),
            rest.len()
        );
    }

    /// The same bytes are tried at the end of the block. A trailer ends a chain, but a header that
    /// would be torn in a longer block does not.
    #[test]
    fn a_chain_of_fragments_stops_at_the_end_of_the_block() {
        let rest = [&[0xff; 50], fragment(1, b"good").as_slice()].concat();
        for trailer in 0..HEADER_LEN {
            let rest = [&rest, vec![7; trailer].as_slice()].concat();
            assert_eq!(
                resume(&Dialect::LEVELDB.into(), None, &rest, rest.len(), || true),
                50,
                "{trailer}"
            );
        }
        let torn = [&rest, &fragment(1, b"torn")[..10]].concat();
        assert_eq!(
            resume(&Dialect::LEVELDB.into(), None, &torn, torn.len(), || true),
            torn.len()
        );
        assert_eq!(
            resume(&Dialect::LEVELDB.into(), None, &torn, torn.len() + 1, || true),
            50
        );
    }
}
