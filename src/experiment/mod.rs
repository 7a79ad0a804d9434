//! Experiments: repetitions and what can be said from them.

pub mod statistics;
