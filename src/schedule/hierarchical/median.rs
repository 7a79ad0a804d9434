//! A median's part: it places the tasks of its region, or lends them to another region.

use rand::rngs::ChaCha8Rng;

use super::Message;
use super::lending::{Lending, News};
use super::lists::Level2;
use crate::schedule::policy::Actions;
use crate::schedule::registry::Region;
use crate::topology::NodeId;

pub(super) struct Median {
    me: NodeId,
    /// Tasks that a processor executes at a time.
    workers: usize,
    list: Level2,
    lending: Lending,
}

impl Median {
    /// A median that knows all regions, its own among them.
    pub fn new(me: NodeId, workers: u32, regions: &[Region]) -> Median {
        let members = regions.iter().find(|region| region.median == me).map_or(&[][..], |region| &region.members);
        let lending = Lending::new(me, regions.iter().map(|region| (region.median, region.members.len())));
        Median { me, workers: workers as usize, list: Level2::new(members), lending }
    }

    /// Lends tasks from now on.
    pub fn open(&mut self) {
        self.lending.open();
    }

    /// Assigns a task that another median has lent to a processor.
    pub fn borrow(&mut self, lender: NodeId, rng: &mut ChaCha8Rng) -> NodeId {
        self.lending.borrowed(lender);
        self.assign(rng)
    }

    /// Assigns a task that came from the host to a processor.
    pub fn assign(&mut self, rng: &mut ChaCha8Rng) -> NodeId {
        self.list.assign(self.me, rng)
    }

    /// Places for the requester's new tasks, after some of its tasks have completed: processors of this region, or the medians of others.
    pub fn place(&mut self, requester: NodeId, completed: u32, wanted: u32, rng: &mut ChaCha8Rng) -> Vec<NodeId> {
        (0..completed).for_each(|_| self.list.complete(requester));
        (0..wanted).map(|_| self.loan(rng).unwrap_or_else(|| self.list.assign(requester, rng))).collect()
    }

    /// The median that is given the next task; none while a processor here could begin it at once.
    fn loan(&mut self, rng: &mut ChaCha8Rng) -> Option<NodeId> {
        let least = self.list.least();
        if least < self.workers { None } else { self.lending.next_loan(least, rng) }
    }

    /// Notes the number of tasks in a region, as its median reports.
    pub fn heard(&mut self, median: NodeId, tasks: u32) {
        self.lending.heard(median, tasks);
    }

    /// Tells the other medians how many tasks there are here, if they should know.
    pub fn tell_news(&mut self, act: &mut Actions<Message>) {
        if let Some(News { to, tasks }) = self.lending.news(self.list.tasks()) {
            to.into_iter().for_each(|other| act.tell(other, Message::Tasks(tasks)));
        }
    }
}
