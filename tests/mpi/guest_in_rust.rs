//! A guest in a Rust program, which the tests run on ranks: values that stay are untouched, what does not travel is found before anything is
//! sent, and a panic in a callback comes back while the program keeps its own hook.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use equipoise::guest::{Failure, Given, Status, World};
use equipoise::transport::mpi::rsmpi::{self, traits::Communicator};
use serde::{Deserialize, Serialize};

use crate::launch::{Book, Outcome};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Cell2 {
    owner: u32,
    index: u64,
    #[serde(skip)]
    cache: Option<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Number(u64),
    Text(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Skipping {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<u8>,
    next: u8,
}

static PANICS: AtomicU32 = AtomicU32::new(0);

pub fn enter(book: &mut Book) {
    let fine: fn(&Outcome) -> Result<(), String> = |outcome| {
        outcome.expect(0, Duration::from_secs(60), &[("equipoise:", 0)])?;
        if outcome.stdout.contains("the guest passes") { Ok(()) } else { Err("it should say that it passes".into()) }
    };
    for (name, ranks) in [
        ("a guest in Rust, alone", 1),
        ("a guest in Rust on 2 ranks", 2),
        ("a guest in Rust on 3 ranks", 3),
        ("a guest in Rust on 5 ranks", 5),
        ("a guest in Rust on 8 ranks", 8),
    ] {
        book.job(name, ranks, || passes().unwrap_or_else(|why| panic!("{why}")), fine);
    }
}

/// A step asks for balancing when what the slowest rank loses, in all steps for which the loads last, is above what the last plan has cost.
fn predicted(world: &World, rank: u32, ranks: u32) -> Result<(), Failure> {
    world.set("trigger", "predicted:steps=100")?;
    world.plan(&[1.0; 10])?;
    let loses = |seconds: f64| world.step(if rank == 0 { seconds } else { 0.0 });
    // A tenth of a microsecond in all is less than a plan takes, a hundred seconds are more.
    assert!(!loses(1e-9)?);
    assert_eq!(loses(1.0)?, ranks > 1);
    assert!(!world.step(1.0)?, "all take the same");
    world.set("trigger", "menon")
}

fn passes() -> Result<(), Failure> {
    let universe = rsmpi::initialize().expect("MPI");
    let all = universe.world();
    let (rank, ranks) = (all.rank() as u32, all.size() as u32);
    std::panic::set_hook(Box::new(|_| _ = PANICS.fetch_add(1, Ordering::SeqCst)));

    let world = World::with_options(&all, "balancer=refine")?;
    predicted(&world, rank, ranks)?;
    let cells: Vec<Cell2> = (0..if rank == 0 { 12 } else { 1 }).map(|index| Cell2 { owner: rank, index, cache: Some(vec![7]) }).collect();
    let weights: Vec<f64> = cells.iter().map(|cell| 1.0 + cell.index as f64).collect();
    let plan = world.plan(&weights)?;
    assert!(plan.verdict().after <= plan.verdict().before);
    let there = plan.move_vec(cells.clone())?;
    assert_eq!(there.len(), plan.incoming());
    for (cell, (from, index)) in there.iter().zip(plan.sources()) {
        assert_eq!((cell.owner, cell.index), (*from, *index));
        // What stays is as it was, with what serde skips.
        assert_eq!(cell.cache.is_some(), *from == rank);
    }
    let results: Vec<String> = there.iter().map(|cell| format!("{}.{}", cell.owner, cell.index)).collect();
    let mine = plan.give_back(results)?;
    assert!(mine.iter().zip(0..).all(|(text, index)| *text == format!("{rank}.{index}")));
    let bytes: Vec<u8> = cells.iter().map(|cell| cell.index as u8).collect();
    let mut there = vec![0; plan.incoming()];
    plan.move_bytes(&bytes, 1, &mut there)?;
    assert!(there.iter().zip(plan.sources()).all(|(byte, (_, index))| u64::from(*byte) == *index));

    let plain: Vec<[f64; 3]> = cells.iter().map(|cell| [cell.index as f64, rank.into(), -0.0]).collect();
    let there = plan.move_plain(&plain)?;
    assert!(there.iter().zip(plan.sources()).all(|(item, (from, index))| item[..2] == [*index as f64, f64::from(*from)]));
    assert_eq!(plan.give_back_plain(&there)?, plain);
    assert_eq!(plan.move_plain(&vec![(); cells.len()])?.len(), plan.incoming());
    let one_more = vec![0.0; plan.incoming() + usize::from(rank == 0)];
    let refused = plan.give_back_plain(&one_more).unwrap_err();
    assert!(refused.status == Status::Usage && (ranks == 1 || refused.text.contains("rank 0")), "{refused}");

    if ranks > 1 {
        // One rank's value does not travel: all hear of it, and all have their values still.
        let to: Vec<i32> = vec![(rank as i32 + 1) % ranks as i32; 2];
        let shift = world.plan_of(&Given { items: 2, destinations: Some(&to), ..Given::default() })?;
        let values = vec![Untagged::Number(1), Untagged::Text("b".into())];
        let refused = shift.move_vec(values.clone()).unwrap_err();
        assert_eq!((refused.failure.status, refused.values), (Status::Usage, values));
        let values = vec![Skipping { name: if rank == ranks - 1 { None } else { Some(1) }, next: 1 }; 2];
        let refused = shift.move_vec(values.clone()).unwrap_err();
        assert!(refused.failure.text.contains(&format!("rank {}", ranks - 1)), "{}", refused.failure);
        assert_eq!(refused.values, values);
        assert_eq!(shift.move_vec(vec![rank, rank])?, [(rank + ranks - 1) % ranks; 2]);
    }

    // A run by closures.
    let sum = Cell::new(0u64);
    world.put(&4u64.to_le_bytes(), 0.0, 0)?;
    let process = |task: &equipoise::guest::Task<'_>, body: &[u8]| {
        let number = u64::from_le_bytes(body.try_into().unwrap());
        if number > 0 {
            task.put(&(number - 1).to_le_bytes(), 0.0, 0).unwrap();
        }
        task.result(body);
        0
    };
    let mut add = |_: u32, _: u64, bytes: &[u8]| {
        sum.set(sum.get() + u64::from_le_bytes(bytes.try_into().unwrap()));
        0
    };
    world.run("steal", &process, Some(&mut add))?;
    assert_eq!(sum.get(), 10);

    assert_eq!(PANICS.load(Ordering::SeqCst), 0);
    let failed = world.run("steal", &|_, _| 0, None).and_then(|()| {
        world.put(&[], 0.0, 0)?;
        world.run("static", &move |_, _| if rank == 0 { panic!("on purpose") } else { 0 }, None)
    });
    let failure = failed.unwrap_err();
    assert_eq!(failure.status, Status::Panic);
    assert!(failure.text.contains("rank 0") && failure.text.contains("on purpose"), "{failure}");
    assert_eq!(PANICS.load(Ordering::SeqCst), u32::from(rank == 0));
    // It is lost: every call says so, and closing waits for nobody.
    assert_eq!(world.step(1.0).unwrap_err().status, Status::Panic);
    assert!(world.close().is_ok());
    if rank == 0 {
        println!("the guest passes on {ranks}");
    }
    Ok(())
}
