//! Presence of jobs on a journal: which of them are alive.
//!
//! `DIR/job-J` says where job J runs. Its second line is a number that the job raises every two seconds by a thread of its own: this heartbeat does not
//! stop while the job waits for the reader of its output. `DIR/job-J.ended` says that the job is over. The job writes it, or another one that has
//! found it dead, so that all agree on that for ever; a job that was found dead and is not ends when it sees the file.
//!
//! A job is dead when its process is gone from this host and nobody here writes its records any more, or, on another host, when its heartbeat has not changed for 30 seconds. The job that looks
//! measures this time by its own steady clock, and only while it looks. Neither the hosts' clocks nor the file system's matter.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use equipoise::{Error, Result, names};

use crate::{environment, journal};

/// Time between two heartbeats.
const BEAT: Duration = Duration::from_secs(2);
/// Time without a heartbeat after which a job on another host is dead.
const SILENT: Duration = Duration::from_secs(30);
/// Time after which a job is dead whose process is gone.
const GONE: Duration = Duration::from_secs(1);
/// The same for a job on several hosts, where launchers need some seconds to end the other ranks, which may still write records.
const GONE_FAR: Duration = Duration::from_secs(10);
/// Maximum part of the time between two looks that counts as silence: while nobody looked, the file system may have been away.
const LOOK: Duration = Duration::from_secs(5);
/// Time between two readings of another job's file.
const AGAIN: Duration = Duration::from_millis(500);

/// Knowledge about another job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It may be dead: since it was first looked at, its heartbeat has not changed.
    Unknown,
    Alive,
    Dead,
}

/// A sign of another job.
#[derive(Clone, Copy, Debug)]
enum Sign<'a> {
    /// Its process runs on this host.
    Runs,
    /// Its process is gone from this host; perhaps it had others elsewhere.
    Gone { elsewhere: bool },
    /// It runs on another host, and this is its file.
    Text(&'a [u8]),
}

/// Observations of another job until now.
#[derive(Debug)]
struct Sight {
    life: Life,
    text: Option<Vec<u8>>,
    looked: Instant,
    /// Time in which there was no sign of it.
    silent: Duration,
}

impl Sight {
    fn new(now: Instant) -> Sight {
        Sight { life: Life::Unknown, text: None, looked: now, silent: Duration::ZERO }
    }

    /// Looks at a sign.
    fn look(&mut self, sign: Sign, now: Instant) {
        let since = now.saturating_duration_since(self.looked).min(LOOK);
        self.looked = now;
        let limit = match sign {
            Sign::Runs => {
                (self.life, self.silent) = (Life::Alive, Duration::ZERO);
                return;
            }
            Sign::Gone { elsewhere } => {
                if elsewhere {
                    GONE_FAR
                } else {
                    GONE
                }
            }
            Sign::Text(text) if self.text.as_deref() != Some(text) => {
                if self.text.replace(text.to_vec()).is_some() {
                    self.life = Life::Alive;
                }
                self.silent = Duration::ZERO;
                return;
            }
            Sign::Text(_) => SILENT,
        };
        self.silent += since;
        if self.silent >= limit {
            self.life = Life::Dead;
        }
    }
}

/// A job's presence on a journal.
pub struct Presence {
    folder: PathBuf,
    job: u32,
    /// Its file, and where the heartbeat is in it.
    file: File,
    at: u64,
    sights: Mutex<BTreeMap<u32, Sight>>,
    has_ended: AtomicBool,
    is_lost: AtomicBool,
    /// Others were there when they were last looked for.
    has_others: AtomicBool,
}

/// This process: host, boot, namespace of processes, process, and when it began. The first three say where the fourth means something.
fn place() -> &'static str {
    static PLACE: OnceLock<String> = OnceLock::new();
    PLACE.get_or_init(find_place)
}

fn find_place() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let pid = std::process::id();
    format!("{}\t{}\t{}\t{pid}\t{}", environment::host(), boot.trim(), space.display(), began(pid).unwrap_or_default())
}

/// Start time of a process, in the system's ticks; `None` if it is gone.
fn began(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may have anything in it. A zombie has ended.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    (fields.first() != Some(&"Z")).then(|| fields.get(19).map(ToString::to_string))?
}

/// The sign that a job's file gives, seen from a place.
fn sign<'a>(text: &'a [u8], here: &str) -> Sign<'a> {
    let first = text.split(|byte| *byte == b'\n').next().and_then(|line| std::str::from_utf8(line).ok()).unwrap_or_default();
    let (words, own): (Vec<&str>, Vec<&str>) = (first.split('\t').collect(), here.split('\t').collect());
    match (words.as_slice(), own.as_slice()) {
        ([host, boot, space, pid, start, hosts], [here @ .., _, _]) if [*host, *boot, *space] == *here => {
            let runs = pid.parse().ok().and_then(began).is_some_and(|began| began == *start);
            if runs { Sign::Runs } else { Sign::Gone { elsewhere: *hosts != "1" } }
        }
        _ => Sign::Text(text),
    }
}

/// Returns true if a process on this host has a file of a job's records open to write: another rank, which ends soon.
fn has_writer(folder: &Path, job: u32) -> bool {
    let Ok(folder) = folder.canonicalize() else { return false };
    let entries = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
    let is_number = |entry: &fs::DirEntry| entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok());
    let is_record = |file: &Path| {
        let job_of = |name: &str| journal::numbers(name).map(|(_, job)| job);
        file.parent() == Some(&folder) && file.file_name().and_then(|name| name.to_str()).and_then(job_of) == Some(job)
    };
    entries("/proc".into()).filter(is_number).any(|process| {
        entries(process.path().join("fd")).any(|descriptor| {
            // Who only reads them, as another job or `tail -f`, is no rank.
            let writes = |text: String| {
                let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
                flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).is_some_and(|flags| flags & 3 != 0)
            };
            fs::read_link(descriptor.path()).is_ok_and(|file| is_record(&file))
                && fs::read_to_string(process.path().join("fdinfo").join(descriptor.file_name())).is_ok_and(writes)
        })
    })
}

impl Presence {
    /// Enters a folder, which is made if need be, and takes the next number for a job on it, which runs on some hosts.
    ///
    /// # Errors
    /// Wrong usage if the folder cannot be written to.
    pub fn enter(folder: &Path, hosts: u32) -> Result<Arc<Presence>> {
        Presence::enter_as(folder, place(), hosts)
    }

    fn enter_as(folder: &Path, place: &str, hosts: u32) -> Result<Arc<Presence>> {
        let refused = |why: io::Error| Error::usage(format!("--journal {}: it cannot be written to: {why}", names::shown(folder)));
        let first = format!("{place}\t{hosts}\n");
        let job = journal::enter(folder, &format!("{first}{}", beat(0)))?;
        let file = OpenOptions::new().write(true).open(folder.join(format!("job-{job}"))).map_err(refused)?;
        let presence = Arc::new(Presence {
            folder: folder.to_path_buf(),
            job,
            file,
            at: first.len() as u64,
            sights: Mutex::default(),
            has_ended: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            has_others: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&presence);
        std::thread::Builder::new().name("heartbeat".into()).spawn(move || go_on(&weak)).map_err(refused)?;
        Ok(presence)
    }

    /// The number of the job.
    pub fn job(&self) -> u32 {
        self.job
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn ended_file(&self, job: u32) -> PathBuf {
        self.folder.join(format!("job-{job}.ended"))
    }

    /// Looks at another job.
    pub fn life(&self, job: u32) -> Life {
        self.look(job).unwrap_or(Life::Dead)
    }

    /// As [`Presence::life`]; `None` if there is no such job.
    fn look(&self, job: u32) -> Option<Life> {
        let now = Instant::now();
        let mut sights = self.sights.lock().unwrap_or_else(PoisonError::into_inner);
        let known = sights.entry(job).or_insert_with(|| Sight::new(now));
        let is_recent = known.text.is_some() && now.saturating_duration_since(known.looked) < AGAIN;
        if known.life == Life::Dead || is_recent {
            return Some(known.life);
        }
        if self.ended_file(job).exists() {
            known.life = Life::Dead;
            return Some(Life::Dead);
        }
        let Ok(text) = fs::read(self.folder.join(format!("job-{job}"))) else {
            sights.remove(&job);
            return None;
        };
        let sign = match sign(&text, place()) {
            Sign::Gone { .. } if has_writer(&self.folder, job) => Sign::Runs,
            sign => sign,
        };
        known.look(sign, now);
        if known.life == Life::Dead && File::create(self.ended_file(job)).is_err() {
            // All jobs have to know it.
            known.life = Life::Unknown;
        }
        Some(known.life)
    }

    /// The other jobs that are not dead.
    pub fn others(&self) -> Vec<u32> {
        let lives = (1..).filter(|job| *job != self.job).map(|job| (job, self.look(job)));
        let known = lives.take_while(|(job, life)| life.is_some() || *job < self.job);
        let others: Vec<u32> = known.filter(|(_, life)| life.is_some_and(|life| life != Life::Dead)).map(|(job, _)| job).collect();
        self.has_others.store(!others.is_empty(), Ordering::Release);
        others
    }

    /// Returns true if there was no other job a moment ago.
    pub fn is_alone(&self) -> bool {
        !self.has_others.load(Ordering::Acquire)
    }

    /// Ends the job: what it holds becomes free.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        let _ = File::create(self.ended_file(self.job));
    }

    /// Checks that no other job has found this one dead.
    ///
    /// # Errors
    /// If one has, and may run this job's tasks.
    pub fn check(&self) -> Result<()> {
        match self.is_lost.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(Error::Failed(format!(
                "--journal {}: this job gave no sign of life for {} s; another one has its tasks now, and this one ends",
                names::shown(&self.folder),
                SILENT.as_secs()
            ))),
        }
    }

    /// Lets time pass in which nothing is seen of a job.
    #[cfg(test)]
    pub(crate) fn pass(&self, job: u32, time: Duration) {
        self.life(job);
        let mut sights = self.sights.lock().unwrap();
        let sight = sights.get_mut(&job).unwrap();
        sight.silent += time;
        sight.looked -= AGAIN;
    }
}

/// The line of a heartbeat, which is as long as any other.
fn beat(number: u64) -> String {
    format!("{number:020}\n")
}

/// Shows that the job is alive, and looks at the others, as long as it is there.
fn go_on(presence: &Weak<Presence>) {
    for number in 1.. {
        std::thread::sleep(BEAT);
        let Some(presence) = presence.upgrade() else { return };
        if presence.has_ended.load(Ordering::Acquire) {
            return;
        }
        if presence.ended_file(presence.job).exists() && !presence.has_ended.load(Ordering::Acquire) {
            presence.is_lost.store(true, Ordering::Release);
        }
        // A disk that does not take it for a while is no reason to end.
        let _ = presence.file.write_all_at(beat(number).as_bytes(), presence.at).and_then(|()| presence.file.sync_data());
        presence.others();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use equipoise::topology::RankId;

    /// A job of which there is only the file: on another host, or a process of this one that is gone.
    pub fn only_file(folder: &Path, elsewhere: bool) -> u32 {
        let place = place();
        let text = match elsewhere {
            true => format!("elsewhere\t{place}\t1\n{}", beat(0)),
            false => format!("{}\t1\t1\n{}", place.rsplit_once('\t').unwrap().0, beat(0)),
        };
        journal::enter(folder, &text).unwrap()
    }

    #[test]
    fn a_job_elsewhere_lives_as_long_as_its_heart_beats() {
        let mut now = Instant::now();
        let mut sight = Sight::new(now);
        let mut look = |text: &[u8], seconds| {
            now += Duration::from_secs(seconds);
            sight.look(Sign::Text(text), now);
            sight.life
        };
        assert_eq!(look(b"1", 0), Life::Unknown);
        assert_eq!(look(b"2", 100), Life::Alive);
        for _ in 0..5 {
            assert_eq!(look(b"2", 5), Life::Alive);
        }
        assert_eq!((look(b"3", 5), look(b"3", 4)), (Life::Alive, Life::Alive));
        // Nobody looked for long.
        assert_eq!(look(b"3", 1000), Life::Alive);
        assert_eq!((0..5).map(|_| look(b"3", 5)).last(), Some(Life::Dead));
    }

    #[test]
    fn a_job_that_is_never_heard_is_dead_in_the_end() {
        let mut now = Instant::now();
        let mut sight = Sight::new(now);
        let lives: Vec<Life> = (0..16)
            .map(|_| {
                sight.look(Sign::Text(b"1"), now);
                now += Duration::from_secs(2);
                sight.life
            })
            .collect();
        assert!(lives[..15].iter().all(|life| *life == Life::Unknown) && lives[15] == Life::Dead, "{lives:?}");
    }

    #[test]
    fn a_process_here_lives_as_long_as_it_runs() {
        let now = Instant::now();
        let mut sight = Sight::new(now);
        sight.look(Sign::Runs, now);
        assert_eq!(sight.life, Life::Alive);
        for (elsewhere, limit) in [(false, GONE), (true, 9 * GONE)] {
            let mut sight = Sight::new(now);
            sight.look(Sign::Gone { elsewhere }, now + limit / 2);
            assert_eq!(sight.life, Life::Unknown);
            sight.look(Sign::Gone { elsewhere }, now + limit);
            assert_eq!(sight.life, if elsewhere { Life::Unknown } else { Life::Dead });
        }
        // The same process number elsewhere, and in another boot or space of processes, says nothing.
        let here = place();
        assert!(matches!(sign(format!("{here}\t1\n").as_bytes(), here), Sign::Runs));
        for at in 0..3 {
            let other: Vec<String> =
                here.split('\t').enumerate().map(|(word, text)| if word == at { format!("{text}x") } else { text.into() }).collect();
            assert!(matches!(sign(format!("{}\t1\n", other.join("\t")).as_bytes(), here), Sign::Text(_)), "{at}");
        }
    }

    /// Other ranks of a job whose process is gone still write its records.
    #[test]
    fn a_job_whose_records_are_written_is_not_dead() {
        let folder = tempfile::tempdir().unwrap();
        let gone = only_file(folder.path(), false);
        let one = Presence::enter(folder.path(), 1).unwrap();
        let path = journal::file(folder.path(), RankId::new(3), gone);
        let writer = File::options().append(true).create(true).open(&path).unwrap();
        let _reader = File::open(&path).unwrap();
        one.pass(gone, GONE);
        one.pass(gone, GONE);
        assert_eq!(one.life(gone), Life::Alive);
        drop(writer);
        one.pass(gone, GONE);
        assert_eq!(one.life(gone), Life::Dead);
    }

    #[test]
    fn all_agree_on_who_is_dead() {
        let folder = tempfile::tempdir().unwrap();
        let one = Presence::enter(folder.path(), 1).unwrap();
        let far = only_file(folder.path(), true);
        let other = Presence::enter(folder.path(), 1).unwrap();
        assert_eq!((one.job(), far, other.job()), (1, 2, 3));
        assert_eq!((one.others(), other.others()), (vec![2, 3], vec![1, 2]));
        one.pass(far, SILENT);
        assert_eq!((one.life(far), one.others()), (Life::Dead, vec![3]));
        assert_eq!(Presence::enter(folder.path(), 1).unwrap().others(), [1, 3]);
        one.end();
        assert_eq!(other.life(1), Life::Dead);
    }

    /// The time of no file and of no clock says whether a job lives: only that its heartbeat changes.
    #[test]
    fn clocks_do_not_matter() {
        let folder = tempfile::tempdir().unwrap();
        let far = Presence::enter_as(folder.path(), "elsewhere\tx\ty\t1\t1", 1).unwrap();
        let here = Presence::enter(folder.path(), 1).unwrap();
        let seen = |life| {
            let began = Instant::now();
            while here.life(1) != life && began.elapsed() < 10 * BEAT {
                let hour = Duration::from_secs(3600);
                let wrong = std::time::SystemTime::now() - hour;
                let _ = File::options().write(true).open(folder.path().join("job-1")).and_then(|file| file.set_modified(wrong));
                std::thread::sleep(Duration::from_millis(50));
            }
            assert_eq!(here.life(1), life);
        };
        seen(Life::Alive);
        far.check().unwrap();
        // Silent for too long, it is dead for ever, and it sees that itself.
        here.pass(1, SILENT + BEAT);
        seen(Life::Dead);
        let began = Instant::now();
        while far.check().is_ok() && began.elapsed() < 10 * BEAT {
            std::thread::sleep(Duration::from_millis(50));
        }
        let why = far.check().unwrap_err();
        assert!(why.to_string().contains("this job gave no sign of life for 30 s"), "{why}");
    }
}
