//! The least task-hops of the known answers in `tests/vectors`.

use equipoise::flow::least_hops;
use serde_json::Value;

fn numbers(value: &Value) -> Vec<u64> {
    let list = value.as_array().expect("a list");
    list.iter().map(|n| n.as_u64().expect("a u64")).collect()
}

/// The edges of a mesh, row-major: the last dimension is the fastest.
fn mesh(dims: &[u32]) -> Vec<(u32, u32)> {
    let nodes: u32 = dims.iter().product();
    let mut edges = Vec::new();
    let mut stride = 1;
    for &extent in dims.iter().rev() {
        edges.extend((0..nodes).filter(|v| v / stride % extent + 1 < extent).map(|v| (v, v + stride)));
        stride *= extent;
    }
    edges
}

fn edges(topology: &Value) -> Vec<(u32, u32)> {
    let size = |key: &str| topology[key].as_u64().expect("a size") as u32;
    match topology["kind"].as_str().expect("a kind") {
        "hypercube" => {
            let dimension = size("dimension");
            (0..1 << dimension).flat_map(|v| (0..dimension).map(move |k| (v, v ^ 1 << k))).filter(|(v, w)| v < w).collect()
        }
        "mesh" if topology["dims"].is_array() => {
            let dims: Vec<u32> = (numbers(&topology["dims"]).iter()).map(|&extent| extent as u32).collect();
            mesh(&dims)
        }
        "mesh" => mesh(&[size("rows"), size("columns")]),
        "tree" => (topology["parent_in_preorder"].as_array().expect("parents"))
            .iter()
            .zip(0..)
            .filter_map(|(parent, child)| Some((parent.as_u64()? as u32, child)))
            .collect(),
        other => panic!("an unknown topology {other}"),
    }
}

/// Solves every line of a file and walks the loads to the quotas. Returns the number of lines.
fn check(lines: &str) -> usize {
    for (line, text) in lines.lines().enumerate() {
        let case: Value = serde_json::from_str(text).expect("JSON");
        let edges = edges(&case["topology"]);
        let (mut held, quota) = (numbers(&case["loads"]), numbers(&case["quota"]));
        let least = least_hops(held.len() as u32, &edges, &held, &quota).unwrap_or_else(|error| panic!("line {}: {error}", line + 1));

        let optimum = case["optimum_task_hops"].as_u64().expect("the optimum");
        assert_eq!(least.hops, u128::from(optimum), "line {}", line + 1);
        let mut carried = 0;
        for carry in &least.carries {
            let ends = (carry.src.min(carry.dst), carry.src.max(carry.dst));
            assert!(edges.contains(&ends), "line {}: {carry:?}", line + 1);
            held[carry.src as usize] = held[carry.src as usize].wrapping_sub(carry.amount);
            held[carry.dst as usize] = held[carry.dst as usize].wrapping_add(carry.amount);
            carried += u128::from(carry.amount);
        }
        assert_eq!(held, quota, "line {}", line + 1);
        assert_eq!(carried, least.hops, "line {}", line + 1);
    }
    lines.lines().count()
}

#[test]
fn hypercubes() {
    assert_eq!(check(include_str!("../vectors/hypercube.jsonl")), 40);
}

#[test]
fn meshes() {
    assert_eq!(check(include_str!("../vectors/mesh.jsonl")), 40);
}

#[test]
fn meshes_of_any_dimension() {
    assert_eq!(check(include_str!("../vectors/kary.jsonl")), 40);
}

#[test]
fn trees() {
    assert_eq!(check(include_str!("../vectors/tree.jsonl")), 40);
}

/// Wu 1997: the optimum stated with the worked examples 1 and 2 (examples 2 and 3 start from the loads of figure 1).
#[test]
fn worked_examples() {
    let parents = [0, 1, 1, 0, 4, 0, 6, 6];
    let tree: Vec<(u32, u32)> = parents.into_iter().zip(1..).collect();
    let example_1 = least_hops(9, &tree, &[1, 4, 5, 11, 7, 2, 3, 3, 5], &[5, 5, 5, 5, 5, 4, 4, 4, 4]);
    assert_eq!(example_1.expect("a tree is connected").hops, 16);

    let figure_1 = least_hops(8, &mesh(&[2, 2, 2]), &[19, 11, 2, 9, 0, 9, 10, 4], &[8; 8]);
    assert_eq!(figure_1.expect("a cube is connected").hops, 21);
}
