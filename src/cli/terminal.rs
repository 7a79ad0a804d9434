//! Everything that this program says to people goes through here. Of several ranks only one speaks.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use equipoise::names;
use equipoise::{Error, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::streams;

static SPEAKS: AtomicBool = AtomicBool::new(true);

/// Whether this process is the one that speaks: by the launcher's word at first, by its rank once there is a world.
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

/// Says on standard error what went wrong, in one line.
pub fn complain(sentence: &str) {
    remark(&format!("equipoise: {sentence}"));
}

/// Says something beside the result, on standard error. What would be an order to the terminal is written out.
pub fn remark(text: &str) {
    if speaks() {
        // There is nobody left to tell if standard error is closed.
        let _ = writeln!(io::stderr().lock(), "{}", names::lines(text.trim_end().to_string()));
    }
}

/// A process that fails without a word leaves the speaker time for its sentence: launchers kill all others as soon as one has failed.
pub fn let_the_speaker_speak() {
    if !speaks() {
        std::thread::sleep(std::time::Duration::from_secs(2));
    }
}

/// How wide tables may be: as wide as the terminal. Launchers give their ranks terminals without a width, and files have none.
pub fn width() -> u16 {
    let terminal = comfy_table::Table::new().width();
    terminal.filter(|width| io::stdout().is_terminal() && *width >= NARROWEST).unwrap_or(USUAL)
}

const NARROWEST: u16 = 60;
const USUAL: u16 = 100;

/// A bar on standard error while something runs, if that is a terminal.
pub struct Progress(ProgressBar);

impl Progress {
    pub fn begin(shown: bool) -> Progress {
        let bar = match shown && speaks() && io::stderr().is_terminal() {
            true => ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()),
            false => ProgressBar::hidden(),
        };
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} phases, {eta} left, {msg}") {
            bar.set_style(style);
        }
        Progress(bar)
    }

    pub fn at(&self, done: u64, of: u64, now: &str) {
        self.0.set_length(of);
        self.0.set_position(done);
        self.0.set_message(now.to_string());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
