//! The ways in which all ranks get the combined result of an agreement.

use super::call::State;
use super::letters::{kinds, read};
use super::status::{Failure, Result, Status};
use super::voice::Voice;
use crate::topology::RankId;
use crate::transport::wire;

/// Most ranks that say to all others what they bring to an agreement; more do it by a tree.
const AT_ONCE: u32 = 16;

impl State {
    /// Combines the contributions of all ranks, and returns the result on every rank.
    pub(super) fn say(&mut self, mine: Voice) -> Result<Voice> {
        if self.link()?.ranks <= AT_ONCE { self.say_to_all(mine) } else { self.say_by_tree(mine) }
    }

    /// Everybody's voice, straight from everybody: one message's time, where a tree's messages wait for each other.
    fn say_to_all(&mut self, mine: Voice) -> Result<Voice> {
        let call = self.call;
        let link = self.link()?;
        let (rank, ranks) = (link.rank.get(), link.ranks);
        let body = wire::write(&mine);
        for other in (1..ranks).map(|distance| (rank + distance) % ranks) {
            link.send(RankId::new(other), kinds::UP, call, &body)?;
        }
        // By rank, so the sums are the same everywhere.
        let mut mine = Some(mine);
        let mut all: Option<Voice> = None;
        for from in RankId::all(ranks) {
            let voice = match mine.take_if(|_| from.get() == rank) {
                Some(mine) => mine,
                None => read(&self.wait(kinds::UP, from)?.body)?,
            };
            all = Some(match all {
                Some(all) => all.and(voice),
                None => voice,
            });
        }
        all.ok_or_else(|| Failure::new(Status::Failed, "no rank says anything"))
    }

    /// The same up and down a binomial tree. The order of the sums is the tree's, so they are the same in every run.
    fn say_by_tree(&mut self, mut voice: Voice) -> Result<Voice> {
        let call = self.call;
        let link = self.link()?;
        let (rank, ranks) = (link.rank.get(), link.ranks);
        let mut step = 1;
        let mut children = Vec::new();
        while step < ranks && rank & step == 0 {
            if rank + step < ranks {
                let word = self.wait(kinds::UP, RankId::new(rank + step))?;
                voice = voice.and(read(&word.body)?);
                children.push(RankId::new(rank + step));
            }
            step <<= 1;
        }
        if rank > 0 {
            let parent = RankId::new(rank & (rank - 1));
            self.link()?.send(parent, kinds::UP, call, &wire::write(&voice))?;
            voice = read(&self.wait(kinds::DOWN, parent)?.body)?;
        }
        if !children.is_empty() {
            let body = wire::write(&voice);
            for child in children.into_iter().rev() {
                self.link()?.send(child, kinds::DOWN, call, &body)?;
            }
        }
        Ok(voice)
    }
}
