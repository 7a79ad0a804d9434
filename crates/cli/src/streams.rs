//! Finds which of the standard streams were closed at the start. Rust's runtime opens /dev/null in their place before `main`: output is then lost
//! without an error, input is empty, and later this cannot be distinguished from a redirection to /dev/null.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

static INPUT: AtomicBool = AtomicBool::new(false);
static OUTPUT: AtomicBool = AtomicBool::new(false);

// SAFETY: it runs before `main`, so on the only thread and before Rust's runtime is set up. It makes two system calls on the numbers 0 and 1 and stores to
// two statics; it allocates nothing that `main` needs, starts no thread, and neither reads arguments nor panics.
#[allow(unsafe_code)]
#[ctor::ctor(unsafe)]
fn note() {
    INPUT.store(is_not_open(&io::stdin()), Ordering::Relaxed);
    OUTPUT.store(is_not_open(&io::stdout()), Ordering::Relaxed);
}

fn is_not_open(stream: &impl AsFd) -> bool {
    matches!(rustix::io::fcntl_getfd(stream), Err(rustix::io::Errno::BADF))
}

/// Returns true if standard input was closed when the program began.
pub fn input_was_closed() -> bool {
    INPUT.load(Ordering::Relaxed)
}

/// Returns true if standard output was closed when the program began.
pub fn output_was_closed() -> bool {
    OUTPUT.load(Ordering::Relaxed)
}
