//! The run on one line of time: findings as bars, one row a name, and the beginnings of epochs.
//!
//! Owns that drawing. Pure.

use super::Page;
use super::axis::{time_mark, time_step};
use super::chart::{LEFT, RIGHT, x_of};
use super::sections::is_alarm;
use super::writer::Html;
use crate::model::units::seconds_text;
use crate::record::FindingRecord;

/// The height of a row of bars.
const ROW: f64 = 26.0;
/// So many names of findings have a row of their own at most.
const ROWS: usize = 30;
/// So many bars are drawn of one name at most.
const BARS: usize = 300;

/// Draws it; nothing where there is neither a finding nor an epoch.
pub fn draw(html: &mut Html, page: &Page<'_>) {
    let mut names: Vec<&str> = Vec::new();
    for finding in page.findings {
        if !names.contains(&finding.name.as_str()) && names.len() < ROWS {
            names.push(&finding.name);
        }
    }
    let span = page.curves.span_s;
    let has_epochs = !page.curves.epochs.is_empty();
    if names.is_empty() && !has_epochs {
        return;
    }
    let rows = names.len() + usize::from(has_epochs);
    let bottom = 4.0 + ROW * rows as f64;
    html.raw("<h2>Time line</h2>\n<svg role=img aria-label=\"Time line of findings and epochs\" viewBox=\"0 0 720 ");
    html.text(&format!("{}", bottom + 22.0))
        .raw("\"><title>Findings and epochs over time</title><desc>");
    html.text(&spoken(page)).raw("</desc>");
    axis(html, span, bottom);
    let mut y = 4.0;
    if has_epochs {
        epochs(html, page, y);
        y += ROW;
    }
    for name in names {
        let these = page.findings.iter().filter(|finding| finding.name == name);
        for finding in these.clone().take(BARS) {
            bar(html, finding, span, y + 14.0);
        }
        label(html, name, y);
        y += ROW;
    }
    html.raw("</svg>\n");
}

fn label(html: &mut Html, text: &str, y: f64) {
    html.raw("<text class=mark x=57 y=\"")
        .text(&format!("{:.1}", y + 11.0))
        .raw("\">");
    html.text(text).raw("</text>");
}

fn bar(html: &mut Html, finding: &FindingRecord, span: f64, y: f64) {
    let from = x_of(finding.since_s, span);
    let to = x_of(finding.cleared_s.unwrap_or(span), span);
    html.raw(if is_alarm(finding) {
        "<rect class=\"bar alarm\" height=8 rx=2 x=\""
    } else {
        "<rect class=bar height=8 rx=2 x=\""
    });
    html.text(&format!("{from:.1}"))
        .raw("\" y=\"")
        .text(&format!("{y:.1}"));
    html.raw("\" width=\"")
        .text(&format!("{:.1}", (to - from).max(2.0)))
        .raw("\"><title>");
    html.text(&words(finding)).raw("</title></rect>");
}

fn words(finding: &FindingRecord) -> String {
    let until = finding.cleared_s.map_or("its end".to_owned(), seconds_text);
    format!(
        "{} from {} to {until}",
        finding.name,
        seconds_text(finding.since_s)
    )
}

fn epochs(html: &mut Html, page: &Page<'_>, y: f64) {
    label(html, "epochs", y);
    let mut shown = f64::MIN;
    for (at, epoch) in &page.curves.epochs {
        let x = x_of(*at, page.curves.span_s);
        html.raw("<line class=epoch x1=\"")
            .text(&format!("{x:.1}"))
            .raw("\" x2=\"")
            .text(&format!("{x:.1}"));
        html.raw("\" y1=\"")
            .text(&format!("{:.1}", y + 14.0))
            .raw("\" y2=\"")
            .text(&format!("{:.1}", y + 22.0));
        html.element(
            "\"><title>epoch ",
            &format!("{epoch} from {}", seconds_text(*at)),
            "</title></line>",
        );
        // Clear of its neighbour, of the row's name and of the edge.
        if x - shown > 34.0 && x > LEFT + 60.0 && x < RIGHT {
            html.raw("<text class=mark text-anchor=middle x=\"")
                .text(&format!("{x:.1}"));
            html.raw("\" y=\"")
                .text(&format!("{:.1}", y + 11.0))
                .raw("\">")
                .text(&epoch.to_string())
                .raw("</text>");
            shown = x;
        }
    }
}

fn axis(html: &mut Html, span: f64, bottom: f64) {
    let step = time_step(span, 7.0);
    for n in 0..=(span / step).floor() as usize {
        let at = step * n as f64;
        let x = x_of(at, span);
        html.raw("<line class=grid y1=0 x1=\"")
            .text(&format!("{x:.1}"))
            .raw("\" x2=\"")
            .text(&format!("{x:.1}"));
        html.raw("\" y2=\"")
            .text(&format!("{bottom:.1}"))
            .raw("\"/><text class=mark x=\"")
            .text(&format!("{x:.1}"));
        html.raw(if n > 0 && RIGHT - x < 20.0 {
            "\" text-anchor=end y=\""
        } else {
            "\" text-anchor=middle y=\""
        });
        html.text(&format!("{:.1}", bottom + 15.0))
            .raw("\">")
            .text(&time_mark(at, step))
            .raw("</text>");
    }
}

fn spoken(page: &Page<'_>) -> String {
    let mut said: Vec<String> = page.findings.iter().take(BARS).map(words).collect();
    if let Some((_, last)) = page.curves.epochs.last() {
        said.push(format!("epochs up to {last}"));
    }
    said.join("; ")
}
