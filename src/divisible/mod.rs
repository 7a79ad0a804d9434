//! Divisible loads: work that can be cut anywhere, which lies on one processor at first.
//!
//! [`model`] says, for given speeds of processors and links, how much each processor gets so that all of it is done earliest.

pub mod model;
