//! For tests of what reads options and files: files and folders that go away with the value, and the sentence of a refusal.

use std::fmt::Debug;
use std::fs;

use equipoise::error::Result;
use tempfile::{NamedTempFile, TempDir, TempPath, tempdir};

/// A file with this text.
pub(crate) fn file(text: impl AsRef<[u8]>) -> TempPath {
    let path = NamedTempFile::new().unwrap().into_temp_path();
    fs::write(&path, text).unwrap();
    path
}

/// A folder with these files, by their paths in it, and their texts.
pub(crate) fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// The sentence of a refusal, which is wrong usage.
pub(crate) fn refusal<T: Debug>(result: Result<T>) -> String {
    match result {
        Err(why) if why.exit_status() == 2 => why.to_string(),
        other => panic!("{other:?}"),
    }
}
