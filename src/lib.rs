pub mod balance;
pub mod error;
pub mod experiment;
pub mod flow;
pub mod judge;
pub mod load;
pub mod node;
pub mod topology;
pub mod transport;
pub mod workload;

pub use error::{Error, Result};
