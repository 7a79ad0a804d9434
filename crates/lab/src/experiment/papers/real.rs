//! Figures of the papers on real ranks, where these can be measured: this program started under `mpirun` on 2, 4, 8 and 16 of them, with `--output json`.
//!
//! These points are measured one after the other, when all simulated ones are there, so that nothing else takes the cores. No claim is judged by them:
//! times of real ranks don't repeat, and few machines have a core for each of 16.

mod launcher;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use serde::Deserialize;

use super::super::hamidzadeh1995::{FIGURES, HamidzadehFigure};
use super::super::wu1997::{MEANS, excess};
use super::evidence::Mean;
use super::wu::WALKS;
use super::{Item, Job, Paper, Value, psts};
use crate::workload::LoadPattern;
use equipoise::error::{Error, Result};

pub use launcher::Launcher;

/// How the curve of a figure is named that is measured on real ranks: by its own name and this.
pub const ON_RANKS: &str = ", on real ranks";

/// Bytes of a second on a link and of a rank's computation: w Tcp = z Tcm, so slow that what messages and computing take in addition is little.
const RATE: u32 = 200_000;
const BYTES: usize = 400_000;

/// A line of `compare`.
#[derive(Deserialize)]
struct Compared {
    ms_median: f64,
    task_hops: u64,
    optimum_task_hops: u64,
    imbalance_after: f64,
}

/// A line of `run` with independent tasks.
#[derive(Deserialize)]
struct Ran {
    makespans: Vec<f64>,
}

/// Output of `divide` for a distribution in layers.
#[derive(Deserialize)]
struct Divided {
    layers: Divisions,
}

#[derive(Deserialize)]
struct Divisions {
    speedup: f64,
    utilisation: f64,
}

impl Paper {
    /// Its jobs that can be measured on real ranks.
    pub fn on_ranks(self, launcher: &Arc<Launcher>) -> Vec<Job> {
        match self {
            Paper::Divisible => divisible(launcher),
            Paper::Sash => sash(launcher),
            Paper::Psts => phases(launcher),
            Paper::Wu => wu(launcher),
            // Its cubes have 256 processors, and a figure of one's own names none.
            Paper::Hierarchical | Paper::Own => Vec::new(),
        }
    }
}

fn words(text: &str) -> Vec<OsString> {
    text.split(' ').map(OsString::from).collect()
}

fn mean(curve: String, samples: &[f64]) -> Result<Value> {
    let mean = Mean::of(samples).ok_or_else(|| Error::Failed(format!("{curve}: no case counts")))?;
    Ok(Value::new(curve, mean))
}

/// Phases of a balancer on a topology with each of these loads.
fn compared(launcher: &Launcher, balancer: &str, topology: &str, loads: &[Vec<u64>], rounds: u32) -> Result<Vec<Compared>> {
    let mut arguments = words(&format!("compare --balancer {balancer} --topology {topology} --payload 0 --repeat {rounds}"));
    for loads in loads {
        let list: Vec<String> = loads.iter().map(u64::to_string).collect();
        arguments.extend(["--loads".into(), list.join(",").into()]);
    }
    let ranks = loads.first().map_or(1, Vec::len) as u32;
    let records = launcher.records::<Compared>(ranks, &arguments)?;
    if records.len() == loads.len() {
        Ok(records)
    } else {
        Err(Error::Failed(format!("{balancer} on {topology}: there are records of {} loads instead of {}", records.len(), loads.len())))
    }
}

/// Tables 6 and 7, figures 4 and 5: the time of phases.
fn phases(launcher: &Arc<Launcher>) -> Vec<Job> {
    type Shown = fn(f64, &[u64]) -> f64;
    type Loads = fn(u32, u64) -> Vec<u64>;
    let (imbalance, ms): (Shown, Shown) = (|ms, loads| psts::pays_from((ms * 1e6) as u64, loads), |ms, _| ms);
    let (scattered, arrived): (Loads, Loads) = (psts::scattered, psts::with_one_more);
    let mut jobs = Vec::new();
    for (nodes, line, high) in psts::GRIDS.into_iter().filter(|(nodes, ..)| *nodes <= 16) {
        for (item, curve, grid, loads, shown) in [
            (Item::Table(6), "d = 1", line, scattered, imbalance),
            (Item::Table(6), "d > 1", high, scattered, imbalance),
            (Item::Table(7), "d = 1", line, arrived, imbalance),
            (Item::Table(7), "d > 1", high, arrived, imbalance),
            (Item::Figure(4), "dim = 1", line, scattered, ms),
            (Item::Figure(5), "dim > 1", high, scattered, ms),
        ] {
            let (launcher, curve) = (launcher.clone(), format!("{curve}{ON_RANKS}"));
            jobs.push(Job::new(item, curve.clone(), nodes.into(), [5, 20], move |seed, cases| {
                let loads: Vec<Vec<u64>> = (0..u64::from(cases)).map(|case| loads(nodes, seed + case)).collect();
                let records = compared(&launcher, "psts", grid, &loads, 7)?;
                let samples: Vec<f64> = records.iter().zip(&loads).map(|(record, loads)| shown(record.ms_median, loads)).collect();
                Ok(vec![mean(curve.clone(), &samples)?])
            }));
        }
    }
    jobs
}

/// Figures 15 and 17: task-hops above the fewest, counted on real ranks.
fn wu(launcher: &Arc<Launcher>) -> Vec<Job> {
    let mut jobs = Vec::new();
    let of_dem = [(15, "cwa", "hypercube:2", 4), (15, "cwa", "hypercube:3", 8), (15, "cwa", "hypercube:4", 16)];
    let walks = of_dem.into_iter().chain(WALKS.into_iter().filter(|(.., processors)| *processors <= 16));
    for (figure, balancer, topology, processors) in walks {
        let (launcher, curve) = (launcher.clone(), format!("{balancer}, {processors} processors{ON_RANKS}"));
        // One launch for the whole curve, since launching is what takes time.
        jobs.push(Job::new(Item::Figure(figure), curve.clone(), 0.0, [20, 100], move |seed, cases| {
            let draw = |at: usize| LoadPattern::Uniform { mean: MEANS[at / cases as usize] }.draw(processors, processors, seed + at as u64);
            let loads = (0..MEANS.len() * cases as usize).map(draw).collect::<Result<Vec<_>, _>>()?;
            let records = compared(&launcher, balancer, topology, &loads, 1)?;
            let value = |(records, x): (&[Compared], u64)| {
                let samples: Vec<f64> =
                    records.iter().filter_map(|record| excess(record.task_hops.into(), record.optimum_task_hops.into())).collect();
                Ok(Value { x: Some(x as f64), ..mean(curve.clone(), &samples)? })
            };
            if let Some(uneven) = records.iter().find(|record| record.imbalance_after > 1.0) {
                return Err(Error::Failed(format!("{curve}: loads are uneven after a phase, by {}", uneven.imbalance_after)));
            }
            records.chunks(cases as usize).zip(MEANS).map(value).collect()
        }));
    }
    jobs
}

/// Figures 6, 9 and 12, whose tasks take long enough to be slept and are soon done: total times in cycles of a microsecond.
fn sash(launcher: &Arc<Launcher>) -> Vec<Job> {
    let mut jobs = Vec::new();
    for figure in FIGURES.iter().filter(|figure| [6, 9, 12].contains(&figure.number)) {
        for processors in [4u32, 8, 16] {
            let launcher = launcher.clone();
            jobs.push(Job::new(
                Item::Figure(figure.number),
                format!("totals{ON_RANKS}"),
                processors.into(),
                [3, 10],
                move |seed, cases| total_times(&launcher, figure, processors, seed, cases),
            ));
        }
    }
    jobs
}

fn total_times(launcher: &Launcher, figure: &HamidzadehFigure, processors: u32, seed: u64, cases: u32) -> Result<Vec<Value>> {
    let arguments = words(&format!("run --compare sash,dss --workload {} --seed {seed} --repeat {cases}", figure.workload()));
    let records = launcher.records::<Ran>(processors, &arguments)?;
    let names = ["sash", "dss"].into_iter().zip(&records);
    names
        .map(|(name, record)| mean(format!("{name}{ON_RANKS}"), &record.makespans.iter().map(|seconds| seconds * 1e6).collect::<Vec<_>>()))
        .collect()
}

/// Section 2 and figures 7 and 8: speed-up and utilisation of the paper's distribution, over emulated links on 2, 4, 8 and 16 ranks.
fn divisible(launcher: &Arc<Launcher>) -> Vec<Job> {
    type Shown = fn(&Divisions) -> f64;
    let (speedup, utilisation): (Shown, Shown) = (|layers| layers.speedup, |layers| layers.utilisation);
    let mut jobs = Vec::new();
    for dimension in 1..=4u32 {
        let (d, ranks) = (f64::from(dimension), f64::from(1 << dimension));
        for (item, curve, x, shown) in [
            (Item::Section(2), "speed-up, executed", d, speedup),
            (Item::Figure(7), "z = 1", ranks, speedup),
            (Item::Figure(8), "z = 1", d, utilisation),
        ] {
            let (launcher, curve) = (launcher.clone(), format!("{curve}{ON_RANKS}"));
            jobs.push(Job::new(item, curve.clone(), x, [2, 5], move |_, cases| {
                let samples = (0..cases).map(|_| Ok(shown(&divided(&launcher, 1 << dimension)?)));
                Ok(vec![mean(curve.clone(), &samples.collect::<Result<Vec<f64>>>()?)?])
            }));
        }
    }
    jobs
}

fn divided(launcher: &Launcher, ranks: u32) -> Result<Divisions> {
    let failed = |why: io::Error| Error::Failed(format!("the input to divide cannot be written: {why}"));
    let folder = tempfile::tempdir().map_err(failed)?;
    let input = folder.path().join("input");
    File::create(&input)
        .and_then(|file| {
            let mut out = BufWriter::new(file);
            for line in 0..BYTES / 20 {
                writeln!(out, "line {line:14}")?;
            }
            out.flush()
        })
        .map_err(failed)?;
    let speeds = vec!["1"; ranks as usize].join(",");
    let mut arguments =
        words(&format!("divide --distribution hypercube --kernel count --speeds {speeds} --rate {RATE} --link-rate {RATE} --input"));
    arguments.push(input.into_os_string());
    let records = launcher.records::<Divided>(ranks, &arguments)?;
    records.into_iter().next().map(|record| record.layers).ok_or_else(|| Error::Failed("there is no record of a division".into()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::super::{Effort, Measuring, measure};
    use super::*;

    /// A launcher that runs this shell script instead of ranks.
    fn instead(folder: &Path, script: &str) -> Arc<Launcher> {
        let mpirun = folder.join("mpirun");
        std::fs::write(&mpirun, format!("#!/bin/sh\n[ \"$1\" = --version ] && echo 'mpirun (Open MPI) 9' && exit\n{script}\n")).unwrap();
        std::fs::set_permissions(&mpirun, std::fs::Permissions::from_mode(0o755)).unwrap();
        Arc::new(Launcher::find(&mpirun, Path::new("equipoise")).unwrap())
    }

    #[test]
    fn it_is_started_with_the_arguments_and_its_records_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let said = folder.path().join("said");
        let record = r#"{"ms_median":0.5,"task_hops":12,"optimum_task_hops":10,"imbalance_after":1.0,"more":[1]}"#;
        let launcher = instead(folder.path(), &format!("echo \"$@\" > {}\nfor n in 1 2 3 4 5; do echo '{record}'; done", said.display()));
        let jobs = Paper::Psts.on_ranks(&launcher);
        let points = measure(Paper::Psts, &jobs[..2], &Measuring::new(Effort::Quick, 1), |_| {}).unwrap();
        // 0.5 ms over 2,000 tasks of 100 us.
        assert!((points.0[0].value - 0.0025).abs() < 1e-12 && points.0[0].curve == "d = 1, on real ranks", "{points:?}");
        let said = std::fs::read_to_string(said).unwrap();
        assert!(said.starts_with("--oversubscribe -n 2 equipoise compare --balancer psts --topology grid:2 "), "{said}");
        assert!(said.matches("--loads ").count() == 5 && said.ends_with("--output json\n"), "{said}");
    }

    #[test]
    fn whether_ranks_can_be_started_is_known_beforehand() {
        let folder = tempfile::tempdir().unwrap();
        let tried = |script: &str| instead(folder.path(), script).try_out();
        tried("echo \"{\\\"said\\\":\\\"$*\\\"}\"").unwrap();
        for (script, says) in
            [("echo 'no slots' >&2; exit 1", "cannot start ranks: on 2 real ranks: exit status: 1: no slots"), ("true", "printed nothing")]
        {
            let why = tried(script).err().unwrap();
            assert!(why.exit_status() == 2 && why.to_string().contains(says), "{why}");
        }
    }

    #[test]
    fn what_goes_wrong_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let why = |script: &str| instead(folder.path(), script).records::<Ran>(3, &words("run")).err().unwrap().to_string();
        assert!(why("echo first; echo 'no slots' >&2; exit 7").ends_with("on 3 real ranks: exit status: 7: no slots"));
        assert!(why("echo something").contains("its records cannot be read"));
        let none = Launcher::find(&folder.path().join("none"), Path::new("equipoise")).err().unwrap();
        assert!(none.exit_status() == 2 && none.to_string().contains("cannot be started"), "{none}");
        // Fewer records than loads.
        let launcher = instead(folder.path(), "true");
        assert!(compared(&launcher, "psts", "grid:2", &[vec![1, 2]], 1).is_err());
    }
}
