//! One input divided over real ranks: the answers are those of the standard tools, wherever it is cut; unequal ranks finish together; what
//! goes wrong is told.

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use equipoise::topology::{Overlay, RankId, Topology};
use equipoise::transport::mpi;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_lab::divisible::spread::Records;
use equipoise_lab::experiment::spread::{Answer, Distribution, SpreadOutcome, SpreadRecord, SpreadSpec, spread};
use equipoise_lab::workload::kernels::{Computation, OkStatus, Reduce};
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rustix::process::Signal;
use tempfile::TempPath;

use crate::contract::Case;
use crate::faults::send_to_self;
use crate::files::file;
use crate::launch::{self, Book, Suite};

pub fn enter(book: &mut Book) {
    let cases = || {
        vec![
            Case { name: "odd texts", check: odd_texts },
            Case { name: "a text of two megabytes", check: |world| text(world, 2 << 20) },
            Case { name: "programs", check: programs },
            Case { name: "failures", check: failures },
        ]
    };
    let options = mpi::Options::program().with_watchdog(mpi::Watch::Always(Duration::from_secs(60)));
    book.suite(Suite {
        name: "divide",
        ranks: &[1, 2, 3, 5, 8],
        more: &[4, 7, 16],
        limit: Duration::from_secs(150),
        options,
        cases: cases(),
    });
    book.job(
        "64 megabytes divided over 4 ranks",
        4,
        || within(|world| text(world, 64 << 20)),
        |outcome| outcome.expect(0, Duration::MAX, &[]),
    );
    book.job("8 unequal ranks finish together", 8, || within(unequal), |outcome| outcome.expect(0, Duration::MAX, &[]));
    book.job(
        "a program that stands still ends the job",
        2,
        || within(|world| stands_still(world, "if [ $(wc -c) -gt 1100000 ]; then sleep 1000; fi", false)),
        |outcome| outcome.expect(3, Duration::from_secs(30), &[("no progress: --command", 1), ("so it was killed; there is no answer", 1)]),
    );
    book.job(
        "a program that stands still on a sample ends the job",
        2,
        || within(|world| stands_still(world, "sleep 1000", true)),
        |outcome| outcome.expect(3, Duration::from_secs(30), &[("' on a sample of the input (node 0): for 1 s (--timeout)", 1)]),
    );
    book.job(
        "programs are gone after a rank was killed",
        3,
        || within(|world| dies(world, "killed", || send_to_self(Signal::KILL))),
        |outcome| left_nothing(outcome, "killed", None),
    );
    book.job(
        "programs are gone after a rank has panicked",
        3,
        || within(|world| dies(world, "panicked", || panic!("this rank has had enough"))),
        |outcome| left_nothing(outcome, "panicked", Some(101)),
    );
    book.job(
        "an input that shrinks while it is divided ends the job",
        3,
        || within(shrinking),
        |outcome| outcome.expect(1, Duration::from_secs(30), &[("the file was cut from", 1)]),
    );
}

pub fn within(check: fn(&mut World) -> Result<()>) {
    let world = mpi::World::init(mpi::Options::program()).unwrap_or_else(|why| panic!("{why}"));
    let mut world = World::from(world);
    if let Err(why) = check(&mut world) {
        // All ranks agreed on it. Nobody goes before it is said: the end of the world waits for all.
        if world.is_first() {
            eprintln!("equipoise: {why}");
        }
        drop(world);
        std::process::exit(why.exit_status());
    }
}

/// A file on the host of rank 0 that goes away with the value. On other ranks there is none of this name.
pub fn input(world: &World, text: &[u8]) -> TempPath {
    let file = file(text);
    if !world.is_first() {
        std::fs::remove_file(&file).expect("a temporary file can be removed");
    }
    file
}

pub fn spec(world: &World, input: &Path, computation: Computation) -> Result<SpreadSpec> {
    let overlay = Overlay::new(Topology::parse("hypercube", world.ranks())?, world.hosts())?;
    Ok(SpreadSpec {
        input: input.into(),
        raw: false,
        computation,
        reduce: Reduce::Concat,
        records: Records::Lines,
        overlay,
        distribution: Distribution::Tree,
        origin: RankId::FIRST,
        link: None,
        installments: None,
        calibration: None,
        pace: None,
        room: 1 << 20,
        patience: std::time::Duration::from_secs(60),
        baselines: false,
        sample: false,
        seed: 1,
    })
}

/// Divides; the outcome and what was written come on the first rank.
pub fn divided(world: &mut World, spec: &SpreadSpec) -> Result<Option<(SpreadOutcome, Vec<u8>)>> {
    let output = Rc::new(RefCell::new(Vec::new()));
    let sink = output.clone();
    let outcome = spread(
        world,
        spec,
        Box::new(move |bytes| {
            sink.borrow_mut().extend_from_slice(bytes);
            Ok(())
        }),
        Arc::new(|_, _| {}),
    )?;
    Ok(outcome.map(|outcome| (outcome, output.take())))
}

/// Output of a standard tool.
fn tool(script: &str, input: &Path) -> Vec<u8> {
    let file = std::fs::File::open(input).expect("the input is there");
    let output = Command::new("sh").args(["-c", script]).env("LC_ALL", "C").stdin(file).output().expect("there is a shell");
    output.stdout
}

fn numbers(text: &[u8]) -> Vec<u64> {
    String::from_utf8_lossy(text).split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, ours: T, theirs: T) -> Result<()> {
    if ours == theirs { Ok(()) } else { Err(Error::Failed(format!("{what}: {ours:?} instead of {theirs:?}"))) }
}

/// Later versions of wc than 9.1 see words in bytes that are not printable.
fn wc_sees_words_of_bytes(input: &Path) -> bool {
    let odd = Command::new("sh").args(["-c", "printf '\\001' | wc -w"]).env("LC_ALL", "C").output();
    odd.is_ok_and(|output| numbers(&output.stdout) == [1]) && std::fs::read(input).is_ok_and(|text| !text.is_ascii())
}

/// Compares a kernel with its tool.
pub fn check(world: &mut World, input: &Path, kernel: &str, change: impl Fn(&mut SpreadSpec)) -> Result<()> {
    let mut spec = spec(world, input, Computation::parse(kernel, false)?)?;
    change(&mut spec);
    let Some((outcome, _)) = divided(world, &spec)? else { return Ok(()) };
    let length = std::fs::metadata(input).map_or(0, |about| about.len());
    same("bytes in shares", outcome.record.shares.iter().sum(), length)?;
    match outcome.answer {
        Answer::Counts(counts) => {
            let theirs = numbers(&tool("wc", input));
            let words = if wc_sees_words_of_bytes(input) { theirs[1] } else { counts.words };
            same("wc", vec![counts.lines, words, counts.bytes], theirs)
        }
        Answer::Found(found) => {
            let pattern = kernel.trim_start_matches("grep=");
            same(kernel, vec![found], numbers(&tool(&format!("grep -a -c -E '{pattern}'"), input)))
        }
        Answer::Records(counts) => {
            let ours: Vec<u8> = counts.iter().flat_map(|(line, count)| [format!("{count:7} ").as_bytes(), line, b"\n"].concat()).collect();
            same("sort | uniq -c", String::from_utf8_lossy(&ours), String::from_utf8_lossy(&tool("sort | uniq -c", input)))
        }
        Answer::Bytes(counts) => {
            let mut theirs = vec![0; 256];
            std::fs::read(input).unwrap_or_default().into_iter().for_each(|byte| theirs[byte as usize] += 1);
            same("bytes", counts.to_vec(), theirs)
        }
        Answer::Checksum(hash) => same("BLAKE3", hash, blake3::hash(&std::fs::read(input).unwrap_or_default()).to_hex().to_string()),
        Answer::Written { .. } => Ok(()),
    }
}

fn odd_texts(world: &mut World) -> Result<()> {
    let long = [vec![b'a'; 150_000], b"\nerror\n".to_vec(), vec![b'b'; 70_000], b" error\n\n".to_vec(), vec![b'c'; 1000]].concat();
    let texts: [&[u8]; 7] = [
        b"",
        b"one line without an end, with an error",
        b"\n",
        &long,
        b"error \xff\xfe\r\n\xc3\x28 word\r\nlast\r\n",
        b"a\0error\0b\nc d\0\n\0\n x",
        &b"1\n2\n2\n10\n010\n\n".repeat(500),
    ];
    for (index, text) in texts.into_iter().enumerate() {
        let input = input(world, text);
        // Many ranks take long for each division.
        let kernels: &[&str] =
            if world.ranks() > 8 { &["count", "histogram=numbers"] } else { &["count", "grep=error", "histogram=numbers"] };
        for kernel in kernels {
            check(world, &input, kernel, |_| {}).map_err(|why| Error::Failed(format!("text {index}: {why}")))?;
        }
    }
    for (kernel, topology) in [("checksum", "line"), ("histogram", "tree:binary"), ("grep=^[^a]+r+$|^$", "complete")] {
        let input = input(world, texts[3]);
        let topology = Topology::parse(topology, world.ranks())?;
        let overlay = Overlay::new(topology, world.hosts())?;
        check(world, &input, kernel, |spec| (spec.overlay, spec.installments) = (overlay.clone(), Some(3)))?;
    }
    Ok(())
}

/// Lines of words, some of which are rare.
pub fn prose(bytes: usize) -> Vec<u8> {
    let words = ["lorem", "ipsum", "dolor", "sit", "amet", "consectetur", "error:", "\u{e9}t\u{e9}", "42", "x"];
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut line = String::new();
    let mut text = Vec::with_capacity(bytes + 100);
    while text.len() < bytes {
        line.clear();
        for _ in 0..rng.next_u32() % 12 {
            line.push_str(words.choose(&mut rng).copied().unwrap_or_default());
            line.push(' ');
        }
        line.push('\n');
        text.extend_from_slice(line.as_bytes());
    }
    text
}

/// So much prose; what follows after two megabytes is the same, but for its number.
fn long_prose(bytes: usize) -> Vec<u8> {
    let block = prose(bytes.min(2 << 20));
    let mut text = Vec::with_capacity(bytes + block.len());
    for number in 0.. {
        if text.len() >= bytes {
            break;
        }
        text.extend_from_slice(format!("{number}\n").as_bytes());
        text.extend_from_slice(&block);
    }
    text
}

fn text(world: &mut World, bytes: usize) -> Result<()> {
    let input = input(world, &if world.is_first() { long_prose(bytes) } else { Vec::new() });
    check(world, &input, "count", |spec| spec.baselines = bytes < 10 << 20)?;
    check(world, &input, "checksum", |spec| spec.room = 300_000)?;
    if bytes < 10 << 20 {
        check(world, &input, "grep=error: .*42", |spec| spec.installments = Some(1))?;
    }
    Ok(())
}

/// Runs a program on all shares; the status and the output come on the first rank.
fn program(world: &mut World, input: &Path, command: &str, ok: &str, reduce: Reduce) -> Result<Option<(i32, Vec<u8>)>> {
    let ok = ok.parse().map_err(Error::usage)?;
    let mut spec = spec(world, input, Computation::Command { command: command.into(), ok })?;
    spec.reduce = reduce;
    let outcome = divided(world, &spec)?;
    Ok(outcome.map(|(outcome, written)| match outcome.answer {
        Answer::Written { status, .. } => (status, written),
        _ => (-1, written),
    }))
}

fn programs(world: &mut World) -> Result<()> {
    let input = input(world, &if world.is_first() { prose(600_000) } else { Vec::new() });
    let path = &input;
    if let Some((status, written)) = program(world, path, "cat", "0", Reduce::Concat)? {
        same("cat", (status, written == std::fs::read(path).unwrap_or_default()), (0, true))?;
    }
    if let Some(found) = program(world, path, "grep -a error", "0,1", Reduce::Concat)? {
        same("grep", found == (0, tool("grep -a error", path)), true)?;
    }
    if let Some(found) = program(world, path, "grep -a nowhere", "0,1", Reduce::Concat)? {
        same("grep that finds nothing", found, (1, Vec::new()))?;
    }
    if let Some((_, written)) = program(world, path, "wc", "0", Reduce::Sum)? {
        same("wc, summed", numbers(&written), numbers(&tool("wc", path)))?;
    }
    if let Some((_, written)) = program(world, path, "sort", "0", Reduce::Program("sort | uniq -c | sort -rn | head -n 3".into()))? {
        same("sort, reduced", written, tool("sort | uniq -c | sort -rn | head -n 3", path))?;
    }
    Ok(())
}

fn failures(world: &mut World) -> Result<()> {
    let input = input(world, &if world.is_first() { prose(100_000) } else { Vec::new() });
    let cases = [
        ("exit 3", Reduce::Concat, "it ended with status 3"),
        ("kill -9 $$", Reduce::Concat, "it was ended by signal 9"),
        // Only where a share begins as the input does.
        ("read first; case $first in *) cat >/dev/null; exit 4;; esac", Reduce::Concat, "it ended with status 4"),
    ];
    for (command, reduce, said) in cases {
        match program(world, &input, command, "0", reduce) {
            Err(why) if why.to_string().contains(said) && why.exit_status() == 1 => {}
            other => return Err(Error::Failed(format!("{command}: {other:?} instead of '{said}'"))),
        }
    }
    let missing = spec(world, Path::new("/no/such/file"), Computation::Count)?;
    match divided(world, &missing) {
        Err(why) if why.to_string().contains("--input /no/such/file: it cannot be read") && why.exit_status() == 2 => Ok(()),
        _ => Err(Error::Failed("a missing file was not missed".into())),
    }
}

/// Ranks that sleep so long per byte that the processors' load matters little.
fn unequal(world: &mut World) -> Result<()> {
    /// Other load on the machine may disturb a run, and its calibration.
    const ATTEMPTS: usize = 4;
    let input = input(world, &if world.is_first() { prose(3 << 20) } else { Vec::new() });
    let mut spec = spec(world, &input, Computation::Bytes)?;
    let speeds = [1.0, 1.0, 2.0, 4.0, 1.0, 3.0, 2.0, 1.0];
    spec.pace = Some(speeds.iter().map(|speed| 1.0 / (200e3 * speed)).collect());
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let outcome = divided(world, &spec)?;
        let held = outcome.is_none_or(|(outcome, _)| {
            let SpreadRecord { spread, makespan, predicted, .. } = outcome.record;
            seen.push((spread, makespan / predicted));
            spread <= 0.05 && (makespan / predicted - 1.0).abs() <= 0.1
        });
        // The first rank decides for all.
        if equipoise_lab::experiment::settle::from_first(world, || Ok(held))? {
            return Ok(());
        }
    }
    Err(Error::Failed(format!("spread of finish times, and makespan over prediction: {seen:?}")))
}

fn shrinking(world: &mut World) -> Result<()> {
    let input = input(world, &if world.is_first() { prose(4 << 20) } else { Vec::new() });
    let mut spec = spec(world, &input, Computation::Bytes)?;
    // Slow, and with little room, so that most is still to be read when it goes.
    spec.pace = Some(vec![1e-6; world.ranks() as usize]);
    spec.room = 300_000;
    if world.is_first() {
        let path = input.to_path_buf();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(500));
            let _ = std::fs::OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(1000));
        });
    }
    divided(world, &spec)?;
    Err(Error::Failed("nobody noticed".into()))
}

/// With a program that does not end on one of the shares.
fn stands_still(world: &mut World, command: &str, sample: bool) -> Result<()> {
    let input = input(world, &if world.is_first() { prose(3 << 20) } else { Vec::new() });
    let computation = Computation::Command { command: command.into(), ok: OkStatus::default() };
    let mut spec = spec(world, &input, computation)?;
    // Nobody's command takes long for its sample on a machine that is busy.
    spec.patience = Duration::from_secs(1);
    spec.sample = sample;
    divided(world, &spec)?;
    Err(Error::Failed("nobody noticed".into()))
}

/// The first rank ends while all ranks' programs run.
fn dies(world: &mut World, name: &'static str, end: fn()) -> Result<()> {
    let input = input(world, &if world.is_first() { prose(100_000) } else { Vec::new() });
    let command = format!("exec sh -c 'sleep 1000; exit' '{}'", mark(name));
    let spec = spec(world, &input, Computation::Command { command, ok: OkStatus::default() })?;
    let ranks = world.ranks() as usize;
    if world.is_first() {
        std::thread::spawn(move || {
            while marked(name) < ranks {
                std::thread::sleep(Duration::from_millis(10));
            }
            end();
        });
    }
    divided(world, &spec)?;
    Err(Error::Failed("the program has ended".into()))
}

/// Text in the command line of a program of ours, and in none of another copy of this test.
fn mark(name: &str) -> String {
    format!("{name} of {}", std::env::current_exe().unwrap_or_default().display())
}

/// How many programs with the mark there are.
fn marked(name: &str) -> usize {
    let mark = mark(name);
    let is_marked = |entry: std::io::Result<std::fs::DirEntry>| {
        let command = std::fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        // The one with the mark as an argument, not the shell that has it in its script.
        command.split(|byte| *byte == 0).any(|word| word == mark.as_bytes()).then_some(())
    };
    std::fs::read_dir("/proc").map_or(0, |all| all.filter_map(is_marked).count())
}

fn left_nothing(outcome: &launch::Outcome, name: &str, status: Option<i32>) -> Result<(), String> {
    if status.is_some_and(|status| outcome.status != Some(status)) || outcome.status == Some(0) {
        return Err(format!("the status should be {status:?}, and not 0"));
    }
    let gone = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        marked(name) == 0
    });
    if gone { Ok(()) } else { Err(format!("{} programs are left", marked(name))) }
}
