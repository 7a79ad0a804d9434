pub mod flow;
