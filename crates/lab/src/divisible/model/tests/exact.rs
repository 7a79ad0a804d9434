//! Exact fractions: the paper's example, other values of its equations, and that all layers finish at the same instant.

use num_rational::BigRational;

use super::super::{binomial, hypercube};

fn fraction(numerator: i64, denominator: i64) -> BigRational {
    BigRational::new(numerator.into(), denominator.into())
}

fn of_ones(dimension: u32) -> hypercube::HypercubeShares<BigRational> {
    let one = fraction(1, 1);
    hypercube::shares(dimension, &one, &one, &one, &one)
}

/// Blazewicz and Drozdowski 1995, end of section 2.
#[test]
fn the_papers_example() {
    let shares = of_ones(2);
    assert_eq!(shares.kept, [fraction(7, 15), fraction(3, 4), fraction(1, 1)]);
    assert_eq!(shares.alpha, [fraction(7, 15), fraction(3, 15), fraction(2, 15)]);
    assert_eq!(shares.volume, [fraction(1, 1), fraction(4, 15), fraction(2, 15)]);
    assert_eq!(shares.equivalent[0], fraction(7, 15));
    let speedup = fraction(1, 1) / shares.alpha[0].clone();
    assert_eq!((speedup.clone(), speedup / fraction(4, 1)), (fraction(15, 7), fraction(15, 28)));
}

#[test]
fn speedups_up_to_dimension_12() {
    for (dimension, numerator, denominator) in [
        (0, 1, 1),
        (1, 3, 2),
        (2, 15, 7),
        (3, 35, 12),
        (4, 315, 83),
        (6, 3003, 523),
        (8, 109_395, 14_051),
        (10, 323_323, 32_867),
        (12, 16_900_975, 1_423_159),
    ] {
        let speedup = fraction(1, 1) / of_ones(dimension).alpha[0].clone();
        assert_eq!(speedup, fraction(numerator, denominator), "dimension {dimension}");
    }
}

/// A processor of layer i starts when the messages of i hops are through, one after another.
#[test]
fn all_layers_finish_at_the_same_instant() {
    for dimension in 0..=12 {
        for (w, z, tcp, tcm) in [(1, 1, 1, 1), (10, 1, 1, 1), (3, 0, 2, 5), (2, 9, 1, 7)] {
            let [w, z, tcp, tcm] = [w, z, tcp, tcm].map(|number| fraction(number, 3));
            let shares = hypercube::shares(dimension, &w, &z, &tcp, &tcm);
            let finish = shares.alpha[0].clone() * w.clone() * tcp.clone();
            let mut arrival = fraction(0, 1);
            let mut all = fraction(0, 1);
            for layer in 0..=dimension {
                let (alpha, volume) = (&shares.alpha[layer as usize], &shares.volume[layer as usize]);
                if layer > 0 {
                    arrival += volume / fraction(layer.into(), 1) * z.clone() * tcm.clone();
                }
                assert_eq!(arrival.clone() + alpha * w.clone() * tcp.clone(), finish, "dimension {dimension}, layer {layer}");
                all += alpha * fraction(hypercube::processors_in(dimension, layer) as i64, 1);
            }
            assert_eq!(all, fraction(1, 1));
        }
    }
}

/// Figure 4: with slow processors, w = 10, twelve dimensions save two orders of magnitude.
#[test]
fn slow_processors_gain_most() {
    let one = fraction(1, 1);
    let time = |dimension| hypercube::shares(dimension, &fraction(10, 1), &one, &one, &one).equivalent[0].clone();
    assert_eq!(time(0), fraction(10, 1));
    assert!(time(12) > fraction(935, 10_000) && time(12) < fraction(945, 10_000), "{}", time(12));
}

/// Shares for two dimensions, computed by hand: 0 keeps a, serves a pair (which takes 2/3 of a second for all), then a single processor.
#[test]
fn one_port_on_a_square() {
    let one = fraction(1, 1);
    let shares = binomial::shares(2, &one, &one);
    // In one second: 1 itself, 3/5 for the pair, and in the 2/5 that are left 1/5 for the last.
    assert_eq!(shares.makespan, fraction(5, 9));
    assert_eq!(shares.alpha, [fraction(5, 9), fraction(1, 3), fraction(1, 9)]);
    assert_eq!(shares.volume, [fraction(1, 1), fraction(4, 9), fraction(1, 9)]);
}

#[test]
fn one_port_divides_all_in_every_dimension() {
    for dimension in 0..=12 {
        let shares = binomial::shares(dimension, &fraction(7, 3), &fraction(5, 11));
        assert_eq!(shares.alpha.iter().sum::<BigRational>(), fraction(1, 1));
        assert_eq!(shares.makespan, shares.alpha[0].clone() * fraction(7, 3));
        assert_eq!(shares.alpha.len(), dimension as usize + 1);
    }
}
