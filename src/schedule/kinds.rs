//! The two kinds of schedulers: those of tasks that spawn tasks, and those of independent tasks. Here they are found by name, and one of the other
//! kind is refused as such.

use super::independent::entry as independent;
use super::registry as spawning;
use crate::error::Result;
use crate::registry::{self, Registered, Unsuitable};
use crate::spec::{self, Spec};

/// The scheduler that `NAME[:key=value,..]` names.
///
/// # Errors
/// If there is none of this name (the sentence lists all), it is for independent tasks, or its options are wrong.
pub fn find(spec: &str) -> Result<spawning::Chosen> {
    make(&Spec::parse(spawning::Facts::WHAT, spec)?)
}

/// The scheduler of a specification.
///
/// # Errors
/// As [`find`].
pub fn make(spec: &Spec) -> Result<spawning::Chosen> {
    check::<spawning::Facts, independent::Facts>(spec, "is for independent tasks, not for tasks that spawn tasks; for these there are")?;
    Ok(registry::make(spec)?)
}

/// The scheduler of independent tasks that `NAME[:key=value,..]` names.
///
/// # Errors
/// If there is none of this name (the sentence lists all), it is for tasks that spawn tasks, or its options are wrong.
pub fn find_independent(spec: &str) -> Result<independent::Chosen> {
    let spec = Spec::parse(independent::Facts::WHAT, spec)?;
    check::<independent::Facts, spawning::Facts>(&spec, "is for tasks that spawn tasks, not for independent ones; for these there are")?;
    Ok(registry::make(&spec)?)
}

/// The schedulers in a list `NAME[:key=value,..],NAME,..`, of both kinds.
pub fn listed(list: &str) -> Vec<String> {
    spec::items(list, |name| registry::knows::<spawning::Facts>(name) || registry::knows::<independent::Facts>(name))
}

/// Refuses a scheduler of another kind; `why` is a clause that the names of the right kind follow.
fn check<Right: Registered, Other: Registered>(spec: &Spec, why: &str) -> Result<()> {
    if !registry::knows::<Other>(spec.name()) {
        return Ok(());
    }
    let known: Vec<_> = registry::names::<Right>().collect();
    Err(Unsuitable::new(spec, format!("{why} {}", known.join(", "))).into())
}
