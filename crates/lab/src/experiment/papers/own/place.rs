//! A point of a figure of one's own: what is balanced or scheduled there, and how it is measured.

use super::super::super::independent::{IndependentSpec, run_independent};
use super::super::super::run::{self, RunRecord, RunSpec, SchedulerContender};
use super::super::super::wu1997::{Bench, excess};
use super::super::Value;
use super::super::evidence::Mean;
use crate::workload::{LoadPattern, graphs, independent};
use equipoise::error::{Error, Result};
use equipoise::load::Powers;
use equipoise::phase::Outcome;
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

/// A point of a curve, as texts without `{x}`.
#[derive(Clone)]
pub(super) struct Place {
    pub kind: Kind,
    /// The balancer or the scheduler.
    pub who: String,
    /// The loads or the workload.
    pub what: String,
    pub topology: String,
    pub network: String,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Phase => "phase",
            Kind::Run => "run",
        }
    }
}

/// Wrong key of a curve.
#[derive(Clone, Copy)]
pub(super) enum Key {
    Who,
    What,
    Topology,
    Network,
}

impl Place {
    fn topology(&self) -> Result<Topology> {
        Ok(Topology::parse(&self.topology, 1)?)
    }

    /// The network; the default one of a phase, and none of a run, whose migrations have times of their own.
    fn network(&self) -> Result<Network> {
        match (self.network.as_str(), self.kind) {
            ("", Kind::Phase) => Ok(Network::parse("switched")?),
            ("", Kind::Run) => Ok(Network::Zero),
            (network, _) => Ok(Network::parse(network)?),
        }
    }

    /// Whether this can be measured of it, as far as that can be known without measuring.
    pub fn check<F: Fn(Error) -> (usize, Error)>(&self, measured: &str, wrong: &dyn Fn(Key) -> F) -> Result<(), (usize, Error)> {
        let topology = self.topology().map_err(wrong(Key::Topology))?;
        self.network().map_err(wrong(Key::Network))?;
        let nodes = topology.nodes();
        match self.kind {
            Kind::Phase => {
                let balancer = balance::find(&self.who).map_err(wrong(Key::Who))?;
                if let Some(objection) = balancer.entry.objection(&topology) {
                    return Err(wrong(Key::Who)(objection.into()));
                }
                if balancer.needs_places() {
                    let why = format!("{}: it needs a place of each task, and loads have none", self.who);
                    return Err(wrong(Key::Who)(Error::usage(why)));
                }
                let loads = LoadPattern::parse(&self.what).map_err(wrong(Key::What))?;
                let loads = loads.draw(nodes, nodes, 0).map_err(wrong(Key::What))?;
                let is_of_moves = ["cost", "locality"].contains(&measured);
                if is_of_moves && balancer.entry.name == "none" {
                    return Err(wrong(Key::Who)(Error::usage(format!("{} moves nothing, so that it has no {measured}", self.who))));
                }
                if loads.iter().all(|load| *load == 0) && (is_of_moves || measured == "imbalance") {
                    return Err(wrong(Key::What)(Error::usage(format!("loads {}: there are no tasks, and so no {measured}", self.what))));
                }
            }
            Kind::Run => {
                if let Some(workload) = independent::find(&self.what).transpose() {
                    let workload = workload.map_err(wrong(Key::What))?;
                    schedule::independent::find(&self.who).map_err(wrong(Key::Who))?;
                    if topology != Topology::parse("complete", nodes).map_err(|why| wrong(Key::Topology)(why.into()))? {
                        let why =
                            format!("independent tasks go straight to any rank: the topology is complete:{nodes}, not {}", topology.name());
                        return Err(wrong(Key::Topology)(Error::usage(why)));
                    }
                    let setting = independent::Setting { seed: 0, ranks: nodes, is_simulated: true };
                    let problem = workload.problem(&setting).map_err(wrong(Key::What))?;
                    return self.check_arrivals(measured, !problem.arrivals.is_empty()).map_err(wrong(Key::What));
                }
                let scheduler = schedule::find(&self.who).map_err(wrong(Key::Who))?;
                if let Some(objection) = scheduler.objection(&topology) {
                    return Err(wrong(Key::Who)(objection.into()));
                }
                let workload = graphs::find(&self.what).map_err(wrong(Key::What))?;
                let setting = graphs::Setting { seed: 0, processors: nodes, is_simulated: true };
                let prepared = workload.prepare(&setting).map_err(wrong(Key::What))?;
                self.check_arrivals(measured, prepared.measured().is_some()).map_err(wrong(Key::What))?;
                let overlay = Overlay::one_host(topology, nodes).map_err(|why| wrong(Key::Topology)(why.into()))?;
                SchedulerContender::new(scheduler, overlay).map_err(wrong(Key::Who))?;
            }
        }
        Ok(())
    }

    fn check_arrivals(&self, measured: &str, has_arrivals: bool) -> Result<()> {
        if measured == "response" && !has_arrivals {
            return Err(Error::usage(format!("workload {}: only what arrives over time has response times", self.what)));
        }
        Ok(())
    }

    pub fn measure(&self, measured: &str, name: &str, seed: u64, cases: u32) -> Result<Vec<Value>> {
        let mut samples = Vec::new();
        match self.kind {
            Kind::Phase => {
                let topology = self.topology()?;
                let nodes = topology.nodes();
                let model = Model { network: self.network()?, ..Model::default() };
                let mut bench = Bench::with(&self.who, topology, Powers::equal(nodes, nodes), model)?;
                let pattern = LoadPattern::parse(&self.what)?;
                for case in 0..u64::from(cases) {
                    let loads = pattern.draw(nodes, nodes, seed + case)?;
                    let outcome = bench.phase(&loads, false)?;
                    samples.extend(of_phase(measured, bench.topology(), &loads, &outcome)?);
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
        let none = || Error::Failed(format!("{}: nothing was recorded", self.who));
        let model = Model { network: self.network()?, seed, ..Model::default() };
        let mut world = World::simulated(nodes, model);
        if let Some(workload) = independent::find(&self.what)? {
            let contenders = vec![schedule::independent::find(&self.who)?];
            let spec = IndependentSpec { contenders, workload, repeat: None, seed, speeds: Vec::new() };
            return run_independent(&mut world, &spec, |_, _, _| {})?.into_iter().next().ok_or_else(none);
        }
        let spec = RunSpec {
            contenders: vec![SchedulerContender::new(schedule::find(&self.who)?, Overlay::one_host(topology, nodes)?)?],
            workload: graphs::find(&self.what)?,
            workers: 1,
            repeat: None,
            seed,
            trace: false,
        };
        run::run(&mut world, &spec, |_, _, _| {})?.into_iter().next().ok_or_else(none)
    }
}

/// The quantity of a phase; none where there is none, as for what is even beforehand.
fn of_phase(measured: &str, topology: &Topology, loads: &[u64], outcome: &Outcome) -> Result<Option<f64>> {
    let Outcome { finals, stayed, counts, elapsed, .. } = outcome;
    let total: u64 = loads.iter().sum();
    Ok(match measured {
        "cost" => excess(counts.task_hops, judge::optimum(topology, loads, finals)?),
        "locality" => excess((total - stayed).into(), judge::minimum_nonlocal(loads, finals).into()),
        "imbalance" => (total > 0).then(|| finals.iter().copied().max().unwrap_or(0) as f64 * finals.len() as f64 / total as f64),
        "task-hops" => Some(counts.task_hops as f64),
        "steps" => Some(f64::from(counts.chain)),
        _ => Some(*elapsed as f64 / 1e6),
    })
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
