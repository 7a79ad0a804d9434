//! The rules by name, and their options: for schedulers, and for loops of other people's programs.

use super::rules::{Rounding, Rule};
use crate::spec::{InvalidSpec, Options};

/// All rules by name.
pub(crate) const RULES: [(&str, Rule); 20] = [
    ("static", Rule::Static),
    ("cyclic", Rule::Cyclic),
    ("ss", Rule::Ss),
    ("fixed", Rule::Fixed(8)),
    ("single", Rule::Single),
    ("gss", Rule::Gss),
    ("fac2", Rule::Fac2),
    ("tss", Rule::Tss),
    ("wf", Rule::Wf),
    ("awf", Rule::Awf),
    ("af", Rule::Af),
    ("fsc", Rule::Fsc { overhead: 1.0 }),
    ("mfsc", Rule::Mfsc),
    ("tfss", Rule::Tfss),
    ("fiss", Rule::Fiss { stages: 3 }),
    ("tap", Rule::Tap { variation: None }),
    ("awf-b", Rule::AwfB),
    ("awf-c", Rule::AwfC),
    ("awf-d", Rule::AwfD),
    ("awf-e", Rule::AwfE),
];

/// A rule with what the options say of it. `owner` says to which rule an option belongs: `rule=` where rules are an option themselves.
pub(crate) fn refined(mut rule: Rule, options: &mut Options<'_>, owner: &str) -> Result<Rule, InvalidSpec> {
    match (options.whole("chunk", 1)?, &mut rule) {
        (Some(chunk), Rule::Fixed(size)) => *size = chunk,
        (Some(_), _) => return Err(options.conflict(format!("chunk belongs to {owner}fixed"))),
        (None, _) => {}
    }
    match (options.not_negative("overhead")?, &mut rule) {
        (Some(given), Rule::Fsc { overhead }) => *overhead = given,
        (Some(_), _) => return Err(options.conflict(format!("overhead belongs to {owner}fsc"))),
        (None, _) => {}
    }
    match (options.whole("stages", 2)?, &mut rule) {
        (Some(given), Rule::Fiss { stages }) => *stages = given,
        (Some(_), _) => return Err(options.conflict(format!("stages belong to {owner}fiss"))),
        (None, _) => {}
    }
    match (options.not_negative("variation")?, &mut rule) {
        (Some(given), Rule::Tap { variation }) => *variation = Some(given),
        (Some(_), _) => return Err(options.conflict(format!("variation belongs to {owner}tap"))),
        (None, _) => {}
    }
    Ok(rule)
}

/// Rounding of quotients, if the options set it.
pub(crate) fn rounding(options: &mut Options<'_>) -> Result<Option<Rounding>, InvalidSpec> {
    options.choice("rounding", &[("up", Rounding::Up), ("ceil", Rounding::Up), ("down", Rounding::Down), ("floor", Rounding::Down)])
}
