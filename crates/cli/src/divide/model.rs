//! `equipoise divide --model`: the division by calculation.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use equipoise::names;
use equipoise::topology::Topology;
use equipoise::{Error, Result};
use equipoise_lab::divisible::model::{self, NamedTopology, Ports, Question};
use equipoise_lab::experiment::{ModelRecord, blazewicz1995};
use equipoise_lab::report::{curves, division, gantt, json};
use equipoise_lab::workload::text;

use crate::options::any_bytes;
use crate::output::Target;
use crate::terminal::Output;
use crate::{launch, terminal};

/// Options of the model.
#[derive(Args)]
#[command(next_help_heading = "Model")]
pub struct ModelOptions {
    /// The network: hypercube:D | line:N | ring:N | star:N | tree:binary,nodes=N | tree:kary=K,nodes=N | tree:parents=-,0,1,.. | mesh:RxC |
    /// torus:RxC | grid:PxQ | complete:N | graph:edges=0-1,1-2,.. | graph:FILE; with --input the sizes may be left out [default: hypercube]
    #[arg(long, value_name = "TOPOLOGY", value_parser = any_bytes(), help_heading = "Model and input")]
    pub(super) topology: Option<String>,

    /// Reciprocal speed of the processors; numbers may be fractions such as 7/18
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = number, allow_hyphen_values = true)]
    w: f64,

    /// Reciprocal speed of the links; 0 if they take no time
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = number, allow_hyphen_values = true)]
    z: f64,

    /// Seconds in which a standard processor (w = 1) computes a load of 1
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = number, allow_hyphen_values = true)]
    tcp: f64,

    /// Seconds in which a standard link (z = 1) carries a load of 1
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = number, allow_hyphen_values = true)]
    tcm: f64,

    /// Start-up time of every message, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = number, allow_hyphen_values = true)]
    startup: f64,

    /// Size of the load; shares are parts of it
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = number, allow_hyphen_values = true)]
    load: f64,

    /// Number of links that a processor uses at a time: all, as in the paper; or one, serving those behind it one after another along
    /// shortest routes, the fastest link first; with start-up times, results or installments in the best order that a search finds
    #[arg(long, value_enum, value_name = "PORTS", default_value = "all")]
    ports: PortsOption,

    /// Number of installments in which the load is sent; a processor starts when the first has arrived [default: 1; with --input the number
    /// with the shortest predicted time]
    #[arg(long, value_name = "NUMBER", help_heading = "Model and input")]
    pub(super) installments: Option<usize>,

    /// Size of the results that return to the source, as a fraction of the load
    #[arg(long = "return", value_name = "FRACTION", default_value = "0", value_parser = number, allow_hyphen_values = true)]
    results: f64,

    /// Processor, or with --input rank, that has the load at first; with --input it also gets and prints the answer [default: 0]
    #[arg(long, value_name = "RANK", help_heading = "Model and input")]
    pub(super) origin: Option<u32>,

    /// The same as --origin
    #[arg(long, value_name = "RANK", conflicts_with = "origin", help_heading = "Model and input")]
    pub(super) source: Option<u32>,

    /// The source only sends and does not compute
    #[arg(long)]
    source_idle: bool,

    /// Speed of each processor relative to 1/w, as in 1,2,7/2,..; processor 0 first. With --input: the ranks' speeds are emulated, see --rate
    #[arg(long, value_name = "LIST", help_heading = "Model and input")]
    pub(super) speeds: Option<String>,

    /// Slowness of each link relative to z: 1,2,1/2,.. in the order of the processors that the links lead to; or only the differing ones,
    /// 0-1=2,0-3=1/2
    #[arg(long, value_name = "LIST")]
    links: Option<String>,

    /// Start-up costs of the links instead of --startup for all, in the form of --links
    #[arg(long, value_name = "LIST", conflicts_with = "startup")]
    startups: Option<String>,

    /// Write a Gantt chart of transfers and computation into this file, as SVG; with --input predicted and measured
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(super) gantt: Option<PathBuf>,

    /// Write the curves of figures 2 to 8 of Blazewicz and Drozdowski 1995 into this folder, as CSV and SVG
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    curves: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum PortsOption {
    All,
    One,
}

/// Calculates, on the process that prints.
pub fn run(options: &ModelOptions, output: Output) -> Result<()> {
    if options.topology.is_none() && options.curves.is_none() {
        return Err(Error::usage("--model: of what network? Say --topology TOPOLOGY, or --curves DIR for the paper's figures"));
    }
    // Standard input is the speaker's.
    let takes_standard_input = options.topology.as_deref().and_then(Topology::graph_file) == Some("-");
    if takes_standard_input && !launch::speaks() {
        return Ok(());
    }
    if options.gantt.is_some() && options.topology.is_none() {
        return Err(Error::usage("--gantt: there is no --topology to be drawn"));
    }
    let question = options.topology.as_deref().map(|topology| options.question(topology)).transpose()?;
    if let Some(question) = &question {
        question.check()?;
    }
    if !launch::speaks() {
        return Ok(());
    }
    if let Some(question) = question {
        let record = ModelRecord::new(&question, &model::solve(&question)?);
        if let Some(path) = &options.gantt {
            if record.rows.is_empty() {
                return Err(Error::usage("--gantt: one-port hypercubes are drawn up to dimension 12"));
            }
            Target::create("--gantt", path)?.write(|out| out.write_all(gantt::chart(&title(&record), &record.rows).as_bytes()))?;
        }
        match output {
            Output::Human => terminal::print(|out| out.write_all(division::model(&record, terminal::width()).as_bytes()))?,
            Output::Json => terminal::print(|out| json::line(out, &record))?,
            Output::Quiet => {}
        }
    }
    options.curves.as_deref().map_or(Ok(()), |folder| write_curves(folder, output))
}

fn title(record: &ModelRecord) -> String {
    format!(
        "{}, {} port{}: done after {:.4} s",
        record.topology,
        record.ports,
        if record.ports == "all" { "s" } else { "" },
        record.makespan
    )
}

fn write_curves(folder: &Path, output: Output) -> Result<()> {
    let refused = |why| Error::usage(format!("--curves {}: the folder cannot be made: {why}", names::shown(folder)));
    fs::create_dir_all(folder).map_err(refused)?;
    for figure in blazewicz1995::figures() {
        let file = |kind: &str| Target::create("--curves", &folder.join(format!("figure{}.{kind}", figure.number)));
        file("csv")?.write(|out| curves::csv(out, &figure))?;
        file("svg")?.write(|out| out.write_all(curves::svg(&figure).as_bytes()))?;
    }
    if output == Output::Human {
        terminal::remark(&format!("figures 2 to 8 are in {}", names::shown(folder)));
    }
    Ok(())
}

impl ModelOptions {
    /// Node that has the load at first, and the option that set it.
    pub(super) fn origin(&self) -> (&'static str, u32) {
        match (self.origin, self.source) {
            (None, Some(rank)) => ("source", rank),
            (given, _) => ("origin", given.unwrap_or(0)),
        }
    }

    fn question(&self, topology: &str) -> Result<Question> {
        let (shape, (option, origin)) = (shape(topology)?, self.origin());
        let nodes = shape.topology.nodes();
        if origin >= nodes {
            return Err(Error::usage(format!("--{option} {origin}: {} has the processors 0 to {}", shape.name, nodes - 1)));
        }
        let mut question = Question {
            source: origin,
            source_computes: !self.source_idle,
            ports: match self.ports {
                PortsOption::All => Ports::All,
                PortsOption::One => Ports::One,
            },
            w: self.w,
            z: self.z,
            tcp: self.tcp,
            tcm: self.tcm,
            startup: self.startup,
            load: self.load,
            results: self.results,
            installments: self.installments.unwrap_or(1),
            ..Question::of(shape)
        };
        if let Some(speeds) = &self.speeds {
            question.speeds = list("--speeds", speeds)?;
        }
        if self.links.is_some() || self.startups.is_some() {
            // The links can be named only if the rest makes sense.
            question.check()?;
            question.check_size()?;
        }
        if let Some(links) = &self.links {
            question.links = by_link("--links", links, &question, 1.0)?;
        }
        if let Some(startups) = &self.startups {
            question.startups = by_link("--startups", startups, &question, 0.0)?;
        }
        Ok(question)
    }
}

/// The network that `--topology` means; a graph's file is read.
fn shape(topology: &str) -> Result<NamedTopology> {
    let Some(file) = Topology::graph_file(topology) else { return NamedTopology::parse(topology) };
    let refused = |why| Error::usage(format!("--topology {topology}: the file cannot be read: {why}"));
    let text = text::read(&names::path(file)).map_err(refused)?;
    Ok(NamedTopology::of(Topology::graph(file, &text)?))
}

/// A decimal number, or a fraction of two. Whether it is large enough is the model's to say.
fn number(text: &str) -> std::result::Result<f64, String> {
    let decimal = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let number = match text.split_once('/') {
        None => decimal(text),
        Some((above, below)) => decimal(above).zip(decimal(below)).map(|(above, below)| above / below).filter(|number| number.is_finite()),
    };
    number.ok_or_else(|| "it must be a number, such as 0.5, or a fraction, such as 7/18".into())
}

pub(super) fn list(option: &str, text: &str) -> Result<Vec<f64>> {
    let item =
        |(index, item): (usize, &str)| number(item).map_err(|why| Error::usage(format!("{option}, item {}: '{item}': {why}", index + 1)));
    text.split(',').enumerate().map(item).collect()
}

/// One number for each link, or those links that differ from the rest by name.
fn by_link(option: &str, text: &str, question: &Question, usual: f64) -> Result<Vec<f64>> {
    if !text.contains('=') {
        return list(option, text);
    }
    let links = question.links();
    let mut values = vec![usual; links.len()];
    if option == "--startups" {
        values.fill(question.startup);
    }
    let mut given = vec![false; links.len()];
    for item in text.split(',') {
        let wrong = |why: &str| Error::usage(format!("{option}: '{item}': {why}"));
        let (ends, value) = item.split_once('=').ok_or_else(|| wrong("a link and its number are written as 0-1=2"))?;
        let ends = ends.split_once('-').and_then(|(a, b)| Some((a.trim().parse::<u32>().ok()?, b.trim().parse::<u32>().ok()?)));
        let (a, b) = ends.ok_or_else(|| wrong("a link is named by the two processors that it joins, as in 0-1=2"))?;
        let place = links.iter().position(|&(from, to)| (from, to) == (a, b) || (from, to) == (b, a));
        let place = place.ok_or_else(|| wrong(&format!("in {} no load goes between these processors", question.shape.name)))?;
        if std::mem::replace(&mut given[place], true) {
            return Err(wrong("this link has a number already"));
        }
        values[place] = number(value).map_err(|why| wrong(&why))?;
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal_or_fractions() {
        assert_eq!(["1", "0.25", "7/18", "5/1", "1e-3"].map(number), [Ok(1.0), Ok(0.25), Ok(7.0 / 18.0), Ok(5.0), Ok(0.001)]);
        for wrong in ["", "NaN", "inf", "1/0", "1/", "/2", "1/2/3", "two", "1e999"] {
            assert!(number(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn links_are_given_all_or_by_name() {
        let question = Question::of(NamedTopology::parse("star:4").unwrap());
        assert_eq!(by_link("--links", "1,2,1/2", &question, 1.0).unwrap(), [1.0, 2.0, 0.5]);
        assert_eq!(by_link("--links", "0-2=3,3-0=1/2", &question, 1.0).unwrap(), [1.0, 3.0, 0.5]);
        for wrong in ["1-2=3", "0-2=1,2-0=2", "0-2", "0-2=x", "0=1", "0-9=1", "1,x,2"] {
            assert!(by_link("--links", wrong, &question, 1.0).is_err(), "{wrong}");
        }
    }
}
