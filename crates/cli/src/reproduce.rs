//! `equipoise reproduce`: the papers' tables and figures.

use clap::Args;
use equipoise::{Error, Result};
use equipoise_lab::experiment::ahmad1994;
use equipoise_lab::experiment::hamidzadeh1995::{self, FIGURES, HamidzadehFigure, SEEDS};
use equipoise_lab::experiment::wu1997::{self, MEANS, SERIES, Series};
use equipoise_lab::report::{json, reproduction};

use super::options::Output;
use super::terminal;

const EXAMPLES: &str = "\
Examples:
  equipoise reproduce
  equipoise reproduce --figure 14 --figure 17 --cases 50 --output json
  equipoise reproduce --figure section6

The loads are random; exit status 1 says that a figure is off by more than chance explains (5 % for all points together).";

/// Reproduce a paper's tables and figures in simulation, and compare them with the expected values
///
/// Wu 1997, section 5: table 1, how often DEM balances fully; figure 14, how many more tasks than necessary it moves; figures 15 to 17, how
/// many more task-hops than the optimum DEM, CWA and MWA need.
///
/// Hamidzadeh, Lilja and Atif 1995, section 4.2: figures 2 to 13, total times of SASH and DSS on 2 to 20 processors, and from how many on
/// SASH is faster (0: never).
///
/// Ahmad, Ghafoor and Fox 1994, section 6 (section6): mean response times of task graphs that arrive over time on a hypercube of 256 processors,
/// under hierarchical and neighbour, and exact limits. It takes minutes.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Figure to reproduce; may be given several times [default: all]
    #[arg(long, value_name = "FIGURE", value_parser = ["table1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "section6"])]
    figure: Vec<String>,

    /// Number of random cases for each point [default: the papers', 100 or 1000; for figures 2 to 13 ten; for section6 100000 graphs]
    #[arg(long, value_name = "CASES", value_parser = clap::value_parser!(u32).range(2..))]
    cases: Option<u32>,

    /// Seed of the random loads
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Output format
    #[arg(long, value_enum, value_name = "FORM", default_value = "human", help_heading = "Results")]
    output: Output,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let wanted = |series: &&Series| arguments.figure.is_empty() || arguments.figure.contains(&series.figure.replace(' ', ""));
    let chosen: Vec<&Series> = SERIES.iter().filter(wanted).collect();
    let progress = terminal::Progress::begin(arguments.output != Output::Quiet, "parts");
    let mut points = Vec::new();
    for (done, series) in chosen.iter().enumerate() {
        progress.at(done as u64, chosen.len() as u64, &format!("{} on {}", series.balancer, series.topology));
        let cases = arguments.cases.unwrap_or(series.cases);
        points.extend(wu1997::reproduce(series, cases, arguments.seed, chosen.len() * MEANS.len())?);
    }
    let figures: Vec<&HamidzadehFigure> =
        FIGURES.iter().filter(|figure| arguments.figure.is_empty() || arguments.figure.iter().any(|name| name == figure.name)).collect();
    let mut totals = Vec::new();
    for (done, figure) in figures.iter().enumerate() {
        progress.at(done as u64, figures.len() as u64, &format!("sash and dss, figure {}", figure.name));
        totals.extend(hamidzadeh1995::reproduce(figure, arguments.cases.unwrap_or(SEEDS), arguments.seed)?);
    }
    let mut responses = Vec::new();
    if arguments.figure.is_empty() || arguments.figure.iter().any(|name| name == "section6") {
        let (cases, graphs) = (ahmad1994::cases(), arguments.cases.unwrap_or(ahmad1994::GRAPHS));
        responses = ahmad1994::reproduce(&cases, graphs, arguments.seed, |done| {
            progress.at(done as u64, cases.len() as u64, "responses of task graphs, section 6");
        })?;
    }
    drop(progress);
    let width = terminal::width();
    match arguments.output {
        Output::Human => terminal::print(|out| {
            let tables = [
                (!points.is_empty()).then(|| reproduction::points(&points, width)),
                (!totals.is_empty()).then(|| reproduction::totals(&totals, width)),
                (!responses.is_empty()).then(|| reproduction::responses(&responses, width)),
            ];
            let tables: Vec<String> = tables.into_iter().flatten().collect();
            out.write_all(tables.join("\n").as_bytes())
        })?,
        Output::Json => terminal::print(|out| {
            points.iter().try_for_each(|point| json::line(out, point))?;
            totals.iter().try_for_each(|point| json::line(out, point))?;
            responses.iter().try_for_each(|point| json::line(out, point))
        })?,
        Output::Quiet => {}
    }
    let agreeing = points.iter().map(|point| point.agrees);
    let agreeing = agreeing.chain(totals.iter().map(|point| point.agrees)).chain(responses.iter().map(|point| point.agrees));
    let off = agreeing.filter(|agrees| !agrees).count();
    let compared = points.len() + totals.iter().filter(|point| point.expected.is_some()).count() + responses.len();
    match off {
        0 => Ok(()),
        off => Err(Error::Failed(format!("{off} of {compared} points differ from what was to be expected"))),
    }
}
