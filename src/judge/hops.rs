//! The least task-hops with which quotas can be reached.

use crate::error::{Error, Result};
use crate::flow;
use crate::topology::{Kind, Topology};

/// Minimum number of task-hops (tasks times links crossed) that turn `loads` into `quota` on a topology, both by node and of the same sum.
///
/// In closed form where each link, or all but one of a ring's, cuts the nodes in two: what crosses it is the surplus of either side. Where
/// every node is next to every other, each missing task takes one hop. Elsewhere by min-cost flow, see [`flow::least_hops`].
///
/// # Errors
/// If the lists do not fit the topology or each other.
pub fn optimum(topology: &Topology, loads: &[u64], quota: &[u64]) -> Result<u128> {
    let nodes = topology.nodes() as usize;
    if loads.len() != nodes || quota.len() != nodes {
        return Err(Error::Failed(format!("{} loads and {} quotas for {nodes} nodes", loads.len(), quota.len())));
    }
    let surplus: Vec<i128> = loads.iter().zip(quota).map(|(load, quota)| i128::from(*load) - i128::from(*quota)).collect();
    if surplus.iter().sum::<i128>() != 0 {
        return Err(Error::Failed("loads and quotas do not have the same sum".into()));
    }
    Ok(match (topology, topology.kind()) {
        (Topology::Tree(tree), _) => {
            // A subtree follows its root, so children are summed up before their parents when going backwards.
            let mut below = surplus;
            let mut hops = 0;
            for node in (1..tree.nodes()).rev() {
                let crossing = below[node as usize];
                hops += crossing.unsigned_abs();
                if let Some(parent) = tree.parent(node) {
                    below[parent as usize] += crossing;
                }
            }
            hops
        }
        (_, Kind::Line) => prefixes(&surplus).iter().map(|crossing| crossing.unsigned_abs()).sum(),
        (_, Kind::Ring) => {
            // Any amount may also go all the way round; the median of the crossings is the amount that saves most.
            let mut crossings = prefixes(&surplus);
            crossings.sort_unstable();
            let around = crossings[nodes / 2];
            crossings.iter().map(|crossing| (crossing - around).unsigned_abs()).sum()
        }
        (_, Kind::Complete) => surplus.iter().filter(|surplus| **surplus > 0).map(|surplus| surplus.unsigned_abs()).sum(),
        _ => by_flow(topology, loads, quota)?,
    })
}

/// The surplus of the nodes up to each node: what crosses the link behind it.
fn prefixes(surplus: &[i128]) -> Vec<i128> {
    let running = |sum: &mut i128, surplus: &i128| {
        *sum += surplus;
        Some(*sum)
    };
    surplus.iter().scan(0, running).collect()
}

fn by_flow(topology: &Topology, loads: &[u64], quota: &[u64]) -> Result<u128> {
    // A graph's link that is slower than a way around it is on no route.
    let joins = |node: u32, other: &u32| *other > node && topology.distance(node, *other) == 1;
    let beyond = |node: u32| topology.neighbours(node).into_iter().filter(move |other| joins(node, other)).map(move |other| (node, other));
    let links: Vec<(u32, u32)> = (0..topology.nodes()).flat_map(beyond).collect();
    let least = flow::least_hops(topology.nodes(), &links, loads, quota);
    least.map(|least| least.hops).map_err(|why| Error::Failed(format!("the least task-hops: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn numbers(value: &Value) -> Vec<u64> {
        value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
    }

    fn joined(value: &Value, by: &str) -> String {
        value.as_array().unwrap().iter().map(Value::to_string).collect::<Vec<_>>().join(by)
    }

    fn topology(spec: &Value) -> Topology {
        let name = match spec["kind"].as_str().unwrap() {
            "hypercube" => format!("hypercube:{}", spec["dimension"]),
            "mesh" if spec["dims"].is_array() => format!("mesh:{}", joined(&spec["dims"], "x")),
            "mesh" => format!("mesh:{}x{}", spec["rows"], spec["columns"]),
            "tree" => format!("tree:parents={}", joined(&spec["parent_in_preorder"], ",")),
            other => panic!("{other}"),
        };
        Topology::parse(&name, 1).unwrap()
    }

    #[test]
    fn known_answers() {
        let files = [
            include_str!("../../tests/vectors/hypercube.jsonl"),
            include_str!("../../tests/vectors/mesh.jsonl"),
            include_str!("../../tests/vectors/kary.jsonl"),
            include_str!("../../tests/vectors/tree.jsonl"),
        ];
        let mut cases = 0;
        for line in files.iter().flat_map(|file| file.lines()) {
            let case: Value = serde_json::from_str(line).unwrap();
            let (loads, quota) = (numbers(&case["loads"]), numbers(&case["quota"]));
            let hops = optimum(&topology(&case["topology"]), &loads, &quota).unwrap();
            assert_eq!(hops.to_string(), case["optimum_task_hops"].to_string(), "{}", case["topology"]);
            if let Some(least) = case["minimum_nonlocal"].as_u64() {
                assert_eq!(crate::judge::minimum_nonlocal(&loads, &quota), least);
            }
            cases += 1;
        }
        assert_eq!(cases, 160);
    }

    #[test]
    fn lists_that_do_not_fit_are_refused() {
        let line = Topology::parse("line:2", 2).unwrap();
        assert_eq!(optimum(&line, &[1], &[1, 0]).unwrap_err().to_string(), "1 loads and 2 quotas for 2 nodes");
        assert_eq!(optimum(&line, &[1, 1], &[1, 0]).unwrap_err().to_string(), "loads and quotas do not have the same sum");
        assert_eq!(optimum(&line, &[u64::MAX, 0], &[0, u64::MAX]).unwrap(), u128::from(u64::MAX));
    }

    proptest! {
        #[test]
        fn closed_forms_agree_with_the_flow(
            kind in prop::sample::select(vec!["line", "ring", "complete", "tree:binary", "tree:kary=3"]),
            loads in prop::collection::vec(0u64..100, 1..14),
            turn in any::<prop::sample::Index>(),
        ) {
            let topology = Topology::parse(kind, loads.len() as u32).unwrap();
            let turn = turn.index(loads.len());
            let quota = [&loads[turn..], &loads[..turn]].concat();
            prop_assert_eq!(optimum(&topology, &loads, &quota).unwrap(), by_flow(&topology, &loads, &quota).unwrap());
        }
    }
}
