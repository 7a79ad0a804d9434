//! The library's readers, in a process of their own: many cases, one after the other, each noted before it begins.

use std::fs::{self, File};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use equipoise::topology::Topology;
use equipoise::transport::sim::Network;
use equipoise::{balance, names, schedule};
use equipoise_lab::experiment::papers::own;
use equipoise_lab::workload::{LoadPattern, Pins, PowerPattern, TaskSource, WeightPattern, graphs, independent, links, network, series};

use crate::bytes;
use crate::dice::Dice;
use crate::farms;
use crate::options;
use crate::texts::{self, Format};

/// Plays one case in a folder of its own, for a number of ranks.
type Target = fn(&mut Dice, &Path, usize) -> Said;

/// The targets of readers, which take turns: case number modulo their number.
pub const TARGETS: &[(&str, Target)] = &[
    ("numbers", |dice, folder, ranks| numbers(dice, folder, ranks as u32)),
    ("measured", |dice, folder, ranks| measured(dice, folder, ranks as u32)),
    ("graphs", |dice, _, ranks| graph(dice, ranks)),
    ("problems", |dice, folder, ranks| problem(dice, folder, ranks as u32)),
    ("options", specifications),
    ("wire", |dice, _, _| bytes::wire(dice)),
    ("migrate", |dice, _, _| bytes::migrate(dice)),
    ("networks", |dice, _, ranks| network_file(dice, ranks)),
    ("series", series_file),
    ("links", links_file),
    ("partitions", |dice, _, ranks| partition(dice, ranks as u32)),
    ("figures", |dice, folder, _| figure(dice, folder)),
    ("lists", |dice, folder, _| farms::list(dice, folder)),
    ("logs", |dice, folder, _| farms::log(dice, folder)),
    ("joblogs", |dice, folder, _| farms::joblog(dice, folder)),
];

/// Plays the cases from one to another (without the last). In `notes` is the number of the one that goes on, and then what panicked.
pub fn play(seed: u64, from: u64, to: u64, step: usize, folder: &Path, notes: &Path) {
    std::panic::set_hook(Box::new(|_| {}));
    let mut panicked = File::create(notes.with_extension("panicked")).expect("notes can be written");
    for case in (from..to).step_by(step) {
        fs::write(notes, case.to_string()).expect("notes can be written");
        // A case's files are its own, so that it is the same when it runs alone.
        let own = folder.join(format!("case-{case}"));
        fs::create_dir_all(&own).expect("a folder can be made");
        let outcome = catch_unwind(AssertUnwindSafe(|| read(case, &mut Dice::of(seed, case), &own)));
        fs::remove_dir_all(&own).expect("a folder can be removed");
        if let Err(why) = outcome {
            let why = why.downcast_ref::<String>().cloned().or_else(|| why.downcast_ref::<&str>().map(std::string::ToString::to_string));
            writeln!(panicked, "{case} {}", why.unwrap_or_default().replace('\n', " ")).expect("notes can be written");
        }
    }
    fs::write(notes, to.to_string()).expect("notes can be written");
}

/// One case. Only panics count: what is refused is refused in a sentence, which must be one line without a terminal's orders.
fn read(case: u64, dice: &mut Dice, folder: &Path) {
    let ranks = 1 + dice.below(16);
    let (_, target) = TARGETS[case as usize % TARGETS.len()];
    if let Some(said) = target(dice, folder, ranks) {
        assert!(!said.is_empty() && !said.contains(char::is_control), "this is no sentence: {said:?}");
    }
}

/// The sentence with which an input was refused, if it was.
pub type Said = Option<String>;

fn numbers(dice: &mut Dice, folder: &Path, ranks: u32) -> Said {
    let path = texts::written(dice, folder, Format::Numbers, ranks as usize);
    let at = format!("@{}", names::text(path.as_os_str()));
    let read = match dice.below(3) {
        0 => LoadPattern::parse(&at).and_then(|pattern| pattern.draw(ranks, ranks, 1)).map(|_| ()),
        1 => PowerPattern::parse(&at).and_then(|pattern| pattern.draw(ranks, ranks, 1)).map(|_| ()),
        _ => WeightPattern::parse(&at).and_then(|pattern| pattern.draw(u64::from(ranks), 1)).map(|_| ()),
    };
    read.err().map(|why| why.to_string())
}

fn measured(dice: &mut Dice, folder: &Path, ranks: u32) -> Said {
    let source = options::tasks(dice, folder, ranks as usize);
    let run = match TaskSource::parse(&source).and_then(|source| source.measured()) {
        Ok(Some(run)) => run,
        Ok(None) => return None,
        Err(why) => return Some(why.to_string()),
    };
    let amounts = run.amounts(ranks).map_err(|why| why.to_string());
    let held: u64 = run.bytes_by_rank(ranks).iter().fold(0, |sum, bytes| sum.saturating_add(*bytes));
    assert_eq!(held, run.bytes(), "bytes by node");
    match amounts {
        Ok(amounts) => assert_eq!(amounts.work.iter().sum::<u64>(), run.tasks.iter().map(|task| task.work).sum::<u64>()),
        Err(why) => return Some(why),
    }
    assert!(run.seconds_per_unit.is_none_or(|seconds| seconds > 0.0 && seconds.is_finite()));
    None
}

fn graph(dice: &mut Dice, ranks: usize) -> Said {
    let format = *dice.one(&[Format::EdgeList, Format::Metis, Format::MatrixMarket]);
    let text = texts::text(dice, format, ranks).into_bytes();
    let text = if dice.percent(50) { dice.mistaken(&text) } else { text };
    match Topology::graph("net", &String::from_utf8_lossy(&text)) {
        Ok(topology) => {
            let again = Topology::try_from(String::from(topology.clone())).expect("a graph reads back");
            assert_eq!(again, topology);
            None
        }
        Err(why) => Some(equipoise::Error::from(why).to_string()),
    }
}

/// A measured network: what is read is written and read again, for any number of ranks.
fn network_file(dice: &mut Dice, ranks: usize) -> Said {
    let mut text = String::new();
    for rank in 0..ranks {
        text.push_str(&format!("[[host]]\nname = \"h{rank}\"\nranks = [{rank}]\nspeeds = [{}]\n", dice.one(&["1.0", "0.25", "1e3"])));
    }
    for link in ["[within]", "[between]"] {
        let (latency, per_byte) = (dice.one(&["0ns", "20us", "1.5ms"]), dice.one(&["1ps", "2.7ns", "0ns"]));
        text.push_str(&format!("{link}\nlatency = \"{latency}\"\nper_byte = \"{per_byte}\"\nerror = 0.1\n"));
    }
    let text = if dice.percent(70) { dice.mistaken(text.as_bytes()) } else { text.into_bytes() };
    let measured = match network::parse("net.toml", &String::from_utf8_lossy(&text)) {
        Ok(measured) => measured,
        Err(why) => return Some(why.to_string()),
    };
    let again = network::parse("net.toml", &network::write(&measured)).expect("what was written is read");
    assert_eq!((&again.hosts, &again.speeds, again.between.is_some()), (&measured.hosts, &measured.speeds, measured.between.is_some()));
    measured.on(1 + dice.below(40) as u32).err().map(|why| why.to_string())
}

fn problem(dice: &mut Dice, folder: &Path, ranks: u32) -> Said {
    let spec = options::independent_file(dice, folder, ranks as usize);
    let setting = independent::Setting { seed: 1, ranks, is_simulated: true };
    match independent::find(&spec) {
        Ok(Some(chosen)) => chosen.problem(&setting).err().map(|why| why.to_string()),
        Ok(None) => None,
        Err(why) => Some(why.to_string()),
    }
}

/// A recorded series: all steps have the same ranks, and the times are numbers.
fn series_file(dice: &mut Dice, folder: &Path, ranks: usize) -> Said {
    let path = texts::written(dice, folder, Format::Series, ranks);
    match series::read(&names::text(path.as_os_str())) {
        Ok(steps) => {
            let first = steps.work[0].len();
            assert!(first > 0 && steps.work.iter().all(|step| step.len() == first) && steps.numbers.len() == steps.work.len());
            assert!(steps.work.iter().flatten().all(|time| time.is_finite() && *time >= 0.0));
            None
        }
        Err(why) => Some(why.to_string()),
    }
}

/// Communication between as many tasks as there are ranks: what is read joins tasks that exist.
fn links_file(dice: &mut Dice, folder: &Path, ranks: usize) -> Said {
    let (path, tasks) = (texts::written(dice, folder, Format::Links, ranks), ranks as u64);
    match links::read(&path, tasks) {
        Ok(links) => {
            assert!(links.iter().all(|link| link.ends.0 < tasks && link.ends.1 < tasks && link.bytes.is_finite() && link.bytes >= 0.0));
            None
        }
        Err(why) => Some(why.to_string()),
    }
}

/// A partition: each part is a rank.
fn partition(dice: &mut Dice, ranks: u32) -> Said {
    let text = texts::text(dice, Format::Partition, ranks as usize).into_bytes();
    let text = if dice.percent(50) { dice.mistaken(&text) } else { text };
    match balance::read_partition(&String::from_utf8_lossy(&text), ranks) {
        Ok(parts) => {
            assert!(parts.iter().all(|part| part.index() < ranks as usize));
            None
        }
        Err(why) => Some(equipoise::Error::usage(why).to_string()),
    }
}

/// A figure of one's own.
fn figure(dice: &mut Dice, folder: &Path) -> Said {
    let text = texts::text(dice, Format::Figure, 8).into_bytes();
    let text = if dice.percent(60) { dice.mistaken(&text) } else { text };
    // A topology of a billion nodes is right, and takes its memory.
    let has_two_digits = |size: &str| size.trim_start_matches('+').bytes().take_while(u8::is_ascii_digit).count() > 1;
    if String::from_utf8_lossy(&text).split("hypercube:").skip(1).any(has_two_digits) {
        return None;
    }
    let path = folder.join("figure.toml");
    fs::write(&path, text).expect("a file can be written");
    own::read(&path).err().map(|why| why.to_string())
}

fn specifications(dice: &mut Dice, folder: &Path, ranks: usize) -> Said {
    let which = dice.below(8);
    let mut spec = match which {
        0 => options::topology(dice, folder, ranks),
        1 => options::loads(dice, folder, ranks),
        2 => options::powers(dice, folder, ranks),
        3 => options::balancer(dice),
        4 => options::scheduler(dice),
        5 => options::network(dice),
        6 => options::weights(dice, folder, ranks),
        _ => options::spawning(dice),
    };
    if dice.percent(50) {
        spec = String::from_utf8_lossy(&dice.mistaken(spec.as_bytes())).into_owned();
    }
    match which {
        0 if Topology::graph_file(&spec).is_some() => None,
        // Sizes of any kind are right, and a tree of a billion nodes takes its memory.
        0 => Topology::parse(&spec, ranks as u32).err().map(|why| equipoise::Error::from(why).to_string()),
        1 => LoadPattern::parse(&spec).and_then(|pattern| pattern.draw(8, 8, 1)).err().map(|why| why.to_string()),
        2 => PowerPattern::parse(&spec).and_then(|pattern| pattern.draw(8, 8, 1)).err().map(|why| why.to_string()),
        3 => balance::find(&spec).err().map(|why| why.to_string()),
        4 => schedule::find(&spec).err().map(|why| why.to_string()),
        5 => Network::parse(&spec).err().map(|why| why.to_string()),
        6 => WeightPattern::parse(&spec).err().or(Pins::parse(&spec, 1).err()).map(|why| why.to_string()),
        _ => graphs::find(&spec).err().map(|why| why.to_string()),
    }
}
