//! An input divided over ranks: the answer, for people and programs, and the report on the division.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::columns::{RankShare, SpreadLink};
use super::figures::{bytes, seconds, several, three, whole};
use super::gantt;
use super::table::{self, lines, place};
use crate::experiment::SpreadRecord;
use crate::experiment::division::{Activity, GanttBar, GanttRow};
use crate::experiment::spread::{Answer, FailedBaseline, LayersRecord};

/// Maximum number of ranks, and of links, that are listed for people.
pub(super) const LISTED: usize = 32;

/// Writes the answer as the standard tools write theirs; what was collected has been written already.
///
/// # Errors
/// Those of `out`.
pub fn answer(out: &mut dyn Write, answer: &Answer, record: &SpreadRecord) -> io::Result<()> {
    // Records that end with a null byte may have newlines in them.
    let end: &[u8] = if record.records == "nul" { b"\0" } else { b"\n" };
    match answer {
        Answer::Counts(counts) => writeln!(out, "{} {} {}", counts.lines, counts.words, counts.bytes),
        Answer::Found(found) => writeln!(out, "{found}"),
        Answer::Checksum(hash) => writeln!(out, "{hash}"),
        Answer::Bytes(counts) => counts
            .iter()
            .zip(0..)
            .filter(|(count, _)| **count > 0)
            .try_for_each(|(count, byte): (_, u32)| writeln!(out, "{count:7} {byte}")),
        Answer::Records(counts) => counts.iter().try_for_each(|(record, count)| {
            write!(out, "{count:7} ")?;
            out.write_all(record)?;
            out.write_all(end)
        }),
        Answer::Written { .. } => Ok(()),
    }
}

/// A record with its answer, as one JSON object.
#[derive(Serialize)]
pub struct WithAnswer<'a> {
    answer: AnswerForm,
    /// Encoding of the answer's bytes as text: `utf-8`, or `base64` where they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer_encoding: Option<&'static str>,
    #[serde(flatten)]
    record: &'a SpreadRecord,
}

#[derive(Serialize)]
#[serde(untagged)]
enum AnswerForm {
    Counts { lines: u64, words: u64, bytes: u64 },
    Number(u64),
    Text(String),
    Histogram(BTreeMap<String, u64>),
}

impl<'a> WithAnswer<'a> {
    /// `written` is the collected output.
    pub fn new(answer: &Answer, written: &[u8], record: &'a SpreadRecord) -> WithAnswer<'a> {
        let (answer, answer_encoding) = match answer {
            Answer::Counts(counts) => (AnswerForm::Counts { lines: counts.lines, words: counts.words, bytes: counts.bytes }, None),
            Answer::Found(found) => (AnswerForm::Number(*found), None),
            Answer::Checksum(hash) => (AnswerForm::Text(hash.clone()), None),
            Answer::Written { .. } => match std::str::from_utf8(written) {
                Ok(text) => (AnswerForm::Text(text.into()), Some(UTF_8)),
                Err(_) => (AnswerForm::Text(base64(written)), Some(BASE64)),
            },
            Answer::Bytes(counts) => {
                let some = counts.iter().enumerate().filter(|(_, count)| **count > 0);
                (AnswerForm::Histogram(some.map(|(byte, count)| (byte.to_string(), *count)).collect()), None)
            }
            // All keys in the same way, so that none can be taken for another.
            Answer::Records(counts) => {
                let text = |(record, count): (&Vec<u8>, &u64)| Some((std::str::from_utf8(record).ok()?.to_string(), *count));
                match counts.iter().map(text).collect::<Option<BTreeMap<_, _>>>() {
                    Some(histogram) => (AnswerForm::Histogram(histogram), Some(UTF_8)),
                    None => {
                        let encoded = counts.iter().map(|(record, count)| (base64(record), *count));
                        (AnswerForm::Histogram(encoded.collect()), Some(BASE64))
                    }
                }
            }
        };
        WithAnswer { answer, answer_encoding, record }
    }
}

/// Bytes in base64, padded (RFC 4648, section 4).
fn base64(bytes: impl AsRef<[u8]>) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |three: &[u8]| {
        let bits = three.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte)) << (8 * (3 - three.len()));
        [18, 12, 6, 0]
            .into_iter()
            .zip(0..)
            .map(move |(shift, place)| match place <= three.len() {
                true => char::from(DIGITS[bits >> shift & 63]),
                false => '=',
            })
            .collect::<String>()
    };
    bytes.as_ref().chunks(3).map(group).collect()
}

const UTF_8: &str = "utf-8";
const BASE64: &str = "base64";

/// The report: makespan, speedup, costs and baselines, and a table of the ranks and of the links.
pub fn report(record: &SpreadRecord, answer: &Answer, width: u16) -> String {
    let SpreadRecord { input, kernel, topology, site, .. } = record;
    let form = if record.native { "native" } else { "overlay" };
    let input = if input == "-" { "standard input" } else { input };
    let unpacked = record.unpacked_from.map_or(String::new(), |form| format!(", unpacked by {form}"));
    let mut out = format!("{kernel} of {input} ({}{unpacked}), divided on {topology} ({form}), {}\n", bytes(record.bytes), place(site));
    let mut line = |name: &str, text: String| out.push_str(&format!("  {name:<11}{text}\n"));
    let off = match record.predicted > 0.0 {
        true => format!(" ({:+.1} %)", 100.0 * (record.makespan / record.predicted - 1.0)),
        false => String::new(),
    };
    line(
        "makespan",
        match record.predicts {
            true => format!("{}, predicted {}{off}", seconds(record.makespan), seconds(record.predicted)),
            false => seconds(record.makespan),
        },
    );
    line(
        "finish",
        format!("within {:.1} % of each other, in {}", 100.0 * record.spread, several(record.installments.into(), "installment")),
    );
    let whence = match (record.sequential_is_measured, record.predicts) {
        (true, _) => "measured",
        (false, true) => "by the calibration",
        (false, false) => "as fast as it was in the run",
    };
    line("speedup", format!("{} against rank {} alone, {} ({whence})", three(record.speedup), record.origin, seconds(record.sequential)));
    if let Some(layers) = &record.layers {
        let LayersRecord { speedup, model_speedup, utilisation, model_utilisation, .. } = layers;
        let (speedup, utilisation) = (format!("{} (model {})", three(*speedup), three(*model_speedup)), three(*utilisation));
        line("layers", format!("speedup {speedup}, utilisation {utilisation} (model {}), answers left out", three(*model_utilisation)));
    }
    line("costs", format!("{}, in {}", record.calibration, seconds(record.calibration_seconds)));
    if record.collecting > 0.0 {
        line("output", format!("collected in {} after that", seconds(record.collecting)));
    }
    if let Answer::Written { silent, shares, .. } = answer
        && *silent > 0
    {
        line("", format!("nothing was written on {} of {}", whole(*silent), several(*shares, "share")));
    }
    for FailedBaseline { name, why } in &record.baselines_failed {
        line(name, format!(" failed: {why}"));
    }
    for baseline in &record.baselines {
        line(&baseline.name, format!(" {} ({} of the division's)", seconds(baseline.makespan), three(baseline.ratio)));
    }
    if let Some(why) = &record.why {
        line("why", why.clone());
    }
    out.push('\n');
    out.push_str(&ranks(record, width));
    if !record.links.is_empty() {
        out.push('\n');
        out.push_str(&links(record, width));
    }
    out
}

fn ranks(record: &SpreadRecord, width: u16) -> String {
    let rows: Vec<_> = RankShare::of(record).take(LISTED).collect();
    let more = match record.shares.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!("and {} more (--output json has them all)\n", several(more as u64, "rank")),
    };
    lines(&table::of(&rows, width)) + &more
}

fn links(record: &SpreadRecord, width: u16) -> String {
    lines(&table::of(&record.links.iter().take(LISTED).map(SpreadLink).collect::<Vec<_>>(), width))
}

/// Predicted and measured times of each rank: receiving its share, and computing.
pub fn gantt(record: &SpreadRecord) -> String {
    let (title, rows) = pairs(record);
    gantt::chart(&title, &rows)
}

/// The chart's title and its rows, two for each of the first ranks.
pub(super) fn pairs(record: &SpreadRecord) -> (String, Vec<GanttRow>) {
    let mut rows = Vec::new();
    for (rank, pair) in record.charts.iter().enumerate().take(LISTED) {
        for (timeline, kind) in pair.iter().zip(["predicted", "measured"]).filter(|(_, kind)| record.predicts || *kind == "measured") {
            let bars = |activity, intervals: &[_]| bars(activity, intervals);
            let mut all = bars(Activity::Sending, &timeline.sending);
            all.extend(bars(Activity::Computing, &timeline.computing));
            rows.push(GanttRow { name: format!("{rank} {kind}"), layer: rank as u32, bars: all });
        }
    }
    let title = format!(
        "{} on {}: done after {} s{}{}",
        record.kernel,
        record.topology,
        three(record.makespan),
        if record.predicts { format!(", predicted {} s", three(record.predicted)) } else { String::new() },
        if record.charts.len() > LISTED { format!(" (the first {LISTED} ranks)") } else { String::new() }
    );
    (title, rows)
}

fn bars(activity: Activity, intervals: &[crate::experiment::spread::TimeInterval]) -> Vec<GanttBar> {
    intervals.iter().map(|interval| GanttBar { activity, begin: interval.begin, end: interval.end }).collect()
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        let encoded = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(base64);
        assert_eq!(encoded, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
        assert_eq!(base64([0xfb, 0xff, 0xfe, 0x00]), "+//+AA==");
    }
}
