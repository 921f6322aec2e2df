//! Collects the regions that were not returned, using bounded memory.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::damage::{BitFlip, Reason, Severity, SkippedRegion};

/// A region that was either skipped or repaired, and the flipped bit that explains the damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Finding {
    /// The region.
    pub region: SkippedRegion,
    /// The flipped bit that explains the damage. This is only set if a flipped bit can cause this
    /// kind of damage and [`locate_bit_flip`](crate::damage::locate_bit_flip) finds one.
    pub bit_flip: Option<BitFlip>,
}

impl Finding {
    /// Creates a finding without a flipped bit: either there was no search, or it found none.
    pub const fn new(region: SkippedRegion) -> Self {
        Finding { region, bit_flip: None }
    }
}

/// The regions of a log that were not returned. Only the first [`LISTED_MAX`](Findings::LISTED_MAX)
/// are listed, but the bytes of all regions are counted.
///
/// In a crafted file, every other record may be damaged, so a list of all regions could take more
/// memory than the file.
///
/// ```
/// use cordwood_log::{Event, ReadOptions, Reader};
/// use cordwood_log::damage::{Finding, Findings, Severity};
/// let mut reader = Reader::from_slice(b"\xdd\x5f\xb3\x7a\x03\x00\x01foo torn", ReadOptions::default());
/// let mut findings = Findings::default();
/// while let Some(event) = reader.next_event()? {
///     if let Event::Skipped(region) = event {
///         findings.add(Finding::new(region));
///     }
/// }
/// assert_eq!(findings.listed()[0].region.start, 10);
/// assert_eq!((findings.len_of(Severity::TornTail), findings.len_by("torn_tail"), findings.len()), (5, 5, 5));
/// # Ok::<(), cordwood_log::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Findings {
    listed: Vec<Finding>,
    /// The number of bytes for each reason name, including bytes in unlisted regions.
    lens: BTreeMap<&'static str, (Severity, u64)>,
    /// The file offsets of the last run of adjacent zero regions. If two regions aren't adjacent,
    /// there is a record or a trailer between them. A run that reaches the end of the file
    /// therefore contains all the zeros at the end.
    last_zeros: Range<u64>,
}

impl Findings {
    /// The maximum number of listed regions. A full list takes at most 10 MiB.
    pub const LISTED_MAX: usize = 100_000;

    /// Adds a region that starts after all others. Merges it with the last listed region if the two
    /// are adjacent, have the same reason, and have no flipped bit.
    pub fn add(&mut self, finding: Finding) {
        self.count(finding.region);
        self.list(finding);
    }

    /// Counts the bytes of a region that starts after all others, without listing it.
    pub(crate) fn count(&mut self, region: SkippedRegion) {
        let reason = region.reason;
        let (_, len) = self.lens.entry(reason.as_str()).or_insert((reason.severity(), 0));
        *len += region.len();
        if reason == Reason::ZeroFill {
            self.append_zeros(region.start..region.end);
        }
    }

    fn append_zeros(&mut self, next: Range<u64>) {
        if self.last_zeros.end == next.start {
            self.last_zeros.end = next.end;
        } else if !next.is_empty() {
            self.last_zeros = next;
        }
    }

    /// Appends the findings of the next range.
    pub fn append(&mut self, next: Findings) {
        for (name, (severity, next_len)) in next.lens {
            let (_, len) = self.lens.entry(name).or_insert((severity, 0));
            *len += next_len;
        }
        self.append_zeros(next.last_zeros);
        // If some of these findings are unlisted, then the list is full, and no later finding can
        // be adjacent to the last one listed.
        for finding in next.listed {
            self.list(finding);
        }
    }

    fn list(&mut self, finding: Finding) {
        if let Some(last) = self.listed.last_mut()
            && (last.bit_flip, finding.bit_flip) == (None, None)
            && let Some(joined) = last.region.joined(finding.region)
        {
            last.region = joined;
        } else if !self.is_full() {
            self.listed.push(finding);
        }
    }

    /// Checks whether [`add`](Self::add) may change the list. If not, there is no need to locate
    /// the flipped bit.
    pub(crate) fn lists(&self, region: SkippedRegion) -> bool {
        let joins = |last: &Finding| last.bit_flip.is_none() && last.region.joined(region).is_some();
        !self.is_full() || self.listed.last().is_some_and(joins)
    }

    /// Returns the listed regions, ordered by offset.
    pub fn listed(&self) -> &[Finding] {
        &self.listed
    }

    /// Checks whether the list is full. If it is, further regions are not listed.
    pub fn is_full(&self) -> bool {
        self.listed.len() >= Self::LISTED_MAX
    }

    /// Returns true if there are no findings.
    pub fn is_empty(&self) -> bool {
        self.lens.is_empty()
    }

    /// Returns the number of bytes in all regions.
    pub fn len(&self) -> u64 {
        self.lens.values().map(|(_, len)| len).sum()
    }

    /// Returns the number of bytes in all regions of this severity.
    pub fn len_of(&self, severity: Severity) -> u64 {
        let lens = self.lens.values().filter(|(of_reason, _)| *of_reason == severity);
        lens.map(|(_, len)| len).sum()
    }

    /// Checks whether there is a region of this severity, even an empty one. Regions with the
    /// reason [`Reason::GrownSegment`] are empty.
    pub fn has(&self, severity: Severity) -> bool {
        self.lens.values().any(|(of_reason, _)| *of_reason == severity)
    }

    /// Returns the number of bytes in all regions with this reason. `reason` is a name returned by
    /// [`Reason::as_str`](crate::damage::Reason::as_str).
    pub fn len_by(&self, reason: &str) -> u64 {
        self.lens.get(reason).map_or(0, |(_, len)| *len)
    }

    /// Returns the start of the zeros ([`Reason::ZeroFill`]) that end at `end`, or `None` if no
    /// zeros end there. If a file was read to its end, pass the file's length to get the start of
    /// the zeros at the end.
    pub fn zeros_before(&self, end: u64) -> Option<u64> {
        (self.last_zeros.end == end && !self.last_zeros.is_empty()).then_some(self.last_zeros.start)
    }

    /// For each reason found, returns its name, its severity and the total number of bytes in its
    /// regions.
    pub fn lens(&self) -> impl Iterator<Item = (&'static str, Severity, u64)> {
        self.lens.iter().map(|(name, (severity, len))| (*name, *severity, *len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(start: u64, kind: u8) -> Finding {
        Finding::new(SkippedRegion {
            start,
            end: start + 7,
            reason: Reason::UnknownKind { kind },
            leveldb_len: Some(0),
        })
    }

    /// The list is the same whether it is built all at once or joined from two lists. Unlisted
    /// regions are still counted.
    #[test]
    fn regions_are_still_counted_after_the_list_is_full() {
        let count = Findings::LISTED_MAX as u64 + 100;
        let findings = |range: std::ops::Range<u64>| {
            let mut findings = Findings::default();
            range.for_each(|index| findings.add(finding(index * 7, (index % 2) as u8 + 77)));
            findings
        };
        let whole = findings(0..count);
        assert_eq!(whole.listed().len(), Findings::LISTED_MAX);
        assert_eq!(whole.len(), count * 7);
        for edge in [0, 1, 50, count - 50, count] {
            let mut parts = findings(0..edge);
            parts.append(findings(edge..count));
            assert_eq!(parts, whole, "{edge}");
        }
        // A region that directly follows the last one is merged with it if both have the same
        // reason.
        let last = whole.listed().last().unwrap().region;
        let Reason::UnknownKind { kind } = last.reason else {
            unreachable!()
        };
        for (next, is_listed) in [(finding(last.end, kind), true), (finding(last.end, 1), false)] {
            let mut more = whole.clone();
            more.add(next);
            assert_eq!(more.listed() != whole.listed(), is_listed);
            assert_eq!(whole.lists(next.region), is_listed);
        }
    }

    #[test]
    fn an_empty_region_still_counts_as_damage() {
        let mut findings = Findings::default();
        assert!(findings.is_empty() && !findings.has(Severity::Corruption));
        findings.add(Finding::new(SkippedRegion::new(20..20, Reason::GrownSegment)));
        assert!(!findings.is_empty() && findings.has(Severity::Corruption));
        assert_eq!(findings.len_of(Severity::Corruption), 0);
    }

    #[test]
    fn adjacent_regions_with_the_same_reason_are_merged() {
        let mut findings = Findings::default();
        findings.add(finding(0, 77));
        findings.add(finding(7, 77));
        findings.add(finding(14, 78));
        findings.add(finding(30, 78));
        let ends: Vec<_> = (findings.listed().iter())
            .map(|finding| (finding.region.start, finding.region.end))
            .collect();
        assert_eq!(ends, [(0, 14), (14, 21), (30, 37)]);
        assert_eq!(findings.len_by("unknown_kind"), 28);
    }

    #[test]
    fn trailing_zeros_can_span_adjacent_regions() {
        let zeros = |start, end| Finding::new(SkippedRegion::new(start..end, Reason::ZeroFill));
        assert_eq!(Findings::default().zeros_before(0), None);
        let mut findings = Findings::default();
        for (region, since) in [((10, 20), 10), ((20, 30), 10), ((40, 50), 40), ((50, 50), 40)] {
            findings.add(zeros(region.0, region.1));
            assert_eq!(findings.zeros_before(region.1), Some(since), "{region:?}");
            assert_eq!(findings.zeros_before(region.1 + 1), None, "{region:?}");
        }
        // Zeros at the start of the next range may continue these zeros.
        let mut next = Findings::default();
        findings.append(next.clone());
        assert_eq!(findings.zeros_before(50), Some(40));
        next.add(zeros(50, 55));
        findings.append(next);
        assert_eq!(findings.zeros_before(55), Some(40));
        // Regions with other reasons are ignored.
        findings.add(finding(60, 77));
        assert_eq!(findings.zeros_before(55), Some(40));
        assert_eq!(findings.zeros_before(67), None);
    }
}
