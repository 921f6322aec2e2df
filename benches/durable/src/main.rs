//! Logs of other crates beside cordwood's: what each loses in a crash or acknowledges although it may be lost, and
//! how long an append takes, reading a log, and opening it again. `make bench-durable` runs all of them, and prints the
//! tables of `docs/guides/which-log.md`.
//!
//! * `cordwood-durable crash [NAME...]`: the crash table.
//! * `cordwood-durable append [NAME...]`: the times of appends. The others are compared with the first, cordwood.
//! * `cordwood-durable read [NAME...]`: the times of reading, and of opening for the next append.
//!
//! It works in a temporary directory (`TMPDIR`), which must be on a real disk: in memory, a sync
//! costs nothing.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints tables")]

mod contenders;
mod crash;
mod failing_sync;
mod record;
mod speed;

use contenders::{CONTENDERS, Contender};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["crash", ref names @ ..] => crash::print_table(&chosen(names)),
        ["append", ref names @ ..] => speed::print_appends(&chosen(names)),
        ["read", ref names @ ..] => speed::print_reads(&chosen(names)),
        ["child", task, name, directory, ref numbers @ ..] => {
            let numbers: Vec<u64> = numbers.iter().map(|number| number.parse().expect("a number")).collect();
            crash::run_child(task, named(name), directory.as_ref(), &numbers);
        }
        _ => panic!("usage: cordwood-durable crash|append|read [NAME...]"),
    }
}

fn named(name: &str) -> &'static Contender {
    let found = CONTENDERS.iter().find(|contender| contender.name == name);
    found.unwrap_or_else(|| panic!("no contender is called {name}"))
}

fn chosen(names: &[&str]) -> Vec<&'static Contender> {
    match names {
        [] => CONTENDERS.iter().collect(),
        names => names.iter().map(|name| named(name)).collect(),
    }
}
