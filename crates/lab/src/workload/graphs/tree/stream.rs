//! A stream of synthetic graphs: the simulation model of Ahmad, Ghafoor and Fox 1994, section 5.
//!
//! 1. Graphs are [trees](super) that arrive in a Poisson stream of rate `utilisation` times the number of processors, in graphs a
//!    unit of time.
//! 2. A graph's total time is exponential with a mean of one unit, divided equally among its tasks.
//! 3. Each migration of a task takes an exponential time with mean 1 / `rate` units on top of the network's (`rate=none`: nothing).
//! 4. The first graphs warm up; of the next ones the response times count; more arrive until all of these are answered, so that the load
//!    does not fall while they are measured.
//! 5. If more graphs are open by then than ever would be where the processors keep up, no more arrive: the run is *overloaded*. So it ends.
//!
//! Arrivals, shapes and times are drawn from streams of their own, so that they are the same for every scheduler: differences
//! show with few graphs.

use std::ops::Range;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::super::{Entry, Facts, Make, Prepared, Setting};
use super::{Cost, Grown, Growth, Submission, TaskTrees, keys};
use crate::workload::{ARRIVALS_STREAM, TIMES_STREAM};
use equipoise::error::Result;
use equipoise::node::Ticks;
use equipoise::schedule::{self, Source};
use equipoise::spec::{InvalidSpec, Options};

pub(in super::super) static ENTRY: Entry = Entry {
    name: "stream",
    title: "random task graphs that arrive over time",
    source: "Ahmad, Ghafoor and Fox 1994, section 5",
    options: "levels=3, children=2 (at most), least=0 (children), utilisation=0.5, rate=20 (of migrations; or none), \
              contention=no|yes (migrations queue for their sender's links), \
              piggyback=no|yes (tasks and answers tell their sender's load, too; on real ranks yes), \
              graphs=10000 (on real ranks 500), warmup=12000 (from utilisation=0.8 20000; graphs/5 if that is less), \
              unit=200ms, cost=sleep|spin|virtual",
    examples: &["stream:graphs=50,utilisation=0.4", "stream:levels=1,children=5,graphs=30,rate=none,utilisation=0.7,unit=1ms"],
    build,
    facts: Facts { answer: "tasks", has_own_network: true },
};

fn build(options: &mut Options<'_>) -> Result<Make, InvalidSpec> {
    let growth = Growth::parse(options, 3, 2)?;
    let largest = (0..=growth.levels).try_fold(0u64, |sum, level| sum.checked_add(u64::from(growth.children).checked_pow(level)?));
    if largest.is_none_or(|largest| largest > MOST_TASKS) {
        return Err(options.conflict(format!("a graph might have more than {MOST_TASKS} tasks; ask for fewer levels or children")));
    }
    let utilisation = options.fraction("utilisation")?.unwrap_or(0.5);
    let above_0 = |text: &str| text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    let rate = options.read_with("rate", "a number above 0, or none (migrations then take no time)", |text| match text {
        "none" => Some(None),
        text => above_0(text).map(Some),
    })?;
    let rate = rate.unwrap_or(Some(20.0));
    let contention = options.choice("contention", &[("no", false), ("yes", true)])?.unwrap_or(false);
    if contention && rate.is_none() {
        return Err(options.conflict("contention=yes needs a rate: migrations that take no time don't queue"));
    }
    let piggyback = options.choice("piggyback", &[("no", false), ("yes", true)])?;
    let graphs = options.within("graphs", 1..=MOST_GRAPHS)?;
    let warm_up = options.within("warmup", 0..=MOST_GRAPHS)?;
    let unit = options.duration("unit")?.unwrap_or(200_000_000);
    if unit < 1_000_000 {
        return Err(options.conflict("unit is 1ms or more, so that ticks are fine enough"));
    }
    let cost = Cost::parse(options)?;
    Ok(Make::new(options, move |setting| {
        let graphs = graphs.unwrap_or(if setting.is_simulated { 10_000 } else { 500 });
        let warm_up = warm_up.unwrap_or(usual_warm_up(utilisation, graphs));
        let piggyback = piggyback.unwrap_or(!setting.is_simulated);
        let stream = Stream { setting: *setting, utilisation, rate, contention, piggyback, graphs, warm_up, unit };
        Ok(Prepared::new(TaskTrees { growth, cost, submission: Submission::Stream(stream), style: None }))
    }))
}

/// Graphs that come before those that count, unless the workload says otherwise.
pub fn usual_warm_up(utilisation: f64, graphs: u64) -> u64 {
    (if utilisation < 0.8 { 12_000 } else { 20_000 }).min(graphs / 5)
}

/// Maximum number of tasks of a graph, and of graphs of a run.
const MOST_TASKS: u64 = 10_000_000;
const MOST_GRAPHS: u64 = 1_000_000_000;

/// Maximum number of migrations of a task.
const MOST_HOPS: f64 = 10.0;

/// Graphs that arrive over time.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    pub setting: Setting,
    /// Share of the processors' time that the graphs take on average.
    pub utilisation: f64,
    /// Migrations in a unit of time, each after the other; `None` if they take no time.
    pub rate: Option<f64>,
    /// Whether migrations queue for a link of their sender, see [`Options::contention`].
    pub contention: bool,
    /// Whether tasks and answers carry their sender's load, see [`Options::loads_travel`]. In the paper's model nodes know each other's
    /// loads from announcements only.
    pub piggyback: bool,
    /// Graphs whose response times count, and those before them.
    pub graphs: u64,
    pub warm_up: u64,
    /// Ticks in one unit of time.
    pub unit: Ticks,
}

impl Stream {
    pub(super) fn measured(&self) -> Range<u64> {
        self.warm_up..self.warm_up + self.graphs
    }

    pub(super) fn adjust(&self, options: &mut schedule::Options) {
        options.unit = self.unit;
        options.migration = options.migration.or(self.rate.map(|rate| (self.unit as f64 / rate).round() as Ticks));
        options.contention |= self.contention;
        options.loads_travel &= self.piggyback;
    }

    /// Upper bound on the number of graphs that are open at a time, which holds almost surely where the processors keep up with graphs of this
    /// number of levels.
    ///
    /// If every processor served its own graphs only (M/M/1), `utilisation / (1 - utilisation)` a processor would be open on average, with a
    /// standard deviation of its root over `1 - utilisation`; schedulers do better. This is the mean and ten standard deviations, and room
    /// for graphs under way: [ten](MOST_HOPS) migrations at each level, and on real ranks messages of some units.
    fn most_open(&self, levels: u32) -> f64 {
        let (processors, utilisation) = (f64::from(self.setting.processors), self.utilisation);
        let arrivals = processors * utilisation;
        let (mean, deviation) = (arrivals / (1.0 - utilisation), arrivals.sqrt() / (1.0 - utilisation));
        let under_way = self.rate.map_or(0.0, |rate| arrivals * MOST_HOPS * f64::from(levels + 1) / rate);
        mean + 10.0 * deviation + under_way + 10.0 * (processors + 1.0)
    }
}

/// Random draws for the graphs of a stream, one after the other, from its seed: the time since the last arrival, in mean such times, and the graph's
/// total time, in units. Both are exponential with mean 1, and the same under every scheduler.
pub struct Draws {
    arrivals: ChaCha8Rng,
    times: ChaCha8Rng,
}

impl Draws {
    pub fn new(seed: u64) -> Draws {
        let drawn_from = |number| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(number);
            rng
        };
        Draws { arrivals: drawn_from(ARRIVALS_STREAM), times: drawn_from(TIMES_STREAM) }
    }
}

impl Iterator for Draws {
    type Item = [f64; 2];

    fn next(&mut self) -> Option<[f64; 2]> {
        Some([exponential(&mut self.arrivals), exponential(&mut self.times)])
    }
}

/// Arrivals of the graphs of a stream, in order.
pub(super) struct Arrivals {
    stream: Stream,
    growth: Growth,
    draws: Draws,
    shapes: ChaCha8Rng,
    /// In units.
    now: f64,
    arrived: u64,
    answered: u64,
    /// Measured graphs that are not answered.
    unanswered: u64,
    overloaded: bool,
}

impl Arrivals {
    pub(super) fn new(stream: Stream, growth: Growth) -> Arrivals {
        let draws = Draws::new(stream.setting.seed);
        let (shapes, unanswered) = (keys(&stream.setting), stream.graphs);
        Arrivals { stream, growth, draws, shapes, now: 0.0, arrived: 0, answered: 0, unanswered, overloaded: false }
    }
}

/// Exponential with mean 1.
fn exponential(rng: &mut ChaCha8Rng) -> f64 {
    -(1.0 - rng.random::<f64>()).ln()
}

impl Source<TaskTrees> for Arrivals {
    fn next(&mut self) -> Option<(Ticks, Grown)> {
        if self.unanswered == 0 {
            return None;
        }
        let open = self.arrived - self.answered;
        if self.arrived >= self.stream.measured().end && open as f64 > self.stream.most_open(self.growth.levels) {
            self.overloaded = true;
            return None;
        }
        self.arrived += 1;
        let unit = self.stream.unit as f64;
        let [gap, total] = self.draws.next()?;
        self.now += gap / (f64::from(self.stream.setting.processors) * self.stream.utilisation);
        let key = self.shapes.random();
        let size = self.growth.size(key, MOST_TASKS).unwrap_or(MOST_TASKS);
        let ticks = (total * unit / size as f64).round() as Ticks;
        Some(((self.now * unit).round() as Ticks, Grown { key, level: 0, ticks }))
    }

    fn answered(&mut self, graph: u64, _: Ticks) {
        self.answered += 1;
        self.unanswered -= u64::from(self.stream.measured().contains(&graph));
    }

    fn gave_up(&self) -> bool {
        self.overloaded
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::simulate;
    use super::*;
    use equipoise::schedule::{Graph, NodeReport};

    fn stream(utilisation: f64, graphs: u64) -> Stream {
        let setting = Setting { seed: 5, processors: 8, is_simulated: true };
        Stream { setting, utilisation, rate: Some(20.0), contention: false, piggyback: false, graphs, warm_up: 3, unit: 1_000_000 }
    }

    #[test]
    fn arrivals_times_and_shapes_have_their_means() {
        let growth = Growth { levels: 3, least: 0, children: 2 };
        let draws = if cfg!(debug_assertions) { 20_000 } else { 200_000 };
        let mut arrivals = Arrivals::new(stream(0.5, 1_000_000), growth);
        let (mut last, mut work, mut longest) = (0, 0.0, 0);
        for _ in 0..draws {
            let (at, root) = arrivals.next().unwrap();
            assert!(at >= last);
            last = at;
            work += root.ticks as f64 * growth.size(root.key, 15).unwrap() as f64 / 1e6;
            longest = longest.max(root.ticks);
        }
        let draws = f64::from(draws);
        // Four graphs a unit of time; each takes one unit. Both have a relative standard deviation of 1 / sqrt(draws) = 0.7 %.
        assert!((last as f64 / 1e6 / draws * 4.0 - 1.0).abs() < 0.025, "{last}");
        assert!((work / draws - 1.0).abs() < 0.025, "{work}");
        // An exponential of mean 1 exceeds 6 once in 400 draws; a third of the graphs have a single task.
        assert!(longest > 6_000_000);
    }

    #[test]
    fn graphs_arrive_until_all_that_count_are_answered() {
        let mut arrivals = Arrivals::new(stream(0.5, 2), Growth { levels: 1, least: 0, children: 2 });
        for graph in [0, 4, 2, 9] {
            assert!(arrivals.next().is_some());
            arrivals.answered(graph, 1);
        }
        assert!(arrivals.next().is_some());
        arrivals.answered(3, 1);
        assert!(arrivals.next().is_none());
    }

    #[test]
    fn no_more_graphs_come_when_more_are_open_than_ever_should_be() {
        let growth = Growth { levels: 0, least: 0, children: 0 };
        let mut arrivals = Arrivals::new(stream(0.5, 20), growth);
        let came = (0..).take_while(|_| arrivals.next().is_some()).count();
        // 8 on average, 4 the standard deviation of M/M/1 on 8 processors, and those under way.
        let most = 8.0 + 10.0 * 4.0 + 4.0 * 10.0 / 20.0 + 90.0;
        assert!(arrivals.gave_up() && (came as f64 - most).abs() <= 1.0, "{came}");
        // As long as they are answered, all is well.
        let mut arrivals = Arrivals::new(stream(0.5, 20_000), growth);
        for graph in 0..20_003 {
            assert!(arrivals.next().is_some());
            arrivals.answered(graph, 1);
        }
        assert!(arrivals.next().is_none() && !arrivals.gave_up());
    }

    #[test]
    fn a_busy_stream_is_not_overloaded_and_an_overloaded_one_ends() {
        for scheduler in ["steal", "static", "random", "neighbour", "hierarchical"] {
            let (outcome, _) = simulate("stream:graphs=2000,warmup=0,utilisation=0.9,unit=1ms", scheduler, 2, 1).unwrap();
            assert!(!outcome.gave_up && outcome.graphs.len() >= 2_000, "{scheduler}");
        }
        // Only some of the ranks work.
        let dedicated = "hierarchical:host=dedicated,medians=dedicated,medians=hadamard";
        let (outcome, _) = simulate("stream:graphs=4000,utilisation=0.95,unit=1ms", dedicated, 4, 1).unwrap();
        assert!(outcome.gave_up && outcome.nodes.iter().any(|node| node.busy == 0));
        assert_eq!(outcome.graphs.len(), 4_800);
    }

    #[test]
    fn migrations_that_queue_take_longer_and_more_so_the_slower_they_are() {
        let response = |rate, contention| {
            let spec = format!("stream:graphs=2000,utilisation=0.6,unit=1ms,rate={rate},contention={contention}");
            let (outcome, prepared) = simulate(&spec, "hierarchical", 16, 1).unwrap();
            let measured = prepared.measured().unwrap();
            let counting = outcome.graphs.iter().filter(|graph| measured.contains(&graph.number));
            counting.map(|graph| graph.response() as f64).sum::<f64>() / 2e9
        };
        let cost = |rate| response(rate, "yes") - response(rate, "no");
        let (slow, fast) = (cost(2), cost(1000));
        assert!(slow > 0.03 && fast.abs() < 0.01, "{slow} {fast}");
        assert!(response(2, "yes") > response(4, "yes") && response(4, "yes") > response(20, "yes"));
    }

    /// Time-averages of a run, in units.
    struct Averages {
        in_system: f64,
        arrival_rate: f64,
        response: f64,
        utilisation: f64,
    }

    /// Between the arrival of the first graph that counts and of the last.
    fn averages(graphs: &[Graph], nodes: &[NodeReport], measured: &Range<u64>) -> Averages {
        let arrival = |number| graphs.iter().find(|graph| graph.number == number).unwrap().submitted as f64;
        let (from, to) = (arrival(measured.start), arrival(measured.end - 1));
        let within = |graph: &Graph| ((graph.answered as f64).min(to) - (graph.submitted as f64).max(from)).max(0.0);
        let counting = graphs.iter().filter(|graph| measured.contains(&graph.number));
        let responses = counting.map(|graph| graph.response() as f64).sum::<f64>();
        let busy: Ticks = nodes.iter().map(|node| node.busy).sum();
        let last = graphs.iter().map(|graph| graph.submitted).max().unwrap();
        Averages {
            in_system: graphs.iter().map(within).sum::<f64>() / (to - from),
            arrival_rate: (measured.end - measured.start) as f64 / (to - from),
            response: responses / (measured.end - measured.start) as f64,
            utilisation: busy as f64 / last as f64 / nodes.len() as f64,
        }
    }

    #[test]
    fn littles_law_and_the_utilisation_hold() {
        for (scheduler, utilisation) in [("hierarchical", 0.6), ("neighbour:age=0.5", 0.8), ("random", 0.5), ("static", 0.7)] {
            let spec = format!("stream:graphs=6000,utilisation={utilisation},unit=1ms");
            let (outcome, prepared) = simulate(&spec, scheduler, 16, 1).unwrap();
            let measured = prepared.measured().unwrap();
            assert_eq!(measured, 1200..7200);
            let averages = averages(&outcome.graphs, &outcome.nodes, &measured);
            let expected = averages.arrival_rate * averages.response;
            assert!((averages.in_system / expected - 1.0).abs() < 0.02, "{scheduler}: {} and {expected}", averages.in_system);
            assert!((averages.utilisation / utilisation - 1.0).abs() < 0.05, "{scheduler}: {}", averages.utilisation);
            assert!(outcome.graphs.len() as u64 >= 7200);
        }
    }

    #[test]
    fn all_schedulers_get_the_same_graphs() {
        let submissions = |scheduler| {
            let (outcome, prepared) = simulate("stream:graphs=200,utilisation=0.7,unit=1ms", scheduler, 8, 3).unwrap();
            let mut graphs = outcome.graphs;
            graphs.sort_by_key(|graph| graph.number);
            let measured = prepared.measured().unwrap().end as usize;
            let submitted: Vec<Ticks> = graphs.iter().take(measured).map(|graph| graph.submitted).collect();
            (submitted, outcome.nodes.iter().map(|node| node.tasks).sum::<u64>())
        };
        assert_eq!(submissions("hierarchical").0, submissions("neighbour").0);
        assert_eq!(submissions("static").0, submissions("random").0);
        assert_eq!(submissions("steal"), submissions("steal"));
    }
}
