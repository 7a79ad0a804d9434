//! What Ahmad, Ghafoor and Fox 1994 say, judged.

use super::super::claims::{Claim, Finding, short};
use super::super::evidence::{Decision, Mean, all_above, all_below, any_above, difference};
use super::super::{Item, Point, Points};

const CLAIM: Claim = Claim { id: "", place: "section 6.1", items: &[], says: "", number: "", reading: AGE, why: "", judge: |_| None };

const AGE: &str = "neighbours announce their loads every half unit of time";

pub(super) fn all() -> Vec<Claim> {
    let mut claims = section_4();
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

/// Whether the hierarchical curves lie below the distributed ones from one place to another; their names after the strategy's.
fn better(points: &Points, figure: u32, names: &[&str], from: f64, to: f64) -> Option<Finding> {
    let (mut all, mut away, mut ours) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        let [hierarchical, distributed] = ["hierarchical", "distributed"].map(|strategy| {
            let here = |point: &&Point| point.curve == format!("{strategy}{name}") && (from..=to).contains(&point.x);
            points.of(Item::Figure(figure)).into_iter().filter(here).collect::<Vec<_>>()
        });
        away.extend(gaps(&hierarchical, &distributed));
        ours.push(format!("{} against {}", values(&hierarchical), values(&distributed)));
        all.extend(hierarchical);
    }
    Finding::new(all_above(&away), &all, ours.join("; "))
}

fn values(points: &[&Point]) -> String {
    points.iter().map(|point| format!("{:.2}", point.value)).collect::<Vec<_>>().join(", ")
}

/// How much a curve's last point lies above this many times its first.
fn rise(points: &[&Point], factor: f64) -> Option<(Mean, f64)> {
    let (first, last) = (points.first()?, points.last()?);
    Some((difference(&last.mean, &first.mean.times(factor)), 0.0))
}

fn section_4() -> Vec<Claim> {
    let section = Claim { items: &[Item::Section(4)], ..CLAIM };
    fn of<'a>(points: &'a Points, what: &str, strategy: &str) -> Vec<&'a Point> {
        let name = format!("{what}, {strategy}");
        points.of(Item::Section(4)).into_iter().filter(|point| point.curve == name).collect()
    }
    vec![
        Claim {
            id: "hierarchical-locality",
            place: "section 4.3.3",
            says: "Tasks run nearer to their parents than under distributed scheduling (loads 0.5 and 0.8)",
            reading: "neighbours announce their loads every half unit of time; the section's increased locality: mean hops from where a task is born, without roots, to where it runs",
            why: "a task of the hierarchical scheme migrates less often, but up to three hops at once; one of the baseline goes one hop at each migration",
            judge: |points| {
                let what = "hops from birth to execution";
                let (hierarchical, distributed) = (of(points, what, "hierarchical"), of(points, what, "distributed"));
                let ours = format!("{} against {} hops", values(&hierarchical), values(&distributed));
                Finding::new(all_above(&gaps(&hierarchical, &distributed)), &hierarchical, ours)
            },
            ..section
        },
        Claim {
            id: "hierarchical-sphere",
            place: "section 4.3.3",
            says: "All tasks of a graph stay within one sphere",
            number: "at most 4 hops, the diameter of a sphere of radius 2",
            reading: "regions are disjoint, with a diameter of 3",
            judge: |points| {
                let most = of(points, "most hops from birth to execution", "hierarchical");
                Finding::new(Decision::of(most.iter().all(|point| point.value <= 4.0)), &most, format!("at most {}", values(&most)))
            },
            ..section
        },
        Claim {
            id: "hierarchical-migrations",
            place: "section 4.3.4",
            says: "A task migrates at most once, and less often than under distributed scheduling",
            number: "at most 1",
            judge: |points| {
                let what = "migrations of a task";
                let (hierarchical, distributed) = (of(points, what, "hierarchical"), of(points, what, "distributed"));
                let fewer = hierarchical.iter().zip(&distributed).all(|(ours, theirs)| ours.value < theirs.value);
                let ours = format!("{} against {}", values(&hierarchical), values(&distributed));
                Finding::new(Decision::of(fewer && hierarchical.iter().all(|point| point.value <= 1.0)), &hierarchical, ours)
            },
            ..section
        },
    ]
}

fn load() -> Vec<Claim> {
    vec![
        Claim {
            id: "hierarchical-figure-6",
            items: &[Item::Figure(6)],
            says: "Binary trees: hierarchical scheduling is substantially faster, loads 0.5 to 0.9",
            reading: "neighbours announce their loads every half unit of time; substantially: by any amount. The figure begins at 0.4",
            judge: |points| better(points, 6, &[""], 0.5, 0.9),
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-6-smooth",
            items: &[Item::Figure(6)],
            says: "Its response time is rather even from load 0.4 to 0.7",
            reading: "neighbours announce their loads every half unit of time; rather even: within 10 % of its value at 0.4",
            judge: |points| {
                let curve = part(points, 6, "hierarchical", 0.4, 0.7);
                Finding::new(all_above(&within(&curve, 0.1)?), &curve, values(&curve))
            },
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-6-high",
            items: &[Item::Figure(6)],
            says: "At load 0.9 hierarchical scheduling is still substantially better",
            reading: "neighbours announce their loads every half unit of time; substantially: by a fifth at least",
            judge: |points| {
                let (ours, theirs) = (points.at(Item::Figure(6), "hierarchical", 0.9)?, points.at(Item::Figure(6), "distributed", 0.9)?);
                let holds = all_above(&[(difference(&theirs.mean.times(0.8), &ours.mean), 0.0)]);
                Finding::new(holds, &[ours, theirs], format!("{} against {}", short(ours.value), short(theirs.value)))
            },
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-7",
            items: &[Item::Figure(7)],
            says: "Ternary trees: hierarchical scheduling is faster, loads 0.4 to 0.9",
            judge: |points| better(points, 7, &[""], 0.4, 0.9),
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-7-down",
            items: &[Item::Figure(6), Item::Figure(7)],
            says: "At low load its curve lies below that of binary trees (0.4, 0.5)",
            judge: |points| shifted(points, "hierarchical", false),
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-7-up",
            items: &[Item::Figure(6), Item::Figure(7)],
            says: "At low load the distributed curve lies above that of binary trees (0.4, 0.5)",
            why: "it lies below it, as that of hierarchical scheduling does: with 20 migrations a unit shorter tasks gain more than further migrations cost (the next line)",
            judge: |points| shifted(points, "distributed", true),
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-7-slower",
            items: &[Item::Section(6)],
            says: "From binary to ternary trees the distributed curve moves up at low load and that of hierarchical scheduling down; from ternary to quaternary trees the distributed one moves up further (0.4, 0.5)",
            reading: "each migration takes twice as long as the text says, as an exchange of two messages would: 10 a unit; neighbours announce their loads every half unit of time",
            why: "one of the curves does not move so",
            judge: |points| {
                let curve = |strategy: &str, load: &str| -> Vec<&Point> {
                    points.of(Item::Section(6)).into_iter().filter(|point| point.curve == format!("{strategy}, load {load}")).collect()
                };
                let (mut moves, mut ours, mut all) = (Vec::new(), Vec::new(), Vec::new());
                for load in ["0.4", "0.5"] {
                    let (distributed, hierarchical) = (curve("distributed", load), curve("hierarchical", load));
                    moves.extend(distributed.windows(2).map(|pair| (difference(&pair[1].mean, &pair[0].mean), 0.0)));
                    moves.push((difference(&hierarchical.first()?.mean, &hierarchical.get(1)?.mean), 0.0));
                    ours.push(format!("distributed {}, hierarchical {}", values(&distributed), values(&hierarchical)));
                    all.extend(distributed);
                }
                Finding::new(all_above(&moves), &all, ours.join("; "))
            },
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-8",
            items: &[Item::Figure(8)],
            says: "Quaternary trees: hierarchical scheduling is faster, loads 0.4 to 0.9",
            judge: |points| better(points, 8, &[""], 0.4, 0.9),
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-8-gap",
            items: &[Item::Figure(6), Item::Figure(8)],
            says: "At low load (0.4) the difference is larger than with binary trees",
            judge: |points| {
                let gap = |figure| {
                    let at = |curve| points.at(Item::Figure(figure), curve, 0.4);
                    Some(difference(&at("distributed")?.mean, &at("hierarchical")?.mean))
                };
                let (binary, quaternary) = (gap(6)?, gap(8)?);
                let holds = all_above(&[(difference(&quaternary, &binary), 0.0)]);
                let all = points.curve(Item::Figure(8), "hierarchical");
                Finding::new(holds, &all, format!("{:.2} against {:.2}", quaternary.value, binary.value))
            },
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-9-low",
            items: &[Item::Figure(9)],
            says: "Chains: at low load (0.4) distributed scheduling is marginally better",
            reading: "neighbours announce their loads every half unit of time; marginally: by less than 10 %",
            why: "the order is the other one, or the difference is larger",
            judge: |points| {
                let (ours, theirs) = (points.at(Item::Figure(9), "hierarchical", 0.4)?, points.at(Item::Figure(9), "distributed", 0.4)?);
                let better = difference(&ours.mean, &theirs.mean);
                let marginally = difference(&theirs.mean.times(1.1), &ours.mean);
                Finding::new(
                    all_above(&[(better, 0.0), (marginally, 0.0)]),
                    &[ours, theirs],
                    format!("{} against {}", short(ours.value), short(theirs.value)),
                )
            },
            ..CLAIM
        },
        Claim {
            id: "hierarchical-figure-9-high",
            items: &[Item::Figure(9)],
            says: "Chains: above load 0.5 hierarchical scheduling is better (0.6 to 0.9)",
            judge: |points| better(points, 9, &[""], 0.6, 0.9),
            ..CLAIM
        },
    ]
}

/// Whether a curve of figure 7 lies above, or below, that of figure 6 at low load.
fn shifted(points: &Points, curve: &str, up: bool) -> Option<Finding> {
    let (binary, ternary) = (part(points, 6, curve, 0.4, 0.5), part(points, 7, curve, 0.4, 0.5));
    let gaps = gaps(&binary, &ternary);
    let holds = if up { all_above(&gaps) } else { all_below(&gaps) };
    Finding::new(holds, &ternary, format!("{} against {}", values(&ternary), values(&binary)))
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

/// The hierarchical curves for both loads.
fn at_loads(points: &Points, figure: u32) -> [Vec<&Point>; 2] {
    LOADS.map(|load| points.of(Item::Figure(figure)).into_iter().filter(|point| point.curve == format!("hierarchical{load}")).collect())
}

fn at_both(curves: &[Vec<&Point>; 2]) -> String {
    format!("load 0.5: {}; load 0.8: {}", values(&curves[0]), values(&curves[1]))
}

fn parallelism() -> Vec<Claim> {
    const FLAT: &str = "the response does not grow by 2 %, nor does it with slower migrations (4 a unit); why is not known";
    let section = Claim { place: "section 6.2", ..CLAIM };
    vec![
        Claim {
            id: "hierarchical-figure-10",
            items: &[Item::Figure(10)],
            says: "Roots with 2 to 12 children: hierarchical scheduling is faster at loads 0.5 and 0.8",
            judge: |points| better(points, 10, &LOADS, 2.0, 12.0),
            ..section
        },
        Claim {
            id: "hierarchical-figure-10-rise",
            items: &[Item::Figure(10)],
            says: "The response time of both strategies first decreases with the number of children, then increases",
            reading: "that of hierarchical scheduling, from the least by 2 % at least up to 12 children",
            why: "it does not rise again by 2 % up to 12 children (that of the baseline does at load 0.8): with 20 migrations a unit, waiting for the last child to arrive costs less than shorter tasks gain. With 4 a unit it rises from 4 children on (scripts/figures/ahmad-10.toml)",
            judge: |points| {
                let curves = at_loads(points, 10);
                let mut holds = Decision::Yes;
                for curve in &curves {
                    let (last, earlier) = curve.split_last()?;
                    let rises: Vec<_> = earlier.iter().map(|point| (difference(&last.mean, &point.mean.times(1.02)), 0.0)).collect();
                    let falls: Vec<_> = earlier.iter().skip(1).map(|point| (difference(&earlier[0].mean, &point.mean), 0.0)).collect();
                    holds = holds.and(any_above(&rises)).and(any_above(&falls));
                }
                Finding::new(holds, &curves.concat(), at_both(&curves))
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
                Finding::new(all_above(&rises), &curves[0], format!("{}; {}", values(&curves[0]), values(&curves[1])))
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
                Finding::new(all_above(&within(&curve, 0.1)?), &curve, values(&curve))
            },
            ..section
        },
        Claim {
            id: "hierarchical-figure-12",
            items: &[Item::Figure(12)],
            says: "Binary trees of 1 to 4 levels: hierarchical scheduling remains superior at loads 0.5 and 0.8",
            judge: |points| better(points, 12, &LOADS, 1.0, 4.0),
            ..section
        },
        Claim {
            id: "hierarchical-figure-12-rise",
            items: &[Item::Figure(12)],
            says: "The response increases with the number of levels at both loads",
            reading: "that of hierarchical scheduling, by 2 % at least from one level to four",
            why: "it does not rise at both loads: with 20 migrations a unit the way to a further level costs less than shorter tasks gain. With 4 a unit it rises at both (scripts/figures/ahmad-12.toml)",
            judge: |points| {
                let curves = at_loads(points, 12);
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
            reading: "it falls by 10 % at least up to rate 12, and by less than that from 12 to 36",
            why: "it falls by less up to rate 12, or by more than 10 % after it; why was not examined",
            judge: |points| {
                let curves = [13, 14].map(|figure| points.curve(Item::Figure(figure), "hierarchical"));
                let at = |curve: &[&Point], rate: f64| curve.iter().find(|point| point.x == rate).map(|point| point.mean);
                let mut falls = Vec::new();
                for curve in &curves {
                    let (slow, middle, fast) = (at(curve, 4.0)?, at(curve, 12.0)?, at(curve, 36.0)?);
                    falls.extend([difference(&slow.times(0.9), &middle), difference(&fast, &middle.times(0.9))].map(|mean| (mean, 0.0)));
                }
                Finding::new(all_above(&falls), &curves[0], format!("{}; {}", values(&curves[0]), values(&curves[1])))
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
                    format!("by {:.2} at 0.5, {:.2} and {:.2} at 0.7 and 0.8", low.value, high[0].value, high[1].value),
                )
            },
            ..section
        },
        Claim {
            id: "hierarchical-figure-16-gap",
            says: "At high rates the difference of the strategies grows with the load",
            reading: "neighbours announce their loads every half unit of time; at rate 36, from 0.5 to 0.8",
            judge: |points| {
                let gap = |figure| {
                    let at = |curve| points.at(Item::Figure(figure), curve, 36.0);
                    Some(difference(&at("distributed")?.mean, &at("hierarchical")?.mean))
                };
                let gaps = [gap(13)?, gap(14)?, gap(15)?, gap(16)?];
                let grows: Vec<_> = gaps.windows(2).map(|pair| (difference(&pair[1], &pair[0]), 0.0)).collect();
                let all = points.curve(Item::Figure(16), "hierarchical");
                let ours: Vec<String> = gaps.iter().map(|gap| format!("{:.2}", gap.value)).collect();
                Finding::new(all_above(&grows), &all, ours.join(", "))
            },
            ..section
        },
    ]
}
