//! Divisible loads: work that can be cut anywhere, and so be dealt out such that all ranks finish together (Blazewicz and Drozdowski 1995).
//!
//! [`spread`] deals one big input out over ranks that compute on their shares.

pub mod spread;
