//! Files of every format that the program reads: right ones, drawn, and ones with mistakes in them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::dice::Dice;

/// A format, as the options name it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Format {
    Numbers,
    Table,
    EdgeList,
    Metis,
    MatrixMarket,
    Costs,
    Times,
    Optima,
    Lines,
    Series,
    Links,
    Partition,
    Figure,
}

/// A file of this format for so many ranks, in most cases a right one.
pub fn written(dice: &mut Dice, folder: &Path, format: Format, ranks: usize) -> PathBuf {
    let text = text(dice, format, ranks).into_bytes();
    let text = if dice.percent(20) { dice.mistaken(&text) } else { text };
    let ending = if format == Format::Table { ".csv" } else { "" };
    let name = match dice.below(12) {
        0 => format!("with a blank{ending}"),
        1 => format!("a=b{ending}"),
        _ => format!("file-{}{ending}", dice.below(1000)),
    };
    let path = folder.join(name);
    fs::write(&path, text).expect("a file can be written");
    path
}

pub fn text(dice: &mut Dice, format: Format, ranks: usize) -> String {
    let count = if dice.percent(92) { ranks } else { dice.below(20) };
    let many = dice.below(20);
    match format {
        Format::Numbers => {
            let separator = *dice.one(&[",", "\n", " ", ";", " # five\n"]);
            dice.list(count, 50, separator)
        }
        Format::Table => table(dice, ranks, many),
        Format::EdgeList => edges(dice, count.max(1)),
        Format::Metis => metis(dice, count.clamp(1, 40)),
        Format::MatrixMarket => matrix_market(dice),
        Format::Costs => (0..many).map(|_| dice.list(count, 50, " ") + "\n").collect(),
        Format::Times => dice.list(many, 50, "\n"),
        Format::Optima => format!("file\tbest_known\nfile-1\t{}\nfile-2\t30.5\n", dice.number(90)),
        Format::Series => series(dice, count, many),
        Format::Links => (0..many).map(|_| pair(dice, ranks)).collect(),
        Format::Partition => {
            let has_tasks = dice.percent(40);
            let part = |task| format!("{}{}\n", if has_tasks { format!("{task} ") } else { String::new() }, dice.below(ranks));
            (0..many).rev().map(part).collect()
        }
        Format::Figure => figure(dice),
        Format::Lines => (0..many).map(|line| format!("{line} {}\n", dice.one(&["error", "warning", "", "é", "a\0b"]))).collect(),
    }
}

fn table(dice: &mut Dice, ranks: usize, lines: usize) -> String {
    let between = *dice.one(&[",", ",", ",", ";", "\t"]);
    let work = *dice.one(&["work", "work", "work_us", "work (ms)", "\"work\""]);
    let has_bytes = dice.percent(60);
    let mut text = ["rank", work].join(between) + if has_bytes { between } else { "" } + if has_bytes { "bytes\n" } else { "\n" };
    for _ in 0..lines {
        let quoted = dice.percent(10);
        let work = if dice.percent(15) { dice.number(5000) } else { dice.between(0, 5000).to_string() };
        let work = if quoted { format!("\"{work}\"") } else { work };
        text += &[dice.below(ranks.max(1)).to_string(), work].join(between);
        if has_bytes {
            text += between;
            text += &dice.below(300).to_string();
        }
        text += "\n";
    }
    text
}

/// A line of times for each step, or a table of them.
fn series(dice: &mut Dice, ranks: usize, steps: usize) -> String {
    if dice.percent(60) {
        let separator = *dice.one(&[" ", ",", ";", "\t"]);
        return (0..steps).map(|_| dice.list(ranks, 50, separator) + "\n").collect();
    }
    let row = |at: usize| format!("{},{},{}\n", at / ranks.max(1), at % ranks.max(1), dice.number(50));
    let rows: String = (0..steps * ranks).map(row).collect();
    format!("step,rank,work\n{rows}")
}

/// Two tasks, and in most cases the bytes between them.
fn pair(dice: &mut Dice, tasks: usize) -> String {
    let (a, b) = (dice.below(tasks), dice.below(tasks));
    match dice.below(4) {
        0 => format!("{a} {b}\n"),
        1 => format!("{a},{b},{} # bytes\n", dice.number(5000)),
        _ => format!("{a} {b} {}\n", dice.number(5000)),
    }
}

/// A figure of one's own, of a phase or of a run, with one curve or two.
fn figure(dice: &mut Dice) -> String {
    let is_phase = dice.percent(70);
    let measure = match is_phase {
        true => *dice.one(&["cost", "locality", "imbalance", "task-hops", "steps", "ms", "speed-up"]),
        false => *dice.one(&["response", "makespan", "efficiency", "migrations", "messages"]),
    };
    let mut text = format!("title = \"t\"\nmeasure = \"{measure}\"\ncases = {}\nlog_x = {}\n", dice.number(5), dice.percent(30));
    for _ in 0..=dice.below(2) {
        let keys = match is_phase {
            true => [("balancer", "cwa"), ("loads", "uniform:mean={x}"), ("topology", "hypercube:3")],
            false => {
                [("scheduler", "hierarchical"), ("workload", "stream:levels=2,children=2,utilisation={x}"), ("topology", "hypercube:2")]
            }
        };
        text += "[[curve]]\n";
        text += &keys.map(|(key, value)| format!("{key} = \"{value}\"\n")).concat();
        let further = ["", "name = \"n\"\n", "powers = \"1,3\"\n", "payload = 100\n", "weights = \"7,1\"\n", "network = \"hops\"\n"];
        text += *dice.one(&further);
        if measure == "speed-up" {
            text += &format!("task_seconds = {}\n", dice.number(9));
        }
        text += &format!("at = [{}]\n", dice.list(1 + usize::from(is_phase), 20, ", "));
    }
    text
}

/// A tree with some more links.
fn links(dice: &mut Dice, nodes: usize) -> Vec<(usize, usize)> {
    let mut links: Vec<(usize, usize)> = (1..nodes).map(|node| (dice.below(node), node)).collect();
    for _ in 0..dice.below(nodes) {
        let (a, b) = (dice.below(nodes), dice.below(nodes));
        if a != b && !links.contains(&(a.min(b), a.max(b))) {
            links.push((a.min(b), a.max(b)));
        }
    }
    links
}

fn edges(dice: &mut Dice, nodes: usize) -> String {
    let weighted = dice.percent(30);
    let mut line = |(a, b)| if weighted { format!("{a} {b} {}\n", dice.number(9)) } else { format!("{a} {b}\n") };
    let mut fresh = Dice::of(nodes as u64, 0);
    let text: String = links(&mut fresh, nodes).into_iter().map(&mut line).collect();
    if nodes == 1 { "0\n".into() } else { text }
}

fn metis(dice: &mut Dice, nodes: usize) -> String {
    let links = links(dice, nodes);
    let (format, own, weighted) = *dice.one(&[("", 0, false), (" 1", 0, true), (" 011", 1, true), (" 110 2", 3, false)]);
    let mut text = format!("{} {}{format}\n", nodes, links.len());
    if dice.percent(50) {
        text = "% comment\n".to_string() + &text;
    }
    for node in 0..nodes {
        let others = links.iter().filter_map(|&(a, b)| if a == node { Some(b) } else { (b == node).then_some(a) });
        let mut items: Vec<String> = vec!["1".into(); own];
        for other in others {
            items.push((other + 1).to_string());
            items.extend(weighted.then(|| "2".into()));
        }
        text += &(items.join(" ") + "\n");
    }
    text
}

fn matrix_market(dice: &mut Dice) -> String {
    let array = dice.percent(40);
    let field = *dice.one(&["real", "integer", "complex", "pattern"]);
    let symmetry = *dice.one(&["general", "symmetric", "skew-symmetric", "hermitian"]);
    let rows = 1 + dice.below(7);
    let columns = if symmetry == "general" { 1 + dice.below(7) } else { rows };
    let value = |dice: &mut Dice| match field {
        "complex" => format!("{} {}", dice.number(9), dice.number(9)),
        "pattern" => String::new(),
        _ => dice.number(9),
    };
    let head = format!("%%MatrixMarket matrix {} {field} {symmetry}\n% c\n", if array { "array" } else { "coordinate" });
    if array {
        let count = match symmetry {
            "general" => rows * columns,
            "skew-symmetric" => rows * (rows - 1) / 2,
            _ => rows * (rows + 1) / 2,
        };
        let values: String = (0..count).map(|_| value(dice) + "\n").collect();
        return format!("{head}{rows} {columns}\n{values}");
    }
    let count = dice.below(12);
    let line = |dice: &mut Dice| {
        let (row, column) = (1 + dice.below(rows), 1 + dice.below(columns));
        format!("{row} {column} {}\n", value(dice))
    };
    let entries: String = (0..count).map(|_| line(dice)).collect();
    format!("{head}{rows} {columns} {count}\n{entries}")
}

/// A folder of a run's task times, in LBAF's form.
pub fn lbaf(dice: &mut Dice, folder: &Path) -> PathBuf {
    let folder = folder.join(format!("run-{}", dice.below(1000)));
    fs::create_dir_all(&folder).expect("a folder can be made");
    let ranks = 1 + dice.below(4);
    let mut identity = 0;
    for rank in 0..ranks {
        let phases: Vec<String> = [2, 3, 8].iter().map(|phase| lbaf_phase(dice, *phase, &mut identity)).collect();
        let metadata = match dice.below(3) {
            0 => String::new(),
            1 => format!("\"metadata\":{{\"rank\":{rank}}},"),
            _ => format!(
                "\"metadata\":{{\"rank\":{rank},\"phases\":{{\"skipped\":{{\"list\":[{}],\"range\":[]}},\"identical_to_previous\":{{\"list\":[3],\"range\":[[5,{}]]}}}}}},",
                dice.between(0, 9),
                dice.number(9)
            ),
        };
        let text = format!("{{{metadata}\"phases\":[{}]}}", phases.join(",")).into_bytes();
        let text = if dice.percent(8) { dice.mistaken(&text) } else { text };
        let set = if dice.percent(4) { "other" } else { "data" };
        fs::write(folder.join(format!("{set}.{rank}.json")), text).expect("a file can be written");
    }
    if dice.percent(15) {
        let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/loads/lbaf-nolb-8color-32ranks");
        let any = fs::read_dir(&packed)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|it| it == "br"));
        if let Some(bytes) = any.and_then(|path| fs::read(path).ok()) {
            let bytes = if dice.percent(70) { dice.mistaken(&bytes) } else { bytes };
            fs::write(folder.join("data.0.json"), bytes).expect("a file can be written");
        }
    }
    folder
}

fn lbaf_phase(dice: &mut Dice, id: u64, identity: &mut u64) -> String {
    let mut task = |dice: &mut Dice| {
        *identity += 1;
        let time = if dice.percent(10) { dice.number(3) } else { format!("{}e-6", dice.below(5000)) };
        let bytes = match dice.below(20) {
            0 => dice.number(500),
            1 => dice.one(&["3e6", "4000000000", "3e7", "1e19"]).to_string(),
            _ => dice.below(500).to_string(),
        };
        format!(
            "{{\"entity\":{{\"id\":{identity},\"migratable\":{}}},\"time\":{time},\"user_defined\":{{\"task_serialized_bytes\":{bytes}}}}}",
            dice.percent(80)
        )
    };
    let tasks: Vec<String> = (0..dice.below(6)).map(|_| task(dice)).collect();
    format!("{{\"id\":{id},\"tasks\":[{}]}}", tasks.join(","))
}
