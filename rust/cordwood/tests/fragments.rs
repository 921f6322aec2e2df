//! Tests `ops::fragments`. Its entries must tile any file, and must agree with a reader.

use cordwood_log::damage::{Severity, SkippedRegion};
use cordwood_log::format::BLOCK_LEN;
use cordwood_log::ops::{self, Fragment};
use cordwood_log::read::{SliceSource, StreamSource};
use cordwood_log::{Dialect, Event, LogFormat, OnCorruption, ReadOptions, Reader, Writer, WriterOptions};
use proptest::prelude::*;

fn options(policy: OnCorruption, dialect: LogFormat) -> ReadOptions {
    ReadOptions::default().with_on_corruption(policy).with_format(dialect)
}

fn fragments_of(file: &[u8], dialect: LogFormat) -> Vec<Fragment> {
    let fragments = ops::fragments([SliceSource::new(file); 2], &options(OnCorruption::Salvage, dialect));
    fragments.collect::<Result<_, _>>().unwrap()
}

type Span = (u64, u64);

/// Returns the spans of the records, the spans of the salvaged records, and the skipped regions.
fn read(file: &[u8], policy: OnCorruption, dialect: LogFormat) -> (Vec<Span>, Vec<Span>, Vec<SkippedRegion>) {
    let mut reader = Reader::from_slice(file, options(policy, dialect));
    let (mut records, mut salvaged, mut regions) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(event) = reader.next_event().unwrap() {
        match event {
            Event::Record(record) if record.is_salvaged => salvaged.push((record.offset, record.end_offset)),
            Event::Record(record) => records.push((record.offset, record.end_offset)),
            Event::Skipped(region) => regions.push(region),
        }
    }
    (records, salvaged, regions)
}

/// Returns the records to which the fragments belong. A record starts with its first fragment and
/// ends with its last.
fn records_of(fragments: &[Fragment], is_salvaged: bool) -> Vec<Span> {
    let mut records: Vec<Span> = Vec::new();
    for fragment in fragments.iter().filter(|fragment| fragment.is_salvaged == is_salvaged) {
        match (fragment.record_offset, records.last_mut()) {
            (Some(offset), Some(last)) if last.0 == offset => last.1 = fragment.end_offset,
            (Some(offset), _) => {
                assert_eq!(offset, fragment.offset);
                records.push((offset, fragment.end_offset));
            }
            (None, _) => {}
        }
    }
    records
}

fn check(file: &[u8], dialect: LogFormat) {
    let fragments = fragments_of(file, dialect);
    let mut offset = 0;
    for fragment in &fragments {
        assert_eq!(fragment.offset, offset, "{fragment:?}");
        assert!(fragment.end_offset > offset, "{fragment:?}");
        offset = fragment.end_offset;
        if dialect.dialect.name() != "wandb_old" {
            let block = |offset: u64| offset / BLOCK_LEN as u64;
            assert_eq!(fragment.block, block(fragment.offset), "{fragment:?}");
            assert_eq!(fragment.block, block(fragment.end_offset - 1), "{fragment:?}");
        }
        let is_sound = fragment.stored_crc.is_some() && fragment.stored_crc == fragment.computed_crc;
        assert!(fragment.record_offset.is_none() || is_sound, "{fragment:?}");
        assert!(
            fragment.record_offset.is_none() || fragment.reason.is_none(),
            "{fragment:?}"
        );
    }
    assert_eq!(offset, file.len() as u64);

    // Under the policy `salvage`, the records must be the same, and so must the reasons for the
    // same bytes.
    let (records, salvaged, regions) = read(file, OnCorruption::Salvage, dialect);
    assert_eq!(records_of(&fragments, false), records);
    assert_eq!(records_of(&fragments, true), salvaged);
    let mut joined: Vec<SkippedRegion> = Vec::new();
    for region in regions {
        match joined.last().and_then(|last| last.joined(region)) {
            Some(both) => *joined.last_mut().unwrap() = both,
            None => joined.push(region),
        }
    }
    let mut told = Vec::new();
    for fragment in &fragments {
        let Some(reason) = fragment.reason else { continue };
        match told.last_mut() {
            Some((_, end, last)) if (*end, *last) == (fragment.offset, reason) => *end = fragment.end_offset,
            _ => told.push((fragment.offset, fragment.end_offset, reason)),
        }
    }
    let expected: Vec<_> = joined
        .iter()
        .map(|region| (region.start, region.end, region.reason))
        .collect();
    assert_eq!(told, expected);

    // The policy `skip` must not return a record that `salvage` does not return. Its regions must
    // contain all damage.
    let (skipping, _, regions) = read(file, OnCorruption::Skip, dialect);
    for record in &skipping {
        assert!(records.contains(record) || salvaged.contains(record), "{record:?}");
    }
    for fragment in &fragments {
        let is_damage = fragment
            .reason
            .is_some_and(|reason| reason.severity() == Severity::Corruption);
        let is_in = |region: &SkippedRegion| region.start <= fragment.offset && fragment.end_offset <= region.end;
        assert!(!is_damage || regions.iter().any(is_in), "{fragment:?}");
    }

    // A stream is read in pieces, and the result must be the same.
    let sources = [StreamSource::new(file, 0), StreamSource::new(file, 0)];
    let streamed = ops::fragments(sources, &options(OnCorruption::Salvage, dialect));
    let streamed: Vec<_> = streamed.collect::<Result<_, _>>().unwrap();
    assert_eq!(streamed, fragments);
}

fn log(dialect: LogFormat, lens: &[usize]) -> Vec<u8> {
    let mut writer = Writer::with_options(Vec::new(), WriterOptions::default().with_format(dialect)).unwrap();
    for (index, &len) in lens.iter().enumerate() {
        writer.append(&vec![b'a' + (index % 26) as u8; len]).unwrap();
    }
    writer.into_inner().unwrap()
}

/// A change to a file.
#[derive(Debug, Clone)]
enum Damage {
    Flip(prop::sample::Index, u8),
    Zero(prop::sample::Index, usize),
    Fill(prop::sample::Index, Vec<u8>),
    Cut(prop::sample::Index),
    /// The rest of another log follows.
    Older(Vec<usize>),
    Append(Vec<u8>),
}

impl Damage {
    fn to(&self, file: &mut Vec<u8>, dialect: LogFormat) {
        let len = file.len();
        match self {
            Damage::Append(bytes) => file.extend(bytes),
            Damage::Older(lens) => {
                let mut older = dialect;
                older.log_number = dialect.log_number.map(|number| number.wrapping_sub(1));
                let older = log(older, lens);
                file.extend(older.get(len..).unwrap_or_default());
            }
            _ if len == 0 => {}
            Damage::Flip(at, bit) => file[at.index(len)] ^= 1 << (bit % 8),
            Damage::Zero(at, count) => {
                let start = at.index(len);
                file[start..len.min(start + count)].fill(0);
            }
            Damage::Fill(at, bytes) => {
                let start = at.index(len);
                let end = len.min(start + bytes.len());
                file[start..end].copy_from_slice(&bytes[..end - start]);
            }
            Damage::Cut(at) => file.truncate(at.index(len)),
        }
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        4 => (at(), any::<u8>()).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        2 => (at(), 1..40_000_usize).prop_map(|(at, count)| Damage::Zero(at, count)),
        1 => (at(), prop::collection::vec(any::<u8>(), 1..40)).prop_map(|(at, bytes)| Damage::Fill(at, bytes)),
        1 => at().prop_map(Damage::Cut),
        2 => lens().prop_map(Damage::Older),
        1 => prop::collection::vec(prop_oneof![Just(0), any::<u8>()], 1..40).prop_map(Damage::Append),
    ]
}

fn lens() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(
        prop_oneof![4 => 0..300_usize, 2 => 1_000..9_000_usize, 1 => 30_000..70_000_usize],
        0..30,
    )
}

fn dialect() -> impl Strategy<Value = LogFormat> {
    let numbered = |dialect| Just(LogFormat::new(dialect).with_log_number(9));
    let plain = |dialect| Just(LogFormat::new(dialect));
    prop_oneof![
        3 => plain(Dialect::LEVELDB),
        2 => numbered(Dialect::ROCKSDB),
        2 => numbered(Dialect::PEBBLE),
        1 => numbered(Dialect::RECYCLABLE),
        1 => plain(Dialect::WANDB),
        1 => plain(Dialect::WANDB_OLD),
        1 => plain(Dialect::SWANLAB),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fragments_cover_a_damaged_log_without_gaps_and_match_the_reader(
        dialect in dialect(), lens in lens(), damages in prop::collection::vec(damage(), 0..5),
    ) {
        let mut file = log(dialect, &lens);
        for damage in &damages {
            damage.to(&mut file, dialect);
        }
        check(&file, dialect);
    }

    #[test]
    fn fragments_of_arbitrary_bytes_have_no_gaps(
        dialect in dialect(), file in prop::collection::vec(prop_oneof![Just(0), 0..12_u8, any::<u8>()], 0..300),
    ) {
        check(&file, dialect);
    }
}

#[test]
fn fragments_of_a_stale_tail_are_listed() {
    let mut file = log(LogFormat::new(Dialect::ROCKSDB).with_log_number(9), &[100; 3]);
    let options = WriterOptions::default()
        .with_dialect(Dialect::ROCKSDB)
        .with_log_number(8);
    let mut older = Writer::with_options(Vec::new(), options).unwrap();
    for _ in 0..10 {
        // At the place where the log ends, these bytes look like a header that states 257 bytes.
        older.append(&[1; 70]).unwrap();
    }
    file.extend_from_slice(&older.into_inner().unwrap()[file.len()..]);
    let fragments = fragments_of(&file, LogFormat::new(Dialect::ROCKSDB).with_log_number(9));
    let told: Vec<_> = fragments
        .iter()
        .map(|fragment| {
            (
                fragment.offset,
                fragment.kind.as_str(),
                fragment.log_number,
                fragment.reason.is_some(),
            )
        })
        .collect();
    // There are three fragments of 111 bytes, then the rest of the fifth fragment of the older log,
    // up to 405, and then five fragments of 81 bytes.
    let mut expected: Vec<_> = (0..3).map(|i| (i * 111, "recyclable_full", Some(9), false)).collect();
    expected.push((333, "rest", None, true));
    expected.extend((5..10).map(|i| (i * 81, "recyclable_full", Some(8), true)));
    assert_eq!(told, expected);
}
