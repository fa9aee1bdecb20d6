//! One run as a self-contained HTML page: `gpuwatch report`.
//!
//! Owns the page's order. It loads nothing, works without script, and whatever comes from elsewhere
//! gets in by [`writer::Html::text`] alone. Pure: records, samples and output's bytes in, a page out.

mod axis;
mod chart;
mod curves;
mod sections;
mod story;
mod tail;
mod timeline;
mod writer;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};

use crate::model::RunRecord;
use crate::record::FindingRecord;
use chart::{Band, Chart, Line, draw};
pub use curves::Curves;
pub use tail::last_lines;
use writer::Html;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// What the page is made of.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// `run.json`.
    pub record: &'a RunRecord,
    /// Its findings.
    pub findings: &'a [FindingRecord],
    /// Its samples.
    pub curves: &'a Curves,
    /// The end of its output.
    pub output: &'a [u8],
    /// What couldn't be read.
    pub problems: &'a [String],
}

/// The page.
pub fn page(page: &Page<'_>) -> String {
    let mut html = Html::default();
    head(&mut html, page);
    html.raw("<main>");
    sections::heading(&mut html, page);
    sections::numbers(&mut html, page);
    timeline::draw(&mut html, page);
    sections::findings(&mut html, page);
    plots(&mut html, page);
    sections::table_of_curves(&mut html, page);
    sections::command(&mut html, page);
    sections::machine(&mut html, page);
    sections::output(&mut html, page);
    html.raw("</main>\n<script>")
        .raw(SCRIPT)
        .raw("</script></body></html>\n");
    html.finish()
}

fn head(html: &mut Html, page: &Page<'_>) {
    html.raw("<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n");
    html.raw("<meta http-equiv=Content-Security-Policy content=\"")
        .text(&policy())
        .raw("\">\n");
    html.raw("<meta name=viewport content=\"width=device-width, initial-scale=1\">\n");
    html.raw(
        "<meta name=referrer content=no-referrer><meta name=color-scheme content=\"light dark\">\n",
    );
    html.raw("<meta name=generator content=\"gpuwatch ")
        .text(env!("CARGO_PKG_VERSION"))
        .raw("\">\n");
    html.element("<title>", &page.record.name, ": ");
    html.element("", sections::word(page.record), " - gpuwatch</title>\n");
    html.raw("<style>")
        .raw(STYLE)
        .raw("</style></head>\n<body data-span=\"");
    html.text(&page.curves.span_s.to_string()).raw("\">\n");
}

/// Nothing but our own style and script, whatever else should get into the page.
fn policy() -> String {
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}

/// The stretches that findings cover.
fn bands(page: &Page<'_>) -> Vec<Band> {
    let band = |finding: &FindingRecord| Band {
        from_s: finding.since_s,
        to_s: finding.cleared_s.unwrap_or(page.curves.span_s),
        is_alarm: sections::is_alarm(finding),
    };
    page.findings.iter().map(band).collect()
}

fn plots(html: &mut Html, page: &Page<'_>) {
    let curves = page.curves;
    if curves.ticks == 0 {
        html.raw("<h2>Readings</h2><p>No sample was recorded.</p>\n");
        return;
    }
    let bands = bands(page);
    for (gpu, (label, of)) in page.record.gpus.iter().zip(&curves.gpus) {
        let title = sections::gpu_title(gpu);
        html.element("<section><h2>", &title, "</h2><div class=plots>\n");
        let memory = gpu.memory_mib.map_or(0.0, |mib| mib as f64 / 1024.0);
        for chart in [
            gpu_chart(
                "Use",
                label,
                "%",
                [("device", &of[0]), ("this job", &of[1])],
                100.0,
            ),
            gpu_chart(
                "Memory",
                label,
                "GiB",
                [("device", &of[2]), ("this job", &of[3])],
                memory,
            ),
            one("Power", label, "W", ("device", &of[4]), false),
            one("Temperature", label, "°C", ("device", &of[5]), true),
        ] {
            draw(html, &chart, curves, &bands);
        }
        html.raw("</div></section>\n");
    }
    html.raw("<section><h2>The job</h2><div class=plots>\n");
    let of = &curves.job;
    let mut charts = vec![
        one("Processors", "", "cores", ("job", &of[0]), false),
        one("Main memory", "", "GiB", ("job", &of[1]), false),
        gpu_chart(
            "Storage",
            "",
            "MB/s",
            [("read", &of[2]), ("written", &of[3])],
            0.0,
        ),
    ];
    let told = [
        one(
            "Step rate, as displayed",
            "",
            "steps/s",
            ("rate", &of[4]),
            false,
        ),
        one("Loss, as displayed", "", "", ("loss", &of[5]), true),
    ];
    // Most programs don't display both: an empty plot would only say so.
    charts.extend(told.into_iter().filter(|chart| chart.lines[0].curve.n > 0));
    for chart in &charts {
        draw(html, chart, curves, &bands);
    }
    html.raw("</div></section>\n");
}

fn gpu_chart<'a>(
    title: &'static str,
    of: &'a str,
    unit: &'static str,
    lines: [(&'static str, &'a curves::Curve); 2],
    at_least: f64,
) -> Chart<'a> {
    Chart {
        title,
        of,
        unit,
        // Whose readings there are none of has no place in the legend, unless there is nothing.
        lines: lines
            .into_iter()
            .filter(|(name, curve)| curve.n > 0 || *name == lines[0].0)
            .map(|(name, curve)| Line { name, curve })
            .collect(),
        at_least,
        is_floating: false,
    }
}

fn one<'a>(
    title: &'static str,
    of: &'a str,
    unit: &'static str,
    (name, curve): (&'static str, &'a curves::Curve),
    is_floating: bool,
) -> Chart<'a> {
    Chart {
        title,
        of,
        unit,
        lines: vec![Line { name, curve }],
        at_least: 0.0,
        is_floating,
    }
}

#[cfg(test)]
mod tests;
