//! The counters of a job, and how they are printed.

use serde_json::{Value, json};

use crate::task::{Outcome, State, TIMED_OUT};

/// Counts of a job. Tasks that earlier jobs finished are among `done`, `failed` and `skipped`.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Tasks of the list, if that is known.
    pub total: Option<u64>,
    /// Tasks that were read.
    pub read: u64,
    pub done: u64,
    pub failed: u64,
    pub skipped: u64,
    pub left: u64,
    /// Failures of this job.
    pub failed_now: u64,
    /// Tasks finished by earlier jobs.
    pub earlier: u64,
    pub edited: u64,
    /// Seconds that each rank's tasks ran.
    pub busy: Vec<f64>,
    pub work: f64,
    pub longest: f64,
    /// Whether the job was asked to end.
    pub drained: bool,
    /// Some tasks have estimates.
    pub has_costs: bool,
}

impl Counts {
    /// Counts a task that this job has finished.
    pub fn count(&mut self, state: State) {
        self.add(state);
        self.failed_now += u64::from(state == State::Failed);
    }

    /// Counts a task that an earlier job has finished.
    pub fn count_earlier(&mut self, state: State) {
        self.add(state);
        self.earlier += 1;
    }

    fn add(&mut self, state: State) {
        match state {
            State::Done => self.done += 1,
            State::Failed => self.failed += 1,
            State::Skipped => self.skipped += 1,
            State::Again | State::Left => {}
        }
    }

    /// 0 only if all succeeded; 4 if work is left; 1 if something failed.
    pub fn exit_status(&self, host_failed: bool) -> i32 {
        match (self.left > 0, self.failed + self.skipped > 0 || host_failed) {
            (true, _) => 4,
            (false, true) => 1,
            (false, false) => 0,
        }
    }

    /// No schedule ends before this, in seconds.
    pub fn bound(&self, capacity: f64) -> f64 {
        self.longest.max(self.work / capacity.max(1.0))
    }

    /// A line of progress.
    pub fn progress(&self, seconds: f64, running: u64) -> String {
        let ended = self.done + self.failed + self.skipped;
        let of = self.total.map_or_else(String::new, |total| format!(" of {total}"));
        let rate = (ended - self.earlier) as f64 / seconds.max(1e-9);
        let left = match self.total.map(|total| total.saturating_sub(ended)) {
            Some(left) if rate > 0.0 => format!(", {} left", clock(left as f64 / rate)),
            _ => String::new(),
        };
        format!("{} done, {} failed{of}, {running} running, {rate:.1}/s{left}", self.done, self.failed)
    }

    /// The last line for people.
    pub fn summary(&self, seconds: f64, capacity: f64) -> String {
        let Counts { read, done, failed, skipped, left, .. } = self;
        let mut text = format!("{read} tasks: {done} done, {failed} failed, {skipped} skipped, {left} left; {seconds:.1} s");
        if self.earlier > 0 {
            text += &format!("; {} were finished by earlier jobs", self.earlier);
        }
        if self.longest > 0.3 * seconds && self.longest * capacity > 1.5 * self.work && seconds > 1.0 {
            let part = 100.0 * self.longest / seconds;
            text += &format!("; the longest task is {part:.0} % of the run: more ranks won't help");
        }
        if *left > 0 {
            text += "; --resume goes on";
        }
        text
    }

    /// The last event.
    pub fn end_event(&self, seconds: f64, capacity: f64) -> Value {
        json!({
            "event": "end", "tasks": self.read, "done": self.done, "failed": self.failed, "skipped": self.skipped, "left": self.left,
            "seconds": seconds, "busy": self.busy, "bound": self.bound(capacity), "earlier": self.earlier, "edited": self.edited,
        })
    }
}

/// End of a task, in words.
pub fn how(outcome: &Outcome) -> String {
    match (outcome.exit, outcome.signal) {
        (TIMED_OUT, _) => "took longer than --timeout".into(),
        (_, signal) if signal != 0 => format!("was ended by signal {signal}"),
        (127, _) => "ended with status 127 (there is no such program)".into(),
        (exit, _) => format!("ended with status {exit}"),
    }
}

/// Seconds as a clock shows them.
pub fn clock(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{}:{:02}", whole / 60, whole % 60),
        _ => format!("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_says_whether_all_succeeded() {
        let counts = |failed, skipped, left| Counts { failed, skipped, left, ..Counts::default() }.exit_status(false);
        assert_eq!([counts(0, 0, 0), counts(1, 0, 0), counts(0, 1, 0), counts(1, 0, 1), counts(0, 0, 1)], [0, 1, 1, 4, 4]);
        assert_eq!(Counts::default().exit_status(true), 1);
    }

    #[test]
    fn progress_says_how_long_it_takes() {
        let counts = Counts { total: Some(100), done: 18, failed: 2, earlier: 10, ..Counts::default() };
        assert_eq!(counts.progress(5.0, 4), "18 done, 2 failed of 100, 4 running, 2.0/s, 40 s left");
        assert_eq!([clock(61.0), clock(7325.0)], ["1:01", "2:02:05"]);
    }

    #[test]
    fn the_summary_names_what_bounds_the_run() {
        let counts = Counts { read: 3, done: 2, left: 1, longest: 8.0, work: 10.0, ..Counts::default() };
        let said = counts.summary(10.0, 4.0);
        assert!(said.starts_with("3 tasks: 2 done, 0 failed, 0 skipped, 1 left; 10.0 s"), "{said}");
        assert!(
            said.contains("the longest task is 80 % of the run: more ranks won't help") && said.ends_with("--resume goes on"),
            "{said}"
        );
        assert_eq!(counts.bound(4.0), 8.0);
    }
}
