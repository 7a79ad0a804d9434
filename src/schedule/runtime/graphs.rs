//! The host's record of graphs: it takes roots from where they come, numbers them, and hears when each graph is answered.

use std::collections::BTreeMap;

use crate::error::{Error, LostTasks, Result};
use crate::node::{Ticks, TimerId};
use crate::schedule::accounting::Graph;
use crate::schedule::computation::{Computation, Source};

/// Times are ticks from the beginning of the run.
pub(super) struct Graphs<C: Computation> {
    /// Source of further roots.
    source: Option<Box<dyn Source<C>>>,
    /// The root that arrives next, and the timer of its arrival.
    next: Option<(TimerId, C::Task)>,
    submitted: u64,
    /// Submission times of the graphs that are not answered, by the number of the graph.
    open: BTreeMap<u64, Ticks>,
    answered: Vec<Graph>,
}

impl<C: Computation> Graphs<C> {
    pub fn new(source: Option<Box<dyn Source<C>>>) -> Graphs<C> {
        Graphs { source, next: None, submitted: 0, open: BTreeMap::new(), answered: Vec::new() }
    }

    /// A root is submitted; returns its graph's number.
    pub fn submit(&mut self, now: Ticks) -> u64 {
        let graph = self.submitted;
        self.submitted += 1;
        self.open.insert(graph, now);
        graph
    }

    /// The next root of the source and when it arrives.
    pub fn next_root(&mut self) -> Option<(Ticks, C::Task)> {
        self.source.as_mut()?.next()
    }

    /// A root arrives when this timer runs out.
    pub fn wait_for(&mut self, timer: TimerId, root: C::Task) {
        self.next = Some((timer, root));
    }

    /// The root that arrives with this timer.
    pub fn arrived(&mut self, timer: TimerId) -> Option<C::Task> {
        self.next.take_if(|(expected, _)| *expected == timer).map(|(_, root)| root)
    }

    /// A graph is answered.
    ///
    /// # Errors
    /// If there is no such graph, or it was answered before.
    pub fn answer(&mut self, number: u64, now: Ticks) -> Result<()> {
        let submitted = self.open.remove(&number).ok_or_else(|| unknown(number))?;
        self.answered.push(Graph { number, submitted, answered: now });
        if let Some(source) = &mut self.source {
            source.answered(number, now - submitted);
        }
        Ok(())
    }

    /// Returns true if no root will come and none is unanswered.
    pub fn is_done(&self) -> bool {
        self.next.is_none() && self.open.is_empty()
    }

    /// The graphs in the order in which they were answered, and whether their source gave up.
    pub fn end(self) -> (Vec<Graph>, bool) {
        (self.answered, self.source.is_some_and(|source| source.gave_up()))
    }
}

/// Error for an answer that belongs to no graph.
pub(super) fn unknown(graph: u64) -> Error {
    LostTasks::AnswerOfGraph { graph }.into()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::super::testing::Sum;
    use super::*;

    #[test]
    fn each_graph_is_answered_once() {
        let mut graphs = Graphs::<Sum>::new(None);
        assert!(graphs.is_done());
        assert_eq!((graphs.submit(10), graphs.submit(20), graphs.is_done()), (0, 1, false));
        graphs.answer(1, 50).unwrap();
        assert!(graphs.answer(1, 60).unwrap_err().to_string().ends_with("the answer of graph 1 came, but nobody waits for it"));
        assert!(!graphs.is_done());
        graphs.answer(0, 70).unwrap();
        assert!(graphs.is_done() && graphs.answer(2, 80).is_err());
        let (answered, gave_up) = graphs.end();
        let expected = [Graph { number: 1, submitted: 20, answered: 50 }, Graph { number: 0, submitted: 10, answered: 70 }];
        assert_eq!((answered.as_slice(), gave_up), (&expected[..], false));
    }

    /// Two roots, and the responses that it hears of.
    struct Two {
        left: u64,
        responses: Rc<RefCell<Vec<(u64, Ticks)>>>,
    }

    impl Source<Sum> for Two {
        fn next(&mut self) -> Option<(Ticks, u64)> {
            self.left = self.left.checked_sub(1)?;
            Some((100, self.left))
        }

        fn answered(&mut self, graph: u64, response: Ticks) {
            self.responses.borrow_mut().push((graph, response));
        }

        fn gave_up(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_source_is_asked_for_one_root_after_the_other_and_hears_of_answers() {
        let responses = Rc::new(RefCell::new(Vec::new()));
        let mut graphs = Graphs::<Sum>::new(Some(Box::new(Two { left: 2, responses: responses.clone() })));
        let (at, root) = graphs.next_root().unwrap();
        assert_eq!((at, root), (100, 1));
        graphs.wait_for(TimerId(4), root);
        assert!(!graphs.is_done() && graphs.arrived(TimerId(3)).is_none());
        assert_eq!(graphs.arrived(TimerId(4)), Some(1));
        let number = graphs.submit(at);
        graphs.answer(number, 130).unwrap();
        assert_eq!(*responses.borrow(), [(0, 30)]);
        assert!(graphs.next_root().is_some() && graphs.next_root().is_none());
        assert!(graphs.is_done() && graphs.end().1);
    }
}
