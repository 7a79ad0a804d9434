//! Claims of Hamidzadeh, Lilja and Atif 1995, judged.

use super::super::claims::{Claim, Finding, against, ends, number, short, with_interval};
use super::super::evidence::{Decision, LEVEL, all_above, all_below, any_above};
use super::super::{Item, Point, Points};

/// The curve of how much longer SASH takes than DSS, in parts.
pub const LONGER: &str = "sash over dss, less 1";

/// Per cent of phases that cost more than they must, and by how much at most in longest tasks; the reading comes after it.
pub const PHASES_ABOVE: &str = "per cent of phases above their optimum";
pub const FURTHEST: &str = "longest tasks above it at most";

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
                let holds = all_above(&against(&few, 0.5)).and(all_below(&against(&many, 0.1)));
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
            id: "sash-substantial",
            place: "section 5",
            items: ALL,
            says: "Even with a small number of processors the improvement of the total time can be substantial",
            reading: "r1; small: five processors, of which one schedules; substantial: by a tenth at least in one of figures 5 to 13. Both bounds are ours",
            why: "it is less in all figures",
            judge: |points| {
                let on_five: Vec<&Point> = (5..=13).filter_map(|figure| points.at(Item::Figure(figure), LONGER, 5.0)).collect();
                let shorter: Vec<_> = on_five.iter().map(|point| (point.mean.times(-1.0), 0.1)).collect();
                Finding::new(any_above(&shorter), &on_five, spread(&on_five))
            },
            ..CLAIM
        },
        Claim {
            id: "sash-phase",
            place: "section 3",
            items: &[Item::Section(3)],
            says: "SASH is optimal within a phase",
            reading: "r1, which takes the deepest partial schedule when the time is over; the cost, which is the latest end of any worker, of the tasks that a phase schedules, against the least of all their assignments; 4 processors, figure 8's matrices",
            why: "the deepest partial schedule need not be the cheapest one; nor is the head of the queue (the next line)",
            judge: |points| phases(points, "r1"),
            ..CLAIM
        },
        Claim {
            id: "sash-phase-literal",
            place: "section 3",
            items: &[Item::Section(3)],
            says: "SASH is optimal within a phase",
            reading: "literal: a phase takes the head of the queue, as the text has it; otherwise as in the line before",
            why: "a search that goes on past every depth expands the cheapest schedule of some tasks, so that only longer ones that come of it are left in the queue; its head may be a dearer schedule of the same tasks",
            judge: |points| phases(points, "literal"),
            ..CLAIM
        },
        Claim {
            id: "sash-optimality",
            place: "section 3",
            items: &[Item::Section(3)],
            says: "A schedule of SASH takes at most the longest task more than the optimum",
            number: "at most 1 longest task",
            why: "on figure 8's matrices (8 processors) schedules that heuristics with all tasks at hand find are shorter by more than that; \
                  the proof is in a report that the paper cites",
            judge: |points| {
                let least = points.curve(Item::Section(3), "above the optimum at least");
                let most = points.curve(Item::Section(3), "above the optimum at most");
                let ours = format!("at least {}, at most {}", number(least.first()?), number(most.first()?));
                // The optimum lies between the best schedule that is known and the lower bound.
                let holds = match () {
                    () if all_above(&against(&least, 1.0)) == Decision::Yes => Decision::No,
                    () if all_below(&against(&most, 1.0)) == Decision::Yes => Decision::Yes,
                    () => Decision::Open,
                };
                let (low, high) = (least.first()?.low, most.first()?.high);
                Some(Finding::new(holds, &least, ours)?.of_one(low, high))
            },
            ..CLAIM
        },
    ]);
    claims
}

/// Whether no phase under a reading cost more than its optimum.
fn phases(points: &Points, reading: &str) -> Option<Finding> {
    let one = |what: &str| points.of(Item::Section(3)).into_iter().find(|point| point.curve == format!("{what}, {reading}"));
    let (compared, above, furthest) = (one("phases")?, one(PHASES_ABOVE)?, one(FURTHEST)?);
    let holds = if compared.value == 0.0 { Decision::Open } else { Decision::of(above.value == 0.0) };
    let ours = format!("{} % of {} phases above, by {} longest tasks at most", short(above.value), compared.value, short(furthest.value));
    Finding::new(holds, &[above], ours)
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
        "with r1 SASH is the faster from another number of processors on; no reading in docs/independent.md gives all nine crossovers";
    macro_rules! crossover {
        ($id:literal, $figure:literal, $paper:literal) => {
            Claim {
                id: $id,
                items: &[Item::Figure($figure)],
                says: concat!("Figure ", $figure, ": the least number of processors on which SASH outperforms DSS"),
                number: stringify!($paper),
                why: WHY,
                judge: |points| crossover(points, $figure, f64::from($paper)),
                ..CLAIM
            }
        };
    }
    vec![
        crossover!("sash-figure-5", 5, 13),
        crossover!("sash-figure-6", 6, 10),
        crossover!("sash-figure-7", 7, 8),
        crossover!("sash-figure-8", 8, 8),
        crossover!("sash-figure-9", 9, 4),
        crossover!("sash-figure-10", 10, 4),
        crossover!("sash-figure-11", 11, 5),
        crossover!("sash-figure-12", 12, 4),
        crossover!("sash-figure-13", 13, 4),
    ]
}

/// Crossover of SASH: the least number of processors from which on it is the faster one, if it stays so.
struct Crossover {
    /// Crossover according to the means.
    at: f64,
    /// On fewer processors it is shown to be slower.
    low: f64,
    /// Number of processors from which on it is shown to be faster; infinite if it is not on the most processors.
    high: f64,
}

impl Crossover {
    /// `level` is the probability that the true one lies outside. Whatever the number of points, each bound is wrong only if the test at one of
    /// them is, that at the true crossover or just before it.
    fn of(points: &Points, figure: u32, level: f64) -> Crossover {
        let curve = longer(points, &[figure]);
        let place = |point: Option<&&Point>| point.map_or(f64::INFINITY, |point| point.x);
        // The place after the last that is not shown to be faster.
        let slow = curve.iter().rposition(|point| point.mean.below(0.0) >= level / 2.0);
        Crossover {
            at: place(curve.iter().find(|point| point.value < 0.0)),
            low: place(curve.iter().find(|point| point.mean.above(0.0) >= level / 2.0)),
            high: place(curve.get(slow.map_or(0, |at| at + 1))),
        }
    }
}

/// Whether the paper's crossover is ours: yes if only this one is possible, no if it is not possible.
fn crossover(points: &Points, figure: u32, paper: f64) -> Option<Finding> {
    let Crossover { at, low, high } = Crossover::of(points, figure, LEVEL);
    let holds = match () {
        () if paper < low || paper > high => Decision::No,
        () if low == high => Decision::Yes,
        () => Decision::Open,
    };
    let ours = if low == high { place(at) } else { format!("{} ({} to {})", place(at), place(low), place(high)) };
    Some(Finding::new(holds, &longer(points, &[figure]), ours)?.of_one(low, high))
}

fn place(x: f64) -> String {
    if x.is_finite() { x.to_string() } else { "none up to 20".into() }
}

/// Whether crossovers do not grow along each of the lines: yes if they cannot, no if one grows for certain. All of them together have the error rate.
fn ordered(points: &Points, lines: &[[u32; 3]; 3]) -> Option<Finding> {
    let crossovers = lines.map(|line| line.map(|figure| Crossover::of(points, figure, LEVEL / 9.0)));
    let pairs = || crossovers.iter().flat_map(|line| line.windows(2));
    let holds = match () {
        () if pairs().any(|pair| pair[1].low > pair[0].high) => Decision::No,
        () if pairs().all(|pair| pair[1].high <= pair[0].low) => Decision::Yes,
        () => Decision::Open,
    };
    let one = |Crossover { at, low, high }: &Crossover| format!("{} ({} to {})", place(*at), place(*low), place(*high));
    let ours: Vec<String> = crossovers.iter().map(|line| line.iter().map(one).collect::<Vec<_>>().join(", ")).collect();
    Finding::new(holds, &points.curve(Item::Figure(lines[0][0]), LONGER), ours.join("; "))
}

/// All points of how much longer SASH takes in some figures.
fn longer<'a>(points: &'a Points, figures: &[u32]) -> Vec<&'a Point> {
    points.0.iter().filter(|point| point.curve == LONGER && figures.iter().any(|figure| point.item == Item::Figure(*figure))).collect()
}

/// Range of how much longer SASH takes, from the least to the most, in per cent.
fn spread(points: &[&Point]) -> String {
    let signed = |point: &Point| format!("{}{}", if point.value < 0.0 { "" } else { "+" }, with_interval(&point.mean.times(100.0)));
    ends(points).map(|ends| format!("sash takes {} %", ends.map(signed).join(" to "))).unwrap_or_default()
}
