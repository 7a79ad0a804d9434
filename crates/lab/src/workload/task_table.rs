//! Tasks in a table of comma-separated values: `rank,work,bytes`, a line for each task.
//!
//! The first line names the columns, in any order; `bytes` may be missing. Columns `x`, `y` and `z` say where a task lies, for balancers by place;
//! those that are missing are 0. Columns of any name are further weights of the tasks, where they are asked for. Ranks are numbered from 0, the largest that is named is the last. Work is a whole number of units, whatever they
//! are; or a time, where the unit is known (`FILE.csv,unit=us`, or a column `work_us`), and then it may have a fraction. Values may stand in quotes.
//! Semicolons or tabs may stand instead of commas. What follows a `#` at the beginning of a line is a comment.

use std::io::Read;
use std::path::Path;

use super::decimal::Decimal;
use super::items::{shortened, whole};
use super::measured::TASKS;
use super::measured::{MeasuredTask, MeasuredTasks};
use super::text;
use super::time::TimeUnit;
use equipoise::error::{Error, Result};
use equipoise::load::{Column, Place};
use equipoise::names;
use equipoise::topology::{MAX_NODES, RankId};

/// Reads a table; `unit` is what the work is given in, if it is a time, and `further` names columns that may hold other weights of the tasks.
///
/// # Errors
/// If it can't be read, or a line is not as it should be; the sentence names the file and the line.
pub fn read(path: &Path, unit: Option<TimeUnit>, further: &[String]) -> Result<MeasuredTasks> {
    let shown = names::shown(path);
    let text = text::read(path).map_err(|why| Error::unreadable(TASKS, format!(" {shown}: the file cannot be read"), why))?;
    parse(&text, unit, further).map_err(|why| Error::input(TASKS, format!(" {shown}{why}")))
}

/// A record and the number of its first line.
type Line = (u64, Vec<String>);

/// The columns of a table, by their places.
struct Columns {
    count: usize,
    rank: usize,
    work: usize,
    bytes: Option<usize>,
    /// Columns of x, y and z; empty if there are none.
    axes: Vec<(usize, &'static str, usize)>,
    /// Other weights: their names and places.
    further: Vec<(String, usize)>,
    /// Unit of work by the column's name.
    unit: Option<TimeUnit>,
}

/// The same from a text; errors go on after the file's name.
fn parse(text: &str, unit: Option<TimeUnit>, further: &[String]) -> Result<MeasuredTasks, String> {
    let mut lines = records(text)?.into_iter();
    let columns = Columns::of(lines.next().unwrap_or((1, Vec::new())), further)?;
    let unit = match (unit, columns.unit) {
        (Some(given), Some(named)) if given != named => {
            return Err(format!(": its column says that work is in {named}, and unit={given} something else"));
        }
        (given, named) => given.or(named),
    };
    let mut tasks = Vec::new();
    let mut works = Vec::new();
    let mut places: Vec<(u32, Place)> = Vec::new();
    let mut weights: Vec<(u32, Vec<u64>)> = Vec::new();
    for (number, values) in lines {
        let at = |why: String| format!(", line {number}: {why}");
        if values.len() != columns.count {
            return Err(at(format!("{} values for the {} columns", values.len(), columns.count)));
        }
        let value = |name: &str, column: usize| {
            let value = values[column].as_str();
            // A comma in a number means thousands to some and a fraction to others.
            if value.contains(',') && value.bytes().all(|byte| byte.is_ascii_digit() || b",.-".contains(&byte)) {
                return Err(at(format!(
                    "{name}: \"{}\" has a comma in it; write thousands without, and fractions with a point",
                    shortened(value)
                )));
            }
            Ok(value)
        };
        let number_in = |name: &str, column: usize| whole(value(name, column)?).map_err(|why| at(format!("{name}: {why}")));
        let on = number_in("rank", columns.rank)?;
        if on >= u64::from(MAX_NODES) {
            return Err(at(format!("rank: {on} is beyond the {MAX_NODES} ranks that there can be")));
        }
        let bytes = columns.bytes.map_or(Ok(0), |column| number_in("bytes", column))?;
        let work = value("work", columns.work)?;
        works.push((number, read_work(work, unit).map_err(|why| at(format!("work: {why}")))?));
        let mut place = [0.0; 3];
        for (axis, name, column) in &columns.axes {
            let text = value(name, *column)?;
            place[*axis] = text.parse().ok().filter(|number: &f64| number.is_finite()).ok_or_else(|| {
                at(format!(
                    "{name}: {}",
                    if text.is_empty() { "a number is missing".into() } else { format!("\"{}\" is not a finite number", shortened(text)) }
                ))
            })?;
        }
        let weight = |(name, column): &(String, usize)| number_in(name, *column);
        weights.push((on as u32, columns.further.iter().map(weight).collect::<Result<_, _>>()?));
        if !columns.axes.is_empty() {
            places.push((on as u32, place));
        }
        tasks.push(MeasuredTask { rank: RankId::new(on as u32), name: None, work: 0, bytes, pinned: false });
    }
    if tasks.is_empty() {
        return Err(": the table holds no tasks".into());
    }
    let seconds_per_unit = put_in_order(&mut tasks, &works, unit)?;
    let ranks = tasks.last().map_or(0, |task| task.rank.get() + 1);
    // In the order of the tasks.
    places.sort_by_key(|(rank, _)| *rank);
    weights.sort_by_key(|(rank, _)| *rank);
    let of = |(at, (name, _)): (usize, &(String, usize))| Column {
        name: name.clone(),
        weights: weights.iter().map(|(_, weights)| weights[at]).collect(),
    };
    let further = columns.further.iter().enumerate().map(of).collect();
    let places = places.into_iter().map(|(_, place)| place).collect();
    Ok(MeasuredTasks { ranks, tasks, places, communications: Vec::new(), columns: further, left_out: 0, seconds_per_unit })
}

fn read_work(text: &str, unit: Option<TimeUnit>) -> Result<Decimal, String> {
    match (whole(text), unit) {
        (Ok(work), _) => Ok(work.into()),
        (Err(_), Some(_)) => Decimal::parse(text),
        (Err(why), None) if Decimal::parse(text).is_ok() => {
            Err(format!("{why}; fractions are read where the unit is known, as in FILE.csv,unit=us"))
        }
        (Err(why), None) => Err(why),
    }
}

/// Gives the tasks their work, in whole units, and orders them by rank. Returns the seconds that a unit takes, where that is known.
fn put_in_order(tasks: &mut [MeasuredTask], works: &[(u64, Decimal)], unit: Option<TimeUnit>) -> Result<Option<f64>, String> {
    let places = works.iter().map(|(_, work)| work.places()).max().unwrap_or(0);
    let scale = unit.map(|unit| unit.scale(places));
    let factor = scale.as_ref().map_or(1, |scale| scale.factor);
    let mut total = 0u64;
    for (task, (number, work)) in tasks.iter_mut().zip(works) {
        let at = |what: &str| format!(", line {number}: {what} is beyond 2^64 - 1{}", scale.as_ref().map_or("", |scale| scale.words));
        task.work = work.times(factor).ok_or_else(|| at("work: it"))?;
        total = total.checked_add(task.work).ok_or_else(|| at("the work of all tasks together"))?;
    }
    tasks.sort_by_key(|task| task.rank);
    Ok(scale.map(|scale| scale.seconds))
}

impl Columns {
    fn of((line, heads): Line, further: &[String]) -> Result<Columns, String> {
        let at = |why: String| format!(", line {line}: {why}");
        let (mut unit, mut names) = (None, Vec::new());
        for head in &heads {
            let head = head.to_ascii_lowercase();
            let in_unit = unit_of_work(&head);
            unit = unit.or(in_unit);
            names.push(if in_unit.is_some() { "work".to_string() } else { head });
        }
        let column = |name: &str| names.iter().position(|found| found == name);
        let needed = |name: &str| {
            let alone = if names.len() == 1 && names[0].contains(char::is_whitespace) {
                "; commas, semicolons or tabs are to separate the columns"
            } else {
                ""
            };
            column(name).ok_or_else(|| at(format!("there is no column {name}; it is to name rank, work and, if need be, bytes{alone}")))
        };
        let rank = needed("rank")?;
        // Without a column of that name the first of the others is the work.
        let is_further = |name: &&String| !["rank", "work", "bytes", "x", "y", "z"].contains(&name.as_str());
        let others = further.iter().filter(is_further).map(|name| Ok((name.clone(), needed(name)?))).collect::<Result<Vec<_>, String>>()?;
        let work = match (column("work"), others.first()) {
            (None, Some((_, first))) => *first,
            _ => needed("work")?,
        };
        let axes = (0..).zip(["x", "y", "z"]).filter_map(|(axis, name)| Some((axis, name, column(name)?))).collect();
        let columns = Columns { count: names.len(), rank, work, bytes: column("bytes"), axes, further: others, unit };
        for (index, name) in names.iter().enumerate() {
            if is_further(&name) && !further.contains(name) {
                return Err(at(format!("the column \"{}\" is unknown; known are rank, work, bytes, x, y and z", shortened(name))));
            }
            if names[..index].contains(name) {
                return Err(at(format!("there are two columns {name}")));
            }
        }
        Ok(columns)
    }
}

/// The unit that a column's name gives, as `work_us`, `work (us)` and `work[us]` do. What goes on with a letter is another name: `works` are not seconds.
fn unit_of_work(head: &str) -> Option<TimeUnit> {
    let rest = head.strip_prefix("work")?;
    let parted = rest.starts_with(|c: char| c.is_whitespace() || ['_', '(', '['].contains(&c));
    rest.trim().trim_matches(['_', '(', ')', '[', ']']).parse().ok().filter(|_| parted)
}

/// The line on which a record begins: its position is before the empty lines and comments in front of it.
fn line_of(text: &str, position: &csv::Position) -> u64 {
    let from = usize::try_from(position.byte()).ok().and_then(|byte| text.get(byte..)).unwrap_or_default();
    position.line() + from.lines().take_while(|line| line.is_empty() || line.starts_with('#')).count() as u64
}

/// A line behind the last, which no table has.
const END: &str = "\n\u{1}end\u{1}\n";

/// The records of a table whose values are separated by what separates those of its first line.
fn records(text: &str) -> Result<Vec<Line>, String> {
    let first = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#')).unwrap_or_default();
    let separator = [b',', b';', b'\t'].into_iter().find(|separator| first.as_bytes().contains(separator)).unwrap_or(b',');
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .delimiter(separator)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes().chain(END.as_bytes()));
    let mut records: Vec<Line> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|why| format!(": {why}"))?;
        let number = record.position().map_or(0, |position| line_of(text, position));
        let values: Vec<String> = record.iter().map(str::to_string).collect();
        // A line of blanks alone is empty.
        if values != [""] {
            records.push((number, values));
        }
    }
    // A quote that is not closed takes in all that follows, and so the end.
    match records.pop() {
        Some((_, values)) if values == [END.trim()] => Ok(records),
        last => Err(format!(", line {}: a quote is not closed", last.map_or(0, |(line, _)| line))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(run: &MeasuredTasks) -> Vec<(u32, u64, u64)> {
        run.tasks.iter().map(|task| (task.rank.get(), task.work, task.bytes)).collect()
    }

    #[test]
    fn columns_may_be_in_any_order() {
        let run = parse("work, rank ,bytes\n# measured on a Tuesday\n7,2,100\n9,0,0\n\n  \n1,2,5\n", None, &[]).unwrap();
        assert_eq!((run.ranks, rows(&run), run.seconds_per_unit), (3, vec![(0, 9, 0), (2, 7, 100), (2, 1, 5)], None));
        assert_eq!(parse("rank,work\n0,18446744073709551615\n", None, &[]).unwrap().tasks[0].work, u64::MAX);
    }

    #[test]
    fn a_quote_is_closed_and_a_column_is_called_work() {
        for (text, why) in [
            ("rank,work\n0,1\n0,\"2", ", line 3: a quote is not closed"),
            ("rank,work\n0,1\n0,\"2\n", ", line 3: a quote is not closed"),
            ("rank,work\n0,\"1\n0,2\n", ", line 2: a quote is not closed"),
            ("rank,works\n0,1\n", ", line 1: there is no column work; it is to name rank, work and, if need be, bytes"),
            ("rank,workus\n0,1\n", ", line 1: there is no column work; it is to name rank, work and, if need be, bytes"),
        ] {
            assert_eq!(parse(text, None, &[]).unwrap_err(), why, "{text:?}");
        }
        for head in ["work_us", "work (us)", "work[us]", "Work us"] {
            let run = parse(&format!("rank,{head}\n0,\"7\"\n"), None, &[]).unwrap();
            assert_eq!((run.tasks[0].work, run.seconds_per_unit), (7000, Some(1e-9)), "{head}");
        }
    }

    #[test]
    fn tasks_may_have_places() {
        let run = parse("z,rank,work,x\n1,2,7,0.5\n-2,0,9,1e3\n3,2,1,4\n", None, &[]).unwrap();
        assert_eq!(run.places, [[1e3, 0.0, -2.0], [0.5, 0.0, 1.0], [4.0, 0.0, 3.0]]);
        assert_eq!(run.queue(RankId::new(2), 3).unwrap().places(), Some([[0.5, 0.0, 1.0], [4.0, 0.0, 3.0]].as_slice()));
        assert_eq!(parse("rank,work\n0,1\n", None, &[]).unwrap().queue(RankId::FIRST, 1).unwrap().places(), None);
    }

    #[test]
    fn further_columns_are_weights_where_they_are_asked_for() {
        let named = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let run = parse("rank,cells,work,faces\n1,2,7,5\n0,3,9,0\n", None, &named(&["work", "faces", "cells"])).unwrap();
        assert_eq!(run.tasks.iter().map(|task| task.work).collect::<Vec<_>>(), [9, 7]);
        let columns: Vec<_> = run.columns.iter().map(|column| (column.name.as_str(), column.weights.as_slice())).collect();
        assert_eq!(columns, [("faces", [0, 5].as_slice()), ("cells", [3, 2].as_slice())]);
        // Without a column work the first that is asked for is the work.
        let run = parse("cells,faces,rank\n2,7,0\n", None, &named(&["faces", "cells"])).unwrap();
        assert_eq!(run.tasks[0].work, 7);
        for (text, why) in [
            ("rank,work\n0,1\n", ", line 1: there is no column cells; it is to name rank, work and, if need be, bytes"),
            ("rank,work,cells\n0,1,x\n", ", line 2: cells: \"x\" is not a whole number"),
            ("rank,work,cells,odd\n0,1,2,3\n", ", line 1: the column \"odd\" is unknown; known are rank, work, bytes, x, y and z"),
        ] {
            assert_eq!(parse(text, None, &named(&["cells"])).unwrap_err(), why, "{text:?}");
        }
    }

    #[test]
    fn quotes_and_other_separators_are_read() {
        for text in ["\"rank\",\"work\"\r\n\"1\",\"20\"\r\n0,3\r\n", "rank;work\n1;20\n0;3\n", "rank\twork\n1\t20\n0\t3\n"] {
            assert_eq!(rows(&parse(text, None, &[]).unwrap()), [(0, 3, 0), (1, 20, 0)], "{text:?}");
        }
    }

    #[test]
    fn times_have_units_and_fractions() {
        let read = |text: &str, unit: Option<&str>| {
            let run = parse(text, unit.map(|unit| unit.parse().unwrap()), &[]).unwrap();
            (run.tasks.iter().map(|task| task.work).collect::<Vec<_>>(), run.seconds_per_unit)
        };
        // Nanoseconds, wherever that is fine enough.
        assert_eq!(read("rank,work\n0,1.5\n0,20\n", Some("us")), (vec![1500, 20_000], Some(1e-9)));
        assert_eq!(read("rank,work_ms\n0,0.000001\n", None), (vec![1], Some(1e-9)));
        assert_eq!(read("rank,Work (s)\n0,2e-3\n", Some("s")), (vec![2_000_000], Some(1e-9)));
        assert_eq!(read("rank,work\n0,7\n", Some("ns")), (vec![7], Some(1e-9)));
        assert_eq!(read("rank,work\n0,0.25\n0,3\n", Some("ns")), (vec![25, 300], Some(1e-11)));
        assert_eq!(read("rank,work[us]\n0,0.0001\n", None), (vec![1], Some(1e-10)));
    }

    #[test]
    fn wrong_tables_are_refused_with_their_line() {
        for (text, why) in [
            ("rank,work,bytes\n0,1,2\n1,-3,0\n", ", line 3: work: -3 is negative"),
            (
                "rank,work,bytes\n0,1.5,2\n",
                ", line 2: work: \"1.5\" is not a whole number; fractions are read where the unit is known, as in FILE.csv,unit=us",
            ),
            ("rank,work,bytes\n0,1,2\n\n0,1\n", ", line 4: 2 values for the 3 columns"),
            ("\r\nrank,work\r\n# a\r\n\r\n0,1\r\n\r\n0\r\n", ", line 7: 1 values for the 2 columns"),
            ("rank,work,bytes\nx,1,2\n", ", line 2: rank: \"x\" is not a whole number"),
            ("rank,work\n4294967296,1\n", ", line 2: rank: 4294967296 is beyond the 1073741824 ranks that there can be"),
            ("rank,time\n0,1\n", ", line 1: there is no column work; it is to name rank, work and, if need be, bytes"),
            (
                "rank work\n0 1\n",
                ", line 1: there is no column rank; it is to name rank, work and, if need be, bytes; commas, semicolons or tabs are to separate the columns",
            ),
            ("rank,work,colour\n0,1,2\n", ", line 1: the column \"colour\" is unknown; known are rank, work, bytes, x, y and z"),
            ("# two\nrank,work,rank\n0,1,2\n", ", line 2: there are two columns rank"),
            ("rank,work,work_us\n0,1,2\n", ", line 1: there are two columns work"),
            ("rank,work\n0,\n", ", line 2: work: a number is missing"),
            (
                "rank,work\n0,\"1,000\"\n",
                ", line 2: work: \"1,000\" has a comma in it; write thousands without, and fractions with a point",
            ),
            ("rank;work\n0;1,5\n", ", line 2: work: \"1,5\" has a comma in it; write thousands without, and fractions with a point"),
            ("rank,work\n0,18446744073709551615\n0,1\n", ", line 3: the work of all tasks together is beyond 2^64 - 1"),
            ("rank,work_s\n0,1\n0,18446744074\n", ", line 3: work: it is beyond 2^64 - 1 ns"),
            ("rank,work_s\n0,0.0000000001\n", ", line 2: work: 0.0000000001 has more than 9 digits after the point"),
            ("rank,work_s\n0,nan\n", ", line 2: work: \"nan\" is not a finite number"),
            ("rank,work,x\n0,1,inf\n", ", line 2: x: \"inf\" is not a finite number"),
            ("rank,work,x,y\n0,1,2,\n", ", line 2: y: a number is missing"),
            ("rank,work,bytes\n", ": the table holds no tasks"),
            ("", ", line 1: there is no column rank; it is to name rank, work and, if need be, bytes"),
        ] {
            assert_eq!(parse(text, None, &[]).unwrap_err(), why, "{text:?}");
        }
        let why = parse("rank,work_us\n0,1\n", Some(TimeUnit::Seconds), &[]).unwrap_err();
        assert_eq!(why, ": its column says that work is in us, and unit=s something else");
        let missing = read(Path::new("/no/such.csv"), None, &[]).unwrap_err().to_string();
        assert!(missing.starts_with("tasks /no/such.csv: the file cannot be read: No such"), "{missing}");
    }
}
