//! Agreement of ranks: the contribution of each rank, and the ways in which all ranks get the combined result.

use serde::{Deserialize, Serialize};

use super::call::{Op, State, kinds, read};
use super::status::{Failure, Result, Status};
use crate::topology::RankId;
use crate::transport::wire;

/// Most ranks that say to all others what they bring to an agreement; more do it by a tree.
const AT_ONCE: u32 = 16;

/// Contribution of a rank to an agreement, or the combined contributions of several.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Voice {
    pub op: (Op, RankId),
    /// Another call, if there is one.
    pub other: Option<(Op, RankId)>,
    /// Values that must be the same, each with the rank that gave it; the first differing one is kept in `differs`.
    pub same: Vec<(u64, RankId)>,
    pub differs: Option<(u32, RankId, RankId)>,
    pub sums: Vec<f64>,
    pub most: Vec<f64>,
    pub failure: Option<(RankId, Failure)>,
    /// Data that ranks send to all.
    pub said: Vec<(RankId, Vec<u8>)>,
}

impl Voice {
    fn and(mut self, more: Voice) -> Voice {
        self.failure = match (self.failure, more.failure) {
            (Some(one), Some(other)) => Some(if one.0 <= other.0 { one } else { other }),
            (one, other) => one.or(other),
        };
        self.other = self.other.or(more.other).or((self.op.0 != more.op.0).then_some(more.op));
        if self.other.is_some() {
            return self;
        }
        let differing = self.same.iter().zip(&more.same).position(|(a, b)| a.0 != b.0);
        let differs = differing.map(|at| (at as u32, self.same[at].1, more.same[at].1));
        self.differs = self.differs.or(more.differs).or(differs);
        self.said.extend(more.said);
        self.sums.iter_mut().zip(&more.sums).for_each(|(sum, more)| *sum += more);
        self.most.iter_mut().zip(&more.most).for_each(|(most, more)| *most = most.max(*more));
        self
    }
}

impl State {
    /// Combines the contributions of all ranks, and returns the result on every rank.
    pub(super) fn say(&mut self, mine: Voice) -> Result<Voice> {
        if self.link()?.ranks <= AT_ONCE { self.say_to_all(mine) } else { self.say_by_tree(mine) }
    }

    /// Everybody's voice, straight from everybody: one message's time, where a tree's messages wait for each other.
    fn say_to_all(&mut self, mine: Voice) -> Result<Voice> {
        let call = self.call;
        let link = self.link()?;
        let (rank, ranks) = (link.rank, link.ranks);
        let body = wire::write(&mine);
        for other in (1..ranks).map(|distance| (rank + distance) % ranks) {
            link.send(other, kinds::UP, call, &body)?;
        }
        // By rank, so the sums are the same everywhere.
        let mut mine = Some(mine);
        let mut all: Option<Voice> = None;
        for from in 0..ranks {
            let voice = match mine.take_if(|_| from == rank) {
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
        let (rank, ranks) = (link.rank, link.ranks);
        let mut step = 1;
        let mut children = Vec::new();
        while step < ranks && rank & step == 0 {
            if rank + step < ranks {
                let word = self.wait(kinds::UP, rank + step)?;
                voice = voice.and(read(&word.body)?);
                children.push(rank + step);
            }
            step <<= 1;
        }
        if rank > 0 {
            let parent = rank & (rank - 1);
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
