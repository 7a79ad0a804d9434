//! Timers, and work beside messages.

use equipoise::node::{Event, Finished, Node, Sliced, Step, Tag, Ticks};
use equipoise::{Error, Result};

use super::{Entry, ensure, on, on_ranks};

const ASK: Tag = Tag::new(1, "question");
const ANSWER: Tag = Tag::new(2, "answer");
const STOP: Tag = Tag::new(3, "stop");

const MILLISECOND: Ticks = 1_000_000;

pub const CASES: &[Entry] = &[
    ("timers run out in order of time, and not before it", |world| on_ranks(world, timers)),
    ("cancelled timers never come", |world| on_ranks(world, cancelled)),
    ("timers belong to their scope", |world| on_ranks(world, timers_of_scopes)),
    ("work ends with its own answer", |world| on_ranks(world, answers)),
    ("work belongs to its scope and its node", |world| on(world, "hypercube:4", work_of_scopes)),
    ("a node answers while a worker computes", |world| on_ranks(world, |node| beside(node, false))),
    ("a node answers between the slices of its work", |world| on_ranks(world, |node| beside(node, true))),
];

async fn timers(node: Node) -> Result<()> {
    // So that there is a past.
    node.set_timer(node.now() + 1);
    node.next_event().await;
    let begin = node.now();
    let delays = [5, 1, 3, 1, 0];
    let set: Vec<_> = delays.iter().map(|delay| (begin + delay * MILLISECOND, node.set_timer(begin + delay * MILLISECOND))).collect();
    let past = node.set_timer(0);
    let mut expected = set.clone();
    // Those of one time in the order in which they were set.
    expected.sort_by_key(|(at, _)| *at);
    expected.insert(0, (0, past));
    for (at, timer) in expected {
        match node.next_event().await {
            Event::Timer { timer: came, .. } if came == timer => ensure!(node.now() >= at, "{} before {at}", node.now()),
            other => return Err(Error::Failed(format!("{other:?} instead of {timer:?}"))),
        }
    }
    Ok(())
}

async fn cancelled(node: Node) -> Result<()> {
    let begin = node.now();
    let running = node.set_timer(begin + MILLISECOND);
    let over = node.set_timer(begin);
    let kept = node.set_timer(begin + 3 * MILLISECOND);
    // Let the second run out without being taken.
    let elsewhere = node.epoch(1);
    elsewhere.set_timer(begin + MILLISECOND / 2);
    elsewhere.next_event().await;
    node.cancel_timer(running);
    node.cancel_timer(over);
    node.cancel_timer(over);
    match node.next_event().await {
        Event::Timer { timer, .. } if timer == kept => {}
        other => return Err(Error::Failed(format!("{other:?} instead of {kept:?}"))),
    }
    ensure!(node.try_event().await.is_none(), "a cancelled timer came");
    Ok(())
}

async fn timers_of_scopes(node: Node) -> Result<()> {
    let (one, two) = (node.epoch(1), node.epoch(2));
    let begin = node.now();
    let early = one.set_timer(begin + MILLISECOND);
    let late = two.set_timer(begin + 2 * MILLISECOND);
    for (here, expected) in [(&two, late), (&one, early)] {
        match here.next_event().await {
            Event::Timer { timer, .. } if timer == expected => {}
            other => return Err(Error::Failed(format!("{other:?} instead of {expected:?}"))),
        }
    }
    Ok(())
}

/// Counts down, a little per step.
struct Countdown {
    left: u64,
    answer: u64,
}

impl Sliced for Countdown {
    fn step(&mut self, budget: Ticks) -> Step {
        let now = self.left.min(10);
        self.left -= now;
        let spent = budget.min(now * 1000);
        match self.left {
            0 => Step::Done { spent, output: Box::new(self.answer) },
            _ => Step::More { spent },
        }
    }
}

async fn finished(node: &Node) -> Result<Finished> {
    match node.next_event().await {
        Event::Finished { finished, .. } => Ok(finished),
        other => Err(Error::Failed(format!("{other:?} instead of the end of work"))),
    }
}

fn answer(finished: Finished) -> Result<u64> {
    finished.output.downcast::<u64>().map(|number| *number).map_err(|_| Error::Failed("an answer of another type".into()))
}

async fn answers(node: Node) -> Result<()> {
    let mut expected = std::collections::BTreeMap::new();
    for number in 0..20u64 {
        let opaque = node.start(move |worker| {
            worker.charge(50_000);
            worker.spin(50_000);
            worker.checkpoint();
            worker.sleep(10_000);
            number * number
        });
        let sliced = node.start_sliced(Countdown { left: 35, answer: number + 1000 });
        expected.insert(opaque, number * number);
        expected.insert(sliced, number + 1000);
    }
    ensure!(expected.len() == 40, "pieces of work have the same number");
    while !expected.is_empty() {
        let finished = finished(&node).await?;
        ensure!(finished.began <= finished.ended && finished.ended <= node.now(), "{finished:?} at {}", node.now());
        let should = expected.remove(&finished.work);
        let is = answer(finished)?;
        ensure!(should == Some(is), "{is} instead of {should:?}");
    }
    ensure!(node.try_event().await.is_none(), "something ended twice");
    Ok(())
}

async fn work_of_scopes(node: Node) -> Result<()> {
    let me = u64::from(node.me());
    let epochs = [1, 2, 3];
    for epoch in epochs {
        let number = me * 10 + u64::from(epoch);
        node.epoch(epoch).start(move |worker| {
            worker.spin(10_000);
            number
        });
        node.epoch(epoch).start_sliced(Countdown { left: 25, answer: number + 5 });
    }
    for epoch in [3, 1, 2] {
        let here = node.epoch(epoch);
        let mut both = [answer(finished(&here).await?)?, answer(finished(&here).await?)?];
        both.sort_unstable();
        let number = me * 10 + u64::from(epoch);
        ensure!(both == [number, number + 5], "epoch {epoch}: {both:?}");
    }
    Ok(())
}

/// Node 0 works for a while; the others ask it, one question after the other, and get answers before the work is done.
async fn beside(node: Node, sliced: bool) -> Result<()> {
    const WHILE: Ticks = 200 * MILLISECOND;
    if node.me() > 0 {
        let mut asked = 0u64;
        loop {
            node.send(0, ASK, &asked);
            match node.next_event().await {
                Event::Message(message) if message.envelope.tag == ANSWER.id() => asked += 1,
                Event::Message(message) if message.envelope.tag == STOP.id() => return Ok(()),
                other => return Err(Error::Failed(format!("{other:?}"))),
            }
        }
    }
    if sliced {
        node.start_sliced(Busy { left: WHILE });
    } else {
        node.start(|worker| worker.spin(WHILE));
    }
    let mut answered = vec![0u32; node.nodes() as usize];
    let finished = loop {
        match node.next_event().await {
            Event::Message(message) => {
                answered[message.envelope.src as usize] += 1;
                node.send(message.envelope.src, ANSWER, &());
            }
            Event::Finished { finished, .. } => break finished,
            other => return Err(Error::Failed(format!("{other:?}"))),
        }
    };
    for other in 1..node.nodes() {
        node.send(other, STOP, &());
    }
    ensure!(finished.ended - finished.began >= WHILE, "{finished:?}");
    ensure!(answered[1..].iter().all(|&count| count >= 3), "answered {answered:?} while it worked");
    Ok(())
}

/// Computes for a time, really and by its own account.
struct Busy {
    left: Ticks,
}

impl Sliced for Busy {
    fn step(&mut self, budget: Ticks) -> Step {
        let spent = budget.min(self.left);
        let begin = std::time::Instant::now();
        while begin.elapsed().as_nanos() < u128::from(spent) {
            std::hint::spin_loop();
        }
        self.left -= spent;
        if self.left == 0 { Step::Done { spent, output: Box::new(()) } } else { Step::More { spent } }
    }
}
