//! The command `equipoise`.

mod cli;

use std::process::ExitCode;

/// Memory is what a large simulation waits for: this allocator keeps blocks of one size together and asks for huge pages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::run()
}
