//! Waiting for several futures at once.
//!
//! A world polls a program again whenever something has happened to its node, and passes a waker that does nothing. So a combinator has to
//! poll all of its futures each time, as these do. Combinators that poll only woken futures (`FuturesUnordered`, `tokio::select!` over
//! channels) would stand still.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use super::Node;

/// The output of the first of two futures to be ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either<A, B> {
    /// Output of the first future.
    First(A),
    /// Output of the second future.
    Second(B),
}

impl Node {
    /// Waits until both futures are ready, and returns both outputs.
    ///
    /// Each time something happens the first is polled before the second. Two receives that match the same message compete for it: the first
    /// future gets the earlier one.
    ///
    /// ```
    /// use equipoise::{node, topology::{Overlay, Topology}, transport::{Tag, sim, world::World}};
    ///
    /// const GREETING: Tag = Tag::new(1, "greeting");
    /// let mut world = World::simulated(3, sim::Model::default());
    /// let overlay = Overlay::one_host(Topology::parse("ring", 3)?, 3)?;
    /// let heard = node::run(&mut world, &overlay, |node| async move {
    ///     let (left, right) = ((node.me() + 2) % 3, (node.me() + 1) % 3);
    ///     node.send(left, GREETING, &node.me());
    ///     node.send(right, GREETING, &node.me());
    ///     let (a, b) = node.join(node.receive::<u32>(left, GREETING), node.receive::<u32>(right, GREETING)).await;
    ///     Ok((a?, b?))
    /// })?;
    /// assert_eq!(heard[0].1, (2, 1));
    /// # Ok::<(), equipoise::Error>(())
    /// ```
    pub async fn join<A: Future, B: Future>(&self, first: A, second: B) -> (A::Output, B::Output) {
        let (mut first, mut second) = (pin!(first), pin!(second));
        let (mut one, mut other) = (None, None);
        poll_fn(|context| {
            poll_once(&mut one, || first.as_mut().poll(context));
            poll_once(&mut other, || second.as_mut().poll(context));
            match (one.take(), other.take()) {
                (Some(one), Some(other)) => Poll::Ready((one, other)),
                unfinished => {
                    (one, other) = unfinished;
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Waits until one of two futures is ready, and drops the other. If both are, the first counts.
    ///
    /// All futures of a [`Node`] may be dropped while they wait: they take a message or an event only when they are ready, so that nothing is
    /// lost.
    pub async fn select<A: Future, B: Future>(&self, first: A, second: B) -> Either<A::Output, B::Output> {
        let (mut first, mut second) = (pin!(first), pin!(second));
        poll_fn(|context| match first.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Either::First(output)),
            Poll::Pending => second.as_mut().poll(context).map(Either::Second),
        })
        .await
    }
}

/// Polls a future that has no output yet.
fn poll_once<T>(output: &mut Option<T>, poll: impl FnOnce() -> Poll<T>) {
    if output.is_none()
        && let Poll::Ready(ready) = poll()
    {
        *output = Some(ready);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{self, Event, Tag};
    use crate::topology::{Overlay, Topology};
    use crate::transport::sim;
    use crate::transport::world::World;

    const DATA: Tag = Tag::new(1, "data");
    const OTHER: Tag = Tag::new(2, "other");

    fn on_two<F>(program: impl FnMut(Node) -> F)
    where
        F: Future<Output = crate::Result<()>> + 'static,
    {
        let overlay = Overlay::one_host(Topology::parse("line", 2).unwrap(), 2).unwrap();
        node::run(&mut World::simulated(2, sim::Model::default()), &overlay, program).unwrap();
    }

    #[test]
    fn both_of_a_join_are_waited_for_in_either_order_of_arrival() {
        for order in [[DATA, OTHER], [OTHER, DATA]] {
            on_two(|node| async move {
                let other = 1 - node.me();
                for tag in order {
                    node.send(other, tag, &tag.number());
                    node.charge(1_000_000);
                }
                let (data, other) = node.join(node.receive::<u16>(other, DATA), node.receive::<u16>(other, OTHER)).await;
                assert_eq!((data?, other?), (DATA.number(), OTHER.number()));
                Ok(())
            });
        }
    }

    #[test]
    fn select_takes_the_first_that_is_ready_and_loses_nothing_of_the_other() {
        on_two(|node| async move {
            if node.me() == 0 {
                node.charge(5_000_000);
                node.send(1, DATA, &7u32);
                return Ok(());
            }
            let apart = node.epoch(9);
            let timer = apart.set_timer(node.now() + 1_000_000);
            match node.select(node.receive::<u32>(0, DATA), apart.next_event()).await {
                Either::Second(Event::Timer { timer: over, .. }) => assert_eq!(over, timer),
                other => panic!("{other:?}"),
            }
            assert_eq!(node.receive::<u32>(0, DATA).await?, 7);
            Ok(())
        });
    }
}
