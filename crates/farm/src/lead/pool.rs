//! The tasks that have been read and not been dealt: ready ones, and ones that wait for others.

use std::collections::{BTreeMap, HashMap};

use super::packing;
use crate::task::Task;

/// A set of numbers of tasks, a bit each.
#[derive(Debug, Default)]
pub struct Numbers(Vec<u64>);

impl Numbers {
    /// Adds a number; false if it was there.
    pub fn insert(&mut self, seq: u64) -> bool {
        let (word, bit) = ((seq / 64) as usize, 1 << (seq % 64));
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }

    pub fn remove(&mut self, seq: u64) {
        if let Some(word) = self.0.get_mut((seq / 64) as usize) {
            *word &= !(1 << (seq % 64));
        }
    }

    pub fn contains(&self, seq: u64) -> bool {
        self.0.get((seq / 64) as usize).is_some_and(|word| word & (1 << (seq % 64)) != 0)
    }

    pub fn len(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
}

/// A task with the number of attempts that it had in earlier jobs.
pub type Ready = (Task, u32);

/// State of a task that was added.
#[derive(Debug, PartialEq)]
pub enum Added {
    Kept,
    /// It can never run, because a task that it comes after has failed.
    Never(Task),
    /// A task that it comes after is left for another job.
    Left(Task),
}

/// A task's place among those that are ready.
pub type Place = (std::cmp::Reverse<u64>, u64);

/// Tasks that were read and are not dealt.
#[derive(Debug, Default)]
pub struct Pool {
    /// Estimates do not count: the order is that of the list.
    by_list: bool,
    /// The longest first, then tasks without an estimate, in the order of the list.
    ready: BTreeMap<Place, Ready>,
    bytes: usize,
    /// Tasks that wait, each with the number of those it waits for.
    waiting: BTreeMap<u64, (Ready, u64)>,
    /// The tasks that wait for a task.
    dependents: HashMap<u64, Vec<u64>>,
    succeeded: Numbers,
    failed: Numbers,
    left: Numbers,
}

impl Pool {
    /// A pool whose tasks are ready in the order of the list, whatever their cost.
    pub fn by_list() -> Pool {
        Pool { by_list: true, ..Pool::default() }
    }

    /// Adds a task. One that cannot run in this job is given back.
    pub fn add(&mut self, ready: Ready) -> Added {
        let task = &ready.0;
        let before = || task.after.iter().flat_map(|(first, last)| *first..=*last);
        if before().any(|seq| self.failed.contains(seq)) {
            return Added::Never(ready.0);
        }
        if before().any(|seq| self.left.contains(seq)) {
            return Added::Left(ready.0);
        }
        let missing: Vec<u64> = before().filter(|seq| !self.succeeded.contains(*seq)).collect();
        if missing.is_empty() {
            self.make_ready(ready);
            return Added::Kept;
        }
        let seq = task.seq;
        missing.iter().for_each(|before| self.dependents.entry(*before).or_default().push(seq));
        self.waiting.insert(seq, (ready, missing.len() as u64));
        Added::Kept
    }

    fn make_ready(&mut self, ready: Ready) {
        let nanoseconds = ready.0.cost.filter(|_| !self.by_list).map_or(0, |seconds| (seconds * 1e9) as u64);
        self.bytes += ready.0.text.len();
        self.ready.insert((std::cmp::Reverse(nanoseconds), ready.0.seq), ready);
    }

    /// A task has ended. The tasks that can never run any more are returned; each of them has failed itself by then.
    pub fn ended(&mut self, seq: u64, success: bool) -> Vec<Task> {
        let mut skipped = Vec::new();
        let mut ended = vec![(seq, success)];
        while let Some((seq, success)) = ended.pop() {
            if success {
                self.succeeded.insert(seq)
            } else {
                self.failed.insert(seq)
            };
            for dependent in self.dependents.remove(&seq).unwrap_or_default() {
                let Some((_, missing)) = self.waiting.get_mut(&dependent) else { continue };
                *missing -= 1;
                let is_ready = success && *missing == 0;
                if success && !is_ready {
                    continue;
                }
                let Some((ready, _)) = self.waiting.remove(&dependent) else { continue };
                match is_ready {
                    true => self.make_ready(ready),
                    false => {
                        ended.push((dependent, false));
                        skipped.push(ready.0);
                    }
                }
            }
        }
        skipped
    }

    /// A task is left for another job. Returns the tasks that are left with it, since they come after it.
    pub fn leave(&mut self, seq: u64) -> Vec<u64> {
        let (mut left, mut next) = (Vec::new(), vec![seq]);
        while let Some(seq) = next.pop() {
            self.left.insert(seq);
            let after = self.dependents.remove(&seq).unwrap_or_default();
            let taken = after.into_iter().filter(|dependent| self.waiting.remove(dependent).is_some());
            let from = left.len();
            left.extend(taken);
            next.extend(&left[from..]);
        }
        left
    }

    /// Takes up to `most` tasks, the longest first, of which `fits` holds.
    pub fn take(&mut self, most: u64, fits: impl Fn(&Task) -> bool) -> Vec<Ready> {
        let mut keys = Vec::new();
        for (key, (task, _)) in &self.ready {
            if keys.len() as u64 == most {
                break;
            }
            if fits(task) {
                keys.push(*key);
            }
        }
        let taken: Vec<Ready> = keys.iter().filter_map(|key| self.ready.remove(key)).collect();
        self.bytes -= taken.iter().map(|(task, _)| task.text.len()).sum::<usize>();
        taken
    }

    /// The first `most` tasks of which `fits` holds, with their places.
    pub fn first(&self, most: usize, fits: impl Fn(&Task) -> bool) -> Vec<(Place, &Task)> {
        self.ready.iter().map(|(place, (task, _))| (*place, task)).filter(|(_, task)| fits(task)).take(most).collect()
    }

    /// Numbers of the tasks that are ready.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        self.ready.keys().map(|(_, seq)| *seq)
    }

    /// Takes the task at a place.
    pub fn take_at(&mut self, place: Place) -> Option<Ready> {
        let ready = self.ready.remove(&place)?;
        self.bytes -= ready.0.text.len();
        Some(ready)
    }

    /// Takes the next task of which `fits` holds, where the remaining time does not suffice for all: one of those that together fill it best.
    pub fn take_packed(&mut self, left: f64, fits: impl Fn(&Task) -> bool) -> Option<Ready> {
        let fitting = || self.ready.iter().filter(|(_, (task, _))| fits(task));
        let step = fitting().count().div_ceil(packing::CANDIDATES).max(1);
        let candidates: Vec<_> = fitting().step_by(step).map(|(key, (task, _))| (*key, task.least_time())).collect();
        let lengths: Vec<f64> = candidates.iter().map(|(_, length)| *length).collect();
        let (key, _) = candidates[packing::best_first(&lengths, left)?];
        self.take_at(key)
    }

    /// Takes all tasks that have not been dealt.
    pub fn take_all(&mut self) -> u64 {
        let all = self.ready.len() + self.waiting.len();
        *self = Pool {
            by_list: self.by_list,
            succeeded: std::mem::take(&mut self.succeeded),
            failed: std::mem::take(&mut self.failed),
            left: std::mem::take(&mut self.left),
            ..Pool::default()
        };
        all as u64
    }

    pub fn ready(&self) -> u64 {
        self.ready.len() as u64
    }

    pub fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Bytes of the commands that are ready.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.waiting.is_empty()
    }

    /// Estimated seconds of all that is ready.
    pub fn estimate(&self) -> f64 {
        self.ready.values().filter_map(|(task, _)| task.cost).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(seq: u64, cost: Option<f64>, after: &[(u64, u64)]) -> Ready {
        (Task { seq, cost, after: after.to_vec(), ..Task::default() }, 0)
    }

    fn taken(pool: &mut Pool, most: u64) -> Vec<u64> {
        pool.take(most, |_| true).iter().map(|(task, _)| task.seq).collect()
    }

    #[test]
    fn the_order_of_the_list_is_kept_if_asked_for() {
        let mut pool = Pool::by_list();
        for (seq, cost) in [(1, None), (2, Some(1.0)), (3, Some(9.0))] {
            pool.add(task(seq, cost, &[]));
        }
        let places: Vec<Place> = pool.first(2, |task| task.seq != 1).into_iter().map(|(place, _)| place).collect();
        assert_eq!(pool.take_at(places[0]).unwrap().0.seq, 2);
        assert_eq!(taken(&mut pool, 3), [1, 3]);
    }

    #[test]
    fn the_longest_comes_first() {
        let mut pool = Pool::default();
        for (seq, cost) in [(1, None), (2, Some(1.0)), (3, Some(9.0)), (4, None), (5, Some(9.0))] {
            assert_eq!(pool.add(task(seq, cost, &[])), Added::Kept);
        }
        assert_eq!(taken(&mut pool, 3), [3, 5, 2]);
        let short = pool.take(5, |task| task.seq != 1);
        assert_eq!((short.len(), taken(&mut pool, 5), pool.is_empty()), (1, vec![1], true));
    }

    #[test]
    fn tasks_wait_for_those_they_come_after() {
        let mut pool = Pool::default();
        for ready in [task(1, None, &[]), task(2, None, &[(1, 1)]), task(3, None, &[(1, 2)]), task(4, None, &[])] {
            assert_eq!(pool.add(ready), Added::Kept);
        }
        assert_eq!(taken(&mut pool, 9), [1, 4]);
        assert!(pool.ended(1, true).is_empty());
        assert_eq!(taken(&mut pool, 9), [2]);
        assert!(pool.ended(2, true).is_empty());
        assert_eq!(taken(&mut pool, 9), [3]);
    }

    #[test]
    fn what_comes_after_a_failure_is_skipped() {
        let mut pool = Pool::default();
        for ready in [task(2, None, &[(1, 1)]), task(3, None, &[(2, 2)]), task(4, None, &[(1, 1), (3, 3)])] {
            assert_eq!(pool.add(ready), Added::Kept);
        }
        let mut skipped: Vec<u64> = pool.ended(1, false).iter().map(|task| task.seq).collect();
        skipped.sort_unstable();
        assert_eq!((skipped, pool.is_empty()), (vec![2, 3, 4], true));
        assert!(matches!(pool.add(task(5, None, &[(3, 4)])), Added::Never(_)), "one that is read later is skipped, too");
    }

    #[test]
    fn what_comes_after_a_task_that_is_left_is_left() {
        let mut pool = Pool::default();
        for ready in [task(2, None, &[(1, 1)]), task(3, None, &[(1, 2)]), task(4, None, &[(3, 3)]), task(5, None, &[(9, 9)])] {
            assert_eq!(pool.add(ready), Added::Kept);
        }
        let mut left = pool.leave(1);
        left.sort_unstable();
        assert_eq!((left, pool.waiting()), (vec![2, 3, 4], 1));
        assert!(matches!(pool.add(task(6, None, &[(4, 5)])), Added::Left(_)), "one that is read later is left, too");
        assert!(pool.ended(9, false).iter().map(|task| task.seq).eq([5]));
        assert!(matches!(pool.add(task(7, None, &[(4, 5)])), Added::Never(_)), "a failure counts more: it can never run");
    }

    #[test]
    fn numbers_are_counted_once() {
        let mut numbers = Numbers::default();
        assert!(numbers.insert(7) && numbers.insert(700) && !numbers.insert(7));
        assert!(numbers.contains(700) && !numbers.contains(8) && numbers.len() == 2);
        [7, 9000].iter().for_each(|seq| numbers.remove(*seq));
        assert!(!numbers.contains(7) && numbers.len() == 1 && numbers.insert(7));
    }
}
