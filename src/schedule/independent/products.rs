//! Products of tasks besides their values (a row of a picture, of a matrix): bytes that go to node 0 as soon as their piece of work has
//! ended.
//!
//! A message holds, for each task with a product, its number, the length, and the bytes; numbers are little-endian, 8 bytes each.

use bytes::{Buf, Bytes};

use super::{CLOSING, FIRST, Figures};
use crate::error::{Error, Result};
use crate::node::{Node, Tag};

const PRODUCT: Tag = crate::node::tags::independent::PRODUCT;
/// A task's number and its product's length.
const HEADER: usize = 16;

/// Executes a task, which appends its product. If it appends anything, the task's header stands before it.
pub(super) fn of<T>(task: usize, products: &mut Vec<u8>, execute: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let before = products.len();
    // Most tasks leave nothing, so room for a header is made only afterwards.
    let value = execute(products);
    let length = products.len() - before;
    if length > 0 {
        products.extend_from_slice(&[0; HEADER]);
        products[before..].rotate_right(HEADER);
        products[before..before + 8].copy_from_slice(&(task as u64).to_le_bytes());
        products[before + 8..before + HEADER].copy_from_slice(&(length as u64).to_le_bytes());
    }
    value
}

/// Sends products to node 0, where they are kept until the end.
pub(super) fn send(node: &Node, products: Bytes) {
    node.epoch(CLOSING).send_bytes(FIRST, PRODUCT, products);
}

/// All products, at node 0, in order of their tasks; `closing` is the node in the closing epoch.
///
/// # Errors
/// If a rank is lost, or a message is garbled.
pub(super) async fn collect(closing: &Node, nodes: &[Figures]) -> Result<Vec<(usize, Bytes)>> {
    let mut products = Vec::new();
    for _ in 0..nodes.iter().map(|figures| figures.products).sum::<u64>() {
        let message = closing.receive_message(None, PRODUCT).await?;
        let from = message.envelope.src;
        let mut body: Bytes = message.body.into();
        while !body.is_empty() {
            let whole = body.len() >= HEADER;
            let (task, length) = if whole { (body.get_u64_le(), body.get_u64_le()) } else { (0, u64::MAX) };
            if length > body.len() as u64 {
                let why = format!("it ends within the product of task {task}");
                return Err(Error::Garbled { from, what: "with products of tasks".into(), why });
            }
            products.push((task as usize, body.split_to(length as usize)));
        }
    }
    products.sort_by_key(|(task, _)| *task);
    Ok(products)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tasks_that_leave_something_have_a_header() {
        let mut products = Vec::new();
        assert_eq!(of(3, &mut products, |_| 5), 5);
        assert!(products.is_empty());
        of(4, &mut products, |product| product.extend_from_slice(b"abc"));
        of(5, &mut products, |product| product.push(7));
        let expected =
            [&[4, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0][..], b"abc", &[5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7]].concat();
        assert_eq!(products, expected);
    }
}
