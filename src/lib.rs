pub mod balance;
pub mod error;
pub mod flow;
pub mod load;
pub mod node;
pub mod schedule;
pub mod topology;
pub mod transport;

pub use error::{Error, Result};
