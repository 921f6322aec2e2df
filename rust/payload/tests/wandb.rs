//! Records of runs, beside the bytes that the messages of wandb 0.29.0 serialise to.

use cordwood_payload::{PayloadReason, WandbChange, WandbItems, WandbOutput, WandbRecord};

const RUN: &[u8] = b"\x08\x07\x82\x01\x02\x10\x01\x8a\x01H\x0a\x0859kl0f4q\x12\x04team\x1a\x04test\"\x0c\x0a\x0a\x0a\
    \x02lr\x82\x01\x030.1B\x05n\xc3\xa4meR\x01aR\x01bj\x01h\x8a\x01\x0b\x08\xf0\x86\x8c\xd8\x06\x10\xe7\xec\x9aw\x9a\
    \x01\x03\"\x013\x9a\x01\x01u";
const HISTORY: &[u8] = b"\x126\x0a\x0b\x12\x05_step\x82\x01\x013\x0a\x0c\x12\x01a\x12\x01b\x82\x01\x03\"x\"\x0a\x0c\
    \x0a\x04loss\x82\x01\x03NaN\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
const SUMMARY: &[u8] = b"\x1a\x11\x0a\x0a\x12\x01a\x12\x01b\x82\x01\x011\x12\x03\x0a\x01c";
const OUTPUT: &[u8] = b"\x22\x04\x1a\x02x\x0a";
const OUTPUT_RAW: &[u8] = b"j\x1b\x08\x01\x12\x11\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x80\xca\xb5\xee\x01\
    \x1a\x04\x0d50%";
const STATS: &[u8] = b":\x12\x12\x02\x08\x01\x1a\x0c\x0a\x03cpu\x82\x01\x0424.3";
const EXIT: &[u8] = b"\x92\x01\x0d\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x05";
const FILES: &[u8] = b"2\x05\x0a\x03\x0a\x01p";

fn decoded(record: &[u8]) -> WandbRecord<'_> {
    WandbRecord::decode(record).unwrap()
}

/// Names, their parts joined by a slash, and JSON.
fn all(items: WandbItems<'_>) -> Vec<(String, &str)> {
    let items = items.map(Result::unwrap);
    items.map(|item| (item.path.join("/"), item.value_json)).collect()
}

/// The fault of a record or of one of its items.
fn problem(record: &[u8]) -> Option<(usize, usize, PayloadReason)> {
    let first_error = |items: WandbItems<'_>| items.filter_map(Result::err).next();
    let in_change = |change: WandbChange<'_>| first_error(change.update).or(first_error(change.remove));
    let error = match WandbRecord::decode(record) {
        Err(error) => Some(error),
        Ok(WandbRecord::History { items, .. } | WandbRecord::Stats { items, .. }) => first_error(items),
        Ok(WandbRecord::Summary(change) | WandbRecord::Config(change)) => in_change(change),
        Ok(WandbRecord::Run(run)) => run.config.and_then(in_change),
        Ok(_) => None,
    };
    error.map(|error| (error.offset, error.len, error.reason))
}

#[test]
fn decodes_a_run_record() {
    let WandbRecord::Run(run) = decoded(RUN) else { panic!() };
    assert_eq!((run.run_id, run.entity), (Some("59kl0f4q"), Some("team")));
    assert_eq!((run.project, run.display_name), (Some("test"), Some("näme")));
    // 2026-11-22T15:00:00.250000999Z.
    assert_eq!(run.start_time, Some(1_795_359_600_250_000));
    let config = run.config.unwrap();
    assert_eq!(all(config.update), [("lr".into(), "0.1")]);
    assert_eq!(all(config.remove), []);
}

#[test]
fn a_run_record_has_its_description_and_command() {
    let run = b"\x8a\x01$2\x01g:\x01jJ\x02n\nR\x01aR\x00j\x01h\xaa\x01\x0f\n\x05https\x12\x06c0ffe2";
    let WandbRecord::Run(run) = decoded(run) else { panic!() };
    assert_eq!(
        (run.group, run.job_type, run.notes),
        (Some("g"), Some("j"), Some("n\n"))
    );
    assert_eq!(
        (run.tags, run.host, run.git_commit),
        (vec!["a", ""], Some("h"), Some("c0ffe2"))
    );

    let environment = b"\xd2\x01!\n\x01x*\x02-x*\x0112\x04a.pyJ\x04\x12\x02c0b\x01hr\x03/py\x80\x01\x02";
    let WandbRecord::Environment(found) = decoded(environment) else {
        panic!()
    };
    assert_eq!(
        (found.executable, found.program, found.args),
        (Some("/py"), Some("a.py"), vec!["-x", "1"])
    );
    assert_eq!((found.host, found.git_commit), (Some("h"), Some("c0")));

    // A commit that is not text, and two of them.
    let not_text = b"\xd2\x01\x05J\x03\x12\x01\xff";
    assert_eq!(problem(not_text), Some((5, 3, PayloadReason::NotUtf8)));
    let two = b"\xd2\x01\x0aJ\x08\x12\x02c0\x12\x02c1";
    assert_eq!(problem(two), Some((9, 4, PayloadReason::NonCanonical)));
}

#[test]
fn decodes_the_items_and_step_of_a_history_record() {
    let WandbRecord::History { items, step } = decoded(HISTORY) else {
        panic!()
    };
    let expected = [("_step", "3"), ("a/b", "\"x\""), ("loss", "NaN")];
    assert_eq!(all(items), expected.map(|(name, json)| (name.into(), json)));
    assert_eq!(step, Some(-1));
    // Step 0: its number is the default and is not written. And none.
    assert!(matches!(
        decoded(b"\x12\x02\x12\x00"),
        WandbRecord::History { step: Some(0), .. }
    ));
    assert!(matches!(decoded(b"\x12\x00"), WandbRecord::History { step: None, .. }));
}

#[test]
fn decodes_summary_and_config_records() {
    let WandbRecord::Summary(change) = decoded(SUMMARY) else {
        panic!()
    };
    assert_eq!(all(change.update), [("a/b".into(), "1")]);
    assert_eq!(all(change.remove), [("c".into(), "")]);
    let WandbRecord::Config(change) = decoded(b"\x2a\x00") else {
        panic!()
    };
    assert_eq!((all(change.update), all(change.remove)), (vec![], vec![]));
    // A name that is the default, the empty one.
    let WandbRecord::Config(change) = decoded(b"\x2a\x02\x0a\x00") else {
        panic!()
    };
    assert_eq!(all(change.update), [(String::new(), "")]);
}

#[test]
fn decodes_output_metric_and_exit_records() {
    let WandbRecord::Output(output) = decoded(OUTPUT) else {
        panic!()
    };
    assert_eq!((output.is_stderr, output.timestamp, output.line), (true, None, "x\n"));
    let WandbRecord::OutputRaw(output) = decoded(OUTPUT_RAW) else {
        panic!()
    };
    // 1969-12-31T23:59:59.5Z.
    assert_eq!(
        (output.is_stderr, output.timestamp, output.line),
        (false, Some(-500_000), "\r50%")
    );
    let WandbRecord::Stats { timestamp, items } = decoded(STATS) else {
        panic!()
    };
    assert_eq!((timestamp, all(items)), (Some(1_000_000), vec![("cpu".into(), "24.3")]));
    assert!(matches!(decoded(EXIT), WandbRecord::Exit(-1)));
    assert!(matches!(decoded(b"\x92\x01\x00"), WandbRecord::Exit(0)));
}

#[test]
fn unknown_fields_are_skipped() {
    assert!(matches!(decoded(FILES), WandbRecord::Other));
    assert!(matches!(decoded(b""), WandbRecord::Other));
    // Field 1023 in the record and in its message, of each wire type; the last is a group with a group in it.
    for other in [
        b"\xf8\x3f\x01".as_slice(),
        b"\xf9\x3f12345678",
        b"\xfa\x3f\x01\xff",
        b"\xfd\x3f1234",
        b"\xfb\x3f\x0b\x0c\xfc\x3f",
    ] {
        let message = [other, b"\x1a\x01x", other].concat();
        let len = [message.len() as u8];
        let record = [other, b"\x22", &len, &message, other].concat();
        let WandbRecord::Output(WandbOutput { line, .. }) = decoded(&record) else {
            panic!()
        };
        assert_eq!(line, "x");
    }
}

#[test]
fn rejects_malformed_messages() {
    let cases: [(&[u8], _, _, _); 11] = [
        // Two kinds in one record, twice the same field.
        (b"\x2a\x00\x1a\x00", 2, 2, PayloadReason::NonCanonical),
        (b"\x92\x01\x04\x08\x00\x08\x00", 5, 2, PayloadReason::NonCanonical),
        (b"\x1a\x06\x0a\x04\x0a\x00\x0a\x00", 6, 2, PayloadReason::NonCanonical),
        // Other wire types.
        (b"\x12\x02\x08\x00", 2, 2, PayloadReason::BadWireType),
        (b"\x10\x00", 0, 2, PayloadReason::BadWireType),
        (b"\x17", 0, 1, PayloadReason::BadWireType),
        // In a text; the second is the end of a path of two.
        (b"\x22\x03\x1a\x01\xff", 2, 3, PayloadReason::NotUtf8),
        (b"\x12\x08\x0a\x06\x12\x01a\x12\x01\xff", 7, 3, PayloadReason::NotUtf8),
        // 10,000-01-01, and a second of nanoseconds.
        (
            b"\x3a\x09\x12\x07\x08\x80\x83\xd1\xff\xaf\x07",
            2,
            9,
            PayloadReason::NonCanonical,
        ),
        (
            b"\x3a\x08\x12\x06\x10\x80\x94\xeb\xdc\x03",
            2,
            8,
            PayloadReason::NonCanonical,
        ),
        (b"\xff", 0, 1, PayloadReason::Truncated),
    ];
    for (record, offset, len, reason) in cases {
        assert_eq!(problem(record), Some((offset, len, reason)), "{record:x?}");
    }
}

#[test]
fn an_error_in_a_truncated_wandb_record_points_inside_the_record() {
    for record in [RUN, HISTORY, SUMMARY, OUTPUT, OUTPUT_RAW, STATS, EXIT, FILES] {
        assert_eq!(problem(record), None);
        for len in 1..record.len() {
            let cut = &record[..len];
            // A run is cut between two fields of the record, too.
            let is_whole = record == RUN && [2, 7, 82].contains(&len);
            assert_eq!(problem(cut).is_none(), is_whole, "{len} of {record:x?}");
            if let Some((offset, error_len, _)) = problem(cut) {
                assert!(offset + error_len <= len);
            }
        }
    }
}

#[test]
fn item_iterator_stops_after_an_error() {
    let record = b"\x12\x08\x0a\x02\x0a\x00\x0a\x02\x08\x00";
    let WandbRecord::History { mut items, .. } = decoded(record) else {
        panic!()
    };
    assert!(items.next().unwrap().is_ok());
    assert!(items.next().unwrap().is_err());
    assert!(items.next().is_none());
}
