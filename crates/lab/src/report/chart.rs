//! Bar charts: one row a balancer, lying bars, an axis with a unit below.

use super::figures::three;
use super::svg::{Anchor, Svg};

/// Made for a column of this many pixels, so that the text has its size on the narrowest screen.
const WIDTH: f64 = 380.0;
const ROW: f64 = 25.0;
const BAR: f64 = 13.0;
const LEFT: f64 = 82.0;
const RIGHT: f64 = 74.0;
const TOP: f64 = 6.0;
/// Maximum length of a bar's name, in characters.
const NAME: usize = 12;

/// A chart of lying bars.
pub struct Bars<'a> {
    /// Title for screen readers.
    pub title: &'a str,
    /// Quantity and unit of the axis.
    pub axis: &'a str,
    pub rows: Vec<Bar>,
    /// Reference value for all bars, and its name.
    pub reference: Option<(f64, &'a str)>,
}

/// One bar.
#[derive(Clone, Debug, Default)]
pub struct Bar {
    pub name: String,
    /// Lengths of its parts and their classes.
    pub parts: Vec<(f64, &'static str)>,
    /// Confidence interval of its end.
    pub interval: Option<(f64, f64)>,
    /// Own reference value.
    pub mark: Option<f64>,
    /// Text behind the bar.
    pub label: String,
}

impl Bar {
    fn length(&self) -> f64 {
        self.parts.iter().map(|(length, _)| length.max(0.0)).sum()
    }
}

/// Draws the chart.
pub fn bars(chart: &Bars) -> String {
    bars_up_to(chart, f64::INFINITY)
}

/// The same with a given end of the axis, so that a few long bars do not squeeze the rest: they are cut at the edge of the chart.
pub fn bars_up_to(chart: &Bars, most: f64) -> String {
    let scale = Scale::up_to(furthest(chart).min(most));
    let plot = WIDTH - LEFT - RIGHT;
    let x = |value: f64| LEFT + (value / scale.end).clamp(0.0, 1.0) * plot;
    let bottom = TOP + ROW * chart.rows.len() as f64;
    let named = if chart.reference.is_some() { 15.0 } else { 0.0 };
    let mut svg = Svg::new(WIDTH, bottom + 38.0 + named, chart.title);
    for tick in scale.ticks() {
        svg.line((x(tick), TOP), (x(tick), bottom + 4.0), "gridline");
        svg.text((x(tick), bottom + 16.0), Anchor::Middle, "tick", &plain(tick));
    }
    svg.line((LEFT, bottom), (WIDTH - RIGHT, bottom), "axis");
    svg.text((LEFT + plot / 2.0, bottom + 31.0), Anchor::Middle, "caption", chart.axis);
    for (index, bar) in chart.rows.iter().enumerate() {
        let middle = TOP + ROW * (index as f64 + 0.5);
        svg.group(&format!("{}: {}", bar.name, bar.label), |svg| {
            row(svg, bar, middle, &x);
            if bar.length() > scale.end * 1.000_001 {
                let (top, foot) = (middle - BAR / 2.0 - 2.0, middle + BAR / 2.0 + 2.0);
                svg.polygon(
                    &[(x(scale.end) - 12.0, foot), (x(scale.end) - 7.0, top), (x(scale.end) - 3.0, top), (x(scale.end) - 8.0, foot)],
                    "gap",
                );
            }
        });
    }
    if let Some((value, name)) = chart.reference {
        svg.line((x(value), TOP - 4.0), (x(value), bottom), "reference");
        svg.line((LEFT, bottom + 43.0), (LEFT + 18.0, bottom + 43.0), "reference");
        svg.text((LEFT + 23.0, bottom + 47.0), Anchor::Start, "tick", name);
    }
    svg.finish()
}

fn row(svg: &mut Svg, bar: &Bar, middle: f64, x: &dyn Fn(f64) -> f64) {
    svg.text((LEFT - 6.0, middle + 4.0), Anchor::End, "name", &cut(&bar.name));
    let mut at = 0.0;
    for (length, class) in &bar.parts {
        let (from, to) = (x(at), x(at + length.max(0.0)));
        svg.rect(from, middle - BAR / 2.0, to - from, BAR, class);
        at += length.max(0.0);
    }
    if let Some((low, high)) = bar.interval {
        let beyond = x(high) >= WIDTH - RIGHT && high > at;
        for class in ["halo", "whisker"] {
            svg.line((x(low), middle), (x(high), middle), class);
            svg.line((x(low), middle - 4.0), (x(low), middle + 4.0), class);
            match beyond {
                false => svg.line((x(high), middle - 4.0), (x(high), middle + 4.0), class),
                true => {
                    svg.line((x(high) - 5.0, middle - 4.0), (x(high), middle), class);
                    svg.line((x(high) - 5.0, middle + 4.0), (x(high), middle), class);
                }
            }
        }
    }
    if let Some(mark) = bar.mark {
        let at = x(mark);
        svg.line((at, middle - BAR / 2.0 - 3.0), (at, middle + BAR / 2.0 + 3.0), "halo");
        svg.line((at, middle - BAR / 2.0 - 3.0), (at, middle + BAR / 2.0 + 3.0), "mark");
        svg.polygon(&[(at, middle - 4.0), (at + 4.0, middle), (at, middle + 4.0), (at - 4.0, middle)], "diamond");
    }
    svg.text((WIDTH - RIGHT + 8.0, middle + 4.0), Anchor::Start, "value", &bar.label);
}

/// The end of the longest thing on the chart. An interval may leave the chart, when one noisy row would squeeze all others.
fn furthest(chart: &Bars) -> f64 {
    let marks = chart.rows.iter().flat_map(|bar| [bar.length(), bar.mark.unwrap_or(0.0)]).chain(chart.reference.map(|(value, _)| value));
    let most = marks.filter(|value| value.is_finite()).fold(0.0, f64::max);
    let intervals = chart.rows.iter().filter_map(|bar| bar.interval).map(|(_, high)| high).filter(|high| high.is_finite());
    intervals.fold(most, f64::max).min(2.0 * most)
}

/// A name cut to what fits.
fn cut(name: &str) -> String {
    match name.char_indices().nth(NAME) {
        None => name.into(),
        Some(_) => name.chars().take(NAME - 2).chain(['…']).collect(),
    }
}

/// A number on an axis, without the zeros that say nothing.
pub fn plain(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{}G", plain(v / 1e9)),
        v if v >= 1e6 => format!("{}M", plain(v / 1e6)),
        v if v >= 1e4 => format!("{}k", plain(v / 1e3)),
        v => {
            let text = three(v);
            if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
        }
    }
}

/// An axis from 0 with round ticks.
pub struct Scale {
    pub end: f64,
    step: f64,
}

impl Scale {
    /// The shortest axis of two to five round steps that holds a value.
    pub fn up_to(value: f64) -> Scale {
        let value = if value.is_finite() && value > 0.0 { value } else { 1.0 };
        let rough = value / 4.0;
        let power = 10f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough * 0.999_999).unwrap_or(value);
        Scale { end: (value / step - 1e-6).ceil().max(1.0) * step, step }
    }

    pub fn ticks(&self) -> impl Iterator<Item = f64> + '_ {
        (0..=(self.end / self.step).round() as u32).map(|tick| f64::from(tick) * self.step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        let ends = [0.07, 1.0, 3.2, 9.99, 10.0, 4321.0, 0.0, f64::NAN].map(|value| Scale::up_to(value).end);
        let expected = [0.08, 1.0, 4.0, 10.0, 10.0, 6000.0, 1.0, 1.0];
        assert!(ends.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{ends:?}");
        for value in (1..2000).map(|i| f64::from(i) * 0.37) {
            let scale = Scale::up_to(value);
            assert!(scale.end >= value * 0.999 && scale.end <= value * 1.7, "{value}: {}", scale.end);
            assert!((2..=6).contains(&scale.ticks().count()), "{value}");
        }
    }

    #[test]
    fn numbers_on_axes_are_short() {
        assert_eq!(
            [0.0, 0.05, 2.5, 40.0, 2000.0, 25_000.0, 3e6, 1.5e9].map(plain),
            ["0", "0.05", "2.5", "40", "2000", "25k", "3M", "1.5G"]
        );
    }

    #[test]
    fn everything_stays_within_the_chart() {
        let bar = |name: &str, length, high, label: &str| Bar {
            name: name.into(),
            parts: vec![(length, "information"), (length, "exchange")],
            interval: Some((length, high)),
            mark: Some(length / 2.0),
            label: label.into(),
        };
        let rows = vec![bar("cwa", 1.0, 2.5, "2.00 ms"), bar("a<very>long:name=1", 2.0, 1e9, "4.00 ms")];
        let drawn = bars(&Bars { title: "t", axis: "time, ms", rows, reference: Some((3.0, "before")) });
        assert!(drawn.contains("time, ms") && drawn.contains("a&lt;very&gt;lon…") && drawn.contains("before"));
        assert!(furthest_x(&drawn) <= WIDTH, "{drawn}");
    }

    #[test]
    fn what_leaves_the_chart_is_broken_at_its_edge() {
        let bar = |length| Bar { name: "b".into(), parts: vec![(length, "plain")], ..Bar::default() };
        let chart = Bars { title: "t", axis: "a", rows: vec![bar(2.0), bar(600.0)], reference: None };
        let drawn = bars_up_to(&chart, 2.0);
        assert!(drawn.matches("class=\"gap\"").count() == 1 && furthest_x(&drawn) <= WIDTH, "{drawn}");
        assert_eq!(bars(&chart).matches("class=\"gap\"").count(), 0);
    }

    /// The largest x coordinate of a line or rectangle.
    fn furthest_x(svg: &str) -> f64 {
        let values = ["x1=\"", "x2=\"", " x=\""]
            .into_iter()
            .flat_map(|key| svg.split(key).skip(1).filter_map(|rest| rest.split('"').next()?.parse().ok()));
        values.fold(0.0, f64::max)
    }
}
