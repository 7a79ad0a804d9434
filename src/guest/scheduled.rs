//! A run of tasks under a scheduler of the registry: each rank is a node, and the scheduler's policy decides where tasks go.
//!
//! These schedulers take roots at one node, so all roots go to rank 0 first, which submits them. Tasks run on the calling thread, between
//! the messages of the policy; tasks that they create are handed to the policy. Results do not go through it: they are sent from the rank
//! that computed them to the rank where the root was put, as under work stealing.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use super::call::{Nodes, State, World};
use super::letters::Op;
use super::places::{Aligned, Receive};
use super::run::Item;
use super::status::{Failure, Result, Status};
use super::task::Process;
use crate::node::{self, LARGEST_MESSAGE, Worker};
use crate::schedule::{self, Chosen, Computation, Roots, Style, Yield};
use crate::topology::{Overlay, RankId};

/// Maximum bytes of a task. It travels in one message, with some 200 bytes before it; a larger one would end the job where it leaves its rank.
pub(super) const LARGEST_BODY: usize = LARGEST_MESSAGE - 1024;

/// The scheduler that a name and its options choose, if it can run on this number of ranks.
///
/// # Errors
/// Wrong usage; the sentence lists the names.
pub(super) fn find(name: &str, ranks: u32) -> Result<Chosen> {
    let wrong = |why: &dyn std::fmt::Display| Failure::usage(format!("scheduler {}: {why}", crate::spec::shown(name)));
    let chosen = schedule::find(name).map_err(|why| wrong(&why))?;
    match chosen.objection(&chosen.default_topology(ranks)) {
        Some(why) => Err(wrong(&why)),
        None if chosen.host_rank() != RankId::FIRST => Err(wrong(&"tasks of a program are submitted on rank 0, so host_rank has to be 0")),
        None => Ok(chosen),
    }
}

/// Context in which tasks are executed on the thread of the world.
struct Here<'a, 'b> {
    world: &'a World,
    process: Process<'a>,
    on_result: RefCell<&'a mut Option<Receive<'b>>>,
    aligned: RefCell<Aligned>,
}

/// A computation whose tasks are the caller's.
struct Guests(*const Here<'static, 'static>);

#[allow(unsafe_code, reason = "the traits ask for it; nothing of it is used on another thread")]
// SAFETY: the tasks run on the thread that made it (`Style::Inline`), and nothing else looks behind the pointer.
unsafe impl Send for Guests {}
#[allow(unsafe_code, reason = "as above")]
// SAFETY: as above.
unsafe impl Sync for Guests {}

impl Guests {
    #[allow(unsafe_code, reason = "a computation lives as long as it likes, and the caller's functions as long as the call")]
    fn here(&self) -> &Here<'static, 'static> {
        // SAFETY: `run_under` keeps it until the nodes have ended, and they alone execute tasks.
        unsafe { &*self.0 }
    }
}

impl Computation for Guests {
    type Task = Item;
    type Answer = ();
    type Waiting = ();

    const STYLE: Style = Style::Inline;

    fn execute(&self, item: Item, _: &mut dyn Worker) -> Yield<Self> {
        let here = self.here();
        let made = catch_unwind(AssertUnwindSafe(|| {
            // Somebody may have stopped, and results may have come.
            here.world.serve_others();
            if !here.world.has_stopped() {
                here.world.process_one(here.process, &item, LARGEST_BODY, &mut here.aligned.borrow_mut());
            }
            here.world.hand_over(*here.on_result.borrow_mut());
        }));
        if made.is_err() {
            let text = format!("rank {}: panic: in a callback", here.world.rank());
            here.world.fails(Failure::new(Status::Panic, text));
        }
        let created = here.world.created();
        if created.is_empty() { Yield::Answer(()) } else { Yield::Detached { tasks: created, answer: () } }
    }

    fn join(&self, (): (), _: Vec<()>) -> Yield<Self> {
        Yield::Answer(())
    }

    fn combine(&self, (): (), (): ()) {}
}

impl World {
    /// Processes all tasks under the scheduler. All ranks have agreed on it, and have a run.
    pub(super) fn run_under(&self, chosen: Chosen, process: Process<'_>, on_result: &mut Option<Receive<'_>>) -> Result<()> {
        let (mut nodes, roots) = {
            let mut state = self.state.borrow_mut();
            let mine = state.run.as_mut().map(super::run::Run::take_all).unwrap_or_default();
            let mut roots = Vec::new();
            state.through_first(&mine, |_, all: Vec<Vec<Item>>| {
                let ranks = all.len();
                roots = all.into_iter().flatten().collect();
                Ok(vec![(); ranks])
            })?;
            (state.nodes()?, roots)
        };
        let overlay = Overlay::new(chosen.default_topology(self.ranks()), nodes.hosts()).map_err(crate::Error::from)?;
        let here = Here { world: self, process, on_result: RefCell::new(on_result), aligned: RefCell::new(Aligned::new()) };
        let guests = Arc::new(Guests(std::ptr::from_ref(&here).cast()));
        let roots = Rc::new(RefCell::new(Some(roots)));
        let host = overlay.placement.real_node_of(RankId::FIRST);
        let ran = node::run(&mut nodes, &overlay, |node| {
            let roots = match node.me() == host {
                true => Roots::Many(roots.borrow_mut().take().unwrap_or_default()),
                false => Roots::Elsewhere,
            };
            schedule::execute(node, guests.clone(), chosen.clone(), roots, schedule::Options::default())
        });
        self.state.borrow_mut().nodes = Some(nodes);
        ran?;
        // The last results may be on their way still.
        loop {
            self.serve_others();
            let mut state = self.state.borrow_mut();
            let counts = state.run.as_ref().map(|run| run.counts).unwrap_or_default();
            let agreed = state.agree_with(Op::Run, Ok(()), &[], &[counts.sent as f64, counts.received as f64], &[])?;
            drop(state);
            self.hand_over(*here.on_result.borrow_mut());
            if agreed.sums[0] == agreed.sums[1] {
                return Ok(());
            }
        }
    }

    pub(super) fn has_stopped(&self) -> bool {
        self.with_run(|run| run.stop.is_known).unwrap_or(true)
    }

    /// The tasks that were created since it was asked last.
    fn created(&self) -> Vec<Item> {
        self.with_run(super::run::Run::take_all).unwrap_or_default()
    }
}

impl State {
    /// The ranks as nodes, which are given back after the run. All ranks must take part.
    fn nodes(&mut self) -> Result<Nodes> {
        let seed = self.options.seed;
        let mut nodes = match self.nodes.take() {
            Some(nodes) => nodes,
            None => {
                self.confirm(Op::Run)?;
                ManuallyDrop::new(self.link()?.nodes()?)
            }
        };
        nodes.reseed(seed);
        Ok(nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_of_the_registry_are_found_and_others_refused() {
        for entry in schedule::ALL {
            for ranks in [1, 2, 3, 5, 8] {
                assert_eq!(find(entry.name, ranks).unwrap().entry.name, entry.name);
            }
        }
        for (name, says) in
            [("magic", "cwn"), ("hierarchical:host_rank=1", "host_rank has to be 0"), ("selfsched", "independent"), ("steal:x=1", "x")]
        {
            let why = find(name, 4).err().unwrap();
            assert!(why.status == Status::Usage && why.text.contains(says), "{}", why.text);
        }
    }
}
