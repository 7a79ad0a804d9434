//! Claims of Wu 1997, judged.

use super::super::claims::{Claim, Finding, against, agreeing, ends, number, numbers, with_interval};
use super::super::evidence::{Decision, Mean, all_above, all_below, difference};
use super::super::{Item, Point, Points};
use super::TABLE_CASES;

const CLAIM: Claim = Claim { id: "", place: "", items: &[], says: "", number: "", reading: "", why: "", judge: |_| None };

const RANDOM_LOADS: &str = "random loads are uniform in 0 to twice the mean, adjusted to the exact mean";

pub(super) fn all() -> Vec<Claim> {
    let mut claims = examples();
    claims.extend(properties());
    claims.extend(table());
    claims.extend(figures());
    claims
}

fn examples() -> Vec<Claim> {
    vec![
        Claim {
            id: "wu-example-1",
            place: "section 3.1, example 1",
            items: &[Item::Example(1)],
            says: "TWA sends six messages with tasks; nodes 0 to 4 end with five tasks, the others with four",
            number: "0 differing loads and moves",
            judge: |points| agreeing(&points.of(Item::Example(1)), 1),
            ..CLAIM
        },
        Claim {
            id: "wu-example-2",
            place: "section 3.2, example 2",
            items: &[Item::Example(2)],
            says: "DEM needs 33 task-hops on figure 1's loads and does not balance them fully",
            number: "33",
            judge: |points| agreeing(&points.of(Item::Example(2)), 1),
            ..CLAIM
        },
        Claim {
            id: "wu-figure-3",
            place: "section 2, figure 3",
            items: &[Item::Figure(3)],
            says: "The optimum for figure 1's loads",
            number: "21 task-hops",
            judge: |points| agreeing(&points.of(Item::Figure(3)), 1),
            ..CLAIM
        },
        Claim {
            id: "wu-figure-9",
            place: "section 3.2, figure 9",
            items: &[Item::Figure(9)],
            says: "After DEM loads on a d-cube differ by at most d, and on a 4-cube by 4 in some case",
            number: "4",
            reading: "the figure's loads are not printed; ours grow by one along each link",
            judge: |points| {
                let all = points.of(Item::Figure(9));
                Finding::new(
                    Decision::of(all.iter().all(|point| point.value <= 4.0 && point.agrees != Some(false))),
                    &all,
                    format!("{} (constructed, largest of random loads)", numbers(&all)),
                )
            },
            ..CLAIM
        },
        Claim {
            id: "wu-example-3",
            place: "section 3.2, example 3",
            items: &[Item::Example(3)],
            says: "CWA balances figure 1's loads by seven moves, in 21 task-hops",
            number: "0 differing loads and moves, 21",
            reading: "step 4 updates a node's own load in the last iteration, too",
            judge: |points| agreeing(&points.of(Item::Example(3)), 1),
            ..CLAIM
        },
        Claim {
            id: "wu-example-4",
            place: "section 3.3, example 4",
            items: &[Item::Example(4)],
            says: "MWA balances a 4x4 mesh by twelve moves, in 48 task-hops",
            number: "0 differing loads and moves, 48",
            reading: "the first R nodes get one task more, as in the generic algorithm; a row receives from both sides before it sends",
            judge: |points| agreeing(&points.of(Item::Example(4)), 1),
            ..CLAIM
        },
    ]
}

/// The worst of the cases of one kind on the algorithms named.
fn worst<'a>(points: &'a Points, of: &[&str], what: &str) -> Vec<&'a Point> {
    let wanted: Vec<String> = of.iter().map(|name| format!("{name}: {what}")).collect();
    points.of(Item::Section(4)).into_iter().filter(|point| wanted.contains(&point.curve)).collect()
}

const WALKS: [&str; 3] = ["twa on tree:binary,nodes=15", "cwa on hypercube:4", "mwa on mesh:4x4"];

fn properties() -> Vec<Claim> {
    let section = Claim { items: &[Item::Section(4)], ..CLAIM };
    vec![
        Claim {
            id: "wu-steps",
            place: "sections 3.1 to 3.3",
            says: "TWA takes at most 4m communication steps on a tree of depth m, CWA 3d, MWA 3(n1 + n2)",
            number: "at most 12, 12, 24",
            reading: "a step is a link of the longest chain of dependent messages; an exchange of two messages is one",
            judge: |points| {
                let steps = worst(points, &WALKS, "steps");
                Finding::new(
                    Decision::of(steps.iter().zip([12.0, 12.0, 24.0]).all(|(ours, most)| ours.value <= most)),
                    &steps,
                    numbers(&steps),
                )
            },
            ..section
        },
        Claim {
            id: "wu-steps-dem",
            place: "section 3.2",
            says: "DEM takes 3d communication steps",
            number: "12 on a 4-cube",
            reading: "a step is a link of the longest chain of dependent messages; an exchange of two messages is one",
            why: "it takes two for each dimension, an exchange of loads and one message with tasks",
            judge: |points| {
                let steps = worst(points, &["dem on hypercube:4"], "steps");
                Finding::new(Decision::of(steps.iter().all(|point| point.value == 12.0)), &steps, numbers(&steps))
            },
            ..section
        },
        Claim {
            id: "wu-theorem-1",
            place: "section 4, theorem 1",
            says: "After TWA, CWA and MWA loads differ by at most one task",
            number: "at most 1",
            judge: |points| {
                let uneven = worst(points, &WALKS, "difference of loads");
                Finding::new(Decision::of(uneven.iter().all(|point| point.value <= 1.0)), &uneven, numbers(&uneven))
            },
            ..section
        },
        Claim {
            id: "wu-theorem-2",
            place: "section 4, theorem 2",
            says: "TWA, CWA and MWA move as few tasks as possible, where the nodes divide the total",
            number: "0 above the fewest",
            judge: |points| {
                let above = worst(points, &WALKS, "tasks moved above the fewest");
                Finding::new(Decision::of(above.iter().all(|point| point.value == 0.0)), &above, numbers(&above))
            },
            ..section
        },
        Claim {
            id: "wu-theorem-3",
            place: "section 4, theorem 3",
            says: "TWA needs the fewest task-hops and the fewest communications",
            number: "0 above the fewest",
            judge: |points| {
                let above =
                    ["task-hops above the fewest", "communications above the fewest"].map(|what| worst(points, &WALKS[..1], what)).concat();
                Finding::new(Decision::of(above.iter().all(|point| point.value == 0.0)), &above, numbers(&above))
            },
            ..section
        },
        Claim {
            id: "wu-lemma-5",
            place: "section 4, lemma 5",
            says: "CWA and MWA need the fewest task-hops on two and four nodes",
            number: "0 above the fewest",
            judge: |points| {
                let above = worst(
                    points,
                    &["cwa on hypercube:1", "cwa on hypercube:2", "mwa on mesh:2x1", "mwa on mesh:2x2"],
                    "task-hops above the fewest",
                );
                Finding::new(Decision::of(above.iter().all(|point| point.value == 0.0)), &above, numbers(&above))
            },
            ..section
        },
    ]
}

fn table() -> Vec<Claim> {
    let row = Claim { place: "section 5, table I", items: &[Item::Table(1)], reading: RANDOM_LOADS, ..CLAIM };
    vec![
        Claim {
            id: "wu-table-1-4",
            says: "Per cent of cases that DEM balances fully on 4 processors; mean loads 2, 5, 10, 20, 50, 100",
            number: "74.3, 75.3, 75.7, 75.1, 74.5, 74.6",
            judge: |points| agreeing(&points.curve(Item::Table(1), "dem, 4 processors"), TABLE_CASES),
            ..row
        },
        Claim {
            id: "wu-table-1-8",
            says: "The same on 8 processors",
            number: "31.2, 30.6, 34.8, 33.2, 36.2, 32.0",
            judge: |points| agreeing(&points.curve(Item::Table(1), "dem, 8 processors"), TABLE_CASES),
            ..row
        },
        Claim {
            id: "wu-table-1-16",
            says: "The same on 16 processors",
            number: "4.0, 5.8, 6.3, 7.6, 5.4, 7.7",
            judge: |points| agreeing(&points.curve(Item::Table(1), "dem, 16 processors"), TABLE_CASES),
            ..row
        },
        Claim {
            id: "wu-table-1-32",
            says: "The same on 32 processors: a few cases",
            number: "0.0, 0.2, 0.1, 0.3, 0.2, 0.7",
            judge: |points| agreeing(&points.curve(Item::Table(1), "dem, 32 processors"), TABLE_CASES),
            ..row
        },
        Claim {
            id: "wu-table-1-64",
            says: "The same on 64 processors: no case",
            number: "0.0, 0.0, 0.0, 0.0, 0.0, 0.0",
            judge: |points| agreeing(&points.curve(Item::Table(1), "dem, 64 processors"), TABLE_CASES),
            ..row
        },
    ]
}

/// All points of a figure on the curves named.
fn curves<'a>(points: &'a Points, figure: u32, names: &[&str]) -> Vec<&'a Point> {
    points.of(Item::Figure(figure)).into_iter().filter(|point| names.contains(&point.curve.as_str())).collect()
}

/// The smallest and the largest value.
fn range(points: &[&Point]) -> String {
    ends(points).map(|ends| ends.map(number).join(" to ")).unwrap_or_default()
}

fn figures() -> Vec<Claim> {
    vec![
        Claim {
            id: "wu-figure-14",
            place: "section 5, figure 14",
            items: &[Item::Figure(14)],
            says: "DEM moves more tasks than necessary on 4, 8 and 16 processors",
            reading: RANDOM_LOADS,
            judge: |points| {
                let all = points.of(Item::Figure(14));
                Finding::new(all_above(&against(&all, 0.0)), &all, format!("{} of the fewest more", range(&all)))
            },
            ..CLAIM
        },
        Claim {
            id: "wu-figure-15-cwa-4",
            place: "section 5, figure 15",
            items: &[Item::Figure(15)],
            says: "CWA needs the fewest task-hops on 4 processors",
            number: "0",
            judge: |points| {
                let all = curves(points, 15, &["cwa over all cases, 4 processors"]);
                Finding::new(Decision::of(all.iter().all(|point| point.value == 0.0)), &all, numbers(&all))
            },
            ..CLAIM
        },
        Claim {
            id: "wu-figure-15-dem",
            place: "section 5, figure 15",
            items: &[Item::Figure(15)],
            says: "DEM's costs are much larger than CWA's on 8 and 16 processors",
            reading: "much larger: more than twice, over the cases that DEM balances",
            why: "with a mean load of 2 tasks they are not: over the cases that DEM balances then, its costs on 16 processors are 0.060 and CWA's 0.098. From a mean load of 5 on they are 2.8 to 6.5 times CWA's",
            judge: |points| {
                let twice = curves(points, 15, &["dem less twice cwa, 8 processors", "dem less twice cwa, 16 processors"]);
                let (dem, cwa) = (["dem, 8 processors", "dem, 16 processors"], ["cwa, 8 processors", "cwa, 16 processors"]);
                let (dem, cwa) = (curves(points, 15, &dem), curves(points, 15, &cwa));
                Finding::new(all_above(&against(&twice, 0.0)), &twice, format!("dem {}, cwa {}", range(&dem), range(&cwa)))
            },
            ..CLAIM
        },
        Claim {
            id: "wu-figure-16",
            place: "section 5, figure 16",
            items: &[Item::Figure(16)],
            says: "CWA's costs on 64 and 256 processors, which are not minimal",
            reading: RANDOM_LOADS,
            judge: |points| {
                let all = points.of(Item::Figure(16));
                let (small, large) = (curves(points, 16, &["cwa, 64 processors"]), curves(points, 16, &["cwa, 256 processors"]));
                Finding::new(all_above(&against(&all, 0.0)), &all, format!("{} and {}", range(&small), range(&large)))
            },
            ..CLAIM
        },
        Claim {
            id: "wu-figure-17-4",
            place: "section 5, figure 17",
            items: &[Item::Figure(17)],
            says: "MWA needs the fewest task-hops on four processors",
            number: "0",
            judge: |points| {
                let all = curves(points, 17, &["mwa, 4 processors"]);
                Finding::new(Decision::of(all.iter().all(|point| point.value == 0.0)), &all, numbers(&all))
            },
            ..CLAIM
        },
        Claim {
            id: "wu-figure-17-small",
            place: "section 5, figure 17",
            items: &[Item::Figure(17)],
            says: "For small meshes MWA is nearly optimal",
            reading: "small: 8 processors; nearly: within 3 %",
            judge: |points| {
                let all = curves(points, 17, &["mwa, 8 processors"]);
                Finding::new(all_below(&against(&all, 0.03)), &all, range(&all))
            },
            ..CLAIM
        },
        Claim {
            id: "wu-figure-17-rise",
            place: "section 5, figure 17",
            items: &[Item::Figure(17)],
            says: "MWA's cost increases with the number of processors",
            reading: "means over all mean loads, from each number of processors to four times it",
            judge: |points| {
                let sizes = [4, 8, 16, 32, 64, 128, 256].map(|size| pooled(&curves(points, 17, &[&format!("mwa, {size} processors")])));
                let rises: Vec<(Mean, f64)> = sizes
                    .iter()
                    .zip(&sizes[2..])
                    .filter_map(|(small, large)| Some((difference(large.as_ref()?, small.as_ref()?), 0.0)))
                    .collect();
                let ours: Vec<String> = sizes.iter().flatten().map(with_interval).collect();
                Finding::new(all_above(&rises), &points.of(Item::Figure(17)), ours.join(", "))
            },
            ..CLAIM
        },
    ]
}

/// The mean of independent means.
fn pooled(points: &[&Point]) -> Option<Mean> {
    let n = points.len() as f64;
    let value = points.iter().map(|point| point.mean.value).sum::<f64>() / n;
    let error = points.iter().map(|point| point.mean.error.powi(2)).sum::<f64>().sqrt() / n;
    let (freedom, cases) = (points.iter().map(|point| point.mean.freedom).sum(), points.iter().map(|point| point.cases).min()?);
    Some(Mean { value, error, freedom, cases })
}
