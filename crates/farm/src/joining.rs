//! A job joins a journal: it is the first of the living jobs there, or it shares the list with those.
//!
//! Jobs join in the order of their numbers, each when all earlier ones have joined or are dead. So no two decide at the same time, and there is no lock
//! that could be left behind. The first of the living makes a new folder of leases, `DIR/leases-J`, and the later ones use it. A job has joined when
//! `DIR/job-J.joined` is there, with the number of this folder, and length and digest of its list if that can be shared. A later job's list must begin
//! with those of the living: it is the same list, or that list has grown since.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use equipoise::{Error, Result, names};

use crate::leases::{self, Leases};
use crate::presence::{Life, Presence};

/// Time between two looks at the jobs that are waited for.
const LOOK: Duration = Duration::from_millis(50);
/// Time after which it is said what is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// Words for a list that can be shared, and for one that cannot.
const SHARED: &str = "shared";
const ALONE: &str = "alone";

/// A job that has joined.
pub struct Joined {
    pub presence: Arc<Presence>,
    /// Leases, where the list can be shared with other jobs.
    pub leases: Option<Leases>,
    /// The other jobs that run.
    pub others: Vec<u32>,
}

/// The own list, which can be shared.
pub struct Shared<'a> {
    /// Number of its tasks.
    pub tasks: u64,
    /// The digest of this number of its first tasks.
    pub digest: &'a dyn Fn(u64) -> Result<u64>,
}

/// Length and digest of another job's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    tasks: u64,
    digest: u64,
}

/// Text that a job has written when it joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    /// The job whose leases it uses.
    owner: u32,
    /// Its list, if that can be shared.
    list: Option<Extent>,
}

impl Said {
    fn read(text: &str) -> Option<Said> {
        let words: Vec<&str> = text.trim().split('\t').collect();
        let list = match words.as_slice() {
            [_, SHARED, tasks, digest] => tasks.parse().ok().zip(u64::from_str_radix(digest, 16).ok()),
            _ => None,
        };
        Some(Said { owner: words.first()?.parse().ok()?, list: list.map(|(tasks, digest)| Extent { tasks, digest }) })
    }

    /// The text, with the number of tasks of a list that cannot be shared, if it is known.
    fn write(self, tasks: Option<u64>) -> String {
        match (self.list, tasks) {
            (Some(Extent { tasks, digest }), _) => format!("{}\t{SHARED}\t{tasks}\t{digest:016x}\n", self.owner),
            (None, Some(tasks)) => format!("{}\t{ALONE}\t{tasks}\n", self.owner),
            (None, None) => format!("{}\t{ALONE}\n", self.owner),
        }
    }
}

/// State of an earlier job.
#[derive(Clone, Copy, Debug)]
struct Earlier {
    job: u32,
    life: Life,
    joined: Option<Said>,
}

/// Decision on a job that wants to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// It is not known yet whether this job is alive, or what it decides.
    Wait(u32),
    /// No other is alive.
    First,
    /// Others are, whose leases are those of this job.
    With(u32),
    /// Others are, and this one has a list that cannot be shared.
    OthersAlone(u32),
    /// Others are, and the own list cannot be shared.
    Alone,
}

/// Decides by the earlier jobs, for a list that can be shared or can't.
fn decide(can_be_shared: bool, earlier: &[Earlier]) -> Entry {
    let is_open = |job: &&Earlier| job.life == Life::Unknown || (job.life == Life::Alive && job.joined.is_none());
    if let Some(open) = earlier.iter().find(is_open) {
        return Entry::Wait(open.job);
    }
    let living = || earlier.iter().filter(|job| job.life == Life::Alive);
    let alone = living().find(|job| job.joined.is_some_and(|said| said.list.is_none()));
    match (living().filter_map(|job| job.joined).map(|said| said.owner).max(), alone) {
        (None, _) => Entry::First,
        (_, Some(alone)) => Entry::OthersAlone(alone.job),
        (Some(_), None) if !can_be_shared => Entry::Alone,
        (Some(owner), None) => Entry::With(owner),
    }
}

/// The first living job whose list is another one, with the length of that.
///
/// # Errors
/// If the own list cannot be read again.
fn with_another_list(own: &Shared, earlier: &[Earlier]) -> Result<Option<(u32, u64)>> {
    let living = earlier.iter().filter(|job| job.life == Life::Alive);
    let mut same = Vec::new();
    for (job, list) in living.filter_map(|job| Some((job.job, job.joined?.list?))) {
        if same.contains(&list) {
            continue;
        }
        if own.tasks < list.tasks || (own.digest)(list.tasks)? != list.digest {
            return Ok(Some((job, list.tasks)));
        }
        same.push(list);
    }
    Ok(None)
}

fn joined_file(folder: &Path, job: u32) -> PathBuf {
    folder.join(format!("job-{job}.joined"))
}

/// Number of tasks of the list, as the last job that has joined a journal has said it; `None` if it is not known.
pub fn tasks_of(folder: &Path) -> Option<u64> {
    let names = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.file_name());
    let job = |name: std::ffi::OsString| name.to_str()?.strip_prefix("job-")?.strip_suffix(".joined")?.parse::<u32>().ok();
    let last = names.filter_map(job).max()?;
    let text = fs::read_to_string(joined_file(folder, last)).ok()?;
    match text.trim().split('\t').collect::<Vec<_>>().as_slice() {
        [_, SHARED, tasks, _] | [_, ALONE, tasks] => tasks.parse().ok(),
        _ => None,
    }
}

/// Joins the journal in a folder as a new job on some hosts, with its list if that can be shared, and the number of its tasks if it is known. `say` receives what
/// is waited for.
///
/// # Errors
/// Wrong usage if the folder cannot be written to, or if other jobs run on it and one of the lists cannot be shared, or theirs is another one.
pub fn join(folder: &Path, hosts: u32, shared: Option<&Shared>, tasks: Option<u64>, say: &mut dyn FnMut(&str)) -> Result<Joined> {
    let presence = Presence::enter(folder, hosts)?;
    let joined = enter(&presence, shared, tasks, say);
    if joined.is_err() {
        presence.end();
    }
    joined
}

/// Ends a job that has begun nothing, as if it had never joined: it has no list.
pub fn withdraw(presence: &Presence) {
    // It may not be there yet.
    let _ = fs::remove_file(joined_file(presence.folder(), presence.job()));
    presence.end();
}

fn enter(presence: &Arc<Presence>, shared: Option<&Shared>, tasks: Option<u64>, say: &mut dyn FnMut(&str)) -> Result<Joined> {
    let (folder, job) = (presence.folder(), presence.job());
    let refused = |why: io::Error| Error::usage(format!("--journal {}: it cannot be written to: {why}", names::shown(folder)));
    let (began, mut has_said) = (Instant::now(), false);
    let (earlier, entry) = loop {
        let look = |other: &u32| Earlier {
            job: *other,
            life: presence.life(*other),
            joined: fs::read_to_string(joined_file(folder, *other)).ok().and_then(|text| Said::read(&text)),
        };
        let earlier: Vec<Earlier> = presence.others().iter().filter(|other| **other < job).map(look).collect();
        let entry = decide(shared.is_some(), &earlier);
        let Entry::Wait(open) = entry else { break (earlier, entry) };
        if !has_said && began.elapsed() >= PATIENCE {
            has_said = true;
            say(&format!("--journal {}: job {open} has not ended; it takes up to 30 s to see whether it is alive", names::shown(folder)));
        }
        std::thread::sleep(LOOK);
    };
    let denied = |why: &str| Err(Error::usage(format!("--journal {}: {why}", names::shown(folder))));
    let owner = match entry {
        Entry::Alone => {
            return denied(
                "another job runs on it, and only a list in a file without barriers can be shared, with files for --resume-from",
            );
        }
        Entry::OthersAlone(other) => {
            return denied(&format!(
                "job {other} runs on it, whose list cannot be shared: it grows, has barriers, or comes from a pipe (or --resume-from does)"
            ));
        }
        Entry::With(owner) => owner,
        Entry::First | Entry::Wait(_) => job,
    };
    let mut said = Said { owner, list: None };
    if let Some(own) = shared {
        if let Some((other, tasks)) = with_another_list(own, &earlier)? {
            let why = format!(
                "job {other} runs on it with another list of commands ({tasks} tasks; this one has {}); say the same list, or name another folder",
                own.tasks
            );
            return denied(&why);
        }
        said.list = Some(Extent { tasks: own.tasks, digest: (own.digest)(own.tasks)? });
    }
    let leases = shared.map(|own| Leases::new(presence.clone(), owner, own.tasks)).transpose().map_err(refused)?;
    // It appears with what is in it.
    let new = folder.join(format!(".job-{job}.joined"));
    fs::write(&new, said.write(tasks)).and_then(|()| fs::rename(&new, joined_file(folder, job))).map_err(refused)?;
    if owner == job {
        leases::clear(folder, job);
    }
    let others = earlier.iter().filter(|other| other.life == Life::Alive).map(|other| other.job).collect();
    Ok(Joined { presence: presence.clone(), leases, others })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::leases::Hold;
    use crate::presence::tests::only_file;

    /// A list of this length whose digest is always the same.
    pub fn shared(tasks: u64) -> Shared<'static> {
        Shared { tasks, digest: &|_| Ok(7) }
    }

    #[test]
    fn what_a_job_says_of_its_list_is_read_again() {
        for list in [None, Some(Extent { tasks: 12, digest: u64::MAX }), Some(Extent { tasks: 0, digest: 3 })] {
            let said = Said { owner: 5, list };
            assert_eq!([Said::read(&said.write(None)), Said::read(&said.write(Some(4)))], [Some(said); 2]);
        }
        assert_eq!(Said::read("5\tshared\n"), Some(Said { owner: 5, list: None }));
        assert_eq!([Said::read(""), Said::read("x\talone")], [None; 2]);
    }

    #[test]
    fn the_last_job_says_how_long_the_list_is() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(tasks_of(folder.path()), None);
        for (job, text, expected) in [
            (2, "2\tshared\t7\t0f\n", Some(7)),
            (10, "2\tshared\t9\t0f\n", Some(9)),
            (11, "11\talone\n", None),
            (12, "12\talone\t5\n", Some(5)),
        ] {
            fs::write(joined_file(folder.path(), job), text).unwrap();
            assert_eq!(tasks_of(folder.path()), expected);
        }
    }

    #[test]
    fn lists_are_the_same_or_begin_with_that_of_the_others() {
        // The digest of the first n tasks is 10 + n.
        let own = |tasks| Shared { tasks, digest: &|tasks| Ok(10 + tasks) };
        let job = |job, life, tasks, digest| Earlier { job, life, joined: Some(Said { owner: 1, list: Some(Extent { tasks, digest }) }) };
        let (alive, dead) = (Life::Alive, Life::Dead);
        let other = |tasks, earlier: &[Earlier]| with_another_list(&own(tasks), earlier).unwrap();
        assert_eq!(other(4, &[]), None);
        assert_eq!(other(4, &[job(1, alive, 4, 14), job(2, alive, 3, 13), job(3, alive, 3, 13)]), None);
        assert_eq!(other(4, &[job(1, alive, 4, 15)]), Some((1, 4)));
        assert_eq!(other(4, &[job(1, alive, 4, 14), job(2, alive, 3, 14)]), Some((2, 3)));
        assert_eq!(other(4, &[job(1, alive, 5, 15)]), Some((1, 5)), "a shorter one is another");
        assert_eq!(other(4, &[job(1, dead, 4, 15)]), None);
    }

    #[test]
    fn a_job_with_another_list_is_refused_and_holds_up_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let first = joined(folder.path());
        let other = Shared { tasks: 512, digest: &|_| Ok(8) };
        let why = join(folder.path(), 1, Some(&other), None, &mut |_| ()).err().unwrap();
        let said =
            "job 1 runs on it with another list of commands (512 tasks; this one has 512); say the same list, or name another folder";
        assert!(why.exit_status() == 2 && why.to_string().ends_with(said), "{why}");
        assert_eq!(joined(folder.path()).others, [1]);
        drop(first);
    }

    fn joined(folder: &Path) -> Joined {
        join(folder, 1, Some(&shared(512)), None, &mut |_| ()).unwrap()
    }

    #[test]
    fn earlier_jobs_decide_first() {
        let job = |job, life, leases: Option<u32>| Earlier {
            job,
            life,
            joined: leases.map(|owner| Said { owner, list: Some(Extent { tasks: 9, digest: 1 }) }),
        };
        let (dead, alive, open) = (job(1, Life::Dead, Some(1)), job(2, Life::Alive, Some(2)), job(3, Life::Alive, None));
        for shared in [true, false] {
            assert_eq!([decide(shared, &[]), decide(shared, &[dead])], [Entry::First; 2]);
            assert_eq!(decide(shared, &[dead, alive, open]), Entry::Wait(3));
            assert_eq!(decide(shared, &[job(1, Life::Unknown, Some(1)), alive]), Entry::Wait(1));
        }
        // One that died before it had joined holds up nobody, and one that was found dead shares nothing, even if it is the first.
        assert_eq!(decide(true, &[dead, alive]), Entry::With(2));
        assert_eq!(decide(true, &[job(1, Life::Dead, None), alive, job(3, Life::Alive, Some(2))]), Entry::With(2));
        assert_eq!(decide(true, &[job(1, Life::Dead, Some(1)), job(2, Life::Dead, Some(1))]), Entry::First);
        // Lists that cannot be shared are refused, whichever of the jobs has one.
        assert_eq!(decide(false, &[dead, alive]), Entry::Alone);
        let alone = |life| Earlier { job: 4, life, joined: Some(Said { owner: 4, list: None }) };
        assert_eq!([decide(true, &[alone(Life::Alive)]), decide(false, &[alone(Life::Alive)])], [Entry::OthersAlone(4); 2]);
        assert_eq!([decide(true, &[alone(Life::Dead)]), decide(false, &[alone(Life::Dead)])], [Entry::First; 2]);
    }

    /// One of two jobs that begin at the same time is refused if one of the lists cannot be shared.
    #[test]
    fn a_list_that_cannot_be_shared_has_one_job() {
        for totals in [[None, Some(9)], [Some(9), None], [None, None]] {
            let folder = tempfile::tempdir().unwrap();
            let all = std::thread::scope(|scope| {
                let threads = totals.map(|total| {
                    scope.spawn({
                        let folder = folder.path();
                        move || join(folder, 1, total.map(shared).as_ref(), total, &mut |_| ())
                    })
                });
                threads.map(|thread| thread.join().unwrap())
            });
            assert_eq!(all.iter().filter(|joined| joined.is_ok()).count(), 1, "{totals:?}");
            let why = all.iter().find_map(|joined| joined.as_ref().err()).unwrap();
            assert!(why.exit_status() == 2 && why.to_string().contains("shared"), "{why}");
            // The one that was refused holds up nobody.
            all.iter().flatten().for_each(|joined| joined.presence.end());
            assert!(join(folder.path(), 1, None, None, &mut |_| ()).is_ok());
        }
    }

    #[test]
    fn the_first_of_the_living_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = joined(folder.path());
        assert_eq!(first.leases.as_mut().unwrap().hold(1).unwrap(), Hold::Ours);
        first.presence.end();
        only_file(folder.path(), false);
        let (mut next, mut other) = (joined(folder.path()), joined(folder.path()));
        assert_eq!((next.others.as_slice(), other.others.as_slice()), (&[][..], &[3][..]));
        assert_eq!(next.leases.as_mut().unwrap().hold(1).unwrap(), Hold::Ours);
        assert_eq!(other.leases.as_mut().unwrap().hold(1).unwrap(), Hold::Others);
        assert!(!folder.path().join("leases-1").exists(), "leases of the dead are gone");
    }

    /// One that comes while another decides waits for it, and if that dies goes on.
    #[test]
    fn a_job_that_dies_while_it_joins_holds_up_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let slow = Presence::enter(folder.path(), 1).unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| joined(folder.path()).others);
            std::thread::sleep(4 * LOOK);
            assert!(!waits.is_finished());
            slow.end();
            assert_eq!(waits.join().unwrap(), [0; 0]);
        });
    }

    #[test]
    fn of_jobs_that_join_at_a_time_one_is_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let all: Vec<Joined> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(|| joined(folder.path()))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(all.iter().filter(|joined| joined.others.is_empty()).count(), 1);
        let folders = fs::read_dir(folder.path()).unwrap().flatten().filter(|entry| entry.file_type().unwrap().is_dir()).count();
        assert_eq!(folders, 1, "they have the same leases");
    }
}
