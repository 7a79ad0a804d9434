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
//! `{x}` stands for the places in `at`. A key may be a list instead, with a text for each of them. All that can be known to be wrong is said before
//! anything is measured, with its line.

mod place;
mod texts;

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
use texts::Texts;

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

/// Measure that needs the time of a task.
const SPEED_UP: &str = "speed-up";

/// Quantities that are measured: the name, its meaning, and whether of a phase (a balancer) or of a run (a scheduler).
const MEASURES: [(&str, &str, Kind); 12] = [
    ("cost", "task-hops above the fewest, over these", Kind::Phase),
    ("locality", "tasks moved above the fewest, over these", Kind::Phase),
    ("imbalance", "largest over mean load", Kind::Phase),
    ("task-hops", "tasks times links", Kind::Phase),
    ("steps", "longest chain of messages", Kind::Phase),
    ("ms", "time of a phase, ms", Kind::Phase),
    (SPEED_UP, "time of all tasks without a phase, over that with it", Kind::Phase),
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
    balancer: Option<Spanned<Texts>>,
    loads: Option<Spanned<Texts>>,
    powers: Option<Spanned<Texts>>,
    payload: Option<Spanned<Texts>>,
    weights: Option<Spanned<Texts>>,
    task_seconds: Option<Spanned<f64>>,
    scheduler: Option<Spanned<Texts>>,
    workload: Option<Spanned<Texts>>,
    topology: Option<Spanned<Texts>>,
    network: Option<Spanned<Texts>>,
    at: Spanned<Vec<f64>>,
}

impl CurveText {
    fn texts(&self, key: Key, kind: Kind) -> Option<&Spanned<Texts>> {
        let given = match (key, kind) {
            (Key::Who, Kind::Phase) => &self.balancer,
            (Key::Who, Kind::Run) => &self.scheduler,
            (Key::What, Kind::Phase) => &self.loads,
            (Key::What, Kind::Run) => &self.workload,
            (Key::Topology, _) => &self.topology,
            (Key::Network, _) => &self.network,
            (Key::Powers, _) => &self.powers,
            (Key::Payload, _) => &self.payload,
            (Key::Weights, _) => &self.weights,
        };
        given.as_ref()
    }
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
        for key in Key::ALL {
            if let (true, Some(other)) = (key.is_foreign_to(kind), curve.texts(key, kind.other())) {
                let [who, what] = [Key::Who, Key::What].map(|key| key.name(kind));
                let why = format!("{}: measure '{measured}' is of a {}, which has {who} and {what}", key.name(kind.other()), kind.name());
                return Err(self.mistake(other.span().start, why));
            }
        }
        let task_seconds = self.task_seconds(curve, here, measured)?;
        let at = curve.at.get_ref();
        if at.is_empty() || at.iter().any(|x| !x.is_finite()) {
            return Err(self.mistake(curve.at.span().start, "at: it has to be a list of one or more numbers"));
        }
        if let Some(twice) = at.iter().enumerate().find_map(|(index, x)| at[..index].contains(x).then_some(x)) {
            return Err(self.mistake(curve.at.span().start, format!("at: {twice} is there twice")));
        }
        let mut given = Vec::new();
        for key in Key::ALL {
            given.push(self.of_places(key, kind, spanned, at)?);
        }
        let name = self.name(spanned, kind)?;
        for (index, x) in at.iter().enumerate() {
            let place = Place { kind, task_seconds, texts: given.iter().map(|texts| texts[index].0.clone()).collect() };
            place.check(measured).map_err(|(key, why)| self.mistake(given[key as usize][index].1, why))?;
            let texts = || Key::ALL.into_iter().map(|key| place.text(key));
            let files: String = texts().flat_map(contents).collect();
            let all = format!("{name}/{measured}/{}/{task_seconds}{files}", texts().collect::<Vec<_>>().join("/"));
            // Whoever gets the same loads or workload on the same topology gets the same random numbers.
            let stream = format!("{}/{}", place.text(Key::What), place.text(Key::Topology));
            let (place, name) = (Arc::new(place), name.clone());
            let job = Job::new(Item::Figure(1), all, *x, [cases, cases], move |seed, cases| place.measure(measured, &name, seed, cases));
            jobs.push(Job { stream: Some(stream), ..job });
        }
        Ok(name)
    }

    /// The texts of a key at all places, without `{x}`, each with where it stands in the file; `None` if it is left out and need not be there.
    fn of_places(&self, key: Key, kind: Kind, spanned: &Spanned<CurveText>, at: &[f64]) -> Result<Vec<(Option<String>, usize)>> {
        let here = spanned.span().start;
        let fill = |text: &str, x: &f64| Some(text.replace("{x}", &x.to_string()));
        let Some(given) = spanned.get_ref().texts(key, kind) else {
            return match key.is_needed() {
                true => Err(self.mistake(here, format!("the curve has no {}", key.name(kind)))),
                false => Ok(vec![(None, here); at.len()]),
            };
        };
        match given.get_ref() {
            Texts::All(text) => Ok(at.iter().map(|x| (fill(text, x), given.span().start)).collect()),
            Texts::Each(each) if each.len() == at.len() => {
                Ok(at.iter().zip(each).map(|(x, text)| (fill(&text.get_ref().0, x), text.span().start)).collect())
            }
            Texts::Each(each) => {
                let why = format!("{}: a list has one for each number in at, and here are {} for {}", key.name(kind), each.len(), at.len());
                Err(self.mistake(given.span().start, why))
            }
        }
    }

    /// The curve's name, or else who on which topology.
    fn name(&self, spanned: &Spanned<CurveText>, kind: Kind) -> Result<String> {
        let curve = spanned.get_ref();
        let whole = |key: Key| match curve.texts(key, kind).map(Spanned::get_ref) {
            Some(Texts::All(text)) => Some(text.as_str()),
            _ => None,
        };
        match (&curve.name, whole(Key::Who), whole(Key::Topology)) {
            (Some(name), ..) => Ok(name.clone()),
            (None, Some(who), Some(topology)) => Ok(format!("{who}, {topology}")),
            _ => Err(self.mistake(spanned.span().start, "a curve with a list needs a name")),
        }
    }

    /// Seconds of a task, where the measure needs them; otherwise 0.
    fn task_seconds(&self, curve: &CurveText, here: usize, measured: &str) -> Result<f64> {
        match (&curve.task_seconds, measured == SPEED_UP) {
            (Some(seconds), true) if seconds.get_ref().is_finite() && *seconds.get_ref() > 0.0 => Ok(*seconds.get_ref()),
            (Some(seconds), true) => Err(self.mistake(seconds.span().start, "task_seconds: it is a number above 0")),
            (Some(seconds), false) => {
                Err(self
                    .mistake(seconds.span().start, format!("task_seconds: measure '{measured}' does not need it, only '{SPEED_UP}' does")))
            }
            (None, true) => Err(self.mistake(here, format!("the curve has no task_seconds, which measure '{SPEED_UP}' needs"))),
            (None, false) => Ok(0.0),
        }
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
mod tests;
