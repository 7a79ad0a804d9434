//! Output for people. Only one of several ranks prints.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use equipoise::names;
use equipoise::{Error, Result};
use equipoise_lab::experiment::Interruption;
use equipoise_lab::report::json;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::streams;

static SPEAKS: AtomicBool = AtomicBool::new(true);

/// Sets whether this process prints: by the launcher's variables at first, by its rank once there is a world.
pub fn begin(speaks: bool) {
    SPEAKS.store(speaks, Ordering::Relaxed);
}

fn speaks() -> bool {
    SPEAKS.load(Ordering::Relaxed)
}

/// Writes to standard output. A reader that went away early is no failure.
pub fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    if !speaks() {
        return Ok(());
    }
    if streams::output_was_closed() {
        return Err(Error::Failed("standard output is closed, so that nobody can read what belongs there".into()));
    }
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(why) if why.kind() != io::ErrorKind::BrokenPipe => Err(Error::Failed(format!("standard output: {why}"))),
        _ => Ok(()),
    }
}

/// Output format of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Text and tables
    Human,
    /// One JSON object per line
    Json,
    /// No output; only the exit status
    Quiet,
}

/// Prints the record of an operation that ended before anything was finished; `what` is the noun for the counted items, in the plural.
pub fn interrupted(output: Output, interruption: &Interruption, what: &str) -> Result<()> {
    match output {
        Output::Human => print(|out| writeln!(out, "{}", interruption.sentence(what))),
        Output::Json => print(|out| json::line(out, &serde_json::json!({ "interrupted": interruption }))),
        Output::Quiet => Ok(()),
    }
}

/// Prints an error on standard error, on one line.
pub fn complain(sentence: &str) {
    remark(&format!("equipoise: {sentence}"));
}

/// Prints a remark on standard error, apart from the result. Control characters of the terminal are escaped.
pub fn remark(text: &str) {
    if speaks() {
        // If standard error is closed, there is nowhere left to report to.
        let _ = writeln!(io::stderr().lock(), "{}", names::lines(text.trim_end().to_string()));
    }
}

/// A process that fails without a word leaves the speaker time for its sentence: launchers kill all others as soon as one has failed.
pub fn let_the_speaker_speak() {
    if !speaks() {
        std::thread::sleep(std::time::Duration::from_secs(2));
    }
}

/// Maximum width of tables: the terminal's width. Launchers give their ranks terminals without a width, and files have none.
pub fn width() -> u16 {
    let terminal = comfy_table::Table::new().width();
    terminal.filter(|width| io::stdout().is_terminal() && *width >= NARROWEST).unwrap_or(USUAL)
}

const NARROWEST: u16 = 60;
const USUAL: u16 = 100;

/// Interval of progress lines, where there is no terminal for a bar.
const EVERY: Duration = Duration::from_secs(5);

/// Progress of a long operation, on standard error: a bar on a terminal, otherwise (launchers give their ranks none) a line every few
/// seconds. A shorter operation prints nothing.
pub struct Progress {
    bar: ProgressBar,
    lines: Option<Lines>,
    pace: Mutex<Pace>,
}

impl Progress {
    /// `what` is the noun for the counted items, in the plural.
    pub fn begin(shown: bool, what: &'static str) -> Progress {
        let shown = shown && speaks();
        let bar = match shown && io::stderr().is_terminal() {
            true => ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()),
            false => ProgressBar::hidden(),
        };
        if let Ok(style) = ProgressStyle::with_template(&format!("{{bar:30}} {{pos}}/{{len}} {what}, {{msg}}")) {
            bar.set_style(style);
        }
        let lines = (shown && !io::stderr().is_terminal()).then(|| Lines::begin(what, EVERY, |line| remark(&line)));
        Progress { bar, lines, pace: Mutex::new(Pace::new()) }
    }

    /// Last known progress: number of items done, and their total.
    pub fn reached(&self) -> (u64, u64) {
        let pace = lock(&self.pace);
        (pace.done, pace.of)
    }

    pub fn at(&self, done: u64, of: u64, now: &str) {
        self.bar.set_length(of);
        self.bar.set_position(done);
        let mut pace = lock(&self.pace);
        pace.at(done, of);
        let left = pace.left().map_or_else(String::new, |left| format!("{left} left, "));
        self.bar.set_message(format!("{left}{now}"));
        if let Some(lines) = &self.lines {
            lines.at(done, of, now);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Pace of the progress, from which the remaining time is estimated.
struct Pace {
    began: Instant,
    done: u64,
    of: u64,
}

impl Pace {
    fn new() -> Pace {
        Pace { began: Instant::now(), done: 0, of: 0 }
    }

    /// Records that `done` are done; if the count starts again, or `of` changes, so does the time.
    fn at(&mut self, done: u64, of: u64) {
        if of != self.of || done < self.done {
            self.began = Instant::now();
        }
        (self.done, self.of) = (done, of);
    }

    fn left(&self) -> Option<HumanDuration> {
        left(self.began.elapsed(), self.done, self.of)
    }
}

/// Remaining time at the same pace; `None` as long as too little is done to tell.
fn left(elapsed: Duration, done: u64, of: u64) -> Option<HumanDuration> {
    let left = elapsed.as_secs_f64() * of.saturating_sub(done) as f64 / done as f64;
    // The first of very many items say nothing of the pace: those of `reproduce` that come first take a case each.
    Some(HumanDuration(Duration::try_from_secs_f64(left).ok()?)).filter(|_| done > 0 && done >= of / 1000)
}

/// Lines from a thread of their own, so that they come while something runs that takes longer than their distance.
struct Lines {
    state: Arc<(Mutex<State>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    pace: Pace,
    now: String,
    is_over: bool,
}

impl Lines {
    fn begin(what: &'static str, every: Duration, say: impl Fn(String) + Send + 'static) -> Lines {
        let state = State { pace: Pace::new(), now: String::new(), is_over: false };
        let state = Arc::new((Mutex::new(state), Condvar::new()));
        let theirs = state.clone();
        let thread = std::thread::Builder::new().name("progress".into()).spawn(move || {
            let (state, over) = &*theirs;
            let mut guard = lock(state);
            loop {
                let waited = over.wait_timeout_while(guard, every, |state| !state.is_over);
                guard = waited.unwrap_or_else(PoisonError::into_inner).0;
                let State { pace, now, is_over } = &*guard;
                if *is_over {
                    return;
                }
                let left = pace.left().map_or_else(String::new, |left| format!(", {left} left"));
                say(match pace.of {
                    0 => format!("equipoise: now {now}"),
                    of => format!("equipoise: {} of {of} {what} done{left}; now {now}", pace.done),
                });
            }
        });
        // Without a thread there is no progress report.
        Lines { state, thread: thread.ok() }
    }

    fn at(&self, done: u64, of: u64, now: &str) {
        let mut state = lock(&self.state.0);
        state.pace.at(done, of);
        now.clone_into(&mut state.now);
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        lock(&self.state.0).is_over = true;
        self.state.1.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_while_something_runs_and_not_before() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let sink = told.clone();
        let lines = Lines::begin("runs", Duration::from_millis(50), move |line| sink.lock().unwrap().push(line));
        lines.at(1, 4, "steal");
        std::thread::sleep(Duration::from_millis(180));
        drop(lines);
        let told = told.lock().unwrap().clone();
        assert!(!told.is_empty() && told.len() <= 4, "{told:?}");
        assert!(
            told.iter().all(|line| line.starts_with("equipoise: 1 of 4 runs done, ") && line.ends_with(" left; now steal")),
            "{told:?}"
        );

        let sink = Arc::new(Mutex::new(Vec::new()));
        let short = sink.clone();
        drop(Lines::begin("runs", Duration::from_secs(60), move |line| short.lock().unwrap().push(line)));
        assert!(sink.lock().unwrap().is_empty(), "what is over at once says nothing");
    }

    #[test]
    fn what_counts_anew_is_timed_anew() {
        let mut pace = Pace::new();
        pace.at(0, 4);
        let first = pace.began;
        pace.at(3, 4);
        assert_eq!(pace.began, first);
        std::thread::sleep(Duration::from_millis(2));
        pace.at(0, 4);
        assert!(pace.began > first);
    }

    #[test]
    fn what_is_left_is_reckoned_from_what_is_done() {
        let left = |seconds, done, of| left(Duration::from_secs(seconds), done, of).map(|left| left.0);
        assert_eq!([left(10, 0, 4), left(100, 2, 16_000_000)], [None, None]);
        assert_eq!([left(10, 1, 4), left(10, 4, 4)], [Some(Duration::from_secs(30)), Some(Duration::ZERO)]);
    }
}
