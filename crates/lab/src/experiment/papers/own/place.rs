//! A point of a figure of one's own: what is balanced or scheduled there, and how it is measured.

use std::rc::Rc;

use super::super::super::independent::{IndependentSpec, run_independent};
use super::super::super::run::{self, RunRecord, RunSpec, SchedulerContender};
use super::super::super::tasks::Tasks;
use super::super::super::weighing::LoadUnit;
use super::super::super::wu1997::excess;
use super::super::Value;
use super::super::evidence::Mean;
use super::SPEED_UP;
use crate::workload::{LoadPattern, Pins, PowerPattern, WeightPattern, graphs, independent};
use equipoise::error::{Error, Result};
use equipoise::phase::{self, Outcome, Setting};
use equipoise::topology::{Overlay, Topology};
use equipoise::transport::sim::{Model, Network};
use equipoise::transport::world::World;
use equipoise::{balance, judge, schedule};

/// Kind of measurement: a phase of a balancer, or a run under a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Phase,
    Run,
}

/// Key of a curve that has a text for each place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// The balancer or the scheduler.
    Who,
    /// The loads or the workload.
    What,
    Topology,
    Network,
    Powers,
    Payload,
    Weights,
}

/// A point of a curve.
#[derive(Clone)]
pub(super) struct Place {
    pub kind: Kind,
    /// Text of each key, without `{x}`; `None` if it is left out.
    pub texts: Vec<Option<String>>,
    /// Seconds of a unit of work on a node of average power; 0 if the measure does not need them.
    pub task_seconds: f64,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Phase => "phase",
            Kind::Run => "run",
        }
    }

    pub fn other(self) -> Kind {
        match self {
            Kind::Phase => Kind::Run,
            Kind::Run => Kind::Phase,
        }
    }
}

impl Key {
    pub const ALL: [Key; 7] = [Key::Who, Key::What, Key::Topology, Key::Network, Key::Powers, Key::Payload, Key::Weights];

    pub fn name(self, kind: Kind) -> &'static str {
        match (self, kind) {
            (Key::Who, Kind::Phase) => "balancer",
            (Key::Who, Kind::Run) => "scheduler",
            (Key::What, Kind::Phase) => "loads",
            (Key::What, Kind::Run) => "workload",
            (Key::Topology, _) => "topology",
            (Key::Network, _) => "network",
            (Key::Powers, _) => "powers",
            (Key::Payload, _) => "payload",
            (Key::Weights, _) => "weights",
        }
    }

    /// Returns true if a curve cannot do without it.
    pub fn is_needed(self) -> bool {
        matches!(self, Key::Who | Key::What | Key::Topology)
    }

    /// Returns true if the key, under the name that it has for the other kind, is wrong in a curve of this kind.
    pub fn is_foreign_to(self, kind: Kind) -> bool {
        match self {
            Key::Who | Key::What => true,
            Key::Topology | Key::Network => false,
            Key::Powers | Key::Payload | Key::Weights => kind == Kind::Run,
        }
    }
}

impl Place {
    fn given(&self, key: Key) -> Option<&str> {
        self.texts.get(key as usize)?.as_deref()
    }

    pub fn text(&self, key: Key) -> &str {
        self.given(key).unwrap_or_default()
    }

    fn topology(&self) -> Result<Topology> {
        Ok(Topology::parse(self.text(Key::Topology), 1)?)
    }

    /// The network; the default one of a phase, and none of a run, whose migrations have times of their own.
    fn network(&self) -> Result<Network> {
        match (self.given(Key::Network), self.kind) {
            (None, Kind::Phase) => Ok(Network::parse("switched")?),
            (None, Kind::Run) => Ok(Network::Zero),
            (Some(network), _) => Ok(Network::parse(network)?),
        }
    }

    fn powers(&self) -> Result<PowerPattern> {
        self.given(Key::Powers).map_or(Ok(PowerPattern::Equal), PowerPattern::parse)
    }

    fn payload(&self) -> Result<u64> {
        let read = |text: &str| text.parse().map_err(|_| Error::usage(format!("payload '{text}': it is a whole number of bytes")));
        self.given(Key::Payload).map_or(Ok(0), read)
    }

    fn weights(&self) -> Result<WeightPattern> {
        self.given(Key::Weights).map_or(Ok(WeightPattern::Unit), WeightPattern::parse)
    }

    /// The tasks of a case, by node; an error comes with the key in which it is.
    fn tasks(&self, world: &mut World, seed: u64) -> Result<Tasks, (Key, Error)> {
        let nodes = world.ranks();
        let loads = LoadPattern::parse(self.text(Key::What)).and_then(|loads| loads.draw(nodes, nodes, seed)).map_err(of(Key::What))?;
        let count = loads.iter().sum();
        let weights = self.weights().and_then(|weights| weights.draw(count, seed)).map_err(of(Key::Weights))?;
        let payload = self.payload().map_err(of(Key::Payload))?;
        let heavy = if weights.are_unit() { Key::Payload } else { Key::Weights };
        Tasks::weighing(world, loads, payload, weights, Pins::default()).map_err(of(heavy))
    }

    /// Whether this can be measured of it, as far as that can be known without measuring.
    pub fn check(&self, measured: &str) -> Result<(), (Key, Error)> {
        let topology = self.topology().map_err(of(Key::Topology))?;
        self.network().map_err(of(Key::Network))?;
        match self.kind {
            Kind::Phase => self.check_phase(measured, &topology),
            Kind::Run => self.check_run(measured, topology),
        }
    }

    fn check_phase(&self, measured: &str, topology: &Topology) -> Result<(), (Key, Error)> {
        let (who, nodes) = (self.text(Key::Who), topology.nodes());
        let balancer = balance::find(who).map_err(of(Key::Who))?;
        if let Some(objection) = balancer.entry.objection(topology) {
            return Err((Key::Who, objection.into()));
        }
        if balancer.needs_places() {
            return Err((Key::Who, Error::usage(format!("{who}: it needs a place of each task, and loads have none"))));
        }
        let tasks = self.tasks(&mut World::simulated(nodes, Model::default()), 0)?;
        balancer.check_tasks(tasks.count()).map_err(of(Key::Who))?;
        let powers = self.powers().map_err(of(Key::Powers))?;
        let drawn = powers.draw(nodes, nodes, 0).map_err(of(Key::Powers))?.0.to_vec();
        let is_of_moves = ["cost", "locality"].contains(&measured);
        let is_of_times = ["imbalance", SPEED_UP].contains(&measured);
        if is_of_moves && balancer.entry.name == "none" {
            return Err((Key::Who, Error::usage(format!("{who} moves nothing, so that it has no {measured}"))));
        }
        if is_of_times && (drawn.contains(&0) || matches!(powers, PowerPattern::Uniform { low: 0, .. })) {
            let why = format!("powers {}: a node of power 0 may hold tasks, and so there is no {measured}", self.text(Key::Powers));
            return Err((Key::Powers, Error::usage(why)));
        }
        if tasks.loads().iter().all(|load| *load == 0) && (is_of_moves || is_of_times) {
            let (key, why) = match tasks.count() {
                0 => (Key::What, format!("loads {}: there are no tasks", self.text(Key::What))),
                _ => (Key::Weights, format!("weights {}: the tasks are no work", self.text(Key::Weights))),
            };
            return Err((key, Error::usage(format!("{why}, and so no {measured}"))));
        }
        Ok(())
    }

    fn check_run(&self, measured: &str, topology: Topology) -> Result<(), (Key, Error)> {
        let (who, what, nodes) = (self.text(Key::Who), self.text(Key::What), topology.nodes());
        if let Some(workload) = independent::find(what).transpose() {
            let workload = workload.map_err(of(Key::What))?;
            schedule::independent::find(who).map_err(of(Key::Who))?;
            if topology != Topology::parse("complete", nodes).map_err(|why| (Key::Topology, why.into()))? {
                let why = format!("independent tasks go straight to any rank: the topology is complete:{nodes}, not {}", topology.name());
                return Err((Key::Topology, Error::usage(why)));
            }
            let setting = independent::Setting { seed: 0, ranks: nodes, is_simulated: true };
            let problem = workload.problem(&setting).map_err(of(Key::What))?;
            return self.check_arrivals(measured, !problem.arrivals.is_empty()).map_err(of(Key::What));
        }
        let scheduler = schedule::find(who).map_err(of(Key::Who))?;
        if let Some(objection) = scheduler.objection(&topology) {
            return Err((Key::Who, objection.into()));
        }
        let workload = graphs::find(what).map_err(of(Key::What))?;
        let setting = graphs::Setting { seed: 0, processors: nodes, is_simulated: true };
        let prepared = workload.prepare(&setting).map_err(of(Key::What))?;
        self.check_arrivals(measured, prepared.measured().is_some()).map_err(of(Key::What))?;
        let overlay = Overlay::one_host(topology, nodes).map_err(|why| (Key::Topology, why.into()))?;
        SchedulerContender::new(scheduler, overlay).map(drop).map_err(of(Key::Who))
    }

    fn check_arrivals(&self, measured: &str, has_arrivals: bool) -> Result<()> {
        if measured == "response" && !has_arrivals {
            return Err(Error::usage(format!("workload {}: only what arrives over time has response times", self.text(Key::What))));
        }
        Ok(())
    }

    pub fn measure(&self, measured: &str, name: &str, seed: u64, cases: u32) -> Result<Vec<Value>> {
        let mut samples = Vec::new();
        match self.kind {
            Kind::Phase => {
                let topology = self.topology()?;
                let nodes = topology.nodes();
                let mut world = World::simulated(nodes, Model { network: self.network()?, ..Model::default() });
                let balancer = Rc::new(balance::find(self.text(Key::Who))?);
                let (overlay, powers) = (Overlay::one_host(topology, nodes)?, self.powers()?);
                for case in 0..u64::from(cases) {
                    let tasks = self.tasks(&mut world, seed + case).map_err(|(_, why)| why)?;
                    let (powers, _) = powers.draw(nodes, nodes, seed + case)?;
                    let queues = tasks.clone();
                    let setting = Setting {
                        balancer: balancer.clone(),
                        // The balancers' rules as they are printed, as in the papers' figures.
                        shares: tasks.shares(&powers, true),
                        queue: Rc::new(move |node| queues.queue(node)),
                        plan: false,
                        trace: None,
                        weighted: tasks.unit() == LoadUnit::Work,
                    };
                    let outcome = phase::run(&mut world, &overlay, &Rc::new(setting))?;
                    let outcome = outcome.ok_or_else(|| Error::Failed("a simulation left no outcome".into()))?;
                    samples.extend(self.of_phase(measured, &overlay.topology, tasks.loads(), &powers.to_vec(), &outcome)?);
                }
            }
            Kind::Run => {
                for case in 0..u64::from(cases) {
                    samples.extend(of_run(measured, &self.run(seed + case)?)?);
                }
            }
        }
        // Where nothing is to be moved in any of the cases, the curve has no point.
        Ok(Mean::of(&samples).map(|mean| Value::new(name, mean)).into_iter().collect())
    }

    fn run(&self, seed: u64) -> Result<RunRecord> {
        let topology = self.topology()?;
        let nodes = topology.nodes();
        let none = || Error::Failed(format!("{}: nothing was recorded", self.text(Key::Who)));
        let model = Model { network: self.network()?, seed, ..Model::default() };
        let mut world = World::simulated(nodes, model);
        if let Some(workload) = independent::find(self.text(Key::What))? {
            let contenders = vec![schedule::independent::find(self.text(Key::Who))?];
            let spec = IndependentSpec { contenders, workload, repeat: None, seed, speeds: Vec::new() };
            return run_independent(&mut world, &spec, |_, _, _| {})?.into_iter().next().ok_or_else(none);
        }
        let spec = RunSpec {
            contenders: vec![SchedulerContender::new(schedule::find(self.text(Key::Who))?, Overlay::one_host(topology, nodes)?)?],
            workload: graphs::find(self.text(Key::What))?,
            workers: 1,
            repeat: None,
            seed,
            trace: false,
        };
        run::run(&mut world, &spec, |_, _, _| {})?.into_iter().next().ok_or_else(none)
    }

    /// The quantity of a phase; none where there is none, as for what is even beforehand. Loads are in work units where tasks have weights.
    fn of_phase(&self, measured: &str, topology: &Topology, loads: &[u64], powers: &[u64], outcome: &Outcome) -> Result<Option<f64>> {
        let Outcome { finals, counts, elapsed, .. } = outcome;
        let (stayed, hops) = outcome.work.map_or((outcome.stayed, counts.task_hops), |work| (work.stayed, work.hops));
        let total: u64 = loads.iter().sum();
        Ok(match measured {
            "cost" => excess(hops, judge::optimum(topology, loads, finals)?),
            "locality" => excess((total - stayed).into(), judge::minimum_nonlocal(loads, finals).into()),
            "imbalance" => (total > 0).then(|| judge::finish(finals, powers) * finals.len() as f64 / total as f64),
            "task-hops" => Some(counts.task_hops as f64),
            "steps" => Some(f64::from(counts.chain)),
            SPEED_UP => (total > 0).then(|| {
                let of_phase = *elapsed as f64 / 1e9 / self.task_seconds;
                judge::finish(loads, powers) / (judge::finish(finals, powers) + of_phase)
            }),
            _ => Some(*elapsed as f64 / 1e6),
        })
    }
}

/// An error, with the key in which it is.
fn of(key: Key) -> impl Fn(Error) -> (Key, Error) {
    move |why| (key, why)
}

fn of_run(measured: &str, record: &RunRecord) -> Result<Option<f64>> {
    let each = |number: u64| Some(number as f64 / record.tasks.max(1) as f64);
    Ok(match measured {
        "response" => match (&record.responses, record.scheduling.and_then(|scheduling| scheduling.task_response_mean)) {
            (Some(responses), _) => Some(responses.response_mean),
            (None, Some(mean)) => Some(mean),
            (None, None) => return Err(Error::Failed(format!("{}: only what arrives over time has response times", record.workload))),
        },
        "makespan" => Some(record.makespan),
        "efficiency" => Some(record.efficiency),
        "migrations" => each(record.migrated),
        _ => each(record.messages),
    })
}
