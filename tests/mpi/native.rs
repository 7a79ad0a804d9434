//! Collective operations that MPI carries out: the same results and counts as with our own trees, and nobody waits for ever.

use std::time::Duration;

use equipoise::agreement::{self, Collectives};
use equipoise::node::{self, Counts, Group, Node, Tag};
use equipoise::transport::mpi;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use libtest_mimic::{Failed, Trial};

use crate::contract::Case;
use crate::launch::{self, Book, Suite, Turn};
use crate::real::everywhere;
use crate::{phases, small_limits};

const TOKEN: Tag = Tag::new(1, "token");

pub fn enter(book: &mut Book) {
    let cases = vec![
        Case { name: "operations of all ranks and of some", check: operations },
        Case { name: "what is measured is agreed on", check: chosen },
        Case { name: "unit tasks on equal ranks", check: |world| balanced(world, "equal", "unit", None) },
        Case {
            name: "tasks of all sizes, some pinned, on unequal ranks",
            check: |world| balanced(world, "uniform:1..10", "exponential:mean=10", Some("p=0.3")),
        },
    ];
    let limit = Duration::from_secs(300);
    book.suite(Suite { name: "native collectives", ranks: &[1, 2, 3, 5, 8], more: &[], limit, options: small_limits(), cases });
    book.waiting_job("ranks that wait in an operation of MPI say so", 3, stuck, |outcome| {
        let sentences =
            [("equipoise: no progress for 2 s: all 3 ranks wait for each other\n", 1), ("waits for the others in MPI's sum", 2)];
        outcome.expect(3, Duration::from_secs(20), &sentences)
    });
}

/// The option on the command line.
pub fn trials() -> Vec<Trial> {
    let ranks = [1, 2, 3, 5, 8];
    ranks
        .map(|ranks| {
            launch::trial(Turn::Alone, format!("--collectives own, native and auto print the same on {ranks} ranks"), move || {
                printed(ranks)
            })
        })
        .into()
}

/// Every balancer, as `phases` has them, with MPI's operations on the ranks and our own in simulation.
fn balanced(world: &mut World, powers: &str, weights: &str, pins: Option<&str>) -> Result<()> {
    let begun = begun(world);
    world.use_native_collectives(true)?;
    let outcome = phases::every(world, powers, weights, pins);
    world.use_native_collectives(false)?;
    outcome?;
    match self::begun(world) > begun {
        used if used == (world.ranks() > 1) => Ok(()),
        used => Err(Error::Failed(format!("MPI's operations were{} used", if used { "" } else { " not" }))),
    }
}

fn begun(world: &World) -> u64 {
    world.as_real().map_or(0, mpi::World::native_operations)
}

/// Results of all operations on a node, and its counts.
type Yield = (u64, bool, u64, Vec<Vec<u16>>, Vec<u64>, Vec<u32>, Counts);

fn operations(world: &mut World) -> Result<()> {
    let overlay = agreement::one_node_per_rank(world)?;
    let run = |world: &mut World, native: bool| {
        world.use_native_collectives(native)?;
        agreement::only(node::run(world, &overlay, program)?)
    };
    let (own, native) = (run(world, false)?, run(world, true)?);
    world.use_native_collectives(false)?;
    let (me, ranks) = (u64::from(world.held().start.get()), u64::from(world.ranks()));
    let sums = (ranks * (ranks + 1) / 2, me * (me + 1) / 2);
    if own != native || (own.0, own.2) != sums || own.1 != (ranks > 1) || own.3.iter().zip(0..).any(|(list, rank)| *list != list_of(rank)) {
        return Err(Error::Failed(format!("{own:?} with our own trees, {native:?} with MPI's")));
    }
    Ok(())
}

/// A list that is longer on each rank, too long for one block from some rank on.
fn list_of(node: u32) -> Vec<u16> {
    vec![node as u16; node as usize * 7]
}

async fn program(node: Node) -> Result<Yield> {
    let (node, counts) = node.recorded();
    let (me, all) = (node.me(), node.everyone());
    // Chains of all lengths at first.
    if me > 0 {
        node.receive::<()>(me - 1, TOKEN).await?;
    }
    if me + 1 < node.nodes() {
        node.send(me + 1, TOKEN, &());
    }
    let sum = all.sum(&node, u64::from(me) + 1).await?;
    let any = all.any(&node, me == 1).await?;
    let before = all.sum_before(&node, u64::from(me) + 1).await?;
    let lists = all.all_gather(&node, list_of(me)).await?.to_vec();
    // Every second node, and a list of nodes that is not in order.
    let some = Group::spaced(me % 2, 2, (node.nodes() + 1 - me % 2) / 2, me).ok_or_else(|| Error::Failed("no group".into()))?;
    let of_some = some.all_gather(&node, u64::from(me)).await?.to_vec();
    let turned: Vec<u32> = (0..node.nodes()).rev().collect();
    let turned = Group::new(turned, me).ok_or_else(|| Error::Failed("no group".into()))?;
    let over_first = turned.all_gather_over_first(&node, me).await?;
    let scanned = turned.sum_before(&node, 1).await?;
    if scanned != u64::from(node.nodes() - 1 - me) {
        return Err(Error::Failed(format!("{scanned} before node {me} from behind")));
    }
    Ok((sum, any, before, lists, of_some, over_first, counts.get()))
}

/// All ranks choose the same, whatever they measure.
fn chosen(world: &mut World) -> Result<()> {
    let used = agreement::use_collectives(world, Collectives::Auto)?;
    world.use_native_collectives(false)?;
    let told = (used.native, used.measured.map(|times| times.to_vec()));
    match agreement::difference(world, &told)? {
        None if used.measured.is_some() == (world.ranks() > 1) => Ok(()),
        other => Err(Error::Failed(format!("{other:?}, {used:?}"))),
    }
}

/// Rank 1 waits for a message that nobody sends, the others for rank 1.
fn stuck() {
    let options = mpi::Options::program().with_watchdog(mpi::Watch::Always(Duration::from_secs(2)));
    let mut world = World::init(options).unwrap_or_else(|why| panic!("{why}"));
    let overlay = everywhere(&world).unwrap_or_else(|why| panic!("{why}"));
    world.use_native_collectives(true).unwrap_or_else(|why| panic!("{why}"));
    let ended = node::run(&mut world, &overlay, |node| async move {
        if node.me() == 1 {
            node.receive::<()>(0, TOKEN).await?;
        }
        node.everyone().sum(&node, 1).await
    });
    panic!("it ended: {ended:?}");
}

fn printed(ranks: u32) -> Result<(), Failed> {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_equipoise"));
    let run = |arguments: &[&str]| launch::under_mpirun(program, arguments, ranks, Duration::from_secs(90), None);
    let loads = ["--loads", "hot:total=60", "--weights", "uniform:1..10", "--output", "json"];
    for balancer in ["direct", "psts", "pslb", "refine", "fos"] {
        let mut seen = Vec::new();
        for whose in ["own", "native", "auto"] {
            let outcome = run(&[&["balance", "--balancer", balancer, "--collectives", whose], &loads[..]].concat())?;
            let mut record: serde_json::Value =
                serde_json::from_str(&outcome.stdout).map_err(|why| format!("{why}\n{}", outcome.told()))?;
            let object = record.as_object_mut().ok_or("no object")?;
            let used = object.remove("collectives");
            let is_right = match (whose, used.as_ref().and_then(|used| used.as_str())) {
                ("own", Some("own")) | ("auto", Some("own" | "native")) => true,
                ("native", Some(used)) => (used == "native") == (ranks > 1 && object["native"] == true),
                _ => false,
            };
            if !is_right {
                return Err(format!("{balancer}, {whose}: {used:?}\n{}", outcome.told()).into());
            }
            // What is a time.
            object.retain(|key, _| !(key.starts_with("ms_") || ["seconds", "break_even_us"].contains(&key.as_str())));
            seen.push(record);
        }
        if seen[0] != seen[1] || seen[0] != seen[2] {
            return Err(format!("{balancer}: {seen:#?}").into());
        }
    }
    let wrong = run(&["balance", "--collectives", "mpi"])?;
    wrong.expect(2, Duration::from_secs(60), &[("invalid value 'mpi' for '--collectives <WHOSE>': known are own, native and auto", 1)])?;
    Ok(())
}
