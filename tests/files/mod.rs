//! Files for tests, that go away with their values.

use std::fs;

use tempfile::{NamedTempFile, TempPath};

/// A file with this text.
pub fn file(text: impl AsRef<[u8]>) -> TempPath {
    let path = NamedTempFile::new().expect("a temporary file can be made").into_temp_path();
    fs::write(&path, text).expect("a temporary file can be written");
    path
}
