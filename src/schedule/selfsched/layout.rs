//! The hierarchy of coordinators.

use super::SelfScheduling;
use super::coordinator::{Client, Coordinator, GRANT, SUPPLY};
use super::role::Role;
use crate::error::Result;
use crate::node::{Node, Ticks};
use crate::schedule::independent::{Independent, Pace};
use crate::topology::{HostId, NodeId, RankId};

/// A node's role if the first one coordinates all.
pub fn one(scheduler: &SelfScheduling, node: &Node, work: &dyn Independent, pace: Pace, begun: Ticks) -> Result<Role> {
    let top = node_of(node, RankId::FIRST);
    if node.me() != top {
        return Ok(Role { coordinator: top, own: None, top: None, reports: 1, reports_to: Some(top) });
    }
    let clients = (0..node.nodes()).map(|each| Client { node: each, ranks: vec![node.rank_of(each).index()] }).collect();
    let own = Coordinator::new(node.clone(), pace, begun, scheduler.dealer(work)?, clients, GRANT);
    Ok(Role { coordinator: top, own: Some(own), top: None, reports: node.nodes(), reports_to: None })
}

/// A node's role if each host has a coordinator, its first rank's node; that of the first rank of all deals out tasks to them.
pub fn by_host(scheduler: &SelfScheduling, node: &Node, work: &dyn Independent, pace: Pace, begun: Ticks) -> Result<Role> {
    let top = node_of(node, RankId::FIRST);
    let mine = ranks_on(node, node.host_of(node.me()));
    let first = mine.first().map_or(top, |rank| node_of(node, *rank));
    if node.me() != first {
        return Ok(Role { coordinator: first, own: None, top: None, reports: 1, reports_to: Some(first) });
    }
    let clients = mine.iter().enumerate().map(|(place, rank)| Client { node: node_of(node, *rank), ranks: vec![place] });
    let clients: Vec<Client> = sorted(clients.collect());
    let reports = clients.len() as u32;
    let own = Coordinator::new(node.clone(), pace, begun, scheduler.dealer_of(&mine, work)?, clients, GRANT).supplied_by(top);
    if node.me() != top {
        return Ok(Role { coordinator: first, own: Some(own), top: None, reports, reports_to: Some(top) });
    }
    let hosts = node.overlay().placement.hosts().count();
    let of_host = |host| {
        let ranks = ranks_on(node, host);
        Client { node: ranks.first().map_or(top, |rank| node_of(node, *rank)), ranks: ranks.iter().map(|rank| rank.index()).collect() }
    };
    let clients = sorted(HostId::all(hosts).map(of_host).collect());
    let dealing = Coordinator::new(node.clone(), pace, begun, scheduler.dealer(work)?, clients, SUPPLY);
    Ok(Role { coordinator: first, own: Some(own), top: Some(dealing), reports: reports + hosts - 1, reports_to: None })
}

fn node_of(node: &Node, rank: RankId) -> NodeId {
    node.overlay().placement.real_node_of(rank)
}

fn ranks_on(node: &Node, host: HostId) -> Vec<RankId> {
    node.overlay().placement.hosts().ranks_on(host)
}

fn sorted(mut clients: Vec<Client>) -> Vec<Client> {
    clients.sort_by_key(|client| client.node);
    clients
}
