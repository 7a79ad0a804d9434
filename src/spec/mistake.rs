//! Mistakes in specifications of items chosen by name, each as one sentence.

use std::borrow::Cow;
use std::fmt::{self, Display};

use crate::names;

/// A mistake in the specification of an item that is chosen by name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidSpec {
    /// Noun for the kind of item, with which the sentence begins: `scheduler`.
    pub what: &'static str,
    /// The name before the colon.
    pub name: String,
    /// The mistake.
    pub mistake: Mistake,
}

/// The kinds of mistakes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mistake {
    /// There is no entry of this name.
    UnknownName {
        /// Names of all entries, in the order in which they are shown.
        known: Vec<String>,
    },
    /// Several known names where there must be one.
    SeveralNames,
    /// An option follows the name after a comma.
    MissingColon {
        /// The text after the comma.
        option: String,
    },
    /// An option is empty, as in `NAME:a=1,,b=2`.
    EmptyOption,
    /// There is no option of this key.
    UnknownOption {
        /// The key.
        key: String,
        /// Keys of the options that there are.
        known: Vec<&'static str>,
    },
    /// The value of an option is refused.
    WrongValue {
        /// Its key.
        key: &'static str,
        /// The value that was given.
        value: String,
        /// Description of the values that it takes: `a whole number, 1 or more`.
        takes: String,
    },
    /// An option that needs a value has none.
    MissingValue {
        /// Its key.
        key: &'static str,
    },
    /// An option is given twice.
    Twice {
        /// Its key.
        key: &'static str,
    },
    /// Options that don't go together, or don't fit their use.
    Conflict {
        /// Reason, as a clause that follows a colon.
        why: String,
    },
    /// An option is itself a specification with a mistake.
    Nested(Box<InvalidSpec>),
}

impl std::error::Error for InvalidSpec {}

impl Display for InvalidSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InvalidSpec { what, name, mistake } = self;
        match mistake {
            Mistake::UnknownName { known } => write!(f, "{what} '{name}' is unknown; known are {}", known.join(", ")),
            Mistake::SeveralNames => write!(f, "{what} {name}: one name is needed, and this is a list"),
            Mistake::MissingColon { option } => write!(f, "{what} {name}: options follow a colon, as in {name}:{option}"),
            Mistake::EmptyOption => write!(f, "{what} {name}: '' is not of the form key=value"),
            Mistake::UnknownOption { key, known } if known.is_empty() => {
                write!(f, "{what} {name} takes no options, '{key}' was given")
            }
            Mistake::UnknownOption { key, known } => write!(f, "{what} {name} has no option '{key}'; it has {}", known.join(", ")),
            Mistake::WrongValue { key, value, takes } => write!(f, "{what} {name}: {key} is {takes}, not '{value}'"),
            Mistake::MissingValue { key } => write!(f, "{what} {name}: {key} needs a value, {key}=.."),
            Mistake::Twice { key } => write!(f, "{what} {name}: {key} is given twice"),
            Mistake::Conflict { why } => write!(f, "{what} {name}: {why}"),
            Mistake::Nested(why) => write!(f, "{what} {name}: {why}"),
        }
    }
}

/// Names in words: `a, b or c`.
pub fn any_of(names: &[&str]) -> String {
    match names {
        [names @ .., last] if !names.is_empty() => format!("{} or {last}", names.join(", ")),
        _ => names.join(""),
    }
}

/// A text as sentences show it: its beginning, so that a long one does not drown the sentence about it, without orders to a terminal.
pub fn shown(text: &str) -> String {
    names::one_line(shortened(text).into_owned())
}

/// The beginning of a text.
fn shortened(text: &str) -> Cow<'_, str> {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}..", &text[..end]).into(),
        None => text.into(),
    }
}
