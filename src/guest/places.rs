//! Places in arrays, ways between the arrays of ranks, and bytes that are aligned for any item.

use std::mem;

use super::buffers::reserve;
use super::status::Result;
use crate::topology::RankId;

/// Places in an array, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Places {
    Run { first: usize, count: usize },
    List(Vec<usize>),
}

impl Places {
    /// The places of each rank that stands in a list, by rank.
    pub fn by_rank(ranks: impl Iterator<Item = u32>) -> Vec<(RankId, Places)> {
        let mut found: std::collections::BTreeMap<u32, Vec<usize>> = std::collections::BTreeMap::new();
        for (place, rank) in ranks.enumerate() {
            found.entry(rank).or_default().push(place);
        }
        found.into_iter().map(|(rank, list)| (RankId::new(rank), Places::of(list))).collect()
    }

    fn of(list: Vec<usize>) -> Places {
        let (first, count) = (list.first().copied().unwrap_or(0), list.len());
        if list.last().is_none_or(|last| *last == first + count - 1) { Places::Run { first, count } } else { Places::List(list) }
    }

    pub fn len(&self) -> usize {
        match self {
            Places::Run { count, .. } => *count,
            Places::List(list) => list.len(),
        }
    }

    pub fn at(&self, number: usize) -> usize {
        match self {
            Places::Run { first, .. } => first + number,
            Places::List(list) => list[number],
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).map(|number| self.at(number))
    }
}

/// A way from the arrays of all ranks to others: what goes to which rank, and where what comes from which rank goes.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub leaving: Vec<(RankId, Places)>,
    pub arriving: Vec<(RankId, Places)>,
    pub items: usize,
    pub arrivals: usize,
}

/// Bytes at an address that is a multiple of 16.
pub(super) struct Aligned(Vec<u128>);

impl Aligned {
    pub fn new() -> Aligned {
        Aligned(Vec::new())
    }

    /// A copy of the bytes, at such an address.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn copy(&mut self, bytes: &[u8]) -> Result<&[u8]> {
        let words = bytes.chunks(16).map(|chunk| {
            let mut word = [0; 16];
            word[..chunk.len()].copy_from_slice(chunk);
            u128::from_ne_bytes(word)
        });
        self.0.clear();
        reserve(&mut self.0, bytes.len().div_ceil(16), "an item")?;
        self.0.extend(words);
        if self.0.is_empty() {
            self.0.push(0);
        }
        Ok(as_bytes(&self.0, bytes.len()))
    }
}

#[allow(unsafe_code, reason = "a view of plain numbers as bytes")]
fn as_bytes(words: &[u128], length: usize) -> &[u8] {
    let length = length.min(mem::size_of_val(words));
    // SAFETY: the words are valid for `length` bytes, and any byte of a number may be read.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), length) }
}

/// Callback for each arriving item: its owner or the rank that computed it, its index, its bytes. A result other than 0 refuses the item.
pub type Receive<'a> = &'a mut dyn FnMut(u32, u64, &[u8]) -> i32;
