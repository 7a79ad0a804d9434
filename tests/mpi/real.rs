//! Tests for real ranks only: signals, communicators, hosts, processors that idle, many ranks.

use std::fs;
use std::time::{Duration, Instant};

use equipoise::node::{self, Event, Signal, Tag};
use equipoise::topology::{HostId, Overlay, Topology};
use equipoise::transport::mpi;
use equipoise::transport::world::World;
use equipoise::{Error, Result};

use crate::contract::{self, Case};
use crate::launch::{Book, Suite};
use crate::small_limits;

const WORD: Tag = Tag::new(1, "word");

/// The share of a core that a waiting rank may use, in percent. The target is 4; shared machines are given some slack.
const IDLE_LIMIT: f64 = 10.0;

pub fn enter(book: &mut Book) {
    let cases = || {
        vec![
            Case { name: "signals reach every node", check: signals },
            Case { name: "a rank that waits leaves its core alone", check: idle },
            Case { name: "the map of hosts covers all ranks", check: hosts },
        ]
    };
    let limit = Duration::from_secs(120);
    book.suite(Suite { name: "real", ranks: &[1, 2, 8], more: &[], limit, options: small_limits(), cases: cases() });
    let first: Vec<Case> = contract::cases().into_iter().take(1).collect();
    let many = mpi::Options::program().with_watchdog(mpi::Watch::Always(Duration::from_secs(100)));
    book.suite(Suite { name: "many", ranks: &[64], more: &[], limit, options: many, cases: first });
}

pub fn everywhere(world: &World) -> Result<Overlay> {
    let wrong = |why: equipoise::topology::InvalidTopology| Error::usage(why.to_string());
    let topology = Topology::parse("complete", world.ranks()).map_err(wrong)?;
    Overlay::one_host(topology, world.ranks()).map_err(wrong)
}

fn signals(world: &mut World) -> Result<()> {
    let overlay = everywhere(world)?;
    node::run(world, &overlay, |node| async move {
        for (number, expected) in [(signal_hook::consts::SIGUSR1, Signal::User1), (signal_hook::consts::SIGUSR2, Signal::User2)] {
            signal_hook::low_level::raise(number).map_err(|why| Error::Failed(why.to_string()))?;
            match node.epoch(3).next_event().await {
                Event::Signal(signal) if signal == expected => {}
                other => return Err(Error::Failed(format!("{other:?} instead of {expected:?}"))),
            }
        }
        Ok(())
    })
    .map(|_| ())
}

/// Processor time of this process so far.
fn processor_time() -> Duration {
    let mut nanos = 0;
    for task in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let spent = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        nanos += spent.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(0);
    }
    Duration::from_nanos(nanos)
}

/// All ranks wait for rank 0, first in a named receive, then for whatever comes; rank 0 waits for a timer.
fn idle(world: &mut World) -> Result<()> {
    const WHILE: Duration = Duration::from_secs(2);
    let overlay = everywhere(world)?;
    node::run(world, &overlay, |node| async move {
        for open in [false, true] {
            let here = node.epoch(1 + u32::from(open));
            node.everyone().barrier(&node).await?;
            let (begin, before) = (Instant::now(), processor_time());
            if node.me() == 0 {
                here.set_timer(here.now() + WHILE.as_nanos() as u64);
                here.next_event().await;
                for other in 1..here.nodes() {
                    here.send(other, WORD, &());
                }
            } else if open {
                here.next_event().await;
            } else {
                here.receive::<()>(0, WORD).await?;
            }
            let share = 100.0 * (processor_time() - before).as_secs_f64() / begin.elapsed().as_secs_f64();
            let most = node.everyone().all_reduce(&node, (share * 100.0) as u64, u64::max).await? as f64 / 100.0;
            if node.me() == 0 {
                println!("idle, {}: {most} % of a core", if open { "waiting for anything" } else { "waiting for one" });
            }
            if most > IDLE_LIMIT {
                return Err(Error::Failed(format!("a waiting rank used {most} % of a core")));
            }
        }
        Ok(())
    })
    .map(|_| ())
}

fn hosts(world: &mut World) -> Result<()> {
    let Some(world) = world.as_real() else { return Ok(()) };
    let hosts = world.hosts();
    if hosts.ranks() != world.ranks() || hosts.count() != 1 || hosts.name(HostId::FIRST).is_empty() {
        return Err(Error::Failed(format!("{hosts:?}")));
    }
    Ok(())
}
