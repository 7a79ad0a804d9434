//! A simulation of many nodes touches its memory in no order, so the allocator asks the kernel for huge pages.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Two figures of a process in kB: what it has in memory, and what of that lies on huge pages.
fn pages(process: u32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let figure = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.trim().parse().ok());
    Some((figure("Rss:")?, figure("AnonHugePages:")?))
}

#[test]
fn what_a_simulation_holds_lies_on_huge_pages() {
    let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if setting.is_empty() || setting.contains("[never]") {
        eprintln!("not tested: this kernel gives no huge pages");
        return;
    }
    let mut simulation = Command::new(env!("CARGO_BIN_EXE_equipoise"))
        .args(["balance", "--sim", "4", "--balancer", "direct", "--loads", "0,0,0,60000", "--payload", "2000", "--output", "quiet"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let (mut largest, mut huge) = (0, 0);
    while simulation.try_wait().unwrap().is_none() {
        if let Some((resident, on_huge_pages)) = pages(simulation.id())
            && resident > largest
        {
            (largest, huge) = (resident, on_huge_pages);
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert!(simulation.wait().unwrap().success());
    assert!(largest > 100_000, "{largest} kB are less than the payloads");
    assert!(huge > largest / 2, "{huge} kB of {largest} kB lie on huge pages");
}
