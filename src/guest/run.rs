//! State of one rank in a run of tasks: its queue, requests from other ranks, and termination detection.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    /// Estimate of its work; 0: unknown.
    pub cost: f64,
    pub body: Bytes,
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

/// Whether no more tasks begin.
#[derive(Default)]
pub(super) struct Stop {
    /// The other ranks know it, or are told.
    pub is_known: bool,
    /// Worker threads set it, and look at it before each task.
    pub halted: Arc<AtomicBool>,
}

/// A run that is going on.
pub(super) struct Run {
    pub number: u64,
    pub rank: RankId,
    pub ranks: u32,
    /// Tasks that wait, ordered by priority and age; the last comes first.
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
    pub stop: Stop,
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
            stop: Stop::default(),
            done: false,
            failure: None,
        }
    }

    pub fn queue_up(&mut self, item: Item) {
        if !self.stop.is_known {
            self.age += 1;
            self.queue.insert((item.priority, self.age), item);
        }
    }

    /// Begins no more tasks. Returns false if that was known.
    pub fn halt(&mut self) -> bool {
        self.stop.halted.store(true, Ordering::Relaxed);
        self.queue.clear();
        !std::mem::replace(&mut self.stop.is_known, true)
    }

    pub fn pop(&mut self) -> Option<Item> {
        let (_, item) = self.queue.pop_last()?;
        self.running += 1;
        Some(item)
    }

    /// Tasks for another rank: the oldest tasks of the highest priority, with half of the work of these.
    pub fn spare(&mut self) -> Vec<Item> {
        let Some((&(priority, _), _)) = self.queue.last_key_value() else { return Vec::new() };
        // The last one stays with a rank that has nothing else to do.
        if self.running == 0 && self.queue.len() == 1 {
            return Vec::new();
        }
        let (keys, costs): (Vec<(i32, u64)>, Vec<f64>) = self.queue.range((priority, 0)..).map(|(key, item)| (*key, item.cost)).unzip();
        let count = half(&costs);
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

/// Number of tasks, from the first, with about half of the work: at least one, and not all of several. A task of unknown cost counts as the mean
/// of the others.
fn half(costs: &[f64]) -> usize {
    // Sums of parts of the largest are finite.
    let largest = costs.iter().copied().fold(0.0, f64::max);
    let known: Vec<f64> = costs.iter().filter(|cost| **cost > 0.0).map(|cost| cost / largest).collect();
    let mean = if known.is_empty() { 1.0 } else { known.iter().sum::<f64>() / known.len() as f64 };
    let work = |cost: &f64| if *cost > 0.0 { cost / largest } else { mean };
    let all: f64 = costs.iter().map(work).sum();
    let (mut given, mut number) = (0.0, 0);
    for cost in costs {
        let with = given + work(cost);
        // Nearer to the half without it.
        if number > 0 && given + with > all {
            break;
        }
        (given, number) = (with, number + 1);
    }
    number.min(costs.len().saturating_sub(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_work_is_given() {
        for (costs, expected) in [
            (vec![0.0], 1),
            (vec![0.0; 2], 1),
            (vec![0.0; 5], 3),
            (vec![2.5; 4], 2),
            (vec![100.0, 1.0, 1.0, 1.0], 1),
            (vec![1.0, 1.0, 1.0, 100.0], 3),
            (vec![1.0, 2.0, 3.0, 4.0], 3),
            // Unknown ones count as 3.
            (vec![0.0, 0.0, 3.0, 3.0], 2),
            (vec![1e308, 1e308, 1e308, 1e308], 2),
            (vec![5e-324, 5e-324, 5e-324], 2),
        ] {
            assert_eq!(half(&costs), expected, "{costs:?}");
        }
        let mut run = Run::new(1, RankId::FIRST, 2, 7, true);
        let root = Root { rank: RankId::FIRST, index: 0 };
        [9.0, 1.0, 1.0, 1.0].into_iter().for_each(|cost| run.queue_up(Item { root, priority: 0, cost, body: Bytes::new() }));
        assert_eq!(run.spare().iter().map(|item| item.cost).collect::<Vec<_>>(), [9.0]);
    }

    #[test]
    fn nothing_begins_after_a_stop() {
        let mut run = Run::new(1, RankId::FIRST, 2, 7, true);
        let item = Item { root: Root { rank: RankId::FIRST, index: 0 }, priority: 0, cost: 0.0, body: Bytes::new() };
        run.queue_up(item.clone());
        assert!(run.halt() && !run.halt() && run.stop.halted.load(Ordering::Relaxed));
        run.queue_up(item);
        assert!(run.pop().is_none());
    }

    #[test]
    fn the_highest_priority_is_taken_and_given_first() {
        let mut run = Run::new(1, RankId::FIRST, 4, 7, true);
        let root = Root { rank: RankId::FIRST, index: 0 };
        for (priority, name) in [(0, 1), (5, 2), (5, 3), (5, 4), (-1, 5)] {
            run.queue_up(Item { root, priority, cost: 0.0, body: vec![name].into() });
        }
        assert_eq!(run.pop().unwrap().body, [4][..]);
        assert_eq!(run.spare().iter().map(|item| item.body[0]).collect::<Vec<_>>(), [2]);
        assert_eq!(run.pop().unwrap().body, [3][..]);
        assert_eq!(run.pop().unwrap().body, [1][..]);
        assert!((0..100).all(|_| run.victim() != RankId::FIRST && run.victim() < RankId::new(4)));
    }
}
