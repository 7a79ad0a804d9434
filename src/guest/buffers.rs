//! Reusable buffers for moves: fresh memory costs more than the copy into it.

use super::status::{Failure, Result};
use crate::memory;

/// Makes room for further elements of `what`.
///
/// # Errors
/// If there is no memory for them.
pub(super) fn reserve<T>(buffer: &mut Vec<T>, more: usize, what: &str) -> Result<()> {
    match memory::reserve(buffer, more) {
        true => Ok(()),
        false => Err(Failure::memory(&format!("{} bytes of {what}", more.saturating_mul(size_of::<T>())))),
    }
}

/// Bytes that are kept at most.
const KEPT: usize = 64 << 20;

#[derive(Default)]
pub(super) struct Buffers(Vec<Vec<u8>>);

impl Buffers {
    /// A buffer of this length, with anything in it.
    pub fn take(&mut self, bytes: usize, what: &str) -> Result<Vec<u8>> {
        // The shortest that is long enough, or else the longest.
        let fit = |buffer: &Vec<u8>| (buffer.capacity() < bytes, buffer.capacity().abs_diff(bytes));
        let found = (0..self.0.len()).min_by_key(|at| fit(&self.0[*at]));
        let mut buffer = found.map(|at| self.0.swap_remove(at)).unwrap_or_default();
        let more = bytes.saturating_sub(buffer.len());
        reserve(&mut buffer, more, what)?;
        buffer.resize(bytes, 0);
        Ok(buffer)
    }

    /// Takes buffers back, the longest last, which go first if there are too many.
    pub fn give(&mut self, buffers: impl Iterator<Item = Vec<u8>>) {
        self.0.extend(buffers);
        self.0.sort_by_key(Vec::capacity);
        let mut kept = 0;
        self.0.retain(|buffer| {
            kept += buffer.capacity();
            kept <= KEPT
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_by_their_length() {
        let mut buffers = Buffers::default();
        let (short, long) = (buffers.take(10, "x").unwrap(), buffers.take(1000, "x").unwrap());
        let address = long.as_ptr();
        buffers.give([long, short].into_iter());
        let again = buffers.take(900, "x").unwrap();
        assert_eq!((again.len(), again.as_ptr()), (900, address));
        assert_eq!(buffers.take(5, "x").unwrap().len(), 5);
        buffers.give([again, vec![0; KEPT]].into_iter());
        assert_eq!(buffers.0.len(), 1);
    }
}
