//! Advice for people: the answer first, then its reasons.

use super::columns::{Column, Tabular};
use super::figures::{duration_us, ratio, several, three, whole};
use super::table::{lines, of};
use crate::experiment::advise::AdviceRecord;
use equipoise::advice::{Advice, Choice};

impl Tabular for Choice {
    fn columns() -> Vec<Column<Self>> {
        let new = Column::<Self>::new;
        vec![
            new("balancer", |choice| choice.balancer.clone()).heading("balancer").left(),
            new("topology", |choice| choice.topology.clone()).heading("topology").left(),
            new("gain_seconds", |choice| choice.gain_seconds.to_string()).heading("gain").reads(|choice| time(choice.gain_seconds)),
            new("cost_seconds", |choice| choice.cost_seconds.to_string()).heading("cost").reads(|choice| time(choice.cost_seconds)),
        ]
    }
}

fn time(seconds: f64) -> String {
    if seconds < 0.0 { format!("-{}", duration_us(-seconds * 1e6)) } else { duration_us(seconds * 1e6) }
}

/// The answer, for a width in characters.
pub fn text(record: &AdviceRecord, width: u16) -> String {
    let AdviceRecord { steps, advice, .. } = record;
    let Advice { balancer, topology, .. } = advice;
    let sure = format!("certainty {} %", (100.0 * advice.certainty).floor());
    let verdict = match (advice.pays, advice.about_even) {
        (_, true) => format!("Gain and cost are about even ({sure}): balancing neither pays nor costs much."),
        (true, false) => format!("Balancing pays ({sure}): {balancer} on {topology}."),
        (false, false) => format!("Balancing does not pay ({sure})."),
    };
    let over = if *steps == 1 { "in one step".to_string() } else { format!("over {}", several(*steps, "step")) };
    let network = if record.measured { "measured" } else { "assumed, not measured" };
    let mut out = format!(
        "{verdict}\n\n{}, loads {}, tasks of {} and {} B, network {} ({network})\n\
         A step takes {} now (imbalance {}) and {} with {balancer}: {} gained {over}, at a cost of {}.\n",
        several(record.ranks.into(), "rank"),
        record.loads,
        time(record.task_seconds),
        whole(record.payload),
        record.network,
        time(advice.before_seconds),
        ratio(advice.imbalance),
        time(advice.after_seconds),
        time(advice.gain_seconds),
        time(advice.cost_seconds),
    );
    let mut least = Vec::new();
    least.extend(advice.crossover_task_seconds.map(|seconds| format!("from tasks of {}", time(seconds))));
    least.extend(advice.crossover_imbalance.map(|imbalance| format!("from an imbalance of {}", three(imbalance))));
    least.extend(advice.crossover_steps.map(|steps| format!("from {}", several(steps, "step"))));
    out.push_str(&match &least[..] {
        [] => "Nothing would make it pay.\n".to_string(),
        least => format!("All else being equal it pays {}.\n", least.join(", ")),
    });
    let arriving = time(advice.crossover_arriving_seconds);
    out.push_str(&format!(
        "A single task that arrives on a busy rank is worth sending to an idle one if it takes more than {arriving}.\n\n"
    ));
    out.push_str(&lines(&of(&advice.choices, width)));
    out
}
