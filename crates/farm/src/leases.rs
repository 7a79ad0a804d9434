//! Leases: several jobs on one journal share one list. A job takes blocks of consecutive tasks; what it holds no other runs.
//!
//! `DIR/leases/held-K.G` holds the number of the job that has block K; of several the one with the greatest G counts. Such a file appears by a hard
//! link, which only one job can make, and stays: when its job is dead, the next G is free to be taken. Nothing is renamed or removed, so that it does not
//! matter how much time passes between a look at a lease and its taking over. When all tasks of a block have their records, `done-K` appears.
//!
//! A job is dead when its process is gone on this host, or, on another one, when its heartbeat (the time of `DIR/job-J`) is older than 30 seconds.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::environment;

/// Time without a heartbeat after which a job on another host counts as dead.
const DEAD: Duration = Duration::from_secs(30);
/// Time between two heartbeats in seconds.
const BEAT: f64 = 5.0;
/// A list is cut into about this many blocks, of at most that many tasks.
const BLOCKS: u64 = 256;
const LARGEST: u64 = 1024;

/// Result of a request for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It is ours.
    Ours,
    /// It is ours, and was another job's: there may be new records of its tasks.
    Inherited,
    /// Another job has it.
    Others,
    /// All of its tasks have their records.
    Done,
}

/// The leases of one job.
pub struct Leases {
    folder: PathBuf,
    /// `DIR/leases`.
    leases: PathBuf,
    job: u32,
    size: u64,
    /// Our blocks that are not done: tasks that have no record yet, and whether more of its tasks are to be read.
    ours: BTreeMap<u64, (u64, bool)>,
    beaten: f64,
}

/// Content of a job's file: host, process, and when that began.
pub fn note() -> String {
    let pid = std::process::id();
    format!("{}\t{pid}\t{}\n", environment::host(), began(pid).unwrap_or_default())
}

/// When a process began, in the system's ticks; `None` if it is gone.
fn began(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may have anything in it. A zombie has ended.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    (fields.first() != Some(&"Z")).then(|| fields.get(19).map(ToString::to_string))?
}

/// Returns true if a job on this folder is alive.
pub fn is_alive(folder: &Path, job: u32) -> bool {
    let path = folder.join(format!("job-{job}"));
    let (Ok(text), Ok(data)) = (fs::read_to_string(&path), fs::metadata(&path)) else { return false };
    if folder.join("leases").join(format!("ended-{job}")).exists() {
        return false;
    }
    let words: Vec<&str> = text.trim_end().split('\t').collect();
    let [host, pid, start] = words.as_slice() else { return false };
    if *host == environment::host() {
        return pid.parse().ok().and_then(began).is_some_and(|began| began == *start);
    }
    // The file system's clock counts, not this host's.
    let age = data.modified().ok().zip(clock_of(folder)).and_then(|(beat, now)| now.duration_since(beat).ok());
    age.is_none_or(|age| age < DEAD)
}

fn clock_of(folder: &Path) -> Option<SystemTime> {
    let path = folder.join(format!(".clock-{}", std::process::id()));
    let time = File::create(&path).and_then(|file| file.metadata()).and_then(|data| data.modified()).ok();
    let _ = fs::remove_file(path);
    time
}

/// The jobs on a folder that are alive, but for one.
pub fn others(folder: &Path, job: u32) -> Vec<u32> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let jobs = names.filter_map(|name| name.strip_prefix("job-")?.parse().ok());
    jobs.filter(|other| *other != job && is_alive(folder, *other)).collect()
}

impl Leases {
    /// Enters a folder as a job, whose file is there, with a list of this length. The first of the jobs that are alive clears what dead ones have
    /// left.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn enter(folder: &Path, job: u32, total: u64) -> io::Result<Leases> {
        let leases = folder.join("leases");
        let _lock = Lock::take(folder)?;
        if others(folder, job).is_empty() && leases.exists() {
            fs::remove_dir_all(&leases)?;
        }
        fs::create_dir_all(&leases)?;
        let size = leases.join("size");
        if !size.exists() {
            fs::write(&size, total.div_ceil(BLOCKS).clamp(1, LARGEST).to_string())?;
        }
        let size = fs::read_to_string(size)?.trim().parse().map_err(io::Error::other)?;
        fs::write(leases.join(format!("mine-{job}")), job.to_string())?;
        Ok(Leases { folder: folder.to_path_buf(), leases, job, size, ours: BTreeMap::new(), beaten: 0.0 })
    }

    /// Tasks of a block.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The block of a task.
    pub fn block(&self, seq: u64) -> u64 {
        seq.saturating_sub(1) / self.size
    }

    /// Wishes to hold the block of a task that is about to be taken in.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn hold(&mut self, seq: u64) -> io::Result<Hold> {
        let folder = self.folder.clone();
        self.hold_if(seq, |holder| is_alive(&folder, holder))
    }

    /// The same, where `lives` says whether the job is alive that has the block.
    fn hold_if(&mut self, seq: u64, mut lives: impl FnMut(u32) -> bool) -> io::Result<Hold> {
        let block = self.block(seq);
        if self.ours.contains_key(&block) {
            return Ok(Hold::Ours);
        }
        let (mine, done) = (self.leases.join(format!("mine-{}", self.job)), self.leases.join(format!("done-{block}")));
        if done.exists() {
            return Ok(Hold::Done);
        }
        let mut inherited = false;
        for turn in 0.. {
            let held = self.leases.join(format!("held-{block}.{turn}"));
            if link(&mine, &held)? {
                break;
            }
            let holder = fs::read_to_string(&held)?.trim().parse().unwrap_or(0);
            if holder != self.job && lives(holder) {
                return Ok(Hold::Others);
            }
            inherited = true;
        }
        // The last holder may have done it all before it ended.
        if inherited && done.exists() {
            return Ok(Hold::Done);
        }
        self.ours.insert(block, (0, true));
        Ok(if inherited { Hold::Inherited } else { Hold::Ours })
    }

    /// A task of ours was taken in; others of its block may follow.
    pub fn take_in(&mut self, seq: u64) {
        if let Some((left, _)) = self.ours.get_mut(&self.block(seq)) {
            *left += 1;
        }
    }

    /// No more tasks of blocks before this task's are read; without one, of none.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn read_to(&mut self, seq: Option<u64>) -> io::Result<()> {
        let block = seq.map_or(u64::MAX, |seq| self.block(seq));
        let over: Vec<u64> = self.ours.iter().filter(|(at, (_, open))| **at < block && *open).map(|(at, _)| *at).collect();
        for at in over {
            if let Some((_, open)) = self.ours.get_mut(&at) {
                *open = false;
            }
            self.done_if_done(at)?;
        }
        Ok(())
    }

    /// A task of ours has its record.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn ended(&mut self, seq: u64) -> io::Result<()> {
        let block = self.block(seq);
        if let Some((left, _)) = self.ours.get_mut(&block) {
            *left = left.saturating_sub(1);
        }
        self.done_if_done(block)
    }

    fn done_if_done(&mut self, block: u64) -> io::Result<()> {
        if self.ours.get(&block) == Some(&(0, false)) {
            link(&self.leases.join(format!("mine-{}", self.job)), &self.leases.join(format!("done-{block}")))?;
            // It stays ours, so that nothing of it is asked for again, but it is not looked at any more.
            self.ours.insert(block, (u64::MAX, false));
        }
        Ok(())
    }

    /// Shows that the job is alive, now and then.
    pub fn beat(&mut self, now: f64) {
        if now - self.beaten >= BEAT {
            self.beaten = now;
            let path = self.folder.join(format!("job-{}", self.job));
            let _ = OpenOptions::new().write(true).open(path).and_then(|file| file.set_modified(SystemTime::now()));
        }
    }

    /// Ends the job: its blocks that are not done become free.
    pub fn end(&self) {
        let _ = fs::write(self.leases.join(format!("ended-{}", self.job)), "");
    }
}

/// Gives a file a second name; false if another file has that name. A file server may have made the link although it answers that the name is there.
fn link(file: &Path, name: &Path) -> io::Result<bool> {
    match fs::hard_link(file, name) {
        Ok(()) => Ok(true),
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Ok(fs::metadata(file)?.ino() == fs::metadata(name)?.ino()),
        Err(why) => Err(why),
    }
}

/// A lock by a file; an old one was left by a process that died.
struct Lock(PathBuf);

impl Lock {
    fn take(folder: &Path) -> io::Result<Lock> {
        let path = folder.join("entering");
        loop {
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(mut file) => {
                    file.write_all(note().as_bytes())?;
                    return Ok(Lock(path));
                }
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {
                    let age = fs::metadata(&path).and_then(|data| data.modified()).ok().and_then(|since| since.elapsed().ok());
                    if age.is_some_and(|age| age > Duration::from_secs(10)) {
                        let _ = fs::remove_file(&path);
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(why) => return Err(why),
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal;

    fn job(folder: &Path, note: &str) -> Leases {
        let job = journal::enter(folder, note).unwrap();
        Leases::enter(folder, job, 512).unwrap()
    }

    #[test]
    fn a_block_has_one_holder() {
        let folder = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (job(folder.path(), &note()), job(folder.path(), &note()));
        assert_eq!(
            (one.size, one.hold(1).unwrap(), other.hold(2).unwrap(), other.hold(3).unwrap()),
            (2, Hold::Ours, Hold::Others, Hold::Ours)
        );
        one.take_in(1);
        one.take_in(2);
        one.read_to(Some(3)).unwrap();
        one.ended(1).unwrap();
        assert_eq!(other.hold(1).unwrap(), Hold::Others);
        one.ended(2).unwrap();
        assert_eq!(other.hold(1).unwrap(), Hold::Done);
    }

    #[test]
    fn leases_of_the_dead_are_inherited() {
        let folder = tempfile::tempdir().unwrap();
        let mut alive = job(folder.path(), &note());
        let dead = format!("{}\t{}\t1\n", environment::host(), u32::MAX);
        let mut gone = job(folder.path(), &dead);
        let mut ended = job(folder.path(), &note());
        let mut far = job(folder.path(), "elsewhere\t1\t1\n");
        assert_eq!([gone.hold(1), ended.hold(3), far.hold(5)].map(Result::unwrap), [Hold::Ours; 3]);
        ended.end();
        assert_eq!([alive.hold(1), alive.hold(3), alive.hold(5)].map(Result::unwrap), [Hold::Inherited, Hold::Inherited, Hold::Others]);
        // No heartbeat for long.
        let long_ago = SystemTime::now() - 2 * DEAD;
        File::options().write(true).open(folder.path().join("job-4")).unwrap().set_modified(long_ago).unwrap();
        assert_eq!(alive.hold(5).unwrap(), Hold::Inherited);
    }

    /// A block of a dead job is taken over by one job, whatever happens between its look at the dead holder and the taking over.
    #[test]
    fn a_block_is_taken_over_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut gone = job(folder.path(), &note());
        let (mut one, mut other) = (job(folder.path(), &note()), job(folder.path(), &note()));
        let dead = gone.job;
        assert_eq!([gone.hold(1), gone.hold(3)].map(Result::unwrap), [Hold::Ours; 2]);
        let late = one.hold_if(1, |holder| {
            if holder == dead {
                assert_eq!(other.hold_if(1, |holder| holder != dead).unwrap(), Hold::Inherited);
            }
            holder != dead
        });
        assert_eq!((late.unwrap(), other.hold(1).unwrap()), (Hold::Others, Hold::Ours));
        // The holder ends its block between the look for that and the look at its lease.
        let late = one.hold_if(3, |_| {
            gone.read_to(None).unwrap();
            false
        });
        assert_eq!(late.unwrap(), Hold::Done);
    }

    #[test]
    fn of_many_jobs_at_a_time_one_takes_over() {
        let folder = tempfile::tempdir().unwrap();
        let mut gone = job(folder.path(), &note());
        (0..40).for_each(|block| assert_eq!(gone.hold(2 * block + 1).unwrap(), Hold::Ours));
        let dead = gone.job;
        let mut jobs: Vec<Leases> = (0..6).map(|_| job(folder.path(), &note())).collect();
        let inherited: usize = std::thread::scope(|scope| {
            let takes =
                |leases: &mut Leases, block: u64| leases.hold_if(2 * block + 1, |holder| holder != dead).unwrap() == Hold::Inherited;
            let all = jobs.iter_mut().map(|leases| scope.spawn(move || (0..40).filter(|block| takes(leases, *block)).count()));
            all.collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(inherited, 40);
    }

    #[test]
    fn the_first_of_the_living_clears_what_the_dead_have_left() {
        let folder = tempfile::tempdir().unwrap();
        let mut gone = job(folder.path(), "nowhere");
        gone.hold(1).unwrap();
        let mut next = job(folder.path(), &note());
        assert_eq!(next.hold(1).unwrap(), Hold::Ours);
        assert_eq!(job(folder.path(), &note()).hold(1).unwrap(), Hold::Others);
    }
}
