//! A small writer of SVG for pictures inside an HTML page: sizes in CSS pixels, looks by class, everything escaped.
//!
//! Hand-drawn rather than by a plotting crate, because the pictures are looked at on paper, too: fills are patterns of the page that carries
//! them, and the text is the page's own.

use std::fmt::Write;

/// A picture that scales with the page it is in.
pub struct Svg {
    width: f64,
    height: f64,
    title: String,
    body: String,
}

/// On which side of its point a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// An empty picture. The title is the text alternative for screen readers.
    pub fn new(width: f64, height: f64, title: &str) -> Svg {
        Svg { width, height, title: title.into(), body: String::new() }
    }

    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, class: &str) {
        self.shape(format_args!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{class}\"/>",
            short(x),
            short(y),
            short(width.max(0.0)),
            short(height.max(0.0))
        ));
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        self.shape(format_args!(
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{class}\"/>",
            short(from.0),
            short(from.1),
            short(to.0),
            short(to.1)
        ));
    }

    pub fn circle(&mut self, centre: (f64, f64), radius: f64, class: &str) {
        self.shape(format_args!(
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"{class}\"/>",
            short(centre.0),
            short(centre.1),
            short(radius)
        ));
    }

    /// A closed shape with these corners.
    pub fn polygon(&mut self, corners: &[(f64, f64)], class: &str) {
        let points: Vec<String> = corners.iter().map(|(x, y)| format!("{},{}", short(*x), short(*y))).collect();
        self.shape(format_args!("<polygon points=\"{}\" class=\"{class}\"/>", points.join(" ")));
    }

    pub fn text(&mut self, at: (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y, text) = (short(at.0), short(at.1), escaped(text));
        self.shape(format_args!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" class=\"{class}\">{text}</text>"));
    }

    /// Draws a group of elements with a common tooltip.
    pub fn group(&mut self, says: &str, draw: impl FnOnce(&mut Svg)) {
        self.shape(format_args!("<g><title>{}</title>", escaped(says)));
        draw(self);
        self.body.push_str("</g>");
    }

    /// Points joined by straight lines.
    pub fn polyline(&mut self, points: &[(f64, f64)], class: &str) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{},{}", short(*x), short(*y))).collect();
        self.shape(format_args!("<polyline points=\"{}\" class=\"{class}\"/>", points.join(" ")));
    }

    /// A step function above a base line: runs of steps, each with its height. Runs without height are left out.
    pub fn profile(&mut self, base: (f64, f64), step: f64, runs: &[(usize, f64)], class: &str) {
        let mut path = String::new();
        let (mut at, mut high) = (0, 0.0);
        for (steps, height) in runs {
            if *height > 0.0 {
                match high > 0.0 {
                    true => path.push_str(&format!("v{}", short(high - height))),
                    false => path.push_str(&format!("M{},{}v{}", short(base.0 + at as f64 * step), short(base.1), short(-height))),
                }
                path.push_str(&format!("h{}", short(*steps as f64 * step)));
            } else if high > 0.0 {
                path.push_str(&format!("v{}Z", short(high)));
            }
            (at, high) = (at + steps, *height);
        }
        if high > 0.0 {
            path.push_str(&format!("v{}Z", short(high)));
        }
        if !path.is_empty() {
            self.shape(format_args!("<path d=\"{path}\" class=\"{class}\"/>"));
        }
    }

    /// Adds raw SVG to a stand-alone picture: its styles and patterns.
    pub fn bring(&mut self, markup: &'static str) {
        self.body.push_str(markup);
    }

    /// The element.
    pub fn finish(self) -> String {
        let (width, height, title) = (short(self.width), short(self.height), escaped(&self.title));
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\" xmlns=\"http://www.w3.org/2000/svg\">\
             <title>{title}</title>{}</svg>",
            self.body
        )
    }

    fn shape(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.body.write_fmt(element);
    }
}

/// A length with one decimal where it needs one.
fn short(length: f64) -> String {
    let text = format!("{length:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".into(),
        Some(whole) => whole.into(),
        None => text,
    }
}

/// Text that cannot be taken for markup, in content and in quoted attributes.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Characters that XML does not allow in any form.
            c if c.is_control() && !"\t\n\r".contains(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_write_stays_text() {
        let mut svg = Svg::new(100.0, 20.5, "<script>\"");
        svg.text((1.25, -0.01), Anchor::End, "label", "a<b>&'c'\u{7}");
        svg.group("</title><x>", |svg| svg.rect(0.0, 0.0, 1.0, -3.0, "bar"));
        let drawn = svg.finish();
        assert_eq!(
            drawn,
            "<svg viewBox=\"0 0 100 20.5\" role=\"img\" aria-label=\"&lt;script&gt;&quot;\" xmlns=\"http://www.w3.org/2000/svg\">\
             <title>&lt;script&gt;&quot;</title>\
             <text x=\"1.2\" y=\"0\" text-anchor=\"end\" class=\"label\">a&lt;b&gt;&amp;&#39;c&#39;\u{fffd}</text>\
             <g><title>&lt;/title&gt;&lt;x&gt;</title><rect x=\"0\" y=\"0\" width=\"1\" height=\"0\" class=\"bar\"/></g></svg>"
        );
    }
}
