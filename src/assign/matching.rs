//! Matching of sets of tasks with ranks of equal power that keeps most work in place: an assignment problem.

use std::collections::BTreeMap;

use super::Problem;

/// Maximum number of ranks for which the matching is optimal. With more, it is greedy: pairs that keep most work come first.
const EXACT: usize = 256;

/// The rank of each set. There are no more sets than ranks.
pub fn matched(problem: &Problem<'_>, sets: &[Vec<usize>]) -> Vec<u32> {
    // Work of each set that would stay, on each rank that holds some of it.
    let kept: Vec<BTreeMap<u32, u64>> = sets
        .iter()
        .map(|set| {
            let mut kept = BTreeMap::new();
            set.iter().for_each(|task| *kept.entry(problem.owners[*task]).or_insert(0) += problem.weights[*task]);
            kept
        })
        .collect();
    if problem.ranks() <= EXACT { best(&kept, problem.ranks()) } else { largest_first(&kept, problem.ranks()) }
}

/// The Hungarian method with potentials (Kuhn 1955, in the form of Jonker and Volgenant 1987): sets are rows, ranks are columns, the cost is what
/// does not stay. O(sets * ranks^2).
fn best(kept: &[BTreeMap<u32, u64>], ranks: usize) -> Vec<u32> {
    let cost = |row: usize, column: usize| -i128::from(kept[row].get(&(column as u32)).copied().unwrap_or(0));
    let (mut of_row, mut of_column) = (vec![0i128; kept.len()], vec![0i128; ranks]);
    // Row of each column; the column past the end stands for the row that looks for a column.
    let mut row_of: Vec<Option<usize>> = vec![None; ranks + 1];
    for row in 0..kept.len() {
        row_of[ranks] = Some(row);
        let (mut column, mut before) = (ranks, vec![ranks; ranks]);
        let (mut least, mut seen) = (vec![i128::MAX; ranks], vec![false; ranks]);
        while let Some(at) = row_of[column] {
            if column < ranks {
                seen[column] = true;
            }
            let (mut step, mut next) = (i128::MAX, ranks);
            for to in (0..ranks).filter(|to| !seen[*to]) {
                let slack = cost(at, to) - of_row[at] - of_column[to];
                if slack < least[to] {
                    (least[to], before[to]) = (slack, column);
                }
                if least[to] < step {
                    (step, next) = (least[to], to);
                }
            }
            of_row[row] += step;
            for to in 0..ranks {
                match (seen[to], row_of[to]) {
                    (true, Some(other)) => {
                        of_row[other] += step;
                        of_column[to] -= step;
                    }
                    _ => least[to] = least[to].saturating_sub(step),
                }
            }
            column = next;
        }
        while column < ranks {
            let from = before[column];
            row_of[column] = row_of[from];
            column = from;
        }
    }
    let mut ranks_of = vec![0; kept.len()];
    for (column, row) in row_of[..ranks].iter().enumerate() {
        if let Some(row) = row {
            ranks_of[*row] = column as u32;
        }
    }
    ranks_of
}

/// Greedy matching: among all pairs of a set and a rank, the pair that keeps most work comes first.
fn largest_first(kept: &[BTreeMap<u32, u64>], ranks: usize) -> Vec<u32> {
    let mut pairs: Vec<(u64, usize, u32)> = Vec::new();
    for (set, kept) in kept.iter().enumerate() {
        pairs.extend(kept.iter().map(|(rank, work)| (*work, set, *rank)));
    }
    pairs.sort_by(|a, b| b.0.cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let (mut found, mut taken) = (vec![None; kept.len()], vec![false; ranks]);
    for (_, set, rank) in pairs {
        if found[set].is_none() && !taken[rank as usize] {
            found[set] = Some(rank);
            taken[rank as usize] = true;
        }
    }
    let mut free = (0..ranks as u32).filter(|rank| !taken[*rank as usize]);
    found.into_iter().map(|rank| rank.or_else(|| free.next()).unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn total(kept: &[BTreeMap<u32, u64>], ranks: &[u32]) -> u64 {
        kept.iter().zip(ranks).map(|(kept, rank)| kept.get(rank).copied().unwrap_or(0)).sum()
    }

    /// Returns the largest sum that any matching keeps, by trying all.
    fn most(kept: &[BTreeMap<u32, u64>], free: &mut Vec<u32>) -> u64 {
        let Some((first, rest)) = kept.split_first() else { return 0 };
        let mut most_of_all = 0;
        for at in 0..free.len() {
            let rank = free.swap_remove(at);
            most_of_all = most_of_all.max(first.get(&rank).copied().unwrap_or(0) + most(rest, free));
            free.push(rank);
            let last = free.len() - 1;
            free.swap(at, last);
        }
        most_of_all
    }

    proptest! {
        #[test]
        fn nothing_keeps_more(rows in prop::collection::vec(prop::collection::vec(0u64..20, 5), 0..6)) {
            let kept: Vec<BTreeMap<u32, u64>> = rows.iter().map(|row| (0..).zip(row.iter().copied()).collect()).collect();
            let kept = &kept[..kept.len().min(5)];
            let ranks = best(kept, 5);
            let mut once = ranks.clone();
            once.sort_unstable();
            once.dedup();
            prop_assert_eq!(once.len(), kept.len());
            prop_assert_eq!(total(kept, &ranks), most(kept, &mut (0..5).collect()));
            let quick = largest_first(kept, 5);
            prop_assert!(2 * total(kept, &quick) >= total(kept, &ranks), "half of the most is certain");
        }
    }
}
