//! Messages between a rank and its helper, over a socket: frames of a length and a message.

use std::io::{self, Read, Write};

use bytes::Bytes;
use equipoise::node;
use equipoise::topology::RankId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::tags::HELPER;
use crate::task::{Outcome, Task};

/// Message from the rank.
#[derive(Debug, Serialize, Deserialize)]
pub enum Order {
    /// Comes first.
    Begin(Terms),
    /// Tasks to run, with the number of attempts that they had in earlier jobs.
    Run(Vec<(Task, u32)>),
    /// Stop starting tasks that would end later than this (seconds since 1970).
    Deadline(f64),
    /// No further task is started; those that still run after `grace` seconds are stopped.
    Drain { grace: f64 },
    /// A command for the host, outside of the list.
    OnHost { text: Vec<u8>, variables: Vec<(String, String)> },
    /// All is done.
    End,
}

/// Settings for the execution of tasks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Terms {
    pub rank: RankId,
    /// Tasks that run at a time.
    pub workers: u32,
    pub slots: Slots,
    /// Seconds after which a task is stopped.
    pub timeout: Option<f64>,
    /// Speed of built-in tasks that sleep; 1 by default.
    pub speed: f64,
    /// Further attempts at a task that failed.
    pub retries: u32,
    /// Whether the helper may say something on standard error.
    pub speaks: bool,
}

/// Resources that the tasks of a rank share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slots {
    pub cpus: u32,
    /// Numbers of processors that tasks are bound to; none if they are not bound.
    pub cpu_set: Vec<u32>,
    /// Names of the devices.
    pub gpus: Vec<String>,
    /// Bytes; `None` if memory is not shared out.
    pub mem: Option<u64>,
}

/// Message from the helper.
#[derive(Debug, Serialize, Deserialize)]
pub enum News {
    /// Attempts that have ended. Those that are tried again are among them.
    Ended(Vec<Outcome>),
    /// A command for the host has ended.
    OnHost(Outcome),
}

/// Writes a message.
pub fn frame(message: &impl Serialize) -> Vec<u8> {
    let body = node::pack(message);
    let mut frame = Vec::with_capacity(8 + body.len());
    frame.extend((body.len() as u64).to_le_bytes());
    frame.extend(&body);
    frame
}

/// Sends a message.
///
/// # Errors
/// If the writer fails.
pub fn send(mut to: impl Write, message: &impl Serialize) -> io::Result<()> {
    to.write_all(&frame(message))
}

/// Takes the first complete message from the received bytes.
///
/// # Errors
/// If a message has 4 GiB or more, or is not a `T`.
pub fn take<T: DeserializeOwned>(arrived: &mut Vec<u8>) -> io::Result<Option<T>> {
    let Some(length) = arrived.first_chunk::<8>() else { return Ok(None) };
    let end = usize::try_from(u64::from_le_bytes(*length)).ok().and_then(|length| length.checked_add(8));
    let end = end.filter(|end| *end < 1 << 32).ok_or_else(|| io::Error::other("a message is too long"))?;
    if arrived.len() < end {
        return Ok(None);
    }
    let rest = arrived.split_off(end);
    let frame = Bytes::from(std::mem::replace(arrived, rest));
    node::unpack(&frame.slice(8..), 0, HELPER).map(Some).map_err(io::Error::other)
}

/// Waits for a message; `None` if the other end is closed.
///
/// # Errors
/// If reading fails, or as [`take`]. A connection that is reset counts as closed.
pub fn receive<T: DeserializeOwned>(from: &mut impl Read, arrived: &mut Vec<u8>) -> io::Result<Option<T>> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        if let Some(message) = take(arrived)? {
            return Ok(Some(message));
        }
        match from.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(read) => arrived.extend(&buffer[..read]),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) if why.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
            Err(why) => return Err(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_in_pieces() {
        let frames = [frame(&Order::Deadline(2.5)), frame(&Order::Drain { grace: 1.0 })].concat();
        let mut arrived = Vec::new();
        let mut taken = Vec::new();
        for byte in frames {
            arrived.push(byte);
            if let Some(order) = take::<Order>(&mut arrived).unwrap() {
                taken.push(format!("{order:?}"));
            }
        }
        assert_eq!(taken, ["Deadline(2.5)", "Drain { grace: 1.0 }"]);
        assert!(take::<Order>(&mut vec![255; 8]).is_err());
    }
}
