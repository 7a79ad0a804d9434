//! Why a division was not the fastest way.

use super::SpreadRecord;

/// Smaller differences are within the variation between runs.
const NOTEWORTHY: f64 = 0.02;

/// A sentence, if some baseline was faster.
pub fn not_fastest(record: &SpreadRecord) -> Option<String> {
    let best = record.baselines.iter().filter(|baseline| baseline.ratio < 1.0).min_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
    let gain = 1.0 - best.ratio;
    let first = format!("{} was {:.1} % faster", best.name, 100.0 * gain);
    if gain < NOTEWORTHY {
        return Some(format!("{first}, which is within what two runs of the same differ by"));
    }
    let alone = record.sequential / record.bytes.max(1) as f64;
    let together = record.split.get(record.origin.index()).map_or(0.0, |split| split.achieved.min(split.calibrated));
    let reason = match best.name == super::super::alone(record.origin) && alone < 0.8 * together {
        true => format!(
            "rank {} needs {:.3} ns per byte while the others rest and {:.3} ns while they compute, so the ranks share processors",
            record.origin,
            1e9 * alone,
            1e9 * together
        ),
        false => reason(record),
    };
    Some(format!("{first}: {reason}"))
}

fn reason(record: &SpreadRecord) -> String {
    if !record.predicts {
        return "it was not known before how fast the command is, so all got alike; --sample measures it".into();
    }
    let late = record.makespan / record.predicted.max(1e-12) - 1.0;
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    if late < 0.1 {
        let off = record.split.iter().filter(|split| split.achieved > 0.0).map(|split| split.achieved / split.calibrated.max(1e-18));
        let slowest = off.fold(0.0, f64::max);
        let expected = (0..record.shares.len()).filter(|&rank| record.shares[rank] > 0).map(|rank| record.predicted_finish[rank]);
        let (least, most) = expected.fold((f64::INFINITY, 0.0f64), |(least, most), at| (least.min(at), most.max(at)));
        if most - least > 0.05 * most {
            return format!(
                "shares end where records do, which put the ranks' finishes {} apart in the plan already",
                percent((most - least) / most)
            );
        }
        return match slowest < 0.9 {
            true => "the ranks computed faster than they had when they were measured, so the shares were not the best ones".into(),
            false => format!(
                "the division took what was predicted (within {}), and its plan did not see a better one",
                percent(late.abs().max(0.01))
            ),
        };
    }
    let delay = |rank: usize| record.finish[rank] - record.predicted_finish[rank];
    let Some(last) = (0..record.finish.len()).filter(|&rank| record.shares[rank] > 0).max_by(|&a, &b| delay(a).total_cmp(&delay(b))) else {
        return "no rank had a share".into();
    };
    let split = &record.split[last];
    let slower = split.achieved / split.calibrated.max(1e-18) - 1.0;
    let computing = split.computing - split.calibrated * record.shares[last] as f64;
    if computing > delay(last) / 2.0 && slower > 0.0 {
        format!("rank {last} computed {} slower than when it was measured, which made it {:.3} s late", percent(slower), delay(last))
    } else if delay(last) > 0.0 {
        format!("rank {last} got its share later than the links had promised when they were measured, and was {:.3} s late", delay(last))
    } else {
        format!("the answers came {} later than predicted although every rank finished in time", percent(late))
    }
}
