//! Runs in which nobody can go on, and what they say.

use equipoise::node::Event;
use equipoise::transport::sim::Messages;

use super::*;

#[test]
fn a_withheld_message_is_reported_with_who_waits_for_it() {
    let rules = Rules::default().withhold(Messages::tagged(DATA).from(1).to(2));
    let report = report(on(4, "complete", disturbed("switched:latency=1us,per_byte=0ns", rules), |node| async move {
        let (left, right) = ((node.me() + 3) % 4, (node.me() + 1) % 4);
        node.charge(10);
        node.send(right, DATA, &());
        node.send(right, REPLY, &());
        node.receive::<()>(left, DATA).await
    }));
    let lines: Vec<_> = report.lines().collect();
    assert_eq!(
        lines,
        [
            "nothing is left to happen at 1.01us of virtual time, and 1 of 4 nodes wait",
            "  node 2 on rank 2 waits for a message 'data' from node 1 (run 1, epoch 0), since 0ns; 1 event that it did not ask for is in its inbox",
            "  withheld by rule: 'data' from node 1 to node 2, sent at 10ns",
        ]
    );
}

#[test]
fn a_cycle_of_waits_names_everyone() {
    let report = report(on(2, "line:3", model("zero"), |node| async move {
        node.charge(u64::from(node.me()));
        node.receive::<()>((node.me() + 1) % 3, REPLY).await
    }));
    assert!(report.contains("and 3 of 3 nodes wait"), "{report}");
    for (node, rank, other) in [(0, 0, 1), (1, 1, 2), (2, 0, 0)] {
        let line = format!("node {node} on rank {rank} waits for a message 'reply' from node {other} (run 1, epoch 0)");
        assert!(report.contains(&line), "{report}");
    }
}

#[test]
fn a_long_report_stops_after_some_nodes() {
    let report = report(on(100, "complete", model("zero"), |node| async move { node.receive_any::<()>(DATA).await }));
    assert_eq!(report.lines().count(), 22);
    assert!(report.ends_with("and 80 more nodes"), "{report}");
}

#[test]
fn only_the_chosen_message_is_withheld() {
    let withheld = |messages: Messages| {
        let rules = Rules::default().withhold(messages);
        on(2, "complete", disturbed("zero", rules), |node| async move {
            let mut heard = Vec::new();
            if node.me() == 0 {
                for number in 0..4u32 {
                    node.send(1, if number % 2 == 0 { DATA } else { REPLY }, &number);
                }
                return Ok(heard);
            }
            for tag in [DATA, REPLY] {
                for _ in 0..2 {
                    heard.push(node.receive::<u32>(0, tag).await?);
                }
            }
            Ok(heard)
        })
    };
    assert_eq!(withheld(Messages::all().from(1)).unwrap()[1], [0, 2, 1, 3]);
    assert!(withheld(Messages::tagged(NEWS)).is_ok());
    assert!(withheld(Messages::all().nth(4)).is_ok());
    for (messages, number) in [(Messages::all().nth(3), 3), (Messages::tagged(DATA).nth(1), 2)] {
        let report = report(withheld(messages));
        assert_eq!(report.matches("withheld by rule").count(), 1, "{number}: {report}");
    }
}

#[test]
fn a_full_outbox_that_never_empties_is_reported() {
    let model = Model { outbox: 100, ..disturbed("zero", Rules::default().withhold(Messages::all())) };
    let report = report(on(1, "complete", model, |node| async move {
        node.send_bytes(0, DATA, vec![0; 200 - HEADER].into());
        node.ready_to_send().await;
        Ok(())
    }));
    assert!(report.contains("the only node waits\n  node 0 on rank 0 waits for room in its outbox (200 bytes are under way)"), "{report}");
}

/// Two nodes that only exchange news, with ten seconds of patience.
async fn gossip(node: node::Node) -> Result<()> {
    loop {
        node.send(1 - node.me(), NEWS, &());
        node.receive::<()>(1 - node.me(), NEWS).await?;
    }
}

fn patient(network: &str) -> Model {
    Model { timeout: 10_000_000_000, ..model(network) }
}

#[test]
fn background_messages_alone_are_no_progress() {
    let report = report(on(2, "complete", patient("switched:latency=1ms,per_byte=0ns"), gossip));
    assert!(report.starts_with("no task or message moved for 10.001s of virtual time, until 10.001s, and 2 of 2 nodes wait"), "{report}");
}

#[test]
fn timers_alone_are_no_progress() {
    let report = report(on(1, "complete", patient("zero"), |node| async move {
        loop {
            node.set_timer(node.now() + 1_000_000_000);
            node.next_event().await;
            if node.now() > 100_000_000_000 {
                return Ok(());
            }
        }
    }));
    assert!(report.starts_with("no task or message moved for 11s"), "{report}");
}

#[test]
fn looks_at_the_network_alone_are_no_progress() {
    let model = Model { poll: 1_000_000, ..patient("zero") };
    let report = report(on(2, "complete", model, |node| async move {
        while node.try_event().await.is_none() {}
        Ok(())
    }));
    assert!(report.contains("node 1 on rank 1 waits for its next poll of the network, since 0ns"), "{report}");
}

#[test]
fn who_computes_makes_progress_however_long_it_takes() {
    const LONG: u64 = 60_000_000_000;
    let times = on(2, "complete", patient("switched:latency=1ms,per_byte=0ns"), |node| async move {
        if node.me() == 1 {
            // The other node's news keep coming all the time.
            while node.now() < 4 * LONG {
                node.receive::<()>(0, NEWS).await?;
            }
            return Ok(node.now());
        }
        let mut announced = node.set_timer(0);
        let mut left = 3;
        loop {
            match node.next_event().await {
                Event::Timer { timer, .. } if timer == announced => {
                    node.send(1, NEWS, &());
                    announced = node.set_timer(node.now() + 1_000_000_000);
                    match left {
                        3 => {
                            node.charge(LONG);
                            left = 2;
                            node.start(|worker| worker.charge(LONG));
                        }
                        0 => return Ok(node.now()),
                        _ => {}
                    }
                    // What the program calls progress is progress.
                    if left == 1 {
                        node.progressed();
                        if node.now() >= 4 * LONG {
                            left = 0;
                        }
                    }
                }
                Event::Finished { .. } => left = 1,
                other => panic!("{other:?}"),
            }
        }
    });
    assert!(times.is_ok(), "{times:?}");
}

#[test]
fn a_program_that_waits_for_something_else_is_reported_too() {
    let report = report(on(1, "complete", model("zero"), |_| std::future::pending::<Result<()>>()));
    assert!(report.contains("waits for something outside its port"), "{report}");
}
