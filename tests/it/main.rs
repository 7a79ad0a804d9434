//! Everything that is tested from outside and needs no MPI, in one binary.

mod advice;
#[path = "../contract/mod.rs"]
mod contract;
mod contract_in_sim;
mod dependencies;
mod divisible;
mod figures;
#[path = "../files/mod.rs"]
mod files;
mod flow_vectors;
mod grids;
mod independent;
mod kernels;
mod measured;
mod no_harm;
mod placement;
mod properties;
mod rivals;
mod runner;
mod signals;
mod sim;
mod spawning;
mod spread;
mod vectors;
mod weights;
