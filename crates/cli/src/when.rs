//! `equipoise when`: when balancing would have paid in a recorded series of steps.

use clap::{Args, ValueEnum};
use equipoise::Result;
use equipoise::registry::{self, Registered};
use equipoise::trigger::{self, Facts};
use equipoise_lab::experiment::{WhenRecord, when};
use equipoise_lab::report::{columns, csv, json, when as report};
use equipoise_lab::workload::series;

use super::options::any_bytes;
use super::terminal;

const EXAMPLES: &str = "\
Examples:
  equipoise when --series steps.txt --cost 12          a line for each step: the time of each rank
  equipoise when --series steps.csv --cost 0.4 --trigger menon,threshold:above=1.2,window=3
  equipoise when --series lbaf:runs/one --cost 0.02    the phases of a run, in seconds

Balancing at the start of step k costs --cost and gives every rank the mean of step k. From then
on each rank's time changes as it does in the series: a step t whose last balancing was at k takes
the largest over ranks of mean(k) + time(t) - time(k); before the first balancing, the largest
time(t). A criterion sees the steps that have ended, so that it cannot balance before the first.
`optimal` is the best of all schedules, found exactly; it may balance before the first step.";

/// Find the best times to balance a recorded series of steps, and compare published criteria with them
///
/// It reads the time of each rank in each step of a run without balancing. For each criterion it prints the total time, the steps before
/// which it balances, and the ratio to the best schedule. It needs no ranks.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Time of each rank in each step: FILE (- is standard input), a line for each step with a number for each rank (commas, semicolons or
    /// blanks between, # for comments), or a table with the columns step, rank and work, whose steps keep their numbers; or
    /// lbaf:DIR[,set=NAME], the phases of a run as DARMA's LBAF has them, in seconds
    #[arg(long, value_name = "FILE", value_parser = any_bytes())]
    series: String,

    /// Time that one balancing takes, in the unit of the series
    #[arg(long, value_name = "TIME", value_parser = cost)]
    cost: f64,

    /// Criteria to evaluate: NAME[:key=value,..],.. as shown by `equipoise list`; `every` without steps is the best interval for this
    /// series [default: all]
    #[arg(long, value_name = "TRIGGERS")]
    trigger: Option<String>,

    /// Output format
    #[arg(long, value_enum, value_name = "FORM", default_value = "human", help_heading = "Results")]
    output: Form,
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Table, the best first
    Human,
    /// One JSON object per line, the best schedule first
    Json,
    /// The table as CSV
    Csv,
    /// No output; only the exit status
    Quiet,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let triggers: Vec<trigger::Chosen> = match &arguments.trigger {
        Some(list) => registry::items::<Facts>(list).iter().map(|item| trigger::find(item)).collect::<Result<_, _>>()?,
        None => Facts::ALL.iter().map(|entry| trigger::find(entry.name)).collect::<Result<_, _>>()?,
    };
    let steps = series::read(&arguments.series)?;
    if !steps.skipped.is_empty() && arguments.output != Form::Quiet {
        terminal::remark(&format!(
            "equipoise: --series {}: {} phases were not recorded and are left out",
            arguments.series,
            steps.skipped.len()
        ));
    }
    let records = when(steps, arguments.cost, &triggers)?;
    match arguments.output {
        Form::Human => terminal::print(|out| {
            out.write_all(report::table(&records, terminal::width()).as_bytes())?;
            write!(out, "\n{}", columns::legend::<WhenRecord>())
        }),
        Form::Json => terminal::print(|out| records.iter().try_for_each(|record| json::line(out, record))),
        Form::Csv => terminal::print(|out| csv::when(out, &records)),
        Form::Quiet => Ok(()),
    }
}

/// A time of 0 or more.
fn cost(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(cost) if cost.is_finite() && cost >= 0.0 => Ok(cost),
        _ => Err("it must be a number, 0 or more".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_a_time() {
        assert_eq!((cost("0"), cost("1.5e3")), (Ok(0.0), Ok(1500.0)));
        for wrong in ["-1", "NaN", "inf", "much", ""] {
            assert_eq!(cost(wrong), Err("it must be a number, 0 or more".to_string()), "{wrong}");
        }
    }
}
