//! Reports: what experiment records look like to people and to programs. Everything here is made of records alone.

pub mod advice;
mod chart;
pub mod csv;
pub mod curves;
pub mod division;
pub mod figures;
pub mod gantt;
pub mod html;
pub mod json;
mod layout;
pub mod reproduction;
mod row;
pub mod run;
pub mod run_page;
mod sketch;
mod spans;
pub mod spread;
pub mod spread_page;
mod svg;
pub mod table;
pub mod trace;
pub mod verdict;
