//! What can go wrong, and the exit status that each kind of failure has.

use serde::{Deserialize, Serialize};

use crate::names;
use crate::topology::{InvalidTopology, NodeId, RankId};

/// Every failure that crosses a room's border.
///
/// The command line turns each into one sentence on standard error and into an [exit status](Error::exit_status).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Error {
    /// The caller asked for something that cannot be: the sentence names the option or the line.
    #[error("{0}")]
    Usage(String),
    /// A rank died, as a carrier that survives it reports.
    #[error("rank {rank} is lost")]
    RankLost { rank: RankId },
    /// Nobody made progress: the report says who waits for whom.
    #[error("no progress: {report}")]
    Stuck { report: String },
    /// A message could not be read.
    #[error("a message {what} from node {from} could not be read: {why}")]
    Garbled { from: NodeId, what: String, why: String },
    /// What one rank's carrier sent to another's, before it is known which node it is from, could not be read.
    #[error("a message {what} from rank {rank} could not be read: {why}")]
    GarbledByRank { rank: RankId, what: String, why: String },
    /// Tasks were lost, doubled or changed on the way.
    #[error("{0}")]
    Lost(String),
    /// MPI reported an error.
    #[error("MPI: {call} failed: {why}")]
    Mpi { call: String, why: String },
    /// Anything else that makes a run fail.
    #[error("{0}")]
    Failed(String),
}

/// The result of everything that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A wrong usage, in one sentence that names the option or the line. What in it, a file's name perhaps, would be an order to a terminal is
    /// written out.
    pub fn usage(sentence: impl Into<String>) -> Error {
        Error::Usage(names::one_line(sentence.into()))
    }

    /// 2 for wrong usage, 3 for no progress, 1 for everything else.
    pub fn exit_status(&self) -> i32 {
        match self {
            Error::Usage(_) => 2,
            Error::Stuck { .. } => 3,
            _ => 1,
        }
    }
}

impl From<InvalidTopology> for Error {
    fn from(why: InvalidTopology) -> Error {
        Error::usage(why.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_not_called_a_node() {
        let (what, why) = ("header".to_string(), "it is too short".to_string());
        let of_node = Error::Garbled { from: 3, what: what.clone(), why: why.clone() };
        let of_rank = Error::GarbledByRank { rank: 3, what, why };
        assert_eq!(of_node.to_string(), "a message header from node 3 could not be read: it is too short");
        assert_eq!(of_rank.to_string(), "a message header from rank 3 could not be read: it is too short");
        assert_eq!((of_node.exit_status(), of_rank.exit_status()), (1, 1));
    }
}
