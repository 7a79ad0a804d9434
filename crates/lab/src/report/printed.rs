//! The numbers that the papers print, each with ours: for a page, and for the documentation.

use std::fmt::Write;

use crate::experiment::papers::claims::short;
use crate::experiment::papers::{Item, Point};

/// Numbers that belong together, such as a column of a table.
#[derive(Debug)]
pub struct PrintedRow {
    pub item: Item,
    /// Their meaning, and their places.
    pub what: String,
    pub paper: String,
    pub ours: String,
}

/// A row for each curve with printed numbers. Points whose names end with a comma and a number are one curve with places of these numbers.
pub fn rows(points: &[&Point]) -> Vec<PrintedRow> {
    let mut curves: Vec<((Item, &str), Vec<Placed>)> = Vec::new();
    for point in points.iter().filter(|point| point.printed.is_some()) {
        let named = point.curve.rsplit_once(", ").and_then(|(name, place)| Some((name, place.parse().ok()?)));
        let (name, place) = named.unwrap_or((&point.curve, point.x));
        match curves.iter_mut().find(|(curve, _)| *curve == (point.item, name)) {
            Some((_, list)) => list.push((place, point)),
            None => curves.push(((point.item, name), vec![(place, point)])),
        }
    }
    curves.into_iter().map(|((item, name), list)| row(item, name, &list)).collect()
}

/// A point and its place.
type Placed<'a> = (f64, &'a Point);

fn row(item: Item, name: &str, list: &[Placed]) -> PrintedRow {
    let places: Vec<f64> = list.iter().map(|(place, _)| *place).collect();
    let is_named = list.iter().any(|(_, point)| point.curve != name);
    let at = if is_named { ", " } else { " at " };
    let in_turn = places.windows(2).all(|pair| pair[1] == pair[0] + 1.0);
    let what = match places.as_slice() {
        [_] if !is_named => name.to_string(),
        [first, .., last] if in_turn => format!("{name}{at}{first} to {last}"),
        places => format!("{name}{at}{}", places.iter().map(f64::to_string).collect::<Vec<_>>().join(", ")),
    };
    let texts = |text: fn(&Point) -> String| list.iter().map(|(_, point)| text(point)).collect::<Vec<_>>().join(", ");
    let paper = texts(|point| point.printed.map(as_printed).unwrap_or_default());
    PrintedRow { item, what, paper, ours: texts(|point| short(point.value)) }
}

/// A printed number with all its digits; a fraction such as 7/15 is shortened.
pub(super) fn as_printed(number: f64) -> String {
    let text = number.to_string();
    if text.len() <= 8 { text } else { short(number) }
}

/// The same as Markdown.
pub fn markdown(points: &[&Point]) -> String {
    let mut out = String::from("| where | what | paper | ours |\n|---|---|---|---|\n");
    for PrintedRow { item, what, paper, ours } in rows(points) {
        let ours = if ours == paper { "the same" } else { &ours };
        let _ = writeln!(out, "| {item} | {what} | {paper} | {ours} |");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::papers::{Effort, Measuring, Paper, measure};

    #[test]
    fn columns_of_a_table_are_rows_and_all_printed_numbers_are_there() {
        let wanted = [Item::Table(2), Item::Table(5), Item::Table(6)];
        let jobs: Vec<_> = Paper::Psts.study().jobs.into_iter().filter(|job| wanted.contains(&job.item)).collect();
        let points = measure(Paper::Psts, &jobs, &Measuring::new(Effort::Cases(2), 1), |_| {}).unwrap().0;
        let rows = rows(&points.iter().collect::<Vec<_>>());
        let find = |item: Item, what: &str| rows.iter().find(|row| row.item == item && row.what == what).unwrap();
        assert_eq!(find(Item::Table(2), "powers before, 1 to 6").paper, "0, 3, 7, 12, 14, 15");
        assert_eq!(find(Item::Table(2), "powers before, 1 to 6").ours, "0, 3, 7, 12, 14, 15");
        assert_eq!(find(Item::Table(2), "tasks of the row, 1").paper, "1000");
        assert_eq!(find(Item::Table(5), "part of row 1's power before, 1 to 6").paper, "0, 0.15, 0.35, 0.6, 0.7, 0.75");
        assert_eq!(find(Item::Table(5), "v22's unit 100 lands on node").paper, "2");
        assert_eq!(find(Item::Table(6), "d > 1 at 2, 4, 8, 16, 32, 64").paper, "1.0057, 0.2058, 0.2979, 1.6069, 2.4228, 2.8701");
        let numbers: usize = rows.iter().map(|row| row.paper.split(", ").count()).sum();
        assert_eq!(numbers, points.iter().filter(|point| point.printed.is_some()).count());
    }
}
