//! The figures of Wu 1997, with fewer cases than `equipoise reproduce` runs.

use equipoise_lab::experiment::wu1997::{SERIES, Series, WuPoint, WuQuantity, reproduce};

fn check(series: &[&Series], cases: impl Fn(&Series) -> u32) {
    let points = series.len() * 6;
    let measured: Vec<WuPoint> =
        series.iter().flat_map(|series| reproduce(series, cases(series), 7, points).expect("balancers balance")).collect();
    assert_eq!(measured.len(), points);
    let off: Vec<&WuPoint> = measured.iter().filter(|point| !point.agrees).collect();
    assert!(off.is_empty(), "{off:#?}");
    // A tolerance that anything meets would not test anything.
    let loose = measured.iter().filter(|point| point.expected > 0.04 && point.tolerance > point.expected).count();
    assert!(loose * 4 <= points, "{loose} of {points} tolerances are wider than what they are for: {measured:#?}");
}

#[test]
fn dem_balances_as_often_as_table_1_says_and_moves_as_much_as_figures_14_and_15() {
    let dem: Vec<&Series> = SERIES.iter().filter(|series| series.balancer == "dem").collect();
    check(&dem, |series| if series.quantity == WuQuantity::Balanced { 150 } else { 300 });
}

#[test]
fn cwa_costs_what_figures_15_and_16_say() {
    let cwa: Vec<&Series> = SERIES.iter().filter(|series| series.balancer == "cwa").collect();
    check(&cwa, |series| if series.topology == "hypercube:6" { 8 } else { 80 });
}

#[test]
fn mwa_costs_what_figure_17_says() {
    let mwa: Vec<&Series> = SERIES.iter().filter(|series| series.balancer == "mwa").collect();
    check(&mwa, |series| match series.topology {
        "mesh:16x8" => 8,
        "mesh:8x4" => 20,
        _ => 60,
    });
}
