//! Curves of a paper's figure: as a table of comma-separated values, and as a picture that stands alone, for paper without colours.

use std::io::{self, Write};

use super::chart::{Scale, plain};
use super::svg::{Anchor, Svg};
use crate::experiment::blazewicz1995::BlazewiczFigure;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 130.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 50.0;

const LOOKS: &str = "<style>\
text{font:12px system-ui,'DejaVu Sans',sans-serif;fill:#111}\
.paper{fill:#fff}.gridline{stroke:#d5d5d5}.axis{stroke:#111}polyline{fill:none;stroke:#111;stroke-width:1.5}\
.d1{stroke-dasharray:6 3}.d2{stroke-dasharray:2 3}.d3{stroke-dasharray:9 3 2 3}.d4{stroke-dasharray:16 5}.d5{stroke-dasharray:9 3 2 3 2 3}\
.mark{fill:#111;stroke:#111}.hollow{fill:#fff;stroke:#111}\
</style>";

/// Writes one row a point: curve, x, y.
///
/// # Errors
/// If the writer fails.
pub fn csv(out: impl Write, figure: &BlazewiczFigure) -> io::Result<()> {
    let mut table = ::csv::Writer::from_writer(out);
    table.write_record(["curve", figure.x, figure.y])?;
    for curve in &figure.curves {
        for (x, y) in &curve.points {
            table.write_record([curve.name.clone(), x.to_string(), y.to_string()])?;
        }
    }
    table.flush()
}

/// Draws the figure. On a logarithmic axis values of 0 or less are left out.
pub fn svg(figure: &BlazewiczFigure) -> String {
    let points = || figure.curves.iter().flat_map(|curve| &curve.points);
    let across = Axis::new(points().map(|point| point.0), figure.log_x);
    let up = Axis::new(points().map(|point| point.1), figure.log_y);
    let x = |value: f64| LEFT + across.place(value) * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - up.place(value) * (HEIGHT - TOP - BOTTOM);
    let title = format!("Figure {}: {}", figure.number, figure.title);
    let mut svg = Svg::new(WIDTH, HEIGHT, &title);
    svg.bring(LOOKS);
    svg.rect(0.0, 0.0, WIDTH, HEIGHT, "paper");
    svg.text((LEFT, 20.0), Anchor::Start, "title", &title);
    for tick in across.ticks() {
        svg.line((x(tick), TOP), (x(tick), HEIGHT - BOTTOM + 4.0), "gridline");
        svg.text((x(tick), HEIGHT - BOTTOM + 18.0), Anchor::Middle, "tick", &plain(tick));
    }
    for tick in up.ticks() {
        svg.line((LEFT - 4.0, y(tick)), (WIDTH - RIGHT, y(tick)), "gridline");
        svg.text((LEFT - 8.0, y(tick) + 4.0), Anchor::End, "tick", &tick_name(tick));
    }
    svg.line((LEFT, HEIGHT - BOTTOM), (WIDTH - RIGHT, HEIGHT - BOTTOM), "axis");
    svg.line((LEFT, TOP), (LEFT, HEIGHT - BOTTOM), "axis");
    svg.text(((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 12.0), Anchor::Middle, "caption", figure.x);
    svg.text((LEFT, TOP - 10.0), Anchor::Start, "caption", figure.y);
    for (index, curve) in figure.curves.iter().enumerate() {
        let placed: Vec<(f64, f64)> = curve
            .points
            .iter()
            .filter(|point| (!figure.log_x || point.0 > 0.0) && (!figure.log_y || point.1 > 0.0))
            .map(|point| (x(point.0), y(point.1)))
            .collect();
        let legend = (WIDTH - RIGHT + 14.0, TOP + 18.0 * index as f64 + 8.0);
        svg.group(&curve.name, |svg| {
            svg.polyline(&placed, &dash(index));
            placed.iter().for_each(|at| mark(svg, *at, index));
            svg.polyline(&[legend, (legend.0 + 30.0, legend.1)], &dash(index));
            mark(svg, (legend.0 + 15.0, legend.1), index);
            svg.text((legend.0 + 36.0, legend.1 + 4.0), Anchor::Start, "tick", &curve.name);
        });
    }
    svg.finish()
}

/// Dashes that differ.
const DASHES: usize = 6;

/// The class of a curve's line.
pub(super) fn dash(curve: usize) -> String {
    format!("d{}", curve % DASHES)
}

/// Shapes of marks, each filled and hollow.
const SHAPES: usize = 7;

/// The mark of a curve. 14 curves have marks of their own, since single points have no line that would tell them apart; with their dashes 42 curves
/// differ.
pub(super) fn mark(svg: &mut Svg, (x, y): (f64, f64), curve: usize) {
    let class = if curve.is_multiple_of(2) { "mark" } else { "hollow" };
    let at = |corners: &[(f64, f64)]| corners.iter().map(|(right, down)| (x + right, y + down)).collect::<Vec<_>>();
    match curve % SHAPES {
        0 => svg.rect(x - 2.5, y - 2.5, 5.0, 5.0, class),
        1 => svg.polygon(&at(&[(0.0, -3.5), (3.5, 2.5), (-3.5, 2.5)]), class),
        2 => svg.polygon(&at(&[(0.0, -4.0), (4.0, 0.0), (0.0, 4.0), (-4.0, 0.0)]), class),
        3 => svg.circle((x, y), 3.2, class),
        4 => svg.polygon(&at(&[(0.0, 3.5), (3.5, -2.5), (-3.5, -2.5)]), class),
        // An hourglass, and a star with four points: neither looks like the cross of a printed number.
        5 => svg.polygon(&at(&[(-3.5, -4.0), (3.5, -4.0), (-3.5, 4.0), (3.5, 4.0)]), class),
        _ => {
            let star = [(0.0, -5.0), (1.3, -1.3), (5.0, 0.0), (1.3, 1.3), (0.0, 5.0), (-1.3, 1.3), (-5.0, 0.0), (-1.3, -1.3)];
            svg.polygon(&at(&star), class);
        }
    }
}

pub(super) fn tick_name(tick: f64) -> String {
    if tick > 0.0 && tick < 1e-3 { format!("{tick:.0e}") } else { plain(tick) }
}

/// Axis from 0 with round ticks, or from one power of ten to another.
pub(super) enum Axis {
    Straight(Scale),
    Logarithmic { low: i32, high: i32 },
}

impl Axis {
    pub fn new(values: impl Iterator<Item = f64>, logarithmic: bool) -> Axis {
        if !logarithmic {
            return Axis::Straight(Scale::up_to(values.fold(0.0, f64::max)));
        }
        let (low, high) = values.filter(|value| *value > 0.0).fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
        if high <= 0.0 {
            return Axis::Logarithmic { low: 0, high: 1 };
        }
        // Rounding must not cost a decade.
        let low = (low.log10() + 1e-9).floor() as i32;
        Axis::Logarithmic { low, high: ((high.log10() - 1e-9).ceil() as i32).max(low + 1) }
    }

    /// Position of a value on the axis, from 0 at its begin to 1 at its end.
    pub fn place(&self, value: f64) -> f64 {
        match self {
            Axis::Straight(scale) => value / scale.end,
            Axis::Logarithmic { low, high } => (value.log10() - f64::from(*low)) / f64::from(high - low),
        }
    }

    /// At most about ten ticks.
    pub fn ticks(&self) -> Vec<f64> {
        match self {
            Axis::Straight(scale) => scale.ticks().collect(),
            Axis::Logarithmic { low, high } => {
                let step = ((high - low) / 10 + 1) as usize;
                (*low..=*high).step_by(step).map(|power| 10f64.powi(power)).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::blazewicz1995::figures;

    #[test]
    fn every_point_is_in_the_table() {
        for figure in figures() {
            let mut table = Vec::new();
            csv(&mut table, &figure).unwrap();
            let text = String::from_utf8(table).unwrap();
            assert_eq!(text.lines().count() - 1, figure.curves.iter().map(|curve| curve.points.len()).sum::<usize>());
        }
        let mut table = Vec::new();
        csv(&mut table, &figures()[5]).unwrap();
        let text = String::from_utf8(table).unwrap();
        assert!(text.starts_with("curve,processors,speedup\nz = 0,1,1\nz = 0,2,2\n"), "{text}");
    }

    #[test]
    fn every_curve_stays_in_the_picture() {
        for figure in figures() {
            let drawn = svg(&figure);
            for points in drawn.split("<polyline points=\"").skip(1) {
                for point in points.split('"').next().unwrap().split(' ') {
                    let (x, y) = point.split_once(',').unwrap();
                    let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
                    assert!((LEFT..=WIDTH).contains(&x) && (TOP..=HEIGHT - BOTTOM + 0.1).contains(&y), "figure {}: {point}", figure.number);
                }
            }
            assert!(figure.curves.iter().all(|curve| drawn.contains(&curve.name)));
        }
    }
}
