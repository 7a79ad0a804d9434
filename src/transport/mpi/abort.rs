//! Abort of a job that cannot go on: on all ranks, soon, with a status and one sentence.

use std::io::Write;
use std::panic;
use std::sync::Once;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::ffi;

/// The status of a job in which a rank panicked.
pub const PANICKED: i32 = 101;

/// Sees to it that a panic on any thread of this rank ends the whole job. Without this, a rank that panics unwinds into MPI's
/// finalisation and hangs there with all others.
///
/// Outside MPI's life nothing changes: the panic unwinds as ever.
pub fn on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            previous(info);
            if ffi::is_active() {
                flush();
                ffi::abort(PANICKED);
            }
        }));
    });
}

/// Says why on standard error, and ends the job with a status.
pub(super) fn job(sentence: &str, status: i32) -> ! {
    say(sentence);
    flush();
    ffi::abort(status)
}

/// Writes lines to standard error in one piece, so that those of several ranks don't mix.
pub(super) fn say(lines: &str) {
    let mut text = String::with_capacity(lines.len() + 1);
    text.push_str(lines);
    text.push('\n');
    // If standard error is closed, there is nowhere left to report to.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Flushes standard output, but waits only briefly: another thread may hold its lock for ever.
pub(super) fn flush() {
    let (done, flushed) = mpsc::channel();
    let flusher = thread::Builder::new().spawn(move || {
        let _ = std::io::stdout().flush();
        let _ = done.send(());
    });
    if flusher.is_ok() {
        let _ = flushed.recv_timeout(Duration::from_millis(200));
    }
}
