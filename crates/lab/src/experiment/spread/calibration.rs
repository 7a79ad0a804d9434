//! Costs for the plan: measured, or from a file.

use std::path::Path;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::SpreadSetting;
use super::input::Input;
use crate::divisible::spread::SpreadCosts;
use crate::divisible::spread::calibrate::calibrate;
use crate::experiment::settle;
use crate::whole_file::WholeFile;
use crate::workload::text;
use equipoise::error::{Error, Result};
use equipoise::node;
use equipoise::topology::RankId;
use equipoise::transport::world::World;

/// A file for other runs: the costs, and the configuration that they are valid for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Kept {
    kernel: String,
    topology: String,
    /// Hosts' names by rank.
    hosts: Vec<String>,
    /// The originator's rank.
    #[serde(default)]
    origin: RankId,
    /// The simulated network with a digest of its links, and the speeds that were emulated; empty on real ranks as they are.
    #[serde(default)]
    network: String,
    #[serde(default)]
    speeds: String,
    costs: SpreadCosts,
}

/// The costs, their origin in words, and whether they include the costs of computing.
///
/// # Errors
/// Wrong usage if the file is there and does not fit, or cannot be written; as [`calibrate`].
pub fn costs(
    world: &mut World,
    setting: &SpreadSetting,
    input: Option<&mut Input>,
    file: Option<&Path>,
) -> Result<(Option<SpreadCosts>, String, bool)> {
    let kept = match file {
        Some(file) => settle::from_rank(world, setting.origin_rank, || read(file))?.map(|kept| (file, kept)),
        None => None,
    };
    if let Some((file, kept)) = kept {
        fits(&kept, world, setting).map_err(|why| Error::usage(format!("--calibration {}: {why}", file.display())))?;
        return Ok((Some(kept.costs), format!("read from {}", file.display()), true));
    }
    let known = measured(world, setting, input)?;
    if !setting.desk.predicts() {
        // Nothing that would be worth keeping.
        return Ok((known, "of the links measured; the command ran on no sample (--sample)".into(), false));
    }
    // Nothing can be measured on an empty input, and so nothing is worth keeping.
    let Some(file) = file.filter(|_| setting.length > 0) else { return Ok((known, "measured".into(), true)) };
    let written = match &known {
        Some(costs) => write(file, &keep(world, setting, costs.clone())),
        None => Ok(()),
    };
    settle::agree(world, written)?;
    Ok((known, format!("measured, and written to {}", file.display()), true))
}

fn keep(world: &World, setting: &SpreadSetting, costs: SpreadCosts) -> Kept {
    let hosts = world.hosts();
    let hosts = RankId::all(hosts.ranks()).map(|rank| hosts.name(hosts.host_of(rank)).to_string()).collect();
    let seconds: Vec<String> = setting.pace.iter().map(|seconds| format!("{seconds}")).collect();
    Kept {
        kernel: setting.computation.name(),
        topology: setting.overlay.topology.name(),
        hosts,
        origin: setting.origin_rank,
        network: setting.network.clone(),
        speeds: if seconds.is_empty() { String::new() } else { format!("{} s a byte", seconds.join(",")) },
        costs,
    }
}

fn read(file: &Path) -> Result<Option<Kept>> {
    let wrong = |why: String| Error::usage(format!("--calibration {}: {why}", file.display()));
    match text::read(file) {
        Ok(text) => {
            serde_json::from_str(&text).map(Some).map_err(|why| wrong(format!("this is no calibration that was written here: {why}")))
        }
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(wrong(format!("it cannot be read: {why}"))),
    }
}

fn write(file: &Path, kept: &Kept) -> Result<()> {
    let failed = |why: String| Error::usage(format!("--calibration {}: it cannot be written: {why}", file.display()));
    let text = serde_json::to_string_pretty(kept).map_err(|why| failed(why.to_string()))?;
    // Another process may read or write it at the same time.
    WholeFile::put(file, |out| writeln!(out, "{text}")).map_err(|why| failed(why.to_string()))
}

/// Longest time of a byte, or of a start-up, in seconds.
const LONGEST: f64 = 1e6;

fn fits(kept: &Kept, world: &World, setting: &SpreadSetting) -> Result<(), String> {
    let here = keep(world, setting, kept.costs.clone());
    let ranks = here.hosts.len();
    let differs =
        |what: &str, then: &str, now: &str| Err(format!("it was measured with {what} {then}, now it is {now}; delete it to measure anew"));
    let lists = [kept.costs.compute.len(), kept.costs.start.len(), kept.costs.links.len()];
    if lists != [kept.hosts.len(); 3] {
        return Err("its lists are not as long as the list of its ranks".into());
    }
    let seconds = kept.costs.compute.iter().chain(&kept.costs.start);
    let seconds = seconds.copied().chain(kept.costs.links.iter().flat_map(|link| [link.startup, link.per_byte]));
    if let Some(wrong) = seconds.clone().find(|seconds| !(0.0..=LONGEST).contains(seconds)) {
        return Err(format!("{wrong} is no time: it must be 0 to {LONGEST} s"));
    }
    match () {
        () if kept.hosts.len() != ranks => differs("ranks:", &kept.hosts.len().to_string(), &ranks.to_string()),
        () if kept.kernel != here.kernel => differs("kernel", &kept.kernel, &here.kernel),
        () if kept.origin != here.origin => differs("origin", &kept.origin.to_string(), &here.origin.to_string()),
        () if kept.topology != here.topology => differs("topology", &kept.topology, &here.topology),
        () if kept.network != here.network => differs("network", or_none(&kept.network), or_none(&here.network)),
        () if kept.speeds != here.speeds => differs("--rate and --speeds", or_none(&kept.speeds), or_none(&here.speeds)),
        () if kept.hosts != here.hosts => differs("hosts", &kept.hosts.join(","), &here.hosts.join(",")),
        () => Ok(()),
    }
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

fn measured(world: &mut World, setting: &SpreadSetting, input: Option<&mut Input>) -> Result<Option<SpreadCosts>> {
    let mut given = None;
    let taken = match input {
        Some(input) => {
            let began = std::time::Instant::now();
            input.sample(setting.records).map(|sample| {
                // Reading takes no virtual time.
                let reading = if world.is_simulated() { 0.0 } else { began.elapsed().as_secs_f64() / sample.len().max(1) as f64 };
                given = Some((sample, reading));
            })
        }
        None => Ok(()),
    };
    settle::agree(world, taken)?;
    let bulk = (setting.length / 8).clamp(64 << 10, 1 << 20);
    // Measuring must take a small part of the whole work: 60 ms for 8 MB, 360 ms for a gigabyte and more.
    let enough = setting.length.saturating_mul(8).clamp(2_000_000, 60_000_000) + (setting.length / 10 * 3).min(300_000_000);
    let measured = node::run(world, &setting.overlay, |node| {
        let given = if node.me() == setting.origin { given.take() } else { None };
        let (tree, kernels) = (setting.tree.clone(), setting.desk.clone());
        async move { calibrate(node, Rc::clone(&tree), kernels, given, bulk, enough).await }
    })?;
    Ok(measured.into_iter().find_map(|(_, costs)| costs))
}
