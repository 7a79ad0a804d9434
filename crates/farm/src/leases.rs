//! Leases: several jobs on one journal share one list. A job takes blocks of consecutive tasks; what it holds no other runs.
//!
//! `DIR/leases-J/held-K.G` holds the number of the job that has block K; of several the one with the greatest G counts. Such a file appears by a hard
//! link, which only one job can make, and stays: when its job is dead, the next G is free to be taken. Nothing is renamed or removed, so that it does not
//! matter how much time passes between a look at a lease and its taking over. When all tasks of a block have their records, `done-K` appears. `back-K.G`
//! says that the holder gives the block back: of its tasks none runs, and those that ran have their records. Who takes it has read the records since
//! ([`Leases::look`]).
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
    ours: BTreeMap<u64, Held>,
    /// Blocks that were given back when the folder was last looked at, with their G.
    back: BTreeSet<(u64, u32)>,
}

/// A block that we hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    /// The G of its file.
    turn: u32,
    /// Tasks that were taken in and have no record yet.
    left: u64,
    /// Some of its tasks have ended in this job.
    is_begun: bool,
    /// More of its tasks are to be read.
    is_open: bool,
    is_done: bool,
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
        Ok(Leases { presence, folder, job, size, ours: BTreeMap::new(), back: BTreeSet::new() })
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
        let (mut inherited, mut turn) = (None, 0);
        loop {
            if self.back.contains(&(block, turn)) {
                (inherited, turn) = (None, turn + 1);
                continue;
            }
            let held = self.folder.join(format!("held-{block}.{turn}"));
            if link(&mine, &held)? {
                break;
            }
            let holder = fs::read_to_string(&held)?.trim().parse().unwrap_or(0);
            if holder != self.job && lives(holder) {
                return Ok(Hold::Others);
            }
            (inherited, turn) = (Some(holder), turn + 1);
        }
        // The last holder may have done it all before it ended.
        if inherited.is_some() && done.exists() {
            return Ok(Hold::Done);
        }
        self.ours.insert(block, Held { turn, left: 0, is_begun: false, is_open: true, is_done: false });
        Ok(inherited.map_or(Hold::Ours, Hold::Inherited))
    }

    /// Looks at the folder, and returns the blocks that are done. Blocks that are given back by now can be taken; the records must be read first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn look(&mut self) -> io::Result<BTreeSet<u64>> {
        let mut done = BTreeSet::new();
        self.back.clear();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else { continue };
            done.extend(name.strip_prefix("done-").and_then(|block| block.parse::<u64>().ok()));
            let back = name.strip_prefix("back-").and_then(|block| block.split_once('.'));
            self.back.extend(back.and_then(|(block, turn)| Some((block.parse().ok()?, turn.parse().ok()?))));
        }
        Ok(done)
    }

    /// A task of ours was taken in; others of its block may follow.
    pub fn take_in(&mut self, seq: u64) {
        if let Some(held) = self.ours.get_mut(&self.block(seq)) {
            held.left += 1;
        }
    }

    /// No more tasks of blocks before this task's are read; without one, of none.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn read_to(&mut self, seq: Option<u64>) -> io::Result<()> {
        let block = seq.map_or(u64::MAX, |seq| self.block(seq));
        let over: Vec<u64> = self.ours.range(..block).filter(|(_, held)| held.is_open).map(|(at, _)| *at).collect();
        for at in over {
            if let Some(held) = self.ours.get_mut(&at) {
                held.is_open = false;
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
        if let Some(held) = self.ours.get_mut(&block) {
            held.left = held.left.saturating_sub(1);
            held.is_begun = true;
        }
        self.done_if_done(block)
    }

    fn done_if_done(&mut self, block: u64) -> io::Result<()> {
        let is_over = |held: &&mut Held| held.left == 0 && !held.is_open && !held.is_done;
        if let Some(held) = self.ours.get_mut(&block).filter(is_over) {
            link(&self.folder.join(format!("mine-{}", self.job)), &self.folder.join(format!("done-{block}")))?;
            // It stays ours, so that nothing of it is asked for again.
            held.is_done = true;
        }
        Ok(())
    }

    /// Our blocks of which nothing runs, the last first, each with its tasks that have no record: all of them are among these, which have not begun.
    /// With `only_whole` none of their tasks has ended in this job.
    pub fn idle(&self, waiting: impl Iterator<Item = u64>, only_whole: bool) -> Vec<(u64, u64)> {
        let mut of_block = BTreeMap::new();
        waiting.for_each(|seq| *of_block.entry(self.block(seq)).or_insert(0) += 1);
        let may_go = |held: &Held| !(held.is_open || held.is_done || (only_whole && held.is_begun));
        let is_idle = |(block, held): &(&u64, &Held)| may_go(held) && of_block.get(*block) == Some(&held.left);
        self.ours.iter().rev().filter(is_idle).map(|(block, held)| (*block, held.left)).collect()
    }

    /// Gives one of these blocks back, so that another job may take it.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn give_back(&mut self, block: u64) -> io::Result<()> {
        if let Some(held) = self.ours.remove(&block) {
            link(&self.folder.join(format!("mine-{}", self.job)), &self.folder.join(format!("back-{block}.{}", held.turn)))?;
            self.back.insert((block, held.turn));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::joining::{join, tests::shared};
    use crate::presence::tests::only_file;
    use std::time::Duration;

    fn job(folder: &Path) -> Leases {
        join(folder, 1, Some(&shared(512)), None, &mut |_| ()).unwrap().leases.unwrap()
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
    fn blocks_of_which_nothing_runs_are_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (job(folder.path()), job(folder.path()));
        for seq in 1..=6 {
            assert_eq!(one.hold(seq).unwrap(), Hold::Ours);
            one.take_in(seq);
        }
        one.read_to(Some(6)).unwrap();
        // Task 1 runs, 3 is done, and more of the last block is still to be read.
        one.ended(3).unwrap();
        assert_eq!(one.idle([2, 4, 5, 6].into_iter(), false), [(1, 1)]);
        one.read_to(None).unwrap();
        assert_eq!(one.idle([2, 4, 5, 6].into_iter(), false), [(2, 2), (1, 1)]);
        assert_eq!(one.idle([2, 4, 5, 6].into_iter(), true), [(2, 2)]);
        one.give_back(1).unwrap();
        // Records that were read before it was given back may lack some of its tasks.
        assert_eq!(other.hold(3).unwrap(), Hold::Others);
        assert!(other.look().unwrap().is_empty() && one.look().unwrap().is_empty());
        assert_eq!((other.hold(3).unwrap(), other.hold(1).unwrap(), one.hold(4).unwrap()), (Hold::Ours, Hold::Others, Hold::Others));
        // Back again: the holder may be the one that had it first.
        other.take_in(4);
        other.read_to(None).unwrap();
        other.give_back(1).unwrap();
        one.look().unwrap();
        assert_eq!(one.hold(4).unwrap(), Hold::Ours);
        one.read_to(None).unwrap();
        assert_eq!((other.look().unwrap(), other.hold(4).unwrap()), (BTreeSet::from([1]), Hold::Done));
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
