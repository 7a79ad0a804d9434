//! `compare`, `run` and `probe` that are told to end: by SIGUSR1 or SIGTERM, on all ranks or on one, between two runs or within one that is long. What was
//! finished is in the record, the status is 4, and no process is left.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::launch::{self, PROGRAM, Turn};

/// Beginning and end of a job.
const LIMIT: Duration = Duration::from_secs(150);
const RANKS: [u32; 5] = [1, 2, 3, 5, 8];

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for ranks in RANKS {
        trials.push(launch::trial(Turn::Waiting, format!("compare on {ranks} ranks and SIGUSR1 to all"), move || {
            compared(Some(ranks), Signal::USR1, None)
        }));
        trials.push(launch::trial(Turn::Waiting, format!("compare on {ranks} ranks and SIGTERM to the last"), move || {
            compared(Some(ranks), Signal::TERM, Some(ranks - 1))
        }));
        trials.push(launch::trial(Turn::Waiting, format!("probe on {ranks} ranks and SIGUSR1 to the last"), move || probed(ranks)));
        trials.push(launch::trial(Turn::Waiting, format!("run on {ranks} ranks and nothing finished"), move || {
            nothing_finished(Some(ranks))
        }));
    }
    trials.push(launch::trial(Turn::Waiting, "compare in simulation and SIGTERM", || compared(None, Signal::TERM, None)));
    trials.push(launch::trial(Turn::Waiting, "run in simulation and a run that is given up", || nothing_finished(None)));
    for ranks in RANKS {
        trials.push(launch::trial(Turn::Alone, format!("run on {ranks} ranks and a run that is given up"), move || given_up(ranks)));
    }
    trials
}

/// Balancers in more rounds (in simulation: on more loads) than there is time for.
fn compared(ranks: Option<u32>, signal: Signal, to: Option<u32>) -> Result<(), Failed> {
    let mut arguments = vec!["compare", "--balancer", "direct,cwa", "--output", "json"];
    let loads: Vec<String> = (1..=200).map(|mean| format!("--loads=uniform:mean={}", 10 * mean)).collect();
    match ranks {
        Some(_) => arguments.extend(["--repeat", "1000000"]),
        None => {
            arguments.extend(["--sim", "512", "--payload", "0"]);
            arguments.extend(loads.iter().map(String::as_str));
        }
    }
    let ended = ended(ranks, &arguments, signal, to, Duration::from_secs(3))?;
    let records = ended.records()?;
    // Under mpirun both have had their rounds; in simulation there are two records for each of the loads that were reached.
    let is_sound = |record: &Value| {
        let (before, after) = (record["imbalance_before"].as_f64(), record["imbalance_after"].as_f64());
        record["repeat"].as_u64() >= Some(1)
            && record["ms_rounds"].as_array().map(Vec::len) == record["repeat"].as_u64().map(|rounds| rounds as usize)
            && before >= Some(1.0)
            && after >= Some(1.0)
    };
    let rounds: u64 = records.iter().filter_map(|record| record["repeat"].as_u64()).sum();
    let unmeasured = if ranks.is_some() { 2 } else { 0 };
    let done = records.first().and_then(|record| record["interrupted"]["done"].as_u64());
    if records.len() < 2 || !records.iter().all(is_sound) || done != Some(rounds + unmeasured) {
        return Err(ended.told().into());
    }
    Ok(())
}

/// More rounds than there is time for: the result is that of the finished ones.
fn probed(ranks: u32) -> Result<(), Failed> {
    let arguments = ["probe", "--repeat", "1000", "--compute", "100", "--grace", "60", "--output", "json"];
    let ended = ended(Some(ranks), &arguments, Signal::USR1, Some(ranks - 1), Duration::from_secs(5))?;
    let [record] = &ended.records()?[..] else { return Err(ended.told().into()) };
    let speeds = record["speeds"].as_array().ok_or("no speeds")?;
    let is_sound = record["rounds"] == record["interrupted"]["done"]
        && record["interrupted"]["of"] == 1000
        && speeds.len() as u32 == ranks
        && record["links"].as_array().map(Vec::len) == Some(usize::from(ranks > 1));
    if is_sound { Ok(()) } else { Err(ended.told().into()) }
}

/// Runs of about a second each, of which one is in its middle when the grace is over: those before it are in the record.
fn given_up(ranks: u32) -> Result<(), Failed> {
    let workload = format!("costs:tasks={},mu_cp=20000,sigma_cp=100,mu_cc=1,sigma_cc=0", 100 * ranks);
    let arguments =
        ["run", "--scheduler", "selfsched:rule=static", "--workload", &workload, "--repeat", "1000", "--grace", "0.05", "--output", "json"];
    let ended = ended(Some(ranks), &arguments, Signal::USR1, None, Duration::from_secs(9))?;
    let [record] = &ended.records()?[..] else { return Err(ended.told().into()) };
    let makespans = record["makespans"].as_array().ok_or("no makespans")?;
    // 100 tasks of 20 ms on each rank: none of these can have been cut off.
    let are_whole = makespans.iter().all(|makespan| makespan.as_f64() >= Some(1.8));
    let done = record["interrupted"]["done"].as_u64();
    if makespans.is_empty() || !are_whole || done != Some(makespans.len() as u64 + 1) || record["tasks"] != 100 * ranks {
        return Err(ended.told().into());
    }
    Ok(())
}

/// One run that takes very long.
fn nothing_finished(ranks: Option<u32>) -> Result<(), Failed> {
    let workload = ["run", "--workload", "uts:tree=T2", "--scheduler", "steal", "--grace", "0.2", "--output", "json"];
    let simulated = ["run", "--workload", "queens:n=15", "--scheduler", "steal", "--grace", "0.2", "--output", "json", "--sim", "64"];
    let arguments = if ranks.is_some() { &workload[..] } else { &simulated };
    let ended = ended(ranks, arguments, Signal::TERM, None, Duration::from_secs(2))?;
    let mark = serde_json::json!({"interrupted": {"signal": "SIGTERM", "done": 0, "of": 1}});
    match &ended.lines()?[..] {
        [line] if *line == mark => Ok(()),
        _ => Err(ended.told().into()),
    }
}

/// Remains of a job that was told to end.
struct Ended {
    stdout: String,
    stderr: String,
    signal: &'static str,
}

impl Ended {
    fn told(&self) -> String {
        format!("--- standard output\n{}\n--- standard error\n{}", self.stdout, self.stderr)
    }

    fn lines(&self) -> Result<Vec<Value>, Failed> {
        let read = |line: &str| serde_json::from_str(line).map_err(|why| format!("{why}: {}", self.told()));
        Ok(self.stdout.lines().map(read).collect::<Result<_, _>>()?)
    }

    /// The records, each marked by the same signal, with less done than there was to do.
    fn records(&self) -> Result<Vec<Value>, Failed> {
        let records = self.lines()?;
        let is_marked = |record: &Value| {
            let mark = &record["interrupted"];
            mark["signal"] == self.signal && mark["done"].as_u64() > Some(0) && mark["done"].as_u64() < mark["of"].as_u64()
        };
        if records.is_empty() || !records.iter().all(is_marked) {
            return Err(format!("each record should be marked by {}\n{}", self.signal, self.told()).into());
        }
        Ok(records)
    }
}

/// Starts the program, under mpirun or alone, lets it work for a while, and tells it to end: all ranks, or one. It must end within half a minute,
/// with status 4, and leave no process behind.
fn ended(ranks: Option<u32>, arguments: &[&str], signal: Signal, to: Option<u32>, after: Duration) -> Result<Ended, Failed> {
    let folder = tempfile::tempdir()?;
    // Each rank leaves the number of its process under its own number.
    let script = format!(
        "rank=${{OMPI_COMM_WORLD_RANK:-${{PMI_RANK:-0}}}}; echo $$ >'{0}/'$rank.new; mv '{0}/'$rank.new '{0}/'$rank; exec '{PROGRAM}' \"$@\"",
        folder.path().display()
    );
    let mut command = match ranks {
        Some(ranks) => {
            let mut command = launch::launcher(LIMIT)?;
            command.args(["-n", &ranks.to_string(), "sh"]);
            command
        }
        None => Command::new("sh"),
    };
    let (said, complained) = (folder.path().join("stdout"), folder.path().join("stderr"));
    let mut job =
        command.args(["-c", &script, "sh"]).args(arguments).stdout(File::create(&said)?).stderr(File::create(&complained)?).spawn()?;
    let told = tell(folder.path(), ranks.unwrap_or(1), signal, to, after);
    let processes = match told {
        Ok(processes) => processes,
        Err(why) => {
            // The launcher takes its ranks along.
            let _ = Command::new("kill").arg(job.id().to_string()).status();
            job.wait()?;
            return Err(format!("{why}\n{}", fs::read_to_string(&complained)?).into());
        }
    };
    let begin = Instant::now();
    let in_time = wait(&mut job, Duration::from_secs(60))?;
    let took = begin.elapsed();
    if !in_time {
        processes.iter().for_each(|process| {
            let _ = kill_process(*process, Signal::KILL);
        });
    }
    let status = job.wait()?;
    let ended = Ended {
        stdout: fs::read_to_string(&said)?,
        stderr: fs::read_to_string(&complained)?,
        signal: if signal == Signal::TERM { "SIGTERM" } else { "SIGUSR1" },
    };
    if !in_time || status.code() != Some(4) {
        return Err(format!("{status} after {took:.1?}\n{}", ended.told()).into());
    }
    // The launcher may end before the last of its ranks.
    while processes.iter().any(lives) {
        if begin.elapsed() > took + Duration::from_secs(10) {
            let left: Vec<_> = processes.iter().filter(|process| lives(process)).collect();
            return Err(format!("processes are left: {left:?}\n{}", ended.told()).into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(ended)
}

/// Returns true if a process is there that has not ended, waited for by its parent or not.
fn lives(process: &Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero())).unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("State:")).is_some_and(|state| !state.trim_start().starts_with('Z'))
}

fn wait(job: &mut Child, limit: Duration) -> Result<bool, Failed> {
    let begin = Instant::now();
    while begin.elapsed() < limit {
        if job.try_wait()?.is_some() {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(false)
}

/// Tells ranks to end, when all of them would live on and have worked for a while. All processes.
fn tell(folder: &Path, ranks: u32, signal: Signal, to: Option<u32>, after: Duration) -> Result<Vec<Pid>, String> {
    let begin = Instant::now();
    let mut processes = Vec::new();
    for rank in 0..ranks {
        processes.push(loop {
            if let Some(process) = ready(&folder.join(rank.to_string())) {
                break process;
            }
            if begin.elapsed() > LIMIT / 2 {
                return Err(format!("rank {rank} does not begin, or would die of the signal"));
            }
            std::thread::sleep(Duration::from_millis(10));
        });
    }
    std::thread::sleep(after);
    for (rank, process) in (0..).zip(&processes).filter(|(rank, _)| to.is_none_or(|only| only == *rank)) {
        kill_process(*process, signal).map_err(|why| format!("rank {rank}: {why}"))?;
    }
    Ok(processes)
}

/// The process in this file, once it catches SIGTERM.
fn ready(file: &Path) -> Option<Pid> {
    /// Its bit in the system's set.
    const TERM: u64 = 1 << 14;
    let number: i32 = fs::read_to_string(file).ok()?.trim().parse().ok()?;
    let status = fs::read_to_string(format!("/proc/{number}/status")).ok()?;
    let caught = u64::from_str_radix(status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?.trim(), 16).ok()?;
    Pid::from_raw(number).filter(|_| caught & TERM != 0)
}
