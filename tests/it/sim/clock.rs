//! A node's own clock: charges, polls the network, timers.

use equipoise::Result;
use equipoise::node::{Event, Node, Ticks};
use equipoise::transport::Signal;
use equipoise::transport::sim::Speed;

use super::*;

/// Node 0 sends the number of each time in the list at that time; node 1 runs the program.
fn beside<T, F>(times: &'static [Ticks], program: impl Fn(Node) -> F + Clone + 'static) -> T
where
    T: 'static,
    F: Future<Output = Result<T>> + 'static,
{
    let both = move |node: Node| {
        let program = program.clone();
        async move {
            if node.me() == 1 {
                return program(node).await.map(Some);
            }
            for (number, at) in times.iter().enumerate() {
                node.charge(at - node.now());
                node.send(1, DATA, &(number as u64));
            }
            Ok(None)
        }
    };
    on(2, "complete", model("zero"), both).unwrap().pop().flatten().unwrap()
}

fn number(event: Option<Event>) -> Option<u64> {
    match event? {
        Event::Message(message) => equipoise::node::open(&message, DATA).ok(),
        _ => None,
    }
}

#[test]
fn a_node_that_computes_hears_only_afterwards() {
    let heard = beside(&[0], |node| async move {
        node.charge(100);
        let first: u64 = node.receive(0, DATA).await?;
        Ok((first, node.now()))
    });
    assert_eq!(heard, (0, 100));
}

#[test]
fn a_node_that_waits_hears_when_it_arrives() {
    let heard = beside(&[70], |node| async move {
        node.charge(10);
        let first: u64 = node.receive(0, DATA).await?;
        Ok((first, node.now()))
    });
    assert_eq!(heard, (0, 71));
}

#[test]
fn a_look_costs_a_tick_and_shows_all_that_has_arrived_by_then() {
    // They arrive at 1, 101 and 102; the looks end at 101, 102, 103 and 104.
    let heard = beside(&[0, 100, 101], |node| async move {
        node.charge(100);
        let mut heard = Vec::new();
        for _ in 0..4 {
            heard.push((number(node.try_event().await), node.now()));
        }
        Ok(heard)
    });
    assert_eq!(heard, [(Some(0), 101), (Some(1), 102), (Some(2), 103), (None, 104)]);
}

#[test]
fn what_has_not_arrived_by_its_own_clock_is_not_seen() {
    // It arrives at 102, one tick after the first look ends.
    let heard = beside(&[101], |node| async move {
        node.charge(100);
        let first = number(node.try_event().await);
        Ok((first, number(node.try_event().await), node.now()))
    });
    assert_eq!(heard, (None, Some(0), 102));
}

#[test]
fn a_dear_look_costs_what_the_model_says() {
    let look = Model { poll: 250, ..model("zero") };
    let times = on(1, "complete", look, |node| async move {
        node.try_event().await;
        node.charge(50);
        node.try_event().await;
        Ok(node.now())
    });
    assert_eq!(times, Ok(vec![550]));
}

#[test]
fn what_a_node_sends_while_it_computes_leaves_at_its_own_time() {
    let times = on(2, "complete", model("switched:latency=1us,per_byte=0ns"), |node| async move {
        if node.me() == 0 {
            node.charge(500);
            node.send(1, DATA, &());
            node.charge(500);
            node.send(1, DATA, &());
            return Ok(vec![node.now()]);
        }
        let mut times = Vec::new();
        for _ in 0..2 {
            node.receive::<()>(0, DATA).await?;
            times.push(node.now());
        }
        Ok(times)
    });
    assert_eq!(times, Ok(vec![vec![1000], vec![1500, 2000]]));
}

#[test]
fn speeds_divide_charges() {
    let speeds = vec![Speed::default(), Speed::new(2.0).unwrap(), Speed::ratio(1, 3).unwrap()];
    let model = Model { speeds, ..model("zero") };
    // Nodes 3 to 5 are virtual, on ranks 0 to 2.
    let times = on(3, "line:6", model, |node| async move {
        node.charge(101);
        Ok(node.now())
    });
    assert_eq!(times, Ok(vec![101, 51, 303, 101, 51, 303]));
}

#[test]
fn timers_run_out_at_their_time_in_the_order_of_time() {
    let seen = on(1, "complete", model("zero"), |node| async move {
        node.charge(10);
        let names = [(40, node.set_timer(40)), (15, node.set_timer(15)), (0, node.set_timer(0)), (15, node.set_timer(15))];
        let mut seen = Vec::new();
        for _ in 0..4 {
            let Event::Timer { timer, .. } = node.next_event().await else { panic!("only timers were set") };
            let asked = names.iter().position(|(_, name)| *name == timer);
            seen.push((asked, node.now()));
        }
        Ok(seen)
    });
    // That of the past comes at once, which is a tick later.
    assert_eq!(seen, Ok(vec![vec![(Some(2), 11), (Some(1), 15), (Some(3), 15), (Some(0), 40)]]));
}

#[test]
fn a_cancelled_timer_never_comes_and_no_time_passes_for_it() {
    let report = report(on(1, "complete", model("zero"), |node| async move {
        let (early, late) = (node.set_timer(10), node.set_timer(5000));
        node.charge(20);
        node.try_event().await;
        let over = node.set_timer(30);
        node.charge(40);
        node.epoch(1).try_event().await;
        node.cancel_timer(late);
        node.cancel_timer(over);
        node.cancel_timer(early);
        node.next_event().await;
        Ok(())
    }));
    assert!(report.starts_with("nothing is left to happen at 62ns of virtual time"), "{report}");
}

#[test]
fn a_timer_comes_to_its_epoch_only() {
    let seen = on(1, "complete", model("zero"), |node| async move {
        let mine = node.epoch(3).set_timer(10);
        node.set_timer(20);
        node.next_event().await;
        let first = node.now();
        let Event::Timer { timer, .. } = node.epoch(3).next_event().await else { panic!("only timers were set") };
        Ok((first, timer == mine, node.now()))
    });
    assert_eq!(seen, Ok(vec![(20, true, 20)]));
}

#[test]
fn a_signal_comes_to_every_node_in_whatever_epoch_it_waits() {
    let rules = Rules::default().signal(Signal::User1, 500).signal(Signal::User2, 900);
    let seen = on(3, "line:5", disturbed("zero", rules), |node| async move {
        let mut seen = Vec::new();
        for epoch in [0, 7] {
            let Event::Signal(signal) = node.epoch(epoch).next_event().await else { panic!("only signals come") };
            seen.push((signal, node.now()));
        }
        Ok(seen)
    });
    assert_eq!(seen, Ok(vec![vec![(Signal::User1, 500), (Signal::User2, 900)]; 5]));
}

#[test]
fn a_signal_does_not_end_a_receive_but_waits_for_the_next_event() {
    let rules = Rules::default().signal(Signal::User1, 5);
    let seen = on(2, "complete", disturbed("zero", rules), |node| async move {
        node.charge(u64::from(node.me() == 0) * 100);
        node.send(1 - node.me(), DATA, &());
        node.receive::<()>(1 - node.me(), DATA).await?;
        let heard = node.now();
        Ok((heard, matches!(node.next_event().await, Event::Signal(Signal::User1))))
    });
    assert_eq!(seen, Ok(vec![(100, true), (101, true)]));
}

#[test]
fn more_time_than_can_be_counted_is_an_error_and_no_time() {
    let slow = Model { speeds: vec![Speed::new(0.000001).unwrap(); 2], ..model("zero") };
    let long = |node: Node| async move {
        node.start(|worker| worker.charge(Ticks::MAX / 1_000));
        node.next_event().await;
        Ok(())
    };
    let why = on(2, "complete", slow, long).unwrap_err();
    assert!(why.exit_status() == 2 && why.to_string().contains("2^64 ns (584 years)"), "{why}");
    // A timer at the end of all time is one that never runs out.
    let never = |node: Node| async move {
        node.set_timer(Ticks::MAX);
        node.next_event().await;
        Ok(())
    };
    assert_eq!(on(2, "complete", model("zero"), never).unwrap_err().exit_status(), 3);
}
