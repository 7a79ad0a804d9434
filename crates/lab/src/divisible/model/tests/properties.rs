//! Properties that hold for any numbers.

use proptest::prelude::*;

use super::super::network::{ModelLink, ModelNetwork};
use super::super::{timeline::LoadDivision, tree};
use super::*;

fn positive() -> impl Strategy<Value = f64> {
    (-3.0..3.0).prop_map(|power: f64| 10f64.powf(power))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn more_dimensions_are_never_slower(dimension in 0u32..30, w in positive(), z in positive(), startup in prop_oneof![Just(0.0), positive()]) {
        for ports in [Ports::One, Ports::All] {
            if ports == Ports::One && (startup > 0.0 || dimension > 9 && dimension < 13) {
                continue;
            }
            let of = |dimension| solve(&Question { w, z, startup, ..question(&format!("hypercube:{dimension}"), ports) }).unwrap();
            let (smaller, larger) = (of(dimension), of(dimension + 1));
            prop_assert!(larger.makespan <= smaller.makespan * (1.0 + 1e-12));
            prop_assert!(larger.speedup <= (1u64 << (dimension + 1)) as f64 * (1.0 + 1e-9));
            let all: f64 = larger.layers.iter().map(|layer| layer.alpha * layer.processors as f64).sum();
            prop_assert!(near(all, 1.0, 1e-9), "{all}");
        }
    }

    #[test]
    fn one_port_is_never_faster(dimension in 0u32..=30, w in positive(), z in positive(), tree in 1u32..40) {
        for topology in [format!("hypercube:{dimension}"), format!("star:{tree}"), format!("tree:binary,nodes={tree}"), format!("line:{tree}")] {
            let of = |ports| solve(&Question { w, z, ..question(&topology, ports) }).unwrap().makespan;
            prop_assert!(of(Ports::One) >= of(Ports::All) * (1.0 - 1e-9), "{topology}");
        }
    }

    #[test]
    fn all_finish_together_on_unequal_trees(seeds in prop::collection::vec((positive(), positive(), 0usize..1000), 2..30), startup in prop_oneof![Just(0.0), positive()]) {
        let parents: Vec<usize> = seeds.iter().enumerate().map(|(node, seed)| if node == 0 { 0 } else { seed.2 % node }).collect();
        let mut layer = vec![0; seeds.len()];
        for node in 1..seeds.len() {
            layer[node] = layer[parents[node]] + 1;
        }
        let links = |startup| (1..seeds.len()).map(|node| ModelLink { from: parents[node], to: node, startup, seconds: seeds[node].1 }).collect();
        let seconds: Vec<f64> = seeds.iter().map(|seed| seed.0).collect();
        let of = |startup| ModelNetwork::new(0, layer.clone(), seconds.clone(), links(startup));
        check(&of(startup), &tree::all_ports(&of(startup), 0.0).unwrap())?;
        check(&of(0.0), &tree::one_port(&of(0.0)))?;
    }

    /// Through one port the fastest link first: no other order is better.
    #[test]
    fn the_order_of_service_is_the_best(seeds in prop::collection::vec((positive(), positive()), 2..6), order in any::<prop::sample::Index>(), keys in prop::collection::vec(0.0..1.0, 6)) {
        let links: Vec<ModelLink> = seeds.iter().enumerate().map(|(node, seed)| ModelLink { from: 0, to: node + 1, startup: 0.0, seconds: seed.1 }).collect();
        let seconds: Vec<f64> = std::iter::once(1.0).chain(seeds.iter().map(|seed| seed.0)).collect();
        let layer = std::iter::once(0).chain(seeds.iter().map(|_| 1)).collect();
        let network = ModelNetwork::new(0, layer, seconds, links);
        let mut other = network.clone();
        let turn = order.index(seeds.len());
        other.serve_by(|link| keys[(link.to + turn) % keys.len()]);
        let makespan = |network: &ModelNetwork| tree::one_port(network).timeline(network).makespan;
        prop_assert!(makespan(&network) <= makespan(&other) * (1.0 + 1e-12));
    }
}

fn check(network: &ModelNetwork, division: &LoadDivision) -> Result<(), TestCaseError> {
    let timeline = division.timeline(network);
    let all: f64 = (0..network.processors()).map(|processor| division.alpha(processor)).sum();
    prop_assert!(near(all, 1.0, 1e-9));
    for processor in (0..network.processors()).filter(|processor| division.alpha(*processor) > 1e-12) {
        prop_assert!(near(timeline.finish[processor], timeline.makespan, 1e-9), "{processor}: {timeline:?}");
    }
    Ok(())
}

/// More installments let processors begin earlier; results that are returned take time.
#[test]
fn installments_help_and_results_cost() {
    let of = |topology: &str, ports, installments, results| {
        solve(&Question { installments, results, z: 0.5, ..question(topology, ports) }).unwrap().makespan
    };
    for topology in ["star:4", "line:4", "mesh:2x3"] {
        for ports in [Ports::One, Ports::All] {
            let times: Vec<f64> = [1, 2, 3, 5].map(|installments| of(topology, ports, installments, 0.0)).to_vec();
            assert!(times.windows(2).all(|pair| pair[1] <= pair[0] * (1.0 + 1e-9)), "{topology} {ports:?}: {times:?}");
            assert!(times[3] < times[0] * 0.999, "{topology} {ports:?}: {times:?}");
            let times: Vec<f64> = [0.0, 0.2, 1.0].map(|results| of(topology, ports, 1, results)).to_vec();
            assert!(times.windows(2).all(|pair| pair[1] > pair[0]), "{topology} {ports:?}: {times:?}");
        }
    }
}
