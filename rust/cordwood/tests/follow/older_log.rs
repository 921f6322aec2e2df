//! Tests logs with a number, in a file that may contain an older log.

use super::*;

follow_tests! {
    in_file_and_segment: [
        only_fragments_of_the_current_form_are_returned_after_damage_in_a_recycled_file,
        following_a_closed_log_ends_at_its_trailer,
        records_of_an_older_log_with_another_fragment_form_are_not_returned,
        a_flipped_bit_in_the_last_record_of_a_recycled_log_is_reported_as_damage,
        records_of_an_older_log_are_not_returned_after_damage_at_the_start,
    ],
}

/// A RocksDB log with a number is in a file that once contained an older log without numbers.
fn records_of_an_older_log_with_another_fragment_form_are_not_returned(place: Place) {
    let (_directory, path) = place.directory();
    let mut older = Vec::new();
    while older.len() < 2 * BLOCK_LEN {
        Wire::Plain.append(&mut older, 0, &[b'o'; 100]);
    }
    let mut file = Wire::Recyclable(5).full(b"new");
    let own_len = file.len();
    file.extend(&older[own_len..]);
    fs::write(&path, &file).unwrap();

    let dialect = LogFormat::new(Dialect::ROCKSDB).with_log_number(5);
    let options = skipping().with_format(dialect);
    let mut reported = Vec::new();
    let not_yet = drain(&mut Follower::open_with(&path, options).unwrap(), &mut reported);
    assert_eq!(records(&reported), [b"new"]);
    assert_eq!((not_yet.offset, not_yet.reason), (own_len as u64, WaitReason::Stale));

    // The rest of the new log shows that the old log is being overwritten.
    let mut log = file[..own_len].to_vec();
    Wire::Recyclable(5).append(&mut log, 0, &[b'n'; 2 * BLOCK_LEN]);
    let mut follower = Follower::open_with(&path, FollowOptions::default().with_format(dialect)).unwrap();
    fs::write(&path, &log).unwrap();
    let mut reported = Vec::new();
    drain(&mut follower, &mut reported);
    assert_eq!(records(&reported), [b"new".to_vec(), vec![b'n'; 2 * BLOCK_LEN]]);
}

/// One flipped bit in a fragment with this log's number is damage, even if an older log follows the
/// fragment and no other fragment of this log does. Two flipped bits may be a write in progress.
fn a_flipped_bit_in_the_last_record_of_a_recycled_log_is_reported_as_damage(place: Place) {
    let (_directory, path) = place.directory();
    let own = Wire::Recyclable(6);
    let older = Wire::Recyclable(5).full(&[b'o'; 1_000]);
    let (first, last) = (own.full(b"first"), own.full(b"last"));
    let (start, end) = (first.len(), first.len() + last.len());
    let file = [&first[..], &last, &older[end..]].concat();
    let format = LogFormat::new(Dialect::ROCKSDB).with_log_number(6);
    let options = skipping().with_retry(0, Duration::ZERO).with_format(format);
    for (flips, is_damage) in [(1, true), (3, false)] {
        for at in start + 7..end {
            let mut damaged = file.clone();
            damaged[at] ^= flips << (at % 7);
            fs::write(&path, &damaged).unwrap();
            let mut reported = Vec::new();
            let not_yet = drain(&mut Follower::open_with(&path, options.clone()).unwrap(), &mut reported);
            assert_eq!(records(&reported[..1]), [b"first"]);
            assert_eq!(reported.len() > 1, is_damage, "{at}: {reported:?}");
            let waits = (not_yet.offset, not_yet.reason) == (start as u64, WaitReason::Stale);
            assert_eq!(waits, !is_damage, "{at}: {not_yet:?}");
        }
    }
}

/// The log's number comes from two consecutive fragments after the damage. It is greater than the
/// number in the next block, which an older log left. Before that block is written, only the damage
/// is reported.
fn records_of_an_older_log_are_not_returned_after_damage_at_the_start(place: Place) {
    let mut older = Vec::new();
    for _ in 0..2 {
        Wire::Recyclable(3).append(&mut older, 0, &[b'o'; BLOCK_LEN - 11]);
    }
    Wire::Recyclable(3).append(&mut older, 0, b"older");
    let mut file = Wire::Plain.full(&[b'd'; 300]);
    file[0] ^= 1;
    file.extend(Wire::Recyclable(6).part(3, &[b'm'; 80]));
    file.extend(Wire::Plain.full(b"after damage in its block"));
    file.extend(&older[file.len()..]);

    for dialect in [Dialect::PEBBLE, Dialect::ROCKSDB, Dialect::RECYCLABLE] {
        let (_directory, path) = place.directory();
        let options = skipping().with_dialect(dialect);
        let mut growing = Growing::new(&path, 0);
        let mut follower = Follower::open_with(&path, options).unwrap();
        let (mut reported, mut written) = (Vec::new(), 0);
        for end in [BLOCK_LEN + 10_000, 2 * BLOCK_LEN + 3, file.len()] {
            growing.write(written, &file[written..end]);
            written = end;
            drain(&mut follower, &mut reported);
        }
        let spans: Vec<_> = reported
            .iter()
            .map(|reported| match reported {
                Reported::Record(start, end, _) => panic!("{dialect:?}: a record at [{start}, {end})"),
                Reported::Skipped(region) => (region.start, region.end),
            })
            .collect();
        assert_eq!(spans, [(0, BLOCK_LEN as u64)], "{dialect:?}");
        assert_eq!(follower.format().log_number, Some(6));
    }
}

/// After garbage or a lost write in a log with a number, the following blocks may contain the rest
/// of an older log. This rest is not returned, but later records of this log are.
fn only_fragments_of_the_current_form_are_returned_after_damage_in_a_recycled_file(place: Place) {
    let own = Wire::Recyclable(6);
    let filler = |wire: Wire, start: usize| wire.full(&vec![b'o'; BLOCK_LEN - start - wire.header_len()]);
    let own_len = own.full(b"own").len();
    // The file has a block of garbage, a block of an older log without numbers, and a block in
    // which the log continues.
    let mut garbage = own.full(b"own");
    garbage.resize(BLOCK_LEN, 0xff);
    garbage.extend(filler(Wire::Plain, 0));
    garbage.extend(own.full(b"later"));
    // In this file, the older log has the same form.
    let stale = [
        own.full(b"own"),
        filler(Wire::Recyclable(5), own_len),
        own.full(b"later"),
    ]
    .concat();
    // The type of the first fragment does not show the form of the log. The form is only known when
    // the next block has been seen.
    let mut unknown = own.fragment(41, b"of a type to come");
    let start = unknown.len() as u64;
    unknown.extend(Wire::Plain.full(b"own"));
    unknown.resize(BLOCK_LEN, 0xff);
    unknown.extend(own.full(b"of another form"));

    let later = |file: &[u8]| (file.len() - own.full(b"later").len()) as u64;
    let cases = [
        (
            &garbage,
            vec![(0, "own"), (later(&garbage), "later")],
            ["bad_length", "lost_write"].as_slice(),
        ),
        (&stale, vec![(0, "own"), (later(&stale), "later")], &["lost_write"]),
        (&unknown, vec![(start, "own")], &["unknown_kind"]),
    ];
    for (index, (file, expected, reasons)) in cases.into_iter().enumerate() {
        let options = skipping().with_format(LogFormat::new(Dialect::ROCKSDB).with_log_number(6));
        let reported = followed_in_steps(place, file, 1_000, options);
        let found: Vec<_> = reported
            .iter()
            .filter_map(|reported| match reported {
                Reported::Record(start, _, data) if data.len() < 100 => Some((*start, str::from_utf8(data).unwrap())),
                Reported::Record(start, ..) => Some((*start, "an older log's")),
                Reported::Skipped(_) => None,
            })
            .collect();
        assert_eq!(found, expected, "{index}");
        let skipped: Vec<_> = reported
            .iter()
            .filter_map(|reported| match reported {
                Reported::Record(..) => None,
                Reported::Skipped(region) => Some(region.reason.as_str()),
            })
            .collect();
        assert_eq!(skipped, reasons, "{index}");
    }
}

/// When Pebble closes a log, it ends the log with the header of an empty fragment of the next log.
fn following_a_closed_log_ends_at_its_trailer(place: Place) {
    let record = Wire::Recyclable(7).full(b"one");
    let trailer = [&[0; 6][..], &[5, 8, 0, 0, 0]].concat();
    let (_directory, path) = place.directory();
    fs::write(&path, [&record[..], &trailer].concat()).unwrap();
    let options = FollowOptions::default().with_format(LogFormat::new(Dialect::PEBBLE).with_log_number(7));
    let mut follower = Follower::open_with(&path, options).unwrap();
    assert!(matches!(follower.poll(), Ok(Poll::Record(record)) if record.data == b"one"));
    let poll = follower.poll().unwrap();
    assert!(
        matches!(poll, Poll::Skipped(region) if region.reason == Reason::EndTrailer),
        "{poll:?}"
    );
    for _ in 0..2 {
        assert_eq!(follower.poll().unwrap(), Poll::End(End::Clean { offset: 25 }));
    }
}
