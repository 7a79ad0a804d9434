//! Reports of the program on runs on real ranks: the typed command, the progress, the cores.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use equipoise::topology::RankId;
use equipoise::transport::mpi;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_lab::experiment::Site;

use crate::contract::Case;
use crate::launch::{Book, Outcome, PROGRAM, Suite};

pub fn enter(book: &mut Book) {
    let cases = || vec![Case { name: "every rank is on some cores", check: cores }];
    let limit = Duration::from_secs(60);
    book.suite(Suite { name: "cores", ranks: &[1, 2, 3, 5, 8], more: &[], limit, options: mpi::Options::default(), cases: cases() });
    book.job("the command that a report shows starts as it stands", 3, reporting, typed);
    book.job("what takes long tells how far it is", 2, long, |outcome| told(outcome, " runs done", 2, 8));
    book.job("a division that takes long tells how far it is", 3, dividing, |outcome| told(outcome, " bytes done", 1, 4));
    book.job("what is soon done tells nothing", 2, short, |outcome| told(outcome, " done", 0, 0));
    book.job("what is to be quiet is so", 2, quiet, |outcome| told(outcome, " done", 0, 0));
    book.check("a table of a paper has points of 2, 4, 8 and 16 real ranks", papers);
}

/// `reproduce --on-ranks` starts its ranks by itself.
fn papers() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|why| why.to_string())?;
    let csv = folder.path().join("points.csv");
    let arguments = ["reproduce", "psts", "--table", "7", "--cases", "2", "--on-ranks", "--csv"];
    let output = Command::new(PROGRAM).args(arguments).arg(&csv).output().map_err(|why| why.to_string())?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{}: {errors}", output.status));
    }
    let text = std::fs::read_to_string(&csv).map_err(|why| why.to_string())?;
    let points = text.lines().filter(|line| line.contains("on real ranks")).map(|line| {
        let fields: Vec<&str> = line.rsplit(',').collect();
        // Behind the curve's name, which has a comma: place, cases, value, and eight more. Two grids have a curve each.
        match (fields[10].parse(), fields[8].parse()) {
            (Ok(ranks), Ok(value)) => Ok((ranks, value)),
            _ => Err(format!("no point: {line}")),
        }
    });
    let points: Vec<(u32, f64)> = points.collect::<Result<_, _>>()?;
    let are_right = points.iter().map(|(ranks, _)| *ranks).eq([2, 2, 4, 4, 8, 8, 16, 16]) && points.iter().all(|(_, value)| *value > 0.0);
    if are_right { Ok(()) } else { Err(format!("{points:?}\n{text}{errors}")) }
}

fn cores(world: &mut World) -> Result<()> {
    let site = Site::of(world, 1)?;
    if !world.is_first() {
        return Ok(());
    }
    let mut ranks: Vec<RankId> = site.groups.iter().flat_map(|group| group.ranks.clone()).collect();
    ranks.sort_unstable();
    let cores: u32 = site.groups.iter().map(|group| group.cores).sum();
    let here = std::thread::available_parallelism().map_or(0, usize::from);
    // The launcher binds nobody, so all ranks share what this host has.
    let is_right = ranks == RankId::all(site.ranks).collect::<Vec<_>>() && site.cores == Some(cores) && cores as usize == here;
    if is_right && site.shares_cores() == (site.ranks > cores) { Ok(()) } else { Err(Error::Failed(format!("{site:?}"))) }
}

/// Becomes the program.
fn become_equipoise(arguments: &[&str]) {
    let why = Command::new(env!("CARGO_BIN_EXE_equipoise")).args(arguments).exec();
    panic!("equipoise cannot be started: {why}");
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("a report's command")
}

fn reporting() {
    let folder = folder();
    let folder = folder.to_str().expect("a folder that is text");
    become_equipoise(&[
        "compare",
        "--balancer",
        "direct,cwa",
        "--loads",
        "5,0,1",
        "--repeat",
        "1",
        "--output",
        "quiet",
        "--report",
        folder,
    ]);
}

fn typed(outcome: &Outcome) -> Result<(), String> {
    outcome.expect(0, Duration::from_secs(60), &[])?;
    let page = folder().join("report.html");
    let text = std::fs::read_to_string(&page).map_err(|why| why.to_string())?;
    let command = text.split("<dt>Command</dt><dd class=\"command\">").nth(1).and_then(|rest| rest.split("</dd>").next());
    let command = command.ok_or("the page has no command")?;
    let command = command.replace("&#x2f;", "/").replace("&quot;", "\"").replace("&#x27;", "'").replace("&lt;", "<").replace("&gt;", ">");
    let command = command.replace("&amp;", "&");
    if !command.contains("mpirun") || !command.contains("-n 3 ") {
        return Err(format!("that is not what was typed: {command}"));
    }
    std::fs::remove_file(&page).map_err(|why| why.to_string())?;
    // Open MPI 5 does not start without a home.
    let kept = ["PATH", "HOME"].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    let output = Command::new("bash").args(["-c", &command]).env_clear().envs(kept).output();
    let output = output.map_err(|why| why.to_string())?;
    match output.status.success() && page.is_file() {
        true => Ok(()),
        false => Err(format!("{command}\n{:?}: {}", output.status, String::from_utf8_lossy(&output.stderr))),
    }
}

fn long() {
    // Two runs of each scheduler, of some 2 to 4 s.
    become_equipoise(&["run", "--compare", "steal,random", "--workload", "tree:levels=1,children=5,least=5,task=1s", "--repeat", "1"]);
}

fn short() {
    become_equipoise(&["run", "--compare", "steal,random", "--workload", "tree:levels=1,children=3,least=3,task=1ms", "--repeat", "1"]);
}

fn quiet() {
    become_equipoise(&["run", "--scheduler", "static", "--workload", "tree:levels=1,children=6,least=6,task=1s", "--output", "quiet"]);
}

/// Shares of 512 kB, at an emulated speed of 64 kB a second.
fn dividing() {
    let input = Path::new(env!("CARGO_TARGET_TMPDIR")).join("a long division");
    // Every rank makes the same file; it gets its name when it is complete.
    let own = input.with_extension(std::process::id().to_string());
    std::fs::write(&own, "a line of sixteen\n".repeat(3 * 512_000 / 18))
        .and_then(|()| std::fs::rename(&own, &input))
        .expect("there is room");
    let input = input.to_str().expect("a folder that is text");
    become_equipoise(&["divide", "--input", input, "--kernel", "count", "--speeds", "1,1,1", "--rate", "64k", "--installments", "1"]);
}

/// Checks the number of lines about the progress, from one rank only.
fn told(outcome: &Outcome, what: &str, least: usize, most: usize) -> Result<(), String> {
    outcome.expect(0, Duration::from_secs(60), &[])?;
    let lines: Vec<&str> = outcome.stderr.lines().filter(|line| line.contains(what)).collect();
    let are_apart = lines.windows(2).all(|pair| pair[0] != pair[1]);
    let left = lines.iter().filter(|line| line.contains(" left; now ")).count();
    if (least..=most).contains(&lines.len()) && are_apart && left + 1 >= least { Ok(()) } else { Err(format!("{lines:?}")) }
}
