//! What Hamidzadeh, Lilja and Atif 1995 say, judged.

use super::super::claims::{Claim, Finding, against, number};
use super::super::evidence::{LEVEL, all_above, all_below, holm};
use super::super::{Item, Point, Points};

/// The curve of how much longer SASH takes than DSS, in parts.
pub(super) const LONGER: &str = "sash over dss, less 1";

const R1: &str = "SASH is read as r1";

const CLAIM: Claim = Claim { id: "", place: "section 4.2", items: &[], says: "", number: "", reading: R1, why: "", judge: |_| None };

pub(super) fn all() -> Vec<Claim> {
    let mut claims = vec![
        Claim {
            id: "sash-homogeneous",
            items: &[Item::Figure(2), Item::Figure(3), Item::Figure(4)],
            says: "Where costs are nearly uniform (figures 2 to 4) DSS outperforms SASH on every number of processors",
            judge: |points| {
                let longer = longer(points, &[2, 3, 4]);
                Finding::new(all_above(&against(&longer, 0.0)), &longer, spread(&longer))
            },
            ..CLAIM
        },
        Claim {
            id: "sash-converges",
            items: &[Item::Figure(2), Item::Figure(3), Item::Figure(4)],
            says: "There the two converge as the number of processors grows",
            reading: "r1; within 10 % on 20 processors, and more than 50 % apart on 2",
            judge: |points| {
                let at =
                    |x: f64| [2, 3, 4].map(|figure| points.at(Item::Figure(figure), LONGER, x)).into_iter().flatten().collect::<Vec<_>>();
                let (few, many) = (at(2.0), at(20.0));
                let holds = all_above(&against(&few, 0.5)) && all_below(&against(&many, 0.1));
                Finding::new(holds, &many, format!("{}; {}", spread(&few), spread(&many)))
            },
            ..CLAIM
        },
    ];
    claims.extend(crossovers());
    claims.extend([
        Claim {
            id: "sash-heterogeneity",
            items: ALL,
            says: "The more heterogeneous the system, the fewer processors SASH needs to outperform DSS",
            reading: "r1; along each row of figures: 5, 8, 11; 6, 9, 12; 7, 10, 13",
            judge: |points| ordered(points, &[[5, 8, 11], [6, 9, 12], [7, 10, 13]]),
            ..CLAIM
        },
        Claim {
            id: "sash-ratio",
            items: ALL,
            says: "The larger the ratio of communication to computation, the fewer processors SASH needs",
            reading: "r1; down each column of figures: 5, 6, 7; 8, 9, 10; 11, 12, 13",
            judge: |points| ordered(points, &[[5, 6, 7], [8, 9, 10], [11, 12, 13]]),
            ..CLAIM
        },
        Claim {
            id: "sash-few-processors",
            place: "sections 4.2 and 5",
            items: ALL,
            says: "In heterogeneous systems SASH outperforms DSS on only a few processors, although it gives one away",
            number: "4 to 5",
            reading: "r1; on five processors in figures 9 to 13",
            judge: |points| {
                let on_five: Vec<&Point> = (9..=13).filter_map(|figure| points.at(Item::Figure(figure), LONGER, 5.0)).collect();
                Finding::new(all_below(&against(&on_five, 0.0)), &on_five, spread(&on_five))
            },
            ..CLAIM
        },
        Claim {
            id: "sash-optimality",
            place: "section 3",
            items: &[Item::Section(3)],
            says: "A schedule of SASH takes at most the longest task more than the optimum",
            number: "at most 1 longest task",
            why: "a phase places tasks by what it knows of a few; on figure 8's matrices (8 processors) schedules that heuristics find are shorter by more than that. \
                  The proof is in a report that the paper cites. The paper's own crossovers contradict it, too",
            judge: |points| {
                let least = points.curve(Item::Section(3), "above the optimum at least");
                let most = points.curve(Item::Section(3), "above the optimum at most");
                let ours = format!("at least {}, at most {}", number(least.first()?), number(most.first()?));
                Finding::new(least.iter().all(|point| point.mean.above(1.0) >= LEVEL), &least, ours)
            },
            ..CLAIM
        },
    ]);
    claims
}

const ALL: &[Item] = &[
    Item::Figure(5),
    Item::Figure(6),
    Item::Figure(7),
    Item::Figure(8),
    Item::Figure(9),
    Item::Figure(10),
    Item::Figure(11),
    Item::Figure(12),
    Item::Figure(13),
];

/// The crossovers that the text gives. A claim names the figure and the number of processors.
fn crossovers() -> Vec<Claim> {
    const WHY: &str =
        "with r1 SASH is the faster from another number of processors on; no reading that was tried gives all nine crossovers";
    macro_rules! crossover {
        ($id:literal, $figure:literal, $paper:literal, $why:expr) => {
            Claim {
                id: $id,
                items: &[Item::Figure($figure)],
                says: concat!("Figure ", $figure, ": the least number of processors on which SASH outperforms DSS"),
                number: stringify!($paper),
                why: $why,
                judge: |points| crossover(points, $figure, f64::from($paper)),
                ..CLAIM
            }
        };
    }
    vec![
        crossover!("sash-figure-5", 5, 13, ""),
        crossover!("sash-figure-6", 6, 10, WHY),
        crossover!("sash-figure-7", 7, 8, WHY),
        crossover!("sash-figure-8", 8, 8, WHY),
        crossover!("sash-figure-9", 9, 4, WHY),
        crossover!("sash-figure-10", 10, 4, ""),
        crossover!("sash-figure-11", 11, 5, ""),
        crossover!("sash-figure-12", 12, 4, WHY),
        crossover!("sash-figure-13", 13, 4, ""),
    ]
}

/// Whether SASH may be slower below the paper's crossover and faster from there on: no evidence against either. Ours is the least number of
/// processors on which it is faster in the mean, and between which ones chance leaves it.
fn crossover(points: &Points, figure: u32, paper: f64) -> Option<Finding> {
    let longer = longer(points, &[figure]);
    let (at, before) = (points.at(Item::Figure(figure), LONGER, paper)?, points.at(Item::Figure(figure), LONGER, paper - 1.0)?);
    let holds = holm(&[at.mean.above(0.0), before.mean.below(0.0)]).iter().all(|p| *p >= LEVEL);
    let first = |is: fn(&Point) -> bool| longer.iter().find(|point| is(point)).map_or("none".to_string(), |point| point.x.to_string());
    let (ours, low, high) = (first(|point| point.value < 0.0), first(|point| point.low < 0.0), first(|point| point.high < 0.0));
    Finding::new(holds, &longer, if low == high { ours } else { format!("{ours} ({low} to {high})") })
}

/// Where SASH takes over: the least number of processors on which it is faster in the mean.
fn first_faster(points: &Points, figure: u32) -> f64 {
    longer(points, &[figure]).iter().find(|point| point.value < 0.0).map_or(f64::INFINITY, |point| point.x)
}

/// Whether crossovers do not grow along each of the lines. They are whole numbers; a step up by one where chance decides is none.
fn ordered(points: &Points, lines: &[[u32; 3]; 3]) -> Option<Finding> {
    let crossovers = lines.map(|line| line.map(|figure| first_faster(points, figure)));
    let may_be_by = |figure: u32, x: f64| points.at(Item::Figure(figure), LONGER, x).is_some_and(|point| point.low < 0.0);
    let holds =
        lines.iter().zip(&crossovers).all(|(line, at)| (1..3).all(|next| at[next] <= at[next - 1] || may_be_by(line[next], at[next - 1])));
    let ours: Vec<String> = crossovers.iter().map(|line| line.map(|x| x.to_string()).join(", ")).collect();
    Finding::new(holds, &points.curve(Item::Figure(lines[0][0]), LONGER), ours.join("; "))
}

/// All points of how much longer SASH takes in some figures.
fn longer<'a>(points: &'a Points, figures: &[u32]) -> Vec<&'a Point> {
    points.0.iter().filter(|point| point.curve == LONGER && figures.iter().any(|figure| point.item == Item::Figure(*figure))).collect()
}

/// From the least to the most, in per cent.
fn spread(points: &[&Point]) -> String {
    let values = points.iter().map(|point| point.value * 100.0);
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    format!("sash takes {low:+.1} to {high:+.1} %")
}
