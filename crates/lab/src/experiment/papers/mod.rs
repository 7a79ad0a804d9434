//! The five papers: their tables and figures measured point by point, and what they say judged by these points.
//!
//! A paper's [study](Study) has *jobs*, each of which measures what one place of a figure or table shows, and *claims*, the checkable sentences of the
//! paper. A claim is judged from measured points and gets a [`Verdict`], which is compared with the recorded one in `verdicts.toml`. Numbers to
//! compare with are the paper's own, where it prints any.

pub mod claims;
mod divisible;
pub mod evidence;
mod further;
mod hierarchical;
mod kept;
pub mod own;
mod psts;
pub mod real;
mod records;
pub mod reference;
mod sash;
mod wu;

use std::fmt::{self, Display, Formatter};
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use serde::{Serialize, Serializer};

pub use claims::{Claim, Finding, Judged, judge};
use equipoise::error::{Error, Result};
use evidence::Mean;
pub use kept::Kept;
pub use real::Launcher;
pub use records::{Record, Records, Verdict};
pub use reference::Reference;

/// One of the papers, or a figure of one's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Paper {
    Hierarchical,
    Divisible,
    Sash,
    Psts,
    Wu,
    /// No paper: a figure that a file describes.
    Own,
}

impl Paper {
    /// All papers, in the order of their numbers.
    pub const ALL: [Paper; 5] = [Paper::Hierarchical, Paper::Divisible, Paper::Sash, Paper::Psts, Paper::Wu];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        ["hierarchical", "divisible", "sash", "psts", "wu", "own"][self as usize]
    }

    /// Number on the command line: `000` to `004`.
    pub fn number(self) -> String {
        format!("{:03}", self as usize)
    }

    /// Who wrote what.
    pub fn citation(self) -> &'static str {
        [
            "Ahmad, Ghafoor and Fox 1994, hierarchical scheduling of dynamic task graphs on hypercubes",
            "Blazewicz and Drozdowski 1995, divisible jobs on hypercubes",
            "Hamidzadeh, Lilja and Atif 1995, dynamic scheduling in heterogeneous systems",
            "Savvas and Kechadi 2004, dynamic task scheduling in computing clusters",
            "Wu 1997, runtime parallel scheduling",
            "a figure of one's own",
        ][self as usize]
    }

    /// The paper of this name or number.
    pub fn find(text: &str) -> Option<Paper> {
        Paper::ALL.into_iter().find(|paper| paper.name() == text || paper.number() == text)
    }

    /// Its jobs and claims.
    pub fn study(self) -> Study {
        match self {
            Paper::Hierarchical => hierarchical::study(),
            Paper::Divisible => divisible::study(),
            Paper::Sash => sash::study(),
            Paper::Psts => psts::study(),
            Paper::Wu => wu::study(),
            Paper::Own => Study { jobs: Vec::new(), claims: Vec::new() },
        }
    }

    /// All that can be measured of it, in words: `table 1, figures 3, 9 and 14 to 17`.
    pub fn items(self) -> String {
        in_words(self.study().jobs.iter().map(|job| job.item).collect())
    }

    /// How an item of it is drawn; empty for a figure of one's own, whose file says that.
    pub fn axes(self, item: Item) -> Axes {
        match self {
            Paper::Hierarchical => hierarchical::axes(item),
            Paper::Divisible => divisible::axes(item),
            Paper::Sash => sash::axes(item),
            Paper::Psts => psts::axes(item),
            Paper::Wu => wu::axes(item),
            Paper::Own => Axes::default(),
        }
    }

    /// The reference value of one of its points, if there is one; its tolerance may depend on the error of the point's own mean.
    fn reference(self, item: Item, curve: &str, x: f64, ours: &Mean) -> Option<Reference> {
        match self {
            Paper::Hierarchical => hierarchical::reference(item, curve, x),
            Paper::Sash => sash::reference(item, curve, x),
            Paper::Wu => wu::reference(item, curve, x, ours),
            Paper::Divisible | Paper::Psts | Paper::Own => None,
        }
    }
}

fn in_words(mut items: Vec<Item>) -> String {
    items.sort_unstable();
    items.dedup();
    let of_kind = |kind: &[Item]| {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for number in kind.iter().map(|item| item.number()) {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == number => *last = number,
                _ => runs.push((number, number)),
            }
        }
        let shown = |(first, last): (u32, u32)| if first == last { first.to_string() } else { format!("{first} to {last}") };
        let mut shown: Vec<String> = runs.into_iter().map(shown).collect();
        let last = shown.pop().unwrap_or_default();
        let list = if shown.is_empty() { last } else { format!("{} and {last}", shown.join(", ")) };
        format!("{}{} {list}", kind[0].kind(), if kind.len() == 1 { "" } else { "s" })
    };
    items.chunk_by(|a, b| a.kind() == b.kind()).map(of_kind).collect::<Vec<_>>().join(", ")
}

/// Title and axes of an item's picture, as the paper draws it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Axes {
    pub title: String,
    pub x: String,
    pub y: String,
    pub log_x: bool,
    pub log_y: bool,
    /// Whether the y axis is logarithmic where points from real ranks are drawn: ranks that share cores take a hundred times as long.
    pub log_y_on_ranks: bool,
}

impl Axes {
    /// Linear axes.
    fn linear(title: impl Into<String>, x: impl Into<String>, y: impl Into<String>) -> Axes {
        Axes { title: title.into(), x: x.into(), y: y.into(), ..Axes::default() }
    }
}

/// Part of a paper that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    Section(u32),
    Example(u32),
    Table(u32),
    Figure(u32),
}

impl Item {
    /// Its kind in the singular: `figure`.
    pub fn kind(self) -> &'static str {
        match self {
            Item::Section(_) => "section",
            Item::Example(_) => "example",
            Item::Table(_) => "table",
            Item::Figure(_) => "figure",
        }
    }

    fn number(self) -> u32 {
        match self {
            Item::Section(number) | Item::Example(number) | Item::Table(number) | Item::Figure(number) => number,
        }
    }
}

impl Display for Item {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), self.number())
    }
}

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Jobs and claims of one paper.
pub struct Study {
    pub jobs: Vec<Job>,
    pub claims: Vec<Claim>,
}

/// The number of random cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    Quick,
    /// The paper's.
    Full,
    Cases(u32),
}

/// One place of a figure or table: all curves there, measured on the same random cases.
pub struct Job {
    pub item: Item,
    /// Distinguishes it from other jobs of the item; part of its seed.
    pub name: String,
    /// Place on the figure's axis, or the table's column.
    pub x: f64,
    /// Random cases: quick, full. Equal where nothing is random.
    cases: [u32; 2],
    /// Source of its seed instead of the name, where several jobs are to have the same random cases.
    stream: Option<String>,
    measure: Box<dyn Fn(u64, u32) -> Result<Vec<Value>> + Send + Sync>,
}

impl Job {
    fn new(
        item: Item,
        name: impl Into<String>,
        x: f64,
        cases: [u32; 2],
        measure: impl Fn(u64, u32) -> Result<Vec<Value>> + Send + Sync + 'static,
    ) -> Job {
        Job { item, name: name.into(), x, cases, stream: None, measure: Box::new(measure) }
    }

    fn cases(&self, effort: Effort) -> u32 {
        match effort {
            Effort::Quick => self.cases[0],
            Effort::Full => self.cases[1],
            // Where nothing is random, more cases are the same ones.
            Effort::Cases(cases) if self.cases != [1, 1] => cases,
            Effort::Cases(_) => 1,
        }
    }
}

/// Values that a job measured on one curve.
#[derive(Clone, Debug)]
pub struct Value {
    curve: String,
    /// Its own place, where a job measures several.
    x: Option<f64>,
    mean: Mean,
    /// The paper's printed number, and with which probability ours differs by so much if both have the same cause.
    printed: Option<(f64, f64)>,
    /// Whether it only helps to judge a claim, and is no curve of the figure.
    is_helper: bool,
}

impl Value {
    fn new(curve: impl Into<String>, mean: Mean) -> Value {
        Value { curve: curve.into(), x: None, mean, printed: None, is_helper: false }
    }

    /// A number that is no sample, and the paper's if it prints one. They agree if they are equal to the last printed digit.
    fn exact(curve: impl Into<String>, value: f64, printed: Option<f64>, digit: f64) -> Value {
        let judged = |printed: f64| (printed, if (value - printed).abs() <= digit / 2.0 + 1e-12 { 1.0 } else { 0.0 });
        Value { printed: printed.map(judged), ..Value::new(curve, Mean::exact(value)) }
    }

    /// The same; a helper only serves to judge a claim, and the figure does not draw it: it has another unit, or other cases.
    fn helper_if(self, is_helper: bool) -> Value {
        Value { is_helper, ..self }
    }
}

/// The means of the samples of each curve, one of which may be a helper.
fn named<const N: usize>(curves: [&str; N], samples: [Vec<f64>; N], helper: Option<&str>) -> Result<Vec<Value>> {
    let value = |(curve, samples): (&str, Vec<f64>)| Some(Value::new(curve, Mean::of(&samples)?).helper_if(helper == Some(curve)));
    let values: Option<Vec<Value>> = curves.into_iter().zip(samples).map(value).collect();
    values.ok_or_else(|| Error::Failed("a mean needs a case at least".into()))
}

/// A measured point.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    pub paper: Paper,
    pub item: Item,
    pub curve: String,
    pub x: f64,
    /// Random cases that count.
    pub cases: u64,
    pub value: f64,
    /// 95 % interval; the value itself where nothing is random.
    pub low: f64,
    pub high: f64,
    /// The number that the paper prints; without `p` where it depends on the paper's machine, so that no test would say anything.
    pub printed: Option<f64>,
    /// Probability of such a difference if both numbers have one cause, adjusted by Holm's method for all printed numbers of the item.
    pub p: Option<f64>,
    /// Whether ours agrees with it, at 5 % for all of the item together.
    pub agrees: Option<bool>,
    /// A value to compare with that is not the paper's.
    #[serde(skip)]
    pub reference: Option<Reference>,
    #[serde(skip)]
    pub mean: Mean,
    /// Whether it only helps to judge a claim, and is not drawn.
    #[serde(skip)]
    pub is_helper: bool,
}

/// All points of some items of a paper.
#[derive(Clone, Debug, Default)]
pub struct Points(pub Vec<Point>);

impl Points {
    /// The points of one curve, by place.
    pub fn curve<'a>(&'a self, item: Item, curve: &'a str) -> Vec<&'a Point> {
        self.0.iter().filter(|point| point.item == item && point.curve == curve).collect()
    }

    /// All points of an item.
    pub fn of(&self, item: Item) -> Vec<&Point> {
        self.0.iter().filter(|point| point.item == item).collect()
    }

    /// One point.
    pub fn at(&self, item: Item, curve: &str, x: f64) -> Option<&Point> {
        self.0.iter().find(|point| point.item == item && point.curve == curve && point.x == x)
    }
}

/// The seed of a job: its own stream of random numbers, whatever else is measured.
fn seed_of(paper: Paper, job: &Job, seed: u64) -> u64 {
    let stream = job.stream.as_ref().unwrap_or(&job.name);
    let name = format!("{}/{}/{stream}/{}/{seed}", paper.name(), job.item, job.x);
    let hash = blake3::hash(name.as_bytes());
    // Room above for the numbers of cases, which count from the seed.
    hash.as_bytes()[..8].iter().fold(0u64, |all, byte| all << 8 | u64::from(*byte)) >> 8
}

/// How points are measured.
#[derive(Clone, Copy)]
pub struct Measuring<'a> {
    pub effort: Effort,
    pub seed: u64,
    /// Points that are measured at a time.
    pub threads: usize,
    /// Points that are finished, and where others go.
    pub kept: Option<&'a Kept>,
}

impl Measuring<'_> {
    /// On all cores, with nothing kept.
    pub fn new(effort: Effort, seed: u64) -> Measuring<'static> {
        Measuring { effort, seed, threads: thread::available_parallelism().map_or(1, NonZero::get), kept: None }
    }

    /// Everything that a job's values depend on.
    fn name(&self, paper: Paper, job: &Job) -> String {
        format!("{}/{}/{}/{}/seed {}/{} cases", paper.name(), job.item, job.name, job.x, self.seed, job.cases(self.effort))
    }

    /// Number of random cases of the jobs that are not finished. A job has one at least.
    pub fn left(&self, paper: Paper, jobs: &[Job]) -> u64 {
        let is_left = |job: &&Job| self.kept.is_none_or(|kept| !kept.has(&self.name(paper, job)));
        jobs.iter().filter(is_left).map(|job| u64::from(job.cases(self.effort))).sum()
    }

    /// Values that a job measures, or has measured before.
    fn of(&self, paper: Paper, job: &Job) -> (Result<Vec<Value>>, bool) {
        let name = self.name(paper, job);
        if let Some(values) = self.kept.and_then(|kept| kept.find(&name)) {
            return (Ok(values), false);
        }
        let measured = (job.measure)(seed_of(paper, job, self.seed), job.cases(self.effort));
        let kept = |values: Vec<Value>| self.kept.map_or(Ok(()), |kept| kept.add(&name, &values)).map(|()| values);
        (measured.and_then(kept), true)
    }
}

/// Measures jobs on several threads; `progress` is told the number of random cases done, in whatever order their jobs end, without those that were finished
/// before. The points are in the order of the jobs, and do not depend on the number of threads.
///
/// # Errors
/// If a simulation fails, or a finished point cannot be kept; points that are being measured then are finished, and no others begun.
pub fn measure(paper: Paper, jobs: &[Job], how: &Measuring<'_>, progress: impl Fn(u64) + Sync) -> Result<Points> {
    let values: Mutex<Vec<(usize, Result<Vec<Value>>)>> = Mutex::new(Vec::new());
    let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..how.threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                while let Some((at, job)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, jobs.get(at)?))) {
                    let (measured, is_new) = how.of(paper, job);
                    if measured.is_err() {
                        // The run fails: no further point is begun.
                        next.store(jobs.len(), Ordering::Relaxed);
                    }
                    if let Ok(mut values) = values.lock() {
                        values.push((at, measured));
                        if is_new {
                            let cases = u64::from(job.cases(how.effort));
                            progress(done.fetch_add(cases, Ordering::Relaxed) + cases);
                        }
                    }
                }
            });
        }
    });
    let mut values = values.into_inner().map_err(|_| Error::Failed("a simulation ended in a panic".into()))?;
    values.sort_unstable_by_key(|(at, _)| *at);
    let mut points = Vec::new();
    for (at, measured) in values {
        let job = &jobs[at];
        let failed = |why| Error::Failed(format!("{}, {} at {}: {why}", job.item, job.name, job.x));
        points.extend(measured.map_err(failed)?.into_iter().map(|value| point(paper, job, value)));
    }
    judge_printed(&mut points);
    Ok(Points(points))
}

fn point(paper: Paper, job: &Job, value: Value) -> Point {
    let (low, high) = value.mean.interval();
    let x = value.x.unwrap_or(job.x);
    let untested = || if paper == Paper::Psts { psts::printed(job.item, &value.curve, x) } else { None };
    let printed = value.printed.map(|(printed, _)| printed).or_else(untested);
    let reference = paper.reference(job.item, &value.curve, x, &value.mean);
    Point {
        paper,
        item: job.item,
        curve: value.curve,
        x,
        cases: value.mean.cases,
        value: value.mean.value,
        low,
        high,
        printed,
        p: value.printed.map(|(_, p)| p),
        agrees: None,
        reference,
        mean: value.mean,
        is_helper: value.is_helper,
    }
}

/// Adjusts the probabilities of each item's printed numbers, and judges them.
fn judge_printed(points: &mut [Point]) {
    let mut items: Vec<Item> = points.iter().map(|point| point.item).collect();
    items.sort_unstable();
    items.dedup();
    for item in items {
        let mut family: Vec<&mut Point> = points.iter_mut().filter(|point| point.item == item && point.p.is_some()).collect();
        let adjusted = evidence::holm(&family.iter().filter_map(|point| point.p).collect::<Vec<_>>());
        for (point, p) in family.iter_mut().zip(adjusted) {
            (point.p, point.agrees) = (Some(p), Some(p >= evidence::LEVEL));
        }
    }
}

#[cfg(test)]
mod tests;
