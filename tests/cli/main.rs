//! The command line from outside, in simulation: transcripts, the contract of its JSON, and what it says to wrong usage.

mod balancing;
mod contract;
mod divide;
mod docs;
mod farm;
#[path = "../files/mod.rs"]
mod files;
mod huge_pages;
mod input;
mod logging;
mod manual;
mod memory;
mod networks;
mod programs;
mod readers;
mod refusals;
mod reports;
mod reproduce;
mod run;
mod version;
mod when;

/// The project's root, below which tests name files.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The transcripts beside this file; `TRYCMD=overwrite` writes them anew. Their commands name files below the project's root.
#[test]
fn transcripts() {
    std::env::set_current_dir(ROOT).expect("the project's root");
    trycmd::TestCases::new().case("tests/cli/*.trycmd").insert_var("[VERSION]", env!("CARGO_PKG_VERSION")).expect("a variable's name");
}
