//! In which order a processor with one port serves those behind it.
//!
//! Without start-up costs, results and installments the fastest link first is best (see [`super::tree`]). With them no rule is known (Legrand, Yang
//! and Casanova, "The NP-hardness of scheduling divisible loads with affine costs", 2005), so orders are tried: all of them where they are few,
//! else some good ones, which are then improved by exchanging neighbours.
//!
//! The result must not depend on how the processors are numbered. So the network is [numbered canonically](Canonical) by the properties of
//! its processors and links, solved so, and the answer is numbered back. Processors that are alike with all behind them are alike in every
//! order, too.

use super::network::{ModelLink, ModelNetwork};
use super::timeline::LoadDivision;

/// A tree in a numbering that depends on its speeds, links and start-up costs only.
pub struct Canonical {
    pub network: ModelNetwork,
    /// Class of each processor: the same number for those that are alike with their link and all behind them.
    class: Vec<usize>,
    /// The given numbers, by new ones.
    processors: Vec<usize>,
    links: Vec<usize>,
}

impl Canonical {
    /// Canonical form of a tree.
    pub fn of(given: &ModelNetwork) -> Canonical {
        let class = classes(given);
        let mut processors = vec![given.source];
        let mut at = 0;
        while let Some(&processor) = processors.get(at) {
            let mut behind: Vec<usize> = given.out[processor].iter().map(|link| given.links[*link].to).collect();
            behind.sort_by_key(|child| class[*child]);
            processors.append(&mut behind);
            at += 1;
        }
        let mut new = vec![0; given.processors()];
        processors.iter().enumerate().for_each(|(number, processor)| new[*processor] = number);
        let links: Vec<usize> = processors.iter().filter_map(|processor| given.into[*processor].first().copied()).collect();
        let renumbered = |link: &usize| {
            let link = given.links[*link];
            ModelLink { from: new[link.from], to: new[link.to], ..link }
        };
        let network = ModelNetwork::new(
            0,
            processors.iter().map(|processor| given.layer[*processor]).collect(),
            processors.iter().map(|processor| given.seconds[*processor]).collect(),
            links.iter().map(renumbered).collect(),
        );
        let class = processors.iter().map(|processor| class[*processor]).collect();
        Canonical { network, class, processors, links }
    }

    /// A division of this network, for the given one, whose order of service becomes that of `solved`.
    pub fn numbered_back(&self, given: &ModelNetwork, solved: &ModelNetwork, division: LoadDivision) -> (ModelNetwork, LoadDivision) {
        let mut network = given.clone();
        for (processor, out) in solved.out.iter().enumerate() {
            network.out[self.processors[processor]] = out.iter().map(|link| self.links[*link]).collect();
        }
        let back = |parts: Vec<f64>, given: &[usize]| {
            let mut by_given = vec![0.0; given.len()];
            parts.into_iter().zip(given).for_each(|(part, given)| by_given[*given] = part);
            by_given
        };
        let sent = division.sent.into_iter().map(|sent| back(sent, &self.links)).collect();
        let kept = division.kept.into_iter().map(|kept| back(kept, &self.processors)).collect();
        (network, LoadDivision { sent, kept, ..division })
    }

    /// All orders that differ, if they are not more than `most`.
    pub fn all(&self, most: usize) -> Option<Vec<ModelNetwork>> {
        let mut count = 1usize;
        for out in &self.network.out {
            count = count.checked_mul(arrangements(&self.classes_of(out))?).filter(|count| *count <= most)?;
        }
        let mut all = vec![self.network.clone()];
        for (processor, out) in self.network.out.iter().enumerate().filter(|(_, out)| out.len() > 1) {
            let mut orders = Vec::new();
            let mut rest = out.clone();
            rest.sort_by_key(|link| (self.class_of(*link), *link));
            self.arrange(&mut Vec::new(), &rest, &mut orders);
            let with = |network: &ModelNetwork, order: &Vec<usize>| {
                let mut network = network.clone();
                network.out[processor].clone_from(order);
                network
            };
            all = all.iter().flat_map(|network| orders.iter().map(move |order| with(network, order))).collect();
        }
        Some(all)
    }

    /// Orders that are one exchange of neighbours away.
    pub fn near<'a>(&'a self, network: &'a ModelNetwork) -> impl Iterator<Item = ModelNetwork> + 'a {
        let places = network.out.iter().enumerate().flat_map(|(processor, out)| (1..out.len()).map(move |place| (processor, place)));
        let differ = |(processor, place): &(usize, usize)| {
            let out = &network.out[*processor];
            self.class_of(out[place - 1]) != self.class_of(out[*place])
        };
        places.filter(differ).map(|(processor, place)| {
            let mut network = network.clone();
            network.out[processor].swap(place - 1, place);
            network
        })
    }

    fn class_of(&self, link: usize) -> usize {
        self.class[self.network.links[link].to]
    }

    fn classes_of(&self, links: &[usize]) -> Vec<usize> {
        links.iter().map(|link| self.class_of(*link)).collect()
    }

    /// Appends all arrangements of the links that begin so, of those alike the lowest number first.
    fn arrange(&self, begun: &mut Vec<usize>, rest: &[usize], orders: &mut Vec<Vec<usize>>) {
        if rest.is_empty() {
            orders.push(begun.clone());
        }
        for (place, &link) in rest.iter().enumerate() {
            if place > 0 && self.class_of(rest[place - 1]) == self.class_of(link) {
                continue;
            }
            begun.push(link);
            self.arrange(begun, &[&rest[..place], &rest[place + 1..]].concat(), orders);
            begun.pop();
        }
    }
}

/// In how many ways these can follow each other; `None` if that is no number to count with.
fn arrangements(classes: &[usize]) -> Option<usize> {
    let mut ways = 1usize;
    for (before, class) in classes.iter().enumerate() {
        let alike = classes[..before].iter().filter(|other| *other == class).count();
        // A binomial coefficient at each step, so the division is exact.
        ways = ways.checked_mul(before + 1)? / (alike + 1);
    }
    Some(ways)
}

/// Class of each processor: a number that is the same, and as high, for all that are alike with their link and everything behind them,
/// however they are numbered.
fn classes(network: &ModelNetwork) -> Vec<usize> {
    let mut class = vec![0; network.processors()];
    let deepest = network.layer.iter().copied().max().unwrap_or(0);
    let mut known = 0;
    for layer in (0..=deepest).rev() {
        let mut kinds: Vec<(Vec<u64>, usize)> = Vec::new();
        for processor in (0..network.processors()).filter(|processor| network.layer[*processor] == layer) {
            let link = network.into[processor].first().map(|link| network.links[*link]);
            let (seconds, startup) = link.map_or((0.0, 0.0), |link| (link.seconds, link.startup));
            // Of numbers that are not negative the bits are in the same order.
            let mut kind = vec![seconds.to_bits(), startup.to_bits(), network.seconds[processor].to_bits()];
            let mut behind: Vec<u64> = network.out[processor].iter().map(|link| class[network.links[*link].to] as u64).collect();
            behind.sort_unstable();
            kind.append(&mut behind);
            kinds.push((kind, processor));
        }
        kinds.sort();
        for (place, (kind, processor)) in kinds.iter().enumerate() {
            known += usize::from(place == 0 || kinds[place - 1].0 != *kind);
            class[*processor] = known;
        }
    }
    class
}

#[cfg(test)]
mod tests {
    use super::*;

    fn star(links: &[(f64, f64, f64)]) -> ModelNetwork {
        let link = |(place, (seconds, startup, _)): (usize, &(f64, f64, f64))| ModelLink {
            from: 0,
            to: place + 1,
            startup: *startup,
            seconds: *seconds,
        };
        let layer = std::iter::once(0).chain(links.iter().map(|_| 1)).collect();
        let seconds = std::iter::once(1.0).chain(links.iter().map(|(.., seconds)| *seconds)).collect();
        ModelNetwork::new(0, layer, seconds, links.iter().enumerate().map(link).collect())
    }

    #[test]
    fn orders_of_those_alike_are_one() {
        let count = |links: &[(f64, f64, f64)], most| Canonical::of(&star(links)).all(most).map(|all| all.len());
        let (a, b, c) = ((1.0, 0.1, 1.0), (2.0, 0.1, 1.0), (1.0, 0.2, 1.0));
        assert_eq!(count(&[], 1), Some(1));
        assert_eq!(count(&[a; 30], 1), Some(1));
        assert_eq!((count(&[a, b, c], 6), count(&[a, b, c], 5)), (Some(6), None));
        assert_eq!((count(&[a, b, a, c, b], 100), arrangements(&[1, 2, 1, 3, 2])), (Some(30), Some(30)));
        assert_eq!(Canonical::of(&star(&[a, a, b])).near(&Canonical::of(&star(&[a, a, b])).network).count(), 1);
    }

    #[test]
    fn the_numbering_goes_and_comes_back() {
        let links = [(2.0, 0.1, 1.0), (1.0, 0.3, 5.0), (1.0, 0.2, 4.0)];
        let (given, turned) = (star(&links), star(&[links[2], links[0], links[1]]));
        let (one, other) = (Canonical::of(&given), Canonical::of(&turned));
        assert_eq!((&one.network.links, &one.network.seconds), (&other.network.links, &other.network.seconds));
        let division = LoadDivision::new(&one.network, crate::divisible::model::Ports::One, vec![vec![0.1, 0.2, 0.3]]);
        let (network, division) = one.numbered_back(&given, &one.network, division);
        // Fast links come first, of these the one with less start-up.
        assert_eq!((division.sent[0].clone(), network.out[0].clone()), (vec![0.3, 0.2, 0.1], vec![2, 1, 0]));
        assert_eq!(division.kept[0][1..], [0.3, 0.2, 0.1]);
    }
}
