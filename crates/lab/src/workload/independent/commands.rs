//! A farm's list of commands as tasks of known lengths: which scheduler would have been best for it, on how many ranks?
//!
//! Nothing is run: a command takes the time that the list estimates or that an earlier journal has. In simulation that costs nothing, on real ranks
//! workers sleep.

use equipoise_farm::prepare;

use super::costs::emulated;
use super::{Entry, Facts, Make};
use equipoise::error::Error;
use equipoise::load::{CYCLE, Cost, Costs, MOST};
use equipoise::names;
use equipoise::spec::{InvalidSpec, Options};

pub const ENTRY: Entry = Entry {
    name: "commands",
    title: "a farm's list of commands, which take as long as they are known to",
    source: "none",
    options: "file=LIST (commands with #EQ cost=SECONDS), journal=DIR (of a farm, or a job log of GNU parallel: what they took there, by program and \
              arguments), scale=X (every time is multiplied by X) [1]",
    examples: &[],
    build,
    facts: Facts { answer: "tasks" },
};

/// Cycles in a second.
const CYCLES: f64 = 1e6;

fn build(options: &mut Options<'_>) -> Result<Make, InvalidSpec> {
    let file = match options.value("file")? {
        Some(file) if !file.is_empty() => names::path(file),
        _ => return Err(options.conflict("it needs file=LIST, the list of commands")),
    };
    let journal = options.value("journal")?.map(names::path);
    let scale = options.not_negative("scale")?.unwrap_or(1.0);
    Ok(Make::reading(options, move |setting| {
        let wrong = |why: String| Error::input("workload", format!(" commands:file={}: {why}", names::shown(&file)));
        let times = prepare::times(&file, journal.as_deref()).map_err(|why| wrong(why.to_string()))?;
        let most = MOST as f64 / CYCLE as f64 / CYCLES;
        let mut costs = Vec::with_capacity(times.len() * setting.ranks as usize);
        for (at, seconds) in times.iter().enumerate() {
            let seconds = seconds * scale;
            if !(0.0..=most).contains(&seconds) {
                let why = format!("task {} takes {seconds} s; it must be 0 to {most} s; scale=0.001 makes milliseconds of seconds", at + 1);
                return Err(wrong(why));
            }
            let cost = (seconds * CYCLES * CYCLE as f64).round() as Cost;
            costs.extend(std::iter::repeat_n(cost, setting.ranks as usize));
        }
        let costs = Costs::new(setting.ranks, costs).ok_or_else(|| wrong("there are no ranks".into()))?;
        Ok(emulated(costs, Vec::new()))
    }))
}

#[cfg(test)]
mod tests {
    use super::super::{Setting, find};
    use super::*;

    fn costs(spec: &str, ranks: u32) -> Result<Costs, String> {
        let setting = Setting { seed: 1, ranks, is_simulated: true };
        let chosen = find(spec).map_err(|why| why.to_string())?.unwrap();
        chosen.problem(&setting).map(|problem| problem.costs).map_err(|why| why.to_string())
    }

    #[test]
    fn commands_take_what_the_list_or_a_journal_says() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let list = file("jobs", "# two\nrun a #EQ cost=2\n\nrun b\n");
        assert!(costs(&format!("commands:file={list}"), 2).unwrap_err().contains("line 4: it is not known how long it takes"));
        let log =
            file("log", "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n2\th\t1.0\t0.5\t0\t0\t0\t0\trun b\n");
        let known = costs(&format!("commands:file={list},journal={log}"), 3).unwrap();
        let second = 1_000_000 * CYCLE;
        assert_eq!(known.rows().map(<[Cost]>::to_vec).collect::<Vec<_>>(), [vec![2 * second; 3], vec![second / 2; 3]]);
        assert_eq!(costs(&format!("commands:file={list},journal={log},scale=0.5"), 1).unwrap().of(0, 0), second);
        let long = file("long", "run #EQ cost=2000\n");
        assert!(costs(&format!("commands:file={long}"), 1).unwrap_err().contains("it must be 0 to 1000 s"));
        for wrong in ["-5", "nan", "inf"] {
            let log = file(
                "wrong",
                &format!(
                    "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n2\th\t1.0\t{wrong}\t0\t0\t0\t0\trun b\n"
                ),
            );
            assert!(costs(&format!("commands:file={list},journal={log}"), 1).is_err(), "{wrong}");
        }
        let after = file("after", "run #EQ cost=1\nrun #EQ cost=1 after=1\n");
        assert!(costs(&format!("commands:file={after}"), 1).unwrap_err().contains("line 2: a comparison has independent tasks only"));
        assert!(costs("commands:scale=2", 1).unwrap_err().contains("it needs file=LIST"));
    }
}
