//! The work of each rank in each step of a run, to see when balancing would have paid: a text with a line for each step, a table, or the phases of a
//! run as DARMA's LBAF has them.

use std::collections::{BTreeMap, BTreeSet};

use super::items::shortened;
use super::source::split_off;
use super::steps::{MOST_TIMES, SERIES, Steps};
use super::{lbaf, text};
use equipoise::error::{Error, Result};
use equipoise::names;

/// Reads what `--series` names: `lbaf:DIR[,set=NAME]`, or a file, or `-` for standard input.
///
/// # Errors
/// If it can't be read or is no series: a sentence that names the file, and the line or the step.
pub fn read(named: &str) -> Result<Steps> {
    if let Some(rest) = named.strip_prefix("lbaf:") {
        let wrong = |why: &str| Error::input(SERIES, format!(" {}: {why}", shortened(named)));
        let (folder, [set]) = split_off(rest, ["set"]).map_err(|why| wrong(&why))?;
        if folder.is_empty() {
            return Err(wrong("the name of a folder is missing"));
        }
        return lbaf::series(&names::path(folder), set.map(names::argument).as_deref());
    }
    let path = names::path(named);
    let shown = names::shown(&path);
    let text = text::read(&path).map_err(|why| Error::unreadable(SERIES, format!(" {shown}: it cannot be read"), why))?;
    of_text(&text).map_err(|why| Error::input(SERIES, format!(" {shown}: {why}")))
}

/// A line of times for each step, or a table with the columns step, rank and work.
fn of_text(text: &str) -> Result<Steps, String> {
    let lines = (1..).zip(text.lines()).filter_map(|(number, line)| match text::items(line) {
        Ok(items) if items.is_empty() => None,
        items => Some((number, items)),
    });
    let mut lines = lines.peekable();
    let is_header = matches!(lines.peek(), Some((_, Ok(items))) if items[0].starts_with(|c: char| c.is_alphabetic()) && items[0].parse::<f64>().is_err());
    let steps = match is_header {
        true => of_table(lines)?,
        false => of_lines(lines)?,
    };
    if steps.work.is_empty() {
        return Err("there is no step in it".into());
    }
    Ok(steps)
}

type Items<'a> = (usize, Result<Vec<&'a str>, String>);

/// Steps have the numbers 0, 1, ..
fn of_lines<'a>(lines: impl Iterator<Item = Items<'a>>) -> Result<Steps, String> {
    let mut work: Vec<Vec<f64>> = Vec::new();
    let mut times = 0;
    for (number, items) in lines {
        let in_line = |why: String| format!("line {number}: {why}");
        let step = items.and_then(|items| items.into_iter().map(time).collect::<Result<Vec<f64>, String>>()).map_err(in_line)?;
        if let Some(first) = work.first().map(Vec::len).filter(|first| *first != step.len()) {
            return Err(in_line(format!("it has {} numbers, and the first step has {first}: one for each rank", step.len())));
        }
        times += step.len();
        check_times(times).map_err(in_line)?;
        work.push(step);
    }
    Ok(Steps { numbers: (0..work.len() as u64).collect(), work, skipped: Vec::new() })
}

/// Columns in any order, rows in any order. Steps keep their numbers, and those without a row are none. A missing entry of a rank in a step is
/// 0; several times of one rank and step are added. Every rank has some row: if its numbers began at 1, rank 0 would be an idle one.
fn of_table<'a>(mut lines: impl Iterator<Item = Items<'a>>) -> Result<Steps, String> {
    let none = Steps { work: Vec::new(), numbers: Vec::new(), skipped: Vec::new() };
    let Some((number, header)) = lines.next() else { return Ok(none) };
    let header = header.map_err(|why| format!("line {number}: {why}"))?;
    let column = |name: &str| {
        let place = header.iter().position(|column| column.eq_ignore_ascii_case(name));
        place.ok_or_else(|| format!("line {number}: the columns are step, rank and work; {name} is missing"))
    };
    let (step, rank, amount) = (column("step")?, column("rank")?, column("work")?);
    let mut rows: Vec<(u64, usize, f64)> = Vec::new();
    let (mut numbers, mut named, mut ranks) = (BTreeSet::new(), BTreeSet::new(), 0);
    for (number, items) in lines {
        let in_line = |why: String| format!("line {number}: {why}");
        let items = items.map_err(in_line)?;
        if items.len() != header.len() {
            return Err(in_line(format!("it has {} values, and the header {} columns", items.len(), header.len())));
        }
        let no_number = |place: usize, what: &str| in_line(format!("{} is no number of a {what}, from 0", shown(items[place])));
        let step = items[step].parse::<u64>().map_err(|_| no_number(step, "step"))?;
        let rank = items[rank].parse::<u32>().ok().filter(|rank| *rank < u32::MAX).ok_or_else(|| no_number(rank, "rank"))? as usize;
        numbers.insert(step);
        named.insert(rank);
        ranks = ranks.max(rank + 1);
        check_times(numbers.len().saturating_mul(ranks)).map_err(in_line)?;
        rows.push((step, rank, time(items[amount]).map_err(in_line)?));
    }
    if let Some(missing) = (0..ranks).find(|rank| !named.contains(rank)) {
        let last = ranks - 1;
        return Err(format!(
            "there is no row of rank {missing}, though there is one of rank {last}; a rank without work has rows of work 0"
        ));
    }
    let mut work: BTreeMap<u64, Vec<f64>> = numbers.iter().map(|step| (*step, vec![0.0; ranks])).collect();
    for (step, rank, time) in rows {
        if let Some(times) = work.get_mut(&step) {
            times[rank] += time;
        }
    }
    Ok(Steps { numbers: numbers.into_iter().collect(), work: work.into_values().collect(), skipped: Vec::new() })
}

fn check_times(times: usize) -> Result<(), String> {
    match times > MOST_TIMES {
        true => Err(format!("there are more than {MOST_TIMES} times, of all ranks in all steps together")),
        false => Ok(()),
    }
}

fn time(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(time) if !time.is_finite() => Err(format!("{} is not a finite number", shown(text))),
        Ok(time) if time < 0.0 => Err(format!("{} is negative", shown(text))),
        Ok(time) => Ok(time),
        Err(_) => Err(format!("{} is no number", shown(text))),
    }
}

fn shown(text: &str) -> String {
    format!("'{}'", shortened(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(text: &str) -> Result<Vec<Vec<f64>>, String> {
        of_text(text).map(|steps| steps.work)
    }

    #[test]
    fn a_line_is_a_step() {
        let expected = Ok(vec![vec![1.0, 2.5], vec![3.0, 0.0]]);
        assert_eq!(work("# work\n1 2.5\n\n3,0 # the second\n"), expected);
        assert_eq!(work("1;2.5\r\n3;0\r\n"), expected);
        assert_eq!(work("1e3"), Ok(vec![vec![1000.0]]));
    }

    #[test]
    fn a_table_has_its_columns_in_any_order() {
        assert_eq!(work("rank,step,work,name\n1,0,2.5,a\n0,1,3,b\n0,0,0.5,c\n0,0,0.5,d\n"), Ok(vec![vec![1.0, 2.5], vec![3.0, 0.0]]));
    }

    #[test]
    fn steps_of_a_table_keep_their_numbers() {
        let table = |steps: [u64; 3]| {
            let row = |at: usize| format!("{0},0,{at}.5\n{0},1,2\n", steps[at]);
            of_text(&format!("step,rank,work\n{}", [0, 1, 2].map(row).concat())).unwrap()
        };
        let from_zero = table([0, 1, 2]);
        for numbers in [[0, 1, 2], [10, 20, 30], [1, 2, 3], [7, 5_000_000_000, u64::MAX]] {
            let steps = table(numbers);
            assert_eq!((steps.numbers, steps.work), (numbers.to_vec(), from_zero.work.clone()));
        }
        // In any order, and with a rank that has no row in one of them.
        let steps = of_text("step,rank,work\n30,0,3\n10,1,1\n10,0,2\n").unwrap();
        assert_eq!((steps.numbers, steps.work), (vec![10, 30], vec![vec![2.0, 1.0], vec![3.0, 0.0]]));
    }

    #[test]
    fn what_is_wrong_is_said_with_the_line() {
        for (text, why) in [
            ("", "there is no step in it"),
            ("# nothing\n", "there is no step in it"),
            ("step,rank,work\n", "there is no step in it"),
            ("1 2\n3\n", "line 2: it has 1 numbers, and the first step has 2: one for each rank"),
            ("1 -2\n", "line 1: '-2' is negative"),
            ("1 2\nNaN 1\n", "line 2: 'NaN' is not a finite number"),
            ("NaN 1\n", "line 1: 'NaN' is not a finite number"),
            ("1 inf\n", "line 1: 'inf' is not a finite number"),
            ("1 1e999\n", "line 1: '1e999' is not a finite number"),
            ("1 2x\n", "line 1: '2x' is no number"),
            ("1,5;2\n", "line 1: commas and semicolons: one of them is to separate numbers, and fractions have a point"),
            ("step,rank\n0,0\n", "line 1: the columns are step, rank and work; work is missing"),
            ("step,rank,work\n0,0\n", "line 2: it has 2 values, and the header 3 columns"),
            ("step,rank,work\n0,-1,2\n", "line 2: '-1' is no number of a rank, from 0"),
            ("step,rank,work\n-1,0,2\n", "line 2: '-1' is no number of a step, from 0"),
            ("step,rank,work\n0,0,-2\n", "line 2: '-2' is negative"),
            (
                "step,rank,work\n0,1,1\n0,2,1\n",
                "there is no row of rank 0, though there is one of rank 2; a rank without work has rows of work 0",
            ),
            (
                "step,rank,work\n4000000000,4000000000,1\n",
                "line 2: there are more than 134217728 times, of all ranks in all steps together",
            ),
        ] {
            assert_eq!(work(text), Err(why.to_string()), "{text}");
        }
    }

    #[test]
    fn files_are_named() {
        let said = |named: &str| read(named).unwrap_err().to_string();
        assert_eq!(said("lbaf:"), "series lbaf:: the name of a folder is missing");
        assert!(said("/no/such").starts_with("series /no/such: it cannot be read: No such file"), "{}", said("/no/such"));
        assert!(said("lbaf:/no/such").starts_with("series lbaf:/no/such: No such file"), "{}", said("lbaf:/no/such"));
        let file = crate::workload::testing::file(b"1 x\n");
        assert!(said(&file.to_string_lossy()).ends_with(": line 1: 'x' is no number"));
    }
}
