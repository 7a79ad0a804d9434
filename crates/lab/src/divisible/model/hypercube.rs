//! The hypercube in closed form: Blazewicz and Drozdowski 1995, section 2.
//!
//! Layer i holds the processors i hops away from the source. A processor of layer i has received all its load through i links, keeps a part
//! of it, and sends the rest in equal parts to its d - i neighbours in layer i + 1, all at once.
//!
//! ```text
//!            000                layer 0: keeps k_0 of all
//!          /  |  \
//!       001  010  100           layer 1: each receives through 1 link, sends through 2
//!        | \/   \/ |
//!       011  101  110           layer 2: receives through 2, sends through 1
//!          \  |  /
//!            111                layer 3
//! ```

use super::number::Arithmetic;

/// Shares of the processors of each layer, layer 0 first: d + 1 entries in each list.
#[derive(Clone, Debug, PartialEq)]
pub struct HypercubeShares<N> {
    /// Part of the received load that a processor keeps (the paper's hatted alpha).
    pub kept: Vec<N>,
    /// The part of the whole load that a processor computes.
    pub alpha: Vec<N>,
    /// The part of the whole load that a processor receives (the paper's Vol).
    pub volume: Vec<N>,
    /// The reciprocal speed of a processor with all that lies behind it (the paper's w_i); the first is the whole hypercube's.
    pub equivalent: Vec<N>,
}

/// Solves equations (2) and (3) from the last layer to the first.
///
/// `w` and `z` are the reciprocal speeds of processors and links, `tcp` and `tcm` the times in which a standard processor computes, and a
/// standard link carries, the whole load. `w` and `tcp` are above 0, the others may be 0.
pub fn shares<N: Arithmetic>(dimension: u32, w: &N, z: &N, tcp: &N, tcm: &N) -> HypercubeShares<N> {
    let compute = w.clone() * tcp.clone();
    let carry = z.clone() * tcm.clone();
    // From layer d down to 0: w_i, what is kept, and what is sent on. The last is calculated by itself, 1 - kept would lose its digits.
    let mut backwards = vec![(w.clone(), N::whole(1), None)];
    for i in (0..dimension).rev() {
        let behind = backwards[backwards.len() - 1].0.clone();
        let next = N::whole(i + 1) * behind * tcp.clone() + carry.clone();
        let here = N::whole(dimension - i) * compute.clone();
        let both = next.clone() + here.clone();
        let kept = next / both.clone();
        backwards.push((kept.clone() * w.clone(), kept, Some(here / both)));
    }
    let mut shares = HypercubeShares { kept: Vec::new(), alpha: Vec::new(), volume: Vec::new(), equivalent: Vec::new() };
    let mut volume = N::whole(1);
    for (i, (equivalent, kept, sent)) in backwards.into_iter().rev().enumerate() {
        let i = i as u32;
        shares.alpha.push(kept.clone() * volume.clone());
        shares.volume.push(volume.clone());
        shares.kept.push(kept);
        shares.equivalent.push(equivalent);
        if let Some(sent) = sent {
            volume = sent * N::whole(i + 1) * volume / N::whole(dimension - i);
        }
    }
    shares
}

/// Number of processors in layer i of a hypercube: d over i.
pub fn processors_in(dimension: u32, layer: u32) -> u64 {
    (0..layer.min(dimension - layer)).fold(1, |count, k| count * u64::from(dimension - k) / u64::from(k + 1))
}
