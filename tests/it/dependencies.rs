//! Dependencies of a program that embeds the library for real ranks.

use std::collections::BTreeSet;
use std::process::Command;

/// The most crates in an embedding program's tree, the library included.
const MOST: usize = 30;

#[test]
fn an_embedding_program_pulls_few_crates() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(["tree", "--locked", "--offline", "-p", "equipoise"]);
    cargo.args(["--no-default-features", "--features", "mpi", "-e", "normal", "--prefix", "none", "--format", "{p}"]);
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    // A crate that is listed again is marked so.
    let crates: BTreeSet<&str> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    assert!(crates.iter().any(|name| name.starts_with("equipoise ")), "{crates:?}");
    assert!(crates.len() <= MOST, "{} crates:\n{}", crates.len(), crates.into_iter().collect::<Vec<_>>().join("\n"));
}
