//! Resources of a farm's ranks: processors, devices, time.

use std::fs;
use std::process::Stdio;

use libtest_mimic::{Failed, Trial};

use super::{LIMIT, Place, hold};
use crate::launch::{self, PROGRAM, Turn};

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for ranks in [1, 2, 3, 5, 8] {
        let name = format!("a farm gives tasks to ranks that have what they need, on {ranks} ranks");
        trials.push(launch::trial(Turn::Waiting, name, move || uneven(ranks)));
    }
    for ranks in [1, 2, 3, 5, 8] {
        let name = format!("a farm divides a host's processors among its ranks, on {ranks} ranks");
        trials.push(launch::trial(Turn::Waiting, name, move || divided(ranks)));
    }
    for ranks in [1, 2, 3, 5, 8] {
        let name = format!("a farm that is bound to fewer processors than it has workers says so once, on {ranks} ranks");
        trials.push(launch::trial(Turn::Waiting, name, move || bound(ranks)));
    }
    trials.push(launch::trial(Turn::Waiting, "the end of a farm's time is told by rank 0's environment", time_of_rank_0));
    trials
}

/// Slots that do not come out even: only rank 0 has two processors, and from two ranks on the last one has a processor less.
fn uneven(ranks: u32) -> Result<(), Failed> {
    for scheduler in ["", "dss", "sash", "selfsched:rule=gss", "selfsched:rule=static"] {
        let place = Place::new()?;
        let line = |seq| {
            let needs = if seq % 4 == 0 { " #EQ cpus=2 cost=0.02" } else { "" };
            format!("sh -c 'sleep 0.01; echo $FARM_RANK {seq} >>{}'{needs}\n", place.text("ran"))
        };
        fs::write(place.path("jobs"), (1..=24).map(line).collect::<String>())?;
        let slots = format!("host:cpus={}", ranks + 1);
        let jobs = place.text("jobs");
        let mut arguments = vec![jobs.as_str(), "--slots", &slots, "--workers", "2"];
        if !scheduler.is_empty() {
            arguments.extend(["--scheduler", scheduler]);
        }
        let outcome = place.farm(ranks, &arguments)?;
        let ran = fs::read_to_string(place.path("ran"))?;
        let mut wide =
            ran.lines().filter_map(|line| line.split_once(' ')).filter(|(_, seq)| seq.parse().is_ok_and(|seq: u32| seq.is_multiple_of(4)));
        hold(outcome.status == Some(0) && ran.lines().count() == 24 && wide.all(|(rank, _)| rank == "0"), scheduler, &outcome)?;
    }
    Ok(())
}

/// Without --workers a rank runs as many commands at a time as it has of the host's processors, and not as many as the host has.
fn divided(ranks: u32) -> Result<(), Failed> {
    let place = Place::new()?;
    for (slots, workers) in [("host:cpus=8", 8u32.div_ceil(ranks)), ("cpus=8", 8), ("host:gpus=8", 1)] {
        let outcome = place.farm(ranks, &["--empty", "3", "--slots", slots, "--output", "json"])?;
        let has_begun = outcome.stdout.lines().next().and_then(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        hold(outcome.status == Some(0) && has_begun.is_some_and(|event| event["workers"] == workers), slots, &outcome)?;
    }
    Ok(())
}

/// Launchers bind ranks to a processor each, unless they are asked not to.
fn bound(ranks: u32) -> Result<(), Failed> {
    if !fs::read_to_string("/sys/devices/system/cpu/online")?.contains(['-', ',']) {
        eprintln!("this machine has one processor: NOT TESTED with ranks that are bound to one of several");
        return Ok(());
    }
    let place = Place::new()?;
    let who = if ranks == 1 { "rank 0".to_string() } else { format!("rank 0 (and {} more like it)", ranks - 1) };
    let remark = format!("equipoise: {who} runs 2 commands at a time on 1 of the ");
    // Of each it is only its number that differs.
    let script = "grep Cpus_allowed_list: /proc/self/status # {}";
    for (workers, remarks) in [("1", 0), ("2", 1)] {
        let words = ["farm", "--array", "1-6", "--workers", workers, "--", "sh", "-c", script];
        let mut job = launch::launcher(LIMIT)?;
        job.args(["-n", &ranks.to_string(), "taskset", "-c", "0", PROGRAM]).args(words).stdin(Stdio::null()).current_dir(place.0.path());
        let output = job.output()?;
        let (said, listed) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
        let said_so = (said.matches("commands at a time on").count(), said.matches(&remark).count());
        if !output.status.success() || said_so != (remarks, remarks) || listed != "Cpus_allowed_list:\t0\n".repeat(6) {
            return Err(format!("{workers} workers: {}: {listed}{said}", output.status).into());
        }
    }
    Ok(())
}

/// A launcher may give the batch system's variables to the first rank only.
fn time_of_rank_0() -> Result<(), Failed> {
    let place = Place::new()?;
    fs::write(place.path("jobs"), "true #EQ cost=0.1\ntrue #EQ cost=1000\n")?;
    for (rank, status) in [("0", 4), ("1", 2)] {
        let script = format!(
            "if test ${{OMPI_COMM_WORLD_RANK-$PMI_RANK}} = {rank}; then export PBS_WALLTIME=60; fi; exec {PROGRAM} farm {} --walltime auto",
            place.text("jobs")
        );
        let mut job = launch::launcher(LIMIT)?;
        for variable in ["SLURM_JOB_END_TIME", "SLURM_JOB_START_TIME", "PBS_WALLTIME"] {
            job.env_remove(variable);
        }
        let output = job.args(["-n", "2", "sh", "-c", &script]).stdin(Stdio::null()).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let expected = if status == 4 { "1 done, 0 failed, 0 skipped, 1 left" } else { "--walltime auto: auto needs SLURM_JOB_END_TIME" };
        if output.status.code() != Some(status) || said.matches(expected).count() != 1 {
            return Err(format!("told to rank {rank}: {}: {said}", output.status).into());
        }
    }
    Ok(())
}
