//! Options that several commands have.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use equipoise::agreement::{self, Collectives, Used};
use equipoise::balance::{self, Chosen, Rule};
use equipoise::names;
use equipoise::spec::quantity::{self, BYTES, Prefixes, SECONDS_ABOVE_0};
use equipoise::topology::{Hosts, MAX_NODES, PlacementRule, Topology};
use equipoise::transport::sim::Network;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_lab::experiment::tasks::Tasks;
use equipoise_lab::workload::{Pins, WeightPattern, column_names};

use super::terminal::{self, Output};

/// Ranks that a command runs on.
#[derive(Args, Clone)]
#[command(next_help_heading = "Ranks")]
pub struct WorldOptions {
    /// Number of ranks to simulate in virtual time, without MPI; by default the command runs on real ranks (under mpirun)
    #[arg(long, value_name = "RANKS", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_NODES)))]
    pub sim: Option<u32>,

    /// Simulated network: zero | switched | hops, the last two with :latency=20us,per_byte=2.7ns,contention. switched: a message costs its
    /// start-up and its bytes; hops: the same for every hop along the topology; contention: messages wait for each other. FILE.toml (- for
    /// standard input) is a network measured by `equipoise probe --write`: its hosts, links and speeds. On real ranks `compare` accepts a
    /// file, and predicts times with it [default: switched:latency=20us,per_byte=2.7ns]
    #[arg(long, value_name = "MODEL", value_parser = any_bytes())]
    pub network: Option<String>,

    /// Whether the command takes a network on real ranks, for predictions.
    #[arg(skip)]
    pub predicts: bool,

    /// Whether the command continues when a rank dies, where MPI can.
    #[arg(skip)]
    #[cfg_attr(not(feature = "_ranks"), allow(dead_code, reason = "without real ranks none dies"))]
    pub survives: bool,

    /// How long a rank that waits leaves messages where they are, if that is longer than usual.
    #[arg(skip)]
    #[cfg_attr(not(feature = "_ranks"), allow(dead_code, reason = "without real ranks none waits"))]
    pub nap: Option<Duration>,

    /// Number of hosts of the simulated ranks, filled in blocks (HOSTS) or in turn (HOSTS,cyclic), to measure traffic between hosts
    /// [default: 1]
    #[arg(long, value_name = "HOSTS", verbatim_doc_comment)]
    pub sim_hosts: Option<SimHosts>,

    /// Placement of the topology's nodes on ranks: hosts keeps neighbours on one host; identity puts node i on rank i; random; all (for
    /// compare) runs each balancer under all three, to compare traffic between hosts
    #[arg(long, value_name = "RULE", default_value_t = Placements::One(PlacementRule::Hosts))]
    pub placement: Placements,

    /// Seed of all random numbers. The same seed gives the same loads and (in simulation) the same run
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,

    /// Abort after SECONDS without progress, with exit status 3 and a report of the waits of each rank; in simulation the time is virtual
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = duration)]
    pub timeout: Duration,
}

/// Grace for operations that are asked to end.
#[derive(Args)]
pub struct GraceOption {
    /// Grace for the current phase or run after SIGTERM or SIGUSR1; then it is given up. Finished results are printed in any case, marked
    /// `interrupted`, with exit status 4
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = duration)]
    pub grace: Duration,
}

/// Placement rules: one, or all of them side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placements {
    One(PlacementRule),
    All,
}

impl FromStr for Placements {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Placements, String> {
        match text {
            "all" => Ok(Placements::All),
            _ => text.parse().map(Placements::One),
        }
    }
}

impl fmt::Display for Placements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placements::One(rule) => rule.fmt(f),
            Placements::All => f.write_str("all"),
        }
    }
}

impl Placements {
    /// The rules.
    pub fn rules(self) -> Vec<PlacementRule> {
        match self {
            Placements::One(rule) => vec![rule],
            Placements::All => PlacementRule::ALL.to_vec(),
        }
    }

    /// The only rule.
    ///
    /// # Errors
    /// Wrong usage if there are several.
    pub fn one(self) -> Result<PlacementRule> {
        match self {
            Placements::One(rule) => Ok(rule),
            Placements::All => Err(Error::usage("--placement all: only compare runs under several rules")),
        }
    }
}

/// Distribution of simulated ranks over hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimHosts {
    pub count: u32,
    /// In turn, as `mpirun --map-by node` numbers ranks, instead of in blocks.
    pub cyclic: bool,
}

impl FromStr for SimHosts {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<SimHosts, String> {
        let (count, cyclic) = text.strip_suffix(",cyclic").map_or((text, false), |count| (count, true));
        match count.parse() {
            Ok(count) if count > 0 => Ok(SimHosts { count, cyclic }),
            _ => Err("it must be a number of hosts, 1 or more, with ,cyclic after it if ranks are dealt out to them in turn".into()),
        }
    }
}

impl SimHosts {
    /// The host of each rank.
    ///
    /// # Errors
    /// Wrong usage if there are more hosts than ranks.
    pub fn of(self, ranks: u32) -> Result<Hosts> {
        if self.count > ranks {
            return Err(Error::usage(format!("--sim-hosts {}: there are only {ranks} ranks to place on them", self.count)));
        }
        let host = |rank: u32| match self.cyclic {
            true => rank % self.count,
            false => (u64::from(rank) * u64::from(self.count) / u64::from(ranks)) as u32,
        };
        Ok(Hosts::from_names(&(0..ranks).map(|rank| format!("host{}", host(rank))).collect::<Vec<_>>()))
    }
}

/// Weights and pinning of the tasks behind `--loads`.
#[derive(Args)]
pub struct TaskOptions {
    /// Work units of each task: 1,2,3 (by task, those of node 0 first) | @FILE | uniform:1..10 | exponential:mean=10 | unit. Loads, quotas
    /// and final loads are then work units
    #[arg(long, value_name = "WEIGHTS", default_value = "unit", value_parser = any_bytes())]
    pub weights: String,

    /// Several weights of each task of --tasks, each to be balanced: names of columns of the table (work and bytes for lbaf:DIR), as in
    /// work,bytes. A result is as good as the largest ratio of a rank's load over its fair share, which is printed for each weight. A
    /// table's work is its column work, or else the first named here. For greedy, refine and greedy-refine; other balancers use the work
    /// only
    #[arg(long, value_name = "NAMES")]
    weights_columns: Option<String>,

    /// Pin each task to its node with this probability, p=0.1: pinned tasks count as load and never move
    #[arg(long, value_name = "SHARE")]
    pinned: Option<String>,
}

/// Constraints on balancers.
#[derive(Args)]
pub struct RuleOptions {
    /// Memory of each rank for tasks' payloads in bytes, after the phase and during it: 8e9 or 8G, or a number for each rank, 8G,4G. k, M, G
    /// and T are powers of 1000, with iB (8GiB) of 1024. Tasks move in several rounds where room must be made first. For greedy, refine,
    /// greedy-refine, hierarchical and kk
    #[arg(long, value_name = "BYTES")]
    capacity: Option<String>,

    /// Communication between tasks: one line `a b bytes` per pair, tasks by their numbers: those of --loads by node, those of --tasks by rank. Bytes between ranks and
    /// between hosts are reported, and refine:locality=0.05 reduces them. LBAF's data include their own
    #[arg(long, value_name = "FILE", value_parser = any_bytes())]
    pub communications: Option<String>,

    /// Sums, scans and all-gathers of the phases: own (trees of messages), native (MPI's, where each node of the topology has its own rank)
    /// or auto (measures both, and takes the faster). Results and counts are the same: an operation of MPI counts as the messages of our
    /// own tree. In simulation and with --trace always own [default: own]
    #[arg(long, value_name = "WHOSE")]
    pub collectives: Option<Collectives>,

    /// Follow the balancer's rule as published, even where it makes the slowest rank (in work over power) slower; by default such moves are
    /// declined, and the result reports it
    #[arg(long)]
    pub plain: bool,
}

impl RuleOptions {
    /// The columns that hold the weights of the tasks of this source, where there are several.
    ///
    /// # Errors
    /// Wrong usage if there is no source, or the list is malformed, or ranks have a capacity, too.
    pub fn columns(&self, kind: &TaskOptions, source: Option<&str>) -> Result<Vec<String>> {
        let columns = kind.columns(source)?;
        match &self.capacity {
            Some(text) if !columns.is_empty() => {
                Err(Error::usage(format!("--capacity {text}: it does not go together with --weights-columns, of which bytes can be one")))
            }
            _ => Ok(columns),
        }
    }

    /// Memory of each rank in bytes, if it is limited.
    pub fn capacity(&self, ranks: u32) -> Result<Option<Vec<u64>>> {
        let Some(text) = &self.capacity else { return Ok(None) };
        let wrong = |part: &str| Error::usage(format!("--capacity {text}: '{part}' is no number of bytes; it must be {BYTES}"));
        let read = |part: &str| quantity::bytes(part.trim(), Prefixes::Decimal).ok_or_else(|| wrong(part));
        let listed = text.split(',').map(read).collect::<Result<Vec<u64>>>()?;
        match listed.len() {
            1 => Ok(Some(vec![listed[0]; ranks as usize])),
            given if given as u64 == u64::from(ranks) => Ok(Some(listed)),
            given => Err(Error::usage(format!("--capacity {text}: there are {given} numbers for {ranks} ranks"))),
        }
    }

    /// Wrong usage if a balancer does not respect the given capacities.
    pub fn check(&self, balancer: &Chosen) -> Result<()> {
        match &self.capacity {
            Some(text) if !balancer.keeps_capacity() => {
                let name = &balancer.name;
                let those = all_that(|balancer| balancer.keeps_capacity());
                Err(Error::usage(format!("--capacity {text}: balancer {name} keeps no capacities; {those} do")))
            }
            _ => Ok(()),
        }
    }

    /// Selects the collective operations of the phases. Returns the selected ones if the option was given.
    pub fn use_collectives(&self, world: &mut World) -> Result<Option<Used>> {
        self.collectives.map(|choice| agreement::use_collectives(world, choice)).transpose()
    }

    /// Says to people which collective operations the phases had. Afterwards: wrong usage, which some balancers find in their phase, gets one line.
    pub fn remark_on_collectives(&self, world: &World, used: &Used, output: Output) {
        let whose = match (used.native, world.is_simulated()) {
            (true, _) => "MPI's own, where each node has a rank of its own",
            (false, true) if self.collectives != Some(Collectives::Own) => "our own trees, as always in simulation",
            (false, _) => "our own trees",
        };
        let us = |ticks: u64| ticks as f64 / 1e3;
        let times = used.measured.map(|[own, native]| {
            format!(" (a sum and an all-gather take {:.1} us with our own trees and {:.1} us with MPI's)", us(own), us(native))
        });
        if world.is_first() && output == Output::Human {
            terminal::remark(&format!("collective operations: {whose}{}", times.unwrap_or_default()));
        }
    }

    /// Returns true if a balancer can take part.
    pub fn admits(&self, balancer: &Chosen) -> bool {
        self.capacity.is_none() || balancer.keeps_capacity()
    }
}

/// The balancers of the registry that have a property, as a sentence names them; the one that moves nothing is left out.
fn all_that(has: impl Fn(&Chosen) -> bool) -> String {
    let found = balance::ALL.iter().filter_map(|entry| balance::find(entry.name).ok()).filter(|one| has(one) && one.name != "none");
    let names: Vec<String> = found.map(|one| one.name).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}

impl TaskOptions {
    /// The columns that hold the weights of the tasks of this source; none if there is one weight only. Checked here and not by clap, which
    /// drops a requirement if another option conflicts with what is required.
    fn columns(&self, source: Option<&str>) -> Result<Vec<String>> {
        match (&self.weights_columns, source) {
            (None, _) => Ok(Vec::new()),
            (Some(names), None) => {
                Err(Error::usage(format!("--weights-columns {names}: only tasks of --tasks <SOURCE> have several weights")))
            }
            (Some(names), Some(_)) => column_names(names),
        }
    }

    /// Returns true if a balancer can take part.
    pub fn admits(&self, balancer: &Chosen) -> bool {
        self.weights_columns.is_none() || balancer.keeps_columns()
    }

    /// Wrong usage if a balancer does not use several weights, and there are some.
    pub fn check(&self, balancer: &Chosen) -> Result<()> {
        match &self.weights_columns {
            Some(names) if !balancer.keeps_columns() => {
                let name = &balancer.name;
                let those = all_that(|balancer| balancer.keeps_columns());
                Err(Error::usage(format!(
                    "--weights-columns {names}: balancer {name} looks at the work alone; {those} look at all columns"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Parses both options; files are read later.
    pub fn parse(&self, seed: u64) -> Result<(WeightPattern, Pins)> {
        let pins = self.pinned.as_deref().map(|text| Pins::parse(text, seed)).transpose()?;
        Ok((WeightPattern::parse(&self.weights)?, pins.unwrap_or_default()))
    }
}

/// Takes an argument that may name a file, whose name may be any bytes, as text; see [`names`].
pub fn any_bytes() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(|argument| names::text(&argument))
}

/// Refuses a balancer that goes by the communication between tasks where it is unknown.
///
/// # Errors
/// Wrong usage that names the sources of it.
pub fn check_links(balancer: &Chosen, tasks: &Tasks) -> Result<()> {
    let goes_by_them = balancer.rule().is_some_and(Rule::by_links);
    if !goes_by_them || tasks.has_links() || tasks.has_columns() {
        return Ok(());
    }
    let name = &balancer.name;
    let why = "it needs to know which tasks talk to each other: LBAF's data say it, or --communications FILE";
    Err(Error::usage(format!("--balancer {name}: {why}")))
}

/// Refuses several options that would read standard input.
///
/// # Errors
/// Wrong usage that names two of them.
pub fn check_standard_input<'a>(options: impl IntoIterator<Item = (&'static str, Option<&'a str>)>) -> Result<()> {
    let given = options.into_iter().filter_map(|(option, text)| Some((option, text?)));
    let takes = |(option, text): (&'static str, &'a str)| {
        let names_it = matches!(text.trim(), "-" | "@-" | "graph:-" | "from:-") || text.trim().starts_with("-,");
        let in_it = text.split_once(':').into_iter().flat_map(|(_, options)| options.split(',')).filter_map(|piece| piece.split_once('='));
        let files = in_it.filter(|(key, value)| ["file", "times", "optimum"].contains(&key.trim()) && value.trim() == "-");
        std::iter::repeat_n(option, usize::from(names_it) + files.count())
    };
    let mut all = given.flat_map(takes);
    match (all.next(), all.next()) {
        (Some(first), Some(second)) => {
            Err(Error::usage(format!("{second}: standard input (-) can be read once, and {first} reads it already")))
        }
        _ => Ok(()),
    }
}

/// A time above zero as a number of seconds.
pub fn seconds(text: &str) -> std::result::Result<f64, String> {
    quantity::seconds(text).filter(|seconds| *seconds > 0.0).ok_or_else(|| format!("it must be {SECONDS_ABOVE_0}"))
}

/// A time above zero that a clock can count.
pub fn duration(text: &str) -> std::result::Result<Duration, String> {
    match Duration::try_from_secs_f64(seconds(text)?) {
        Ok(Duration::ZERO) => Err("less than a nanosecond is no time to wait".into()),
        Ok(time) => Ok(time),
        Err(_) => Err("that is longer than a clock can count".into()),
    }
}

/// Factor by which a contender is slowed down: from 1 to 100.
pub fn handicap(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(times) if (1.0..=100.0).contains(&times) => Ok(times),
        _ => Err("it must be a number from 1 to 100".into()),
    }
}

/// The remark on contenders that cannot run, with the reason of each.
pub fn left_out(objections: &[impl fmt::Display]) -> String {
    let reasons: Vec<String> = objections.iter().map(ToString::to_string).collect();
    format!("left out: {}", reasons.join("; "))
}

/// Says to people that a graph's bandwidths do not count in the times of a simulated network that knows no links.
pub fn remark_on_links(world: &mut World, topology: &Topology, output: Output) {
    let Some(network) = world.as_simulation().map(|simulation| simulation.network()) else { return };
    let of_links = matches!(network, Network::Hops(_));
    if let (Topology::Graph(graph), Output::Human, false) = (topology, output, of_links)
        && graph.has_unequal_links()
    {
        terminal::remark(&format!(
            "the bandwidths of the graph's links do not count in times: network {network} knows no links; with --network hops they count"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use equipoise::topology::RankId;

    #[test]
    fn a_timeout_is_a_positive_number_of_seconds() {
        assert_eq!(["0.5", "500ms", "1:30"].map(duration), [500, 500, 90_000].map(|ms| Ok(Duration::from_millis(ms))));
        for wrong in ["0", "1e-300", "-1", "NaN", "soon", "inf", "1e300", ""] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn standard_input_is_read_once() {
        let check = |options: &[(&'static str, &str)]| {
            check_standard_input(options.iter().map(|(option, text)| (*option, Some(*text)))).map_err(|why| why.to_string())
        };
        assert_eq!(check(&[("--loads", "@-"), ("--powers", "3,-"), ("--topology", "graph:x-"), ("--tasks", "-.csv")]), Ok(()));
        assert_eq!(check(&[("--workload", "costs:file=-,optimum=best.tsv"), ("--topology", "ring")]), Ok(()));
        for two in [
            [("--loads", "@-"), ("--topology", "graph:-")],
            [("--loads", "@-"), ("--topology", "-,unit=us")],
            [("--loads", "zero"), ("--topology", "spmm:file=-,times=-")],
        ] {
            let why = check(&two).unwrap_err();
            assert!(why.starts_with("--topology: standard input (-) can be read once, and --"), "{why}");
        }
    }

    #[test]
    fn hosts_are_blocks_or_dealt_out_in_turn() {
        let placed = |text: &str, ranks: u32| {
            let hosts = text.parse::<SimHosts>().unwrap().of(ranks).map_err(|why| why.to_string())?;
            Ok(RankId::all(ranks).map(|rank| hosts.host_of(rank).get()).collect::<Vec<_>>())
        };
        assert_eq!(placed("2", 5), Ok(vec![0, 0, 0, 1, 1]));
        assert_eq!(placed("2,cyclic", 5), Ok(vec![0, 1, 0, 1, 0]));
        assert_eq!(placed("3", 2), Err("--sim-hosts 3: there are only 2 ranks to place on them".to_string()));
        for wrong in ["0", "", "two", "2,block", "-1", ",cyclic"] {
            assert!(wrong.parse::<SimHosts>().is_err(), "{wrong}");
        }
    }
}
