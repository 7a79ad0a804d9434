//! The schedulers of a farm: those of the registry for independent tasks, and one that needs no estimates and adapts.

use equipoise::schedule::independent::{self, Facts};
use equipoise::schedule::selfsched::{
    dealing,
    rules::{Rounding, Rule},
};
use equipoise::spec::{InvalidSpec, Options, Spec};
use equipoise::{Result, registry};

/// Rule by which tasks are dealt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheduler {
    /// A rank gets the work of a tenth of a second; with estimates one task at a time, the longest first.
    Adaptive,
    /// The number that a rule of self-scheduling sets.
    Rule { rule: Rule, rounding: Option<Rounding>, least: u64 },
    /// One at a time, in the order of the list.
    Dss,
    /// Ahead, by estimates and by measurements of each rank. `alike`: ranks are assumed to be equally fast. `most`: expansions of a search.
    Sash { alike: bool, most: u32 },
}

impl Scheduler {
    /// Reads `NAME[:key=value,..]`.
    ///
    /// # Errors
    /// Wrong usage, with a sentence that names the known ones.
    pub fn parse(text: &str) -> Result<Scheduler> {
        let spec = Spec::parse("scheduler", text)?;
        if !registry::knows::<Facts>(spec.name()) {
            // Its sentence also says which are for other tasks.
            independent::find(spec.name())?;
        }
        Ok(spec.build(|options| read(&spec, options))?)
    }
}

/// The schedulers of the registry by which a farm deals; it refuses others by name.
const DEALT_BY: [&str; 4] = ["selfsched", "dss", "sads", "sash"];

fn read(spec: &Spec, options: &mut Options<'_>) -> Result<Scheduler, InvalidSpec> {
    match spec.name() {
        "selfsched" => match dealing(options, Rule::Awf)? {
            (Rule::Cyclic | Rule::AwfD | Rule::AwfE, ..) => {
                Err(options.conflict("a farm does not measure what rule=awf-d and awf-e learn from, nor deals before it begins (cyclic)"))
            }
            (rule, rounding, least) => Ok(Scheduler::Rule { rule, rounding, least }),
        },
        "dss" => Ok(Scheduler::Dss),
        "sash" | "sads" => {
            let most = options.whole("expansions", 1u64)?.unwrap_or(1000);
            Ok(Scheduler::Sash { alike: spec.name() == "sads", most: u32::try_from(most).unwrap_or(u32::MAX) })
        }
        _ => Err(options.conflict(format!("a farm does not deal by it; it deals by {}", DEALT_BY.join(", ")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_are_those_of_the_registry() {
        for name in registry::names::<Facts>() {
            match Scheduler::parse(name) {
                Ok(_) => assert!(DEALT_BY.contains(&name), "{name}"),
                Err(why) => assert!(!DEALT_BY.contains(&name) && why.to_string().contains("a farm does not deal by it"), "{name}: {why}"),
            }
        }
        assert!(DEALT_BY.iter().all(|name| registry::knows::<Facts>(name)));
        let known = registry::names::<Facts>().collect::<Vec<_>>().join(", ");
        let there_are = format!("for these there are {known}");
        let rule = |rule| Scheduler::Rule { rule, rounding: None, least: 1 };
        for (text, expected) in [
            ("selfsched:rule=fixed,chunk=4", rule(Rule::Fixed(4))),
            ("selfsched", rule(Rule::Awf)),
            ("selfsched:rule=gss,least=3,rounding=down", Scheduler::Rule { rule: Rule::Gss, rounding: Some(Rounding::Down), least: 3 }),
            ("dss", Scheduler::Dss),
            ("sads:expansions=5", Scheduler::Sash { alike: true, most: 5 }),
        ] {
            assert_eq!(Scheduler::parse(text).unwrap(), expected);
        }
        for (wrong, said) in [
            ("shortest", known.as_str()),
            ("steal", there_are.as_str()),
            ("selfsched:rule=x", "gss"),
            ("selfsched:rule=ss,chunk=2", "chunk belongs to rule=fixed"),
            ("selfsched:rule=fixed,chunk=0", "chunk"),
            ("selfsched:rule=awf-d", "does not measure"),
            ("selfsched:what", "what"),
            ("dss:affinity", "affinity"),
            ("sash:reading=r1", "reading"),
        ] {
            let why = Scheduler::parse(wrong).unwrap_err();
            assert!(why.exit_status() == 2 && why.to_string().contains(said), "{wrong}: {why}");
        }
    }
}
