//! Preparation of a job on rank 0: it checks the list, reads the records of earlier jobs, and enters the journal.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use equipoise::{Error, Result, names};

use crate::helper::running::now;
use crate::joining::{Joined, Shared, join, withdraw};
use crate::journal::joblog::Joblog;
use crate::journal::past::{Past, Verdict};
use crate::journal::{self, foreign};
use crate::leases::Leases;
use crate::list::digest::Digest;
use crate::list::formats::Format;
use crate::list::{Entry, List, Origin};
use crate::presence::Presence;
use crate::report::Report;
use crate::settings::Settings;
use crate::task::{Needs, Task};

/// Initial state of the lead.
pub struct Prepared {
    pub list: List,
    /// Number of tasks, if it is known.
    pub total: Option<u64>,
    pub past: Past,
    /// Estimated seconds by Seq.
    pub costs: HashMap<u64, f64>,
    /// The number of the job on its journal.
    pub job: u32,
    pub joblog: Option<Joblog>,
    /// Presence on the journal.
    pub presence: Option<Arc<Presence>>,
    /// Leases, where the list can be shared with other jobs on the journal.
    pub leases: Option<Leases>,
    pub report: Option<Report>,
}

/// Prepares a job whose hosts have this number of ranks or more.
///
/// # Errors
/// Wrong usage, with one sentence.
pub fn prepare(settings: &Settings, ranks_of_host: u32) -> Result<Prepared> {
    prepare_and_say(settings, ranks_of_host, &mut |_| ())
}

/// The same; `say` receives what is waited for, and remarks.
///
/// # Errors
/// Wrong usage, with one sentence.
pub fn prepare_and_say(settings: &Settings, ranks_of_host: u32, say: &mut dyn FnMut(&str)) -> Result<Prepared> {
    let surveyed = survey(settings, ranks_of_host)?;
    let digest = |tasks| if Some(tasks) == surveyed.total { Ok(surveyed.digest) } else { digest(settings, tasks) };
    let shared = surveyed.total.filter(|_| surveyed.can_be_shared).map(|tasks| Shared { tasks, digest: &digest });
    let joined = settings.journal.as_ref().map(|folder| join(folder, settings.hosts, shared.as_ref(), surveyed.total, say)).transpose()?;
    let presence = joined.as_ref().map(|joined| joined.presence.clone());
    // A job that begins nothing is no longer there for others.
    let prepared = with_records(settings, &surveyed, joined).inspect_err(|_| presence.iter().for_each(|presence| withdraw(presence)))?;
    if let (Some(path), Some(why)) = (&settings.costs, surveyed.total.and_then(|total| misfit(&prepared.costs, total))) {
        say(&format!("--costs {}: {why}", names::shown(path)));
    }
    Ok(prepared)
}

/// Why estimates are not those of a list of this length.
fn misfit(costs: &HashMap<u64, f64>, total: u64) -> Option<String> {
    let last = costs.keys().copied().max()?;
    match last.cmp(&total) {
        Ordering::Greater => Some(format!("it has an estimate for task {last}, and the list has {total} tasks")),
        Ordering::Less if last == costs.len() as u64 => {
            Some(format!("it has estimates for the first {last} of {total} tasks; the others have none"))
        }
        _ => None,
    }
}

/// Reads the records when the job has joined the journal: what jobs before it did is complete by then, and what others do from now on it does not do.
fn with_records(settings: &Settings, surveyed: &Surveyed, joined: Option<Joined>) -> Result<Prepared> {
    let others = joined.as_ref().map_or(&[][..], |joined| &joined.others);
    let mut past = past(settings, others)?;
    let costs = costs(settings, &mut past, "--costs ")?;
    let mut joblog = settings.joblog.as_ref().map(|path| Joblog::open(path)).transpose()?;
    let report = settings.report.as_ref().map(|folder| {
        let refused = |why| Error::usage(format!("--report {}: it cannot be written to: {why}", names::shown(folder)));
        Report::create(folder, now()).map_err(refused)
    });
    let report = report.transpose()?;
    let list = open(settings)?;
    let job = joined.as_ref().map_or(1, |joined| joined.presence.job());
    if let (Some(joblog), Some(path)) = (&mut joblog, &settings.joblog) {
        let came_before = others.iter().any(|other| *other < job);
        joblog.begin(path, settings.resume, came_before)?;
    }
    let (presence, leases) = joined.map_or((None, None), |joined| (Some(joined.presence), joined.leases));
    Ok(Prepared { list, total: surveyed.total, past, costs, job, joblog, presence, leases, report })
}

pub(crate) fn open(settings: &Settings) -> Result<List> {
    let stdin = settings.stdin.as_ref().map(|path| path.as_os_str().as_bytes().to_vec());
    List::open(&settings.origin, settings.shell, stdin, settings.follow)
}

/// Facts about a list that are known before the job.
#[derive(Debug, Default, PartialEq, Eq)]
struct Surveyed {
    /// Number of tasks.
    total: Option<u64>,
    /// It can be read again, as can the logs that say what is finished, and its tasks can be run in any order but for `after=`.
    can_be_shared: bool,
    /// Digest of all of its tasks.
    digest: u64,
}

/// Looks through a list that can be read twice, so that what is wrong in it is said before anything runs.
fn survey(settings: &Settings, ranks_of_host: u32) -> Result<Surveyed> {
    let by_rule = Digest::of_rule(settings).map_or(0, Digest::value);
    let all = |total| Ok(Surveyed { total: Some(total), can_be_shared: logs_stay(settings), digest: by_rule });
    let file = match &settings.origin {
        Origin::Commands { file, .. } | Origin::Arguments { file, .. } => file,
        Origin::Empty(tasks) => return all(*tasks),
        Origin::Sleep(sleep) => return all(sleep.tasks),
        Origin::Array { first, last, step, .. } => return all((last - first) / step + 1),
    };
    if settings.follow || !file.is_file() {
        return Ok(Surveyed::default());
    }
    let (mut list, mut tasks, mut can_be_shared, mut digest) = (open(settings)?, 0, logs_stay(settings), Digest::default());
    while let Some(entry) = list.entry()? {
        let Entry::Task(task) = entry else {
            can_be_shared = false;
            continue;
        };
        tasks += 1;
        digest.add(&task);
        // The first rank of a host has no less than the others.
        if let Some(why) = settings.capacity(0, ranks_of_host).objection(task.needs) {
            return Err(Error::usage(format!("{}, line {}: {why}", names::shown(file), task.line)));
        }
    }
    Ok(Surveyed { total: Some(tasks), can_be_shared, digest: digest.value() })
}

/// Returns true if the logs can be read again. A job that shares its list reads them whenever it looks at what others have done, and a pipe is empty by then.
fn logs_stay(settings: &Settings) -> bool {
    settings.logs.iter().all(|path| path.is_file())
}

/// Digest of the first tasks of a list.
fn digest(settings: &Settings, tasks: u64) -> Result<u64> {
    if let Some(digest) = Digest::of_rule(settings) {
        return Ok(digest.value());
    }
    let (mut list, mut digest) = (open(settings)?, Digest::default());
    for _ in 0..tasks {
        if let Some(Entry::Task(task)) = list.entry()? {
            digest.add(&task);
        }
    }
    Ok(digest.value())
}

/// Records of earlier jobs, and of the jobs `others` that run now.
///
/// # Errors
/// Wrong usage if there is a journal already and the job was not started to resume it, or if a log cannot be read.
pub fn past(settings: &Settings, others: &[u32]) -> Result<Past> {
    let mut past = Past::of(&settings.origin);
    let goes_on = settings.resume || settings.retry_failed;
    if let Some(folder) = settings.journal.as_ref().filter(|folder| folder.exists()) {
        let unreadable = |why: io::Error| Error::usage(format!("--journal {}: it cannot be read: {why}", names::shown(folder)));
        past.read_folder(folder).map_err(unreadable)?;
        if !past.is_empty() && !goes_on && others.is_empty() {
            return Err(Error::usage(format!(
                "--journal {}: it has the records of an earlier job; say --resume to go on with it, or name another folder",
                names::shown(folder)
            )));
        }
    }
    let unreadable =
        |option: &str, path: &Path, why: io::Error| Error::usage(format!("{option} {}: it cannot be read: {why}", names::shown(path)));
    if let Some(path) = settings.joblog.as_ref().filter(|path| goes_on && path.exists()) {
        foreign::read(&mut past, path).map_err(|why| unreadable("--joblog", path, why))?;
    }
    for path in &settings.logs {
        foreign::read(&mut past, path).map_err(|why| unreadable("--resume-from", path, why))?;
    }
    past.settle();
    Ok(past)
}

/// Estimates; `option` is what named the file, as a sentence begins with it: a file with a number of seconds on each line, for the tasks in order, or with Seq before it; or a journal or job log of another run,
/// from which they are learnt by program and arguments.
fn costs(settings: &Settings, past: &mut Past, option: &str) -> Result<HashMap<u64, f64>> {
    let Some(path) = &settings.costs else { return Ok(HashMap::new()) };
    let unreadable = |why: io::Error| Error::usage(format!("{option}{}: it cannot be read: {why}", names::shown(path)));
    if path.is_dir() {
        return past.learn(|other| other.read_folder(path)).map(|()| HashMap::new()).map_err(unreadable);
    }
    let (has_records, source) = journal::source(path).map_err(unreadable)?;
    if has_records {
        return past.learn(|other| other.read_records(source)).map(|()| HashMap::new()).map_err(unreadable);
    }
    let text = journal::whole(source).and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other)).map_err(unreadable)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    let mut costs = HashMap::new();
    for (at, line) in lines {
        let words: Vec<&str> = line.split(|letter: char| letter.is_whitespace() || letter == ',').filter(|word| !word.is_empty()).collect();
        let seconds = |text: &str| text.parse::<f64>().ok().filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
        let entry = match words.as_slice() {
            [only] => seconds(only).map(|seconds| (costs.len() as u64 + 1, seconds)),
            [seq, cost] => seq.parse().ok().filter(|seq| *seq > 0).zip(seconds(cost)),
            _ => None,
        };
        let (seq, cost) = entry.ok_or_else(|| {
            let why = "it must be a number of seconds, 0 or more, perhaps with the number of a task before it";
            Error::usage(format!("{option}{}, line {}: {why}", names::shown(path), at + 1))
        })?;
        costs.insert(seq, cost);
    }
    Ok(costs)
}

/// Seconds that the commands of a list take: as its lines say (`cost=`), or as a journal or job log of an earlier run has it.
///
/// # Errors
/// Wrong usage if that is not known of a command, or if commands wait for each other or take resources.
pub fn times(file: &Path, journal: Option<&Path>) -> Result<Vec<f64>> {
    let mut settings = Settings::new(Origin::Commands { file: file.to_path_buf(), format: Format::Plain });
    settings.costs = journal.map(Path::to_path_buf);
    let mut past = Past::default();
    let costs = costs(&settings, &mut past, "journal=")?;
    let (mut list, mut times) = (open(&settings)?, Vec::new());
    while let Some(entry) = list.entry()? {
        let Entry::Task(task) = entry else {
            return Err(Error::usage("a comparison has independent tasks only, and the list has barriers".to_string()));
        };
        if !task.after.is_empty() {
            return Err(Error::usage(format!("line {}: a comparison has independent tasks only", task.line)));
        }
        let Needs { cpus, gpus, mem } = task.needs;
        if cpus > 1 || gpus > 0 || mem > 0 {
            let why = "a comparison has workers, and no resources (cpus=, gpus=, mem=)";
            return Err(Error::usage(format!("line {}: {why}", task.line)));
        }
        let known = task.cost.or_else(|| costs.get(&task.seq).copied()).or_else(|| past.learnt(&task.text));
        let unknown = || Error::usage(format!("line {}: it is not known how long it takes; say #EQ cost=, or journal=", task.line));
        times.push(known.ok_or_else(unknown)?);
    }
    Ok(times)
}

/// Calls `show` for each task that would run, in order.
///
/// # Errors
/// Wrong usage, or an error of `show`.
pub fn dry_run(settings: &Settings, mut show: impl FnMut(&Task) -> Result<()>) -> Result<()> {
    let past = past(settings, &[])?;
    let mut list = open(settings)?;
    while let Some(entry) = list.entry()? {
        match entry {
            Entry::Task(task) if matches!(past.judge(&task, settings.retry_failed), Verdict::Finished(_)) => {}
            Entry::Task(task) => show(&task)?,
            Entry::Later if settings.follow => return Ok(()),
            Entry::Later => std::thread::sleep(std::time::Duration::from_millis(5)),
            Entry::Barrier { .. } | Entry::PerHost { .. } => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::joining::tasks_of;
    use crate::journal::record;
    use crate::task::Outcome;
    use std::io::Write;

    fn list(text: &str) -> (tempfile::NamedTempFile, Settings) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let origin = Origin::Commands { file: file.path().to_path_buf(), format: crate::list::formats::Format::Plain };
        (file, Settings::new(origin))
    }

    #[test]
    fn what_is_wrong_is_said_before_anything_runs() {
        let (_file, mut settings) = list("a\nb #EQ cpus=4\n");
        let surveyed = survey(&settings, 1).unwrap();
        assert_eq!((surveyed.total, surveyed.can_be_shared, surveyed.digest), (Some(2), true, digest(&settings, 2).unwrap()));
        assert_ne!(surveyed.digest, digest(&settings, 1).unwrap());
        settings.slots = Some(crate::limits::SlotsGiven::parse("cpus=2").unwrap());
        let why = survey(&settings, 1).unwrap_err();
        assert!(why.exit_status() == 2 && why.to_string().ends_with(", line 2: it needs cpus=4, and a rank has 2 (--slots)"), "{why}");
    }

    #[test]
    fn a_journal_is_not_gone_on_with_unasked() {
        let folder = tempfile::tempdir().unwrap();
        let (_file, mut settings) = list("a\n");
        settings.journal = Some(folder.path().to_path_buf());
        let first = prepare(&settings, 1).unwrap();
        assert_eq!(first.job, 1);
        let mut records = record::header().into_bytes();
        record::write(&mut records, "h", &Outcome::without_run(1, crate::task::State::Done), b"a");
        std::fs::write(folder.path().join("rank-0.log"), records).unwrap();
        // The earlier job is over; otherwise the next one would share the list with it.
        first.presence.unwrap().end();
        assert_eq!(tasks_of(folder.path()), Some(1));
        settings.origin = Origin::Empty(5);
        assert!(prepare(&settings, 1).err().unwrap().to_string().contains("say --resume to go on with it"));
        assert_eq!(tasks_of(folder.path()), Some(1), "the list is that of the job that was not refused");
        let (_file, same) = list("a\n");
        settings.origin = same.origin;
        settings.resume = true;
        let third = prepare(&settings, 1).unwrap();
        assert_eq!((third.job, third.presence.unwrap().others()), (3, Vec::new()), "the one that was refused is gone");
        let mut shown = 0;
        dry_run(&settings, |_| {
            shown += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(shown, 0);
    }

    #[test]
    fn estimates_that_are_not_those_of_the_list_are_told() {
        let of = |seqs: &[u64]| misfit(&seqs.iter().map(|seq| (*seq, 1.0)).collect(), 3);
        assert_eq!([of(&[]), of(&[1, 2, 3]), of(&[2])], [None, None, None]);
        assert_eq!(of(&[1, 2]).unwrap(), "it has estimates for the first 2 of 3 tasks; the others have none");
        assert_eq!(of(&[1, 99]).unwrap(), "it has an estimate for task 99, and the list has 3 tasks");
    }

    /// A pipe that tells of finished commands can be read only once: such a job shares its list with no other.
    #[test]
    fn a_job_with_a_log_from_a_pipe_is_alone() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("log");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let (file, mut settings) = list("a\n");
        settings.logs = vec![file.path().to_path_buf()];
        assert!(survey(&settings, 1).unwrap().can_be_shared);
        settings.logs.push(pipe);
        assert!(!survey(&settings, 1).unwrap().can_be_shared);
        settings.origin = Origin::Empty(3);
        assert!(!survey(&settings, 1).unwrap().can_be_shared);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn devices_are_no_costs_and_no_journals() {
        let (_file, mut settings) = list("a\nb\n");
        let device = Path::new("/dev/zero");
        settings.costs = Some(device.to_path_buf());
        let why = costs(&settings, &mut Past::default(), "--costs ").unwrap_err().to_string();
        assert_eq!(why, "--costs /dev/zero: it cannot be read: it is neither a regular file nor a pipe");
        for why in [foreign::read(&mut Past::default(), device).unwrap_err(), Past::default().read_file(device).unwrap_err()] {
            assert_eq!(why.to_string(), "it is neither a regular file nor a pipe");
        }
    }

    #[test]
    fn costs_have_numbers_of_tasks_or_none() {
        let (_file, mut settings) = list("a\nb\n");
        let costs_file = tempfile::NamedTempFile::new().unwrap();
        settings.costs = Some(costs_file.path().to_path_buf());
        let read = |text: &str| {
            std::fs::write(costs_file.path(), text).unwrap();
            costs(&settings, &mut Past::default(), "--costs ").map_err(|why| why.to_string())
        };
        assert_eq!(read("# s\n1.5\n\n2\n").unwrap(), HashMap::from([(1, 1.5), (2, 2.0)]));
        assert_eq!(read("7 3\n2,1\n").unwrap(), HashMap::from([(7, 3.0), (2, 1.0)]));
        for (runtime, expected) in [("2.5", Some(2.5)), ("nan", None), ("inf", None), ("-1", None)] {
            let log = format!("{}\n1\th\t1.0\t{runtime}\t0\t0\t0\t0\ta\n", record::PARALLEL);
            std::fs::write(costs_file.path(), log).unwrap();
            let mut past = Past::default();
            costs(&settings, &mut past, "--costs ").unwrap();
            assert_eq!(past.learnt(b"a"), expected, "{runtime}");
        }
        for wrong in ["-1", "nan", "a 1", "1 2 3"] {
            assert!(read(wrong).unwrap_err().contains("line 1: it must be a number of seconds"), "{wrong}");
        }
    }
}
