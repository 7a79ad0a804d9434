//! The command `equipoise`.

mod balance;
mod command;
mod commands;
mod compare;
mod divide;
mod launch;
mod list;
mod options;
mod output;
mod reproduce;
mod run;
mod start;
mod streams;
mod terminal;

use std::process::ExitCode;

/// Memory is what a large simulation waits for: this allocator keeps blocks of one size together and asks for huge pages, which needs no setting
/// (`MIMALLOC_ALLOW_THP=0` runs without).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    commands::run()
}
