//! Starts jobs of real ranks from tests: this same executable is the rank program, told by its first argument what to be.
//!
//! A [`Book`] lists what there is. A *suite* is a list of cases that one launch runs one after the other on each number of ranks (starting
//! ranks is what costs). A *job* is a launch of its own, with its own program, whose outcome is judged from outside.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use equipoise::Result;
use equipoise::transport::mpi;
use equipoise::transport::world::World;
use libtest_mimic::{Failed, Trial};

use crate::contract::Case;

/// The first argument of a rank.
const AS_RANK: &str = "--as-rank";

/// All that can be launched.
#[derive(Default)]
pub struct Book {
    suites: Vec<Suite>,
    jobs: Vec<Job>,
    checks: Vec<Check>,
}

struct Check {
    name: &'static str,
    check: fn() -> Result<(), String>,
}

pub struct Suite {
    pub name: &'static str,
    /// One launch for each number of ranks.
    pub ranks: &'static [u32],
    /// Likewise, but only with `--include-ignored` (`scripts/test --all`).
    pub more: &'static [u32],
    /// How long a launch may take.
    pub limit: Duration,
    pub options: mpi::Options,
    pub cases: Vec<Case>,
}

pub struct Job {
    pub name: &'static str,
    pub ranks: u32,
    pub limit: Duration,
    pub turn: Turn,
    /// Program of each rank.
    pub program: fn(),
    pub judge: fn(&Outcome) -> Result<(), String>,
}

/// With which others a trial may run.
#[derive(Clone, Copy)]
pub enum Turn {
    /// With none: launches compete for the same cores, and what is measured is wrong then.
    Alone,
    /// With others that wait, for a watchdog, a signal or a sleeping command, for most of their time.
    Waiting,
}

/// A trial that takes turns with the others.
pub fn trial(turn: Turn, name: impl Into<String>, test: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    static TURNS: RwLock<()> = RwLock::new(());
    Trial::test(name, move || match turn {
        Turn::Alone => {
            let _turn = TURNS.write().unwrap_or_else(PoisonError::into_inner);
            test()
        }
        Turn::Waiting => {
            let _turn = TURNS.read().unwrap_or_else(PoisonError::into_inner);
            test()
        }
    })
}

/// Result of a launch.
#[derive(Debug)]
pub struct Outcome {
    /// The launcher's exit status; `None` if a signal ended it.
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Book {
    pub fn suite(&mut self, suite: Suite) {
        self.suites.push(suite);
    }

    pub fn job(&mut self, name: &'static str, ranks: u32, program: fn(), judge: fn(&Outcome) -> Result<(), String>) {
        self.jobs.push(Job { name, ranks, limit: Duration::from_secs(60), turn: Turn::Alone, program, judge });
    }

    /// A job that waits for most of its time.
    pub fn waiting_job(&mut self, name: &'static str, ranks: u32, program: fn(), judge: fn(&Outcome) -> Result<(), String>) {
        self.jobs.push(Job { name, ranks, limit: Duration::from_secs(60), turn: Turn::Waiting, program, judge });
    }

    /// A trial that launches for itself.
    pub fn check(&mut self, name: &'static str, check: fn() -> Result<(), String>) {
        self.checks.push(Check { name, check });
    }

    /// Is a rank, if the arguments say so. True if it was.
    pub fn play_rank(&self) -> bool {
        let args: Vec<String> = env::args().collect();
        if args.get(1).map(String::as_str) != Some(AS_RANK) {
            return false;
        }
        let name = args.get(2).map_or("", String::as_str);
        if let Some(suite) = self.suites.iter().find(|suite| suite.name == name) {
            play_suite(suite);
        } else if let Some(job) = self.jobs.iter().find(|job| job.name == name) {
            (job.program)();
        } else {
            eprintln!("there is no suite or job '{name}'");
            std::process::exit(2);
        }
        true
    }

    /// A trial for each case on each number of ranks, and for each job.
    pub fn trials(self) -> Vec<Trial> {
        let mut trials = Vec::new();
        for suite in self.suites {
            let always = suite.ranks.iter().map(|ranks| (*ranks, false));
            for (ranks, is_ignored) in always.chain(suite.more.iter().map(|ranks| (*ranks, true))) {
                let launch = Arc::new(OnceLock::new());
                for case in &suite.cases {
                    let (name, limit, launch) = (suite.name, suite.limit, launch.clone());
                    let case = case.name;
                    let trial = trial(Turn::Alone, format!("{name} on {ranks} ranks: {case}"), move || {
                        let outcome = launch.get_or_init(|| launched(name, ranks, limit));
                        verdict(outcome.as_ref()?, case)
                    });
                    trials.push(trial.with_ignored_flag(is_ignored));
                }
            }
        }
        for job in self.jobs {
            trials.push(trial(job.turn, job.name, move || {
                let outcome = launched(job.name, job.ranks, job.limit)?;
                (job.judge)(&outcome).map_err(|why| Failed::from(format!("{why}\n{}", outcome.told())))
            }));
        }
        for Check { name, check } in self.checks {
            trials.push(trial(Turn::Alone, name, move || check().map_err(Failed::from)));
        }
        trials
    }
}

impl Outcome {
    /// Everything, for people.
    pub fn told(&self) -> String {
        let Outcome { status, stdout, stderr, took } = self;
        format!("status {status:?} after {took:.1?}\n--- standard output\n{stdout}\n--- standard error\n{stderr}")
    }

    /// Returns true if a signal ended the launcher and its own trace names the function that passes standard input on.
    fn launcher_crashed(&self) -> bool {
        self.status.is_none() && self.stderr.contains("orte_iof_hnp_read_local_handler")
    }

    /// Checks that the launch ended with this status, within this time, with each of these texts this number of times on standard error.
    pub fn expect(&self, status: i32, within: Duration, says: &[(&str, usize)]) -> Result<(), String> {
        if self.status != Some(status) {
            return Err(format!("the status should be {status}"));
        }
        if self.took > within {
            return Err(format!("it should not take longer than {within:?}"));
        }
        for (sentence, times) in says {
            let found = self.stderr.matches(sentence).count();
            if found != *times {
                return Err(format!("it should say '{sentence}' {times} times, not {found}"));
            }
        }
        Ok(())
    }
}

fn play_suite(suite: &Suite) {
    let world = mpi::World::init(suite.options.clone()).unwrap_or_else(|why| panic!("{why}"));
    let mut world = World::from(world);
    for case in &suite.cases {
        let begin = Instant::now();
        if let Err(why) = (case.check)(&mut world) {
            panic!("case '{}': {why}", case.name);
        }
        if world.is_first() {
            println!("case '{}' holds ({:.1?})", case.name, begin.elapsed());
        }
    }
}

fn verdict(outcome: &Outcome, case: &str) -> Result<(), Failed> {
    if outcome.stdout.contains(&format!("case '{case}' holds")) {
        return Ok(());
    }
    // Cases run one after the other: the first that did not end is the one that failed.
    Err(format!("the case did not end; the launch: {}", outcome.told()).into())
}

fn launched(name: &str, ranks: u32, limit: Duration) -> Result<Outcome, String> {
    let me = env::current_exe().map_err(|why| format!("where am I? {why}"))?;
    under_mpirun(&me, &[AS_RANK, name], ranks, limit, None)
}

/// Launches a program on this number of ranks; `stdin` is the first one's, none of this process if it is `None`.
pub fn under_mpirun(program: &Path, arguments: &[&str], ranks: u32, limit: Duration, stdin: Option<File>) -> Result<Outcome, String> {
    let mut command = launcher(limit)?;
    command.args(["-n", &ranks.to_string()]).arg(program).args(arguments).stdin(stdin.map_or_else(Stdio::null, Stdio::from));
    outcome(&mut command)
}

/// Returns true if the launcher passes the end of standard input on to rank 0. That of Open MPI 5.0.11 does not: there `cat` never ends.
pub fn ends_standard_input() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| under_mpirun(Path::new("cat"), &[], 1, Duration::from_secs(20), None).is_ok_and(|cat| cat.status == Some(0)))
}

/// Launches again what the launcher broke off by a crash of its own: that of Open MPI 4 now and then has one while it passes standard input on
/// (open-mpi/ompi, issue 7483). Three such crashes in a row are a failure.
pub fn despite_crashes(launch: impl Fn() -> Result<Outcome, Failed>) -> Result<Outcome, Failed> {
    for _ in 0..2 {
        let outcome = launch()?;
        if !outcome.launcher_crashed() {
            return Ok(outcome);
        }
        eprintln!("again: mpirun itself crashed while it passed standard input on");
    }
    launch()
}

/// Launches the program `equipoise`: some ranks with these arguments, some with those.
pub fn equipoise(parts: &[(u32, &str)]) -> Result<Outcome, String> {
    let mut command = launcher(Duration::from_secs(60))?;
    for (at, (ranks, arguments)) in parts.iter().enumerate() {
        command.args((at > 0).then_some(":")).args(["-n", &ranks.to_string(), PROGRAM]).args(arguments.split_whitespace());
    }
    outcome(&mut command)
}

/// The program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_equipoise");

/// The launcher, to be told what to launch.
pub fn launcher(limit: Duration) -> Result<Command, String> {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", &limit.as_secs().to_string()]).arg(mpirun());
    if is_open_mpi()? {
        command.args(["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]);
        for variable in
            ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"]
        {
            command.env(variable, "1");
        }
    }
    Ok(command)
}

fn outcome(command: &mut Command) -> Result<Outcome, String> {
    let begin = Instant::now();
    let output = command.output().map_err(|why| format!("'timeout' cannot be started: {why}"))?;
    Ok(Outcome {
        status: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        took: begin.elapsed(),
    })
}

/// The launcher's name: `MPIRUN` names that of another MPI, as it does for the scripts.
fn mpirun() -> OsString {
    env::var_os("MPIRUN").unwrap_or_else(|| "mpirun".into())
}

/// Returns true if the launcher is Open MPI's, which needs an option to start more ranks than there are cores.
pub fn is_open_mpi() -> Result<bool, String> {
    static ANSWER: OnceLock<Result<bool, String>> = OnceLock::new();
    let ask = || match Command::new(mpirun()).arg("--version").output() {
        // Under another name than mpirun it calls itself by the name of its runtime.
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            Ok(["Open MPI", "OpenRTE", "PRRTE"].iter().any(|name| said.contains(name)))
        }
        Err(why) => Err(format!("mpirun cannot be started ({why}), so real ranks were NOT tested; EQUIPOISE_SKIP_MPI=1 skips these tests")),
    };
    ANSWER.get_or_init(ask).clone()
}
