//! Heat maps: a value for each pair, the darker the larger, on a logarithmic scale.

use super::svg::{Anchor, Svg};

/// Maximum number of rows.
pub const MOST: usize = 64;

/// Data of the picture.
pub struct Heat<'a> {
    pub title: &'a str,
    /// Names of rows and columns.
    pub names: &'a [String],
    /// Row, column, value; drawn on both sides of the diagonal. Pairs without a value stay white.
    pub cells: &'a [(u32, u32, f64)],
    /// A value as people read it.
    pub cell: fn(f64) -> String,
}

/// Shades from light to dark; a reader of a copy without colours sees them, too.
const SHADES: usize = 8;
const WIDTH: f64 = 640.0;
const MARGIN: f64 = 70.0;
/// Names are written up to this number of rows.
const NAMED: usize = 24;

/// The picture, and a sentence on its scale; `None` without values.
pub fn map(heat: &Heat) -> Option<(String, String)> {
    let positive = || heat.cells.iter().map(|(_, _, value)| *value).filter(|value| *value > 0.0 && value.is_finite());
    let (low, high) = (positive().reduce(f64::min)?, positive().reduce(f64::max)?);
    let side = (WIDTH - MARGIN) / heat.names.len().max(1) as f64;
    let mut svg = Svg::new(WIDTH, WIDTH, heat.title);
    for (row, column, value) in heat.cells {
        let shade = shade(*value, low, high);
        for (x, y) in [(*column, *row), (*row, *column)] {
            let says = format!("{} and {}: {}", heat.names[*row as usize], heat.names[*column as usize], (heat.cell)(*value));
            svg.group(&says, |svg| {
                svg.rect(MARGIN + f64::from(x) * side, MARGIN + f64::from(y) * side, side, side, &format!("heat{shade}"));
            });
        }
    }
    if heat.names.len() <= NAMED {
        for (index, name) in heat.names.iter().enumerate() {
            let at = MARGIN + (index as f64 + 0.5) * side;
            let short: String = name.chars().take(9).collect();
            svg.text((MARGIN - 4.0, at + 4.0), Anchor::End, "", &short);
            svg.text((at, MARGIN - 6.0), Anchor::Middle, "", &short);
        }
    }
    let says = match low == high {
        true => format!("All are {}.", (heat.cell)(low)),
        false => format!("From {} (light) to {} (dark), on a logarithmic scale.", (heat.cell)(low), (heat.cell)(high)),
    };
    Some((svg.finish(), says))
}

fn shade(value: f64, low: f64, high: f64) -> usize {
    if !(value > low && high > low) {
        return 0;
    }
    let part = (value / low).ln() / (high / low).ln();
    ((part * SHADES as f64) as usize).min(SHADES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_follow_the_logarithm() {
        assert_eq!([1.0, 1.1, 10.0, 99.0, 100.0, 0.0].map(|value| shade(value, 1.0, 100.0)), [0, 0, 4, 7, 7, 0]);
        assert_eq!(shade(5.0, 5.0, 5.0), 0);
    }

    #[test]
    fn every_pair_is_drawn_twice_and_says_what_it_is() {
        let names = ["a<b", "c", "d"].map(String::from);
        let heat = Heat { title: "x", names: &names, cells: &[(0, 1, 2.0), (1, 2, 8.0)], cell: |value| format!("{value} us") };
        let (svg, says) = map(&heat).unwrap();
        assert_eq!((svg.matches("<rect ").count(), svg.matches("a&lt;b and c: 2 us").count()), (4, 2));
        assert_eq!(says, "From 2 us (light) to 8 us (dark), on a logarithmic scale.");
        assert!(map(&Heat { cells: &[], ..heat }).is_none());
    }
}
