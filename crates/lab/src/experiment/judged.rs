//! Evaluation of a phase from its loads before and after: quotas, imbalance, makespans, and distance from the optimum.

use super::site::Imbalances;
use super::site::Site;
use super::tasks::Tasks;
use super::weighing::{Weighing, Work};
use equipoise::balance::Chosen;
use equipoise::judge;
use equipoise::load::Shares;
use equipoise::phase::{self, Outcome};
use equipoise::topology::Overlay;

/// Maximum number of nodes for which the minimum task-hops are computed without being requested.
pub const OPTIMUM_UP_TO: u32 = 4096;

/// A phase, judged.
pub(super) struct Judged {
    /// Load of each node before the phase, virtual ones included.
    pub loads: Vec<u64>,
    /// Quota of each node, and the nearest load to it that can be reached.
    pub quota: Vec<u64>,
    pub reachable: Vec<u64>,
    pub minimum_nonlocal: u64,
    /// Whether every node ended at its reachable quota.
    pub exact: bool,
    pub imbalance: Imbalances,
    /// Longest time of a rank that has a core of its own, in unit tasks on a rank of average power.
    pub finish_before: f64,
    pub finish_after: f64,
    /// Time until all ranks are done with the cores that they have, in the same unit.
    pub makespan_before: f64,
    pub makespan_after: f64,
    /// Lower bound on max/mean over ranks for any assignment of these tasks: see [`judge::bound`].
    pub imbalance_bound: f64,
}

impl Judged {
    pub fn of(chosen: &Chosen, overlay: &Overlay, shares: &Shares, tasks: &Tasks, outcome: &Outcome, site: &Site) -> Judged {
        let Overlay { topology, placement } = overlay;
        let mut loads = tasks.loads().to_vec();
        loads.resize(topology.nodes() as usize, 0);
        let total = loads.iter().sum();
        let quota = chosen.quota(topology, total, shares).to_vec();
        let reachable = match chosen.entry.facts.promises.exact {
            true => chosen.aims(overlay, &loads, shares),
            false => chosen.reachable(topology, total, shares),
        };
        let reachable = reachable.to_vec();
        let by_rank = |values: &[u64]| judge::by_rank(values, placement);
        let powers = by_rank(&shares.powers().to_vec());
        let (before, after) = (by_rank(&loads), by_rank(&outcome.finals));
        let makespan = |loads: &[u64]| judge::makespan(&judge::finishes(loads, &powers), &site.groups);
        let mut pinned = tasks.amounts().pinned.clone();
        pinned.resize(topology.nodes() as usize, 0);
        Judged {
            imbalance_bound: judge::bound(total, tasks.amounts().largest, &by_rank(&pinned), &powers),
            minimum_nonlocal: judge::minimum_nonlocal(&loads, &reachable),
            exact: outcome.finals == reachable,
            quota,
            reachable,
            imbalance: Imbalances { before: judge::imbalance(&before, &powers), after: judge::imbalance(&after, &powers) },
            finish_before: judge::finish(&before, &powers),
            finish_after: judge::finish(&after, &powers),
            makespan_before: makespan(&before),
            makespan_after: makespan(&after),
            loads,
        }
    }

    /// The minimum task-hops; `None` if they cannot be computed.
    pub fn optimum(&self, overlay: &Overlay) -> Option<u128> {
        judge::optimum(&overlay.topology, &self.loads, &self.reachable).ok()
    }

    /// Sizes of the tasks, and how near the loads came to the quotas. The optimum is in the tasks' unit.
    pub fn weighing(&self, tasks: &Tasks, outcome: &Outcome, optimum: Option<u128>) -> Weighing {
        let amounts = tasks.amounts();
        let mut pinned = amounts.pinned.clone();
        pinned.resize(self.quota.len(), 0);
        let work = self.loads.iter().sum::<u64>();
        let in_work =
            |moved: phase::InWork| Work { work, work_hops: moved.hops, optimum_work_hops: optimum, nonlocal_work: work - moved.stayed };
        Weighing {
            unit: tasks.unit(),
            largest_task: amounts.largest,
            pinned_tasks: amounts.pinned_tasks,
            unit_seconds: tasks.unit_seconds(),
            payload_is_mean: tasks.payload_is_mean(),
            deviation: judge::deviation(&outcome.finals, &self.quota),
            best_deviation: judge::best_deviation(&self.quota, &pinned),
            work: outcome.work.map(in_work),
        }
    }

    /// Length of a task, in microseconds, from which a phase of `elapsed` ticks pays.
    pub fn break_even_us(&self, elapsed: u64) -> Option<f64> {
        judge::break_even_task_ticks(elapsed, self.makespan_before, self.makespan_after).map(|ticks| ticks / 1e3)
    }
}
