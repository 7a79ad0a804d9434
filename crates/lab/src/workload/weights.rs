//! Weights of tasks, and which tasks may not move.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp};
use serde::{Deserialize, Serialize};

use super::items::{self, Given, shortened, whole};
use equipoise::error::{Error, Result};
use equipoise::load::TaskId;
use equipoise::names;
use equipoise::spec::Options;

/// The nouns for them.
const WEIGHTS: &str = "weights";
const PINNED: &str = "pinned";

/// Weights as they are given; [`Display`](fmt::Display) writes what [`WeightPattern::parse`] reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum WeightPattern {
    /// Unit tasks (the default).
    #[default]
    Unit,
    /// The work units of every task, by id.
    List(Vec<u64>),
    /// The same, in a file: numbers separated by commas, blanks or line ends, comments after `#`.
    File(PathBuf),
    /// Uniform integers in `low..=high`.
    Uniform { low: u64, high: u64 },
    /// Exponential with this mean, rounded up, so that no task is without work.
    Exponential { mean: f64 },
}

impl WeightPattern {
    /// Reads `1,2,3 | @FILE | uniform:1..10 | exponential:mean=10 | unit`. A file is only read by [`WeightPattern::draw`].
    ///
    /// # Errors
    /// [`Error::Spec`] if the pattern is unknown or has wrong options, [`Error::Input`] if a list is of something else than whole numbers.
    pub fn parse(text: &str) -> Result<WeightPattern> {
        let spec = match items::given(WEIGHTS, text)? {
            Given::List(items) => return Ok(WeightPattern::List(items::numbers(WEIGHTS, items, whole)?)),
            Given::File(path) => return Ok(WeightPattern::File(path)),
            Given::Pattern(spec) => spec,
        };
        let read = |options: &mut Options<'_>| match spec.name() {
            "unit" => Ok(WeightPattern::Unit),
            "uniform" => items::bounds(options).map(|(low, high)| WeightPattern::Uniform { low, high }),
            "exponential" => Ok(WeightPattern::Exponential { mean: options.positive("mean")?.unwrap_or(10.0) }),
            _ => Err(spec.unknown(["unit", "uniform", "exponential", "a list such as 1,2,3", "@FILE"])),
        };
        Ok(spec.build(read)?)
    }

    /// The weights of the tasks `0..tasks`; a list has one for each of them.
    ///
    /// # Errors
    /// If a file can't be read, or a list is of another length.
    pub fn draw(&self, tasks: u64, seed: u64) -> Result<Weights> {
        let listed = |weights: Vec<u64>, source: String| match weights.len() as u64 == tasks {
            true => Ok(Weights::Listed(weights)),
            false => Err(Error::input(WEIGHTS, format!("{source}: {} numbers for {tasks} tasks", weights.len()))),
        };
        match self {
            WeightPattern::Unit => Ok(Weights::Unit),
            WeightPattern::List(weights) => listed(weights.clone(), String::new()),
            WeightPattern::File(path) => {
                listed(items::numbers(WEIGHTS, items::read(WEIGHTS, path)?, whole)?, format!(" @{}", names::shown(path)))
            }
            WeightPattern::Uniform { low, high } => Ok(Weights::Uniform { low: *low, high: *high, seed }),
            WeightPattern::Exponential { mean } => Ok(Weights::Exponential { mean: *mean, seed }),
        }
    }
}

impl FromStr for WeightPattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<WeightPattern> {
        WeightPattern::parse(text)
    }
}

impl fmt::Display for WeightPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WeightPattern::Unit => f.write_str("unit"),
            WeightPattern::List(weights) => f.write_str(&weights.iter().map(u64::to_string).collect::<Vec<_>>().join(",")),
            WeightPattern::File(path) => write!(f, "@{}", names::shown(path)),
            WeightPattern::Uniform { low, high } => write!(f, "uniform:{low}..{high}"),
            WeightPattern::Exponential { mean } => write!(f, "exponential:mean={mean}"),
        }
    }
}

/// The weights of all tasks. Drawn ones depend on the seed and the task's id alone, so that every rank knows them all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Weights {
    /// One work unit each.
    #[default]
    Unit,
    Listed(Vec<u64>),
    Uniform {
        low: u64,
        high: u64,
        seed: u64,
    },
    Exponential {
        mean: f64,
        seed: u64,
    },
}

impl Weights {
    /// Returns true if these are unit tasks.
    pub fn are_unit(&self) -> bool {
        *self == Weights::Unit
    }

    /// Work units of the tasks `first .. first + count`.
    pub fn of(&self, first: TaskId, count: u64) -> Box<dyn Iterator<Item = u64> + '_> {
        let ids = first..first + count;
        match self {
            Weights::Unit => Box::new(ids.map(|_| 1)),
            Weights::Listed(weights) => {
                Box::new(ids.map(|id| usize::try_from(id).ok().and_then(|id| weights.get(id)).copied().unwrap_or(1)))
            }
            Weights::Uniform { low, high, seed } => {
                let mut draws = Draws::new(*seed, super::WEIGHTS_STREAM);
                Box::new(ids.map(move |id| draws.of(id).random_range(*low..=*high)))
            }
            Weights::Exponential { mean, seed } => {
                let mut draws = Draws::new(*seed, super::WEIGHTS_STREAM);
                // Dividing by the mean could not be; parsing refuses 0.
                let exponential = Exp::new(1.0).ok();
                let mean = *mean;
                Box::new(ids.map(move |id| {
                    let drawn = exponential.map_or(1.0, |exponential| exponential.sample(draws.of(id)));
                    ((drawn * mean).ceil() as u64).max(1)
                }))
            }
        }
    }
}

/// Selection of tasks that may not move, as given by `--pinned p=0.1`: each with this probability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pins {
    p: f64,
    seed: u64,
}

impl Pins {
    /// Reads `p=0.1`, with the seed given separately.
    ///
    /// # Errors
    /// [`Error::Input`] if it is written otherwise, or the share is no number from 0 to 1.
    pub fn parse(text: &str, seed: u64) -> Result<Pins> {
        let wrong = |why: &str| Error::input(PINNED, format!(" {}: {why}", shortened(text)));
        let share = text.trim().strip_prefix("p=").ok_or_else(|| wrong("it is written as p=0.1, the share of tasks that may not move"))?;
        match share.trim().parse::<f64>() {
            Ok(p) if (0.0..=1.0).contains(&p) => Ok(Pins { p, seed }),
            Ok(_) => Err(wrong("a share is a number from 0 to 1")),
            Err(_) => Err(wrong("the share is not a number")),
        }
    }

    /// Returns true if no task is pinned.
    pub fn are_none(&self) -> bool {
        self.p == 0.0
    }

    /// For each of the tasks `first .. first + count`, true if it is pinned.
    pub fn of(&self, first: TaskId, count: u64) -> impl Iterator<Item = bool> + '_ {
        let mut draws = Draws::new(self.seed, super::PINNED_STREAM);
        (first..first + count).map(move |id| draws.of(id).random_bool(self.p))
    }
}

/// Random numbers by task: each task has a block of the stream of its own.
struct Draws {
    rng: ChaCha8Rng,
}

impl Draws {
    fn new(seed: u64, stream: u64) -> Draws {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Draws { rng }
    }

    fn of(&mut self, id: TaskId) -> &mut ChaCha8Rng {
        // A block has 16 words; hardly any draw takes more than four.
        self.rng.set_word_pos(u128::from(id) * 16);
        &mut self.rng
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::testing;

    #[test]
    fn every_form_reads_back() {
        for text in ["1,2,3", "0", "@some/file", "uniform:1..10", "exponential:mean=2.5", "unit"] {
            assert_eq!(WeightPattern::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(WeightPattern::parse("uniform").unwrap().to_string(), "uniform:1..10");
        assert_eq!(WeightPattern::parse("exponential").unwrap().to_string(), "exponential:mean=10");
    }

    #[test]
    fn wrong_forms_get_one_sentence() {
        for (text, why) in [
            ("heavy", "weights 'heavy' is unknown; known are unit, uniform, exponential, a list such as 1,2,3, @FILE"),
            ("1,-2", "weights, item 2: -2 is negative"),
            ("1,2.5", "weights, item 2: \"2.5\" is not a whole number"),
            ("@", "weights @: the name of a file is missing"),
            ("uniform:5..2", "weights uniform: LOW..HIGH is two whole numbers, the lower one first, as in 1..10, not '5..2'"),
            ("uniform:5", "weights uniform: LOW..HIGH is two whole numbers, the lower one first, as in 1..10, not '5'"),
            ("exponential:mean=0", "weights exponential: mean is a number above 0, not '0'"),
            ("exponential:rate=1", "weights exponential has no option 'rate'; it has mean"),
        ] {
            let said = WeightPattern::parse(text).unwrap_err().to_string();
            assert!(said.starts_with(why), "{said}");
        }
        let few = WeightPattern::parse("1,2,3").unwrap().draw(4, 1).unwrap_err();
        assert_eq!(few.to_string(), "weights: 3 numbers for 4 tasks");
        for text in ["0.1", "p=2", "p=-1", "p=NaN", "p=few", ""] {
            let said = Pins::parse(text, 1).unwrap_err().to_string();
            assert!(said.starts_with("pinned"), "{said}");
        }
    }

    #[test]
    fn a_tasks_weight_is_its_own_affair() {
        for text in ["uniform:0..1000", "exponential:mean=100"] {
            let weights = WeightPattern::parse(text).unwrap().draw(500, 7).unwrap();
            let all: Vec<u64> = weights.of(0, 500).collect();
            assert_eq!(all[123..130], weights.of(123, 7).collect::<Vec<_>>());
            let mean = all.iter().sum::<u64>() / 500;
            let expected = if text.starts_with("uniform") { 500 } else { 100 };
            assert!(mean.abs_diff(expected) < expected / 5, "{text}: mean {mean}");
            assert_ne!(all, WeightPattern::parse(text).unwrap().draw(500, 8).unwrap().of(0, 500).collect::<Vec<_>>());
        }
        let file = testing::file("# by id\n3 4\n5\n");
        let listed = WeightPattern::parse(&format!("@{}", file.display())).unwrap().draw(3, 1).unwrap();
        assert_eq!(listed.of(1, 2).collect::<Vec<_>>(), [4, 5]);
    }

    #[test]
    fn a_share_of_the_tasks_is_pinned() {
        let pins = Pins::parse("p=0.25", 3).unwrap();
        let pinned: Vec<bool> = pins.of(0, 2000).collect();
        assert!((400..600).contains(&pinned.iter().filter(|pinned| **pinned).count()));
        assert_eq!(pinned[70..90], pins.of(70, 20).collect::<Vec<_>>());
        assert!(Pins::default().are_none() && !pins.are_none());
        assert!(Pins::parse("p=1", 3).unwrap().of(5, 9).all(|pinned| pinned));
    }
}
