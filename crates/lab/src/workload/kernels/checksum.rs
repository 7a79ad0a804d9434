//! The input's BLAKE3 hash, the same as `b3sum` prints, however many ranks there are.
//!
//! BLAKE3 is a tree of hashes over chunks of 1 KiB in which every left subtree has a power of two of them. So groups of 2^k chunks are subtrees,
//! which can be hashed apart and combined; shares are cut between groups.

use blake3::hazmat::{ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use blake3::{Hash, Hasher};

use crate::divisible::spread::{Kernel, Range};
use equipoise::error::{Error, Result};
use equipoise::node::Worker;

/// Smaller groups would not let the processor hash many chunks at once.
const SMALLEST: u64 = 16 << 10;
const MOST_GROUPS: u64 = 1 << 16;

/// The length of a group, in bytes, for an input of this length: a power of two.
pub fn group(length: u64) -> u64 {
    let mut group = SMALLEST;
    while length / group > MOST_GROUPS {
        group *= 2;
    }
    group
}

/// Hashes a share group by group.
pub struct Checksum {
    at: u64,
    group: u64,
    length: u64,
    hasher: Option<Hasher>,
    hashes: Vec<u8>,
}

impl Checksum {
    pub fn new(range: Range, length: u64) -> Checksum {
        Checksum { at: range.start, group: group(length), length, hasher: None, hashes: Vec::new() }
    }

    fn end_group(&mut self) {
        let Some(hasher) = self.hasher.take() else { return };
        // A group that is the whole input is the root of the tree.
        let hash = if self.length <= self.group { *hasher.finalize().as_bytes() } else { hasher.finalize_non_root() };
        self.hashes.extend_from_slice(&hash);
    }
}

impl Kernel for Checksum {
    fn eat(&mut self, mut bytes: &[u8], _: &mut dyn Worker) -> Result<()> {
        while !bytes.is_empty() {
            let begin = self.at - self.at % self.group;
            let hasher = self.hasher.get_or_insert_with(|| {
                let mut hasher = Hasher::new();
                hasher.set_input_offset(begin);
                hasher
            });
            let room = usize::try_from(begin + self.group - self.at).unwrap_or(usize::MAX).min(bytes.len());
            hasher.update(&bytes[..room]);
            self.at += room as u64;
            bytes = &bytes[room..];
            if self.at.is_multiple_of(self.group) {
                self.end_group();
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut dyn Worker) -> Result<Vec<u8>> {
        if self.length == 0 {
            self.hasher = Some(Hasher::new());
        }
        self.end_group();
        Ok(std::mem::take(&mut self.hashes))
    }
}

/// The hash of the whole, in hexadecimal digits, from those of the groups in order.
///
/// # Errors
/// If there are no whole hashes.
pub fn combined<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Result<String> {
    let flat: Vec<u8> = parts.flatten().copied().collect();
    let (groups, rest) = flat.as_chunks::<32>();
    match groups {
        _ if !rest.is_empty() => Err(Error::Failed("a share's hash is not whole".into())),
        [] => Err(Error::Failed("no share has left a hash".into())),
        [root] => Ok(Hash::from_bytes(*root).to_hex().to_string()),
        _ => {
            let (left, right) = groups.split_at(left_groups(groups.len()));
            Ok(merge_subtrees_root(&subtree(left), &subtree(right), Mode::Hash).to_hex().to_string())
        }
    }
}

fn subtree(groups: &[ChainingValue]) -> ChainingValue {
    match groups {
        [group] => *group,
        _ => {
            let (left, right) = groups.split_at(left_groups(groups.len()));
            merge_subtrees_non_root(&subtree(left), &subtree(right), Mode::Hash)
        }
    }
}

/// The largest power of two below `groups`, which are at least two.
fn left_groups(groups: usize) -> usize {
    groups.next_power_of_two() / 2
}
