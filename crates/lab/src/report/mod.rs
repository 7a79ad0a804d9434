//! Reports: experiment records for people and for programs. Reports are made from the records alone, and tables from the [columns] of a record.

pub mod advice;
pub mod advise;
mod chart;
pub mod columns;
pub mod csv;
pub mod curves;
pub mod division;
pub mod figures;
pub mod gantt;
mod heat;
pub mod html;
pub mod json;
mod layout;
pub mod probe;
pub mod reproduction;
pub mod run;
pub mod run_page;
pub mod simgrid;
mod sketch;
mod spans;
pub mod spread;
pub mod spread_page;
mod svg;
pub mod table;
pub mod trace;
pub mod verdict;
pub mod when;
