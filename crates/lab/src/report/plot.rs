//! A paper's figure for a page: curves with intervals, and the paper's printed numbers as marks. Curves differ by dash and mark, not by colour.

use super::chart::plain;
use super::curves::{Axis, dash, mark, tick_name};
use super::svg::{Anchor, Svg};

const WIDTH: f64 = 460.0;
const PLOT: f64 = 260.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 26.0;
/// Ticks and name of the lower axis.
const FOOT: f64 = 40.0;
const ROW: f64 = 17.0;
/// Left edge of the names in the legend.
const NAME: f64 = LEFT + 40.0;

/// Data of the plot.
#[derive(Debug)]
pub struct Plot {
    /// Text alternative for screen readers.
    pub title: String,
    pub x: String,
    pub y: String,
    pub log_x: bool,
    pub log_y: bool,
    pub curves: Vec<PlotCurve>,
}

/// One curve.
#[derive(Debug)]
pub struct PlotCurve {
    pub name: String,
    /// Whether it is drawn as single marks in a frame: what was measured in another way than the curves.
    pub framed: bool,
    pub points: Vec<PlotPoint>,
}

/// A place on it.
#[derive(Clone, Copy, Debug)]
pub struct PlotPoint {
    pub x: f64,
    pub y: f64,
    pub low: f64,
    pub high: f64,
    /// The paper's number.
    pub printed: Option<f64>,
}

/// Draws the figure, with its legend below. On a logarithmic axis values of 0 or less are left out.
pub fn svg(plot: &Plot) -> String {
    let fits = |x: f64, y: f64| (!plot.log_x || x > 0.0) && (!plot.log_y || y > 0.0);
    let points = || plot.curves.iter().flat_map(|curve| &curve.points).filter(|point| fits(point.x, point.y));
    let heights = || points().flat_map(|point| [Some(point.y), Some(point.high), point.printed, Some(point.low)].into_iter().flatten());
    let (across, up) = (Axis::new(points().map(|point| point.x), plot.log_x), Axis::new(heights(), plot.log_y));
    let bottom = TOP + PLOT;
    let x = |value: f64| LEFT + across.place(value) * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| bottom - up.place(value).max(0.0) * PLOT;
    let has_printed = points().any(|point| point.printed.is_some());
    let rows = plot.curves.len() + usize::from(has_printed);
    let mut svg = Svg::new(WIDTH, bottom + FOOT + ROW * rows as f64 + 6.0, &plot.title);
    for tick in across.ticks() {
        svg.line((x(tick), TOP), (x(tick), bottom + 4.0), "gridline");
        svg.text((x(tick), bottom + 17.0), Anchor::Middle, "tick", &plain(tick));
    }
    for tick in up.ticks() {
        svg.line((LEFT - 4.0, y(tick)), (WIDTH - RIGHT, y(tick)), "gridline");
        svg.text((LEFT - 7.0, y(tick) + 4.0), Anchor::End, "tick", &tick_name(tick));
    }
    svg.line((LEFT, bottom), (WIDTH - RIGHT, bottom), "axis");
    svg.line((LEFT, TOP), (LEFT, bottom), "axis");
    svg.text(((LEFT + WIDTH - RIGHT) / 2.0, bottom + 34.0), Anchor::Middle, "caption", &cut(&plot.x, WIDTH - LEFT - RIGHT));
    svg.text((4.0, TOP - 11.0), Anchor::Start, "caption", &cut(&plot.y, WIDTH - 4.0));
    let legend = |index: usize| (LEFT, bottom + FOOT + ROW * (index as f64 + 0.5));
    for (index, curve) in plot.curves.iter().enumerate() {
        svg.group(&curve.name, |svg| {
            let shown = || curve.points.iter().filter(|point| fits(point.x, point.y));
            let dash = format!("curve {}", dash(index));
            if !curve.framed {
                svg.polyline(&shown().map(|point| (x(point.x), y(point.y))).collect::<Vec<_>>(), &dash);
            }
            for point in shown() {
                if point.high > point.low {
                    let (at, low, high) = (x(point.x), if fits(point.x, point.low) { y(point.low) } else { bottom }, y(point.high));
                    svg.line((at, low), (at, high), "whisker");
                    [low, high].iter().for_each(|end| svg.line((at - 3.0, *end), (at + 3.0, *end), "whisker"));
                }
                mark(svg, (x(point.x), y(point.y)), index);
                if curve.framed {
                    frame(svg, (x(point.x), y(point.y)));
                }
            }
            let (from, height) = legend(index);
            mark(svg, (from + 16.0, height), index);
            match curve.framed {
                true => frame(svg, (from + 16.0, height)),
                false => svg.polyline(&[(from, height), (from + 32.0, height)], &dash),
            }
            svg.text((NAME, height + 4.0), Anchor::Start, "tick", &cut(&curve.name, WIDTH - NAME));
        });
    }
    if has_printed {
        svg.group("printed in the paper", |svg| {
            points().filter_map(|point| Some((point.x, point.printed?))).for_each(|(at, value)| cross(svg, (x(at), y(value))));
            let (from, height) = legend(plot.curves.len());
            cross(svg, (from + 16.0, height));
            svg.text((NAME, height + 4.0), Anchor::Start, "tick", "printed in the paper");
        });
    }
    svg.finish()
}

/// A square around a mark.
fn frame(svg: &mut Svg, (x, y): (f64, f64)) {
    let corners = [(x - 6.5, y - 6.5), (x + 6.5, y - 6.5), (x + 6.5, y + 6.5), (x - 6.5, y + 6.5)];
    (0..4).for_each(|side| svg.line(corners[side], corners[(side + 1) % 4], "whisker"));
}

/// The paper's mark: a cross, wider than ours.
fn cross(svg: &mut Svg, (x, y): (f64, f64)) {
    for class in ["halo", "whisker"] {
        svg.line((x - 6.0, y - 6.0), (x + 6.0, y + 6.0), class);
        svg.line((x - 6.0, y + 6.0), (x + 6.0, y - 6.0), class);
    }
}

/// A text that is at most so wide, in pixels, cut off if need be.
fn cut(text: &str, most: f64) -> String {
    if text.chars().map(width).sum::<f64>() <= most {
        return text.into();
    }
    let mut left = most - width('…');
    let fits = |letter: &char| {
        left -= width(*letter);
        left >= 0.0
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// The width of a letter of 12 pixels, in a wide font (DejaVu Sans): rather too much than too little.
fn width(letter: char) -> f64 {
    12.0 * match letter {
        'i' | 'l' | 'j' | 'I' | '.' | ',' | ':' | ';' | '|' | '\'' | '!' | ' ' => 0.37,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '{' | '}' | '-' | '/' => 0.45,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 1.0,
        '+' | '=' | '<' | '>' | '~' | '^' => 0.84,
        'A'..='Z' | '0'..='9' => 0.75,
        letter if letter.is_ascii() => 0.64,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(drawn: &str, key: &str) -> Vec<f64> {
        drawn.split(&format!(" {key}=\"")).skip(1).map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn everything_stays_in_the_picture_and_the_papers_numbers_have_marks() {
        for (log_x, log_y) in [(false, false), (true, false), (true, true)] {
            let point = |x: f64, printed| PlotPoint { x, y: x * x, low: x * x - 0.5, high: x * x + 0.5, printed };
            let curve = |name: &str, printed, framed| PlotCurve {
                name: name.into(),
                framed,
                points: (0..9).map(|x| point(f64::from(x), printed)).collect(),
            };
            let plot = Plot {
                title: "a <figure>".into(),
                x: "x".into(),
                y: "y".into(),
                log_x,
                log_y,
                curves: vec![curve("ours", Some(70.0), false), curve(&"long name ".repeat(20), None, true)],
            };
            let drawn = svg(&plot);
            let height: f64 = drawn.split("viewBox=\"0 0 460 ").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
            assert!(["x1", "x2"].iter().all(|key| numbers(&drawn, key).iter().all(|x| (0.0..=WIDTH).contains(x))), "{drawn}");
            assert!(["y1", "y2"].iter().all(|key| numbers(&drawn, key).iter().all(|y| (0.0..=height).contains(y))), "{drawn}");
            // Two lines with a rim for each printed number and one for the legend.
            let shown = if log_x { 8 } else { 9 };
            assert_eq!(drawn.matches("class=\"halo\"").count(), 2 * (shown + 1));
            // One curve has a line, in the figure and in the legend; the other has framed marks.
            assert_eq!(
                (drawn.matches("<polyline").count(), drawn.matches("class=\"whisker\"").count()),
                (2, 2 * 3 * shown + 4 * (shown + 1) + 2 * (shown + 1))
            );
            assert!(drawn.contains("a &lt;figure&gt;") && drawn.contains("printed in the paper") && drawn.contains('…'));
        }
    }

    #[test]
    fn texts_fit() {
        assert_eq!(cut("cwa, 8 processors", 362.0), "cwa, 8 processors");
        for text in ["W".repeat(200), "il".repeat(200), "a_name ".repeat(60), "名".repeat(99)] {
            let cut = cut(&text, 362.0);
            let wide: f64 = cut.chars().map(width).sum();
            assert!(cut.ends_with('…') && (340.0..=362.0).contains(&wide), "{cut}: {wide}");
        }
    }

    /// Look of a curve with its tooltip: the class of its line, and its mark as seen from the mark's place.
    fn look(drawn: &str, name: &str) -> (Option<String>, String) {
        let group = drawn.split(&format!("<title>{name}</title>")).nth(1).unwrap().split("</g>").next().unwrap();
        let line = group.split("class=\"curve ").nth(1).map(|rest| rest.split('"').next().unwrap().to_string());
        let element = |kind: &str| group.split('<').find(|element| element.starts_with(kind)).map(str::to_string);
        let mark = ["rect", "circle", "polygon"].into_iter().find_map(element).unwrap();
        (line, mark)
    }

    #[test]
    fn fourteen_curves_differ_without_colour_with_and_without_lines() {
        for framed in [false, true] {
            let point = PlotPoint { x: 1.0, y: 1.0, low: 1.0, high: 1.0, printed: None };
            let curve =
                |number: usize| PlotCurve { name: format!("curve {number}."), framed, points: vec![point, PlotPoint { x: 2.0, ..point }] };
            let plot = Plot {
                title: "many".into(),
                x: "x".into(),
                y: "y".into(),
                log_x: false,
                log_y: false,
                curves: (0..14).map(curve).collect(),
            };
            let drawn = svg(&plot);
            // All curves have the same points, so that equal marks are equal elements.
            let looks: Vec<_> = (0..14).map(|number| look(&drawn, &format!("curve {number}."))).collect();
            let marks: std::collections::BTreeSet<&String> = looks.iter().map(|(_, mark)| mark).collect();
            assert_eq!(marks.len(), 14, "{marks:?}");
            let lines: std::collections::BTreeSet<&Option<String>> = looks.iter().map(|(line, _)| line).collect();
            assert_eq!(lines.len(), if framed { 1 } else { 6 });
        }
        // Every class of a line has a look in the page's style.
        let style = include_str!("report.html.j2");
        assert!((1..6).all(|number| style.contains(&format!(".d{number} {{ stroke-dasharray"))));
    }
}
