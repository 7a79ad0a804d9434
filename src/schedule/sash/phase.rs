//! Phases by the model: length of the search, its result, and the start of the workers. Exact; no network.

use super::search::{Assignment, Choice, Search, Ties};
use crate::load::{CYCLE, Cost, Costs, NEVER};

/// Reading of the paper's text, where it leaves something open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Rule for nodes of equal cost.
    pub ties: Ties,
    /// Rule for the node that is taken when the time is over.
    pub choice: Choice,
    /// Successors are this number of next tasks, on every worker.
    pub window: usize,
    /// Maximum number of expansions in a phase.
    pub most: u32,
    /// Cost of generating a node.
    pub v: Cost,
}

/// The readings by their names.
pub const READINGS: [&str; 7] = ["r1", "r1b", "r2", "literal", "r2d", "r3", "r4"];

impl Rules {
    /// The reading that is nearest to the paper's figures: 4 of its 9 crossovers are equal, 8 within one.
    pub const R1: Rules = Rules { ties: Ties::Deeper, choice: Choice::Deepest, window: 1, most: 1000, v: CYCLE };

    /// The text's words: the head of the queue is taken, the older of two equal nodes expanded.
    pub const LITERAL: Rules = Rules { ties: Ties::Older, choice: Choice::Head, ..Rules::R1 };

    /// The reading of this name, if there is one.
    pub fn named(name: &str) -> Option<Rules> {
        let r1 = Rules::R1;
        Some(match name {
            "r1" => r1,
            "r1b" => Rules { most: 5, v: 0, ..r1 },
            "r2" | "literal" => Rules::LITERAL,
            "r2d" => Rules { choice: Choice::Head, ..r1 },
            "r3" => Rules { most: 1, v: 0, ..r1 },
            "r4" => Rules { window: usize::MAX, most: 1, v: 0, ..r1 },
            _ => return None,
        })
    }
}

/// The tasks to be done, and the assignments made.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The columns of the workers, in ascending order.
    pub workers: Vec<usize>,
    /// Time at which each worker has finished all that it was given.
    pub finish: Vec<Cost>,
    /// Tasks that are not scheduled yet, in order.
    pub left: Vec<usize>,
    /// Tasks that no worker can run.
    pub aside: Vec<usize>,
    /// Time until which there was nothing to schedule, so that no worker waited for a schedule.
    pub nothing_until: Cost,
    /// Cost of scheduling so far.
    pub tally: Tally,
}

/// Cost of scheduling so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of phases.
    pub phases: u64,
    /// Nodes of the search that were expanded.
    pub expansions: u64,
    /// Nodes of the search that were generated.
    pub nodes: u64,
    /// Time spent searching.
    pub search: Cost,
    /// Time that workers waited for a schedule.
    pub waiting: Cost,
}

/// Result of a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Time at which the search ended.
    pub end: Cost,
    /// The tasks that were assigned, in the order of the search.
    pub assignments: Vec<Assignment>,
}

impl Plan {
    /// All tasks still to be scheduled on these workers (columns in ascending order), which are free from the beginning.
    pub fn new(costs: &Costs, workers: Vec<usize>) -> Plan {
        let can = |task: &usize| workers.iter().any(|worker| costs.of(*task, *worker) != NEVER);
        let (left, aside) = (0..costs.tasks()).partition(can);
        Plan { finish: vec![0; workers.len()], workers, left, aside, nothing_until: 0, tally: Tally::default() }
    }

    /// Maximum duration of a phase that begins now: until the least loaded worker has finished.
    pub fn allotted(&self, now: Cost) -> Cost {
        self.finish.iter().copied().min().unwrap_or(0).saturating_sub(now)
    }

    /// The search of a phase that begins now and may last this long.
    pub fn search<'a>(&'a self, costs: &'a Costs, rules: &Rules, now: Cost, allotted: Cost) -> Search<'a> {
        let base = self.finish.iter().map(|finish| (*finish).max(now.saturating_add(allotted))).collect();
        Search::new(costs, &self.workers, &self.left, base, rules.window, rules.ties)
    }

    /// A whole phase by the model, from `now` on. If it is the last one and the scheduler `joins` in, it takes some of its tasks.
    pub fn phase(&mut self, costs: &Costs, rules: &Rules, now: Cost, joins: Option<usize>) -> Phase {
        let allotted = self.allotted(now);
        let (mut used, mut expansions): (Cost, u32) = (0, 0);
        let mut search = self.search(costs, rules, now, allotted);
        while !search.is_complete() {
            let successors = rules.window.min(self.left.len()).saturating_mul(self.workers.len()) as Cost;
            if expansions > 0 && (expansions >= rules.most || used.saturating_add(rules.v.saturating_mul(successors)) > allotted) {
                break;
            }
            let generated = search.expand();
            if generated == 0 {
                break;
            }
            used += rules.v * generated;
            expansions += 1;
        }
        let end = now + if search.is_complete() { used } else { allotted.max(used) };
        let mut assignments = search.chosen(rules.choice);
        let nodes = search.generated();
        self.tally.phases += 1;
        self.tally.expansions += u64::from(expansions);
        self.tally.nodes += nodes;
        self.tally.search += used;
        if let Some(scheduler) = joins.filter(|_| assignments.len() == self.left.len()) {
            join(costs, &mut assignments, self.begins(end), scheduler, end);
        }
        self.grant(costs, &assignments, end);
        Phase { end, assignments }
    }

    /// Returns each worker and the time at which it could begin with something that it gets at this time.
    fn begins(&self, at: Cost) -> Vec<(usize, Cost)> {
        self.workers.iter().zip(&self.finish).map(|(worker, finish)| (*worker, (*finish).max(at))).collect()
    }

    /// Notes that these tasks were given to their workers at this time. What the scheduler gave itself leaves no trace here.
    pub fn grant(&mut self, costs: &Costs, assignments: &[Assignment], at: Cost) {
        for Assignment { task, worker } in assignments {
            let Ok(place) = self.workers.binary_search(worker) else { continue };
            let finish = &mut self.finish[place];
            self.tally.waiting += at.saturating_sub((*finish).max(self.nothing_until));
            *finish = (*finish).max(at).saturating_add(costs.of(*task, *worker));
        }
        self.remove(assignments);
    }

    /// Removes the assigned tasks from the remaining ones.
    pub fn remove(&mut self, assignments: &[Assignment]) {
        let count = assignments.len();
        // Without a window these are the first ones.
        if count <= self.left.len() && self.left.iter().zip(assignments).all(|(task, assignment)| *task == assignment.task) {
            self.left.drain(..count);
            return;
        }
        let mut given: Vec<usize> = assignments.iter().map(|assignment| assignment.task).collect();
        given.sort_unstable();
        self.left.retain(|task| given.binary_search(task).is_err());
    }
}

/// Lets the scheduler, which has done its work `at` this time, take over tasks of the last phase: again and again the one of the latest
/// worker with which the two of them end earliest, while that helps. What was granted in earlier phases is not withdrawn. `begins` says when
/// each worker begins with these assignments.
pub fn join(costs: &Costs, assignments: &mut [Assignment], begins: Vec<(usize, Cost)>, scheduler: usize, at: Cost) {
    let mut finish = begins;
    finish.push((scheduler, at));
    for Assignment { task, worker } in assignments.iter() {
        if let Some((_, finish)) = finish.iter_mut().find(|(known, _)| known == worker) {
            *finish = finish.saturating_add(costs.of(*task, *worker));
        }
    }
    let own = finish.len() - 1;
    loop {
        let Some(latest) = (0..own).max_by_key(|place| finish[*place].1) else { return };
        let (worker, end) = finish[latest];
        let ends = |assignment: &Assignment| finish[own].1.saturating_add(costs.of(assignment.task, scheduler));
        let candidates = assignments.iter().enumerate().filter(|(_, assignment)| assignment.worker == worker);
        let pair = |assignment: &Assignment| ends(assignment).max(end.saturating_sub(costs.of(assignment.task, worker)));
        let Some((best, last)) = candidates.map(|(at, assignment)| (at, pair(assignment))).min_by_key(|(_, last)| *last) else { return };
        if last >= end {
            return;
        }
        finish[own].1 = ends(&assignments[best]);
        finish[latest].1 = end.saturating_sub(costs.of(assignments[best].task, worker));
        assignments[best].worker = scheduler;
    }
}

/// The whole schedule by the model: the time at which the last worker finishes, and the cost of scheduling. Tasks that no worker can run
/// are left out.
pub fn schedule(costs: &Costs, workers: Vec<usize>, rules: &Rules) -> (Cost, Tally) {
    let mut plan = Plan::new(costs, workers);
    let mut now = 0;
    while !plan.left.is_empty() && !plan.workers.is_empty() {
        now = plan.phase(costs, rules, now, None).end;
    }
    (plan.finish.iter().copied().max().unwrap_or(0), plan.tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_takes_tasks_over_while_that_helps() {
        let costs = Costs::new(2, vec![10, 10, 10, 30, 10, 10, 10, 25]).unwrap();
        let mut assignments: Vec<Assignment> = (0..4).map(|task| Assignment { task, worker: 0 }).collect();
        join(&costs, &mut assignments, vec![(0, 0)], 1, 5);
        let kept: Vec<usize> = assignments.iter().filter(|assignment| assignment.worker == 0).map(|assignment| assignment.task).collect();
        assert_eq!(kept, [1, 3], "25 on the scheduler, 20 on the worker");
        let mut late = vec![Assignment { task: 0, worker: 0 }];
        join(&costs, &mut late, vec![(0, 0)], 1, 5);
        assert_eq!(late[0].worker, 0);
    }

    #[test]
    fn tasks_that_only_the_scheduler_can_run_are_put_aside() {
        let costs = Costs::new(3, vec![4, 4, 4, NEVER, NEVER, 4, NEVER, 4, 4]).unwrap();
        let plan = Plan::new(&costs, vec![0, 1]);
        assert_eq!((plan.left.as_slice(), plan.aside.as_slice()), (&[0, 2][..], &[1][..]));
        assert_eq!(schedule(&costs, vec![0, 1], &Rules::named("r3").unwrap()).0, 4);
    }
}
