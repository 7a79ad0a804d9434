//! Tasks of several work units, and tasks that may not move, through every balancer of the registry.

use bytes::Bytes;
use equipoise::balance::{ALL, Entry, without_places};
use equipoise::flow::least_hops;
use equipoise::judge;
use equipoise::load::{Powers, Segment, Shares, Task, TaskBatch, WorkQueue};
use equipoise::topology::Topology;
use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::properties::{Case, case, describe, links};
use super::runner::{Outcome, Setup};

/// How heavy the tasks are.
#[derive(Clone, Copy, Debug)]
pub enum Weights {
    Unit,
    /// 1 to 10.
    Uniform,
    /// Most are small, a few a hundred times as large.
    Skewed,
    /// 0 to 3.
    WithZeros,
    /// All of the same size, larger than 1.
    Alike,
}

pub fn weights() -> impl Strategy<Value = Weights> {
    prop_oneof![Just(Weights::Uniform), Just(Weights::Skewed), Just(Weights::WithZeros), Just(Weights::Alike)]
}

/// WorkQueue of up to 24 tasks a node, of which the share `pinned` may not move.
pub fn queues(case: &Case, nodes: u32, weights: Weights, pinned: f64) -> Vec<WorkQueue> {
    let mut rng = ChaCha8Rng::seed_from_u64(case.seed);
    let mut id = 0;
    let queue = |load: u64| {
        let (mut movable, mut fixed) = (TaskBatch::default(), TaskBatch::default());
        for _ in 0..load % 25 {
            id += 1;
            let weight = match weights {
                Weights::Unit => 1,
                Weights::Uniform => rng.random_range(1..=10),
                Weights::Skewed if rng.random_bool(0.1) => rng.random_range(100..=300),
                Weights::Skewed => rng.random_range(1..=3),
                Weights::WithZeros => rng.random_range(0..=3),
                Weights::Alike => 7,
            };
            let task = Segment::from(Task { id, weight, payload: Bytes::new() });
            if rng.random_bool(pinned) { fixed.push(task) } else { movable.push(task) }
        }
        WorkQueue::new(movable).with_pinned(fixed)
    };
    case.loads(nodes).into_iter().map(queue).collect()
}

fn largest(queues: &[WorkQueue]) -> u64 {
    queues.iter().flat_map(WorkQueue::segments).map(Segment::weight).max().unwrap_or(0)
}

/// How many of the largest tasks a node's final load may be away from its quota.
///
/// Walks: one for each dimension that is walked, and one; in a tree also one for each link of the node. One for those whose nodes agree on
/// how all round, once a level for PSTS. DEM and `optimal` on links sum up what each of many sources is off, and are looked at on even loads below.
fn bound(entry: &Entry, topology: &Topology, node: u32) -> Option<u64> {
    match (entry.name, topology) {
        ("cwa" | "mwa" | "kwa", _) => Some(u64::from(topology.sides()) + 1),
        ("twa", Topology::Tree(tree)) => Some(u64::from(tree.height() + 1).max(topology.neighbours(node).len() as u64)),
        // The grid's dimensions (Savvas and Kechadi 2004): each level shares what the one before it has really left.
        ("psts", _) => Some(dimensions(topology).max(1)),
        ("pslb" | "direct", _) | ("optimal", Topology::Complete(_)) => Some(1),
        _ => None,
    }
}

/// How many levels PSTS has.
fn dimensions(topology: &Topology) -> u64 {
    match topology {
        Topology::Graph(graph) => u64::from(graph.embedding().dimension()),
        _ => u64::from(topology.sides()),
    }
}

/// Properties of every balancer, whatever the tasks.
fn check(entry: &Entry, setup: &Setup, queues: Vec<WorkQueue>) -> Result<Outcome, TestCaseError> {
    let largest = largest(&queues);
    let before = queues.clone();
    let outcome = setup.run(queues);
    let case = || format!("{}\nlargest task {largest}", describe(setup, &outcome));
    prop_assert_eq!(outcome.checksum_after(), outcome.checksum_before, "tasks: {}", case());
    for (before, after) in before.iter().zip(&outcome.queues) {
        prop_assert_eq!(before.pinned(), after.pinned(), "pinned: {}", case());
    }
    // The plan is possible in its steps, and leads to the final loads.
    let lowest = outcome.lowest();
    prop_assert!(outcome.queues.iter().zip(&lowest).all(|(queue, lowest)| queue.own_work() <= *lowest), "lowest: {}", case());
    let topology = &setup.overlay.topology;
    // Those that agree on how tasks are rounded tell each other more than they must for unit tasks.
    let nodes = u64::from(topology.nodes());
    let agreed = match (entry.name, topology) {
        // The repair gathers once more, and sends from each node to each other one at most.
        ("direct" | "optimal", _) if largest > 1 => 2 * u64::from(nodes.next_power_of_two().ilog2()) + nodes,
        // At every level.
        // One message for each pair of nodes.
        ("greedy" | "refine" | "greedy-refine" | "hierarchical" | "kk" | "chains" | "rcb" | "sfc", _) if largest > 1 => nodes,
        ("psts", _) if largest > 1 => u64::from(nodes.next_power_of_two().ilog2()) * dimensions(topology),
        _ => 0,
    };
    prop_assert!(outcome.slowest[1] <= outcome.slowest[0], "slower: {}", case());
    // What goes back, since it would make the slowest rank slower, is not foreseen, and ends as it can.
    let went_back = outcome.declined && (largest > 1 || ["dem", "fos", "sos", "ops"].contains(&entry.name));
    prop_assert!(went_back || u64::from(outcome.counts.chain) <= outcome.cost.steps + agreed, "steps: {}", case());
    prop_assert!(went_back || outcome.counts.messages <= outcome.cost.messages + nodes * agreed, "messages: {}", case());
    let least = least_hops(topology.nodes(), &links(topology), &outcome.before, &outcome.after()).expect("a connected topology");
    prop_assert!(outcome.work_hops(topology) >= least.hops, "optimum {}: {}", least.hops, case());
    if entry.facts.promises.ordered && !went_back {
        // Tasks without work are nowhere in the row of units.
        let movable = |queue: &WorkQueue| {
            let tasks = (queue.len() - queue.pinned().map_or(0, TaskBatch::len)) as usize;
            queue.segments().flat_map(Segment::tasks).take(tasks).filter(|task| task.weight > 0).map(|task| task.id).collect::<Vec<u64>>()
        };
        let ids: Vec<u64> = outcome.queues.iter().flat_map(movable).collect();
        prop_assert!(ids.is_sorted(), "order: {}", case());
    }
    if went_back {
        return Ok(outcome);
    }
    for (node, (after, quota)) in (0..).zip(outcome.after().iter().zip(&outcome.quota)) {
        let bound = bound(entry, topology, node);
        prop_assert!(bound.is_none_or(|tasks| after.abs_diff(*quota) <= tasks * largest), "node {}: {}", node, case());
        // What should end with nothing does, where tasks go from neighbour to neighbour.
        let walk = ["cwa", "mwa", "kwa", "twa"].contains(&entry.name);
        prop_assert!(!walk || *quota > 0 || outcome.plan.transfers.iter().all(|t| t.src != node) || *after < largest.max(1), "{}", case());
    }
    Ok(outcome)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

    #[test]
    fn tasks_of_several_units_end_near_the_quotas(case in case(), weights in weights(), pinned in prop::sample::select(vec![0.0, 0.0, 0.1, 0.5])) {
        for entry in case.drawn(ALL.iter().copied()) {
            let mut setup = case.setup(entry);
            setup.disturbance = case.seed.is_multiple_of(2).then_some(case.seed);
            let queues = queues(&case, setup.powers.nodes(), weights, pinned);
            check(entry, &setup, queues)?;
        }
    }

    #[test]
    fn unit_tasks_end_as_near_as_what_is_pinned_lets_them(case in case(), pinned in prop::sample::select(vec![0.1, 0.5, 0.9])) {
        for entry in case.drawn(ALL.iter().copied()) {
            let setup = case.setup(entry);
            let queues = queues(&case, setup.powers.nodes(), Weights::Unit, pinned);
            let fixed: Vec<u64> = queues.iter().map(|queue| queue.pinned().map_or(0, TaskBatch::work)).collect();
            let outcome = check(entry, &setup, queues)?;
            if entry.facts.promises.exact {
                prop_assert_eq!(outcome.after(), outcome.quota.clone(), "{}", describe(&setup, &outcome));
                if outcome.declined {
                    continue;
                }
                let total = outcome.before.iter().sum();
                let quota = setup.chosen.quota(&setup.overlay.topology, total, &Shares::new(setup.powers.clone())).to_vec();
                prop_assert_eq!(judge::deviation(&outcome.after(), &quota), judge::best_deviation(&quota, &fixed));
            }
        }
    }

    /// Objects of one unit are balanced as ranges are.
    #[test]
    fn unit_tasks_move_as_ranges_do(case in case()) {
        for entry in case.drawn(without_places()) {
            let setup = case.setup(entry);
            let queues = queues(&case, setup.powers.nodes(), Weights::Unit, 0.0);
            let loads: Vec<u64> = queues.iter().map(WorkQueue::len).collect();
            let (objects, ranges) = (setup.run(queues), setup.run_on_loads(&loads));
            prop_assert_eq!(&objects.plan, &ranges.plan, "{}", entry.name);
            prop_assert_eq!(objects.quota, ranges.quota, "{}", entry.name);
        }
    }
}

/// On loads and powers that are not extreme the bound of the walks holds for all, and grids are at most one task a dimension off.
#[test]
fn even_loads_end_within_a_task_a_dimension() {
    let specs = ["hypercube:4", "mesh:4x4", "torus:4x4", "tree:binary,nodes=15", "grid:2x2x2x2", "grid:3x6", "line:9", "complete:16"];
    for (spec, seed) in specs.iter().flat_map(|spec| (0..12).map(move |seed| (spec, seed))) {
        let topology = Topology::parse(spec, 1).expect("a topology");
        // A cut of an ordered list bounds the slowest rank only.
        let bounded = |entry: &&&Entry| entry.facts.promises.exact && entry.name != "chains" && entry.objection(&topology).is_none();
        for entry in ALL.iter().filter(bounded) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut next = 0;
            let mut queue = |_| -> WorkQueue {
                let tasks = rng.random_range(0..=20);
                let task = |_: u32| {
                    next += 1;
                    Segment::from(Task { id: next, weight: rng.random_range(1..=10), payload: Bytes::new() })
                };
                WorkQueue::new((0..tasks).map(task).collect())
            };
            let queues: Vec<WorkQueue> = (0..topology.nodes()).map(&mut queue).collect();
            let largest = largest(&queues);
            let nodes = topology.nodes();
            let outcome = Setup::native(entry.name, topology.clone(), Powers::equal(nodes, nodes)).run(queues);
            let dimensions = u64::from(topology.sides().max(1));
            assert!(
                outcome.deviation() <= (dimensions + u64::from(entry.name != "psts")) * largest,
                "{} on {spec}, seed {seed}: {}",
                entry.name,
                outcome.deviation()
            );
        }
    }
}

/// Nine nodes of which eight have three tasks of 10 units, and each has 3 units too many: each alone would give nothing, and the ninth
/// would stay empty.
#[test]
fn many_that_have_half_a_task_too_much_agree_who_gives_a_whole_one() {
    for (name, spec) in [("direct", "complete:9"), ("optimal", "complete:9"), ("direct", "mesh:3x3"), ("psts", "grid:3x3")] {
        let task = |id: u64| Segment::from(Task { id, weight: 10, payload: Bytes::new() });
        let queues = (0..9u64)
            .map(|node| WorkQueue::new(if node < 8 { (3 * node..3 * node + 3).map(task).collect() } else { TaskBatch::default() }));
        let outcome = Setup::native(name, Topology::parse(spec, 9).expect("nine nodes"), Powers::equal(9, 9)).run(queues.collect());
        assert!(outcome.after().iter().all(|load| [20, 30].contains(load)), "{name} on {spec}: {:?}", outcome.after());
    }
}
