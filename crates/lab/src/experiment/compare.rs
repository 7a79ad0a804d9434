//! Balancers side by side, on the same tasks.

mod record;

use std::rc::Rc;

use super::interruption::{Interruption, unless_interrupted};
use super::judged::{Judged, OPTIMUM_UP_TO};
use super::load_source::LoadSource;
use super::prediction;
use super::ranking;
use super::site::Site;
use super::tasks::Tasks;
use super::weighing::LoadUnit;
use equipoise::agreement::agree;
use equipoise::balance::Chosen;
use equipoise::error::{Error, Result};
use equipoise::load::Powers;
use equipoise::phase::trace::{MOST_PASSAGES, NodeTrace, Trace};
use equipoise::phase::{self, Outcome, Setting};
use equipoise::topology::{Overlay, PlacementRule};
use equipoise::transport::sim::Measured;
use equipoise::transport::world::World;
pub use record::CompareRecord;
pub(super) use record::MeasuredPhase;
use record::unmeasured;

/// Contenders, cases and number of rounds of a comparison.
pub struct CompareSpec {
    pub contenders: Vec<BalancerContender>,
    pub cases: Vec<Case>,
    /// Number of rounds. Each runs all combinations once, with the contenders in another order, so that drift of the machine affects all alike.
    pub repeat: u32,
    pub seed: u64,
    /// Number of steps for which the loads stay as they are; `None`: until the first of the balancers pays.
    pub lasting: Option<u64>,
    /// Seconds of a unit of work on a rank of average power, for the advice and the crossovers; `None`: as the tasks say, if they do.
    pub task_seconds: Option<f64>,
    /// Whether to record a trace, in one more round that is not measured; see [`MOST_NODES`](equipoise::phase::trace::MOST_NODES).
    pub trace: bool,
    /// Whether to follow the balancers' rules as printed in their sources, even where they make the slowest rank slower.
    pub plain: bool,
    /// On real ranks: the measured network on which each phase is simulated, too, to compare the predicted time with the measured one.
    pub prediction: Option<Rc<Measured>>,
}

impl CompareSpec {
    /// One round with seed 1, and nothing else asked for.
    pub fn new(contenders: Vec<BalancerContender>, cases: Vec<Case>) -> CompareSpec {
        CompareSpec {
            contenders,
            cases,
            repeat: 1,
            seed: 1,
            lasting: None,
            task_seconds: None,
            trace: false,
            plain: false,
            prediction: None,
        }
    }
}

/// A balancer on its topology.
pub struct BalancerContender {
    pub balancer: Rc<Chosen>,
    pub overlay: Overlay,
    /// The rule by which the overlay is placed, where several are compared.
    pub placement: Option<PlacementRule>,
    /// Power of each node.
    pub powers: Powers,
}

/// Some tasks to be balanced by all contenders.
pub struct Case {
    pub loads: LoadSource,
    /// Tasks to be balanced, by rank.
    pub tasks: Tasks,
}

/// A case, and the result of each contender.
#[derive(Clone, Debug)]
pub struct CaseResult {
    pub loads: Rc<LoadSource>,
    /// One for each contender that is not left out, in their order.
    pub records: Vec<CompareRecord>,
    pub left_out: Vec<LeftOut>,
}

/// A contender that found no way to balance the tasks within the ranks' capacities.
#[derive(Clone, Debug)]
pub struct LeftOut {
    pub balancer: String,
    pub why: String,
}

/// One contender on one case, and its measurements.
struct Combination<'a> {
    contender: &'a BalancerContender,
    case: &'a Case,
    /// Tasks of the case, by node.
    tasks: Tasks,
    setting: Rc<Setting>,
    samples: Vec<Sample>,
    first: Option<Outcome>,
    trace: Option<Trace>,
    /// Why it can't run, if it found no way within the ranks' capacities; it is not run again.
    refused: Option<Error>,
}

/// Ticks of one phase: all, information, decision and exchange.
type Sample = [u64; 4];

/// The sample that an outcome is.
pub(super) fn sample(outcome: &Outcome) -> Sample {
    [outcome.elapsed, outcome.times.information, outcome.times.decision, outcome.times.exchange]
}

/// Runs everything. `progress` is called on every rank with the number of phases done, the number of all phases and the name of the next
/// contender. The results, one for each case, come where node 0 is; elsewhere there are none. If the world was asked to end, they are those of what
/// was measured until then.
///
/// # Errors
/// As [`phase::run`]; that there is no way within the ranks' capacities is an error only if no contender finds one.
pub fn compare(world: &mut World, spec: &CompareSpec, mut progress: impl FnMut(u64, u64, &str)) -> Result<Vec<CaseResult>> {
    let site = Site::of(world, spec.seed)?;
    // Before anything is measured it is known that all can be predicted.
    let gathered = spec.prediction.iter().flat_map(|_| &spec.cases).map(|case| case.tasks.gathered()).collect::<Result<Vec<_>>>();
    let gathered = agree(world, gathered)?;
    // Real ranks connect when they first talk to each other: a first round is run without being measured. In simulation every round is
    // the same.
    let (unmeasured, measured) = if world.is_simulated() { (0, 1) } else { (1, u64::from(spec.repeat.max(1))) };
    let combined = |case| spec.contenders.iter().map(|contender| Combination::new(contender, case, spec.plain)).collect::<Vec<_>>();
    let mut cases: Vec<Vec<Combination>> = spec.cases.iter().map(combined).collect();
    let combinations = spec.cases.len() * spec.contenders.len();
    let rounds = unmeasured + measured + u64::from(spec.trace);
    let phases = combinations as u64 * rounds;
    let mut done = 0;
    'rounds: for round in 0..rounds {
        let is_traced = round >= unmeasured + measured;
        let turns = ranking::turns(spec.contenders.len(), round, spec.seed);
        for (case, turn) in (0..cases.len()).flat_map(|case| turns.iter().map(move |turn| (case, *turn))) {
            let combination = &mut cases[case][turn];
            progress(done, phases, &combination.contender.balancer.name);
            let overlay = &combination.contender.overlay;
            Rc::make_mut(&mut combination.setting).trace =
                is_traced.then(|| MOST_PASSAGES / combinations / overlay.topology.nodes() as usize);
            let Some(outcome) = unless_interrupted(world, |world| combination.run(world))? else { break 'rounds };
            done += 1;
            let Some(mut outcome) = outcome else { continue };
            if is_traced {
                combination.trace = Some(trace(combination.contender, combination.case, std::mem::take(&mut outcome.trace)));
            } else if round >= unmeasured {
                combination.samples.push(sample(&outcome));
            }
            combination.first.get_or_insert(outcome);
        }
    }
    progress(done, phases, "");
    let all_refused = |combinations: &&Vec<Combination>| combinations.iter().all(|one| one.refused.is_some());
    if let Some(why) = cases.iter().find(all_refused).and_then(|combinations| combinations.first()?.refused.clone()) {
        return Err(why);
    }
    if !world.is_first() {
        return Ok(Vec::new());
    }
    let interrupted = Interruption::of(world, done, phases);
    let result = |(number, (case, combinations)): (usize, (&Case, Vec<Combination>))| {
        let loads = Rc::new(case.loads.clone());
        let record = |(contender, combination): (usize, Combination)| {
            let predicted = combination.predicted(spec, gathered.get(number))?;
            let record = CompareRecord {
                ms_predicted: predicted,
                lasting: spec.lasting,
                task_seconds: spec.task_seconds,
                interrupted: interrupted.clone(),
                placement: spec.contenders[contender].placement.map(PlacementRule::name),
                contender,
                ..combination.record(&loads, &site)?
            };
            Ok(CompareRecord { crossover: record.crossover_of_this(), ..record })
        };
        let refusal = |Combination { contender, refused, .. }: &Combination| {
            Some(LeftOut { balancer: contender.balancer.name.clone(), why: refused.as_ref()?.to_string() })
        };
        let left_out = combinations.iter().filter_map(refusal).collect();
        let is_measured = |(_, combination): &(usize, Combination)| {
            combination.refused.is_none() && (interrupted.is_none() || !combination.samples.is_empty())
        };
        let records = combinations.into_iter().enumerate().filter(is_measured).map(record).collect::<Result<_>>()?;
        Ok(CaseResult { loads, records, left_out })
    };
    let results = spec.cases.iter().zip(cases).enumerate().map(result).collect::<Result<Vec<_>>>()?;
    Ok(results.into_iter().filter(|result| interrupted.is_none() || !result.records.is_empty()).collect())
}

fn trace(contender: &BalancerContender, case: &Case, rows: Vec<NodeTrace>) -> Trace {
    let name =
        format!("{} on {}, {}, {} B a task", contender.balancer.name, contender.overlay.topology.name(), case.loads, case.tasks.payload());
    let name = if case.tasks.payload_is_mean() { format!("{name} on average") } else { name };
    Trace { name, rows, overlay: Rc::new(contender.overlay.clone()) }
}

impl<'a> Combination<'a> {
    fn new(contender: &'a BalancerContender, case: &'a Case, plain: bool) -> Combination<'a> {
        let tasks = case.tasks.on(&contender.overlay.placement);
        let queues = tasks.clone();
        let setting = Rc::new(Setting {
            balancer: contender.balancer.clone(),
            shares: tasks.shares(&contender.powers, plain),
            queue: Rc::new(move |node| queues.queue(node)),
            plan: false,
            weighted: case.tasks.unit() == LoadUnit::Work,
            trace: None,
        });
        Combination { contender, case, tasks, setting, samples: Vec::new(), first: None, trace: None, refused: None }
    }

    /// Runs a phase. The outcome is node 0's; a balancer that finds no way within the capacities, which all ranks learn alike, is left out from then on.
    fn run(&mut self, world: &mut World) -> Result<Option<Outcome>> {
        if self.refused.is_some() {
            return Ok(None);
        }
        match phase::run(world, &self.contender.overlay, &self.setting) {
            Err(why @ Error::NoRoom(_)) => {
                self.refused = Some(why);
                Ok(None)
            }
            other => other,
        }
    }

    /// Predicted time of the phase on the network for predictions; `None` without one. `gathered` are the tasks of all ranks.
    fn predicted(&self, spec: &CompareSpec, gathered: Option<&Tasks>) -> Result<Option<f64>> {
        let (Some(network), Some(gathered)) = (&spec.prediction, gathered) else { return Ok(None) };
        let overlay = &self.contender.overlay;
        let tasks = gathered.on(&overlay.placement);
        let setting = Setting { queue: Rc::new(move |node| tasks.queue(node)), trace: None, ..(*self.setting).clone() };
        prediction::predicted_ms(network, overlay, &Rc::new(setting), spec.seed)
    }

    fn record(self, loads: &Rc<LoadSource>, site: &Site) -> Result<CompareRecord> {
        let BalancerContender { balancer, overlay, .. } = self.contender;
        let tasks = &self.tasks;
        let outcome = self.first.ok_or_else(|| unmeasured(balancer))?;
        let judged = Judged::of(balancer, overlay, &self.setting.shares, tasks, &outcome, site);
        let optimum = if overlay.topology.nodes() <= OPTIMUM_UP_TO { judged.optimum(overlay) } else { None };
        MeasuredPhase {
            balancer,
            overlay,
            loads: loads.clone(),
            tasks,
            judged: &judged,
            optimum,
            outcome: &outcome,
            samples: &self.samples,
            trace: self.trace,
        }
        .record(site)
    }
}
