//! Record of a task as it is remembered: which command it is about, and what came of it.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::list::line;
use crate::task::State;

/// Last record of a task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Known {
    /// Hashes of what its command may have been; none if the log does not say it.
    pub(super) texts: [Option<u64>; 2],
    /// They are hashes of its words: another program may have quoted them otherwise.
    pub(super) by_words: bool,
    pub(super) state: State,
    pub(super) start: f64,
    pub(super) attempts: u32,
    /// It is from a journal, which says more than a job log of the same attempt.
    pub(super) is_ours: bool,
}

impl Known {
    /// Final ones count more than others, then later ones, then ours.
    pub(super) fn precedence(&self) -> (bool, f64, bool) {
        (self.state.is_final(), self.start, self.is_ours)
    }

    pub(super) fn is_about(&self, text: &[u8]) -> bool {
        let hashed = if self.by_words { hash_words } else { hash };
        self.texts == [None; 2] || self.texts.contains(&Some(hashed(text)))
    }
}

/// Hash of a command's text.
pub(super) fn hash(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.trim_ascii().hash(&mut hasher);
    hasher.finish()
}

/// The same for texts that mean the same words to a shell, however they are quoted.
pub(super) fn hash_words(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    match line::words(text) {
        Some(words) => words.hash(&mut hasher),
        None => text.trim_ascii().hash(&mut hasher),
    }
    hasher.finish()
}
