//! Tests logs with a number, some of which are written over an older log. The test knows which
//! records were written, so it needs no model for them. It also checks that all ways of reading
//! agree.

use cordwood::OnCorruption;
use cordwood::damage::Severity;

use super::read::options;
use super::{Set, of_files, sequences};
use crate::crate_reads::{Answer, records, slice, trickle};
use crate::files::Width::{Edge, Few, Least};
use crate::files::{Alphabet, each_in_threads};
use crate::model::Event;
use crate::numbered::{END_TRAILER, NUMBER, OTHER, encode, fragment, trailer};
use crate::tally::Tally;

pub(super) fn sets(is_full: bool) -> Vec<Set> {
    let lens: Vec<usize> = match is_full {
        true => vec![0, 1, 2, 3, 5, 12, 13, 14, 26, 27],
        false => vec![0, 1, 5, 13],
    };
    let bound = format!(
        "at most 2 records over at most 2 older ones, each of one of the lengths {lens:?}, truncated or interrupted at every byte"
    );
    vec![
        Set {
            name: "recycled Numbered".to_owned(),
            bound,
            run: Box::new(move || {
                let (own, older) = (sequences(2, &lens), sequences(2, &lens));
                Tally::sum(each_in_threads(own.len(), Tally::default, |tally, index| {
                    for older in &older {
                        interrupted(tally, &own[index], older);
                    }
                }))
            }),
        },
        of_files(
            "agreement",
            agreement,
            Alphabet::Numbered,
            if is_full { &[Edge, Few] } else { &[Few, Least] },
            true,
        ),
    ]
}

/// Records, each as its offset and its bytes.
type Records = Vec<(u64, Vec<u8>)>;

/// Returns a log with records of these lengths, and the end of each record.
fn log(number: u32, lens: &[usize]) -> (Vec<u8>, Records, Vec<usize>) {
    let (mut file, mut written, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for (seed, &len) in lens.iter().enumerate() {
        // Corresponding bytes of the two logs must differ in more than one bit.
        let byte = if number == NUMBER { 0x3c } else { 0xcd } + seed as u8;
        let record = vec![byte; len];
        let (bytes, offset) = encode(file.len() as u64, number, &record);
        file.extend(bytes);
        written.push((offset, record));
        ends.push(file.len());
    }
    (file, written, ends)
}

/// Writes the log over an older log or into an empty file, and interrupts the write at each byte.
/// All complete records of the log must be read, and no record of the older log. As long as a
/// fragment of the older log is left, no region is damage (rules D7d and D7f).
fn interrupted(tally: &mut Tally, own: &[usize], older: &[usize]) {
    let (mut own, written, ends) = log(NUMBER, own);
    let (older, ..) = log(OTHER, older);
    let end = own.len();
    own.extend(vec![0; trailer(end as u64)]);
    own.extend(END_TRAILER);
    for len in 0..=own.len() {
        let mut file = own[..len].to_vec();
        file.extend(older.get(len..).unwrap_or_default());
        let shows_older = (len..file.len()).any(|at| starts_older(&file[at..]));
        // The bytes that are missing may be the same as the bytes of the older log there.
        let count = ends.iter().filter(|&&end| file.starts_with(&own[..end])).count();
        let expected = &written[..count].to_vec();
        tally.files += 1;
        for policy in [
            OnCorruption::Skip,
            OnCorruption::Salvage,
            OnCorruption::Fail,
            OnCorruption::Stop,
        ] {
            let options = options(Alphabet::Numbered, policy);
            tally.check(&file, &(&options, len), || {
                let (events, _) = slice(&file, &options);
                let found = records(&events);
                if found == *expected && !(shows_older && events.iter().any(|event| event.is(Severity::Corruption))) {
                    return Ok(());
                }
                Err(format!("crate: {events:?}\nwritten: {expected:?}"))
            });
        }
        if len == own.len() && file.len() == len {
            // If a header does not fit into the block, the bytes before it are a trailer, which is
            // not a region.
            let options = options(Alphabet::Numbered, OnCorruption::Skip);
            let regions = slice(&file, &options).0.len() - expected.len();
            tally.compare(&file, &"regions", || regions, &1);
        }
        // Two ranges that meet at a byte must together return each record once.
        let options = options(Alphabet::Numbered, OnCorruption::Skip);
        for at in 0..=file.len() as u64 {
            tally.compare(
                &file,
                &("split at", at),
                || {
                    let mut found = records(&slice(&file, &options.clone().with_range(..at)).0);
                    found.extend(records(&slice(&file, &options.clone().with_range(at..)).0));
                    found
                },
                expected,
            );
        }
    }
}

/// Checks whether a whole fragment of the older log starts here.
fn starts_older(bytes: &[u8]) -> bool {
    bytes.len() >= 11 && {
        let len = usize::from(bytes[4]);
        let payload = bytes.get(11..11 + len);
        payload.is_some_and(|payload| bytes.starts_with(&fragment(bytes[6], OTHER, payload)))
    }
}

/// Checks that all ways of reading agree on any bytes. The events must tile the file. Reading one
/// byte at a time must give the same events. `fail` must report the same as `skip`, and `stop` must
/// report the same up to the first damage. `salvage` must return every record that `skip` returns.
fn agreement(tally: &mut Tally, alphabet: Alphabet, file: &[u8]) {
    let read = |policy| slice(file, &options(alphabet, policy));
    let mut skip: Answer = (Vec::new(), Ok(cordwood::End::Clean { offset: 0 }));
    tally.check(file, &"skip tiles the file", || {
        skip = read(OnCorruption::Skip);
        tiles(file, &skip.0)
    });
    tally.compare(file, &"fail", || read(OnCorruption::Fail), &skip);
    let damage = skip.0.iter().position(|event| event.is(Severity::Corruption));
    let until = damage.map_or(skip.0.len(), |damage| damage + 1);
    tally.check(file, &"stop", || {
        let stop = read(OnCorruption::Stop).0;
        match stop.starts_with(&skip.0[..until]) && stop.len() <= until + 1 {
            true => Ok(()),
            false => Err(format!("stop: {stop:?}\nskip: {skip:?}")),
        }
    });
    tally.check(file, &"salvage", || {
        let salvage = read(OnCorruption::Salvage).0;
        tiles(file, &salvage)?;
        let is_marked = |event: &Event| matches!(event, Event::Record { is_salvaged: true, .. });
        let unmarked: Vec<Event> = salvage.iter().filter(|event| !is_marked(event)).cloned().collect();
        match records(&unmarked) == records(&skip.0) {
            true => Ok(()),
            false => Err(format!("salvage: {salvage:?}\nskip: {skip:?}")),
        }
    });
    for policy in [OnCorruption::Skip, OnCorruption::Salvage] {
        let options = options(alphabet, policy);
        tally.check(file, &options, || {
            let (found, expected) = (trickle(file, &options), slice(file, &options));
            match found == expected {
                true => Ok(()),
                false => Err(format!("one byte at a time: {found:?}\nwhole: {expected:?}")),
            }
        });
    }
}

/// Checks "The promise" of reading.md.
fn tiles(file: &[u8], events: &[Event]) -> Result<(), String> {
    let mut at = 0;
    let ends = [(file.len() as u64, file.len() as u64)];
    for (start, end) in events.iter().map(Event::span).chain(ends) {
        let left = crate::model::left_in_block(at) as u64;
        let is_trailer = left < 11 && (start - at == left || start == file.len() as u64);
        if start < at || (start > at && !is_trailer) {
            return Err(format!("a gap at {at}: {events:?}"));
        }
        at = end;
    }
    Ok(())
}
