//! `equipoise compare`: balancers side by side.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use clap::Args;
use equipoise::balance::{self, Chosen};
use equipoise::load::{Link, Powers};
use equipoise::topology::{Hosts, Overlay, RankId, Topology};
use equipoise::transport::sim::Measured;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_lab::experiment::compare::{BalancerContender, Case};
use equipoise_lab::experiment::{
    self, CaseResult, CompareRecord, CompareSpec, Environment, Interruption, LoadSource, Tasks, handicap as slowing, ranking, settle,
};
use equipoise_lab::report::columns::legend;
use equipoise_lab::report::{advice, csv, html, json, table, trace};
use equipoise_lab::workload::{LoadPattern, Pins, PowerPattern, TaskSource, WeightPattern, network};

use super::launch::{self, Ending};
use super::options::{
    GraceOption, Placements, RuleOptions, TaskOptions, WorldOptions, any_bytes, check_links, check_standard_input, handicap, left_out,
    remark_on_links, seconds,
};
use super::output::{Files, Target, check_trace};
use super::terminal;
use super::terminal::Output;

const EXAMPLES: &str = "\
Examples:
  mpirun -n 8 equipoise compare
  mpirun -n 8 equipoise compare --tasks files:. --loads uniform:mean=100 --loads hot:total=1000
  mpirun -n 16 equipoise compare --balancer direct,cwa --payload 64,4096 --csv result.csv
  equipoise compare --sim 64 --topology hypercube --network hops --output json

A line of the table is one balancer on one load:
{COLUMNS}The last sentence names, of the balancers that balance best, the fastest; of those that are
statistically tied, the simplest. Best is the earliest end of the slowest rank; with
--task-seconds the least time of a step and of the phase over --steps; with --weights-columns the
smallest largest ratio. If a rank is beyond its --capacity, tasks must move. Times are compared by
their ratios within a round, all comparisons together with 95 % confidence.";

fn examples() -> String {
    EXAMPLES.replace("{COLUMNS}", &legend::<CompareRecord>())
}

/// Compare balancers on the same loads: the cost of each, and the task length from which it pays
#[derive(Args)]
#[command(after_help = examples())]
pub struct Arguments {
    /// Balancers to compare, A,B:key=value,..; A+refine also repairs the rounding by whole tasks, from:FILE is a partition as in `equipoise
    /// balance` [default: all that fit]
    #[arg(long, value_name = "NAMES", value_parser = any_bytes())]
    balancer: Option<String>,

    /// Topology for all balancers, as in `equipoise balance`; those that can't run on it are left out [default: each balancer's own]
    #[arg(long, value_name = "TOPOLOGY", value_parser = any_bytes())]
    topology: Option<String>,

    /// Number of tasks on each node before the phase, may be given several times: 19,11,2 | @FILE | uniform:mean=10 | hot:total=1000,node=0 |
    /// scattered:total=1000 | poisson:mean=10 | sparse:p=0.2,max=100 | zero. A list has a number for each rank's node (with --topology: and may go on with one for each virtual node) [default: uniform:mean=10]
    #[arg(long, value_name = "LOADS", value_parser = any_bytes())]
    loads: Vec<String>,

    /// Real tasks, in addition to the loads or instead of them. lbaf:DIR[,set=NAME][,phase=N]: task times of a real run in the format of
    /// DARMA's LBAF, one file per rank. FILE.csv: a table with the columns rank,work[,bytes,x,y,z] (- for standard input; with ,unit=us
    /// work is a time, also in ns, ms or s, and may have a fraction). The run's ranks are mapped to ranks in blocks, and loads are work (ns
    /// or the table's units). files:DIR: every file below DIR is a task with its bytes as payload (files ignored by .gitignore are left
    /// out); the files of a top-level folder start on one rank
    #[arg(long, value_name = "SOURCE", value_parser = any_bytes())]
    tasks: Option<String>,

    /// Relative speed of each node: 3,4,5 | @FILE | uniform:1..10 | equal
    #[arg(long, value_name = "POWERS", default_value = "equal", value_parser = any_bytes())]
    powers: String,

    /// Payload of each task, one or several sizes, as in 64,4096
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "64")]
    payload: Vec<u64>,

    #[command(flatten)]
    kind: TaskOptions,

    #[command(flatten)]
    rule: RuleOptions,

    /// Number of rounds. Each round measures every balancer, in another order; below six rounds nothing is ranked (more balancers need more
    /// rounds). In simulation one is enough, since all rounds are equal [default: 9 for two balancers to 18 for twenty, so that no single
    /// slow round decides]
    #[arg(long, value_name = "ROUNDS", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: Option<u32>,

    /// Number of steps for which the loads last, where the duration of tasks is known: the advice spreads the time of a phase over them, and
    /// is to leave the tasks where they are if no phase pays within them [default: until the first balancer pays]
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,

    /// Seconds that a task (with weights: a work unit) takes on a rank of average power. The advice then goes by the time of a step after a
    /// phase and the phase's own time, see --steps. Adds the length of a step, and the imbalance from which a phase pays, for the whole
    /// load and for one arriving task [default: from --tasks, if it has times]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    task_seconds: Option<f64>,

    /// Slow the last balancer down by this factor, to test the measurement (scripts/fairness)
    #[arg(long, value_name = "TIMES", hide = true, value_parser = handicap)]
    handicap: Option<f64>,

    #[command(flatten)]
    world: WorldOptions,

    #[command(flatten)]
    grace: GraceOption,

    /// Output format
    #[arg(long, value_enum, value_name = "FORM", default_value = "human", help_heading = "Results")]
    output: Output,

    /// Also write the results into this file as comma-separated values
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    csv: Option<PathBuf>,

    /// Also write table.csv, records.jsonl and report.html (with pictures) into this folder
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    report: Option<PathBuf>,

    /// Write a timeline into this file, in Chrome's trace format (for ui.perfetto.dev): a row for each rank, messages as arrows
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    trace: Option<PathBuf>,
}

/// Parsed options, as far as they can be checked without ranks.
struct Request<'a> {
    arguments: &'a Arguments,
    balancers: Vec<String>,
    loads: Vec<LoadPattern>,
    powers: PowerPattern,
    weights: WeightPattern,
    pins: Pins,
    tasks: Option<TaskSource>,
    columns: Vec<String>,
}

pub fn run(arguments: &Arguments) -> Result<(), Ending> {
    let texts = [
        ("--balancer", arguments.balancer.as_deref()),
        ("--communications", arguments.rule.communications.as_deref()),
        ("--topology", arguments.topology.as_deref()),
        ("--tasks", arguments.tasks.as_deref()),
        ("--powers", Some(arguments.powers.as_str())),
        ("--weights", Some(arguments.kind.weights.as_str())),
        ("--network", arguments.world.network.as_deref()),
    ];
    let loads = arguments.loads.iter().map(|text| ("--loads", Some(text.as_str())));
    check_standard_input(loads.chain(texts))?;
    let tasks = arguments.tasks.as_deref().map(TaskSource::parse).transpose()?;
    let mut loads = arguments.loads.iter().map(|text| LoadPattern::parse(text)).collect::<Result<Vec<_>>>()?;
    if loads.is_empty() && tasks.is_none() {
        loads.push(LoadPattern::default());
    }
    let balancers: Vec<String> = match &arguments.balancer {
        Some(names) => balance::listed(names),
        None => balance::ALL.iter().map(|entry| entry.name.into()).collect(),
    };
    balancers.iter().try_for_each(|name| settle::check_balancer(name))?;
    let (weights, pins) = arguments.kind.parse(arguments.world.seed)?;
    let columns = arguments.rule.columns(&arguments.kind, arguments.tasks.as_deref())?;
    if !columns.is_empty() && !loads.is_empty() {
        return Err(Error::usage("--weights-columns: --loads have none; leave them out, and compare on --tasks alone").into());
    }
    let request = Request { arguments, balancers, loads, powers: PowerPattern::parse(&arguments.powers)?, weights, pins, tasks, columns };

    if let (None, Some(name)) = (arguments.world.sim, arguments.world.network.as_deref())
        && !network::is_file(name)
    {
        return Err(Error::usage(format!(
            "--network {name}: on real ranks it must be a FILE.toml (- for standard input) to predict with; or say --sim RANKS"
        ))
        .into());
    }
    launch::within_until_told(&WorldOptions { predicts: true, ..arguments.world.clone() }, 1, &arguments.grace, |world| {
        let files = match world.is_first() {
            true => Files::create(arguments.csv.as_ref(), arguments.report.as_ref(), arguments.trace.as_ref()),
            false => Ok(Files::default()),
        };
        let files = settle::agree(world, files)?;
        let spec = request.prepare(world)?;
        let used = arguments.rule.use_collectives(world)?;
        let progress = terminal::Progress::begin(arguments.output != Output::Quiet, "phases");
        let mut results = experiment::compare(world, &spec, |done, of, now| progress.at(done, of, now))?;
        let reached = progress.reached();
        if let Some(used) = &used {
            let records = results.iter_mut().flat_map(|result| &mut result.records);
            records.for_each(|record| record.note_collectives(used.native));
        }
        drop(progress);
        used.iter().for_each(|used| arguments.rule.remark_on_collectives(world, used, arguments.output));
        if !world.is_first() {
            return Ok(());
        }
        for (case, left_out) in results.iter().flat_map(|case| case.left_out.iter().map(move |one| (case, one))) {
            terminal::remark(&format!("left out with {}: {}: {}", case.loads, left_out.balancer, left_out.why));
        }
        let knows_durations = results.iter().flat_map(|case| &case.records).any(|record| record.unit_seconds().is_some());
        if arguments.steps.is_some() && !knows_durations && !results.is_empty() {
            terminal::remark("--steps is not used: the duration of tasks is not known (see --task-seconds)");
        }
        match Interruption::of(world, reached.0, reached.1).filter(|_| results.is_empty()) {
            Some(interruption) => terminal::interrupted(arguments.output, &interruption, "phases"),
            None => show(arguments.output, &results, &launch::environment(world), files),
        }
    })
}

impl Request<'_> {
    fn prepare(&self, world: &mut World) -> Result<CompareSpec> {
        let prediction = self.prediction(world)?;
        if self.arguments.world.network.is_some() && !world.is_simulated() {
            // What the file knows of these hosts: the racks that they are in.
            let names = world.hosts().names().to_vec();
            let racks = settle::from_first(world, || Ok(prediction.as_ref().and_then(|network| network.racks_of(&names))))?;
            racks.iter().for_each(|racks| world.use_racks(racks));
        }
        let (contenders, left_out) = self.contenders(world)?;
        // With a topology for all, lists are of its nodes, otherwise of ranks.
        let nodes = match (&self.arguments.topology, contenders.first()) {
            (Some(_), Some(contender)) => contender.overlay.topology.nodes(),
            _ => world.ranks(),
        };
        let cases = self.cases(world, nodes)?;
        for case in &cases {
            contenders.iter().try_for_each(|contender| contender.balancer.check_tasks(case.tasks.count()))?;
            contenders.iter().try_for_each(|contender| check_links(&contender.balancer, &case.tasks))?;
        }
        // Said when all else is in order: wrong usage gets one line.
        let elsewhere = prediction.as_ref().and_then(|network| elsewhere(network, &world.hosts()));
        left_out.iter().chain(&elsewhere).for_each(|remark| terminal::remark(remark));
        contenders.first().into_iter().for_each(|one| remark_on_links(world, &one.overlay.topology, self.arguments.output));
        let rounds = ranking::rounds_advised(contenders.len());
        Ok(CompareSpec {
            contenders,
            cases,
            repeat: self.arguments.repeat.unwrap_or(rounds),
            lasting: self.arguments.steps,
            task_seconds: self.arguments.task_seconds,
            seed: self.arguments.world.seed,
            trace: self.arguments.trace.is_some(),
            plain: self.arguments.rule.plain,
            prediction,
        })
    }

    /// The network to predict with, on real ranks; rank 0 has it.
    fn prediction(&self, world: &mut World) -> Result<Option<Rc<Measured>>> {
        let Some(file) = self.arguments.world.network.as_deref().filter(|_| !world.is_simulated()) else { return Ok(None) };
        let read = match world.is_first() {
            true => network::read(file).and_then(|network| network.on(world.ranks())).map(|network| Some(Rc::new(network))),
            false => Ok(None),
        };
        settle::agree(world, read)
    }

    /// The balancers that were asked for.
    fn balancers(&self, world: &mut World) -> Result<Vec<Rc<Chosen>>> {
        let mut found = self.balancers.iter().map(|name| settle::balancer(world, name)).collect::<Result<Vec<_>>>()?;
        if let Some(times) = self.arguments.handicap
            && let Some(last) = found.pop()
        {
            found.push(slowing::slowed(last, times));
        }
        Ok(found.into_iter().map(Rc::new).collect())
    }

    /// The balancers that can run, each on its topology; and what to say about the others.
    fn contenders(&self, world: &mut World) -> Result<(Vec<BalancerContender>, Option<String>)> {
        let (ranks, seed) = (world.ranks(), self.arguments.world.seed);
        let given = self.arguments.topology.as_deref().map(|spec| settle::topology(world, spec)).transpose()?;
        let nodes = given.as_ref().map_or(ranks, Topology::nodes);
        let powers = settle::from_first(world, || self.powers.draw(nodes, ranks, seed).map(|(powers, _)| powers))?;
        let balancers = self.balancers(world)?;
        let (mut contenders, mut objections) = (Vec::new(), Vec::new());
        // Unless they are asked for, those that go by places take part only where all tasks have some.
        let is_chosen = self.arguments.balancer.is_some();
        let by_place = is_chosen || self.have_places(world)?;
        // The same goes for those that keep no capacities.
        let suits = |balancer: &&Rc<Chosen>| {
            (by_place || !balancer.needs_places())
                && (is_chosen || self.arguments.rule.admits(balancer) && self.arguments.kind.admits(balancer))
        };
        for balancer in balancers.iter().filter(suits) {
            self.arguments.rule.check(balancer)?;
            self.arguments.kind.check(balancer)?;
            let topology = given.clone().unwrap_or_else(|| balancer.entry.topology_on(&world.network()));
            match balancer.entry.objection(&topology) {
                Some(objection) => objections.push(objection),
                None => {
                    if self.arguments.trace.is_some() {
                        check_trace(&topology)?;
                    }
                    let powers = padded(&powers, topology.nodes())?;
                    let placements = self.arguments.world.placement;
                    for rule in placements.rules() {
                        let overlay = Overlay::placed(topology.clone(), world.hosts(), rule, seed)?;
                        let placement = (placements == Placements::All).then_some(rule);
                        contenders.push(BalancerContender { balancer: balancer.clone(), overlay, placement, powers: powers.clone() });
                    }
                }
            }
        }
        match objections.first() {
            Some(objection) if contenders.is_empty() => Err(objection.clone().into()),
            Some(_) if self.arguments.output == Output::Human => Ok((contenders, Some(left_out(&objections)))),
            _ => Ok((contenders, None)),
        }
    }

    /// Returns true if all tasks have places: those of a table may. One on standard input is read later, and once.
    fn have_places(&self, world: &mut World) -> Result<bool> {
        match &self.tasks {
            Some(source @ TaskSource::Table { path, .. }) if self.loads.is_empty() && path.as_os_str() != "-" => {
                settle::from_first(world, || Ok(source.measured_in(&self.columns)?.is_some_and(|run| !run.places.is_empty())))
            }
            _ => Ok(false),
        }
    }

    /// All loads with all payloads, then the real tasks.
    fn cases(&self, world: &mut World, nodes: u32) -> Result<Vec<Case>> {
        let (ranks, seed) = (world.ranks(), self.arguments.world.seed);
        let mut cases = Vec::new();
        for pattern in &self.loads {
            let loads = settle::from_first(world, || pattern.draw(nodes, ranks, seed))?;
            let count = loads.iter().sum();
            let weights = settle::from_first(world, || self.weights.draw(count, seed))?;
            for payload in &self.arguments.payload {
                let tasks = Tasks::weighing(world, loads.clone(), *payload, weights.clone(), self.pins)?;
                cases.push(Case { loads: LoadSource::Pattern(pattern.clone()), tasks });
            }
        }
        if let Some(source) = &self.tasks {
            cases.push(Case { loads: LoadSource::Tasks(source.clone()), tasks: Tasks::of_columns(world, source, &self.columns)? });
        }
        if let Some(file) = self.arguments.rule.communications.as_deref() {
            // Read once: it may be standard input.
            let least = cases.iter().map(|case| case.tasks.count()).min().unwrap_or(0);
            let links: Arc<[Link]> = settle::links(world, file, least)?.into();
            cases.iter_mut().for_each(|case| case.tasks = case.tasks.clone().linked(links.clone()));
        }
        if let Some(capacity) = self.arguments.rule.capacity(ranks)? {
            cases.iter_mut().for_each(|case| case.tasks = case.tasks.clone().within(capacity.clone()));
        }
        Ok(cases)
    }
}

/// The remark that ranks are not on the hosts that a network's file has for them; `None` if they are. Hosts of a file that does not know them all by name
/// may be called otherwise.
fn elsewhere(network: &Measured, hosts: &Hosts) -> Option<String> {
    let theirs = &network.hosts;
    let are_known = hosts.names().iter().all(|name| theirs.names().contains(name));
    let is_elsewhere = |rank: &RankId| match (theirs.host_of(*rank), hosts.host_of(*rank)) {
        (there, here) if are_known => theirs.name(there) != hosts.name(here),
        (there, here) => there != here,
    };
    let rank = RankId::all(hosts.ranks()).find(is_elsewhere)?;
    let (there, here) = (theirs.name(theirs.host_of(rank)), hosts.name(hosts.host_of(rank)));
    let so = "the predicted times are those of the file's hosts";
    Some(format!("--network {}: rank {rank} is on host {here}, but the file has it on {there}: {so}", network.name))
}

/// The ranks' powers, followed by 0 for each virtual node.
fn padded(powers: &Powers, nodes: u32) -> Result<Powers> {
    match powers {
        Powers::Equal { real, .. } => Ok(Powers::equal(*real, nodes)),
        Powers::Listed(_) => {
            let mut listed = powers.to_vec();
            listed.resize(nodes as usize, 0);
            Powers::listed(listed).map_err(|why| Error::input("powers", format!(": {why}")))
        }
    }
}

fn show(output: Output, results: &[CaseResult], environment: &Environment, files: Files) -> Result<()> {
    let records = || results.iter().flat_map(|result| &result.records);
    match output {
        Output::Human => terminal::print(|out| {
            out.write_all(table::compare(results, terminal::width()).as_bytes())?;
            writeln!(out, "{}", advice::sentence(results))
        })?,
        Output::Json => terminal::print(|out| records().try_for_each(|record| json::line(out, record)))?,
        Output::Quiet => {}
    }
    if let Some(target) = files.csv {
        target.write(|out| csv::compare(out, results))?;
    }
    if let Some(target) = files.trace {
        let traces: Vec<_> = records().filter_map(|record| record.trace.as_ref()).collect();
        target.write(|out| trace::phases(out, &traces))?;
    }
    let Some(report) = files.report else { return Ok(()) };
    report.table.write(|out| csv::compare(out, results))?;
    report.records.write(|out| records().try_for_each(|record| json::line(out, record)))?;
    Target::create("--report", &report.page)?.write(|out| html::compare(out, environment, results))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use equipoise::transport::sim::MeasuredLink;

    use super::*;

    #[test]
    fn ranks_on_other_hosts_than_the_files_are_told() {
        let hosts = |names: &str| Hosts::from_names(&names.split(' ').map(String::from).collect::<Vec<_>>());
        let said = |file: &str, run: &str| {
            let network = Measured { name: "x.toml".into(), hosts: hosts(file), ..measured() };
            elsewhere(&network, &hosts(run))
        };
        // By slot and by node.
        let sentence = "--network x.toml: rank 1 is on host b, but the file has it on a: the predicted times are those of the file's hosts";
        assert_eq!(said("a a b b", "a b a b").as_deref(), Some(sentence));
        assert_eq!(said("a a b b", "a a b b"), None);
        // The same groups on other machines, and on the file's in another order.
        assert_eq!(said("a a b b", "c c d d"), None);
        assert!(said("a a b b", "b b a a").is_some_and(|said| said.contains("rank 0 is on host b, but the file has it on a:")));
        assert!(said("a a b b", "c c c d").is_some_and(|said| said.contains("rank 2 is on host c, but the file has it on b:")));
    }

    fn measured() -> Measured {
        let link = MeasuredLink::default();
        let hosts = Hosts::single(4);
        Measured { name: String::new(), hosts, speeds: Vec::new(), within: link, between: Some(link), pairs: BTreeMap::new() }
    }

    #[test]
    fn virtual_nodes_have_no_power() {
        assert_eq!(padded(&Powers::equal(3, 3), 4).unwrap().to_vec(), [1, 1, 1, 0]);
        assert_eq!(padded(&Powers::listed(vec![3, 4, 5]).unwrap(), 4).unwrap().to_vec(), [3, 4, 5, 0]);
    }
}
