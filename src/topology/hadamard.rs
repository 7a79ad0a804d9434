//! Medians of a hypercube from Hadamard matrices.
//!
//! Ahmad, Ghafoor and Fox (1994, section 3) take as medians of Q_n the rows of a normalised Hadamard matrix of order n and their
//! complements, read as node addresses: few, far apart (least distance n/2), and near to every node (covering radius 2 on Q_8). Where
//! no matrix of order n exists, the one of order 4 * ceil(n / 4) loses its first columns.
//!
//! Matrices are Sylvester's where the order is a power of two, otherwise Paley's, from quadratic residues: the first construction for
//! orders 12, 20 and 24, the second for 28.

use super::{InvalidTopology, MAX_DIMENSION, NodeId};

/// Set of code words of the Hadamard code that serve as medians.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MedianSet {
    /// The full code from n = 6 up. Below, where that would make regions of one or two processors, a linear sub-code whose regions hold
    /// at least four: one region for n <= 2, two for n = 3, four for n = 4, eight for n = 5.
    #[default]
    Default,
    /// The full code for every n: as the paper has it.
    Full,
}

/// The medians of the cube of dimension `n`, 0 to 30, in ascending order of address.
pub fn medians(n: u32, set: MedianSet) -> Result<Vec<NodeId>, InvalidTopology> {
    let code = codewords(n)?;
    let most = (1usize << n) / SMALLEST_REGION;
    if set == MedianSet::Full || code.len() <= most {
        return Ok(code);
    }
    Ok(best_subcode(n, &code, most.max(1).ilog2()))
}

/// Smallest size of a region in processors, in cubes that have at least this number.
const SMALLEST_REGION: usize = 4;

/// The words of the Hadamard code of length `n`, 0 to 30: rows and complements, without duplicates, in ascending order.
pub fn codewords(n: u32) -> Result<Vec<NodeId>, InvalidTopology> {
    if n > MAX_DIMENSION {
        return Err(InvalidTopology::TooManyDimensions { spec: format!("hypercube:{n}") });
    }
    // The first columns are the high bits, so that dropping them is masking.
    let kept = (1u32 << n) - 1;
    let rows = normalised_matrix(n.div_ceil(4).max(1) * 4);
    let mut words: Vec<NodeId> = rows.iter().flat_map(|row| [row & kept, !row & kept]).collect();
    words.sort_unstable();
    words.dedup();
    Ok(words)
}

/// The least distance between two different words, in hops; 0 when there are fewer than two.
pub fn least_distance(words: &[NodeId]) -> u32 {
    let pairs = words.iter().enumerate().flat_map(|(i, a)| words[..i].iter().map(move |b| a ^ b));
    pairs.map(u32::count_ones).min().unwrap_or(0)
}

/// The distance from a node to the nearest of `words`, in hops.
pub fn distance_to_nearest(words: &[NodeId], node: NodeId) -> u32 {
    words.iter().map(|word| (word ^ node).count_ones()).min().unwrap_or(0)
}

/// The greatest distance of any node of the cube of dimension `n` from the nearest of `words`, in hops. Looks at all 2^n nodes.
pub fn covering_radius(n: u32, words: &[NodeId]) -> u32 {
    (0..1u32 << n).map(|node| distance_to_nearest(words, node)).max().unwrap_or(0)
}

/// The number of nodes of the cube of dimension `n` within `radius` hops of one node: the sum of binomials n over 0..=radius.
pub fn sphere_size(n: u32, radius: u32) -> u64 {
    let mut shell = 1;
    let mut size = 1;
    for i in 1..=radius.min(n) {
        shell = shell * u64::from(n - i + 1) / u64::from(i);
        size += shell;
    }
    size
}

/// The best linear sub-code of 2^`dimension` words: the greatest least distance, then the smallest covering radius, then closed under
/// complement as the whole code is, then the lowest addresses. Only codes of small cubes come here, at most 16 words.
fn best_subcode(n: u32, code: &[NodeId], dimension: u32) -> Vec<NodeId> {
    let all_ones = (1u32 << n) - 1;
    let mut spans = vec![vec![0]];
    for _ in 0..dimension {
        let mut wider: Vec<Vec<NodeId>> = Vec::new();
        for span in &spans {
            for word in code.iter().filter(|word| !span.contains(word)) {
                let mut sum: Vec<NodeId> = span.iter().flat_map(|old| [*old, old ^ word]).collect();
                sum.sort_unstable();
                wider.push(sum);
            }
        }
        wider.sort_unstable();
        wider.dedup();
        spans = wider;
    }
    let order = |words: &Vec<NodeId>| (std::cmp::Reverse(least_distance(words)), covering_radius(n, words), !words.contains(&all_ones));
    // The first of equals wins, and spans are in ascending order.
    spans.into_iter().min_by_key(order).unwrap_or_else(|| vec![0])
}

/// The rows of a Hadamard matrix of the given order, a multiple of 4 up to 32, as bit patterns: column j is bit `order - 1 - j`, set
/// where the entry is -1. The first row and the first column are all +1.
fn normalised_matrix(order: u32) -> Vec<u32> {
    let negative: Box<dyn Fn(u32, u32) -> bool> = if order.is_power_of_two() {
        Box::new(|i, j| (i & j).count_ones() % 2 == 1)
    } else if order == 28 {
        Box::new(|i, j| paley_second(13, i, j))
    } else {
        Box::new(move |i, j| paley_first(order - 1, i, j))
    };
    let entry = |i: u32, j: u32| negative(i, j) ^ negative(i, 0) ^ negative(0, j) ^ negative(0, 0);
    let row = |i: u32| (0..order).fold(0, |row, j| row << 1 | u32::from(entry(i, j)));
    (0..order).map(row).collect()
}

/// The quadratic character of `a` modulo the odd prime `q`: 0, +1 for squares, -1 otherwise.
fn character(q: u32, a: u32) -> i32 {
    match a % q {
        0 => 0,
        a if (1..q).any(|x| x * x % q == a) => 1,
        _ => -1,
    }
}

/// The bordered matrix of quadratic characters: 0 on the diagonal, +1 in the first row, `corner` in the first column.
fn conference(q: u32, corner: i32, i: u32, j: u32) -> i32 {
    match (i, j) {
        (0, 0) => 0,
        (0, _) => 1,
        (_, 0) => corner,
        (i, j) => character(q, q + i - j),
    }
}

/// Returns true if entry (i, j) of Paley's first matrix is -1. The matrix has order q + 1 for a prime q = 3 modulo 4, and is the skew
/// conference matrix plus the identity.
fn paley_first(q: u32, i: u32, j: u32) -> bool {
    i != j && conference(q, -1, i, j) < 0
}

/// Returns true if entry (i, j) of Paley's second matrix is -1. The matrix has order 2(q + 1) for a prime q = 1 modulo 4, and is the
/// symmetric conference matrix with each +-1 replaced by +-[+ +; + -] and each 0 by [+ -; - -].
fn paley_second(q: u32, i: u32, j: u32) -> bool {
    let (bottom, right) = (i % 2 == 1, j % 2 == 1);
    match conference(q, 1, i / 2, j / 2) {
        0 => bottom || right,
        sign => (sign < 0) ^ (bottom && right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_are_hadamard_and_normalised() {
        for order in (4..=32).step_by(4) {
            let rows = normalised_matrix(order);
            assert_eq!(rows[0], 0);
            for (i, row) in rows.iter().enumerate() {
                assert_eq!(row >> (order - 1), 0);
                for other in &rows[..i] {
                    assert_eq!((row ^ other).count_ones(), order / 2, "order {order}");
                }
            }
        }
    }

    #[test]
    fn multiples_of_four_have_the_known_codes() {
        let known = [(4, 8, 1, 5), (8, 16, 2, 37), (12, 24, 4, 794), (16, 32, 6, 14_893)];
        for (n, words, radius, sphere) in known {
            let code = codewords(n).unwrap();
            assert_eq!(code.len(), words);
            assert_eq!(least_distance(&code), n / 2);
            assert_eq!(covering_radius(n, &code), radius);
            assert_eq!(sphere_size(n, radius), sphere);
        }
    }

    #[test]
    fn other_dimensions_have_the_known_sizes_and_radii() {
        let sizes = [1, 2, 4, 8, 8, 16, 16, 16, 16, 24, 24, 24, 24, 32, 32, 32, 32];
        let radii = [0, 0, 0, 0, 1, 1, 1, 1, 2, 3, 3, 3, 4];
        for (n, size) in sizes.into_iter().enumerate() {
            assert_eq!(codewords(n as u32).unwrap().len(), size, "n = {n}");
        }
        for (n, radius) in radii.into_iter().enumerate() {
            let code = codewords(n as u32).unwrap();
            assert_eq!(covering_radius(n as u32, &code), radius, "n = {n}");
        }
        assert_eq!(codewords(20).unwrap().len(), 40);
        assert_eq!(codewords(30).unwrap().len(), 64);
        assert!(codewords(31).is_err());
    }

    #[test]
    fn each_median_of_q8_has_one_opposite_and_fourteen_half_way() {
        let code = codewords(8).unwrap();
        for median in &code {
            let at = |distance| code.iter().filter(|other| (*other ^ median).count_ones() == distance).count();
            assert_eq!((at(0), at(4), at(8)), (1, 14, 1));
        }
    }

    #[test]
    fn codes_contain_the_complement_of_every_word() {
        for n in 0..=20 {
            let code = codewords(n).unwrap();
            let all_ones = (1u32 << n) - 1;
            assert!(code.iter().all(|word| code.binary_search(&(word ^ all_ones)).is_ok()), "n = {n}");
        }
    }

    #[test]
    fn small_cubes_keep_a_linear_part_of_the_code() {
        let by_default = |n| medians(n, MedianSet::Default).unwrap();
        assert_eq!(by_default(0), [0]);
        assert_eq!(by_default(1), [0]);
        assert_eq!(by_default(2), [0]);
        assert_eq!(by_default(3), [0b000, 0b111]);
        assert_eq!(by_default(4).len(), 4);
        assert_eq!(by_default(5).len(), 8);
        for n in 0..=5 {
            let (kept, code) = (by_default(n), codewords(n).unwrap());
            assert!(kept.iter().all(|word| code.contains(word)));
            assert!(kept.iter().all(|a| kept.iter().all(|b| kept.contains(&(a ^ b)))), "n = {n}");
            assert!(n < 4 || least_distance(&kept) == 2);
        }
        for n in 6..=16 {
            assert_eq!(by_default(n), medians(n, MedianSet::Full).unwrap());
        }
    }
}
