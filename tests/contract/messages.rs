//! Messages: order, content, scopes, room, and runs that don't leak.

use std::future::Future;
use std::pin::pin;

use bytes::Bytes;
use equipoise::node::{Event, Node, Tag};
use equipoise::transport::OutgoingBody;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use rand::RngExt;

use super::{CHUNK, Entry, INLINE, OUTBOX, ensure, on, on_ranks, pattern};

const DATA: Tag = Tag::new(1, "data");
const OTHER: Tag = Tag::new(2, "other");
const DONE: Tag = Tag::new(3, "done");
const NEWS: Tag = Tag::background(4, "news");

pub const CASES: &[Entry] = &[
    ("order and content per pair, sizes around every limit", |world| on_ranks(world, order)),
    ("order and content per pair, several nodes on a rank", |world| on(world, "hypercube:5", order)),
    ("a node's messages to itself", |world| on_ranks(world, to_itself)),
    ("large messages in all directions at once", |world| on_ranks(world, crossing)),
    ("receives from anyone are fair to none and lose none", |world| on_ranks(world, from_anyone)),
    ("receives name their scope, what belongs elsewhere waits", |world| on_ranks(world, scopes)),
    ("a long inbox is taken from by tag, source and scope", |world| on_ranks(world, long_inbox)),
    ("who asks without waiting sees what has come", |world| on_ranks(world, asking)),
    ("room in the outbox is waited for while messages are served", |world| on_ranks(world, room)),
    ("what cannot be read is an error", |world| on_ranks(world, unreadable)),
    ("counts of what was sent", |world| on_ranks(world, counts)),
    ("a hundred runs that don't leak", hundred_runs),
];

/// Every node sends to the next two, and checks what it hears from the two before.
async fn order(node: Node) -> Result<()> {
    let sizes = {
        let mut rng = node.rng();
        let edges = [0, 1, INLINE - 1, INLINE, INLINE + 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 17, 10 * CHUNK];
        move || if rng.random_range(0..3) == 0 { rng.random_range(0..200) } else { edges[rng.random_range(0..edges.len())] }
    };
    let mut sizes = sizes;
    let (n, me) = (node.nodes(), node.me());
    const EACH: u64 = 40;
    for number in 0..EACH {
        for step in [1, 2] {
            let to = (me + step) % n;
            let mut front = Bytes::from(pattern(me * 4 + step, number, sizes()));
            // In two parts, the first of any length.
            let rest = front.split_off(sizes().min(front.len()));
            let outgoing = OutgoingBody { front: front.into(), rest };
            node.send_tasks(to, if step == 1 { DATA } else { OTHER }, outgoing, number);
        }
    }
    for (step, tag) in [(1, DATA), (2, OTHER)] {
        let from = (me + n * 2 - step) % n;
        for number in 0..EACH {
            let message = node.receive_message(Some(from), tag).await?;
            ensure!(message.envelope.tasks == number, "node {me}: number {} from {from} instead of {number}", message.envelope.tasks);
            let length = message.body.len();
            ensure!(
                message.body == pattern(from * 4 + step, number, length),
                "node {me}: {length} bytes from {from} are not what was sent"
            );
        }
    }
    Ok(())
}

async fn to_itself(node: Node) -> Result<()> {
    for length in [0, 10, INLINE + 1, 5 * CHUNK] {
        node.send_bytes(node.me(), DATA, Bytes::from(pattern(1, 2, length)));
    }
    node.send(node.me(), OTHER, &"a word");
    let word: String = node.receive(node.me(), OTHER).await?;
    ensure!(word == "a word", "heard {word}");
    for length in [0, 10, INLINE + 1, 5 * CHUNK] {
        let (from, body) = {
            let message = node.receive_message(None, DATA).await?;
            (message.envelope.src, message.body)
        };
        ensure!(from == node.me() && body == pattern(1, 2, length), "{} bytes from {from}", body.len());
    }
    Ok(())
}

/// With blocking sends this stands still.
async fn crossing(node: Node) -> Result<()> {
    let (n, me) = (node.nodes(), node.me());
    let length = (4 << 20) / n as usize;
    let body = Bytes::from(pattern(me, 0, length));
    for to in (0..n).filter(|&to| to != me) {
        node.send_bytes(to, DATA, body.clone());
    }
    for from in (0..n).filter(|&from| from != me) {
        let heard = node.receive_message(Some(from), DATA).await?.body;
        ensure!(heard == pattern(from, 0, length), "{} bytes from {from} are not what was sent", heard.len());
    }
    Ok(())
}

async fn from_anyone(node: Node) -> Result<()> {
    const EACH: u64 = 50;
    if node.me() > 0 {
        for number in 0..EACH {
            node.send(0, DATA, &number);
        }
        return Ok(());
    }
    let mut next = vec![0u64; node.nodes() as usize];
    for _ in 0..EACH * u64::from(node.nodes() - 1) {
        let (from, number) = node.receive_any::<u64>(DATA).await?;
        ensure!(number == next[from as usize], "number {number} from {from} instead of {}", next[from as usize]);
        next[from as usize] += 1;
    }
    ensure!(next[1..].iter().all(|&count| count == EACH), "heard {next:?}");
    Ok(())
}

/// Messages of three epochs, sent in the reverse of the order in which they are received.
async fn scopes(node: Node) -> Result<()> {
    let (n, me) = (node.nodes(), node.me());
    let (to, from) = ((me + 1) % n, (me + n - 1) % n);
    for epoch in [2u32, 1, 0] {
        for number in 0..3u32 {
            node.epoch(epoch).send(to, DATA, &(epoch, number));
        }
        node.epoch(epoch).send(to, NEWS, &epoch);
    }
    node.send(to, DONE, &());
    node.receive::<()>(from, DONE).await?;
    for epoch in 0..3u32 {
        let here = node.epoch(epoch);
        let number = here.receive::<(u32, u32)>(from, DATA).await?;
        ensure!(number == (epoch, 0), "epoch {epoch}: {number:?} first");
        // In order of arrival, and nothing of another scope.
        for expected in 1..3u32 {
            let Event::Message(message) = here.next_event().await else { return Err(Error::Failed("not a message".into())) };
            let number: (u32, u32) = equipoise::node::open(&message, DATA)?;
            ensure!(number == (epoch, expected), "epoch {epoch}: {number:?} instead of {expected}");
        }
        let (_, news) = here.receive_any::<u32>(NEWS).await?;
        ensure!(news == epoch, "epoch {epoch}: news of {news}");
        ensure!(here.try_event().await.is_none(), "epoch {epoch}: something is left");
    }
    Ok(())
}

/// More than two hundred events wait, and are taken in another order than they came.
async fn long_inbox(node: Node) -> Result<()> {
    const EACH: u32 = 40;
    let (n, me) = (node.nodes(), node.me());
    for number in 0..EACH {
        for (epoch, tag) in [(0, DATA), (0, OTHER), (5, DATA)] {
            node.epoch(epoch).send((me + 1) % n, tag, &(number, epoch));
        }
    }
    node.send((me + 1) % n, DONE, &());
    let from = (me + n - 1) % n;
    node.receive::<()>(from, DONE).await?;
    let five = node.epoch(5);
    for number in 0..EACH {
        let other: (u32, u32) = node.receive(from, OTHER).await?;
        let fifth: (u32, u32) = five.receive_any(DATA).await?.1;
        ensure!(other == (number, 0) && fifth == (number, 5), "{other:?} and {fifth:?} instead of number {number}");
    }
    for number in 0..EACH {
        let data: (u32, u32) = node.receive_any(DATA).await?.1;
        ensure!(data == (number, 0), "{data:?} instead of number {number}");
    }
    Ok(())
}

/// A question that does not wait: nothing before anything was sent, everything after it has come.
async fn asking(node: Node) -> Result<()> {
    let (n, me) = (node.nodes(), node.me());
    ensure!(node.epoch(9).try_event().await.is_none(), "something came in a scope that nobody uses");
    node.everyone().barrier(&node).await?;
    // In a scope of its own: a quick node is at the barrier below already.
    let here = node.epoch(1);
    here.send((me + 1) % n, DATA, &me);
    let mut asked = 0u64;
    let message = loop {
        match here.try_event().await {
            Some(Event::Message(message)) => break message,
            Some(other) => return Err(Error::Failed(format!("{other:?}"))),
            None => asked += 1,
        }
        ensure!(asked < 1_000_000_000, "asked {asked} times");
    };
    ensure!(message.envelope.src == (me + n - 1) % n, "from {}", message.envelope.src);
    node.everyone().barrier(&node).await
}

/// All send much more than fits the outbox to the next, who is slow, and answer questions meanwhile.
async fn room(node: Node) -> Result<()> {
    let (n, me) = (node.nodes(), node.me());
    const EACH: u64 = 40;
    const LENGTH: usize = OUTBOX / 2;
    let mut waited = 0;
    if me % 2 == 0 || me + 1 == n {
        for number in 0..EACH {
            let mut looks = 0;
            {
                let mut ready = pin!(node.ready_to_send());
                std::future::poll_fn(|context| {
                    looks += 1;
                    ready.as_mut().poll(context)
                })
                .await;
            }
            waited += u64::from(looks > 1);
            node.send_bytes((me + 1) % n, DATA, Bytes::from(pattern(me, number, LENGTH)));
        }
    }
    let before = (me + n - 1) % n;
    if before % 2 == 0 || before + 1 == n {
        for number in 0..EACH {
            if number % 8 == 0 {
                // Slow in its own computing, so that its rank does not poll of the network either.
                std::thread::sleep(std::time::Duration::from_millis(5));
                node.charge(5_000_000);
            }
            let body = node.receive_message(Some(before), DATA).await?.body;
            ensure!(body == pattern(before, number, LENGTH), "number {number}: {} bytes are not what was sent", body.len());
        }
    }
    let waits = node.everyone().all_reduce(&node, waited, |a, b| a + b).await?;
    ensure!(n == 1 || waits > 0, "nobody ever waited for room");
    Ok(())
}

async fn unreadable(node: Node) -> Result<()> {
    let (n, me) = (node.nodes(), node.me());
    let from = (me + n - 1) % n;
    node.send((me + 1) % n, DATA, &3u8);
    let heard = node.receive::<u64>(from, DATA).await;
    match heard {
        Err(Error::Garbled { from: said, what, .. }) if said == from && what == "'data'" => Ok(()),
        other => Err(Error::Failed(format!("{other:?} instead of an error"))),
    }
}

async fn counts(node: Node) -> Result<()> {
    let (n, me) = (node.nodes(), node.me());
    let (recorded, counts) = node.recorded();
    let (to, from) = ((me + 1) % n, (me + n - 1) % n);
    // A token goes around twice: the chain grows by one at each rank.
    for round in 0..2u32 {
        if me > 0 || round > 0 {
            recorded.receive::<u32>(from, DATA).await?;
        }
        recorded.send_tasks(to, DATA, Bytes::from_static(&[0; 4]), 5);
    }
    let mut expected_chain = n + me + 1;
    if me == 0 {
        recorded.receive::<u32>(from, DATA).await?;
        expected_chain = 2 * n;
    }
    let counts = counts.get();
    if n == 1 {
        ensure!(counts.messages == 0 && counts.chain == 0, "{counts:?} of messages that never left the rank");
        return Ok(());
    }
    ensure!(counts.messages == 2 && counts.bytes == 2 * (equipoise::node::HEADER_BYTES + 4), "{counts:?}");
    ensure!(counts.tasks == 10 && counts.task_hops == 10 && counts.host_bytes == 0, "{counts:?}");
    ensure!(counts.chain == expected_chain, "node {me}: {counts:?} instead of a chain of {expected_chain}");
    Ok(())
}

/// At the end of each run messages, timers and work are left over; none may be seen by the next.
fn hundred_runs(world: &mut World) -> Result<()> {
    for run in 0..100u32 {
        on(world, if run % 10 == 0 { "hypercube:5" } else { "complete" }, move |node| async move {
            let (n, me) = (node.nodes(), node.me());
            let step = (1 + run) % n;
            node.send((me + step) % n, DATA, &run);
            // The first of this run from there; one left over from an earlier run would come before it.
            let heard: u32 = node.receive((me + n - step) % n, DATA).await?;
            ensure!(heard == run, "run {run} hears of run {heard}");
            // Strays, of all kinds.
            node.send((me + 1) % n, DATA, &run);
            node.send((me + 2) % n, OTHER, &run);
            node.send_bytes((me + 3) % n, DATA, Bytes::from(pattern(me, 0, (run as usize % 7) * INLINE)));
            node.epoch(7).send(me, DATA, &run);
            node.set_timer(node.now() + 100);
            if run % 25 == 3 {
                node.start(move |worker| worker.spin(1_000_000));
                node.start_sliced(Endless);
            }
            Ok(())
        })?;
    }
    on_ranks(world, |node| async move {
        node.everyone().barrier(&node).await?;
        for epoch in [0, 7] {
            let left = node.epoch(epoch).try_event().await;
            ensure!(left.is_none(), "left over: {left:?}");
        }
        Ok(())
    })
}

struct Endless;

impl equipoise::node::Sliced for Endless {
    fn step(&mut self, budget: u64) -> equipoise::node::Step {
        equipoise::node::Step::More { spent: budget }
    }
}
