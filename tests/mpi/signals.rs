//! SIGUSR1 and SIGUSR2, which resource managers and launchers send to all ranks: no process ends of them, whenever they come. (That SIGUSR1 ends `run`
//! in order is in `interruptions.rs`.)

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use equipoise::schedule::{self, independent};
use equipoise::topology::Overlay;
use equipoise::transport::mpi::{self, Options};
use equipoise::transport::world::World;
use equipoise::{Result, balance_vec};
use equipoise_lab::experiment::run::{self, RunSpec, SchedulerContender};
use equipoise_lab::experiment::{IndependentSpec, run_independent};
use equipoise_lab::workload::{graphs, independent as workloads};
use rustix::process::{Pid, Signal, kill_process};

use crate::faults::send_to_self;
use crate::launch::{self, Book, PROGRAM};

pub fn enter(book: &mut Book) {
    book.job("signals in every millisecond of a program's life", 3, hammered, |outcome| match outcome.stdout.matches("went on").count() {
        3 => outcome.expect(0, Duration::from_secs(60), &[("equipoise", 0)]),
        _ => Err("all ranks should have gone on".into()),
    });
    book.check("signals while MPI is initialised, the plain program measured, and at the end", whole_life);
}

/// Signals itself all the time, before MPI is initialised and until it is finalised.
fn hammered() {
    static OVER: AtomicBool = AtomicBool::new(false);
    mpi::signals::survive().unwrap_or_else(|why| panic!("{why}"));
    let hammer = std::thread::spawn(|| {
        let mut sent = 0u32;
        while !OVER.load(Ordering::Relaxed) {
            send_to_self(if sent.is_multiple_of(2) { Signal::USR1 } else { Signal::USR2 });
            sent += 1;
            std::thread::sleep(Duration::from_millis(1));
        }
        sent
    });
    let world = mpi::World::init(Options::program()).unwrap_or_else(|why| panic!("{why}"));
    let mut world = World::from(world);
    work(&mut world).unwrap_or_else(|why| panic!("{why}"));
    drop(world);
    OVER.store(true, Ordering::Relaxed);
    let sent = hammer.join().unwrap_or_default();
    assert!(sent > 100, "only {sent} signals were sent");
    println!("went on");
}

/// Programs with event loops: the plain program and all schedulers, those of independent tasks, and a balancer.
fn work(world: &mut World) -> Result<()> {
    let ranks = world.ranks();
    let contender = |entry: &&schedule::Entry| {
        let scheduler = schedule::find(entry.name)?;
        let topology = scheduler.default_topology(ranks);
        SchedulerContender::new(scheduler, Overlay::new(topology, world.hosts())?)
    };
    let contenders = schedule::ALL.iter().map(contender).collect::<Result<_>>()?;
    let spec = RunSpec { contenders, workload: graphs::find("queens:n=9")?, workers: 1, repeat: None, seed: 3, trace: false };
    run::run(world, &spec, |_, _, _| {})?;
    for workload in ["costs:tasks=60,mu_cp=200,mu_cc=200", "mandelbrot:width=64,height=48,limit=200"] {
        let contenders = independent::ALL.iter().map(|entry| independent::find(entry.name)).collect::<Result<_>>()?;
        let workload = workloads::find(workload)?.expect("a workload of independent tasks");
        let spec = IndependentSpec { contenders, workload, repeat: None, seed: 3, speeds: Vec::new() };
        run_independent(world, &spec, |_, _, _| {})?;
    }
    let mine = balance_vec(world, "direct", vec![1u8; if world.is_first() { 30 } else { 0 }])?;
    assert_eq!(mine.len(), 30 / ranks as usize);
    Ok(())
}

/// A job whose second rank is late: the first waits for it in MPI's initialisation, and gets both signals there. SIGUSR2 comes ever after.
fn whole_life() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|why| why.to_string())?;
    let (first, go) = (folder.path().join("first"), folder.path().join("go"));
    let arguments = "run --workload queens:n=10 --scheduler steal --output json";
    let mut command = launch::launcher(Duration::from_secs(100))?;
    let script = |text: String| ["sh".to_string(), "-c".into(), text];
    command.args(["-n", "1"]).args(script(format!("echo $$ >'{}'; exec '{PROGRAM}' {arguments}", first.display())));
    let late = format!("while [ ! -e '{}' ]; do sleep 0.05; done; exec '{PROGRAM}' {arguments}", go.display());
    command.args([":", "-n", "1"]).args(script(late));
    let mut job = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|why| why.to_string())?;
    let sent = signalled(&mut job, &first, &go);
    if sent.is_err() {
        // The launcher takes its ranks along.
        let _ = Command::new("kill").arg(job.id().to_string()).status();
    }
    let output = job.wait_with_output().map_err(|why| why.to_string())?;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    match sent {
        Ok(sent) if output.status.success() && stdout.lines().count() == 1 && stderr.is_empty() && sent > 20 => Ok(()),
        sent => Err(format!("{sent:?} signals, {}\n{stdout}\n{stderr}", output.status)),
    }
}

/// Sends signals to the rank whose process has written its number into a file, as soon as it does not die of them; lets the other rank begin
/// then, and goes on until the job ends. The number of signals.
fn signalled(job: &mut Child, first: &Path, go: &Path) -> Result<u32, String> {
    /// Bits of SIGUSR1 and SIGUSR2 in the system's set.
    const BOTH: u64 = 1 << 9 | 1 << 11;
    let begin = Instant::now();
    let is_late = || begin.elapsed() > Duration::from_secs(60);
    let rank = loop {
        let text = fs::read_to_string(first).unwrap_or_default();
        if let Ok(number) = text.trim().parse::<i32>() {
            break number;
        }
        if is_late() {
            return Err("the first rank does not begin".into());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let process = Pid::from_raw(rank).ok_or("0 is no process")?;
    let caught = || {
        let status = fs::read_to_string(format!("/proc/{rank}/status")).ok()?;
        u64::from_str_radix(status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?.trim(), 16).ok()
    };
    while caught().unwrap_or(0) & BOTH != BOTH {
        if is_late() {
            return Err("the first rank waits in MPI's initialisation, and would die of the signals".into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut sent = 0u32;
    while job.try_wait().map_err(|why| why.to_string())?.is_none() {
        // Once there are ranks, SIGUSR1 asks the job to end.
        let signal = if sent < 20 && sent.is_multiple_of(2) { Signal::USR1 } else { Signal::USR2 };
        // The rank may have ended by now, and the launcher not.
        if kill_process(process, signal).is_ok() {
            sent += 1;
        }
        if sent == 20 {
            fs::write(go, "").map_err(|why| why.to_string())?;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(sent)
}
