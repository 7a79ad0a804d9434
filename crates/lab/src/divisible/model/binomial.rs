//! The hypercube of processors that send through one link at a time: the load goes down the binomial tree, from the largest subcube to the
//! smallest.
//!
//! A subcube of dimension k is a processor and, behind one link each, subcubes of dimension k - 1, ..., 0, served in this order. All finish
//! together, so the next one served has the time that is left after the one before has received (the equal-finish rule of Cheng and
//! Robertazzi 1990 for trees, here with recursion over the dimension, so that 2^30 processors take 30 steps). With links alike the order of
//! service makes no difference to the time, see [`super::tree`].

use super::number::Arithmetic;

/// Shares of the layers of the hypercube, layer 0 first, d + 1 entries each.
#[derive(Clone, Debug, PartialEq)]
pub struct BinomialShares<N> {
    /// The part of the whole load that the processors of a layer compute, all together.
    pub alpha: Vec<N>,
    /// The part of the whole load that they receive, all together.
    pub volume: Vec<N>,
    /// Seconds in which the hypercube does the whole load.
    pub makespan: N,
}

/// `compute` and `carry` are the seconds in which one processor computes, and one link carries, the whole load; `compute` is above 0.
pub fn shares<N: Arithmetic>(dimension: u32, compute: &N, carry: &N) -> BinomialShares<N> {
    let mut cubes = vec![BinomialShares { alpha: vec![N::whole(1)], volume: vec![N::whole(1)], makespan: compute.clone() }];
    for _ in 0..dimension {
        cubes.push(joined(&cubes, compute, carry));
    }
    cubes.swap_remove(dimension as usize)
}

/// A processor and the smaller cubes behind it.
fn joined<N: Arithmetic>(cubes: &[BinomialShares<N>], compute: &N, carry: &N) -> BinomialShares<N> {
    // Load that each takes in one second, and the time left for the next.
    let own = N::whole(1) / compute.clone();
    let mut left = N::whole(1);
    let mut taken = Vec::new();
    for cube in cubes.iter().rev() {
        let part = left / (carry.clone() + cube.makespan.clone());
        left = part.clone() * cube.makespan.clone();
        taken.push(part);
    }
    let all = taken.iter().fold(own.clone(), |sum, part| sum + part.clone());
    let mut alpha = vec![own / all.clone()];
    let mut volume = vec![N::whole(1)];
    for (cube, part) in cubes.iter().rev().zip(taken) {
        let part = part / all.clone();
        add_below(&mut alpha, &cube.alpha, &part);
        add_below(&mut volume, &cube.volume, &part);
    }
    BinomialShares { alpha, volume, makespan: N::whole(1) / all }
}

/// Adds the layers of a cube that receives `part` one layer deeper.
fn add_below<N: Arithmetic>(layers: &mut Vec<N>, cube: &[N], part: &N) {
    for (layer, value) in cube.iter().enumerate() {
        let value = value.clone() * part.clone();
        match layers.get_mut(layer + 1) {
            Some(sum) => *sum = sum.clone() + value,
            None => layers.push(value),
        }
    }
}
