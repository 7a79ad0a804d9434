//! Experiments: what is run, how often and on what, and the records of what came out.

pub mod phase;
