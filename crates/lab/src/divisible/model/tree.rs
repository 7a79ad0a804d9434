//! Trees, lines and stars by the equal-finish rule: from the leaves up, each processor with all that lies behind it is as good as one
//! processor; from the source down, each gets what it can do in the time that it has.
//!
//! All ports (Cheng and Robertazzi 1990; start-up costs by [`Capacity`]): a processor serves all those behind it at once, so each gets what it
//! can do by the end. One port: in the order of service, each has the time that is left when the ones before have received. For one port
//! and no start-up costs this is optimal if the fastest links come first (Beaumont, Casanova, Legrand, Robert and Yang 2005).

use super::capacity::Capacity;
use super::network::{ModelLink, ModelNetwork, Ports};
use super::timeline::LoadDivision;

/// Maximum number of linear pieces that may be kept for all processors together.
pub const MOST_PIECES: usize = 1 << 22;

/// Divides the load over a tree whose processors use all links at once. Exact, with start-up costs, too; `None` if these make it too large
/// (more than [`MOST_PIECES`]).
///
/// Results that are returned arrive as the last computation ends elsewhere, so a link carries them and the load as one: its seconds and its
/// start-up are counted for both ways.
pub fn all_ports(network: &ModelNetwork, results: f64) -> Option<LoadDivision> {
    let ways = if results > 0.0 { 2.0 } else { 1.0 };
    let outwards = network.outwards();
    let mut capacities: Vec<Option<Capacity>> = vec![None; network.processors()];
    let mut pieces = 0;
    for &processor in outwards.iter().rev() {
        let mut parts = vec![Capacity::of_processor(network.seconds[processor])];
        for link in network.out[processor].iter().map(|link| &network.links[*link]) {
            let behind = capacities[link.to].as_ref()?;
            parts.push(behind.behind(ways * link.startup, (1.0 + results) * link.seconds));
        }
        let capacity = Capacity::sum(&parts);
        pieces += capacity.pieces();
        if pieces > MOST_PIECES {
            return None;
        }
        capacities[processor] = Some(capacity);
    }
    let capacities: Vec<Capacity> = capacities.into_iter().collect::<Option<_>>()?;
    let mut sent = vec![0.0; network.links.len()];
    let mut time = vec![0.0; network.processors()];
    time[network.source] = capacities[network.source].time(1.0);
    for &processor in &outwards {
        for &index in &network.out[processor] {
            let link = &network.links[index];
            let through = capacities[link.to].behind(ways * link.startup, (1.0 + results) * link.seconds);
            let load = through.load(time[processor]);
            sent[index] = load;
            time[link.to] = capacities[link.to].time(load);
        }
    }
    let kept = (0..network.processors()).map(|processor| time[processor] / network.seconds[processor]).collect();
    Some(LoadDivision { kept: vec![kept], results, ..LoadDivision::new(network, Ports::All, vec![sent]) })
}

/// Divides the load over a tree whose processors use one link at a time, in the network's order of service. There must be no start-up costs.
pub fn one_port(network: &ModelNetwork) -> LoadDivision {
    let outwards = network.outwards();
    // The seconds that each takes for the whole load with all behind it, and what goes through a link of each second of the sender's.
    let mut equivalent = vec![0.0; network.processors()];
    let mut rate = vec![0.0; network.links.len()];
    for &processor in outwards.iter().rev() {
        let (mut left, mut all) = (1.0, 1.0 / network.seconds[processor]);
        for &index in &network.out[processor] {
            let link = &network.links[index];
            rate[index] = left / (link.seconds + equivalent[link.to]);
            left = rate[index] * equivalent[link.to];
            all += rate[index];
        }
        equivalent[processor] = 1.0 / all;
    }
    let mut volume = vec![0.0; network.processors()];
    volume[network.source] = 1.0;
    let mut sent = vec![0.0; network.links.len()];
    for &processor in &outwards {
        for &index in &network.out[processor] {
            sent[index] = rate[index] * equivalent[processor] * volume[processor];
            volume[network.links[index].to] = sent[index];
        }
    }
    let kept = (0..network.processors()).map(|processor| equivalent[processor] * volume[processor] / network.seconds[processor]).collect();
    LoadDivision { kept: vec![kept], ..LoadDivision::new(network, Ports::One, vec![sent]) }
}

/// Divides the load over a star whose hub uses one link at a time, if all around it and their links are alike; `None` for other networks.
/// (Of unequal ones a slow processor may not be worth the start-up of its fast link.)
///
/// With k served, what each gets is a straight line in the time of all, and so is their sum, so that time
/// follows; k is the most for whom the last still has time for its start-up.
pub fn one_port_star(network: &ModelNetwork) -> Option<LoadDivision> {
    let served = &network.out[network.source];
    let first = network.links.first()?;
    let alike = |link: &ModelLink| {
        let costs = |link: &ModelLink| (link.startup, link.seconds, network.seconds[link.to]);
        costs(link) == costs(first)
    };
    if served.len() != network.links.len() || !network.links.iter().all(alike) {
        return None;
    }
    let startup = first.startup;
    // The time that is left, what the next one takes, and what all take: straight lines in the time of all, slope and height.
    let mut left = (1.0, 0.0);
    let mut all = (1.0 / network.seconds[network.source], 0.0);
    let mut best = (all.0 > 0.0).then(|| 1.0 / all.0);
    for link in served.iter().map(|link| &network.links[*link]) {
        let seconds = network.seconds[link.to];
        let part = (left.0 / (link.seconds + seconds), (left.1 - startup) / (link.seconds + seconds));
        all = (all.0 + part.0, all.1 + part.1);
        let time = (1.0 - all.1) / all.0;
        // A processor without enough time for its start-up does not take part, nor does any after it.
        if part.0 * time + part.1 <= 0.0 || best.is_some_and(|best| time >= best) {
            break;
        }
        best = Some(time);
        left = (seconds * part.0, seconds * part.1);
    }
    let time = best?;
    let mut kept = vec![0.0; network.processors()];
    let mut sent = vec![0.0; network.links.len()];
    kept[network.source] = time / network.seconds[network.source];
    let mut left = time;
    for &index in served {
        let link = &network.links[index];
        let part = ((left - startup) / (link.seconds + network.seconds[link.to])).max(0.0);
        (sent[index], kept[link.to]) = (part, part);
        left = part * network.seconds[link.to];
    }
    Some(LoadDivision { kept: vec![kept], ..LoadDivision::new(network, Ports::One, vec![sent]) })
}
