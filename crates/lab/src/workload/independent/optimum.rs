//! The minimum makespan of a matrix of costs, if it is known: a number, or a line of a collection's table.

use std::path::{Path, PathBuf};

use crate::workload::text;
use equipoise::error::Result;
use equipoise::load::{CYCLE, Cost, MOST};
use equipoise::names;
use equipoise::spec::{InvalidSpec, Options};

/// Columns that may name the matrix, and that may say its optimum.
const NAMES: [&str; 3] = ["file", "name", "instance"];
const VALUES: [&str; 3] = ["optimum", "best_known", "best"];

/// Parsed `optimum=`.
#[derive(Clone, Debug, PartialEq)]
pub enum Optimum {
    Known(Cost),
    /// A table with a line for this matrix, whose file's name, with or without its ending, stands in it.
    Table(PathBuf),
}

impl Optimum {
    /// The option, if it is given.
    ///
    /// # Errors
    /// If it is no number of cycles that may be.
    pub fn read(options: &mut Options<'_>) -> Result<Option<Optimum>, InvalidSpec> {
        let Some(text) = options.value("optimum")? else { return Ok(None) };
        let wrong = || options.wrong("optimum", text, "a number of cycles or the name of a file");
        match text.parse::<f64>() {
            Ok(cycles) => cost(cycles).map(|cost| Some(Optimum::Known(cost))).ok_or_else(wrong),
            Err(_) if text.is_empty() => Err(wrong()),
            Err(_) => Ok(Some(Optimum::Table(names::path(text)))),
        }
    }

    /// The optimum of the matrix in this file; errors go on after the option's name.
    pub fn of(&self, matrix: &Path) -> Result<Cost, String> {
        match self {
            Optimum::Known(cost) => Ok(*cost),
            Optimum::Table(file) => {
                let shown = names::shown(file);
                let table = text::read(file).map_err(|why| format!("optimum={shown}: the file cannot be read: {why}"))?;
                look_up(&table, matrix).map_err(|why| format!("optimum={shown}{why}"))
            }
        }
    }
}

fn cost(cycles: f64) -> Option<Cost> {
    (0.0..=(MOST / CYCLE) as f64).contains(&cycles).then(|| (cycles * CYCLE as f64).round() as Cost)
}

/// The line for a matrix in a table whose first line names its columns; tabs, commas or semicolons between.
fn look_up(table: &str, matrix: &Path) -> Result<Cost, String> {
    let cells = |line: &str| -> Vec<String> { line.split(['\t', ',', ';']).map(|cell| cell.trim().to_string()).collect() };
    let mut lines = (1..).zip(table.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let (first, heads) = lines.next().map(|(number, line)| (number, cells(line))).ok_or(": there is nothing in it")?;
    let column = |names: &[&str]| {
        let place = names.iter().find_map(|name| heads.iter().position(|head| head.eq_ignore_ascii_case(name)));
        place.ok_or_else(|| format!(", line {first}: no column is named {}", names.join(", or ")))
    };
    let (name, value) = (column(&NAMES)?, column(&VALUES)?);
    let meant = [matrix.file_name(), matrix.file_stem()].map(|part| names::shown_argument(part.unwrap_or_default()));
    for (number, line) in lines {
        let cells = cells(line);
        if cells.get(name).is_some_and(|cell| meant.contains(cell)) {
            let given = cells.get(value).map_or("", String::as_str);
            let optimum = given.parse().ok().and_then(cost);
            return optimum.ok_or_else(|| format!(", line {number}: \"{given}\" is no number of cycles"));
        }
    }
    Err(format!(": there is no line for {}, or {}", meant[0], meant[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_table_is_found_by_the_name_of_the_file() {
        let table = "# best known\nfile\tjobs\tbest_known\n1\t100\t117\n11\t100\t30.5\n12\t100\t-\n";
        let of = |file: &str| look_up(table, Path::new(file));
        assert_eq!((of("some/1.txt"), of("11")), (Ok(117 * CYCLE), Ok(61 * CYCLE / 2)));
        assert_eq!(of("12.txt").unwrap_err(), ", line 5: \"-\" is no number of cycles");
        assert_eq!(of("2.txt").unwrap_err(), ": there is no line for 2.txt, or 2");
        assert_eq!(look_up("name;optimum\na.csv; 7\n", Path::new("a.csv")), Ok(7 * CYCLE));
        assert_eq!(look_up("a,b\n", Path::new("a")).unwrap_err(), ", line 1: no column is named file, or name, or instance");
        assert_eq!(look_up("", Path::new("a")).unwrap_err(), ": there is nothing in it");
    }
}
