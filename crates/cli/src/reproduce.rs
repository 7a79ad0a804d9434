//! `equipoise reproduce`: the papers' tables, figures and claims.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use equipoise::transport::launcher;
use equipoise::transport::sim::Model;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_lab::experiment::papers::{self, Claim, Effort, Item, Job, Judged, Kept, Launcher, Measuring, Paper, Point, Records, own};
use equipoise_lab::report::reproduction::ReproductionLine;
use equipoise_lab::report::{csv, json, papers_page, reproduction};

use super::output::{self, Report, Target};
use super::terminal::Output;
use super::{launch, terminal};

const EXAMPLES: &str = "\
Examples:
  equipoise reproduce
  equipoise reproduce wu --table 1
  equipoise reproduce 002 --figure 6 --figure 7 --full
  equipoise reproduce --full --resume points.jsonl       goes on where it was stopped
  equipoise reproduce --file scripts/figures/kwa-tori.toml --report tori
  equipoise reproduce --csv points.csv --claims claims.csv
  equipoise reproduce --report papers                    report.html has every figure
  equipoise reproduce psts --table 6 --on-ranks          in addition on 2, 4, 8 and 16 real ranks";

const VERDICTS: &str = "\
A claim's verdict is reproduced, reproduced under a stated reading, not reproduced, or undecided (too few cases to tell).
Exit status 1 says that a verdict contradicts the recorded one, or that none is recorded (docs/papers.md has them), or that with --full a point
is further from its reference value than the tolerance; that a paper is wrong is no failure. Fewer cases than those of the record may leave a verdict undecided, and more may decide one.";

/// Examples, the papers with all that can be measured of each, and the verdicts.
fn after_help() -> String {
    let paper = |paper: Paper| {
        let citation = paper.citation();
        let year = citation.find(|letter: char| letter.is_ascii_digit()).map_or(citation.len(), |at| at + 4);
        let authors = &citation[..year];
        format!("  {:<14}{}  {authors}: {}\n", paper.name(), paper.number(), paper.items())
    };
    format!("{EXAMPLES}\n\nPapers:\n{}\n{VERDICTS}", Paper::ALL.map(paper).concat())
}

/// Reproduce the papers' tables and figures in simulation, and judge the papers' claims
///
/// Every point is measured on random cases of its own, and compared with the paper's printed number where there is one. All comparisons of
/// a table or figure together have an error rate of 5 % (Holm's method). Then each claim that the measurements can judge gets a verdict.
#[derive(Args)]
#[command(after_help = after_help())]
pub struct Arguments {
    /// Paper by its name or number, see below [default: all]
    #[arg(value_name = "PAPER", value_parser = paper)]
    paper: Option<Paper>,

    /// Figure to reproduce; may be given several times, also with the options below [default: all]
    #[arg(long, value_name = "N")]
    figure: Vec<u32>,

    /// Table to reproduce
    #[arg(long, value_name = "N")]
    table: Vec<u32>,

    /// Worked example to reproduce
    #[arg(long, value_name = "N")]
    example: Vec<u32>,

    /// Section whose claims are measured on their own
    #[arg(long, value_name = "N")]
    section: Vec<u32>,

    /// Figure of your own instead of a paper's, described by this file (TOML; docs/papers.md): balancers or schedulers, topologies, loads
    /// or workloads
    #[arg(long, value_name = "FILE", conflicts_with_all = ["paper", "figure", "table", "example", "section", "quick", "full", "claims", "record", "recorded"])]
    file: Option<PathBuf>,

    /// Small numbers of random cases: all papers in about three minutes on two cores [default]
    #[arg(long, conflicts_with_all = ["full", "cases"])]
    quick: bool,

    /// The papers' numbers of random cases
    #[arg(long, conflicts_with = "cases")]
    full: bool,

    /// Number of random cases for each point
    #[arg(long, value_name = "CASES", value_parser = clap::value_parser!(u32).range(2..))]
    cases: Option<u32>,

    /// Seed; every point draws its own random numbers from it
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Store every finished point in this file, and reuse the points in it: continues an interrupted run
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,

    /// Number of points measured in parallel; results do not depend on it [default: the number of cores]
    #[arg(long, value_name = "THREADS", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,

    /// Also measure what can be on 2, 4, 8 and 16 real ranks, which are started by mpirun (another launcher: MPIRUN in the environment), after all else
    /// and one point at a time: tables 6 and 7 and figures 4 and 5 of psts, section 2 and figures 7 and 8 of divisible, figures 6, 9 and 12 of
    /// sash, figures 15 and 17 of wu. Times there don't repeat, and no claim is judged by them
    #[arg(long, conflicts_with = "file")]
    on_ranks: bool,

    /// Print the recorded verdicts as Markdown, and measure nothing
    #[arg(long, conflicts_with_all = ["figure", "table", "example", "section", "quick", "full", "cases", "seed", "resume", "threads", "on_ranks", "csv", "claims", "record", "report", "output"])]
    recorded: bool,

    /// Write all points as CSV to this file
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    csv: Option<PathBuf>,

    /// Write the claims with their verdicts as CSV to this file
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    claims: Option<PathBuf>,

    /// Write the verdicts to this file, in the form in which the program records them
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    record: Option<PathBuf>,

    /// Also write table.csv (points), records.jsonl (points and claims) and report.html (every figure as the paper draws it, and all verdicts) into this
    /// folder. Some figures then have further curves, of balancers and schedulers that the paper does not have
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    report: Option<PathBuf>,

    /// Output format
    #[arg(long, value_enum, value_name = "FORM", default_value = "human", help_heading = "Results")]
    output: Output,
}

fn paper(text: &str) -> Result<Paper, String> {
    Paper::find(text).ok_or_else(|| {
        let known = Paper::ALL.map(|paper| format!("{} ({})", paper.name(), paper.number()));
        format!("there is no such paper; known are {}", known.join(", "))
    })
}

impl Arguments {
    /// The items that were asked for; none for all.
    fn items(&self) -> Vec<Item> {
        let figures = self.figure.iter().map(|number| Item::Figure(*number));
        let tables = self.table.iter().map(|number| Item::Table(*number));
        let examples = self.example.iter().map(|number| Item::Example(*number));
        let sections = self.section.iter().map(|number| Item::Section(*number));
        figures.chain(tables).chain(examples).chain(sections).collect()
    }

    fn effort(&self) -> Effort {
        match self.cases {
            Some(cases) => Effort::Cases(cases),
            None if self.full => Effort::Full,
            None => Effort::Quick,
        }
    }

    /// Launcher of real ranks, if they are asked for.
    fn launcher(&self) -> Result<Option<Arc<Launcher>>> {
        if !self.on_ranks {
            return Ok(None);
        }
        if launcher::rank(launcher::variable).is_some() {
            return Err(Error::usage("--on-ranks: it starts ranks by itself; type it without a launcher"));
        }
        let program = env::current_exe().map_err(|why| Error::Failed(format!("--on-ranks: this program's file is not known: {why}")))?;
        let mpirun = env::var_os("MPIRUN").unwrap_or_else(|| "mpirun".into());
        Launcher::find(Path::new(&mpirun), &program).map(|launcher| Some(Arc::new(launcher)))
    }

    /// Refuses files that two options name.
    fn check_files(&self) -> Result<()> {
        let in_folder = self.report.as_deref().map(output::of_report);
        let in_folder = in_folder.iter().flatten().map(|path| ("--report", path.as_path()));
        let single = [
            ("--file", &self.file),
            ("--resume", &self.resume),
            ("--csv", &self.csv),
            ("--claims", &self.claims),
            ("--record", &self.record),
        ];
        let single = single.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?)));
        output::check_distinct(&single.chain(in_folder).collect::<Vec<_>>())
    }

    fn papers(&self) -> Vec<Paper> {
        match self.file {
            Some(_) => vec![Paper::Own],
            None => self.paper.map_or(Paper::ALL.to_vec(), |paper| vec![paper]),
        }
    }
}

/// Points that are measured together, and the claims that are judged by them.
struct Batch {
    paper: Paper,
    jobs: Vec<Job>,
    claims: Vec<Claim>,
    /// Whether one point at a time is measured.
    alone: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let records = Records::built_in()?;
    if arguments.recorded {
        return print_recorded(arguments, &records);
    }
    let items = arguments.items();
    let mut own = arguments.file.as_deref().map(own::read).transpose()?;
    let mut studies: Vec<_> = arguments.papers().into_iter().map(|paper| (paper, paper.study())).collect();
    if let (Some(own), Some((_, study))) = (&mut own, studies.first_mut()) {
        study.jobs = std::mem::take(&mut own.jobs);
    }
    for item in &items {
        if !studies.iter().any(|(_, study)| study.jobs.iter().any(|job| job.item == *item)) {
            let whose = arguments.paper.map_or("none of the papers has".into(), |paper| format!("{} does not have", paper.name()));
            let known = match arguments.paper {
                Some(paper) => format!("it has {}", paper.items()),
                None => Paper::ALL.map(|paper| format!("{} has {}", paper.name(), paper.items())).join("; "),
            };
            return Err(Error::usage(format!("--{}: {whose} a {item} that is reproduced; {known}", item.kind())));
        }
    }
    arguments.check_files()?;
    let create = |option: &str, path: &Option<PathBuf>| path.as_ref().map(|path| Target::create(option, path)).transpose();
    let (points_file, claims_file) = (create("--csv", &arguments.csv)?, create("--claims", &arguments.claims)?);
    let record_file = create("--record", &arguments.record)?;
    let report = arguments.report.as_deref().map(Report::create).transpose()?;
    let kept = arguments.resume.as_deref().map(Kept::open).transpose()?;
    if let Some(remark) = kept.as_ref().and_then(Kept::remark) {
        terminal::remark(&format!("equipoise: {remark}"));
    }
    let mut how = Measuring { kept: kept.as_ref(), ..Measuring::new(arguments.effort(), arguments.seed) };
    how.threads = arguments.threads.map_or(how.threads, usize::from);
    let launcher = arguments.launcher()?;
    let progress = terminal::Progress::begin(arguments.output != Output::Quiet, "cases");
    let wanted = |job: &Job| items.is_empty() || items.contains(&job.item);
    let mut parts: Vec<Batch> = Vec::new();
    for (paper, study) in studies {
        let further = if report.is_some() { paper.further()? } else { Vec::new() };
        parts.push(Batch { paper, jobs: study.jobs.into_iter().filter(wanted).collect(), claims: study.claims, alone: false });
        parts.push(Batch { paper, jobs: further.into_iter().filter(wanted).collect(), claims: Vec::new(), alone: false });
    }
    if let Some(launcher) = &launcher {
        for paper in arguments.papers() {
            let jobs: Vec<Job> = paper.on_ranks(launcher).into_iter().filter(wanted).collect();
            parts.push(Batch { paper, jobs, claims: Vec::new(), alone: true });
        }
    }
    if let Some(launcher) = &launcher {
        let mut on_ranks = parts.iter().filter(|part| part.alone);
        if !on_ranks.clone().any(|part| !part.jobs.is_empty()) {
            return Err(Error::usage("--on-ranks: nothing of what is asked for is measured on real ranks; --help lists what is"));
        }
        if on_ranks.any(|part| how.left(part.paper, &part.jobs) > 0) {
            launcher.try_out()?;
        }
    }
    // Cases on real ranks take longer than simulated ones by far: each kind has its own count, by which the time left is estimated.
    let cases = |alone| parts.iter().filter(|part| part.alone == alone).map(|part| how.left(part.paper, &part.jobs)).sum::<u64>();
    let (all, mut before) = ([cases(false), cases(true)], [0, 0]);
    let (mut points, mut judged): (Vec<Point>, Vec<Judged>) = (Vec::new(), Vec::new());
    for Batch { paper, jobs, claims, alone } in parts {
        let how = Measuring { threads: if alone { 1 } else { how.threads }, ..how };
        let left = how.left(paper, &jobs);
        let kind = usize::from(alone);
        let reached = |done| progress.at(before[kind] + done, all[kind], paper.name());
        reached(0);
        let measured = papers::measure(paper, &jobs, &how, reached)?;
        before[kind] += left;
        judged.extend(papers::judge(paper, &claims, &measured, &records)?);
        points.extend(measured.0);
    }
    drop(progress);
    if points.is_empty() && own.is_some() {
        return Err(Error::Failed("--file: none of its points has a case that counts: there is nothing to move".into()));
    }
    if let Some(file) = points_file {
        file.write(|out| csv::points(out, &points))?;
    }
    if let Some(file) = claims_file {
        file.write(|out| csv::claims(out, &judged))?;
    }
    if let Some(report) = report {
        let environment = launch::environment(&World::simulated(1, Model::default()));
        report.table.write(|out| csv::points(out, &points))?;
        report.records.write(|out| {
            points.iter().try_for_each(|point| json::line(out, &ReproductionLine::point(point)))?;
            judged.iter().try_for_each(|one| json::line(out, &ReproductionLine::claim(one)))
        })?;
        Target::create("--report", &report.page)?
            .write(|out| papers_page::write(out, &environment, (arguments.effort(), arguments.seed), own.as_ref(), &points, &judged))?;
    }
    let off = judged.iter().filter(|one| !one.as_recorded).count();
    print(arguments, &points, &judged)?;
    let mut wrong = Vec::new();
    match record_file {
        Some(file) => file.write(|out| records.with(judged.iter().map(|one| (one.claim, one.record()))).write(out))?,
        None if off > 0 => wrong.push(format!("{off} of {} verdicts contradict the recorded ones, or have no record", judged.len())),
        None => {}
    }
    wrong.extend(papers::reference::unexpected(&points));
    if wrong.is_empty() { Ok(()) } else { Err(Error::Failed(wrong.join("; "))) }
}

fn print(arguments: &Arguments, points: &[Point], judged: &[Judged]) -> Result<()> {
    let width = terminal::width();
    match arguments.output {
        Output::Human => terminal::print(|out| {
            for paper in arguments.papers() {
                let points: Vec<Point> = points.iter().filter(|point| point.paper == paper).cloned().collect();
                let judged: Vec<Judged> = judged.iter().filter(|one| one.paper == paper).cloned().collect();
                // All points of all papers are for a file.
                if (!arguments.items().is_empty() || paper == Paper::Own) && !points.is_empty() {
                    writeln!(out, "{}", reproduction::points(&points, width))?;
                }
                if !judged.is_empty() {
                    writeln!(out, "{}", reproduction::claims(paper, &judged, width))?;
                }
            }
            Ok(())
        }),
        Output::Json => terminal::print(|out| {
            points.iter().try_for_each(|point| json::line(out, &ReproductionLine::point(point)))?;
            judged.iter().try_for_each(|one| json::line(out, &ReproductionLine::claim(one)))
        }),
        Output::Quiet => Ok(()),
    }
}

fn print_recorded(arguments: &Arguments, records: &Records) -> Result<()> {
    let recorded = |paper: Paper| (paper, paper.study().claims.iter().filter_map(|claim| claim.recorded(paper, records)).collect());
    let papers: Vec<(Paper, Vec<Judged>)> = arguments.papers().into_iter().map(recorded).collect();
    terminal::print(|out| out.write_all(reproduction::markdown(&papers).as_bytes()))
}
