//! When to balance: a step's times, and the published criteria by name.

use super::status::{Failure, Result};
use crate::trigger::{self as criteria, Criterion};

/// Names that guests may use in addition to the registry's.
const OTHER_NAMES: [(&str, &str); 3] = [("excess", "menon-baseline"), ("interval", "menon-interval"), ("every", "every:steps=100")];

/// Short forms of options `NAME=VALUE`.
const SHORT_FORMS: [(&str, &str); 4] =
    [("every", "every:steps"), ("threshold", "threshold:above"), ("procassini", "procassini:factor"), ("marquez", "marquez:tolerance")];

/// The criterion of that name in the [registry](criteria::find). `every=100` and `threshold=1.1` are short for their first option.
///
/// # Errors
/// Wrong usage; the sentence lists the names.
pub fn trigger(text: &str) -> Result<Criterion> {
    let long = match text.split_once('=') {
        None => OTHER_NAMES.iter().find(|(name, _)| *name == text).map(|(_, known)| (*known).to_string()),
        Some(("marquez:part", value)) => Some(format!("marquez:tolerance={value}")),
        Some((name, value)) => SHORT_FORMS.iter().find(|(short, _)| *short == name).map(|(_, long)| format!("{long}={value}")),
    };
    let chosen = criteria::find(long.as_deref().unwrap_or(text)).map_err(|why| Failure::usage(format!("option trigger: {why}")))?;
    Ok(chosen.made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_short_forms() {
        for name in ["never", "every", "threshold", "menon", "excess", "interval", "zhai", "boulmier", "procassini", "marquez", "predicted"]
        {
            trigger(name).unwrap();
        }
        assert_eq!((trigger("every").unwrap(), trigger("excess").unwrap()), (Criterion::Every(100), trigger("menon-baseline").unwrap()));
        assert_eq!(trigger("marquez:part=0.3").unwrap(), trigger("marquez=0.3").unwrap());
        assert_eq!(trigger("every=7").unwrap(), Criterion::Every(7));
        assert_eq!(trigger("threshold=1.5").unwrap(), Criterion::Threshold { above: 1.5, window: 1, cooldown: 0 });
        assert!(trigger("every=0").unwrap_err().text.contains("every"));
        assert!(trigger("moon").unwrap_err().text.contains("menon"));
    }
}
