//! Reports: what experiment records look like to people and to programs. Everything here is made of records alone.

pub mod advice;
pub mod csv;
pub mod figures;
pub mod json;
pub mod run;
pub mod table;
pub mod trace;
