//! Fibonacci numbers by their definition: the classic test of how cheap it is to spawn a task.
//!
//! A task is a number n. Above `cutoff` it spawns n - 1 and n - 2 and waits for both; from there on it calls itself, as a plain
//! program would. With a cutoff below 2 every call is a task.

use super::{Entry, Facts, Make, Number, Prepared, Workload};
use equipoise::error::Result;
use equipoise::node::{Ticks, Worker};
use equipoise::schedule::{self, Computation, Roots, Style, Yield};
use equipoise::spec::{InvalidSpec, Options};

pub(super) static ENTRY: Entry = Entry {
    name: "fibonacci",
    title: "Fibonacci numbers by their definition",
    source: "Frigo, Leiserson and Randall 1998",
    options: "n=30 (0 to 90), cutoff=22 (0 to 90; up to which a task calls itself instead of spawning)",
    examples: &["fibonacci:n=0", "fibonacci:n=12,cutoff=0", "fibonacci:n=18,cutoff=9"],
    build,
    facts: Facts { answer: "the number", has_own_network: false },
};

fn build(options: &mut Options<'_>) -> Result<Make, InvalidSpec> {
    let n = options.within("n", 0..=90)?.unwrap_or(30);
    let cutoff = options.within("cutoff", 0..=90)?.unwrap_or(22);
    Ok(Make::new(options, move |_| Ok(Prepared::new(Fibonacci { n, cutoff }))))
}

/// Nanoseconds that a call takes, for the simulator: processor time measured on an Intel Xeon.
const CALL: Ticks = 1;
/// Calls of this size, some microseconds long, are followed by a checkpoint.
const BETWEEN_CHECKPOINTS: u32 = 16;
/// The largest cutoff with which tasks are shorter than a worker's hand-over.
const SHORT: u32 = 20;

/// The computation: one number.
#[derive(Clone, Copy, Debug)]
pub struct Fibonacci {
    pub n: u32,
    pub cutoff: u32,
}

/// Computes Fibonacci number `n` by the definition.
fn call(n: u32) -> u64 {
    if n < 2 { n.into() } else { call(n - 1) + call(n - 2) }
}

/// The same, with checkpoints.
fn call_with(n: u32, worker: &mut dyn Worker) -> u64 {
    if n <= BETWEEN_CHECKPOINTS {
        worker.checkpoint();
        return call(n);
    }
    call_with(n - 1, worker) + call_with(n - 2, worker)
}

/// The number by addition.
fn formula(n: u32) -> u64 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

/// Number of calls that the definition makes.
fn calls(n: u32) -> u64 {
    2 * formula(n + 1) - 1
}

impl Computation for Fibonacci {
    type Task = u32;
    type Answer = u64;
    type Waiting = ();

    fn execute(&self, n: u32, worker: &mut dyn Worker) -> Yield<Self> {
        if n > self.cutoff && n >= 2 {
            worker.charge(CALL);
            return Yield::Children { tasks: vec![n - 1, n - 2], waiting: () };
        }
        worker.charge(CALL * calls(n));
        Yield::Answer(call_with(n, worker))
    }

    fn join(&self, (): (), answers: Vec<u64>) -> Yield<Self> {
        Yield::Answer(answers.into_iter().sum())
    }

    fn combine(&self, into: u64, more: u64) -> u64 {
        into + more
    }
}

impl Workload for Fibonacci {
    fn roots(&self) -> Roots<Self> {
        Roots::One(self.n)
    }

    fn number(&self, answer: &u64) -> Number {
        Number::Whole(*answer)
    }

    fn known(&self) -> Option<Number> {
        Some(Number::Whole(formula(self.n)))
    }

    fn sequential(&self) -> Option<Number> {
        Some(Number::Whole(call(self.n)))
    }

    fn adjust(&self, options: &mut schedule::Options) {
        if self.cutoff <= SHORT {
            options.style.get_or_insert(Style::Inline);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_agrees_with_the_formula() {
        for n in 0..22 {
            let fibonacci = Fibonacci { n, cutoff: 0 };
            assert_eq!(fibonacci.sequential(), fibonacci.known(), "n = {n}");
        }
        assert_eq!((formula(30), formula(90)), (832_040, 2_880_067_194_370_816_120));
        assert_eq!((calls(0), calls(1), calls(2), calls(5)), (1, 1, 3, 15));
    }

    #[test]
    #[ignore = "measures; run it alone, in release"]
    fn what_a_call_takes() {
        let (n, began) = (38, std::time::Instant::now());
        let answer = call(std::hint::black_box(n));
        println!("{answer}, {:.2} ns a call", began.elapsed().as_nanos() as f64 / calls(n) as f64);
    }
}
