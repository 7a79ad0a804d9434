//! Values that travel between ranks as bytes.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::status::{Failure, Result};
use crate::transport::wire;

/// A failed move: the values are here still, as they were.
#[non_exhaustive]
pub struct Refused<T> {
    /// Why, the same on every rank.
    pub failure: Failure,
    /// Values that were to be moved.
    pub values: Vec<T>,
}

impl<T> From<Refused<T>> for Failure {
    fn from(refused: Refused<T>) -> Failure {
        refused.failure
    }
}

impl<T> From<Refused<T>> for crate::Error {
    fn from(refused: Refused<T>) -> crate::Error {
        refused.failure.into()
    }
}

impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Refused({:?}, {} values)", self.failure, self.values.len())
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.failure.fmt(f)
    }
}

impl<T> std::error::Error for Refused<T> {}

/// A value's bytes, if they read back as the same.
pub(crate) fn carried<T: Serialize + DeserializeOwned>(value: &T, item: usize) -> Result<Vec<u8>> {
    let unfit = |why: &str| Failure::usage(format!("item {item}: its type does not travel: {why}"));
    let bytes = wire::try_write(value).map_err(|why| unfit(&why))?;
    let read: T = wire::read_value(&bytes).map_err(|why| unfit(&format!("it does not read back as it was written ({why})")))?;
    // Another variant, or a field that was skipped, shows in the bytes that are written then.
    match wire::try_write(&read) {
        Ok(again) if again == bytes => Ok(bytes),
        _ => Err(unfit("it reads back as another value")),
    }
}
