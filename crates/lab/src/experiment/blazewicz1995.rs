//! The performance study of Blazewicz and Drozdowski 1995 (section 3): figures 2 to 8, from the model's closed form.
//!
//! All other parameters are 1: w, z, Tcp, Tcm. The paper prints curves without numbers; dimensions go from 0 to 12, like those in its text.

use crate::divisible::model::hypercube::{HypercubeShares, processors_in, shares};

/// The largest dimension of the study.
pub const LARGEST: u32 = 12;

/// A figure of the paper.
#[derive(Clone, Debug)]
pub struct BlazewiczFigure {
    pub number: u32,
    pub title: &'static str,
    pub x: &'static str,
    pub y: &'static str,
    pub log_x: bool,
    pub log_y: bool,
    pub curves: Vec<Curve>,
}

/// One curve, named by the parameter that it is drawn for.
#[derive(Clone, Debug)]
pub struct Curve {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// All figures in their order.
pub fn figures() -> Vec<BlazewiczFigure> {
    let figure = |number, title, x, y, curves| BlazewiczFigure { number, title, x, y, log_x: false, log_y: false, curves };
    let log_y = |figure| BlazewiczFigure { log_y: true, ..figure };
    let slow = [0.1, 1.0, 10.0];
    let links = [0.0, 0.1, 1.0, 10.0];
    let time = |shares: &HypercubeShares<f64>| shares.equivalent[0];
    vec![
        log_y(figure(2, "Load of a processor by layer", "layer", "part of the load for each processor", by_layer(|_, _| 1.0))),
        figure(3, "Load of a layer", "layer", "part of the load for the layer", by_layer(|d, layer| processors_in(d, layer) as f64)),
        log_y(figure(
            4,
            "Execution time and speed of processors",
            "dimension d",
            "execution time",
            by_dimension("w", &slow, |d, w| time(&shares(d, &w, &1.0, &1.0, &1.0))),
        )),
        log_y(figure(
            5,
            "Execution time and speed of links",
            "dimension d",
            "execution time",
            by_dimension("z", &links, |d, z| time(&shares(d, &1.0, &z, &1.0, &1.0))),
        )),
        log_y(figure(
            6,
            "Relative execution time and size of the computation",
            "dimension d",
            "execution time / time on one processor",
            by_dimension("Tcp", &slow, |d, tcp| time(&shares(d, &1.0, &1.0, &tcp, &1.0))),
        )),
        BlazewiczFigure {
            log_x: true,
            log_y: true,
            ..figure(
                7,
                "Speedup and speed of links",
                "processors",
                "speedup",
                by_dimension("z", &links, |d, z| 1.0 / shares(d, &1.0, &z, &1.0, &1.0).alpha[0])
                    .into_iter()
                    .map(|curve| Curve { points: curve.points.into_iter().map(|(d, y)| (d.exp2(), y)).collect(), ..curve })
                    .collect(),
            )
        },
        figure(
            8,
            "Utilisation and speed of links",
            "dimension d",
            "utilisation",
            by_dimension("z", &links, |d, z| 1.0 / shares(d, &1.0, &z, &1.0, &1.0).alpha[0] / f64::from(d).exp2()),
        ),
    ]
}

/// A curve over the layers for each of some dimensions.
fn by_layer(factor: impl Fn(u32, u32) -> f64) -> Vec<Curve> {
    let of = |d: u32| {
        let alpha = shares(d, &1.0, &1.0, &1.0, &1.0).alpha;
        let points = (0..).zip(alpha).map(|(layer, alpha)| (f64::from(layer), alpha * factor(d, layer))).collect();
        Curve { name: format!("d = {d}"), points }
    };
    (2..=LARGEST).step_by(2).map(of).collect()
}

/// A curve over the dimensions for each value of a parameter.
fn by_dimension(parameter: &str, values: &[f64], quantity: impl Fn(u32, f64) -> f64) -> Vec<Curve> {
    let of = |value: &f64| Curve {
        name: format!("{parameter} = {value}"),
        points: (0..=LARGEST).map(|d| (f64::from(d), quantity(d, *value))).collect(),
    };
    values.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(number: u32) -> BlazewiczFigure {
        figures().into_iter().find(|figure| figure.number == number).unwrap()
    }

    fn value(figure: &BlazewiczFigure, curve: &str, x: f64) -> f64 {
        let curve = figure.curves.iter().find(|one| one.name == curve).unwrap();
        curve.points.iter().find(|point| point.0 == x).unwrap().1
    }

    /// Statements of the paper's text about its figures.
    #[test]
    fn the_figures_show_what_the_text_says() {
        assert_eq!(figures().iter().map(|figure| figure.number).collect::<Vec<_>>(), [2, 3, 4, 5, 6, 7, 8]);
        // "The load of processors across the layers decreases very fast."
        for curve in figure(2).curves {
            assert!(curve.points.windows(2).all(|pair| pair[1].1 < pair[0].1));
        }
        // "... a function which maximum moves from the originator, for small dimensions, to the internal layers."
        let fullest = |d: u32| {
            let figure = figure(3);
            let curve = &figure.curves[(d / 2 - 1) as usize];
            curve.points.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0
        };
        assert!(fullest(2) == 0.0 && fullest(12) > 2.0 && fullest(12) < 10.0, "{} {}", fullest(2), fullest(12));
        // "... slow processors (w = 10) where execution time can be reduced by two orders of magnitude"
        assert!((value(&figure(4), "w = 10", 12.0) - 0.094).abs() < 0.0005);
        // For z = 0 "the execution time decreases proportionately to the number of processors".
        assert!((value(&figure(5), "z = 0", 12.0) * 4096.0 - 1.0).abs() < 1e-9);
        assert!((value(&figure(7), "z = 0", 4096.0) - 4096.0).abs() < 1e-6);
        assert!((value(&figure(7), "z = 1", 4096.0) - 16_900_975.0 / 1_423_159.0).abs() < 1e-9);
        // "Only for the perfect communication network, can utilisation equal to 1 be achieved."
        assert!((value(&figure(8), "z = 0", 12.0) - 1.0).abs() < 1e-9 && value(&figure(8), "z = 0.1", 1.0) < 1.0);
        // "... the gain from parallel processing is bigger for big tasks (Tcp = 10)"
        assert!(value(&figure(6), "Tcp = 10", 12.0) < value(&figure(6), "Tcp = 0.1", 12.0) / 5.0);
    }
}
