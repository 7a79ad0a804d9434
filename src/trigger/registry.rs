//! The registry of triggers: the criteria by name, `NAME[:key=value,..]`.

use super::Criterion;
use crate::registry::{self, Registered};
use crate::spec::{InvalidSpec, Options};

/// A trigger's place in the registry.
pub type Entry = registry::Entry<Facts>;

/// A trigger that was chosen.
pub type Chosen = registry::Chosen<Facts>;

/// Facts about a trigger beyond those that all entries have.
pub struct Facts {
    /// Condition under which it balances, as a clause.
    pub rule: &'static str,
    /// Whether it weighs the cost of a balancing.
    pub knows_cost: bool,
}

impl Registered for Facts {
    type Made = Criterion;
    const WHAT: &'static str = "trigger";
    const ALL: &'static [&'static Entry] =
        &[&NEVER, &EVERY, &THRESHOLD, &MARQUEZ, &MENON, &MENON_BASELINE, &MENON_INTERVAL, &ZHAI, &PROCASSINI, &BOULMIER, &PREDICTED];
}

/// The trigger that `NAME[:key=value,..]` names.
///
/// # Errors
/// If there is none of this name, or its options are wrong.
pub fn find(text: &str) -> Result<Chosen, InvalidSpec> {
    registry::find(text)
}

static NEVER: Entry = Entry {
    name: "never",
    title: "no balancing",
    source: "",
    options: "",
    examples: &["never"],
    build: |_| Ok(Criterion::Never),
    facts: Facts { rule: "never", knows_cost: false },
};

static EVERY: Entry = Entry {
    name: "every",
    title: "a fixed number of steps",
    source: "",
    options: "steps=10 (from one balancing to the next)",
    examples: &["every", "every:steps=3"],
    build: |options| Ok(Criterion::Every(options.whole("steps", 1)?.unwrap_or(10))),
    facts: Facts { rule: "the number of steps has passed since the last balancing", knows_cost: false },
};

static THRESHOLD: Entry = Entry {
    name: "threshold",
    title: "imbalance above a bound for some steps",
    source: "",
    options: "above=1.1 (max/mean), window=1 (steps in a row), cooldown=0 (steps after a balancing before the next)",
    examples: &["threshold", "threshold:above=1.35,window=3,cooldown=10"],
    build: threshold,
    facts: Facts { rule: "max/mean was above the bound in all steps of the window, and the cool-down is over", knows_cost: false },
};

static MARQUEZ: Entry = Entry {
    name: "marquez",
    title: "a rank beyond a tolerance around the mean",
    source: "Márquez, César and Sorribes 2013",
    options: "tolerance=0.1 (part of the mean)",
    examples: &["marquez", "marquez:tolerance=0.3"],
    build: |options| Ok(Criterion::Tolerance { part: options.not_negative("tolerance")?.unwrap_or(0.1) }),
    facts: Facts { rule: "a rank took longer or shorter than the mean by more than the tolerance", knows_cost: false },
};

static MENON: Entry = Entry {
    name: "menon",
    title: "cumulative imbalance",
    source: "Menon, Jain, Zheng and Kalé 2012",
    options: "",
    examples: &["menon"],
    build: |_| Ok(Criterion::Cumulative),
    facts: Facts { rule: "max - mean, summed up since the last balancing, reaches the cost", knows_cost: true },
};

static MENON_BASELINE: Entry = Entry {
    name: "menon-baseline",
    title: "cumulative imbalance beyond what balancing leaves",
    source: "Boulmier, Abdennadher and Chopard 2021",
    options: "",
    examples: &["menon-baseline"],
    build: |_| Ok(Criterion::Excess),
    facts: Facts { rule: "as menon, of max - mean beyond that of the first step after the last balancing", knows_cost: true },
};

static MENON_INTERVAL: Entry = Entry {
    name: "menon-interval",
    title: "the best interval for steady growth",
    source: "Menon, Jain, Zheng and Kalé 2012",
    options: "",
    examples: &["menon-interval"],
    build: |_| Ok(Criterion::Interval),
    facts: Facts { rule: "sqrt(2 cost / m) steps have passed, where max - mean grows by m a step", knows_cost: true },
};

static ZHAI: Entry = Entry {
    name: "zhai",
    title: "cumulative degradation of the step's time",
    source: "Zhai, Banerjee, Zwick, Hackl and Ranka 2018",
    options: "",
    examples: &["zhai"],
    build: |_| Ok(Criterion::Degradation),
    facts: Facts {
        rule: "(median of the last three max) - (mean of max since the last balancing), summed up, reaches the cost",
        knows_cost: true,
    },
};

static PROCASSINI: Entry = Entry {
    name: "procassini",
    title: "predicted speed-up of the next step",
    source: "Procassini, O'Brien and Taylor 2005",
    options: "factor=1 (steps like the last that a balanced step and the cost may take)",
    examples: &["procassini", "procassini:factor=2"],
    build: |options| Ok(Criterion::Efficiency { factor: options.positive("factor")?.unwrap_or(1.0) }),
    facts: Facts {
        rule: "a step as efficient as those after earlier balancings, and the cost, take less than factor steps like the last",
        knows_cost: true,
    },
};

static BOULMIER: Entry = Entry {
    name: "boulmier",
    title: "area above the curve of imbalance",
    source: "Boulmier, Abdennadher and Chopard 2021",
    options: "",
    examples: &["boulmier"],
    build: |_| Ok(Criterion::Area),
    facts: Facts { rule: "n u - (sum of u = max - mean over the n steps since the last balancing) reaches the cost", knows_cost: true },
};

static PREDICTED: Entry = Entry {
    name: "predicted",
    title: "the model of `advise`",
    source: "",
    options: "steps=.. (for which the loads last; as long as since the last balancing), margin=1 (how many times its cost a balancing must gain)",
    examples: &["predicted", "predicted:steps=10,margin=1.5"],
    build: |options| {
        let steps = options.whole("steps", 1)?;
        Ok(Criterion::Predicted { steps, margin: options.positive("margin")?.unwrap_or(1.0) })
    },
    facts: Facts {
        rule: "(max - mean, less that of the first step after the last balancing) times the steps for which the loads last is above the cost",
        knows_cost: true,
    },
};

fn threshold(options: &mut Options<'_>) -> Result<Criterion, InvalidSpec> {
    let above = options.read("above", "a number, 1 or more", |bound: &f64| bound.is_finite() && *bound >= 1.0)?.unwrap_or(1.1);
    let window = options.whole("window", 1)?.unwrap_or(1);
    let cooldown = options.whole("cooldown", 0)?.unwrap_or(0);
    Ok(Criterion::Threshold { above, window, cooldown })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_options_make_criteria() {
        let made = |text: &str| find(text).unwrap().made;
        assert_eq!(made("every"), Criterion::Every(10));
        assert_eq!(made("threshold:above=1.35,window=3"), Criterion::Threshold { above: 1.35, window: 3, cooldown: 0 });
        assert_eq!(made("marquez:tolerance=0.3"), Criterion::Tolerance { part: 0.3 });
        assert_eq!(made("procassini:factor=2"), Criterion::Efficiency { factor: 2.0 });
        for entry in Facts::ALL {
            assert!(find(entry.name).is_ok() && entry.examples.iter().all(|example| find(example).is_ok()), "{}", entry.name);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |text: &str| find(text).err().map(|why| why.to_string()).unwrap_or_default();
        assert_eq!(
            wrong("mennon"),
            "trigger 'mennon' is unknown; known are never, every, threshold, marquez, menon, menon-baseline, menon-interval, zhai, \
             procassini, boulmier, predicted"
        );
        assert_eq!(wrong("every:steps=0"), "trigger every: steps is a whole number, 1 or more, not '0'");
        assert_eq!(wrong("threshold:above=NaN"), "trigger threshold: above is a number, 1 or more, not 'NaN'");
        assert_eq!(wrong("threshold:above=0.9"), "trigger threshold: above is a number, 1 or more, not '0.9'");
        assert_eq!(wrong("marquez:tolerance=-1"), "trigger marquez: tolerance is a number, 0 or more, not '-1'");
        assert_eq!(wrong("procassini:factor=inf"), "trigger procassini: factor is a number above 0, not 'inf'");
        assert_eq!(wrong("menon:steps=1"), "trigger menon takes no options, 'steps' was given");
    }
}
