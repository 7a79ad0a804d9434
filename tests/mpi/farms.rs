//! `equipoise farm` over ranks: each command once, whatever dies.

mod resources;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use tempfile::TempDir;

use crate::commands::MPI_PROGRAM;
use crate::launch::{self, Outcome, PROGRAM, Turn};

const LIMIT: Duration = Duration::from_secs(90);

/// All of them.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for ranks in [1, 2, 3, 5, 8] {
        trials.push(launch::trial(Turn::Waiting, format!("a farm runs each command once, on {ranks} ranks"), move || each_once(ranks)));
        trials.push(launch::trial(Turn::Waiting, format!("a farm counts empty tasks once, on {ranks} ranks"), move || empty(ranks)));
    }
    for ranks in [1, 2, 3, 5, 8] {
        let name = format!("a list of commands is played under all schedulers, on {ranks} ranks");
        trials.push(launch::trial(Turn::Waiting, name, move || compared(ranks)));
    }
    trials.push(launch::trial(Turn::Waiting, "a farm prints long outputs of all ranks whole and in order", outputs));
    trials.push(launch::trial(Turn::Waiting, "a farm spares a dedicated rank 0", dedicated));
    trials.push(launch::trial(Turn::Waiting, "an MPI program in a farm is no rank", mpi_program));
    trials.push(launch::trial(Turn::Waiting, "mpi4py in a farm and under divide is no rank", mpi4py));
    trials.push(launch::trial(Turn::Waiting, "a program of divide whose helper is killed ends the job", helper_of_divide));
    trials.push(launch::trial(Turn::Waiting, "a farm counts built-in sleeping tasks once, on 5 ranks of different speed", sleeping));
    trials.push(launch::trial(Turn::Waiting, "a farm under every rule runs each command once", rules));
    for ranks in [1, 2, 3, 5, 8] {
        trials.push(launch::trial(
            Turn::Waiting,
            format!("a farm under every scheduler runs each command once, on {ranks} ranks"),
            move || schedulers(ranks),
        ));
    }
    trials.append(&mut resources::trials());
    for victim in ["launcher", "rank 0", "another rank", "helper"] {
        trials.push(launch::trial(Turn::Waiting, format!("a farm whose {victim} is killed is resumed"), move || killed(victim)));
    }
    for ranks in [1, 2, 3, 5, 8] {
        let name = format!("two farms on one journal share the list, and one goes on when the other is killed, on {ranks} ranks");
        trials.push(launch::trial(Turn::Waiting, name, move || shared(ranks)));
    }
    for ranks in [1, 2, 3, 5, 8] {
        let name = format!("a farm with another list than the one that runs is refused, on {ranks} ranks");
        trials.push(launch::trial(Turn::Waiting, name, move || another_list(ranks)));
        let name = format!("a farm runs what stands behind commands that wait, on {ranks} ranks");
        trials.push(launch::trial(Turn::Waiting, name, move || behind_waiting(ranks)));
    }
    trials.push(launch::trial(Turn::Waiting, "a farm that is told to end drains", drains));
    trials.push(launch::trial(Turn::Waiting, "a wrong list is said once, on 3 ranks", wrong));
    trials
}

struct Place(TempDir);

impl Place {
    fn new() -> Result<Place, Failed> {
        Ok(Place(tempfile::tempdir()?))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }

    fn farm(&self, ranks: u32, arguments: &[&str]) -> Result<Outcome, String> {
        launch::under_mpirun(Path::new(PROGRAM), &[&["farm"], arguments].concat(), ranks, LIMIT, None)
    }

    /// Sequence numbers with a final record, and how often.
    fn recorded(&self) -> BTreeMap<u64, usize> {
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(self.path("j")).into_iter().flatten().flatten() {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            for line in whole.lines().skip(1) {
                let columns: Vec<&str> = line.split('\t').collect();
                if let (17, Ok(seq), false) = (columns.len(), columns[0].parse(), columns.last() == Some(&"again")) {
                    *found.entry(seq).or_default() += 1;
                }
            }
        }
        found
    }

    /// How often each task has run.
    fn ran(&self) -> BTreeMap<u64, usize> {
        let mut found = BTreeMap::new();
        for line in fs::read_to_string(self.path("ran")).unwrap_or_default().lines() {
            *found.entry(line.parse().unwrap_or(0)).or_default() += 1;
        }
        found
    }

    fn write_list(&self, tasks: u64, seconds: f64) -> Result<(), Failed> {
        let line = |seq| format!("sh -c 'sleep {seconds}; echo {seq} >>{}'\n", self.text("ran"));
        Ok(fs::write(self.path("jobs"), (1..=tasks).map(line).collect::<String>())?)
    }
}

fn hold(holds: bool, what: &str, outcome: &Outcome) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(format!("{what}: {}", outcome.told()).into()) }
}

fn each_once(ranks: u32) -> Result<(), Failed> {
    let place = Place::new()?;
    place.write_list(80, 0.01)?;
    let outcome = place.farm(ranks, &[&place.text("jobs"), "--journal", &place.text("j")])?;
    hold(outcome.status == Some(0), "the status", &outcome)?;
    hold(place.ran() == (1..=80).map(|seq| (seq, 1)).collect(), "each runs once", &outcome)?;
    hold(place.recorded() == place.ran(), "each has a record", &outcome)
}

fn empty(ranks: u32) -> Result<(), Failed> {
    let place = Place::new()?;
    let outcome = place.farm(ranks, &["--empty", "30000", "--journal", &place.text("j"), "--output", "quiet"])?;
    hold(outcome.status == Some(0) && place.recorded() == (1..=30_000).map(|seq| (seq, 1)).collect(), "each once", &outcome)
}

/// Workers sleep as long as the commands are said to take; nothing is run.
fn compared(ranks: u32) -> Result<(), Failed> {
    let place = Place::new()?;
    let line = |seq| format!("touch {} #EQ cost=0.0{}\n", place.text("ran"), 1 + seq % 3);
    fs::write(place.path("jobs"), (1..=15).map(line).collect::<String>())?;
    let workload = format!("commands:file={}", place.text("jobs"));
    let words = ["run", "--compare", "--repeat", "1", "--output", "json", "--workload", &workload];
    let outcome = launch::under_mpirun(Path::new(PROGRAM), &words, ranks, LIMIT, None)?;
    hold(outcome.status == Some(0) && !place.path("ran").exists(), "the status", &outcome)?;
    for scheduler in ["sash", "sads", "dss", "selfsched"] {
        let begin = format!("{{\"scheduler\":\"{scheduler}\"");
        let record = outcome.stdout.lines().find(|line| line.starts_with(&begin));
        hold(record.is_some_and(|line| line.contains("\"tasks\":15,") && line.contains("\"answer\":15,")), scheduler, &outcome)?;
    }
    Ok(())
}

fn outputs() -> Result<(), Failed> {
    let place = Place::new()?;
    // Lines: a launcher may hold a line until its end, and copy what it has whenever more comes (Open MPI 5). The last one is not ended.
    let script = "yes {} | head -c 2500000; head -c 3000 /dev/zero | tr '\\0' {}";
    let outcome = place.farm(3, &["--array", "1-7", "--keep-order", "--", "sh", "-c", script])?;
    let expected: String = (1..=7).map(|n: u32| format!("{n}\n").repeat(1_250_000) + &n.to_string().repeat(3000)).collect();
    if outcome.status == Some(0) && outcome.stdout == expected { Ok(()) } else { Err("outputs are not whole or not in order".into()) }
}

fn dedicated() -> Result<(), Failed> {
    let place = Place::new()?;
    let arguments = ["--array", "1-30", "--host", "dedicated", "--workers", "2", "--", "sh", "-c", "echo $FARM_RANK"];
    let outcome = place.farm(3, &arguments)?;
    let ranks: Vec<&str> = outcome.stdout.lines().collect();
    hold(ranks.len() == 30 && !ranks.contains(&"0"), "rank 0 runs none", &outcome)
}

fn mpi_program() -> Result<(), Failed> {
    let place = Place::new()?;
    fs::write(place.path("source.c"), MPI_PROGRAM)?;
    let compiler = std::env::var_os("MPICC").unwrap_or_else(|| "mpicc".into());
    let built = Command::new(compiler).arg("-o").arg(place.path("program")).arg(place.path("source.c")).status()?;
    if !built.success() {
        return Err("the MPI program cannot be built".into());
    }
    let outcome = place.farm(2, &["--array", "1-4", "--", &place.text("program"), "0", "{}"])?;
    hold(outcome.status == Some(0) && outcome.stdout == "size 1\n".repeat(4), "each is the only one of its job", &outcome)
}

/// Whether this Python has mpi4py and an MPI for it.
fn has_mpi4py(python: &str) -> bool {
    let found = Command::new(python).args(["-c", "from mpi4py import MPI"]).stderr(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

fn mpi4py() -> Result<(), Failed> {
    // scripts/any-mpi names one, for each MPI; then it must be there.
    let named = std::env::var("EQUIPOISE_PYTHON").ok();
    let python = named.clone().unwrap_or_else(|| "python3".into());
    if named.is_none() && !has_mpi4py(&python) {
        eprintln!("mpi4py is not here (EQUIPOISE_PYTHON names a Python that has it): NOT TESTED with it; scripts/any-mpi does");
        return Ok(());
    }
    let place = Place::new()?;
    let program = "import sys; from mpi4py import MPI; print(MPI.COMM_WORLD.size)";
    let outcome = place.farm(2, &["--array", "1-4", "--", &python, "-c", program])?;
    hold(outcome.status == Some(0) && outcome.stdout == "1\n".repeat(4), "each is the only one of its job", &outcome)?;
    fs::write(place.path("input"), "words\n".repeat(1000))?;
    let command = format!("{python} -c '{program}; sys.stdin.read()'");
    let words = ["divide", "--input", &place.text("input"), "--command", &command];
    let outcome = launch::under_mpirun(Path::new(PROGRAM), &words, 2, LIMIT, None)?;
    hold(outcome.status == Some(0) && outcome.stdout.starts_with("1\n1\n"), "the same under divide", &outcome)
}

/// Kills the process that starts the programs: they are gone, and the job ends with a sentence.
fn helper_of_divide() -> Result<(), Failed> {
    let place = Place::new()?;
    fs::write(place.path("input"), "words\n".repeat(100_000))?;
    let mark = place.text("mark");
    let command = format!("echo >>{mark}; exec sh -c 'sleep 1000; exit' {mark}");
    let words = ["divide", "--input", &place.text("input"), "--command", &command];
    let mut job = launch::launcher(LIMIT)?;
    job.args(["-n", "2", PROGRAM]).args(words).stdout(Stdio::null()).stderr(fs::File::create(place.path("said"))?);
    let mut job = job.spawn()?;
    until("the programs run", || fs::read_to_string(place.path("mark")).is_ok_and(|text| text.lines().count() == 2))?;
    let helper = descendants(job.id()).into_iter().find(|(_, words)| words.starts_with("equipoise-starter"));
    signal("-KILL", helper.ok_or("nobody starts programs")?.0)?;
    let status = job.wait()?;
    let said = fs::read_to_string(place.path("said"))?;
    if status.success() || !said.contains("the helper that starts programs has died") {
        return Err(format!("{status}: {said}").into());
    }
    until("the programs end", || {
        let mut all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let is_it = |words: Vec<u8>| words.split(|byte| *byte == 0).any(|word| word == mark.as_bytes());
        !all.any(|entry| fs::read(entry.path().join("cmdline")).is_ok_and(is_it))
    })
}

fn sleeping() -> Result<(), Failed> {
    let place = Place::new()?;
    let lengths = "exponential:mean=2ms,tasks=500,costs=known,speeds=1/2/4";
    let outcome = place.farm(5, &["--sleep", lengths, "--journal", &place.text("j")])?;
    hold(outcome.status == Some(0) && place.recorded() == (1..=500).map(|seq| (seq, 1)).collect(), "each once", &outcome)
}

fn rules() -> Result<(), Failed> {
    let rules = ["ss", "fixed,chunk=3", "gss", "fac2", "tss", "wf", "awf", "af", "static", "single"];
    let later = ["fsc", "mfsc", "tfss", "fiss,stages=4", "tap", "awf-b", "awf-c"];
    for rule in rules.into_iter().chain(later) {
        let place = Place::new()?;
        place.write_list(25, 0.0)?;
        let scheduler = format!("selfsched:rule={rule}");
        let outcome = place.farm(3, &[&place.text("jobs"), "--scheduler", &scheduler])?;
        hold(outcome.status == Some(0) && place.ran() == (1..=25).map(|seq| (seq, 1)).collect(), rule, &outcome)?;
    }
    Ok(())
}

/// With estimates of some tasks only, on ranks of different speed, and with several workers.
fn schedulers(ranks: u32) -> Result<(), Failed> {
    for scheduler in ["dss", "sash", "sads", "sash:expansions=3"] {
        let place = Place::new()?;
        let line = |seq| match seq % 3 {
            0 => format!("sh -c 'echo {seq} >>{}'\n", place.text("ran")),
            rest => format!("sh -c 'sleep 0.0{rest}; echo {seq} >>{}' #EQ cost=0.0{rest}\n", place.text("ran")),
        };
        fs::write(place.path("jobs"), (1..=40).map(line).collect::<String>())?;
        let workers = if ranks == 3 { "2" } else { "1" };
        let outcome =
            place.farm(ranks, &[&place.text("jobs"), "--scheduler", scheduler, "--workers", workers, "--journal", &place.text("j")])?;
        let each = (1..=40).map(|seq| (seq, 1)).collect();
        hold(outcome.status == Some(0) && place.ran() == each && place.recorded() == each, scheduler, &outcome)?;
    }
    Ok(())
}

/// The processes that come from one, with their words.
fn descendants(of: u32) -> Vec<(u32, String)> {
    let mut found: Vec<(u32, String)> = Vec::new();
    let mut parents = vec![of];
    while let Some(parent) = parents.pop() {
        for task in fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace().filter_map(|pid| pid.parse().ok()) {
                let words = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
                found.push((child, String::from_utf8_lossy(&words).replace('\0', " ")));
                parents.push(child);
            }
        }
    }
    found
}

/// The rank of this number among processes.
fn rank(all: &[(u32, String)], number: &str) -> Option<u32> {
    let is_rank = |pid: u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let entries = String::from_utf8_lossy(&environment).into_owned();
        entries.split('\0').any(|entry| entry == format!("OMPI_COMM_WORLD_RANK={number}") || entry == format!("PMI_RANK={number}"))
    };
    all.iter().find(|(pid, words)| words.starts_with(PROGRAM) && is_rank(*pid)).map(|(pid, _)| *pid)
}

fn started(place: &Place, ranks: u32, more: &[&str]) -> Result<Child, Failed> {
    let mut command = launch::launcher(LIMIT)?;
    command.args(["-n", &ranks.to_string(), PROGRAM, "farm", &place.text("jobs"), "--journal", &place.text("j"), "--resume"]).args(more);
    Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
}

fn until(what: &str, mut holds: impl FnMut() -> bool) -> Result<(), Failed> {
    let began = Instant::now();
    while !holds() {
        if began.elapsed() > Duration::from_secs(60) {
            return Err(format!("in vain waited for: {what}").into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn signal(name: &str, pid: u32) -> Result<(), Failed> {
    Command::new("kill").args([name, &pid.to_string()]).status()?;
    Ok(())
}

fn killed(victim: &str) -> Result<(), Failed> {
    let place = Place::new()?;
    place.write_list(60, 0.1)?;
    let mut farm = started(&place, 3, &[])?;
    until("some records", || place.recorded().len() >= 6)?;
    let all = descendants(farm.id());
    let pid = match victim {
        "rank 0" => rank(&all, "0"),
        "another rank" => rank(&all, "2"),
        "helper" => all.iter().find(|(_, words)| words.starts_with("equipoise-helper")).map(|(pid, _)| *pid),
        _ => all.iter().find(|(_, words)| words.contains("mpi") && words.contains("farm")).map(|(pid, _)| *pid),
    };
    signal("-KILL", pid.ok_or_else(|| Failed::from(format!("{victim} is not among {all:?}")))?)?;
    let status = farm.wait()?;
    if status.success() {
        return Err("a job that lost a process does not succeed".into());
    }
    // What was started is gone soon, too.
    let mark = place.text("ran");
    let is_command = |words: &[u8]| words.starts_with(b"sh\0") && String::from_utf8_lossy(words).contains(&mark);
    until("the commands end", || {
        let mut all = fs::read_dir("/proc").into_iter().flatten().flatten();
        !all.any(|entry| fs::read(entry.path().join("cmdline")).is_ok_and(|words| is_command(&words)))
    })?;
    let (recorded, before) = (place.recorded(), place.ran());
    let outcome = place.farm(3, &[&place.text("jobs"), "--journal", &place.text("j"), "--resume"])?;
    let after = place.ran();
    hold(outcome.status == Some(0) && after.len() == 60, "the rest has run", &outcome)?;
    hold(recorded.keys().all(|seq| before.get(seq) == after.get(seq)), "none runs again whose record was on the disk", &outcome)?;
    hold(place.recorded() == (1..=60).map(|seq| (seq, 1)).collect(), "each has one final record", &outcome)
}

/// The second farm runs nothing that has a record of the first one, although that loses rank 0 first and its other ranks later.
fn shared(ranks: u32) -> Result<(), Failed> {
    let place = Place::new()?;
    let tasks = 60 * u64::from(ranks);
    // Many ranks take long to start, and there have to be tasks left for the second farm.
    place.write_list(tasks, 0.05 * f64::from(ranks.div_ceil(3)))?;
    let records = |job: &str| fs::read_to_string(place.path(job)).map_or(0, |text| text.lines().count());
    let mut first = started(&place, ranks, &[])?;
    until("some records", || records("j/rank-0.log") > 3)?;
    let mut second = started(&place, ranks, &[])?;
    until("records of the second", || records("j/rank-0.2.log") > 3)?;
    signal("-KILL", rank(&descendants(first.id()), "0").ok_or("there is no rank 0")?)?;
    let (one, other) = (first.wait()?, second.wait()?);
    let (recorded, ran) = (place.recorded(), place.ran());
    let again = ran.values().filter(|times| **times > 1).count() as u64;
    let each = recorded == (1..=tasks).map(|seq| (seq, 1)).collect();
    match !one.success() && other.success() && each && ran.len() as u64 == tasks && again <= 2 * u64::from(ranks) {
        true => Ok(()),
        false => Err(format!("{one}, {other}: {} records, {} ran, {again} of them again", recorded.len(), ran.len()).into()),
    }
}

/// The first farm is not disturbed; nor is a journal begun where the input is missing.
fn another_list(ranks: u32) -> Result<(), Failed> {
    let place = Place::new()?;
    let tasks = 30 * u64::from(ranks);
    place.write_list(tasks, 0.1)?;
    let mut first = started(&place, ranks, &[])?;
    until("some records", || place.recorded().len() > 3)?;
    let refused = |outcome: Outcome, said: &str| {
        outcome.expect(2, Duration::from_secs(60), &[(said, 1)]).map_err(|why| format!("{why}: {}", outcome.told()))
    };
    let journal = place.text("j");
    let outcome = place.farm(ranks, &["--array", "1-3", "--journal", &journal, "--", "echo", "X{}"])?;
    refused(outcome, "job 1 runs on it with another list of commands")?;
    let outcome = place.farm(ranks, &[&place.text("jobs"), "--journal", &place.text("k"), "--stdin", &place.text("none")])?;
    refused(outcome, "none: it cannot be read")?;
    let status = first.wait()?;
    let each: BTreeMap<u64, usize> = (1..=tasks).map(|seq| (seq, 1)).collect();
    match status.success() && place.recorded() == each && place.ran() == each && !place.path("k").exists() {
        true => Ok(()),
        false => Err(format!("{status}: {:?} recorded, {:?} ran", place.recorded(), place.ran()).into()),
    }
}

/// The first command ends when the last one has run; all between them wait for it.
fn behind_waiting(ranks: u32) -> Result<(), Failed> {
    let place = Place::new()?;
    let go = place.text("go");
    let first = format!("sh -c 'n=0; while test ! -e {go}; do n=$((n+1)); test $n -lt 200 || exit 1; sleep 0.1; done'\n");
    let list = first + &"true #EQ after=1\n".repeat(100) + &format!("touch {go}\n");
    fs::write(place.path("jobs"), list)?;
    let outcome = place.farm(ranks, &[&place.text("jobs"), "--workers", "2", "--journal", &place.text("j")])?;
    hold(outcome.status == Some(0) && place.recorded() == (1..=102).map(|seq| (seq, 1)).collect(), "each once", &outcome)
}

fn drains() -> Result<(), Failed> {
    let place = Place::new()?;
    place.write_list(200, 0.1)?;
    let mut farm = started(&place, 3, &["--grace", "5"])?;
    until("some records", || place.recorded().len() >= 6)?;
    let ranks = descendants(farm.id());
    let rank = ranks.iter().find(|(_, words)| words.starts_with(PROGRAM)).map(|(pid, _)| *pid);
    signal("-USR1", rank.ok_or("there is no rank")?)?;
    let status = farm.wait()?;
    let (recorded, ran) = (place.recorded(), place.ran());
    match status.code() == Some(4) && recorded.len() < 200 && recorded == ran {
        true => Ok(()),
        false => Err(format!("{status}: {} records, {} ran", recorded.len(), ran.len()).into()),
    }
}

fn wrong() -> Result<(), Failed> {
    let place = Place::new()?;
    fs::write(place.path("jobs"), "true\necho 'open\n")?;
    let outcome = place.farm(3, &[&place.text("jobs")])?;
    outcome
        .expect(2, Duration::from_secs(60), &[("jobs, line 2: a quote is not closed", 1)])
        .map_err(|why| format!("{why}: {}", outcome.told()).into())
}
