//! State of one rank in a run of tasks: its queue, requests from other ranks, and termination detection.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::letters::kinds;
use super::status::Failure;
use crate::topology::RankId;

/// Kinds of letters.
pub(super) const ASK: i32 = kinds::RUN;
pub(super) const TASKS: i32 = kinds::RUN + 1;
pub(super) const RESULT: i32 = kinds::RUN + 2;
pub(super) const STOP: i32 = kinds::RUN + 3;
pub(super) const TOKEN: i32 = kinds::RUN + 4;
pub(super) const DONE: i32 = kinds::RUN + 5;

/// Bytes of tasks that one rank gives another at a time, if there are several.
const GIFT: usize = 1 << 20;

/// Rank on which the root of a task was put, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Root {
    pub rank: RankId,
    pub index: u64,
}

/// A task that waits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Item {
    pub root: Root,
    pub priority: i32,
    pub body: Vec<u8>,
}

/// Messages with tasks or results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    pub sent: u64,
    pub received: u64,
}

/// Token that circulates until no task is left, for termination detection.
#[derive(Serialize, Deserialize)]
pub(super) struct Token {
    pub counts: Counts,
    /// Whether some rank was busy when the token passed.
    pub was_busy: bool,
}

/// Detection of the end by a token that goes around.
pub(super) struct Wave {
    /// The token, if it is here.
    pub token: Option<Token>,
    /// The counts that rank 0 read from the last one.
    pub last: Option<Counts>,
}

/// A run that is going on.
pub(super) struct Run {
    pub number: u64,
    pub rank: RankId,
    pub ranks: u32,
    /// By priority and age; the last comes first.
    pub queue: BTreeMap<(i32, u64), Item>,
    pub age: u64,
    pub counts: Counts,
    /// Results that were not handed over yet: the rank that computed it, the root's number, the bytes.
    pub results: Vec<(RankId, u64, Bytes)>,
    pub steals: bool,
    /// Rank that has been asked for tasks and has not answered.
    pub asked: Option<RankId>,
    pub dice: u64,
    pub wave: Wave,
    /// Tasks that run.
    pub running: usize,
    pub stopped: bool,
    pub done: bool,
    pub failure: Option<Failure>,
}

impl Run {
    pub fn new(number: u64, rank: RankId, ranks: u32, seed: u64, steals: bool) -> Run {
        Run {
            number,
            rank,
            ranks,
            queue: BTreeMap::new(),
            age: 0,
            counts: Counts::default(),
            results: Vec::new(),
            steals: steals && ranks > 1,
            asked: None,
            dice: seed ^ (u64::from(rank.get()) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
            wave: Wave { token: (rank == RankId::FIRST).then_some(Token { counts: Counts::default(), was_busy: true }), last: None },
            running: 0,
            stopped: false,
            done: false,
            failure: None,
        }
    }

    pub fn queue_up(&mut self, item: Item) {
        if !self.stopped {
            self.age += 1;
            self.queue.insert((item.priority, self.age), item);
        }
    }

    pub fn push(&mut self, root: Root, priority: i32, body: Vec<u8>) {
        self.queue_up(Item { root, priority, body });
    }

    pub fn pop(&mut self) -> Option<Item> {
        let (_, item) = self.queue.pop_last()?;
        self.running += 1;
        Some(item)
    }

    /// Tasks for another rank: the oldest half of the tasks of the highest priority.
    pub fn spare(&mut self) -> Vec<Item> {
        let Some((&(priority, _), _)) = self.queue.last_key_value() else { return Vec::new() };
        let keys: Vec<(i32, u64)> = self.queue.range((priority, 0)..).map(|(key, _)| *key).collect();
        // The last one stays with a rank that has nothing else to do.
        let keep = usize::from(self.running == 0 && self.queue.len() == 1);
        let count = keys.len().div_ceil(2).saturating_sub(keep);
        let mut bytes = 0;
        let mut gift = Vec::new();
        for key in keys.into_iter().take(count) {
            if bytes >= GIFT {
                break;
            }
            if let Some(item) = self.queue.remove(&key) {
                bytes += item.body.len();
                gift.push(item);
            }
        }
        gift
    }

    /// All tasks that wait, the oldest first.
    pub fn take_all(&mut self) -> Vec<Item> {
        let mut all: Vec<((i32, u64), Item)> = std::mem::take(&mut self.queue).into_iter().collect();
        all.sort_by_key(|((_, age), _)| *age);
        all.into_iter().map(|(_, item)| item).collect()
    }

    pub fn is_idle(&self) -> bool {
        self.running == 0 && self.queue.is_empty() && self.results.is_empty()
    }

    /// Another rank, at random (xorshift).
    pub fn victim(&mut self) -> RankId {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        let other = (self.dice % u64::from(self.ranks - 1)) as u32;
        RankId::new(other + u32::from(other >= self.rank.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_priority_is_taken_and_given_first() {
        let mut run = Run::new(1, RankId::FIRST, 4, 7, true);
        let root = Root { rank: RankId::FIRST, index: 0 };
        for (priority, name) in [(0, 1), (5, 2), (5, 3), (5, 4), (-1, 5)] {
            run.push(root, priority, vec![name]);
        }
        assert_eq!(run.pop().unwrap().body, [4]);
        assert_eq!(run.spare().iter().map(|item| item.body[0]).collect::<Vec<_>>(), [2]);
        assert_eq!(run.pop().unwrap().body, [3]);
        assert_eq!(run.pop().unwrap().body, [1]);
        assert!((0..100).all(|_| run.victim() != RankId::FIRST && run.victim() < RankId::new(4)));
    }
}
