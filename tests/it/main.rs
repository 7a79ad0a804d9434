//! Everything that is tested from outside and needs no MPI, in one binary.

mod flow_vectors;
mod layers;
mod properties;
mod runner;
mod source;
mod vectors;
