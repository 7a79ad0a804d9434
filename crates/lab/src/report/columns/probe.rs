//! The columns of the links that a probe measured.

use super::super::figures::{bytes, duration_us, three};
use super::{Column, Tabular, Value};
use crate::experiment::probe::LinkRecord;

/// The kind of a link, for people.
pub fn link_kind(link: &LinkRecord) -> &'static str {
    match link.between {
        "within" => "within hosts",
        "racks" => "between racks",
        _ => "between hosts",
    }
}

impl Tabular for LinkRecord {
    fn columns() -> Vec<Column<Self>> {
        let new = Column::<Self>::new;
        vec![
            new("between", |link| link.between.to_string())
                .heading("link")
                .reads(|link| link_kind(link).into())
                .left()
                .about("Ranks of one host, of two hosts, or of two racks."),
            new("latency_us", |link| link.latency_us.csv())
                .heading("start-up")
                .reads(|link| duration_us(link.latency_us))
                .about("Time of an empty message, one way (half of a round trip)."),
            new("gap_us", |link| link.gap_us.csv())
                .heading("gap")
                .reads(|link| duration_us(link.gap_us))
                .about("Least time between two messages of one sender."),
            new("bytes_per_second", |link| link.bytes_per_second.csv())
                .heading("bandwidth")
                .reads(|link| link.bytes_per_second.map_or("unlimited".into(), |rate| format!("{}/s", bytes(rate as u64))))
                .about("Bytes per second of long messages."),
            new("rendezvous_bytes", |link| link.rendezvous_bytes.csv())
                .heading("rendezvous")
                .reads(|link| match (link.rendezvous_bytes, link.rendezvous_us) {
                    (Some(size), Some(us)) => format!("{} + {}", bytes(size), duration_us(us)),
                    _ => "-".into(),
                })
                .about("Size from which a message waits for its receiver, and the added time."),
            new("shared", |link| link.shared.csv())
                .heading("port")
                .reads(|link| match (link.between, link.shared) {
                    ("within", _) => "-".into(),
                    (_, true) => "shared".into(),
                    (_, false) => "by rank".into(),
                })
                .about("Whether the ranks of a host share its port to other hosts."),
            new("error", |link| link.error.csv())
                .heading("error")
                .reads(|link| format!("{} %", three(100.0 * link.error)))
                .about("Mean deviation of this model from the times measured, over sizes from 0 B to 1 MiB."),
        ]
    }
}
