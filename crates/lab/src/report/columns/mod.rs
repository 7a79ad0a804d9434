//! Columns of tables. A column is declared once: its key in CSV, and its heading, unit and form for people. CSV files, tables on terminals and
//! tables on HTML pages are all made of these declarations, which are in this folder, one file for each kind of record.
//!
//! To add a column, fill a field of the record and add one line to its list.

mod compare;
mod division;
mod nodes;
mod probe;
mod reproduction;
mod run;
mod spread;
mod when;

pub(super) use compare::kind_of;
pub(super) use division::{LayerRow, ProcessorRow};
pub(super) use nodes::PhaseNode;
pub(super) use probe::link_kind;
pub(super) use run::RankTimes;
pub(super) use spread::{RankShare, SpreadLink};

/// A row of a table.
pub trait Tabular: Sized {
    /// All columns, in the order of the CSV file. Those with a heading are shown to people, in the same order.
    fn columns() -> Vec<Column<Self>>;
}

/// One column of a table of `R`.
pub struct Column<R> {
    /// Name in CSV; `None` if people only see the column.
    key: Option<&'static str>,
    value: fn(&R) -> String,
    shown: Option<Shown<R>>,
    /// Whether it is in CSV only where people see it.
    only_then: bool,
}

/// The form of a column for people.
struct Shown<R> {
    /// May have line breaks, and soft hyphens (U+00AD) where a narrow table breaks words.
    heading: &'static str,
    unit: &'static str,
    about: &'static str,
    cell: fn(&R) -> String,
    when: fn(&[R]) -> bool,
    is_text: bool,
}

impl<R> Column<R> {
    /// A column in CSV, which people do not see unless it is given a [`heading`](Column::heading).
    pub fn new(key: &'static str, value: fn(&R) -> String) -> Column<R> {
        Column { key: Some(key), value, shown: None, only_then: false }
    }

    /// A column that is not in CSV.
    pub fn shown(heading: &'static str, cell: fn(&R) -> String) -> Column<R> {
        Column { key: None, value: cell, shown: None, only_then: false }.heading(heading)
    }

    /// Shows the column to people, in the form of CSV unless [`reads`](Column::reads) sets another.
    pub fn heading(mut self, heading: &'static str) -> Column<R> {
        self.shown = Some(Shown { heading, unit: "", about: "", cell: self.value, when: |_| true, is_text: false });
        self
    }

    fn but(mut self, change: impl FnOnce(&mut Shown<R>)) -> Column<R> {
        if let Some(shown) = &mut self.shown {
            change(shown);
        }
        self
    }

    /// The form for people.
    pub fn reads(self, cell: fn(&R) -> String) -> Column<R> {
        self.but(|shown| shown.cell = cell)
    }

    /// Unit in the form for people, where all cells have the same.
    pub fn unit(self, unit: &'static str) -> Column<R> {
        self.but(|shown| shown.unit = unit)
    }

    /// A line that explains the column: in the help of the command, and where a pointer rests on the heading in a page.
    pub fn about(self, about: &'static str) -> Column<R> {
        self.but(|shown| shown.about = about)
    }

    /// Shows the column only for rows of which this is true.
    pub fn when(self, when: fn(&[R]) -> bool) -> Column<R> {
        self.but(|shown| shown.when = when)
    }

    /// Leaves the column out of CSV, too, where people don't see it.
    pub fn only_then(mut self) -> Column<R> {
        self.only_then = true;
        self
    }

    /// Aligns the column to the left, as text is.
    pub fn left(self) -> Column<R> {
        self.but(|shown| shown.is_text = true)
    }
}

/// A cell of a CSV file. Missing values are left empty.
pub(super) trait Value {
    fn csv(&self) -> String;
}

macro_rules! values {
    ($($kind:ty),*) => {
        $(impl Value for $kind {
            fn csv(&self) -> String {
                self.to_string()
            }
        })*
    };
}

values!(
    bool,
    u32,
    u64,
    u128,
    usize,
    f64,
    String,
    crate::workload::graphs::Number,
    crate::experiment::LoadUnit,
    equipoise::topology::RankId,
    crate::experiment::LoadSource
);

impl<T: Value> Value for Option<T> {
    fn csv(&self) -> String {
        self.as_ref().map(T::csv).unwrap_or_default()
    }
}

/// The header of a CSV file and its rows.
pub(super) fn csv<'a, R: Tabular + 'a>(rows: impl Iterator<Item = &'a R>) -> (Vec<&'static str>, impl Iterator<Item = Vec<String>>) {
    let rows: Vec<&R> = rows.collect();
    let is_written = |column: &Column<R>| {
        let is_seen = |shown: &Shown<R>| rows.iter().any(|row| (shown.when)(std::slice::from_ref(*row)));
        !column.only_then || column.shown.as_ref().is_some_and(is_seen)
    };
    let columns: Vec<_> = R::columns().into_iter().filter(is_written).filter_map(|column| Some((column.key?, column.value))).collect();
    let keys = columns.iter().map(|(key, _)| *key).collect();
    (keys, rows.into_iter().map(move |row| columns.iter().map(|(_, value)| value(row)).collect()))
}

/// A heading as people see it.
pub(super) struct Heading {
    heading: &'static str,
    unit: &'static str,
    pub about: &'static str,
    pub is_text: bool,
}

impl Heading {
    /// In several lines, for a narrow column.
    pub fn in_lines(&self) -> String {
        let mut lines = self.heading.replace('\u{ad}', "-\n");
        if !self.unit.is_empty() {
            lines.push('\n');
            lines.push_str(self.unit);
        }
        lines
    }

    /// In one line, with the unit behind it.
    pub fn in_one_line(&self) -> String {
        let line = self.heading.replace('\u{ad}', "").replace("-\n", "-").replace("/\n", "/").replace('\n', " ");
        if self.unit.is_empty() { line } else { format!("{line}, {}", self.unit) }
    }
}

/// The headings and cells of the columns that people see for these rows.
pub(super) fn shown<R: Tabular>(rows: &[R]) -> (Vec<Heading>, Vec<Vec<String>>) {
    let columns: Vec<_> = R::columns().into_iter().filter_map(|column| column.shown).filter(|shown| (shown.when)(rows)).collect();
    let heading = |shown: &Shown<R>| Heading { heading: shown.heading, unit: shown.unit, about: shown.about, is_text: shown.is_text };
    let cells = rows.iter().map(|row| columns.iter().map(|shown| (shown.cell)(row)).collect()).collect();
    (columns.iter().map(heading).collect(), cells)
}

/// Legend of the explained columns, a line each: `  heading       explanation`.
pub fn legend<R: Tabular>() -> String {
    let explained: Vec<_> = R::columns().into_iter().filter_map(|column| column.shown).filter(|shown| !shown.about.is_empty()).collect();
    let line = |shown: Shown<R>| {
        let heading = Heading { heading: shown.heading, unit: "", about: shown.about, is_text: shown.is_text }.in_one_line();
        format!("  {heading:<15}{}\n", shown.about.replace('\n', &format!("\n{:17}", "")))
    };
    explained.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{CompareRecord, RunRecord};

    /// Two numbers, of which the second may be missing.
    struct Pair(u64, Option<u64>);

    impl Tabular for Pair {
        fn columns() -> Vec<Column<Pair>> {
            let new = Column::<Pair>::new;
            vec![
                new("first", |pair| pair.0.csv())
                    .heading("the\u{ad}first")
                    .reads(|pair| format!("{} or so", pair.0))
                    .unit("ms")
                    .about("one\ntwo"),
                Column::shown("both/\nsum", |pair: &Pair| (pair.0 + pair.1.unwrap_or(0)).to_string()).left(),
                new("second", |pair| pair.1.csv()).heading("second").when(|pairs| pairs.iter().any(|pair| pair.1.is_some())),
            ]
        }
    }

    #[test]
    fn programs_get_values_and_people_forms() {
        let (keys, rows) = csv([Pair(1, Some(2)), Pair(3, None)].iter());
        assert_eq!(
            (keys, rows.collect::<Vec<_>>()),
            (vec!["first", "second"], vec![vec!["1".to_string(), "2".into()], vec!["3".into(), String::new()]])
        );
        let (headings, cells) = shown(&[Pair(1, Some(2))]);
        assert_eq!(headings.iter().map(Heading::in_one_line).collect::<Vec<_>>(), ["thefirst, ms", "both/sum", "second"]);
        assert_eq!(headings.iter().map(Heading::in_lines).collect::<Vec<_>>(), ["the-\nfirst\nms", "both/\nsum", "second"]);
        assert_eq!(cells, [["1 or so", "3", "2"]]);
        let (headings, _) = shown(&[Pair(1, None)]);
        assert_eq!(headings.len(), 2);
        assert_eq!(legend::<Pair>(), "  thefirst       one\n                 two\n");
    }

    #[test]
    fn no_two_columns_of_a_record_have_one_name() {
        fn check<R: Tabular>() {
            let mut keys: Vec<_> = R::columns().iter().filter_map(|column| column.key).collect();
            let mut headings: Vec<_> = R::columns().iter().filter_map(|column| Some(column.shown.as_ref()?.heading)).collect();
            let counts = (keys.len(), headings.len());
            keys.sort_unstable();
            keys.dedup();
            headings.sort_unstable();
            headings.dedup();
            assert_eq!((keys.len(), headings.len()), counts);
        }
        check::<CompareRecord>();
        check::<RunRecord>();
    }
}
