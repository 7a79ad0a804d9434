//! Integration by Romberg's method (Romberg, "Vereinfachte numerische Integration", 1955), adaptively: intervals on which the function is
//! smooth end soon, others are halved again and again.
//!
//! A task is an interval with its share of the tolerance. It integrates by trapezoids of 1, 2, 4, .. strips, extrapolated; where the last two
//! extrapolations agree within the tolerance, or as far as rounding lets them, it answers. Otherwise it spawns both halves, or, more than `cutoff`
//! halvings deep, goes on with them by itself. Halves are added in their order, so that the answer does not depend on the schedule, not in its last
//! bit.
//!
//! Strips that are wider than the function's waves see the same phase of each, and agree on a wrong value (aliasing); so do strips to both sides
//! of a narrow peak. So two extrapolations count only when their strips are narrower than the length on which the function changes, which calculus
//! gives for each function and interval ([`Function::scale`]). The known answer is calculus, too.

use serde::{Deserialize, Serialize};

use super::{Entry, Facts, Make, Number, Prepared, Workload};
use equipoise::error::Result;
use equipoise::node::{Ticks, Worker};
use equipoise::schedule::{self, Computation, Roots, Style, Yield};
use equipoise::spec::{InvalidSpec, Options};

pub(super) static ENTRY: Entry = Entry {
    name: "romberg",
    title: "adaptive integration by Romberg's method",
    source: "Romberg 1955",
    options: "f=wave (cos(1/x)/x^2 over from..1)|peak (w/(w^2+(x-0.3)^2) with w=from over 0..1)|root (sqrt(x) over 0..1), \
              from=0.0001 (0.00001 to 0.5), tolerance=1e-4 (1e-12 to 1), cutoff=14 (0 to 40; halvings that are tasks)",
    examples: &["romberg:f=wave,from=0.01,cutoff=9", "romberg:f=peak,tolerance=1e-7,cutoff=40"],
    build,
    facts: Facts { answer: "integral", has_own_network: false },
};

fn build(options: &mut Options<'_>) -> Result<Make, InvalidSpec> {
    let function = options.choice("f", &[("wave", 'w'), ("peak", 'p'), ("root", 'r')])?;
    let from = options.real("from", 1e-5..=0.5)?.unwrap_or(1e-4);
    let function = match function {
        Some('p') => Function::Peak { width: from },
        Some('r') => Function::Root,
        _ => Function::Wave { from },
    };
    let tolerance = options.real("tolerance", 1e-12..=1.0)?.unwrap_or(1e-4);
    let cutoff = options.within("cutoff", 0..=MOST_HALVINGS)?.unwrap_or(14);
    let romberg = Romberg { function, tolerance, cutoff };
    Ok(Make::new(options, move |_| Ok(Prepared::new(romberg))))
}

/// Deeper, an interval's ends hardly differ.
const MOST_HALVINGS: u32 = 40;
/// Rows of Romberg's table: up to 2^6 strips.
const ROWS: usize = 7;
/// Relative difference up to which sums of this length count as equal, since rounding allows no better agreement.
const ROUNDING: f64 = 16.0 * f64::EPSILON;

/// Integrand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Function {
    /// cos(1/x) / x^2 from here to 1: waves that get shorter and higher towards 0.
    Wave { from: f64 },
    /// w / (w^2 + (x - 0.3)^2) from 0 to 1: a peak of this width.
    Peak { width: f64 },
    /// The square root from 0 to 1, which has no derivative at 0.
    Root,
}

/// Position of the peak.
const PEAK: f64 = 0.3;

impl Function {
    fn at(self, x: f64) -> f64 {
        match self {
            Function::Wave { .. } => x.recip().cos() / (x * x),
            Function::Peak { width } => width / (width * width + (x - PEAK) * (x - PEAK)),
            Function::Root => x.sqrt(),
        }
    }

    fn begin(self) -> f64 {
        match self {
            Function::Wave { from } => from,
            Function::Peak { .. } | Function::Root => 0.0,
        }
    }

    /// Nanoseconds that an interval takes, for the simulator: processor time measured on an Intel Xeon.
    fn ticks(self, interval: Interval) -> Ticks {
        match self {
            _ if interval.finest_strip() > self.scale(interval) => 10,
            Function::Wave { .. } => 1_800,
            Function::Peak { .. } | Function::Root => 330,
        }
    }

    /// The length on which the function changes in this interval, where it changes fastest; strips that are wider may miss what it does.
    fn scale(self, interval: Interval) -> f64 {
        let Interval { from, to, .. } = interval;
        match self {
            // The phase 1/x turns by 1/x^2 a length: this is a radian, of 6.3 in a wave.
            Function::Wave { .. } => from * from,
            // Distance of the poles 0.3 + wi and 0.3 - wi.
            Function::Peak { width } => width.hypot((from - PEAK).max(PEAK - to).max(0.0)),
            // It has no waves and no peak.
            Function::Root => f64::INFINITY,
        }
    }

    /// Error bound of a value in this interval, due to the rounding of its argument: the argument times the derivative, times half a unit
    /// in the last place. Where that is more than the tolerance, no halving helps.
    fn noise(self, interval: Interval) -> f64 {
        let Interval { from, to, .. } = interval;
        let steepness = match self {
            Function::Wave { .. } => (1.0 + 2.0 * from) / (from * from * from),
            Function::Peak { width } => {
                let away = (from - PEAK).max(PEAK - to).max(0.0);
                to / (width * width + away * away)
            }
            Function::Root => 1.0,
        };
        steepness * f64::EPSILON / 2.0
    }

    /// Error bound of the integral for the same reason: the noise, integrated.
    fn doubt(self) -> f64 {
        let steepness = match self {
            Function::Wave { from } => (0.5 / from + 2.0) / from,
            Function::Peak { width } => std::f64::consts::PI / width,
            Function::Root => 1.0,
        };
        steepness * f64::EPSILON / 2.0
    }

    /// The integral by calculus.
    pub fn integral(self) -> f64 {
        match self {
            Function::Wave { from } => from.recip().sin() - 1.0_f64.sin(),
            Function::Peak { width } => ((1.0 - PEAK) / width).atan() + (PEAK / width).atan(),
            Function::Root => 2.0 / 3.0,
        }
    }
}

/// The computation: one integral.
#[derive(Clone, Copy, Debug)]
pub struct Romberg {
    pub function: Function,
    /// Tolerance of the whole integral.
    pub tolerance: f64,
    /// Intervals after fewer halvings spawn theirs.
    pub cutoff: u32,
}

/// Part of the whole.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Interval {
    from: f64,
    to: f64,
    /// Number of halvings of the whole interval.
    halvings: u32,
}

impl Interval {
    fn halves(self) -> [Interval; 2] {
        let (middle, halvings) = (self.from.midpoint(self.to), self.halvings + 1);
        [Interval { to: middle, halvings, ..self }, Interval { from: middle, halvings, ..self }]
    }

    /// The narrowest strips that it is cut into.
    fn finest_strip(self) -> f64 {
        (self.to - self.from) / f64::from(1_u32 << (ROWS - 1))
    }
}

impl Romberg {
    fn whole(&self) -> Interval {
        Interval { from: self.function.begin(), to: 1.0, halvings: 0 }
    }

    /// Romberg's table: the integral, if two rows agree on it.
    fn extrapolate(&self, interval: Interval) -> Option<f64> {
        let Interval { from, to, halvings } = interval;
        let length = to - from;
        let scale = self.function.scale(interval);
        if interval.finest_strip() > scale && halvings < MOST_HALVINGS {
            return None;
        }
        let tolerance = (self.tolerance * 0.5_f64.powi(halvings as i32)).max(self.function.noise(interval) * length);
        let mut row = [0.0; ROWS];
        row[0] = (self.function.at(from) + self.function.at(to)) * length / 2.0;
        for depth in 1..ROWS {
            let strips = 1_u32 << depth;
            let strip = length / f64::from(strips);
            let between: f64 = (1..strips).step_by(2).map(|index| self.function.at(from + strip * f64::from(index))).sum();
            let (mut above, before) = (row[0], row[depth - 1]);
            row[0] = above / 2.0 + between * strip;
            let mut factor = 1.0;
            for column in 1..=depth {
                factor *= 4.0;
                let next = row[column - 1] + (row[column - 1] - above) / (factor - 1.0);
                above = std::mem::replace(&mut row[column], next);
            }
            // A few points can agree by chance.
            let differ = (row[depth] - before).abs();
            if depth >= 4 && strip <= scale && differ <= tolerance.max(ROUNDING * row[depth].abs()) {
                return Some(row[depth]);
            }
        }
        (halvings >= MOST_HALVINGS).then_some(row[ROWS - 1])
    }

    /// The plain program. Every interval is shown to `look`.
    fn integrate(&self, interval: Interval, look: &mut impl FnMut(Interval)) -> f64 {
        look(interval);
        self.extrapolate(interval).unwrap_or_else(|| {
            let [left, right] = interval.halves();
            self.integrate(left, look) + self.integrate(right, look)
        })
    }
}

impl Computation for Romberg {
    type Task = Interval;
    type Answer = f64;
    type Waiting = ();

    fn execute(&self, interval: Interval, worker: &mut dyn Worker) -> Yield<Self> {
        if interval.halvings < self.cutoff {
            worker.charge(self.function.ticks(interval));
            return match self.extrapolate(interval) {
                Some(value) => Yield::Answer(value),
                None => Yield::Children { tasks: interval.halves().to_vec(), waiting: () },
            };
        }
        let mut ticks = 0;
        let value = self.integrate(interval, &mut |part| {
            ticks += self.function.ticks(part);
            worker.checkpoint();
        });
        worker.charge(ticks);
        Yield::Answer(value)
    }

    fn join(&self, (): (), answers: Vec<f64>) -> Yield<Self> {
        Yield::Answer(answers.into_iter().reduce(|left, right| left + right).unwrap_or(0.0))
    }

    fn combine(&self, into: f64, more: f64) -> f64 {
        into + more
    }
}

impl Workload for Romberg {
    fn roots(&self) -> Roots<Self> {
        Roots::One(self.whole())
    }

    fn number(&self, answer: &f64) -> Number {
        Number::Real(*answer)
    }

    fn known(&self) -> Option<Number> {
        Some(Number::Real(self.function.integral()))
    }

    fn tolerance(&self) -> f64 {
        self.tolerance + self.function.doubt()
    }

    fn sequential(&self) -> Option<Number> {
        Some(Number::Real(self.integrate(self.whole(), &mut |_| ())))
    }

    fn adjust(&self, options: &mut schedule::Options) {
        // Most tasks take a microsecond.
        options.style.get_or_insert(Style::Inline);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integrals_are_those_of_calculus() {
        for function in [Function::Wave { from: 0.01 }, Function::Wave { from: 0.001 }, Function::Peak { width: 1e-4 }, Function::Root] {
            for tolerance in [1e-7, 1e-9] {
                let romberg = Romberg { function, tolerance, cutoff: 10 };
                let (mut intervals, mut deepest) = (0, 0);
                let value = romberg.integrate(romberg.whole(), &mut |_| intervals += 1);
                assert!((value - function.integral()).abs() <= tolerance, "{function:?}: {value} within {tolerance}");
                let mut next = vec![romberg.whole()];
                while let Some(interval) = next.pop() {
                    deepest = deepest.max(interval.halvings);
                    if romberg.extrapolate(interval).is_none() {
                        next.extend(interval.halves());
                    }
                }
                // Much is smooth, and something is not: halving everywhere would be far more.
                assert!(intervals > 10 && deepest > 4 && u64::from(deepest) < 41 && f64::from(intervals) < f64::from(deepest).exp2() / 2.0);
            }
        }
    }

    /// The answer, and how far it is from calculus, in parts of what it may be.
    fn answered(function: Function, tolerance: f64) -> (f64, f64) {
        let romberg = Romberg { function, tolerance, cutoff: 14 };
        let value = romberg.integrate(romberg.whole(), &mut |_| ());
        (value, (value - function.integral()).abs() / Workload::tolerance(&romberg))
    }

    /// Strips as wide as a multiple of the waves once agreed on a wrong answer.
    #[test]
    fn no_wave_is_taken_for_another() {
        for from in [0.000_01, 0.000_010_01, 0.000_010_5, 0.000_011, 0.000_013, 0.000_014, 0.000_017] {
            for tolerance in [1e-4, 1.0] {
                let (value, off) = answered(Function::Wave { from }, tolerance);
                assert!(off <= 1.0, "from {from} within {tolerance}: {value}");
            }
        }
    }

    #[test]
    fn waves_and_peaks_of_any_width_are_seen() {
        use rand::rngs::ChaCha8Rng;
        use rand::{RngExt, SeedableRng};
        let mut rng = ChaCha8Rng::seed_from_u64(13);
        for _ in 0..if cfg!(debug_assertions) { 60 } else { 1000 } {
            let from = 10f64.powf(rng.random_range(-5.0..-0.302));
            let tolerance = 10f64.powf(rng.random_range(-8.0..0.0));
            for function in [Function::Wave { from }, Function::Peak { width: from }] {
                let (value, off) = answered(function, tolerance);
                // Not only within what was asked for: a wave that is missed is worth 1, and a peak 3.
                assert!(off <= 1.0 && (value - function.integral()).abs() < 0.05, "{function:?} within {tolerance}: {value}");
            }
        }
    }

    #[test]
    fn tolerances_below_rounding_end_nevertheless() {
        for function in [Function::Wave { from: 1e-4 }, Function::Peak { width: 1e-5 }, Function::Root] {
            let romberg = Romberg { function, tolerance: 1e-12, cutoff: 10 };
            let mut intervals = 0;
            let value = romberg.integrate(romberg.whole(), &mut |_| intervals += 1);
            assert!((value - function.integral()).abs() < 1e-5 && intervals < 100_000, "{function:?}: {value} in {intervals} intervals");
        }
    }

    #[test]
    fn what_is_smooth_needs_one_interval() {
        // On an interval away from 0 the root is as good as one.
        let romberg = Romberg { function: Function::Root, tolerance: 1e-9, cutoff: 0 };
        let smooth = Interval { from: 0.5, to: 1.0, halvings: 1 };
        let exact = 2.0 / 3.0 * (1.0 - 0.5_f64.powf(1.5));
        assert!(romberg.extrapolate(smooth).is_some_and(|value| (value - exact).abs() < 1e-12));
    }
}
