//! Waiting for several things at once.

use equipoise::node::{Either, Event, Node, Tag};
use equipoise::{Error, Result};

use super::{Entry, OUTBOX, ensure, on_ranks};

const DATA: Tag = Tag::new(1, "data");
const OTHER: Tag = Tag::new(2, "other");
const LARGE: Tag = Tag::new(3, "large");

pub const CASES: &[Entry] = &[
    ("a join waits for messages in either order", |world| on_ranks(world, joins)),
    ("a join gives each of its futures turns", |world| on_ranks(world, turns)),
    ("a join waits for room and for an event", |world| on_ranks(world, room)),
    ("a select takes what comes first, and the other is not lost", |world| on_ranks(world, selects)),
];

fn neighbours(node: &Node) -> (u32, u32) {
    ((node.me() + node.nodes() - 1) % node.nodes(), (node.me() + 1) % node.nodes())
}

async fn joins(node: Node) -> Result<()> {
    let (left, right) = neighbours(&node);
    for round in 0..50u32 {
        let tags = if (round + node.me()).is_multiple_of(2) { [DATA, OTHER] } else { [OTHER, DATA] };
        tags.iter().for_each(|tag| node.send(right, *tag, &(round, tag.number())));
        let (data, other) = node.join(node.receive(left, DATA), node.receive(left, OTHER)).await;
        let (data, other): ((u32, u16), (u32, u16)) = (data?, other?);
        ensure!((data, other) == ((round, 1), (round, 2)), "{data:?} and {other:?} in round {round}");
    }
    Ok(())
}

/// Nothing arrives while two of three take turns, and the third waits for what is sent after that.
async fn turns(node: Node) -> Result<()> {
    let (left, right) = neighbours(&node);
    let asking = |node: Node| async move {
        for turn in 0..100 {
            let event = node.try_event().await;
            ensure!(event.is_none(), "{event:?} came in turn {turn}");
        }
        Ok(())
    };
    let both = async {
        let (one, other) = node.join(asking(node.epoch(8)), asking(node.epoch(9))).await;
        node.send(right, OTHER, &node.me());
        one.and(other)
    };
    let (asked, last) = node.join(both, node.receive::<u32>(left, OTHER)).await;
    asked?;
    let last = last?;
    ensure!(last == left, "{last} came");
    Ok(())
}

async fn room(node: Node) -> Result<()> {
    let (left, right) = neighbours(&node);
    let sending = async {
        for _ in 0..8 {
            node.ready_to_send().await;
            node.send_bytes(right, LARGE, vec![7; OUTBOX / 2 + 1].into());
        }
    };
    let receiving = async {
        for number in 0..8 {
            let message = node.receive_message(Some(left), LARGE).await?;
            ensure!(message.body.len() == OUTBOX / 2 + 1, "message {number} has {} bytes", message.body.len());
        }
        Ok(())
    };
    node.join(sending, receiving).await.1
}

async fn selects(node: Node) -> Result<()> {
    let (left, right) = neighbours(&node);
    let timer = node.epoch(9).set_timer(node.now() + 1_000_000);
    match node.select(node.receive::<u32>(left, DATA), node.epoch(9).next_event()).await {
        Either::Second(Event::Timer { timer: over, .. }) if over == timer => {}
        other => return Err(Error::Failed(format!("{other:?} came"))),
    }
    node.send(right, OTHER, &node.me());
    match node.select(node.receive::<u32>(right, DATA), node.receive::<u32>(left, OTHER)).await {
        Either::Second(from) => ensure!(from? == left, "another message came"),
        Either::First(other) => return Err(Error::Failed(format!("{other:?} came"))),
    }
    node.everyone().barrier(&node).await?;
    // A receive of DATA was dropped twice; what is sent now is there for a third.
    node.send(right, DATA, &node.me());
    let from: u32 = node.receive(left, DATA).await?;
    ensure!(from == left, "{from} instead of {left}");
    Ok(())
}
