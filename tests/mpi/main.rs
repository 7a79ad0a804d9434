//! Tests on real ranks. This executable launches itself under mpirun; see [`launch`].

mod commands;
#[cfg(feature = "mpi")]
mod communicators;
#[path = "../contract/mod.rs"]
mod contract;
mod divide;
mod failing_runs;
mod farms;
mod faults;
#[path = "../files/mod.rs"]
mod files;
#[cfg(feature = "mpi")]
mod guest_in_rust;
#[cfg(feature = "mpi")]
mod guests;
mod independent;
mod interruptions;
mod launch;
mod layers;
mod native;
mod networks;
mod phases;
mod real;
mod reports;
mod runs;
mod signals;
mod sleepers;
mod starts;

use std::env;
use std::time::Duration;

use equipoise::transport::mpi;
use launch::{Book, Suite};

/// Small limits, so that every way a message can take is taken.
fn small_limits() -> mpi::Options {
    let mut options = mpi::Options::program().with_watchdog(mpi::Watch::Always(Duration::from_secs(20)));
    (options.inline, options.chunk, options.outbox) = (contract::INLINE, contract::CHUNK, contract::OUTBOX);
    options
}

fn book() -> Book {
    let mut book = Book::default();
    let limit = Duration::from_secs(150);
    book.suite(Suite { name: "contract", ranks: &[1, 2, 3, 5, 8], more: &[16], limit, options: small_limits(), cases: contract::cases() });
    real::enter(&mut book);
    faults::enter(&mut book);
    phases::enter(&mut book);
    native::enter(&mut book);
    runs::enter(&mut book);
    divide::enter(&mut book);
    layers::enter(&mut book);
    independent::enter(&mut book);
    sleepers::enter(&mut book);
    reports::enter(&mut book);
    failing_runs::enter(&mut book);
    // Programs that use MPI themselves do so through the crate `mpi`.
    #[cfg(feature = "mpi")]
    guests::enter(&mut book);
    #[cfg(feature = "mpi")]
    guest_in_rust::enter(&mut book);
    #[cfg(feature = "mpi")]
    communicators::enter(&mut book);
    signals::enter(&mut book);
    starts::enter(&mut book);
    networks::enter(&mut book);
    book
}

fn main() {
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).expect("the project's root");
    // Programs are started by a process of their own, as from the command line.
    if equipoise_farm::helper::serve_if_called().is_some() {
        return;
    }
    let book = book();
    if book.play_rank() {
        return;
    }
    let mut arguments = libtest_mimic::Arguments::from_args();
    if env::var_os("EQUIPOISE_SKIP_MPI").is_some_and(|value| value == "1") && env::var_os("CI").is_none() {
        eprintln!("EQUIPOISE_SKIP_MPI=1: real ranks are NOT tested");
        return;
    }
    // What mostly waits does so three at a time, all else alone (`launch::Turn`).
    arguments.test_threads.get_or_insert(3);
    let mut trials = book.trials();
    trials.append(&mut commands::trials());
    trials.append(&mut farms::trials());
    trials.append(&mut native::trials());
    trials.append(&mut networks::trials());
    trials.append(&mut interruptions::trials());
    libtest_mimic::run(&arguments, trials).exit();
}
