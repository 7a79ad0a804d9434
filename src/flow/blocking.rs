//! Maximum flow over the tight arcs, by blocking flows in layers (Dinic 1970).

use super::residual::Residual;

const UNSEEN: u32 = u32::MAX;

/// A node on the way of the search.
struct Visit {
    node: u32,
    /// Units that the way up to here can bring, and how many of them found a demand.
    brought: u64,
    placed: u64,
}

impl Residual {
    /// Layers the nodes by the number of tight arcs from the nodes with supply left. False when no demand is reached.
    pub(super) fn layer(&mut self) -> bool {
        self.layer.fill(UNSEEN);
        let mut queue = Vec::new();
        for v in 0..self.supply.len() {
            if self.supply[v] > 0 {
                self.layer[v] = 0;
                queue.push(v as u32);
            }
        }
        let mut useful = false;
        let mut next = 0;
        while let Some(&tail) = queue.get(next) {
            next += 1;
            useful |= self.demand[tail as usize] > 0;
            for at in self.leaving(tail) {
                let half = self.halves[at];
                if self.layer[half.head as usize] == UNSEEN && self.tight(tail, &half) {
                    self.layer[half.head as usize] = self.layer[tail as usize] + 1;
                    queue.push(half.head);
                }
            }
        }
        useful
    }

    /// Sends from every supply, only from layer to next layer, until no way is left.
    ///
    /// Demands of all layers are served, not only those of the nearest: each unserved demand is then further away in
    /// the next layering, which bounds the number of layerings just as well.
    pub(super) fn block(&mut self) {
        for v in 0..self.cursor.len() {
            self.cursor[v] = self.first[v];
        }
        for source in 0..self.supply.len() as u32 {
            let supply = self.supply[source as usize];
            if supply > 0 {
                self.supply[source as usize] = supply - self.send(source, supply);
            }
        }
    }

    /// Depth-first, with everything the way can bring at once: a node passes on what it does not need itself. The stack
    /// is our own, since a way may be as long as the network. Returns how many of the units found a demand.
    fn send(&mut self, source: u32, units: u64) -> u64 {
        let mut way = vec![Visit { node: source, brought: units, placed: 0 }];
        loop {
            let here = way.len() - 1;
            let Visit { node, brought, placed } = way[here];
            let taken = self.demand[node as usize].min(brought - placed);
            self.demand[node as usize] -= taken;
            way[here].placed += taken;
            let rest = brought - placed - taken;

            let onward = if rest > 0 { self.next_half(node) } else { None };
            if let Some(at) = onward {
                let half = self.halves[at];
                way.push(Visit { node: half.head, brought: rest.min(half.room), placed: 0 });
                continue;
            }
            let Visit { brought, placed, .. } = way[here];
            way.pop();
            let Some(before) = way.last_mut() else {
                return placed;
            };
            before.placed += placed;
            let cursor = &mut self.cursor[before.node as usize];
            let at = *cursor as usize;
            // A node that could not place all it was brought is exhausted: its arcs are not worth another try.
            if placed < brought {
                *cursor += 1;
            }
            let twin = self.halves[at].twin as usize;
            self.halves[at].room -= placed;
            self.halves[twin].room += placed;
        }
    }

    /// The next half-arc from `node` that leads to the next layer and has room, from the node's cursor on.
    fn next_half(&mut self, node: u32) -> Option<usize> {
        let end = self.first[node as usize + 1];
        let deeper = self.layer[node as usize] + 1;
        while self.cursor[node as usize] < end {
            let at = self.cursor[node as usize] as usize;
            let half = self.halves[at];
            if self.layer[half.head as usize] == deeper && self.tight(node, &half) {
                return Some(at);
            }
            self.cursor[node as usize] += 1;
        }
        None
    }
}
