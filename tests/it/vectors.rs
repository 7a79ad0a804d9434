//! Every known answer of `tests/vectors`, through the simulator.

use equipoise::load::{Powers, Transfer};
use equipoise::topology::Topology;
use serde_json::Value;

use super::runner::{Outcome, Setup};

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().expect("a list").iter().map(number).collect()
}

fn topology(value: &Value) -> Topology {
    let sides = |dims: &Value| numbers(dims).iter().map(u64::to_string).collect::<Vec<_>>().join("x");
    let spec = match value["kind"].as_str().expect("a kind") {
        "hypercube" => format!("hypercube:{}", value["dimension"]),
        "mesh" if value["dims"].is_array() => format!("mesh:{}", sides(&value["dims"])),
        "mesh" => format!("mesh:{}x{}", value["rows"], value["columns"]),
        "tree" => {
            let parents = value["parent_in_preorder"].as_array().expect("parents");
            format!("tree:parents={}", parents.iter().map(Value::to_string).collect::<Vec<_>>().join(","))
        }
        "line" => format!("line:{}", value["nodes"]),
        "grid" => format!("grid:{}", sides(&value["dims"])),
        other => panic!("an unknown kind of topology {other}"),
    };
    Topology::parse(&spec, 1).unwrap_or_else(|why| panic!("{spec}: {why}"))
}

/// The moves of an answer, sorted as those of an outcome.
fn moves(answer: &Value) -> Vec<(u32, u32, u64)> {
    let one = |one: &Value| (number(&one["src"]) as u32, number(&one["dst"]) as u32, number(one.get("tasks").unwrap_or(&one["units"])));
    let mut moves: Vec<_> = answer["moves"].as_array().expect("moves").iter().map(one).collect();
    moves.sort_unstable();
    moves
}

/// Runs a balancer on every line of a file, and checks what every line tells. Returns lines and outcomes.
fn check(balancer: &str, file: &str) -> Vec<(Value, Outcome)> {
    let run = |(index, line): (usize, &str)| {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let loads = numbers(&case["loads"]);
        let nodes = loads.len() as u32;
        let powers = match case.get("powers") {
            Some(powers) => Powers::listed(numbers(powers)).expect("powers"),
            None => Powers::equal(nodes, nodes),
        };
        let setup = Setup::native(balancer, topology(&case["topology"]), powers);
        let (answer, line) = (&case[balancer], index + 1);
        let guarded = setup.run_on_loads(&loads);
        // The answers are those of the rules as they are printed. Where these make the slowest rank slower, that is declined.
        let outcome = Setup { plain: true, ..setup }.run_on_loads(&loads);
        if outcome.slowest[1] <= outcome.slowest[0] {
            assert_eq!((guarded.after(), guarded.moves()), (outcome.after(), outcome.moves()), "{balancer}, line {line}");
        } else {
            assert!(guarded.declined && guarded.slowest[1] <= guarded.slowest[0], "{balancer}, line {line}: {:?}", guarded.slowest);
        }
        assert!(answer.is_object(), "line {line} has no answer of {balancer}");
        assert_eq!(outcome.after(), numbers(&answer["final"]), "{balancer}, line {line}: final loads");
        assert_eq!(outcome.checksum_after(), outcome.checksum_before, "{balancer}, line {line}: tasks");
        if let Some(quota) = case.get("quota") {
            assert_eq!(outcome.quota, numbers(quota), "{balancer}, line {line}: quotas");
        } else {
            assert_eq!(outcome.quota, outcome.after(), "{balancer}, line {line}: quotas");
        }
        if answer.get("moves").is_some() {
            assert_eq!(outcome.moves(), moves(answer), "{balancer}, line {line}: moves");
        }
        if let Some(hops) = answer.get("task_hops") {
            assert_eq!(outcome.counts.task_hops, u128::from(number(hops)), "{balancer}, line {line}: task-hops");
        }
        if let Some(least) = case.get("minimum_nonlocal") {
            assert_eq!(outcome.minimum_nonlocal(), number(least), "{balancer}, line {line}: least number of tasks that must move");
        }
        (case, outcome)
    };
    let lines: Vec<_> = file.lines().enumerate().map(run).collect();
    assert_eq!(lines.len(), 40);
    lines
}

/// The transfers' steps take the dimensions in the answer's order.
fn check_dimensions(balancer: &str, lines: &[(Value, Outcome)]) {
    for (case, outcome) in lines {
        let mut expected: Vec<u64> =
            case[balancer]["moves"].as_array().expect("moves").iter().map(|one| number(&one["dimension"])).collect();
        expected.dedup();
        let mut taken: Vec<u64> = outcome.plan.transfers.iter().map(|t| u64::from((t.src ^ t.dst).trailing_zeros())).collect();
        taken.dedup();
        assert_eq!(taken, expected, "{balancer} on {}", case["topology"]);
    }
}

#[test]
fn cwa_on_hypercubes() {
    let lines = check("cwa", include_str!("../vectors/hypercube.jsonl"));
    check_dimensions("cwa", &lines);
}

#[test]
fn dem_on_hypercubes() {
    let lines = check("dem", include_str!("../vectors/hypercube.jsonl"));
    check_dimensions("dem", &lines);
}

#[test]
fn mwa_on_meshes() {
    for (case, outcome) in check("mwa", include_str!("../vectors/mesh.jsonl")) {
        // A node that gives within its row has done with the other rows before.
        let columns = number(&case["topology"]["columns"]) as u32;
        let (within, between): (Vec<Transfer>, Vec<Transfer>) =
            outcome.plan.transfers.iter().copied().partition(|t| t.src / columns == t.dst / columns);
        for later in within {
            let earlier = between.iter().filter(|t| t.src == later.src || t.dst == later.src);
            assert!(earlier.clone().all(|t| t.step < later.step), "{later:?} comes too early");
        }
    }
}

#[test]
fn kwa_on_meshes_of_any_dimension() {
    check("kwa", include_str!("../vectors/kary.jsonl"));
}

#[test]
fn twa_on_trees() {
    for (case, outcome) in check("twa", include_str!("../vectors/tree.jsonl")) {
        assert_eq!(outcome.counts.task_hops, u128::from(number(&case["optimum_task_hops"])));
    }
}

#[test]
fn pslb_on_lines() {
    for (case, outcome) in check("pslb", include_str!("../vectors/line.jsonl")) {
        assert!(outcome.is_in_order(), "order on {}", case["topology"]);
    }
}

#[test]
fn psts_on_grids() {
    check("psts", include_str!("../vectors/grid.jsonl"));
}

/// The least task-hops of every line that tells them, by the balancer that promises them.
#[test]
fn optimal_on_everything() {
    let files = [
        include_str!("../vectors/hypercube.jsonl"),
        include_str!("../vectors/mesh.jsonl"),
        include_str!("../vectors/kary.jsonl"),
        include_str!("../vectors/tree.jsonl"),
    ];
    let mut lines = 0;
    for line in files.iter().flat_map(|file| file.lines()) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let loads = numbers(&case["loads"]);
        let nodes = loads.len() as u32;
        let powers = match case.get("powers") {
            Some(powers) => Powers::listed(numbers(powers)).expect("powers"),
            None => Powers::equal(nodes, nodes),
        };
        let outcome = Setup::native("optimal", topology(&case["topology"]), powers).run_on_loads(&loads);
        assert_eq!(outcome.after(), numbers(&case["quota"]), "{}", case["topology"]);
        assert_eq!(outcome.counts.task_hops, u128::from(number(&case["optimum_task_hops"])), "{}", case["topology"]);
        lines += 1;
    }
    assert_eq!(lines, 160);
}
