//! Reads a file in pieces, as windows or as short reads. The events must be the same as for the
//! whole file.

#![no_main]

use arbitrary::Arbitrary;
use cordwood::codec::{Decoder, Step, Window};
use cordwood::damage::{Reason, Severity};
use cordwood::format::block_start;
use cordwood::read::{Found, RecordBatch, Source, StreamSource};
use cordwood::{End, Error, ErrorKind, ReadOptions, Reader};
use cordwood_fuzz::file::Script;
use cordwood_fuzz::model::Event;
use cordwood_fuzz::options::Options;
use cordwood_fuzz::read;
use cordwood_fuzz::steps::{Steps, Trickle};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    options: Options,
    steps: Steps<'a>,
    // This field comes last, because it consumes all remaining input.
    script: Script<'a>,
}

fuzz_target!(|input: Input<'_>| {
    let Input {
        options,
        mut steps,
        script,
    } = input;
    let file = script.build();
    let options = options.of(&file);
    let file = &file.bytes;
    if read::starts_after_end(file, &options) {
        return;
    }
    let mut slice = Reader::from_slice(file, options.clone());
    let (expected, end) = read::all(&mut slice, &options, file.len());

    decode(file, &options, steps.clone(), &expected, end);
    pack(file, &options, steps.step(), &expected);

    // The file is read either as a stream from its start, or as a file that is opened where the
    // range starts.
    let start = match steps.choice() % 2 {
        0 => 0,
        _ => block_start(options.start).min(file.len() as u64),
    };
    let trickle = Trickle::new(file, start as usize, steps.clone());
    let source = StreamSource::new(trickle, start).with_len(file.len() as u64);
    let mut reader = Reader::with_source(source, options.clone());
    compare(&mut reader, &mut steps, &expected, end, usize::MAX);

    // Seeks several times to the start or end of a record. A reader must be able to seek back even
    // after an end, or after damage that has stopped it. It must not seek to a record after damage
    // in the same block, because it would then not know about the damage.
    let can_start = |event: &Event| matches!(event, Event::Record { is_salvaged: false, .. });
    let records: Vec<usize> = (0..expected.len())
        .filter(|&number| can_start(&expected[number]))
        .collect();
    for _ in 0..4 {
        let Some(&number) = records.get(usize::from(steps.choice()) % records.len().max(1)) else {
            break;
        };
        let (start, end_offset) = expected[number].span();
        let (offset, number) = match steps.choice() % 2 {
            0 => (start, number),
            _ => (end_offset, number + 1),
        };
        let count = usize::from(steps.choice());
        reader.seek(offset).expect("a source that can seek");
        compare(&mut reader, &mut steps, &expected[number..], end, count);
        slice.seek(offset).expect("a slice can seek");
        compare(&mut slice, &mut steps, &expected[number..], end, count);
    }
});

/// Compares at most `count` events of `reader`. `steps` choose the calls that return them.
fn compare<S: Source>(reader: &mut Reader<S>, steps: &mut Steps<'_>, expected: &[Event], end: End, count: usize) {
    let mut left = expected.iter();
    let mut errors = 0;
    while expected.len() - left.len() < count {
        if steps.choice().is_multiple_of(4) {
            // This call is allowed even if the reader needs no more bytes.
            reader.read_more();
        }
        let found = match steps.choice() % 2 {
            0 => next_found(reader),
            _ => reader.next_event().map(|event| {
                Some(event.map(|event| match event {
                    cordwood::Event::Record(record) => record.into(),
                    cordwood::Event::Skipped(region) => region.into(),
                }))
            }),
        };
        let event = match found {
            Ok(None) => continue,
            Ok(Some(event)) => event,
            Err(Error {
                kind: ErrorKind::Corruption { region, .. },
                ..
            }) => {
                assert_eq!(region.reason.severity(), Severity::Corruption);
                Some(region.into())
            }
            Err(Error {
                kind: ErrorKind::Io { .. },
                ..
            }) => {
                errors += 1;
                assert!(errors < 10_000, "no end");
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        assert_eq!(event.as_ref(), left.next());
        if event.is_none() {
            assert_eq!(reader.end(), Some(end));
            return;
        }
    }
}

/// Returns the next event, if it has been found. If the outer value is `None`, the caller must call
/// this again.
fn next_found<S: Source>(reader: &mut Reader<S>) -> Result<Option<Option<Event>>, Error> {
    if !reader.find() {
        reader.read_more();
        return Ok(None);
    }
    let event = match reader.found() {
        Some(Found::Record(record)) => Some(Event::Record {
            offset: record.offset,
            end_offset: record.end_offset,
            data: record.pieces().collect::<Vec<_>>().concat(),
            is_salvaged: record.is_salvaged,
        }),
        Some(Found::Skipped(region)) => Some(region.into()),
        Some(Found::Failed(_) | Found::End(_)) | None => None,
    };
    reader.advance()?;
    Ok(Some(event))
}

/// Reads only the records, into one buffer.
fn pack(file: &[u8], options: &ReadOptions, len_max: usize, expected: &[Event]) {
    let mut reader = Reader::from_slice(file, options.clone());
    let mut pack = RecordBatch::default();
    loop {
        match reader.record_batch(&mut pack, len_max) {
            Ok(true)
            | Err(Error {
                kind: ErrorKind::Corruption { .. },
                ..
            }) => {}
            Ok(false) => break,
            Err(error) => panic!("{error}"),
        }
    }
    let expected: Vec<_> = expected
        .iter()
        .filter_map(|event| match event {
            Event::Record { offset, data, .. } => Some((*offset, data.as_slice())),
            Event::Skipped { .. } => None,
        })
        .collect();
    let found = (pack.record_offsets().iter().enumerate()).map(|(number, &offset)| (offset, pack.get(number)));
    assert!(
        found.eq(expected.into_iter().map(|(offset, data)| (offset, Some(data)))),
        "the pack"
    );
}

/// Compares the events of a decoder that gets windows of the file. `steps` choose the windows.
fn decode(file: &[u8], options: &ReadOptions, mut steps: Steps<'_>, expected: &[Event], end: End) {
    // A decoder does not know the length of the file, so it does not report this region.
    let is_told = |event: &&Event| {
        !matches!(
            event,
            Event::Skipped {
                reason: Reason::NotRead,
                ..
            }
        )
    };
    let mut expected = expected.iter().filter(is_told);
    let mut decoder = Decoder::new(options).unwrap();
    let (mut from, mut to, mut is_last) = (0, 0, false);
    loop {
        let window = Window {
            offset: from as u64,
            bytes: &file[from..to],
            is_last,
        };
        let event = match decoder.step(window) {
            Step::NeedMore => {
                assert!(!is_last, "more than there is");
                // A caller does not always know at once that the file ends where its bytes end.
                is_last = to == file.len();
                let at = usize::try_from(decoder.offset()).unwrap_or(usize::MAX).min(file.len());
                to = file.len().min(to.max(at).saturating_add(steps.step()));
                from = match steps.choice() % 4 {
                    0 => from,
                    1 => (from + at) / 2,
                    _ => at,
                };
                continue;
            }
            Step::Record(span) => {
                let data = decoder.data(window, span).to_vec();
                Event::of(span, data)
            }
            Step::Skipped(region) => region.into(),
            Step::End(found) => {
                assert_eq!((expected.next(), found), (None, end));
                return;
            }
        };
        assert_eq!(Some(&event), expected.next());
    }
}
