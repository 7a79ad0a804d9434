//! The model of divisible loads against answers of other implementations: exact fractions of the paper's equations
//! (`tests/vectors/divisible.jsonl`), and cases of DLT-Studio (`tests/data/dlt/dlt_facts.tsv`).

use equipoise_lab::divisible::model::{NamedTopology, Ports, Question, Solution, solve, solve_by_program};
use serde_json::Value;

fn file(path: &str) -> String {
    std::fs::read_to_string(format!("{}/tests/{path}", env!("CARGO_MANIFEST_DIR"))).expect("a file of the tests")
}

/// A fraction such as 7/18.
fn fraction(value: &Value) -> f64 {
    let (above, below) = value.as_str().and_then(|text| text.split_once('/')).expect("a fraction");
    above.parse::<f64>().expect("a number") / below.parse::<f64>().expect("a number")
}

fn assert_near(ours: f64, theirs: f64, what: &str) {
    assert!((ours - theirs).abs() <= 1e-9 * theirs.abs().max(1e-300), "{what}: {ours} is not {theirs}");
}

#[test]
fn every_division_of_a_hypercube_is_known() {
    let mut cases = 0;
    for line in file("vectors/divisible.jsonl").lines() {
        let case: Value = serde_json::from_str(line).expect("a line of JSON");
        let question = Question {
            w: fraction(&case["w"]),
            z: fraction(&case["z"]),
            tcp: fraction(&case["Tcp"]),
            tcm: fraction(&case["Tcm"]),
            ..Question::of(NamedTopology::parse(&format!("hypercube:{}", case["dimension"])).unwrap())
        };
        let solution = solve(&question).unwrap();
        for (layer, (alpha, volume)) in numbers(&case["alpha"]).into_iter().zip(numbers(&case["volume"])).enumerate() {
            assert_near(solution.layers[layer].alpha, alpha, line);
            assert_near(solution.layers[layer].volume, volume, line);
        }
        assert_eq!(solution.layers.len(), numbers(&case["alpha"]).len());
        for (ours, theirs) in
            [(solution.speedup, "speedup"), (solution.utilisation, "utilisation"), (solution.equivalent_w, "equivalent_w")]
        {
            assert_near(ours, case[theirs].as_f64().expect("a number"), line);
        }
        cases += 1;
    }
    assert_eq!(cases, 40);
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
}

/// The question of a case of DLT-Studio by the first two columns of its line: processors with S (start-up), C (seconds for a unit of load
/// through the link) and A (seconds to compute a unit). None: its model is not among ours (processors that start late, have a release
/// time or a deadline).
///
/// Its stars have a hub that does not compute; where the root computes, it does so at speed A of the first.
fn question(model: &str, processors: &str, load: f64) -> Option<Question> {
    let star = |processors: &[(f64, f64, f64)]| Question {
        source_computes: false,
        ports: Ports::One,
        load,
        speeds: std::iter::once(1.0).chain(processors.iter().map(|(_, _, a)| 1.0 / a)).collect(),
        links: processors.iter().map(|(_, c, _)| *c).collect(),
        startups: processors.iter().map(|(s, _, _)| *s).collect(),
        ..Question::of(NamedTopology::parse(&format!("star:{}", processors.len() + 1)).unwrap())
    };
    // A and, but for the first, C.
    let chain = |processors: &[(f64, f64)]| Question {
        load,
        speeds: processors.iter().map(|(a, _)| 1.0 / a).collect(),
        links: processors[1..].iter().map(|(_, c)| *c).collect(),
        ..Question::of(NamedTopology::parse(&format!("line:{}", processors.len())).unwrap())
    };
    Some(match (model, processors) {
        ("star single-port, 1 installment", "S=0,C=0.11,A=0.12") => star(&[(0.0, 0.11, 0.12)]),
        ("star single-port, root does not compute", "2x S=0,C=0.1,A=0.2") => star(&[(0.0, 0.1, 0.2); 2]),
        ("star", "S=C=0; A=10 and A=1") => star(&[(0.0, 0.0, 10.0), (0.0, 0.0, 1.0)]),
        ("star, selection", "P1 S=100,C=1,A=1; P2 S=0,C=1,A=1") => star(&[(100.0, 1.0, 1.0), (0.0, 1.0, 1.0)]),
        ("star, ordering", "P1 C=10,A=1; P2 C=0.5,A=0.5 (S=0)") => star(&[(0.0, 10.0, 1.0), (0.0, 0.5, 0.5)]),
        ("star, C=0 two equal", "S=C=0,A=1 x2") => star(&[(0.0, 0.0, 1.0); 2]),
        ("star + result return beta=0.5", "S=0,C=1,A=1") => Question { results: 0.5, ..star(&[(0.0, 1.0, 1.0)]) },
        ("linear chain (root computes)", "A=1") => chain(&[(1.0, 0.0)]),
        ("linear chain (root computes)", "A=1,A=1,link C1=1") => chain(&[(1.0, 0.0), (1.0, 1.0)]),
        ("linear chain (root computes)", "A=1,A=1,link C1=0") => chain(&[(1.0, 0.0), (1.0, 0.0)]),
        ("chain slow link", "A=1,A=1,link 1000") => chain(&[(1.0, 0.0), (1.0, 1000.0)]),
        ("chain, property", "A,C: (.3,0)(.25,.2)(.4,.15)(.22,.3)") => chain(&[(0.3, 0.0), (0.25, 0.2), (0.4, 0.15), (0.22, 0.3)]),
        ("startup only", "S=2,C=0,A=1") => star(&[(2.0, 0.0, 1.0)]),
        ("energy, 1 worker", "S=1,C=.1,A=.2 V=100") => star(&[(1.0, 0.1, 0.2)]),
        ("star, compute startup p" | "star, release r" | "star, deadline d", _) => return None,
        other => panic!("a case that nobody has read: {other:?}"),
    })
}

/// Beginning of the column `expected`, `Cmax=230`, `Cmax=22/11.5=..` or `99<Cmax<100`: the least and the most.
fn expected(text: &str) -> Option<(f64, f64)> {
    if let Some((low, high)) = text.split_once("<Cmax<") {
        return Some((low.parse().ok()?, high.split(',').next()?.parse().ok()?));
    }
    let number = text.strip_prefix("Cmax=")?.split([' ', ',', '=']).next()?;
    let number = match number.split_once('/') {
        Some((above, below)) => above.parse::<f64>().ok()? / below.parse::<f64>().ok()?,
        None => number.parse().ok()?,
    };
    Some((number, number))
}

fn part(solution: &Solution, processor: u32) -> &equipoise_lab::divisible::model::ProcessorShare {
    solution.parts.iter().find(|part| part.processor == Some(processor)).expect("a processor")
}

#[test]
fn another_implementation_says_the_same() {
    let mut checked = 0;
    for line in file("data/dlt/dlt_facts.tsv").lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let load: f64 = columns[2].parse().expect("a load");
        let Some(question) = question(columns[0], columns[1], load) else { continue };
        for solution in [solve(&question).unwrap(), solve_by_program(&question).unwrap()] {
            let all: f64 = solution.parts.iter().map(|part| part.alpha).sum();
            assert!((all - 1.0).abs() < 1e-9, "{line}: {all}");
            match expected(columns[3]) {
                // Their digits are rounded to the seventh.
                Some((low, high)) => assert!(
                    solution.makespan >= low * (1.0 - 1e-7) && solution.makespan <= high * (1.0 + 1e-7),
                    "{line}: {}",
                    solution.makespan
                ),
                None => {
                    assert!(solution.parts.iter().all(|part| (part.finish / solution.makespan - 1.0).abs() < 1e-6), "{line}: {solution:?}");
                }
            }
            match columns[0] {
                "star, selection" => assert!(part(&solution, 1).alpha < 1e-12 && part(&solution, 2).alpha > 1.0 - 1e-12),
                "star, ordering" => assert!(part(&solution, 2).arrival < part(&solution, 1).arrival),
                "chain slow link" => assert!(part(&solution, 0).alpha * load > 99.0 && part(&solution, 1).alpha * load < 1.0),
                "linear chain (root computes)" if columns[3].contains("loads 20 10") => {
                    assert!((part(&solution, 0).alpha * load - 20.0).abs() < 1e-6 && (part(&solution, 1).alpha * load - 10.0).abs() < 1e-6);
                }
                _ => {}
            }
        }
        checked += 1;
    }
    assert_eq!(checked, 14);
}
