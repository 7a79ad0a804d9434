//! `equipoise list`: the registries' entries.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use equipoise::Result;
use equipoise::balance::{self, Entry, QuotaRule};
use equipoise::registry::Registered;
use equipoise::schedule;
use equipoise::topology::{Kind, Topology};
use equipoise::trigger;
use equipoise_lab::report::figures::{bytes, whole};
use equipoise_lab::report::{json, table};
use equipoise_lab::workload::{graphs, independent};
use serde::Serialize;

use super::terminal;
use super::terminal::Output;

/// Maximum number of ranks: a prediction builds each topology, which takes long and much memory beyond.
const MOST_RANKS: i64 = 1 << 24;

/// List balancers (with their predicted costs), schedulers, triggers, workloads, topologies, loads and networks
#[derive(Args)]
pub struct Arguments {
    /// Number of ranks for which the balancers' costs are predicted
    #[arg(long, value_name = "RANKS", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=MOST_RANKS))]
    ranks: u32,

    /// Output format
    #[arg(long, value_enum, value_name = "FORM", default_value = "human")]
    output: Output,

    /// Print a table as Markdown, for documentation
    #[arg(
        long,
        value_enum,
        value_name = "TABLE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "balancers",
        conflicts_with = "output"
    )]
    markdown: Option<Tabulated>,
}

/// Kind of table for documentation.
#[derive(Clone, Copy, ValueEnum)]
enum Tabulated {
    Balancers,
    Schedulers,
}

#[derive(Serialize)]
struct List {
    ranks: u32,
    balancers: Vec<Balancer>,
    schedulers: Vec<Scheduler>,
    workloads: Vec<Workload>,
    triggers: Vec<Trigger>,
    topologies: Vec<Choice>,
    loads: Vec<Choice>,
    powers: Vec<Choice>,
    weights: Vec<Choice>,
    tasks: Vec<Choice>,
    networks: Vec<Choice>,
}

/// Syntax of an option's value, and its meaning.
#[derive(Serialize)]
struct Choice {
    syntax: &'static str,
    meaning: &'static str,
}

#[derive(Serialize)]
struct Balancer {
    name: &'static str,
    title: &'static str,
    source: &'static str,
    /// The first is the default.
    topologies: Vec<Kind>,
    promises: BTreeMap<&'static str, bool>,
    /// A node's knowledge of the others, and whether that takes an all-gather.
    knows: &'static str,
    all_gather: bool,
    quota: &'static str,
    options: &'static str,
    /// Upper bounds, on its own topology fitted to the ranks.
    topology: String,
    steps: u64,
    messages: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Scheduler {
    name: &'static str,
    title: &'static str,
    source: &'static str,
    /// The first is the default.
    topologies: Vec<Kind>,
    options: &'static str,
    /// Kind of workload that it schedules.
    tasks: Tasks,
}

/// Kinds of workloads.
#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Tasks {
    /// Tasks that spawn tasks.
    Spawning,
    Independent,
}

impl Tasks {
    fn name(self) -> &'static str {
        match self {
            Tasks::Spawning => "spawning",
            Tasks::Independent => "independent",
        }
    }
}

#[derive(Serialize)]
struct Workload {
    name: &'static str,
    title: &'static str,
    /// Empty if there is no source.
    source: &'static str,
    answer: &'static str,
    options: &'static str,
    tasks: Tasks,
}

#[derive(Serialize)]
struct Trigger {
    name: &'static str,
    title: &'static str,
    /// Empty if there is no source.
    source: &'static str,
    /// Rule that says when it balances, as a clause.
    rule: &'static str,
    knows_cost: bool,
    options: &'static str,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let list = List {
        ranks: arguments.ranks,
        balancers: balance::ALL.iter().map(|entry| balancer(entry, arguments.ranks)).collect(),
        schedulers: schedule::ALL.iter().map(|entry| scheduler(entry)).chain(schedulers_of_independent_tasks()).collect(),
        workloads: graphs::ALL.iter().map(|entry| workload(entry)).chain(independent_workloads()).collect(),
        triggers: trigger::Facts::ALL.iter().map(|entry| trigger(entry)).collect(),
        topologies: Kind::ALL.iter().map(|kind| topology(*kind)).collect(),
        loads: LOADS.map(choice).into(),
        powers: POWERS.map(choice).into(),
        weights: WEIGHTS.map(choice).into(),
        tasks: TASKS.map(choice).into(),
        networks: NETWORKS.map(choice).into(),
    };
    match (arguments.markdown, arguments.output) {
        (Some(Tabulated::Balancers), _) => terminal::print(|out| out.write_all(markdown(&list).as_bytes())),
        (Some(Tabulated::Schedulers), _) => terminal::print(|out| out.write_all(schedulers_in_markdown(&list).as_bytes())),
        (_, Output::Human) => terminal::print(|out| out.write_all(human(&list).as_bytes())),
        (_, Output::Json) => terminal::print(|out| json::line(out, &list)),
        (_, Output::Quiet) => Ok(()),
    }
}

fn choice((syntax, meaning): (&'static str, &'static str)) -> Choice {
    Choice { syntax, meaning }
}

const LOADS: [(&str, &str); 8] = [
    ("19,11,2", "the tasks of each node"),
    ("@FILE", "the same from a file (@- is standard input): commas, semicolons, blanks or lines between the numbers, # for comments"),
    ("uniform:mean=10", "uniform in 0 to twice the mean (our choice), with exactly this mean (as Wu 1997, section 5)"),
    ("hot:total=1000,node=0", "all tasks on one node"),
    ("scattered:total=1000", "each task on a node drawn at random (as in `reproduce psts`)"),
    ("poisson:mean=10", "Poisson numbers"),
    ("sparse:p=0.2,max=100", "with this probability 1 to max tasks, otherwise none"),
    ("zero", "no tasks"),
];

const POWERS: [(&str, &str); 4] = [
    ("equal", "all nodes alike"),
    ("3,4,5", "the relative speed of each node; decimal fractions are fine"),
    ("@FILE", "the same from a file"),
    ("uniform:1..10", "drawn uniformly"),
];

const WEIGHTS: [(&str, &str); 5] = [
    ("unit", "one work unit each"),
    ("1,2,3", "the work units of each task, those of node 0 first"),
    ("@FILE", "the same from a file"),
    ("uniform:1..10", "drawn uniformly"),
    ("exponential:mean=10", "exponential, rounded up"),
];

const TASKS: [(&str, &str); 3] = [
    ("files:DIR", "every file below a folder is a task, its bytes the payload"),
    ("lbaf:DIR[,set=NAME][,phase=N]", "the task times of a real run, as DARMA's LBAF has them; tasks that are not migratable stay"),
    (
        "FILE.csv[,unit=us]",
        "a table of tasks: rank,work[,bytes,x,y,z] (- for one on standard input); with a unit (ps, ns, us, ms, s) work is a time",
    ),
];

const NETWORKS: [(&str, &str); 4] = [
    ("zero", "messages take no time (one tick)"),
    ("switched:latency=20us,per_byte=2.7ns[,contention]", "start-up and bytes for each message"),
    ("hops:latency=20us,per_byte=2.7ns[,contention]", "start-up and bytes for each hop along the topology"),
    ("FILE.toml", "hosts, links and speeds as `equipoise probe --write` measured them"),
];

fn topology(kind: Kind) -> Choice {
    match kind {
        Kind::Hypercube => choice(("hypercube[:D]", "the binary cube of dimension D")),
        Kind::Mesh => choice(("mesh[:RxC[xK]]", "a mesh, row by row")),
        Kind::Torus => choice(("torus[:RxC[xK]]", "a mesh that closes around its edges")),
        Kind::Tree => choice((
            "tree[:binary | :kary=K | :hosts | :parents=-,0,1,1,..]",
            "a rooted tree, numbered in preorder; hosts: one link for each host",
        )),
        Kind::Grid => choice(("grid[:PxQx..]", "the hyper-grid of Savvas and Kechadi 2004, of any dimension")),
        Kind::Line => choice(("line[:N]", "nodes in a row")),
        Kind::Ring => choice(("ring[:N]", "nodes in a circle")),
        Kind::Complete => choice(("complete[:N]", "every node next to every other")),
        Kind::Graph => choice(("graph:FILE", "any connected graph: a line `a b` for each link, # for comments; or in METIS's format")),
    }
}

fn balancer(entry: &Entry, ranks: u32) -> Balancer {
    let topology: Topology = entry.default_topology(ranks);
    let cost = (entry.facts.cost)(&topology);
    let promises = entry.facts.promises;
    Balancer {
        name: entry.name,
        title: entry.title,
        source: entry.source,
        topologies: entry.facts.kinds.to_vec(),
        promises: [("exact", promises.exact), ("local", promises.local), ("ordered", promises.ordered), ("optimal", promises.optimal)]
            .into(),
        knows: entry.facts.knows.name(),
        all_gather: entry.facts.knows.is_of_all(),
        quota: match entry.facts.quota {
            QuotaRule::Proportional => "proportional",
            QuotaRule::Positional => "positional",
            QuotaRule::None => "none",
        },
        options: entry.options,
        topology: topology.name(),
        steps: cost.steps,
        messages: cost.messages,
        bytes: cost.bytes,
    }
}

fn scheduler(entry: &schedule::Entry) -> Scheduler {
    let schedule::Entry { name, title, source, options, .. } = *entry;
    Scheduler { name, title, source, topologies: entry.facts.kinds.to_vec(), options, tasks: Tasks::Spawning }
}

fn schedulers_of_independent_tasks() -> impl Iterator<Item = Scheduler> {
    schedule::independent::ALL.iter().map(|entry| {
        let schedule::independent::Entry { name, title, source, options, .. } = **entry;
        Scheduler { name, title, source, topologies: vec![Kind::Complete], options, tasks: Tasks::Independent }
    })
}

fn independent_workloads() -> impl Iterator<Item = Workload> {
    independent::ALL.iter().map(|entry| {
        let independent::Entry { name, title, source, options, .. } = **entry;
        Workload { name, title, source, answer: entry.facts.answer, options, tasks: Tasks::Independent }
    })
}

fn workload(entry: &graphs::Entry) -> Workload {
    let graphs::Entry { name, title, source, options, .. } = *entry;
    Workload { name, title, source, answer: entry.facts.answer, options, tasks: Tasks::Spawning }
}

fn trigger(entry: &trigger::Entry) -> Trigger {
    let trigger::Entry { name, title, source, options, .. } = *entry;
    let trigger::Facts { rule, knows_cost } = entry.facts;
    Trigger { name, title, source, rule, knows_cost, options }
}

fn promises(balancer: &Balancer) -> String {
    let kept: Vec<&str> = balancer.promises.iter().filter(|(_, kept)| **kept).map(|(name, _)| *name).collect();
    if kept.is_empty() { "-".into() } else { kept.join(", ") }
}

fn kinds(topologies: &[Kind]) -> String {
    match topologies.len() {
        all if all == Kind::ALL.len() => "any".into(),
        _ => topologies.iter().map(Kind::to_string).collect::<Vec<_>>().join(", "),
    }
}

fn human(list: &List) -> String {
    let width = terminal::width();
    let mut out = format!(
        "Balancers (--balancer), with the most that they cost on {} ranks, payloads left out\n(rcb and sfc: of one task on each rank)\n\n",
        whole(list.ranks)
    );
    let mut balancers = table::table(&["name", "what it is", "topologies", "knows", "promises", "steps", "messages", "bytes"], 5, width);
    for balancer in &list.balancers {
        balancers.add_row([
            balancer.name.to_string(),
            format!("{} ({})", balancer.title, balancer.source),
            kinds(&balancer.topologies),
            balancer.knows.into(),
            promises(balancer),
            whole(balancer.steps),
            whole(balancer.messages),
            bytes(balancer.bytes),
        ]);
    }
    out.push_str(&table::lines(&balancers));
    for balancer in list.balancers.iter().filter(|balancer| !balancer.options.is_empty()) {
        out.push_str(&format!("\n--balancer {}:{}\n", balancer.name, balancer.options));
    }
    out.push_str(
        "\n--balancer NAME+refine: any of them, and pairs of ranks repair what whole tasks leave, without an all-gather\n\
         \n--balancer from:FILE: a partition that another program has made (METIS, KaHIP, Zoltan): a rank for each task\n\
         \nknows: what a rank decides from; all loads and all tasks take an all-gather, which does not scale to any number of ranks;",
    );
    out.push_str(
        "\nexact: every node ends at its quota; local: nobody ever holds less than the smaller of its load and its quota;\n\
         ordered: the tasks keep their order over the nodes; optimal: the fewest task-hops possible.\n",
    );
    out.push_str(&of_runs(list, width));
    let parts = [
        ("Topologies (--topology)", &list.topologies),
        ("Loads (--loads)", &list.loads),
        ("Powers (--powers)", &list.powers),
        ("Weights of tasks (--weights)", &list.weights),
        ("Real tasks (--tasks)", &list.tasks),
        ("Simulated networks (--network)", &list.networks),
    ];
    for (title, choices) in parts {
        let longest = choices.iter().map(|choice| choice.syntax.len()).max().unwrap_or(0);
        out.push_str(&format!("\n{title}\n\n"));
        for choice in choices {
            out.push_str(&format!("{:longest$}  {}\n", choice.syntax, choice.meaning));
        }
    }
    out
}

/// Workloads that `equipoise run` knows, and their schedulers.
fn of_runs(list: &List, width: u16) -> String {
    let cited = |title: &str, source: &str| if source.is_empty() { title.to_string() } else { format!("{title} ({source})") };
    let mut schedulers = table::table(&["name", "what it is", "tasks", "topologies"], 4, width);
    for scheduler in &list.schedulers {
        schedulers.add_row([
            scheduler.name.into(),
            cited(scheduler.title, scheduler.source),
            scheduler.tasks.name().into(),
            kinds(&scheduler.topologies),
        ]);
    }
    let mut workloads = table::table(&["name", "what it is", "tasks", "answer"], 4, width);
    for workload in &list.workloads {
        workloads.add_row([
            workload.name.into(),
            cited(workload.title, workload.source),
            workload.tasks.name().into(),
            workload.answer.to_string(),
        ]);
    }
    let mut out = format!("\nSchedulers (--scheduler)\n\n{}\n", table::lines(&schedulers));
    for scheduler in list.schedulers.iter().filter(|scheduler| !scheduler.options.is_empty()) {
        out.push_str(&format!("--scheduler {}:{}\n", scheduler.name, scheduler.options));
    }
    let mut triggers = table::table(&["name", "what it is", "balances when"], 3, width);
    for trigger in &list.triggers {
        triggers.add_row([trigger.name, &cited(trigger.title, trigger.source), trigger.rule]);
    }
    out.push_str(&format!("\nWhen to balance (--trigger of when; trigger= of incremental)\n\n{}\n", table::lines(&triggers)));
    for trigger in list.triggers.iter().filter(|trigger| !trigger.options.is_empty()) {
        out.push_str(&format!("--trigger {}:{}\n", trigger.name, trigger.options));
    }
    out.push_str(&format!("\nWorkloads (--workload)\n\n{}\n", table::lines(&workloads)));
    for workload in list.workloads.iter().filter(|workload| !workload.options.is_empty()) {
        out.push_str(&format!("--workload {}:{}\n", workload.name, workload.options));
    }
    out
}

/// The table of balancers for the documentation.
fn markdown(list: &List) -> String {
    let mut out = String::from(
        "| balancer | what it is | topologies | knows | promises | quotas | steps | messages | bytes |\n|---|---|---|---|---|---|--:|--:|--:|\n",
    );
    for balancer in &list.balancers {
        out.push_str(&format!(
            "| `{}` | {} ({}) | {} | {} | {} | {} | {} | {} | {} |\n",
            balancer.name,
            balancer.title,
            balancer.source,
            kinds(&balancer.topologies),
            balancer.knows,
            promises(balancer),
            balancer.quota,
            balancer.steps,
            balancer.messages,
            balancer.bytes
        ));
    }
    out.push_str(&format!(
        "\nKnows: what a rank decides from. All loads and all tasks take an all-gather, the others do not.\nUpper bounds of steps, messages and bytes on {} ranks, each on its own topology, payloads left out. Those of `rcb` and `sfc` are of one task on each rank.\n",
        list.ranks
    ));
    out
}

/// The table of schedulers for the documentation.
fn schedulers_in_markdown(list: &List) -> String {
    let mut out = String::from("| scheduler | what it is | topologies | options |\n|---|---|---|---|\n");
    for Scheduler { name, title, source, topologies, options, .. } in &list.schedulers {
        let options = if options.is_empty() { "-".into() } else { options.replace('|', "\\|") };
        out.push_str(&format!("| `{name}` | {title} ({source}) | {} | {options} |\n", kinds(topologies)));
    }
    out
}
