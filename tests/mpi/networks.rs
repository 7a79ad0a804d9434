//! `probe` and `advise` on real ranks.

use std::path::Path;
use std::time::Duration;

use equipoise::topology::RankId;
use equipoise::transport::mpi;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_lab::experiment::{self, ProbeSpec};
use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use crate::contract::Case;
use crate::launch::{self, Book, Suite, Turn};

const LIMIT: Duration = Duration::from_secs(90);

pub fn enter(book: &mut Book) {
    let cases = || vec![Case { name: "a probe measures every rank and link", check: measures }];
    let options = mpi::Options::program().with_watchdog(mpi::Watch::Always(Duration::from_secs(30)));
    book.suite(Suite { name: "probe", ranks: &[1, 2, 3, 5, 8], more: &[], limit: LIMIT, options, cases: cases() });
}

/// All of them.
pub fn trials() -> Vec<Trial> {
    vec![
        launch::trial(Turn::Alone, "probe under mpirun writes a network that simulations and advice read", written),
        launch::trial(Turn::Alone, "advise under mpirun measures the network first", advised),
        launch::trial(Turn::Alone, "compare under mpirun predicts with a measured network", predicted),
    ]
}

fn measures(world: &mut World) -> Result<()> {
    let ranks = world.ranks();
    let spec = ProbeSpec { rounds: 4, kernel: 1_000_000, ..ProbeSpec::quick() };
    let record = experiment::probe(world, &spec, "probed", 1)?;
    if record.is_some() != world.is_first() {
        return Err(Error::Failed("the record belongs to rank 0".into()));
    }
    let Some(record) = record else { return Ok(()) };
    let mean = record.speeds.iter().sum::<f64>() / record.speeds.len() as f64;
    let link = |link: &experiment::probe::LinkRecord| {
        // A message between processes takes more than 10 ns and less than a second, and none is faster than a memory.
        link.between == "within" && (0.01..1e6).contains(&link.latency_us) && link.sizes.iter().all(|timed| timed.us > 0.01)
    };
    let holds = record.ranks == ranks
        && record.hosts == [RankId::all(ranks).collect::<Vec<_>>()]
        && record.links.len() == usize::from(ranks > 1)
        && record.links.iter().all(link)
        && (mean - 1.0).abs() < 1e-9
        && record.speeds.iter().all(|speed| *speed > 0.0)
        && record.latencies.len() as u32 == ranks * (ranks - 1) / 2
        && record.latencies.iter().all(|(_, _, us)| *us > 0.01)
        && record.cores_per_rank.is_some_and(|cores| cores > 0.0)
        && record.clock_offset_us.len() as u32 == ranks;
    if holds { Ok(()) } else { Err(Error::Failed(format!("{record:?}"))) }
}

fn json(text: &str) -> Result<Value, Failed> {
    serde_json::from_str(text).map_err(|why| format!("{why}: {text}").into())
}

fn written() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let network = folder.path().join("probed.toml");
    let network = network.to_string_lossy();
    let program = Path::new(env!("CARGO_BIN_EXE_equipoise"));
    let arguments = ["probe", "--repeat", "4", "--compute", "0.02", "--output", "json", "--write", &network];
    let outcome = launch::under_mpirun(program, &arguments, 4, LIMIT, None)?;
    outcome.expect(0, LIMIT, &[])?;
    let probed = json(&outcome.stdout)?;
    let latency = probed["links"][0]["latency_us"].as_f64().unwrap_or(0.0);
    // The simulator has that network.
    let output = std::process::Command::new(program)
        .args(["probe", "--sim", "4", "--network", &network, "--repeat", "4", "--compute", "0.02", "--output", "json"])
        .output()?;
    let simulated = json(&String::from_utf8_lossy(&output.stdout))?;
    let again = simulated["links"][0]["latency_us"].as_f64().unwrap_or(0.0);
    if !(latency > 0.0 && (again - latency).abs() <= 0.002) {
        return Err(format!("{latency} us were measured, {again} us are simulated\n{}", outcome.told()).into());
    }
    // Four candidates take seven rounds: the bound of a false alarm is 4 / 2^7.
    let outcome = launch::under_mpirun(program, &["probe", "--strict", "--repeat", "6"], 4, LIMIT, None)?;
    Ok(outcome.expect(2, LIMIT, &[("--strict: a verdict on these ranks takes --repeat 7 or more, not 6", 1)])?)
}

fn advised() -> Result<(), Failed> {
    let program = Path::new(env!("CARGO_BIN_EXE_equipoise"));
    for (seconds, pays) in [("1", true), ("1e-9", false)] {
        let arguments = ["advise", "--loads", "hot:total=300", "--task-seconds", seconds, "--output", "json"];
        let outcome = launch::under_mpirun(program, &arguments, 3, LIMIT, None)?;
        outcome.expect(0, LIMIT, &[])?;
        let advice = json(&outcome.stdout)?;
        if advice["pays"] != pays || advice["ranks"] != 3 || advice["measured"] != true {
            return Err(outcome.told().into());
        }
    }
    let arguments = ["advise", "--loads", "1,2", "--task-seconds", "1"];
    let outcome = launch::under_mpirun(program, &arguments, 3, LIMIT, None)?;
    Ok(outcome.expect(2, LIMIT, &[("--loads: 2 numbers for", 1)])?)
}

fn predicted() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let network = folder.path().join("network.toml");
    std::fs::write(&network, "[[host]]\nname = \"a\"\nranks = [0, 1, 2]\n[within]\nlatency = \"20us\"\nper_byte = \"2.7ns\"\n")?;
    let csv = folder.path().join("table.csv");
    let (network, table) = (network.to_string_lossy(), csv.to_string_lossy());
    let program = Path::new(env!("CARGO_BIN_EXE_equipoise"));
    // Numbered tasks, and tasks of which a rank has read its own only.
    let tasks = ["--tasks", "lbaf:tests/data/loads/lbaf-toy-fewer-16ranks"];
    let files = ["--tasks", "files:tests/cli"];
    for loads in [["--loads", "90,0,0"], tasks, files] {
        let common = [&["compare", "--balancer", "direct,cwa", "--output", "json"][..], &loads].concat();
        let real = [&common[..], &["--repeat", "1", "--network", &network, "--csv", &table]].concat();
        let outcome = launch::under_mpirun(program, &real, 3, LIMIT, None)?;
        outcome.expect(0, LIMIT, &[("the file has it on", 0)])?;
        // What is predicted is what the simulation of the same command takes.
        let output = std::process::Command::new(program).args(common).args(["--sim", "3", "--network", &network]).output()?;
        let simulated = String::from_utf8_lossy(&output.stdout).into_owned();
        for (real, simulated) in outcome.stdout.lines().zip(simulated.lines()) {
            let (real, simulated) = (json(real)?, json(simulated)?);
            if real["ms_predicted"] != simulated["ms_median"] || real["ms_predicted"].is_null() || simulated.get("ms_predicted").is_some() {
                return Err(format!("{real}\n{simulated}").into());
            }
        }
        if outcome.stdout.lines().count() != 2 {
            return Err(outcome.told().into());
        }
    }
    // The ranks of this machine are on two hosts in the file.
    let apart = folder.path().join("apart.toml");
    let hosts = "[[host]]\nname = \"a\"\nranks = [0, 1]\n[[host]]\nname = \"b\"\nranks = [2]\n";
    let link = "latency = \"20us\"\nper_byte = \"2.7ns\"\n";
    std::fs::write(&apart, format!("{hosts}[within]\n{link}[between]\n{link}"))?;
    let elsewhere = ["compare", "--balancer", "direct", "--loads", "90,0,0", "--repeat", "1", "--network", &apart.to_string_lossy()];
    let outcome = launch::under_mpirun(program, &elsewhere, 3, LIMIT, None)?;
    outcome.expect(0, LIMIT, &[("rank 2 is on host ", 1), (", but the file has it on b: the predicted times are those", 1)])?;
    let table = std::fs::read_to_string(&csv)?;
    if !table.lines().next().is_some_and(|header| header.ends_with(",ms_predicted")) {
        return Err(table.into());
    }
    for (arguments, says) in [
        (&["balance", "--network", &network][..], "--network: it is the network of simulated ranks; say --sim RANKS, too"),
        (&["compare", "--network", "zero"], "--network zero: on real ranks it must be a FILE.toml (- for standard input) to predict with"),
        (&["compare", "--network", "/no/such.toml"], "--network /no/such.toml: the file cannot be read"),
    ] {
        let outcome = launch::under_mpirun(program, arguments, 3, LIMIT, None)?;
        outcome.expect(2, LIMIT, &[(says, 1)])?;
    }
    Ok(())
}
