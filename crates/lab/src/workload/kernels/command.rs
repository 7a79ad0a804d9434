//! Any program: run once on each share by `sh -c`, which it gets on its standard input.

use std::str::FromStr;
use std::time::Duration;

use super::process::{self, Errors, Process};
use super::spool::Output;
use crate::divisible::spread::{Kernel, Range};
use equipoise::error::{Error, Result};
use equipoise::node::Worker;

/// The exit statuses that mean success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OkStatus(Vec<i32>);

impl Default for OkStatus {
    fn default() -> OkStatus {
        OkStatus(vec![0])
    }
}

impl FromStr for OkStatus {
    type Err = String;

    fn from_str(text: &str) -> Result<OkStatus, String> {
        let status = |part: &str| match part.trim().parse::<u8>() {
            Ok(status) => Ok(status.into()),
            Err(_) => Err(format!("'{part}' is no exit status; they are numbers from 0 to 255, separated by commas")),
        };
        text.split(',').map(status).collect::<Result<_, _>>().map(OkStatus)
    }
}

/// A program that runs on a share.
pub struct Command {
    command: String,
    ok: OkStatus,
    who: String,
    process: Process<Output>,
}

impl Command {
    /// Starts it. It is killed if it stands still for longer than `patience`.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(
        command: &str,
        ok: &OkStatus,
        (node, range): (u32, Range),
        sample: bool,
        patience: Duration,
        output: Output,
    ) -> Result<Command> {
        let what = match sample {
            true => "a sample of the input".into(),
            false => format!("bytes {}..{} of the input", range.start, range.end),
        };
        let who = format!("--command '{command}' on {what} (node {node})");
        let errors = if sample { Errors::Dropped } else { Errors::Shown };
        let process = Process::start(who.clone(), command, errors, patience, output, Output::write)?;
        Ok(Command { command: command.into(), ok: ok.clone(), who, process })
    }
}

impl Kernel for Command {
    fn eat(&mut self, bytes: &[u8], _: &mut dyn Worker) -> Result<()> {
        self.process.give(bytes)
    }

    fn finish(&mut self, _: &mut dyn Worker) -> Result<Vec<u8>> {
        let (status, output) = self.process.end()?;
        if let Some(code) = status.code().filter(|code| self.ok.0.contains(code)) {
            return super::written(&(code, output?.end()?));
        }
        let what = process::how(status);
        let hint = if status.code() == Some(1) && self.command.contains("grep") { " (--ok-status 0,1 accepts it)" } else { "" };
        Err(Error::Failed(format!("{}: {what}{hint}; there is no answer", self.who)))
    }
}
