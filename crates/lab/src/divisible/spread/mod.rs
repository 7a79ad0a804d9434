//! One big input, spread over the ranks so that all finish together (Blazewicz and Drozdowski 1995, sections 2 and 3, on real networks).
//!
//! The originator has the input. Every node gets one share, a range of whole records. Shares travel in pieces down a [tree] of the topology;
//! a node computes on its share as soon as the share (or an installment of it) is there, on a worker, while its program forwards what is for
//! others:
//!
//! ```text
//!   calibrate   seconds per byte of every node, start-up and seconds per byte of every link of the tree
//!   plan        shares such that all finish at the same time, and when that will be
//!   cut         shares moved to the next ends of records
//!   distribute  0 --piece--> 1 --piece--> 3     0 is the originator; layer by layer; every piece is acknowledged, which bounds what is under way
//!   collect     the shares' answers, in the order of the input
//! ```
//!
//! The paper lets a node drive all its links at once. A rank has one network card, so here a node serves one link at a time (one-port):
//! only so much is under way from it as keeps the link busy. The paper's node also waits for its whole share and all it has to forward; here
//! what is for others is forwarded piece by piece, so that a node far away waits for the slowest link on its way and not for each of them.
//!
//! The paper's own distribution is here as well, on hypercubes, and on meshes by the same idea: [`layers`] says what goes where, [`flood`] is its rank program.

mod answers;
pub mod calibrate;
pub mod clock;
pub mod collect;
pub mod cut;
pub mod demand;
pub mod flood;
pub mod kernel;
pub mod layers;
mod order;
pub mod piece;
pub mod plan;
pub mod program;
mod share;
pub mod tree;

pub use calibrate::{LinkCosts, SpreadCosts};
pub use cut::{InputSource, Records};
pub use kernel::{Kernel, Kernels, Range};
pub use layers::{LayeredForm, Layers, Routes};
pub use order::{SpreadEnding, SpreadNodeReport, SpreadOrder};
pub use plan::{SpreadPlan, TimeInterval};
pub use tree::SpreadTree;
