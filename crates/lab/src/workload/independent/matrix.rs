//! A matrix of costs in a file: a line for each task, a column for each rank, in cycles; blanks, commas or semicolons between; `#` begins a
//! comment; `inf` where the task can't run on the rank. Files that begin with a line for the number of tasks and one for that of ranks (as
//! collections of unrelated machines have it) are read as well.

use std::path::Path;

use crate::workload::text;
use equipoise::error::{Error, Result};
use equipoise::load::{CYCLE, Cost, Costs, MOST, NEVER};
use equipoise::names;

/// Reads the matrix for this number of ranks. With `arrivals` a first column says when each task arrives; tasks are then put in that order.
///
/// # Errors
/// If the file can't be read or does not hold such a matrix; the sentence names the line.
pub fn read(path: &Path, ranks: u32, arrivals: bool) -> Result<(Costs, Vec<Cost>)> {
    let shown = names::shown(path);
    let text =
        text::read(path).map_err(|why| Error::unreadable("workload", format!(" costs:file={shown}: the file cannot be read"), why))?;
    let read = if arrivals { with_arrivals(&text, ranks) } else { parse(&text, ranks).map(|costs| (costs, Vec::new())) };
    read.map_err(|why| Error::input("workload", format!(" costs:file={shown}{why}")))
}

/// A matrix with a first column of arrivals.
fn with_arrivals(text: &str, ranks: u32) -> Result<(Costs, Vec<Cost>), String> {
    let all =
        parse(text, ranks.saturating_add(1)).map_err(|why| format!("{why}; the first column is the arrival, as arrival=file says"))?;
    let mut order: Vec<usize> = (0..all.tasks()).collect();
    order.sort_by_key(|task| (all.of(*task, 0), *task));
    let arrivals: Vec<Cost> = order.iter().map(|task| all.of(*task, 0)).collect();
    if arrivals.last() == Some(&NEVER) {
        return Err(": a task that never arrives (inf in the first column) is none".into());
    }
    let costs = order.iter().flat_map(|task| all.row(*task)[1..].iter().copied()).collect();
    Ok((Costs::new(ranks, costs).ok_or(": the rows are not whole")?, arrivals))
}

/// The same from a text; errors go on after the file's name.
fn parse(text: &str, ranks: u32) -> Result<Costs, String> {
    let columns = ranks as usize;
    let mut rows: Vec<(usize, Vec<&str>)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let items = text::items(line).map_err(|why| format!(", line {}: {why}", number + 1))?;
        if !items.is_empty() {
            rows.push((number + 1, items));
        }
    }
    // Two lines of one number each, which say how many rows and columns follow.
    if let [(_, tasks), (_, machines), ..] = rows.as_slice()
        && let ([tasks], [machines]) = (tasks.as_slice(), machines.as_slice())
        && tasks.parse() == Ok(rows.len() - 2)
        && rows[2..].iter().all(|(_, row)| machines.parse() == Ok(row.len()))
    {
        rows.drain(..2);
    }
    let mut costs = Vec::with_capacity(rows.len() * columns);
    for (number, items) in rows {
        if items.len() != columns {
            return Err(format!(", line {number}: {} costs, and there are {ranks} ranks", items.len()));
        }
        for item in items {
            costs.push(cost(item).map_err(|why| format!(", line {number}: {why}"))?);
        }
    }
    Costs::new(ranks, costs).ok_or_else(|| ": the rows are not whole".into())
}

fn cost(text: &str) -> Result<Cost, String> {
    if ["inf", "+inf", "infinity", "infinite"].contains(&text.to_ascii_lowercase().as_str()) {
        return Ok(NEVER);
    }
    match text.parse::<f64>() {
        Ok(cycles) if (0.0..=(MOST / CYCLE) as f64).contains(&cycles) => Ok((cycles * CYCLE as f64).round() as Cost),
        Ok(cycles) if cycles < 0.0 => Err(format!("{text} is negative")),
        _ => Err(format!("\"{text}\" is no number of cycles, nor inf")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_commas_comments_and_infinity() {
        let costs = parse("# costs\n1, 2.5,inf\n\n3 4 5 # the second\n", 3).unwrap();
        assert_eq!(costs.row(0), [CYCLE, CYCLE * 5 / 2, NEVER]);
        assert_eq!(costs.row(1), [3, 4, 5].map(|cost| cost * CYCLE));
        assert_eq!(parse("", 2).unwrap().tasks(), 0);
    }

    #[test]
    fn a_header_of_two_lines_is_understood() {
        let costs = parse("2\n3\n1 2 3\n4 5 6\n", 3).unwrap();
        assert_eq!((costs.tasks(), costs.of(1, 2)), (2, 6 * CYCLE));
        assert_eq!(parse("2\n1\n", 1).unwrap().tasks(), 2, "a matrix of one column");
    }

    #[test]
    fn tasks_come_in_the_order_of_their_arrival() {
        let (costs, arrivals) = with_arrivals("9 1 2\n0.5 3 4\n", 2).unwrap();
        assert_eq!((costs.row(0), costs.row(1)), (&[3 * CYCLE, 4 * CYCLE][..], &[CYCLE, 2 * CYCLE][..]));
        assert_eq!(arrivals, [CYCLE / 2, 9 * CYCLE]);
        assert!(with_arrivals("1 2 3\n1 2\n", 2).unwrap_err().contains("line 2"));
        assert!(with_arrivals("inf 2\n", 1).unwrap_err().contains("never arrives"));
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, says) in [
            ("1 2\n# a comment\n3\n", "line 3: 1 costs, and there are 2 ranks"),
            ("1 2\n3 x\n", "line 2: \"x\" is no number"),
            ("1 -2\n", "line 1: -2 is negative"),
            ("1 nan\n", "line 1: \"nan\""),
            ("1,5;2,5\n", "line 1: commas and semicolons"),
            ("1 1e300\n", "line 1: \"1e300\""),
        ] {
            let why = parse(text, 2).unwrap_err();
            assert!(why.contains(says), "{why}");
        }
    }
}
