//! Work beside messages, in virtual time.

use equipoise::Result;
use equipoise::node::{Event, Finished, Node, Sliced, Step, Ticks};
use equipoise::transport::sim::Speed;

use super::*;

async fn finished(node: &Node) -> Finished {
    match node.next_event().await {
        Event::Finished { finished, .. } => finished,
        other => panic!("{other:?} instead of the end of work"),
    }
}

/// (which, began, ended) of each piece of work of every node, in the order in which they ended.
fn five_at_once(model: Model) -> Vec<Vec<(u32, Ticks, Ticks)>> {
    let program = |node: Node| async move {
        for number in 0..5u32 {
            node.start(move |worker| {
                worker.charge(60);
                worker.checkpoint();
                worker.spin(40);
                number
            });
        }
        let mut seen = Vec::new();
        for _ in 0..5 {
            let done = finished(&node).await;
            assert_eq!(node.now(), done.ended);
            seen.push((*done.output.downcast::<u32>().unwrap(), done.began, done.ended));
        }
        Ok(seen)
    };
    on(1, "complete", model, program).unwrap()
}

#[test]
fn opaque_work_takes_turns_on_one_worker() {
    let expected = [(0, 0, 100), (1, 100, 200), (2, 200, 300), (3, 300, 400), (4, 400, 500)];
    assert_eq!(five_at_once(model("zero")), [expected]);
    let fast = Model { speeds: vec![Speed::new(4.0).unwrap()], ..model("zero") };
    assert_eq!(five_at_once(fast)[0].last(), Some(&(4, 100, 125)));
}

#[test]
fn three_workers_do_three_at_a_time() {
    let expected = [(0, 0, 100), (1, 0, 100), (2, 0, 100), (3, 100, 200), (4, 100, 200)];
    assert_eq!(five_at_once(Model { workers: 3, ..model("zero") }), [expected]);
}

#[test]
fn nodes_of_a_rank_share_its_workers_and_ranks_do_not() {
    // Nodes 0 and 2 on rank 0, 1 and 3 on rank 1. The later node's work waits for the earlier one's.
    let times = on(2, "line:4", model("zero"), |node| async move {
        node.charge(if node.me() < 2 { 10 } else { 20 });
        node.start(|worker| worker.charge(100));
        let done = finished(&node).await;
        Ok((done.began, done.ended))
    });
    assert_eq!(times, Ok(vec![(10, 110), (10, 110), (110, 210), (110, 210)]));
}

#[test]
fn sleep_takes_its_time_on_a_fast_rank_too_and_no_work_takes_none() {
    let model = Model { speeds: vec![Speed::new(10.0).unwrap()], ..model("zero") };
    let times = on(1, "complete", model, |node| async move {
        node.start(|worker| {
            worker.sleep(100);
            worker.charge(100);
        });
        let first = finished(&node).await;
        node.start(|_| ());
        let second = finished(&node).await;
        Ok((first.ended, second.began, second.ended))
    });
    assert_eq!(times, Ok(vec![(110, 110, 111)]));
}

/// Computes for this long, in whole budgets.
struct Long(Ticks);

impl Sliced for Long {
    fn step(&mut self, budget: Ticks) -> Step {
        let spent = self.0.min(budget);
        self.0 -= spent;
        match self.0 {
            0 => Step::Done { spent, output: Box::new("done") },
            _ => Step::More { spent },
        }
    }
}

/// Node 0 works; node 1 asks at once, and again when it has the answer. Returns when the answers came and when the work ended.
fn asked_at_work(work: fn(&Node)) -> (Vec<Ticks>, (Ticks, Ticks)) {
    let model = Model { slice: 100, ..model("zero") };
    let program = move |node: Node| async move {
        if node.me() == 1 {
            let mut answers = Vec::new();
            for _ in 0..2 {
                node.send(0, DATA, &());
                node.receive::<()>(0, REPLY).await?;
                answers.push(node.now());
            }
            return Ok((answers, (0, 0)));
        }
        work(&node);
        let mut ended = None;
        let mut asked = 0;
        while ended.is_none() || asked < 2 {
            match node.next_event().await {
                Event::Message(_) => {
                    asked += 1;
                    node.send(1, REPLY, &());
                }
                Event::Finished { finished, .. } => ended = Some((finished.began, finished.ended)),
                other => panic!("{other:?}"),
            }
        }
        Ok((Vec::new(), ended.unwrap_or_default()))
    };
    let results = on(2, "complete", model, program).unwrap();
    (results[1].0.clone(), results[0].1)
}

#[test]
fn a_node_answers_between_the_slices_of_its_work() {
    // The questions arrive at 1 and 102, the slices end at 100, 200 and 250.
    assert_eq!(
        asked_at_work(|node| {
            node.start_sliced(Long(250));
        }),
        (vec![101, 201], (0, 250))
    );
}

#[test]
fn a_node_answers_at_once_while_a_worker_computes() {
    assert_eq!(
        asked_at_work(|node| {
            node.start(|worker| worker.charge(250));
        }),
        (vec![2, 4], (0, 250))
    );
}

#[test]
fn sliced_work_comes_one_after_another_and_beside_the_program_s_own_computing() {
    let model = Model { slice: 100, speeds: vec![Speed::new(2.0).unwrap()], ..model("zero") };
    let times = on(1, "complete", model, |node| async move {
        node.charge(20);
        node.start_sliced(Long(150));
        node.start_sliced(Long(100));
        let mut times = Vec::new();
        for _ in 0..2 {
            let done = finished(&node).await;
            assert_eq!(*done.output.downcast::<&str>().unwrap(), "done");
            times.push((done.began, done.ended));
            node.charge(10);
        }
        Ok((times, node.now()))
    });
    // At speed 2: charged until 10, slices 10..60 and 60..85; own computing until 90, then 90..140 and until 145.
    assert_eq!(times, Ok(vec![(vec![(10, 85), (90, 140)], 145)]));
}

#[test]
fn work_that_says_it_took_no_time_takes_a_tick_a_slice() {
    struct Free(u32);
    impl Sliced for Free {
        fn step(&mut self, _: Ticks) -> Step {
            self.0 -= 1;
            if self.0 == 0 { Step::Done { spent: 0, output: Box::new(()) } } else { Step::More { spent: 0 } }
        }
    }
    let ended: Result<Vec<Ticks>> = on(1, "complete", model("zero"), |node| async move {
        node.start_sliced(Free(7));
        Ok(finished(&node).await.ended)
    });
    assert_eq!(ended, Ok(vec![7]));
}
