//! Claims of Ahmad, Ghafoor and Fox 1994, judged.

use super::super::claims::{Claim, Finding, number, numbers, rises, with_interval};
use super::super::evidence::{Decision, Mean, all_above, all_below, any_above, difference, paired, ratio};
use super::super::{Item, Point, Points};
use super::{BEYOND, CLAIM, LONGER, best, section_3, section_4};

/// The curves of both strategies, under the reading.
const STRATEGIES: [&str; 2] = ["hierarchical", "distributed"];

/// Ratio of a substantially shorter response to the other one: the paper gives no number, and means the same by the word wherever it has it.
const SUBSTANTIALLY: f64 = 0.8;
/// [`SUBSTANTIALLY`] as a reading.
const BY_A_FIFTH: &str = "neighbours announce their loads every half unit of time; substantially: by a fifth at least";
/// Maximum ratio to a marginally, or slightly, shorter response: one that is longer by more than this is more than slightly longer.
const SLIGHTLY: f64 = 1.1;

pub(super) fn all() -> Vec<Claim> {
    let mut claims = section_3::claims();
    claims.extend(section_4::claims());
    claims.extend(load());
    claims.extend(parallelism());
    claims.extend(communication());
    claims
}

/// A curve of a figure, from one place to another.
fn part<'a>(points: &'a Points, figure: u32, curve: &'a str, from: f64, to: f64) -> Vec<&'a Point> {
    points.curve(Item::Figure(figure), curve).into_iter().filter(|point| (from..=to).contains(&point.x)).collect()
}

/// How much the second curve of each pair lies above the first.
fn gaps(lower: &[&Point], upper: &[&Point]) -> Vec<(Mean, f64)> {
    lower.iter().zip(upper).map(|(lower, upper)| (difference(&upper.mean, &lower.mean), 0.0)).collect()
}

/// Values of both strategies of a figure at one place; the last part of their curves' names is given.
struct Both<'a> {
    hierarchical: &'a Point,
    distributed: &'a Point,
    longer: &'a Point,
}

impl Both<'_> {
    fn at<'a>(points: &'a Points, item: Item, name: &str, x: f64) -> Option<Both<'a>> {
        let at = |curve: &str| points.at(item, &format!("{curve}{name}"), x);
        Some(Both { hierarchical: at("hierarchical")?, distributed: at("distributed")?, longer: at(LONGER)? })
    }

    /// Excess of this part of the distributed strategy's response over this part of the other's. Both had the same graphs.
    fn excess(&self, of_distributed: f64, of_hierarchical: f64) -> Mean {
        paired((&self.distributed.mean, of_distributed), (&self.hierarchical.mean, of_hierarchical), &self.longer.mean)
    }
}

/// Both strategies of a figure from one place to another.
fn both<'a>(points: &'a Points, figure: u32, name: &str, from: f64, to: f64) -> Vec<Both<'a>> {
    let item = Item::Figure(figure);
    let curve = format!("hierarchical{name}");
    let here = points.of(item).into_iter().filter(|point| point.curve == curve && (from..=to).contains(&point.x));
    here.filter_map(|point| Both::at(points, item, name, point.x)).collect()
}

/// Whether hierarchical scheduling needs no more than this part of the distributed strategy's response from one place to another; the last parts of
/// the curves' names.
fn better(points: &Points, figure: u32, names: &[&str], (from, to): (f64, f64), part: f64) -> Option<Finding> {
    let (mut all, mut away, mut ours) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        let both = both(points, figure, name, from, to);
        away.extend(both.iter().map(|both| (both.excess(part, 1.0), 0.0)));
        ours.push(against_each_other(&both));
        all.extend(both);
    }
    compared(all_above(&away), &all, ours.join("; "))
}

/// Values of both strategies.
fn against_each_other(both: &[Both<'_>]) -> String {
    let of = |which: for<'a> fn(&Both<'a>) -> &'a Point| numbers(&both.iter().map(which).collect::<Vec<_>>());
    format!("{} against {}", of(|both| both.hierarchical), of(|both| both.distributed))
}

/// A finding from both strategies. At a single place one figure is compared: how much longer responses take under the distributed one.
fn compared(holds: Decision, both: &[Both<'_>], ours: String) -> Option<Finding> {
    let points: Vec<&Point> = both.iter().map(|both| both.hierarchical).collect();
    match both {
        [Both { longer, .. }] => {
            let found = Finding::new(holds, &points, format!("{ours}; {LONGER} {}", number(longer)))?;
            Some(found.of_one(longer.low, longer.high))
        }
        _ => Finding::new(holds, &points, ours),
    }
}

/// How much a curve's last point lies above this many times its first.
fn rise(points: &[&Point], factor: f64) -> Option<(Mean, f64)> {
    let (first, last) = (points.first()?, points.last()?);
    Some((difference(&last.mean, &first.mean.times(factor)), 0.0))
}

fn load() -> Vec<Claim> {
    vec![
        Claim {
            id: "hierarchical-figure-6",
            items: &[Item::Figure(6)],
            says: "Binary trees: hierarchical scheduling is substantially faster, loads 0.4 to 0.9",
            reading: BY_A_FIFTH,
            why: "from load 0.7 on it is; at 0.6 the response is shorter by a tenth, at 0.5 by 3 %, and at 0.4 by less than 1 %",
            judge: |points| better(points, 6, &[""], (0.4, 0.9), SUBSTANTIALLY),
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-6-load",
            items: &[Item::Figure(6)],
            says: "The response times of both strategies increase with the load, from each of 0.4 to 0.9 to the next",
            why: "one of them does not increase from some load to the next",
            judge: |points| {
                let curves = STRATEGIES.map(|strategy| part(points, 6, strategy, 0.4, 0.9));
                let grows: Vec<_> = curves.iter().flat_map(|curve| rises(curve)).collect();
                Finding::new(all_above(&grows), &curves.concat(), format!("{}; {}", numbers(&curves[0]), numbers(&curves[1])))
            },
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-6-smooth",
            items: &[Item::Figure(6)],
            says: "Its response time is rather even from load 0.4 to 0.7",
            reading: "neighbours announce their loads every half unit of time; rather even: within 10 % of its value at 0.4",
            judge: |points| {
                let curve = part(points, 6, "hierarchical", 0.4, 0.7);
                Finding::new(all_above(&within(&curve, 0.1)?), &curve, numbers(&curve))
            },
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-6-high",
            items: &[Item::Figure(6)],
            says: "At load 0.9 hierarchical scheduling is still substantially better",
            reading: BY_A_FIFTH,
            why: "the response is shorter by less",
            judge: |points| better(points, 6, &[""], (0.9, 0.9), SUBSTANTIALLY),
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-7",
            items: &[Item::Figure(7)],
            says: "Ternary trees: hierarchical scheduling is faster, loads 0.4 to 0.9",
            judge: |points| better(points, 7, &[""], (0.4, 0.9), 1.0),
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-7-down",
            items: &[Item::Figure(6), Item::Figure(7)],
            says: "At low load its curve lies below that of binary trees (0.4, 0.5)",
            judge: |points| shifted(points, [6, 7], "hierarchical", false),
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-7-up",
            items: &[Item::Figure(6), Item::Figure(7)],
            says: "At low load the distributed curve lies above that of binary trees (0.4, 0.5)",
            why: "it lies below it, as that of hierarchical scheduling does: with 20 migrations a unit shorter tasks gain more than further migrations cost. With 10, which is not what the text says, it lies above (`--section 6`)",
            judge: |points| shifted(points, [6, 7], "distributed", true),
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-8",
            items: &[Item::Figure(8)],
            says: "Quaternary trees: hierarchical scheduling is faster, loads 0.4 to 0.9",
            judge: |points| better(points, 8, &[""], (0.4, 0.9), 1.0),
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-8-up",
            items: &[Item::Figure(7), Item::Figure(8)],
            says: "At low load the distributed curve lies above that of ternary trees (0.4, 0.5)",
            why: "at load 0.5 it does; at 0.4 it lies below. With 10 migrations a unit, which is not what the text says, it lies above at both (`--section 6`)",
            judge: |points| shifted(points, [7, 8], "distributed", true),
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-8-arrivals",
            items: &[Item::Figure(8)],
            says: "With more arrivals responses degrade more under distributed scheduling",
            reading: "neighbours announce their loads every half unit of time; the difference of the strategies grows from each of the loads 0.4 to 0.9 to the next",
            why: "it does not grow from some load to the next",
            judge: |points| {
                let gaps = part(points, 8, LONGER, 0.4, 0.9);
                Finding::new(all_above(&rises(&gaps)), &gaps, numbers(&gaps))
            },
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-8-gap",
            items: &[Item::Figure(6), Item::Figure(7), Item::Figure(8)],
            says: "At low load (0.4, 0.5) the difference of the strategies is larger than with ternary trees, and with these larger than with binary trees",
            why: "it does not grow so",
            judge: |points| {
                let (mut grows, mut ours, mut all) = (Vec::new(), Vec::new(), Vec::new());
                for load in [0.4, 0.5] {
                    let gaps =
                        [6, 7, 8].map(|figure| points.at(Item::Figure(figure), LONGER, load)).into_iter().collect::<Option<Vec<_>>>()?;
                    grows.extend(rises(&gaps));
                    ours.push(numbers(&gaps));
                    all.extend(gaps);
                }
                Finding::new(all_above(&grows), &all, ours.join("; "))
            },
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-9-low",
            items: &[Item::Figure(9)],
            says: "Chains: at low load (0.4) distributed scheduling is marginally better",
            reading: "neighbours announce their loads every half unit of time; marginally: by less than 10 %",
            why: "the order is the other one, or the difference is larger",
            judge: |points| slightly_worse(points, 9, "", 0.4, 0.4),
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-9-high",
            items: &[Item::Figure(9)],
            says: "Chains: above load 0.5 hierarchical scheduling is better (0.6 to 0.9)",
            judge: |points| better(points, 9, &[""], (0.6, 0.9), 1.0),
            ..CLAIM
        },
    ]
}

/// Whether the distributed strategy is better from one place to another, but only slightly so.
fn slightly_worse(points: &Points, figure: u32, name: &str, from: f64, to: f64) -> Option<Finding> {
    let both = both(points, figure, name, from, to);
    let away: Vec<_> = both.iter().flat_map(|both| [(both.excess(-1.0, -1.0), 0.0), (both.excess(SLIGHTLY, 1.0), 0.0)]).collect();
    compared(all_above(&away), &both, against_each_other(&both))
}

/// Whether a curve of the second figure lies above, or below, that of the first at low load.
fn shifted(points: &Points, [first, second]: [u32; 2], curve: &str, up: bool) -> Option<Finding> {
    let (before, after) = (part(points, first, curve, 0.4, 0.5), part(points, second, curve, 0.4, 0.5));
    let gaps = gaps(&before, &after);
    let holds = if up { all_above(&gaps) } else { all_below(&gaps) };
    Finding::new(holds, &after, format!("{} against {}", numbers(&after), numbers(&before)))
}

/// How much each later point of a curve stays within a part of its first, upwards and downwards.
fn within(points: &[&Point], part: f64) -> Option<Vec<(Mean, f64)>> {
    let (first, later) = points.split_first()?;
    let room = |point: &&Point| {
        [difference(&first.mean.times(1.0 + part), &point.mean), difference(&point.mean, &first.mean.times(1.0 - part))]
            .map(|room| (room, 0.0))
    };
    Some(later.iter().flat_map(room).collect())
}

const LOADS: [&str; 2] = [", load 0.5", ", load 0.8"];

/// A strategy's curves for both loads.
fn at_loads<'a>(points: &'a Points, figure: u32, strategy: &str) -> [Vec<&'a Point>; 2] {
    LOADS.map(|load| named(points, figure, &format!("{strategy}{load}")))
}

fn named<'a>(points: &'a Points, figure: u32, curve: &str) -> Vec<&'a Point> {
    points.of(Item::Figure(figure)).into_iter().filter(|point| point.curve == curve).collect()
}

fn at_both(curves: &[Vec<&Point>; 2]) -> String {
    format!("load 0.5: {}; load 0.8: {}", numbers(&curves[0]), numbers(&curves[1]))
}

/// The values of [`STRATEGIES`] at both loads.
fn of_both(strategies: &[[Vec<&Point>; 2]; 2]) -> String {
    STRATEGIES.iter().zip(strategies).map(|(strategy, curves)| format!("{strategy}, {}", at_both(curves))).collect::<Vec<_>>().join("; ")
}

fn parallelism() -> Vec<Claim> {
    const FLAT: &str = "the response does not grow by 2 %, nor does it with slower migrations (4 a unit); why is not known";
    let section = Claim { place: "section 6.2", ..CLAIM };
    vec![
        Claim {
            id: "hierarchical-figure-10",
            items: &[Item::Figure(10)],
            says: "Roots with 2 to 12 children: hierarchical scheduling is faster at loads 0.5 and 0.8",
            judge: |points| better(points, 10, &LOADS, (2.0, 12.0), 1.0),
            ..section
        },
        Claim {
            id: "hierarchical-figure-10-gap",
            items: &[Item::Figure(10)],
            says: "The difference of the strategies grows with the number of children, at loads 0.5 and 0.8",
            reading: "neighbours announce their loads every half unit of time; from each number to the next but one",
            why: "at load 0.5 it does; at load 0.8 it first falls, from 2 to 4 children, and grows from there",
            judge: |points| {
                let gaps = LOADS.map(|load| named(points, 10, &format!("{LONGER}{load}")));
                let grows = gaps.iter().flat_map(|curve| curve.windows(3).map(|three| (difference(&three[2].mean, &three[0].mean), 0.0)));
                Finding::new(all_above(&grows.collect::<Vec<_>>()), &gaps.concat(), at_both(&gaps))
            },
            ..section
        },
        Claim {
            id: "hierarchical-figure-10-load",
            items: &[Item::Figure(10)],
            says: "It is larger at load 0.8 than at 0.5",
            why: "it is not, for some number of children",
            judge: |points| {
                let gaps = LOADS.map(|load| named(points, 10, &format!("{LONGER}{load}")));
                let larger: Vec<_> = gaps[1].iter().zip(&gaps[0]).map(|(high, low)| (difference(&high.mean, &low.mean), 0.0)).collect();
                Finding::new(all_above(&larger), &gaps.concat(), at_both(&gaps))
            },
            ..section
        },
        Claim {
            id: "hierarchical-figure-10-rise",
            items: &[Item::Figure(10)],
            says: "The response time of both strategies first decreases with the number of children, then increases",
            reading: "neighbours announce their loads every half unit of time; at loads 0.5 and 0.8; from the least by 2 % at least up to 12 children",
            why: "under hierarchical scheduling it does not rise again by 2 % up to 12 children, nor under distributed scheduling at load 0.5, as it does at 0.8: with 20 migrations a unit, waiting for the last child to arrive costs less than shorter tasks gain. With 4 a unit it rises from 4 children on (scripts/figures/ahmad-10.toml)",
            judge: |points| {
                let strategies = STRATEGIES.map(|strategy| at_loads(points, 10, strategy));
                let mut holds = Decision::Yes;
                for curve in strategies.iter().flatten() {
                    let (last, earlier) = curve.split_last()?;
                    let rises: Vec<_> = earlier.iter().map(|point| (difference(&last.mean, &point.mean.times(1.02)), 0.0)).collect();
                    let falls: Vec<_> = earlier.iter().skip(1).map(|point| (difference(&earlier[0].mean, &point.mean), 0.0)).collect();
                    holds = holds.and(any_above(&rises)).and(any_above(&falls));
                }
                Finding::new(holds, &strategies.concat().concat(), of_both(&strategies))
            },
            ..section
        },
        Claim {
            id: "hierarchical-figure-10-best",
            items: &[Item::Figure(10)],
            says: "The number of children with the shortest response is smaller under distributed scheduling",
            reading: "neighbours announce their loads every half unit of time; of 2 to 12 children, at load 0.5 also of 15, 18, 21 and 24, since the \
                      hierarchical response still falls where the figure ends",
            why: "it is no smaller at one of the loads",
            judge: |points| {
                let [ours, theirs] = STRATEGIES.map(|strategy| {
                    let mut curves = at_loads(points, 10, strategy);
                    curves[0].extend(named(points, 10, &format!("{strategy}{BEYOND}")));
                    curves
                });
                let (holds, text) = best::is_earlier(&theirs, &ours)?;
                Finding::new(holds, &[theirs.concat(), ours.concat()].concat(), format!("load 0.5: {}; load 0.8: {}", text[0], text[1]))
            },
            ..section
        },
        Claim {
            id: "hierarchical-figure-11-high",
            items: &[Item::Figure(11)],
            says: "Chains of up to 1 to 9 tasks more: at load 0.8 the response of both strategies increases slightly",
            reading: "neighbours announce their loads every half unit of time; by 2 % at least from the shortest to the longest",
            why: FLAT,
            judge: |points| {
                let curves = ["hierarchical, load 0.8", "distributed, load 0.8"].map(|curve| points.curve(Item::Figure(11), curve));
                let rises = [rise(&curves[0], 1.02)?, rise(&curves[1], 1.02)?];
                Finding::new(all_above(&rises), &curves[0], format!("{}; {}", numbers(&curves[0]), numbers(&curves[1])))
            },
            ..section
        },
        Claim {
            id: "hierarchical-figure-11-low",
            items: &[Item::Figure(11)],
            says: "At load 0.5 it does not change significantly",
            reading: "neighbours announce their loads every half unit of time; by less than 10 % of its first value for hierarchical scheduling",
            why: "it changes by more than 10 %; why was not examined",
            judge: |points| {
                let curve = points.curve(Item::Figure(11), "hierarchical, load 0.5");
                Finding::new(all_above(&within(&curve, 0.1)?), &curve, numbers(&curve))
            },
            ..section
        },
        Claim {
            id: "hierarchical-figure-11-better",
            items: &[Item::Figure(11)],
            says: "At load 0.5 distributed scheduling is slightly better",
            reading: "neighbours announce their loads every half unit of time; slightly: by less than 10 %",
            why: "the order is the other one for some length, or the difference is larger",
            judge: |points| slightly_worse(points, 11, ", load 0.5", 1.0, 9.0),
            ..section
        },
        Claim {
            id: "hierarchical-figure-12",
            items: &[Item::Figure(12)],
            says: "Binary trees of 1 to 4 levels: hierarchical scheduling remains superior at loads 0.5 and 0.8",
            judge: |points| better(points, 12, &LOADS, (1.0, 4.0), 1.0),
            ..section
        },
        Claim {
            id: "hierarchical-figure-12-rise",
            items: &[Item::Figure(12)],
            says: "The response increases with the number of levels at both loads",
            reading: "that of hierarchical scheduling, by 2 % at least from one level to four",
            why: "it does not rise at both loads: with 20 migrations a unit the way to a further level costs less than shorter tasks gain. With 4 a unit it rises at both (scripts/figures/ahmad-12.toml)",
            judge: |points| {
                let curves = at_loads(points, 12, "hierarchical");
                Finding::new(all_above(&[rise(&curves[0], 1.02)?, rise(&curves[1], 1.02)?]), &curves.concat(), at_both(&curves))
            },
            ..section
        },
    ]
}

fn communication() -> Vec<Claim> {
    let section = Claim { place: "section 6.3", items: &[Item::Figure(13), Item::Figure(14), Item::Figure(15), Item::Figure(16)], ..CLAIM };
    vec![
        Claim {
            id: "hierarchical-figure-13-falls",
            items: &[Item::Figure(13), Item::Figure(14)],
            says: "At loads 0.5 and 0.6 the response falls rapidly from rate 4 to 12, then saturates",
            reading: "the curves of hierarchical scheduling; they fall by 10 % at least up to rate 12, and by less than that from 12 to 36",
            why: "they fall by less up to rate 12, or by more than 10 % after it; why was not examined",
            judge: |points| {
                let curves = [13, 14].map(|figure| points.curve(Item::Figure(figure), "hierarchical"));
                let at = |curve: &[&Point], rate: f64| curve.iter().find(|point| point.x == rate).map(|point| point.mean);
                let mut falls = Vec::new();
                for curve in &curves {
                    let (slow, middle, fast) = (at(curve, 4.0)?, at(curve, 12.0)?, at(curve, 36.0)?);
                    falls.extend([difference(&slow.times(0.9), &middle), difference(&fast, &middle.times(0.9))].map(|mean| (mean, 0.0)));
                }
                Finding::new(all_above(&falls), &curves[0], format!("{}; {}", numbers(&curves[0]), numbers(&curves[1])))
            },
            ..section
        },
        Claim {
            id: "hierarchical-figure-15-sharper",
            says: "At loads 0.7 and 0.8 it falls more sharply",
            reading: "than at 0.5, by the difference of rates 4 and 36 under hierarchical scheduling",
            judge: |points| {
                let fall = |figure| {
                    let at = |rate| points.at(Item::Figure(figure), "hierarchical", rate);
                    Some(difference(&at(4.0)?.mean, &at(36.0)?.mean))
                };
                let (low, high) = (fall(13)?, [fall(15)?, fall(16)?]);
                let sharper: Vec<_> = high.iter().map(|high| (difference(high, &low), 0.0)).collect();
                let all = points.curve(Item::Figure(16), "hierarchical");
                Finding::new(
                    all_above(&sharper),
                    &all,
                    format!(
                        "by {} at 0.5, {} and {} at 0.7 and 0.8",
                        with_interval(&low),
                        with_interval(&high[0]),
                        with_interval(&high[1])
                    ),
                )
            },
            ..section
        },
        Claim {
            id: "hierarchical-figure-15-saturates",
            says: "At loads 0.7 and 0.8 it saturates at a higher rate than at 0.5 and 0.6",
            reading: "the response of hierarchical scheduling at rate 12, from where on the text has those of 0.5 and 0.6 saturate, over that at 36: larger than at either of these",
            why: "at one of them it is no further from where it saturates",
            judge: |points| {
                let left = |figure| {
                    let at = |rate| points.at(Item::Figure(figure), "hierarchical", rate);
                    Some(ratio(&at(12.0)?.mean, &at(36.0)?.mean))
                };
                let (low, high) = ([left(13)?, left(14)?], [left(15)?, left(16)?]);
                let more: Vec<_> = high.iter().flat_map(|high| low.map(|low| (difference(high, &low), 0.0))).collect();
                let [half, six, seven, eight] = [&low[0], &low[1], &high[0], &high[1]].map(with_interval);
                let ours = format!("{seven} and {eight} times at 0.7 and 0.8, {half} and {six} at 0.5 and 0.6");
                Finding::new(all_above(&more), &points.curve(Item::Figure(16), "hierarchical"), ours)
            },
            ..section
        },
        Claim {
            id: "hierarchical-figure-16-gap",
            says: "At high rates the difference of the strategies grows with the load",
            reading: "neighbours announce their loads every half unit of time; at rate 36, from 0.5 to 0.8",
            judge: |points| {
                let gap = |figure| Some(points.at(Item::Figure(figure), LONGER, 36.0)?.mean);
                let gaps = [gap(13)?, gap(14)?, gap(15)?, gap(16)?];
                let grows: Vec<_> = gaps.windows(2).map(|pair| (difference(&pair[1], &pair[0]), 0.0)).collect();
                let all = points.curve(Item::Figure(16), "hierarchical");
                Finding::new(all_above(&grows), &all, gaps.each_ref().map(with_interval).join(", "))
            },
            ..section
        },
    ]
}
