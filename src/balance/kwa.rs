//! The k-ary Walking Algorithm, for meshes and tori of any dimension, among them the k-ary n-cubes: what Wu 1997 (section 7) calls "not
//! difficult" to develop by combining CWA and MWA.
//!
//! The topology is a box. Cut across its first side it falls into parts, which stand in a row; these are balanced among each other as MWA
//! balances rows. Then each part is cut across the next side, until the parts are single nodes. Which nodes of a part give how much each of
//! them computes alone, by MWA's scan over the parts of the part, then over the parts of its own one, as CWA walks down its sub-cubes.
//!
//! 1. For each side k, from the last one: the loads of the parts in the node's row along k, one all-gather along the row.
//! 2. Average and remainder of the total.
//! 3. Quotas of the parts; `delta[k]` holds the surplus of each part of the row along k.
//! 4. For each side k, from the first one:
//!    - 4.1 The flows between the parts of the row: what those before a border have above their quotas crosses it. On a torus the row is a
//!      circle, and the same amount can be taken off all flows; the median of the flows makes the sum of what moves the least.
//!    - 4.2 Receive from both neighbours along k: tasks, and the vectors theta of the part that they come from.
//!    - 4.3 Send to the first side what the scans say, then, with what is left, to the other side.
//!
//! ```text
//!   mesh 2x2x3, one part a number       k = 0   k = 1      k = 2
//!
//!      6 -- 7 -- 8                      1 1 1   1 1 1      3   4   5
//!     /    /    /                       1 1 1   2 2 2      6   7   8
//!    0 -- 1 -- 2  9 - 10 - 11           0 0 0
//!        3 -- 4 -- 5                    0 0 0
//! ```
//!
//! Cost for sides n_1 .. n_d: the sum of `ceil(log2 n_k)` steps for the information and at most the sum of `n_k - 1` for the tasks. On a torus one
//! link of each circle carries nothing, so the cost is the same there.
//!
//! Guarantees: every node ends at its quota, and never holds less than the smaller of its load and its quota; with unequal powers and
//! virtual nodes (quota 0) too. The moves are CWA's on hypercubes and MWA's on meshes of two dimensions.
//!
//! Departures from the paper: it gives no more than that sentence.

use super::mwa::{gather_steps, tasks_to_send};
use super::{Balancer, Cost, Entry, Facts, InvalidSpec, Knowledge, Options, Phase, Promises, QuotaRule, Running, Stage};
use crate::error::{Error, Result};
use crate::load::{Quota, Shares};
use crate::node::migrate::TRANSFER_BYTES;
use crate::node::{Gathered, Group, HEADER_BYTES};
use crate::topology::{Kind, NodeId, Placement, Side, Topology};

pub(super) static ENTRY: Entry = Entry {
    name: "kwa",
    title: "k-ary Walking Algorithm",
    source: "Wu 1997, section 7, by combining CWA and MWA",
    options: "",
    examples: &["kwa"],
    build,
    facts: Facts {
        kinds: &[Kind::Torus, Kind::Mesh, Kind::Hypercube, Kind::Grid, Kind::Line, Kind::Ring],
        suited: None,
        refuses: |_| None,
        quota: QuotaRule::Proportional,
        knows: Knowledge::Sums,
        promises: Promises { exact: true, local: true, ordered: false, optimal: false },
        cost,
    },
};

struct Kwa;

fn build(_: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Kwa))
}

fn cost(topology: &Topology) -> Cost {
    let sides: Vec<Side> = (0..topology.sides()).filter_map(|k| topology.side(k)).collect();
    let n = u64::from(topology.nodes());
    let mut cost = Cost { steps: 0, messages: 0, bytes: 0 };
    for (k, side) in sides.iter().enumerate() {
        let (rounds, borders) = (gather_steps(side.length), u64::from(side.length) - 1);
        // Every border of every row is crossed in at most one direction.
        let crossings = n / u64::from(side.length) * borders;
        // Numbers sent about the sides below, summed over a row of each.
        let thetas = |below: &Side| {
            let length = u64::from(below.length);
            if below.wraps { crossings * length } else { crossings / length * (length * (length + 1) / 2) }
        };
        cost.steps += rounds + borders;
        cost.messages += n * rounds + crossings;
        cost.bytes += n * (rounds * (HEADER_BYTES + 8) + borders * 8)
            + crossings * (TRANSFER_BYTES + 8)
            + 8 * sides[k + 1..].iter().map(thetas).sum::<u64>();
    }
    cost
}

impl Balancer for Kwa {
    fn is_checked(&self, shares: &Shares, _: &Placement) -> bool {
        shares.are_weighted()
    }

    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a> {
        Box::pin(walk(phase))
    }
}

/// The row of parts along one side that a node's part stands in.
struct Row {
    side: Side,
    /// The place of the node's own part.
    at: usize,
    /// The number of the first node of the first part.
    first: NodeId,
    /// Load of each part.
    loads: Gathered<u64>,
    /// Surplus of each part over its quota: of all parts on a torus, up to the own part on a mesh, where no more is needed.
    delta: Vec<i128>,
}

/// Flows along the first side, which are the same for all nodes of a row.
struct Flowing {
    through: Vec<i128>,
    around: i128,
}

async fn walk(phase: &mut Phase<'_>) -> Result<()> {
    phase.survey().await?;
    let (node, me, topology) = (phase.node, phase.node.me(), phase.topology());

    // Step 1.
    let mut load = phase.load();
    let mut loads_along = Vec::with_capacity(topology.sides() as usize);
    for side in (0..topology.sides()).rev().filter_map(|k| topology.side(k)) {
        let row = Group::spaced(side.at(me, 0), side.stride, side.length, me)
            .ok_or_else(|| Error::Failed(format!("node {me} is not in its own row")))?;
        let loads = row.all_gather(node, load).await?;
        load = loads.iter().sum();
        loads_along.push((side, loads));
    }

    // Steps 2 and 3.
    phase.enter(Stage::Decision);
    let quota = phase.quota(load);
    let mine = quota.of(me);
    let mut rows: Vec<Row> = loads_along.into_iter().rev().map(|(side, loads)| Row::new(side, me, loads)).collect();
    node.charge(2 * rows.iter().map(|row| row.looked_at() as u64).sum::<u64>());
    // Nothing is said any more about parts of the first side; the lists of the others change.
    rows.iter_mut().skip(1).for_each(|row| row.delta = row.deltas(&quota));

    // Step 4.
    let mut step = 0;
    for k in 0..rows.len() {
        let Some((row, below)) = rows[k..].split_first_mut() else { break };
        phase.mover.at_step(step);
        step += row.side.length - 1;
        let (to_left, to_right) = if k == 0 { row.first_flows(&quota) } else { row.flows() };
        let mut still = to_left.max(0) + to_right.max(0);
        let neighbours = [(to_left, row.neighbour(me, row.side.length - 1)), (to_right, row.neighbour(me, 1))];
        for (_, from) in neighbours.into_iter().filter(|(eta, _)| *eta < 0) {
            phase.enter(Stage::Exchange);
            let (_, theta) = phase.mover.take_in::<Vec<u64>>(from).await?;
            let deltas = below.iter_mut().flat_map(|row| &mut row.delta);
            deltas.zip(theta).for_each(|(delta, theta)| *delta += i128::from(theta));
        }
        for (eta, to) in neighbours.into_iter().filter(|(eta, _)| *eta > 0) {
            phase.enter(Stage::Decision);
            let (theta, own) = thetas_below(eta, below);
            node.charge(2 * theta.len() as u64);
            let deltas = below.iter_mut().flat_map(|row| &mut row.delta);
            deltas.zip(&theta).for_each(|(delta, theta)| *delta -= i128::from(*theta));
            still -= eta;
            let after = i128::from(mine) + below.last().map_or(still, |row| row.delta[row.at]);
            phase.enter(Stage::Exchange);
            phase.give(to, &theta, own, after as u64, mine);
        }
    }
    Ok(())
}

impl Row {
    fn new(side: Side, me: NodeId, loads: Gathered<u64>) -> Row {
        // The nodes of a part have consecutive numbers, and so have the parts of a row.
        let first = side.at(me, 0) / side.stride * side.stride;
        Row { side, at: side.coordinate(me) as usize, first, loads, delta: Vec::new() }
    }

    /// Number of parts that the node's own one needs to know.
    fn looked_at(&self) -> usize {
        if self.side.wraps { self.loads.len() } else { self.at + 1 }
    }

    /// Surplus of each part over its quota.
    fn surpluses<'a>(&self, loads: &'a [u64], quota: &'a Quota) -> impl Iterator<Item = i128> + use<'a> {
        let (first, stride) = (self.first, self.side.stride);
        (0..).zip(loads).map(move |(part, load)| {
            let start = first + part * stride;
            i128::from(*load) - i128::from(quota.between(start, start + stride))
        })
    }

    fn deltas(&self, quota: &Quota) -> Vec<i128> {
        self.surpluses(&self.loads[..self.looked_at()], quota).collect()
    }

    /// As [`flows`](Row::flows) for the first side, whose loads have not changed since they were exchanged.
    fn first_flows(&self, quota: &Quota) -> (i128, i128) {
        let flowing = self.loads.derive(|loads| {
            let through = through(self.surpluses(loads, quota));
            Flowing { around: self.around(&through), through }
        });
        self.flows_of(&flowing.through, flowing.around)
    }

    /// The node `further` places further along the row.
    fn neighbour(&self, me: NodeId, further: u32) -> NodeId {
        self.side.at(me, (self.at as u32 + further) % self.side.length)
    }

    /// Step 4.1: what the own part has to send to the left and to the right; negative if it is to receive it from there.
    fn flows(&self) -> (i128, i128) {
        let through = through(self.delta.iter().copied());
        self.flows_of(&through, self.around(&through))
    }

    fn flows_of(&self, through: &[i128], around: i128) -> (i128, i128) {
        let from_left = if self.at > 0 {
            through[self.at - 1]
        } else if self.side.wraps {
            through[through.len() - 1]
        } else {
            0
        };
        (around - from_left, through[self.at] - around)
    }

    /// Flow around the whole ring. On a ring of two nodes both directions are the same link.
    fn around(&self, through: &[i128]) -> i128 {
        if self.side.wraps && self.side.length > 2 { median(through) } else { 0 }
    }
}

/// The sums of the first parts' surpluses.
fn through(deltas: impl Iterator<Item = i128>) -> Vec<i128> {
    deltas
        .scan(0, |sum, delta| {
            *sum += delta;
            Some(*sum)
        })
        .collect()
}

/// The median of some numbers; of all numbers between the two middle ones the one nearest to 0, so that the link that closes a circle is
/// used only where that saves task-hops.
fn median(numbers: &[i128]) -> i128 {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    0.clamp(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
}

/// Step 4.3: the tasks that the parts of each row below send, row by row, when the part around them sends `eta` tasks to one side, and the
/// tasks that the node itself sends.
///
/// Tasks that a part has and does not send are kept within it, as for all other parts.
fn thetas_below(eta: i128, below: &[Row]) -> (Vec<u64>, u64) {
    let (mut eta, mut gamma) = (eta, 0);
    let mut all = Vec::with_capacity(below.iter().map(|row| row.delta.len()).sum());
    for row in below {
        let mut theta = tasks_to_send(eta, gamma, &row.delta);
        eta = i128::from(theta[row.at]);
        gamma = row.delta[row.at] - eta;
        all.append(&mut theta);
    }
    (all, eta as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::testing::Trial;
    use crate::load::Powers;
    use proptest::prelude::*;

    fn random_loads(nodes: usize, most: u64, seed: u64) -> Vec<u64> {
        use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..nodes).map(|_| rng.random_range(0..=most)).collect()
    }

    #[test]
    fn examples_3_and_4_of_the_paper() {
        let cube = [19, 11, 2, 9, 0, 9, 10, 4];
        let mesh = [7, 12, 6, 16, 17, 3, 0, 15, 2, 13, 5, 5, 5, 6, 4, 12];
        for spec in ["hypercube:3", "mesh:2x2x2", "grid:2x2x2", "torus:2x2x2"] {
            let trial = Trial::of("kwa", spec, &cube);
            assert_eq!(trial.moves(), [(0, 4, 6), (1, 5, 3), (0, 2, 5), (5, 7, 2), (3, 2, 1), (5, 4, 2), (6, 7, 2)]);
            assert_eq!((trial.after, trial.counts.task_hops), (vec![8; 8], 21));
        }
        let trial = Trial::of("kwa", "mesh:4x4", &mesh);
        assert_eq!(trial.moves(), Trial::of("mwa", "mesh:4x4", &mesh).moves());
        assert_eq!((trial.after, trial.counts.task_hops), (vec![8; 16], 48));
    }

    #[test]
    fn moves_equal_cwas_on_cubes_and_mwas_on_meshes() {
        for seed in 0..60 {
            let d = seed as u32 % 6;
            let loads = random_loads(1 << d, 40, seed);
            assert_eq!(Trial::of("kwa", &format!("hypercube:{d}"), &loads).plan, Trial::of("cwa", &format!("hypercube:{d}"), &loads).plan);
            let (rows, columns) = (1 + seed % 7, 1 + seed * 3 % 5);
            let (spec, loads) = (format!("mesh:{rows}x{columns}"), random_loads((rows * columns) as usize, 40, seed));
            assert_eq!(Trial::of("kwa", &spec, &loads).plan, Trial::of("mwa", &spec, &loads).plan);
        }
    }

    #[test]
    fn a_circle_is_cut_where_it_moves_least() {
        // Along the line 0 - 1 - 2 - 3 - 4 the last surplus would have to go all the way back.
        assert_eq!(Trial::of("kwa", "line:5", &[0, 5, 5, 5, 10]).task_hops(), 20);
        let trial = Trial::of("kwa", "ring:5", &[0, 5, 5, 5, 10]);
        assert_eq!((trial.moves(), trial.after), (vec![(4, 0, 5)], vec![5; 5]));
        // Both ways cost the same here: the closing link stays unused.
        assert_eq!(Trial::of("kwa", "ring:4", &[0, 2, 2, 0]).moves(), [(1, 0, 1), (2, 3, 1)]);
    }

    #[test]
    fn medians_are_nearest_to_zero() {
        assert_eq!(median(&[7, -3, 5]), 5);
        assert_eq!([median(&[1, 9, 3, 4]), median(&[-5, 8, -1, 3]), median(&[-9, -1, -4, -3])], [3, 0, -3]);
    }

    #[test]
    fn loads_may_sum_up_to_the_end_of_64_bits() {
        for full in 0..9 {
            let mut loads = [0; 9];
            loads[full] = u64::MAX;
            let trial = Trial::of("kwa", "torus:3x3", &loads);
            assert_eq!(trial.after, trial.quota);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn every_box_ends_at_its_quotas_and_keeps_what_it_can(
            dims in prop::collection::vec(1u32..5, 1..5).prop_filter("too many nodes", |dims| dims.iter().product::<u32>() <= 60),
            wraps in any::<bool>(),
            seed in any::<u64>(),
            most in 0u64..50,
        ) {
            let nodes = dims.iter().product::<u32>() as usize;
            let dims: Vec<_> = dims.iter().map(u32::to_string).collect();
            let word = match (wraps, dims.len()) {
                (false, _) => "mesh",
                (true, 1) => "ring",
                (true, _) => "torus",
            };
            let loads = random_loads(nodes, most, seed);
            let powers = Powers::listed(random_loads(nodes, 3, !seed)).unwrap_or(Powers::equal(1, nodes as u32));
            let trial = Trial::with("kwa", &format!("{word}:{}", dims.join("x")), &loads, powers, seed);
            prop_assert_eq!(&trial.after, &trial.quota);
            prop_assert!(trial.kept_what_it_could(&loads[..nodes]));
        }
    }
}
