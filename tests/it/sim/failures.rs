//! Ranks that die, programs that fail, messages that wait for room.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use equipoise::node::Event;
use equipoise::topology::RankId;

use super::*;

/// Rank 1 dies at 1000, before it would have sent.
fn losing(network: &str) -> Model {
    disturbed(network, Rules::default().lose(RankId::new(1), 1000))
}

#[test]
fn who_names_a_lost_rank_gets_an_error_each_time_and_what_it_sent_before() {
    let seen = on(3, "complete", losing("zero"), |node| async move {
        if node.me() == 1 {
            node.send(0, DATA, &7u32);
            node.send(0, DATA, &8u32);
            node.next_event().await;
            return Ok(Vec::new());
        }
        if node.me() == 2 {
            return Ok(vec![node.receive::<u32>(1, DATA).await]);
        }
        node.charge(5000);
        node.try_event().await;
        // The look took the first message.
        Ok(vec![node.receive(1, DATA).await, node.receive(1, DATA).await, node.receive(1, DATA).await])
    });
    let lost = Err(Error::RankLost { rank: RankId::new(1) });
    assert_eq!(seen, Ok(vec![vec![Ok(8), lost.clone(), lost.clone()], vec![lost]]));
}

#[test]
fn who_receives_from_anyone_hears_of_a_loss_once() {
    let seen = on(3, "complete", losing("zero"), |node| async move {
        match node.me() {
            0 => {
                let first = node.receive_any::<u32>(DATA).await;
                let at = node.now();
                let second = node.receive_any::<u32>(DATA).await;
                Ok((at, Some(first), Some(second)))
            }
            1 => node.receive::<()>(0, REPLY).await.map(|()| (0, None, None)),
            _ => {
                node.charge(2000);
                node.send(0, DATA, &2u32);
                Ok((0, None, None))
            }
        }
    });
    assert_eq!(seen.unwrap()[0], (1000, Some(Err(Error::RankLost { rank: RankId::new(1) })), Some(Ok((2, 2)))));
}

#[test]
fn every_node_hears_of_a_loss_as_an_event_and_lost_nodes_have_no_result() {
    // Nodes 1 and 4 are on rank 1.
    let mut world = World::simulated(3, losing("zero"));
    let seen = node::run(&mut world, &overlay("line:6", 3), |node| async move {
        let Event::RankLost(rank) = node.epoch(node.me()).next_event().await else { panic!("nothing else happens") };
        assert!(node.try_event().await.is_none());
        Ok((rank, node.now()))
    });
    assert_eq!(seen, Ok([0, 2, 3, 5].map(|node| (node, (RankId::new(1), 1001))).to_vec()));
}

#[test]
fn what_was_under_way_from_a_lost_rank_or_goes_to_it_vanishes() {
    let seen = on(3, "complete", losing("switched:latency=1us,per_byte=0ns"), |node| async move {
        if node.me() == 1 {
            node.send(0, DATA, &1u32);
            node.charge(1);
            node.send(0, DATA, &2u32);
            node.next_event().await;
        }
        if node.me() == 0 {
            node.charge(500);
            node.send(1, DATA, &());
            let first = node.receive::<u32>(1, DATA).await;
            let second = node.receive::<u32>(1, DATA).await;
            node.send(1, DATA, &());
            node.ready_to_send().await;
            return Ok(vec![first, second]);
        }
        Ok(Vec::new())
    });
    // The first arrives at the very instant of the loss, which comes first: it was entered first.
    let lost = Err(Error::RankLost { rank: RankId::new(1) });
    assert_eq!(seen.unwrap()[0], [lost.clone(), lost]);
}

#[test]
fn a_lost_rank_s_work_is_lost_and_a_later_run_has_the_rank_again() {
    let mut world = World::simulated(2, disturbed("zero", Rules::default().lose(RankId::new(1), 50)));
    for _ in 0..3 {
        let seen = node::run(&mut world, &overlay("line", 2), |node| async move {
            node.start(|worker| worker.charge(40));
            node.start(|worker| worker.charge(40));
            let mut events = Vec::new();
            while node.now() < 80 {
                events.push(format!("{:?}", node.next_event().await));
            }
            Ok(events)
        });
        let expected = ["Finished { scope: Scope { run: R, epoch: 0 }, finished: Finished(WorkId(1), 0..40) }", "RankLost(1)"];
        let seen = seen.unwrap();
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].1.len(), 3, "{seen:?}");
        assert!(seen[0].1[0].ends_with(expected[0].split("R, ").last().unwrap()), "{seen:?}");
        assert_eq!(seen[0].1[1], expected[1]);
    }
}

#[test]
fn a_collective_with_a_lost_rank_fails_and_does_not_hang() {
    for ranks in 2..12 {
        let rules = Rules::default().lose(RankId::new(ranks - 1), 1);
        let outcome = on(ranks, "complete", disturbed("switched:latency=1us,per_byte=1ns", rules), |node| async move {
            // Who hears of the loss gives up; who waits for those waits for ever, and the run says so.
            Ok(node.everyone().all_reduce(&node, 1u32, |a, b| a + b).await)
        });
        match outcome {
            Ok(sums) => assert!(sums.iter().any(|sum| *sum == Err(Error::RankLost { rank: RankId::new(ranks - 1) })), "{ranks}: {sums:?}"),
            Err(Error::Stuck { report }) => assert!(report.contains(&format!("rank {} is lost", ranks - 1)), "{report}"),
            Err(other) => panic!("{ranks}: {other}"),
        }
    }
}

#[test]
fn an_error_of_one_program_ends_the_run_at_once() {
    let outcome = on(4, "complete", model("zero"), |node| async move {
        if node.me() == 2 {
            node.charge(10);
            node.try_event().await;
            return Err(Error::wrong_result("node 2 lost a task"));
        }
        node.receive::<()>(2, DATA).await
    });
    assert_eq!(outcome, Err(Error::wrong_result("node 2 lost a task")));
}

#[test]
fn a_panic_unwinds_through_the_run_and_the_world_goes_on() {
    let mut world = World::simulated(2, model("zero"));
    let overlay = overlay("line", 2);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        node::run(&mut world, &overlay, |node| async move {
            node.send(1 - node.me(), DATA, &());
            node.start(|worker| worker.charge(100));
            if node.me() == 1 {
                node.receive::<()>(0, DATA).await?;
                panic!("as asked");
            }
            node.next_event().await;
            node.next_event().await;
            Ok(())
        })
    }));
    assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"as asked"));
    assert_eq!(node::run(&mut world, &overlay, |node| async move { Ok(node.me()) }), Ok(vec![(0, 0), (1, 1)]));
}

#[test]
fn a_message_that_cannot_be_read_is_an_error() {
    let outcome = on(2, "complete", model("zero"), |node| async move {
        node.send(1 - node.me(), DATA, &7u32);
        node.receive::<u64>(1 - node.me(), DATA).await
    });
    let Err(Error::Garbled { from, what, .. }) = outcome else { panic!("{outcome:?}") };
    assert!(from < 2 && what == "'data'");
}

#[test]
fn a_full_outbox_is_waited_for_while_messages_are_served() {
    // Each message of 400 bytes takes 1000 ticks; with more than 1000 bytes under way there is no room.
    let model = Model { outbox: 1000, ..model("switched:latency=1us,per_byte=0ns") };
    let seen = on(2, "complete", model, |node| async move {
        if node.me() == 1 {
            node.charge(300);
            node.send(0, NEWS, &());
            for _ in 0..7 {
                node.receive_message(None, DATA).await?;
            }
            return Ok(Vec::new());
        }
        let mut left = Vec::new();
        for _ in 0..7 {
            node.ready_to_send().await;
            left.push(node.now());
            node.send_bytes(1, DATA, Bytes::from(vec![0; 400 - HEADER]));
            node.charge(100);
        }
        // The news came while there was no room.
        assert!(node.try_event().await.is_some());
        Ok(left)
    });
    assert_eq!(seen.unwrap()[0], [0, 100, 200, 1000, 1100, 1200, 2000]);
}

#[test]
fn a_message_larger_than_the_outbox_leaves_all_the_same() {
    let model = Model { outbox: 10, ..model("switched:latency=1us,per_byte=0ns") };
    let seen = on(2, "complete", model, |node| async move {
        if node.me() == 0 {
            for _ in 0..3 {
                node.ready_to_send().await;
                node.send_bytes(1, DATA, Bytes::from(vec![0; 5000]));
            }
            return Ok(node.now());
        }
        for _ in 0..3 {
            node.receive_message(Some(0), DATA).await?;
        }
        Ok(node.now())
    });
    assert_eq!(seen, Ok(vec![2000, 3000]));
}
