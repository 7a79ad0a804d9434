//! Properties that every topology has.
