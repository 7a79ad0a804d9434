//! Message patterns of our own collective operations, as plain numbers: their cost is counted in the same way where MPI carries them out.
//!
//! `collective.rs` and `gather.rs` have the algorithms. A test checks that the counts agree with the messages sent.

/// Communication pattern of a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    /// Recursive doubling, members beyond the largest power of two folded in: `all_reduce`.
    Doubling,
    /// Each round reaches twice as far forward: `exclusive_scan`.
    Scan,
    /// Bruck's all-gather.
    Bruck,
    /// All values to the first member, and all of them back: `all_gather_over_first`.
    OverFirst,
}

/// One member's part in an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// Each message that it sends: to which place, the bytes of its body, and the longest chain of messages that ends with it.
    pub sent: Vec<(u32, u64, u32)>,
    /// The longest chain that it knows of afterwards.
    pub heard: u32,
}

impl Tree {
    /// The part of the member at place `me`. `sizes` are the bytes of each member's value, `chains` the longest chain that each knows of before.
    pub fn part(self, me: u32, sizes: &[u64], chains: &[u32]) -> Part {
        let n = sizes.len() as u32;
        let mut heard = chains.to_vec();
        let mut part = Part::default();
        let mut messages = Vec::new();
        for round in 0..self.rounds(n) {
            messages.clear();
            self.messages(round, n, &mut |from, to| messages.push((from, to, heard[from as usize] + 1)));
            for (from, to, chain) in &messages {
                if *from == me {
                    part.sent.push((*to, self.bytes(round, *from, sizes), *chain));
                }
                let known = &mut heard[*to as usize];
                *known = (*known).max(*chain);
            }
        }
        part.heard = heard[me as usize];
        part
    }

    fn rounds(self, n: u32) -> u32 {
        match self {
            // One to fold in what is beyond the power of two, and one back.
            Tree::Doubling => n.ilog2() + 2,
            Tree::Scan | Tree::Bruck => n.next_power_of_two().ilog2(),
            Tree::OverFirst => 2,
        }
    }

    /// Messages of a round, as pairs of places: sender and receiver.
    fn messages(self, round: u32, n: u32, send: &mut impl FnMut(u32, u32)) {
        match self {
            Tree::Doubling => {
                let core = 1 << n.ilog2();
                if round == 0 {
                    (core..n).for_each(|beyond| send(beyond, beyond - core));
                } else if round <= n.ilog2() {
                    (0..core).for_each(|me| send(me, me ^ (1 << (round - 1))));
                } else {
                    (core..n).for_each(|beyond| send(beyond - core, beyond));
                }
            }
            Tree::Scan => (0..n - (1 << round)).for_each(|me| send(me, me + (1 << round))),
            Tree::Bruck => (0..n).for_each(|me| send(me, (me + n - (1 << round)) % n)),
            Tree::OverFirst if round == 0 => (1..n).for_each(|me| send(me, 0)),
            Tree::OverFirst => (1..n).for_each(|to| send(0, to)),
        }
    }

    /// The bytes of a message's body.
    fn bytes(self, round: u32, from: u32, sizes: &[u64]) -> u64 {
        /// The number of values ahead of a list of them.
        const COUNT: u64 = 8;
        let n = sizes.len() as u32;
        match self {
            Tree::Doubling | Tree::Scan => sizes[from as usize],
            Tree::Bruck => {
                let wanted = (1 << round).min(n - (1 << round));
                COUNT + (0..wanted).map(|away| sizes[((from + away) % n) as usize]).sum::<u64>()
            }
            Tree::OverFirst if round == 0 => sizes[from as usize],
            Tree::OverFirst => COUNT + sizes.iter().sum::<u64>(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Counts, HEADER_BYTES, Node, Tag};
    use super::*;
    use crate::Result;
    use crate::topology::{Overlay, Topology};
    use crate::transport::sim;
    use crate::transport::world::World;

    const TOKEN: Tag = Tag::new(1, "token");

    /// Counts of each of `n` simulated nodes in an operation, if their chains before it are `0, 1, 2, .. % lengths`.
    fn counted<F: Future<Output = Result<()>>>(n: u32, lengths: u32, operation: impl Fn(Node) -> F + Copy + 'static) -> Vec<Counts> {
        let mut world = World::simulated(n, sim::Model::default());
        let overlay = Overlay::one_host(Topology::parse("complete", n).unwrap(), n).unwrap();
        let results = super::super::run(&mut world, &overlay, |node| async move {
            let (node, counts) = node.recorded();
            // A token goes from node to node, and each has a chain one longer than the one before it.
            if node.me() % lengths > 0 {
                node.receive::<()>(node.me() - 1, TOKEN).await?;
            }
            if (node.me() + 1) % lengths > 0 && node.me() + 1 < n {
                node.send(node.me() + 1, TOKEN, &());
            }
            operation(node).await?;
            Ok(counts.get())
        });
        results.unwrap().into_iter().map(|(_, counts)| counts).collect()
    }

    /// The same by the plain numbers.
    fn by_numbers(tree: Tree, n: u32, lengths: u32, size: impl Fn(u32) -> u64) -> Vec<Counts> {
        let sizes: Vec<u64> = (0..n).map(size).collect();
        let chains: Vec<u32> = (0..n).map(|node| node % lengths).collect();
        let counts = |me: u32| {
            let part = tree.part(me, &sizes, &chains);
            let passes_on = !(me + 1).is_multiple_of(lengths) && me + 1 < n;
            let sent = part.sent.iter().map(|(_, _, chain)| *chain).max().unwrap_or(0);
            Counts {
                messages: part.sent.len() as u64 + u64::from(passes_on),
                bytes: part.sent.iter().map(|(_, bytes, _)| bytes + HEADER_BYTES).sum::<u64>() + u64::from(passes_on) * HEADER_BYTES,
                chain: part.heard.max(sent).max(me % lengths + u32::from(passes_on)),
                ..Counts::default()
            }
        };
        (0..n).map(counts).collect()
    }

    #[test]
    fn what_is_counted_is_what_our_own_operations_send() {
        for n in [1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 33, 64] {
            for lengths in [1, 2, 5] {
                let sums = counted(n, lengths, |node| async move { node.everyone().all_reduce(&node, 1u64, |a, b| a + b).await.map(drop) });
                assert_eq!(sums, by_numbers(Tree::Doubling, n, lengths, |_| 8), "a sum on {n} nodes, chains up to {lengths}");
                let scans =
                    counted(n, lengths, |node| async move { node.everyone().exclusive_scan(&node, 1u64, |a, b| a + b).await.map(drop) });
                assert_eq!(scans, by_numbers(Tree::Scan, n, lengths, |_| 8), "a scan on {n} nodes, chains up to {lengths}");
                let list = |node: u32| vec![7u16; node as usize % 4];
                let size = |node: u32| 8 + 2 * u64::from(node % 4);
                let gathers =
                    counted(n, lengths, move |node| async move { node.everyone().all_gather(&node, list(node.me())).await.map(drop) });
                assert_eq!(gathers, by_numbers(Tree::Bruck, n, lengths, size), "an all-gather on {n} nodes, chains up to {lengths}");
                let over_first = counted(n, lengths, move |node| async move {
                    node.everyone().all_gather_over_first(&node, list(node.me())).await.map(drop)
                });
                assert_eq!(
                    over_first,
                    by_numbers(Tree::OverFirst, n, lengths, size),
                    "over the first of {n} nodes, chains up to {lengths}"
                );
            }
        }
    }
}
