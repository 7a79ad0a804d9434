//! A parallel loop: an iteration takes as long as a file says, on every rank the same (divided by its speed).

use std::path::Path;

use super::matrix_market::Matrix;
use super::{Entry, Facts, Make, Plan, Problem, Setting};
use crate::workload::text;
use equipoise::error::{Error, Result};
use equipoise::load::{CYCLE, Cost, Costs, MOST};
use equipoise::names;
use equipoise::spec::{InvalidSpec, Options};

pub const ENTRY: Entry = Entry {
    name: "loop",
    title: "a parallel loop whose iterations take as long as a file says",
    source: "Tang and Yew 1986",
    options: "file=F (a number a line, the iteration's time; or a matrix in Matrix Market's format, whose rows are iterations with a cost of \
              their entries), unit=1us (of these numbers; 1us is a cycle), body=sleep|spin",
    examples: &[],
    build,
    facts: Facts { answer: "cycles, each iteration's rounded" },
};

fn build(options: &mut Options<'_>) -> Result<Make, InvalidSpec> {
    let Some(file) = options.value("file")?.filter(|file| !file.is_empty()).map(names::path) else {
        return Err(options.conflict("file needs a value, the name of a file with the iterations' times"));
    };
    let unit = options.duration("unit")?.unwrap_or(1000) as f64 / 1000.0;
    let spins = options.choice("body", &[("sleep", false), ("spin", true)])?.unwrap_or(false);
    Ok(Make::reading(options, move |setting| problem(read(&file, unit)?, spins, setting)))
}

/// Iterations of these costs.
fn problem(times: Vec<Cost>, spins: bool, setting: &Setting) -> Result<Problem> {
    let values: Vec<u64> = times.iter().map(|cost| (cost + CYCLE / 2) / CYCLE).collect();
    let costs = times.iter().flat_map(|cost| vec![*cost; setting.ranks as usize]).collect();
    let costs = Costs::new(setting.ranks, costs).ok_or_else(|| Error::Failed("there are no ranks".into()))?;
    let known = values.iter().sum();
    Ok(Problem { costs, arrivals: Vec::new(), plan: Plan::Emulated { spins, values }, known, sequential: None, optimum: None })
}

fn read(file: &Path, unit: f64) -> Result<Vec<Cost>> {
    let shown = names::shown(file);
    let wrong = |why: String| Error::input("workload", format!(" loop:file={shown}{why}"));
    let unreadable = |why| Error::unreadable("workload", format!(" loop:file={shown}: the file cannot be read"), why);
    let text = text::read(file).map_err(unreadable)?;
    parse(&text, unit).map_err(wrong)
}

fn parse(text: &str, unit: f64) -> Result<Vec<Cost>, String> {
    let cost = |number: f64| {
        let cycles = number * unit;
        (0.0..=(MOST / CYCLE) as f64).contains(&cycles).then(|| (cycles * CYCLE as f64).round() as Cost)
    };
    if text.get(..14).is_some_and(|mark| mark.eq_ignore_ascii_case("%%MatrixMarket")) {
        let rows = Matrix::parse(text)?.real.rows;
        let costs = rows.iter().map(|row| cost(row.len() as f64).ok_or_else(|| ": a row takes longer than 10^9 cycles".to_string()));
        return costs.collect();
    }
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).enumerate();
    let costs = lines.filter(|(_, line)| !line.is_empty()).map(|(at, line)| {
        let number = line.parse::<f64>().ok().and_then(cost);
        number.ok_or_else(|| format!(", line {}: \"{line}\" is no time from 0 to 10^9 cycles", at + 1))
    });
    costs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_iteration() {
        assert_eq!(parse("3\n# a comment\n0.5 # half\n", 2.0).unwrap(), [6 * CYCLE, CYCLE]);
        let rows = parse(include_str!("../../../../../tests/data/loops/karate.mtx"), 1.0).unwrap();
        assert_eq!((rows.len(), rows[0], rows.iter().sum::<u64>()), (34, 16 * CYCLE, 156 * CYCLE));
    }

    #[test]
    fn mistakes_name_their_line() {
        for text in ["1\nx\n", "1\n-2\n", "1\n1e10\n", "1\n2 3\n"] {
            assert!(parse(text, 1.0).unwrap_err().contains("line 2"));
        }
    }
}
