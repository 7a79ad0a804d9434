//! The command `equipoise`.

mod advise;
mod allocator;
mod balance;
mod command;
mod commands;
mod compare;
mod divide;
mod farm;
mod launch;
mod list;
mod manual;
mod options;
mod output;
mod probe;
mod reproduce;
mod run;
mod start;
mod streams;
mod terminal;
mod when;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run()
}
