//! The tasks at a node that no worker executes: not placed by the policy yet, ready, between two slices, or still migrating; and the nodes that
//! asked for some.

use std::collections::{BTreeMap, VecDeque};

use super::task::{Home, Item, TaskHeader, Travelling};
use super::unplaced::Unplaced;
use crate::error::{Error, Result};
use crate::node::{Ticks, TimerId};
use crate::schedule::accounting::Name;
use crate::schedule::computation::Computation;
use crate::schedule::policy::{ItemId, New, QueueOrder};
use crate::topology::NodeId;

pub(super) struct TaskStore<C: Computation> {
    me: NodeId,
    order: QueueOrder,
    /// A virtual node executes nothing, so nothing can be ready there.
    is_virtual: bool,
    /// Numbers of the last task that came or was born here, and of the next that is born here.
    last_item: u64,
    born: u64,
    unplaced: Unplaced<Item<C>>,
    /// The oldest in front; in `Lifo` order behind the roots.
    ready: VecDeque<Item<C>>,
    peak_ready: usize,
    /// The task that is being executed on the communication thread, between two of its slices.
    sliced: Option<Item<C>>,
    /// Tasks whose migration ends when a timer runs out, and where they come from.
    migrating: BTreeMap<TimerId, (NodeId, Item<C>)>,
    /// Nodes that asked for tasks and have got none yet, the longest waiting in front.
    requests: VecDeque<NodeId>,
}

impl<C: Computation> TaskStore<C> {
    pub fn new(me: NodeId, order: QueueOrder, is_virtual: bool) -> TaskStore<C> {
        TaskStore {
            me,
            order,
            is_virtual,
            last_item: 0,
            born: 0,
            unplaced: Unplaced::default(),
            ready: VecDeque::new(),
            peak_ready: 0,
            sliced: None,
            migrating: BTreeMap::new(),
            requests: VecDeque::new(),
        }
    }

    /// The header of a task that is born here.
    pub fn birth(&mut self, home: Home, chain: Ticks) -> TaskHeader {
        let name = Name { born: self.me, number: self.born };
        self.born += 1;
        TaskHeader::new(name, home, chain)
    }

    /// Numbers a task that is here from now on.
    pub fn item(&mut self, header: TaskHeader, task: C::Task) -> Item<C> {
        self.last_item += 1;
        Item { id: ItemId(self.last_item), header, task }
    }

    /// Lets the policy place this task from now on.
    pub fn admit(&mut self, item: Item<C>) -> New {
        let new = New { item: item.id, hops: item.header.hops };
        self.unplaced.push(item.id, item);
        new
    }

    /// A task that is born here, to be placed.
    pub fn enter(&mut self, header: TaskHeader, task: C::Task) -> New {
        let item = self.item(header, task);
        self.admit(item)
    }

    /// Appends what tasks are born with these homes, all to be placed.
    pub fn spawn(&mut self, tasks: impl Iterator<Item = (Home, C::Task)>, chain: Ticks, news: &mut Vec<New>) {
        news.extend(tasks.map(|(home, task)| {
            let header = self.birth(home, chain);
            self.enter(header, task)
        }));
    }

    fn unknown(&self, item: ItemId) -> Error {
        Error::Failed(format!("the policy of node {} places item {}, which is not there to be placed", self.me, item.0))
    }

    /// Takes a task out that the policy places elsewhere.
    ///
    /// # Errors
    /// If there is no such task.
    pub fn take(&mut self, item: ItemId) -> Result<Item<C>> {
        self.unplaced.remove(item).ok_or_else(|| self.unknown(item))
    }

    /// The policy places a task here: it is ready.
    ///
    /// # Errors
    /// If there is no such task, or nothing can be executed here.
    pub fn queue(&mut self, item: ItemId) -> Result<()> {
        if self.is_virtual {
            return Err(Error::Failed(format!("the policy queues a task on node {}, which is virtual", self.me)));
        }
        let item = self.take(item)?;
        match self.order == QueueOrder::Lifo && item.is_root() {
            // Roots stand before all others.
            true => self.ready.insert(self.ready.partition_point(Item::is_root), item),
            false => self.ready.push_back(item),
        }
        Ok(())
    }

    /// The policy labels a task.
    ///
    /// # Errors
    /// If there is no such task.
    pub fn label(&mut self, item: ItemId, label: u32) -> Result<()> {
        match self.unplaced.get_mut(item) {
            Some(found) => found.header.label = label,
            None => return Err(self.unknown(item)),
        }
        Ok(())
    }

    /// Number of ready tasks.
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Returns true if a task lies between two of its slices.
    pub fn is_sliced(&self) -> bool {
        self.sliced.is_some()
    }

    /// Takes the ready task that is executed next.
    pub fn next_ready(&mut self) -> Option<Item<C>> {
        match self.order {
            QueueOrder::Fifo => self.ready.pop_front(),
            // If the last task is a root, all are.
            QueueOrder::Lifo if self.ready.back().is_some_and(Item::is_root) => self.ready.pop_front(),
            QueueOrder::Lifo => self.ready.pop_back(),
        }
    }

    /// Returns true if there is a task for the communication thread.
    pub fn has_next(&self) -> bool {
        self.sliced.is_some() || !self.ready.is_empty()
    }

    /// Takes the next task of the communication thread: the one that it began, or a ready one.
    pub fn next_here(&mut self) -> Option<Item<C>> {
        self.sliced.take().or_else(|| self.next_ready())
    }

    /// Keeps a task until its next slice.
    pub fn pause(&mut self, item: Item<C>) {
        self.sliced = Some(item);
    }

    /// Takes the task that lies between two slices.
    pub fn take_sliced(&mut self) -> Option<Item<C>> {
        self.sliced.take()
    }

    /// Remembers how many tasks were ready at most, after tasks were begun.
    pub fn measure(&mut self) {
        self.peak_ready = self.peak_ready.max(self.ready.len());
    }

    /// A task's migration lasts until a timer runs out.
    pub fn migrate(&mut self, timer: TimerId, from: NodeId, item: Item<C>) {
        self.migrating.insert(timer, (from, item));
    }

    /// The task whose migration ends with this timer, and where it comes from.
    pub fn migrated(&mut self, timer: TimerId) -> Option<(NodeId, Item<C>)> {
        self.migrating.remove(&timer)
    }

    /// A node asks for tasks.
    pub fn request(&mut self, from: NodeId) {
        if !self.requests.contains(&from) {
            self.requests.push_back(from);
        }
    }

    /// A node needs no tasks any more.
    pub fn forget(&mut self, from: NodeId) {
        self.requests.retain(|other| *other != from);
    }

    /// The node that has waited longest for tasks.
    pub fn longest_waiting(&self) -> Option<NodeId> {
        self.requests.front().copied()
    }

    /// Removes the oldest request, whose node is given tasks.
    pub fn is_served(&mut self) {
        self.requests.pop_front();
    }

    /// Takes the tasks to give to the node that has waited longest, if there are more than begin here next: all that wait and this node get
    /// equal shares.
    pub fn share(&mut self, next_here: usize) -> Option<(NodeId, Vec<Travelling<C::Task>>)> {
        let spare = self.ready.len().saturating_sub(next_here);
        if spare == 0 {
            return None;
        }
        let count = spare.div_ceil(self.requests.len() + 1);
        let to = self.requests.pop_front()?;
        Some((to, self.oldest(count)))
    }

    /// Takes the oldest `count` of the ready tasks (or all), to be given away.
    pub fn oldest(&mut self, count: usize) -> Vec<Travelling<C::Task>> {
        let count = count.min(self.ready.len());
        self.ready.drain(..count).map(|item| Travelling::new(item.header, item.task, true)).collect()
    }

    /// Takes all ready tasks but the newest `at_hand` out, the oldest first.
    pub fn freeze(&mut self, at_hand: usize) -> Vec<Item<C>> {
        self.ready.drain(..self.ready.len().saturating_sub(at_hand)).collect()
    }

    /// Makes tasks ready again that were frozen and stayed, the newest in front: they are older than all that were not frozen.
    pub fn thaw(&mut self, stayed: Vec<Item<C>>) {
        let lifo = self.order == QueueOrder::Lifo;
        let (roots, others): (Vec<_>, Vec<_>) = stayed.into_iter().rev().partition(|item| lifo && item.is_root());
        let behind_roots = if lifo { self.ready.partition_point(Item::is_root) } else { 0 };
        let newer = self.ready.split_off(behind_roots);
        let newer_roots = std::mem::take(&mut self.ready);
        self.ready.extend(roots.into_iter().chain(newer_roots).chain(others).chain(newer));
    }

    /// Returns true if no task is here.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.sliced.is_none() && self.unplaced.is_empty() && self.migrating.is_empty()
    }

    /// Numbers of tasks that are not placed, and that are migrating.
    pub fn waiting(&self) -> (usize, usize) {
        (self.unplaced.len(), self.migrating.len())
    }

    /// Number of tasks that were born here.
    pub fn born(&self) -> u64 {
        self.born
    }

    /// Largest number of tasks that were ready.
    pub fn peak_ready(&self) -> u64 {
        self.peak_ready as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Sum;
    use super::*;

    fn store(order: QueueOrder) -> TaskStore<Sum> {
        TaskStore::new(3, order, false)
    }

    /// Makes tasks ready that carry these numbers; those below 10 are roots.
    fn queue(store: &mut TaskStore<Sum>, tasks: &[u64]) {
        for task in tasks {
            let home = if *task < 10 { Home::Root { graph: *task } } else { Home::Detached };
            let header = store.birth(home, 0);
            let new = store.enter(header, *task);
            store.queue(new.item).unwrap();
        }
    }

    fn drain(store: &mut TaskStore<Sum>) -> Vec<u64> {
        std::iter::from_fn(|| store.next_ready()).map(|item| item.task).collect()
    }

    #[test]
    fn the_order_says_which_ready_task_is_next_and_roots_come_last_and_oldest_first() {
        for (order, expected) in [(QueueOrder::Fifo, [10, 1, 11, 2]), (QueueOrder::Lifo, [11, 10, 1, 2])] {
            let mut store = store(order);
            queue(&mut store, &[10, 1, 11, 2]);
            store.measure();
            assert_eq!(drain(&mut store), expected);
            assert_eq!((store.peak_ready(), store.born(), store.is_empty()), (4, 4, true));
        }
    }

    #[test]
    fn tasks_are_placed_once_and_only_where_they_can_be_executed() {
        let mut store = store(QueueOrder::Fifo);
        let header = store.birth(Home::Detached, 5);
        assert_eq!((header.name, header.chain), (Name { born: 3, number: 0 }, 5));
        let new = store.enter(header, 7);
        store.label(new.item, 9).unwrap();
        assert_eq!(store.waiting(), (1, 0));
        assert_eq!(store.take(new.item).unwrap().header.label, 9);
        let again = store.queue(new.item).unwrap_err().to_string();
        assert_eq!(again, format!("the policy of node 3 places item {}, which is not there to be placed", new.item.0));
        assert_eq!(store.label(new.item, 1).unwrap_err().to_string(), again);
        let mut virtual_node = TaskStore::<Sum>::new(4, QueueOrder::Fifo, true);
        let why = virtual_node.queue(ItemId(1)).unwrap_err().to_string();
        assert_eq!(why, "the policy queues a task on node 4, which is virtual");
    }

    #[test]
    fn those_who_ask_get_equal_shares_of_the_oldest_tasks_in_the_order_in_which_they_asked() {
        let mut store = store(QueueOrder::Lifo);
        queue(&mut store, &[10, 11, 12, 13, 14, 15, 16]);
        for from in [8, 9, 8, 7, 9] {
            store.request(from);
        }
        store.forget(7);
        let mut shares = Vec::new();
        // The last one begins here next.
        while store.longest_waiting().is_some()
            && let Some((to, tasks)) = store.share(1)
        {
            assert!(tasks.iter().all(|task| task.migration && task.header.hops == 1));
            shares.push((to, tasks.into_iter().map(|task| task.task).collect::<Vec<_>>()));
        }
        assert_eq!(shares, [(8, vec![10, 11]), (9, vec![12, 13])]);
        assert_eq!(store.ready(), 3);
        store.request(8);
        assert!(store.share(3).is_none(), "nothing to spare");
        assert_eq!(store.longest_waiting(), Some(8));
        store.is_served();
        assert_eq!(store.longest_waiting(), None);
    }

    #[test]
    fn frozen_tasks_that_stay_are_older_than_all_others_again() {
        for (order, expected) in [(QueueOrder::Fifo, [10, 1, 11, 2, 12]), (QueueOrder::Lifo, [12, 11, 10, 1, 2])] {
            let mut store = store(order);
            queue(&mut store, &[10, 1, 11, 2]);
            let frozen = store.freeze(1);
            assert_eq!((frozen.len(), store.ready()), (3, 1));
            queue(&mut store, &[12]);
            // A balancer hands them back the newest first.
            store.thaw(frozen.into_iter().rev().collect());
            assert_eq!(drain(&mut store), expected, "{order:?}");
        }
    }

    #[test]
    fn a_task_between_slices_goes_on_first_and_one_that_migrates_is_not_there_yet() {
        let mut store = store(QueueOrder::Fifo);
        queue(&mut store, &[10]);
        let header = store.birth(Home::Detached, 0);
        let item = store.item(header, 20);
        store.pause(item);
        assert!(store.has_next() && store.is_sliced());
        let next: Vec<_> = std::iter::from_fn(|| store.next_here()).map(|item| item.task).collect();
        assert_eq!(next, [20, 10]);
        let item = store.item(header, 30);
        store.migrate(TimerId(1), 6, item);
        assert!(!store.has_next() && !store.is_empty());
        assert!(store.migrated(TimerId(2)).is_none());
        let (from, item) = store.migrated(TimerId(1)).unwrap();
        assert_eq!((from, item.task, store.is_empty()), (6, 30, true));
        assert_eq!(store.admit(item).hops, 0);
    }
}
