//! Numbers that all ranks of one host read and change in memory that they share, whatever MPI does meanwhile.
//!
//! One-sided calls of MPI need the target's help in some MPIs, also within a host. Where all ranks are on one host a file in memory is mapped by all
//! of them instead: rank 0 makes it, the others open it by its name, and then the name goes.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Folder for files in memory.
const FOLDER: &str = "/dev/shm";

/// The longest name.
pub(super) const NAME: usize = 64;

/// Numbers, mapped.
pub(super) struct Memory {
    first: NonNull<AtomicU64>,
    /// Length in numbers, including the first, which identifies the owner.
    length: usize,
}

impl Memory {
    /// Makes this many numbers, all 0, and the name under which others of this host find them. `None` if this host has no such memory.
    pub fn create(length: usize) -> Option<(Memory, String)> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
        let mark = now ^ (u64::from(std::process::id()) << 40);
        let name = format!("equipoise-{}-{mark:x}", std::process::id());
        let path = Path::new(FOLDER).join(&name);
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path).ok()?;
        let made = file.set_len(8 * (length as u64 + 1)).ok().and_then(|()| Memory::map(&file, length + 1));
        let Some(memory) = made else {
            remove(&name);
            return None;
        };
        memory.number(0).store(mark, Ordering::SeqCst);
        Some((memory, name))
    }

    /// The numbers that another rank of this host has made under this name.
    pub fn open(name: &str, length: usize) -> Option<Memory> {
        let file = OpenOptions::new().read(true).write(true).open(Path::new(FOLDER).join(name)).ok()?;
        if file.metadata().ok()?.len() != 8 * (length as u64 + 1) {
            return None;
        }
        let memory = Memory::map(&file, length + 1)?;
        let mark = memory.number(0).load(Ordering::SeqCst);
        name.ends_with(&format!("-{mark:x}")).then_some(memory)
    }

    fn map(file: &File, length: usize) -> Option<Memory> {
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the address, so nothing that is there is replaced; the file has this length and is never shortened, since only
        // these ranks know its name.
        let address = unsafe { mmap(std::ptr::null_mut(), 8 * length, flags, MapFlags::SHARED, file, 0) }.ok()?;
        Some(Memory { first: NonNull::new(address.cast())?, length })
    }

    fn number(&self, at: usize) -> &AtomicU64 {
        assert!(at < self.length, "there are {} shared numbers, and no number {at}", self.length);
        // SAFETY: within the mapping, which is there as long as `self`, is aligned to a page, and is only ever touched by atomic operations.
        unsafe { self.first.add(at).as_ref() }
    }

    /// Adds to a number, and returns its previous value.
    pub fn add(&self, at: usize, value: u64) -> u64 {
        self.number(at + 1).fetch_add(value, Ordering::SeqCst)
    }

    /// Sets a number.
    pub fn set(&self, at: usize, value: u64) {
        self.number(at + 1).store(value, Ordering::SeqCst);
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping that `map` made, of this length; no reference into it is left. If it fails, it stays until the process ends.
        _ = unsafe { munmap(self.first.as_ptr().cast(), 8 * self.length) };
    }
}

/// Removes a name; processes that have opened the numbers keep them.
pub(super) fn remove(name: &str) {
    // A name that is gone already is as good.
    _ = std::fs::remove_file(Path::new(FOLDER).join(name));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_are_the_same_numbers() {
        let Some((mine, name)) = Memory::create(3) else { return };
        let other = Memory::open(&name, 3).unwrap();
        assert!(name.len() <= NAME && Memory::open(&name, 4).is_none());
        remove(&name);
        assert!(Memory::open(&name, 3).is_none());
        assert_eq!((mine.add(2, 5), other.add(2, 1), mine.add(2, 0), other.add(0, 0)), (0, 5, 6, 0));
        other.set(2, 9);
        drop(other);
        assert_eq!(mine.add(2, 1), 9);
    }
}
