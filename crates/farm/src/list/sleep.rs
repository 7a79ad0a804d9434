//! Built-in tasks that sleep, for comparisons of schedulers: no program is started, so that only the farm's own cost is left.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::task::{How, Task};
use equipoise::spec::quantity::{self, TIME};
use equipoise::spec::{InvalidSpec, Spec};
use equipoise::topology::RankId;

/// Parsed `--sleep`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sleep {
    lengths: Lengths,
    pub tasks: u64,
    seed: u64,
    /// The lengths are known beforehand.
    known: bool,
    /// Speed of each rank, over and over: a rank of speed 2 sleeps half as long.
    speeds: Vec<f64>,
}

/// Distribution of the seconds that tasks sleep.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lengths {
    Exponential { mean: f64 },
    Uniform { min: f64, max: f64 },
    Fixed { seconds: f64 },
}

/// Longest sleep, in seconds: some thirty years.
const LONGEST: f64 = 1e9;

/// The distributions.
const KINDS: [&str; 3] = ["exponential", "uniform", "fixed"];

impl Sleep {
    /// Reads `exponential:mean=10ms,tasks=500,seed=1,costs=known,speeds=1/2/4`.
    ///
    /// # Errors
    /// An unknown distribution, an unknown option or a wrong value.
    pub fn parse(text: &str) -> Result<Sleep, InvalidSpec> {
        let spec = Spec::parse("sleep", text)?;
        if !KINDS.contains(&spec.name()) {
            return Err(spec.unknown(KINDS));
        }
        let (times, tasks, seed, costs, speeds) = spec.build(|options| {
            let seconds = |text: &str| quantity::seconds_with_unit(text).filter(|seconds| *seconds <= LONGEST);
            let mut time = |key: &'static str| options.read_with(key, TIME, seconds);
            let times = match spec.name() {
                "exponential" => (time("mean")?, None),
                "uniform" => (time("min")?, time("max")?),
                _ => (time("time")?, None),
            };
            let (tasks, seed) = (options.whole("tasks", 0)?, options.whole("seed", 0)?);
            let costs = options.choice("costs", &[("known", true)])?;
            let list = |text: &str| text.split('/').map(speed).collect::<Option<Vec<f64>>>();
            let speeds = options.read_with("speeds", "numbers above 0, such as 1/2/4", list)?;
            Ok::<_, InvalidSpec>((times, tasks, seed, costs, speeds))
        })?;
        // Only now, since an option that is missing may be one whose key is mistyped.
        let missing = |form: &str| spec.conflict(format!("{form} is missing"));
        let lengths = match (spec.name(), times) {
            ("exponential", (mean, _)) => Lengths::Exponential { mean: mean.ok_or_else(|| missing("mean=TIME"))? },
            ("uniform", (min, max)) => match (min.ok_or_else(|| missing("min=TIME"))?, max.ok_or_else(|| missing("max=TIME"))?) {
                (min, max) if min <= max => Lengths::Uniform { min, max },
                _ => return Err(spec.conflict("min is above max")),
            },
            (_, (time, _)) => Lengths::Fixed { seconds: time.ok_or_else(|| missing("time=TIME"))? },
        };
        let tasks = tasks.ok_or_else(|| missing("tasks=N"))?;
        Ok(Sleep { lengths, tasks, seed: seed.unwrap_or(1), known: costs.unwrap_or(false), speeds: speeds.unwrap_or_default() })
    }

    /// Seconds that a task sleeps on a rank of speed 1; the same each time it is asked.
    pub fn seconds(&self, seq: u64) -> f64 {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(seq);
        let chance: f64 = rng.random();
        match self.lengths {
            Lengths::Exponential { mean } => -mean * (1.0 - chance).ln(),
            Lengths::Uniform { min, max } => min + (max - min) * chance,
            Lengths::Fixed { seconds } => seconds,
        }
    }

    /// Task number `seq`.
    pub fn task(&self, seq: u64) -> Task {
        let seconds = self.seconds(seq);
        let text = format!("sleep {seconds:.6}").into_bytes();
        Task { seq, line: seq, text, how: How::Sleep, cost: self.known.then_some(seconds), ..Task::default() }
    }

    /// The speed of a rank.
    pub fn speed(&self, rank: RankId) -> f64 {
        if self.speeds.is_empty() { 1.0 } else { self.speeds[rank.index() % self.speeds.len()] }
    }
}

/// Seconds in a built-in task's text.
pub fn seconds(text: &[u8]) -> f64 {
    std::str::from_utf8(text).ok().and_then(|text| text.strip_prefix("sleep ")?.parse().ok()).unwrap_or(0.0)
}

fn speed(text: &str) -> Option<f64> {
    text.parse().ok().filter(|speed: &f64| speed.is_finite() && *speed > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_repeat_and_have_their_mean() {
        let sleep = Sleep::parse("exponential:mean=10ms,tasks=20000,seed=3").unwrap();
        let mean = (1..=sleep.tasks).map(|seq| sleep.seconds(seq)).sum::<f64>() / sleep.tasks as f64;
        assert!((mean - 0.01).abs() < 0.0003, "{mean}");
        let task = sleep.task(7);
        assert!((seconds(&task.text) - sleep.seconds(7)).abs() < 1e-6 && task.cost.is_none());
        assert_eq!(task, sleep.task(7));
        let uniform = Sleep::parse("uniform:min=5ms,max=0.5s,tasks=500,costs=known,speeds=1/2.5").unwrap();
        assert!((1..=500).all(|seq| (0.005..=0.5).contains(&uniform.seconds(seq))));
        assert_eq!((uniform.speed(RankId::FIRST), uniform.speed(RankId::new(3)), sleep.speed(RankId::new(3))), (1.0, 2.5, 1.0));
        assert_eq!(uniform.task(1).cost, Some(uniform.seconds(1)));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, why) in [
            ("", "sleep '' is unknown; known are exponential, uniform, fixed"),
            ("exponential", "sleep exponential: mean=TIME is missing"),
            ("exponential:men=1ms,tasks=2", "sleep exponential has no option 'men'; it has mean, tasks, seed, costs, speeds"),
            ("exponential:mean=10,tasks=1", "sleep exponential: mean is a time such as 200ms, 1.5us or 0s, not '10'"),
            ("exponential:mean=1s", "sleep exponential: tasks=N is missing"),
            ("uniform:min=2s,max=1s,tasks=1", "sleep uniform: min is above max"),
            ("fixed:time=nans,tasks=1", "sleep fixed: time is a time such as 200ms, 1.5us or 0s, not 'nans'"),
            ("fixed:time=-1s,tasks=1", "sleep fixed: time is a time such as 200ms, 1.5us or 0s, not '-1s'"),
            ("fixed:time=1e10s,tasks=1", "sleep fixed: time is a time such as 200ms, 1.5us or 0s, not '1e10s'"),
            ("fixed:time=1s,tasks=x", "sleep fixed: tasks is a whole number, 0 or more, not 'x'"),
            ("fixed:time=1s,tasks=1,costs=no", "sleep fixed: costs is known, not 'no'"),
            ("fixed:time=1s,tasks=1,speeds=1/0", "sleep fixed: speeds is numbers above 0, such as 1/2/4, not '1/0'"),
            ("fixed:time=1s,tasks=1,mean=1s", "sleep fixed has no option 'mean'; it has time, tasks, seed, costs, speeds"),
        ] {
            assert_eq!(Sleep::parse(text).unwrap_err().to_string(), why);
        }
    }
}
