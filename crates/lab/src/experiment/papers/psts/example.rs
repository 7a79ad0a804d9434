//! The example of section 4.2, tables 1 to 5: 18 nodes in three rows.

use std::ops::Range;

use super::super::{Item, Job, Value};
use super::{bench, powers};
use equipoise::error::{Error, Result};
use equipoise::load::Plan;
use equipoise::node;
use equipoise::phase::Outcome;
use equipoise::topology::{Overlay, Topology};
use equipoise::transport::sim::{Model, Network};
use equipoise::transport::world::World;

/// Table 1.
const POWERS: [u64; 18] = [3, 4, 5, 2, 1, 5, 1, 2, 2, 1, 1, 3, 5, 1, 4, 2, 6, 2];
const LOADS: [u64; 18] = [250, 300, 150, 100, 50, 150, 200, 300, 100, 400, 300, 700, 200, 50, 50, 200, 300, 200];
/// Table 4, line M: what each node of the second row gives to other rows.
const GIVEN: [f64; 6] = [120.0, 180.0, 60.0, 240.0, 180.0, 420.0];
/// Table 4: what is left of these nodes' loads.
const LEFT: [f64; 6] = [80.0, 120.0, 40.0, 160.0, 120.0, 280.0];
/// Table 4: the position of each node's first task among those that its row gets.
const POSITIONS: [f64; 6] = [0.0, 120.0, 300.0, 360.0, 0.0, 180.0];

/// The rows of the grid.
const ROWS: [Range<usize>; 3] = [0..6, 6..12, 12..18];

pub(super) fn jobs() -> Vec<Job> {
    let job = |table: u32, measure: fn() -> Result<Vec<Value>>| Job::new(Item::Table(table), "example", 0.0, [1, 1], move |_, _| measure());
    vec![job(1, example), job(2, scans_of_a_row), job(3, scans_of_rows), job(4, sender), job(5, migrating)]
}

/// Sums before each node, and the sum of all, as the collectives of a phase find them.
fn scanned(numbers: &[u64]) -> Result<(Vec<u64>, u64)> {
    let nodes = numbers.len() as u32;
    let overlay = Overlay::one_host(Topology::parse("line", nodes)?, nodes)?;
    let mut world = World::simulated(nodes, Model { network: Network::Zero, ..Model::default() });
    let mut found = node::run(&mut world, &overlay, |node| {
        let mine = numbers[node.me() as usize];
        async move {
            let everyone = node.everyone();
            Ok((everyone.sum_before(&node, mine).await?, everyone.sum(&node, mine).await?))
        }
    })?;
    found.sort_unstable();
    let total = found.first().map_or(0, |(_, (_, total))| *total);
    Ok((found.into_iter().map(|(_, (before, _))| before).collect(), total))
}

/// Numbers of ours with the printed ones, named by where they stand.
fn printed(what: &str, ours: impl IntoIterator<Item = f64>, theirs: &[f64], digit: f64) -> Vec<Value> {
    let named = |(at, (ours, theirs)): (usize, (f64, &f64))| Value::exact(format!("{what}, {}", at + 1), ours, Some(*theirs), digit);
    ours.into_iter().zip(theirs).enumerate().map(named).collect()
}

fn numbers(list: &[u64]) -> Vec<f64> {
    list.iter().map(|number| *number as f64).collect()
}

fn parts(numbers: &[u64], total: u64) -> impl Iterator<Item = f64> + '_ {
    numbers.iter().map(move |number| *number as f64 / total as f64)
}

/// Table 2: the first row's powers and loads, scanned.
fn scans_of_a_row() -> Result<Vec<Value>> {
    let row = ROWS[0].clone();
    let ((powers_before, power), (loads_before, load)) = (scanned(&POWERS[row.clone()])?, scanned(&LOADS[row.clone()])?);
    Ok([
        printed("powers before", numbers(&powers_before), &[0.0, 3.0, 7.0, 12.0, 14.0, 15.0], 1.0),
        printed("part of the power", parts(&POWERS[row], power), &[0.15, 0.2, 0.25, 0.1, 0.05, 0.25], 0.01),
        printed("part of the power before", parts(&powers_before, power), &[0.0, 0.15, 0.35, 0.6, 0.7, 0.75], 0.01),
        printed("tasks before", numbers(&loads_before), &[0.0, 250.0, 550.0, 700.0, 800.0, 850.0], 1.0),
        printed("tasks of the row", [load as f64], &[1000.0], 1.0),
    ]
    .concat())
}

/// Table 3: powers and loads of the rows, scanned.
fn scans_of_rows() -> Result<Vec<Value>> {
    let of = |list: &[u64; 18]| ROWS.map(|row| list[row].iter().sum::<u64>());
    let (row_powers, row_loads) = (of(&POWERS), of(&LOADS));
    let ((powers_before, power), (loads_before, load)) = (scanned(&row_powers)?, scanned(&row_loads)?);
    Ok([
        printed("power of the row", numbers(&row_powers), &[20.0, 10.0, 20.0], 1.0),
        printed("powers before", numbers(&powers_before), &[0.0, 20.0, 30.0], 1.0),
        printed("part of the power", parts(&row_powers, power), &[0.4, 0.2, 0.4], 0.01),
        printed("part of the power before", parts(&powers_before, power), &[0.0, 0.4, 0.6], 0.01),
        printed("tasks of the row", numbers(&row_loads), &[1000.0, 2000.0, 1000.0], 1.0),
        printed("tasks before", numbers(&loads_before), &[0.0, 1000.0, 3000.0], 1.0),
        printed("tasks of all rows", [load as f64], &[4000.0], 1.0),
    ]
    .concat())
}

/// The plan of the example.
fn plan() -> Result<(Vec<u64>, Plan)> {
    let Outcome { finals, plan, .. } = bench("grid:3x6", powers(POWERS.to_vec())?, Network::Zero)?.phase(&LOADS, true)?;
    Ok((finals, plan))
}

/// Table 4: the second row's nodes, what they give to other rows, where it begins there, and what they keep for their own.
fn sender() -> Result<Vec<Value>> {
    let (_, plan) = plan()?;
    let row = ROWS[1].clone();
    let to = |node: usize, row: &Range<usize>| {
        let goes = |sent: &&equipoise::load::Transfer| sent.src as usize == node && row.contains(&(sent.dst as usize));
        plan.transfers.iter().filter(goes).map(|sent| sent.tasks).sum::<u64>()
    };
    let given: Vec<u64> = row.clone().map(|node| to(node, &ROWS[0]) + to(node, &ROWS[2])).collect();
    // Each node of the example gives to one row only.
    let mut before = [0, 0];
    let positions = row.clone().zip(&given).map(|(node, given)| {
        let which = usize::from(to(node, &ROWS[2]) > 0);
        let position = before[which];
        before[which] += given;
        position as f64
    });
    let positions: Vec<f64> = positions.collect();
    let left: Vec<u64> = given.iter().zip(&LOADS[row]).map(|(given, load)| load - given).collect();
    let (left_before, _) = scanned(&left)?;
    Ok([
        printed("given by v2x", numbers(&given), &GIVEN, 1.0),
        printed("its position", positions, &POSITIONS, 1.0),
        printed("left on v2x", numbers(&left), &LEFT, 1.0),
        printed("left before v2x", numbers(&left_before), &[0.0, 80.0, 200.0, 240.0, 400.0, 520.0], 1.0),
    ]
    .concat())
}

/// Tables 1 to 5: final loads against equation 4, and where units go.
fn example() -> Result<Vec<Value>> {
    let (finals, plan) = plan()?;
    let total: u64 = LOADS.iter().sum();
    let mut values = Vec::new();
    let off = finals.iter().zip(POWERS).filter(|(load, power)| **load != total * power / POWERS.iter().sum::<u64>()).count();
    values.push(Value::exact("final loads that are not W tau / Pi", off as f64, Some(0.0), 1.0));
    let between_rows = || plan.transfers.iter().filter(|sent| sent.src / 6 != sent.dst / 6);
    let senders = between_rows().map(|sent| sent.src / 6 + 1).collect::<std::collections::BTreeSet<u32>>();
    values.push(Value::exact("rows that send", senders.len() as f64, Some(1.0), 1.0));
    for (node, printed) in (6..12).zip(GIVEN) {
        let given: u64 = between_rows().filter(|sent| sent.src == node).map(|sent| sent.tasks).sum();
        values.push(Value::exact(format!("given by v2{}", node - 5), given as f64, Some(printed), 1.0));
    }
    values.extend(landings(&plan)?);
    Ok(values)
}

/// A node gives its units in order to the nodes of a row: that of number `unit` goes where the sum passes it.
fn landings(plan: &Plan) -> Result<Vec<Value>> {
    let lands = |node: u32, unit: u64, mut row: Range<u32>| {
        let mut before = 0;
        row.find(|to| {
            before += plan.transfers.iter().filter(|sent| (sent.src, sent.dst) == (node, *to)).map(|sent| sent.tasks).sum::<u64>();
            before > unit
        })
    };
    let mut values = Vec::new();
    for (name, node, unit, row, printed) in
        [("v22's unit 100 lands on node", 7, 100, 0..6, 2.0), ("v26's unit 200 lands on node", 11, 200, 12..18, 16.0)]
    {
        let to = lands(node, unit, row).ok_or_else(|| Error::Failed(format!("{name}: it is not sent")))?;
        values.push(Value::exact(name, f64::from(to), Some(printed), 1.0));
    }
    Ok(values)
}

/// Table 5: where single units of two nodes are among the 600 that their row gets, as a part of these, and where they go.
fn migrating() -> Result<Vec<Value>> {
    let (_, plan) = plan()?;
    let given = |nodes: Range<u32>, row: &Range<u32>| {
        let goes = |sent: &&equipoise::load::Transfer| nodes.contains(&sent.src) && row.contains(&sent.dst);
        plan.transfers.iter().filter(goes).map(|sent| sent.tasks).sum::<u64>()
    };
    let mut values = landings(&plan)?;
    // The rows that get tasks: where the power of each node begins, as a part of the row's.
    for (name, row, theirs) in [
        ("part of row 1's power before", ROWS[0].clone(), [0.0, 0.15, 0.35, 0.6, 0.7, 0.75]),
        ("part of row 3's power before", ROWS[2].clone(), [0.0, 0.25, 0.3, 0.5, 0.6, 0.9]),
    ] {
        let (before, power) = scanned(&POWERS[row])?;
        values.extend(printed(name, parts(&before, power), &theirs, 0.01));
    }
    for (name, node, unit, row, printed) in
        [("place of v22's unit 100", 7, 100, 0..6, 0.37), ("place of v26's unit 200", 11, 200, 12..18, 0.63)]
    {
        let place = (given(6..node, &row) + unit) as f64 / given(6..12, &row) as f64;
        values.push(Value::exact(name, place, Some(printed), 0.01));
    }
    Ok(values)
}
