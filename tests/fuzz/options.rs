//! The grammar of options: names come from the registries, commands and their options from the program's own help.

use std::fs;
use std::path::Path;

use equipoise::schedule::independent as own_schedulers;
use equipoise::{balance, names, schedule};
use equipoise_lab::workload::{graphs, independent};

use crate::dice::Dice;
use crate::texts::{self, Format};

/// Values of keys that set how much work there is, small enough to be done in a second.
const MOST_OF_KEY: &[(&str, u64)] = &[
    ("n", 9),
    ("warmup", 10),
    ("levels", 4),
    ("children", 4),
    ("roots", 6),
    ("graphs", 12),
    ("tasks", 40),
    ("rows", 40),
    ("entries", 5),
    ("depth", 4),
    ("b0", 4),
    ("width", 30),
    ("height", 30),
    ("sweeps", 4),
    ("limit", 50),
];

/// Keys whose smallest values mean endless work that was asked for, or whose largest do; they keep to what is listed here.
const TAME: &[(&str, &[&str])] = &[
    ("period", &["0.5", "0", "1", "10", "1e9", "1e19", "1e300", "nan", "-1", "0.25"]),
    ("age", &["0.5", "0", "1", "1e9", "1e10", "1e19", "1e300", "inf", "-0.5", "0.1"]),
    ("tolerance", &["1e-3", "1e-5", "0", "nan", "1"]),
    ("from", &["0.3", "0.1", "1", "0", "x"]),
    ("cutoff", &["2", "3", "5", "20", "x"]),
    ("utilisation", &["0.1", "0.3", "0.5", "0", "1", "2", "nan"]),
    ("rate", &["0.1", "1", "10", "x", "1e300"]),
    ("least", &["1", "2", "3", "9"]),
    ("most", &["2", "3", "x"]),
    ("tree", &["T1", "T9", ""]),
    ("q", &["0.1", "0.2", "1", "nan"]),
    ("m", &["2", "1", "3"]),
    ("start", &["1-2-6-3-4-9-5-7-8-13-10-11-12-14-0-15", "1-2-3", "15-14-13"]),
    ("task", &["1us", "0us", "1ms", "x", "1"]),
    ("unit", &["1us", "2ms", "1ns", "0s", "x"]),
    ("iterations", &["10", "100", "x"]),
];

/// Keys that name files, and the format of each; what is written is not written here.
const FILES: &[(&str, Format)] = &[("file", Format::Costs), ("times", Format::MatrixMarket), ("optimum", Format::Optima)];

/// `NAME[:key=value,..]`, with the keys that an entry's own text names.
fn spec(dice: &mut Dice, name: &str, options: &str) -> String {
    let mut given = Vec::new();
    let words: Vec<&str> = options.split([' ', ',', ';', '(', ')']).filter(|word| !word.is_empty()).collect();
    for word in &words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let is_key = word.contains('=') && key.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit());
        if !is_key || FILES.iter().any(|(file, _)| *file == key) || key == "picture" || !dice.percent(35) {
            continue;
        }
        let choices: Vec<&str> = value.split('|').collect();
        let most = MOST_OF_KEY.iter().find(|(known, _)| *known == key).map(|(_, most)| *most);
        let tame = TAME.iter().find(|(known, _)| *known == key).map(|(_, values)| *values);
        let value = match (tame, most) {
            (Some(values), _) => dice.one(values).to_string(),
            (_, Some(most)) if dice.percent(95) => dice.between(0, most).to_string(),
            (_, Some(_)) => dice.one(&["x", "-1", "", "99999999999999999999", "1.5"]).to_string(),
            _ if dice.percent(40) => dice.one(&choices).to_string(),
            _ if choices.len() > 1 => dice.one(&choices).to_string(),
            _ => dice.number(5),
        };
        given.push(format!("{key}={value}"));
    }
    match given.is_empty() {
        true => name.to_string(),
        false => format!("{name}:{}", given.join(",")),
    }
}

pub fn balancer(dice: &mut Dice) -> String {
    let entry = dice.one(balance::ALL);
    spec(dice, entry.name, entry.options)
}

pub fn scheduler(dice: &mut Dice) -> String {
    let entry = dice.one(schedule::ALL);
    spec(dice, entry.name, entry.options)
}

fn own_scheduler(dice: &mut Dice) -> String {
    let entry = dice.one(own_schedulers::ALL);
    spec(dice, entry.name, entry.options)
}

/// A workload of tasks that spawn tasks. Without options many are large.
pub fn spawning(dice: &mut Dice) -> String {
    const SMALL: &[(&str, &str)] = &[
        ("queens", "n=6"),
        ("fibonacci", "n=12"),
        ("uts", "kind=geometric,shape=fixed,b0=3,depth=4,seed=19"),
        ("primes", "n=2000"),
        ("puzzle", "start=1-2-6-3-4-9-5-7-8-13-10-11-12-14-0-15"),
        ("romberg", "f=peak,tolerance=1e-4"),
        ("matmul", "n=8"),
        ("gauss", "n=6"),
        ("tree", "levels=3,children=3"),
        ("stream", "graphs=10,utilisation=0.1"),
    ];
    let entry = dice.one(graphs::ALL);
    let named = SMALL.iter().find(|(name, _)| *name == entry.name).map(|(_, options)| *options);
    let of_example = || Some(entry.examples.last()?.split_once(':')?.1);
    let small = named.or_else(of_example).unwrap_or("");
    let drawn = spec(dice, entry.name, entry.options);
    let given = drawn.split_once(':').map_or("", |(_, options)| options);
    // What is drawn stands for the small value of the same key.
    let names_it = |option: &&str| given.split(',').all(|other| other.split('=').next() != option.split('=').next());
    let kept: Vec<&str> =
        small.split(',').filter(|option| !option.is_empty()).filter(names_it).chain(given.split(',').filter(|it| !it.is_empty())).collect();
    if kept.is_empty() { entry.name.into() } else { format!("{}:{}", entry.name, kept.join(",")) }
}

/// A workload of independent tasks; some read files.
pub fn independent_file(dice: &mut Dice, folder: &Path, ranks: usize) -> String {
    let file = |dice: &mut Dice, format| names::text(texts::written(dice, folder, format, ranks).as_os_str());
    let of_file = match dice.below(8) {
        0 | 1 => format!("costs:file={}", file(dice, Format::Costs)),
        2 => format!("costs:file={},arrival=file", file(dice, Format::Costs)),
        3 => format!("costs:file={},optimum={}", file(dice, Format::Costs), file(dice, Format::Optima)),
        4 => format!("loop:file={},unit={}", file(dice, Format::Times), dice.one(&["1us", "2ms", "1e9s", "0s", "x"])),
        5 => format!("loop:file={}", file(dice, Format::MatrixMarket)),
        6 => format!("spmm:file={}", file(dice, Format::MatrixMarket)),
        _ => format!("spmm:file={},times={}", file(dice, Format::MatrixMarket), file(dice, Format::MatrixMarket)),
    };
    if dice.percent(70) {
        return of_file;
    }
    let entry = dice.one(independent::ALL);
    let drawn = spec(dice, entry.name, entry.options);
    match entry.name {
        "costs" if !drawn.contains("tasks=") => drawn.clone() + if drawn.contains(':') { ",tasks=12" } else { ":tasks=12" },
        "spmm" if !drawn.contains("rows=") => drawn.clone() + if drawn.contains(':') { ",rows=12" } else { ":rows=12" },
        "mandelbrot" => "mandelbrot:width=20,height=10".into(),
        _ => drawn,
    }
}

pub fn tasks(dice: &mut Dice, folder: &Path, ranks: usize) -> String {
    if dice.percent(50) {
        let run = texts::lbaf(dice, folder);
        let phase = if dice.percent(50) { format!(",phase={}", dice.number(9)) } else { String::new() };
        let set = if dice.percent(10) { ",set=data" } else { "" };
        return format!("lbaf:{}{set}{phase}", names::text(run.as_os_str()));
    }
    let table = texts::written(dice, folder, Format::Table, ranks);
    let unit = if dice.percent(40) { format!(",unit={}", dice.one(&["ns", "us", "ms", "s", "h", ""])) } else { String::new() };
    format!("{}{unit}", names::text(table.as_os_str()))
}

pub fn topology(dice: &mut Dice, folder: &Path, ranks: usize) -> String {
    let small = |dice: &mut Dice| {
        if dice.percent(90) { (1 + dice.below(5)).to_string() } else { dice.one(&["0", "-1", "x", "99999999999", "1.5"]).to_string() }
    };
    let (a, b, c) = (small(dice), small(dice), small(dice));
    match dice.below(16) {
        0..=3 => dice.one(&["hypercube", "mesh", "torus", "tree", "grid", "line", "ring", "complete"]).to_string(),
        4 => format!("hypercube:{a}"),
        5 => format!("mesh:{a}x{b}"),
        6 => format!("torus:{a}x{b}x{c}"),
        7 => format!("grid:{a}x{b}"),
        8 => format!("{}:{a}{b}", dice.one(&["line", "ring", "complete", "star"])),
        9 => format!("tree:kary={a},nodes={ranks}"),
        10 => "tree:binary".into(),
        11 => format!("tree:parents=-,{}", dice.list(ranks.saturating_sub(1), 2, ",")),
        12 => format!("graph:edges=0-1,1-{a},{b}-0"),
        13 => format!("graph:{}", names::text(texts::written(dice, folder, Format::Metis, ranks).as_os_str())),
        _ => format!("graph:{}", names::text(texts::written(dice, folder, Format::EdgeList, ranks).as_os_str())),
    }
}

pub fn loads(dice: &mut Dice, folder: &Path, ranks: usize) -> String {
    let number = dice.number(60);
    match dice.below(10) {
        0 | 1 => dice.list(ranks, 60, ","),
        2 | 3 => format!("@{}", names::text(texts::written(dice, folder, Format::Numbers, ranks).as_os_str())),
        4 => format!("uniform:mean={number}"),
        5 => format!("hot:total={number},node={}", dice.below(ranks + 1)),
        6 => format!("poisson:mean={number}"),
        7 => format!("sparse:p={},max={number}", dice.one(&["0", "0.3", "1", "2"])),
        8 => "zero".into(),
        _ => dice.list(ranks, u64::MAX / 64, ","),
    }
}

pub fn powers(dice: &mut Dice, folder: &Path, ranks: usize) -> String {
    match dice.below(5) {
        0 | 1 => dice.list(ranks, 9, ","),
        2 => format!("@{}", names::text(texts::written(dice, folder, Format::Numbers, ranks).as_os_str())),
        3 => format!("uniform:{}..{}", dice.number(9), dice.number(20)),
        _ => "equal".into(),
    }
}

pub fn weights(dice: &mut Dice, folder: &Path, ranks: usize) -> String {
    match dice.below(5) {
        0 => dice.list(ranks, 9, ","),
        1 => format!("@{}", names::text(texts::written(dice, folder, Format::Numbers, ranks).as_os_str())),
        2 => format!("exponential:mean={}", dice.number(50)),
        3 => format!("uniform:{}..{}", dice.number(9), dice.number(20)),
        _ => "unit".into(),
    }
}

pub fn network(dice: &mut Dice) -> String {
    match dice.below(6) {
        0 => "zero".into(),
        1 => "hops".into(),
        2 => "switched:contention".into(),
        3 => format!("hops:latency={}us,contention", dice.number(50)),
        4 => format!("switched:latency={}{},per_byte={}ns", dice.number(50), dice.one(&["us", "ms", "h", ""]), dice.number(9)),
        _ => format!("switched:per_byte={}", dice.one(&["0ns", "1ps", "0.0001ns", "1s", "x"])),
    }
}

/// A network's file as `probe` writes it, now and then with mistakes.
fn probed(dice: &mut Dice, folder: &Path, ranks: usize) -> String {
    let hosts = 1 + dice.below(3.min(ranks));
    let mut text = String::new();
    for host in 0..hosts {
        let own: Vec<String> = (host * ranks / hosts..(host + 1) * ranks / hosts).map(|rank| rank.to_string()).collect();
        text += &format!("[[host]]\nname = \"h{host}\"\nranks = [{}]\nspeeds = [{}]\n\n", own.join(", "), dice.list(own.len(), 3, ", "));
    }
    for link in if hosts > 1 { &["within", "between"][..] } else { &["within"] } {
        text += &format!("[{link}]\nlatency = \"{}us\"\nper_byte = \"{}ns\"\n\n", dice.number(50), dice.number(9));
    }
    let text = if dice.percent(30) { dice.mistaken(text.as_bytes()) } else { text.into_bytes() };
    let path = folder.join("network.toml");
    fs::write(&path, text).expect("a file can be written");
    names::text(path.as_os_str())
}

/// List of what a farm is to run, if no option says that. Only commands that do no harm: they are executed.
pub fn farmed(dice: &mut Dice, folder: &Path, line: &[String]) -> Vec<String> {
    let given = |option: &str| line.iter().any(|word| word == option);
    if given("--args") || given("--array") {
        return ["--", "echo", *dice.one(&["{}", "{#}", "{/}", "x"])].map(String::from).to_vec();
    }
    if given("--empty") || given("--sleep") {
        return Vec::new();
    }
    let directive = |dice: &mut Dice| match dice.below(6) {
        0 => format!(" #EQ cost={}", dice.number(5)),
        1 => format!(" #EQ after={}", dice.number(6)),
        2 => format!(" #EQ cpus={} mem={}G", dice.number(3), dice.number(9)),
        _ => String::new(),
    };
    let task =
        |dice: &mut Dice| dice.one(&["true", "echo a", "false", "echo 'a b'", "", "# x", "#EQ barrier", "no-such-command"]).to_string();
    let lines: String = (0..dice.below(12)).map(|_| task(dice) + &directive(dice) + "\n").collect();
    let path = folder.join("list");
    fs::write(&path, lines).expect("a file can be written");
    vec![names::text(path.as_os_str())]
}

/// The value of an option of the command line, by its name and by what its help calls the value.
pub fn value(dice: &mut Dice, command: &str, option: &str, name: &str, folder: &Path, ranks: usize) -> String {
    let file = |dice: &mut Dice, format| texts::written(dice, folder, format, ranks).to_string_lossy().into_owned();
    let to_write = |dice: &mut Dice, folder: &Path| match dice.below(8) {
        0 => "/dev/full".to_string(),
        1 => "/dev/null/out".to_string(),
        2 => folder.display().to_string(),
        _ => folder.join(format!("out-{}", dice.below(5))).display().to_string(),
    };
    match (option, name) {
        ("sim", _) => match dice.below(12) {
            0 => dice.one(&["0", "-1", "1073741824", "1073741825", "4294967296", "x", "1.5"]).to_string(),
            _ => ranks.to_string(),
        },
        ("network", _) => match dice.percent(25) {
            true => probed(dice, folder, ranks),
            false => network(dice),
        },
        ("sim-hosts", _) => format!("{}{}", dice.number(4), dice.one(&["", ",cyclic", ",block"])),
        ("topology", _) => topology(dice, folder, ranks),
        ("loads", _) => loads(dice, folder, ranks),
        ("tasks", _) if command != "run" => tasks(dice, folder, ranks),
        ("powers", _) => powers(dice, folder, ranks),
        ("weights", _) => weights(dice, folder, ranks),
        ("pinned", _) => format!("p={}", dice.number(1)),
        ("payload", _) => {
            let sizes = 1 + dice.below(2);
            match dice.below(8) {
                0 => dice.one(&["100000", "3000000000", "18446744073709551615"]).to_string(),
                _ => dice.list(sizes, 300, ","),
            }
        }
        ("balancer", _) => (0..=dice.below(2)).map(|_| balancer(dice)).collect::<Vec<_>>().join(","),
        ("scheduler" | "compare", _) if command == "run" && dice.percent(50) => {
            dice.one(&["", "steal", "dss", "static", "sash"]).to_string()
        }
        ("scheduler", _) => {
            if dice.percent(50) {
                scheduler(dice)
            } else {
                own_scheduler(dice)
            }
        }
        ("compare", _) => {
            (0..=dice.below(2)).map(|_| if dice.percent(60) { scheduler(dice) } else { own_scheduler(dice) }).collect::<Vec<_>>().join(",")
        }
        ("workload", _) => {
            if dice.percent(50) {
                spawning(dice)
            } else {
                independent_file(dice, folder, ranks)
            }
        }
        ("speeds", _) => dice.list(ranks, 9, ","),
        ("repeat", _) => dice.one(&["1", "2", "3", "0", "x"]).to_string(),
        ("workers", _) => dice.one(&["1", "2", "3", "0", "1025", "x"]).to_string(),
        ("kernel", _) => {
            dice.one(&["count", "grep=error", "grep=[", "grep=(a*)*b", "histogram", "histogram=numbers", "checksum", "nothing"]).to_string()
        }
        // Nothing drawn at random is ever given to a shell.
        ("command", _) | (_, "COMMAND") => dice.one(&["cat", "wc -l", "false", "exit 3", "head -n 1", "sort"]).to_string(),
        ("reduce", _) => dice.one(&["concat", "sum", "sort", "cat"]).to_string(),
        ("ok-status", _) => dice.one(&["0", "0,1", "1", "x", "256", ""]).to_string(),
        ("records", _) => dice.one(&["lines", "nul", "bytes=7", "bytes=0", "bytes=x", "bytes=18446744073709551615"]).to_string(),
        ("input", _) => file(dice, Format::Lines),
        ("calibration", _) => to_write(dice, folder),
        ("rate" | "memory", _) => dice.one(&["100M", "1k", "0", "x", "18446744073709551615G", "7", "1G"]).to_string(),
        ("links" | "startups", _) => match dice.percent(50) {
            true => dice.list(ranks.saturating_sub(1), 4, ","),
            false => format!("0-{}={}", dice.below(ranks), dice.number(4)),
        },
        ("installments", _) => dice.one(&["1", "2", "5", "0", "-1", "1000000", "x"]).to_string(),
        ("source", _) => dice.below(ranks + 1).to_string(),
        // Papers take minutes; what is refused is refused at once.
        ("figure", _) => dice.one(&["table9", "", "x"]).to_string(),
        ("cases", _) => dice.one(&["0", "1", "-1", "x"]).to_string(),
        ("ranks", _) => dice.one(&["8", "1", "13", "0", "99999999999", "1000", "x"]).to_string(),
        ("weights-columns", _) => dice.one(&["work,bytes", "bytes", "work", "rank", "work,work", ",", "é"]).to_string(),
        ("collectives", _) => dice.one(&["own", "native", "auto", "x"]).to_string(),
        ("capacity", _) => match dice.percent(50) {
            true => dice.one(&["8k", "8e9", "1GiB", "0", "nan", "-1", "1e30", "18446744073709551616"]).to_string(),
            false => dice.list(ranks, 5000, ","),
        },
        ("steps", _) => dice.one(&["1", "10", "1000000", "0", "-1", "18446744073709551615", "1.5"]).to_string(),
        ("task-seconds", _) => dice.one(&["1e-6", "0.001", "2", "0", "nan", "inf", "-1", "1e300", "1us", "5e-324"]).to_string(),
        ("tolerance", _) => dice.one(&["1", "1.05", "2", "0.9", "nan", "inf", "1e300"]).to_string(),
        ("grace", _) => dice.one(&["0", "1", "0.1", "nan", "-1", "1e300"]).to_string(),
        ("communications", _) => file(dice, Format::Links),
        ("series", _) => file(dice, Format::Series),
        ("args", _) => file(dice, Format::Lines),
        ("resume-from" | "costs", _) => file(dice, Format::Times),
        ("array", _) => format!("{}-{}{}", dice.number(5), dice.number(20), dice.one(&["", ":2", ":0", ":-1", ":x"])),
        ("empty", _) => dice.one(&["0", "1", "30", "-1", "1.5", "18446744073709551616"]).to_string(),
        ("sleep", _) => {
            let lengths =
                dice.one(&["exponential:mean=1ms", "uniform:min=5us,max=1ms", "fixed:time=1ms", "fixed:time=-1s", "x"]).to_string();
            format!("{lengths},tasks={},seed={}", dice.number(20), dice.number(9))
        }
        ("slots", _) => {
            format!("{}cpus={},gpus={},mem={}G", dice.one(&["", "host:"]), dice.number(4), dice.number(2), dice.number(64))
        }
        ("halt", _) => format!("{},fail={}", dice.one(&["now", "soon", "x"]), dice.number(3)),
        ("walltime", _) => dice.one(&["1:00:00", "20", "0", "-1", "nan", "1:99:00", "auto", "1e300"]).to_string(),
        ("retries", _) => dice.one(&["0", "1", "2", "-1", "x", "1.5"]).to_string(),
        ("format", _) => dice.one(&["plain", "greasy", "disbatch", "parallel", "osu", "x"]).to_string(),
        ("cost", _) => dice.number(50),
        ("timeout", _) => dice.one(&["300", "1", "0.001", "0", "nan", "1e300", "5e-10"]).to_string(),
        ("output", _) => dice.one(&["human", "json", "json", "quiet", "xml"]).to_string(),
        (_, "DIR") => to_write(dice, folder),
        (_, "FILE") => to_write(dice, folder),
        (_, "FORM" | "RULE" | "PORTS" | "DUTY" | "TABLE") => {
            dice.one(&["hosts", "identity", "random", "all", "one", "shared", "dedicated", "balancers", "schedulers", "x"]).to_string()
        }
        _ => dice.number(9),
    }
}
