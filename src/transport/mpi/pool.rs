//! Pool of reusable buffers for long bodies that arrive.
//!
//! Memory that a process has not touched yet costs a page fault for every 4 KiB, which takes longer than to copy them. A program that balances
//! its load again and again would pay that each time, where one that receives into a buffer of its own pays it once. So the buffer of a body
//! comes back here when the last slice of the body is dropped, on whichever thread that happens, and another body is received into it.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;

use crate::memory;

/// Size of which all capacities are multiples.
const PAGE: usize = 4096;

pub(super) struct Pool {
    spare: Arc<Mutex<Spare>>,
}

/// Buffers that wait to be reused.
struct Spare {
    /// In the order in which they came back.
    buffers: VecDeque<Vec<u8>>,
    /// Capacity of all of them.
    bytes: usize,
    /// Maximum number of bytes kept.
    limit: usize,
}

impl Pool {
    /// Returns a pool that keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Pool {
        Pool { spare: Arc::new(Mutex::new(Spare { buffers: VecDeque::new(), bytes: 0, limit })) }
    }

    /// An empty buffer with at least this capacity; `None` if there is no memory.
    pub fn take(&self, length: usize) -> Option<Vec<u8>> {
        let capacity = rounded(length);
        if let Some(buffer) = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take(length, capacity.saturating_mul(2)) {
            return Some(buffer);
        }
        let mut buffer = Vec::new();
        memory::reserve(&mut buffer, capacity).then_some(buffer)
    }

    /// The bytes of a buffer, which comes back here when the last of their slices is gone.
    pub fn lend(&self, buffer: Vec<u8>) -> Bytes {
        Bytes::from_owner(Lent { buffer, home: Arc::downgrade(&self.spare) })
    }
}

/// A capacity that bodies of similar lengths share: up to a quarter more, which costs addresses only until it is written to.
fn rounded(length: usize) -> usize {
    let step = (length.checked_next_power_of_two().unwrap_or(length) / 8).max(PAGE);
    length.checked_next_multiple_of(step).unwrap_or(length)
}

impl Spare {
    /// The smallest buffer of at least one and at most the other capacity: a short body must not hold the memory of a long one.
    fn take(&mut self, least: usize, most: usize) -> Option<Vec<u8>> {
        let fits = |buffer: &Vec<u8>| (least..=most).contains(&buffer.capacity());
        let best = (0..self.buffers.len()).filter(|&at| fits(&self.buffers[at])).min_by_key(|&at| self.buffers[at].capacity())?;
        let buffer = self.buffers.remove(best)?;
        self.bytes -= buffer.capacity();
        Some(buffer)
    }

    /// Keeps a buffer, and gives up those that have waited longest if there are too many. What is returned is to be freed.
    fn keep(&mut self, mut buffer: Vec<u8>) -> Vec<Vec<u8>> {
        let mut given_up = Vec::new();
        if buffer.capacity() > self.limit {
            given_up.push(buffer);
            return given_up;
        }
        buffer.clear();
        self.bytes += buffer.capacity();
        self.buffers.push_back(buffer);
        while self.bytes > self.limit
            && let Some(oldest) = self.buffers.pop_front()
        {
            self.bytes -= oldest.capacity();
            given_up.push(oldest);
        }
        given_up
    }
}

/// A body's buffer while slices of it live.
struct Lent {
    buffer: Vec<u8>,
    /// Gone when the world has ended.
    home: Weak<Mutex<Spare>>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(home) = self.home.upgrade() else { return };
        let given_up = home.lock().unwrap_or_else(PoisonError::into_inner).keep(mem::take(&mut self.buffer));
        // With the lock released: to give pages back takes time.
        drop(given_up);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(pool: &Pool, length: usize, byte: u8) -> Vec<u8> {
        let mut buffer = pool.take(length).unwrap();
        assert!(buffer.is_empty() && buffer.capacity() >= length);
        buffer.resize(length, byte);
        buffer
    }

    #[test]
    fn a_buffer_comes_back_when_its_last_slice_is_dropped_and_not_before() {
        let pool = Pool::new(1 << 20);
        let first = filled(&pool, 10_000, 7);
        let at = first.as_ptr();
        let whole = pool.lend(first);
        let (slice, copy) = (whole.slice(9_000..), whole.clone());
        drop(whole);
        drop(copy);
        // One slice lives: another body must not be received into its memory.
        let second = filled(&pool, 10_000, 9);
        assert_ne!(second.as_ptr(), at);
        assert!(slice.iter().all(|byte| *byte == 7) && slice.len() == 1_000);
        drop(slice);
        let again = filled(&pool, 9_000, 1);
        assert_eq!(again.as_ptr(), at);
        drop(pool.lend(second));
        assert_eq!(pool.spare.lock().unwrap().buffers.len(), 1);
    }

    #[test]
    fn slices_end_on_other_threads_too() {
        let pool = Pool::new(1 << 20);
        let whole = pool.lend(filled(&pool, 8_000, 3));
        let threads: Vec<_> = (0..4)
            .map(|part| {
                let slice = whole.slice(part * 2_000..(part + 1) * 2_000);
                std::thread::spawn(move || slice.iter().map(|byte| u64::from(*byte)).sum::<u64>())
            })
            .collect();
        drop(whole);
        let sums: Vec<u64> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(sums, [6_000; 4]);
        assert_eq!(pool.spare.lock().unwrap().buffers.len(), 1);
    }

    #[test]
    #[cfg_attr(miri, ignore = "no more of the memory model than the others, and takes minutes")]
    fn a_short_body_does_not_hold_the_memory_of_a_long_one() {
        let pool = Pool::new(1 << 20);
        let long = filled(&pool, 200_000, 1);
        let at = long.as_ptr();
        drop(pool.lend(long));
        let short = filled(&pool, 10_000, 2);
        assert_ne!(short.as_ptr(), at);
        assert!(short.capacity() <= 2 * 12_288);
        // The smallest that fits is taken.
        drop(pool.lend(filled(&pool, 230_000, 3)));
        let next = filled(&pool, 190_000, 4);
        assert_eq!(next.as_ptr(), at);
    }

    #[test]
    fn what_is_kept_has_a_limit_and_the_oldest_goes_first() {
        let pool = Pool::new(40_000);
        let bodies: Vec<Bytes> = (0..5).map(|byte| pool.lend(filled(&pool, 12_000, byte))).collect();
        let addresses: Vec<_> = bodies.iter().map(|body| body.as_ptr()).collect();
        bodies.into_iter().for_each(drop);
        let spare = pool.spare.lock().unwrap();
        assert!(spare.bytes <= 40_000);
        assert_eq!(spare.bytes, spare.buffers.iter().map(Vec::capacity).sum::<usize>());
        assert!(spare.buffers.iter().map(std::vec::Vec::as_ptr).eq(addresses[2..].iter().copied()));
        drop(spare);
        drop(pool.lend(filled(&pool, 50_000, 1)));
        assert_eq!(pool.spare.lock().unwrap().buffers.len(), 3);
    }

    #[test]
    fn bytes_outlive_the_pool() {
        let pool = Pool::new(1 << 20);
        let body = pool.lend(filled(&pool, 5_000, 8));
        drop(pool);
        assert_eq!(&body[..], [8; 5_000]);
    }

    #[test]
    fn capacities_are_shared_by_similar_lengths_and_never_overflow() {
        for length in [1, PAGE, 10_000, 2_050_000, 1 << 30] {
            assert!((length..=length + (length / 4).max(PAGE)).contains(&rounded(length)), "{length}");
        }
        assert_eq!(rounded(2_050_000), rounded(2_010_000));
        assert_eq!(rounded(usize::MAX), usize::MAX);
        assert!(Pool::new(0).take(usize::MAX).is_none());
    }
}
