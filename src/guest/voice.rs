//! The contribution of a rank to an agreement, and the combination of two contributions.

use serde::{Deserialize, Serialize};

use super::letters::Op;
use super::status::Failure;
use crate::topology::RankId;

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
    pub fn and(mut self, more: Voice) -> Voice {
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
