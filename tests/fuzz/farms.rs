//! Readers of a farm: lists of commands in every format, logs of other farms, job logs.

use std::fs;
use std::path::{Path, PathBuf};

use equipoise_farm::journal::foreign;
use equipoise_farm::journal::joblog::Joblog;
use equipoise_farm::journal::past::{self, Past};
use equipoise_farm::limits::SlotsGiven;
use equipoise_farm::list::formats::Format;
use equipoise_farm::list::sleep::Sleep;
use equipoise_farm::list::{Entry, List, Origin};
use equipoise_farm::task::{Outcome, State, Task};

use crate::dice::Dice;
use crate::readers::Said;

/// Commands that are read of one list: a line may stand for a billion of them.
const MOST: usize = 500;

const FORMATS: &[Format] = &[Format::Plain, Format::Greasy, Format::Disbatch, Format::Parallel];

const COMMANDS: &[&str] = &["echo a", "run 'a b'", "run \"x", "a | b", "sleep 1 # c", "true", "é", ""];

/// A list, and what is said of its resources and of built-in tasks.
pub fn list(dice: &mut Dice, folder: &Path) -> Said {
    match dice.below(8) {
        0 => {
            let text = format!("{}cpus={},gpus={},mem={}G", dice.one(&["", "host:"]), dice.number(9), dice.number(9), dice.number(64));
            SlotsGiven::parse(&mistaken(dice, text)).err()
        }
        1 => {
            let lengths = dice.one(&["exponential:mean=10ms", "uniform:min=5us,max=0.5s", "fixed:time=1e-3s"]).to_string();
            let text = format!("{lengths},tasks={},seed={},costs=known,speeds=1/{}", dice.number(40), dice.number(9), dice.number(4));
            Sleep::parse(&mistaken(dice, text)).err().map(|why| why.to_string())
        }
        _ => {
            let (format, by_shell) = (*dice.one(FORMATS), dice.percent(30));
            let text = lines(dice, format);
            let origin = Origin::Commands { file: file(dice, folder, "list", text), format };
            tasks(&origin, by_shell).err()
        }
    }
}

/// Decisions on a list after a log of another farm, or of ours.
pub fn log(dice: &mut Dice, folder: &Path) -> Said {
    let format = *dice.one(FORMATS);
    let text = lines(dice, format);
    let origin = Origin::Commands { file: file(dice, folder, "list", text), format };
    let mut past = Past::of(&origin);
    let text = log_lines(dice);
    let read = foreign::read(&mut past, &file(dice, folder, "log", text));
    past.settle();
    for task in tasks(&origin, true).unwrap_or_default() {
        past.judge(&task, dice.percent(30));
        assert!(past.learnt(&task.text).is_none_or(|seconds| seconds >= 0.0), "time of {:?}", task.text);
        past.final_state(task.seq);
    }
    let behind = dice.below(40) as u64;
    assert!(past.behind(behind).is_none_or(|(count, last)| count > 0 && last > behind), "behind {behind}");
    read.err().map(|why| why.to_string())
}

/// A job log that is gone on with: whatever was in it, a record that is written can be read.
pub fn joblog(dice: &mut Dice, folder: &Path) -> Said {
    let text = log_lines(dice);
    let path = file(dice, folder, "log", text);
    let (goes_on, is_shared) = (dice.percent(50), dice.percent(50));
    let mut log = match Joblog::open(&path).and_then(|mut log| log.begin(&path, goes_on, is_shared).map(|()| log)) {
        Ok(log) => log,
        Err(why) => return Some(why.to_string()),
    };
    log.write(7, "h", &Outcome::without_run(7, State::Done), b"x").expect("a file can be written");
    let written = fs::read(&path).expect("a file can be read");
    let (whole, last) = (written.ends_with(b"\n"), written.split(|byte| *byte == b'\n').nth_back(1).unwrap_or_default());
    assert!(whole && last.starts_with(b"7\th\t") && last.ends_with(b"\tx"), "the record is {}", String::from_utf8_lossy(last));
    let mut records = 0;
    let torn = past::records(&path, |_| records += 1).expect("a file can be read");
    assert!(records + torn > 0, "the record is read, or told as none");
    None
}

/// The tasks of a list, up to a number.
fn tasks(origin: &Origin, by_shell: bool) -> Result<Vec<Task>, String> {
    let mut list = List::open(origin, by_shell, None, false).map_err(|why| why.to_string())?;
    let mut tasks = Vec::new();
    while tasks.len() < MOST {
        match list.entry().map_err(|why| why.to_string())? {
            Some(Entry::Task(task)) => tasks.push(task),
            Some(_) => {}
            None => break,
        }
    }
    Ok(tasks)
}

fn lines(dice: &mut Dice, format: Format) -> String {
    let count = dice.below(12);
    let with_end = |_| {
        let line = line(dice, format);
        line + *dice.one(&["\n", "\n", "\n", "\r\n"])
    };
    (0..count).map(with_end).collect()
}

fn line(dice: &mut Dice, format: Format) -> String {
    let command = dice.one(COMMANDS).to_string();
    let number = dice.number(9);
    match (format, dice.below(3)) {
        (_, 0) => command,
        (Format::Plain, 1) => format!("#EQ {}", dice.one(&["barrier", "cost=5", "mem=8e9"])),
        (Format::Plain, _) => {
            let keys = ["cost", "min", "cpus", "gpus", "mem", "after", "dir", "stdin"];
            let directive = |_| {
                let key = *dice.one(&keys);
                format!("{key}={}", value(dice))
            };
            let said: Vec<String> = (0..3).map(directive).collect();
            format!("{command} #EQ {}", said.join(" "))
        }
        (Format::Greasy, 1) => format!("[# -{number}, 1-{} #] {command}", dice.number(9)),
        (Format::Greasy, _) => format!("[@ /tmp @] {command}"),
        (Format::Disbatch, _) => {
            let (start, step) = (dice.number(9), dice.number(3));
            match dice.below(5) {
                0 => format!("#DISBATCH PREFIX {command} "),
                1 => format!("#DISBATCH SUFFIX {command}"),
                2 => format!("#DISBATCH BARRIER{}", dice.one(&["", " CHECK"])),
                3 => format!("#DISBATCH REPEAT {number} start {start} step {step} {command}"),
                _ => format!("#DISBATCH PERENGINE {} {command}", dice.one(&["START", "STOP"])),
            }
        }
        (Format::Parallel, _) => format!("{}{command}", dice.one(&["", "  ", "# "])),
    }
}

/// Value of a directive.
fn value(dice: &mut Dice) -> String {
    match dice.below(4) {
        0 => format!("{}{}", dice.number(9), dice.one(&["k", "M", "GiB", "T", "ms", "s"])),
        1 => format!("{}:{}:00", dice.number(9), dice.number(59)),
        2 => format!("{},1-{}", dice.number(9), dice.number(9)),
        _ => dice.number(90),
    }
}

/// Lines of a journal, a job log, a status file of disBatch or a log of GREASY, now and then of several of them.
fn log_lines(dice: &mut Dice) -> String {
    let heads = ["", "", "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n", "Seq\tHost\n"];
    let mut text = dice.one(&heads).to_string();
    let kind = dice.below(4);
    for _ in 0..dice.below(12) {
        let (seq, line, status) = (dice.number(9), dice.number(9), dice.number(3));
        let command = dice.one(COMMANDS);
        let kind = if dice.percent(5) { dice.below(4) } else { kind };
        text += &match kind {
            0 => format!("{seq}\th\t{}\t     0.001\t0\t0\t{status}\t0\t{command}\n", dice.number(90)),
            1 => format!("{seq}\th\t1.5\t     {}\t0\t12\t{status}\t0\t{command}\t0.1\t2048\t12\t3\t0\t0\t1\tdone\n", dice.number(9)),
            2 => {
                let flags = dice.one(&["    ", "R   ", "B    ", "   P", " O S"]);
                format!("{flags}\t{seq}\t{line}\t{}\tn1\t88\t{status}\t1.5\t10.0\t11.5\t0\t''\t0\t''\t{command}\n", dice.number(9))
            }
            _ => format!("[2024-01-01 00:00:01] INFO: Task {seq} located in line {line} completed successfully on node n1.\n"),
        };
    }
    text
}

/// A text with mistakes in a third of the cases.
fn mistaken(dice: &mut Dice, text: String) -> String {
    match dice.percent(35) {
        true => String::from_utf8_lossy(&dice.mistaken(text.as_bytes())).into_owned(),
        false => text,
    }
}

/// A file with this text, in a third of the cases with mistakes.
fn file(dice: &mut Dice, folder: &Path, name: &str, text: String) -> PathBuf {
    let text = if dice.percent(35) { dice.mistaken(text.as_bytes()) } else { text.into_bytes() };
    let path = folder.join(name);
    fs::write(&path, text).expect("a file can be written");
    path
}
