//! Claims of Savvas and Kechadi 2004, judged.

use super::super::claims::{Claim, Finding, against, agreeing, numbers, rises};
use super::super::evidence::{Decision, all_above, all_below, difference};
use super::super::{Item, Point, Points};
use super::{GRIDS, HIGHER, POISSON, UNIFORM};

const CLAIM: Claim = Claim { id: "", place: "", items: &[], says: "", number: "", reading: "", why: "", judge: |_| None };

/// How tables 6 and 7 and the figures are read.
const TIMES: &str = "4,000 tasks of 100 us on random nodes, the default simulated network";

const TREES: &str = "the paper's scans go from neighbour to neighbour; ours are trees, to which the formula does not apply";

pub(super) fn all() -> Vec<Claim> {
    let mut claims = example();
    claims.extend(model());
    claims.extend(tables());
    claims.extend(figures());
    claims
}

/// The points of table 1 whose names begin so.
fn beginning<'a>(points: &'a Points, name: &str) -> Vec<&'a Point> {
    points.of(Item::Table(1)).into_iter().filter(|point| point.curve.starts_with(name)).collect()
}

fn example() -> Vec<Claim> {
    let example = Claim { items: &[Item::Table(1)], ..CLAIM };
    vec![
        Claim {
            id: "psts-equation-4",
            place: "section 4.2, table 1, equation 4",
            says: "At the end each of the example's 18 nodes has W tau / Pi tasks",
            number: "0 other loads",
            judge: |points| agreeing(&beginning(points, "final"), 1),
            ..example
        },
        Claim {
            id: "psts-table-2",
            place: "section 4.2, tables 2 and 3",
            items: &[Item::Table(2), Item::Table(3)],
            says: "The scans of the first row, and those of the rows: 44 printed numbers",
            judge: |points| agreeing(&[points.of(Item::Table(2)), points.of(Item::Table(3))].concat(), 1).map(of_all),
            ..example
        },
        Claim {
            id: "psts-table-3",
            place: "section 4.2, table 3",
            says: "Of the three rows the second alone is a sender",
            number: "1 row",
            judge: |points| agreeing(&beginning(points, "rows"), 1),
            ..example
        },
        Claim {
            id: "psts-table-4",
            place: "section 4.2, table 4",
            says: "Tasks that the sender's nodes give to other rows",
            number: "120, 180, 60, 240, 180, 420",
            judge: |points| agreeing(&beginning(points, "given"), 1),
            ..example
        },
        Claim {
            id: "psts-table-4-scans",
            place: "section 4.2, table 4",
            items: &[Item::Table(4)],
            says: "Where the nodes' tasks begin in the rows that get them, what is left on them, and before them: 24 printed numbers",
            judge: |points| agreeing(&points.of(Item::Table(4)), 1).map(of_all),
            ..example
        },
        Claim {
            id: "psts-table-5",
            place: "section 4.2, table 5",
            says: "Unit 100 that v22 gives lands on v13, unit 200 of v26 on v35 (nodes 2 and 16, counted from 0)",
            number: "2, 16",
            reading: "v22 and v26, as the table has it; the sentence before it says v12 and v16",
            judge: |points| agreeing(&beginning(points, "v2"), 1),
            ..example
        },
        Claim {
            id: "psts-table-5-places",
            place: "section 4.2, table 5",
            items: &[Item::Table(5)],
            says: "These units are at 0.37 and 0.63 of what their rows get",
            number: "2, 16, 0.37, 0.63",
            judge: |points| {
                let units = points.of(Item::Table(5)).into_iter().filter(|point| point.curve.contains("unit")).collect::<Vec<_>>();
                agreeing(&units, 1)
            },
            ..example
        },
    ]
}

/// A finding in short where there are many numbers.
fn of_all(found: Finding) -> Finding {
    let ours = if found.holds == Decision::Yes { "all of them".into() } else { found.ours };
    Finding { ours, ..found }
}

/// Whether the last grid of a curve is faster than all others; and all times.
fn best_is_last(points: &Points, curve: &str) -> Option<Finding> {
    let all = points.curve(Item::Section(4), curve);
    let (last, others) = all.split_last()?;
    let slower: Vec<_> = others.iter().map(|other| (difference(&other.mean, &last.mean), 0.0)).collect();
    Finding::new(all_above(&slower), &all, format!("d = 1 to 6: {} ms", numbers(&all)))
}

fn model() -> Vec<Claim> {
    let model = Claim { items: &[Item::Section(4)], ..CLAIM };
    vec![
        Claim {
            id: "psts-equation-11",
            place: "section 4, equations 8 to 11",
            says: "The number of communication steps on a grid n1 x .. x nd is 2 (n1 + .. + nd - d); 64 nodes, d = 1 to 6",
            number: "126, 28, 18, 16, 14, 12",
            reading: "steps are the longest chain of dependent messages of our phase, whose scans are trees",
            why: TREES,
            judge: |points| {
                let steps = points.curve(Item::Section(4), "steps");
                let holds = steps.iter().zip([126.0, 28.0, 18.0, 16.0, 14.0, 12.0]).all(|(ours, theirs)| ours.value == theirs);
                Finding::new(Decision::of(holds), &steps, numbers(&steps))
            },
            ..model
        },
        Claim {
            id: "psts-equation-15-hops",
            place: "section 4.1, proposition 4.1, equation 15",
            says: "PSTS is fastest on a grid of dimension ceil(log2 n), where messages go from hop to hop; 64 nodes",
            number: "d = 6",
            reading: "from hop to hop: a message's time grows with its distance in the grid; scans are trees",
            why: "the proof counts steps of scans from neighbour to neighbour; with ours, which are trees, another number of dimensions is faster",
            judge: |points| best_is_last(points, "ms from hop to hop"),
            ..model
        },
        Claim {
            id: "psts-equation-15-switch",
            place: "section 4.1, proposition 4.1, equation 15",
            says: "PSTS is fastest on a grid of dimension ceil(log2 n), on a switch; 64 nodes",
            number: "d = 6",
            reading: "scans are trees",
            why: "the proof counts steps from neighbour to neighbour; with our scans, which are trees, the line is the fastest",
            judge: |points| best_is_last(points, "ms on a switch"),
            ..model
        },
    ]
}

/// A curve of table 6 or 7 at the numbers of nodes that the paper has.
fn paper_sizes<'a>(points: &'a Points, table: Item, curve: &'a str) -> Vec<&'a Point> {
    let sizes = GRIDS.map(|(nodes, ..)| f64::from(nodes));
    points.curve(table, curve).into_iter().filter(|point| sizes.contains(&point.x)).collect()
}

fn tables() -> Vec<Claim> {
    vec![
        Claim {
            id: "psts-table-6-values",
            place: "section 5, table 6",
            items: &[Item::Table(6)],
            says: "The imbalance from which a phase pays on a line of 2, 4, 8, 16, 32, 64 nodes",
            number: "1.0057, 0.6736, 0.4622, 2.0316, 2.7028, 3.0457",
            reading: TIMES,
            why: "it is the time of a phase over that of the ideal load, so that it is a property of the machine; the paper says neither of its own. Its numbers fall up to 8 nodes and then rise",
            judge: |points| {
                let line = paper_sizes(points, Item::Table(6), "d = 1");
                let theirs = [1.0057, 0.6736, 0.4622, 2.0316, 2.7028, 3.0457];
                let holds = line.iter().zip(theirs).all(|(ours, theirs)| (ours.value / theirs - 1.0).abs() < 0.1);
                Finding::new(Decision::of(holds), &line, numbers(&line))
            },
        },
        Claim {
            id: "psts-table-6-rise",
            place: "section 5, table 6",
            items: &[Item::Table(6)],
            says: "On lines the imbalance from which a phase pays falls from 2 to 8 nodes, and grows from there to 64",
            number: "1.0057, 0.6736, 0.4622, 2.0316, 2.7028, 3.0457",
            reading: TIMES,
            why: "it grows from 2 nodes on: the ideal load is a shorter time on more nodes, and a phase takes longer. The paper says nothing of why its numbers fall first",
            judge: |points| {
                let line = paper_sizes(points, Item::Table(6), "d = 1");
                let turn = line.iter().position(|point| point.x == 8.0)?;
                let falls = rises(&line[..=turn]).into_iter().map(|(rise, bound)| (rise.times(-1.0), bound));
                let both: Vec<_> = falls.chain(rises(&line[turn..])).collect();
                Finding::new(all_above(&both), &line, numbers(&line))
            },
        },
        Claim {
            id: "psts-table-6-dimensions",
            place: "section 5, table 6",
            items: &[Item::Table(6)],
            says: "It is lower on grids of more dimensions",
            reading: TIMES,
            why: "on the simulated switch, with scans by trees, a phase on more dimensions takes longer",
            judge: |points| {
                let (line, high) = (paper_sizes(points, Item::Table(6), "d = 1"), paper_sizes(points, Item::Table(6), "d > 1"));
                // On two nodes both are the same grid. The others had the same loads.
                let higher: Vec<&Point> = paper_sizes(points, Item::Table(6), HIGHER).into_iter().skip(1).collect();
                let ours = format!("{}; lines {}", numbers(&high), numbers(&line));
                Finding::new(all_below(&against(&higher, 0.0)), &high, ours)
            },
            ..CLAIM
        },
        Claim {
            id: "psts-table-7-low",
            place: "section 5, table 7",
            items: &[Item::Table(7)],
            says: "For one arriving task the imbalance from which a phase pays is low even on a line, at most 0.2033",
            number: "0.2033, 0.1594, 0.1359, 0.1242, 0.1184, 0.1159",
            reading: TIMES,
            judge: |points| {
                let line = paper_sizes(points, Item::Table(7), "d = 1");
                let bounds: Vec<_> = line.iter().map(|point| (point.mean, 0.20333)).collect();
                Finding::new(all_below(&bounds), &line, numbers(&line))
            },
            ..CLAIM
        },
        Claim {
            id: "psts-table-7-falls",
            place: "section 5, table 7",
            items: &[Item::Table(7)],
            says: "It falls with the number of nodes",
            reading: TIMES,
            why: "the 4,000 tasks are a shorter ideal load on more nodes, and a phase takes longer on more nodes in the simulated network",
            judge: |points| {
                let line = paper_sizes(points, Item::Table(7), "d = 1");
                Finding::new(all_below(&rises(&line)), &line, numbers(&line))
            },
            ..CLAIM
        },
    ]
}

fn figures() -> Vec<Claim> {
    vec![
        Claim {
            id: "psts-figure-4",
            place: "section 5, figure 4",
            items: &[Item::Figure(4)],
            says: "On lines the time of PSTS decreases as the number of nodes increases",
            reading: TIMES,
            why: "it grows from each number to the next: what takes time here is messages, of which the scans of a longer line need more. The paper owes the fall to calculations that the nodes share, which take no simulated time",
            judge: |points| {
                let line = points.curve(Item::Figure(4), "dim = 1");
                Finding::new(all_below(&rises(&line)), &line, format!("{} ms", numbers(&line)))
            },
            ..CLAIM
        },
        Claim {
            id: "psts-figure-5",
            place: "section 5, figures 4 and 5",
            items: &[Item::Figure(4), Item::Figure(5)],
            says: "The overhead on grids of higher dimensions is significantly less than on lines",
            reading: TIMES,
            why: "on the simulated switch, with scans by trees, it is more",
            judge: |points| {
                let (line, high) = (points.curve(Item::Figure(4), "dim = 1"), points.curve(Item::Figure(5), "dim > 1"));
                let less: Vec<_> = line.iter().zip(&high).skip(1).map(|(line, high)| (difference(&high.mean, &line.mean), 0.0)).collect();
                Finding::new(all_below(&less), &high, format!("{} ms; lines {} ms", numbers(&high), numbers(&line)))
            },
            ..CLAIM
        },
        Claim {
            id: "psts-figure-6",
            place: "section 5, figure 6",
            items: &[Item::Figure(6)],
            says: "The speed-up gained by PSTS decreases as the number of nodes increases, 4,000 tasks in all",
            reading: "all tasks are there at the beginning, on random nodes with powers from 1 to 10",
            why: "it grows: among more nodes the slowest is further from the average, and nothing is executed before the phase. The paper's tasks arrive over time, for which see the next line",
            judge: |points| {
                let all = points.curve(Item::Figure(6), "speed-up");
                Finding::new(all_below(&rises(&all)), &all, numbers(&all))
            },
            ..CLAIM
        },
        Claim {
            id: "psts-figure-6-arrivals",
            place: "section 5, figure 6",
            items: &[Item::Figure(6)],
            says: "Tasks of uniform and of Poisson sizes arrive over time, 4,000 in all: the speed-up by PSTS decreases as the number of nodes increases",
            reading: "ratio of mean response times without and with PSTS, its harmonic mean over the streams; the same Poisson stream on any number of nodes, 10 units a task on average, 100 us a unit on a node of power 1, powers 1 to 10; whether a phase pays is asked at every tenth arrival",
            why: "it does not at every step: from 16 nodes on, where hardly any node is overloaded, a phase gains nothing and takes its time, a little more on fewer nodes. From 2 to 8 nodes the curves are not monotone",
            judge: |points| {
                let curves = [UNIFORM, POISSON].map(|curve| points.curve(Item::Figure(6), curve));
                let both: Vec<_> = curves.iter().flat_map(|curve| rises(curve)).collect();
                Finding::new(
                    all_below(&both),
                    &curves.concat(),
                    format!("uniform {}; Poisson {}", numbers(&curves[0]), numbers(&curves[1])),
                )
            },
            ..CLAIM
        },
        Claim {
            id: "psts-figure-6-ends",
            place: "section 5, figure 6",
            items: &[Item::Figure(6)],
            says: "It is less on 64 nodes than on 2",
            reading: "as in the line before",
            why: "it is not less",
            judge: |points| {
                let curves = [UNIFORM, POISSON].map(|curve| points.curve(Item::Figure(6), curve));
                let ends = curves.each_ref().map(|curve| [curve.first().copied(), curve.last().copied()]);
                let ends: Vec<&Point> = ends.into_iter().flatten().collect::<Option<_>>()?;
                let rises: Vec<_> = ends.chunks(2).flat_map(rises).collect();
                Finding::new(all_below(&rises), &ends, format!("uniform {}; Poisson {}", numbers(&ends[..2]), numbers(&ends[2..])))
            },
            ..CLAIM
        },
    ]
}
