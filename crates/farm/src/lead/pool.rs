//! The tasks that have been read and not been dealt: ready ones, and ones that wait for others.

use std::collections::{BTreeMap, HashMap};

use super::packing::{self, Sample};
use crate::task::{Needs, Task};

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

/// Decision on a task that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Take,
    Pass,
    /// This one is not taken, nor is any behind it.
    Stop,
}

/// Ready tasks with the same needs.
#[derive(Clone, Copy, Debug, Default)]
struct Alike {
    tasks: u64,
    /// Their estimates, in nanoseconds.
    estimate: u128,
}

/// Tasks that were read and are not dealt.
#[derive(Debug, Default)]
pub struct Pool {
    /// Estimates do not count: the order is that of the list.
    by_list: bool,
    /// The longest first, then tasks without an estimate, in the order of the list.
    ready: BTreeMap<Place, Ready>,
    /// The same, counted by what they need.
    by_needs: BTreeMap<Needs, Alike>,
    sample: Sample<Place>,
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
        self.bytes += task.text.len();
        self.waiting.insert(seq, (ready, missing.len() as u64));
        Added::Kept
    }

    fn make_ready(&mut self, ready: Ready) {
        let nanoseconds = nanoseconds(&ready.0);
        self.bytes += ready.0.text.len();
        let alike = self.by_needs.entry(ready.0.needs).or_default();
        (alike.tasks, alike.estimate) = (alike.tasks + 1, alike.estimate + u128::from(nanoseconds));
        self.sample.changed();
        let place = if self.by_list { 0 } else { nanoseconds };
        self.ready.insert((std::cmp::Reverse(place), ready.0.seq), ready);
    }

    /// Takes a task that waits.
    fn take_waiting(&mut self, seq: u64) -> Option<Ready> {
        let (ready, _) = self.waiting.remove(&seq)?;
        self.bytes -= ready.0.text.len();
        Some(ready)
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
                let Some(ready) = self.take_waiting(dependent) else { continue };
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
            let from = left.len();
            left.extend(after.into_iter().filter(|dependent| self.take_waiting(*dependent).is_some()));
            next.extend(&left[from..]);
        }
        left
    }

    /// Takes up to `most` tasks, the longest first, of which `fits` holds.
    pub fn take(&mut self, most: u64, fits: impl Fn(&Task) -> bool) -> Vec<Ready> {
        self.choose(most, |task| if fits(task) { Choice::Take } else { Choice::Pass })
    }

    /// Takes up to `most` of the tasks that are chosen, which are looked at in their order, the longest first.
    pub fn choose(&mut self, most: u64, mut choice: impl FnMut(&Task) -> Choice) -> Vec<Ready> {
        let mut places = Vec::new();
        for (place, (task, _)) in &self.ready {
            if places.len() as u64 == most {
                break;
            }
            match choice(task) {
                Choice::Take => places.push(*place),
                Choice::Pass => {}
                Choice::Stop => break,
            }
        }
        places.into_iter().filter_map(|place| self.take_at(place)).collect()
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
        let needs = ready.0.needs;
        if let Some(alike) = self.by_needs.get_mut(&needs) {
            (alike.tasks, alike.estimate) = (alike.tasks - 1, alike.estimate - u128::from(nanoseconds(&ready.0)));
            if alike.tasks == 0 {
                self.by_needs.remove(&needs);
            }
        }
        self.sample.changed();
        Some(ready)
    }

    /// Takes the next task of which `fits` holds, where the remaining time does not suffice for all: one of those that together fill it best.
    pub fn take_packed(&mut self, left: f64, fits: impl Fn(&Task) -> bool) -> Option<Ready> {
        let mut sample = std::mem::take(&mut self.sample);
        let taken = self.place_packed(&mut sample, left, fits).and_then(|place| self.take_at(place));
        sample.changed();
        self.sample = sample;
        taken
    }

    fn place_packed(&self, sample: &mut Sample<Place>, left: f64, fits: impl Fn(&Task) -> bool) -> Option<Place> {
        let fitting = |places: &[Place]| {
            let tasks = places.iter().filter_map(|place| Some((*place, &self.ready.get(place)?.0)));
            tasks.filter(|(_, task)| fits(task)).map(|(place, task)| (place, task.least_time())).collect::<Vec<_>>()
        };
        let mut candidates = fitting(sample.of(&self.ready));
        if candidates.len() < packing::FEW && self.ready.len() > packing::CANDIDATES {
            // Only few of all fit here: it takes another look at all to find them.
            let all: Vec<Place> = self.ready.iter().filter(|(_, (task, _))| fits(task)).map(|(place, _)| *place).collect();
            candidates = fitting(&packing::thinned(&all));
        }
        let lengths: Vec<f64> = candidates.iter().map(|(_, length)| *length).collect();
        Some(candidates[packing::best_first(&lengths, left)?].0)
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

    /// Bytes of the commands that are ready or wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.waiting.is_empty()
    }

    /// Estimated seconds of each task, where they are known.
    pub fn costs(&self) -> impl Iterator<Item = Option<f64>> {
        let waiting = self.waiting.values().map(|((task, _), _)| task.cost);
        self.ready.values().map(|(task, _)| task.cost).chain(waiting)
    }

    /// Needs of the ready tasks, each with the estimated seconds of those that have them.
    pub fn needs(&self) -> impl Iterator<Item = (Needs, f64)> {
        self.by_needs.iter().map(|(needs, alike)| (*needs, alike.estimate as f64 / 1e9))
    }

    /// The least that a ready task may need, of each resource; `None` if none is ready.
    pub fn least_needs(&self) -> Option<Needs> {
        let least = |one: Needs, other: &Needs| Needs {
            cpus: one.cpus.min(other.cpus),
            gpus: one.gpus.min(other.gpus),
            mem: one.mem.min(other.mem),
        };
        let mut all = self.by_needs.keys();
        all.next().map(|first| all.fold(*first, least))
    }
}

fn nanoseconds(task: &Task) -> u64 {
    task.cost.map_or(0, |seconds| (seconds * 1e9) as u64)
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
    fn needs_and_estimates_are_those_of_the_ready_tasks() {
        let mut pool = Pool::default();
        assert_eq!(pool.least_needs(), None);
        for (seq, cpus, gpus, after) in [(1, 2, 1, 0), (2, 4, 0, 0), (3, 4, 0, 0), (4, 1, 0, 1)] {
            let after = if after > 0 { vec![(after, after)] } else { Vec::new() };
            let needs = Needs { cpus, gpus, mem: 5 };
            pool.add((Task { seq, cost: Some(1.5), needs, after, ..Task::default() }, 0));
        }
        let estimates = |pool: &Pool| {
            let mut all: Vec<_> = pool.needs().map(|(needs, estimate)| (needs.cpus, estimate)).collect();
            all.sort_by(|one, other| one.partial_cmp(other).unwrap());
            all
        };
        assert_eq!((estimates(&pool), pool.least_needs()), (vec![(2, 1.5), (4, 3.0)], Some(Needs { cpus: 2, gpus: 0, mem: 5 })));
        assert_eq!(taken(&mut pool, 2), [1, 2]);
        pool.ended(1, true);
        assert_eq!((estimates(&pool), pool.least_needs().map(|needs| needs.cpus)), (vec![(1, 1.5), (4, 1.5)], Some(1)));
        assert_eq!((pool.take_all(), pool.least_needs()), (2, None));
    }

    #[test]
    fn what_is_chosen_ends_where_it_is_to() {
        let mut pool = Pool::default();
        (1..=5).for_each(|seq| _ = pool.add(task(seq, None, &[])));
        let mut seen = Vec::new();
        let chosen = pool.choose(9, |task| {
            seen.push(task.seq);
            [Choice::Take, Choice::Pass, Choice::Take, Choice::Stop][seen.len() - 1]
        });
        assert_eq!((chosen.iter().map(|(task, _)| task.seq).collect::<Vec<_>>(), seen), (vec![1, 3], vec![1, 2, 3, 4]));
        assert_eq!(taken(&mut pool, 9), [2, 4, 5]);
    }

    /// Among many tasks the candidates are looked for only now and then, and the time is filled all the same.
    #[test]
    fn many_tasks_are_packed_from_a_sample() {
        let mut pool = Pool::default();
        (1..=5000).for_each(|seq| _ = pool.add(task(seq, Some(100.0 + (seq % 97) as f64), &[])));
        let (mut looks, mut left) = (0, 20_000.0);
        while let Some((task, _)) = pool.take_packed(left, |_| true) {
            looks += usize::from(pool.sample.is_new());
            left -= task.cost.unwrap();
        }
        assert!(left < 20.0 && (1..=8).contains(&looks), "{left} s left after {looks} looks");
        let last = pool.numbers().last();
        let found = pool.take_packed(200.0, |task| Some(task.seq) == last).map(|(task, _)| task.seq);
        assert_eq!(found, last, "the only one that fits is found");
        // Of few tasks all are candidates, at once.
        let mut few = Pool::default();
        [(1, 6.0), (2, 5.0)].iter().for_each(|(seq, cost)| _ = few.add(task(*seq, Some(*cost), &[])));
        assert_eq!(few.take_packed(4.0, |_| true), None);
        few.add(task(3, Some(4.0), &[]));
        assert_eq!(few.take_packed(4.0, |_| true).unwrap().0.seq, 3);
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
    fn bytes_are_those_of_all_that_is_not_dealt() {
        let mut pool = Pool::default();
        for (seq, text, after) in [(1, "a", 0), (2, "bb", 1), (3, "ccc", 9), (4, "dddd", 8), (5, "eeeee", 1)] {
            let after = if after > 0 { vec![(after, after)] } else { Vec::new() };
            assert_eq!(pool.add((Task { seq, after, text: text.into(), ..Task::default() }, 0)), Added::Kept);
        }
        assert_eq!(pool.bytes(), 15);
        assert_eq!(taken(&mut pool, 1), [1]);
        pool.ended(1, true);
        assert_eq!((pool.bytes(), pool.ready()), (14, 2));
        pool.ended(9, false);
        assert_eq!(pool.leave(8), [4]);
        assert_eq!((taken(&mut pool, 9), pool.bytes()), (vec![2, 5], 0));
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
