//! The exact small cases, for every reading.

use super::phase::{Rules, schedule};
use crate::load::{CYCLE, Cost, Costs};

/// A file's matrix, and its lines of results.
fn read(text: &str) -> (Costs, Vec<&str>) {
    let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let numbers = |line: &&str| line.split_whitespace().map(|cost| cost.parse::<Cost>().unwrap() * CYCLE).collect::<Vec<_>>();
    let ranks = numbers(&rows[0]).len() as u32;
    let costs = Costs::new(ranks, rows.iter().flat_map(numbers).collect()).unwrap();
    (costs, text.lines().filter(|line| line.starts_with("# SASH")).collect())
}

#[test]
fn every_reading_gives_the_published_totals() {
    for text in [include_str!("../../../tests/vectors/sash_6x3.txt"), include_str!("../../../tests/vectors/sash_12x4.txt")] {
        let (costs, results) = read(text);
        let mut held = 0;
        for line in results.iter().filter(|line| line.contains(": T ")) {
            let name = line.split_whitespace().nth(2).unwrap().to_lowercase();
            let figures: Vec<u64> = line.rsplit(": T ").next().unwrap().split_whitespace().filter_map(|word| word.parse().ok()).collect();
            let rules = Rules::named(&name).unwrap();
            let (total, tally) = schedule(&costs, (0..costs.ranks() - 1).collect(), &rules);
            let ours =
                [total, tally.phases * CYCLE, tally.expansions * CYCLE, tally.nodes * CYCLE, tally.waiting].map(|units| units / CYCLE);
            assert_eq!(ours.to_vec(), figures, "{line}");
            held += 1;
        }
        assert_eq!(held, 6);
    }
}
