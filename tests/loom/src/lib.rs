//! Hand-over, wake-up and shutdown of the worker pool in every order of its threads. Loom ends a test with a failure when all threads wait: a
//! lost wake-up, or a worker that nobody dismisses.

#![cfg(test)]

#[allow(dead_code)]
#[path = "../../../src/transport/mpi/workers.rs"]
mod workers;

mod threads;

/// Stand-in for the carrier's function that workers.rs calls when a thread dies in a task; none does here.
mod abort {
    pub const PANICKED: i32 = 101;

    pub fn job(sentence: &str, _: i32) -> ! {
        panic!("{sentence}")
    }
}

mod ffi {
    pub fn is_active() -> bool {
        false
    }
}

mod error {
    #[derive(Debug)]
    #[allow(dead_code)]
    pub enum Error {
        Failed(String),
    }

    pub type Result<T> = std::result::Result<T, Error>;
}

#[allow(dead_code)]
#[path = "../../../src/transport/work.rs"]
mod work;

type Ticks = u64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkId(pub u64);

mod transport {
    pub(crate) use crate::work;
    pub(crate) use crate::work::{Finished, Needed, Output, Sliced, Worker};
    pub(crate) use crate::{Ticks, WorkId};

    #[derive(Clone, Copy)]
    pub struct Scope;
}

use std::time::Instant;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};

use transport::Scope;
use workers::{Owner, WorkerPool};

fn owner(number: u64) -> Owner {
    Owner { local_node: 0, scope: Scope, work: WorkId(number) }
}

/// Takes back what the workers have done; waits as the executor does, but without a limit, so that a lost wake-up is a standstill.
fn take_all(pool: &mut WorkerPool) -> Vec<u64> {
    let mut done = Vec::new();
    while pool.is_busy() {
        match pool.next_done() {
            Some((owner, _)) => done.push(owner.work.0),
            None => threads::park(),
        }
    }
    done.sort_unstable();
    done
}

/// At most two changes of the running thread where it could have gone on; loom finds most mistakes with that.
fn in_every_order(check: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(check);
}

#[test]
fn whoever_gives_work_out_hears_of_its_end() {
    in_every_order(|| {
        let mut pool = WorkerPool::new(1, Instant::now());
        for number in 0..2 {
            pool.give(owner(number), Box::new(|_| Box::new(()))).unwrap();
        }
        assert_eq!(take_all(&mut pool), [0, 1]);
        pool.dismiss();
    });
}

#[test]
fn two_workers_share_what_there_is_and_end() {
    in_every_order(|| {
        let executed = Arc::new(AtomicUsize::new(0));
        let mut pool = WorkerPool::new(2, Instant::now());
        for number in 0..3 {
            let executed = executed.clone();
            let work = move |_: &mut dyn transport::Worker| {
                executed.fetch_add(1, Ordering::Relaxed);
                Box::new(()) as transport::Output
            };
            pool.give(owner(number), Box::new(work)).unwrap();
        }
        assert_eq!(take_all(&mut pool), [0, 1, 2]);
        assert_eq!(executed.load(Ordering::Relaxed), 3);
        pool.dismiss();
    });
}

#[test]
fn recalled_work_is_executed_or_taken_back_and_counted_once() {
    in_every_order(|| {
        let executed = Arc::new(AtomicUsize::new(0));
        let mut pool = WorkerPool::new(1, Instant::now());
        for number in 0..2 {
            let executed = executed.clone();
            let work = move |_: &mut dyn transport::Worker| {
                executed.fetch_add(1, Ordering::Relaxed);
                Box::new(()) as transport::Output
            };
            pool.give(owner(number), Box::new(work)).unwrap();
        }
        pool.recall();
        let done = take_all(&mut pool);
        assert_eq!(done.len(), executed.load(Ordering::Relaxed));
        pool.dismiss();
    });
}

#[test]
fn a_pool_that_is_dismissed_while_it_works_leaves_no_thread_waiting() {
    in_every_order(|| {
        let mut pool = WorkerPool::new(1, Instant::now());
        pool.give(owner(0), Box::new(|_| Box::new(()))).unwrap();
        pool.dismiss();
        assert!(!pool.is_busy());
    });
}
