//! Options that several commands have.

use std::time::Duration;

use clap::{Args, ValueEnum};
use equipoise::Result;
use equipoise::topology::MAX_NODES;
use equipoise::workload::{Pins, WeightPattern};

/// Which ranks, and how long they may stand still.
#[derive(Args)]
#[command(next_help_heading = "Ranks")]
pub struct WorldOptions {
    /// Simulate this many ranks in virtual time, without MPI; on real ranks (under mpirun) leave it out
    #[arg(long, value_name = "RANKS", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_NODES)))]
    pub sim: Option<u32>,

    /// The simulated network: zero | switched | hops, the last two with :latency=20us,per_byte=2.7ns,contention.
    /// switched: a message costs its start-up and its bytes; hops: the same for every hop along the topology; contention: messages wait
    /// for each other [default: switched:latency=20us,per_byte=2.7ns]
    #[arg(long, value_name = "MODEL", requires = "sim")]
    pub network: Option<String>,

    /// Put the simulated ranks on this many hosts, in blocks, to see how much crosses between hosts [default: 1]
    #[arg(long, value_name = "HOSTS", requires = "sim", value_parser = clap::value_parser!(u32).range(1..))]
    pub sim_hosts: Option<u32>,

    /// Seed of all random numbers: the same seed, the same loads and (in simulation) the same run
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,

    /// Give up with exit status 3 after so long without progress, and say who waits for whom; in simulation the time is virtual
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    pub timeout: Duration,
}

/// What the tasks behind `--loads` are like.
#[derive(Args)]
pub struct TaskOptions {
    /// Work units of each task: 1,2,3 (by task, those of node 0 first) | @FILE | uniform:1..10 | exponential:mean=10 | unit. Loads, quotas
    /// and final loads are then work units
    #[arg(long, value_name = "WEIGHTS", default_value = "unit")]
    weights: String,

    /// Pin each task to its node with this probability, p=0.1: pinned tasks count as load and never move
    #[arg(long, value_name = "SHARE")]
    pinned: Option<String>,
}

impl TaskOptions {
    /// Reads both, as far as it can be done without files.
    pub fn parse(&self, seed: u64) -> Result<(WeightPattern, Pins)> {
        let pins = self.pinned.as_deref().map(|text| Pins::parse(text, seed)).transpose()?;
        Ok((WeightPattern::parse(&self.weights)?, pins.unwrap_or_default()))
    }
}

/// A duration in seconds above zero; fractions are fine.
fn seconds(text: &str) -> std::result::Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 => Duration::try_from_secs_f64(seconds).map_err(|why| why.to_string()),
        _ => Err("it must be a number of seconds above 0".into()),
    }
}

/// Whom the result is printed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Text and tables for people
    Human,
    /// One JSON object a line for programs
    Json,
    /// Nothing: the exit status tells
    Quiet,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_a_positive_number_of_seconds() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["0", "-1", "NaN", "soon", "inf", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
