pub mod phase;
pub mod search;
#[cfg(test)]
mod vectors;
