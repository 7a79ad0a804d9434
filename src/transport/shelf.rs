//! Shared values: lists that all nodes of a process know alike, kept once for all of them.
//!
//! A node that has gathered the same values in the same [`Scope`] looks here before it makes a list of its own. Each member of a group takes the
//! list once, so it is kept here until the last one has taken it.

use std::any::Any;
use std::collections::HashMap;
use std::rc::Rc;

use super::Scope;
use super::row::Fingerprint;
use crate::topology::NodeId;

/// Key of a shared value: the gathered values, and the nodes (first, stride, number) that sent them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label {
    pub scope: Scope,
    pub members: (NodeId, u32, u32),
    pub values: Fingerprint,
}

#[derive(Default)]
pub struct Shelf {
    kept: HashMap<Label, Vec<Kept>>,
}

struct Kept {
    thing: Rc<dyn Any>,
    /// Number of members that have not taken it.
    left: u32,
}

impl Shelf {
    /// Takes a value of this type that another member put here, if there is one.
    pub fn take<T: 'static>(&mut self, label: &Label) -> Option<Rc<T>> {
        let things = self.kept.get_mut(label)?;
        let at = things.iter().position(|kept| kept.thing.is::<T>())?;
        let thing = things[at].thing.clone().downcast().ok()?;
        things[at].left -= 1;
        if things[at].left == 0 {
            things.remove(at);
            if things.is_empty() {
                self.kept.remove(label);
            }
        }
        Some(thing)
    }

    /// The first member that has it puts it here for the others.
    pub fn put<T: 'static>(&mut self, label: Label, thing: Rc<T>) {
        let left = label.members.2.saturating_sub(1);
        if left > 0 {
            self.kept.entry(label).or_default().push(Kept { thing, left });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::row::Row;
    use crate::transport::wire;

    fn label(value: u64, epoch: u32) -> Label {
        let values = Row::of(wire::write_body(&value)).fingerprint();
        Label { scope: Scope { run: 1, epoch }, members: (0, 1, 8), values }
    }

    #[test]
    fn things_are_found_by_values_scope_members_and_type() {
        let mut shelf = Shelf::default();
        let list = Rc::new(vec![5u64]);
        shelf.put(label(5, 0), list.clone());
        assert!(shelf.take::<Vec<u64>>(&label(5, 0)).is_some_and(|found| Rc::ptr_eq(&found, &list)));
        assert_eq!(shelf.take::<Vec<u32>>(&label(5, 0)), None);
        assert_eq!(shelf.take::<Vec<u64>>(&label(6, 0)), None);
        assert_eq!(shelf.take::<Vec<u64>>(&label(5, 1)), None);
        assert_eq!(shelf.take::<Vec<u64>>(&Label { members: (1, 1, 8), ..label(5, 0) }), None);
        shelf.put(label(5, 0), Rc::new(vec![5u32]));
        assert!(shelf.take::<Vec<u32>>(&label(5, 0)).is_some() && shelf.take::<Vec<u64>>(&label(5, 0)).is_some());
    }

    #[test]
    fn what_all_members_have_is_not_kept() {
        let mut shelf = Shelf::default();
        for value in 0..100u64 {
            // Twice the same in the same scope, as fast members may see it.
            for _ in 0..2 {
                shelf.put(label(value, 0), Rc::new(value));
                for _ in 0..7 {
                    assert_eq!(shelf.take::<u64>(&label(value, 0)).as_deref(), Some(&value));
                }
                assert_eq!(shelf.take::<u64>(&label(value, 0)), None);
            }
            shelf.put(Label { members: (0, 1, 1), ..label(value, 0) }, Rc::new(value));
        }
        assert!(shelf.kept.is_empty());
    }
}
