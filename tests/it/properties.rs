//! Promises of every balancer of the registry, on random topologies, ranks, powers and loads.

use bytes::Bytes;
use equipoise::balance::{Entry, without_places};
use equipoise::flow::least_hops;
use equipoise::load::{Powers, Segment, Task, TaskBatch, WorkQueue};
use equipoise::topology::{Kind, Overlay, Topology};
use proptest::prelude::*;

use super::runner::{Outcome, Setup};

/// The most nodes that a random topology gets.
const NODES: usize = 128;

/// A random case, before it is known how many nodes the balancer's topology has.
#[derive(Clone, Debug)]
pub struct Case {
    pub ranks: u32,
    /// Index of the balancer's kind of topology, and its random shape.
    kind: usize,
    shape: Raw,
    powers: RandomPowers,
    loads: RandomLoads,
    pub seed: u64,
}

#[derive(Clone, Debug)]
enum RandomPowers {
    /// 1 on real nodes, 0 on virtual ones.
    Equal,
    /// At least 1 on real nodes.
    Unequal(Raw),
    /// Some real nodes have none.
    SomeZero(Raw),
    /// Up to the largest sum.
    Huge(Raw),
}

#[derive(Clone, Debug)]
enum RandomLoads {
    Zero,
    /// Below 20 each.
    Small(Raw),
    /// A few nodes have some.
    Sparse(Raw),
    /// All on one node.
    Hot {
        node: usize,
        load: u64,
    },
    /// Sums near the largest.
    Huge(Raw),
    /// The same number on each real node.
    Level(u64),
}

/// Random numbers to make a case of. A failure prints what was made of them, not these.
#[derive(Clone)]
struct Raw(Vec<u64>);

impl std::fmt::Debug for Raw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("..")
    }
}

impl std::ops::Index<usize> for Raw {
    type Output = u64;

    fn index(&self, index: usize) -> &u64 {
        &self.0[index]
    }
}

fn raw() -> impl Strategy<Value = Raw> {
    prop::collection::vec(any::<u64>(), NODES).prop_map(Raw)
}

fn powers() -> impl Strategy<Value = RandomPowers> {
    prop_oneof![
        3 => Just(RandomPowers::Equal),
        2 => raw().prop_map(RandomPowers::Unequal),
        2 => raw().prop_map(RandomPowers::SomeZero),
        1 => raw().prop_map(RandomPowers::Huge),
    ]
}

fn loads() -> impl Strategy<Value = RandomLoads> {
    prop_oneof![
        1 => Just(RandomLoads::Zero),
        5 => raw().prop_map(RandomLoads::Small),
        3 => raw().prop_map(RandomLoads::Sparse),
        2 => (any::<usize>(), any::<u64>()).prop_map(|(node, load)| RandomLoads::Hot { node, load }),
        3 => raw().prop_map(RandomLoads::Huge),
        1 => (0..9u64).prop_map(RandomLoads::Level),
    ]
}

pub fn case() -> impl Strategy<Value = Case> {
    (1..=40u32, any::<usize>(), raw(), powers(), loads(), any::<u64>()).prop_map(|(ranks, kind, shape, powers, loads, seed)| Case {
        ranks,
        kind,
        shape,
        powers,
        loads,
        seed,
    })
}

impl Case {
    /// A topology that the balancer runs on and that holds the ranks, one in three with more nodes than it needs.
    fn topology(&self, entry: &Entry) -> Topology {
        let kind = entry.facts.kinds[self.kind % entry.facts.kinds.len()];
        let spec = self.spec(kind);
        let topology = Topology::parse(&spec, self.ranks).unwrap_or_else(|why| panic!("{spec}: {why}"));
        match entry.objection(&topology) {
            None => topology,
            // Of this kind it takes only some; those fitted to the ranks are always among them.
            Some(_) => entry.default_topology(self.ranks),
        }
    }

    fn spec(&self, kind: Kind) -> String {
        let shape = |index: usize, below: u64| (self.shape[index] % below) as u32;
        let nodes = self.ranks + if shape(0, 3) == 0 { shape(1, 5) } else { 0 };
        match kind {
            Kind::Hypercube => format!("hypercube:{}", nodes.next_power_of_two().ilog2()),
            Kind::Mesh | Kind::Torus | Kind::Grid => {
                // Two sides mostly, one or three sometimes; a torus of one side would be a ring.
                let sides = match shape(2, 6) {
                    0 if kind != Kind::Torus => vec![nodes],
                    1 | 2 => {
                        let (b, c) = (1 + shape(3, 3), 1 + shape(4, 4));
                        vec![nodes.div_ceil(b * c), b, c]
                    }
                    _ => {
                        let columns = 1 + shape(3, 7);
                        vec![nodes.div_ceil(columns), columns]
                    }
                };
                let sides: Vec<String> = sides.iter().map(u32::to_string).collect();
                format!("{kind}:{}", sides.join("x"))
            }
            Kind::Tree if shape(2, 2) == 0 => format!("tree:kary={},nodes={nodes}", 1 + shape(3, 4)),
            Kind::Tree => {
                // In preorder a node's parent is the node before it or one of that one's ancestors.
                let mut parents: Vec<Option<u32>> = vec![None];
                for node in 1..nodes {
                    let mut parent = node - 1;
                    let mut climb = shape(node as usize, 4);
                    while let (Some(higher), true) = (parents[parent as usize], climb > 0) {
                        (parent, climb) = (higher, climb - 1);
                    }
                    parents.push(Some(parent));
                }
                let parents: Vec<String> = parents.iter().map(|parent| parent.map_or("-".into(), |parent| parent.to_string())).collect();
                format!("tree:parents={}", parents.join(","))
            }
            Kind::Graph => {
                // A random tree, and some links more.
                let mut links: Vec<(u32, u32)> = (1..nodes).map(|node| (shape(node as usize, u64::from(node)), node)).collect();
                links.extend((0..nodes / 2).map(|at| (shape(at as usize, u64::from(nodes)), shape(at as usize + 50, u64::from(nodes)))));
                let mut links: Vec<(u32, u32)> = links.into_iter().map(|(a, b)| (a.min(b), a.max(b))).collect();
                links.retain(|(a, b)| a < b);
                links.sort_unstable();
                links.dedup();
                let links: Vec<String> = links.iter().map(|(a, b)| format!("{a}-{b}")).collect();
                format!("graph:edges={}", if links.is_empty() { "0".into() } else { links.join(",") })
            }
            Kind::Line | Kind::Ring | Kind::Complete => format!("{kind}:{nodes}"),
        }
    }

    fn powers(&self, nodes: u32) -> Powers {
        let ranks = self.ranks as usize;
        let listed = |of: &dyn Fn(usize) -> u64| {
            let mut powers: Vec<u64> = (0..nodes as usize).map(|node| if node < ranks { of(node) } else { 0 }).collect();
            if powers.iter().all(|&power| power == 0) {
                powers[0] = 1;
            }
            Powers::listed(powers).expect("powers that sum to 64 bits, one above zero")
        };
        match &self.powers {
            RandomPowers::Equal => Powers::equal(self.ranks, nodes),
            RandomPowers::Unequal(raw) => listed(&|node| 1 + raw[node] % 9),
            RandomPowers::SomeZero(raw) => listed(&|node| (raw[node] % 8).saturating_sub(3)),
            RandomPowers::Huge(raw) => listed(&|node| raw[node] / NODES as u64),
        }
    }

    /// Virtual nodes may hold tasks too.
    pub fn loads(&self, nodes: u32) -> Vec<u64> {
        let each = |of: &dyn Fn(usize) -> u64| (0..nodes as usize).map(of).collect();
        match &self.loads {
            RandomLoads::Zero => each(&|_| 0),
            RandomLoads::Small(raw) => each(&|node| raw[node] % 20),
            RandomLoads::Sparse(raw) => each(&|node| if raw[node].is_multiple_of(5) { raw[node] / 5 % 100 } else { 0 }),
            RandomLoads::Hot { node, load } => each(&|other| if other == node % nodes as usize { *load } else { 0 }),
            RandomLoads::Huge(raw) => each(&|node| raw[node] / u64::from(nodes)),
            RandomLoads::Level(load) => each(&|node| if node < self.ranks as usize { *load } else { 0 }),
        }
    }

    /// The balancers that this case is for: every other one, in turns, and one time in four the gossip, which sends by far the most messages. So a
    /// property costs what it did with half the balancers, and over all cases each of them meets all kinds of topologies, powers and loads.
    pub fn drawn(&self, entries: impl Iterator<Item = &'static Entry>) -> impl Iterator<Item = &'static Entry> {
        // Whether messages are disturbed is in other bits.
        let turn = self.seed >> 32;
        let one_in = |entry: &Entry| if entry.name == "tempered" { 4 } else { 2 };
        entries.zip(turn % 4..).filter(move |(entry, at)| at.is_multiple_of(one_in(entry))).map(|(entry, _)| entry)
    }

    pub fn setup(&self, entry: &Entry) -> Setup {
        let topology = self.topology(entry);
        let powers = self.powers(topology.nodes());
        let overlay = Overlay::one_host(topology, self.ranks).expect("the topology holds the ranks");
        Setup { seed: self.seed, ..Setup::new(entry.name, overlay, powers) }
    }
}

/// Every undirected link of a topology.
pub fn links(topology: &Topology) -> Vec<(u32, u32)> {
    let from = |node: u32| topology.neighbours(node).into_iter().filter(move |&other| node < other).map(move |other| (node, other));
    (0..topology.nodes()).flat_map(from).collect()
}

/// For people who read a failure.
pub fn describe(setup: &Setup, outcome: &Outcome) -> String {
    let Outcome { before, quota, cost, counts, .. } = outcome;
    let (name, topology, ranks) = (&setup.chosen.name, &setup.overlay.topology, setup.overlay.placement.ranks());
    let (after, powers, disturbance) = (outcome.after(), setup.powers.to_vec(), setup.disturbance);
    let (declined, slowest) = (outcome.declined, outcome.slowest);
    format!(
        "{name} on {topology} with {ranks} ranks, disturbed by {disturbance:?}, declined {declined}, slowest {slowest:?}\nloads {before:?}\npowers {powers:?}\n\
         quota {quota:?}\nfinal {after:?}\n{counts:?}, {cost:?}"
    )
}

fn check_promises(entry: &Entry, setup: &Setup, outcome: &Outcome) -> Result<(), TestCaseError> {
    let case = || describe(setup, outcome);
    let promises = entry.facts.promises;
    prop_assert_eq!(outcome.checksum_after(), outcome.checksum_before, "tasks: {}", case());
    prop_assert!(!promises.exact || outcome.after() == outcome.quota, "quotas: {}", case());
    prop_assert!(!promises.ordered || outcome.is_in_order(), "order: {}", case());
    prop_assert!(outcome.slowest[1] <= outcome.slowest[0], "slower: {}", case());
    let lowest = outcome.lowest();
    for (node, queue) in outcome.queues.iter().enumerate() {
        let (load, quota, lowest) = (outcome.before[node], outcome.quota[node], lowest[node]);
        prop_assert!(queue.own() <= lowest, "node {} kept {} own tasks, once it had {}: {}", node, queue.own(), lowest, case());
        let floor = if promises.exact { load.min(quota) } else { load };
        prop_assert!(!promises.local || lowest >= floor, "node {} once had {}: {}", node, lowest, case());
    }
    // What goes back has not been asked for.
    let went_back = outcome.declined && ["dem", "fos", "sos", "ops"].contains(&entry.name);
    prop_assert!(went_back || u64::from(outcome.counts.chain) <= outcome.cost.steps, "steps: {}", case());
    prop_assert!(went_back || outcome.counts.messages <= outcome.cost.messages, "messages: {}", case());
    // What goes on is in several pieces, each with its line in a transfer's table; what is still with its first owner is one range.
    let first_hand = outcome.plan.transfers.iter().all(|transfer| transfer.step == 0);
    prop_assert!(!first_hand || went_back || outcome.counts.bytes <= outcome.cost.bytes, "bytes: {}", case());
    Ok(())
}

/// With R = 0 the walks move the fewest tasks possible (Wu 1997, theorems 1 and 2); direct transfers always do, and each only once.
fn check_locality(entry: &Entry, setup: &Setup, outcome: &Outcome) -> Result<(), TestCaseError> {
    let total = u128::from(outcome.before.iter().sum::<u64>());
    let divides = |node: u32| (total * u128::from(setup.powers.of(node))).is_multiple_of(u128::from(setup.powers.total()));
    let no_remainder = (0..setup.powers.nodes()).all(divides);
    let direct = entry.name == "direct";
    if direct || no_remainder && ["twa", "cwa", "mwa"].contains(&entry.name) {
        prop_assert_eq!(outcome.nonlocal(), outcome.minimum_nonlocal(), "{}", describe(setup, outcome));
    }
    if direct {
        let moved: u64 = outcome.plan.transfers.iter().map(|transfer| transfer.tasks).sum();
        prop_assert_eq!(moved, outcome.minimum_nonlocal(), "{}", describe(setup, outcome));
    }
    Ok(())
}

/// No way from the loads to those after the phase has fewer task-hops than the optimum; who promises it has as few.
fn check_hops(entry: &Entry, setup: &Setup, outcome: &Outcome) -> Result<(), TestCaseError> {
    let topology = &setup.overlay.topology;
    let least = least_hops(topology.nodes(), &links(topology), &outcome.before, &outcome.after()).expect("a connected topology");
    let hops = outcome.counts.task_hops;
    prop_assert!(hops >= least.hops, "optimum {}: {}", least.hops, describe(setup, outcome));
    // Lemma 5: these walks are optimal on two and on four nodes.
    let lemma = ["cwa", "mwa"].contains(&entry.name) && [1, 2, 4].contains(&topology.nodes());
    prop_assert!(hops == least.hops || !(entry.facts.promises.optimal || lemma), "optimum {}: {}", least.hops, describe(setup, outcome));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 2))]

    #[test]
    fn every_balancer_keeps_its_promises(case in case()) {
        for entry in case.drawn(without_places()) {
            let mut setup = case.setup(entry);
            let loads = case.loads(setup.powers.nodes());
            setup.disturbance = case.seed.is_multiple_of(2).then_some(case.seed);
            let outcome = setup.run_on_loads(&loads);
            check_promises(entry, &setup, &outcome)?;
            check_locality(entry, &setup, &outcome)?;
        }
    }

    #[test]
    fn task_hops_are_at_least_the_optimum(case in case(), few in any::<bool>()) {
        let case = Case { ranks: if few { 1 + case.ranks % 4 } else { case.ranks }, ..case };
        for entry in case.drawn(without_places()) {
            let setup = case.setup(entry);
            let outcome = setup.run_on_loads(&case.loads(setup.powers.nodes()));
            check_hops(entry, &setup, &outcome)?;
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run(case in case()) {
        for entry in case.drawn(without_places()) {
            let mut setup = case.setup(entry);
            let loads = case.loads(setup.powers.nodes());
            setup.disturbance = Some(case.seed);
            setup.trace = Some(1000);
            let (once, again) = (setup.run_on_loads(&loads), setup.run_on_loads(&loads));
            prop_assert_eq!(&once.plan, &again.plan, "{}", entry.name);
            prop_assert_eq!(&once.counts, &again.counts, "{}", entry.name);
            prop_assert_eq!(&once.trace, &again.trace, "{}", entry.name);
            for (once, again) in once.queues.iter().zip(&again.queues) {
                prop_assert!(once.segments().eq(again.segments()), "{}", entry.name);
            }
            // What is decided does not depend on the order in which messages arrive.
            setup.disturbance = None;
            let calm = setup.run_on_loads(&loads);
            prop_assert_eq!(once.moves(), calm.moves(), "{}", entry.name);
        }
    }

    #[test]
    fn payloads_arrive_as_they_left(case in case()) {
        let content = |id: u64| Bytes::from((0..id % 50).map(|at| (id + at) as u8).collect::<Vec<u8>>());
        for entry in case.drawn(without_places()) {
            let setup = case.setup(entry);
            let mut next = 1 << 40;
            let mut queue = |load: u64| {
                let tasks = (0..load % 30).map(|_| {
                    // Ids with gaps, in no particular relation to the nodes.
                    next += 1 + next % 3;
                    Segment::from(Task { id: next, weight: 1, payload: content(next) })
                });
                WorkQueue::new(tasks.collect::<TaskBatch>())
            };
            let queues: Vec<WorkQueue> = case.loads(setup.powers.nodes()).into_iter().map(&mut queue).collect();
            let ids = |queues: &[WorkQueue]| -> Vec<u64> {
                let one = |task: Task| {
                    assert!(task.payload == content(task.id) && task.weight == 1, "{}: {task:?} is not as it left", entry.name);
                    task.id
                };
                queues.iter().flat_map(WorkQueue::segments).flat_map(Segment::tasks).map(one).collect()
            };
            let before = ids(&queues);
            let outcome = setup.run(queues);
            let mut after = ids(&outcome.queues);
            if !entry.facts.promises.ordered {
                after.sort_unstable();
            }
            prop_assert_eq!(before, after, "{}", entry.name);
            prop_assert_eq!(outcome.checksum_after(), outcome.checksum_before);
        }
    }

    #[test]
    fn dem_leaves_a_difference_of_at_most_the_dimension(dimension in 0u32..=5, case in case()) {
        let topology = Topology::parse(&format!("hypercube:{dimension}"), 1 << dimension).expect("a hypercube");
        let nodes = topology.nodes();
        let case = Case { ranks: nodes, ..case };
        let after = Setup::native("dem", topology, Powers::equal(nodes, nodes)).run_on_loads(&case.loads(nodes)).after();
        let (least, most) = (after.iter().min().copied().unwrap_or(0), after.iter().max().copied().unwrap_or(0));
        prop_assert!(most - least <= u64::from(dimension), "{after:?}");
    }
}
