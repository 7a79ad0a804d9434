//! JSON: one object a line. It is written while it is made, so that ten million moves need no more memory than the record itself.

use std::io::{self, Write};

use serde::Serialize;

/// Writes a record as one line.
///
/// # Errors
/// If the writer fails.
pub fn line<T: Serialize>(out: &mut dyn Write, record: &T) -> io::Result<()> {
    serde_json::to_writer(&mut *out, record)?;
    out.write_all(b"\n")
}
