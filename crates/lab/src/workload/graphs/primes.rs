//! Counting primes with the sieve of Eratosthenes, segment by segment.
//!
//! A task is a range of numbers. One longer than `segment` spawns its halves; others are sieved, in blocks that fit a processor's cache,
//! by the primes up to the root of n, which every process finds once by itself.
//!
//! The known answer is that of a table, or of Legendre's formula, which counts primes without finding those above the root.

use std::ops::Range;
use std::sync::Arc;

use super::{Entry, Facts, Make, Number, Prepared, Workload};
use equipoise::error::Result;
use equipoise::node::{Ticks, Worker};
use equipoise::schedule::{Computation, Roots, Yield};
use equipoise::spec::{InvalidSpec, Options};

pub(super) static ENTRY: Entry = Entry {
    name: "primes",
    title: "counting primes by a segmented sieve",
    source: "",
    options: "n=1000000 (up to 1000000000000), segment=65536, above n=67108864 n/1024 (numbers that a task sieves)",
    examples: &["primes:n=1", "primes:n=20000,segment=1000"],
    build,
    facts: Facts { answer: "primes up to n", has_own_network: false },
};

const LARGEST: u64 = 1_000_000_000_000;
/// More segments would not be worth their tasks.
const MOST_SEGMENTS: u64 = 1 << 22;

fn build(options: &mut Options<'_>) -> Result<Make, InvalidSpec> {
    let n = options.within("n", 0..=LARGEST)?.unwrap_or(1_000_000);
    let segment = options.within("segment", 1..=LARGEST)?.unwrap_or((n / 1024).max(1 << 16));
    if n / segment > MOST_SEGMENTS {
        return Err(options.conflict(format!("segment={segment} numbers a task make more than {MOST_SEGMENTS} tasks")));
    }
    Ok(Make::new(options, move |_| Ok(Prepared::new(Primes::new(n, segment)))))
}

/// The number of primes up to 10, 100, .. (OEIS A006880).
const UP_TO_POWERS_OF_TEN: [u64; 12] =
    [4, 25, 168, 1_229, 9_592, 78_498, 664_579, 5_761_455, 50_847_534, 455_052_511, 4_118_054_813, 37_607_912_018];

/// Numbers that are sieved at a time; their odd ones take a byte each.
const BLOCK: u64 = 1 << 17;
/// Picoseconds that a number takes, for the simulator: processor time measured on an Intel Xeon for n below a thousand million.
const NUMBER: u64 = 1_000;
/// Nanoseconds that a divisor takes in each block in addition.
const DIVISOR: Ticks = 12;

/// The computation: the number of primes up to a number.
#[derive(Clone, Debug)]
pub struct Primes {
    pub n: u64,
    /// Longer ranges spawn their halves.
    pub segment: u64,
    /// The odd primes up to the root of n.
    divisors: Arc<[u64]>,
}

impl Primes {
    pub fn new(n: u64, segment: u64) -> Primes {
        Primes { n, segment: segment.max(1), divisors: odd_primes(n.isqrt()).into() }
    }

    /// Counts the primes in a range of numbers up to n. Calls `look` with the length and the number of divisors of each block.
    fn count(&self, range: Range<u64>, look: &mut impl FnMut(u64, usize)) -> u64 {
        let mut count = u64::from(range.contains(&2));
        let mut is_composite = Vec::new();
        let mut begin = range.start.max(3);
        while begin < range.end {
            let end = range.end.min(begin + BLOCK);
            let first = begin | 1;
            is_composite.clear();
            is_composite.resize(end.saturating_sub(first).div_ceil(2) as usize, false);
            let needed = self.divisors.partition_point(|divisor| divisor * divisor < end);
            for divisor in &self.divisors[..needed] {
                let multiple = (first.div_ceil(*divisor) | 1).max(*divisor) * divisor;
                for index in (((multiple - first) / 2) as usize..is_composite.len()).step_by(*divisor as usize) {
                    is_composite[index] = true;
                }
            }
            count += is_composite.iter().filter(|is_composite| !**is_composite).count() as u64;
            look(end - begin, needed);
            begin = end;
        }
        count
    }
}

/// The number of primes up to n by Legendre's formula: of the numbers from 2 to v take off those whose least factor is p, for all p up to the root,
/// for all v = n / i at once. Needs two numbers for each up to the root of n.
fn legendre(n: u64) -> u64 {
    let root = n.isqrt() as usize;
    // Numbers left up to v, for v up to the root, and up to n / i.
    let mut small: Vec<u64> = (0..=root as u64).map(|v| v.saturating_sub(1)).collect();
    let mut large: Vec<u64> = (0..=root as u64).map(|i| n.checked_div(i).map_or(0, |v| v.saturating_sub(1))).collect();
    for p in 2..=root {
        let below = small[p - 1];
        if small[p] == below {
            continue;
        }
        let square = (p * p) as u64;
        for i in 1..=root.min((n / square) as usize) {
            let up_to = if i * p <= root { large[i * p] } else { small[(n / (i * p) as u64) as usize] };
            large[i] -= up_to - below;
        }
        for v in (p * p..=root).rev() {
            small[v] -= small[v / p] - below;
        }
    }
    if n < 2 { 0 } else { large[1] }
}

/// The odd primes up to a small number.
fn odd_primes(most: u64) -> Vec<u64> {
    let mut is_composite = vec![false; most as usize + 1];
    let mut primes = Vec::new();
    for number in (3..=most).step_by(2) {
        if !is_composite[number as usize] {
            primes.push(number);
            (number * number..=most).step_by(number as usize).for_each(|multiple| is_composite[multiple as usize] = true);
        }
    }
    primes
}

impl Computation for Primes {
    type Task = Range<u64>;
    type Answer = u64;
    type Waiting = ();

    fn execute(&self, range: Range<u64>, worker: &mut dyn Worker) -> Yield<Self> {
        if range.end - range.start > self.segment {
            worker.charge(1);
            let middle = range.start.midpoint(range.end);
            return Yield::Children { tasks: vec![range.start..middle, middle..range.end], waiting: () };
        }
        let mut ticks = 0;
        let primes = self.count(range, &mut |numbers, divisors| {
            ticks += numbers * NUMBER / 1000 + divisors as Ticks * DIVISOR;
            worker.checkpoint();
        });
        worker.charge(ticks.max(1));
        Yield::Answer(primes)
    }

    fn join(&self, (): (), answers: Vec<u64>) -> Yield<Self> {
        Yield::Answer(answers.into_iter().sum())
    }

    fn combine(&self, into: u64, more: u64) -> u64 {
        into + more
    }
}

impl Workload for Primes {
    fn roots(&self) -> Roots<Self> {
        Roots::One(0..self.n + 1)
    }

    fn number(&self, answer: &u64) -> Number {
        Number::Whole(*answer)
    }

    fn known(&self) -> Option<Number> {
        let power = (1..).zip(UP_TO_POWERS_OF_TEN).find(|(power, _)| 10_u64.pow(*power) == self.n);
        Some(Number::Whole(power.map_or_else(|| legendre(self.n), |(_, primes)| primes)))
    }

    fn sequential(&self) -> Option<Number> {
        Some(Number::Whole(self.count(0..self.n + 1, &mut |_, _| ())))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::simulate;
    use super::*;

    #[test]
    fn the_plain_program_finds_the_known_numbers() {
        for power in 1..=6 {
            let primes = Primes::new(10_u64.pow(power), 1 << 16);
            assert_eq!(primes.sequential(), primes.known(), "10^{power}");
        }
    }

    #[test]
    fn the_formula_agrees_with_the_table_and_with_the_sieve() {
        for (power, primes) in (1..=if cfg!(debug_assertions) { 7 } else { 10 }).zip(UP_TO_POWERS_OF_TEN) {
            assert_eq!(legendre(10_u64.pow(power)), primes, "10^{power}");
        }
        for n in (0..200).chain([961, 962, 9_408, 9_409, 123_456, 999_983, 999_984]) {
            assert_eq!(Some(Number::Whole(legendre(n))), Primes::new(n, 100).sequential(), "{n}");
        }
    }

    #[test]
    fn any_range_is_counted_as_by_trial() {
        let is_prime = |number: &u64| *number > 1 && (2..*number).take_while(|d| d * d <= *number).all(|d| !number.is_multiple_of(d));
        let primes = Primes::new(2_000, 10);
        for range in [0..0, 0..2, 0..3, 2..3, 3..4, 4..5, 9..10, 8..10, 24..26, 0..2_001, 961..962, 1_849..1_999, 1_000..1_001] {
            assert_eq!(primes.count(range.clone(), &mut |_, _| ()), range.clone().filter(is_prime).count() as u64, "{range:?}");
        }
        for n in 0..30 {
            let expected = (0..=n).filter(is_prime).count() as u64;
            assert_eq!(Primes::new(n, 4).sequential(), Some(Number::Whole(expected)), "{n}");
        }
    }

    #[test]
    fn segments_of_a_block_and_of_several_agree() {
        for segment in [100_000, 300_000] {
            let (outcome, prepared) = simulate(&format!("primes:n=1000000,segment={segment}"), "steal", 4, 1).unwrap();
            assert_eq!((outcome.answer, prepared.known()), (Some(Number::Whole(78_498)), Some(Number::Whole(78_498))));
        }
    }
}
