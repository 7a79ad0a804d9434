//! The Mesh Walking Algorithm, for two-dimensional meshes (Wu 1997, section 3.3, figure 12).
//!
//! First the rows are balanced among each other: what the rows above a border have too much or too little crosses it. Which nodes of a
//! row give how much each of them computes alone, from the loads of the nodes to its left. Then each row is balanced in itself.
//!
//! 1. The loads of the node's row and of all rows.
//! 2. Average and remainder of the total.
//! 3. Quotas; `delta[j]` is the surplus of the node in column j of the row, for all j up to the node's own column.
//! 4. First between rows, with the neighbours above and below; then within the row, with those to the left and to the right:
//!    - 4.1 `eta` of a side: what has to go there, negative if it has to come from there.
//!    - 4.2 Receive from both sides, tasks and the vector theta of the row they come from.
//!    - 4.3 Send to the first side what the scan over the row says (theta), then, with what is left, to the other side.
//!
//! ```text
//!     7 12  6 16     rows have 41 35 25 27 tasks, 32 each are right,
//!       3      6     so 9, 12 and 5 tasks go down
//!    17  3  0 15
//!     9        3     then within the rows:
//!     2 13  5  5     0 <- 1 and 2 <- 3, 5 <- 6 <- 7, 9 -> 10, 14 <- 15
//!     3  2
//!     5  6  4 12     all end at 8, 48 task-hops (the paper's example 4)
//! ```
//!
//! Cost for n1 rows of n2 nodes: `ceil(log2 n1) + ceil(log2 n2)` steps for the information, at most `n1 - 1 + n2 - 1` for the tasks (the
//! paper: 3(n1 + n2)). Task-hops are the least possible on two and four nodes (lemma 5), about 1, 9 and 22 % above it on 4x2, 8x4 and 16x8.
//!
//! Guarantees: every node ends at its quota (lemma 3), and never holds less than the smaller of its load and its quota (theorem 2); with
//! unequal powers and virtual nodes (quota 0) too.
//!
//! Departures from the paper: step 1 is an all-gather along each row and then along each column. It takes fewer steps than scans and
//! spreads from neighbour to neighbour, and the longest ways are as far. Step 3 prints `i <= R` where figure 4 has `i < R`, and leaves row
//! `i / n2` itself out of its prefix quota: both are misprints. `gamma` may become negative (node 11 in example 4), as intended.

use super::{Balancer, Cost, Entry, Facts, InvalidSpec, Knowledge, Options, Phase, Promises, QuotaRule, Running, Stage};
use crate::error::{Error, Result};
use crate::load::Shares;
use crate::node::migrate::TRANSFER_BYTES;
use crate::node::{Group, HEADER_BYTES};
use crate::topology::{Kind, Mesh, Placement, Topology};

pub(super) static ENTRY: Entry = Entry {
    name: "mwa",
    title: "Mesh Walking Algorithm",
    source: "Wu 1997, section 3.3, figure 12",
    options: "",
    examples: &["mwa"],
    build,
    facts: Facts {
        kinds: &[Kind::Mesh],
        suited: None,
        refuses,
        quota: QuotaRule::Proportional,
        knows: Knowledge::Sums,
        promises: Promises { exact: true, local: true, ordered: false, optimal: false },
        cost,
    },
};

struct Mwa;

fn build(_: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Mwa))
}

fn refuses(topology: &Topology) -> Option<String> {
    let sentence = || format!("runs on meshes of two dimensions, not on {} (kwa does)", topology.name());
    rows_and_columns(topology).is_none().then(sentence)
}

/// The mesh, its number of rows and of columns.
fn rows_and_columns(topology: &Topology) -> Option<(&Mesh, u32, u32)> {
    match topology {
        Topology::Mesh(mesh) if !mesh.wraps() => match *mesh.dims() {
            [rows, columns] => Some((mesh, rows, columns)),
            _ => None,
        },
        _ => None,
    }
}

fn cost(topology: &Topology) -> Cost {
    let Some((mesh, rows, columns)) = rows_and_columns(topology) else { return Cost { steps: 0, messages: 0, bytes: 0 } };
    let (n, n1, n2) = (u64::from(mesh.nodes()), u64::from(rows), u64::from(columns));
    let rounds = gather_steps(rows) + gather_steps(columns);
    // Every border is crossed in at most one direction. A message across it in column j carries j + 1 thetas.
    let (between_rows, within_rows) = ((n1 - 1) * n2, n1 * (n2 - 1));
    let thetas = (n1 - 1) * n2 * (n2 + 1) / 2;
    Cost {
        steps: rounds + (n1 - 1) + (n2 - 1),
        messages: n * rounds + between_rows + within_rows,
        bytes: n * (rounds * (HEADER_BYTES + 8) + (n1 - 1 + n2 - 1) * 8)
            + (between_rows + within_rows) * TRANSFER_BYTES
            + between_rows * 8
            + thetas * 8,
    }
}

/// Steps of an all-gather among `members` members, which is also the number of messages that each of them sends.
pub(super) fn gather_steps(members: u32) -> u64 {
    u64::from(members.next_power_of_two().ilog2())
}

impl Balancer for Mwa {
    fn is_checked(&self, shares: &Shares, _: &Placement) -> bool {
        shares.are_weighted()
    }

    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a> {
        Box::pin(walk(phase))
    }
}

async fn walk(phase: &mut Phase<'_>) -> Result<()> {
    phase.survey().await?;
    let (node, me) = (phase.node, phase.node.me());
    let Some((_, rows, columns)) = rows_and_columns(phase.topology()) else {
        return Err(Error::Failed("mwa runs on meshes of two dimensions".into()));
    };
    let (row, column) = (me / columns, me % columns);
    let first = row * columns;

    // Step 1: the loads of the row up to this node, of all rows above, of this row, and of all.
    let (Some(nodes_of_row), Some(nodes_of_column)) = (Group::spaced(first, 1, columns, me), Group::spaced(column, columns, rows, me))
    else {
        return Err(Error::Failed(format!("node {me} is not in its own row")));
    };
    let loads = nodes_of_row.all_gather(node, phase.load()).await?;
    let row_load = loads.iter().sum::<u64>();
    let by_row = nodes_of_column.all_gather(node, row_load).await?;
    let above = by_row[..row as usize].iter().sum::<u64>();
    let total = by_row.iter().sum();
    drop(by_row);

    // Steps 2 and 3, and 4.1 between rows.
    phase.enter(Stage::Decision);
    let quota = phase.quota(total);
    let up_to_me = (first..=me).zip(loads.iter());
    let mut delta: Vec<i128> = up_to_me.map(|(node, load)| i128::from(*load) - i128::from(quota.of(node))).collect();
    drop(loads);
    let eta_up = i128::from(quota.before(first)) - i128::from(above);
    let eta_down = i128::from(above + row_load) - i128::from(quota.before(first + columns));
    let mine = i128::from(quota.of(me));
    let own = column as usize;
    node.charge(u64::from(column + 1) * 2);

    // Steps 4.2 and 4.3 between rows.
    let sides = [(eta_up, me.wrapping_sub(columns)), (eta_down, me + columns)];
    for (_, from) in sides.into_iter().filter(|(eta, _)| *eta < 0) {
        phase.enter(Stage::Exchange);
        let (_, theta) = phase.mover.take_in::<Vec<u64>>(from).await?;
        delta.iter_mut().zip(theta).for_each(|(delta, theta)| *delta += i128::from(theta));
    }
    for (eta, to) in sides.into_iter().filter(|(eta, _)| *eta > 0) {
        phase.enter(Stage::Decision);
        let theta = tasks_to_send(eta, 0, &delta);
        node.charge(2 * u64::from(column + 1));
        delta.iter_mut().zip(&theta).for_each(|(delta, theta)| *delta -= i128::from(*theta));
        phase.enter(Stage::Exchange);
        phase.give(to, &theta, theta[own], (mine + delta[own]) as u64, mine as u64);
    }

    // Step 4 within the row.
    phase.mover.at_step(rows - 1);
    let eta_right = delta.iter().sum::<i128>();
    let eta_left = delta[own] - eta_right;
    let sides = [(eta_left, me.wrapping_sub(1)), (eta_right, me + 1)];
    for (_, from) in sides.into_iter().filter(|(eta, _)| *eta < 0) {
        phase.mover.take_in::<()>(from).await?;
    }
    let mut after = mine + eta_left.max(0) + eta_right.max(0);
    for (eta, to) in sides.into_iter().filter(|(eta, _)| *eta > 0) {
        after -= eta;
        phase.give(to, &(), eta as u64, after as u64, mine as u64);
    }
    Ok(())
}

/// Step 4.3: how many tasks each node of a row sends to one side, so that `eta` go there in all.
///
/// `delta` is what each has above its quota. `gamma` is what has to be kept for the nodes passed so far; it begins at what has to be kept
/// for others beforehand. No entry is negative.
pub(super) fn tasks_to_send(mut eta: i128, mut gamma: i128, delta: &[i128]) -> Vec<u64> {
    let scan = |&delta: &i128| {
        let theta = (delta - gamma).clamp(0, eta);
        gamma += theta - delta;
        eta -= theta;
        theta as u64
    };
    delta.iter().map(scan).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::testing::Trial;
    use crate::load::Powers;
    use proptest::prelude::*;

    #[test]
    fn example_4_of_the_paper() {
        let trial = Trial::of("mwa", "mesh:4x4", &[7, 12, 6, 16, 17, 3, 0, 15, 2, 13, 5, 5, 5, 6, 4, 12]);
        assert_eq!(trial.after, [8; 16]);
        let (mut between, mut within): (Vec<_>, Vec<_>) = trial.moves().into_iter().partition(|(a, b, _)| a.abs_diff(*b) == 4);
        between.sort_unstable();
        within.sort_unstable();
        assert_eq!(between, [(1, 5, 3), (3, 7, 6), (4, 8, 9), (7, 11, 3), (8, 12, 3), (9, 13, 2)]);
        assert_eq!(within, [(1, 0, 1), (3, 2, 2), (6, 5, 2), (7, 6, 10), (9, 10, 3), (15, 14, 4)]);
        assert_eq!(trial.task_hops(), 48);
    }

    #[test]
    fn the_papers_scans_of_example_4() {
        assert_eq!(tasks_to_send(9, 0, &[-1, 4, -2, 8]), [0, 3, 0, 6]);
        assert_eq!(tasks_to_send(12, 0, &[9, -2, -8, 13]), [9, 0, 0, 3]);
        assert_eq!(tasks_to_send(5, 0, &[3, 5, -3, 0]), [3, 2, 0, 0]);
    }

    #[test]
    fn loads_may_sum_up_to_the_end_of_64_bits() {
        for full in 0..4 {
            let mut loads = [0; 4];
            loads[full] = u64::MAX;
            let trial = Trial::of("mwa", "mesh:2x2", &loads);
            assert_eq!(trial.after, trial.quota);
        }
    }

    #[test]
    fn other_meshes_are_refused() {
        for spec in ["mesh:2x2x2", "mesh:8"] {
            let objection = ENTRY.objection(&Topology::parse(spec, 8).unwrap());
            assert_eq!(objection.unwrap().to_string(), format!("balancer mwa runs on meshes of two dimensions, not on {spec} (kwa does)"));
        }
        assert!(ENTRY.objection(&Topology::parse("torus:2x2", 4).unwrap()).is_some());
        assert_eq!(ENTRY.objection(&Topology::parse("mesh:1x8", 8).unwrap()), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_mesh_ends_at_its_quotas_and_keeps_what_it_can(
            rows in 1u32..7,
            columns in 1u32..7,
            seed in any::<u64>(),
            loads in prop::collection::vec(0u64..50, 36),
            powers in prop::collection::vec(0u64..4, 36),
        ) {
            let nodes = (rows * columns) as usize;
            let powers = Powers::listed(powers[..nodes].to_vec()).unwrap_or(Powers::equal(1, nodes as u32));
            let trial = Trial::with("mwa", &format!("mesh:{rows}x{columns}"), &loads[..nodes], powers, seed);
            prop_assert_eq!(&trial.after, &trial.quota);
            prop_assert!(trial.kept_what_it_could(&loads[..nodes]));
        }
    }
}
