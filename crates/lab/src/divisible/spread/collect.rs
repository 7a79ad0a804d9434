//! Collection of the shares' outputs in the order of the input: the originator asks one node after another and never holds more than some
//! pieces.

use std::rc::Rc;

use bytes::Bytes;

use super::kernel::Range;
use super::piece::PIECE;
use equipoise::error::Result;
use equipoise::node::{Node, Tag};
use equipoise::topology::NodeId;

const MORE: Tag = crate::tags::spread::MORE;
const OUTPUT: Tag = crate::tags::spread::OUTPUT;

/// Outputs of the kernels of a rank.
pub trait Outputs {
    /// The next bytes of what was written for a range, at most `most` of them; empty at its end.
    ///
    /// # Errors
    /// If it cannot be read back.
    fn next(&self, range: Range, most: usize) -> Result<Vec<u8>>;
}

/// One node's part: `owners` lists whose output is wanted, in order; `take` gets the bytes on the originator, with the
/// share's number in this list, and none when it has ended.
///
/// # Errors
/// If output cannot be read back, `take` fails, or a rank is lost.
pub async fn collect(
    node: Node,
    origin: NodeId,
    owners: Rc<[(NodeId, Range)]>,
    outputs: Rc<dyn Outputs>,
    mut take: impl FnMut(usize, &[u8]) -> Result<()>,
) -> Result<()> {
    let me = node.me();
    for (number, &(owner, range)) in owners.iter().enumerate() {
        match (me == origin, owner == origin) {
            (true, true) => loop {
                let bytes = outputs.next(range, PIECE as usize)?;
                take(number, &bytes)?;
                if bytes.is_empty() {
                    break;
                }
            },
            (true, false) => {
                // Two are asked for, so that one is on its way while the other is taken.
                node.send(owner, MORE, &true);
                node.send(owner, MORE, &true);
                loop {
                    let bytes = node.receive_message(Some(owner), OUTPUT).await?.body;
                    take(number, &bytes)?;
                    if bytes.is_empty() {
                        break;
                    }
                    node.send(owner, MORE, &true);
                }
                // The answer to the second outstanding request is empty, too.
                node.receive_message(Some(owner), OUTPUT).await?;
                node.send(owner, MORE, &false);
            }
            (false, _) if owner == me => {
                while node.receive(origin, MORE).await? {
                    node.send_bytes(origin, OUTPUT, Bytes::from(outputs.next(range, PIECE as usize)?));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
