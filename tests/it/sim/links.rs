//! Virtual times of messages, worked by hand. A message of 100 bytes with its header takes 1000 ticks of start-up and 100 for its bytes.

use bytes::Bytes;
use equipoise::Result;
use equipoise::node::{Node, Ticks};

use super::*;

const SWITCHED: &str = "switched:latency=1us,per_byte=1ns";
const SWITCHED_CONTENTION: &str = "switched:latency=1us,per_byte=1ns,contention";
const HOPS: &str = "hops:latency=1us,per_byte=1ns";
const HOPS_CONTENTION: &str = "hops:latency=1us,per_byte=1ns,contention";

/// (sent at, from, to, bytes with the header); those of one node in order of time.
type Sent = (Ticks, u32, u32, usize);

/// Time at which each of the messages arrives, in the order given.
fn arrivals(ranks: u32, topology: &str, network: &str, sent: &[Sent]) -> Vec<Ticks> {
    let sent = sent.to_vec();
    let program = |node: Node| {
        let sent = sent.clone();
        async move {
            for (number, (at, _, to, bytes)) in sent.iter().enumerate().filter(|(_, (_, from, ..))| *from == node.me()) {
                node.charge(at - node.now());
                node.send_tasks(*to, DATA, Bytes::from(vec![0; bytes - HEADER]), number as u64);
            }
            let mut heard = Vec::new();
            for _ in sent.iter().filter(|(_, _, to, _)| *to == node.me()) {
                let message = node.receive_message(None, DATA).await?;
                heard.push((message.envelope.tasks, node.now()));
            }
            Ok(heard)
        }
    };
    let mut heard: Vec<_> = on(ranks, topology, model(network), program).unwrap().concat();
    heard.sort_unstable();
    assert_eq!(heard.len(), sent.len());
    heard.into_iter().map(|(_, at)| at).collect()
}

#[test]
fn without_a_network_every_message_takes_one_tick() {
    let sent = [(0, 0, 1, 100), (0, 0, 1, 5000), (7, 0, 2, 100), (0, 1, 1, 100)];
    assert_eq!(arrivals(3, "complete", "zero", &sent), [1, 1, 8, 1]);
}

#[test]
fn a_switched_message_takes_start_up_and_bytes() {
    assert_eq!(arrivals(4, "line", SWITCHED, &[(0, 0, 3, 100), (0, 0, 1, 100), (50, 1, 3, 2000)]), [1100, 1100, 3050]);
    // The default: 20 us and 2.7 ns a byte, rounded up.
    assert_eq!(arrivals(2, "complete", "switched", &[(0, 0, 1, 101)]), [20_273]);
    // Nothing is free, not even a link without costs.
    assert_eq!(arrivals(2, "complete", "switched:latency=0ns,per_byte=0ns", &[(3, 0, 1, 101)]), [4]);
    assert_eq!(arrivals(2, "complete", "switched:latency=0ns,per_byte=0ns,contention", &[(3, 0, 1, 101)]), [4]);
}

#[test]
fn a_short_message_does_not_overtake_a_long_one_of_its_pair() {
    let sent = [(0, 0, 1, 1000), (10, 0, 1, 100), (20, 0, 2, 100)];
    assert_eq!(arrivals(3, "complete", SWITCHED, &sent), [2000, 2000, 1120]);
}

#[test]
fn switched_messages_contend_for_the_ports_of_their_ranks() {
    // Out of 0: the first for 0..100, the second for 100..200. Into 3: from 0 at 1000..1100, then from 1 at 1100..1200.
    let sent = [(0, 0, 3, 100), (0, 1, 3, 100), (0, 0, 2, 100)];
    assert_eq!(arrivals(4, "complete", SWITCHED_CONTENTION, &sent), [1100, 1200, 1200]);
    // Alone, it takes as long as without contention; the start-up keeps nobody waiting.
    assert_eq!(arrivals(2, "complete", SWITCHED_CONTENTION, &[(0, 0, 1, 100), (100, 0, 1, 100), (0, 1, 0, 100)]), [1100, 1200, 1100]);
    // 2's message leaves later but is first at 3, for 0's waits at its own port behind a long one.
    let sent = [(0, 0, 1, 5000), (1, 0, 3, 100), (10, 2, 3, 100)];
    assert_eq!(arrivals(4, "complete", SWITCHED_CONTENTION, &sent), [6000, 6100, 1110]);
}

#[test]
fn a_message_is_stored_and_forwarded_at_each_hop() {
    assert_eq!(arrivals(4, "line", HOPS, &[(0, 0, 3, 100), (5, 3, 2, 100)]), [3300, 1105]);
    assert_eq!(arrivals(8, "hypercube", HOPS, &[(0, 0, 7, 100), (0, 6, 5, 100)]), [3300, 2200]);
    assert_eq!(arrivals(6, "ring", HOPS, &[(0, 0, 4, 100)]), [2200]);
}

#[test]
fn hops_within_a_rank_cost_nothing() {
    // Nodes 0 and 2 are on rank 0, nodes 1 and 3 on rank 1; the route from 0 to 3 is 0, 2, 3.
    for (network, expected) in [(HOPS, [1100, 1]), (HOPS_CONTENTION, [1100, 1])] {
        assert_eq!(arrivals(2, "hypercube:2", network, &[(0, 0, 3, 100), (0, 1, 3, 100)]), expected);
    }
    // On a line of four each hop crosses; between nodes of one rank the message stays in memory all the same.
    for network in [HOPS, HOPS_CONTENTION] {
        assert_eq!(arrivals(2, "line:4", network, &[(0, 0, 3, 100), (0, 0, 2, 100)]), [3300, 1]);
    }
}

#[test]
fn hops_contend_for_directed_links() {
    // Link 0->1 is busy 0..500 and 500..1000, link 1->2 for 1's own message 1400..1900, then 1900..2400 and 2400..2900.
    let sent = [(0, 0, 2, 500), (0, 0, 2, 500), (1400, 1, 2, 500), (0, 2, 0, 500)];
    assert_eq!(arrivals(3, "line", HOPS_CONTENTION, &sent), [3400, 3900, 2900, 3000]);
    assert_eq!(arrivals(3, "line", HOPS, &sent), [3000, 3000, 2900, 3000]);
}

#[test]
fn bandwidths_of_a_graphs_links_count() {
    let at = |edges: &str, network: &str, sent: &[Sent]| arrivals(3, &format!("graph:edges={edges}"), network, sent);
    // 500 bytes take 500 on a link of bandwidth 1, 1000 on one of 0.5, and 250 on one of 2.
    assert_eq!(at("0-1-0.5,1-2", HOPS, &[(0, 0, 2, 500), (0, 1, 0, 500), (0, 2, 1, 500)]), [3500, 2000, 1500]);
    assert_eq!(at("0-1-2,1-2", HOPS, &[(0, 0, 2, 500), (0, 0, 1, 500)]), [2750, 1250]);
    // The way around a link a thousand times slower is taken.
    assert_eq!(at("0-1,1-2,0-2-0.001", HOPS, &[(0, 0, 2, 500), (0, 2, 0, 500)]), [3000, 3000]);
    assert_eq!(at("0-1,1-2,0-2", HOPS, &[(0, 0, 2, 500), (0, 2, 0, 500)]), [1500, 1500]);
    // Where there is none, the slow link is busy for that long: 0..1000 and 1000..2000.
    assert_eq!(at("0-1-0.5,1-2", HOPS_CONTENTION, &[(0, 0, 1, 500), (0, 0, 1, 500)]), [2000, 3000]);
    // A switch has no such links.
    assert_eq!(at("0-1-0.5,1-2", SWITCHED, &[(0, 0, 1, 500)]), [1500]);
}

#[test]
fn a_message_to_itself_takes_one_tick_on_any_network() {
    for network in ["zero", SWITCHED, SWITCHED_CONTENTION, HOPS, HOPS_CONTENTION] {
        assert_eq!(arrivals(2, "complete", network, &[(40, 1, 1, 5000)]), [41], "{network}");
    }
}

/// Four messages out of each port and four into each, one after another.
#[test]
fn an_exchange_of_all_with_all_takes_as_long_as_its_busiest_port() -> Result<()> {
    let all = |network: &str| {
        on(5, "complete", model(network), |node| async move {
            for step in 1..5 {
                node.send_bytes((node.me() + step) % 5, DATA, Bytes::from(vec![0; 1000 - HEADER]));
            }
            for _ in 1..5 {
                node.receive_message(None, DATA).await?;
            }
            Ok(node.now())
        })
    };
    assert_eq!(all(SWITCHED)?, [2000; 5]);
    assert_eq!(all(SWITCHED_CONTENTION)?, [5000; 5]);
    Ok(())
}
