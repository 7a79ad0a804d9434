//! The rules of self-scheduling, as plain functions: the number of tasks that a rank gets at a time.
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
//! | `fsc` | (sqrt(2) N (h/s) / (p sqrt(ln p)))^(2/3), where a task's time has the deviation s and an assignment costs h | Kruskal and Weiss 1985 |
//! | `mfsc` | (N/p) / log2(N/p), rounded: about the same number of chunks as `fac2` | Banicescu, Ciorba and Srivastava 2013 |
//! | `single` | N/p | |
//! | `gss` | R/p | Polychronopoulos and Kuck 1987 |
//! | `fac2` | p chunks of R/2p, R at the round's start | Hummel, Schonberg and Flynn 1992 |
//! | `tss` | N/2p, then smaller by a constant, down to 1 | Tzen and Ni 1993 |
//! | `tfss` | p chunks of the mean of the next p of `tss` | Chronopoulos, Andonie, Benche and Grosu 2001 |
//! | `fiss` | p chunks of N/((s+2) p), then larger by the same in each of s stages, 2 N (1 - s/(s+2)) / (p s (s-1)) | Philip and Das 1997 |
//! | `tap` | T + v^2/2 - v sqrt(2 T + v^2/4), where T = R/p and v is 1.3 times deviation over mean of a task's time | Lucco 1992 |
//! | `wf` | `fac2` times the rank's weight | Hummel, Schmidt, Uma and Wein 1996 |
//! | `awf` | R/2p times the weight that was measured | Cariño and Banicescu 2008 (AWF-C) |
//! | `awf-b` | `fac2` times the weight at the round's start, by measured times of which later ones count more | Cariño and Banicescu 2008 |
//! | `awf-c` | R/2p times that weight | Cariño and Banicescu 2008 |
//! | `awf-d`, `awf-e` | as `awf-b` and `awf-c`, by the time from one chunk's end to the next's, with what assignments cost | Cariño and Banicescu 2008 |
//! | `af` | from each rank's measured mean and variance | Banicescu and Liu 2000 |
//!
//! The weighted mean time of a rank's tasks, for `awf-b` to `awf-e`, is (sum of k t_k) / (sum of k n_k) over its reports k = 1, 2, .. of n_k tasks
//! in t_k.

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// `static`: N/p tasks for each rank before the beginning.
    Static,
    /// `cyclic`: every p-th task, before the beginning.
    Cyclic,
    /// `single`: N/p tasks.
    Single,
    /// One task at a time.
    Ss,
    /// This number.
    Fixed(u64),
    /// `gss`: guided self-scheduling.
    Gss,
    /// `fac2`: factoring.
    Fac2,
    /// `tss`: trapezoid self-scheduling.
    Tss,
    /// `wf`: weighted factoring.
    Wf,
    /// `awf`: adaptive weighted factoring, as AWF-C.
    Awf,
    /// `af`: adaptive factoring.
    Af,
    /// `overhead`: cost of an assignment, relative to the deviation of a task's time.
    Fsc {
        /// The cost, no unit.
        overhead: f64,
    },
    /// `mfsc`: modified fixed-size chunks.
    Mfsc,
    /// `tfss`: trapezoid factoring self-scheduling.
    Tfss,
    /// `stages`: their number, at least 2.
    Fiss {
        /// Number of stages.
        stages: u64,
    },
    /// `variation`: deviation over mean of a task's time; as it was measured, if it is not given.
    Tap {
        /// Deviation over mean, no unit.
        variation: Option<f64>,
    },
    /// `awf-b`: adaptive weighted factoring by rounds.
    AwfB,
    /// `awf-c`: the same by chunks.
    AwfC,
    /// `awf-d`: as `awf-b`, with the cost of assignments.
    AwfD,
    /// `awf-e`: as `awf-c`, with the cost of assignments.
    AwfE,
}

impl Rule {
    /// Returns true if it learns from the time between the ends of chunks, and not from the tasks' own times.
    pub fn counts_overhead(self) -> bool {
        matches!(self, Rule::AwfD | Rule::AwfE)
    }
}

/// Rounding of quotients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the next whole number above.
    Up,
    /// To the next whole number below.
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

/// Measurements of a rank's tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Measured {
    /// Number of tasks.
    pub tasks: u64,
    /// Sum of their times.
    pub time: f64,
    /// Sum of the squares of their times.
    pub squares: f64,
}

impl Measured {
    /// Adds measurements of more tasks.
    pub fn add(&mut self, more: Measured) {
        self.tasks += more.tasks;
        self.time += more.time;
        self.squares += more.squares;
    }

    /// Mean time of a task; `None` without measurements.
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
    /// Weight of each rank; their mean is 1.
    weights: Vec<f64>,
    measured: Vec<Measured>,
    /// Current round (`fac2`, `wf`): chunks still to be given, and tasks that were left at its start.
    round: (u64, u64),
    /// State of `tss`: the next chunk, and the decrease from one chunk to the next.
    trapezoid: (u64, u64),
    /// Number of chunks that were given (`tfss`, `fiss`).
    given: u64,
    /// Reports of each rank (`awf-b` to `awf-e`): their number, and the sums of their tasks and times, each multiplied by the number of its report.
    reports: Vec<(u64, f64, f64)>,
    /// Relative rate of each rank at the round's start (`awf-b`, `awf-d`).
    rates: Vec<f64>,
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
            given: 0,
            reports: vec![(0, 0.0, 0.0); ranks as usize],
            rates: Vec::new(),
        };
        chunks.restart(tasks);
        chunks
    }

    /// Begins anew with this number of tasks. Measurements are kept.
    pub fn restart(&mut self, tasks: u64) {
        let first = self.rounding.unwrap_or(Rounding::Down).quotient(tasks, 2 * self.ranks).max(1);
        let steps = (2 * u128::from(tasks)).div_ceil(u128::from(first) + 1).saturating_sub(1).clamp(1, u128::from(u64::MAX)) as u64;
        (self.tasks, self.round, self.trapezoid, self.given) = (tasks, (0, 0), (first, (first - 1) / steps), 0);
    }

    /// Adds the measurements of a rank since the last time.
    pub fn learn(&mut self, rank: usize, measured: Measured) {
        if let Some(known) = self.measured.get_mut(rank) {
            known.add(measured);
        }
        if let Some((reports, tasks, time)) = self.reports.get_mut(rank).filter(|_| measured.tasks > 0) {
            *reports += 1;
            *tasks += *reports as f64 * measured.tasks as f64;
            *time += *reports as f64 * measured.time;
        }
    }

    /// Number of the remaining tasks that a rank gets now; 0 only if there are none.
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
            Rule::Wf => {
                let of_round = self.of_round(left);
                self.part(rank, of_round)
            }
            Rule::Tss => {
                let (chunk, step) = self.trapezoid;
                self.trapezoid.0 = chunk.saturating_sub(step).max(1);
                chunk
            }
            Rule::Awf => match self.relative_rate(rank) {
                Some(rate) => up.whole(rate * left as f64 / (2 * p) as f64),
                None => self.probe(),
            },
            Rule::Fsc { overhead } => self.rounding.unwrap_or(Rounding::Up).whole(self.fixed_size(overhead)),
            Rule::Mfsc => self.like_factoring(),
            Rule::Tfss => self.of_trapezoid(),
            Rule::Fiss { stages } => self.of_stage(stages),
            Rule::Tap { variation } => up.whole(tapered(left as f64 / p as f64, 1.3 * variation.unwrap_or_else(|| self.variation()))),
            Rule::AwfB | Rule::AwfD => self.weighted_by_round(rank, left).map_or_else(|| self.probe(), |chunk| up.whole(chunk)),
            Rule::AwfC | Rule::AwfE => match self.relative(rank, |rank| self.weighted_rate(rank)) {
                Some(rate) => up.whole(rate * left as f64 / (2 * p) as f64),
                None => self.probe(),
            },
            Rule::Af => self.adaptive(rank, left).map_or_else(|| self.probe(), |chunk| up.whole(chunk)),
        };
        chunk.max(self.least).min(left)
    }

    /// A rank's part of a round (`wf`), by the weights that were given.
    fn part(&self, rank: usize, of_round: u64) -> u64 {
        let weight = self.weights.get(rank).copied().unwrap_or(1.0);
        self.rounding.unwrap_or(Rounding::Up).whole(weight * of_round as f64 / (2 * self.ranks) as f64)
    }

    /// Finds the round (`wf`, `awf-b`, `awf-d`) in which this number of tasks is left, where each rank follows the rule by itself and sees the chunks of
    /// the others in this number only. A round has one chunk for each rank, whoever takes them, so all ranks find the same rounds. The weights that
    /// were given decide, and `left` does not increase from one call to the next.
    pub fn find_round(&mut self, left: u64) {
        let mut start = if self.round.1 > 0 { self.round.1 } else { self.tasks };
        let chunk = |rank, start| if self.weights[rank] > 0.0 { self.part(rank, start).max(self.least) } else { 0 };
        loop {
            let all = (0..self.weights.len()).map(|rank| chunk(rank, start)).fold(0, u64::saturating_add);
            let next = start.saturating_sub(all);
            // Without any weight there is one round.
            if left > next || all == 0 {
                break;
            }
            start = next;
        }
        self.round = (self.ranks, start);
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

    /// Relative speed of a rank: its rate divided by the mean of the measured ranks.
    fn relative_rate(&self, rank: usize) -> Option<f64> {
        self.relative(rank, |rank| Some(1.0 / self.measured.get(rank)?.mean()?))
    }

    fn relative(&self, rank: usize, rate: impl Fn(usize) -> Option<f64>) -> Option<f64> {
        let mine = rate(rank)?;
        let all: Vec<f64> = (0..self.measured.len()).filter_map(&rate).collect();
        Some(mine * all.len() as f64 / all.iter().sum::<f64>())
    }

    /// Tasks by time, later reports counting more.
    fn weighted_rate(&self, rank: usize) -> Option<f64> {
        let (_, tasks, time) = self.reports.get(rank)?;
        (*tasks > 0.0 && *time > 0.0).then(|| tasks / time)
    }

    /// A rank's part of a round, by the rates at the round's start.
    fn weighted_by_round(&mut self, rank: usize, left: u64) -> Option<f64> {
        self.weighted_rate(rank)?;
        if self.round.0 == 0 {
            let rate = |rank| self.relative(rank, |rank| self.weighted_rate(rank)).unwrap_or(1.0);
            self.rates = (0..self.measured.len()).map(rate).collect();
        }
        let of_round = self.of_round(left) as f64;
        Some(self.rates.get(rank).copied().unwrap_or(1.0) * of_round / (2 * self.ranks) as f64)
    }

    /// The best fixed size of chunks by Kruskal and Weiss; all tasks in one chunk on one rank, where no rank waits for another.
    fn fixed_size(&self, overhead: f64) -> f64 {
        let p = self.ranks as f64;
        let size = (2f64.sqrt() * self.tasks as f64 * overhead / (p * p.ln().sqrt())).powf(2.0 / 3.0);
        if self.ranks > 1 { size } else { self.tasks as f64 }
    }

    /// The fixed size that gives about the same number of chunks as factoring.
    fn like_factoring(&self) -> u64 {
        let share = self.tasks.div_ceil(self.ranks) as f64;
        // Cariño's form of rounding, as programs print it.
        if share > 2.0 { (0.55 + share / share.log2()) as u64 } else { 1 }
    }

    fn of_trapezoid(&mut self) -> u64 {
        let (first, step) = self.trapezoid;
        let p = self.ranks;
        let chunk = |number: u64| first.saturating_sub(step.saturating_mul(number)).max(1);
        let before = self.given / p * p;
        self.given += 1;
        let sum: u64 = (before..before + p).map(chunk).sum();
        self.rounding.unwrap_or(Rounding::Down).quotient(sum, p)
    }

    fn of_stage(&mut self, stages: u64) -> u64 {
        let (p, s) = (self.ranks as f64, stages as f64);
        let first = self.tasks as f64 / ((s + 2.0) * p);
        let more = 2.0 * self.tasks as f64 * (1.0 - s / (s + 2.0)) / (p * s * (s - 1.0));
        let stage = (self.given / self.ranks) as f64;
        self.given += 1;
        match self.rounding {
            // Each of both, as programs do.
            Some(rounding) => rounding.whole(first) + rounding.whole(more) * stage as u64,
            None => (first + more * stage).round() as u64,
        }
    }

    /// Deviation over mean of a task's time on all ranks together, as far as it was measured; 0 if nothing was.
    fn variation(&self) -> f64 {
        let mut all = Measured::default();
        self.measured.iter().for_each(|measured| all.add(*measured));
        all.mean().map_or(0.0, |mean| all.variance().sqrt() / mean)
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

/// Tapering: a part of the even share, the smaller the more times vary.
fn tapered(share: f64, variation: f64) -> f64 {
    share + variation * variation / 2.0 - variation * (2.0 * share + variation * variation / 4.0).sqrt()
}

/// A rank's share of the tasks, the first ones one more if it does not come out even.
pub fn share(tasks: u64, ranks: u64, rank: u64) -> u64 {
    tasks / ranks + u64::from(rank < tasks % ranks)
}

#[cfg(test)]
mod tests;
