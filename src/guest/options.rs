//! Options of a world: `key=value`, separated by blanks.

use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;

use super::balancers;
use super::status::{Failure, Result};
use super::step::trigger;

/// The balancer that is used when none is named.
pub const DEFAULT_BALANCER: &str = "refine";

/// The rule that [`World::step`](super::World::step) follows when none is named.
pub const DEFAULT_TRIGGER: &str = "menon";

/// All keys.
const KEYS: [&str; 11] =
    ["balancer", "capacity", "on_error", "powers", "seed", "timeout", "tolerance", "trigger", "unit", "watchdog", "workers"];

/// Numbers by rank, as they were given.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ByRank {
    /// No value was given.
    #[default]
    Unset,
    /// This rank's own.
    Own(f64),
    /// Value of each rank.
    List(Vec<f64>),
}

/// Options of a world.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// `NAME[:key=value,..]`.
    pub balancer: String,
    /// The factor over the best maximum found up to which fewer moves win; at least 1.
    pub tolerance: f64,
    /// Seed; the same seed repeats all random decisions.
    pub seed: u64,
    /// Time for which a call waits for other ranks; without one, for ever.
    pub timeout: Option<Duration>,
    /// Trigger, which decides when to balance: `NAME[:key=value,..]`.
    pub trigger: String,
    /// Number of threads that process tasks; 0: the calling thread does.
    pub workers: usize,
    /// Whether a failed call ends the job.
    pub aborts: bool,
    /// Time for which a call waits for other ranks before it ends the job.
    pub watchdog: Option<Duration>,
    /// Seconds that a unit of weight lasts.
    pub unit: Option<f64>,
    /// Work per time of the ranks, relative to each other.
    pub powers: ByRank,
    /// Bytes that the ranks have room for.
    pub capacity: ByRank,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            balancer: DEFAULT_BALANCER.into(),
            tolerance: 1.0,
            seed: 0,
            timeout: None,
            trigger: DEFAULT_TRIGGER.into(),
            workers: 0,
            aborts: false,
            watchdog: None,
            unit: None,
            powers: ByRank::Unset,
            capacity: ByRank::Unset,
        }
    }
}

impl Options {
    /// Reads `key=value key=value ..`.
    ///
    /// # Errors
    /// Wrong usage, if a key or a value is unknown.
    pub fn parse(text: &str) -> Result<Options> {
        let mut options = Options::default();
        for piece in text.split_whitespace() {
            let Some((key, value)) = piece.split_once('=') else {
                return Err(Failure::usage(format!("option '{}' is not of the form key=value", shown(piece))));
            };
            options.set(key, value)?;
        }
        Ok(options)
    }

    /// Sets one.
    ///
    /// # Errors
    /// Wrong usage, if the key or the value is unknown; nothing has changed then.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let value = value.trim();
        let wrong = |what: &str| Failure::usage(format!("option {key}: '{}' is not {what}", shown(value)));
        let above = |least: f64, what: &str| number(value).filter(|number| *number >= least).ok_or_else(|| wrong(what));
        let seconds = || number(value).filter(|number| *number > 0.0).ok_or_else(|| wrong("a number of seconds above 0"));
        let duration = || Ok::<_, Failure>(Duration::from_secs_f64(seconds()?.min(1e9)));
        match key.trim() {
            "balancer" => {
                balancers::find(value)?;
                self.balancer = value.into();
            }
            "tolerance" => self.tolerance = above(1.0, "a number of at least 1")?,
            "seed" => self.seed = value.parse().map_err(|_| wrong("a whole number"))?,
            "timeout" => self.timeout = Some(duration()?),
            "watchdog" => self.watchdog = Some(duration()?),
            "trigger" => {
                trigger(value)?;
                self.trigger = value.into();
            }
            "workers" => {
                let workers = value.parse().ok().filter(|workers| *workers <= 1024);
                self.workers = workers.ok_or_else(|| wrong("a number of threads from 0 to 1024"))?;
            }
            "on_error" => {
                self.aborts = match value {
                    "abort" => true,
                    "return" => false,
                    _ => return Err(wrong("'return' or 'abort'")),
                }
            }
            "unit" => self.unit = Some(seconds()?),
            "powers" => self.powers = by_rank(value).ok_or_else(|| wrong("a number of at least 0, or a list of them by rank"))?,
            "capacity" => self.capacity = by_rank(value).ok_or_else(|| wrong("a number of bytes, or a list of them by rank"))?,
            key => return Err(Failure::usage(format!("option '{}' is unknown; there are {}", shown(key), KEYS.join(", ")))),
        }
        Ok(())
    }

    /// Checks that lists have a number for each rank.
    ///
    /// # Errors
    /// Wrong usage.
    pub fn check(&self, ranks: u32) -> Result<()> {
        for (key, numbers) in [("powers", &self.powers), ("capacity", &self.capacity)] {
            if let ByRank::List(list) = numbers
                && list.len() != ranks as usize
            {
                return Err(Failure::usage(format!("option {key}: {} numbers for {ranks} ranks", list.len())));
            }
        }
        if let ByRank::List(list) = &self.powers
            && list.iter().all(|power| *power == 0.0)
        {
            return Err(Failure::usage("option powers: all ranks have power 0"));
        }
        Ok(())
    }

    /// A number that is the same where all options are that must be the same on all ranks.
    pub fn fingerprint(&self) -> u64 {
        let common = |numbers: &ByRank| match numbers {
            ByRank::List(list) => list.clone(),
            _ => Vec::new(),
        };
        let (powers, capacity) = (common(&self.powers), common(&self.capacity));
        let text = format!(
            "{} {} {} {:?} {} {} {} {:?} {:?} {powers:?} {capacity:?}",
            self.balancer, self.tolerance, self.seed, self.timeout, self.trigger, self.workers, self.aborts, self.watchdog, self.unit
        );
        let mut hasher = DefaultHasher::new();
        hasher.write(text.as_bytes());
        hasher.finish()
    }
}

fn shown(text: &str) -> String {
    crate::spec::shown(text)
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|number| number.is_finite())
}

fn by_rank(text: &str) -> Option<ByRank> {
    let of = |text: &str| number(text).filter(|number| *number >= 0.0);
    match text.contains(',') {
        false => Some(ByRank::Own(of(text)?)),
        true => Some(ByRank::List(text.split(',').map(of).collect::<Option<_>>()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_are_read() {
        let text = "balancer=greedy tolerance=1.05  seed=7 timeout=2.5 trigger=every:steps=3 workers=2 on_error=abort watchdog=9 unit=1e-3 \
                    powers=1,2,0 capacity=4096";
        let options = Options::parse(text).unwrap();
        assert_eq!((options.balancer.as_str(), options.tolerance, options.seed), ("greedy", 1.05, 7));
        assert_eq!(options.powers, ByRank::List(vec![1.0, 2.0, 0.0]));
        assert_eq!(options.capacity, ByRank::Own(4096.0));
        assert_eq!(options.timeout, Some(Duration::from_millis(2500)));
        assert_eq!(Options::parse("").unwrap(), Options::default());
    }

    #[test]
    fn what_is_unknown_is_refused_by_name() {
        let wrong = [
            "balanser=refine",
            "balancer=magic",
            "tolerance=0.9",
            "tolerance=nan",
            "seed=-1",
            "timeout=0",
            "timeout=x",
            "trigger=moon",
            "workers=-1",
            "on_error=maybe",
            "watchdog=-2",
            "unit=0",
            "powers=1,x",
            "powers=-1",
            "capacity=inf",
            "refine",
            "seed=",
        ];
        for text in wrong {
            let why = Options::parse(text).unwrap_err();
            assert_eq!(why.status, super::super::Status::Usage, "{text}");
            assert!(why.text.contains(text.split('=').next().unwrap()), "{text}: {}", why.text);
        }
    }

    #[test]
    fn own_numbers_may_differ() {
        let of = |text| Options::parse(text).unwrap().fingerprint();
        assert_eq!(of("powers=2"), of("powers=1 capacity=7"));
        assert_ne!(of("powers=2,1"), of("powers=1,2"));
        assert_ne!(of("seed=1"), of("seed=2"));
    }
}
