//! Balancers side by side, on the same tasks.

use std::rc::Rc;

use serde::Serialize;

use super::balance::{Judged, OPTIMUM_UP_TO};
use super::ranking;
use super::site::{Imbalances, LoadMap, Site};
use super::statistics::{self, Estimate};
use super::tasks::Tasks;
use super::weighing::{Unit, Weighing};
use equipoise::balance::Chosen;
use equipoise::error::{Error, Result};
use equipoise::load::Powers;
use equipoise::phase::trace::{MOST_PASSAGES, NodeTrace, Trace};
use equipoise::phase::{self, Outcome, Setting};
use equipoise::topology::Overlay;
use equipoise::transport::world::World;

/// What is compared with what, on what, and how often.
pub struct CompareSpec {
    pub contenders: Vec<Contender>,
    pub cases: Vec<Case>,
    /// Rounds; each goes through all combinations once, the contenders in another order each time, so that a machine that drifts treats all alike.
    pub repeat: u32,
    pub seed: u64,
    /// Whether to note what happens when, in one more round that is not measured; see [`MOST_NODES`](equipoise::phase::trace::MOST_NODES).
    pub trace: bool,
    /// Whether the balancers' rules are followed as they are printed, even where they make the slowest rank slower.
    pub plain: bool,
}

/// A balancer on its topology.
pub struct Contender {
    pub balancer: Rc<Chosen>,
    pub overlay: Overlay,
    /// By node.
    pub powers: Powers,
}

/// Some tasks to be balanced by all contenders.
pub struct Case {
    /// The loads as they were asked for.
    pub loads: String,
    pub tasks: Tasks,
}

/// One balancer on one case. Serialised, it is a line of `compare --output json`.
#[derive(Clone, Debug, Serialize)]
pub struct CompareRecord {
    pub balancer: String,
    pub topology: String,
    /// Whether every node has a rank of its own.
    pub native: bool,
    #[serde(flatten)]
    pub site: Site,
    pub nodes: u32,
    /// The loads as they were asked for.
    pub loads: String,
    /// Bytes that a task carries.
    pub payload: u64,
    /// Number of tasks.
    pub tasks: u64,
    #[serde(flatten)]
    pub weighing: Weighing,
    /// Rounds that were measured. In simulation one, since every round gives the same to the tick.
    pub repeat: u32,
    /// Over ranks, max/mean.
    pub imbalance_before: f64,
    pub imbalance_after: f64,
    /// The same by all definitions.
    pub imbalance: Imbalances,
    /// Tasks that left their node, or with weights their work units.
    pub moved: u64,
    /// The least number of these that must for the quotas to be met exactly.
    pub least: u64,
    pub task_hops: u128,
    /// The least task-hops with which every node comes to its quota; `None` with weights, and above 4,096 nodes.
    pub optimum_task_hops: Option<u128>,
    /// Task-hops, or with weights work-hops, over the least possible; `None` where these are not known, and where not all quotas were met, so
    /// that less may be enough.
    pub hops_ratio: Option<f64>,
    /// Whether every node ended at what can be reached of its quota.
    pub exact: bool,
    /// Whether the balancer declined moves of its rule, since they would have made the slowest rank slower.
    pub declined: bool,
    /// Longest chain of dependent messages.
    pub steps: u32,
    /// From rank to rank.
    pub messages: u64,
    pub bytes: u64,
    /// Bytes that crossed from host to host.
    pub host_bytes: u64,
    /// Milliseconds of the slowest node: median over the rounds, and its confidence interval; `None` after one round on real ranks, which
    /// says nothing about the next.
    pub ms_median: f64,
    pub ms_ci95: Option<[f64; 2]>,
    /// What the interval really covers: less than 0.95 when the rounds are few; 1 in simulation, where nothing varies.
    pub ms_coverage: f64,
    /// Milliseconds of every round. The rounds of all records of a comparison are the same ones.
    pub ms_rounds: Vec<f64>,
    /// How the slowest node spent its time: medians over the rounds.
    pub ms_information: f64,
    pub ms_decision: f64,
    pub ms_exchange: f64,
    /// How long a task must last, on a rank of average power, for the phase to pay with the cores that the ranks have; `None` if it never does.
    pub break_even_us: Option<f64>,
    /// The longest time of a rank that has a core of its own, in unit tasks on a rank of average power.
    pub finish_before: f64,
    pub finish_after: f64,
    /// When all ranks are done, with the cores that they have, in the same unit: later than the longest time where ranks share cores.
    pub makespan_before: f64,
    pub makespan_after: f64,
    /// Which of the cases this is, and which of the contenders: two may look the same.
    #[serde(skip)]
    pub case: usize,
    #[serde(skip)]
    pub contender: usize,
    /// How early the balancer is named among those that do equally well.
    #[serde(skip)]
    pub simplicity: usize,
    /// What pictures are drawn of; programs get the figures above only.
    #[serde(skip)]
    pub map: LoadMap,
    #[serde(skip)]
    pub trace: Option<Trace>,
}

/// What is measured of one combination.
struct Combination<'a> {
    contender: &'a Contender,
    case: &'a Case,
    setting: Rc<Setting>,
    samples: Vec<[u64; 4]>,
    first: Option<Outcome>,
    trace: Option<Trace>,
}

/// Runs everything; `progress` hears, on every rank, how many of how many phases are done, and which comes next. The records come where
/// node 0 is, cases in order, in each of them the contenders in order; elsewhere there are none.
///
/// # Errors
/// As [`phase::run`].
pub fn compare(world: &mut World, spec: &CompareSpec, mut progress: impl FnMut(u64, u64, &str)) -> Result<Vec<CompareRecord>> {
    let site = Site::of(world, spec.seed)?;
    // Real ranks connect when they first talk to each other: a first round is run without being measured. In simulation every round is
    // the same.
    let (unmeasured, measured) = if world.is_simulated() { (0, 1) } else { (1, spec.repeat.max(1)) };
    let mut combinations: Vec<_> =
        spec.cases.iter().flat_map(|case| spec.contenders.iter().map(|contender| combination(contender, case, spec.plain))).collect();
    let (combined, contenders) = (combinations.len(), spec.contenders.len());
    let rounds = unmeasured + measured + u32::from(spec.trace);
    let phases = combined as u64 * u64::from(rounds);
    let mut done = 0;
    for round in 0..rounds {
        let traced = round >= unmeasured + measured;
        let turns = ranking::turns(contenders, round, spec.seed);
        for at in (0..spec.cases.len()).flat_map(|case| turns.iter().map(move |turn| case * contenders + turn)) {
            let combination = &mut combinations[at];
            progress(done, phases, &combination.contender.balancer.name);
            let overlay = &combination.contender.overlay;
            Rc::make_mut(&mut combination.setting).trace = traced.then(|| MOST_PASSAGES / combined / overlay.topology.nodes() as usize);
            let outcome = phase::run(world, overlay, &combination.setting)?;
            done += 1;
            let Some(mut outcome) = outcome else { continue };
            if traced {
                combination.trace = Some(trace(combination.contender, combination.case, std::mem::take(&mut outcome.trace)));
            } else if round >= unmeasured {
                let times = outcome.times;
                combination.samples.push([outcome.elapsed, times.information, times.decision, times.exchange]);
            }
            combination.first.get_or_insert(outcome);
        }
    }
    progress(phases, phases, "");
    let places = (0..spec.cases.len()).flat_map(|case| (0..contenders).map(move |contender| (case, contender)));
    let measured = combinations.into_iter().zip(places).filter(|(combination, _)| combination.first.is_some());
    measured.map(|(combination, place)| record(combination, place, &site)).collect()
}

fn combination<'a>(contender: &'a Contender, case: &'a Case, plain: bool) -> Combination<'a> {
    let tasks = case.tasks.clone();
    let setting = Rc::new(Setting {
        balancer: contender.balancer.clone(),
        shares: case.tasks.shares(&contender.powers, plain),
        queue: Rc::new(move |node| tasks.queue(node)),
        plan: false,
        weighted: case.tasks.unit() == Unit::Work,
        trace: None,
    });
    Combination { contender, case, setting, samples: Vec::new(), first: None, trace: None }
}

fn trace(contender: &Contender, case: &Case, rows: Vec<NodeTrace>) -> Trace {
    let name =
        format!("{} on {}, {}, {} B a task", contender.balancer.name, contender.overlay.topology.name(), case.loads, case.tasks.payload());
    let name = if case.tasks.payload_is_mean() { format!("{name} on average") } else { name };
    Trace { name, rows, overlay: Rc::new(contender.overlay.clone()) }
}

fn record(combination: Combination, (case_number, contender_number): (usize, usize), site: &Site) -> Result<CompareRecord> {
    let Combination { contender, case, setting, samples, first, trace } = combination;
    let nothing = || Error::Failed(format!("{}: no phase was measured", contender.balancer.name));
    let outcome = first.ok_or_else(nothing)?;
    let median = |part: usize| {
        let ms: Vec<f64> = samples.iter().map(|sample| super::site::milliseconds(sample[part])).collect();
        statistics::median(&ms).ok_or_else(nothing)
    };
    let Estimate { value: ms, low, high, coverage } = median(0)?;
    let judged = Judged::of(&contender.balancer, &contender.overlay, &setting.shares, &case.tasks, &outcome, site);
    let Overlay { topology, placement } = &contender.overlay;
    let optimum = if topology.nodes() <= OPTIMUM_UP_TO { judged.optimum(&contender.overlay) } else { None };
    let counts = outcome.counts;
    let weighing = judged.weighing(&case.tasks, &outcome, optimum);
    let (moved, hops) = match &weighing.work {
        None => (case.tasks.count() - outcome.stayed, counts.task_hops),
        Some(work) => (work.nonlocal_work, work.work_hops),
    };
    Ok(CompareRecord {
        balancer: contender.balancer.name.clone(),
        topology: topology.name(),
        native: placement.native(),
        site: site.clone(),
        nodes: topology.nodes(),
        loads: case.loads.clone(),
        payload: case.tasks.payload(),
        tasks: case.tasks.count(),
        weighing,
        repeat: samples.len() as u32,
        imbalance_before: judged.imbalance.before.max_over_mean,
        imbalance_after: judged.imbalance.after.max_over_mean,
        imbalance: judged.imbalance,
        moved,
        least: judged.minimum_nonlocal,
        task_hops: counts.task_hops,
        optimum_task_hops: optimum.filter(|_| case.tasks.unit() == Unit::Tasks),
        hops_ratio: optimum.filter(|_| judged.exact).and_then(|optimum| hops_ratio(hops, optimum)),
        exact: judged.exact,
        declined: outcome.declined,
        steps: counts.chain,
        messages: counts.messages,
        bytes: counts.bytes,
        host_bytes: counts.host_bytes,
        ms_median: ms,
        ms_ci95: (site.network.is_some() || samples.len() > 1).then_some([low, high]),
        ms_coverage: if site.network.is_some() { 1.0 } else { coverage },
        ms_rounds: samples.iter().map(|sample| super::site::milliseconds(sample[0])).collect(),
        ms_information: median(1)?.value,
        ms_decision: median(2)?.value,
        ms_exchange: median(3)?.value,
        break_even_us: judged.break_even_us((ms * 1e6) as u64),
        finish_before: judged.finish_before,
        finish_after: judged.finish_after,
        makespan_before: judged.makespan_before,
        makespan_after: judged.makespan_after,
        case: case_number,
        contender: contender_number,
        simplicity: contender.balancer.entry.simplicity(),
        map: LoadMap {
            topology: topology.clone(),
            placement: placement.clone(),
            quota: judged.quota.clone(),
            before: judged.loads,
            after: outcome.finals,
        },
        trace,
    })
}

/// 1 where nothing has to move and nothing did; none where something moved that did not have to.
fn hops_ratio(hops: u128, optimum: u128) -> Option<f64> {
    match (hops, optimum) {
        (0, 0) => Some(1.0),
        (_, 0) => None,
        (hops, optimum) => Some(hops as f64 / optimum as f64),
    }
}
