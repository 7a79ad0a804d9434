//! Collective operations made of point-to-point messages, so that they are counted like all messages and work in both worlds.
//!
//! All members of a [`Group`] call the same operation in the same order. Each takes `ceil(log2 n)` steps, two of them twice that number;
//! [`all_gather_over_first`](Group::all_gather_over_first) takes two.
//! Sums, scans and all-gathers may be [MPI's own](native) instead, with the same results and counts.
//! Two collectives of one group may follow each other without a pause: order per pair keeps them apart.

mod gather;
mod native;

use std::ops::RangeInclusive;
use std::rc::Rc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::tree::Tree;
use super::{Node, Tag};
use crate::error::{Error, Result, Travelling};
use crate::topology::NodeId;

pub use gather::Gathered;

const REDUCE: Tag = crate::node::tags::collective::REDUCE;
const SCAN: Tag = crate::node::tags::collective::SCAN;
const BROADCAST: Tag = crate::node::tags::collective::BROADCAST;
const COLLECT: Tag = crate::node::tags::collective::COLLECT;
const GATHER: Tag = crate::node::tags::collective::GATHER;
const BARRIER: Tag = crate::node::tags::collective::BARRIER;
const OVER_FIRST: Tag = crate::node::tags::collective::OVER_FIRST;

/// Group sizes for which an all-gather over the first member is the faster one (measured on 4, 8 and 16 ranks of two processors: 0.55 to 0.85 of
/// the time of Bruck's algorithm, each step of which waits until a partner has its turn on a processor).
pub const FEW: RangeInclusive<u32> = 3..=16;

/// Some nodes in an order, and this node's place among them.
#[derive(Clone, Debug)]
pub struct Group {
    members: Members,
    place: u32,
}

#[derive(Clone, Debug)]
enum Members {
    /// Evenly spaced nodes: need no list, so a million nodes can each have them.
    Spaced {
        first: NodeId,
        stride: u32,
        size: u32,
    },
    Listed(Rc<[NodeId]>),
}

impl Group {
    /// Nodes `0..nodes`, in order.
    pub(super) fn everyone(nodes: u32, me: NodeId) -> Group {
        Group { members: Members::Spaced { first: 0, stride: 1, size: nodes }, place: me }
    }

    /// The listed nodes, in the listed order; `None` if `me` is not among them.
    pub fn new(members: impl Into<Rc<[NodeId]>>, me: NodeId) -> Option<Group> {
        let members = members.into();
        let place = members.iter().position(|&node| node == me)? as u32;
        Some(Group { members: Members::Listed(members), place })
    }

    /// The `size` nodes `first`, `first + stride`, ..; `None` if `me` is not among them. `stride` is at least 1.
    pub fn spaced(first: NodeId, stride: u32, size: u32, me: NodeId) -> Option<Group> {
        let away = me.checked_sub(first)?;
        let member = away % stride == 0 && away / stride < size;
        member.then_some(Group { members: Members::Spaced { first, stride, size }, place: away / stride })
    }

    /// Number of members.
    pub fn size(&self) -> u32 {
        match &self.members {
            Members::Spaced { size, .. } => *size,
            Members::Listed(list) => list.len() as u32,
        }
    }

    /// This node's place, from 0.
    pub fn place(&self) -> u32 {
        self.place
    }

    /// The first node, how far apart they are, and how many; `None` if they are listed.
    pub(super) fn spacing(&self) -> Option<(NodeId, u32, u32)> {
        match self.members {
            Members::Spaced { first, stride, size } => Some((first, stride, size)),
            Members::Listed(_) => None,
        }
    }

    /// The node at a place.
    pub fn node(&self, place: u32) -> NodeId {
        match &self.members {
            Members::Spaced { first, stride, .. } => first + place * stride,
            Members::Listed(list) => list[place as usize],
        }
    }

    /// Combines one value of every member with a commutative and associative operation; every member gets the result.
    ///
    /// Recursive doubling: with the largest power of two below n, the members beyond it fold theirs in first and get the result last.
    ///
    /// # Errors
    /// [`Error::RankLost`] if a member that this one waits for is on a lost rank; [`Error::Garbled`] if a message is not a `T`.
    pub async fn all_reduce<T>(&self, node: &Node, mine: T, combine: impl Fn(T, T) -> T) -> Result<T>
    where
        T: Serialize + DeserializeOwned,
    {
        let (n, me) = (self.size(), self.place);
        let core = 1 << n.ilog2();
        let mut value = mine;
        if me >= core {
            node.send(self.node(me - core), REDUCE, &value);
            return node.receive(self.node(me - core), REDUCE).await;
        }
        if me + core < n {
            value = combine(value, node.receive(self.node(me + core), REDUCE).await?);
        }
        let mut bit = 1;
        while bit < core {
            let partner = self.node(me ^ bit);
            node.send(partner, REDUCE, &value);
            let other = node.receive(partner, REDUCE).await?;
            // Lower places first, so that rounding and the like are the same on every member.
            value = if me & bit == 0 { combine(value, other) } else { combine(other, value) };
            bit <<= 1;
        }
        if me + core < n {
            node.send(self.node(me + core), REDUCE, &value);
        }
        Ok(value)
    }

    /// The sum of one number of each member, on every member. It has to be below 2^64.
    ///
    /// # Errors
    /// As [`Group::all_reduce`].
    pub async fn sum(&self, node: &Node, mine: u64) -> Result<u64> {
        if native::is_offered(self, node) {
            return native::sum(self, node, mine, size_of::<u64>() as u64).await;
        }
        self.all_reduce(node, mine, u64::saturating_add).await
    }

    /// Logical or over the members: returns true on every member if `mine` is true on any.
    ///
    /// # Errors
    /// As [`Group::all_reduce`].
    pub async fn any(&self, node: &Node, mine: bool) -> Result<bool> {
        if native::is_offered(self, node) {
            return Ok(native::sum(self, node, mine.into(), size_of::<bool>() as u64).await? > 0);
        }
        self.all_reduce(node, mine, |a, b| a | b).await
    }

    /// The sum of the numbers of all members before this one; 0 for the first. It has to be below 2^64.
    ///
    /// # Errors
    /// As [`Group::all_reduce`].
    pub async fn sum_before(&self, node: &Node, mine: u64) -> Result<u64> {
        if native::is_offered(self, node) {
            return native::sum_before(self, node, mine).await;
        }
        Ok(self.exclusive_scan(node, mine, |a, b| a.saturating_add(*b)).await?.unwrap_or(0))
    }

    /// The combination of the values of all members before this one, in order; `None` for the first member.
    ///
    /// # Errors
    /// As [`Group::all_reduce`].
    pub async fn exclusive_scan<T>(&self, node: &Node, mine: T, combine: impl Fn(&T, &T) -> T) -> Result<Option<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        let (n, me) = (self.size(), self.place);
        let mut before: Option<T> = None;
        // `through` covers the `reach` members that end with this one.
        let mut through = mine;
        let mut reach = 1;
        while reach < n {
            if me + reach < n {
                node.send(self.node(me + reach), SCAN, &through);
            }
            if me >= reach {
                let earlier: T = node.receive(self.node(me - reach), SCAN).await?;
                through = combine(&earlier, &through);
                before = Some(match before {
                    None => earlier,
                    Some(value) => combine(&earlier, &value),
                });
            }
            reach <<= 1;
        }
        Ok(before)
    }

    /// The value of the member at place `root`, on every member. The other members' values are ignored.
    ///
    /// # Errors
    /// [`Error::Failed`] at the root if it has no value; otherwise as [`Group::all_reduce`].
    pub async fn broadcast<T>(&self, node: &Node, root: u32, value: Option<T>) -> Result<T>
    where
        T: Serialize + DeserializeOwned,
    {
        let n = self.size();
        // Places are counted from the root; a member's parent is itself without its highest bit.
        let turned = (self.place + n - root) % n;
        let place = |turned: u32| self.node((turned + root) % n);
        let (value, first) = if turned == 0 {
            let value = value.ok_or_else(|| Error::Failed("the root of a broadcast has no value".into()))?;
            (value, 0)
        } else {
            let level = turned.ilog2();
            (node.receive(place(turned ^ (1 << level)), BROADCAST).await?, level + 1)
        };
        for level in first..u32::BITS {
            match turned.checked_add(1 << level) {
                Some(child) if child < n => node.send(place(child), BROADCAST, &value),
                _ => break,
            }
        }
        Ok(value)
    }

    /// Combines one value of every member with an associative operation, lower places first; the member at place 0 gets the result. A
    /// binomial tree: one message from each of the others.
    ///
    /// # Errors
    /// As [`Group::all_reduce`].
    pub async fn reduce<T>(&self, node: &Node, mine: T, combine: impl Fn(T, T) -> T) -> Result<Option<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        let (n, me) = (self.size(), self.place);
        let mut value = mine;
        let mut bit = 1;
        while bit < n {
            if me & bit != 0 {
                node.send(self.node(me ^ bit), COLLECT, &value);
                return Ok(None);
            }
            if me + bit < n {
                value = combine(value, node.receive(self.node(me + bit), COLLECT).await?);
            }
            bit <<= 1;
        }
        Ok(Some(value))
    }

    /// The values of all members by place, on the member at place 0; empty elsewhere. A binomial tree: no member receives more than `log2 n`
    /// messages.
    ///
    /// # Errors
    /// As [`Group::all_reduce`].
    pub async fn gather<T>(&self, node: &Node, mine: T) -> Result<Vec<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        let (n, me) = (self.size(), self.place);
        let mut values = vec![mine];
        let mut bit = 1;
        while bit < n {
            if me & bit != 0 {
                node.send(self.node(me ^ bit), GATHER, &values);
                return Ok(Vec::new());
            }
            if me + bit < n {
                values.append(&mut node.receive::<Vec<T>>(self.node(me + bit), GATHER).await?);
            }
            bit <<= 1;
        }
        Ok(values)
    }

    /// The values of all members by place, on every member: Bruck's algorithm, `ceil(log2 n)` steps for any n. Nodes of one process share
    /// the list where there are many.
    ///
    /// # Errors
    /// As [`Group::all_reduce`]; [`Error::Garbled`] also if a member sends another number of values.
    /// [`Error::Failed`] if a value cannot be written.
    pub async fn all_gather<T>(&self, node: &Node, mine: T) -> Result<Gathered<T>>
    where
        T: Serialize + DeserializeOwned + 'static,
    {
        gather::all_gather(self, node, mine).await
    }

    /// The same over the member at place 0: all others send it their values, and it sends each of them all values. Two steps, 2 (n - 1)
    /// messages, which all pass through one member: for [a few](FEW) members.
    ///
    /// # Errors
    /// As [`Group::all_gather`].
    pub async fn all_gather_over_first<T>(&self, node: &Node, mine: T) -> Result<Vec<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        if native::is_offered(self, node)
            && let Some(values) = native::all_gather(self, node, Tree::OverFirst, &mine).await?
        {
            return Ok(values);
        }
        let n = self.size();
        let first = self.node(0);
        if self.place > 0 {
            node.send(first, OVER_FIRST, &mine);
            let values: Vec<T> = node.receive(first, OVER_FIRST).await?;
            if values.len() != n as usize {
                let why = format!("{} values instead of {n}", values.len());
                return Err(Error::Garbled { from: first, what: "'all-gather over the first'".into(), why });
            }
            return Ok(values);
        }
        let mut values = vec![mine];
        for place in 1..n {
            values.push(node.receive(self.node(place), OVER_FIRST).await?);
        }
        let all = super::written(&values, OVER_FIRST)?;
        for place in 1..n {
            node.send_tasks(self.node(place), OVER_FIRST, all.clone(), 0);
        }
        Ok(values)
    }

    /// A list that every member has, as a list that nodes of one process share.
    pub fn shared<T: Serialize + 'static>(&self, node: &Node, values: Vec<T>) -> Gathered<T> {
        gather::share(self, node, values)
    }

    /// Returns when every member has called it (dissemination).
    ///
    /// # Errors
    /// As [`Group::all_reduce`].
    pub async fn barrier(&self, node: &Node) -> Result<()> {
        let (n, me) = (self.size(), self.place);
        let mut reach = 1;
        while reach < n {
            node.send(self.node((me + reach) % n), BARRIER, &());
            node.receive::<()>(self.node((me + n - reach) % n), BARRIER).await?;
            reach <<= 1;
        }
        Ok(())
    }

    /// The result of a step that may fail on any member: the first failing member's error on all of them, so that all stop together.
    ///
    /// # Errors
    /// The error of the first member that has one; otherwise as [`Group::all_reduce`].
    pub async fn agree<T>(&self, node: &Node, mine: Result<T>) -> Result<T> {
        let failure = mine.as_ref().err().map(|why| (self.place, Travelling::from(why.clone())));
        let first = |a: Option<(u32, Travelling)>, b: Option<(u32, Travelling)>| match (a, b) {
            (Some(a), Some(b)) => Some(if a.0 <= b.0 { a } else { b }),
            (a, b) => a.or(b),
        };
        match self.all_reduce(node, failure, first).await? {
            // This member's own failure keeps its type.
            Some((place, why)) => Err(mine.err().filter(|_| place == self.place).unwrap_or_else(|| why.into())),
            None => mine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaced_groups_are_lists_without_the_list() {
        let (first, stride, size) = (5, 3, 4);
        let list = [5, 8, 11, 14];
        for me in 0..20 {
            let (spaced, listed) = (Group::spaced(first, stride, size, me), Group::new(list.to_vec(), me));
            assert_eq!(spaced.is_some(), listed.is_some(), "{me}");
            let (Some(spaced), Some(listed)) = (spaced, listed) else { continue };
            assert_eq!((spaced.size(), spaced.place()), (listed.size(), listed.place()));
            assert!((0..size).all(|place| spaced.node(place) == listed.node(place)));
        }
    }
}
