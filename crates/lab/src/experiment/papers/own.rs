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

mod place;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use toml::Spanned;

use super::{Axes, Item, Job};
use crate::workload::text;
use equipoise::error::{Error, Result};
use equipoise::names;
use place::{Key, Kind, Place};

/// A figure, checked.
pub struct OwnFigure {
    pub title: String,
    pub x: String,
    pub y: &'static str,
    pub log_x: bool,
    pub log_y: bool,
    pub jobs: Vec<Job>,
}

impl OwnFigure {
    /// How it is drawn.
    pub fn axes(&self) -> Axes {
        Axes { log_x: self.log_x, log_y: self.log_y, ..Axes::linear(self.title.clone(), self.x.clone(), self.y) }
    }
}

/// Random cases of a point where the file does not say.
const CASES: u32 = 20;

/// Quantities that are measured: the name, its meaning, and whether of a phase (a balancer) or of a run (a scheduler).
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

pub(super) fn parse(name: &str, text: &str) -> Result<OwnFigure> {
    let reader = Reader { name, text };
    let description: Description = toml::from_str(text).map_err(|why| match why.span() {
        Some(span) => reader.mistake(span.start, why.message()),
        None => Error::input("file", format!(" {name}: {}", why.message())),
    })?;
    reader.figure(description)
}

impl Reader<'_> {
    /// The line of a place in the text, counted from 1.
    fn line(&self, at: usize) -> usize {
        1 + self.text.get(..at).map_or(0, |before| before.matches('\n').count())
    }

    fn mistake(&self, at: usize, why: impl std::fmt::Display) -> Error {
        Error::input("file", format!(" {}, line {}: {why}", self.name, self.line(at)))
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
        let mut lines: BTreeMap<String, usize> = BTreeMap::new();
        for spanned in &curve {
            if let Some(at) = spanned.get_ref().at.get_ref().iter().find(|x| log_x && **x <= 0.0) {
                let why = format!("at: {at} has no place on a logarithmic axis (log_x)");
                return Err(self.mistake(spanned.get_ref().at.span().start, why));
            }
            let name = self.curve(spanned, (measured, kind), number, &mut jobs)?;
            let here = spanned.span().start;
            if let Some(first) = lines.insert(name.clone(), here) {
                let why = format!("the curve has the name of the one in line {}: '{name}'; give one of them another", self.line(first));
                return Err(self.mistake(here, why));
            }
        }
        Ok(OwnFigure { title, x, y, log_x, log_y, jobs })
    }

    /// Adds the points of a curve; returns its name.
    fn curve(
        &self,
        spanned: &Spanned<CurveText>,
        (measured, kind): (&'static str, Kind),
        cases: u32,
        jobs: &mut Vec<Job>,
    ) -> Result<String> {
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
        if let Some(twice) = at.iter().enumerate().find_map(|(index, x)| at[..index].contains(x).then_some(x)) {
            return Err(self.mistake(curve.at.span().start, format!("at: {twice} is there twice")));
        }
        for x in at {
            let fill = |text: &str| text.replace("{x}", &x.to_string());
            let place = Place { kind, who: fill(&who), what: fill(&what), topology: fill(&topology), network: fill(&network) };
            let wrong = |at: usize| move |why: Error| (at, why);
            place
                .check(measured, &|key| {
                    wrong(match key {
                        Key::Who => who_at,
                        Key::What => what_at,
                        Key::Topology => topology_at,
                        Key::Network => network_at,
                    })
                })
                .map_err(|(at, why)| self.mistake(at, why))?;
            let texts = [&place.who, &place.what, &place.topology, &place.network];
            let files: String = texts.into_iter().flat_map(|text| contents(text)).collect();
            let all = format!("{name}/{measured}/{}/{}/{}/{}{files}", place.who, place.what, place.topology, place.network);
            // Whoever gets the same loads or workload on the same topology gets the same random numbers.
            let stream = format!("{}/{}", place.what, place.topology);
            let (place, name) = (Arc::new(place), name.clone());
            let job = Job::new(Item::Figure(1), all, *x, [cases, cases], move |seed, cases| place.measure(measured, &name, seed, cases));
            jobs.push(Job { stream: Some(stream), ..job });
        }
        Ok(name)
    }
}

/// Digests of the files that a specification names, so that a changed file is another point.
fn contents(spec: &str) -> Vec<String> {
    let hash =
        |path: &str| text::read(Path::new(path)).ok().map(|held| format!("/{}", &blake3::hash(held.as_bytes()).to_hex().as_str()[..16]));
    let of_option = |option: &str| ["file=", "from:", "@"].into_iter().find_map(|key| hash(option.split_once(key)?.1));
    spec.split(',').filter_map(of_option).collect()
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
    fn what_cannot_be_measured_is_found_before_anything_is() {
        let curve = |keys: [&str; 4], measured: &str, at: &str| {
            let [kind, who, what, how] = keys;
            let (first, second) = kind.split_once(' ').unwrap();
            format!(
                "title = \"t\"\nmeasure = \"{measured}\"\n\n[[curve]]\n{first} = \"{who}\"\ntopology = \"{how}\"\n{second} = \"{what}\"\nat = {at}\n"
            )
        };
        let (phase, run) = ("balancer loads", "scheduler workload");
        // What is wrong is the last place, so that others would be measured before.
        for (keys, measured, at, line, says) in [
            ([phase, "cwa", "uniform:mean=5", "hypercube:{x}"], "cost", "[2, 2.5]", 6, "dimension is a whole number"),
            ([phase, "direct", "1,2,3", "complete:{x}"], "ms", "[3, 4]", 7, "3 numbers for the 4 nodes"),
            ([phase, "rcb", "uniform:mean={x}", "complete:4"], "imbalance", "[1, 2]", 5, "rcb: it needs a place of each task"),
            ([phase, "none", "uniform:mean={x}", "complete:4"], "cost", "[1, 2]", 5, "none moves nothing, so that it has no cost"),
            ([phase, "cwa", "uniform:mean={x}", "hypercube:2"], "cost", "[5, 0]", 7, "there are no tasks, and so no cost"),
            ([run, "steal", "queens:n={x}", "complete:2"], "response", "[6, 7]", 7, "only what arrives over time has response times"),
            ([run, "dss", "costs:tasks={x}", "complete:2"], "response", "[6, 7]", 7, "only what arrives over time has response times"),
            ([run, "dss", "costs:file=/nowhere/{x}", "complete:2"], "makespan", "[6, 7]", 7, "/nowhere/6"),
            ([run, "incremental:balancer=mwa", "queens:n=6", "hypercube:{x}"], "makespan", "[2, 3]", 5, "mwa runs on mesh"),
        ] {
            let why = parse("f.toml", &curve(keys, measured, at)).err().unwrap_or_else(|| panic!("{keys:?}"));
            let said = why.to_string();
            assert_eq!(why.exit_status(), 2, "{said}");
            assert!(said.starts_with(&format!("file f.toml, line {line}: ")) && said.contains(says), "{said}");
        }
        let twice = format!("{CWA}\n[[curve]]\nbalancer = \"cwa\"\ntopology = \"hypercube:3\"\nloads = \"uniform:mean={{x}}\"\nat = [7]\n");
        for (text, says) in [
            (twice.as_str(), "line 11: the curve has the name of the one in line 5: 'cwa, hypercube:3'; give one of them another"),
            (&CWA.replace("[5, 20]", "[5, 20, 5]"), "line 9: at: 5 is there twice"),
            (&CWA.replace("cases = 5", "log_x = true").replace("[5, 20]", "[0, 20]"), "line 9: at: 0 has no place on a logarithmic axis"),
        ] {
            let said = parse("f.toml", text).err().unwrap().to_string();
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn a_changed_file_is_another_point() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("loads");
        let loads = CWA.replace("uniform:mean={x}", &format!("@{}", file.display()));
        let costs = format!(
            "title = \"t\"\nmeasure = \"makespan\"\n[[curve]]\nscheduler = \"dss\"\ntopology = \"complete:2\"\nworkload = \"costs:file={}\"\nat = [1]\n",
            file.display()
        );
        let eight = ["1\n2\n3\n4\n5\n6\n7\n8\n", "2\n2\n3\n4\n5\n6\n7\n8\n"];
        for (text, [contents, others]) in [(&loads, eight), (&costs, ["1 2\n3 4\n", "1 2\n3 5\n"])] {
            let name = |contents: &str| {
                std::fs::write(&file, contents).unwrap();
                parse("f.toml", text).unwrap().jobs[0].name.clone()
            };
            let [first, same, other] = [contents, contents, others].map(name);
            assert!(first == same && first != other, "{first} {other}");
        }
    }

    #[test]
    fn a_point_without_a_case_that_counts_is_left_out() {
        // On one node there is nothing to move.
        let text = CWA.replace("hypercube:3", "hypercube:{x}").replace("mean={x}", "mean=5").replace("[5, 20]", "[0, 2]");
        let points = measure(Paper::Own, &parse("f.toml", &text).unwrap().jobs, &Measuring::new(Effort::Quick, 1), |_| {}).unwrap();
        assert_eq!(points.0.iter().map(|point| point.x).collect::<Vec<_>>(), [2.0]);
    }

    #[test]
    fn the_papers_figures_are_such_files() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/figures");
        let within = |folder: &str| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
        let mut files = [within(folder), within(&format!("{folder}/further"))].concat();
        files.retain(|file| file.is_file());
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
