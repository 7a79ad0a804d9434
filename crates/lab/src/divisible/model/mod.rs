//! The model: a load that can be cut anywhere lies on one processor, the source. How much does each processor get, and when is all done?
//!
//! The assumptions are those of Blazewicz and Drozdowski 1995: a processor starts to compute and to send when its whole share (of an
//! installment) has arrived, it computes while it sends, and computing and sending take time in proportion to the load, sending a start-up
//! cost more if there is one. Load flows away from the source, hop by hop.
//!
//! ```text
//!   Question ---> closed form or recursion --+
//!            \                               +--> Division --> Timeline --> Solution
//!             --> linear program ------------+    how much     when
//! ```
//!
//! - [`hypercube`], [`binomial`]: hypercubes of equal processors, all ports and one, up to dimension 30.
//! - [`tree`], [`capacity`]: trees, lines and stars of unequal processors, by the equal-finish rule.
//! - `circle`: circles of equal processors with all ports.
//! - `star`: stars of unequal processors with one port and start-up costs, by search through the orders of service.
//! - [`program`], [`selection`]: everything else, by linear program; through one port for each `order` of service that is tried.
//! - [`timeline`]: a division played through.

pub mod binomial;
pub mod capacity;
mod circle;
pub mod hypercube;
mod layered;
pub mod network;
pub mod number;
mod order;
pub mod program;
pub mod question;
pub mod selection;
mod solution;
mod solve;
mod star;
#[cfg(test)]
mod tests;
pub mod timeline;
pub mod tree;

pub use network::Ports;
pub use question::{NamedTopology, Question};
pub use solution::{LayerShare, MessageSpan, Method, ProcessorShare, Solution};
pub use solve::{solve, solve_by_program};
