//! The command `equipoise`.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
