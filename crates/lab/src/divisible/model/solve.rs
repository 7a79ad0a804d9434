//! Solves a question: by a closed form, a recursion, or a linear program, whichever fits.

use super::hypercube::processors_in;
use super::network::{ModelNetwork, Ports};
use super::order::Canonical;
use super::program::ProgramTask;
use super::question::Question;
use super::solution::{LayerShare, MessageSpan, Method, ProcessorShare, Solution};
use super::timeline::{DivisionTimeline, LoadDivision};
use super::{binomial, circle, layered, selection, star, tree};
use equipoise::error::{Error, Result};
use equipoise::topology::{NodeId, Topology};

/// The largest hypercube of one-port processors that is looked at processor by processor, where the closed form goes on to 30.
const LARGEST_CUBE_IN_DETAIL: u32 = 12;

/// Divides the load so that all is done earliest.
///
/// # Errors
/// Wrong usage if the question makes no sense or is too large; a failure if a linear program cannot be solved.
pub fn solve(question: &Question) -> Result<Solution> {
    question.check()?;
    let solution = match (&question.shape.topology, question.ports) {
        (Topology::Hypercube(cube), Ports::All) if question.is_cube_of_equals() => by_layer(question, cube.dimension()),
        (Topology::Hypercube(cube), Ports::One) if question.is_cube_of_equals() && cube.dimension() > LARGEST_CUBE_IN_DETAIL => {
            by_dimension(question, cube.dimension())
        }
        _ => by_processor(question)?,
    };
    match [solution.makespan, solution.speedup, solution.equivalent_w].iter().all(|number| number.is_finite()) {
        true => Ok(solution),
        false => Err(Error::usage("--w, --z, --tcp, --tcm: speeds that far apart cannot be calculated with")),
    }
}

/// The best division for the network and the ports of the question, found by linear program whatever else there may be: what the closed
/// forms are compared with.
///
/// # Errors
/// As [`solve`].
pub fn solve_by_program(question: &Question) -> Result<Solution> {
    question.check()?;
    let network = question.network();
    let (network, division, method) = by_program(question, &network)?;
    Ok(of_processors(question, &network, &division, method))
}

fn by_layer(question: &Question, dimension: u32) -> Solution {
    let shares = layered::divide(question, dimension);
    let parts = layered::parts(question, dimension, &shares);
    let layers = parts.iter().map(|part| LayerShare { processors: part.processors, alpha: part.alpha, volume: part.volume }).collect();
    let makespan = parts.iter().map(|part| part.finish).fold(0.0, f64::max);
    let method = if question.startup > 0.0 { Method::Recursion } else { Method::ClosedForm };
    worth(question, method, layers, makespan, question.compute(), parts)
}

fn by_dimension(question: &Question, dimension: u32) -> Solution {
    let shares = binomial::shares(dimension, &question.compute(), &question.carry());
    let layer = |(i, (alpha, volume)): (u32, (&f64, &f64))| {
        let processors = processors_in(dimension, i);
        LayerShare { processors, alpha: alpha / processors as f64, volume: volume / processors as f64 }
    };
    let layers = (0..).zip(shares.alpha.iter().zip(&shares.volume)).map(layer).collect();
    worth(question, Method::ClosedForm, layers, shares.makespan, question.compute(), Vec::new())
}

fn by_processor(question: &Question) -> Result<Solution> {
    let network = question.network();
    let once = question.installments == 1 && network.is_tree();
    let by_rule = match question.ports {
        Ports::All if once => {
            let too_deep = || Error::usage(format!("--topology {}: with --startup it is too large for the model", question.shape.name));
            Some(tree::all_ports(&network, question.results).ok_or_else(too_deep)?)
        }
        Ports::One if once && question.results == 0.0 && network.has_startup() => match tree::one_port_star(&network) {
            Some(division) => Some(division),
            None => {
                if let Some((network, division, all_tried)) = star::divide(&network) {
                    let method = if all_tried { Method::Recursion } else { Method::Search };
                    return Ok(of_processors(question, &network, &division, method));
                }
                None
            }
        },
        Ports::One if once && question.results == 0.0 => Some(tree::one_port(&network)),
        Ports::All if question.installments == 1 => circle::divide(&network, question.results),
        _ => None,
    };
    match by_rule {
        Some(division) => Ok(of_processors(question, &network, &division, Method::Recursion)),
        None => {
            let (network, division, method) = by_program(question, &network)?;
            Ok(of_processors(question, &network, &division, method))
        }
    }
}

/// The most orders of service of which all are tried, by the messages of the program: some seconds' work. Where start-up costs are to be decided a
/// program takes a hundred times as long.
fn most_orders(messages: usize, has_startup: bool) -> usize {
    match messages {
        ..=12 if !has_startup => 720,
        ..=40 => 24,
        _ => 1,
    }
}

/// The most messages of a program whose order of service is improved, and how many orders are tried for that.
const MOST_IMPROVED: usize = 100;
const IMPROVEMENTS: usize = 30;

/// Divides the load by linear program; through one port, in the best of several orders of service, which are all that there are where these are few.
fn by_program(question: &Question, network: &ModelNetwork) -> Result<(ModelNetwork, LoadDivision, Method)> {
    let Question { ports, installments, results, .. } = *question;
    let method = |proven| if proven { Method::LinearProgram } else { Method::Approximation };
    let mut best = Best { question, found: None };
    if ports == Ports::All {
        best.consider(network, false)?;
        let (_, network, division, proven) = best.found.ok_or_else(nothing)?;
        return Ok((network, division, method(proven)));
    }
    let canonical = Canonical::of(network);
    let given = &canonical.network;
    let messages = network.links.len() * installments;
    let all = canonical.all(most_orders(messages, network.has_startup()));
    let back_to_front: &[bool] = if results > 0.0 { &[false, true] } else { &[false] };
    // Good ones first: others are left out by what they can be at best.
    for order in by_rules(given, results).iter().chain(all.iter().flatten()) {
        for &last_first in back_to_front {
            best.consider(order, last_first)?;
        }
    }
    let mut tries = if all.is_none() && messages <= MOST_IMPROVED { IMPROVEMENTS } else { 0 };
    while tries > 0 {
        let Some((_, now, division, _)) = &best.found else { break };
        let (now, last_first) = (now.clone(), division.last_first);
        let mut is_better = false;
        for order in canonical.near(&now).take(tries) {
            tries -= 1;
            is_better = best.consider(&order, last_first)?;
            if is_better {
                break;
            }
        }
        if !is_better {
            break;
        }
    }
    let (_, solved, division, proven) = best.found.ok_or_else(nothing)?;
    let (network, division) = canonical.numbered_back(network, &solved, division);
    Ok((network, division, method(proven && all.is_some())))
}

fn nothing() -> Error {
    Error::Failed("there was no order of service to look at".into())
}

/// Orders that are often good: the fastest link first, and others where there are start-up costs or results.
fn by_rules(network: &ModelNetwork, results: f64) -> Vec<ModelNetwork> {
    let mut orders = vec![network.clone()];
    let mut serve_by = |key: &dyn Fn(&super::network::ModelLink) -> f64| {
        let mut other = network.clone();
        other.serve_by(key);
        if orders.iter().all(|order| order.out != other.out) {
            orders.push(other);
        }
    };
    if network.has_startup() {
        serve_by(&|link| link.startup);
        serve_by(&|link| link.startup + link.seconds);
    }
    if results > 0.0 {
        serve_by(&|link| -link.seconds);
    }
    serve_by(&|link| network.seconds[link.to]);
    orders
}

/// The best order of service so far: its makespan, the network with it, the division, and whether that is proven to be the best for it.
struct Best<'a> {
    question: &'a Question,
    found: Option<(f64, ModelNetwork, LoadDivision, bool)>,
}

impl Best<'_> {
    /// Tries an order; whether it is better.
    fn consider(&mut self, order: &ModelNetwork, last_first: bool) -> Result<bool> {
        let Question { ports, installments, results, .. } = *self.question;
        let (task, scale) = (ProgramTask { ports, installments, results, last_first }, self.question.alone());
        if let Some((least, ..)) = &self.found
            && order.has_startup()
            && selection::bound(order, task, scale)? >= least * (1.0 - 1e-9)
        {
            return Ok(false);
        }
        let outcome = selection::divide(order, task, scale)?;
        let makespan = outcome.division.timeline(order).makespan;
        // One that is not proven keeps the best of all from being so.
        let proven = outcome.proven && self.found.as_ref().is_none_or(|(.., proven)| *proven);
        let is_better = self.found.as_ref().is_none_or(|(least, ..)| makespan < least * (1.0 - 1e-12));
        match &mut self.found {
            Some((.., all_proven)) if !is_better => *all_proven = proven,
            found => *found = Some((makespan, order.clone(), outcome.division, proven)),
        }
        Ok(is_better)
    }
}

fn of_processors(question: &Question, network: &ModelNetwork, division: &LoadDivision, method: Method) -> Solution {
    let timeline = division.timeline(network);
    let mut layers: Vec<LayerShare> = Vec::new();
    let mut parts = parts(network, division, &timeline);
    for part in &parts {
        let layer = part.layer as usize;
        if layers.len() <= layer {
            layers.resize(layer + 1, LayerShare { processors: 0, alpha: 0.0, volume: 0.0 });
        }
        layers[layer].processors += 1;
        layers[layer].alpha += part.alpha;
        layers[layer].volume += part.volume;
    }
    for layer in &mut layers {
        layer.alpha /= layer.processors as f64;
        layer.volume /= layer.processors as f64;
    }
    parts.sort_by_key(|part| part.layer);
    // Unequal processors: the seconds that they compute, together.
    let busy: f64 = parts.iter().flat_map(|part| &part.computing).map(|(begin, end)| end - begin).sum();
    worth(question, method, layers, timeline.makespan, busy, parts)
}

fn parts(network: &ModelNetwork, division: &LoadDivision, timeline: &DivisionTimeline) -> Vec<ProcessorShare> {
    let mut parts: Vec<ProcessorShare> = (0..network.processors())
        .map(|processor| ProcessorShare {
            processor: Some(processor as NodeId),
            layer: network.layer[processor],
            processors: 1,
            alpha: division.alpha(processor),
            volume: division.volume(network, processor),
            arrival: timeline.arrival[processor],
            finish: timeline.finish[processor],
            computing: timeline.computing[processor].clone(),
            ..ProcessorShare::default()
        })
        .collect();
    for message in &timeline.messages {
        let link = network.links[message.link];
        let (from, to) = if message.returns { (link.to, link.from) } else { (link.from, link.to) };
        let span = MessageSpan { begin: message.begin, end: message.end, to: Some(to as NodeId) };
        let part = &mut parts[from];
        if message.returns { part.returning.push(span) } else { part.sending.push(span) }
    }
    parts
}

/// `busy`: seconds that all processors compute, together.
fn worth(question: &Question, method: Method, layers: Vec<LayerShare>, makespan: f64, busy: f64, parts: Vec<ProcessorShare>) -> Solution {
    let processors: u64 = layers.iter().map(|layer| layer.processors).sum();
    Solution {
        method,
        processors,
        layers,
        makespan,
        speedup: question.alone() / makespan,
        utilisation: busy / makespan / processors as f64,
        equivalent_w: makespan / (question.tcp * question.load),
        parts,
    }
}
