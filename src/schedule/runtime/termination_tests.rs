use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::topology::NodeId;

#[test]
fn what_does_not_belong_into_a_wave_is_an_error() {
    let mut waves = Waves::new(Tree::new(1, 0, 4));
    assert!(waves.hear(Say::Counts(Counts::default())).is_err());
    waves.hear(Say::Ask).unwrap();
    assert!(waves.hear(Say::Ask).is_err());
    assert!(waves.hear(Say::Stop).is_err());
}

#[test]
fn a_node_passes_questions_and_the_end_down_and_counts_what_it_hears() {
    // Node 2 of 4 has node 3 below it.
    let mut termination = Termination::new(Tree::new(2, 0, 4));
    assert_eq!(termination.tree().children, [3]);
    termination.sent();
    assert_eq!(termination.hear(Say::Ask), Ok(Some(Say::Ask)));
    assert_eq!(termination.next(true, 5), Next::Wait, "the child has not answered");
    assert_eq!(termination.hear(Say::Counts(Counts { sent: 2, received: 3 })), Ok(None));
    assert_eq!(termination.next(false, 6), Next::Wait);
    termination.received();
    assert_eq!(termination.next(true, 7), Next::Answer(Counts { sent: 3, received: 4 }));
    assert!(termination.hear(Say::Counts(Counts::default())).is_err());
    assert_eq!((termination.hear(Say::Stop), termination.has_stopped()), (Ok(Some(Say::Stop)), true));
}

#[test]
fn the_root_pauses_while_counts_differ_and_stops_when_they_agree() {
    let mut termination = Termination::new(Tree::new(0, 0, 1));
    termination.sent();
    assert_eq!(termination.next(true, 0), Next::Ask);
    let Next::Pause(until) = termination.next(true, 10) else { panic!("a message is under way") };
    assert!(until > 10 && termination.needs_timer());
    termination.pauses(TimerId(7));
    assert!(!termination.needs_timer() && !termination.pause_over(TimerId(8)) && termination.pause_over(TimerId(7)));
    termination.received();
    let mut steps = Vec::new();
    while steps.last() != Some(&Next::Done) {
        steps.push(termination.next(true, until));
        assert!(steps.len() < 9);
    }
    assert_eq!(steps, [Next::Ask, Next::Ask, Next::Done]);
    assert!(termination.has_stopped());
}

/// Nodes that hand tokens round at random, under waves. A token is a message that makes its receiver busy for a while; it may be passed on, doubled
/// or dropped. The messages of a pair keep their order; everything else happens in an order that is drawn.
struct Game {
    waves: Vec<Waves>,
    books: Vec<Counts>,
    /// Pieces of work at each node.
    busy: Vec<u32>,
    under_way: BTreeMap<(NodeId, NodeId), VecDeque<Option<Say>>>,
    tokens_left: u32,
    now: Ticks,
    stopped: Vec<bool>,
}

impl Game {
    fn new(nodes: u32, tokens: u32) -> Game {
        let waves = (0..nodes).map(|me| Waves::new(Tree::new(me, 0, nodes))).collect();
        let mut busy = vec![0; nodes as usize];
        busy[0] = 1;
        let books = vec![Counts::default(); nodes as usize];
        Game { waves, books, busy, under_way: BTreeMap::new(), tokens_left: tokens, now: 0, stopped: vec![false; nodes as usize] }
    }

    fn send(&mut self, from: NodeId, to: NodeId, what: Option<Say>) {
        self.under_way.entry((from, to)).or_default().push_back(what);
    }

    fn say_down(&mut self, me: NodeId, say: Say) {
        for child in self.waves[me as usize].tree.children.clone() {
            self.send(me, child, Some(say));
        }
    }

    /// Returns true if nothing is left, seen from outside.
    fn is_over(&self) -> bool {
        self.busy.iter().all(|busy| *busy == 0) && self.under_way.values().flatten().all(Option::is_some)
    }

    /// Lets a node take part in the waves.
    fn turn(&mut self, me: NodeId) {
        let index = me as usize;
        loop {
            match self.waves[index].next(self.busy[index] == 0, self.books[index], self.now) {
                Next::Wait => return,
                Next::Pause(until) => {
                    self.now = self.now.max(until);
                }
                Next::Ask => self.say_down(me, Say::Ask),
                Next::Answer(counts) => {
                    let parent = self.waves[index].tree.parent.unwrap();
                    self.send(me, parent, Some(Say::Counts(counts)));
                }
                Next::Done => {
                    assert!(self.is_over(), "stopped early");
                    self.stopped[index] = true;
                    return;
                }
            }
        }
    }

    /// Does one of the things that can be done; says whether there was any.
    fn step(&mut self, draw: &mut impl FnMut(u32) -> u32) -> bool {
        self.now += 1;
        let arrivals: Vec<(NodeId, NodeId)> = self.under_way.iter().filter(|(_, queue)| !queue.is_empty()).map(|(pair, _)| *pair).collect();
        let workers: Vec<NodeId> = (0..).zip(&self.busy).filter(|(_, busy)| **busy > 0).map(|(node, _)| node).collect();
        let choices = (arrivals.len() + workers.len()) as u32;
        if choices == 0 {
            return false;
        }
        let chosen = draw(choices) as usize;
        let me = match arrivals.get(chosen) {
            Some(&(from, to)) => {
                match self.under_way.get_mut(&(from, to)).and_then(VecDeque::pop_front).unwrap() {
                    None => {
                        self.books[to as usize].received += 1;
                        self.busy[to as usize] += 1;
                    }
                    Some(say) => {
                        self.waves[to as usize].hear(say).unwrap();
                        if say == Say::Ask {
                            self.say_down(to, say);
                        }
                    }
                }
                to
            }
            None => {
                let me = workers[chosen - arrivals.len()];
                self.busy[me as usize] -= 1;
                for _ in 0..draw(3) {
                    if self.tokens_left > 0 {
                        self.tokens_left -= 1;
                        let to = draw(self.waves.len() as u32);
                        if to == me {
                            self.busy[me as usize] += 1;
                        } else {
                            self.books[me as usize].sent += 1;
                            self.send(me, to, None);
                        }
                    }
                }
                me
            }
        };
        self.turn(me);
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn waves_end_when_all_is_done_and_never_before(nodes in 1u32..9, tokens in 0u32..60, seed in any::<u64>()) {
        let mut state = seed | 1;
        let mut draw = move |most: u32| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) as u32 % most.max(1)
        };
        let mut game = Game::new(nodes, tokens);
        let mut steps = 0;
        while !game.stopped[0] {
            prop_assert!(game.step(&mut draw), "it hangs");
            steps += 1;
            prop_assert!(steps < 100_000, "it never ends");
        }
    }
}
