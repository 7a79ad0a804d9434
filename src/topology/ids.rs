//! Numbers of ranks, hosts and racks, as types of their own: a rank is no node, a host is neither, and a rack is no host.

use std::fmt;
use std::num::ParseIntError;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$what:meta])* $Id:ident) => {
        $(#[$what])*
        ///
        /// It is printed, serialised and read as the plain number.
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $Id(u32);

        impl $Id {
            /// Number 0.
            pub const FIRST: $Id = $Id(0);

            /// The one with this number.
            pub const fn new(number: u32) -> $Id {
                $Id(number)
            }

            /// Its number.
            pub const fn get(self) -> u32 {
                self.0
            }

            /// Its place in a list of all.
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// Those with the numbers `0..count`, in ascending order.
            pub fn all(count: u32) -> impl DoubleEndedIterator<Item = $Id> + ExactSizeIterator + Clone {
                (0..count).map($Id)
            }

            /// Those from the first of a range to the one before its end, in ascending order.
            pub fn each(range: Range<$Id>) -> impl DoubleEndedIterator<Item = $Id> + ExactSizeIterator + Clone {
                (range.start.0..range.end.0).map($Id)
            }
        }

        impl From<u32> for $Id {
            fn from(number: u32) -> $Id {
                $Id(number)
            }
        }

        impl FromStr for $Id {
            type Err = ParseIntError;

            fn from_str(text: &str) -> Result<$Id, ParseIntError> {
                text.parse().map($Id)
            }
        }

        impl fmt::Display for $Id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $Id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

id! {
    /// A rank: one process of the run, `0..ranks`.
    RankId
}

id! {
    /// A host: one machine, which ranks share, `0..hosts`.
    HostId
}

id! {
    /// A rack: hosts that are nearer to each other than to all others, `0..racks`.
    RackId
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::wire;

    #[test]
    fn a_rank_is_written_as_its_number() {
        let rank = RankId::new(7);
        assert_eq!((rank.to_string(), format!("{rank:>3}|{rank:?}|{:?}", Some(rank))), ("7".into(), "  7|7|Some(7)".into()));
        assert_eq!(wire::write(&vec![rank, RankId::new(300)]), wire::write(&vec![7u32, 300]));
        assert_eq!(serde_json::to_string(&[HostId::new(0), HostId::new(4_000_000_000)]).unwrap(), "[0,4000000000]");
        assert_eq!(serde_json::from_str::<Vec<RankId>>("[3,1]").unwrap(), [3, 1].map(RankId::new));
    }

    #[test]
    fn text_reads_as_a_number_does() {
        for text in ["0", "12", "4294967295", "4294967296", "-1", "", "x", "1.5", " 1"] {
            assert_eq!(text.parse::<RankId>(), text.parse::<u32>().map(RankId::from), "{text:?}");
        }
        assert_eq!("12".parse::<HostId>().map(HostId::get), Ok(12));
    }

    #[test]
    fn ranges_are_walked_both_ways() {
        assert!(RankId::all(3).map(RankId::index).eq(0..3));
        assert!(RankId::each(RankId::new(2)..RankId::new(5)).rev().map(RankId::get).eq([4, 3, 2]));
        assert_eq!((HostId::all(0).len(), HostId::each(HostId::new(3)..HostId::new(3)).len()), (0, 0));
    }

    #[test]
    fn ranks_are_ordered_by_number() {
        let mut ranks = [10, 9, 0].map(RankId::new);
        ranks.sort();
        assert_eq!(ranks, [RankId::FIRST, RankId::new(9), RankId::new(10)]);
    }
}
