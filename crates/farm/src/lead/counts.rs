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
    /// There are records, by which another job can go on.
    pub is_recorded: bool,
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

    fn ended(&self) -> u64 {
        self.done + self.failed + self.skipped
    }

    /// Tasks that this job ends in a second.
    fn rate(&self, seconds: f64) -> f64 {
        (self.ended() - self.earlier) as f64 / seconds.max(1e-9)
    }

    /// Seconds until all tasks have ended, by their estimates if there are some, else at the rate until now; `None` if nothing is known of it.
    pub fn time_left(&self, seconds: f64, running: u64, estimated: Option<f64>) -> Option<f64> {
        let left = self.total?.saturating_sub(self.ended());
        let time = match estimated {
            Some(time) => time,
            // What still runs may be longer than all that has ended.
            None if left <= running => return None,
            None => left as f64 / self.rate(seconds),
        };
        Some(time).filter(|time| time.is_finite() && *time > 0.0)
    }

    /// A line of progress.
    pub fn progress(&self, seconds: f64, running: u64, left: Option<f64>) -> String {
        let of = self.total.map_or_else(String::new, |total| format!(" of {total}"));
        let left = left.map_or_else(String::new, |left| format!(", {} left", clock(left)));
        format!("{} done, {} failed{of}, {running} running, {:.1}/s{left}", self.done, self.failed, self.rate(seconds))
    }

    /// The last line for people.
    pub fn summary(&self, seconds: f64, capacity: f64) -> String {
        let Counts { read, done, failed, skipped, left, .. } = self;
        let mut text = format!("{read} tasks: {done} done, {failed} failed, {skipped} skipped, {left} left; {seconds:.1} s");
        if self.earlier > 0 {
            text += &format!("; {} were finished by earlier jobs", self.earlier);
        }
        if self.edited > 0 {
            text += &format!("; {} were edited since their records", self.edited);
        }
        if self.longest > 0.3 * seconds && self.longest * capacity > 1.5 * self.work && seconds > 1.0 {
            let part = 100.0 * self.longest / seconds;
            text += &format!("; the longest task is {part:.0} % of the run: more ranks won't help");
        }
        if *left > 0 && self.is_recorded {
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

/// Estimated work of tasks that have not ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Remaining {
    /// Seconds of a task without an estimate.
    usual: f64,
    /// Seconds of all of them.
    work: f64,
    longest: f64,
}

impl Remaining {
    pub fn new(usual: f64) -> Remaining {
        Remaining { usual, ..Remaining::default() }
    }

    /// Adds a task that has run for some time.
    pub fn add(&mut self, cost: Option<f64>, elapsed: f64) {
        let left = (cost.unwrap_or(self.usual) - elapsed).max(0.0);
        self.work += left;
        self.longest = self.longest.max(left);
    }

    /// Adds tasks of which only the number is known.
    pub fn add_unknown(&mut self, tasks: u64) {
        self.work += tasks as f64 * self.usual;
        self.longest = self.longest.max(if tasks > 0 { self.usual } else { 0.0 });
    }

    /// Seconds that it takes at least, with this number of workers.
    pub fn time(&self, workers: u64) -> f64 {
        self.longest.max(self.work / workers.max(1) as f64)
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
        let left = |running, estimated| counts.time_left(5.0, running, estimated);
        assert_eq!([left(4, None), left(80, None), left(4, Some(7.0)), left(4, Some(0.0))], [Some(40.0), None, Some(7.0), None]);
        assert_eq!(Counts::default().time_left(5.0, 4, Some(7.0)), None, "the list may go on");
        assert_eq!(counts.progress(5.0, 4, left(4, None)), "18 done, 2 failed of 100, 4 running, 2.0/s, 40 s left");
        assert_eq!(counts.progress(5.0, 80, None), "18 done, 2 failed of 100, 80 running, 2.0/s");
        assert_eq!([clock(61.0), clock(7325.0)], ["1:01", "2:02:05"]);
    }

    #[test]
    fn what_remains_is_bounded_by_the_longest_task_and_by_the_work() {
        let mut remaining = Remaining::new(2.0);
        remaining.add(Some(12.0), 5.0);
        remaining.add(Some(3.0), 8.0);
        assert_eq!(remaining.time(4), 7.0);
        remaining.add(None, 0.0);
        remaining.add_unknown(10);
        assert_eq!([remaining.time(2), remaining.time(8)], [14.5, 7.0]);
    }

    #[test]
    fn the_summary_names_what_bounds_the_run() {
        let counts = Counts { read: 3, done: 2, left: 1, longest: 8.0, work: 10.0, is_recorded: true, ..Counts::default() };
        let said = counts.summary(10.0, 4.0);
        assert!(said.starts_with("3 tasks: 2 done, 0 failed, 0 skipped, 1 left; 10.0 s"), "{said}");
        assert!(
            said.contains("the longest task is 80 % of the run: more ranks won't help") && said.ends_with("--resume goes on"),
            "{said}"
        );
        assert_eq!(counts.bound(4.0), 8.0);
        let edited = Counts { read: 3, done: 3, earlier: 1, edited: 2, ..Counts::default() };
        assert!(edited.summary(1.0, 4.0).ends_with("; 1 were finished by earlier jobs; 2 were edited since their records"));
    }
}
