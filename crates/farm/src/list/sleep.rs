//! Built-in tasks that sleep, for comparisons of schedulers: no program is started, so that only the farm's own cost is left.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::task::{How, Task};
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

const FORM: &str = "it must be exponential:mean=TIME, uniform:min=TIME,max=TIME or fixed:time=TIME, then ,tasks=N and, if need be, ,seed=N ,costs=known \
                    ,speeds=A/B/..; times such as 10ms or 0.5s";

impl Sleep {
    /// Reads `exponential:mean=10ms,tasks=500,seed=1,costs=known,speeds=1/2/4`.
    ///
    /// # Errors
    /// The expected form.
    pub fn parse(text: &str) -> Result<Sleep, String> {
        Sleep::read(text).ok_or_else(|| FORM.to_string())
    }

    fn read(text: &str) -> Option<Sleep> {
        let (kind, rest) = text.split_once(':')?;
        let (mut mean, mut min, mut max, mut fixed, mut tasks) = (None, None, None, None, None);
        let (mut seed, mut known, mut speeds) = (1, false, Vec::new());
        for part in rest.split(',') {
            let (key, value) = part.split_once('=')?;
            match key {
                "mean" => mean = Some(time(value)?),
                "min" => min = Some(time(value)?),
                "max" => max = Some(time(value)?),
                "time" => fixed = Some(time(value)?),
                "tasks" => tasks = Some(value.parse().ok()?),
                "seed" => seed = value.parse().ok()?,
                "costs" if value == "known" => known = true,
                "speeds" => speeds = value.split('/').map(speed).collect::<Option<_>>()?,
                _ => return None,
            }
        }
        let lengths = match (kind, mean, min, max, fixed) {
            ("exponential", Some(mean), None, None, None) => Lengths::Exponential { mean },
            ("uniform", None, Some(min), Some(max), None) if min <= max => Lengths::Uniform { min, max },
            ("fixed", None, None, None, Some(seconds)) => Lengths::Fixed { seconds },
            _ => return None,
        };
        Some(Sleep { lengths, tasks: tasks?, seed, known, speeds })
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

fn time(text: &str) -> Option<f64> {
    let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix("us"), text.strip_suffix('s')) {
        (Some(number), ..) => (number, 1e-3),
        (_, Some(number), _) => (number, 1e-6),
        (.., Some(number)) => (number, 1.0),
        _ => return None,
    };
    number.parse().ok().map(|number: f64| number * unit).filter(|seconds| (0.0..=1e9).contains(seconds))
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
        for wrong in [
            "",
            "exponential",
            "exponential:mean=10,tasks=1",
            "exponential:mean=1s",
            "uniform:min=2s,max=1s,tasks=1",
            "fixed:mean=1s,tasks=1",
            "fixed:time=nans,tasks=1",
            "fixed:time=-1s,tasks=1",
            "fixed:time=1s,tasks=x",
            "fixed:time=1s,tasks=1,speeds=1/0",
        ] {
            assert!(Sleep::parse(wrong).is_err(), "{wrong}");
        }
    }
}
