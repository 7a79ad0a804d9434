//! Results of launches, as lines that a file collects, and as the tables of docs/performance.md. The launch is the unit: a row is the median over
//! launches of the medians within them.

use std::fmt;

use equipoise::{Error, Result};
use equipoise_lab::experiment::statistics::{self, Estimate};
use equipoise_lab::report::figures::three;

/// The names of the lines about sums of one number: `MPI_Allreduce`, `MPI_Iallreduce` with tests, the library's tree, and its way to `MPI_Iallreduce`.
pub const SUMS: [&str; 4] = ["sum:MPI_Allreduce", "sum:MPI_Iallreduce", "sum:own", "sum:native"];

/// Measurements of one launch of one contender: medians over its rounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    pub ranks: u32,
    pub payload: usize,
    pub mean: u64,
    pub rounds: u32,
    pub name: String,
    pub ms: Option<f64>,
    pub information: Option<f64>,
    /// Information, or a sum, over MPI_Allreduce.
    pub over_reduce: Option<f64>,
    /// Over each of the two ways by hand; a sum over MPI_Iallreduce and over the library's tree.
    pub over: [Option<f64>; 2],
}

impl Launch {
    pub fn of(name: &str) -> Launch {
        Launch { name: name.into(), ..Launch::default() }
    }

    fn read(line: &str) -> Option<Launch> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["launch", ranks, payload, mean, rounds, name, rest @ ..] = &words[..] else { return None };
        let number = |word: &&str| if *word == "-" { Some(None) } else { word.parse().ok().map(Some) };
        let [ms, information, over_reduce, first, second] = rest.iter().map(number).collect::<Option<Vec<_>>>()?.try_into().ok()?;
        Some(Launch {
            ranks: ranks.parse().ok()?,
            payload: payload.parse().ok()?,
            mean: mean.parse().ok()?,
            rounds: rounds.parse().ok()?,
            name: (*name).into(),
            ms,
            information,
            over_reduce,
            over: [first, second],
        })
    }
}

impl fmt::Display for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Launch { ranks, payload, mean, rounds, name, ms, information, over_reduce, over } = self;
        write!(f, "launch {ranks} {payload} {mean} {rounds} {name}")?;
        [*ms, *information, *over_reduce, over[0], over[1]].iter().try_for_each(|figure| match figure {
            Some(figure) => write!(f, " {figure}"),
            None => write!(f, " -"),
        })
    }
}

/// The lines that a file collects.
#[derive(Default)]
struct Lines {
    launches: Vec<Launch>,
    firsts: Vec<First>,
    told: Vec<First>,
}

impl Lines {
    fn read(file: &str) -> Result<Lines> {
        let text = std::fs::read_to_string(file).map_err(|why| Error::usage(format!("{file}: {why}")))?;
        let mut lines = Lines::default();
        for (number, line) in text.lines().enumerate() {
            let wrong = || Error::usage(format!("{file}: line {} is not as this program writes it", number + 1));
            match line.split_whitespace().next() {
                Some("launch") => lines.launches.push(Launch::read(line).ok_or_else(wrong)?),
                Some("first") => lines.firsts.push(First::read(line).ok_or_else(wrong)?),
                Some("agree") => lines.told.push(First::told(line).ok_or_else(wrong)?),
                _ => {}
            }
        }
        Ok(lines)
    }
}

/// Whether equipoise's own commands say what the bench says, launch by launch.
///
/// # Errors
/// If a median is off by more than a tenth.
pub fn agreement(file: &str) -> Result<()> {
    let Lines { launches, firsts, told } = Lines::read(file)?;
    let mut cases: Vec<(&str, u32, usize)> = told.iter().map(|told| (told.name.as_str(), told.ranks, told.payload)).collect();
    cases.sort_unstable();
    cases.dedup();
    println!("\n| | ranks | B a task | ms | the bench, ms | ratio | range | launches |\n|---|--:|--:|--:|--:|--:|--:|--:|");
    let mut off = Vec::new();
    for case in cases {
        let (name, ranks, payload) = case;
        let ours: Vec<f64> =
            told.iter().filter(|told| (told.name.as_str(), told.ranks, told.payload) == case).map(|told| told.ms).collect();
        let bench: Vec<f64> = match name {
            "compare" => {
                let of_case =
                    launches.iter().filter(|launch| (launch.ranks, launch.payload, launch.name.as_str()) == (ranks, payload, "direct"));
                of_case.filter_map(|launch| launch.ms).collect()
            }
            _ => firsts.iter().filter(|first| (first.ranks, first.payload) == (ranks, payload)).map(|first| first.ms).collect(),
        };
        let ratios: Vec<f64> = ours.iter().zip(&bench).map(|(ours, bench)| ours / bench).collect();
        let nothing = || Error::usage(format!("{file}: nothing to compare {name} with"));
        let [ms, of_bench, ratio] = [statistics::median(&ours), statistics::median(&bench), statistics::median(&ratios)];
        let (ms, of_bench, ratio) = (ms.ok_or_else(nothing)?, of_bench.ok_or_else(nothing)?, ratio.ok_or_else(nothing)?);
        println!(
            "| {name} | {ranks} | {payload} | {} | {} | {:.2} | {:.2} - {:.2} | {} |",
            three(ms.value),
            three(of_bench.value),
            ratio.value,
            ratio.low,
            ratio.high,
            ratios.len()
        );
        if !(0.9..=1.1).contains(&ratio.value) {
            off.push(format!("{name} on {ranks} ranks, {payload} B a task: {:.2}", ratio.value));
        }
    }
    if off.is_empty() { Ok(()) } else { Err(Error::Failed(format!("off by more than a tenth: {}", off.join("; ")))) }
}

/// The tables of all lines of a file.
pub fn summary(file: &str) -> Result<()> {
    let Lines { launches, firsts, .. } = Lines::read(file)?;
    let mut cases: Vec<(u32, usize, u64)> = launches.iter().map(|launch| (launch.ranks, launch.payload, launch.mean)).collect();
    cases.sort_unstable();
    cases.dedup();
    for case in cases {
        let of_case: Vec<&Launch> = launches.iter().filter(|launch| (launch.ranks, launch.payload, launch.mean) == case).collect();
        rows(case, &of_case)?;
    }
    if !firsts.is_empty() {
        first_phases(&firsts)?;
    }
    Ok(())
}

fn rows((ranks, payload, mean): (u32, usize, u64), launches: &[&Launch]) -> Result<()> {
    let mut names: Vec<&str> = Vec::new();
    for launch in launches {
        if !names.contains(&launch.name.as_str()) {
            names.push(&launch.name);
        }
    }
    let of = |name: &str, figure: fn(&Launch) -> Option<f64>| -> Option<Estimate> {
        let figures: Option<Vec<f64>> = launches.iter().filter(|launch| launch.name == name).map(|launch| figure(launch)).collect();
        statistics::median(&figures?)
    };
    let count = launches.iter().filter(|launch| launch.name == names[0]).count();
    let rounds = launches[0].rounds;
    println!("\n### {ranks} ranks, {mean} tasks per rank on average, {payload} B a task: {count} launches of {rounds} rounds\n");
    // The faster of the two ways by hand, in this row.
    let by_hand = ["alltoallv", "immediate"].map(|name| of(name, |launch| launch.ms).map_or(f64::INFINITY, |ms| ms.value));
    let (best, over_best): (&str, fn(&Launch) -> Option<f64>) =
        if by_hand[1] < by_hand[0] { ("immediate", |launch| launch.over[1]) } else { ("alltoallv", |launch| launch.over[0]) };
    println!("The best by hand: {best}.\n");
    println!("| | ms | over alltoallv | range | over the best by hand | range | information, ms | over MPI_Allreduce |");
    println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    let ratio = |name: &str, figure: fn(&Launch) -> Option<f64>| {
        of(name, figure).map_or_else(|| " | ".into(), |it| format!("{:.2} | {:.2} - {:.2}", it.value, it.low, it.high))
    };
    for name in names.iter().filter(|name| !SUMS.contains(name)) {
        let shown = |figure: fn(&Launch) -> Option<f64>| of(name, figure).map(|it| three(it.value)).unwrap_or_default();
        println!(
            "| {name} | {} | {} | {} | {} | {} |",
            shown(|launch| launch.ms),
            ratio(name, |launch| launch.over[0]),
            ratio(name, over_best),
            shown(|launch| launch.information),
            shown(|launch| launch.over_reduce)
        );
    }
    if let Some(coverage) = of(names[0], |launch| launch.ms).map(|it| it.coverage) {
        println!("\nRanges cover the median over launches with {:.1} %.", coverage * 100.0);
    }
    println!("\n| sum of one number | ms | over MPI_Allreduce | range | over MPI_Iallreduce with tests | range | over our tree | range |");
    println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    let figures: [fn(&Launch) -> Option<f64>; 3] = [|launch| launch.over_reduce, |launch| launch.over[0], |launch| launch.over[1]];
    for name in SUMS {
        let Some(ms) = of(name, |launch| launch.ms) else { continue };
        let ratios = figures.map(|figure| ratio(name, figure));
        println!("| {} | {} | {} |", name.trim_start_matches("sum:"), three(ms.value), ratios.join(" | "));
    }
    Ok(())
}

/// The first phase of a fresh process, or the figure that a command printed for one or many.
struct First {
    name: String,
    ranks: u32,
    payload: usize,
    ms: f64,
}

impl First {
    fn read(line: &str) -> Option<First> {
        let ["first", name, ranks, payload, ms] = line.split_whitespace().collect::<Vec<_>>()[..] else { return None };
        Some(First { name: name.into(), ranks: ranks.parse().ok()?, payload: payload.parse().ok()?, ms: ms.parse().ok()? })
    }

    /// Reads the figure of `equipoise compare` in ms, or of `equipoise balance` in seconds.
    fn told(line: &str) -> Option<First> {
        let ["agree", ranks, payload, name, figure] = line.split_whitespace().collect::<Vec<_>>()[..] else { return None };
        let scale = if name == "balance" { 1e3 } else { 1.0 };
        let ms = figure.parse::<f64>().ok()? * scale;
        Some(First { name: name.into(), ranks: ranks.parse().ok()?, payload: payload.parse().ok()?, ms })
    }
}

/// Pairs the runs of each contender with those by hand, in order: by hand the faster way of the two counts, which is the smaller median.
fn first_phases(firsts: &[First]) -> Result<()> {
    let mut cases: Vec<(u32, usize)> = firsts.iter().map(|first| (first.ranks, first.payload)).collect();
    cases.sort_unstable();
    cases.dedup();
    println!("\n### First phase of a fresh process\n");
    println!(
        "| ranks | B a task | | ms | alltoallv, ms | ratio | 95 % | immediate, ms | ratio | 95 % | launches |\n|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    );
    for (ranks, payload) in cases {
        let of = |name: &str| -> Vec<f64> {
            firsts.iter().filter(|it| (it.ranks, it.payload, it.name.as_str()) == (ranks, payload, name)).map(|it| it.ms).collect()
        };
        let ours = of("direct");
        let Some(ms) = statistics::median(&ours) else { continue };
        let mut line = format!("| {ranks} | {payload} | direct | {} |", three(ms.value));
        for name in ["alltoallv", "immediate"] {
            let theirs = of(name);
            let ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect();
            match (statistics::median(&theirs), statistics::median(&ratios)) {
                (Some(theirs), Some(ratio)) => {
                    line += &format!(" {} | {:.2} | {:.2} - {:.2} |", three(theirs.value), ratio.value, ratio.low, ratio.high);
                }
                _ => line += " | | |",
            }
        }
        println!("{line} {} |", ours.len());
    }
    Ok(())
}
