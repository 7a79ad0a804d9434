//! Figures of one's own: their files, what is wrong in them, and their points.

use super::super::{Effort, Measuring, Paper, measure};
use super::*;

const CWA: &str = "title = \"t\"\nmeasure = \"cost\"\ncases = 5\n\n[[curve]]\nbalancer = \"cwa\"\ntopology = \"hypercube:3\"\nloads = \"uniform:mean={x}\"\nat = [5, 20]\n";

#[test]
fn curves_of_the_same_loads_have_the_same_cases() {
    let text =
        format!("{CWA}\n[[curve]]\nbalancer = \"optimal\"\ntopology = \"hypercube:3\"\nloads = \"uniform:mean={{x}}\"\nat = [5, 20]\n");
    let figure = parse("f.toml", &text.replace("\"cost\"", "\"task-hops\"")).unwrap();
    let points = measure(Paper::Own, &figure.jobs, &Measuring::new(Effort::Quick, 1), |_| {}).unwrap();
    let of = |curve: &str| points.curve(Item::Figure(1), curve).iter().map(|point| point.value).collect::<Vec<_>>();
    let (cwa, optimal) = (of("cwa, hypercube:3"), of("optimal, hypercube:3"));
    // The optimum is never above, on any of the cases, so neither is its mean.
    assert!(cwa.len() == 2 && optimal.iter().zip(&cwa).all(|(optimal, cwa)| optimal > &0.0 && optimal <= cwa), "{cwa:?} {optimal:?}");
    assert_eq!(points.0[0].cases, 5);
}

#[test]
fn a_run_is_a_curve_too() {
    let text = "title = \"t\"\nmeasure = \"response\"\ncases = 2\n[[curve]]\nname = \"h\"\nscheduler = \"hierarchical\"\ntopology = \"hypercube:4\"\n\
                workload = \"stream:levels=2,children=2,utilisation={x},graphs=60,warmup=0\"\nat = [0.3]\n";
    let figure = parse("f.toml", text).unwrap();
    let points = measure(Paper::Own, &figure.jobs, &Measuring::new(Effort::Quick, 1), |_| {}).unwrap();
    assert!(points.0[0].value > 0.3 && points.0[0].curve == "h", "{points:?}");
}

/// Values of a figure with one curve of `balancer` on two nodes with all loads on the second, and these keys.
fn of_two_nodes(balancer: &str, measured: &str, keys: &str) -> Vec<(f64, f64)> {
    let text = format!(
        "title = \"t\"\nmeasure = \"{measured}\"\ncases = 2\n[[curve]]\nbalancer = \"{balancer}\"\ntopology = \"complete:2\"\nloads = \"0,8\"\n{keys}\n"
    );
    let figure = parse("f.toml", &text).unwrap_or_else(|why| panic!("{why}"));
    let points = measure(Paper::Own, &figure.jobs, &Measuring::new(Effort::Quick, 1), |_| {}).unwrap();
    points.0.iter().map(|point| (point.x, point.value)).collect()
}

#[test]
fn powers_payload_and_weights_count() {
    let of = |balancer: &str, measured: &str, keys: &str| of_two_nodes(balancer, measured, &format!("{keys}\nat = [1]"))[0].1;
    // A quarter of the tasks for a quarter of the power, and not half: 4 units of time instead of 16 / 3.
    assert_eq!(of("direct", "task-hops", ""), 4.0);
    assert_eq!(of("direct", "task-hops", "powers = \"1,3\""), 2.0);
    assert_eq!(of("direct", "imbalance", "powers = \"1,3\""), 1.0);
    let faster = of("direct", "speed-up", "powers = \"1,3\"\ntask_seconds = 10");
    assert!((faster - 4.0 / 3.0).abs() < 1e-3, "{faster}");
    // Where a task takes no longer than the phase does, the phase does not pay.
    assert!(of("direct", "speed-up", "task_seconds = 1e-9") < 0.1);
    let [light, heavy] = ["", "payload = 100000"].map(|keys| of("direct", "ms", keys));
    // Four tasks of 100,000 bytes at 2.7 ns a byte.
    assert!((heavy - light - 1.08).abs() < 0.01, "{light} {heavy}");
    // A task of seven units on one node, seven of one unit on the other.
    assert_eq!(of("direct", "imbalance", "weights = \"7,1,1,1,1,1,1,1\""), 1.0);
    assert_eq!(of("none", "imbalance", "weights = \"7,1,1,1,1,1,1,1\""), 2.0);
    assert_eq!(of("none", "imbalance", "powers = \"3,1\""), 4.0);
}

#[test]
fn a_list_has_a_text_for_each_place() {
    let values = of_two_nodes("direct", "task-hops", "name = \"d\"\npowers = [\"1,3\", \"equal\", \"3,{x}\"]\nat = [10, 20, 5]");
    assert_eq!(values, [(10.0, 2.0), (20.0, 4.0), (5.0, 3.0)]);
    assert_eq!(of_two_nodes("direct", "task-hops", "name = \"d\"\npowers = \"1,{x}\"\nat = [3, 7]"), [(3.0, 2.0), (7.0, 1.0)]);
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let why = |text: &str| {
        let why = parse("f.toml", text).err().unwrap();
        assert_eq!(why.exit_status(), 2);
        why.to_string()
    };
    for (from, to, line, says) in [
        ("measure", "mesure", 2, "unknown field `mesure`"),
        ("\"cost\"", "\"costs\"", 2, "measure 'costs' is unknown; known are cost, locality"),
        ("cases = 5", "cases = 0", 3, "cases: at least one is needed"),
        ("balancer", "balanser", 6, "unknown field `balanser`"),
        ("\"cwa\"", "\"cwb\"", 6, "cwb"),
        ("hypercube:3", "mesh:2x2", 6, "cwa"),
        ("hypercube:3", "hypercube:x", 7, "dimension is a whole number"),
        ("topology = \"hypercube:3\"\n", "", 5, "the curve has no topology"),
        ("uniform:mean", "uniform:men", 8, "men"),
        ("loads", "workload", 8, "workload: measure 'cost' is of a phase, which has balancer and loads"),
        ("[5, 20]", "[]", 9, "at: it has to be a list"),
        ("[5, 20]", "[5, \"20\"]", 9, "invalid type"),
    ] {
        let said = why(&CWA.replacen(from, to, 1));
        assert!(said.starts_with(&format!("file f.toml, line {line}: ")) && said.contains(says), "{to}: {said}");
    }
    // Keys of phases, each a line of its own before the loads.
    for (key, measured, line, says) in [
        (
            "powers = \"uniform:5..2\"",
            "cost",
            8,
            "powers uniform: LOW..HIGH is two whole numbers, the lower one first, as in 1..10, not '5..2'",
        ),
        ("powers = \"\"", "cost", 8, "powers, item 1: a number is missing"),
        ("powers = \"1,2\"", "cost", 8, "powers: 2 numbers for the 8 nodes of the topology"),
        ("powers = \"uniform:0..3\"", "imbalance", 8, "a node of power 0 may hold tasks, and so there is no imbalance"),
        ("power = \"1\"", "cost", 8, "unknown field `power`"),
        ("payload = -1", "ms", 8, "payload '-1': it is a whole number of bytes"),
        ("payload = \"few\"", "ms", 8, "payload 'few': it is a whole number of bytes"),
        ("payload = 1.5", "ms", 8, "invalid type: floating point `1.5`, expected a text, a whole number or a list of these"),
        ("payload = 9000000000000000000", "ms", 8, "payload 9000000000000000000"),
        ("weights = \"heavy\"", "ms", 8, "weights 'heavy' is unknown; known are unit, uniform, exponential"),
        ("weights = \"1,2\"", "ms", 8, "weights: 2 numbers for 40 tasks"),
        ("weights = \"uniform:0..0\"", "cost", 8, "the tasks are no work, and so no cost"),
        ("weights = [\"unit\", \"uniform\", \"unit\"]", "ms", 8, "weights: a list has one for each number in at, and here are 3 for 2"),
        ("weights = [\"unit\",\n  \"heavy\"]", "ms", 9, "weights 'heavy' is unknown"),
        ("weights = [\"unit\", 1.5]", "ms", 8, "invalid type: floating point `1.5`, expected a text or a whole number"),
        ("task_seconds = 1e-3", "ms", 8, "task_seconds: measure 'ms' does not need it, only 'speed-up' does"),
        ("task_seconds = 0", "speed-up", 8, "task_seconds: it is a number above 0"),
        ("payload = 0", "speed-up", 5, "the curve has no task_seconds, which measure 'speed-up' needs"),
    ] {
        let said = why(&CWA.replace("\"cost\"", &format!("\"{measured}\"")).replace("loads", &format!("{key}\nloads")));
        assert!(said.starts_with(&format!("file f.toml, line {line}: ")) && said.contains(says), "{key}: {said}");
    }
    let run = "title = \"t\"\nmeasure = \"makespan\"\n[[curve]]\nscheduler = \"dss\"\ntopology = \"complete:2\"\nworkload = \"costs\"\npowers = \"1,2\"\nat = [1]\n";
    assert_eq!(why(run), "file f.toml, line 7: powers: measure 'makespan' is of a run, which has scheduler and workload");
    let unnamed = CWA.replace("\"hypercube:3\"", "[\"hypercube:3\", \"hypercube:2\"]");
    assert_eq!(why(&unnamed), "file f.toml, line 5: a curve with a list needs a name");
    assert!(why("title = \"t\"\nmeasure = \"cost\"\ncurve = []\n").contains("there is no [[curve]]"));
}

#[test]
fn what_cannot_be_measured_is_found_before_anything_is() {
    let curve = |keys: [&str; 4], measured: &str, at: &str| {
        let [kind, who, what, how] = keys;
        let (first, second) = kind.split_once(' ').unwrap();
        format!(
            "title = \"t\"\nmeasure = \"{measured}\"\n\n[[curve]]\n{first} = \"{who}\"\ntopology = \"{how}\"\n{second} = \"{what}\"\nat = {at}\n"
        )
    };
    let (phase, run) = ("balancer loads", "scheduler workload");
    // What is wrong is the last place, so that others would be measured before.
    for (keys, measured, at, line, says) in [
        ([phase, "cwa", "uniform:mean=5", "hypercube:{x}"], "cost", "[2, 2.5]", 6, "dimension is a whole number"),
        ([phase, "direct", "1,2,3", "complete:{x}"], "ms", "[3, 4]", 7, "3 numbers for the 4 nodes"),
        ([phase, "rcb", "uniform:mean={x}", "complete:4"], "imbalance", "[1, 2]", 5, "rcb: it needs a place of each task"),
        ([phase, "none", "uniform:mean={x}", "complete:4"], "cost", "[1, 2]", 5, "none moves nothing, so that it has no cost"),
        ([phase, "cwa", "uniform:mean={x}", "hypercube:2"], "cost", "[5, 0]", 7, "there are no tasks, and so no cost"),
        ([run, "steal", "queens:n={x}", "complete:2"], "response", "[6, 7]", 7, "only what arrives over time has response times"),
        ([run, "dss", "costs:tasks={x}", "complete:2"], "response", "[6, 7]", 7, "only what arrives over time has response times"),
        ([run, "dss", "costs:file=/nowhere/{x}", "complete:2"], "makespan", "[6, 7]", 7, "/nowhere/6"),
        ([run, "incremental:balancer=mwa", "queens:n=6", "hypercube:{x}"], "makespan", "[2, 3]", 5, "mwa runs on mesh"),
    ] {
        let why = parse("f.toml", &curve(keys, measured, at)).err().unwrap_or_else(|| panic!("{keys:?}"));
        let said = why.to_string();
        assert_eq!(why.exit_status(), 2, "{said}");
        assert!(said.starts_with(&format!("file f.toml, line {line}: ")) && said.contains(says), "{said}");
    }
    let twice = format!("{CWA}\n[[curve]]\nbalancer = \"cwa\"\ntopology = \"hypercube:3\"\nloads = \"uniform:mean={{x}}\"\nat = [7]\n");
    for (text, says) in [
        (twice.as_str(), "line 11: the curve has the name of the one in line 5: 'cwa, hypercube:3'; give one of them another"),
        (&CWA.replace("[5, 20]", "[5, 20, 5]"), "line 9: at: 5 is there twice"),
        (&CWA.replace("cases = 5", "log_x = true").replace("[5, 20]", "[0, 20]"), "line 9: at: 0 has no place on a logarithmic axis"),
    ] {
        let said = parse("f.toml", text).err().unwrap().to_string();
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn a_changed_file_is_another_point() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("loads");
    let loads = CWA.replace("uniform:mean={x}", &format!("@{}", file.display()));
    let costs = format!(
        "title = \"t\"\nmeasure = \"makespan\"\n[[curve]]\nscheduler = \"dss\"\ntopology = \"complete:2\"\nworkload = \"costs:file={}\"\nat = [1]\n",
        file.display()
    );
    let eight = ["1\n2\n3\n4\n5\n6\n7\n8\n", "2\n2\n3\n4\n5\n6\n7\n8\n"];
    for (text, [contents, others]) in [(&loads, eight), (&costs, ["1 2\n3 4\n", "1 2\n3 5\n"])] {
        let name = |contents: &str| {
            std::fs::write(&file, contents).unwrap();
            parse("f.toml", text).unwrap().jobs[0].name.clone()
        };
        let [first, same, other] = [contents, contents, others].map(name);
        assert!(first == same && first != other, "{first} {other}");
    }
}

#[test]
fn a_point_without_a_case_that_counts_is_left_out() {
    // On one node there is nothing to move.
    let text = CWA.replace("hypercube:3", "hypercube:{x}").replace("mean={x}", "mean=5").replace("[5, 20]", "[0, 2]");
    let points = measure(Paper::Own, &parse("f.toml", &text).unwrap().jobs, &Measuring::new(Effort::Quick, 1), |_| {}).unwrap();
    assert_eq!(points.0.iter().map(|point| point.x).collect::<Vec<_>>(), [2.0]);
}

#[test]
fn the_papers_figures_are_such_files() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/figures");
    let within = |folder: &str| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let mut files = [within(folder), within(&format!("{folder}/further"))].concat();
    files.retain(|file| file.is_file());
    files.sort();
    for (whose, numbers) in [("ahmad", 6..=16), ("hamidzadeh", 2..=13), ("psts", 4..=6), ("wu", 14..=17)] {
        numbers.for_each(|number| assert!(files.contains(&format!("{folder}/{whose}-{number}.toml").into()), "{whose}-{number}"));
    }
    for file in &files {
        let figure = read(file).unwrap_or_else(|why| panic!("{why}"));
        assert!(!figure.jobs.is_empty() && !figure.title.is_empty());
    }
    // The same figures as the built-in ones: the same means to what random cases vary.
    let of = |jobs: Vec<Job>, paper: Paper, cases: u32| measure(paper, &jobs, &Measuring::new(Effort::Cases(cases), 1), |_| {}).unwrap();
    let at = |file: &str, curve: &str, x: f64, cases: u32| {
        let figure = read(Path::new(&format!("{folder}/{file}.toml"))).unwrap();
        let few = figure.jobs.into_iter().filter(|job| job.x == x && job.name.starts_with(&format!("{curve}/"))).collect();
        of(few, Paper::Own, cases).0[0].value
    };
    // The built-in one's job and curve.
    let built_in = |paper: Paper, number: u32, [job, curve]: [&str; 2], x: f64, cases: u32| {
        let item = Item::Figure(number);
        let is_it = |one: &Job| one.item == item && one.name == job && one.x == x;
        let points = of(paper.study().jobs.into_iter().filter(is_it).collect(), paper, cases);
        points.at(item, curve, x).unwrap_or_else(|| panic!("figure {number}: {curve}")).value
    };
    for (paper, number, file, curve, theirs, x, cases, within) in [
        (Paper::Wu, 16, "wu-16", "64 processors", ["cwa, 64 processors"; 2], 10.0, 12, 0.35),
        (Paper::Wu, 15, "wu-15", "cwa, 16 processors", ["16 processors", "cwa over all cases, 16 processors"], 20.0, 100, 0.4),
        // On four nodes DEM balances three cases of four.
        (Paper::Wu, 14, "wu-14", "4 processors", ["4 processors"; 2], 100.0, 200, 0.4),
        (Paper::Psts, 4, "psts-4", "dim = 1", ["time", "dim = 1"], 16.0, 5, 0.05),
        (Paper::Psts, 5, "psts-5", "dim > 1", ["time", "dim > 1"], 16.0, 5, 0.05),
        (Paper::Psts, 6, "psts-6", "psts", ["speed-up"; 2], 8.0, 20, 0.35),
        (Paper::Sash, 9, "hamidzadeh-9", "dss", ["totals", "dss"], 8.0, 2, 0.05),
        (Paper::Sash, 9, "hamidzadeh-9", "sash", ["totals", "sash"], 8.0, 2, 0.05),
    ] {
        let (own, built_in) = (at(file, curve, x, cases), built_in(paper, number, theirs, x, cases));
        assert!((own / built_in - 1.0).abs() < within, "{file}, {curve} at {x}: {own}, {built_in}");
    }
}
