//! Many runs in one world, and any number of ranks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use equipoise::node::{Event, Sliced, Step, Ticks};
use equipoise::topology::{HostId, Hosts, RankId};

use super::*;

/// Work that never ends by itself, and holds a node.
struct Endless {
    _node: node::Node,
    _alive: Arc<()>,
}

impl Sliced for Endless {
    fn step(&mut self, budget: Ticks) -> Step {
        Step::More { spent: budget }
    }
}

#[test]
fn a_hundred_runs_leave_nothing_to_each_other_and_nothing_in_memory() {
    let alive = Arc::new(());
    let mut world = World::simulated(3, disturbed("switched", Rules::seeded(1).delay_up_to(1000)));
    let overlay = overlay("line:5", 3);
    let mut first = None;
    for run in 0..100u32 {
        let results = node::run(&mut world, &overlay, |node| {
            let alive = alive.clone();
            async move {
                let (left, right) = ((node.me() + 4) % 5, (node.me() + 1) % 5);
                node.send(right, DATA, &node.now());
                let heard: u64 = node.receive(left, DATA).await?;
                let at = node.now();
                // Left behind: messages in inboxes and under way, timers, work of both kinds that holds the node.
                for tag in [DATA, REPLY, NEWS] {
                    node.send_bytes(right, tag, Bytes::from_owner(Held(alive.clone(), vec![1, 2, 3])));
                    node.epoch(1).send(right, tag, &());
                }
                node.set_timer(at + 1);
                node.set_timer(u64::MAX);
                let held = alive.clone();
                node.start(move |worker| {
                    worker.charge(1_000_000);
                    held
                });
                let held = alive.clone();
                node.start(move |_| held);
                node.start_sliced(Endless { _node: node.clone(), _alive: alive.clone() });
                node.try_event().await;
                Ok((heard, at, node.clone()))
            }
        })
        .unwrap();
        let seen: Vec<_> = results.iter().map(|(node, (heard, at, _))| (*node, *heard, *at)).collect();
        assert_eq!(first.get_or_insert_with(|| seen.clone()), &seen, "run {run}");
        // Using a node after its run is a bug, and says so.
        let (_, (_, _, node)) = &results[0];
        let uses: [&dyn Fn(); 4] =
            [&|| node.send(1, DATA, &()), &|| node.charge(5), &|| node.cancel_timer(node.set_timer(5)), &|| _ = node.start(|_| ())];
        for used in uses.iter().filter(|_| run == 50) {
            let panic = catch_unwind(AssertUnwindSafe(used)).unwrap_err();
            let sentence = panic.downcast_ref::<String>().unwrap();
            assert_eq!(
                *sentence,
                format!("node 0 is used after run {} has ended; a `Node` belongs to the run that it was made for", run + 1)
            );
        }
        drop(results);
        assert_eq!(Arc::strong_count(&alive), 1, "run {run}");
    }
}

struct Held(#[allow(dead_code)] Arc<()>, Vec<u8>);

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.1
    }
}

#[test]
fn runs_have_numbers_of_their_own() {
    let mut world = World::simulated(1, model("zero"));
    for _ in 0..3 {
        let report = report(node::run(&mut world, &overlay("line", 1), |node| async move { node.receive::<()>(0, DATA).await }));
        let run = report.split("(run ").nth(1).and_then(|rest| rest.split(',').next()).map(str::to_owned);
        let ran = node::run(&mut world, &overlay("line", 1), |node| async move {
            node.send(0, DATA, &());
            let message = node.receive_message(None, DATA).await?;
            Ok(message.envelope.scope.run)
        });
        assert_eq!(run.map(|run| run.parse::<u32>().unwrap() + 1), ran.ok().map(|results| results[0].1));
    }
}

#[test]
fn any_number_of_ranks_carries_any_topology_that_has_enough_nodes() {
    for ranks in 1..=40 {
        for topology in ["hypercube", "mesh", "tree:binary", "line", "ring", "complete", "grid"] {
            for network in ["zero", "hops:contention", "switched:contention"] {
                let results = on(ranks, topology, model(network), |node| async move {
                    let topology = node.topology().clone();
                    // On a complete graph of many, one neighbour on each side is enough.
                    let mut neighbours = topology.neighbours(node.me());
                    if let equipoise::topology::Topology::Complete(_) = topology {
                        neighbours.retain(|other| other.abs_diff(node.me()) == 1);
                    }
                    for &other in &neighbours {
                        node.send(other, DATA, &(node.me(), node.rank_of(node.me())));
                    }
                    for &other in &neighbours {
                        let (from, rank): (u32, RankId) = node.receive(other, DATA).await?;
                        assert_eq!((from, rank), (other, node.rank_of(other)));
                    }
                    let seen = node.everyone().all_gather(&node, node.me()).await?;
                    assert!(seen.iter().copied().eq(0..node.nodes()));
                    Ok(())
                });
                assert!(results.is_ok(), "{topology} on {ranks} ranks, {network}: {results:?}");
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_wrong_usage() {
    let run = |ranks, model, overlay: &Overlay| node::run(&mut World::simulated(ranks, model), overlay, |_| async { Ok(()) });
    let fits = overlay("line", 3);
    let speeds = vec![sim::Speed::default(); 2];
    for (ranks, model, part) in [
        (2, Model::default(), "a simulation of 2 ranks: the topology is placed on 3 ranks"),
        (3, Model { speeds, ..Model::default() }, "2 speeds"),
        (3, Model { workers: 0, ..Model::default() }, "at least one worker"),
        (3, disturbed("zero", Rules::default().lose(RankId::new(3), 0)), "no rank 3"),
    ] {
        let Err(Error::Usage(sentence)) = run(ranks, model, &fits) else { panic!("{part}: was taken") };
        assert!(sentence.contains(part), "{sentence}");
    }
    assert!(run(3, Model::default(), &fits).is_ok());
}

#[test]
fn the_model_s_hosts_are_the_world_s() {
    let names: Vec<String> = ["a", "a", "b"].map(String::from).into();
    let hosts = Hosts::from_names(&names);
    let world = sim::World::new(3, Model { hosts: Some(hosts.clone()), ..Model::default() });
    assert_eq!(world.hosts(), hosts);
    assert_eq!(sim::World::new(3, Model::default()).hosts(), Hosts::single(3));
    let overlay = Overlay::new(Topology::parse("line:4", 3).unwrap(), world.hosts()).unwrap();
    let hosts = node::run(&mut world.into(), &overlay, |node| async move { Ok(node.host_of(node.me())) });
    assert_eq!(hosts, Ok([(0, 0), (1, 0), (2, 1), (3, 0)].map(|(node, host)| (node, HostId::new(host))).into()));
}

#[test]
fn each_run_begins_at_zero_and_the_world_knows_when_it_ended() {
    let mut world = World::simulated(2, model("zero"));
    for charge in [500, 20] {
        let begins = node::run(&mut world, &overlay("line", 2), |node| async move {
            let begin = node.now();
            node.charge(charge);
            node.set_timer(0);
            let Event::Timer { .. } = node.next_event().await else { panic!("only a timer was set") };
            Ok(begin)
        });
        let elapsed = world.as_simulation().map(|world| world.elapsed());
        assert_eq!((begins, elapsed), (Ok(vec![(0, 0), (1, 0)]), Some(charge + 1)));
    }
}
