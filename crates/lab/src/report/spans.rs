//! When the ranks of a run were busy: a row for each rank, as high as it executes tasks with its workers. Made for a column as narrow as a
//! telephone, and for paper without colours.
//!
//! ```text
//!   0  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▂▂▂
//!   1      ▇▇▇▇▇▂▂▇▇▇       thinned out: a row is drawn in slots of time, each as high as its share of busy time, in quarters
//! ```

use super::chart::{Scale, plain};
use super::svg::{Anchor, Svg};
use crate::experiment::RunRecord;
use crate::experiment::run::Happening;

const WIDTH: f64 = 380.0;
const LEFT: f64 = 34.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 4.0;
/// Number of time slots across the picture.
const SLOTS: usize = 334;
/// Maximum number of rows; more ranks are sampled evenly.
const MOST_ROWS: usize = 64;
/// Number of heights of a slot.
const LEVELS: f64 = 4.0;

/// The time axis that the pictures of several schedulers share, so that they can be compared.
#[derive(Clone, Copy)]
pub struct TimeAxis {
    /// End of the axis, in the records' unit.
    pub end: f64,
    /// Unit of the axis, and how many of it are one of the records' unit.
    pub unit: (&'static str, f64),
}

/// The ranks that are drawn: all, or [`MOST_ROWS`] spread evenly.
fn rows(ranks: usize) -> Vec<usize> {
    let drawn = ranks.min(MOST_ROWS);
    (0..drawn).map(|row| row * ranks / drawn).collect()
}

/// A remark on ranks that are not drawn.
pub fn omits(ranks: usize) -> Option<String> {
    (ranks > MOST_ROWS).then(|| format!("{MOST_ROWS} of {ranks} ranks are drawn, spread evenly"))
}

/// A rank's busy time by slot, each from 0 to 1, where all its workers are busy all the time.
fn shares(record: &RunRecord, rank: usize, end: f64) -> Vec<f64> {
    let mut shares = vec![0.0; SLOTS];
    if record.timeline.is_empty() {
        // Without recorded times: the sum, from the beginning on.
        add(&mut shares, 0.0, record.busy[rank] / f64::from(record.workers) / end, 1.0);
        return shares;
    }
    let ticks = record.unit_seconds * 1e9 * end;
    for timeline in record.timeline.iter().filter(|timeline| timeline.rank.index() == rank) {
        for line in &timeline.entries {
            if let Happening::Executed { ticks: took } = line.what {
                let begin = line.at as f64 / ticks;
                add(&mut shares, begin, begin + took as f64 / ticks, 1.0 / f64::from(record.workers));
            }
        }
    }
    shares
}

/// Adds a span, from 0 to 1 of the picture, to the slots that it covers.
fn add(shares: &mut [f64], begin: f64, end: f64, height: f64) {
    let slots = shares.len() as f64;
    let (begin, end) = ((begin * slots).max(0.0), (end * slots).min(slots));
    let mut at = begin;
    while at < end {
        let slot = at as usize;
        let next = end.min((slot + 1) as f64);
        shares[slot] += (next - at) * height;
        // Rounding must not keep it here for ever.
        at = next.max(at + 1e-9);
        if slot + 1 == shares.len() && next >= end {
            break;
        }
    }
}

/// Draws when the ranks were busy.
pub fn timeline(record: &RunRecord, span: TimeAxis) -> String {
    let rows = rows(record.busy.len());
    let row = match rows.len() {
        ..=16 => 14.0,
        17..=32 => 10.0,
        _ => 6.0,
    };
    let plot = WIDTH - LEFT - RIGHT;
    let bottom = TOP + row * rows.len() as f64;
    let scale = Scale::up_to(span.end * span.unit.1);
    let end = scale.end / span.unit.1;
    let x = |at: f64| LEFT + (at / scale.end).clamp(0.0, 1.0) * plot;
    let title = format!("when the ranks were busy under {}", record.scheduler);
    let mut svg = Svg::new(WIDTH, bottom + 36.0, &title);
    for tick in scale.ticks() {
        svg.line((x(tick), TOP), (x(tick), bottom + 4.0), "gridline");
        svg.text((x(tick), bottom + 16.0), Anchor::Middle, "tick", &plain(tick));
    }
    svg.line((LEFT, bottom), (WIDTH - RIGHT, bottom), "axis");
    let caption = if record.timeline.is_empty() { "busy time in all" } else { "time since the beginning" };
    svg.text((LEFT + plot / 2.0, bottom + 31.0), Anchor::Middle, "caption", &format!("{caption}, {}", span.unit.0));
    // A number every 12 pixels can be read.
    let every = (12.0 / row).ceil() as usize;
    for (index, rank) in rows.iter().enumerate() {
        let foot = TOP + row * (index + 1) as f64;
        if index % every == 0 {
            svg.text((LEFT - 5.0, foot - row / 2.0 + 4.0), Anchor::End, "name", &rank.to_string());
        }
        let shares = shares(record, *rank, end);
        let full = record.busy[*rank] / f64::from(record.workers);
        let says = format!("rank {rank}: busy for {} {}", plain(full * span.unit.1), span.unit.0);
        svg.group(&says, |svg| svg.profile((LEFT, foot), plot / SLOTS as f64, &heights(&shares, row - 2.0), "busy"));
    }
    let ends = record.makespan * span.unit.1;
    if ends <= scale.end {
        svg.line((x(ends), TOP), (x(ends), bottom), "reference");
    }
    svg.finish()
}

/// Runs of slots with one height: how many, and how high.
fn heights(shares: &[f64], full: f64) -> Vec<(usize, f64)> {
    // The smallest busy share is visible.
    let level = |share: &f64| if *share < 1e-3 { 0.0 } else { (share.min(1.0) * LEVELS).round().max(1.0) };
    let levels: Vec<f64> = shares.iter().map(level).collect();
    levels.chunk_by(|a, b| a == b).map(|run| (run.len(), run[0] / LEVELS * full)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::run_page::tests::record;
    use super::*;

    #[test]
    fn spans_cover_their_slots() {
        let mut shares = vec![0.0; 4];
        add(&mut shares, 0.125, 0.5, 1.0);
        add(&mut shares, 0.5, 7.0, 0.5);
        add(&mut shares, 2.0, 3.0, 1.0);
        assert_eq!(shares, [0.5, 1.0, 0.5, 0.5]);
        assert_eq!(heights(&shares, 8.0), [(1, 4.0), (1, 8.0), (2, 4.0)]);
        assert_eq!(heights(&[0.01, 0.0], 8.0), [(1, 2.0), (1, 0.0)]);
    }

    #[test]
    fn rows_lie_where_their_tasks_were() {
        // Rank 0 is busy from 0 to 1 s, rank 1 from 0.5 s to 1 s.
        let drawn = timeline(&record("steal", 1.0), TimeAxis { end: 1.0, unit: ("ms", 1e3) });
        assert!(drawn.contains("rank 0: busy for 1000 ms") && drawn.contains("rank 1: busy for 500 ms"), "{drawn}");
        assert!(drawn.contains("M34,18v-12h334v12Z"), "{drawn}");
        assert!(drawn.contains("M201,32v-12h167v12Z"), "{drawn}");
    }

    #[test]
    fn many_ranks_are_thinned_out() {
        assert_eq!(rows(3), [0, 1, 2]);
        let drawn = rows(1000);
        assert!(drawn.len() == 64 && drawn[0] == 0 && drawn.windows(2).all(|pair| pair[1] - pair[0] >= 15));
        assert_eq!(omits(1000).as_deref(), Some("64 of 1000 ranks are drawn, spread evenly"));
        assert_eq!(omits(64), None);
    }
}
