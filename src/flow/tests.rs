use microlp::{ComparisonOp, LinearExpr, OptimizationDirection, Problem};
use proptest::prelude::*;

use super::*;

/// An arc as the tests write it: from, to, capacity, cost.
type Given = (u32, u32, u64, u32);

fn network(nodes: u32, arcs: &[Given]) -> Network {
    let mut network = Network::new(nodes);
    for &(from, to, capacity, cost) in arcs {
        network.arc(from, to, capacity, cost);
    }
    network
}

/// Capacities hold, every node keeps or yields what it should, and the cost is the sum over the arcs.
fn assert_is_a_flow(arcs: &[Given], supplies: &[i128], flow: &Flow) {
    assert_eq!(flow.on.len(), arcs.len());
    let mut net = vec![0i128; supplies.len()];
    let mut cost = 0;
    for (&(from, to, capacity, price), &units) in arcs.iter().zip(&flow.on) {
        assert!(units <= capacity, "{units} units on an arc of {capacity}");
        net[from as usize] += i128::from(units);
        net[to as usize] -= i128::from(units);
        cost += u128::from(units) * u128::from(price);
    }
    assert_eq!(net, supplies);
    assert_eq!(cost, flow.cost);
}

/// A flow is cheapest exactly when its residual network has no cycle of negative cost (Klein 1967). Bellman and Ford
/// find one, if there is one, without potentials of the solver: distances still fall in the round after the last.
fn assert_no_cheaper(nodes: u32, arcs: &[Given], flow: &Flow) {
    let mut residual = Vec::new();
    for (&(from, to, capacity, cost), &units) in arcs.iter().zip(&flow.on) {
        if units < capacity {
            residual.push((from, to, i128::from(cost)));
        }
        if units > 0 {
            residual.push((to, from, -i128::from(cost)));
        }
    }
    let mut distance = vec![0i128; nodes as usize];
    let mut relax = || {
        residual.iter().fold(false, |fell, &(from, to, cost)| {
            let through = distance[from as usize] + cost;
            let falls = through < distance[to as usize];
            if falls {
                distance[to as usize] = through;
            }
            fell | falls
        })
    };
    let settled = (0..=nodes).any(|_| !relax());
    assert!(settled, "the residual network has a negative cycle");
}

/// The least cost of the same flow as a linear program, or `None` if that has no solution.
fn least_cost_by_linear_program(nodes: u32, arcs: &[Given], supplies: &[i128]) -> Option<u128> {
    let mut program = Problem::new(OptimizationDirection::Minimize);
    let mut leaves = vec![LinearExpr::empty(); nodes as usize];
    for &(from, to, capacity, cost) in arcs {
        let most = match capacity {
            UNBOUNDED => f64::INFINITY,
            capacity => capacity as f64,
        };
        let units = program.add_var(f64::from(cost), (0.0, most));
        if from != to {
            leaves[from as usize].add(units, 1.0);
            leaves[to as usize].add(units, -1.0);
        }
    }
    for (leaves, &supply) in leaves.into_iter().zip(supplies) {
        program.add_constraint(leaves, ComparisonOp::Eq, supply as f64);
    }
    match program.solve() {
        Ok(outcome) => {
            assert!(outcome.is_optimal());
            let cost = outcome.solution().expect("an optimum").objective();
            let whole = cost.round();
            assert!((cost - whole).abs() < 1e-4, "{cost} is not near an integer");
            Some(whole as u128)
        }
        Err(microlp::Error::Infeasible) => None,
        Err(other) => panic!("the linear program failed: {other}"),
    }
}

/// Maximum flow from supplies to demands, by a linear program with a free source and a free sink.
fn most_by_linear_program(arcs: &[Given], supplies: &[i128]) -> u64 {
    let mut program = Problem::new(OptimizationDirection::Maximize);
    let mut balance = vec![LinearExpr::empty(); supplies.len()];
    for &(from, to, capacity, _) in arcs.iter().filter(|arc| arc.0 != arc.1) {
        // No more than the supplies need ever cross an arc; the program stays bounded.
        let units = program.add_var(0.0, (0.0, capacity.min(1 << 20) as f64));
        balance[from as usize].add(units, 1.0);
        balance[to as usize].add(units, -1.0);
    }
    for (mut balance, &supply) in balance.into_iter().zip(supplies) {
        let gain = if supply > 0 { 1.0 } else { 0.0 };
        let sign = if supply > 0 { -1.0 } else { 1.0 };
        let used = program.add_var(gain, (0.0, supply.unsigned_abs() as f64));
        balance.add(used, sign);
        program.add_constraint(balance, ComparisonOp::Eq, 0.0);
    }
    let outcome = program.solve().expect("sending nothing is a solution");
    outcome.solution().expect("an optimum").objective().round() as u64
}

/// Supplies that add up to zero: each pair takes units from one node to another.
fn supplies(nodes: u32, most: u64) -> impl Strategy<Value = Vec<i128>> {
    prop::collection::vec((0..nodes, 0..nodes, 0..=most), 0..6).prop_map(move |pairs| {
        let mut supplies = vec![0; nodes as usize];
        for (from, to, units) in pairs {
            supplies[from as usize] += i128::from(units);
            supplies[to as usize] -= i128::from(units);
        }
        supplies
    })
}

/// Few nodes and few arcs, so that parallel arcs, self-loops, nodes out of reach and tight cuts are common.
fn case(most: u64) -> impl Strategy<Value = (u32, Vec<Given>, Vec<i128>)> {
    let capacity = prop_oneof![
        1 => Just(0),
        3 => 1..=most,
        3 => Just(UNBOUNDED),
    ];
    (1u32..9).prop_flat_map(move |nodes| {
        let arc = (0..nodes, 0..nodes, capacity.clone(), 0u32..6);
        (Just(nodes), prop::collection::vec(arc, 0..30), supplies(nodes, most))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn costs_what_the_linear_program_costs((nodes, arcs, supplies) in case(40)) {
        match (network(nodes, &arcs).solve(&supplies), least_cost_by_linear_program(nodes, &arcs, &supplies)) {
            (Ok(flow), Some(cost)) => {
                assert_is_a_flow(&arcs, &supplies, &flow);
                prop_assert_eq!(flow.cost, cost);
            }
            (Err(FlowError::Infeasible { unserved }), None) => {
                let wanted: i128 = supplies.iter().filter(|&&s| s > 0).sum();
                prop_assert_eq!(wanted as u64 - unserved, most_by_linear_program(&arcs, &supplies));
            }
            (ours, theirs) => prop_assert!(false, "ours {ours:?}, the linear program {theirs:?}"),
        }
    }

    #[test]
    fn is_exact_for_huge_amounts((nodes, arcs, supplies) in case(3_000_000_000_000_000_000)) {
        if supplies.iter().filter(|&&s| s > 0).sum::<i128>() > i128::from(u64::MAX) {
            prop_assert_eq!(network(nodes, &arcs).solve(&supplies), Err(FlowError::TooMuch));
        } else if let Ok(flow) = network(nodes, &arcs).solve(&supplies) {
            assert_is_a_flow(&arcs, &supplies, &flow);
            assert_no_cheaper(nodes, &arcs, &flow);
        }
    }

    #[test]
    fn the_dearest_costs_do_not_overflow((nodes, arcs, supplies) in case(1 << 60)) {
        let dear: Vec<Given> = (arcs.iter())
            .map(|&(from, to, capacity, cost)| (from, to, capacity, u32::MAX - cost))
            .collect();
        if let Ok(flow) = network(nodes, &dear).solve(&supplies) {
            assert_is_a_flow(&dear, &supplies, &flow);
            assert_no_cheaper(nodes, &dear, &flow);
        }
    }

    #[test]
    fn least_hops_reaches_the_quotas_without_cycles(
        (nodes, extra, loads) in (1u32..25).prop_flat_map(|nodes| (
            Just(nodes),
            prop::collection::vec((0..nodes, 0..nodes), 0..30),
            prop::collection::vec(0..=1_000_000_000_000u64, nodes as usize),
        )),
    ) {
        // A tree keeps the graph connected; the other edges may double it or be loops.
        let edges: Vec<(u32, u32)> = (1..nodes).map(|v| (v, v / 3)).chain(extra).collect();
        let total: u64 = loads.iter().sum();
        let (share, left) = (total / u64::from(nodes), total % u64::from(nodes));
        let quota: Vec<u64> = (0..u64::from(nodes)).map(|v| share + u64::from(v < left)).collect();

        let least = least_hops(nodes, &edges, &loads, &quota).unwrap();
        let again = least_hops(nodes, &edges, &loads, &quota).unwrap();
        prop_assert_eq!(&least, &again);

        let mut held: Vec<i128> = loads.iter().map(|&load| i128::from(load)).collect();
        let mut carried = 0u128;
        let mut waits = vec![0; nodes as usize];
        for carry in &least.carries {
            prop_assert!(carry.amount > 0);
            prop_assert!(edges.contains(&(carry.src, carry.dst)) || edges.contains(&(carry.dst, carry.src)));
            held[carry.src as usize] -= i128::from(carry.amount);
            held[carry.dst as usize] += i128::from(carry.amount);
            carried += u128::from(carry.amount);
            waits[carry.dst as usize] += 1;
        }
        prop_assert_eq!(held, quota.iter().map(|&q| i128::from(q)).collect::<Vec<_>>());
        prop_assert_eq!(carried, least.hops);

        // Nodes that wait for nothing can send; if all get their turn there is no cycle.
        let mut ready: Vec<u32> = (0..nodes).filter(|&v| waits[v as usize] == 0).collect();
        let mut turns = 0;
        while let Some(node) = ready.pop() {
            turns += 1;
            for carry in least.carries.iter().filter(|carry| carry.src == node) {
                waits[carry.dst as usize] -= 1;
                if waits[carry.dst as usize] == 0 {
                    ready.push(carry.dst);
                }
            }
        }
        prop_assert_eq!(turns, nodes);
    }
}

#[test]
fn a_later_round_gives_back_what_an_earlier_one_sent() {
    // The cheapest single way 0-1-2-3 is not part of the cheapest flow of two units.
    let arcs = [(0, 1, 1, 1), (0, 2, 1, 4), (1, 2, 1, 1), (1, 3, 1, 4), (2, 3, 1, 1)];
    let flow = network(4, &arcs).solve(&[2, 0, 0, -2]).unwrap();
    assert_eq!((flow.cost, flow.on), (10, vec![1, 1, 0, 1, 1]));
}

#[test]
fn equal_arcs_fill_in_the_order_of_their_numbers() {
    let arcs = [(0, 1, 5, 2), (0, 1, 5, 2), (0, 1, 5, 2)];
    let flow = network(2, &arcs).solve(&[7, -7]).unwrap();
    assert_eq!(flow.on, [5, 2, 0]);
}

#[test]
fn nothing_to_carry_costs_nothing() {
    assert_eq!(network(0, &[]).solve(&[]).unwrap().cost, 0);
    let loop_and_arc = [(0, 0, UNBOUNDED, 0), (0, 1, 0, 0)];
    let flow = network(2, &loop_and_arc).solve(&[0, 0]).unwrap();
    assert_eq!((flow.cost, flow.on), (0, vec![0, 0]));
}

#[test]
fn carries_all_that_a_u64_holds() {
    let most = i128::from(u64::MAX);
    let arcs = [(0, 1, UNBOUNDED, u32::MAX), (1, 2, UNBOUNDED, u32::MAX)];
    let flow = network(3, &arcs).solve(&[most, 0, -most]).unwrap();
    assert_eq!(flow.on, [u64::MAX, u64::MAX]);
    assert_eq!(flow.cost, 2 * u128::from(u64::MAX) * u128::from(u32::MAX));
    let one_more = network(3, &arcs).solve(&[most + 1, 0, -most - 1]);
    assert_eq!(one_more, Err(FlowError::TooMuch));
    let past_all = network(2, &[]).solve(&[i128::MIN, i128::MAX]);
    assert!(matches!(past_all, Err(FlowError::Unbalanced { .. })));
}

#[test]
fn says_what_is_wrong_in_one_sentence() {
    let cases = [
        (network(2, &[(0, 1, 1, 1), (0, 7, 1, 1)]).solve(&[0, 0]), "arc 1 touches node 7, but the network has 2 nodes"),
        (network(2, &[]).solve(&[0]), "1 numbers for the 2 nodes of the network"),
        (network(2, &[]).solve(&[3, -2]), "the supplies add up to 3, the demands to 2"),
        (network(2, &[(0, 1, 4, 1), (1, 0, 9, 1)]).solve(&[7, -7]), "3 units cannot reach any demand"),
    ];
    for (result, sentence) in cases {
        assert_eq!(result.unwrap_err().to_string(), sentence);
    }
}

#[test]
fn balancing_says_what_is_wrong() {
    let wrong_length = least_hops(2, &[(0, 1)], &[1], &[1, 0]);
    assert_eq!(wrong_length, Err(FlowError::WrongLength { nodes: 2, found: 1 }));
    let apart = least_hops(3, &[(0, 1)], &[0, 3, 4], &[3, 4, 0]);
    assert_eq!(apart, Err(FlowError::Infeasible { unserved: 4 }));
    let short = least_hops(2, &[(0, 1)], &[5, 0], &[1, 1]);
    assert_eq!(short, Err(FlowError::Unbalanced { supply: 4, demand: 1 }));
}

#[test]
fn a_line_longer_than_any_stack_of_calls() {
    let nodes = 200_000u32;
    let edges: Vec<(u32, u32)> = (1..nodes).map(|v| (v - 1, v)).collect();
    let mut loads = vec![0; nodes as usize];
    loads[0] = u64::from(nodes);
    let least = least_hops(nodes, &edges, &loads, &vec![1; nodes as usize]).unwrap();
    let n = u128::from(nodes);
    assert_eq!(least.hops, n * (n - 1) / 2);
}
