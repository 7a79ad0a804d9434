//! Messages between ranks, with mistakes: control messages (`transport/wire.rs`) and tasks that move (`node/migrate.rs`).

use bytes::Bytes;
use equipoise::load::WorkQueue;
use equipoise::node::migrate::Mover;
use equipoise::node::{self, Tag};
use equipoise::topology::{Overlay, Topology};
use equipoise::transport::{sim, wire, world::World};

use crate::dice::Dice;
use crate::readers::Said;

type Value = (u64, String, Vec<(u32, bool)>, Option<Vec<u8>>);

fn value(dice: &mut Dice) -> Value {
    let row = (0..dice.below(6)).map(|_| (dice.between(0, u64::from(u32::MAX)) as u32, dice.percent(50))).collect();
    let text = dice.number(1000);
    let bytes = dice.percent(50).then(|| vec![7; dice.below(20)]);
    (dice.between(0, u64::MAX), text, row, bytes)
}

/// Bytes as they are, or with mistakes; and whether they are as they are.
fn sent(dice: &mut Dice, bytes: Vec<u8>) -> (Vec<u8>, bool) {
    if dice.percent(20) { (bytes, true) } else { (dice.mistaken(&bytes), false) }
}

/// Control messages and headers: what is read is written as it was.
pub fn wire(dice: &mut Dice) -> Said {
    let value = value(dice);
    match dice.below(4) {
        0 => {
            let (bytes, whole) = sent(dice, wire::write(&value).to_vec());
            let read = wire::read::<Value>(&bytes);
            assert!(!whole || read.as_ref() == Ok(&value), "a message does not read back");
            match read {
                Ok(read) => assert_eq!(wire::write(&read), bytes),
                Err(why) => return Some(why.to_string()),
            }
        }
        1 => {
            let mut bytes = wire::write(&value.0).to_vec();
            value.2.iter().for_each(|item| wire::write_into(item, &mut bytes));
            let (bytes, whole) = sent(dice, bytes);
            let read = wire::read_row::<u64, (u32, bool)>(&bytes);
            assert!(!whole || read == Ok((value.0, value.2)), "a row does not read back");
            return read.err().map(|why| why.to_string());
        }
        2 => {
            let mut bytes = Vec::new();
            wire::write_compactly(&value, &mut bytes);
            let (bytes, whole) = sent(dice, bytes);
            let read = wire::read_compactly::<Value>(&bytes);
            assert!(!whole || read == Ok((value, bytes.len())), "a compact message does not read back");
            return read.err().map(|why| why.to_string());
        }
        _ => {
            let header: Vec<u8> = (0..wire::HEADER).map(|_| dice.between(0, 255) as u8).collect();
            let (bytes, _) = sent(dice, header);
            match wire::read_header(&bytes) {
                Ok((envelope, body)) => {
                    let mut again = Vec::new();
                    wire::write_header(&envelope, body, &mut again);
                    assert_eq!(again, bytes[..wire::HEADER]);
                }
                Err(why) => return Some(why.to_string()),
            }
        }
    }
    None
}

/// The tag under which the mover sends tasks.
const TASKS: Tag = Tag::new(0x7e01, "tasks");

/// A node receives what claims to be a batch of tasks.
pub fn migrate(dice: &mut Dice) -> Said {
    let rows: Vec<[u64; 4]> =
        (0..dice.below(5)).map(|at| [100 * at as u64, dice.between(1, 9), dice.between(1, 5), dice.between(0, 12)]).collect();
    let mut bytes = Vec::new();
    // The step at which it was sent, and what its sender says.
    wire::write_compactly(&(1u32, 7u64), &mut bytes);
    wire::write_number(rows.len() as u64, &mut bytes);
    rows.iter().flatten().for_each(|number| wire::write_number(*number, &mut bytes));
    let payloads: u64 = rows.iter().map(|[_, count, _, size]| count * size).sum();
    bytes.resize(bytes.len() + payloads as usize, 9);
    let (bytes, whole) = sent(dice, bytes);
    let tasks = rows.iter().map(|[_, count, _, _]| count).sum();
    let work: u64 = rows.iter().map(|[_, count, weight, _]| count * weight).sum();

    let mut world = World::simulated(2, sim::Model::default());
    let overlay = Topology::parse("line", 2).and_then(|line| Overlay::one_host(line, 2)).expect("two nodes on a line");
    let bytes = Bytes::from(bytes);
    let outcome = node::run(&mut world, &overlay, |node| {
        let bytes = bytes.clone();
        async move {
            if node.me() == 0 {
                node.send_tasks(1, TASKS, bytes, tasks);
                return Ok((7, work));
            }
            let mut queue = WorkQueue::default();
            let mut mover = Mover::new(&node, &mut queue);
            let arrival = mover.receive::<u64>(0).await?;
            Ok((arrival.said, arrival.batch.work()))
        }
    });
    match outcome {
        Ok(nodes) if whole => assert!(nodes.iter().all(|(_, read)| *read == (7, work)), "a batch does not read back"),
        Ok(_) => {}
        Err(why) => {
            assert!(!whole, "a whole batch is refused: {why}");
            return Some(why.to_string());
        }
    }
    None
}
