//! Any program: run once on each share by `sh -c`, which it gets on its standard input.

use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{self, Child, ChildStdin, Stdio};
use std::str::FromStr;
use std::thread::JoinHandle;

use super::spool::Output;
use crate::divisible::spread::{Kernel, Range};
use crate::error::{Error, Result};
use crate::node::Worker;

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

/// A program that runs.
pub struct Command {
    command: String,
    ok: OkStatus,
    who: String,
    child: Child,
    /// Gone when the program does not want any more.
    stdin: Option<ChildStdin>,
    /// Takes what it writes, so that it never waits for us while we wait for it.
    reader: Option<JoinHandle<Result<Output>>>,
}

impl Command {
    /// Starts it.
    ///
    /// # Errors
    /// If there is no shell.
    pub fn start(command: &str, ok: &OkStatus, node: u32, range: Range, sample: bool, mut output: Output) -> Result<Command> {
        let who = format!("--command '{command}' on bytes {}..{} of the input (node {node})", range.start, range.end);
        let failed = |why: io::Error| Error::Failed(format!("{who}: it cannot be started: {why}"));
        let mut shell = process::Command::new("sh");
        shell.arg("-c").arg(command).stdin(Stdio::piped()).stdout(Stdio::piped());
        if sample {
            shell.stderr(Stdio::null());
        }
        let mut child = shell.spawn().map_err(failed)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let told = who.clone();
        let read = move || {
            let mut buffer = vec![0; 64 << 10];
            let Some(mut stdout) = stdout else { return Ok(output) };
            // What cannot be kept is read to the end all the same: the program shall not hang.
            let mut kept = Ok(());
            loop {
                match stdout.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(read) if kept.is_ok() => kept = output.write(&buffer[..read]),
                    Ok(_) => {}
                    Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                    Err(why) => return Err(Error::Failed(format!("{told}: its output cannot be read: {why}"))),
                }
            }
            kept.map(|()| output)
        };
        let reader = match std::thread::Builder::new().name("output".into()).spawn(read) {
            Ok(reader) => reader,
            Err(why) => {
                end(&mut child);
                return Err(failed(why));
            }
        };
        Ok(Command { command: command.into(), ok: ok.clone(), who, child, stdin, reader: Some(reader) })
    }
}

impl Kernel for Command {
    fn eat(&mut self, bytes: &[u8], _: &mut dyn Worker) -> Result<()> {
        let Some(stdin) = &mut self.stdin else { return Ok(()) };
        match stdin.write_all(bytes) {
            Ok(()) => Ok(()),
            // It has read what it wants to read, as `head` does. Whether it is content, its exit status tells.
            Err(why) if why.kind() == io::ErrorKind::BrokenPipe => {
                self.stdin = None;
                Ok(())
            }
            Err(why) => Err(Error::Failed(format!("{}: it cannot be given its share: {why}", self.who))),
        }
    }

    fn finish(&mut self, _: &mut dyn Worker) -> Result<Vec<u8>> {
        self.stdin = None;
        let output = match self.reader.take().map(JoinHandle::join) {
            Some(Ok(output)) => output,
            _ => Err(Error::Failed(format!("{}: its reader died", self.who))),
        };
        let status = self.child.wait().map_err(|why| Error::Failed(format!("{}: it cannot be waited for: {why}", self.who)))?;
        let what = match (status.code(), status.signal()) {
            (Some(code), _) if self.ok.0.contains(&code) => return super::written(&(code, output?.end()?)),
            (Some(127), _) => "it ended with status 127: the shell knows no such program".into(),
            (Some(code), _) => format!("it ended with status {code}"),
            (None, signal) => format!("it was ended by signal {}", signal.unwrap_or(0)),
        };
        let hint = if status.code() == Some(1) && self.command.contains("grep") { " (--ok-status 0,1 accepts it)" } else { "" };
        Err(Error::Failed(format!("{}: {what}{hint}; there is no answer", self.who)))
    }
}

impl Drop for Command {
    /// One that was not finished is not left behind.
    fn drop(&mut self) {
        if self.reader.is_some() {
            self.stdin = None;
            end(&mut self.child);
        }
    }
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}
