//! One plot as SVG: axes with units, curves, the stretches that findings cover.
//!
//! Owns the drawing. Sizes are in the SVG's own units; the page scales it. Pure.

use super::axis::{round_up, time_mark, time_step, value_text};
use super::curves::{Curve, Curves};
use super::writer::Html;

/// Where the plot's inside lies in its 720 by 170.
pub const LEFT: f64 = 52.0;
pub const RIGHT: f64 = 708.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 146.0;

/// One curve of a plot.
pub struct Line<'a> {
    /// What it is called in the legend.
    pub name: &'static str,
    /// Its values.
    pub curve: &'a Curve,
}

/// A stretch of time that is shaded.
pub struct Band {
    /// Where it begins, in seconds.
    pub from_s: f64,
    /// Where it ends.
    pub to_s: f64,
    /// It is an alarm.
    pub is_alarm: bool,
}

/// What is drawn.
pub struct Chart<'a> {
    /// What it shows.
    pub title: &'static str,
    /// Of which GPU, where it is one's.
    pub of: &'a str,
    /// The unit of its values.
    pub unit: &'static str,
    /// The curves; the first is drawn last, on top.
    pub lines: Vec<Line<'a>>,
    /// The axis goes at least so far.
    pub at_least: f64,
    /// The axis begins at the least value, and not at zero.
    pub is_floating: bool,
}

/// Where a time lies on the SVG.
pub fn x_of(seconds: f64, span_s: f64) -> f64 {
    LEFT + (seconds / span_s).clamp(0.0, 1.0) * (RIGHT - LEFT)
}

/// The lower and the upper end of a value axis, and the distance of its marks.
fn extent(chart: &Chart<'_>) -> (f64, f64, f64) {
    let ranges = chart.lines.iter().filter_map(|line| line.curve.range());
    let range = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let (low, high) = range.unwrap_or((0.0, 0.0));
    let low = if chart.is_floating || low < 0.0 {
        low
    } else {
        0.0
    };
    let high = high.max(chart.at_least).max(low);
    // What hardly changes isn't blown up: the axis spans some percent of the value at least.
    let span = (high - low).max(0.04 * high.abs());
    let step = round_up(span / 4.0);
    let bottom = (low / step).floor() * step;
    let top = (high / step).ceil() * step;
    if top > bottom {
        (bottom, top, step)
    } else {
        (bottom, bottom + step, step)
    }
}

/// Draws a plot and its legend.
pub fn draw(html: &mut Html, chart: &Chart<'_>, curves: &Curves, bands: &[Band]) {
    let (bottom, top, step) = extent(chart);
    html.raw("<figure><figcaption><b>")
        .text(chart.title)
        .raw("</b> <span class=unit>")
        .text(chart.unit);
    html.raw("</span>");
    for (n, line) in chart.lines.iter().enumerate() {
        html.raw(["<span class=\"key k0\">", "<span class=\"key k1\">"][n.min(1)]);
        html.text(line.name).raw("</span>");
    }
    html.raw("<output></output></figcaption>");
    html.raw("<svg viewBox=\"0 0 720 170\" role=img aria-label=\"")
        .text(&spoken(chart));
    html.raw("\" data-low=\"").text(&bottom.to_string());
    html.raw("\" data-high=\"").text(&top.to_string());
    html.raw("\" data-unit=\"")
        .text(chart.unit)
        .raw("\"><title>");
    html.text(chart.title)
        .text(" ")
        .text(chart.of)
        .raw("</title><desc>")
        .text(&spoken(chart))
        .raw("</desc>");
    shade(html, bands, curves.span_s);
    value_axis(html, (bottom, top, step));
    time_axis(html, curves.span_s);
    for (n, line) in chart.lines.iter().enumerate().rev() {
        html.raw(
            [
                "<path class=\"line k0\" data-name=\"",
                "<path class=\"line k1\" data-name=\"",
            ][n.min(1)],
        );
        html.text(line.name).raw("\" d=\"");
        html.text(&path(line.curve, &curves.pauses, bottom, top))
            .raw("\"/>");
    }
    if chart.lines.iter().all(|line| line.curve.n == 0) {
        html.raw("<text class=none x=380 y=82 text-anchor=middle>no reading</text>");
    }
    html.raw("<line class=cursor x1=0 x2=0 y1=10 y2=146 /></svg></figure>\n");
}

/// The plot in a sentence, for those who don't see it.
fn spoken(chart: &Chart<'_>) -> String {
    let line = |line: &Line<'_>| match (line.curve.range(), line.curve.mean()) {
        (Some((low, high)), Some(mean)) => format!(
            "{}: {} to {} {}, mean {}",
            line.name,
            value_text(low),
            value_text(high),
            chart.unit,
            value_text(mean)
        ),
        _ => format!("{}: no reading", line.name),
    };
    let lines: Vec<String> = chart.lines.iter().map(line).collect();
    lines.join("; ")
}

/// The stretches of findings, behind everything.
pub fn shade(html: &mut Html, bands: &[Band], span_s: f64) {
    for band in bands {
        let (from, to) = (x_of(band.from_s, span_s), x_of(band.to_s, span_s));
        html.raw(if band.is_alarm {
            "<rect class=\"band alarm\" y=10 height=136 x=\""
        } else {
            "<rect class=\"band note\" y=10 height=136 x=\""
        });
        html.text(&format!("{from:.1}"))
            .raw("\" width=\"")
            .text(&format!("{:.1}", (to - from).max(1.0)));
        html.raw("\"/>");
    }
}

fn value_axis(html: &mut Html, (bottom, top, step): (f64, f64, f64)) {
    let marks = ((top - bottom) / step).round() as usize;
    for n in 0..=marks.min(12) {
        let y = BOTTOM - (BOTTOM - TOP) * n as f64 / marks.max(1) as f64;
        html.raw("<line class=grid x1=52 x2=708 y1=\"")
            .text(&format!("{y:.1}"));
        html.raw("\" y2=\"")
            .text(&format!("{y:.1}"))
            .raw("\"/><text class=mark text-anchor=end x=47 y=\"");
        html.text(&format!("{:.1}", y + 3.5)).raw("\">");
        html.text(&value_text(bottom + step * n as f64))
            .raw("</text>");
    }
}

/// Marks along the time; the same in every plot.
pub fn time_axis(html: &mut Html, span_s: f64) {
    let step = time_step(span_s, 7.0);
    let marks = (span_s / step).floor() as usize;
    for n in 0..=marks {
        let at = step * n as f64;
        let x = x_of(at, span_s);
        html.raw("<line class=grid y1=146 y2=150 x1=\"")
            .text(&format!("{x:.1}"));
        html.raw("\" x2=\"")
            .text(&format!("{x:.1}"))
            .raw("\"/><text class=mark y=162 x=\"");
        html.text(&format!("{x:.1}"));
        html.raw(if n > 0 && RIGHT - x < 20.0 {
            "\" text-anchor=end>"
        } else {
            "\" text-anchor=middle>"
        });
        html.text(&time_mark(at, step)).raw("</text>");
    }
}

/// A curve as an SVG path: through each column's least and most, broken where readings are missing.
fn path(curve: &Curve, pauses: &[bool], bottom: f64, top: f64) -> String {
    use std::fmt::Write as _;

    let columns = curve.cells.len() as f64;
    let mut d = String::new();
    let mut is_drawing = false;
    let mut before = bottom;
    for ((cell, pause), n) in curve.cells.iter().zip(pauses).zip(0..) {
        is_drawing &= !pause;
        let Some((low, high)) = cell.range else {
            is_drawing &= !cell.has_hole;
            continue;
        };
        let x = LEFT + (f64::from(n) + 0.5) / columns * (RIGHT - LEFT);
        let y = |v: f64| BOTTOM - (v - bottom) / (top - bottom) * (BOTTOM - TOP);
        // The nearer end first: fewer long strokes.
        let ends = if (before - low).abs() <= (before - high).abs() {
            [low, high]
        } else {
            [high, low]
        };
        // Writing to a string can't fail. A point by itself is a dot, by its round ends.
        let verb = if is_drawing { 'L' } else { 'M' };
        let _ = write!(d, "{verb}{x:.1},{:.1}", y(ends[0]));
        if low < high || !is_drawing {
            let _ = write!(d, "V{:.1}", y(ends[1]));
        }
        before = ends[1];
        is_drawing = true;
    }
    d
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{GpuInfo, GpuSample, Sample, Stamp};

    #[test]
    fn a_gap_breaks_the_line() {
        let mut curves = Curves::new(&[GpuInfo::default()], Some(640.0));
        for (at, util) in [
            (0.0, Some(0.0)),
            (1.0, Some(100.0)),
            (2.0, None),
            (3.0, Some(50.0)),
        ] {
            curves.absorb(&Sample {
                stamp: Stamp {
                    time: String::new(),
                    elapsed_s: at,
                },
                gpus: vec![GpuSample {
                    util_pct: util.into(),
                    ..GpuSample::default()
                }],
                ..Sample::default()
            });
        }
        let util = &curves.gpus[0].1[0];
        assert_eq!(
            path(util, &curves.pauses, 0.0, 100.0),
            "M52.5,146.0V146.0L53.5,10.0M55.6,78.0V78.0"
        );
    }
}
