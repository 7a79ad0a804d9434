//! The model of a link, fitted to measured times of messages.
//!
//! A message of b bytes takes L + G b, and R more from some size on, where it waits for its receiver's consent. G comes from the slopes between
//! sizes of one protocol, L from the short messages. Medians throughout: one time that is far off changes nothing.

use equipoise::transport::sim::{MeasuredLink, Rendezvous};

/// A size in bytes, header included, and the time of a message of this size in ticks.
pub type Point = (u64, f64);

const PICOSECONDS: f64 = 1_000.0;
/// A rendezvous is accepted if it multiplies the error of the model by at most this factor,
const BETTER: f64 = 0.6;
/// adds this part of the start-up at least,
const LEAST_JUMP: f64 = 0.3;
/// and the model without it is off by more than this: a smaller misfit has many reasons.
const NOTICEABLE: f64 = 0.02;
/// Messages below this size say what the start-up is.
const SHORT: u64 = 2_048;

/// Start-up and cost per byte of the points, and the relative error of the model. Points are in ascending order of their sizes. The gap and
/// whether ports are shared are found otherwise. `None` without points.
pub fn link(points: &[Point]) -> Option<MeasuredLink> {
    let plain = with_threshold(points, None)?;
    // At least two sizes on each side of the threshold.
    let thresholds = 2..points.len().saturating_sub(1);
    let best = thresholds
        .filter_map(|index| with_threshold(points, Some(index)))
        .filter(|link| link.rendezvous.is_some_and(|rendezvous| rendezvous.latency as f64 >= LEAST_JUMP * link.latency.max(1) as f64))
        .min_by(|a, b| a.error.total_cmp(&b.error));
    match best {
        Some(best) if plain.error > NOTICEABLE && best.error < BETTER * plain.error => Some(best),
        _ => Some(plain),
    }
}

fn with_threshold(points: &[Point], threshold: Option<usize>) -> Option<MeasuredLink> {
    let (low, high) = points.split_at(threshold.unwrap_or(points.len()));
    let per_byte = (slope(low, high) * PICOSECONDS).round().max(0.0);
    let start_up = |(bytes, ticks): &Point| ticks - *bytes as f64 * per_byte / PICOSECONDS;
    let short: Vec<f64> = low.iter().filter(|(bytes, _)| *bytes < SHORT).map(start_up).collect();
    let short = if short.is_empty() { low.iter().map(start_up).take(1).collect() } else { short };
    // Times are rounded up to whole ticks, what is left of that is less than one.
    let latency = (median(&short)? + 1e-6).floor().max(0.0);
    let rendezvous = threshold.and_then(|_| {
        let jump = median(&high.iter().map(start_up).collect::<Vec<_>>())? - latency;
        Some(Rendezvous { bytes: high.first()?.0, latency: (jump + 1e-6).floor().max(0.0) as u64 })
    });
    let mut link = MeasuredLink { latency: latency as u64, per_byte: per_byte as u64, rendezvous, ..MeasuredLink::default() };
    let off = |(bytes, ticks): &Point| (link.passage(*bytes) as f64 - ticks).abs() / ticks.max(1.0);
    link.error = points.iter().map(off).sum::<f64>() / points.len() as f64;
    Some(link)
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
