//! Virtual times of messages on a measured network, worked by hand.

use std::collections::BTreeMap;

use bytes::Bytes;
use equipoise::node::Ticks;
use equipoise::topology::{HostId, Hosts};
use equipoise::transport::sim::{Measured, MeasuredLink, Network, Rendezvous};

use super::*;

/// Ranks 0 and 1 on one host, 2 and 3 on a second, 4 on a third that is far from the second.
fn cluster(shared: bool) -> Model {
    let link = |latency, gap| MeasuredLink { latency, gap, per_byte: 1_000, ..MeasuredLink::default() };
    let between = MeasuredLink { rendezvous: Some(Rendezvous { bytes: 5_000, latency: 300 }), shared, ..link(1_000, 20) };
    let network = Measured {
        name: "cluster.toml".into(),
        hosts: Hosts::from_names(&["a", "a", "b", "b", "c"].map(String::from)),
        speeds: Vec::new(),
        within: link(100, 0),
        between: Some(between),
        pairs: BTreeMap::from([((HostId::new(1), HostId::new(2)), MeasuredLink { rendezvous: None, ..link(4_000, 0) })]),
    };
    Model { network: network.network(), ..Model::default() }
}

/// Times at which messages (from, to, bytes with the header) that are all sent at 0 arrive, in the order given.
fn arrivals(model: Model, sent: &[(u32, u32, usize)]) -> Vec<Ticks> {
    let program = |node: Node| {
        let sent = sent.to_vec();
        async move {
            for (number, (from, to, bytes)) in sent.iter().enumerate() {
                if *from == node.me() {
                    node.send_tasks(*to, DATA, Bytes::from(vec![0; bytes - HEADER]), number as u64);
                }
            }
            let mut heard = Vec::new();
            for _ in sent.iter().filter(|(_, to, _)| *to == node.me()) {
                let message = node.receive_message(None, DATA).await?;
                heard.push((message.envelope.tasks, node.now()));
            }
            Ok(heard)
        }
    };
    let mut heard: Vec<_> = on(5, "complete", model, program).unwrap().concat();
    heard.sort_unstable();
    heard.into_iter().map(|(_, at)| at).collect()
}

#[test]
fn links_within_and_between_hosts_differ() {
    for shared in [false, true] {
        let alone = |from, to| arrivals(cluster(shared), &[(from, to, 100)]);
        assert_eq!([alone(0, 1), alone(0, 2), alone(3, 0), alone(4, 0), alone(4, 3)], [[200], [1100], [1100], [1100], [4100]]);
    }
    let world = World::simulated(5, cluster(true));
    assert_eq!((world.hosts().count(), world.hosts().name(HostId::new(1))), (3, "b"));
}

#[test]
fn short_messages_keep_their_distance_and_long_ones_wait_for_consent() {
    // 100 bytes keep the port for 100 ticks; 40 bytes more than header would be shorter than none: the gap is 20.
    assert_eq!(arrivals(cluster(false), &[(0, 2, 100), (0, 2, 100), (0, 4, 100)]), [1100, 1200, 1300]);
    assert_eq!(arrivals(cluster(false), &[(0, 2, 4_999)]), [5_999]);
    assert_eq!(arrivals(cluster(false), &[(0, 2, 5_000)]), [6_300]);
}

#[test]
fn ranks_of_a_host_share_its_port_if_the_link_is_shared() {
    let sent = [(0, 2, 100), (1, 3, 100), (0, 1, 100)];
    assert_eq!(arrivals(cluster(false), &sent), [1100, 1100, 300]);
    assert_eq!(arrivals(cluster(true), &sent), [1100, 1200, 300]);
}

#[test]
fn a_message_does_not_overtake_one_that_waits_for_consent() {
    let far = |rendezvous, shared| {
        let link = MeasuredLink { latency: 1_000, per_byte: 1_000, rendezvous, shared, ..MeasuredLink::default() };
        let network = Measured {
            name: "far.toml".into(),
            hosts: Hosts::from_names(&["a", "a", "b", "b", "c"].map(String::from)),
            speeds: Vec::new(),
            within: link,
            between: Some(link),
            pairs: BTreeMap::new(),
        };
        Model { network: network.network(), ..Model::default() }
    };
    for shared in [false, true] {
        let waits = far(Some(Rendezvous { bytes: 200, latency: 10_000 }), shared);
        // The long one begins to arrive at 11,000; the short one, which needs no consent, is behind it. Messages to others are not.
        assert_eq!(arrivals(waits, &[(0, 2, 200), (0, 2, 100), (0, 4, 100)]), [11_200, 11_300, 1_400]);
        assert_eq!(arrivals(far(None, shared), &[(0, 2, 200), (0, 2, 100), (0, 4, 100)]), [1_200, 1_300, 1_400]);
    }
}

#[test]
fn a_port_that_is_wanted_later_is_open_to_others_until_then() {
    // The second message has its own rank's port at 1000 only; meanwhile that of the host passes the other rank's.
    assert_eq!(arrivals(cluster(true), &[(0, 2, 1_000), (0, 2, 1_000), (1, 3, 100)]), [2_000, 3_100, 2_100]);
    // The same where messages arrive: node 2 hears from its own host while the message from host c waits for the port of host b.
    let mut model = cluster(true);
    if let Network::Measured(measured) = &model.network {
        model.network = Measured { pairs: BTreeMap::new(), ..(**measured).clone() }.network();
    }
    let sent = [(0, 3, 1_000), (4, 2, 1_000), (3, 2, 1_000), (3, 2, 1_000)];
    assert_eq!(arrivals(model, &sent), [2_000, 3_100, 1_100, 2_100]);
}

#[test]
fn a_network_of_another_number_of_ranks_is_refused() {
    let why = on(4, "complete", cluster(true), |_| async { Ok(()) }).unwrap_err();
    assert_eq!((why.exit_status(), why.to_string()), (2, "a simulation of 4 ranks: the network cluster.toml has 5".to_string()));
}
