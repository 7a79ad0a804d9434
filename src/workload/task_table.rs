//! Tasks in a table of comma-separated values: `rank,work,bytes`, a line for each task.
//!
//! The first line names the columns, in any order; `bytes` may be missing. Ranks are numbered from 0, the largest that is named is the
//! last. Work is a whole number of units, whatever they are. What follows a `#` at the beginning of a line is a comment.

use std::path::Path;

use super::items::{shortened, whole};
use super::measured::{MeasuredTask, MeasuredTasks};
use super::source::OPTION;
use super::text;
use crate::error::{Error, Result};
use crate::names;
use crate::topology::MAX_NODES;

/// Reads a table.
///
/// # Errors
/// If it can't be read, or a line is not as it should be; the sentence names the file and the line.
pub fn read(path: &Path) -> Result<MeasuredTasks> {
    let text = text::read(path).map_err(|why| Error::usage(format!("{OPTION} {}: the file cannot be read: {why}", names::shown(&path))))?;
    parse(&text, &names::shown(path))
}

fn parse(text: &str, file: &str) -> Result<MeasuredTasks> {
    let at = |line: usize, why: String| Error::usage(format!("{OPTION} {file}, line {line}: {why}"));
    // All values are plain numbers, so lines are records; quotes around one mean nothing.
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let values = |line: &str| -> Vec<String> { line.split(',').map(|value| value.trim().trim_matches('"').to_string()).collect() };
    let (first, names) = lines.next().map_or_else(|| (1, Vec::new()), |(number, line)| (number, values(line)));
    let column = |name: &str| names.iter().position(|found| found == name);
    let needed = |name: &str| {
        let missing = || at(first, format!("there is no column {name}; it is to name rank, work and, if need be, bytes"));
        column(name).ok_or_else(missing)
    };
    let (rank, work, bytes) = (needed("rank")?, needed("work")?, column("bytes"));
    for (index, name) in names.iter().enumerate() {
        if !["rank", "work", "bytes"].contains(&name.as_str()) {
            return Err(at(first, format!("the column \"{}\" is unknown; known are rank, work and bytes", shortened(name))));
        }
        if names[..index].contains(name) {
            return Err(at(first, format!("there are two columns {name}")));
        }
    }
    let mut tasks = Vec::new();
    for (number, line) in lines {
        let values = values(line);
        if values.len() != names.len() {
            return Err(at(number, format!("{} values for the {} columns", values.len(), names.len())));
        }
        let value = |column: usize| whole(&values[column]).map_err(|why| at(number, format!("{}: {why}", names[column])));
        let on = value(rank)?;
        if on >= u64::from(MAX_NODES) {
            return Err(at(number, format!("rank: {on} is beyond the {MAX_NODES} ranks that there can be")));
        }
        let bytes = bytes.map_or(Ok(0), value)?;
        tasks.push(MeasuredTask { rank: on as u32, name: None, work: value(work)?, bytes, pinned: false });
    }
    if tasks.is_empty() {
        return Err(Error::usage(format!("{OPTION} {file}: the table holds no tasks")));
    }
    tasks.sort_by_key(|task| task.rank);
    let ranks = tasks.last().map_or(0, |task| task.rank + 1);
    Ok(MeasuredTasks { ranks, tasks, communications: Vec::new(), left_out: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_may_be_in_any_order() {
        let run = parse("work, rank ,bytes\n# measured on a Tuesday\n7,2,100\n9,0,0\n\n1,2,5\n", "t.csv").unwrap();
        let tasks: Vec<_> = run.tasks.iter().map(|task| (task.rank, task.work, task.bytes)).collect();
        assert_eq!((run.ranks, tasks), (3, vec![(0, 9, 0), (2, 7, 100), (2, 1, 5)]));
        assert_eq!(parse("rank,work\n0,18446744073709551615\n", "t.csv").unwrap().tasks[0].work, u64::MAX);
    }

    #[test]
    fn wrong_tables_are_refused_with_file_and_line() {
        for (text, why) in [
            ("rank,work,bytes\n0,1,2\n1,-3,0\n", "t.csv, line 3: work: -3 is negative"),
            ("rank,work,bytes\n0,1.5,2\n", "t.csv, line 2: work: \"1.5\" is not a whole number"),
            ("rank,work,bytes\n0,1,2\n\n0,1\n", "t.csv, line 4: 2 values for the 3 columns"),
            ("rank,work,bytes\nx,1,2\n", "t.csv, line 2: rank: \"x\" is not a whole number"),
            ("rank,work\n4294967296,1\n", "t.csv, line 2: rank: 4294967296 is beyond the 1073741824 ranks that there can be"),
            ("rank,time\n0,1\n", "t.csv, line 1: there is no column work; it is to name rank, work and, if need be, bytes"),
            ("rank,work,colour\n0,1,2\n", "t.csv, line 1: the column \"colour\" is unknown; known are rank, work and bytes"),
            ("# two\nrank,work,rank\n0,1,2\n", "t.csv, line 2: there are two columns rank"),
            ("rank,work\n0,\n", "t.csv, line 2: work: a number is missing"),
            ("rank,work,bytes\n", "t.csv: the table holds no tasks"),
            ("", "t.csv, line 1: there is no column rank; it is to name rank, work and, if need be, bytes"),
        ] {
            assert_eq!(parse(text, "t.csv").unwrap_err().to_string(), format!("--tasks {why}"));
        }
        assert!(
            read(Path::new("/no/such.csv")).unwrap_err().to_string().starts_with("--tasks /no/such.csv: the file cannot be read: No such")
        );
    }
}
