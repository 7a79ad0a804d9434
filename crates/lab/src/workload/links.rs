//! Communication between tasks, from a file. A line is `a b bytes` for a pair of tasks, or `a b`, which is one byte. Tasks are named by
//! their numbers, those of rank 0 first. Numbers are separated by blanks or commas; text after a `#` is a comment. Lines of the same pair
//! are added.

use std::path::Path;

use equipoise::error::{Error, Result};
use equipoise::load::Link;
use equipoise::names;

use super::text;

const WHAT: &str = "communications";

/// Reads the links of this number of tasks.
///
/// # Errors
/// Wrong usage if the file can't be read, a line is malformed (the sentence names the line), or all bytes together are beyond 2^64 - 1.
pub fn read(path: &Path, tasks: u64) -> Result<Vec<Link>> {
    let shown = names::shown(path);
    let text = text::read(path).map_err(|why| Error::unreadable(WHAT, format!(" {shown}: the file cannot be read"), why))?;
    parse(&text, tasks).map_err(|why| Error::input(WHAT, format!(" {shown}: {why}")))
}

/// Says why communications of these bytes cannot be counted, if their sum is too large. Results then have it as a number of bytes.
pub(super) fn check_sum(bytes: impl Iterator<Item = f64>) -> Result<(), String> {
    // From a number of this size on the nearest one is 2^64.
    match bytes.sum::<f64>() < u64::MAX as f64 {
        true => Ok(()),
        false => Err("the bytes of all communications together are beyond 2^64 - 1".into()),
    }
}

fn parse(text: &str, tasks: u64) -> Result<Vec<Link>, String> {
    let mut links = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |why: String| format!("line {number}: {why}");
        let line = line.split('#').next().unwrap_or_default();
        let items: Vec<&str> = line.split(|c: char| c == ',' || c.is_whitespace()).filter(|item| !item.is_empty()).collect();
        let task = |text: &str| match text.parse::<u64>() {
            Ok(task) if task < tasks => Ok(task),
            Ok(task) => Err(wrong(format!("task {task}, but there are {tasks} tasks, numbered from 0"))),
            Err(_) => Err(wrong(format!("{text:?} is not the number of a task"))),
        };
        let bytes = |text: &str| match text.parse::<f64>() {
            Ok(bytes) if bytes.is_finite() && bytes >= 0.0 => Ok(bytes),
            _ => Err(wrong(format!("{text:?} is no number of bytes"))),
        };
        links.push(match *items {
            [] => continue,
            [a, b] => Link { ends: (task(a)?, task(b)?), bytes: 1.0 },
            [a, b, said] => Link { ends: (task(a)?, task(b)?), bytes: bytes(said)? },
            _ => return Err(wrong("a line holds two tasks and perhaps the bytes between them".into())),
        });
    }
    check_sum(links.iter().map(|link| link.bytes))?;
    Ok(links)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_links_and_wrong_ones_are_named() {
        let link = |a, b, bytes| Link { ends: (a, b), bytes };
        assert_eq!(parse("0 1 2.5\n# none\n1, 2\n\n0 1 8e3\n", 3), Ok(vec![link(0, 1, 2.5), link(1, 2, 1.0), link(0, 1, 8000.0)]));
        for (text, why) in [
            ("0 1\n0 3\n", "line 2: task 3, but there are 3 tasks, numbered from 0"),
            ("0 x\n", "line 1: \"x\" is not the number of a task"),
            ("0 1 -2\n", "line 1: \"-2\" is no number of bytes"),
            ("0 1 1e308\n0 2 1e308\n1 2 1e308\n", "the bytes of all communications together are beyond 2^64 - 1"),
            ("0 1 1e19\n1 2 1e19\n", "the bytes of all communications together are beyond 2^64 - 1"),
            ("0\n", "line 1: a line holds two tasks and perhaps the bytes between them"),
        ] {
            assert_eq!(parse(text, 3), Err(why.into()));
        }
    }
}
