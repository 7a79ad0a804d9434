//! Tasks with places in space: recursive coordinate bisection, and the order along Hilbert's curve.
//!
//! Both keep near tasks together, so that communication between neighbours crosses few ranks. They use only places and weights.

use super::chains::ordered_chains;
use super::{Assignment, Problem};
use crate::load::Place;

/// Bits of each coordinate on Hilbert's curve: three of them fit into 63 bits.
const BITS: u32 = 21;

/// Recursive coordinate bisection (M. J. Berger and S. H. Bokhari, A partitioning strategy for nonuniform problems on multiprocessors, IEEE Trans.
/// Comput. 36, 1987): the ranks are halved, and the tasks are cut across the longest side of the box that holds them, in proportion to the halves'
/// powers.
///
/// Each cut is off by less than the task that it falls on. `places` are by task. O(n log^2 n).
pub fn bisection(problem: &Problem<'_>, places: &[Place]) -> Assignment {
    let mut assignment = vec![0; problem.weights.len()];
    let mut tasks: Vec<usize> = (0..problem.weights.len()).collect();
    bisect(problem, places, &mut tasks, 0, problem.ranks(), &mut assignment);
    assignment
}

fn bisect(problem: &Problem<'_>, places: &[Place], tasks: &mut [usize], first: usize, end: usize, assignment: &mut [u32]) {
    if end - first == 1 || tasks.is_empty() {
        tasks.iter().for_each(|task| assignment[*task] = first as u32);
        return;
    }
    let middle = usize::midpoint(first, end);
    let axis = longest_side(places, tasks);
    tasks.sort_by(|a, b| places[*a][axis].total_cmp(&places[*b][axis]).then(a.cmp(b)));
    let work: u128 = tasks.iter().map(|task| u128::from(problem.weights[*task])).sum();
    let fixed = |ranks: std::ops::Range<usize>| ranks.map(|rank| u128::from(problem.fixed[rank])).sum::<u128>();
    let power = |ranks: std::ops::Range<usize>| ranks.map(|rank| u128::from(problem.powers[rank])).sum::<u128>();
    let (all, lower) = (power(first..end), power(first..middle));
    // The lower ranks' share of all work, less their fixed work.
    let share = ((work + fixed(first..end)) * lower).checked_div(all).unwrap_or(0).saturating_sub(fixed(first..middle));
    let (mut sum, mut cut) = (0, 0);
    while cut < tasks.len() {
        let next = sum + u128::from(problem.weights[tasks[cut]]);
        // The cut lies where the sum is nearer to the share.
        if next > share && next - share > share - sum {
            break;
        }
        (sum, cut) = (next, cut + 1);
        if sum >= share {
            break;
        }
    }
    if lower == all {
        cut = tasks.len();
    }
    let (below, above) = tasks.split_at_mut(cut);
    bisect(problem, places, below, first, middle, assignment);
    bisect(problem, places, above, middle, end, assignment);
}

/// The coordinate in which the tasks lie furthest apart; the first among equal ones.
fn longest_side(places: &[Place], tasks: &[usize]) -> usize {
    let side = |axis: usize| {
        let of_axis = || tasks.iter().map(|task| places[*task][axis]);
        of_axis().fold(f64::NEG_INFINITY, f64::max) - of_axis().fold(f64::INFINITY, f64::min)
    };
    let sides = [side(0), side(1), side(2)];
    (1..3).fold(0, |longest, axis| if sides[axis] > sides[longest] { axis } else { longest })
}

/// Cuts the tasks, in their order along Hilbert's curve through the box that holds them, as [`chains`](super::chains) does.
pub fn along_curve(problem: &Problem<'_>, places: &[Place]) -> Assignment {
    let mut order: Vec<usize> = (0..places.len()).collect();
    let index = on_curve(places);
    order.sort_by_key(|task| (index[*task], *task));
    let weights: Vec<u64> = order.iter().map(|task| problem.weights[*task]).collect();
    let owners: Vec<u32> = order.iter().map(|task| problem.owners[*task]).collect();
    let cut = ordered_chains(&Problem { weights: &weights, owners: &owners, ..*problem });
    let mut assignment = vec![0; places.len()];
    for (task, rank) in order.into_iter().zip(cut) {
        assignment[task] = rank;
    }
    assignment
}

/// Each place's number along the curve. The box is a cube with the longest side, so that the curve is as fine in all directions.
fn on_curve(places: &[Place]) -> Vec<u64> {
    let least = |axis: usize| places.iter().map(|place| place[axis]).fold(f64::INFINITY, f64::min);
    let most = |axis: usize| places.iter().map(|place| place[axis]).fold(f64::NEG_INFINITY, f64::max);
    let corner = [least(0), least(1), least(2)];
    // In halves: the difference of two numbers may be beyond the largest one.
    let from_corner = |at: f64, axis: usize| at / 2.0 - corner[axis] / 2.0;
    let sides = [0, 1, 2].map(|axis| from_corner(most(axis), axis));
    let side = sides.into_iter().fold(0.0, f64::max);
    let cells = f64::from((1u32 << BITS) - 1);
    let in_cells = |length: f64| if side > 0.0 { (length / side * cells) as u32 } else { 0 };
    let cell = |place: &Place, axis: usize| in_cells(from_corner(place[axis], axis));
    // A plane of the curve through a cube would jump. A side below a cell is rounding.
    let extended: Vec<usize> = (0..3).filter(|axis| in_cells(sides[*axis]) > 0).collect();
    let number = |place: &Place| match extended[..] {
        [axis] => cell(place, axis).into(),
        [first, second] => hilbert([first, second].map(|axis| cell(place, axis)), BITS),
        _ => hilbert([0, 1, 2].map(|axis| cell(place, axis)), BITS),
    };
    places.iter().map(number).collect()
}

/// The number of a cell along Hilbert's curve through a square or a cube of 2^bits cells a side (J. Skilling, Programming the Hilbert curve,
/// AIP Conf. Proc. 707, 2004): the inverse of undoing excess work on Gray codes, axis by axis from the highest bit down, and then the bits of all axes in turns.
fn hilbert<const AXES: usize>(mut axes: [u32; AXES], bits: u32) -> u64 {
    let mut high = 1 << (bits - 1);
    while high > 1 {
        let low = high - 1;
        for axis in 0..AXES {
            if axes[axis] & high != 0 {
                axes[0] ^= low;
            } else {
                let exchanged = (axes[0] ^ axes[axis]) & low;
                axes[0] ^= exchanged;
                axes[axis] ^= exchanged;
            }
        }
        high >>= 1;
    }
    // Gray encode.
    for axis in 1..AXES {
        axes[axis] ^= axes[axis - 1];
    }
    let (mut flip, mut high) = (0, 1 << (bits - 1));
    while high > 1 {
        if axes[AXES - 1] & high != 0 {
            flip ^= high - 1;
        }
        high >>= 1;
    }
    axes.iter_mut().for_each(|axis| *axis ^= flip);
    (0..bits).rev().flat_map(|bit| axes.map(|axis| u64::from(axis >> bit & 1))).fold(0, |number, bit| number << 1 | bit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Defining property of the Hilbert curve: it visits all cells, each next to the one before, and each octant without interruption.
    #[test]
    fn the_curve_goes_from_neighbour_to_neighbour() {
        let side = 8;
        let mut cells: Vec<(u64, [u32; 3])> = (0..side * side * side)
            .map(|cell| [cell / side / side, cell / side % side, cell % side])
            .map(|cell| (hilbert(cell, 3), cell))
            .collect();
        cells.sort_unstable();
        assert!(cells.iter().map(|(number, _)| *number).eq(0..512));
        for pair in cells.windows(2) {
            let distance: u32 = (0..3).map(|axis| pair[0].1[axis].abs_diff(pair[1].1[axis])).sum();
            assert_eq!(distance, 1, "{pair:?}");
        }
        for octant in cells.chunks(64) {
            assert!(octant.iter().all(|(_, cell)| cell.map(|axis| axis / 4) == octant[0].1.map(|axis| axis / 4)));
        }
    }

    #[test]
    fn the_curve_through_a_square_does_so_too() {
        let side = 64;
        // The plane is flat but for rounding errors.
        let x = |cell: i32| 0.1 + f64::from(cell % 2) * 1e-16;
        let places: Vec<Place> = (0..side * side).map(|cell| [x(cell), f64::from(cell / side), f64::from(cell % side)]).collect();
        let mut cells: Vec<(u64, &Place)> = on_curve(&places).into_iter().zip(&places).collect();
        cells.sort_by_key(|(number, _)| *number);
        for pair in cells.windows(2) {
            let distance: f64 = (1..3).map(|axis| (pair[0].1[axis] - pair[1].1[axis]).abs()).sum();
            assert_eq!(distance, 1.0, "{pair:?}");
        }
    }

    #[test]
    fn points_of_a_line_keep_their_order() {
        let places: Vec<Place> = (0..100).map(|at| [2.0, f64::from(at * 37 % 100), -1.0]).collect();
        let numbers = on_curve(&places);
        let mut order: Vec<usize> = (0..100).collect();
        order.sort_by_key(|at| numbers[*at]);
        assert!(order.iter().map(|at| places[*at][1]).eq((0..100).map(f64::from)));
        assert_eq!(on_curve(&[[5.0, 5.0, 5.0]; 3]), [0; 3], "a point is no line");
        let far = on_curve(&[-f64::MAX, 0.0, f64::MAX].map(|x| [x, 0.0, 0.0]));
        assert!(far[0] < far[1] && far[1] < far[2], "{far:?}");
    }

    #[test]
    fn a_plate_is_cut_across_its_longest_side() {
        let places: Vec<Place> = (0..8).map(|at| [f64::from(at), f64::from(at % 2) / 2.0, 0.0]).collect();
        let problem = Problem { weights: &[1; 8], owners: &[0; 8], fixed: &[0; 4], powers: &[1, 1, 1, 1] };
        assert_eq!(bisection(&problem, &places), [0, 0, 1, 1, 2, 2, 3, 3]);
        let unequal = Problem { powers: &[3, 1, 2, 2], ..problem };
        assert_eq!(bisection(&unequal, &places), [0, 0, 0, 1, 2, 2, 3, 3]);
    }

    #[test]
    fn along_the_curve_through_a_square_are_its_quarters() {
        let places: Vec<Place> = (0..16).map(|at| [f64::from(at / 4), f64::from(at % 4), 0.0]).collect();
        let problem = Problem { weights: &[1; 16], owners: &[0; 16], fixed: &[0; 4], powers: &[1; 4] };
        let assignment = along_curve(&problem, &places);
        assert_eq!(problem.loads(&assignment), [4; 4]);
        for rank in 0..4 {
            let own: Vec<usize> = (0..16).filter(|at| assignment[*at] == rank).collect();
            let quarter = |at: usize| (at / 4 / 2, at % 4 / 2);
            assert!(own.iter().all(|at| quarter(*at) == quarter(own[0])), "{own:?}");
        }
    }

    proptest! {
        #[test]
        fn every_cut_is_off_by_less_than_a_task(
            tasks in prop::collection::vec((1u64..20, -5.0f64..5.0, -1.0f64..1.0), 1..80),
            ranks in 1usize..9,
        ) {
            let weights: Vec<u64> = tasks.iter().map(|(weight, ..)| *weight).collect();
            let places: Vec<Place> = tasks.iter().map(|(_, x, y)| [*x, *y, 0.0]).collect();
            let owners = vec![0; weights.len()];
            let problem = Problem { weights: &weights, owners: &owners, fixed: &vec![0; ranks], powers: &vec![1; ranks] };
            let (mean, largest) = (weights.iter().sum::<u64>() as f64 / ranks as f64, *weights.iter().max().unwrap() as f64);
            let most = problem.loads(&bisection(&problem, &places)).into_iter().max().unwrap() as f64;
            // Half a task a level, of which there are at most four.
            prop_assert!(most <= mean + 2.0 * largest + 1.0, "{} of {}", most, mean);
            let along = problem.loads(&along_curve(&problem, &places)).into_iter().max().unwrap() as f64;
            prop_assert!(along <= mean + largest, "{} of {}", along, mean);
        }
    }
}
