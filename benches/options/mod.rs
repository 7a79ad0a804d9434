//! Options of the benchmarks' programs, `--name value`.

use std::str::FromStr;

use equipoise::{Error, Result};

/// An option and its value, as they were given.
pub struct Given {
    pub name: String,
    pub value: String,
}

impl Given {
    /// The value as a number.
    ///
    /// # Errors
    /// Wrong usage if it is none.
    pub fn number<T: FromStr>(&self) -> Result<T> {
        self.value.parse().map_err(|_| Error::usage(format!("{} {}: it is not a number", self.name, self.value)))
    }

    /// The error that there is no such option.
    pub fn unknown<T>(&self) -> Result<T> {
        Err(Error::usage(format!("there is no option {}", self.name)))
    }
}

/// Passes each option of the command line on.
///
/// # Errors
/// Those of `take`, and wrong usage if a value is missing.
pub fn each(mut take: impl FnMut(&Given) -> Result<()>) -> Result<()> {
    // Cargo's own, as in `cargo bench`.
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    while let Some(name) = words.next() {
        let value = words.next().ok_or_else(|| Error::usage(format!("{name} needs a value")))?;
        take(&Given { name, value })?;
    }
    Ok(())
}
