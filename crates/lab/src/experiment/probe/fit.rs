//! The model of a link, fitted to measured times of messages.
//!
//! A message of b bytes takes L + G b, and R more from some size on, where it waits for its receiver's consent. G comes from the slopes between
//! sizes of one protocol, L from the short messages. Medians throughout: one time that is far off changes nothing.
//!
//! A model that has every time to the tick is the right one, however little its rendezvous adds: measured times are never that regular, simulated ones
//! are. Otherwise a rendezvous has to explain much more than a straight line does.

use equipoise::transport::sim::{MeasuredLink, Rendezvous};

/// A size in bytes, header included, and the time of a message of this size in ticks.
pub type Point = (u64, f64);

const PICOSECONDS: f64 = 1_000.0;
/// A rendezvous is accepted if it multiplies the error of the model by at most this factor,
const BETTER: f64 = 0.6;
/// adds this part of the start-up at least,
const LEAST_JUMP: f64 = 0.3;
/// and the model without it is off by more than this on average: a smaller misfit has many reasons;
const NOTICEABLE: f64 = 0.02;
/// or by more than this at one size, and the rendezvous improves that likewise: among many sizes a jump shows at few.
const NOTICEABLE_AT_ONE: f64 = 0.1;
/// Messages below this size say what the start-up is.
const SHORT: u64 = 2_048;
/// With fewer sizes there is a model with a rendezvous for any times.
const LEAST_POINTS: usize = 5;

/// A model, and its largest relative deviation.
struct Fit {
    link: MeasuredLink,
    worst: f64,
}

impl Fit {
    /// Returns true if the model has every time to the tick.
    fn is_exact(&self) -> bool {
        self.worst == 0.0
    }
}

/// Start-up and cost per byte of the points, and the relative error of the model. Points are in ascending order of their sizes. The gap and
/// whether ports are shared are found otherwise. `None` without points.
pub fn link(points: &[Point]) -> Option<MeasuredLink> {
    let plain = with_threshold(points, None)?;
    if plain.is_exact() || points.len() < LEAST_POINTS {
        return Some(plain.link);
    }
    let fits: Vec<(usize, Fit)> = (1..points.len()).filter_map(|index| Some((index, with_threshold(points, Some(index))?))).collect();
    if let Some((_, exact)) = fits.iter().find(|(_, fit)| fit.is_exact()) {
        return Some(exact.link);
    }
    let jumps = |link: &MeasuredLink| {
        link.rendezvous.is_some_and(|rendezvous| rendezvous.latency as f64 >= LEAST_JUMP * link.latency.max(1) as f64)
    };
    let best = fits
        .into_iter()
        // At least two sizes on each side of the threshold.
        .filter(|(index, fit)| (2..points.len() - 1).contains(index) && jumps(&fit.link))
        .map(|(_, fit)| fit)
        .min_by(|a, b| a.link.error.total_cmp(&b.link.error));
    let explains = |best: &Fit| {
        let at_one = plain.worst > NOTICEABLE_AT_ONE && best.worst < BETTER * plain.worst;
        best.link.error < BETTER * plain.link.error && (plain.link.error > NOTICEABLE || at_one)
    };
    Some(best.filter(explains).unwrap_or(plain).link)
}

fn with_threshold(points: &[Point], threshold: Option<usize>) -> Option<Fit> {
    let (low, high) = points.split_at(threshold.unwrap_or(points.len()));
    let per_byte = (slope(low, high) * PICOSECONDS).round().max(0.0) as u64;
    let mut link = MeasuredLink { per_byte, ..MeasuredLink::default() };
    let start_up = |(bytes, ticks): &Point| ticks - link.transmission(*bytes) as f64;
    let short: Vec<f64> = low.iter().filter(|(bytes, _)| *bytes < SHORT).map(start_up).collect();
    let short = if short.is_empty() { low.iter().map(start_up).take(1).collect() } else { short };
    let latency = median(&short)?.round().max(0.0);
    let rendezvous = threshold.and_then(|_| {
        let jump = median(&high.iter().map(start_up).collect::<Vec<_>>())? - latency;
        Some(Rendezvous { bytes: high.first()?.0, latency: jump.round().max(0.0) as u64 })
    });
    link = MeasuredLink { latency: latency as u64, rendezvous, ..link };
    let off: Vec<f64> = points.iter().map(|(bytes, ticks)| (link.passage(*bytes) as f64 - ticks).abs() / ticks.max(1.0)).collect();
    link.error = off.iter().sum::<f64>() / points.len() as f64;
    Some(Fit { link, worst: off.into_iter().fold(0.0, f64::max) })
}

/// Ticks per byte: the median of the slopes between two sizes of one protocol, weighted with the bytes between them.
fn slope(low: &[Point], high: &[Point]) -> f64 {
    let mut slopes = Vec::new();
    for part in [low, high] {
        for (at, (bytes, ticks)) in part.iter().enumerate() {
            for (more, longer) in &part[at + 1..] {
                let between = (more - bytes) as f64;
                slopes.push(((longer - ticks) / between, between));
            }
        }
    }
    slopes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = slopes.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    slopes
        .iter()
        .find(|(_, weight)| {
            sum += weight;
            sum >= half
        })
        .map_or(0.0, |(slope, _)| *slope)
}

/// The median, the mean of the two in the middle of an even number; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[n / 2]),
        n => Some((sorted[n / 2 - 1] + sorted[n / 2]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    const SIZES: [u64; 11] = [40, 41, 48, 104, 552, 4_136, 16_424, 65_576, 262_184, 524_328, 1_048_616];

    fn points(link: &MeasuredLink) -> Vec<Point> {
        SIZES.map(|bytes| (bytes, link.passage(bytes) as f64)).to_vec()
    }

    #[test]
    fn an_exact_model_is_found_exactly() {
        for (latency, per_byte) in [(20_000, 2_700), (0, 1), (1, 0), (600, 437), (1_000_000, 100_003), (0, 0)] {
            let given = MeasuredLink { latency, per_byte, ..MeasuredLink::default() };
            let found = link(&points(&given)).unwrap();
            // Nothing takes less than a tick.
            let shown = if (latency, per_byte) == (0, 0) { 1 } else { latency };
            assert_eq!((found.latency, found.per_byte, found.rendezvous), (shown, per_byte, None), "{given:?}");
            assert!(found.error < 0.01, "{found:?}");
        }
    }

    #[test]
    fn a_rendezvous_is_found_where_it_begins() {
        for bytes in &SIZES[4..9] {
            let rendezvous = Some(Rendezvous { bytes: *bytes, latency: 30_000 });
            let given = MeasuredLink { latency: 20_000, per_byte: 500, rendezvous, ..MeasuredLink::default() };
            let found = link(&points(&given)).unwrap();
            assert_eq!((found.latency, found.per_byte, found.rendezvous), (20_000, 500, rendezvous));
        }
    }

    /// A jump of 40 us in 177 us is seen at one size of eleven, and is off by 2 % on average; and whatever is exact counts, at either end too.
    #[test]
    fn a_rendezvous_that_few_sizes_show_is_found() {
        for (bytes, latency) in [(65_576, 40_000), (65_576, 1), (SIZES[1], 7), (SIZES[9], 300), (SIZES[10], 5_000)] {
            let rendezvous = Some(Rendezvous { bytes, latency });
            let given = MeasuredLink { latency: 21_000, per_byte: 2_700, rendezvous, ..MeasuredLink::default() };
            assert_eq!(link(&points(&given)), Some(given));
        }
    }

    #[test]
    fn noise_makes_no_rendezvous_and_hides_none_that_is_large() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for case in 0..200 {
            let mut drawn = |rendezvous, most: f64| {
                let given = MeasuredLink { latency: 21_000, per_byte: 2_700, rendezvous, ..MeasuredLink::default() };
                let mut noisy = points(&given);
                noisy.iter_mut().for_each(|(_, ticks)| *ticks *= 1.0 + rng.random_range(-most..most));
                link(&noisy).unwrap().rendezvous
            };
            assert_eq!(drawn(None, 0.02), None, "case {case}");
            let given = Rendezvous { bytes: 65_576, latency: 40_000 };
            let found = drawn(Some(given), 0.01).unwrap_or_else(|| panic!("case {case}: nothing was found"));
            assert!(found.bytes == given.bytes && (30_000..50_000).contains(&found.latency), "case {case}: {found:?}");
        }
    }

    #[test]
    fn noise_and_outliers_change_little() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        for _ in 0..50 {
            let given = MeasuredLink { latency: 20_000, per_byte: 2_700, ..MeasuredLink::default() };
            let mut noisy = points(&given);
            noisy.iter_mut().for_each(|(_, ticks)| *ticks *= 1.0 + rng.random_range(-0.05..0.05));
            noisy[3].1 *= 3.0;
            let found = link(&noisy).unwrap();
            let near = |found: u64, given: u64| (found as f64 / given as f64 - 1.0).abs() < 0.08;
            assert!(near(found.latency, 20_000) && near(found.per_byte, 2_700), "{found:?}");
            assert!(found.error > 0.01, "{found:?}");
        }
    }

    #[test]
    fn little_is_enough_and_nothing_is_nothing() {
        assert_eq!(link(&[]), None);
        assert_eq!(link(&[(40, 1_000.0)]).map(|link| (link.latency, link.per_byte)), Some((1_000, 0)));
        assert_eq!(link(&[(40, 1_040.0), (1_040, 2_040.0)]).map(|link| (link.latency, link.per_byte)), Some((1_000, 1_000)));
        assert_eq!((median(&[]), median(&[3.0, 1.0]), median(&[5.0, 1.0, 2.0])), (None, Some(2.0), Some(2.0)));
    }
}
