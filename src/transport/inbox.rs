//! Inbox of a node: events that have arrived and were not taken yet, in order of arrival.
//!
//! A short inbox is scanned; a long one (a coordinator that many ranks report to) is indexed by scope, tag and source, so that taking
//! stays logarithmic. A million simulated nodes have a million inboxes, and most of them never hold more than two events: these lie in
//! the inbox itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Event, Interest, Scope, TimerId, Wanted};
use crate::topology::NodeId;

/// Minimum length at which the inbox is indexed.
const INDEXED_FROM: usize = 48;

#[derive(Debug, Default)]
pub struct Inbox {
    /// All events, in order and from the front, while these are enough.
    few: [Option<Event>; 2],
    many: Option<Box<Many>>,
}

/// Events of a longer inbox.
#[derive(Debug, Default)]
struct Many {
    /// Arrivals in order; a hole where one was taken from the middle. The first is never a hole.
    queue: VecDeque<Option<Event>>,
    /// Arrival number of the queue's first element.
    first: u64,
    held: usize,
    index: Option<Box<Index>>,
}

/// Arrival numbers by what they can be asked for.
#[derive(Debug, Default)]
struct Index {
    by_source: BTreeMap<(Scope, u16, NodeId), BTreeSet<u64>>,
    by_tag: BTreeMap<(Scope, u16), BTreeSet<u64>>,
    by_scope: BTreeMap<Scope, BTreeSet<u64>>,
    /// Signals and losses, which belong to every scope.
    scopeless: BTreeSet<u64>,
}

impl Inbox {
    /// Number of events that wait.
    pub fn len(&self) -> usize {
        match &self.many {
            Some(many) => many.held,
            None => self.few.iter().flatten().count(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn push(&mut self, event: Event) {
        if let Some(many) = &mut self.many {
            return many.push(event);
        }
        match self.few.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(event),
            None => {
                let many = self.many.insert(Box::default());
                self.few.iter_mut().filter_map(Option::take).chain([event]).for_each(|event| many.push(event));
            }
        }
    }

    /// Takes the first event that the interest covers. Losses are covered by [`Wanted::Anything`] only: the carrier decides when a
    /// named receive fails.
    pub fn take(&mut self, interest: &Interest) -> Option<Event> {
        self.take_where(|event| covers(interest, event), |many| many.take(interest))
    }

    /// Takes the first loss that was not reported yet.
    pub fn take_loss(&mut self) -> Option<Event> {
        let is_it = |event: &Event| matches!(event, Event::RankLost(_));
        self.take_where(is_it, |many| many.take_first(is_it))
    }

    /// Forgets the events of a timer.
    pub fn forget_timer(&mut self, timer: TimerId) {
        let is_it = |event: &Event| matches!(event, Event::Timer { timer: t, .. } if *t == timer);
        while self.take_where(is_it, |many| many.take_first(is_it)).is_some() {}
    }

    fn take_where(&mut self, is_it: impl Fn(&Event) -> bool, from_many: impl FnOnce(&mut Many) -> Option<Event>) -> Option<Event> {
        if let Some(many) = &mut self.many {
            let taken = from_many(many);
            if many.held == 0 {
                self.many = None;
            }
            return taken;
        }
        let place = self.few.iter().position(|event| event.as_ref().is_some_and(&is_it))?;
        let taken = self.few[place].take();
        self.few[place..].rotate_left(1);
        taken
    }
}

impl Many {
    fn push(&mut self, event: Event) {
        let number = self.first + self.queue.len() as u64;
        if let Some(index) = &mut self.index {
            index.insert(number, &event);
        }
        self.queue.push_back(Some(event));
        self.held += 1;
        if self.index.is_none() && self.queue.len() >= INDEXED_FROM {
            self.compact();
        }
    }

    fn take(&mut self, interest: &Interest) -> Option<Event> {
        match &self.index {
            Some(index) => {
                let number = index.first(interest)?;
                self.remove(number)
            }
            None => self.take_first(|event| covers(interest, event)),
        }
    }

    fn take_first(&mut self, is_it: impl Fn(&Event) -> bool) -> Option<Event> {
        let found = self.queue.iter().position(|event| event.as_ref().is_some_and(&is_it))?;
        self.remove(self.first + found as u64)
    }

    fn remove(&mut self, number: u64) -> Option<Event> {
        let event = self.queue.get_mut((number - self.first) as usize)?.take()?;
        self.held -= 1;
        if let Some(index) = &mut self.index {
            index.remove(number, &event);
        }
        while let Some(None) = self.queue.front() {
            self.queue.pop_front();
            self.first += 1;
        }
        // Events taken from behind one that is never taken must not leave holes for ever.
        while let Some(None) = self.queue.back() {
            self.queue.pop_back();
        }
        if self.held == 0 {
            self.index = None;
        } else if self.queue.len() > 2 * self.held + INDEXED_FROM {
            self.compact();
        }
        Some(event)
    }

    /// Closes the holes. Arrival numbers change, so the index is made anew; it goes when the inbox has become short.
    fn compact(&mut self) {
        self.queue.retain(Option::is_some);
        self.index = (self.queue.len() >= INDEXED_FROM).then(|| {
            let mut index = Box::<Index>::default();
            for (number, event) in (self.first..).zip(self.queue.iter().flatten()) {
                index.insert(number, event);
            }
            index
        });
    }
}

impl Index {
    fn insert(&mut self, number: u64, event: &Event) {
        match event {
            Event::Message(message) => {
                let (scope, tag, src) = (message.envelope.scope, message.envelope.tag, message.envelope.src);
                self.by_source.entry((scope, tag, src)).or_default().insert(number);
                self.by_tag.entry((scope, tag)).or_default().insert(number);
                self.by_scope.entry(scope).or_default().insert(number);
            }
            Event::Timer { scope, .. } | Event::Finished { scope, .. } => {
                self.by_scope.entry(*scope).or_default().insert(number);
            }
            Event::Signal(_) | Event::RankLost(_) => {
                self.scopeless.insert(number);
            }
        }
    }

    fn remove(&mut self, number: u64, event: &Event) {
        fn drop_from<K: Ord>(map: &mut BTreeMap<K, BTreeSet<u64>>, key: K, number: u64) {
            if let Some(numbers) = map.get_mut(&key) {
                numbers.remove(&number);
                if numbers.is_empty() {
                    map.remove(&key);
                }
            }
        }
        match event {
            Event::Message(message) => {
                let (scope, tag, src) = (message.envelope.scope, message.envelope.tag, message.envelope.src);
                drop_from(&mut self.by_source, (scope, tag, src), number);
                drop_from(&mut self.by_tag, (scope, tag), number);
                drop_from(&mut self.by_scope, scope, number);
            }
            Event::Timer { scope, .. } | Event::Finished { scope, .. } => drop_from(&mut self.by_scope, *scope, number),
            Event::Signal(_) | Event::RankLost(_) => {
                self.scopeless.remove(&number);
            }
        }
    }

    fn first(&self, interest: &Interest) -> Option<u64> {
        let least = |numbers: Option<&BTreeSet<u64>>| numbers.and_then(BTreeSet::first).copied();
        match interest.what {
            Wanted::Message { from: Some(src), tag } => least(self.by_source.get(&(interest.scope, tag.id(), src))),
            Wanted::Message { from: None, tag } => least(self.by_tag.get(&(interest.scope, tag.id()))),
            Wanted::Anything => {
                let scoped = least(self.by_scope.get(&interest.scope));
                let scopeless = least(Some(&self.scopeless));
                [scoped, scopeless].into_iter().flatten().min()
            }
        }
    }
}

/// Returns true if a program waits for this event.
pub fn covers(interest: &Interest, event: &Event) -> bool {
    match (interest.what, event) {
        (Wanted::Message { from, tag }, Event::Message(message)) => {
            let envelope = &message.envelope;
            envelope.scope == interest.scope && envelope.tag == tag.id() && from.is_none_or(|src| src == envelope.src)
        }
        (Wanted::Message { .. }, _) => false,
        (Wanted::Anything, Event::Message(message)) => message.envelope.scope == interest.scope,
        (Wanted::Anything, Event::Timer { scope, .. } | Event::Finished { scope, .. }) => *scope == interest.scope,
        (Wanted::Anything, Event::Signal(_) | Event::RankLost(_)) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::RankId;
    use crate::transport::{Envelope, Message, Signal, Tag};
    use bytes::Bytes;

    const SCOPES: [Scope; 2] = [Scope { run: 1, epoch: 0 }, Scope { run: 1, epoch: 1 }];
    const TAGS: [Tag; 2] = [Tag::new(1, "one"), Tag::background(2, "two")];

    fn message(scope: Scope, tag: Tag, src: NodeId, number: u64) -> Event {
        let envelope = Envelope { src, dst: 0, scope, tag: tag.id(), chain: 0, tasks: number };
        Event::Message(Message { envelope, body: Bytes::new().into() })
    }

    fn number_of(event: &Event) -> u64 {
        match event {
            Event::Message(message) => message.envelope.tasks,
            Event::Timer { timer, .. } => timer.0,
            other => panic!("not expected here: {other:?}"),
        }
    }

    /// The same questions to a short inbox, a long one and a plain list.
    #[test]
    fn long_and_short_inboxes_answer_as_a_list_does() {
        use rand::{RngExt, SeedableRng};
        let mut rng = rand::rngs::ChaCha8Rng::seed_from_u64(7);
        for length in [2u64, 3, 20, 47, 48, 49, 400] {
            let mut inbox = Inbox::default();
            let mut list: Vec<(Interest, u64, NodeId)> = Vec::new();
            let mut number = 0;
            for _ in 0..length * 4 {
                if rng.random_range(0..3) > 0 && (inbox.len() as u64) < length {
                    let (scope, tag) = (SCOPES[rng.random_range(0..2)], TAGS[rng.random_range(0..2)]);
                    let src = rng.random_range(0..3);
                    inbox.push(message(scope, tag, src, number));
                    list.push((Interest { scope, what: Wanted::Message { from: Some(src), tag } }, number, src));
                    number += 1;
                } else {
                    let scope = SCOPES[rng.random_range(0..2)];
                    let tag = TAGS[rng.random_range(0..2)];
                    let from = [None, Some(rng.random_range(0..3))][rng.random_range(0..2)];
                    let anything = rng.random_range(0..3) == 0;
                    let interest = Interest { scope, what: if anything { Wanted::Anything } else { Wanted::Message { from, tag } } };
                    let expected = list.iter().position(|(sent, _, src)| {
                        let Wanted::Message { tag: sent_tag, .. } = sent.what else { return false };
                        sent.scope == scope && (anything || (sent_tag == tag && from.is_none_or(|f| f == *src)))
                    });
                    let expected = expected.map(|at| list.remove(at).1);
                    assert_eq!(inbox.take(&interest).map(|event| number_of(&event)), expected);
                    assert_eq!(inbox.len(), list.len());
                }
            }
        }
    }

    /// An event that is never taken waits at the front (and in the middle) while many others come and go.
    #[test]
    fn a_forgotten_event_does_not_make_the_inbox_grow() {
        let wanted = Interest { scope: SCOPES[0], what: Wanted::Message { from: None, tag: TAGS[0] } };
        for batch in [1, 10, 100] {
            let mut inbox = Inbox::default();
            inbox.push(message(SCOPES[1], TAGS[1], 0, 0));
            let mut next = 0;
            for number in 0..10_000 {
                inbox.push(message(SCOPES[0], TAGS[0], 1, number));
                if number % 1000 == 500 {
                    inbox.push(message(SCOPES[1], TAGS[1], 0, 0));
                }
                if number % batch == batch - 1 {
                    while let Some(event) = inbox.take(&wanted) {
                        assert_eq!(number_of(&event), next);
                        next += 1;
                    }
                }
                assert!(inbox.many.as_ref().is_none_or(|many| many.queue.len() <= 2 * many.held + INDEXED_FROM + 1));
            }
            assert_eq!(inbox.len(), 11);
        }
    }

    #[test]
    fn signals_and_losses_belong_to_every_scope_but_to_no_named_receive() {
        for filler in [0, 100] {
            let mut inbox = Inbox::default();
            for number in 0..filler {
                inbox.push(message(SCOPES[1], TAGS[0], 1, number));
            }
            inbox.push(Event::Signal(Signal::User1));
            inbox.push(Event::RankLost(RankId::new(4)));
            let named = Interest { scope: SCOPES[0], what: Wanted::Message { from: None, tag: TAGS[0] } };
            assert!(inbox.take(&named).is_none());
            let anything = Interest { scope: SCOPES[0], what: Wanted::Anything };
            assert!(matches!(inbox.take(&anything), Some(Event::Signal(Signal::User1))));
            assert!(matches!(inbox.take_loss(), Some(Event::RankLost(rank)) if rank == RankId::new(4)));
            assert!(inbox.take(&anything).is_none());
            assert_eq!(inbox.len() as u64, filler);
        }
    }

    #[test]
    fn a_timer_can_be_forgotten_after_it_ran_out() {
        let mut inbox = Inbox::default();
        inbox.push(Event::Timer { scope: SCOPES[0], timer: TimerId(5) });
        inbox.push(Event::Timer { scope: SCOPES[0], timer: TimerId(6) });
        inbox.forget_timer(TimerId(5));
        let anything = Interest { scope: SCOPES[0], what: Wanted::Anything };
        assert_eq!(inbox.take(&anything).map(|event| number_of(&event)), Some(6));
        assert!(inbox.is_empty());
    }
}
