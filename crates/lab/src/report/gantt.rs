//! Gantt charts: when each processor sends and computes. Self-contained, and made for paper without colours: fills are patterns.

use super::chart::{Scale, plain};
use super::svg::{Anchor, Svg};
use crate::experiment::division::{Activity, GanttBar, GanttRow};

const WIDTH: f64 = 760.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 52.0;
/// A row has a lane for messages above one for computing.
const LANE: f64 = 11.0;
const ROW: f64 = 2.0 * LANE + 8.0;
/// Maximum number of rows.
const MOST_ROWS: usize = 64;

const LOOKS: &str = "<style>\
text{font:12px system-ui,'DejaVu Sans',sans-serif;fill:#111}\
.computing{fill:#b9c7d6;stroke:#111}.sending{fill:url(#hatch);stroke:#111}.returning{fill:url(#dots);stroke:#111}\
.paper{fill:#fff}.gridline{stroke:#d5d5d5}.axis{stroke:#111}\
</style><defs>\
<pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
<rect width=\"6\" height=\"6\" fill=\"#fff\"/><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\" stroke=\"#111\" stroke-width=\"2\"/></pattern>\
<pattern id=\"dots\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">\
<rect width=\"5\" height=\"5\" fill=\"#fff\"/><circle cx=\"2.5\" cy=\"2.5\" r=\"1.1\" fill=\"#111\"/></pattern></defs>";

fn class(activity: Activity) -> &'static str {
    match activity {
        Activity::Computing => "computing",
        Activity::Sending => "sending",
        Activity::Returning => "returning",
    }
}

/// Draws the rows below each other, on one axis of seconds from 0. Of more than 64 rows the first of each layer is drawn; the title notes
/// this.
pub fn chart(title: &str, rows: &[GanttRow]) -> String {
    drawn(title, rows, LOOKS)
}

/// The same without styles, for a page that has them.
pub(super) fn in_page(title: &str, rows: &[GanttRow]) -> String {
    drawn(title, rows, "")
}

fn drawn(title: &str, rows: &[GanttRow], looks: &'static str) -> String {
    let shown = choice(rows);
    let title = match shown.len() == rows.len() {
        true => title.to_string(),
        false => format!("{title} (one row for each of the first {} layers)", shown.len()),
    };
    let end = shown.iter().flat_map(|row| &row.bars).map(|bar| bar.end).fold(0.0, f64::max);
    let scale = Scale::up_to(end);
    let x = |time: f64| LEFT + time / scale.end * (WIDTH - LEFT - RIGHT);
    let bottom = TOP + ROW * shown.len() as f64;
    let mut svg = Svg::new(WIDTH, bottom + 42.0, &title);
    svg.bring(looks);
    svg.rect(0.0, 0.0, WIDTH, bottom + 42.0, "paper");
    svg.text((LEFT, 18.0), Anchor::Start, "title", &title);
    legend(&mut svg, &shown);
    for tick in scale.ticks() {
        svg.line((x(tick), TOP), (x(tick), bottom + 4.0), "gridline");
        svg.text((x(tick), bottom + 18.0), Anchor::Middle, "tick", &plain(tick));
    }
    svg.line((LEFT, bottom), (WIDTH - RIGHT, bottom), "axis");
    svg.text(((LEFT + WIDTH - RIGHT) / 2.0, bottom + 34.0), Anchor::Middle, "caption", "time, s");
    for (index, row) in shown.iter().enumerate() {
        let top = TOP + ROW * index as f64 + 4.0;
        svg.text((LEFT - 8.0, top + LANE + 4.0), Anchor::End, "name", &row.name);
        // The longest first, so that shorter messages at the same time stay visible.
        let mut bars: Vec<&GanttBar> = row.bars.iter().collect();
        bars.sort_by(|a, b| (b.end - b.begin).total_cmp(&(a.end - a.begin)));
        for bar in bars {
            let lane = if bar.activity == Activity::Computing { top + LANE } else { top };
            let says = format!("{}: {} from {} s to {} s", row.name, class(bar.activity), plain(bar.begin), plain(bar.end));
            svg.group(&says, |svg| svg.rect(x(bar.begin), lane, x(bar.end) - x(bar.begin), LANE, class(bar.activity)));
        }
    }
    svg.finish()
}

fn legend(svg: &mut Svg, rows: &[&GanttRow]) {
    let mut at = LEFT;
    for activity in [Activity::Sending, Activity::Computing, Activity::Returning] {
        if rows.iter().flat_map(|row| &row.bars).any(|bar| bar.activity == activity) {
            svg.rect(at, 30.0, 22.0, LANE, class(activity));
            svg.text((at + 28.0, 40.0), Anchor::Start, "tick", class(activity));
            at += 120.0;
        }
    }
}

/// All rows, or the first of each layer.
fn choice(rows: &[GanttRow]) -> Vec<&GanttRow> {
    if rows.len() <= MOST_ROWS {
        return rows.iter().collect();
    }
    let mut last = None;
    rows.iter().filter(|row| last.replace(row.layer) != Some(row.layer)).take(MOST_ROWS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(layer: u32, begin: f64) -> GanttRow {
        let bar = |activity, begin, end| GanttBar { activity, begin, end };
        let bars = vec![bar(Activity::Sending, begin, begin + 0.1), bar(Activity::Computing, begin, 1.0)];
        GanttRow { name: format!("layer {layer}"), layer, bars }
    }

    #[test]
    fn bars_lie_where_their_times_are() {
        let drawn = chart("hypercube:1", &[row(0, 0.0), row(1, 0.5)]);
        // The axis goes from 110 at 0 s to 740 at 1 s.
        assert!(drawn.contains("x=\"425\" y=\"97\" width=\"315\" height=\"11\" class=\"computing\""), "{drawn}");
        assert!(drawn.contains("layer 1: sending from 0.5 s to 0.6 s") && !drawn.contains("class=\"returning\""));
    }

    #[test]
    fn many_rows_become_one_a_layer() {
        let rows: Vec<GanttRow> = (0..100).map(|index| row(index / 10, 0.0)).collect();
        assert_eq!(choice(&rows).iter().map(|row| row.layer).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
        assert!(chart("t", &rows).contains("one row for each of the first 10 layers"));
    }
}
