//! Generates the files. A file is a sequence of elements. Each element is a fragment, a damaged
//! fragment, or other bytes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::BLOCK;
use crate::model::fragment;
use crate::numbered;

/// The kind of elements in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alphabet {
    LevelDb,
    /// Fragments with a log number, and fragments of an older log.
    Numbered,
    Packed,
}

/// The number of elements to try at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    /// All lengths, and each flipped bit of a length and of a type.
    All,
    /// The lengths near an edge, and some flipped bits.
    Edge,
    /// A few lengths, and two flipped bits.
    Few,
    /// Two lengths, and one flipped bit.
    Least,
}

/// Describes all files that have at most one element for each entry of `widths`.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) alphabet: Alphabet,
    pub(crate) widths: Vec<Width>,
    /// Whether to truncate each file at every byte, too.
    pub(crate) truncates: bool,
}

impl std::fmt::Display for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let end = if self.truncates {
            ", truncated at every byte"
        } else {
            ""
        };
        write!(f, "{} elements {:?}{end}", self.widths.len(), self.widths)
    }
}

impl Files {
    /// Calls `visit` for each file, and more than once for some files. The calls come from as many
    /// threads as the machine has cores. Each thread has its own state.
    pub(crate) fn each<T: Send>(&self, state: impl Fn() -> T + Sync, visit: impl Fn(&mut T, &[u8]) + Sync) -> Vec<T> {
        let firsts = self.tails(&[], self.widths[0]);
        each_in_threads(firsts.len(), state, |state, index| {
            let mut file = Vec::new();
            self.walk(&mut file, 0, &firsts[index..=index], &mut |file| visit(state, file));
        })
    }

    fn walk(&self, file: &mut Vec<u8>, level: usize, tails: &[Vec<u8>], visit: &mut impl FnMut(&[u8])) {
        let at = file.len();
        let mut seen = BTreeSet::new();
        for tail in tails {
            let least = if self.truncates { 1 } else { tail.len() };
            for len in least..=tail.len() {
                if seen.insert(&tail[..len]) {
                    file.extend(&tail[..len]);
                    visit(file);
                    file.truncate(at);
                }
            }
        }
        let Some(&width) = self.widths.get(level + 1) else {
            return;
        };
        for tail in tails {
            file.extend(tail);
            let next = self.tails(file, width);
            self.walk(file, level + 1, &next, visit);
            file.truncate(at);
        }
    }

    /// Returns each element that can follow `file`, with the trailer before the element.
    fn tails(&self, file: &[u8], width: Width) -> Vec<Vec<u8>> {
        let left = BLOCK - file.len() % BLOCK;
        let seed = (file.len() / 7) as u8;
        let mut tails = BTreeSet::new();
        let trailers = match left {
            0..7 => vec![vec![0; left], [vec![0; left - 1], vec![7]].concat()],
            _ => vec![vec![]],
        };
        for trailer in trailers {
            let room = if trailer.is_empty() { left } else { BLOCK };
            for element in self.alphabet.elements(room, seed, width) {
                tails.insert([trailer.clone(), element].concat());
            }
            if self.alphabet == Alphabet::Numbered && (7..numbered::HEADER).contains(&left) {
                let zeros = vec![0; left];
                for element in self.alphabet.elements(BLOCK, seed, width) {
                    tails.insert([zeros.clone(), element].concat());
                }
            }
        }
        tails.into_iter().collect()
    }
}

/// Calls `visit` with each index below `count`. The calls come from as many threads as the machine
/// has cores.
pub(crate) fn each_in_threads<T: Send>(
    count: usize,
    state: impl Fn() -> T + Sync,
    visit: impl Fn(&mut T, usize) + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let run = || {
            let mut state = state();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    return state;
                }
                visit(&mut state, index);
            }
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread that ends"))
            .collect()
    })
}

/// Returns bytes that are not zero and differ from the bytes for any other seed.
fn payload(seed: u8, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| seed.wrapping_mul(37).wrapping_add(at as u8 * 11) | 1)
        .collect()
}

impl Width {
    fn at_most_few(self) -> Self {
        if self == Width::Least { self } else { Width::Few }
    }

    fn is_small(self) -> bool {
        matches!(self, Width::Few | Width::Least)
    }

    /// Returns the payload lengths to try if `room` bytes are free.
    fn lens(self, room: usize) -> Vec<usize> {
        let edges: &[isize] = match self {
            Width::All => return (0..=room).collect(),
            Width::Edge => &[0, 1, 2, -1, -2, -7, -8],
            Width::Few => &[0, 2, -1, -8],
            Width::Least => &[0, -1],
        };
        let of = |&edge: &isize| {
            if edge < 0 {
                (room + 1).checked_add_signed(edge)
            } else {
                Some(edge as usize)
            }
        };
        let lens: BTreeSet<usize> = edges.iter().filter_map(of).filter(|&len| len <= room).collect();
        lens.into_iter().collect()
    }

    /// Returns which bits of a length to flip.
    fn bits(self) -> &'static [usize] {
        match self {
            Width::All => &[0, 1, 2, 3, 4, 8, 15],
            Width::Edge => &[0, 3, 15],
            Width::Few => &[0],
            Width::Least => &[],
        }
    }
}

impl Alphabet {
    /// Returns the elements to try if `left` bytes of a block are left. `left` must be at least 7.
    fn elements(self, left: usize, seed: u8, width: Width) -> Vec<Vec<u8>> {
        let mut elements = vec![
            vec![0; 7],
            vec![0; left],
            vec![0xff; left],
            [vec![0; left - 1], vec![9]].concat(),
            vec![0, 0, 0, 0, 0, 0, 1],
        ];
        match self {
            Alphabet::LevelDb => {
                let kinds: &[u8] = if width.is_small() {
                    &[1, 2, 3, 4]
                } else {
                    &[1, 2, 3, 4, 5]
                };
                plain(left, seed, width, kinds, &mut elements);
            }
            Alphabet::Numbered => numbered_elements(left, seed, width, &mut elements),
            Alphabet::Packed => {
                plain(left, seed, width.at_most_few(), &[1, 2, 4], &mut elements);
                packed(left, width, &mut elements);
            }
        }
        elements
    }
}

/// Adds a fragment, and damaged copies of it.
fn damaged(fragment: Vec<u8>, left: usize, width: Width, elements: &mut Vec<Vec<u8>>) {
    let flipped = |at: usize, bits: u8| {
        let mut bytes = fragment.clone();
        bytes[at] ^= bits;
        bytes
    };
    elements.push(flipped(0, 1));
    for &bit in width.bits() {
        elements.push(flipped(4 + bit / 8, 1 << (bit % 8)));
    }
    if width == Width::All && fragment[6] == 1 {
        elements.extend((0..8).map(|bit| flipped(6, 1 << bit)));
    }
    if fragment.len() > 7 && width != Width::Least {
        elements.push(flipped(fragment.len() - 1, 0x80));
    }
    // A torn write is followed by zeros up to the end of the block.
    let lens = match width {
        Width::All => (1..fragment.len()).collect(),
        Width::Edge => vec![1, 4, 6, 7, fragment.len() - 1],
        Width::Few => vec![6],
        Width::Least => vec![],
    };
    for len in lens {
        let mut torn = fragment[..len].to_vec();
        torn.resize(left, 0);
        elements.push(torn);
    }
    elements.push(fragment);
}

fn plain(left: usize, seed: u8, width: Width, kinds: &[u8], elements: &mut Vec<Vec<u8>>) {
    let room = left - 7;
    for &kind in kinds {
        for len in width.lens(room) {
            damaged(fragment(kind, &payload(seed, len)), left, width, elements);
        }
    }
    let few = width.at_most_few();
    if room > 0 && !width.is_small() {
        damaged(fragment(1, &vec![0; room]), left, few, elements);
        damaged(fragment(2, &vec![0; room]), left, few, elements);
    }
    // The payload of a fragment can itself be a fragment, with or without a byte after it.
    if let Some(inner) = room.checked_sub(7) {
        if inner > 0 {
            elements.push(fragment(1, &[fragment(1, &[]), vec![1]].concat()));
        }
        for len in few.lens(inner) {
            for kind in [1, 4] {
                damaged(fragment(1, &fragment(kind, &payload(seed, len))), left, few, elements);
            }
            damaged(fragment(2, &fragment(1, &payload(seed, len))), left, few, elements);
        }
    }
}

fn numbered_elements(left: usize, seed: u8, width: Width, elements: &mut Vec<Vec<u8>>) {
    let few = width.at_most_few();
    // These fragments have other forms: LevelDB's types 1 and 4, and type 9.
    let fewer = if width == Width::All { Width::Edge } else { few };
    for len in fewer.lens(left - 7) {
        elements.push(fragment(1, &payload(seed, len)));
        elements.push(fragment(4, &payload(seed, len)));
    }
    elements.push(fragment(9, &payload(seed, (left - 7).min(1))));
    elements.push(numbered::END_TRAILER.to_vec());
    let Some(room) = left.checked_sub(numbered::HEADER) else {
        return;
    };
    let kinds: &[u8] = if width.is_small() { &[5, 6, 8] } else { &[5, 6, 7, 8] };
    for &kind in kinds {
        for len in width.lens(room) {
            let whole = numbered::fragment(kind, numbered::NUMBER, &payload(seed, len));
            for bit in [0, 1] {
                // Changes the log number but not the checksum, which is then wrong.
                let mut bytes = whole.clone();
                bytes[7] ^= 1 << bit;
                elements.push(bytes);
            }
            damaged(whole, left, width, elements);
            let stale = numbered::fragment(kind, numbered::OTHER, &payload(seed, len));
            if !width.is_small() {
                let mut bytes = stale.clone();
                bytes[0] ^= 1;
                elements.push(bytes);
            }
            elements.push(stale);
        }
    }
    // The payload of a fragment with a number can be a fragment without a number.
    if room >= 7 {
        damaged(
            numbered::fragment(5, numbered::NUMBER, &fragment(1, &payload(seed, room - 7))),
            left,
            few,
            elements,
        );
    }
}

/// Returns a container of `count` empty records. Their lengths are in a frame of one repeated byte.
/// The container is 12 bytes long, so it can have more records than bytes.
fn repeated(count: u8) -> Vec<u8> {
    let block = u16::from(count) << 3 | 3;
    let [low, high] = block.to_le_bytes();
    vec![1, count, 0x28, 0xb5, 0x2f, 0xfd, 0x20, count, low, high, 0, 0]
}

/// Adds containers and marks. The bytes of a container are `[codec, count, lengths, data]`.
fn packed(left: usize, width: Width, elements: &mut Vec<Vec<u8>>) {
    let few = width.at_most_few();
    let stored: &[&[u8]] = &[
        &[0, 3, 1, 0, 2, b'a', b'b', b'c'],
        &[0, 2, 0, 0],
        &[0, 1, 3, b'd', b'e', b'f'],
        &[0, 2, 1, 0x81, 0, b'a', b'b'],
        &[0, 2, 1, 1, b'a'],
        &[0, 2, 1, 0, b'a', b'b'],
        &[0, 0],
        &[0],
        &[],
        &[0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0, 25],
        &[0, 0x82, 0, 0, 0],
        &[0, 0x80],
        &[2, 1, 0],
        // The frame has one raw block.
        &[1, 2, 0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 0x19, 0, 0, 1, 0, b'x'],
        &[1, 2, 0x28, 0xb5, 0x2f, 0xfd, 0x20, 4, 0x19, 0, 0, 1, 0, b'x'],
        &[1, 1, 0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 0x1b, 0, 0, 2],
        &[1, 3, 0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 0x1b, 0, 0, 0],
        &[1, 1, 0x28, 0xb5, 0x2f, 0xfd, 0x20],
        // The frame states a content length of 2 MiB.
        &[1, 1, 0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0x20, 0, 1, 0, 0],
    ];
    let room = left - 7;
    for (index, container) in stored.iter().enumerate() {
        let is_taken = width != Width::Least || [0, 5, 10].contains(&index);
        if container.len() <= room && is_taken {
            let width = if index < 3 || index == 14 { width } else { few };
            damaged(fragment(0x40, container), left, width, elements);
        }
    }
    // The first count of each pair is the highest count for which each record has an offset. The
    // first container is a single fragment. The second extends into another block.
    if room >= 12 {
        elements.extend([19, 20].map(|count| fragment(0x40, &repeated(count))));
        let block_left = left as u8;
        elements.extend([block_left, block_left + 1].map(|count| fragment(0x42, &repeated(count))));
    }
    elements.push(fragment(0x46, &[]));
    // These containers are divided into fragments, even if they fit into a block.
    let long: &[u8] = &[0, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    let parted = if width == Width::Least {
        &[stored[0]][..]
    } else {
        &[stored[0], stored[14], long]
    };
    for &container in parted {
        let lens: BTreeSet<usize> = match width {
            Width::All => (0..=container.len()).collect(),
            Width::Least => [3, room].into(),
            _ => [0, 1, 3, room, room.saturating_sub(1)].into(),
        };
        for len in lens.into_iter().filter(|&len| len <= room.min(container.len())) {
            let (first, last) = container.split_at(len);
            elements.push(fragment(0x42, first));
            damaged(fragment(0x42, first), left, few, elements);
            elements.push(fragment(0x44, &container[..len]));
            if last.len() <= room {
                elements.push(fragment(0x46, last));
            }
        }
    }
    let marks: &[&[u8]] = &[
        b"cordwood\x01\x00",
        b"cordwood\x01\x01",
        b"cordwood\x01\x02",
        b"cordwood\x02\x00",
        b"cordwood\x01\x00x",
        b"cordwood\x01",
        b"Cordwood\x01\x00",
    ];
    let count = if width == Width::Least { 1 } else { marks.len() };
    for mark in &marks[..count] {
        if mark.len() <= room {
            damaged(fragment(0x48, mark), left, few, elements);
        }
    }
}
