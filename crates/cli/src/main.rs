//! The command `equipoise`.

mod advise;
mod allocator;
mod balance;
mod command;
mod commands;
mod compare;
mod divide;
mod launch;
mod list;
mod options;
mod output;
mod probe;
mod reproduce;
mod run;
mod start;
mod streams;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run()
}
