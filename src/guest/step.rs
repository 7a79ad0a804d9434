//! When to balance: a step's times, and the published criteria by name.

use super::status::{Failure, Result};
use crate::spec::{InvalidSpec, Options, Spec};
use crate::trigger::Criterion;

/// All criteria by name.
pub const TRIGGERS: [&str; 10] =
    ["never", "every", "threshold", "menon", "excess", "interval", "zhai", "boulmier", "procassini", "marquez"];

/// The criterion of that name. `every=100` and `threshold=1.1` are short for their first option.
///
/// # Errors
/// Wrong usage; the sentence lists the names.
pub fn trigger(text: &str) -> Result<Criterion> {
    let text = match text.split_once('=') {
        Some((name, value)) if !name.contains(':') => match name {
            "every" => format!("every:steps={value}"),
            "threshold" => format!("threshold:above={value}"),
            "procassini" => format!("procassini:factor={value}"),
            "marquez" => format!("marquez:part={value}"),
            _ => text.to_string(),
        },
        _ => text.to_string(),
    };
    let wrong = |why: InvalidSpec| Failure::usage(format!("option trigger: {why}"));
    let spec = Spec::parse("trigger", &text).map_err(wrong)?;
    let number = |options: &mut Options<'_>, key: &'static str, least: f64, default: f64| match options.value(key)? {
        None => Ok(default),
        Some(text) => match text.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= least => Ok(number),
            _ => Err(options.wrong(key, text, &format!("a number of at least {least}"))),
        },
    };
    let plain = |criterion: Criterion| move |_: &mut Options<'_>| Ok::<_, InvalidSpec>(criterion);
    let criterion = match spec.name() {
        "never" => spec.build(plain(Criterion::Never)),
        "every" => spec.build(|options| Ok(Criterion::Every(options.whole("steps", 1)?.unwrap_or(100)))),
        "threshold" => spec.build(|options| {
            Ok(Criterion::Threshold {
                above: number(options, "above", 1.0, 1.1)?,
                window: options.whole("window", 1)?.unwrap_or(1),
                cooldown: options.whole("cooldown", 0)?.unwrap_or(0),
            })
        }),
        "menon" => spec.build(plain(Criterion::Cumulative)),
        "excess" => spec.build(plain(Criterion::Excess)),
        "interval" => spec.build(plain(Criterion::Interval)),
        "zhai" => spec.build(plain(Criterion::Degradation)),
        "boulmier" => spec.build(plain(Criterion::Area)),
        "procassini" => spec.build(|options| Ok(Criterion::Efficiency { factor: number(options, "factor", 0.0, 1.0)? })),
        "marquez" => spec.build(|options| Ok(Criterion::Tolerance { part: number(options, "part", 0.0, 0.1)? })),
        _ => Err(spec.unknown(TRIGGERS)),
    };
    criterion.map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_short_forms() {
        for name in TRIGGERS {
            trigger(name).unwrap();
        }
        assert_eq!(trigger("every=7").unwrap(), Criterion::Every(7));
        assert_eq!(trigger("threshold=1.5").unwrap(), Criterion::Threshold { above: 1.5, window: 1, cooldown: 0 });
        assert!(trigger("every=0").unwrap_err().text.contains("every"));
        assert!(trigger("moon").unwrap_err().text.contains("menon"));
    }
}
