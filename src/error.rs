//! Errors, and the exit status of each kind.

mod lost;

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use lost::{LostTasks, UnexpectedAnswer};

use crate::names;
use crate::registry::Unsuitable;
use crate::spec::InvalidSpec;
use crate::topology::{InvalidTopology, NodeId, RankId};

/// Every failure that crosses a room's border.
///
/// Each reads as one sentence and has an [exit status](Error::exit_status). Where something that was given is wrong, the sentence begins with
/// a noun for it, the [subject](Error::subject): a command line puts its option there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller asked for something that cannot be.
    #[error("{0}")]
    Usage(String),
    /// An input, such as a list of numbers or a file, is invalid.
    #[error(transparent)]
    Input(#[from] InvalidInput),
    /// Something that is chosen by name is unknown, or has wrong options.
    #[error(transparent)]
    Spec(#[from] InvalidSpec),
    /// The topology does not exist, or cannot be placed on the ranks.
    #[error(transparent)]
    Topology(#[from] InvalidTopology),
    /// A choice does not fit its use: the topology it is to run on, or the kind of tasks it is to schedule.
    #[error(transparent)]
    Unsuitable(#[from] Unsuitable),
    /// A balancer finds no way within the ranks' capacities. All ranks find this alike, before anything has moved.
    #[error("capacity: {0}")]
    NoRoom(String),
    /// A rank died, as a carrier that survives it reports.
    #[error("rank {rank} is lost")]
    RankLost {
        /// The rank that died.
        rank: RankId,
    },
    /// No node made progress; the report lists which node waits for which.
    #[error("no progress: {report}")]
    Stuck {
        /// A line for each node: what it waits for, and since when.
        report: String,
    },
    /// The process was asked to end (see [`interrupt`](crate::transport::interrupt)), and gave up what it was doing.
    #[error("interrupted")]
    Interrupted,
    /// A message could not be read.
    #[error("a message {what} from node {from} could not be read: {why}")]
    Garbled {
        /// The node that sent it.
        from: NodeId,
        /// The message, by the name of its tag.
        what: String,
        /// Reason, as a clause that follows a colon.
        why: String,
    },
    /// A message between the carriers of two ranks could not be read, before its source node is known.
    #[error("a message {what} from rank {rank} could not be read: {why}")]
    GarbledByRank {
        /// The rank that sent it.
        rank: RankId,
        /// The message, in words.
        what: String,
        /// Reason, as a clause that follows a colon.
        why: String,
    },
    /// Tasks were lost, doubled or changed on the way.
    #[error(transparent)]
    Lost(Box<LostTasks>),
    /// MPI reported an error.
    #[error("MPI: {call} failed: {why}")]
    Mpi {
        /// Name of the function of MPI.
        call: String,
        /// MPI's own words for its error code.
        why: String,
    },
    /// Anything else that makes a run fail.
    #[error("{0}")]
    Failed(String),
}

/// The result of everything that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An invalid input.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{subject}{rest}")]
#[non_exhaustive]
pub struct InvalidInput {
    /// Noun for the input: `loads`.
    pub subject: Cow<'static, str>,
    /// The sentence after the noun: `, item 2: -1 is negative`.
    pub rest: String,
    /// Error of the operating system, if it is the cause.
    #[source]
    pub source: Option<Arc<std::io::Error>>,
}

impl PartialEq for InvalidInput {
    fn eq(&self, other: &InvalidInput) -> bool {
        (&self.subject, &self.rest) == (&other.subject, &other.rest)
    }
}

impl Eq for InvalidInput {}

impl Error {
    /// Wrong usage, as one sentence. Control characters in it, from a file's name for instance, are escaped.
    pub fn usage(sentence: impl Into<String>) -> Error {
        Error::Usage(names::one_line(sentence.into()))
    }

    /// Something that was given is wrong: the sentence is the noun for it, and the rest as it follows the noun, with its punctuation.
    pub fn input(subject: &'static str, rest: impl Into<String>) -> Error {
        Error::Input(InvalidInput { subject: subject.into(), rest: names::one_line(rest.into()), source: None })
    }

    /// A result that is incomplete or wrong, as one sentence.
    pub fn wrong_result(sentence: impl Into<String>) -> Error {
        LostTasks::WrongResult(names::one_line(sentence.into())).into()
    }

    /// The same as [`Error::input`] where the system refused a file: `rest` ends before the colon.
    pub fn unreadable(subject: &'static str, rest: impl Into<String>, why: std::io::Error) -> Error {
        let rest = names::one_line(format!("{}: {why}", rest.into()));
        Error::Input(InvalidInput { subject: subject.into(), rest, source: Some(Arc::new(why)) })
    }

    /// The noun with which the sentence begins, if it is about something that was given: `scheduler`, `loads`.
    pub fn subject(&self) -> Option<&str> {
        match self {
            Error::Input(why) => Some(&why.subject),
            Error::Spec(why) => Some(why.what),
            Error::Unsuitable(why) => Some(why.what),
            Error::Topology(_) => Some(InvalidTopology::SUBJECT),
            _ => None,
        }
    }

    /// Exit status: 2 for wrong usage, 3 for no progress, 4 for an interruption, 1 for everything else.
    pub fn exit_status(&self) -> i32 {
        match self {
            Error::Usage(_) | Error::Input(_) | Error::Spec(_) | Error::Topology(_) | Error::Unsuitable(_) | Error::NoRoom(_) => 2,
            Error::Stuck { .. } => 3,
            Error::Interrupted => 4,
            _ => 1,
        }
    }
}

/// An error in the form in which it travels between ranks. An invalid input arrives as its sentence, with its subject.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Travelling {
    /// Wrong usage or an invalid input.
    Usage {
        /// Noun with which the sentence begins, if it is about something that was given.
        subject: Option<String>,
        /// The whole sentence.
        sentence: String,
    },
    /// As [`Error::RankLost`].
    RankLost {
        /// The rank that died.
        rank: RankId,
    },
    /// As [`Error::Stuck`].
    Stuck {
        /// A line for each node.
        report: String,
    },
    /// As [`Error::Interrupted`].
    Interrupted,
    /// As [`Error::Garbled`].
    Garbled {
        /// The node that sent the message.
        from: NodeId,
        /// The message, by the name of its tag.
        what: String,
        /// Reason.
        why: String,
    },
    /// As [`Error::GarbledByRank`].
    GarbledByRank {
        /// The rank that sent the message.
        rank: RankId,
        /// The message, in words.
        what: String,
        /// Reason.
        why: String,
    },
    /// As [`Error::Lost`].
    Lost(Box<LostTasks>),
    /// As [`Error::Mpi`].
    Mpi {
        /// Name of the function of MPI.
        call: String,
        /// MPI's own words for its error code.
        why: String,
    },
    /// As [`Error::Failed`].
    Failed(String),
}

impl From<LostTasks> for Error {
    fn from(why: LostTasks) -> Error {
        Error::Lost(Box::new(why))
    }
}

impl From<Error> for Travelling {
    fn from(why: Error) -> Travelling {
        match why {
            Error::Usage(_) | Error::Input(_) | Error::Spec(_) | Error::Topology(_) | Error::Unsuitable(_) | Error::NoRoom(_) => {
                Travelling::Usage { subject: why.subject().map(str::to_string), sentence: why.to_string() }
            }
            Error::RankLost { rank } => Travelling::RankLost { rank },
            Error::Stuck { report } => Travelling::Stuck { report },
            Error::Interrupted => Travelling::Interrupted,
            Error::Garbled { from, what, why } => Travelling::Garbled { from, what, why },
            Error::GarbledByRank { rank, what, why } => Travelling::GarbledByRank { rank, what, why },
            Error::Lost(why) => Travelling::Lost(why),
            Error::Mpi { call, why } => Travelling::Mpi { call, why },
            Error::Failed(why) => Travelling::Failed(why),
        }
    }
}

impl From<Travelling> for Error {
    fn from(why: Travelling) -> Error {
        match why {
            Travelling::Usage { subject: Some(subject), sentence } => {
                let rest = sentence.strip_prefix(&subject).unwrap_or(&sentence).to_string();
                Error::Input(InvalidInput { subject: subject.into(), rest, source: None })
            }
            Travelling::Usage { subject: None, sentence } => Error::Usage(sentence),
            Travelling::RankLost { rank } => Error::RankLost { rank },
            Travelling::Stuck { report } => Error::Stuck { report },
            Travelling::Interrupted => Error::Interrupted,
            Travelling::Garbled { from, what, why } => Error::Garbled { from, what, why },
            Travelling::GarbledByRank { rank, what, why } => Error::GarbledByRank { rank, what, why },
            Travelling::Lost(why) => Error::Lost(why),
            Travelling::Mpi { call, why } => Error::Mpi { call, why },
            Travelling::Failed(why) => Error::Failed(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;
    use crate::spec::Spec;
    use crate::topology::Topology;

    #[test]
    fn a_rank_is_not_called_a_node() {
        let (what, why) = ("header".to_string(), "it is too short".to_string());
        let of_node = Error::Garbled { from: 3, what: what.clone(), why: why.clone() };
        let of_rank = Error::GarbledByRank { rank: RankId::new(3), what, why };
        assert_eq!(of_node.to_string(), "a message header from node 3 could not be read: it is too short");
        assert_eq!(of_rank.to_string(), "a message header from rank 3 could not be read: it is too short");
        assert_eq!((of_node.exit_status(), of_rank.exit_status()), (1, 1));
    }

    #[test]
    fn what_was_given_is_the_subject_of_its_sentence() {
        let missing = std::fs::File::open("/no/such/file").unwrap_err();
        let errors = [
            (Error::usage("there are no ranks"), None),
            (Error::input("loads", ", item 2: -1 is negative"), Some("loads")),
            (Error::unreadable("loads", " @x: the file cannot be read", missing), Some("loads")),
            (Spec::parse("scheduler", "steel").unwrap().unknown(["steal"]).into(), Some("scheduler")),
            (Topology::parse("cube", 8).unwrap_err().into(), Some("topology")),
            (
                crate::balance::find("mwa").unwrap().entry.objection(&Topology::parse("ring:3", 3).unwrap()).unwrap().into(),
                Some("balancer"),
            ),
        ];
        for (why, subject) in errors {
            assert_eq!((why.subject(), why.exit_status()), (subject, 2), "{why}");
            assert!(why.to_string().starts_with(subject.unwrap_or_default()), "{why}");
            let arrived = Error::from(Travelling::from(why.clone()));
            assert_eq!((arrived.to_string(), arrived.subject(), arrived.exit_status()), (why.to_string(), subject, 2));
        }
    }

    #[test]
    fn other_errors_travel_as_they_are() {
        let text = || "text".to_string();
        for why in [
            Error::RankLost { rank: RankId::new(3) },
            Error::Stuck { report: text() },
            Error::Interrupted,
            Error::Garbled { from: 1, what: text(), why: text() },
            Error::GarbledByRank { rank: RankId::new(1), what: text(), why: text() },
            LostTasks::AnswerOfGraph { graph: 7 }.into(),
            Error::Mpi { call: text(), why: text() },
            Error::Failed(text()),
        ] {
            assert_eq!(Error::from(Travelling::from(why.clone())), why);
        }
    }

    #[test]
    fn the_cause_is_behind_its_sentence() {
        let missing = std::fs::File::open("/no/such/file").unwrap_err();
        let why = Error::unreadable("loads", " @x: the file cannot be read", missing);
        let cause = why.source().and_then(|input| input.source()).or_else(|| why.source()).map(ToString::to_string);
        assert_eq!(cause.as_deref(), Some("No such file or directory (os error 2)"));
    }
}
