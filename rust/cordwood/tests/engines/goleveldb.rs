//! Cases from goleveldb's `leveldb/journal/journal_test.go`. The fragments are the same as
//! LevelDB's.

use cordwood_log::Dialect;

use super::{B, NONE, big, noise, read, write};

const LOG: Dialect = Dialect::LEVELDB;

#[track_caller]
fn round_trip(records: &[Vec<u8>]) {
    read(LOG, &write(LOG, records))
        .records(records)
        .skipped(&[])
        .ends_clean();
}

#[test]
fn empty() {
    read(LOG, b"").records(NONE).ends_clean();
}

#[test]
fn many() {
    round_trip(
        &(0..100_000)
            .map(|number| format!("{number}.").into_bytes())
            .collect::<Vec<_>>(),
    );
}

#[test]
fn random() {
    round_trip(
        &(0..100)
            .map(|seed| noise((seed as usize * 40_503) % (2 * B + 16), seed))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn basic() {
    round_trip(&[big("a", 1_000), big("b", 97_270), big("c", 8_000)]);
}

#[test]
fn boundary() {
    for first in (B - 16)..(B + 16) {
        for second in (B - 16)..(B + 16) {
            round_trip(&[big("1", first), big("2", second)]);
        }
    }
}

#[test]
fn missing_last_block() {
    let file = write(LOG, &[big("0", B - 1024), big("1", B - 7)]);
    let first = B as u64 - 1017;
    read(LOG, &file[..B])
        .records(&[big("0", B - 1024)])
        .skipped(&[(first, B as u64, "torn_tail")])
        .ends_torn(first as usize);
}

fn four() -> (Vec<Vec<u8>>, Vec<u8>) {
    let records = [B / 2, B - 7, B - 6, B - 5].map(|len| big("0123456789", len)).to_vec();
    let file = write(LOG, &records);
    (records, file)
}

#[test]
fn corrupted_first_block() {
    let (records, mut file) = four();
    file[..1024].fill(b'1');
    let reading = read(LOG, &file);
    reading.records(&records[2..]);
    let second_end = 2 * B as u64 - (B as u64 / 2 - 14);
    // Exception: the LAST fragment of the second record is reported. In goleveldb, it is an error
    // only on request.
    assert_eq!(reading.skipped[0], (0, B as u64, "checksum_mismatch"));
    assert_eq!(
        (reading.skipped[1].0, reading.skipped[1].2),
        (B as u64, "missing_start")
    );
    assert!(reading.skipped[1].1 <= second_end + B as u64);
}

#[test]
fn corrupted_middle_block() {
    let (records, mut file) = four();
    file[B..B + 1024].fill(b'1');
    let reading = read(LOG, &file);
    reading.records(&[&records[0], &records[3]]);
    assert_eq!(reading.skipped[0].2, "interrupted_record");
    assert_eq!((reading.skipped[1].0, reading.skipped[1].1), (B as u64, 2 * B as u64));
}

#[test]
fn corrupted_last_block() {
    let (records, mut file) = four();
    let end = file.len();
    file[end - 1023..].fill(b'1');
    let reading = read(LOG, &file);
    reading.records(&records[..3]);
    assert!(
        reading
            .skipped
            .iter()
            .any(|&(_, _, reason)| reason == "checksum_mismatch")
    );
}

#[test]
fn an_overflowing_length_in_the_first_chunk_is_reported() {
    let records = [B / 2, B - 7, B - 6].map(|len| big("0123456789", len));
    let mut file = write(LOG, &records);
    file[B + 4..B + 6].fill(0xff);
    let reading = read(LOG, &file);
    reading.records(&records[..1]);
    assert_eq!((reading.skipped[1].0, reading.skipped[1].2), (B as u64, "bad_length"));
}

#[test]
fn an_overflowing_length_in_a_middle_chunk_is_reported() {
    let records = [B / 2, B - 7, B - 6].map(|len| big("0123456789", len));
    let mut file = write(LOG, &records);
    file[B / 2 + 11..B / 2 + 13].fill(0xff);
    let reading = read(LOG, &file);
    reading.records(&[&records[0], &records[2]]);
    assert_eq!(
        (reading.skipped[0].0, reading.skipped[0].2),
        (B as u64 / 2 + 7, "bad_length")
    );
}
