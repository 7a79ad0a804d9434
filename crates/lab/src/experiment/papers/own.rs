//! A figure of one's own, described by a file: a balancer or a scheduler on a topology, loads or a workload, and the number that changes along the axis.
//!
//! ```toml
//! title = "CWA's cost"
//! x = "mean load"
//! measure = "cost"
//! cases = 100
//!
//! [[curve]]
//! balancer = "cwa"
//! topology = "hypercube:6"
//! loads = "uniform:mean={x}"
//! at = [2, 5, 10, 20, 50, 100]
//! ```
//!
//! `{x}` stands for the places in `at`. All that can be known to be wrong is said before anything is measured, with its line.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use toml::Spanned;

use super::super::run::{self, RunRecord, RunSpec, SchedulerContender};
use super::super::wu1997::{Bench, excess};
use super::evidence::Mean;
use super::{Item, Job, Value};
use crate::workload::{LoadPattern, graphs, text};
use equipoise::error::{Error, Result};
use equipoise::load::Powers;
use equipoise::phase::Outcome;
use equipoise::topology::{Overlay, Topology};
use equipoise::transport::sim::{Model, Network};
use equipoise::transport::world::World;
use equipoise::{balance, judge, names, schedule};

/// A figure, checked.
pub struct OwnFigure {
    pub title: String,
    pub x: String,
    pub y: &'static str,
    pub log_x: bool,
    pub log_y: bool,
    pub jobs: Vec<Job>,
}

/// Random cases of a point where the file does not say.
const CASES: u32 = 20;

/// What is measured: its name, what it is, and whether of a phase (a balancer) or of a run (a scheduler).
const MEASURES: [(&str, &str, Kind); 11] = [
    ("cost", "task-hops above the fewest, over these", Kind::Phase),
    ("locality", "tasks moved above the fewest, over these", Kind::Phase),
    ("imbalance", "largest over mean load", Kind::Phase),
    ("task-hops", "tasks times links", Kind::Phase),
    ("steps", "longest chain of messages", Kind::Phase),
    ("ms", "time of a phase, ms", Kind::Phase),
    ("response", "mean response time, in units", Kind::Run),
    ("makespan", "makespan, in units", Kind::Run),
    ("efficiency", "efficiency", Kind::Run),
    ("migrations", "migrations of a task", Kind::Run),
    ("messages", "messages of a task", Kind::Run),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Phase,
    Run,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    title: String,
    #[serde(default)]
    x: String,
    measure: Spanned<String>,
    #[serde(default)]
    log_x: bool,
    #[serde(default)]
    log_y: bool,
    cases: Option<Spanned<u32>>,
    curve: Vec<Spanned<CurveText>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CurveText {
    name: Option<String>,
    balancer: Option<Spanned<String>>,
    loads: Option<Spanned<String>>,
    scheduler: Option<Spanned<String>>,
    workload: Option<Spanned<String>>,
    topology: Option<Spanned<String>>,
    network: Option<Spanned<String>>,
    at: Spanned<Vec<f64>>,
}

/// A point of a curve, as texts without `{x}`.
#[derive(Clone)]
struct Place {
    kind: Kind,
    /// The balancer or the scheduler.
    who: String,
    /// The loads or the workload.
    what: String,
    topology: String,
    network: String,
}

struct Reader<'a> {
    name: &'a str,
    text: &'a str,
}

/// Reads a figure's description.
///
/// # Errors
/// Wrong usage if the file cannot be read, a key is unknown or missing, or something cannot be measured; with the line.
pub fn read(path: &Path) -> Result<OwnFigure> {
    let name = names::shown(path);
    let text = text::read(path).map_err(|why| Error::unreadable("file", format!(" {name}: it cannot be read"), why))?;
    parse(&name, &text)
}

fn parse(name: &str, text: &str) -> Result<OwnFigure> {
    let reader = Reader { name, text };
    let description: Description = toml::from_str(text).map_err(|why| match why.span() {
        Some(span) => reader.mistake(span.start, why.message()),
        None => Error::input("file", format!(" {name}: {}", why.message())),
    })?;
    reader.figure(description)
}

impl Reader<'_> {
    fn mistake(&self, at: usize, why: impl std::fmt::Display) -> Error {
        let line = 1 + self.text.get(..at).map_or(0, |before| before.matches('\n').count());
        Error::input("file", format!(" {}, line {line}: {why}", self.name))
    }

    fn figure(&self, description: Description) -> Result<OwnFigure> {
        let Description { title, x, measure, log_x, log_y, cases, curve } = description;
        let named = MEASURES.iter().find(|(name, ..)| name == measure.get_ref());
        let Some((measured, y, kind)) = named.copied() else {
            let known: Vec<&str> = MEASURES.iter().map(|(name, ..)| *name).collect();
            return Err(
                self.mistake(measure.span().start, format!("measure '{}' is unknown; known are {}", measure.get_ref(), known.join(", ")))
            );
        };
        let number = cases.as_ref().map_or(CASES, |cases| *cases.get_ref());
        if let Some(cases) = cases.filter(|cases| *cases.get_ref() == 0) {
            return Err(self.mistake(cases.span().start, "cases: at least one is needed"));
        }
        if curve.is_empty() {
            return Err(self.mistake(0, "there is no [[curve]]"));
        }
        let mut jobs = Vec::new();
        for spanned in &curve {
            self.curve(spanned, (measured, kind), number, &mut jobs)?;
        }
        Ok(OwnFigure { title, x, y, log_x, log_y, jobs })
    }

    fn curve(&self, spanned: &Spanned<CurveText>, (measured, kind): (&'static str, Kind), cases: u32, jobs: &mut Vec<Job>) -> Result<()> {
        let curve = spanned.get_ref();
        let here = spanned.span().start;
        let (who, what, needs) = match kind {
            Kind::Phase => (&curve.balancer, &curve.loads, ["balancer", "loads"]),
            Kind::Run => (&curve.scheduler, &curve.workload, ["scheduler", "workload"]),
        };
        let others = match kind {
            Kind::Phase => [("scheduler", &curve.scheduler), ("workload", &curve.workload)],
            Kind::Run => [("balancer", &curve.balancer), ("loads", &curve.loads)],
        };
        if let Some((key, Some(other))) = others.into_iter().find(|(_, other)| other.is_some()) {
            let why = format!("{key}: measure '{measured}' is of a {}, which has {} and {}", kind.name(), needs[0], needs[1]);
            return Err(self.mistake(other.span().start, why));
        }
        let given = |key: &str, value: &'_ Option<Spanned<String>>| match value {
            Some(value) => Ok((value.get_ref().clone(), value.span().start)),
            None => Err(self.mistake(here, format!("the curve has no {key}"))),
        };
        let ((who, who_at), (what, what_at)) = (given(needs[0], who)?, given(needs[1], what)?);
        let (topology, topology_at) = given("topology", &curve.topology)?;
        let (network, network_at) =
            curve.network.as_ref().map_or((String::new(), here), |network| (network.get_ref().clone(), network.span().start));
        let name = curve.name.clone().unwrap_or_else(|| format!("{who}, {topology}"));
        let at = curve.at.get_ref();
        if at.is_empty() || at.iter().any(|x| !x.is_finite()) {
            return Err(self.mistake(curve.at.span().start, "at: it has to be a list of one or more numbers"));
        }
        for x in at {
            let fill = |text: &str| text.replace("{x}", &x.to_string());
            let place = Place { kind, who: fill(&who), what: fill(&what), topology: fill(&topology), network: fill(&network) };
            let wrong = |at: usize| move |why: Error| (at, why);
            place
                .check(&|key| {
                    wrong(match key {
                        Key::Who => who_at,
                        Key::What => what_at,
                        Key::Topology => topology_at,
                        Key::Network => network_at,
                    })
                })
                .map_err(|(at, why)| self.mistake(at, why))?;
            let all = format!("{name}/{measured}/{}/{}/{}/{}", place.who, place.what, place.topology, place.network);
            // Whoever gets the same loads or workload on the same topology gets the same random numbers.
            let stream = format!("{}/{}", place.what, place.topology);
            let (place, name) = (Arc::new(place), name.clone());
            let job = Job::new(Item::Figure(1), all, *x, [cases, cases], move |seed, cases| place.measure(measured, &name, seed, cases));
            jobs.push(Job { stream: Some(stream), ..job });
        }
        Ok(())
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Phase => "phase",
            Kind::Run => "run",
        }
    }
}

/// What of a curve is wrong.
#[derive(Clone, Copy)]
enum Key {
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

    /// Whether it can be measured.
    fn check<F: Fn(Error) -> (usize, Error)>(&self, wrong: &dyn Fn(Key) -> F) -> Result<(), (usize, Error)> {
        let topology = self.topology().map_err(wrong(Key::Topology))?;
        self.network().map_err(wrong(Key::Network))?;
        let nodes = topology.nodes();
        match self.kind {
            Kind::Phase => {
                let balancer = balance::find(&self.who).map_err(wrong(Key::Who))?;
                if let Some(objection) = balancer.entry.objection(&topology) {
                    return Err(wrong(Key::Who)(objection.into()));
                }
                let loads = LoadPattern::parse(&self.what).map_err(wrong(Key::What))?;
                loads.draw(nodes, nodes, 0).map_err(wrong(Key::What))?;
            }
            Kind::Run => {
                let scheduler = schedule::find(&self.who).map_err(wrong(Key::Who))?;
                if let Some(objection) = scheduler.objection(&topology) {
                    return Err(wrong(Key::Who)(objection.into()));
                }
                graphs::find(&self.what).map_err(wrong(Key::What))?;
            }
        }
        Ok(())
    }

    fn measure(&self, measured: &str, name: &str, seed: u64, cases: u32) -> Result<Vec<Value>> {
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
        let none = || {
            Error::Failed(format!(
                "{name}: of {} none has a {measured}",
                super::super::super::report::figures::several(cases.into(), "case")
            ))
        };
        Ok(vec![Value::new(name, Mean::of(&samples).ok_or_else(none)?)])
    }

    fn run(&self, seed: u64) -> Result<RunRecord> {
        let topology = self.topology()?;
        let nodes = topology.nodes();
        let spec = RunSpec {
            contenders: vec![SchedulerContender::new(schedule::find(&self.who)?, Overlay::one_host(topology, nodes)?)?],
            workload: graphs::find(&self.what)?,
            workers: 1,
            repeat: None,
            seed,
            trace: false,
        };
        let model = Model { network: self.network()?, seed, ..Model::default() };
        let records = run::run(&mut World::simulated(nodes, model), &spec, |_, _, _| {})?;
        records.into_iter().next().ok_or_else(|| Error::Failed(format!("{}: nothing was recorded", self.who)))
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
        "response" => match &record.responses {
            Some(responses) => Some(responses.response_mean),
            None => return Err(Error::Failed(format!("{}: only streams have response times", record.workload))),
        },
        "makespan" => Some(record.makespan),
        "efficiency" => Some(record.efficiency),
        "migrations" => each(record.migrated),
        _ => each(record.messages),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Effort, Measuring, Paper, measure};
    use super::*;

    const CWA: &str = "title = \"t\"\nmeasure = \"cost\"\ncases = 5\n\n[[curve]]\nbalancer = \"cwa\"\ntopology = \"hypercube:3\"\nloads = \"uniform:mean={x}\"\nat = [5, 20]\n";

    #[test]
    fn curves_of_the_same_loads_have_the_same_cases() {
        let text =
            format!("{CWA}\n[[curve]]\nbalancer = \"optimal\"\ntopology = \"hypercube:3\"\nloads = \"uniform:mean={{x}}\"\nat = [5, 20]\n");
        let figure = parse("f.toml", &text.replace("\"cost\"", "\"task-hops\"")).unwrap();
        let points = measure(Paper::Own, &figure.jobs, &Measuring::new(Effort::Quick, 1), |_| {}).unwrap();
        let of = |curve: &str| points.curve(Item::Figure(1), curve).iter().map(|point| point.value).collect::<Vec<_>>();
        let (cwa, optimal) = (of("cwa, hypercube:3"), of("optimal, hypercube:3"));
        // The optimum is never above, on any of the cases, so neither is its mean.
        assert!(cwa.len() == 2 && optimal.iter().zip(&cwa).all(|(optimal, cwa)| optimal > &0.0 && optimal <= cwa), "{cwa:?} {optimal:?}");
        assert_eq!(points.0[0].cases, 5);
    }

    #[test]
    fn a_run_is_a_curve_too() {
        let text = "title = \"t\"\nmeasure = \"response\"\ncases = 2\n[[curve]]\nname = \"h\"\nscheduler = \"hierarchical\"\ntopology = \"hypercube:4\"\n\
                    workload = \"stream:levels=2,children=2,utilisation={x},graphs=60,warmup=0\"\nat = [0.3]\n";
        let figure = parse("f.toml", text).unwrap();
        let points = measure(Paper::Own, &figure.jobs, &Measuring::new(Effort::Quick, 1), |_| {}).unwrap();
        assert!(points.0[0].value > 0.3 && points.0[0].curve == "h", "{points:?}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let why = |text: &str| {
            let why = parse("f.toml", text).err().unwrap();
            assert_eq!(why.exit_status(), 2);
            why.to_string()
        };
        for (from, to, line, says) in [
            ("measure", "mesure", 2, "unknown field `mesure`"),
            ("\"cost\"", "\"costs\"", 2, "measure 'costs' is unknown; known are cost, locality"),
            ("cases = 5", "cases = 0", 3, "cases: at least one is needed"),
            ("balancer", "balanser", 6, "unknown field `balanser`"),
            ("\"cwa\"", "\"cwb\"", 6, "cwb"),
            ("hypercube:3", "mesh:2x2", 6, "cwa"),
            ("hypercube:3", "hypercube:x", 7, "dimension is a whole number"),
            ("topology = \"hypercube:3\"\n", "", 5, "the curve has no topology"),
            ("uniform:mean", "uniform:men", 8, "men"),
            ("loads", "workload", 8, "workload: measure 'cost' is of a phase, which has balancer and loads"),
            ("[5, 20]", "[]", 9, "at: it has to be a list"),
            ("[5, 20]", "[5, \"20\"]", 9, "invalid type"),
        ] {
            let said = why(&CWA.replacen(from, to, 1));
            assert!(said.starts_with(&format!("file f.toml, line {line}: ")) && said.contains(says), "{to}: {said}");
        }
        assert!(why("title = \"t\"\nmeasure = \"cost\"\ncurve = []\n").contains("there is no [[curve]]"));
    }

    #[test]
    fn the_papers_figures_are_such_files() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/figures");
        let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(files.len() >= 5);
        for file in files {
            let figure = read(&file).unwrap_or_else(|why| panic!("{why}"));
            assert!(!figure.jobs.is_empty() && !figure.title.is_empty());
        }
        // The same figure as the built-in one: the same means to what random cases vary.
        let figure = read(Path::new(&format!("{folder}/wu-16.toml"))).unwrap();
        let few: Vec<Job> = figure.jobs.into_iter().filter(|job| job.x == 10.0 && job.name.contains("hypercube:6")).collect();
        let points = measure(Paper::Own, &few, &Measuring::new(Effort::Cases(12), 1), |_| {}).unwrap();
        assert!((points.0[0].value - 0.247).abs() < 0.06, "{points:?}");
    }
}
