//! A fuzzer over every reader and every option: random files and command lines, right ones and ones with mistakes. None may panic, abort,
//! hang for more than ten seconds, or end with status 0 and no number for an answer; wrong usage is told in one line.
//!
//! `cargo test` plays a few hundred runs; `scripts/fuzz` plays as many as are asked for on a build with all checks. A run is made by the
//! seed and its number alone: `--only N` repeats it. `--target NAME --seconds N` plays one target for that time.
//!
//! A run that failed is kept as a line `SEED RUN` in `seeds/failed`, which belongs into the repository: every later run of `cargo test` plays
//! it again first.

mod bytes;
mod commands;
mod dice;
mod farms;
mod options;
mod readers;
mod texts;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dice::Dice;

/// Cases of readers that one process plays.
const TOGETHER: u64 = 250;

#[derive(Clone)]
struct Plan {
    /// Only says what targets there are.
    targets: bool,
    runs: u64,
    seed: u64,
    only: Option<u64>,
    workers: u64,
    /// The only target to play.
    target: Option<Target>,
    /// Plays for this long instead of a number of runs.
    seconds: Option<u64>,
    /// Folder in which failing cases are kept.
    keep: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Commands,
    /// One of the readers' targets, by its place there.
    Reader(u64),
}

impl Target {
    fn named(name: &str) -> Option<Target> {
        if name == "commands" {
            return Some(Target::Commands);
        }
        readers::TARGETS.iter().position(|(known, _)| *known == name).map(|at| Target::Reader(at as u64))
    }
}

/// The runs that failed once.
const FAILED: &str = "tests/fuzz/seeds/failed";

fn main() -> ExitCode {
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).expect("the project's root");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, seed, from, to, step, folder, notes] = arguments.as_slice()
        && word == "--readers"
    {
        let number = |text: &String| text.parse().expect("a number");
        readers::play(number(seed), number(from), number(to), number(step) as usize, Path::new(folder), Path::new(notes));
        return ExitCode::SUCCESS;
    }
    let plan = match Plan::of(&arguments) {
        Ok(Some(plan)) => plan,
        // Cargo's own words for a test program: nothing here has a name.
        Ok(None) => return ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("fuzz: {why}");
            return ExitCode::from(2);
        }
    };
    if plan.targets {
        println!("commands");
        readers::TARGETS.iter().for_each(|(name, _)| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    let mut again = Vec::new();
    if plan.only.is_none() {
        for (seed, run) in failed_once() {
            println!("fuzz: run {run} of seed {seed} again, which failed once");
            let plan = Plan { seed, only: Some(run), ..plan.clone() };
            again.extend(play(&plan).0);
        }
    }
    let (mut failures, ends) = play(&plan);
    keep_seeds(plan.seed, &failures);
    failures.splice(0..0, again);
    for (run, why) in &failures {
        println!("run {run}: {why}");
    }
    let ends: Vec<String> = ends.iter().map(|(status, count)| format!("{count} with {status}")).collect();
    println!("fuzz: command lines ended {}", ends.join(", "));
    let played = match (plan.only, plan.seconds) {
        (Some(_), _) => "1 run".to_string(),
        (None, Some(seconds)) => format!("{seconds} s of runs"),
        (None, None) => format!("{} runs", plan.runs),
    };
    println!("fuzz: {played} with seed {}, {} failed", plan.seed, failures.len());
    if failures.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("fuzz: what failed is in {}; scripts/fuzz --seed {} --only RUN repeats one", plan.keep.display(), plan.seed);
    ExitCode::FAILURE
}

impl Plan {
    fn of(arguments: &[String]) -> Result<Option<Plan>, String> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let keep = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
        let mut plan = Plan { targets: false, runs: 400, seed: 1, only: None, workers: cores, target: None, seconds: None, keep };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut number =
                || words.next().and_then(|value| value.parse::<u64>().ok()).ok_or_else(|| format!("{word} takes a whole number"));
            match word.as_str() {
                "--runs" => plan.runs = number()?,
                "--seed" => plan.seed = number()?,
                "--only" => plan.only = Some(number()?),
                "--seconds" => plan.seconds = Some(number()?),
                "--targets" => plan.targets = true,
                "--target" => {
                    let name = words.next().map_or("", String::as_str);
                    plan.target = Some(Target::named(name).ok_or_else(|| format!("there is no target '{name}'; --targets lists them"))?);
                }
                "--workers" => plan.workers = number()?.max(1),
                "--nocapture" | "--no-capture" | "--show-output" | "-q" | "--quiet" => {}
                // A name to filter by, or a list: `cargo test NAME` runs the tests that have it.
                "--list" => return Ok(None),
                name if !name.starts_with('-') && !"fuzz".contains(name) => return Ok(None),
                name if !name.starts_with('-') => {}
                other => {
                    return Err(format!(
                        "{other} is unknown; known are --runs, --seed, --only, --target, --targets, --seconds and --workers"
                    ));
                }
            }
        }
        if plan.seconds.is_some() && plan.target.is_none() {
            return Err("--seconds needs a --target".into());
        }
        Ok(Some(plan))
    }

    /// How many command lines and how many cases of readers may be played.
    fn most(&self) -> (u64, u64) {
        let (lines, cases) = match self.seconds {
            Some(_) => (u64::MAX / 4, u64::MAX / 4),
            // Run 2i is command line i, run 2i + 1 is reader's case i.
            None => (self.runs.div_ceil(2), self.runs / 2),
        };
        match self.target {
            None => (lines, cases),
            Some(Target::Commands) => (lines, 0),
            Some(Target::Reader(_)) => (0, cases),
        }
    }
}

/// Seed and run of each line that is kept.
fn failed_once() -> Vec<(u64, u64)> {
    let text = fs::read_to_string(FAILED).unwrap_or_default();
    let pair = |line: &str| {
        let mut words = line.split_whitespace().map(str::parse);
        match (words.next(), words.next()) {
            (Some(Ok(seed)), Some(Ok(run))) => (seed, run),
            _ => panic!("{FAILED}: '{line}' is no seed and run"),
        }
    };
    text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).map(pair).collect()
}

/// Adds what failed to the lines that are kept.
fn keep_seeds(seed: u64, failures: &[(u64, String)]) {
    let known = failed_once();
    let mut text = fs::read_to_string(FAILED).unwrap_or_default();
    // One mistake makes many runs fail.
    for (run, why) in failures.iter().filter(|(run, _)| !known.contains(&(seed, *run))).take(10) {
        text += &format!("{seed} {run}  {}\n", why.lines().next().unwrap_or_default());
    }
    if !failures.is_empty() {
        fs::write(FAILED, text).expect("a failing seed can be kept");
    }
}

/// Exit statuses of the command lines, and their counts.
type Ends = BTreeMap<i32, u64>;

/// Every other run is a command line, the rest are readers'; returns those that failed, and how all ended.
fn play(plan: &Plan) -> (Vec<(u64, String)>, Ends) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    // Another build may be named, as the scripts take it.
    let program = std::env::var_os("EQUIPOISE_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_equipoise").into());
    let program = Path::new(&program);
    let grammar = commands::grammar(program);
    let (failures, ends) = (Mutex::new(Vec::new()), Mutex::new(Ends::new()));
    let ended = |status: i32| *ends.lock().expect("no worker panics").entry(status).or_default() += 1;
    let fail = |run: u64, why: String| {
        println!("fuzz: run {run}: {why}");
        failures.lock().expect("no worker panics").push((run, why));
    };
    if let Some(run) = plan.only {
        match run % 2 {
            0 => ended(play_command(plan, run, program, &grammar, folder.path(), &fail)),
            _ => play_readers(plan, run / 2, run / 2 + 1, 1, folder.path(), &fail),
        }
        return (failures.into_inner().expect("no worker panics"), ends.into_inner().expect("no worker panics"));
    }
    let (lines, cases) = plan.most();
    let until = plan.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let over = || until.is_some_and(|until| Instant::now() >= until);
    // The cases of one target are that many apart.
    let (first, step) = match plan.target {
        Some(Target::Reader(at)) => (at, readers::TARGETS.len() as u64),
        _ => (0, 1),
    };
    let (next_line, next_case) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for worker in 0..plan.workers {
            let over = &over;
            let (own, grammar, fail, ended) = (folder.path().join(format!("worker-{worker}")), &grammar, &fail, &ended);
            let (next_line, next_case) = (&next_line, &next_case);
            fs::create_dir_all(&own).expect("a folder can be made");
            scope.spawn(move || {
                loop {
                    let from = next_case.fetch_add(TOGETHER * step, Ordering::Relaxed);
                    if from >= cases || over() {
                        break;
                    }
                    play_readers(plan, first + from, (from + TOGETHER * step).min(cases), step, &own, fail);
                }
                loop {
                    let line = next_line.fetch_add(1, Ordering::Relaxed);
                    if line >= lines || over() {
                        break;
                    }
                    if line.is_multiple_of(1000) && line > 0 {
                        println!("fuzz: {line} of {lines} command lines");
                    }
                    ended(play_command(plan, 2 * line, program, grammar, &own, fail));
                }
            });
        }
    });
    let mut failures = failures.into_inner().expect("no worker panics");
    failures.sort();
    (failures, ends.into_inner().expect("no worker panics"))
}

/// Returns the exit status, -1 where there is none.
fn play_command(plan: &Plan, run: u64, program: &Path, grammar: &commands::Grammar, folder: &Path, fail: &impl Fn(u64, String)) -> i32 {
    let own = folder.join(format!("run-{run}"));
    fs::create_dir_all(&own).expect("a folder can be made");
    let line = commands::line(&mut Dice::of(plan.seed, run), grammar, &own);
    let outcome = commands::run(program, &line, &own);
    if let Some(why) = commands::fault(&line, &outcome) {
        let shown: Vec<String> = line.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
        fs::write(own.join("command"), format!("{}\n", shown.join(" "))).expect("a file can be written");
        keep(&own, &plan.keep.join(format!("seed-{}-run-{run}", plan.seed)));
        fail(run, format!("{why}\n    equipoise {}", shown.join(" ")));
    }
    // A folder with a file that is still written to may be asked twice.
    let _ = fs::remove_dir_all(&own);
    outcome.status.code().unwrap_or(-1)
}

/// Plays cases of readers in processes of their own; after one that ends badly the next goes on behind its case.
fn play_readers(plan: &Plan, from: u64, to: u64, step: u64, folder: &Path, fail: &impl Fn(u64, String)) {
    let this = std::env::current_exe().expect("this program has a name");
    let notes = folder.join("notes");
    let mut from = from;
    while from < to {
        // A case may use ten seconds; so few together that all of them may, is not needed.
        let arguments = ["--readers".to_string(), plan.seed.to_string(), from.to_string(), to.to_string(), step.to_string()];
        let places = [folder, &notes].map(|path| path.display().to_string());
        let outcome = commands::run(&this, &[&arguments[..], &places[..]].concat(), folder);
        let at: u64 = fs::read_to_string(&notes).ok().and_then(|at| at.trim().parse().ok()).unwrap_or(from);
        for line in fs::read_to_string(notes.with_extension("panicked")).unwrap_or_default().lines() {
            let (case, why) = line.split_once(' ').unwrap_or((line, ""));
            let run = 2 * case.parse::<u64>().unwrap_or(from) + 1;
            fail(run, format!("a reader panics: {why}"));
        }
        if outcome.status.success() {
            return;
        }
        // What used up the time of all together may do so alone, or not.
        if at > from && outcome.late {
            from = at;
            continue;
        }
        fail(2 * at + 1, format!("a reader ends its process with {}: {}", outcome.status, String::from_utf8_lossy(&outcome.stderr)));
        from = at + step;
    }
}

/// Keeps a failing case's files.
fn keep(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).into_iter().flatten().flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => keep(&path, &target),
            false => drop(fs::copy(&path, target)),
        }
    }
}
