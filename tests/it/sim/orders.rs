//! Orders of events explored by seed: order per pair holds in all of them, and a seed stands for one.

use std::collections::BTreeSet;

use bytes::Bytes;
use equipoise::node::Node;
use equipoise::transport::sim::Messages;
use proptest::prelude::*;
use rand::RngExt;

use super::*;

/// Every node sends messages of all sizes to random nodes at random times, then hears all that were sent to it, from anyone. Returns
/// what each node heard: when, from whom, and the message's number among those of its pair.
fn storm(ranks: u32, topology: &str, model: Model, each: u32) -> Result<Vec<Vec<(u64, u32, u32)>>> {
    on(ranks, topology, model, move |node| async move { wind(&node, each).await })
}

async fn wind(node: &Node, each: u32) -> Result<Vec<(u64, u32, u32)>> {
    let nodes = node.nodes();
    let mut rng = node.rng();
    let mut sent = vec![0u32; nodes as usize];
    for _ in 0..each {
        let to = rng.random_range(0..nodes);
        node.charge(rng.random_range(0..3) * rng.random_range(0..400));
        let mut body = vec![0; 4 + (1 << rng.random_range(0..12))];
        body[..4].copy_from_slice(&sent[to as usize].to_le_bytes());
        node.send_bytes(to, DATA, Bytes::from(body));
        sent[to as usize] += 1;
    }
    let expected = {
        let mut expected = Vec::new();
        for root in 0..nodes {
            let row = node.everyone().broadcast(node, root, (root == node.me()).then(|| sent.clone())).await?;
            expected.push(row[node.me() as usize]);
        }
        expected
    };
    let mut heard = Vec::new();
    let mut next = vec![0u32; nodes as usize];
    for _ in 0..expected.iter().sum() {
        let message = node.receive_message(None, DATA).await?;
        let number = u32::from_le_bytes([message.body[0], message.body[1], message.body[2], message.body[3]]);
        let from = message.envelope.src;
        if number != next[from as usize] {
            return Err(Error::Failed(format!("number {number} came from {from} instead of {}", next[from as usize])));
        }
        next[from as usize] += 1;
        heard.push((node.now(), from, number));
    }
    assert_eq!(next, expected);
    Ok(heard)
}

fn networks() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "zero",
        "switched:latency=1us,per_byte=1ns",
        "switched:latency=0ns,per_byte=1ns,contention",
        "switched:latency=1us,per_byte=1ns,contention",
        "hops:latency=1us,per_byte=1ns",
        "hops:latency=10ns,per_byte=2ns,contention",
    ])
}

fn rules() -> impl Strategy<Value = Rules> {
    (any::<u64>(), 0..4, any::<bool>(), 0..5000u64).prop_map(|(seed, delay, shuffle, ticks)| {
        let rules = Rules::seeded(seed);
        let rules = match delay {
            0 => rules,
            1 => rules.delay_up_to(ticks),
            2 => rules.delay_heavily(ticks / 10 + 1),
            _ => rules.delay(Messages::all().from(1), ticks).delay(Messages::all().nth(3), 10 * ticks).delay_up_to(10),
        };
        if shuffle { rules.shuffle() } else { rules }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn messages_of_a_pair_keep_their_order(
        ranks in 1u32..9, topology in prop::sample::select(vec!["hypercube", "line", "tree:binary", "complete"]),
        network in networks(), rules in rules(), seed: u64, each in 1u32..60,
    ) {
        let world = || Model { seed, outbox: 5000, ..disturbed(network, rules.clone()) };
        let heard = storm(ranks, topology, world(), each);
        prop_assert!(heard.is_ok(), "{:?}", heard);
        // The same seeds give the same trace, to the tick.
        prop_assert_eq!(heard, storm(ranks, topology, world(), each));
    }
}

#[test]
fn what_a_node_sent_before_it_ended_keeps_its_order() {
    for network in ["switched:contention", "hops:contention", "switched", "zero"] {
        let rules = Rules::default().delay(Messages::tagged(DATA).nth(0), 1_000_000);
        let heard = on(2, "line", disturbed(network, rules), |node| async move {
            let mut heard = Vec::new();
            for number in 0..3u32 {
                match node.me() {
                    0 => node.send(1, DATA, &number),
                    _ => heard.push(node.receive::<u32>(0, DATA).await?),
                }
            }
            Ok(heard)
        });
        assert_eq!(heard, Ok(vec![vec![], vec![0, 1, 2]]), "{network}");
    }
}

/// How many different traces the seeds give.
fn traces(network: &str, rules: impl Fn(u64) -> Rules) -> usize {
    let trace = |seed| storm(5, "complete", Model { seed: 7, ..disturbed(network, rules(seed)) }, 20).unwrap();
    let without_times = |heard: Vec<(u64, u32, u32)>| heard.into_iter().map(|(_, from, number)| (from, number)).collect::<Vec<_>>();
    (0..12).map(|seed| trace(seed).into_iter().map(without_times).collect::<Vec<_>>()).collect::<BTreeSet<_>>().len()
}

#[test]
fn seeds_of_the_rules_explore_orders_and_none_without_rules() {
    assert_eq!(traces("switched", Rules::seeded), 1);
    assert_eq!(traces("switched", |seed| Rules::seeded(seed).delay_up_to(50_000)), 12);
    assert_eq!(traces("switched", |seed| Rules::seeded(seed).delay_heavily(5_000)), 12);
}

#[test]
fn shuffling_changes_the_order_within_an_instant_only() {
    let heard = |rules: Rules| {
        let results = on(6, "complete", disturbed("zero", rules), |node| async move {
            let mut heard = Vec::new();
            for number in 0..3u32 {
                if node.me() > 0 {
                    node.send(0, DATA, &number);
                }
            }
            for _ in 0..if node.me() == 0 { 15 } else { 0 } {
                let (from, number) = node.receive_any::<u32>(DATA).await?;
                heard.push((node.now(), from, number));
            }
            Ok(heard)
        });
        results.unwrap().swap_remove(0)
    };
    let straight = heard(Rules::default());
    assert_eq!(straight, (1..6).flat_map(|from| (0..3).map(move |number| (1, from, number))).collect::<Vec<_>>());
    let orders: BTreeSet<_> = (0..20).map(|seed| heard(Rules::seeded(seed).shuffle())).collect();
    assert!(orders.len() > 10, "{} orders", orders.len());
    for order in orders {
        for from in 1..6 {
            assert!(order.iter().filter(|(_, src, _)| *src == from).map(|(at, _, number)| (*at, *number)).eq([(1, 0), (1, 1), (1, 2)]));
        }
    }
}

#[test]
fn a_coordinator_s_thousand_partners_keep_their_order() {
    let rules = Rules::seeded(3).delay_up_to(100_000);
    let outcome = on(1000, "complete", disturbed("switched", rules), |node| async move {
        if node.me() == 0 {
            for number in 0..5u32 {
                for other in 1..node.nodes() {
                    node.send_bytes(other, DATA, Bytes::from(vec![number as u8; 5000 - 900 * number as usize]));
                }
            }
            for _ in 1..node.nodes() {
                node.receive_any::<()>(REPLY).await?;
            }
            return Ok(());
        }
        for number in 0..5 {
            assert_eq!(node.receive_message(None, DATA).await?.body[0], number);
        }
        node.send(0, REPLY, &());
        Ok(())
    });
    assert_eq!(outcome.map(|results| results.len()), Ok(1000));
}

#[test]
fn nodes_have_streams_of_random_numbers_of_their_own_by_the_seed() {
    let draw = |seed| on(3, "complete", Model { seed, ..model("zero") }, |node| async move { Ok(node.rng().random::<u64>()) }).unwrap();
    let all: BTreeSet<u64> = [draw(1), draw(2)].concat().into_iter().collect();
    assert_eq!((draw(1), all.len()), (draw(1), 6));
}
