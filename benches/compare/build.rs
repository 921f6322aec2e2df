//! rusty-leveldb reads and writes logs in a private module. This script compiles that file, as the
//! crate ships it, together with the two files that it uses.

use std::{env, fs, path::PathBuf, process::Command};

const RIVAL: &str = "rusty-leveldb-4.0.2";

fn main() {
    let cargo = env::var_os("CARGO").expect("Cargo sets CARGO");
    let target = env::var("TARGET").expect("Cargo sets TARGET");
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--filter-platform",
            &target,
        ])
        .output()
        .expect("cargo metadata runs");
    let metadata = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    let manifest = metadata
        .split('"')
        .find(|text| text.ends_with("Cargo.toml") && text.contains(RIVAL))
        .unwrap_or_else(|| {
            panic!(
                "{RIVAL} is not among the packages: {}",
                String::from_utf8_lossy(&output.stderr)
            )
        });
    let sources = PathBuf::from(manifest.replace("\\\\", "\\")).with_file_name("src");
    let modules: String = ["crc", "error", "log"]
        .iter()
        .map(|name| {
            format!(
                "#[path = {:?}]\npub mod {name};\n",
                sources.join(name).with_extension("rs")
            )
        })
        .collect();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR"));
    fs::write(out.join("rusty_leveldb.rs"), modules).expect("the directory of the build can be written");
    println!("cargo::rerun-if-changed=build.rs");
}
