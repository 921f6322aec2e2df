//! Tests the reasons why a follower waits. Follows the table "The answer of a poll" in
//! `docs/format/following.md` line by line.

use super::*;

follow_tests! {
    in_file_and_segment: [
        the_reason_for_waiting_after_a_record_matches_each_line_of_the_table,
        a_continuation_fragment_at_the_start_of_a_log_is_suspect,
        zeros_are_not_mistaken_for_a_fragment_before_the_dialect_is_known,
        the_missing_rest_of_a_started_record_is_reported_as_incomplete,
        suspect_bytes_are_reread_sooner_than_other_bytes,
    ],
    in_file_only, "No log of this dialect is segmented.": [
        apparent_damage_in_a_numbered_log_may_belong_to_an_older_log,
        a_follower_waits_for_a_file_header_just_as_it_waits_for_a_fragment,
    ],
}

const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;
const UNKNOWN: u8 = 77;

/// Under these options, damage is never final.
fn waiting(format: impl Into<LogFormat>) -> FollowOptions {
    FollowOptions::default()
        .with_format(format)
        .with_retry(u32::MAX, Duration::MAX)
}

/// Returns the reason for waiting after the records at the start of `file`. The records end at
/// `offset`.
fn waits(place: Place, file: &[u8], offset: usize, options: FollowOptions) -> WaitReason {
    let (_directory, path) = place.directory();
    fs::write(&path, file).unwrap();
    let mut follower = Follower::open_with(&path, options).unwrap();
    let not_yet = loop {
        match follower.poll().unwrap() {
            Poll::Record(_) => {}
            Poll::NotYet(not_yet) => break not_yet,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((not_yet.offset, not_yet.file_len), (offset as u64, file.len() as u64));
    assert_eq!(not_yet.pending_len(), (file.len() - offset) as u64);
    assert_eq!(follower.offset(), offset as u64);
    not_yet.reason
}

/// Returns the header of a fragment whose payload has `len` bytes, and the first bytes of that
/// payload.
fn cut(kind: u8, len: usize, written_len: usize) -> Vec<u8> {
    let mut bytes = Wire::Plain.fragment(kind, &vec![b'x'; len]);
    bytes.truncate(7 + written_len);
    bytes
}

fn with_zeros(mut bytes: Vec<u8>, len: usize) -> Vec<u8> {
    bytes.resize(bytes.len() + len, 0);
    bytes
}

fn flipped(mut bytes: Vec<u8>, at: usize) -> Vec<u8> {
    bytes[at] ^= 0x10;
    bytes
}

fn the_reason_for_waiting_after_a_record_matches_each_line_of_the_table(place: Place) {
    use WaitReason::{Idle, Incomplete, Suspect, Zeros};
    let record = Wire::Plain.full(b"one");
    // The room that is left in the block after the record and a header.
    let room = BLOCK_LEN - record.len() - 7;
    let cases = [
        (4, vec![], Idle),
        (5, vec![0], Zeros),
        (5, vec![0; 6], Zeros),
        (5, vec![0; 7], Zeros),
        (5, vec![0; 100], Zeros),
        (5, vec![0; room + 7], Zeros),
        (5, vec![0; room + 8], Zeros),
        (6, vec![9], Incomplete),
        (6, vec![0, 0, 9], Incomplete),
        (6, cut(FULL, 5, 0)[..6].to_vec(), Incomplete),
        (6, with_zeros(vec![9; 6], 100), Incomplete),
        (7, [&[0; 7][..], &[9]].concat(), Zeros),
        (7, [&[9, 9, 9, 9, 0, 0, 0][..], &[9]].concat(), Zeros),
        (8, cut(FULL, 5, 0), Incomplete),
        (8, cut(FULL, 5, 4), Incomplete),
        (8, with_zeros(cut(FULL, 5, 4), 100), Incomplete),
        (8, with_zeros(cut(FULL, 5, 4), 1), Incomplete),
        (8, cut(LAST, 5, 4), Incomplete),
        (8, cut(FULL, room, 50), Incomplete),
        (8, cut(LAST, room, 50), Incomplete),
        (8, cut(FIRST, room, 50), Incomplete),
        (8, cut(MIDDLE, room, 50), Incomplete),
        (8, cut(FIRST, room - 6, 50), Incomplete),
        (8, cut(MIDDLE, room - 6, 50), Incomplete),
        // No writer would write this fragment here, because another header would fit after it.
        (9, cut(FIRST, room - 7, 50), Suspect),
        (9, cut(MIDDLE, room - 7, 50), Suspect),
        (9, cut(FIRST, 5, 4), Suspect),
        // This fragment extends past the block.
        (9, cut(FULL, room + 1, 50), Suspect),
        (9, cut(LAST, room + 1, 50), Suspect),
        (9, cut(FIRST, room + 1, 50), Suspect),
        (9, cut(UNKNOWN, 5, 4), Suspect),
        (9, Wire::Plain.fragment(UNKNOWN, b"x"), Suspect),
        (9, flipped(cut(FULL, 5, 5), 8), Suspect),
        (9, with_zeros(flipped(cut(FULL, 5, 5), 8), 100), Suspect),
        (9, flipped(cut(FULL, 0, 0), 0), Suspect),
    ];
    for (line, tail, reason) in cases {
        let file = [&record[..], &tail].concat();
        let found = waits(place, &file, record.len(), waiting(Dialect::LEVELDB));
        assert_eq!(found, reason, "line {line}: {:?}", &tail[..tail.len().min(20)]);
    }
    // An empty FIRST fragment fits here.
    for (tail, reason) in [(&b""[..], Idle), (&[0], Zeros), (&[0; 7], Zeros), (&[9], Incomplete)] {
        let file = [&Wire::Plain.full(&vec![b'x'; BLOCK_LEN - 14])[..], tail].concat();
        assert_eq!(
            waits(place, &file, BLOCK_LEN - 7, waiting(Dialect::LEVELDB)),
            reason,
            "{tail:?}"
        );
    }
    // The trailer may be complete or incomplete.
    for left in 1..7 {
        let mut file = Wire::Plain.full(&vec![b'x'; BLOCK_LEN - 7 - left]);
        for _ in 0..=left {
            assert_eq!(waits(place, &file, BLOCK_LEN - left, waiting(Dialect::LEVELDB)), Idle);
            file.push(0);
        }
    }
}

fn a_continuation_fragment_at_the_start_of_a_log_is_suspect(place: Place) {
    for (kind, reason) in [
        (FULL, WaitReason::Incomplete),
        (MIDDLE, WaitReason::Suspect),
        (LAST, WaitReason::Suspect),
    ] {
        let file = cut(kind, BLOCK_LEN - 7, 50);
        assert_eq!(waits(place, &file, 0, waiting(Dialect::LEVELDB)), reason, "type {kind}");
    }
}

/// The first fragment may belong to any dialect.
fn zeros_are_not_mistaken_for_a_fragment_before_the_dialect_is_known(place: Place) {
    use WaitReason::{Idle, Incomplete, Zeros};
    for (file, reason) in [
        (vec![], Idle),
        (vec![0], Zeros),
        (vec![0; 7], Zeros),
        (vec![0; 100], Zeros),
        (vec![9], Incomplete),
        (vec![0, 0, 9], Incomplete),
        (with_zeros(vec![9; 6], 100), Incomplete),
        (cut(FULL, 5, 4), Incomplete),
    ] {
        let options = FollowOptions::default().with_retry(u32::MAX, Duration::MAX);
        assert_eq!(waits(place, &file, 0, options), reason, "{file:?}");
    }
}

fn the_missing_rest_of_a_started_record_is_reported_as_incomplete(place: Place) {
    use WaitReason::{Incomplete, Suspect, Zeros};
    for left in [0, 6] {
        let first = Wire::Plain.part(FIRST, &vec![b'x'; BLOCK_LEN - 7 - left]);
        for (rest, reason) in [
            (vec![], Incomplete),
            (vec![0; left], Incomplete),
            (vec![0; left + 1], Incomplete),
            (vec![0; left + 100], Incomplete),
            (vec![0; left + BLOCK_LEN], Incomplete),
            ([&vec![0; left][..], &cut(LAST, 5, 4)].concat(), Incomplete),
            ([&vec![0; left][..], &[0; 7], &[9]].concat(), Zeros),
            ([&vec![0; left][..], &flipped(cut(LAST, 5, 5), 8)].concat(), Suspect),
        ] {
            let file = [&first[..], &rest].concat();
            let found = waits(place, &file, 0, waiting(Dialect::LEVELDB));
            assert_eq!(found, reason, "{left}, {} bytes", rest.len());
        }
    }
}

/// The follower polls often enough to read suspect bytes the required number of times in the
/// required time.
fn suspect_bytes_are_reread_sooner_than_other_bytes(place: Place) {
    let millis = Duration::from_millis;
    let damaged = flipped(Wire::Plain.full(b"one"), 8);
    for (polls, time, interval, delay) in [
        (4, millis(100), millis(50), millis(25)),
        (1, millis(40), millis(50), millis(40)),
        (0, millis(40), millis(50), millis(40)),
        (4, millis(100), millis(10), millis(10)),
    ] {
        let (_directory, path) = place.directory();
        fs::write(&path, b"").unwrap();
        let options = FollowOptions::default()
            .with_dialect(Dialect::LEVELDB)
            .with_retry(polls, time)
            .with_poll_interval(interval);
        let mut follower = Follower::open_with(&path, options).unwrap();
        assert!(matches!(follower.poll(), Ok(Poll::NotYet(_))));
        assert_eq!(follower.delay(), interval);
        fs::write(&path, &damaged).unwrap();
        assert!(matches!(follower.poll(), Ok(Poll::NotYet(_))));
        assert_eq!(follower.delay(), delay);
        // At this point, the fragment is still being written.
        fs::write(&path, &damaged[..8]).unwrap();
        assert!(matches!(follower.poll(), Ok(Poll::NotYet(_))));
        assert_eq!(follower.delay(), interval);
    }
}

fn apparent_damage_in_a_numbered_log_may_belong_to_an_older_log(place: Place) {
    use WaitReason::{Idle, Incomplete, Stale, Suspect};
    let (own, other) = (Wire::Recyclable(5), Wire::Recyclable(4));
    let record = own.full(b"one");
    let unknown = own.fragment(41, &[b'x'; 20]);
    let room = BLOCK_LEN - record.len() - 7;
    for (line, tail, reason) in [
        (3, other.full(b"two"), Stale),
        (3, other.full(b""), Stale),
        (4, vec![], Idle),
        (8, own.full(b"two")[..11].to_vec(), Incomplete),
        (8, other.full(b"two")[..11].to_vec(), Incomplete),
        // A later version may write this type, which has the longer header.
        (8, unknown[..7 + 20].to_vec(), Incomplete),
        (8, unknown[..11 + 19].to_vec(), Incomplete),
        (8, own.fragment(41, &vec![b'x'; room - 4])[..50].to_vec(), Incomplete),
        (
            8,
            Wire::Plain.fragment(42, &vec![b'x'; room])[..50].to_vec(),
            Incomplete,
        ),
        (9, flipped(unknown.clone(), 20), Stale),
        (9, Wire::Plain.fragment(42, &vec![b'x'; room + 1])[..50].to_vec(), Stale),
        // One bit of this fragment is flipped, so this log has written all of it.
        (9, flipped(own.full(b"two"), 12), Suspect),
        (9, flipped(other.full(b"two"), 12), Stale),
        (9, vec![0xff; 100], Stale),
    ] {
        let file = [&record[..], &tail].concat();
        let format = LogFormat::new(Dialect::ROCKSDB).with_log_number(5);
        let found = waits(place, &file, record.len(), waiting(format));
        assert_eq!(found, reason, "line {line}: {tail:?}");
    }
}

fn a_follower_waits_for_a_file_header_just_as_it_waits_for_a_fragment(place: Place) {
    use WaitReason::{Idle, Incomplete, Suspect, Zeros};
    let header = b":W&B\xe1\xbe\x00";
    for (file, reason) in [
        (vec![], Idle),
        (vec![0], Zeros),
        (vec![0; 100], Zeros),
        (header[..1].to_vec(), Incomplete),
        (header[..6].to_vec(), Incomplete),
        (b":X".to_vec(), Incomplete),
        (with_zeros(header[..5].to_vec(), 100), Incomplete),
        (with_zeros(b":X".to_vec(), 4), Incomplete),
        (with_zeros(b":X".to_vec(), 5), Suspect),
        (b":W&B\xe1\xbf\x00".to_vec(), Suspect),
    ] {
        assert_eq!(waits(place, &file, 0, waiting(Dialect::WANDB)), reason, "{file:?}");
    }
}

#[test]
fn follower_defaults_match_the_documentation() {
    let options = FollowOptions::default();
    assert_eq!((options.start, options.on_corruption), (0, OnCorruption::Fail));
    assert_eq!(options.poll_interval, Duration::from_millis(50));
    assert_eq!(
        (options.retry_polls, options.retry_time),
        (3, Duration::from_millis(100))
    );
    assert_eq!(options.record_len_max, 1 << 30);
    assert_eq!(
        (options.dialect, options.log_number, options.compression),
        (None, None, None)
    );
}
