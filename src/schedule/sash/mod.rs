//! Self-Adjusting Scheduling for Heterogeneous systems (Hamidzadeh, Lilja and Atif 1995, section 3).
//!
//! One rank searches for the best way to go on while the others execute what it found before. A phase of searching lasts until the least
//! loaded worker runs dry; then the best partial schedule found is given out, and the next phase begins with what is left.
//!
//! 1. `CS = min F_m - T`: how long the phase may last; one expansion is always made.
//! 2. Best-first search from the empty schedule: successors of a node are the next task in order on every worker; the cost of a node is the time
//!    at which its last worker finishes, from base loads `max(F_m, T + CS)`.
//! 3. At the end of the phase: the deepest node, of these the cheapest, is appended to the workers' queues.
//!
//! ```text
//!   scheduler   | search 1 | search 2      | search 3    |
//!   worker 1       idle    | tasks of 1         | tasks of 2 ..
//!   worker 2       idle    | tasks of 1    | tasks of 2 ..
//! ```
//!
//! Cost: at most p messages a phase, and a message for each completion. Where it departs from the paper: the text takes the head of the
//! queue at the end of a phase (`reading=literal`), with which best-first search keeps returning to shallow nodes and gives out next to
//! nothing; the reading that is nearest to the paper's figures takes the deepest node (`r1`). On real ranks phases go by the clock, the finishing
//! times are corrected by what was measured, and a worker that runs dry ends the phase at once. `clusters=hosts` gives each host a scheduler
//! under a top one, as the authors announce (section 5).

mod clusters;
mod estimates;
mod messages;
mod program;
mod scheduler;
#[cfg(test)]
mod vectors;

// Public for the farm and the laboratory of this workspace only, which search as these do. No promise is made about them.
#[doc(hidden)]
pub mod forecast;
#[doc(hidden)]
pub mod phase;
#[doc(hidden)]
pub mod search;

use std::sync::Arc;

use phase::{READINGS, Rules};

use super::independent::{Entry, Facts, Independent, Pace, Running, Scheduler, by_host};
use crate::error::Result;
use crate::load::{CYCLE, Costs};
use crate::node::Node;
use crate::spec::{InvalidSpec, Options, any_of};
use crate::topology::RankId;

const OPTIONS: &str = "reading=r1|r1b|r2|literal|r2d|r3|r4, scheduler=last|first|auto (the slowest rank), end=idle|join (what the scheduler does at the \
                       last), window=1 (tasks that are successors), expansions=1000 (in a phase), v=1 (cycles a node, in simulation), \
                       estimates=0 (% by which they are wrong), clusters=none|hosts (a scheduler per host under a top one)";

/// Its entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "sash",
    title: "self-adjusting scheduling for heterogeneous systems",
    source: "Hamidzadeh, Lilja and Atif 1995, section 3",
    options: OPTIONS,
    examples: &["sash", "sash:end=join", "sash:clusters=hosts"],
    build: |options| build(options, false),
    facts: Facts { knows_costs: true },
};

/// SASH's predecessor for homogeneous systems: the same, with equal costs.
pub const SADS: Entry = Entry {
    name: "sads",
    title: "self-adjusting dynamic scheduling: sash that takes all ranks to be alike",
    source: "Hamidzadeh and Lilja 1994",
    options: OPTIONS,
    examples: &["sads"],
    build: |options| build(options, true),
    facts: Facts { knows_costs: true },
};

fn build(options: &mut Options<'_>, alike: bool) -> Result<Arc<dyn Scheduler>, InvalidSpec> {
    let reading = options.value("reading")?.unwrap_or("r1");
    let mut rules = Rules::named(reading).ok_or_else(|| options.wrong("reading", reading, &any_of(&READINGS)))?;
    let scheduler =
        options.choice("scheduler", &[("last", SchedulerRank::Last), ("first", SchedulerRank::First), ("auto", SchedulerRank::Slowest)])?;
    let joins = options.choice("end", &[("idle", false), ("join", true)])?.unwrap_or(false);
    if let Some(window) = options.whole("window", 1u64)? {
        rules.window = usize::try_from(window).unwrap_or(usize::MAX);
    }
    if let Some(most) = options.whole("expansions", 1u64)? {
        rules.most = u32::try_from(most).unwrap_or(u32::MAX);
    }
    if let Some(v) = options.real("v", 0.0..=1e6)? {
        rules.v = (v * CYCLE as f64).round() as u64;
    }
    let by_host = by_host(options)?;
    let error = options.real("estimates", 0.0..=100.0)?.unwrap_or(0.0) / 100.0;
    Ok(Arc::new(Sash { rules, scheduler_rank: scheduler.unwrap_or(SchedulerRank::Last), joins, error, alike, by_host }))
}

/// Choice of the scheduling rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SchedulerRank {
    Last,
    First,
    /// The slowest: whose column has the greatest sum. Tasks that cannot run on a rank count as the dearest that can.
    Slowest,
}

impl SchedulerRank {
    /// Selects one of these ranks, which are at least one, in ascending order.
    fn among(self, costs: &Costs, ranks: &[RankId]) -> RankId {
        let (first, last) = (ranks.first().copied().unwrap_or_default(), ranks.last().copied().unwrap_or_default());
        match self {
            SchedulerRank::Last => last,
            SchedulerRank::First => first,
            SchedulerRank::Slowest => {
                let dearest = costs.rows().flatten().copied().filter(|cost| *cost != crate::load::NEVER).max().unwrap_or(0);
                let sum = |rank: &RankId| costs.rows().map(|row| u128::from(row[rank.index()].min(dearest))).sum::<u128>();
                ranks.iter().copied().max_by_key(sum).unwrap_or(last)
            }
        }
    }
}

/// The scheduler with its options.
struct Sash {
    rules: Rules,
    scheduler_rank: SchedulerRank,
    /// Whether the scheduling rank works at the end.
    joins: bool,
    /// Maximum relative error of the estimates.
    error: f64,
    /// Whether all ranks are assumed to be alike.
    alike: bool,
    /// Whether hosts have schedulers of their own.
    by_host: bool,
}

impl Scheduler for Sash {
    fn execute(self: Arc<Self>, node: Node, work: Arc<dyn Independent>, pace: Pace) -> Running {
        Box::pin(program::execute(node, work, pace, self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_sits_where_it_is_told() {
        let costs = Costs::new(3, vec![1, 9, 2, 1, 8, 3]).unwrap();
        let chosen = |ranks: &[u32]| {
            let ranks: Vec<RankId> = ranks.iter().copied().map(RankId::new).collect();
            [SchedulerRank::Last, SchedulerRank::First, SchedulerRank::Slowest]
                .map(|scheduler_rank| scheduler_rank.among(&costs, &ranks).get())
        };
        assert_eq!(chosen(&[0, 1, 2]), [2, 0, 1]);
        assert_eq!(chosen(&[0, 2]), [2, 0, 2]);
    }
}
