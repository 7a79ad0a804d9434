//! A star whose hub has one port, with start-up costs: which processors take part, and in which order.
//!
//! The processors that take part all finish together. So for a given order each share is a linear function of the total time, and so is their sum,
//! which gives that time. A processor that would get nothing is left out, and none after it is served.
//!
//! ```text
//!   left_1 = T     x_i = (left_i - S_i) / (c_i + w_i)     left_(i+1) = w_i x_i     T / w_0 + sum of x = 1
//! ```
//!
//! Orders are tried depth first, one more served at each step, those alike once; [`MOST_STEPS`] at most, which is all of them for nine that all
//! differ. Beyond that a few rules give orders, and the best is improved by exchanging any two as long as that helps.

use super::network::{ModelLink, ModelNetwork, Ports};
use super::order::Canonical;
use super::timeline::LoadDivision;

/// Steps of the search through all orders.
const MOST_STEPS: u64 = 3_000_000;
/// Stars of more links are not searched through: there would be too little time for it.
const MOST_SEARCHED: usize = 64;
/// Links that are looked at while an order is improved: some tenths of a second.
const MOST_LOOKS: u64 = 30_000_000;

/// A linear function of the time of all.
type Line = (f64, f64);

/// An order that is being made.
#[derive(Clone, Copy)]
struct Begun {
    /// The time that is left for the next one.
    left: Line,
    /// Load that all processors do until then.
    all: Line,
    time: f64,
}

impl Begun {
    fn new(hub: f64) -> Begun {
        let own = 1.0 / hub;
        Begun { left: (1.0, 0.0), all: (own, 0.0), time: if own > 0.0 { hub } else { f64::INFINITY } }
    }

    /// With one more; `None` if it would get nothing, or nothing is gained.
    fn and(self, link: &ModelLink, seconds: f64) -> Option<Begun> {
        let each = link.seconds + seconds;
        let part = (self.left.0 / each, (self.left.1 - link.startup) / each);
        let all = (self.all.0 + part.0, self.all.1 + part.1);
        let time = (1.0 - all.1) / all.0;
        let gains = part.0 * time + part.1 > 0.0 && time < self.time;
        gains.then_some(Begun { left: (seconds * part.0, seconds * part.1), all, time })
    }
}

/// The best division over a star, and whether all orders were tried. `None` if the network is no star.
pub fn divide(network: &ModelNetwork) -> Option<(ModelNetwork, LoadDivision, bool)> {
    if network.out[network.source].len() != network.links.len() {
        return None;
    }
    let canonical = Canonical::of(network);
    let star = &canonical.network;
    let mut search = Search { star, kinds: kinds(star), steps: 0, served: Vec::new(), best: Vec::new(), time: f64::INFINITY };
    let begun = Begun::new(star.seconds[0]);
    search.time = begun.time;
    let all_tried = star.links.len() <= MOST_SEARCHED && search.deeper(begun);
    if !all_tried {
        search.by_rules(begun);
    }
    let mut solved = star.clone();
    solved.out[0] = with_the_rest(&search.best, star.links.len());
    let division = division(&solved, &search.best, search.time);
    let (network, division) = canonical.numbered_back(network, &solved, division);
    Some((network, division, all_tried))
}

/// An order of all links that begins so.
fn with_the_rest(served: &[usize], links: usize) -> Vec<usize> {
    let mut rest = vec![true; links];
    served.iter().for_each(|link| rest[*link] = false);
    served.iter().copied().chain((0..links).filter(|link| rest[*link])).collect()
}

/// Links that are alike, with what lies behind them: ranges of the canonical numbering.
fn kinds(star: &ModelNetwork) -> Vec<std::ops::Range<usize>> {
    let alike = |a: usize, b: usize| {
        let what = |link: usize| (star.links[link].seconds, star.links[link].startup, star.seconds[star.links[link].to]);
        what(a) == what(b)
    };
    let mut kinds: Vec<std::ops::Range<usize>> = Vec::new();
    for link in 0..star.links.len() {
        match kinds.last_mut() {
            Some(kind) if alike(kind.start, link) => kind.end += 1,
            _ => kinds.push(link..link + 1),
        }
    }
    kinds
}

struct Search<'a> {
    star: &'a ModelNetwork,
    /// Links that are left, by kind.
    kinds: Vec<std::ops::Range<usize>>,
    steps: u64,
    served: Vec<usize>,
    best: Vec<usize>,
    time: f64,
}

impl Search<'_> {
    /// Tries all orders that begin so; whether there was time for all.
    fn deeper(&mut self, begun: Begun) -> bool {
        if begun.time < self.time {
            self.time = begun.time;
            self.best.clone_from(&self.served);
        }
        for kind in 0..self.kinds.len() {
            if self.kinds[kind].is_empty() {
                continue;
            }
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return false;
            }
            let link = self.kinds[kind].start;
            if let Some(next) = begun.and(&self.star.links[link], self.star.seconds[self.star.links[link].to]) {
                self.kinds[kind].start += 1;
                self.served.push(link);
                let in_time = self.deeper(next);
                self.served.pop();
                self.kinds[kind].start -= 1;
                if !in_time {
                    return false;
                }
            }
        }
        true
    }

    /// Returns the time of an order without the processors that would get nothing, and the processors that are left.
    fn time_of(&self, order: &[usize], begun: Begun) -> (f64, Vec<usize>) {
        let (mut now, mut served) = (begun, Vec::new());
        for &link in order {
            if let Some(next) = now.and(&self.star.links[link], self.star.seconds[self.star.links[link].to]) {
                now = next;
                served.push(link);
            }
        }
        (now.time, served)
    }

    fn by_rules(&mut self, begun: Begun) {
        let star = self.star;
        let links = star.links.len();
        let seconds = |link: usize| star.seconds[star.links[link].to];
        let rules: [&dyn Fn(usize) -> f64; 6] = [
            &|link| star.links[link].seconds,
            &|link| star.links[link].startup,
            &|link| star.links[link].startup + star.links[link].seconds,
            &|link| star.links[link].startup + star.links[link].seconds + seconds(link),
            &|link| star.links[link].startup * seconds(link) + star.links[link].seconds,
            &seconds,
        ];
        let mut order = with_the_rest(&self.best, links);
        for rule in rules {
            let mut other: Vec<usize> = (0..links).collect();
            other.sort_by(|a, b| rule(*a).total_cmp(&rule(*b)).then(a.cmp(b)));
            let (time, served) = self.time_of(&other, begun);
            if time < self.time {
                (self.time, self.best, order) = (time, served, other);
            }
        }
        let (mut looks, mut again) = (0, true);
        while again {
            again = false;
            for distance in 1..links {
                for place in distance..links {
                    looks += links as u64;
                    if looks > MOST_LOOKS {
                        return;
                    }
                    order.swap(place - distance, place);
                    let (time, served) = self.time_of(&order, begun);
                    if time < self.time * (1.0 - 1e-12) {
                        (self.time, self.best, again) = (time, served, true);
                    } else {
                        order.swap(place - distance, place);
                    }
                }
            }
        }
    }
}

fn division(star: &ModelNetwork, served: &[usize], time: f64) -> LoadDivision {
    let (mut kept, mut sent) = (vec![0.0; star.processors()], vec![0.0; star.links.len()]);
    kept[0] = time / star.seconds[0];
    let mut left = time;
    for &index in served {
        let link = &star.links[index];
        let seconds = star.seconds[link.to];
        let part = ((left - link.startup) / (link.seconds + seconds)).max(0.0);
        (sent[index], kept[link.to]) = (part, part);
        left = seconds * part;
    }
    LoadDivision { kept: vec![kept], ..LoadDivision::new(star, Ports::One, vec![sent]) }
}
