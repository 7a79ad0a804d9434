//! The result of a call of a guest.

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Kinds of failures, with the numbers of the C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(i32)]
#[non_exhaustive]
pub enum Status {
    /// Anything that is not below.
    Failed = 1,
    /// A wrong argument, or ranks in different calls. The world is as before the call.
    Usage = 2,
    /// A rank did not come within the time of the option `timeout`.
    Stuck = 3,
    /// MPI reported an error.
    Mpi = 4,
    /// Out of memory. The world is as before the call.
    Memory = 5,
    /// A callback returned other than 0. The world is as before the call.
    Callback = 6,
    /// A panic.
    Panic = 7,
}

impl Status {
    /// Returns true if the world is lost after this failure: every later call returns it.
    pub fn ends_the_world(self) -> bool {
        matches!(self, Status::Failed | Status::Stuck | Status::Mpi | Status::Panic)
    }
}

/// A failed call: the same on every rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{text}")]
#[non_exhaustive]
pub struct Failure {
    /// Its kind.
    pub status: Status,
    /// One sentence, which names the rank and the item.
    pub text: String,
}

/// The result of a guest's calls.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Longest text that travels: a letter between ranks is short.
const LONGEST: usize = 1000;

impl Failure {
    /// A failure of that kind.
    pub fn new(status: Status, text: impl Into<String>) -> Failure {
        let mut text = text.into();
        if text.len() > LONGEST {
            let end = (0..=LONGEST).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.truncate(end);
            text.push_str("..");
        }
        Failure { status, text }
    }

    /// A wrong argument.
    pub fn usage(text: impl Into<String>) -> Failure {
        Failure::new(Status::Usage, text)
    }

    /// No memory for something.
    pub fn memory(what: &str) -> Failure {
        Failure::new(Status::Memory, format!("there is no memory for {what}"))
    }
}

impl From<Error> for Failure {
    fn from(why: Error) -> Failure {
        let status = match &why {
            Error::Stuck { .. } => Status::Stuck,
            Error::Mpi { .. } => Status::Mpi,
            why if why.exit_status() == 2 => Status::Usage,
            _ => Status::Failed,
        };
        Failure::new(status, why.to_string())
    }
}

impl From<Failure> for Error {
    fn from(why: Failure) -> Error {
        match why.status {
            Status::Usage => Error::Usage(why.text),
            Status::Stuck => Error::Stuck { report: why.text },
            _ => Error::Failed(why.text),
        }
    }
}

/// A value, and what is wrong instead of it.
#[cfg(feature = "_ranks")]
pub(super) fn split<T>(value: Result<T>) -> (Option<T>, Result<()>) {
    match value {
        Ok(value) => (Some(value), Ok(())),
        Err(why) => (None, Err(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = Failure::usage("ä".repeat(3000));
        assert!(long.text.len() <= LONGEST + 2 && long.text.ends_with("ä.."));
        assert_eq!(Failure::from(Error::usage("no")).status, Status::Usage);
        assert_eq!(Failure::from(Error::Mpi { call: "MPI_Test".into(), why: "no".into() }).status, Status::Mpi);
        assert!(!Status::Memory.ends_the_world() && Status::Panic.ends_the_world());
    }
}
