//! Collectives on 1 to 40 nodes, disturbed by rules, with an operation whose order shows.

use equipoise::Result;
use equipoise::node::{Group, Node};

use super::*;

/// Runs a program on each number of nodes, undisturbed and with random delays.
fn on_every_size<T, F>(program: impl Fn(Node) -> F + Copy, check: impl Fn(u32, Vec<T>))
where
    T: 'static,
    F: Future<Output = Result<T>> + 'static,
{
    for nodes in 1..=40 {
        check(nodes, on(nodes, "complete", model("zero"), program).unwrap());
        let rules = Rules::seeded(u64::from(nodes)).delay_heavily(3000).shuffle();
        check(nodes, on(nodes, "complete", disturbed("switched", rules), program).unwrap());
    }
}

fn word(node: u32) -> String {
    format!("<{node}>")
}

fn words(nodes: std::ops::Range<u32>) -> String {
    nodes.map(word).collect()
}

#[test]
fn a_reduction_gives_every_member_the_same() {
    on_every_size(
        |node| async move {
            let group = node.everyone();
            let sum = group.all_reduce(&node, u64::from(node.me()) + 1, |a, b| a + b).await?;
            let text = group.all_reduce(&node, word(node.me()), |a, b| a + &b).await?;
            Ok((sum, text))
        },
        |nodes, results| {
            let (sum, text) = &results[0];
            assert_eq!(*sum, u64::from(nodes) * u64::from(nodes + 1) / 2);
            // Each once; in order where there are no members beyond a power of two.
            assert!((0..nodes).all(|node| text.matches(&word(node)).count() == 1), "{text}");
            assert!(!nodes.is_power_of_two() || *text == words(0..nodes), "{text}");
            assert!(results.iter().all(|result| *result == results[0]));
        },
    );
}

#[test]
fn a_scan_combines_in_order_what_lies_before() {
    on_every_size(
        |node| async move { node.everyone().exclusive_scan(&node, word(node.me()), |a, b| a.clone() + b).await },
        |nodes, results| {
            assert_eq!(results, (0..nodes).map(|node| (node > 0).then(|| words(0..node))).collect::<Vec<_>>());
        },
    );
}

#[test]
fn a_broadcast_reaches_everyone_from_every_root() {
    on_every_size(
        |node| async move {
            let mut heard = Vec::new();
            for root in 0..node.nodes() {
                heard.push(node.everyone().broadcast(&node, root, (root == node.me()).then(|| word(root))).await?);
            }
            Ok(heard.concat())
        },
        |nodes, results| assert!(results.iter().all(|heard| *heard == words(0..nodes)), "{results:?}"),
    );
}

#[test]
fn gathers_keep_the_order_of_places() {
    on_every_size(
        |node| async move {
            let gathered = node.everyone().gather(&node, word(node.me())).await?;
            let everywhere = node.everyone().all_gather(&node, word(node.me())).await?;
            Ok((gathered, everywhere, node.everyone().all_gather_over_first(&node, word(node.me())).await?))
        },
        |nodes, results| {
            let all: Vec<_> = (0..nodes).map(word).collect();
            for (node, (gathered, everywhere, over_first)) in results.iter().enumerate() {
                assert_eq!(gathered, if node == 0 { &all } else { &[][..] });
                assert_eq!(*everywhere, all);
                assert_eq!(over_first, &all);
            }
        },
    );
}

#[test]
fn nobody_leaves_a_barrier_before_the_last_has_come() {
    on_every_size(
        |node| async move {
            let mut times = Vec::new();
            for round in 0..4u32 {
                // Another node is the last each time.
                node.charge(if node.me() == round * 7 % node.nodes() { 1_000_000 } else { 10 });
                let came = node.now();
                node.everyone().barrier(&node).await?;
                times.push((came, node.now()));
            }
            Ok(times)
        },
        |nodes, results| {
            for round in 0..4 {
                let last = results.iter().map(|times| times[round].0).max();
                assert!(results.iter().all(|times| Some(times[round].1) >= last), "{nodes} nodes, round {round}: {results:?}");
            }
        },
    );
}

#[test]
fn all_agree_on_the_first_failure() {
    on_every_size(
        |node| async move {
            let fine = node.everyone().agree(&node, Ok(node.me())).await;
            let failing = if node.me() % 7 == node.nodes() % 7 { Err(Error::wrong_result(word(node.me()))) } else { Ok(node.me()) };
            Ok((fine, node.everyone().agree(&node, failing).await))
        },
        |nodes, results| {
            let first = (0..nodes).find(|node| node % 7 == nodes % 7);
            for (node, (fine, agreed)) in (0..).zip(results) {
                assert_eq!(fine, Ok(node));
                assert_eq!(agreed, first.map_or(Ok(node), |first| Err(Error::wrong_result(word(first)))), "{nodes} nodes");
            }
        },
    );
}

#[test]
fn groups_in_any_order_do_not_disturb_each_other() {
    for nodes in 2..=40 {
        let results = on(nodes, "complete", disturbed("switched", Rules::seeded(9).delay_up_to(90_000)), |node| async move {
            // Those of one remainder, from the last to the first.
            let mine: Vec<u32> = (0..node.nodes()).rev().filter(|other| other % 3 == node.me() % 3).collect();
            let group = Group::new(mine.clone(), node.me()).unwrap();
            assert_eq!(group.node(group.place()), node.me());
            let before = group.exclusive_scan(&node, word(node.me()), |a, b| a.clone() + b).await?.unwrap_or_default();
            let all = group.all_gather(&node, node.me()).await?;
            let root = group.broadcast(&node, group.size() - 1, (group.place() + 1 == group.size()).then(|| node.me())).await?;
            group.barrier(&node).await?;
            assert_eq!(all, mine);
            assert_eq!(root, node.me() % 3);
            assert_eq!(before, mine.iter().take_while(|other| **other != node.me()).map(|other| word(*other)).collect::<String>());
            Ok(())
        });
        assert!(results.is_ok(), "{nodes}: {results:?}");
    }
}

#[test]
fn a_collective_takes_as_many_steps_as_it_says() {
    for nodes in 1..=40u32 {
        let times = on(nodes, "complete", model("switched:latency=1us,per_byte=0ns"), |node| async move {
            let mut times = vec![node.now()];
            let group = node.everyone();
            group.barrier(&node).await?;
            times.push(node.now());
            group.all_gather(&node, 1u8).await?;
            times.push(node.now());
            Ok(times)
        });
        let steps = u64::from(nodes.next_power_of_two().trailing_zeros()) * 1000;
        assert_eq!(times, Ok(vec![vec![0, steps, 2 * steps]; nodes as usize]));
    }
}
