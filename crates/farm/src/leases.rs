//! Leases: several jobs on one journal share one list. A job takes blocks of consecutive tasks; what it holds no other runs.
//!
//! `DIR/leases-J/held-K.G` holds the number of the job that has block K; of several the one with the greatest G counts. Such a file appears by a hard
//! link, which only one job can make, and stays: when its job is dead, the next G is free to be taken. Nothing is renamed or removed, so that it does not
//! matter how much time passes between a look at a lease and its taking over. When all tasks of a block have their records, `done-K` appears.
//! J is the job that was the first of those that run ([`crate::joining`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::journal::link;
use crate::presence::{Life, Presence};

/// A list is cut into about this many blocks, of at most that many tasks.
const BLOCKS: u64 = 256;
const LARGEST: u64 = 1024;

/// Result of a request for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It is ours.
    Ours,
    /// It is ours, and was that of this job, which is dead: there may be new records of its tasks.
    Inherited(u32),
    /// Another job has it.
    Others,
    /// All of its tasks have their records.
    Done,
}

/// The leases of one job.
pub struct Leases {
    presence: Arc<Presence>,
    folder: PathBuf,
    job: u32,
    size: u64,
    /// Our blocks that are not done: tasks that have no record yet, and whether more of its tasks are to be read.
    ours: BTreeMap<u64, (u64, bool)>,
}

/// Removes the leases of jobs before this one.
pub fn clear(folder: &Path, job: u32) {
    let old = |name: &str| name.strip_prefix("leases-").and_then(|owner| owner.parse::<u32>().ok()).is_some_and(|owner| owner < job);
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_str().is_some_and(old)).for_each(|entry| _ = fs::remove_dir_all(entry.path()));
}

impl Leases {
    /// The leases of a job with a list of this length, in the folder of job `owner`.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn new(presence: Arc<Presence>, owner: u32, total: u64) -> io::Result<Leases> {
        let (job, folder) = (presence.job(), presence.folder().join(format!("leases-{owner}")));
        if owner == job {
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("size"), total.div_ceil(BLOCKS).clamp(1, LARGEST).to_string())?;
        }
        let size = fs::read_to_string(folder.join("size"))?.trim().parse().map_err(io::Error::other)?;
        fs::write(folder.join(format!("mine-{job}")), job.to_string())?;
        Ok(Leases { presence, folder, job, size, ours: BTreeMap::new() })
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
        let presence = self.presence.clone();
        self.hold_if(seq, |holder| presence.life(holder) != Life::Dead)
    }

    /// The same, where `lives` says whether the job is alive that has the block.
    fn hold_if(&mut self, seq: u64, mut lives: impl FnMut(u32) -> bool) -> io::Result<Hold> {
        let block = self.block(seq);
        if self.ours.contains_key(&block) {
            return Ok(Hold::Ours);
        }
        let (mine, done) = (self.folder.join(format!("mine-{}", self.job)), self.folder.join(format!("done-{block}")));
        if done.exists() {
            return Ok(Hold::Done);
        }
        let mut inherited = None;
        for turn in 0.. {
            let held = self.folder.join(format!("held-{block}.{turn}"));
            if link(&mine, &held)? {
                break;
            }
            let holder = fs::read_to_string(&held)?.trim().parse().unwrap_or(0);
            if holder != self.job && lives(holder) {
                return Ok(Hold::Others);
            }
            inherited = Some(holder);
        }
        // The last holder may have done it all before it ended.
        if inherited.is_some() && done.exists() {
            return Ok(Hold::Done);
        }
        self.ours.insert(block, (0, true));
        Ok(inherited.map_or(Hold::Ours, Hold::Inherited))
    }

    /// The blocks that are done.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn done(&self) -> io::Result<BTreeSet<u64>> {
        let mut done = BTreeSet::new();
        for entry in fs::read_dir(&self.folder)? {
            done.extend(entry?.file_name().to_str().and_then(|name| name.strip_prefix("done-")?.parse::<u64>().ok()));
        }
        Ok(done)
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
            link(&self.folder.join(format!("mine-{}", self.job)), &self.folder.join(format!("done-{block}")))?;
            // It stays ours, so that nothing of it is asked for again, but it is not looked at any more.
            self.ours.insert(block, (u64::MAX, false));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::joining::join;
    use crate::presence::tests::only_file;
    use std::time::Duration;

    fn job(folder: &Path) -> Leases {
        join(folder, 1, Some(512), &mut |_| ()).unwrap().leases.unwrap()
    }

    /// The leases of a job of which there is only its file, among those of another.
    fn of_file(folder: &Path, job: u32) -> Leases {
        let presence = Presence::enter(folder, 1).unwrap();
        let leases = Leases::new(presence, 1, 512).unwrap();
        leases.presence.end();
        fs::write(leases.folder.join(format!("mine-{job}")), job.to_string()).unwrap();
        Leases { job, ..leases }
    }

    #[test]
    fn a_block_has_one_holder() {
        let folder = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (job(folder.path()), job(folder.path()));
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
        let (mut alive, mut ended) = (job(folder.path()), job(folder.path()));
        let [mut gone, mut far] = [false, true].map(|elsewhere| of_file(folder.path(), only_file(folder.path(), elsewhere)));
        assert_eq!([gone.hold(1), ended.hold(3), far.hold(5)].map(Result::unwrap), [Hold::Ours; 3]);
        ended.presence.end();
        assert_eq!([alive.hold(3), alive.hold(5)].map(Result::unwrap), [Hold::Inherited(ended.job), Hold::Others]);
        [gone.job, far.job].iter().for_each(|job| alive.presence.pass(*job, Duration::from_secs(100)));
        assert_eq!([alive.hold(1), alive.hold(5)].map(Result::unwrap), [gone.job, far.job].map(Hold::Inherited));
    }

    /// A block of a dead job is taken over by one job, whatever happens between its look at the dead holder and the taking over.
    #[test]
    fn a_block_is_taken_over_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut gone = job(folder.path());
        let (mut one, mut other) = (job(folder.path()), job(folder.path()));
        let dead = gone.job;
        assert_eq!([gone.hold(1), gone.hold(3)].map(Result::unwrap), [Hold::Ours; 2]);
        let late = one.hold_if(1, |holder| {
            if holder == dead {
                assert_eq!(other.hold_if(1, |holder| holder != dead).unwrap(), Hold::Inherited(dead));
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
        let mut gone = job(folder.path());
        (0..40).for_each(|block| assert_eq!(gone.hold(2 * block + 1).unwrap(), Hold::Ours));
        let dead = gone.job;
        let mut jobs: Vec<Leases> = (0..6).map(|_| job(folder.path())).collect();
        let inherited: usize = std::thread::scope(|scope| {
            let takes =
                |leases: &mut Leases, block: u64| leases.hold_if(2 * block + 1, |holder| holder != dead).unwrap() == Hold::Inherited(dead);
            let all = jobs.iter_mut().map(|leases| scope.spawn(move || (0..40).filter(|block| takes(leases, *block)).count()));
            all.collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(inherited, 40);
    }
}
