//! Everything that is tested from outside and needs no MPI, in one binary.

#[path = "../contract/mod.rs"]
mod contract;
mod contract_in_sim;
mod figures;
mod flow_vectors;
mod independent;
mod layers;
mod measured;
mod placement;
mod properties;
mod runner;
mod sim;
mod source;
mod vectors;
mod weights;
