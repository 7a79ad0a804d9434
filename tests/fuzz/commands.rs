//! Whole command lines, each a process of its own under limits, and what is wrong with what came of it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::dice::Dice;
use crate::options;

/// Bytes of address space; seconds of processor time, seconds in which it has nothing to do, and seconds altogether (the machine may be busy).
pub const ADDRESS_SPACE: u64 = 6 << 30;
pub const PROCESSOR_SECONDS: u64 = 10;
const IDLE_SECONDS: u64 = 10;
const SECONDS: u64 = 60;

/// An option, as the help shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionOf {
    pub long: String,
    /// Placeholder of its value in the help; `None` if it takes none.
    pub value: Option<String>,
}

/// Commands and their options, from the program's own help: what is added to the program is tried without being listed here.
pub type Grammar = BTreeMap<String, Vec<OptionOf>>;

pub fn grammar(program: &Path) -> Grammar {
    let help = |arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().expect("the program can be started");
        String::from_utf8(output.stdout).expect("help is text")
    };
    let main = help(&["--help"]);
    let listed = main.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("the help lists commands");
    let name = |line: &str| {
        line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')).and_then(|rest| rest.split(' ').next().map(String::from))
    };
    let commands = listed.lines().filter_map(name).filter(|name| name != "help");
    let grammar: Grammar = commands.map(|command| (command.clone(), options_in(&help(&[&command, "--help"])))).collect();
    assert!(grammar.len() >= 6 && grammar.values().all(|options| options.len() >= 3), "the help has changed its form: {grammar:?}");
    grammar
}

fn options_in(help: &str) -> Vec<OptionOf> {
    let option = |line: &str| {
        let (_, rest) = line.trim_start().strip_prefix('-').filter(|_| line.starts_with("  "))?.split_once('-')?;
        let rest = rest.trim_start_matches('-');
        let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '-' && !c.is_ascii_digit()).unwrap_or(rest.len());
        let value = rest.split_once('<').and_then(|(_, value)| value.split('>').next()).map(String::from);
        (!rest[..end].is_empty() && !["help", "version"].contains(&&rest[..end])).then(|| OptionOf { long: rest[..end].to_string(), value })
    };
    help.lines().filter_map(option).collect()
}

/// A command line, with its files in the folder.
pub fn line(dice: &mut Dice, grammar: &Grammar, folder: &Path) -> Vec<String> {
    let often = ["balance", "compare", "run", "run", "divide", "divide"];
    let all: Vec<&String> = grammar.keys().collect();
    let command = if dice.percent(70) { dice.one(&often).to_string() } else { (*dice.one(&all)).clone() };
    let known = &grammar[&command];
    let most_ranks = if dice.percent(80) { 9 } else { 33 };
    let ranks = 1 + dice.below(most_ranks);
    let mut line = vec![command.clone()];
    // So that most have something to do.
    let model = dice.percent(40);
    let wanted: &[&str] = match command.as_str() {
        "balance" | "compare" | "run" => &["sim"],
        "divide" if model => &["model", "topology"],
        "divide" => &["sim", "input", "kernel"],
        // Without a figure it takes minutes.
        "reproduce" => &["figure", "cases"],
        // A build without optimisation takes a second for a few rounds of a few ranks.
        "probe" => &["sim", "repeat"],
        "advise" => &["sim"],
        "when" => &["series", "cost"],
        _ => &[],
    };
    let chance = 4 + dice.below(20) as u32;
    // `divide` is two commands; most lines keep to one.
    let foreign: &[&str] = match command.as_str() {
        "divide" if model => &[
            "sim",
            "network",
            "sim-hosts",
            "input",
            "kernel",
            "command",
            "print",
            "to",
            "reduce",
            "ok-status",
            "records",
            "calibration",
            "baselines",
            "rate",
            "memory",
            "report",
            "trace",
        ],
        "divide" => &[
            "model",
            "w",
            "z",
            "tcp",
            "tcm",
            "startup",
            "load",
            "ports",
            "return",
            "source",
            "source-idle",
            "links",
            "startups",
            "curves",
            "command",
            "reduce",
            "ok-status",
            "print",
        ],
        // Loads with all that goes with them, or tasks.
        "balance" if model => &["loads", "payload", "weights", "pinned"],
        "balance" => &["tasks"],
        "run" => &["topology", "host", "medians"],
        // Waits for ever, as asked.
        "farm" => &["follow"],
        _ => &[],
    };
    let mixes = dice.percent(15);
    for option in known {
        if !mixes && foreign.contains(&option.long.as_str()) {
            continue;
        }
        let mut times = usize::from(wanted.contains(&option.long.as_str()) || dice.percent(chance));
        times += usize::from(times == 1 && dice.percent(2));
        for _ in 0..times {
            line.push(format!("--{}", option.long));
            if let Some(name) = &option.value {
                line.push(options::value(dice, &command, &option.long, name, folder, ranks));
            }
        }
    }
    // The work of a run is small only where it was drawn; the defaults are for real ranks.
    if command == "run" && !line.contains(&"--workload".to_string()) {
        line.extend(["--workload".to_string(), options::spawning(dice)]);
    }
    if command == "farm" {
        let farmed = options::farmed(dice, folder, &line);
        line.extend(farmed);
    }
    if dice.percent(6) {
        mistake(dice, &mut line);
    }
    line
}

/// Changes one word; never one that is a program, or a file to be written.
fn mistake(dice: &mut Dice, line: &mut [String]) {
    let at = dice.below(line.len());
    let before = at.checked_sub(1).map(|before| line[before].clone()).unwrap_or_default();
    if !["--loads", "--powers", "--weights", "--tasks", "--topology", "--scheduler", "--balancer", "--network", "--seed"]
        .contains(&before.as_str())
    {
        return;
    }
    line[at] = String::from_utf8_lossy(&dice.mistaken(line[at].as_bytes())).replace('\0', "");
}

/// Result of a process.
pub struct Outcome {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// Whether it had to be ended.
    pub late: bool,
}

/// Runs a program under the limits.
pub fn run(program: &Path, arguments: &[String], folder: &Path) -> Outcome {
    let (out, err) = (folder.join("stdout"), folder.join("stderr"));
    let create = |path: &Path| Stdio::from(File::create(path).expect("a file can be made"));
    let limits = format!("ulimit -v {}; ulimit -t {PROCESSOR_SECONDS}; exec \"$0\" \"$@\"", ADDRESS_SPACE / 1024);
    let mut child = Command::new("sh")
        .args(["-c", &limits])
        .arg(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(create(&out))
        .stderr(create(&err))
        .spawn()
        .expect("a shell can be started");
    let begun = Instant::now();
    let mut late = false;
    let status = loop {
        match child.try_wait().expect("a child can be waited for") {
            Some(status) => break status,
            None if !late && is_late(begun.elapsed(), child.id()) => {
                late = true;
                child.kill().expect("a child can be ended");
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let read = |path: &Path| fs::read(path).unwrap_or_default();
    // The kernel ends what has used up its processor time.
    let late = late || matches!(status.signal(), Some(9 | 24));
    Outcome { status, stdout: read(&out), stderr: read(&err), late }
}

/// Returns true if a process has run for too long, or has waited for too long for something other than a processor.
fn is_late(elapsed: Duration, process: u32) -> bool {
    elapsed > Duration::from_secs(SECONDS)
        || (elapsed > Duration::from_secs(IDLE_SECONDS) && elapsed.saturating_sub(busy(process)) > Duration::from_secs(IDLE_SECONDS))
}

/// Time that the threads of a process had a processor, or waited for one.
fn busy(process: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let of_thread = |text: String| text.split_whitespace().take(2).filter_map(|ns| ns.parse::<u64>().ok()).sum::<u64>();
    let times = threads.filter_map(|thread| fs::read_to_string(thread.path().join("schedstat")).ok()).map(of_thread);
    Duration::from_nanos(times.sum())
}

/// The mistake in an outcome, if there is one.
pub fn fault(line: &[String], outcome: &Outcome) -> Option<String> {
    let said = String::from_utf8_lossy(&outcome.stderr);
    if outcome.late {
        return Some(format!("it hangs: more than {PROCESSOR_SECONDS} s of processor time or of waiting, or {SECONDS} s altogether"));
    }
    if said.contains("panicked at") || outcome.status.code() == Some(101) {
        return Some(format!("it panics: {}", said.lines().find(|line| line.contains("panicked")).unwrap_or_default()));
    }
    let runs_commands = line.iter().any(|word| word == "--ok-status" || word == "--command");
    match outcome.status.code() {
        Some(0..=3) => {}
        // Work is left, as after a --setup that fails.
        Some(4) if line[0] == "farm" => {}
        Some(_) if runs_commands => {}
        _ => return Some(format!("it ends with {}", outcome.status)),
    }
    if said.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
        return Some("orders to the terminal are in what it says".into());
    }
    // A list that is followed may turn out wrong late, after its first commands have said something.
    let is_read_late = line[0] == "farm" && line.iter().any(|word| word == "--follow");
    if outcome.status.code() == Some(2) && said.lines().count() != 1 && line.len() > 1 && !is_read_late {
        return Some(format!("wrong usage is told in {} lines", said.lines().count()));
    }
    if outcome.status.code() == Some(0) {
        return wrong_answer(line, &String::from_utf8_lossy(&outcome.stdout), &said);
    }
    None
}

fn wrong_answer(line: &[String], stdout: &str, stderr: &str) -> Option<String> {
    // What a kernel finds in its input is not ours to judge.
    let of_input = line.iter().any(|word| word == "--input");
    // An imbalance may be infinite: a rank without power has work.
    let has_nan = |text: &str| text.split(|c: char| !c.is_alphanumeric()).any(|word| word.eq_ignore_ascii_case("nan"));
    let report = if of_input { stderr.to_string() } else { stdout.to_string() + stderr };
    // Names that were given are shown again.
    if has_nan(&report) && !line.iter().any(|word| has_nan(word)) {
        return Some("NaN stands in a result with status 0".into());
    }
    let wants_json = line.windows(2).any(|pair| pair[0] == "--output" && pair[1] == "json");
    if wants_json && !of_input && line[0] != "list" {
        let wrong = stdout.lines().find(|line| serde_json::from_str::<serde_json::Value>(line).is_err());
        return wrong.map(|line| format!("this is no JSON: {line}"));
    }
    None
}
