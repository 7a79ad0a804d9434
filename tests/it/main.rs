//! Everything that is tested from outside and needs no MPI, in one binary.

mod flow_vectors;
mod sim;
