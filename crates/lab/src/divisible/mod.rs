//! Divisible loads: work that can be cut anywhere, which lies on one processor at first (Blazewicz and Drozdowski 1995).
//!
//! [`model`] says, for given speeds of processors and links, how much each processor gets so that all of it is done earliest. [`spread`] deals one
//! big input out over ranks that compute on their shares, so that all finish together.

pub mod model;
pub mod spread;
