//! The residual network: the remaining and returnable amount of each arc, and the potentials that keep the flow cheapest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Arc;

/// One direction of an arc: forwards it carries more, backwards (cost negated) it gives back what it carries.
#[derive(Clone, Copy)]
pub(super) struct Half {
    pub(super) head: u32,
    /// Index of the arc in the other direction.
    pub(super) twin: u32,
    pub(super) room: u64,
    cost: i64,
}

/// A flow in the making; invariant: every half-arc with room that can still be reached has
/// a reduced cost of at least zero.
pub(super) struct Residual {
    /// The half-arcs that leave node `v` are `halves[first[v]..first[v + 1]]`, in the order of the arcs.
    pub(super) first: Vec<u32>,
    pub(super) halves: Vec<Half>,
    /// Index of the forward half of each arc.
    forward: Vec<u32>,
    /// Cost of the cheapest residual way to each node from the nodes with supply left.
    potential: Vec<i64>,
    /// Amount still to be taken out of each node, and still to be delivered to it; one of the two is zero.
    pub(super) supply: Vec<u64>,
    pub(super) demand: Vec<u64>,
    /// Scratch of [`Residual::shorten`]: distance by reduced costs.
    distance: Vec<i64>,
    /// Scratch of the blocking flows: layer of each node, and the next half-arc to try.
    pub(super) layer: Vec<u32>,
    pub(super) cursor: Vec<u32>,
}

const FAR: i64 = i64::MAX;

impl Residual {
    /// Supplies and demands must fit u64.
    pub(super) fn new(nodes: u32, arcs: &[Arc], supplies: &[i128]) -> Self {
        let n = nodes as usize;
        let mut first = vec![0u32; n + 1];
        for arc in arcs {
            first[arc.from as usize + 1] += 1;
            first[arc.to as usize + 1] += 1;
        }
        for v in 0..n {
            first[v + 1] += first[v];
        }
        let mut free = first.clone();
        let mut place = |node: u32| {
            let slot = free[node as usize];
            free[node as usize] += 1;
            slot
        };
        let blank = Half { head: 0, twin: 0, room: 0, cost: 0 };
        let mut halves = vec![blank; 2 * arcs.len()];
        let mut forward = Vec::with_capacity(arcs.len());
        for arc in arcs {
            let (out, back) = (place(arc.from), place(arc.to));
            halves[out as usize] = Half { head: arc.to, twin: back, room: arc.capacity, cost: i64::from(arc.cost) };
            halves[back as usize] = Half { head: arc.from, twin: out, room: 0, cost: -i64::from(arc.cost) };
            forward.push(out);
        }
        Residual {
            first,
            halves,
            forward,
            potential: vec![0; n],
            supply: supplies.iter().map(|&s| s.max(0) as u64).collect(),
            demand: supplies.iter().map(|&s| (-s).max(0) as u64).collect(),
            distance: vec![FAR; n],
            layer: vec![0; n],
            cursor: vec![0; n],
        }
    }

    pub(super) fn leaving(&self, node: u32) -> std::ops::Range<usize> {
        self.first[node as usize] as usize..self.first[node as usize + 1] as usize
    }

    fn reduced_cost(&self, tail: u32, half: &Half) -> i64 {
        half.cost + self.potential[tail as usize] - self.potential[half.head as usize]
    }

    /// Returns true if the half-arc has room and lies on a cheapest path.
    pub(super) fn tight(&self, tail: u32, half: &Half) -> bool {
        half.room > 0 && self.reduced_cost(tail, half) == 0
    }

    /// Moves the potentials on to the distances from the nodes with supply left, so that a cheapest way to every node
    /// within reach is tight. False when no demand is within reach: the flow is complete, or the rest cannot be sent.
    pub(super) fn shorten(&mut self) -> bool {
        self.distance.fill(FAR);
        let mut open = BinaryHeap::new();
        // Most arcs stay tight from round to round; nodes at the present distance need no heap.
        let mut here = Vec::new();
        for v in 0..self.supply.len() {
            if self.supply[v] > 0 {
                self.distance[v] = 0;
                here.push(v as u32);
            }
        }
        let mut reached = 0;
        let mut useful = false;
        loop {
            while let Some(tail) = here.pop() {
                useful |= self.demand[tail as usize] > 0;
                for at in self.leaving(tail) {
                    let half = self.halves[at];
                    if half.room == 0 {
                        continue;
                    }
                    let further = reached + self.reduced_cost(tail, &half);
                    if further < self.distance[half.head as usize] {
                        self.distance[half.head as usize] = further;
                        if further == reached {
                            here.push(half.head);
                        } else {
                            open.push(Reverse((further, half.head)));
                        }
                    }
                }
            }
            match open.pop() {
                Some(Reverse((distance, node))) if distance == self.distance[node as usize] => {
                    reached = distance;
                    here.push(node);
                }
                Some(_) => {}
                None => break,
            }
        }
        // What is out of reach stays so, and no way leads through it any more: its potential does not matter. The others
        // are lengths of real ways, below nodes x dearest arc, and fit.
        for (potential, &distance) in self.potential.iter_mut().zip(&self.distance) {
            if distance < FAR {
                *potential += distance;
            }
        }
        useful
    }

    /// Units that no demand has received yet.
    pub(super) fn unserved(&self) -> u64 {
        self.demand.iter().sum()
    }

    /// Units on each arc.
    pub(super) fn carried(&self) -> Vec<u64> {
        let given_back = |&out: &u32| self.halves[self.halves[out as usize].twin as usize].room;
        self.forward.iter().map(given_back).collect()
    }
}
