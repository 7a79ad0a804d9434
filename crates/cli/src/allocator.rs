//! The program's allocator. Where there is no memory it ends the process with one sentence and status 1; the standard library would abort it with
//! a trace and SIGABRT.
#![allow(unsafe_code, reason = "an allocator is an unsafe trait; every method hands on to MiMalloc")]

use std::alloc::{GlobalAlloc, Layout};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use equipoise::memory;
use mimalloc::MiMalloc;

/// Memory is what a large simulation waits for: this allocator keeps blocks of one size together and asks for huge pages, which needs no setting
/// (`MIMALLOC_ALLOW_THP=0` runs without).
struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

// SAFETY: every block comes from MiMalloc and goes back to it with the layout that it was asked for; null is passed on as null, or the process ends.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that MiMalloc asks for.
        had(unsafe { MiMalloc.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        had(unsafe { MiMalloc.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above; the block is one of MiMalloc's.
        had(unsafe { MiMalloc.realloc(block, layout, size) }, size)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { MiMalloc.dealloc(block, layout) }
    }
}

/// The block, if there is one or the caller can do without.
#[inline]
fn had(block: *mut u8, bytes: usize) -> *mut u8 {
    if block.is_null() && !memory::is_asking() {
        end(bytes);
    }
    block
}

/// Ends the process with a sentence that needs no memory. On real ranks the launcher then ends the others.
#[cold]
fn end(bytes: usize) -> ! {
    static SAID: AtomicBool = AtomicBool::new(false);
    if SAID.swap(true, Ordering::Relaxed) {
        // Another thread ends the process.
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    let mut sentence = [0; 160];
    let mut rest = &mut sentence[..];
    let _ = writeln!(
        rest,
        "equipoise: out of memory: {bytes} bytes more cannot be had; smaller loads, fewer simulated ranks or fewer ranks on a host need less"
    );
    let left = rest.len();
    let length = sentence.len() - left;
    let _ = rustix::io::write(rustix::stdio::stderr(), &sentence[..length]);
    // No destructors, no exit handlers: they may want memory, or wait for other ranks.
    signal_hook::low_level::exit(1)
}
