//! The models of links: the cost of messages on their way.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::measured::Measured;
use super::units;
use crate::spec::{InvalidSpec, Options, Spec};
use crate::topology::{NodeId, Overlay, Topology};
use crate::transport::Ticks;

/// Model of messages between ranks. Between nodes of one rank a message costs one tick, whatever the network.
///
/// Text form: `zero`, `switched:latency=20us,per_byte=2.7ns` or `hops:latency=20us,per_byte=2.7ns`, the last two also with `,contention`.
/// Missing values are the default's. A measured network is shown by its name, which cannot be parsed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum Network {
    /// Every message takes one tick.
    Zero,
    /// A message takes the start-up plus its bytes, wherever it goes. With contention each rank has one port out and one port in:
    /// a port passes one message at a time, first come, first served, and is busy for the message's bytes, not for the start-up.
    Switched(Link),
    /// Store and forward along the topology's route: start-up plus bytes for each hop from rank to rank; a byte takes a b-th of its time on a
    /// link of a graph that has bandwidth b. With contention each directed
    /// link passes one message at a time, first come, first served, and is busy for the message's bytes.
    Hops(Link),
    /// Hosts and links that were measured. A rank's port passes one message at a time and keeps the gap between two; where the link between
    /// hosts is shared, so does a host's port.
    Measured(Arc<Measured>),
}

/// Cost of one passage.
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

impl Measured {
    /// The same as a network of the simulator.
    pub fn network(self) -> Network {
        Network::Measured(Arc::new(self))
    }
}

impl Link {
    fn read(options: &mut Options<'_>) -> Result<Link, InvalidSpec> {
        let usual = Link::default();
        // A tick is the least that a latency can differ by.
        let in_ticks = |text: &str| units::parse(text).filter(|picoseconds| picoseconds % units::PER_TICK == 0);
        let latency = options.read_with("latency", "a whole number of nanoseconds, such as 20us (units ns, us, ms, s)", in_ticks)?;
        let per_byte = options.read_with("per_byte", "a time such as 2.7ns (units ps, ns, us, ms, s; at least 1ps)", units::parse)?;
        Ok(Link {
            latency: latency.map_or(usual.latency, |picoseconds| picoseconds / units::PER_TICK),
            per_byte: per_byte.unwrap_or(usual.per_byte),
            contention: options.flag("contention")?,
        })
    }

    /// The link between two neighbours of a topology: the bandwidth that a graph gives it counts.
    pub fn between(self, topology: &Topology, a: NodeId, b: NodeId) -> Link {
        match topology {
            Topology::Graph(graph) => Link { per_byte: (self.per_byte as f64 / graph.bandwidth(a, b)).round() as u64, ..self },
            _ => self,
        }
    }

    /// Ticks for which a message of this number of bytes keeps the link busy, rounded up.
    pub fn transmission(&self, bytes: u64) -> Ticks {
        let picoseconds = u128::from(bytes) * u128::from(self.per_byte);
        Ticks::try_from(picoseconds.div_ceil(u128::from(units::PER_TICK))).unwrap_or(Ticks::MAX)
    }

    /// Ticks from the beginning of the start-up to the arrival of the last byte; never less than one.
    pub fn passage(&self, bytes: u64) -> Ticks {
        self.latency.saturating_add(self.transmission(bytes)).max(1)
    }
}

impl Network {
    /// Reads `zero | switched[:latency=20us,per_byte=2.7ns,contention] | hops[:..]`.
    ///
    /// # Errors
    /// If the name is unknown, or its options are wrong.
    pub fn parse(text: &str) -> Result<Network, InvalidSpec> {
        let spec = Spec::parse("network", text)?;
        let network = match spec.name() {
            "zero" => return spec.build(|_| Ok(Network::Zero)),
            "switched" => Network::Switched as fn(Link) -> Network,
            "hops" => Network::Hops,
            _ => return Err(spec.unknown(["zero", "switched", "hops"])),
        };
        spec.build(|options| Link::read(options).map(network))
    }

    /// Ticks from sending to arrival of a message of this number of bytes, header included, without contention.
    pub fn passage(&self, overlay: &Overlay, from: NodeId, to: NodeId, bytes: u64) -> Ticks {
        let Overlay { topology, placement } = overlay;
        let rank = |node| placement.rank_of(node);
        if rank(from) == rank(to) {
            return 1;
        }
        match self {
            Network::Zero => 1,
            Network::Switched(link) => link.passage(bytes),
            Network::Hops(link) => {
                let mut at = from;
                let hop = |next| {
                    let here = std::mem::replace(&mut at, next);
                    if rank(here) == rank(next) { 0 } else { link.between(topology, here, next).passage(bytes) }
                };
                topology.route(from, to).map(hop).fold(0, Ticks::saturating_add)
            }
            Network::Measured(measured) => measured.link(rank(from), rank(to)).passage(bytes),
        }
    }

    /// Returns true if a later message between two nodes could overtake an earlier one, if the simulator let it.
    pub(super) fn may_overtake(&self) -> bool {
        match self {
            // A message that waits for its receiver's consent does not hold up the next.
            Network::Measured(_) => true,
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
            Network::Measured(measured) => return f.write_str(&measured.name),
        };
        write!(f, "{name}:latency={},per_byte={}", units::format_ticks(link.latency), units::format(link.per_byte))?;
        f.write_str(if link.contention { ",contention" } else { "" })
    }
}

impl std::str::FromStr for Network {
    type Err = InvalidSpec;

    fn from_str(text: &str) -> Result<Network, InvalidSpec> {
        Network::parse(text)
    }
}

impl TryFrom<String> for Network {
    type Error = InvalidSpec;

    fn try_from(text: String) -> Result<Network, InvalidSpec> {
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
        for (text, sentence) in [
            ("ether", "network 'ether' is unknown; known are zero, switched, hops"),
            ("", "network '' is unknown; known are zero, switched, hops"),
            ("hops,contention", "network hops: options follow a colon, as in hops:contention"),
            ("zero:latency=1us", "network zero takes no options, 'latency' was given"),
            ("hops:latency=20", "network hops: latency is a whole number of nanoseconds, such as 20us (units ns, us, ms, s), not '20'"),
            ("hops:latency", "network hops: latency needs a value, latency=.."),
            (
                "hops:latency=0.5ns",
                "network hops: latency is a whole number of nanoseconds, such as 20us (units ns, us, ms, s), not '0.5ns'",
            ),
            ("hops:per_byte=x", "network hops: per_byte is a time such as 2.7ns (units ps, ns, us, ms, s; at least 1ps), not 'x'"),
            ("hops:contention=yes", "network hops: contention is a word without a value, not 'yes'"),
            ("hops:", "network hops: '' is not of the form key=value"),
            ("hops:speed=3", "network hops has no option 'speed'; it has latency, per_byte, contention"),
            ("hops:latency=1us,latency=2us", "network hops: latency is given twice"),
        ] {
            assert_eq!(Network::parse(text).unwrap_err().to_string(), sentence);
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
