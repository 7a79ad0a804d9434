//! One balancing phase and its record.

use std::rc::Rc;

use serde::{Serialize, Serializer};

use super::compare::{self, CompareRecord, MeasuredPhase};
use super::judged::{Judged, OPTIMUM_UP_TO};
use super::site::{Imbalances, Site};
use super::tasks::Tasks;
use super::weighing::{LoadUnit, PlannedMove, Weighing};
use crate::workload::Decimal;
use equipoise::balance::Chosen;
use equipoise::error::Result;
use equipoise::judge;
use equipoise::load::{ColumnRatio, Crossings, Occupancy, Powers, Shares};
use equipoise::phase::trace::{MOST_PASSAGES, Trace};
use equipoise::phase::{self, Outcome, Setting};
use equipoise::topology::{Overlay, Topology};
use equipoise::transport::world::World;

/// One phase to be run.
pub struct BalanceSpec {
    pub balancer: Rc<Chosen>,
    pub overlay: Overlay,
    /// Tasks to be balanced, by rank.
    pub tasks: Tasks,
    /// Power of each node.
    pub powers: Powers,
    /// The powers as they were given, where that is known and not simply 1.
    pub given_powers: Option<Vec<Decimal>>,
    pub seed: u64,
    /// Whether the record is to list all moves.
    pub moves: bool,
    /// Whether to compute the least possible task-hops, however many nodes there are.
    pub optimum: bool,
    /// Whether to record a trace; see [`MOST_NODES`](equipoise::phase::trace::MOST_NODES).
    pub trace: bool,
    /// Whether to follow the balancer's rule as printed in its source, even where it makes the slowest rank slower.
    pub plain: bool,
}

impl BalanceSpec {
    /// A phase with seed 1 whose record lists the moves only. `powers` are by node.
    pub fn new(balancer: Rc<Chosen>, overlay: Overlay, tasks: Tasks, powers: Powers) -> BalanceSpec {
        BalanceSpec {
            balancer,
            overlay,
            tasks,
            powers,
            given_powers: None,
            seed: 1,
            moves: true,
            optimum: false,
            trace: false,
            plain: false,
        }
    }
}

/// One phase. Serialised, it is the line of `balance --output json`.
#[derive(Clone, Debug, Serialize)]
pub struct BalanceRecord {
    pub balancer: String,
    pub topology: String,
    /// Whether every node has a rank of its own.
    pub native: bool,
    /// Embedding in a hyper-grid, if the topology is a graph.
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
    /// Power of each node, as it was given.
    #[serde(serialize_with = "as_given")]
    pub powers: ShownPowers,
    /// The load that each node should have.
    pub quota: Vec<u64>,
    /// The nearest to it that can be reached, where pinned tasks keep nodes above their quotas, or the slowest rank would become slower.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reachable: Option<Vec<u64>>,
    /// Whether the balancer declined moves of its rule, since they would have made the slowest rank slower.
    pub declined: bool,
    /// Whether every node ended at its reachable quota. Only then are the minimum number of moves and of task-hops bounds for the result.
    pub exact: bool,
    /// Loads by node after.
    #[serde(rename = "final")]
    pub finals: Vec<u64>,
    pub final_by_rank: Vec<u64>,
    /// Moves in an order in which they can be carried out one by one; empty unless requested.
    pub moves: Vec<PlannedMove>,
    /// Number of moves.
    pub transfers: u64,
    pub task_hops: u128,
    /// Minimum number of task-hops with which every node reaches its quota; with weights see [`super::Work`].
    pub optimum_task_hops: Option<u128>,
    /// Tasks that ended elsewhere than they began, or left and came back.
    pub nonlocal_tasks: u64,
    /// The least number of tasks, or with weights of work units, that must leave their node for the quotas to be met exactly.
    pub minimum_nonlocal: u64,
    /// Over ranks.
    pub imbalance: Imbalances,
    /// Collective operations that the phase used; omitted by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collectives: Option<&'static str>,
    /// Longest chain of dependent messages.
    pub steps: u32,
    /// Number of messages from rank to rank, and their bytes.
    pub messages: u64,
    pub bytes: u64,
    /// Bytes that crossed from host to host.
    pub host_bytes: u64,
    /// The slowest node's time, virtual in simulation.
    pub seconds: f64,
    /// Parts of that time.
    pub ms_information: f64,
    pub ms_decision: f64,
    pub ms_exchange: f64,
    /// Task length, on a rank of average power, from which the phase pays with the cores that the ranks have; `None` if it never does.
    pub break_even_us: Option<f64>,
    /// Time until all ranks are done with the cores that they have, in unit tasks on a rank of average power.
    pub makespan_before: f64,
    pub makespan_after: f64,
    /// Bytes between tasks that cross ranks and hosts, where it is known which tasks talk to each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crossings: Option<Crossings>,
    /// Largest load of each weight over its rank's fair share, where tasks have several weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<ColumnRatio>>,
    /// Bytes of tasks on each rank, where ranks have a capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Occupancy>,
    /// The same phase as a comparison records it. Reports are made of it.
    #[serde(skip)]
    pub phase: CompareRecord,
}

/// Embedding of a graph in a hyper-grid (Savvas and Kechadi 2004, first phase).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Embedded {
    /// The grid, as `--topology` names it.
    pub grid: String,
    /// Places of the grid without a node, and links of it that the graph does not have.
    pub virtual_nodes: u64,
    pub virtual_links: u64,
    /// Cost of a byte over a link of the grid relative to the graph's fastest link, maximum and mean. Where bandwidths are equal, it is the
    /// number of links for which one of the grid stands.
    pub dilation: f64,
    pub mean_dilation: f64,
}

impl BalanceRecord {
    /// The same with a note on the collective operations of the phase.
    pub fn with_collectives(mut self, native: bool) -> BalanceRecord {
        self.phase.note_collectives(native);
        self.collectives = self.phase.collectives;
        self
    }
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
    /// Decimal fractions; only their ratios matter for balancing.
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

    /// Returns true if some real node has another power than 1.
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
    let tasks = spec.tasks.on(&spec.overlay.placement);
    let queues = tasks.clone();
    let setting = Rc::new(Setting {
        balancer: spec.balancer.clone(),
        shares: tasks.shares(&spec.powers, spec.plain),
        queue: Rc::new(move |node| queues.queue(node)),
        plan: spec.moves,
        weighted: spec.tasks.unit() == LoadUnit::Work,
        trace: spec.trace.then(|| MOST_PASSAGES / spec.overlay.topology.nodes() as usize),
    });
    // As in a comparison, real ranks connect in a first phase, which is not measured.
    if !world.is_simulated() && site.ranks > 1 {
        phase::run(world, &spec.overlay, &Rc::new(Setting { plan: false, trace: None, ..(*setting).clone() }))?;
    }
    let outcome = phase::run(world, &spec.overlay, &setting)?;
    outcome.map(|outcome| record(spec, site, &tasks, &setting.shares, outcome)).transpose()
}

fn record(spec: &BalanceSpec, site: Site, by_node: &Tasks, shares: &Shares, mut outcome: Outcome) -> Result<BalanceRecord> {
    let Overlay { topology, placement } = &spec.overlay;
    let judged = Judged::of(&spec.balancer, &spec.overlay, shares, by_node, &outcome, &site);
    let optimum = (spec.optimum || topology.nodes() <= OPTIMUM_UP_TO).then(|| judged.optimum(&spec.overlay)).flatten();
    let (unit, tasks) = (spec.tasks.unit(), spec.tasks.count());
    let trace = spec.trace.then(|| Trace {
        name: format!("{} on {}", spec.balancer.name, topology.name()),
        rows: std::mem::take(&mut outcome.trace),
        overlay: Rc::new(spec.overlay.clone()),
    });
    let mut phase = MeasuredPhase {
        balancer: &spec.balancer,
        overlay: &spec.overlay,
        loads: Rc::default(),
        tasks: by_node,
        judged: &judged,
        optimum,
        outcome: &outcome,
        samples: &[compare::sample(&outcome)],
        trace,
    }
    .record(&site)?;
    phase.break_even_us = judged.break_even_us(outcome.elapsed);
    let Outcome { finals, stayed, plan, transfers, elapsed, .. } = outcome;
    Ok(BalanceRecord {
        balancer: phase.balancer.clone(),
        topology: phase.topology.clone(),
        native: phase.native,
        embedding: Embedded::of(topology),
        site,
        nodes: phase.nodes,
        tasks,
        weighing: phase.weighing.clone(),
        payload: phase.payload,
        loads: judged.loads,
        powers: spec.given_powers.clone().map_or_else(|| ShownPowers::Exact(spec.powers.clone()), ShownPowers::Given),
        reachable: (judged.reachable != judged.quota).then_some(judged.reachable),
        quota: judged.quota,
        declined: phase.declined,
        exact: phase.exact,
        final_by_rank: judge::by_rank(&finals, placement),
        finals,
        moves: plan.transfers.into_iter().map(|transfer| PlannedMove::of(transfer, unit)).collect(),
        transfers,
        task_hops: phase.task_hops,
        optimum_task_hops: phase.optimum_task_hops,
        nonlocal_tasks: tasks - stayed,
        minimum_nonlocal: phase.least,
        imbalance: phase.imbalance,
        collectives: phase.collectives,
        steps: phase.steps,
        messages: phase.messages,
        bytes: phase.bytes,
        host_bytes: phase.host_bytes,
        seconds: elapsed as f64 / 1e9,
        ms_information: phase.ms_information,
        ms_decision: phase.ms_decision,
        ms_exchange: phase.ms_exchange,
        break_even_us: phase.break_even_us,
        makespan_before: phase.makespan_before,
        makespan_after: phase.makespan_after,
        crossings: phase.crossings,
        columns: phase.columns.clone(),
        memory: phase.memory.clone(),
        phase,
    })
}
