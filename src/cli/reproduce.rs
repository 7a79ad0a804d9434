//! `equipoise reproduce`: the papers' tables and figures.

use clap::Args;
use equipoise::experiment::wu1997::{self, MEANS, SERIES, Series};
use equipoise::report::{json, reproduction};
use equipoise::{Error, Result};

use super::options::Output;
use super::terminal;

const EXAMPLES: &str = "\
Examples:
  equipoise reproduce
  equipoise reproduce --figure 14 --figure 17 --cases 50 --output json

The loads are random; exit status 1 says that a figure is off by more than chance explains (5 % for all points together).";

/// Reproduce a paper's tables and figures in simulation, and compare them with what is to be expected
///
/// Wu 1997, section 5: table 1, how often DEM balances fully; figure 14, how many more tasks than necessary it moves; figures 15 to 17, how
/// many more task-hops than the optimum DEM, CWA and MWA need.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Only this one; may be given several times [default: all]
    #[arg(long, value_name = "FIGURE", value_parser = ["table1", "14", "15", "16", "17"])]
    figure: Vec<String>,

    /// Random cases for each point [default: the paper's, 100 or 1000]
    #[arg(long, value_name = "CASES", value_parser = clap::value_parser!(u32).range(2..))]
    cases: Option<u32>,

    /// Seed of the random loads
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Whom the result is for
    #[arg(long, value_enum, value_name = "FORM", default_value = "human", help_heading = "Results")]
    output: Output,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let wanted = |series: &&Series| arguments.figure.is_empty() || arguments.figure.contains(&series.figure.replace(' ', ""));
    let chosen: Vec<&Series> = SERIES.iter().filter(wanted).collect();
    let progress = terminal::Progress::begin(arguments.output != Output::Quiet);
    let mut points = Vec::new();
    for (done, series) in chosen.iter().enumerate() {
        progress.at(done as u64, chosen.len() as u64, &format!("{} on {}", series.balancer, series.topology));
        let cases = arguments.cases.unwrap_or(series.cases);
        points.extend(wu1997::reproduce(series, cases, arguments.seed, chosen.len() * MEANS.len())?);
    }
    drop(progress);
    match arguments.output {
        Output::Human => terminal::print(|out| out.write_all(reproduction::points(&points, terminal::width()).as_bytes()))?,
        Output::Json => terminal::print(|out| points.iter().try_for_each(|point| json::line(out, point)))?,
        Output::Quiet => {}
    }
    match points.iter().filter(|point| !point.agrees).count() {
        0 => Ok(()),
        off => Err(Error::Failed(format!("{off} of {} points differ from what was to be expected", points.len()))),
    }
}
