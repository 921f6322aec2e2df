//! The rows, the faults and the values of a decoder as text.

use cordwood_payload::table::{Decoder, Facts, Fault, Part, Record, Row, Sink, View};

/// A value as text: `b"..."` are bytes.
fn text_of(view: View<'_>) -> String {
    let mut inside = Vec::new();
    match view {
        View::Null => "null".to_owned(),
        View::Bool(value) => value.to_string(),
        View::Int(value) => value.to_string(),
        View::UInt(value) => value.to_string(),
        View::Huge(digits) => format!("huge {digits}"),
        View::Time(time) => format!("time {time}"),
        View::Float(value) => format!("{value:?}"),
        View::Text(text) => format!("{text:?}"),
        View::Bytes(bytes) => format!("b\"{}\"", bytes.escape_ascii()),
        list if list.is_list() => {
            list.all_items(|item| {
                inside.push(text_of(item));
                true
            });
            format!("[{}]", inside.join(", "))
        }
        structure => {
            structure.all_fields(|name, value| {
                inside.push(format!("{name}: {}", text_of(value)));
                true
            });
            format!("{{{}}}", inside.join(", "))
        }
    }
}

/// The value of a record.
pub(crate) fn value(decoder: &mut Decoder, record: &[u8]) -> Result<Option<String>, Fault> {
    let mut text = None;
    let has_value = decoder.value(record, &mut |view| text = Some(text_of(view)))?;
    assert_eq!(has_value, text.is_some());
    Ok(text)
}

/// A sink with room for some rows.
pub(crate) struct Lines {
    room: usize,
    lines: Vec<String>,
    faults: Vec<Fault>,
}

impl Lines {
    pub(crate) fn with_room(room: usize) -> Self {
        Lines {
            room,
            lines: Vec::new(),
            faults: Vec::new(),
        }
    }
}

impl Sink for Lines {
    fn row(&mut self, row: &Row<'_>) -> bool {
        if self.room == 0 {
            return false;
        }
        self.room -= 1;
        self.lines.extend(self.faults.drain(..).map(|fault| line_of(&fault)));
        let cells = row.cells().iter();
        let cells = cells.map(|&(name, value)| format!("{name}: {}", text_of(value)));
        self.lines.push(cells.collect::<Vec<_>>().join(", "));
        true
    }

    fn fault(&mut self, fault: Fault) {
        self.faults.push(fault);
    }
}

fn line_of(fault: &Fault) -> String {
    let left_out = match fault.part {
        Part::Record => "no row",
        Part::Row => "no such row",
        Part::Value => "no value",
        Part::Rest => "no more rows",
    };
    format!("{left_out}: {fault}")
}

/// The rows and faults of records. The sink has room for the first of `rooms` rows, then for the
/// second, and so on, from the first again after the last.
pub(crate) fn lines_with_room(decoder: &mut Decoder, records: &[Record<'_>], rooms: &[usize]) -> Vec<String> {
    let mut rooms = rooms.iter().cycle();
    let (mut lines, mut faults) = (Vec::new(), Vec::new());
    let mut take = |step: &mut dyn FnMut(&mut Lines) -> Result<bool, Fault>| {
        loop {
            let room = *rooms.next().expect("a number");
            let mut sink = Lines::with_room(room);
            sink.faults.append(&mut faults);
            let is_done = step(&mut sink).unwrap_or_else(|fault| {
                sink.faults.push(fault);
                true
            });
            // The faults before a row for which there was no room come again.
            let has_row = !sink.lines.is_empty();
            lines.append(&mut sink.lines);
            assert!(lines.len() < 100_000, "rows without end");
            if is_done {
                lines.extend(sink.faults.iter().map(line_of));
                break;
            }
            faults = if has_row { sink.faults } else { Vec::new() };
        }
    };
    for record in records {
        take(&mut |sink| decoder.record(record, sink));
    }
    take(&mut |sink| Ok(decoder.rest(sink)));
    lines
}

/// The rows and faults of records, which are the same for a sink that is full at every row.
pub(crate) fn lines(rows: &str, facts: &Facts, records: &[Record<'_>]) -> Vec<String> {
    let with_room =
        |rooms: &[usize]| lines_with_room(&mut Decoder::named(rows, facts.clone()).unwrap(), records, rooms);
    let lines = with_room(&[usize::MAX]);
    for rooms in [&[1][..], &[0, 1], &[2], &[0, 0, 3]] {
        assert_eq!(with_room(rooms), lines, "{rooms:?}");
    }
    lines
}
