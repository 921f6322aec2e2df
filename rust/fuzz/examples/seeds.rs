//! Writes seeds for the fuzz targets, in one directory per target. The seeds are logs that LevelDB
//! would write, as in the crate's tests, and unstructured bytes. Any bytes make a valid script.

use std::path::Path;
use std::{env, fs, io};

use arbitrary::{Arbitrary, Unstructured};
use cordwood_fuzz::file::noise;
use cordwood_fuzz::model::{encode, fragment};
use cordwood_fuzz::options::Options;
use cordwood_fuzz::session::Session;
use cordwood_fuzz::steps::Steps;

fn main() -> io::Result<()> {
    let directory = env::args_os().nth(1).ok_or(io::ErrorKind::InvalidInput)?;
    let directory = Path::new(&directory);
    write(directory, "decode", zeros(Options::arbitrary))?;
    write(
        directory,
        "stream_slice",
        zeros(Options::arbitrary) + zeros(Steps::arbitrary),
    )?;
    write(directory, "append_damage", 2 * zeros(Session::arbitrary))?;
    for target in ["containers", "dialects", "follow", "round_trip", "checksum"] {
        write_noise(&directory.join(target))?;
    }
    write_payloads(&directory.join("payload"))
}

/// Returns the number of bytes that `of` consumes if they are all zeros. Zeros select the defaults,
/// or omit a part.
fn zeros<T>(of: impl Fn(&mut Unstructured<'static>) -> arbitrary::Result<T>) -> usize {
    let mut zeros = Unstructured::new(&[0; 1024]);
    let _ = of(&mut zeros);
    1024 - zeros.len()
}

/// Writes the logs and noise as seeds. Each log comes after `zeros` zeros and another zero, which
/// says that the bytes of a file follow.
fn write(directory: &Path, target: &str, zeros: usize) -> io::Result<()> {
    let directory = directory.join(target);
    fs::create_dir_all(&directory)?;
    for (name, log) in logs() {
        let mut seed = vec![0; zeros + 1];
        seed.extend(log);
        fs::write(directory.join(name), seed)?;
    }
    write_noise(&directory)
}

fn write_noise(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for seed in 1..=16 {
        fs::write(
            directory.join(format!("noise-{seed}")),
            noise(seed, 64 * usize::from(seed)),
        )?;
    }
    Ok(())
}

/// Writes a record of each kind. The four bytes before it select the kind.
fn write_payloads(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let batch = b"\x07\0\0\0\0\0\0\0\x02\0\0\0\x01\x03key\x05value\0\x03old".as_slice();
    let edit = b"\x01\x03cmp\x02\x04\x06\x01\x05\x67\x01\x06\x07\x08\x01\0\0\0\0\0\0\0\x08\x01\0\0\0\0\0\0\0\x01\x02\x0d\x01\x03\x01";
    let entity = b"\x6a\x0f\x6a\x01a\x72\x0a\x0b\x12\x04Task\x18\x07\x0c\x72\x09\x1a\x01n\x20\x00\x2a\x02\x08\x05";
    for (name, kind, record) in [
        ("rocksdb", 0_u32, batch),
        ("pebble", 1 << 30, batch),
        ("version-edit", 1 << 31, edit),
        ("entity", u32::MAX, entity),
    ] {
        fs::write(directory.join(name), [&kind.to_le_bytes(), record].concat())?;
    }
    write_noise(directory)
}

/// Returns small logs: undamaged, torn and damaged. Logs of several blocks are left to the scripts,
/// which build them from a few bytes.
fn logs() -> Vec<(&'static str, Vec<u8>)> {
    let whole = log(&[b"foo", b"", &[b'x'; 300], b"bar"]);
    let mut flipped = whole.clone();
    flipped[12] ^= 1;
    let mut too_long = whole.clone();
    too_long[5] = 0x7f;
    let torn = whole[..whole.len() - 2].to_vec();
    let filled = [&whole[..], &[0; 100]].concat();
    let parts = [fragment(2, b"one "), fragment(3, b"record "), fragment(4, b"in three")].concat();
    let alone = [
        fragment(4, b"no start"),
        fragment(9, b"no type"),
        fragment(2, b"no end"),
    ]
    .concat();
    vec![
        ("empty", Vec::new()),
        ("whole", whole),
        ("flipped", flipped),
        ("too-long", too_long),
        ("torn", torn),
        ("zeros", filled),
        ("parts", parts),
        ("alone", alone),
    ]
}

fn log(records: &[&[u8]]) -> Vec<u8> {
    records.iter().fold(Vec::new(), |mut file, record| {
        let (bytes, _) = encode(file.len() as u64, record);
        file.extend(bytes);
        file
    })
}
