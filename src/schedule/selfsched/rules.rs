//! How many tasks a rank gets at a time: the rules of self-scheduling as plain functions.
//!
//! With R tasks left of N, on p ranks; every chunk is at least one task and at most what is left. Published sources disagree on rounding;
//! without another wish quotients are rounded up, but for the first chunk of `tss`, which is rounded down.
//!
//! | rule | chunk | source |
//! |---|---|---|
//! | `static` | N/p, the first N mod p ranks one more, before the beginning | |
//! | `cyclic` | tasks k, k+p, k+2p, .. for rank k, before the beginning | |
//! | `ss` | 1 | |
//! | `fixed` | c | Kruskal and Weiss 1985 |
//! | `single` | N/p | |
//! | `gss` | R/p | Polychronopoulos and Kuck 1987 |
//! | `fac2` | p chunks of R/2p, R at the round's start | Hummel, Schonberg and Flynn 1992 |
//! | `tss` | N/2p, then smaller by a constant, down to 1 | Tzen and Ni 1993 |
//! | `wf` | `fac2` times the rank's weight | Hummel, Schmidt, Uma and Wein 1996 |
//! | `awf` | R/2p times the weight that was measured | Cariño and Banicescu 2008 (AWF-C) |
//! | `af` | from each rank's measured mean and variance | Banicescu and Liu 2000 |

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Static,
    Cyclic,
    Single,
    /// One task at a time.
    Ss,
    /// This number.
    Fixed(u64),
    Gss,
    Fac2,
    Tss,
    Wf,
    Awf,
    Af,
}

/// How quotients are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    Up,
    Down,
}

impl Rounding {
    fn quotient(self, number: u64, by: u64) -> u64 {
        match self {
            Rounding::Up => number.div_ceil(by),
            Rounding::Down => number / by,
        }
    }

    fn whole(self, number: f64) -> u64 {
        match self {
            Rounding::Up => number.ceil() as u64,
            Rounding::Down => number as u64,
        }
    }
}

/// What was measured of a rank's tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Measured {
    pub tasks: u64,
    /// Sum of their times, and of the squares.
    pub time: f64,
    pub squares: f64,
}

impl Measured {
    /// Adds what was measured of more tasks.
    pub fn add(&mut self, more: Measured) {
        self.tasks += more.tasks;
        self.time += more.time;
        self.squares += more.squares;
    }

    /// Mean time of a task; `None` if nothing can be said.
    pub fn mean(&self) -> Option<f64> {
        (self.tasks > 0 && self.time > 0.0).then(|| self.time / self.tasks as f64)
    }

    /// Variance of the tasks' times; 0 of fewer than two.
    fn variance(&self) -> f64 {
        let Some(mean) = self.mean().filter(|_| self.tasks > 1) else { return 0.0 };
        ((self.squares - mean * self.time) / (self.tasks - 1) as f64).max(0.0)
    }
}

/// A rule at work.
#[derive(Clone, Debug)]
pub struct Chunks {
    rule: Rule,
    tasks: u64,
    ranks: u64,
    rounding: Option<Rounding>,
    /// No chunk is smaller, but the last.
    least: u64,
    /// By rank; their mean is 1.
    weights: Vec<f64>,
    measured: Vec<Measured>,
    /// Of the round (`fac2`, `wf`): chunks still to be given, and tasks that were left at its start.
    round: (u64, u64),
    /// Of `tss`: the next chunk, and by how much each is smaller than the one before.
    trapezoid: (u64, u64),
}

impl Chunks {
    /// A rule for this number of tasks on ranks of these weights (only their proportions matter).
    pub fn new(rule: Rule, tasks: u64, weights: &[f64], rounding: Option<Rounding>, least: u64) -> Chunks {
        let ranks = weights.len().max(1) as u64;
        let sum: f64 = weights.iter().sum();
        let scale = if sum > 0.0 { ranks as f64 / sum } else { 1.0 };
        let mut chunks = Chunks {
            rule,
            tasks: 0,
            ranks,
            rounding,
            least: least.max(1),
            weights: weights.iter().map(|weight| weight * scale).collect(),
            measured: vec![Measured::default(); ranks as usize],
            round: (0, 0),
            trapezoid: (1, 0),
        };
        chunks.restart(tasks);
        chunks
    }

    /// Begins anew with this number of tasks. What was measured is still known.
    pub fn restart(&mut self, tasks: u64) {
        let first = self.rounding.unwrap_or(Rounding::Down).quotient(tasks, 2 * self.ranks).max(1);
        let steps = (2 * tasks).div_ceil(first + 1).saturating_sub(1).max(1);
        (self.tasks, self.round, self.trapezoid) = (tasks, (0, 0), (first, (first - 1) / steps));
    }

    /// Tells what was measured on a rank since the last time.
    pub fn learn(&mut self, rank: usize, measured: Measured) {
        if let Some(known) = self.measured.get_mut(rank) {
            known.add(measured);
        }
    }

    /// How many of the tasks that are left a rank gets now; 0 only if there are none.
    pub fn next(&mut self, rank: usize, left: u64) -> u64 {
        let up = self.rounding.unwrap_or(Rounding::Up);
        let p = self.ranks;
        let chunk = match self.rule {
            Rule::Ss => 1,
            Rule::Fixed(chunk) => chunk,
            Rule::Single => up.quotient(self.tasks, p),
            Rule::Static | Rule::Cyclic => share(self.tasks, p, rank as u64),
            Rule::Gss => up.quotient(left, p),
            Rule::Fac2 => up.quotient(self.of_round(left), 2 * p),
            Rule::Wf => up.whole(self.weights.get(rank).copied().unwrap_or(1.0) * self.of_round(left) as f64 / (2 * p) as f64),
            Rule::Tss => {
                let (chunk, step) = self.trapezoid;
                self.trapezoid.0 = chunk.saturating_sub(step).max(1);
                chunk
            }
            Rule::Awf => match self.relative_rate(rank) {
                Some(rate) => up.whole(rate * left as f64 / (2 * p) as f64),
                None => self.probe(),
            },
            Rule::Af => self.adaptive(rank, left).map_or_else(|| self.probe(), |chunk| up.whole(chunk)),
        };
        chunk.max(self.least).min(left)
    }

    /// Tasks that were left at the start of the round.
    fn of_round(&mut self, left: u64) -> u64 {
        if self.round.0 == 0 {
            self.round = (self.ranks, left);
        }
        self.round.0 -= 1;
        self.round.1
    }

    /// The first chunk of a rank of which nothing is known: a small part of what factoring would give it, so that a slow rank isn't buried.
    fn probe(&self) -> u64 {
        self.tasks.div_ceil(16 * self.ranks)
    }

    /// How fast a rank is, as a part of the mean of those that were measured.
    fn relative_rate(&self, rank: usize) -> Option<f64> {
        let rate = |measured: &Measured| measured.mean().map(|mean| 1.0 / mean);
        let mine = rate(self.measured.get(rank)?)?;
        let all: Vec<f64> = self.measured.iter().filter_map(rate).collect();
        Some(mine * all.len() as f64 / all.iter().sum::<f64>())
    }

    /// Adaptive factoring: with D the sum of variance/mean and T one over the sum of 1/mean, over all ranks that were measured,
    /// (D + 2 T R - sqrt(D (D + 4 T R))) / (2 mean).
    fn adaptive(&self, rank: usize, left: u64) -> Option<f64> {
        let mine = self.measured.get(rank)?.mean()?;
        let known = || self.measured.iter().filter_map(|measured| Some((measured.mean()?, measured.variance())));
        let spread: f64 = known().map(|(mean, variance)| variance / mean).sum();
        let rates: f64 = known().map(|(mean, _)| 1.0 / mean).sum();
        // Ranks of which nothing is known yet count as mean ones.
        let share = left as f64 * known().count() as f64 / self.ranks as f64;
        let total = share / rates;
        Some((spread + 2.0 * total - (spread * (spread + 4.0 * total)).sqrt()) / (2.0 * mine))
    }
}

/// A rank's share of the tasks, the first ones one more if it does not come out even.
pub fn share(tasks: u64, ranks: u64, rank: u64) -> u64 {
    tasks / ranks + u64::from(rank < tasks % ranks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The chunks in the order of requests, which come in turn.
    fn sequence(rule: Rule, tasks: u64, ranks: usize, rounding: Option<Rounding>, least: u64) -> Vec<u64> {
        let mut chunks = Chunks::new(rule, tasks, &vec![1.0; ranks], rounding, least);
        let (mut left, mut sizes) = (tasks, Vec::new());
        while left > 0 {
            let chunk = chunks.next(sizes.len() % ranks, left);
            assert!(chunk > 0 && chunk <= left);
            left -= chunk;
            sizes.push(chunk);
        }
        sizes
    }

    fn plain(rule: Rule, tasks: u64, ranks: usize) -> Vec<u64> {
        sequence(rule, tasks, ranks, None, 1)
    }

    fn times(sizes: &[u64], each: usize) -> Vec<u64> {
        sizes.iter().flat_map(|size| vec![*size; each]).collect()
    }

    #[test]
    fn a_thousand_tasks_on_four_ranks() {
        assert_eq!(plain(Rule::Gss, 1000, 4), [250, 188, 141, 106, 79, 59, 45, 33, 25, 19, 14, 11, 8, 6, 4, 3, 3, 2, 1, 1, 1, 1]);
        assert_eq!(plain(Rule::Fac2, 1000, 4), times(&[125, 63, 31, 16, 8, 4, 2, 1], 4));
        assert_eq!(plain(Rule::Wf, 1000, 4), times(&[125, 63, 31, 16, 8, 4, 2, 1], 4));
        assert_eq!(plain(Rule::Tss, 1000, 4), [125, 117, 109, 101, 93, 85, 77, 69, 61, 53, 45, 37, 28]);
    }

    /// What others published (Apache SystemDS, ParForTaskPartitionerTest; Sun Fortran 805-4940), and their formulas.
    #[test]
    fn published_sequences() {
        assert_eq!(plain(Rule::Static, 101, 4), [26, 25, 25, 25]);
        assert_eq!(plain(Rule::Single, 101, 4), [26, 26, 26, 23]);
        let mut fixed = vec![4; 25];
        fixed.push(1);
        assert_eq!(plain(Rule::Fixed(4), 101, 4), fixed);
        assert_eq!(plain(Rule::Fac2, 101, 4), [times(&[13, 7, 3, 2], 4), vec![1]].concat());
        assert_eq!(sequence(Rule::Fac2, 101, 4, None, 4), [times(&[13, 7], 4), vec![4, 4, 4, 4, 4, 1]].concat());
        let down = Some(Rounding::Down);
        assert_eq!(sequence(Rule::Gss, 1000, 4, down, 10)[..3], [250, 187, 140]);
        assert_eq!(sequence(Rule::Fac2, 1000, 4, down, 4)[..12], times(&[125, 62, 31], 4));
        let up = Some(Rounding::Up);
        assert_eq!(sequence(Rule::Tss, 100, 4, up, 1), [13, 13, 13, 13, 13, 13, 13, 9]);
        assert_eq!(sequence(Rule::Tss, 100, 5, up, 1), [10; 10]);
        assert_eq!(plain(Rule::Fac2, 100, 5), [times(&[10, 5, 3], 5), vec![1; 10]].concat());
        assert_eq!(plain(Rule::Gss, 100, 5), [20, 16, 13, 11, 8, 7, 5, 4, 4, 3, 2, 2, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn measured_ranks_get_what_they_can_do() {
        for rule in [Rule::Awf, Rule::Af] {
            let mut chunks = Chunks::new(rule, 1600, &[1.0; 2], None, 1);
            assert_eq!((chunks.next(0, 1600), chunks.next(1, 1550)), (50, 50), "the first chunks are small");
            for (rank, time) in [(0, 3.0), (1, 1.0)] {
                chunks.learn(rank, Measured { tasks: 50, time: 50.0 * time, squares: 50.0 * time * time });
            }
            let (slow, fast) = (chunks.next(0, 1200), chunks.next(1, 1200));
            assert!(fast == 3 * slow, "{rule:?}: {slow} and {fast}");
        }
        let mut weighted = Chunks::new(Rule::Wf, 800, &[1.0, 3.0], None, 1);
        assert_eq!((weighted.next(0, 800), weighted.next(1, 700)), (100, 300));
    }

    #[test]
    fn adaptive_factoring_gives_less_the_more_times_differ() {
        let chunk = |squares: f64| {
            let mut chunks = Chunks::new(Rule::Af, 1000, &[1.0; 4], None, 1);
            (0..4).for_each(|rank| chunks.learn(rank, Measured { tasks: 10, time: 10.0, squares }));
            chunks.next(0, 800)
        };
        assert_eq!(chunk(10.0), 200, "tasks that are all alike are divided at once");
        assert!(chunk(20.0) < 200 && chunk(100.0) < chunk(20.0));
    }

    fn rules() -> impl Strategy<Value = Rule> {
        use Rule::*;
        prop_oneof![
            Just(Static),
            Just(Cyclic),
            Just(Single),
            Just(Ss),
            (1u64..50).prop_map(Fixed),
            Just(Gss),
            Just(Fac2),
            Just(Tss),
            Just(Wf),
            Just(Awf),
            Just(Af)
        ]
    }

    proptest! {
        #[test]
        fn chunks_add_up_and_decrease(
            rule in rules(),
            tasks in 0u64..3000,
            ranks in 1usize..70,
            rounding in prop_oneof![Just(None), Just(Some(Rounding::Up)), Just(Some(Rounding::Down))],
            least in 1u64..20,
        ) {
            let sizes = sequence(rule, tasks, ranks, rounding, least);
            prop_assert_eq!(sizes.iter().sum::<u64>(), tasks);
            prop_assert!(sizes.windows(2).all(|pair| pair[0] >= pair[1]), "{:?}", sizes);
            prop_assert!(sizes.iter().rev().skip(1).all(|size| *size >= least));
        }
    }
}
