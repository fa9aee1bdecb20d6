//! The parts of the page that are words and tables.
//!
//! Owns their wording and markup. Pure.

use serde_json::Value;

use super::Page;
use super::axis::value_text;
use super::curves::Curve;
use super::story::story;
use super::tail::last_lines;
use super::writer::Html;
use crate::model::units::{mib_text, seconds_text};
use crate::model::{GpuInfo, Outcome, RunRecord, Severity};
use crate::record::FindingRecord;
use crate::report::text::{
    command as words, energy, exit, list, progress, short, spent, standing, when,
};

/// Whether a finding is an alarm of its own.
pub fn is_alarm(finding: &FindingRecord) -> bool {
    finding.severity > Severity::Note
}

/// Where the run stands, in a word.
pub fn word(record: &RunRecord) -> &'static str {
    standing(record.state, record.verdict.outcome)
}

/// `GPU 2 (NVIDIA A100)`
pub fn gpu_title(gpu: &GpuInfo) -> String {
    let label = match gpu.instance {
        Some(_) => gpu.label(),
        None => format!("GPU {}", gpu.index),
    };
    match &gpu.name {
        Some(name) => format!("{label} ({name})"),
        None => label,
    }
}

/// What ran, how it ended, and why.
pub fn heading(html: &mut Html, page: &Page<'_>) {
    let record = page.record;
    html.element("<h1>", &record.name, "");
    html.raw(match record.verdict.outcome {
        Some(Outcome::Ok) => " <span class=\"badge good\">",
        Some(_) => " <span class=\"badge bad\">",
        None => " <span class=badge>",
    });
    html.text(word(record)).raw("</span></h1>\n");
    html.element("<p class=id>", &record.id, "</p>\n<p>");
    html.text(&story(record, page.findings).join(" "))
        .raw("</p>\n");
    let verdict = &record.verdict;
    if verdict.cause.is_some() || verdict.advice.is_some() {
        html.raw("<div class=cause role=note>");
        if let Some(cause) = &verdict.cause {
            html.element("<p><b>Cause: ", cause, "</b>");
            if let Some(rank) = verdict.rank {
                html.element(", of rank ", &rank.to_string(), "");
            }
            html.raw("</p>");
        }
        if let Some(advice) = &verdict.advice {
            html.element("<p>", advice, "</p>");
        }
        // Without a line it is the end of the output, which stands further down.
        match &verdict.line {
            Some(line) if verdict.around.is_empty() => html.element("<pre>", line, "</pre>"),
            Some(_) => html.element("<pre>", &verdict.around.join("\n"), "</pre>"),
            None => html,
        };
        html.raw("</div>\n");
    }
    if let Some(attribution) = record.attribution.as_ref().filter(|text| *text != "exact") {
        html.element(
            "<p class=dim>What on the GPUs is this job's: ",
            attribution,
            ".</p>\n",
        );
    }
    for problem in page.problems {
        html.element("<p class=dim>This page is incomplete: ", problem, "</p>\n");
    }
}

/// The run in numbers; those that aren't known say so.
pub fn numbers(html: &mut Html, page: &Page<'_>) {
    let summary = &page.record.summary;
    let mut facts = vec![("Duration", summary.duration_s.map(seconds_text))];
    if let Some(text) = progress(summary) {
        facts.push(("Progress", Some(text)));
    }
    if let Some(text) = summary.time.as_ref().and_then(spent) {
        facts.push(("Time", Some(text)));
    }
    if !page.record.gpus.is_empty() {
        let percent = |x: Option<f64>| x.map(|x| format!("{} %", short(x)));
        facts.extend([
            ("GPU use, mean", percent(summary.gpu_util_pct_mean)),
            (
                "GPU use, 95th percentile",
                percent(summary.gpu_util_pct_p95),
            ),
            (
                "GPU memory of the job, peak",
                summary.job_mem_mib_max.map(mib_text),
            ),
            (
                "Power, mean",
                summary.power_w_mean.map(|x| format!("{} W", short(x))),
            ),
            ("Energy", summary.energy_j.map(energy)),
        ]);
    }
    html.raw("<dl class=facts>");
    for (name, value) in facts {
        html.element("<div><dt>", name, "</dt><dd>");
        html.text(value.as_deref().unwrap_or("not known"))
            .raw("</dd></div>");
    }
    html.raw("</dl>\n");
}

/// What was found, with evidence and advice.
pub fn findings(html: &mut Html, page: &Page<'_>) {
    if page.findings.is_empty() {
        return;
    }
    html.raw("<h2>Findings</h2><table class=\"stack found\"><thead><tr><th>What<th>When<th>Evidence<th>Advice</thead><tbody>\n");
    for finding in page.findings {
        html.raw("<tr><td><span class=\"");
        html.raw(severity(finding.severity))
            .raw("\">")
            .text(&finding.name)
            .raw("</span>");
        if let Some(cause) = &finding.cause {
            html.element(" (", cause, ")");
        }
        html.element("<br><span class=dim>", severity(finding.severity), "");
        if let Some(because) = &finding.because {
            html.element(", because of ", because, "");
        }
        html.raw("</span></td><td>from ")
            .text(&seconds_text(finding.since_s));
        let until = finding.cleared_s.map(seconds_text);
        html.raw("<br>")
            .text(&until.map_or("not cleared".to_owned(), |at| format!("to {at}")));
        html.element("</td><td>", &evidence(finding), "</td><td>");
        html.text(finding.advice.as_deref().unwrap_or_default())
            .raw("</td></tr>\n");
    }
    html.raw("</tbody></table>\n");
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Critical => "critical",
    }
}

fn evidence(finding: &FindingRecord) -> String {
    let shown = finding.evidence.iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name} {text}"),
        other => format!("{name} {other}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// The curves of a GPU and of the job, in their order, and their units.
const OF_GPU: [(&str, &str); 6] = [
    ("use", "%"),
    ("use by the job", "%"),
    ("memory", "GiB"),
    ("memory of the job", "GiB"),
    ("power", "W"),
    ("temperature", "°C"),
];
const OF_JOB: [(&str, &str); 6] = [
    ("Processors", "cores"),
    ("Main memory", "GiB"),
    ("Read", "MB/s"),
    ("Written", "MB/s"),
    ("Step rate", "steps/s"),
    ("Loss", ""),
];

/// Every curve in numbers, for those who don't see the plots and for exact values.
pub fn table_of_curves(html: &mut Html, page: &Page<'_>) {
    if page.curves.ticks == 0 {
        return;
    }
    html.raw("<h2>Readings in numbers</h2><div class=wide><table><thead><tr><th>Reading<th class=n>Least<th class=n>Mean<th class=n>Most<th class=n>Missing</thead><tbody>\n");
    let total = page.curves.ticks;
    for (label, curves) in &page.curves.gpus {
        for ((name, unit), curve) in OF_GPU.into_iter().zip(curves) {
            curve_row(html, &format!("GPU {label} {name}"), unit, curve, total);
        }
    }
    for ((name, unit), curve) in OF_JOB.into_iter().zip(&page.curves.job) {
        curve_row(html, name, unit, curve, total);
    }
    html.raw("</tbody></table></div>\n");
}

fn curve_row(html: &mut Html, name: &str, unit: &str, curve: &Curve, ticks: u64) {
    html.element("<tr><td>", name, "</td>");
    let range = curve.range();
    for value in [range.map(|r| r.0), curve.mean(), range.map(|r| r.1)] {
        let text = value.map_or("-".to_owned(), |x| format!("{} {unit}", value_text(x)));
        html.element("<td class=n>", text.trim_end(), "</td>");
    }
    let missing = ticks.saturating_sub(curve.n) as f64 / ticks.max(1) as f64 * 100.0;
    html.element(
        "<td class=n>",
        &format!("{} %", value_text(missing)),
        "</td></tr>\n",
    );
}

/// The command, where it ran, and what was set for it.
pub fn command(html: &mut Html, page: &Page<'_>) {
    let record = page.record;
    html.element("<h2>Command</h2><pre>", &words(&record.argv), "</pre>\n");
    let git = record.git.as_ref().and_then(|git| {
        let changed = if git.dirty == Some(true) {
            ", with changes"
        } else {
            ""
        };
        Some(format!("{}{changed}", git.commit.as_ref()?))
    });
    rows(
        html,
        vec![
            ("In", record.cwd.clone()),
            ("Git", git),
            (
                "Tags",
                (!record.tags.is_empty()).then(|| record.tags.join(", ")),
            ),
            ("Profile", record.profile.clone()),
            ("Framework", record.framework.clone()),
            ("Started", Some(when(&record.started))),
            ("Ended", record.ended.as_deref().map(when)),
            ("Exit", exit(record.exit)),
        ],
    );
    if record.env.is_empty() {
        return;
    }
    html.raw("<h3>Environment that gpuwatch set</h3><table class=\"stack three\"><thead><tr><th>Variable<th>Value<th>Why</thead><tbody>\n");
    for (name, setting) in &record.env {
        html.element("<tr><td><code>", name, "</code></td>");
        html.element("<td><code>", &setting.value, "</code></td>");
        html.element("<td>", &setting.why, "</td></tr>\n");
    }
    html.raw("</tbody></table>\n");
}

/// Host, driver and GPUs.
pub fn machine(html: &mut Html, page: &Page<'_>) {
    let record = page.record;
    html.raw("<h2>Machine</h2>");
    let job = list([
        record.job.id.as_ref().map(|id| format!("job {id}")),
        record.job.rank.map(|rank| format!("rank {rank}")),
        record.job.world.map(|world| format!("of {world}")),
    ]);
    let mut facts = vec![
        ("Host", record.host.clone()),
        ("User", record.user.clone()),
        ("Distributed job", job),
        ("Driver", record.driver.clone()),
        ("CUDA", record.cuda.clone()),
    ];
    let gpus: Vec<(String, Option<String>)> = record.gpus.iter().map(gpu_facts).collect();
    facts.extend(
        gpus.iter()
            .map(|(label, text)| (label.as_str(), text.clone())),
    );
    rows(html, facts);
}

fn gpu_facts(gpu: &GpuInfo) -> (String, Option<String>) {
    let facts = list([
        gpu.name.clone(),
        gpu.memory_mib.map(|mib| mib_text(mib as f64)),
        gpu.power_limit_w.map(|watts| format!("limit {watts} W")),
        gpu.slowdown_c
            .map(|degrees| format!("slows down at {degrees} °C")),
        gpu.uuid.clone().filter(|_| gpu.instance.is_none()),
        gpu.pci_bus.clone(),
    ]);
    let label = match gpu.instance {
        Some(_) => gpu.label(),
        None => format!("GPU {}", gpu.index),
    };
    (label, facts)
}

/// What is known of these, as a table.
fn rows(html: &mut Html, facts: Vec<(&str, Option<String>)>) {
    html.raw("<table class=keys><tbody>\n");
    for (name, value) in facts {
        if let Some(value) = value {
            html.element("<tr><th scope=row>", name, "</th><td>");
            html.text(&value).raw("</td></tr>\n");
        }
    }
    html.raw("</tbody></table>\n");
}

/// So many last lines are shown.
const LAST_LINES: usize = 60;

/// The last lines that the command printed.
pub fn output(html: &mut Html, page: &Page<'_>) {
    html.raw("<h2>Last lines of output</h2>");
    let lines = last_lines(page.output, LAST_LINES);
    if lines.is_empty() {
        html.raw("<p>There is none.</p>\n");
        return;
    }
    html.element("<pre>", &lines.join("\n"), "</pre>\n");
}
