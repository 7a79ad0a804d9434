//! `--report DIR`: a table of all tasks, and a page about the run: the tasks of each rank over time, the length of the tail, the failures.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::lead::counts::{Counts, clock, how};
use crate::task::{LAST_BYTES, Outcome, State};
use equipoise::topology::RankId;

/// Bars that are drawn; of more tasks the longest.
const BARS: usize = 5000;
/// Failures of each kind whose last lines are shown, and how many lines of each.
const SHOWN: usize = 5;
const LINES: usize = 10;
/// Width of the picture in pixels, and height of a rank.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 16.0;

/// One task on the picture.
#[derive(Clone, Debug, PartialEq)]
struct Bar {
    seq: u64,
    rank: RankId,
    start: f64,
    runtime: f64,
    state: State,
}

/// The part that a rank had in a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Number of tasks that it ran at a time.
    pub workers: u32,
    /// Seconds for which the job had it: to the end, or until its host was given back.
    pub seconds: f64,
}

/// One failure on the page.
struct Failure {
    seq: u64,
    command: String,
    /// Its last lines.
    said: String,
}

/// Data that is collected while a farm runs.
pub struct Report {
    folder: PathBuf,
    table: BufWriter<File>,
    bars: Vec<Bar>,
    /// All tasks' ends and run times, for the tail: rounded to milliseconds they take eight bytes a task.
    ends: Vec<(f32, f32)>,
    began: f64,
    /// Number of failures of each kind, and the first ones.
    failures: BTreeMap<String, (u64, Vec<Failure>)>,
}

impl Report {
    /// Makes the folder and the table.
    ///
    /// # Errors
    /// If they cannot be made.
    pub fn create(folder: &Path, began: f64) -> io::Result<Report> {
        fs::create_dir_all(folder)?;
        let mut table = BufWriter::new(File::create(folder.join("table.csv"))?);
        writeln!(table, "seq,rank,state,exit,signal,attempt,start,runtime,cpu,memory_kib,out_bytes,err_bytes")?;
        Ok(Report { folder: folder.to_path_buf(), table, bars: Vec::new(), ends: Vec::new(), began, failures: BTreeMap::new() })
    }

    /// A task has ended.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn add(&mut self, rank: RankId, outcome: &Outcome, text: &[u8]) -> io::Result<()> {
        let Outcome { seq, state, exit, signal, attempt, start, runtime, cpu, memory, out, err, last } = outcome;
        writeln!(
            self.table,
            "{seq},{rank},{},{exit},{signal},{attempt},{start:.3},{runtime:.3},{cpu:.3},{memory},{},{}",
            state.name(),
            out.bytes,
            err.bytes
        )?;
        let bar = Bar { seq: *seq, rank, start: start - self.began, runtime: *runtime, state: *state };
        self.ends.push(((bar.start + bar.runtime) as f32, bar.runtime as f32));
        self.bars.push(bar);
        if self.bars.len() >= 2 * BARS {
            self.bars.sort_by(|a, b| b.runtime.total_cmp(&a.runtime));
            self.bars.truncate(BARS);
        }
        if *state == State::Failed {
            let (number, lines) = self.failures.entry(how(outcome)).or_default();
            *number += 1;
            if lines.len() < SHOWN {
                lines.push(Failure { seq: *seq, command: String::from_utf8_lossy(text).into_owned(), said: last_lines(last) });
            }
        }
        Ok(())
    }

    /// Writes the page.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn end(&mut self, counts: &Counts, seconds: f64, shares: &[Share]) -> io::Result<()> {
        self.table.flush()?;
        self.bars.sort_by(|a, b| b.runtime.total_cmp(&a.runtime));
        self.bars.truncate(BARS);
        let (ranks, workers) = (shares.len() as u32, shares.iter().map(|share| u64::from(share.workers)).sum::<u64>());
        let capacity = workers as f64;
        let mut page = String::from("<!DOCTYPE html><html><head><meta charset=\"utf-8\"><title>farm</title>\n");
        page += "<style>body{font-family:sans-serif;margin:2em}table{border-collapse:collapse}td,th{padding:2px 8px;text-align:left}";
        page += ".done{fill:#4a90d9}.failed{fill:#d0453e}.skipped{fill:#999}</style></head><body>\n<h1>A farm of commands</h1>\n";
        page += &format!("<p>{}</p>\n<ul>\n", escaped(&counts.summary(seconds, capacity)));
        page += &format!(
            "<li>{ranks} ranks with {workers} workers in all: {:.1} % of their time was used</li>\n",
            used(counts.work, time_from(0.0, shares))
        );
        if let Some(tail) = self.tail(shares) {
            page += &format!("<li>tail: {tail:.0} % of the workers' time lies after the 95th percentile of the tasks' ends</li>\n");
        }
        page += &format!("<li>granularity: {}</li>\n</ul>\n<h2>Ranks over time</h2>\n", granularity(counts, seconds, capacity));
        page += &self.gantt(seconds, ranks);
        page += "<h2>Failures</h2>\n";
        if self.failures.is_empty() {
            page += "<p>none</p>\n";
        }
        for (kind, (number, lines)) in &self.failures {
            page += &format!("<h3>{number} tasks: {}</h3>\n<table>\n", escaped(kind));
            for Failure { seq, command, said } in lines {
                page += &format!("<tr><td>{seq}</td><td><code>{}</code><pre>{}</pre></td></tr>\n", escaped(command), escaped(said));
            }
            page += "</table>\n";
        }
        page += "</body></html>\n";
        fs::write(self.folder.join("report.html"), page)
    }

    /// Per cent of the workers' time after 95 % of the tasks have ended; `None` without tasks. Hosts that were given back by then have none.
    fn tail(&mut self, shares: &[Share]) -> Option<f64> {
        self.ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let at = (self.ends.len() * 95).div_ceil(100).checked_sub(1)?;
        let since = f64::from(self.ends.get(at)?.0);
        Some(used(time_from(since, shares), time_from(0.0, shares)))
    }

    fn gantt(&self, seconds: f64, ranks: u32) -> String {
        let scale = WIDTH / seconds.max(1e-9);
        let height = f64::from(ranks) * HEIGHT + 20.0;
        let mut svg = format!("<svg width=\"{}\" height=\"{height}\" font-size=\"10\">\n", WIDTH + 60.0);
        for rank in 0..ranks {
            svg += &format!("<text x=\"0\" y=\"{}\">rank {rank}</text>\n", f64::from(rank) * HEIGHT + 12.0);
        }
        for Bar { seq, rank, start, runtime, state } in &self.bars {
            let (x, y, width) = (60.0 + start * scale, f64::from(rank.get()) * HEIGHT + 2.0, (runtime * scale).max(0.5));
            svg += &format!(
                "<rect class=\"{}\" x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"12\" fill-opacity=\"0.7\"><title>task {seq}: {runtime:.3} s</title></rect>\n",
                state.name()
            );
        }
        svg += &format!(
            "<text x=\"60\" y=\"{}\">0</text><text x=\"{}\" y=\"{0}\" text-anchor=\"end\">{}</text>\n",
            height - 4.0,
            WIDTH + 60.0,
            if seconds < 10.0 { format!("{seconds:.1} s") } else { clock(seconds) }
        );
        svg + "</svg>\n"
    }
}

/// The last lines of the end of an output, whose first line may not be whole.
fn last_lines(end: &[u8]) -> String {
    let text = String::from_utf8_lossy(end);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let is_cut = end.len() as u64 >= LAST_BYTES && lines.len() <= LINES;
    let shown = lines[lines.len().saturating_sub(LINES)..].join("\n");
    if is_cut { format!("..{}", shown.trim_start_matches(char::REPLACEMENT_CHARACTER)) } else { shown }
}

/// Seconds of all workers from a time on.
fn time_from(since: f64, shares: &[Share]) -> f64 {
    shares.iter().map(|share| f64::from(share.workers) * (share.seconds - since).max(0.0)).sum()
}

fn used(part: f64, of: f64) -> f64 {
    if of > 0.0 { 100.0 * part / of } else { 0.0 }
}

/// Conclusion from the longest task on the use of more ranks.
fn granularity(counts: &Counts, seconds: f64, capacity: f64) -> String {
    let part = used(counts.longest, seconds);
    match counts.longest * capacity > counts.work {
        true => format!("the longest task is {part:.0} % of the run: more ranks won't help"),
        false => {
            let most = if counts.longest > 0.0 { counts.work / counts.longest } else { f64::INFINITY };
            format!("the longest task is {part:.0} % of the run; beyond {most:.0} workers more won't help")
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_shown_and_a_cut_is_seen() {
        let numbers = |first: u32, last: u32| (first..=last).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
        assert_eq!(
            [last_lines(b""), last_lines(b" a\n\n"), last_lines(numbers(1, 30).as_bytes())],
            [String::new(), " a".into(), numbers(21, 30)]
        );
        let long = "\u{e4}".repeat(LAST_BYTES as usize);
        let end = &long.as_bytes()[1..=LAST_BYTES as usize];
        assert_eq!(last_lines(end), format!("..{}\u{fffd}", "\u{e4}".repeat(LAST_BYTES as usize / 2 - 1)));
    }

    #[test]
    fn the_page_has_bars_tail_and_failures() {
        let folder = tempfile::tempdir().unwrap();
        let mut report = Report::create(folder.path(), 100.0).unwrap();
        for seq in 1..=20 {
            let runtime = if seq == 20 { 10.0 } else { 1.0 };
            report
                .add(RankId::new(seq as u32 % 2), &Outcome { start: 100.0, runtime, ..Outcome::without_run(seq, State::Done) }, b"x")
                .unwrap();
        }
        let last = b"first\n<last>\n".to_vec();
        report.add(RankId::FIRST, &Outcome { exit: 3, last, start: 100.0, ..Outcome::without_run(21, State::Failed) }, b"y").unwrap();
        let counts = Counts { read: 21, done: 20, failed: 1, work: 29.0, longest: 10.0, ..Counts::default() };
        let share = |workers, seconds| Share { workers, seconds };
        report.end(&counts, 10.0, &[share(1, 10.0); 2]).unwrap();
        let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
        for part in [
            "tail: 90 %",
            "beyond 3 workers more won't help",
            "1 tasks: ended with status 3",
            "<code>y</code><pre>first\n&lt;last&gt;</pre>",
            "<title>task 20: 10.000 s</title>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert_eq!(fs::read_to_string(folder.path().join("table.csv")).unwrap().lines().count(), 22);
        // A host was given back after 2 s, and rank 0 was spared.
        report.end(&counts, 10.0, &[share(0, 10.0), share(4, 10.0), share(2, 2.0)]).unwrap();
        let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
        for part in ["tail: 86 %", "3 ranks with 6 workers in all: 65.9 % of their time was used"] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
