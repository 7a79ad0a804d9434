//! Allocation of large buffers that may fail: they are requested in one place, so that a program's allocator knows which callers can
//! continue without them.
//!
//! All other allocations must succeed. A program whose allocator ends it with a message of its own when there is no memory must not do so while
//! [`reserve`] asks ([`is_asking`]): the caller of `reserve` then says what the memory was for.

use std::cell::Cell;

thread_local! {
    static ASKING: Cell<bool> = const { Cell::new(false) };
}

/// Makes room for exactly this number of further elements in an empty or filled buffer; `false` if there is no memory for them.
#[must_use]
pub fn reserve<T>(buffer: &mut Vec<T>, more: usize) -> bool {
    let before = ASKING.replace(true);
    let reserved = buffer.try_reserve_exact(more);
    ASKING.set(before);
    reserved.is_ok()
}

/// Returns true if this thread is within [`reserve`], which can cope with a failed allocation.
pub fn is_asking() -> bool {
    // A thread that ends has no such variable any more, and asks for nothing here.
    ASKING.try_with(Cell::get).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri ends where memory does")]
    fn what_cannot_be_had_is_no_panic() {
        let mut buffer = vec![1, 2];
        assert!(!reserve(&mut buffer, usize::MAX / 2 - 2));
        assert!(!is_asking());
        assert!(reserve(&mut buffer, 1000));
        assert!(buffer.capacity() >= 1002);
        assert_eq!(buffer, [1, 2]);
    }
}
