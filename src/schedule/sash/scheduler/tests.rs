//! Phases by the clock, and when their schedules leave.

use super::super::{Rules, SchedulerRank};
use super::*;
use crate::node::{self, Worker};
use crate::schedule::independent::Turn;
use crate::topology::{Overlay, Topology};
use crate::transport::sim::{Model, Network};
use crate::transport::world::World;

/// Tasks that take half of what is estimated, or all of it.
struct Uneven(Arc<Costs>);

impl Independent for Uneven {
    fn costs(&self) -> &Arc<Costs> {
        &self.0
    }

    fn execute(&self, task: usize, _: Turn, worker: &mut dyn Worker, _: &mut Vec<u8>) -> u64 {
        worker.charge(self.0.of(task, 0) / if task.is_multiple_of(3) { 1 } else { 2 });
        1
    }
}

#[test]
fn schedules_leave_earlier_after_one_came_late() {
    const AHEAD: Ticks = 1_000;
    let mut world = World::simulated(3, Model { network: Network::Zero, ..Model::default() });
    let overlay = Overlay::one_host(Topology::parse("complete", 3).unwrap(), 3).unwrap();
    let ahead = node::run(&mut world, &overlay, |node| async move {
        let work: Arc<dyn Independent> = Arc::new(Uneven(Arc::new(Costs::new(3, vec![CYCLE; 300]).unwrap())));
        let pace = Pace { cycle: CYCLE, by_model: false, ahead: AHEAD, seed: 1 };
        let mut executor = Executor::new(node.clone(), work.clone());
        if node.me() > 0 {
            loop {
                match node.next_event().await {
                    Event::Message(message) if message.envelope.tag == ASSIGN.id() => {
                        executor.take(Chunk::List(open::<Assigned>(&message, ASSIGN)?.tasks.into()), None);
                    }
                    Event::Finished { finished, .. } => {
                        let done = executor.finished(finished)?;
                        let tasks = done.tasks.tasks().into_iter().map(|task| task as u64).collect();
                        node.send(0, COMPLETED, &Completed { tasks, took: done.took });
                    }
                    _ => return Ok(0),
                }
            }
        }
        let sash = Arc::new(Sash {
            rules: Rules::named("r1").unwrap(),
            scheduler_rank: SchedulerRank::First,
            joins: false,
            error: 0.0,
            alike: false,
            by_host: false,
        });
        let members = Members::ranks(&node, &[1, 2].map(RankId::new));
        let estimates = work.costs().clone();
        let mut one = Scheduler::new(node.clone(), work, executor, pace, sash, node.now(), 0, members, estimates);
        one.by_clock().await?;
        one.end();
        Ok(one.ahead.now)
    });
    let ahead = ahead.unwrap()[0].1;
    assert!(ahead > 2 * AHEAD && ahead <= MOST_AHEAD * AHEAD, "{ahead}");
}

#[test]
fn short_phases_serve_those_who_run_dry() {
    let costs = Costs::new(3, vec![5, 5, NEVER, 5, 5, 5]).unwrap();
    let workers = [0, 1, 2];
    let places = |finish: [Cost; 3], task: usize, until: Cost| candidates(&workers, &finish, &[task], &costs, until);
    assert_eq!(places([100, 20, 90], 1, 30), [1], "the others hold much");
    assert_eq!(places([100, 20, 10], 0, 30), [1, 2]);
    assert_eq!(places([100, 90, 10], 0, 30), [0, 1, 2], "the dry one can't run it");
    assert_eq!(places([100, 40, 50], 1, 40), [0, 1, 2], "a phase of full length");
}
