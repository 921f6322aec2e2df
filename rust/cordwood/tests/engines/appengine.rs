//! Cases from App Engine's `records_test.py` and `LevelDbTest.java`. Upstream, the block is patched
//! to 20 bytes. Here, it is 32 KiB, so the lengths differ. Datastore and Firestore write the same
//! format. The fragments are the same as LevelDB's, and only the zeros differ.

use cordwood_log::Dialect;

use super::wire::Wire;
use super::{B, NONE, big, read, write};

const LOG: Dialect = Dialect::LEVELDB;

#[test]
fn exact_bytes() {
    assert_eq!(write(LOG, &[""]), b"\x05\x2b\x28\x43\x00\x00\x01");
    assert_eq!(write(LOG, &[big("1", B - 7)]).len(), B);
    let two = write(LOG, &[big("1", B - 10), big("1", 10)]);
    assert_eq!(two[B - 3..B], [0; 3]);
    let five = write(LOG, &[big("1", 4 * (B - 7) + 8)]);
    assert_eq!([0, B, 2 * B, 3 * B, 4 * B].map(|at| five[at + 6]), [2, 3, 3, 3, 4]);
    let empty_first = write(LOG, &[big("1", B - 14), big("1", 10)]);
    assert_eq!(empty_first[B - 3..B], [0, 0, 2]);
    assert_eq!(empty_first[B + 6], 4);
}

/// A file that was written in slices has padding in the middle, followed by more records.
#[test]
fn pad_block_then_records() {
    let mut file = write(LOG, &["one"]);
    file.resize(B, 0);
    file.extend(Wire::Plain.full(b"two"));
    let end = file.len();
    // Exception: the padding is reported as `zero_fill`, which is not damage. App Engine is silent.
    let padding = (10, B as u64, "zero_fill");
    read(LOG, &file)
        .records(&["one", "two"])
        .skipped(&[padding])
        .ends_clean();
    file.resize(2 * B, 0);
    read(LOG, &file)
        .records(&["one", "two"])
        .skipped(&[padding, (end as u64, 2 * B as u64, "zero_fill")])
        .ends_clean();
    // This block contains only padding.
    let mut file = vec![0; B];
    file.extend(Wire::Plain.full(b"two"));
    read(LOG, &file)
        .records(&["two"])
        .skipped(&[(0, B as u64, "zero_fill")]);
}

#[test]
fn destroyed_checksum_or_length_loses_the_block() {
    for at in [0, 4] {
        let mut file = write(LOG, &[big("1", 10), big("2", 10)]);
        file.resize(B, 0);
        file.extend(Wire::Plain.full(b"next block"));
        file[at..at + 2].fill(0xff);
        let reading = read(LOG, &file);
        reading.records(&["next block"]).ends_clean();
        assert_eq!((reading.skipped[0].0, reading.skipped[0].1), (0, B as u64));
    }
}

#[test]
fn stray_fragments() {
    let part = |place| Wire::Plain.part(place, b"stray");
    for (stray, reason) in [(2, "missing_end"), (3, "missing_start"), (4, "missing_start")] {
        let file = [part(stray), Wire::Plain.full(b"good")].concat();
        read(LOG, &file)
            .records(&["good"])
            .skipped(&[(0, 12, reason)])
            .ends_clean();
    }
    let file = [part(2), part(2), part(4)].concat();
    read(LOG, &file)
        .records(&["straystray"])
        .skipped(&[(0, 12, "missing_end")]);
}

#[test]
fn truncation_at_every_length() {
    let records = ["one", "", "three"];
    let file = write(LOG, &records);
    let ends = [10, 17, 29];
    for len in 0..=file.len() {
        let whole = ends.iter().filter(|&&end| end <= len).count();
        // Exception: this crate returns no error. App Engine's Java reader throws.
        read(LOG, &file[..len]).records(&records[..whole]);
    }
    read(LOG, b"").records(NONE).ends_clean();
}

/// Upstream, this tests all sizes up to three blocks. Here, it tests only the sizes near the edges.
#[test]
fn smoke() {
    for edge in [0, B, 2 * B, 3 * B] {
        for len in edge.saturating_sub(20)..edge + 5 {
            let records = [big("1", len), big("2", 100)];
            read(LOG, &write(LOG, &records))
                .records(&records)
                .skipped(&[])
                .ends_clean();
        }
    }
}
