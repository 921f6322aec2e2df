//! The rows of records of a run of Weights & Biases.

mod rows;

use std::slice::from_ref;

use cordwood_payload::table::{Decoder, Facts, Fault, Record};
use rows::lines;

/// The rows of the records of a log, and their faults.
struct Found {
    rows: Vec<String>,
    faults: Vec<String>,
}

fn found(rows: &str, is_run: bool, records: &[Vec<u8>]) -> Found {
    let mut facts = Facts::default();
    facts.is_run = is_run;
    let records: Vec<_> = records.iter().map(|record| Record::of(record)).collect();
    let (faults, rows) = lines(rows, &facts, &records)
        .into_iter()
        .partition(|line| line.starts_with("no "));
    let rows: Vec<String> = rows;
    Found {
        rows: rows.iter().map(|row| format!("{{{row}}}")).collect(),
        faults,
    }
}

/// The value of a record, or its first fault.
fn value(rows: &str, record: &[u8]) -> Result<Option<String>, Fault> {
    rows::value(&mut Decoder::named(rows, Facts::default()).unwrap(), record)
}

/// A field with a length: texts and messages.
fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = varint(u64::from(number << 3 | 2));
    out.extend(varint(content.len() as u64));
    out.extend_from_slice(content);
    out
}

fn number(field: u32, value: u64) -> Vec<u8> {
    [varint(u64::from(field << 3)), varint(value)].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// An item of a step, a summary or a configuration: the names of its path and its JSON.
fn item(path: &[&str], json: &str) -> Vec<u8> {
    let mut out = path
        .iter()
        .flat_map(|name| field(2, name.as_bytes()))
        .collect::<Vec<_>>();
    out.extend(field(16, json.as_bytes()));
    out
}

/// A change of a summary (3) or of a configuration (5).
fn change(kind: u32, update: &[(&[&str], &str)], remove: &[&[&str]]) -> Vec<u8> {
    let mut content = Vec::new();
    for (path, json) in update {
        content.extend(field(1, &item(path, json)));
    }
    for path in remove {
        content.extend(field(2, &item(path, "")));
    }
    field(kind, &content)
}

/// A time of this second and nanoseconds.
fn time(seconds: u64, nanos: u64) -> Vec<u8> {
    [number(1, seconds), number(2, nanos)].concat()
}

/// A measurement; its time is field 2 of the record.
fn stats(seconds: Option<u64>, items: &[(&str, &str)]) -> Vec<u8> {
    let mut content = seconds.map_or(Vec::new(), |seconds| field(2, &time(seconds, 250_000_000)));
    for (name, json) in items {
        let item = [field(1, name.as_bytes()), field(16, json.as_bytes())].concat();
        content.extend(field(3, &item));
    }
    field(7, &content)
}

/// A printed text, to stderr unless `is_stdout`.
fn output(is_stdout: bool, seconds: u64, text: &str) -> Vec<u8> {
    let mut content = if is_stdout { number(1, 1) } else { Vec::new() };
    content.extend(field(2, &time(seconds, 0)));
    content.extend(field(3, text.as_bytes()));
    field(13, &content)
}

const UNKNOWN: &str = "{id: null, name: null, project: null, entity: null, group: null, job_type: null, tags: [], \
    notes: null, state: \"unfinished\", exit_code: null, start_time: null, host: null, git_commit: null, \
    command: null}";

#[test]
fn a_run_becomes_one_row_even_without_a_run_record() {
    assert!(found("wandb-run", false, &[]).rows.is_empty());
    assert_eq!(found("wandb-run", true, &[]).rows, [UNKNOWN]);
    // A record that is not one of a run.
    let other = found("wandb-run", false, &[vec![0xff]]);
    assert_eq!((other.rows.len(), other.faults.len()), (0, 1));
    // A record of a kind that does not describe the run.
    assert_eq!(found("wandb-run", false, &[field(6, b"")]).rows, [UNKNOWN]);
    assert_eq!(value("wandb-run", &field(18, b"")), Ok(None));
}

#[test]
fn the_last_run_record_wins_and_environments_are_merged() {
    let first = [field(1, b"r"), field(9, b"one"), field(10, b"a"), field(13, b"h1")].concat();
    let second = [
        field(1, b"r2"),
        field(2, b"team"),
        field(3, b"proj"),
        field(6, b"grp"),
        field(7, b"train"),
        field(8, "n\u{e4}me".as_bytes()),
        field(9, b""),
        field(10, b"x"),
        field(10, b""),
        field(17, &time(1_795_359_600, 250_000_999)),
    ]
    .concat();
    let program = [field(6, b"a.py"), field(5, b"-x"), field(12, b"h2")].concat();
    let commit = field(9, &field(2, b"c0"));
    let executable = [field(14, b"/py"), field(6, b"")].concat();
    let records = [
        field(26, &program),
        field(17, &first),
        field(26, &commit),
        field(17, &second),
        field(26, &executable),
        field(18, &number(1, 3)),
    ];
    let expected = "{id: \"r2\", name: \"n\u{e4}me\", project: \"proj\", entity: \"team\", group: \"grp\", \
        job_type: \"train\", tags: [\"x\", \"\"], notes: null, state: \"failed\", exit_code: 3, \
        start_time: time 1795359600250000, host: \"h2\", git_commit: \"c0\", command: \"/py a.py -x\"}";
    assert_eq!(found("wandb-run", true, &records).rows, [expected]);
    let end = found("wandb-run", true, &[field(18, b"")]).rows;
    assert!(end[0].contains("state: \"finished\", exit_code: 0"), "{end:?}");
}

#[test]
fn commands_are_quoted_where_the_shell_requires_it() {
    let command = |program: &str, args: &[&str]| {
        let mut content = field(6, program.as_bytes());
        args.iter().for_each(|text| content.extend(field(5, text.as_bytes())));
        let [row] = &found("wandb-run", false, &[field(26, &content)]).rows[..] else {
            panic!()
        };
        let (_, command) = row.split_once("command: \"").unwrap();
        command
            .strip_suffix("\"}")
            .unwrap()
            .replace("\\\"", "\"")
            .replace("\\\\", "\\")
    };
    // As `shlex.join` of Python writes them.
    for (program, args, expected) in [
        ("-m pkg.train", &["a b"][..], "python -m pkg.train 'a b'"),
        ("-m  pkg", &[], "python -m ' pkg'"),
        ("-mpkg", &[], "python -mpkg"),
        (
            "it's.py",
            &["", "\u{e4}", "a=b", "~"],
            r#"python 'it'"'"'s.py' '' 'ä' a=b '~'"#,
        ),
        ("x_@%+=:,./-9", &["$x", "a\\"], "python x_@%+=:,./-9 '$x' 'a\\'"),
    ] {
        assert_eq!(command(program, args), expected);
    }
}

#[test]
fn a_summary_reflects_all_changes() {
    let records = [
        change(
            3,
            &[
                (&["a"], "1"),
                (&["b", "c"], "2"),
                (&["b", "d"], "3"),
                (&["e"], "4"),
                (&["s"], r#""\u00e4""#),
            ],
            &[],
        ),
        change(5, &[(&["lr"], "0.1")], &[]),
        // A value that is not a dictionary gives way; a dictionary in a value is one.
        change(
            3,
            &[
                (&["a", "x"], "5"),
                (&["b"], r#"{"f": 6, "i": {"j": [1, null]}}"#),
                (&["b", "g", "h"], "7"),
                (&["b", "i", "k"], "123456789012345678901"),
            ],
            &[&["e"], &["b", "f"], &["none", "of", "these"], &["s", "t"]],
        ),
        // A name that is removed and set again comes last.
        change(3, &[(&["z"], "NaN")], &[&["a"]]),
        change(3, &[(&["a"], "true")], &[]),
    ];
    let summary = "{b: {i: {j: [1, null], k: huge 123456789012345678901}, g: {h: 7}}, s: \"\u{e4}\", z: NaN, a: true}";
    assert_eq!(found("wandb-summary", false, &records).rows, [summary]);
    assert_eq!(found("wandb-config", true, &records).rows, ["{lr: 0.1}"]);
    assert_eq!(found("wandb-config", true, &[]).rows, ["{}"]);
    assert!(found("wandb-config", false, &[]).rows.is_empty());
    // A record of the run may contain a change of the configuration.
    let in_run = field(17, &field(4, &field(1, &item(&["lr"], "1"))));
    assert_eq!(found("wandb-config", false, from_ref(&in_run)).rows, ["{lr: 1}"]);
    assert_eq!(
        value("wandb-config", &in_run),
        Ok(Some("{update: {lr: 1}, remove: []}".into()))
    );
    assert_eq!(value("wandb-summary", &in_run), Ok(None));
    assert_eq!(
        value("wandb-summary", &records[2]).unwrap().unwrap(),
        "{update: {a.x: 5, b: {f: 6, i: {j: [1, null]}}, b.g.h: 7, b.i.k: huge 123456789012345678901}, \
         remove: [\"e\", \"b.f\", \"none.of.these\", \"s.t\"]}"
    );
}

#[test]
fn an_undecodable_summary_value_does_not_affect_the_other_values() {
    let long = vec!["a"; 101];
    let deep = "[".repeat(101) + &"]".repeat(101);
    let record = change(
        3,
        &[
            (&["a"], "1"),
            (&["b"], "{"),
            (&["c"], &deep),
            (&long, "1"),
            (&["d"], r#"{"\ud800": 1, "\\ud800": 2}"#),
            (&["a"], "[2, 1e400]"),
        ],
        &[],
    );
    let end_of = |text: &str| {
        let at = record.windows(text.len()).position(|part| part == text.as_bytes());
        at.unwrap() + text.len()
    };
    let broken = end_of("\u{1}{");
    let deep_start = end_of(&deep) - 202;
    let name = long.join(".");
    let found = found(
        "wandb-summary",
        false,
        &[record.clone(), vec![0xff], change(3, &[(&["f"], "3")], &[])],
    );
    assert_eq!(found.rows, ["{a: [2, inf], f: 3}"]);
    let of_b = "no value: the value of 'b' is not JSON: expected a name in quotation marks";
    let of_c = "no value: the value of 'c' has more than 100 levels";
    let of_long = format!("no value: the value of '{name}' has more than 100 levels (1 byte at offset ");
    let same = "no value: two values have one name in a table, where lone surrogates are escaped";
    let len = record.len();
    let words = &found.faults;
    assert_eq!(words[0], format!("{of_b} (0 bytes at offset {broken} of the payload)"));
    assert_eq!(
        words[1],
        format!("{of_c} (202 bytes at offset {deep_start} of the payload)")
    );
    assert!(words[2].starts_with(&of_long), "{words:?}");
    assert_eq!(words[3], format!("{same} ({len} bytes at offset 0 of the payload)"));
    let truncated = "no row: the payload ends inside a number or a string (1 byte at offset 0 of the payload)";
    assert_eq!(words[4], truncated);
}

#[test]
fn a_summary_change_with_an_unreadable_item_is_ignored() {
    let first = change(3, &[(&["a"], "1")], &[]);
    // Of a second value, or of a value to remove, the name is not UTF-8.
    for number in [1, 2] {
        let items = [field(1, &item(&["a"], "2")), field(number, &field(1, b"\xff"))].concat();
        let found = found("wandb-summary", false, &[first.clone(), field(3, &items)]);
        assert_eq!(found.rows, ["{a: 1}"]);
        assert!(
            found.faults[0].starts_with("no row: text that is not UTF-8"),
            "{:?}",
            found.faults
        );
    }
}

#[test]
fn system_metrics_have_relative_times_and_flattened_names() {
    let records = [
        stats(Some(99), &[("cpu", "24.3")]),
        field(17, &field(17, &time(100, 0))),
        field(17, b""),
        stats(
            None,
            &[("gpu.0", r#"{"a": {"b": 1, "c": []}, "": "x", "d": {}}"#), ("", "null")],
        ),
        stats(Some(102), &[]),
        field(6, b""),
    ];
    let expected = [
        "{_timestamp: 99.25, system.cpu: 24.3}",
        "{system.gpu.0.a.b: 1, system.gpu.0.a.c: [], system.gpu.0.: \"x\", system.: null}",
        "{_timestamp: 102.25, _runtime: 2.25}",
    ];
    assert_eq!(found("wandb-metrics", false, &records).rows, expected);
    assert_eq!(value("wandb-metrics", &records[0]), Ok(Some(expected[0].into())));
    assert_eq!(value("wandb-metrics", &records[1]), Ok(None));
}

#[test]
fn an_unreadable_metric_does_not_affect_the_other_metrics() {
    let items = [
        ("a", r#"{"b": {"c": 1}, "d": 2}"#),
        ("a.b", r#"{"e": 3, "c": 4, "f": 5}"#),
        ("g", "nul"),
        ("a.d", "6"),
        ("h", "7"),
    ];
    let record = stats(None, &items);
    // The values before the one whose name another one has are in the row.
    let expected = "{system.a.b.c: 1, system.a.d: 2, system.a.b.e: 3, system.h: 7}";
    assert_eq!(found("wandb-metrics", false, from_ref(&record)).rows, [expected]);
    let words = found("wandb-metrics", false, from_ref(&record)).faults;
    let place = format!("({} bytes at offset 0 of the payload)", record.len());
    assert_eq!(
        words[0],
        format!("no value: two values have the name 'system.a.b.c' {place}")
    );
    assert!(words[1].starts_with("no value: the value of 'system.g' is not JSON: expected a value ("));
    assert_eq!(
        words[2],
        format!("no value: two values have the name 'system.a.d' {place}")
    );
    assert_eq!(words.len(), 3);
    assert_eq!(
        format!("no value: {}", value("wandb-metrics", &record).unwrap_err()),
        words[0]
    );
}

#[test]
fn each_output_line_is_stamped_with_the_time_of_its_first_piece() {
    let records = [
        output(true, 1, "one"),
        output(false, 2, "\r50%"),
        output(true, 3, ""),
        output(true, 4, " 1\n\ntw\u{f6}\r\nx"),
        // An old kind of record, to stderr, without a time.
        field(4, &field(3, b"!\ny")),
    ];
    let expected = [
        r#"{_timestamp: 1.0, stream: "stdout", line: "one 1"}"#,
        r#"{_timestamp: 4.0, stream: "stdout", line: ""}"#,
        "{_timestamp: 4.0, stream: \"stdout\", line: \"tw\u{f6}\\r\"}",
        r#"{_timestamp: 2.0, stream: "stderr", line: "\r50%!"}"#,
        r#"{_timestamp: 4.0, stream: "stdout", line: "x"}"#,
        r#"{_timestamp: null, stream: "stderr", line: "y"}"#,
    ];
    assert_eq!(found("wandb-output", false, &records).rows, expected);
    assert_eq!(
        value("wandb-output", &records[0]).unwrap().unwrap(),
        r#"{_timestamp: 1.0, stream: "stdout", text: "one"}"#
    );
    assert_eq!(value("wandb-output", &stats(None, &[])), Ok(None));
}

#[test]
fn faults_in_a_repeated_step_are_reported_only_once() {
    let items = [("loss", "0.5"), ("bad", ""), ("_step", "3")];
    let items: Vec<u8> = items
        .iter()
        .flat_map(|(name, json)| field(1, &item(&[name], json)))
        .collect();
    let found = found("wandb-history", false, &[field(2, &items), field(2, &items)]);
    assert_eq!(found.rows, ["{_step: 3, loss: 0.5}"; 2]);
    assert_eq!(found.faults.len(), 2);
}

#[test]
fn an_error_about_a_missing_value_points_to_the_end_of_its_item() {
    let record = field(2, &[field(1, &field(2, b"a")), field(1, &item(&["b"], "1"))].concat());
    let found = found("wandb-history", false, from_ref(&record));
    assert_eq!(found.rows, ["{b: 1}"]);
    let words = found.faults[0].to_string();
    assert_eq!(
        words,
        "no value: the value of 'a' is not JSON: expected a value (0 bytes at offset 7 of the payload)"
    );
}

/// A generator of random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) as usize % count
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }
}

/// A dictionary whose names are in the order in which they were added.
#[derive(Debug, Clone)]
enum Tree {
    Leaf(usize),
    Directory(Vec<(&'static str, Tree)>),
}

impl Tree {
    fn put(&mut self, path: &[&'static str], value: Tree) {
        if !matches!(self, Tree::Directory(_)) {
            *self = Tree::Directory(Vec::new());
        }
        let Tree::Directory(items) = self else { unreachable!() };
        let at = items.iter().position(|(name, _)| *name == path[0]).unwrap_or_else(|| {
            items.push((path[0], Tree::Leaf(0)));
            items.len() - 1
        });
        match &path[1..] {
            [] => items[at].1 = value,
            rest => items[at].1.put(rest, value),
        }
    }

    fn remove(&mut self, path: &[&'static str]) {
        let Tree::Directory(items) = self else { return };
        let Some(at) = items.iter().position(|(name, _)| *name == path[0]) else {
            return;
        };
        match &path[1..] {
            [] => drop(items.remove(at)),
            rest => items[at].1.remove(rest),
        }
    }

    fn text(&self) -> String {
        match self {
            Tree::Leaf(number) => number.to_string(),
            Tree::Directory(items) => {
                let items: Vec<_> = items
                    .iter()
                    .map(|(name, tree)| format!("{name}: {}", tree.text()))
                    .collect();
                format!("{{{}}}", items.join(", "))
            }
        }
    }

    fn json(&self) -> String {
        match self {
            Tree::Leaf(number) => number.to_string(),
            Tree::Directory(items) => {
                let items: Vec<_> = items
                    .iter()
                    .map(|(name, tree)| format!("\"{name}\":{}", tree.json()))
                    .collect();
                format!("{{{}}}", items.join(","))
            }
        }
    }
}

#[test]
fn a_summary_matches_a_naive_list_after_random_changes() {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    for seed in 0..500 {
        let mut random = Random(seed);
        let (mut records, mut expected) = (Vec::new(), Tree::Directory(Vec::new()));
        for _ in 0..random.below(20) {
            let path = |random: &mut Random| -> Vec<&'static str> {
                (0..=random.below(3)).map(|_| random.of(&NAMES)).collect()
            };
            let (update, remove) = (path(&mut random), path(&mut random));
            let mut value = Tree::Leaf(random.below(9));
            for _ in 0..random.below(3) {
                let (first, number) = (path(&mut random), random.below(9));
                value.put(&first, Tree::Leaf(number));
            }
            let is_removed = random.below(3) == 0;
            let removed: &[&[&str]] = if is_removed { &[&remove] } else { &[] };
            records.push(change(3, &[(&update, &value.json())], removed));
            expected.put(&update, value);
            if is_removed {
                expected.remove(&remove);
            }
        }
        assert_eq!(
            found("wandb-summary", true, &records).rows,
            [expected.text()],
            "seed {seed}"
        );
    }
}

#[test]
fn splitting_output_into_pieces_does_not_change_its_lines() {
    for seed in 0..500 {
        let mut random = Random(seed);
        let (mut records, mut texts) = (Vec::new(), [String::new(), String::new()]);
        for at in 0..random.below(12) {
            let stream = random.below(2);
            let text: String = (0..random.below(6))
                .map(|_| random.of(&['a', '\n', '\r', 'ä']))
                .collect();
            records.push(output(stream == 1, at as u64, &text));
            texts[stream] += &text;
        }
        let rows = found("wandb-output", false, &records).rows;
        for (text, name) in texts.iter().zip(["stderr", "stdout"]) {
            let stream = format!("stream: {name:?}, line: ");
            let lines: Vec<&str> = rows
                .iter()
                .filter_map(|row| row.split_once(&*stream))
                .map(|(_, line)| line)
                .collect();
            let expected: Vec<String> = text
                .split_inclusive('\n')
                .map(|line| format!("{:?}}}", line.strip_suffix('\n').unwrap_or(line)))
                .collect();
            assert_eq!(lines, expected, "seed {seed}");
        }
    }
}

#[test]
fn arbitrary_bytes_decode_to_rows_or_faults_within_the_record() {
    let records = [
        stats(Some(1), &[("cpu", r#"{"a": [1, "x"]}"#), ("b", "-1.5e3")]),
        change(3, &[(&["a", "b"], "{}"), (&["c"], "1")], &[&["c"]]),
        field(17, &[field(1, b"r"), field(4, &field(1, &item(&["lr"], "1")))].concat()),
        field(26, &[field(6, b"-m a"), field(5, b"it's")].concat()),
        output(true, 1, "a\nb"),
        field(18, &number(1, 3)),
    ];
    let all = [
        "wandb-history",
        "wandb-run",
        "wandb-summary",
        "wandb-config",
        "wandb-metrics",
        "wandb-output",
    ];
    let mut fault_count = 0;
    for record in &records {
        for at in 0..record.len() {
            for byte in [0, 1, 0x0a, 0x12, 0x22, 0x5b, 0x80, 0xff] {
                let mut changed = record.clone();
                changed[at] = byte;
                for rows in all {
                    fault_count += found(rows, false, &[changed.clone(), changed[..at].to_vec()])
                        .faults
                        .len();
                    if let Err(fault) = value(rows, &changed) {
                        assert!(
                            fault.error.offset + fault.error.len <= record.len(),
                            "{fault} {changed:x?}"
                        );
                    }
                }
            }
        }
    }
    assert!(fault_count > 1_000, "{fault_count}");
}
