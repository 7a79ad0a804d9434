//! Forecast of the finish times of workers, by the clock: estimates, corrected by measurements.

use std::collections::VecDeque;

use super::search::Assignment;
use crate::load::{Cost, Costs};

/// Completions after which a worker's estimates are corrected.
const ENOUGH: u64 = 3;

/// A worker, as the scheduler knows it.
#[derive(Clone, Debug, Default)]
struct Worker {
    /// Number of its ranks, if it is a host.
    width: usize,
    /// Tasks that it holds, with their estimates.
    held: VecDeque<(usize, Cost)>,
    /// Start time of the first of them, as far as one knows.
    began: Cost,
    /// Number of tasks that it has completed.
    completed: u64,
    estimated: u128,
    measured: u128,
}

impl Worker {
    fn is_dry(&self) -> bool {
        self.held.len() < self.width
    }

    /// Ratio of its tasks' actual to estimated times.
    fn factor(&self) -> f64 {
        match self.completed >= ENOUGH && self.estimated > 0 {
            true => (self.measured as f64 / self.estimated as f64).clamp(0.01, 100.0),
            false => 1.0,
        }
    }
}

/// All workers, in the order of their columns.
#[derive(Clone, Debug)]
pub struct Forecast {
    workers: Vec<Worker>,
}

impl Forecast {
    /// Workers that consist of this number of ranks each.
    pub fn new(widths: &[usize]) -> Forecast {
        Forecast { workers: widths.iter().map(|width| Worker { width: *width, ..Worker::default() }).collect() }
    }

    /// Workers that are ranks.
    pub fn of_ranks(workers: usize) -> Forecast {
        Forecast::new(&vec![1; workers])
    }

    /// Returns the time at which each worker will have finished all that it holds; `now` if it holds nothing.
    pub fn finish(&self, now: Cost) -> Vec<Cost> {
        let finish = |worker: &Worker| {
            let factor = worker.factor();
            let mut held = worker.held.iter().map(|(_, estimate)| (*estimate as f64 * factor) as Cost);
            // A task that takes longer than estimated is expected to take another half of its delay: a worker that is held up is not
            // written off.
            let late = |end: Cost| if end >= now { end } else { now.saturating_add((now - end) / 2) };
            let first = held.next().map_or(now, |first| late(worker.began.saturating_add(first)));
            held.fold(first, Cost::saturating_add)
        };
        self.workers.iter().map(finish).collect()
    }

    /// Returns the factor by which each worker's estimates are multiplied.
    pub fn factors(&self) -> Vec<f64> {
        self.workers.iter().map(Worker::factor).collect()
    }

    /// Number of tasks that a worker holds.
    pub fn held(&self, place: usize) -> usize {
        self.workers.get(place).map_or(0, |worker| worker.held.len())
    }

    /// Returns true if a worker, or a rank of it, has nothing to do.
    pub fn is_dry(&self, place: usize) -> bool {
        self.workers.get(place).is_some_and(Worker::is_dry)
    }

    /// Returns true if some worker, or a rank of it, has nothing to do.
    pub fn is_any_dry(&self) -> bool {
        self.workers.iter().any(Worker::is_dry)
    }

    /// Notes that a worker was given a task.
    pub fn grant(&mut self, place: usize, assignment: Assignment, estimates: &Costs, now: Cost) {
        self.give(place, assignment.task, estimates.of(assignment.task, assignment.worker), now);
    }

    /// Notes that a worker was given a task that is expected to take this long.
    pub fn give(&mut self, place: usize, task: usize, estimate: Cost, now: Cost) {
        let worker = &mut self.workers[place];
        if worker.held.is_empty() {
            worker.began = now;
        }
        worker.held.push_back((task, estimate));
    }

    /// Notes that a worker has completed this number of its first tasks, and their duration.
    pub fn completed_first(&mut self, place: usize, number: usize, took: Cost, now: Cost) {
        let first: Vec<usize> = self.workers[place].held.iter().take(number).map(|(task, _)| *task).collect();
        self.completed(place, &first, took, now);
    }

    /// Notes that a worker has completed tasks, and how long they took.
    pub fn completed(&mut self, place: usize, tasks: &[usize], took: Cost, now: Cost) {
        let Some(worker) = self.workers.get_mut(place) else { return };
        for task in tasks {
            if let Some(at) = worker.held.iter().position(|(held, _)| held == task)
                && let Some((_, estimate)) = worker.held.remove(at)
            {
                worker.estimated += u128::from(estimate);
                worker.completed += 1;
            }
        }
        worker.measured += u128::from(took);
        worker.began = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_corrects_what_was_estimated() {
        let costs = Costs::new(2, vec![100; 20]).unwrap();
        let mut forecast = Forecast::of_ranks(2);
        assert!(forecast.is_any_dry());
        for task in 0..6 {
            forecast.grant(0, Assignment { task, worker: 0 }, &costs, 10);
        }
        assert_eq!(forecast.finish(10), [610, 10]);
        assert_eq!(forecast.finish(150), [670, 150], "the first is late");
        forecast.completed(0, &[0], 200, 210);
        assert_eq!(forecast.finish(210), [710, 210]);
        forecast.completed(0, &[1, 2], 400, 610);
        assert_eq!(forecast.factors(), [2.0, 1.0]);
        let mut same = Forecast::of_ranks(2);
        (0..6).for_each(|task| same.give(0, task, 100, 10));
        same.completed_first(0, 3, 600, 610);
        assert_eq!((same.finish(610), same.factors()), (forecast.finish(610), forecast.factors()));
        assert_eq!(forecast.finish(610), [1210, 610]);
        forecast.completed(0, &[3, 4, 5], 600, 1210);
        assert!(forecast.is_any_dry());
        assert_eq!(forecast.finish(1300), [1300, 1300]);
    }
}
