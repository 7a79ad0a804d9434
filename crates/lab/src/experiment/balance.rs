//! One balancing phase, and everything that is known of it afterwards.

use std::rc::Rc;

use serde::{Serialize, Serializer};

use super::site::{Imbalances, LoadMap, Site, milliseconds};
use super::tasks::Tasks;
use super::weighing::{Move, Unit, Weighing, Work};
use crate::workload::Decimal;
use equipoise::balance::Chosen;
use equipoise::error::Result;
use equipoise::judge;
use equipoise::load::{Powers, Shares};
use equipoise::phase::trace::{MOST_PASSAGES, Trace};
use equipoise::phase::{self, Outcome, Setting};
use equipoise::topology::{Overlay, Topology};
use equipoise::transport::world::World;

/// Above so many nodes the least possible task-hops are computed only when they are asked for.
pub const OPTIMUM_UP_TO: u32 = 4096;

/// One phase to be run.
pub struct BalanceSpec {
    pub balancer: Rc<Chosen>,
    pub overlay: Overlay,
    pub tasks: Tasks,
    /// By node.
    pub powers: Powers,
    /// The powers as they were given, where that is known and not simply 1.
    pub given_powers: Option<Vec<Decimal>>,
    pub seed: u64,
    /// Whether the record is to list all moves.
    pub moves: bool,
    /// Whether to compute the least possible task-hops, however many nodes there are.
    pub optimum: bool,
    /// Whether to note what happened when; see [`MOST_NODES`](equipoise::phase::trace::MOST_NODES).
    pub trace: bool,
    /// Whether the balancer's rule is followed as it is printed, even where it makes the slowest rank slower.
    pub plain: bool,
}

/// What came out. Serialised, it is what `balance --output json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct BalanceRecord {
    pub balancer: String,
    pub topology: String,
    /// Whether every node has a rank of its own.
    pub native: bool,
    /// Where the topology is a graph: how it lies in a hyper-grid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding: Option<Embedded>,
    #[serde(flatten)]
    pub site: Site,
    pub nodes: u32,
    /// Number of tasks.
    pub tasks: u64,
    #[serde(flatten)]
    pub weighing: Weighing,
    /// Bytes that a task carries.
    pub payload: u64,
    /// Loads by node before: tasks, or with weights their work units, as quotas and final loads.
    pub loads: Vec<u64>,
    /// By node, as they were given.
    #[serde(serialize_with = "as_given")]
    pub powers: ShownPowers,
    /// The load that each node should have.
    pub quota: Vec<u64>,
    /// The nearest to it that can be reached, where pinned tasks keep nodes above their quotas, or the slowest rank would become slower.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reachable: Option<Vec<u64>>,
    /// Whether the balancer declined moves of its rule, since they would have made the slowest rank slower.
    pub declined: bool,
    /// Whether every node ended at what can be reached of its quota. Only then are the least that must move and the least task-hops bounds for
    /// what was done.
    pub exact: bool,
    /// Loads by node after.
    #[serde(rename = "final")]
    pub finals: Vec<u64>,
    pub final_by_rank: Vec<u64>,
    /// In an order in which they can be carried out one by one; empty unless wanted.
    pub moves: Vec<Move>,
    /// Number of moves.
    pub transfers: u64,
    pub task_hops: u128,
    /// The least task-hops with which every node comes to its quota; with weights see [`super::Work`].
    pub optimum_task_hops: Option<u128>,
    /// Tasks that ended elsewhere than they began, or left and came back.
    pub nonlocal_tasks: u64,
    /// The least number of tasks, or with weights of work units, that must leave their node for the quotas to be met exactly.
    pub minimum_nonlocal: u64,
    /// Over ranks.
    pub imbalance: Imbalances,
    /// Longest chain of dependent messages.
    pub steps: u32,
    /// From rank to rank.
    pub messages: u64,
    pub bytes: u64,
    /// Bytes that crossed from host to host.
    pub host_bytes: u64,
    /// The slowest node's time, virtual in simulation.
    pub seconds: f64,
    /// How the slowest node spent it.
    pub ms_information: f64,
    pub ms_decision: f64,
    pub ms_exchange: f64,
    /// How long a task must last, on a rank of average power, for the phase to pay with the cores that the ranks have; `None` if it never does.
    pub break_even_us: Option<f64>,
    /// When all ranks are done, with the cores that they have, in unit tasks on a rank of average power.
    pub makespan_before: f64,
    pub makespan_after: f64,
    /// What pictures are drawn of.
    #[serde(skip)]
    pub map: LoadMap,
    #[serde(skip)]
    pub trace: Option<Trace>,
}

/// How a graph lies in a hyper-grid (Savvas and Kechadi 2004, first phase).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Embedded {
    /// The grid, as `--topology` names it.
    pub grid: String,
    /// Places of the grid without a node, and links of it that the graph does not have.
    pub virtual_nodes: u64,
    pub virtual_links: u64,
    /// The most links of the graph that a link of the grid stands for, and their mean.
    pub dilation: u32,
    pub mean_dilation: f64,
}

impl Embedded {
    fn of(topology: &Topology) -> Option<Embedded> {
        let Topology::Graph(graph) = topology else { return None };
        let embedding = graph.embedding();
        let (dilation, mean_dilation) = embedding.dilation();
        let sides = vec!["2"; embedding.dimension() as usize].join("x");
        Some(Embedded {
            grid: format!("grid:{}", if sides.is_empty() { "1" } else { &sides }),
            virtual_nodes: embedding.virtual_nodes(),
            virtual_links: embedding.virtual_links(),
            dilation,
            mean_dilation,
        })
    }
}

/// Powers as they are shown.
#[derive(Clone, Debug)]
pub enum ShownPowers {
    Exact(Powers),
    /// As decimal fractions, of which only the ratios matter inside.
    Given(Vec<Decimal>),
}

impl ShownPowers {
    /// A node's power.
    pub fn shown(&self, node: usize) -> String {
        match self {
            ShownPowers::Exact(powers) => powers.of(node as u32).to_string(),
            ShownPowers::Given(powers) => powers[node].to_string(),
        }
    }

    /// Whether some real node has another power than 1.
    pub fn differ(&self) -> bool {
        !matches!(self, ShownPowers::Exact(Powers::Equal { .. }))
    }
}

fn as_given<S: Serializer>(powers: &ShownPowers, serializer: S) -> Result<S::Ok, S::Error> {
    match powers {
        ShownPowers::Exact(powers) => serializer.collect_seq((0..powers.nodes()).map(|node| powers.of(node))),
        ShownPowers::Given(powers) => serializer.collect_seq(powers),
    }
}

/// Runs one phase. The record comes where node 0 is.
///
/// # Errors
/// As [`phase::run`].
pub fn balance(world: &mut World, spec: &BalanceSpec) -> Result<Option<BalanceRecord>> {
    let site = Site::of(world, spec.seed)?;
    let tasks = spec.tasks.clone();
    let setting = Rc::new(Setting {
        balancer: spec.balancer.clone(),
        shares: spec.tasks.shares(&spec.powers, spec.plain),
        queue: Rc::new(move |node| tasks.queue(node)),
        plan: spec.moves,
        weighted: spec.tasks.unit() == Unit::Work,
        trace: spec.trace.then(|| MOST_PASSAGES / spec.overlay.topology.nodes() as usize),
    });
    let outcome = phase::run(world, &spec.overlay, &setting)?;
    Ok(outcome.map(|outcome| record(spec, site, &setting.shares, outcome)))
}

fn record(spec: &BalanceSpec, site: Site, shares: &Shares, outcome: Outcome) -> BalanceRecord {
    let Overlay { topology, placement } = &spec.overlay;
    let judged = Judged::of(&spec.balancer, &spec.overlay, shares, &spec.tasks, &outcome, &site);
    let optimum = (spec.optimum || topology.nodes() <= OPTIMUM_UP_TO).then(|| judged.optimum(&spec.overlay)).flatten();
    let (unit, tasks) = (spec.tasks.unit(), spec.tasks.count());
    let weighing = judged.weighing(&spec.tasks, &outcome, optimum);
    let break_even_us = judged.break_even_us(outcome.elapsed);
    let Outcome { finals, stayed, plan, transfers, counts, elapsed, times, declined, trace, .. } = outcome;
    let map = LoadMap {
        topology: topology.clone(),
        placement: placement.clone(),
        before: judged.loads.clone(),
        quota: judged.quota.to_vec(),
        after: finals.clone(),
    };
    BalanceRecord {
        balancer: spec.balancer.name.clone(),
        topology: topology.name(),
        native: placement.native(),
        embedding: Embedded::of(topology),
        site,
        nodes: topology.nodes(),
        tasks,
        weighing,
        payload: spec.tasks.payload(),
        powers: spec.given_powers.clone().map_or_else(|| ShownPowers::Exact(spec.powers.clone()), ShownPowers::Given),
        exact: judged.exact,
        declined,
        reachable: (judged.reachable != judged.quota).then_some(judged.reachable),
        quota: judged.quota,
        final_by_rank: judge::by_rank(&finals, placement),
        finals,
        moves: plan.transfers.into_iter().map(|transfer| Move::of(transfer, unit)).collect(),
        transfers,
        task_hops: counts.task_hops,
        optimum_task_hops: optimum.filter(|_| unit == Unit::Tasks),
        nonlocal_tasks: tasks - stayed,
        minimum_nonlocal: judged.minimum_nonlocal,
        imbalance: judged.imbalance,
        steps: counts.chain,
        messages: counts.messages,
        bytes: counts.bytes,
        host_bytes: counts.host_bytes,
        seconds: elapsed as f64 / 1e9,
        ms_information: milliseconds(times.information),
        ms_decision: milliseconds(times.decision),
        ms_exchange: milliseconds(times.exchange),
        break_even_us,
        makespan_before: judged.makespan_before,
        makespan_after: judged.makespan_after,
        map,
        trace: spec.trace.then(|| Trace {
            name: format!("{} on {}", spec.balancer.name, topology.name()),
            rows: trace,
            overlay: Rc::new(spec.overlay.clone()),
        }),
        loads: judged.loads,
    }
}

/// What the judge says of an outcome.
pub(super) struct Judged {
    /// By node, virtual ones included.
    pub loads: Vec<u64>,
    /// What each node should have, and the nearest to it that can be reached.
    pub quota: Vec<u64>,
    pub reachable: Vec<u64>,
    pub minimum_nonlocal: u64,
    /// Whether every node ended at the latter.
    pub exact: bool,
    pub imbalance: Imbalances,
    /// The longest time of a rank, in unit tasks on a rank of average power.
    pub finish_before: f64,
    pub finish_after: f64,
    /// When all are done with the cores that they have.
    pub makespan_before: f64,
    pub makespan_after: f64,
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
        Judged {
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

    /// The least task-hops; `None` where they can't be had.
    pub fn optimum(&self, overlay: &Overlay) -> Option<u128> {
        judge::optimum(&overlay.topology, &self.loads, &self.reachable).ok()
    }

    /// How large the tasks are, and how near the loads came to the quotas. The optimum is in the tasks' unit.
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

    /// Microseconds that a task must last for a phase of so many ticks to pay.
    pub fn break_even_us(&self, elapsed: u64) -> Option<f64> {
        judge::break_even_task_ticks(elapsed, self.makespan_before, self.makespan_after).map(|ticks| ticks / 1e3)
    }
}
