//! Capacity: the load that a processor, with all processors behind it, can do in a given time.
//!
//! With start-up costs this is no longer in proportion: a link pays only when there is time for its start-up. It is a convex function of
//! straight pieces, and so is that of what lies behind a link or in parallel. So the equal-finish rule with start-up costs has an exact
//! solution, which also selects the processors that take part.

/// Load as a function of time, from (0, 0) on, in straight pieces of increasing slope.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// Start of each piece, in order: the first at its own time with load 0.
    pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    time: f64,
    load: f64,
    /// Load for each second from here on.
    slope: f64,
}

impl Capacity {
    /// A processor that takes this many seconds for the whole load; infinity if it does not compute.
    pub fn of_processor(seconds: f64) -> Capacity {
        Capacity { pieces: vec![Piece { time: 0.0, load: 0.0, slope: 1.0 / seconds }] }
    }

    /// The load that can be done within a time.
    pub fn load(&self, time: f64) -> f64 {
        let piece = self.pieces[self.pieces.partition_point(|piece| piece.time <= time).saturating_sub(1)];
        piece.load + (time - piece.time).max(0.0) * piece.slope
    }

    /// The least time in which a load can be done; 0 for none.
    pub fn time(&self, load: f64) -> f64 {
        if load <= 0.0 {
            return 0.0;
        }
        let piece = self.pieces[self.pieces.partition_point(|piece| piece.load < load).saturating_sub(1)];
        piece.time + (load - piece.load) / piece.slope
    }

    /// The same behind a link: the load arrives first, as a whole.
    pub fn behind(&self, startup: f64, seconds: f64) -> Capacity {
        let through = |piece: &Piece| Piece {
            time: startup + seconds * piece.load + piece.time,
            load: piece.load,
            slope: piece.slope / (1.0 + seconds * piece.slope),
        };
        Capacity { pieces: self.pieces.iter().map(through).collect() }
    }

    /// The capacity times a factor.
    pub fn times(mut self, factor: f64) -> Capacity {
        for piece in &mut self.pieces {
            piece.load *= factor;
            piece.slope *= factor;
        }
        self
    }

    /// All of them side by side.
    pub fn sum(parts: &[Capacity]) -> Capacity {
        // Times at which the slope rises, and the increase.
        let rises = |part: &Capacity| {
            let before = std::iter::once(0.0).chain(part.pieces.iter().map(|piece| piece.slope)).collect::<Vec<_>>();
            part.pieces.iter().zip(before).map(|(piece, before)| (piece.time, piece.slope - before)).collect::<Vec<_>>()
        };
        let mut rises: Vec<(f64, f64)> = parts.iter().flat_map(rises).collect();
        rises.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut pieces: Vec<Piece> = Vec::new();
        for (time, rise) in rises {
            match pieces.last_mut() {
                Some(last) if last.time == time => last.slope += rise,
                Some(&mut Piece { time: before, load, slope }) => {
                    pieces.push(Piece { time, load: load + (time - before) * slope, slope: slope + rise });
                }
                None => pieces.push(Piece { time, load: 0.0, slope: rise }),
            }
        }
        Capacity { pieces }
    }

    /// Number of its linear pieces.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_with_a_start_up_pays_only_later() {
        // Ours takes 1 second for all. Another, as fast, lies behind a link of start-up 2 that carries all in 1.
        let capacity = Capacity::sum(&[Capacity::of_processor(1.0), Capacity::of_processor(1.0).behind(2.0, 1.0)]);
        assert_eq!((capacity.load(1.5), capacity.load(4.0)), (1.5, 5.0));
        assert_eq!((capacity.time(1.5), capacity.time(5.0)), (1.5, 4.0));
        assert_eq!((capacity.time(0.0), capacity.load(0.0), capacity.pieces()), (0.0, 0.0, 2));
    }

    #[test]
    fn who_does_not_compute_waits_for_others() {
        let others = Capacity::of_processor(2.0).behind(1.0, 0.0).times(3.0);
        let capacity = Capacity::sum(&[Capacity::of_processor(f64::INFINITY), others]);
        assert_eq!((capacity.load(1.0), capacity.load(3.0), capacity.time(3.0)), (0.0, 3.0, 3.0));
    }
}
