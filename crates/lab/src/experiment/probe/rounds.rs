//! The schedule of measurements: rounds of disjoint pairs, so that no measurement disturbs another.

/// Up to this number all pairs are measured; of more, a sample.
pub const ALL_UP_TO: u32 = 64;

/// The rounds of a tournament of `players` in which each pair meets: all of them (n - 1, or n if n is odd), or a sample of [`ALL_UP_TO`] spread
/// evenly over them if there are more players.
pub fn rounds(players: u32) -> Vec<u32> {
    let all = match players {
        0 | 1 => 0,
        n => n - 1 + n % 2,
    };
    match players {
        0..=ALL_UP_TO => (0..all).collect(),
        _ => (0..ALL_UP_TO).map(|sample| (u64::from(sample) * u64::from(all) / u64::from(ALL_UP_TO)) as u32).collect(),
    }
}

/// Returns the player that `me` meets in a round; `None` if it rests. The circle method: of an even number of players the last one stands still and
/// all others move one place on each round; of an odd number, the player that would meet the missing one rests.
pub fn partner(players: u32, round: u32, me: u32) -> Option<u32> {
    let even = players + players % 2;
    if players < 2 {
        return None;
    }
    let circle = even - 1;
    let met = if me == circle {
        // The player that would meet itself: 2 x = round (mod circle), and circle is odd.
        let half = u64::from(circle.div_ceil(2));
        (u64::from(round) * half % u64::from(circle)) as u32
    } else {
        let other = (round + circle - me % circle) % circle;
        if other == me { circle } else { other }
    };
    (met < players).then_some(met)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn everybody_meets_everybody_once() {
        for players in 0..=ALL_UP_TO {
            let mut met = BTreeSet::new();
            for round in rounds(players) {
                for me in 0..players {
                    let Some(other) = partner(players, round, me) else { continue };
                    assert_eq!(partner(players, round, other), Some(me), "{players} players, round {round}");
                    assert_ne!(me, other);
                    if me < other {
                        assert!(met.insert((me, other)), "{players} players: {me} and {other} meet twice");
                    }
                }
            }
            assert_eq!(met.len() as u32, players * players.saturating_sub(1) / 2, "{players} players");
        }
        assert_eq!((rounds(8).len(), rounds(7).len(), rounds(2).len()), (7, 7, 1));
    }

    #[test]
    fn of_many_a_sample_meets() {
        for players in [65, 100, 1000, 65_536] {
            let rounds = rounds(players);
            assert_eq!(rounds.iter().collect::<BTreeSet<_>>().len(), ALL_UP_TO as usize);
            for round in [rounds[0], rounds[13], rounds[63]] {
                for me in [0, 1, players / 2, players - 1] {
                    if let Some(other) = partner(players, round, me) {
                        assert!(other < players && other != me && partner(players, round, other) == Some(me));
                    }
                }
            }
        }
    }
}
