//! All values of a group on every member.
//!
//! Few members pass lists on. From `SHARED_FROM` members on they pass rows on whose parts the nodes of one process share; the messages are
//! the same. In the end all nodes of a simulation hold one list: a thousand nodes with a thousand values each are a thousand values.

use std::any::Any;
use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::tree::Tree;
use super::super::{Node, Tag, open, wire};
use super::{Group, native};
use crate::error::{Error, Result};
use crate::topology::NodeId;
use crate::transport::Body;
use crate::transport::row::{Fingerprint, Row};
use crate::transport::shelf::Label;

const ALL_GATHER: Tag = crate::node::tags::collective::ALL_GATHER;

/// Number of members from which on values are gathered in shared rows.
const SHARED_FROM: u32 = 17;

/// A list that every member of a group has. Nodes of one process share it, and the values [derived](Gathered::derive) from it.
pub struct Gathered<T>(Rc<Common<T>>);

struct Common<T> {
    values: Vec<T>,
    derived: RefCell<Vec<Rc<dyn Any>>>,
}

impl<T> Gathered<T> {
    /// A list that is not shared yet.
    pub fn new(values: Vec<T>) -> Gathered<T> {
        Gathered(Rc::new(Common { values, derived: RefCell::default() }))
    }

    /// Returns a value computed from the gathered values, and from nothing else that could differ between nodes. It is computed once for
    /// all nodes that share the list; there is one value of each type.
    pub fn derive<D: 'static>(&self, make: impl FnOnce(&[T]) -> D) -> Rc<D> {
        let find = |known: &Rc<dyn Any>| known.clone().downcast::<D>().ok();
        if let Some(known) = self.0.derived.borrow().iter().find_map(find) {
            return known;
        }
        let made = Rc::new(make(&self.0.values));
        self.0.derived.borrow_mut().push(made.clone());
        made
    }
}

impl<T> Clone for Gathered<T> {
    fn clone(&self) -> Gathered<T> {
        Gathered(self.0.clone())
    }
}

impl<T> Deref for Gathered<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0.values
    }
}

impl<T: fmt::Debug> fmt::Debug for Gathered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deref().fmt(f)
    }
}

impl<T: PartialEq> PartialEq<Vec<T>> for Gathered<T> {
    fn eq(&self, other: &Vec<T>) -> bool {
        **self == **other
    }
}

/// The values of all members by place, on every member: Bruck's algorithm, `ceil(log2 n)` steps for any n.
pub(super) async fn all_gather<T>(group: &Group, node: &Node, mine: T) -> Result<Gathered<T>>
where
    T: Serialize + DeserializeOwned + 'static,
{
    if native::is_offered(group, node)
        && let Some(values) = Box::pin(native::all_gather(group, node, Tree::Bruck, &mine)).await?
    {
        return Ok(Gathered::new(values));
    }
    if group.size() >= SHARED_FROM {
        return Box::pin(in_rows(group, node, mine)).await;
    }
    let (n, me) = (group.size(), group.place());
    // The values of this member and those after it, around the end.
    let mut values = Vec::with_capacity(n as usize);
    values.push(mine);
    let mut reach = 1;
    while reach < n {
        let wanted = reach.min(n - reach);
        node.send(group.node((me + n - reach) % n), ALL_GATHER, &&values[..wanted as usize]);
        let from = group.node((me + reach) % n);
        let mut more: Vec<T> = node.receive(from, ALL_GATHER).await?;
        check_number(from, more.len() as u64, wanted)?;
        values.append(&mut more);
        reach <<= 1;
    }
    values.rotate_right(me as usize);
    Ok(Gathered::new(values))
}

/// The same in rows.
async fn in_rows<T>(group: &Group, node: &Node, mine: T) -> Result<Gathered<T>>
where
    T: Serialize + DeserializeOwned + 'static,
{
    let (n, me) = (group.size(), group.place());
    let mut row = Row::of(super::super::written(&mine, ALL_GATHER)?);
    drop(mine);
    let mut reach = 1;
    while reach < n {
        let wanted = reach.min(n - reach);
        let first = if wanted < reach { row.split(wanted, &skip::<T>).0 } else { None };
        node.send_tasks(group.node((me + n - reach) % n), ALL_GATHER, first.unwrap_or_else(|| row.clone()), 0);
        let from = group.node((me + reach) % n);
        let message = node.receive_message(Some(from), ALL_GATHER).await?;
        let more = match message.body.row() {
            Some(more) => more.clone(),
            None => {
                // A message from another process is decoded now, while its sender is known.
                let values: Vec<T> = open(&message, ALL_GATHER)?;
                let numbers = values.len() as u64;
                check_number(from, numbers, wanted)?;
                Row::received(message.body, size_of::<u64>(), wanted)
            }
        };
        check_number(from, more.values().into(), wanted)?;
        row = row.and(&more);
        reach <<= 1;
    }
    if me > 0 {
        // It begins with this member's value.
        let (front, back) = row.split(n - me, &skip::<T>);
        row = front.into_iter().fold(back.unwrap_or(row), |back, front| back.and(&front));
    }
    let print = row.fingerprint();
    find_or_put(group, node, print, || {
        wire::read::<Vec<T>>(&Body::from(row)).map_err(|why| Error::Garbled {
            from: node.me(),
            what: "'all-gather'".into(),
            why: why.to_string(),
        })
    })
}

/// A list that every member of a group has by now, so that nodes of one process share it.
pub(super) fn share<T: Serialize + 'static>(group: &Group, node: &Node, values: Vec<T>) -> Gathered<T> {
    let print = match node.port.shelf() {
        Some(_) => values.iter().map(|value| Fingerprint::of(&wire::write_body(value))).reduce(Fingerprint::and),
        None => None,
    };
    match print {
        None => Gathered::new(values),
        Some(print) => find_or_put(group, node, print, || Ok::<_, Infallible>(values)).unwrap_or_else(|never| match never {}),
    }
}

/// Returns the list of these values that a node of this process already has, or makes it.
fn find_or_put<T: 'static, E>(
    group: &Group,
    node: &Node,
    values: Fingerprint,
    make: impl FnOnce() -> std::result::Result<Vec<T>, E>,
) -> std::result::Result<Gathered<T>, E> {
    let (Some(shelf), Some(members)) = (node.port.shelf(), group.spacing()) else { return make().map(Gathered::new) };
    let label = Label { scope: node.scope, members, values };
    let known = shelf.borrow_mut().take(&label);
    if let Some(known) = known {
        return Ok(Gathered(known));
    }
    let made = Gathered::new(make()?);
    shelf.borrow_mut().put(label, made.0.clone());
    Ok(made)
}

/// Bytes that the first `count` written values take.
fn skip<T: DeserializeOwned>(bytes: &[u8], count: u32) -> usize {
    (0..count).fold(0, |at, _| at + wire::read_prefix::<T>(&bytes[at..]).map_or(0, |(_, used)| used))
}

fn check_number(from: NodeId, values: u64, wanted: u32) -> Result<()> {
    if values == u64::from(wanted) {
        return Ok(());
    }
    Err(Error::Garbled { from, what: "'all-gather'".into(), why: format!("{values} values instead of {wanted}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Overlay, Topology};
    use crate::transport::sim;
    use crate::transport::world::World;

    /// All nodes gather a value each, in groups of consecutive nodes, and what they got.
    fn gathered(nodes: u32, groups_of: u32, value: impl Fn(NodeId) -> u64 + Copy + 'static) -> Vec<Gathered<u64>> {
        let mut world = World::simulated(nodes, sim::Model::default());
        let overlay = Overlay::one_host(Topology::parse("complete", nodes).unwrap(), nodes).unwrap();
        let results = super::super::super::run(&mut world, &overlay, |node| async move {
            let first = node.me() / groups_of * groups_of;
            let group = Group::spaced(first, 1, groups_of.min(node.nodes() - first), node.me()).unwrap();
            group.all_gather(&node, value(node.me())).await
        });
        results.unwrap().into_iter().map(|(_, values)| values).collect()
    }

    #[test]
    fn every_member_has_all_values_by_place_in_groups_of_any_size() {
        for nodes in [1, 2, 3, 5, 8, 16, 17, 18, 31, 32, 33, 63, 64, 65, 100] {
            let expected: Vec<u64> = (0..nodes).map(|node| u64::from(node) * 3).collect();
            for values in gathered(nodes, nodes, |node| u64::from(node) * 3) {
                assert_eq!(*values, *expected, "{nodes} nodes");
            }
        }
    }

    #[test]
    fn nodes_that_gathered_the_same_share_one_list_and_others_do_not() {
        // Two groups with different values, one with the values of the first.
        let values = gathered(150, 50, |node| u64::from(node % 50) + u64::from(node / 50 == 1));
        for (node, list) in values.iter().enumerate() {
            assert!(Rc::ptr_eq(&list.0, &values[node / 50 * 50].0));
        }
        assert_eq!(*values[0], *values[100]);
        assert!(!Rc::ptr_eq(&values[0].0, &values[50].0) && !Rc::ptr_eq(&values[0].0, &values[100].0));
        let sum = |list: &Gathered<u64>| list.derive(|values| values.iter().sum::<u64>());
        assert!(Rc::ptr_eq(&sum(&values[0]), &sum(&values[49])) && !Rc::ptr_eq(&sum(&values[0]), &sum(&values[50])));
        assert_eq!((*sum(&values[3]), *sum(&values[60])), (49 * 25, 49 * 25 + 50));
    }

    #[test]
    fn few_nodes_share_what_they_gathered_over_the_first() {
        let mut world = World::simulated(6, sim::Model::default());
        let overlay = Overlay::one_host(Topology::parse("complete", 6).unwrap(), 6).unwrap();
        let results = super::super::super::run(&mut world, &overlay, |node| async move {
            let values = node.everyone().all_gather_over_first(&node, node.me()).await?;
            // Node 5 took another value for its own.
            Ok(node.everyone().shared(&node, if node.me() == 5 { vec![7; 6] } else { values }))
        });
        let lists: Vec<_> = results.unwrap().into_iter().map(|(_, list)| list).collect();
        assert!((0..5).all(|node| Rc::ptr_eq(&lists[node].0, &lists[0].0) && *lists[node] == [0, 1, 2, 3, 4, 5]));
        assert!(!Rc::ptr_eq(&lists[5].0, &lists[0].0) && *lists[5] == [7; 6]);
    }

    #[test]
    fn what_is_derived_is_made_once_for_each_type() {
        let list = Gathered::new(vec![3u32, 4]);
        let first = list.derive(<[u32]>::len);
        assert_eq!((*first, *list.clone().derive::<usize>(|_| panic!("it is known")), *list.derive(|values| values[0])), (2, 2, 3));
    }
}
