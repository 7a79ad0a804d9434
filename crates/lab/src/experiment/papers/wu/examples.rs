//! The worked examples: how they end, and the vectors that the paper lists of their steps.
//!
//! All numbers are those of the phase that was executed. What a node has before a step follows from its load and what was moved until then; theta is what
//! the nodes of a sub-cube, or a node of a row, really sent; the other vectors follow from these by the paper's definitions.

use super::super::super::wu1997::Bench;
use super::super::{Item, Job, Value};
use equipoise::error::{Error, Result};
use equipoise::load::Transfer;
use equipoise::phase::Outcome;
use equipoise::topology::Topology;

/// A worked example: the balancer, the topology, its loads, and what the paper prints of the end.
struct Worked {
    number: u32,
    balancer: &'static str,
    topology: &'static str,
    loads: &'static [u64],
    finals: &'static [u64],
    /// Moves (from, to, tasks), in the paper's order; empty where it prints none.
    moves: &'static [(u32, u32, u64)],
    hops: f64,
}

/// Figure 1: a load distribution on a cube of dimension 3.
pub(super) const FIGURE_1: [u64; 8] = [19, 11, 2, 9, 0, 9, 10, 4];

const EXAMPLES: [Worked; 4] = [
    Worked {
        number: 1,
        balancer: "twa",
        topology: "tree:parents=-,0,1,1,0,4,0,6,6",
        loads: &[1, 4, 5, 11, 7, 2, 3, 3, 5],
        finals: &[5, 5, 5, 5, 5, 4, 4, 4, 4],
        moves: &[(1, 0, 5), (3, 1, 6), (4, 5, 2), (0, 6, 1), (6, 7, 1), (8, 6, 1)],
        hops: 16.0,
    },
    Worked {
        number: 2,
        balancer: "dem",
        topology: "hypercube:3",
        loads: &FIGURE_1,
        finals: &[8, 9, 8, 8, 7, 8, 8, 8],
        moves: &[],
        hops: 33.0,
    },
    Worked {
        number: 3,
        balancer: "cwa",
        topology: "hypercube:3",
        loads: &FIGURE_1,
        finals: &[8; 8],
        moves: &[(0, 4, 6), (1, 5, 3), (0, 2, 5), (5, 7, 2), (3, 2, 1), (5, 4, 2), (6, 7, 2)],
        hops: 21.0,
    },
    Worked {
        number: 4,
        balancer: "mwa",
        topology: "mesh:4x4",
        loads: &[7, 12, 6, 16, 17, 3, 0, 15, 2, 13, 5, 5, 5, 6, 4, 12],
        finals: &[8; 16],
        moves: &[
            (1, 5, 3),
            (3, 7, 6),
            (4, 8, 9),
            (7, 11, 3),
            (8, 12, 3),
            (9, 13, 2),
            (1, 0, 1),
            (3, 2, 2),
            (6, 5, 2),
            (7, 6, 10),
            (9, 10, 3),
            (15, 14, 4),
        ],
        hops: 48.0,
    },
];

pub(super) fn jobs() -> Vec<Job> {
    let ends = |example: &'static Worked| Job::new(Item::Example(example.number), "steps", 0.0, [1, 1], move |_, _| worked(example));
    let vectors = |figure: u32, of: fn() -> Result<Vec<Value>>| Job::new(Item::Figure(figure), "vectors", 0.0, [1, 1], move |_, _| of());
    EXAMPLES.iter().map(ends).chain([vectors(6, of_the_tree), vectors(11, of_the_cube), vectors(13, of_the_mesh)]).collect()
}

/// An example step by step: final loads and moves that are not the paper's, and its task-hops.
fn worked(example: &Worked) -> Result<Vec<Value>> {
    let mut bench = Bench::of(example.balancer, example.topology)?;
    let Outcome { finals, plan, counts, .. } = bench.phase(example.loads, true)?;
    let off = finals.iter().zip(example.finals).filter(|(ours, theirs)| ours != theirs).count();
    let mut values = vec![
        Value::exact("final loads that differ", off as f64, Some(0.0), 1.0),
        Value::exact("task-hops", counts.task_hops as f64, Some(example.hops), 1.0),
    ];
    if !example.moves.is_empty() {
        let sent = |&(src, dst, tasks): &(u32, u32, u64)| {
            plan.transfers.iter().any(|one: &Transfer| (one.src, one.dst, one.tasks) == (src, dst, tasks))
        };
        let missing = example.moves.iter().filter(|one| !sent(one)).count();
        let more = plan.transfers.len().abs_diff(example.moves.len());
        values.push(Value::exact("moves that differ", (missing + more) as f64, Some(0.0), 1.0));
    }
    Ok(values)
}

/// The phase of an example: loads before and after it, and what was moved.
struct Moved {
    loads: Vec<i64>,
    finals: Vec<i64>,
    transfers: Vec<Transfer>,
}

impl Moved {
    fn of(example: &Worked) -> Result<Moved> {
        let Outcome { finals, plan, .. } = Bench::of(example.balancer, example.topology)?.phase(example.loads, true)?;
        let signed = |loads: &[u64]| loads.iter().map(|load| *load as i64).collect();
        Ok(Moved { loads: signed(example.loads), finals: signed(&finals), transfers: plan.transfers })
    }

    /// Load that went from one node to another, less the load that came back.
    fn flow(&self, from: usize, to: usize) -> i64 {
        let sum = |src: usize, dst: usize| -> i64 {
            self.transfers.iter().filter(|one| (one.src as usize, one.dst as usize) == (src, dst)).map(|one| one.tasks as i64).sum()
        };
        sum(from, to) - sum(to, from)
    }
}

/// Numbers of ours with the printed ones. They are named by where they stand, of which `places` has one for each.
fn listed(what: &str, places: &[usize], ours: &[i64], printed: &[i64]) -> Vec<Value> {
    let value = |((place, ours), printed): ((&usize, &i64), &i64)| {
        Value::exact(format!("{what}, {place}"), *ours as f64, Some(*printed as f64), 1.0)
    };
    places.iter().zip(ours).zip(printed).map(value).collect()
}

/// Example 1, figure 6: what each subtree has, what it ought to have, and what crosses the links above and below its root.
fn of_the_tree() -> Result<Vec<Value>> {
    let moved = Moved::of(&EXAMPLES[0])?;
    let Topology::Tree(tree) = Topology::parse(EXAMPLES[0].topology, 9)? else {
        return Err(Error::Failed("example 1 is on a tree".into()));
    };
    let nodes: Vec<usize> = (0..9).collect();
    let subtree = |node: usize| node..node + tree.subtree_size(node as u32) as usize;
    let quotas: Vec<i64> = nodes.iter().map(|node| moved.finals[subtree(*node)].iter().sum()).collect();
    let up = |node: usize| tree.parent(node as u32).map_or(0, |parent| moved.flow(node, parent as usize));
    let eta: Vec<i64> = nodes.iter().map(|node| up(*node)).collect();
    let sizes: Vec<i64> = nodes.iter().map(|node| subtree(*node).len() as i64).collect();
    // What a subtree had is what it has in the end and what has left it.
    let had: Vec<i64> = quotas.iter().zip(&eta).map(|(quota, eta)| quota + eta).collect();
    let mut values = [
        listed("w of node", &nodes, &moved.loads, &[1, 4, 5, 11, 7, 2, 3, 3, 5]),
        listed("n of node", &nodes, &sizes, &[9, 3, 1, 1, 2, 1, 3, 1, 1]),
        listed("W of node", &nodes, &had, &[41, 20, 5, 11, 9, 2, 11, 3, 5]),
        listed("Q of node", &nodes, &quotas, &[41, 15, 5, 5, 9, 4, 12, 4, 4]),
        listed("eta L of node", &nodes, &eta, &[0, 5, 0, 6, 0, -2, -1, -1, 1]),
    ]
    .concat();
    let printed: [&[i64]; 3] = [&[-5, 0, 2, 1], &[0, -6, -1], &[1]];
    for (child, printed) in printed.into_iter().enumerate() {
        let parents: Vec<usize> = nodes.iter().copied().filter(|node| tree.children(*node as u32).len() > child).collect();
        let down: Vec<i64> = parents.iter().map(|parent| -eta[tree.children(*parent as u32)[child] as usize]).collect();
        values.extend(listed(&format!("eta R to child {child} of node"), &parents, &down, printed));
    }
    Ok(values)
}

/// The paper's table of a step of example 3: the dimension, its nodes, and w, delta, theta and gamma of each sub-cube from the node itself upwards.
struct CubeStep {
    k: usize,
    nodes: &'static [usize],
    vectors: &'static [[&'static [i64]; 4]],
}

const CUBE_STEPS: [CubeStep; 3] = [
    CubeStep {
        k: 2,
        nodes: &[0, 1, 2, 3],
        vectors: &[
            [&[19, 11, 2, 9], &[11, 3, -6, 1], &[6, 3, 0, 0], &[5, 0, -6, 1]],
            [&[30, 30, 11, 11], &[14, 14, -5, -5], &[9, 9, 0, 0], &[5, 5, -5, -5]],
            [&[41; 4], &[9; 4], &[9; 4], &[0; 4]],
        ],
    },
    CubeStep {
        k: 1,
        nodes: &[0, 1, 4, 5],
        vectors: &[
            [&[13, 8, 6, 12], &[5, 0, -2, 4], &[5, 0, 0, 2], &[0, 0, -2, 2]],
            [&[21, 21, 18, 18], &[5, 5, 2, 2], &[5, 5, 2, 2], &[0; 4]],
        ],
    },
    CubeStep { k: 0, nodes: &[3, 5, 6], vectors: &[[&[9, 10, 10], &[1, 2, 2], &[1, 2, 2], &[0; 3]]] },
];

/// Example 3, figure 11.
fn of_the_cube() -> Result<Vec<Value>> {
    let moved = Moved::of(&EXAMPLES[2])?;
    let mut values = Vec::new();
    for CubeStep { k, nodes, vectors } in &CUBE_STEPS {
        let crosses = |one: &Transfer, dimension: usize| (one.src ^ one.dst) as usize == 1 << dimension;
        let mut before = moved.loads.clone();
        for one in moved.transfers.iter().filter(|one| (k + 1..3).any(|dimension| crosses(one, dimension))) {
            before[one.src as usize] -= one.tasks as i64;
            before[one.dst as usize] += one.tasks as i64;
        }
        let sent = |node: usize| {
            moved.transfers.iter().filter(|one| one.src as usize == node && crosses(one, *k)).map(|one| one.tasks as i64).sum()
        };
        for (j, [w, delta, theta, gamma]) in vectors.iter().enumerate() {
            let cube = |node: usize| (node >> j << j)..(node >> j << j) + (1 << j);
            let over = |numbers: &dyn Fn(usize) -> i64| nodes.iter().map(|node| cube(*node).map(numbers).sum()).collect::<Vec<i64>>();
            let (ours_w, ours_theta) = (over(&|node| before[node]), over(&sent));
            let ours_delta = over(&|node| before[node] - moved.finals[node]);
            let ours_gamma: Vec<i64> = ours_delta.iter().zip(&ours_theta).map(|(delta, theta)| delta - theta).collect();
            for (name, ours, printed) in
                [("w", ours_w, w), ("delta", ours_delta, delta), ("theta", ours_theta, theta), ("gamma", ours_gamma, gamma)]
            {
                values.extend(listed(&format!("k = {k}: {name}^{j} of node"), nodes, &ours, printed));
            }
        }
    }
    Ok(values)
}

/// Rows and columns of example 4's mesh.
const SIDE: usize = 4;

/// Example 4, iteration 1: of each row that sends, what its nodes have above their quotas, and eta, gamma and theta on the way along it.
const ROW_STEPS: [[[i64; SIDE]; 4]; 3] = [
    [[-1, 4, -2, 8], [9, 9, 6, 6], [0, 1, 0, 2], [0, 3, 0, 6]],
    [[9, -2, -8, 13], [12, 3, 3, 3], [0, 0, 2, 10], [9, 0, 0, 3]],
    [[3, 5, -3, 0], [5, 2, 0, 0], [0, 0, -3, 0], [3, 2, 0, 0]],
];

/// Example 4, figure 13.
fn of_the_mesh() -> Result<Vec<Value>> {
    let moved = Moved::of(&EXAMPLES[3])?;
    let (nodes, rows): (Vec<usize>, Vec<usize>) = ((0..SIDE * SIDE).collect(), (0..SIDE).collect());
    let delta: Vec<i64> = moved.loads.iter().zip(&moved.finals).map(|(load, quota)| load - quota).collect();
    let mut values = [
        listed("w^0 of node", &nodes, &moved.loads, &[7, 12, 6, 16, 17, 3, 0, 15, 2, 13, 5, 5, 5, 6, 4, 12]),
        listed("delta^0 of node", &nodes, &delta, &[-1, 4, -2, 8, 9, -5, -8, 7, -6, 5, -3, -3, -3, -2, -4, 4]),
    ]
    .concat();
    let in_row = |row: usize| row * SIDE..(row + 1) * SIDE;
    // Between rows: what each node sends to the one below it, and its row to the rows on both sides.
    let below = |node: usize| if node + SIDE < nodes.len() { moved.flow(node, node + SIDE) } else { 0 };
    let down = |row: usize| in_row(row).map(below).sum::<i64>();
    let eta_r: Vec<i64> = rows.iter().map(|row| down(*row)).collect();
    let eta_l: Vec<i64> = rows.iter().map(|row| if *row == 0 { 0 } else { -down(row - 1) }).collect();
    let of_rows = |numbers: &[i64]| rows.iter().map(|row| numbers[in_row(*row)].iter().sum()).collect::<Vec<i64>>();
    let (row_loads, quotas) = (of_rows(&moved.loads), of_rows(&moved.finals));
    let surplus: Vec<i64> = eta_l.iter().zip(&eta_r).map(|(left, right)| left + right).collect();
    let sums = |numbers: &[i64]| {
        numbers
            .iter()
            .scan(0, |sum, number| {
                *sum += number;
                Some(*sum)
            })
            .collect::<Vec<i64>>()
    };
    values.extend(listed("w^1 of row", &rows, &row_loads, &[41, 35, 25, 27]));
    values.extend(listed("delta^1 of row", &rows, &surplus, &[9, 3, -7, -5]));
    values.extend(listed("W^1 of row", &rows, &sums(&row_loads), &[41, 76, 101, 128]));
    values.extend(listed("Q^1 of row", &rows, &sums(&quotas), &[32, 64, 96, 128]));
    values.extend(listed("iteration 1: eta L of row", &rows, &eta_l, &[0, -9, -12, -5]));
    values.extend(listed("iteration 1: eta R of row", &rows, &eta_r, &[9, 12, 5, 0]));
    for (row, [printed_delta, printed_eta, printed_gamma, printed_theta]) in ROW_STEPS.iter().enumerate() {
        let theta: Vec<i64> = in_row(row).map(below).collect();
        let above = |node: usize| node.checked_sub(SIDE).map_or(0, below);
        let with_received: Vec<i64> = in_row(row).map(|node| delta[node] + above(node)).collect();
        let (mut eta, mut gamma) = (vec![eta_r[row]], vec![0]);
        for j in 0..SIDE - 1 {
            eta.push(eta[j] - theta[j]);
            gamma.push(gamma[j] + theta[j] - with_received[j]);
        }
        let node = row * SIDE + SIDE - 1;
        for (name, ours, printed) in [
            ("delta", &with_received, printed_delta),
            ("eta", &eta, printed_eta),
            ("gamma", &gamma, printed_gamma),
            ("theta", &theta, printed_theta),
        ] {
            values.extend(listed(&format!("node {node}: {name} of column"), &rows, ours, printed));
        }
    }
    // Within rows. The paper prints eta L there with the other sign than its definition, and than its own rows above: node 1 sends a task to node 0.
    let right = |node: usize| if node % SIDE + 1 < SIDE { moved.flow(node, node + 1) } else { 0 };
    let left: Vec<i64> = nodes.iter().map(|node| if node % SIDE == 0 { 0 } else { -right(node - 1) }).collect();
    let right: Vec<i64> = nodes.iter().map(|node| right(*node)).collect();
    values.extend(listed("iteration 0: eta L of node", &nodes, &left, &[0, -1, 0, -2, 0, 0, -2, -10, 0, 0, 3, 0, 0, 0, 0, -4]));
    values.extend(listed("iteration 0: eta R of node", &nodes, &right, &[-1, 0, -2, 0, 0, -2, -10, 0, 0, 3, 0, 0, 0, 0, -4, 0]));
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::super::super::{Effort, Measuring, Paper, Point, measure};
    use super::*;

    #[test]
    fn the_fewest_communications_of_the_first_example_are_its_six_messages() {
        let example = &EXAMPLES[0];
        let tree = Topology::parse(example.topology, 9).unwrap();
        assert_eq!(super::super::fewest_communications(&tree, example.loads, example.finals), 6);
        assert_eq!(super::super::fewest_communications(&tree, example.finals, example.finals), 0);
    }

    #[test]
    fn every_printed_number_of_the_examples_is_ours() {
        let points = measure(Paper::Wu, &jobs(), &Measuring::new(Effort::Quick, 1), |_| {}).unwrap();
        let off: Vec<_> = points.0.iter().filter(|point| point.agrees != Some(true)).collect();
        let number = |figure| points.of(Item::Figure(figure)).len();
        assert_eq!([6, 11, 13].map(number), [9 * 5 + 8, 4 * 12 + 4 * 8 + 3 * 4, 2 * 16 + 6 * 4 + 3 * 16 + 2 * 16]);
        // But for the signs of one column.
        let is_sign = |point: &Point| point.curve.starts_with("iteration 0: eta L") && point.printed == Some(-point.value);
        assert!(off.len() == 6 && off.iter().all(|point| is_sign(point)), "{off:?}");
    }
}
