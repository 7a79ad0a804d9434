//! A hypercube of equal processors, layer by layer, with the times of its layers; with start-up costs, results that are returned, or a
//! source that does not compute by [`Capacity`], else by the paper's equations.

use super::capacity::Capacity;
use super::hypercube::{processors_in, shares};
use super::question::Question;
use super::solution::{MessageSpan, ProcessorShare};

/// Share of one processor of each layer: (alpha, volume), layer 0 first.
pub fn divide(question: &Question, dimension: u32) -> Vec<(f64, f64)> {
    if question.startup == 0.0 && question.source_computes {
        // Results travel while others still compute, so that a link carries load and results as one.
        let carry = question.carry() * (1.0 + question.results);
        let shares = shares(dimension, &1.0, &1.0, &question.compute(), &carry);
        return shares.alpha.into_iter().zip(shares.volume).collect();
    }
    by_capacity(question, dimension)
}

/// The equal-finish rule for whatever a layer can do in the time that it has. A processor of layer i + 1 receives the same through i + 1 links.
pub(super) fn by_capacity(question: &Question, dimension: u32) -> Vec<(f64, f64)> {
    let ways = if question.results > 0.0 { 2.0 } else { 1.0 };
    let own = |layer: u32| if layer == 0 && !question.source_computes { f64::INFINITY } else { question.compute() };
    // From layer d down to 0: what a processor can do with those behind it, and what one of its links can.
    let mut capacities = vec![Capacity::of_processor(own(dimension))];
    let mut links = Vec::new();
    for i in (0..dimension).rev() {
        let next = capacities[capacities.len() - 1].clone().times(1.0 / f64::from(i + 1));
        let link = next.behind(ways * question.startup, (1.0 + question.results) * question.carry());
        capacities.push(Capacity::sum(&[Capacity::of_processor(own(i)), link.clone().times(f64::from(dimension - i))]));
        links.push(link);
    }
    let mut time = capacities[dimension as usize].time(1.0);
    let mut volume = 1.0;
    let mut layers = Vec::new();
    for i in 0..=dimension {
        layers.push((time / own(i), volume));
        if i < dimension {
            let place = (dimension - i - 1) as usize;
            volume = f64::from(i + 1) * links[place].load(time);
            time = capacities[place].time(volume);
        }
    }
    layers
}

/// Share of a processor of each layer, with the times at which it receives, computes and sends.
pub fn parts(question: &Question, dimension: u32, layers: &[(f64, f64)]) -> Vec<ProcessorShare> {
    let mut parts: Vec<ProcessorShare> = Vec::new();
    let mut arrival = 0.0;
    for (i, &(alpha, volume)) in (0..).zip(layers) {
        let computing = if alpha > 0.0 { vec![(arrival, arrival + alpha * question.compute())] } else { Vec::new() };
        let finish = computing.last().map_or(0.0, |(_, end)| *end);
        let mut part = ProcessorShare {
            layer: i,
            processors: processors_in(dimension, i),
            alpha,
            volume,
            arrival,
            finish,
            computing,
            ..ProcessorShare::default()
        };
        if let Some(end) = message(question, layers, i).map(|seconds| arrival + question.startup + seconds) {
            part.sending.push(MessageSpan { begin: arrival, end, to: None });
            arrival = end;
        }
        parts.push(part);
    }
    if question.results > 0.0 {
        for i in (0..dimension).rev() {
            let Some(seconds) = message(question, layers, i) else { continue };
            let begin = parts[i as usize + 1].finish;
            let end = begin + question.startup + seconds * question.results;
            parts[i as usize + 1].returning.push(MessageSpan { begin, end, to: None });
            parts[i as usize + 1].finish = end;
            parts[i as usize].finish = parts[i as usize].finish.max(end);
        }
    }
    parts
}

/// Seconds for what one link from a layer to the next carries, if anything.
fn message(question: &Question, layers: &[(f64, f64)], layer: u32) -> Option<f64> {
    let (_, volume) = layers.get(layer as usize + 1)?;
    (*volume > 0.0).then(|| volume / f64::from(layer + 1) * question.carry())
}
