//! What a message costs on its way: the link models that `--network` names.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::units;
use crate::error::{Error, Result};
use crate::transport::Ticks;

/// How messages between ranks travel. Between nodes of one rank a message costs one tick, whatever the network.
///
/// Text form, as `--network` takes it: `zero`, `switched:latency=20us,per_byte=2.7ns` or `hops:latency=20us,per_byte=2.7ns`, the last
/// two also with `,contention`. What is left out is as in the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Network {
    /// Every message takes one tick.
    Zero,
    /// A message takes the start-up plus its bytes, wherever it goes. With contention each rank has one port out and one port in:
    /// a port passes one message at a time, first come, first served, and is busy for the message's bytes, not for the start-up.
    Switched(Link),
    /// Store and forward along the topology's route: start-up plus bytes for each hop from rank to rank. With contention each directed
    /// link passes one message at a time, first come, first served, and is busy for the message's bytes.
    Hops(Link),
}

/// What one passage costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Start-up in ticks.
    pub latency: Ticks,
    /// Picoseconds for each byte, header included.
    pub per_byte: u64,
    /// Whether messages wait for each other.
    pub contention: bool,
}

/// 20 us and 2.7 ns a byte (374 MB/s): measured between two hosts over TCP.
impl Default for Link {
    fn default() -> Link {
        Link { latency: 20_000, per_byte: 2_700, contention: false }
    }
}

/// Switched, with the default [`Link`].
impl Default for Network {
    fn default() -> Network {
        Network::Switched(Link::default())
    }
}

impl Link {
    /// Ticks for which a message of so many bytes keeps the link busy, rounded up.
    pub fn transmission(&self, bytes: u64) -> Ticks {
        let picoseconds = u128::from(bytes) * u128::from(self.per_byte);
        Ticks::try_from(picoseconds.div_ceil(u128::from(units::PER_TICK))).unwrap_or(Ticks::MAX)
    }

    /// Ticks from the beginning of the start-up to the arrival of the last byte; never less than one.
    pub fn passage(&self, bytes: u64) -> Ticks {
        self.latency.saturating_add(self.transmission(bytes)).max(1)
    }
}

const KNOWN: &str = "known are zero, switched[:latency=20us,per_byte=2.7ns,contention], hops[:latency=20us,per_byte=2.7ns,contention]";

impl Network {
    /// Reads what `--network` says.
    ///
    /// # Errors
    /// Wrong usage, in a sentence that names the option.
    pub fn parse(text: &str) -> Result<Network> {
        let wrong = |why: String| Error::usage(format!("--network {text}: {why}"));
        let (name, options) = text.split_once(':').map_or((text, None), |(name, options)| (name, Some(options)));
        let network = match name {
            "zero" if options.is_none() => return Ok(Network::Zero),
            "zero" => return Err(wrong("'zero' has no options".into())),
            "switched" => Network::Switched as fn(Link) -> Network,
            "hops" => Network::Hops,
            _ => return Err(wrong(format!("unknown network; {KNOWN}"))),
        };
        let mut link = Link::default();
        let mut seen = Vec::new();
        for option in options.into_iter().flat_map(|options| options.split(',')) {
            let (key, value) = option.split_once('=').map_or((option, None), |(key, value)| (key, Some(value)));
            if seen.contains(&key) {
                return Err(wrong(format!("'{key}' is given twice")));
            }
            seen.push(key);
            let picoseconds = || {
                value.and_then(units::parse).ok_or_else(|| {
                    wrong(format!("'{option}' is no duration; write for instance {key}=20us (units ps, ns, us, ms, s; at least 1ps)"))
                })
            };
            match (key, value) {
                ("latency", _) => {
                    let picoseconds = picoseconds()?;
                    if picoseconds % units::PER_TICK != 0 {
                        return Err(wrong("the latency must be a whole number of nanoseconds".into()));
                    }
                    link.latency = picoseconds / units::PER_TICK;
                }
                ("per_byte", _) => link.per_byte = picoseconds()?,
                ("contention", None) => link.contention = true,
                _ => return Err(wrong(format!("unknown option '{option}'; known are latency=20us, per_byte=2.7ns, contention"))),
            }
        }
        Ok(network(link))
    }

    /// Whether a later message between two nodes could overtake an earlier one, were it let.
    pub(super) fn may_overtake(&self) -> bool {
        match self {
            Network::Zero => false,
            Network::Switched(link) | Network::Hops(link) => link.per_byte > 0 && !link.contention,
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, link) = match self {
            Network::Zero => return f.write_str("zero"),
            Network::Switched(link) => ("switched", link),
            Network::Hops(link) => ("hops", link),
        };
        write!(f, "{name}:latency={},per_byte={}", units::format_ticks(link.latency), units::format(link.per_byte))?;
        f.write_str(if link.contention { ",contention" } else { "" })
    }
}

impl std::str::FromStr for Network {
    type Err = Error;

    fn from_str(text: &str) -> Result<Network> {
        Network::parse(text)
    }
}

impl TryFrom<String> for Network {
    type Error = Error;

    fn try_from(text: String) -> Result<Network> {
        Network::parse(&text)
    }
}

impl From<Network> for String {
    fn from(network: Network) -> String {
        network.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_is_read_and_written() {
        let link = |latency, per_byte, contention| Link { latency, per_byte, contention };
        for (text, network) in [
            ("zero", Network::Zero),
            ("switched", Network::default()),
            ("switched:latency=20us,per_byte=2.7ns", Network::Switched(link(20_000, 2_700, false))),
            ("hops:per_byte=3ns,contention", Network::Hops(link(20_000, 3_000, true))),
            ("switched:latency=0ns,per_byte=0ns,contention", Network::Switched(link(0, 0, true))),
        ] {
            assert_eq!(Network::parse(text).unwrap(), network, "{text}");
            assert_eq!(Network::parse(&network.to_string()).unwrap(), network, "{network}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("ether", "unknown network; known are zero, switched"),
            ("", "unknown network"),
            ("zero:latency=1us", "'zero' has no options"),
            ("hops:latency=20", "'latency=20' is no duration"),
            ("hops:latency", "'latency' is no duration"),
            ("hops:latency=0.5ns", "whole number of nanoseconds"),
            ("hops:contention=yes", "unknown option 'contention=yes'"),
            ("hops:", "unknown option ''"),
            ("hops:speed=3", "unknown option 'speed=3'"),
            ("hops:latency=1us,latency=2us", "'latency' is given twice"),
        ] {
            let Err(Error::Usage(sentence)) = Network::parse(text) else { panic!("{text} was taken") };
            assert!(sentence.starts_with("--network ") && sentence.contains(part), "{sentence}");
        }
    }

    #[test]
    fn costs_are_rounded_up_and_never_nothing() {
        let link = Link { latency: 5, per_byte: 2_700, contention: false };
        assert_eq!((link.transmission(1), link.transmission(10), link.passage(10)), (3, 27, 32));
        assert_eq!(Link { latency: 0, per_byte: 0, contention: false }.passage(u64::MAX), 1);
        assert_eq!(Link { latency: 1, per_byte: u64::MAX, contention: false }.passage(u64::MAX), Ticks::MAX);
    }
}
