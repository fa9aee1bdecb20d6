//! The table of `gpuwatch gpus`.
//!
//! Pure: a document to text. Missing readings are dashes.

use serde_json::Number;
use unicode_width::UnicodeWidthStr;

use super::document::{Claim, Document, Gpu, MigDevice, Process};
use crate::model::units::mib_text;
use crate::report::text::{clean, clip, pad};

const HEAD: [&str; 8] = [
    "GPU", "NAME", "UTIL", "MEMORY", "TEMP", "POWER", "STATE", "WHO",
];
/// Columns that are aligned to the right.
const NUMBERS: [&str; 5] = ["GPU", "UTIL", "MEMORY", "TEMP", "POWER"];

/// Columns of a command line that are shown.
const WIDEST_COMMAND: usize = 60;

/// Aligned columns, a line a GPU, and further processes on lines of their own.
pub fn table(document: &Document) -> String {
    let mut text = format!(
        "driver {}, CUDA {}\n",
        clean(document.driver.as_deref().unwrap_or("-")),
        clean(document.cuda.as_deref().unwrap_or("-"))
    );
    if document.gpus.is_empty() {
        return text + "no GPU that may be used\n";
    }
    let mut rows = vec![HEAD.map(str::to_owned)];
    for gpu in &document.gpus {
        put(&mut rows, row(gpu), gpu.claim.as_ref(), &gpu.processes);
        for part in &gpu.mig {
            put(
                &mut rows,
                part_row(part),
                part.claim.as_ref(),
                &part.processes,
            );
        }
    }
    for row in &mut rows {
        *row = row.each_ref().map(|cell| clean(cell));
    }
    for row in &rows {
        text += line(row, &rows).trim_end();
        text.push('\n');
    }
    text
}

/// A device's row with its first holder, and a row for each other one.
fn put(
    rows: &mut Vec<[String; 8]>,
    mut row: [String; 8],
    claimed: Option<&Claim>,
    processes: &[Process],
) {
    let mut who = claimed
        .map(claim)
        .into_iter()
        .chain(processes.iter().map(process));
    row[7] = who.next().unwrap_or_default();
    rows.push(row);
    rows.extend(who.map(|w| {
        let mut row = <[String; 8]>::default();
        row[7] = w;
        row
    }));
}

fn row(gpu: &Gpu) -> [String; 8] {
    [
        gpu.index.to_string(),
        gpu.name.clone().unwrap_or_else(|| "-".to_owned()),
        with_unit(gpu.util_pct.as_ref(), " %"),
        memory(gpu.mem_used_mib.as_ref(), gpu.mem_total_mib.as_ref()),
        with_unit(gpu.temp_c.as_ref(), " C"),
        with_unit(gpu.power_w.as_ref(), " W"),
        gpu.state.to_owned(),
        String::new(),
    ]
}

/// A MIG device below its GPU, by the name that `CUDA_VISIBLE_DEVICES` takes.
fn part_row(part: &MigDevice) -> [String; 8] {
    let none = || "-".to_owned();
    [
        String::new(),
        part.uuid.clone().unwrap_or_else(none),
        none(),
        memory(part.mem_used_mib.as_ref(), part.mem_total_mib.as_ref()),
        none(),
        none(),
        part.state.to_owned(),
        String::new(),
    ]
}

fn with_unit(number: Option<&Number>, unit: &str) -> String {
    number.map_or_else(|| "-".to_owned(), |n| format!("{n}{unit}"))
}

fn mib(number: Option<&Number>) -> String {
    number
        .and_then(Number::as_f64)
        .map_or_else(|| "-".to_owned(), mib_text)
}

fn memory(used: Option<&Number>, total: Option<&Number>) -> String {
    if used.is_none() && total.is_none() {
        return "-".to_owned();
    }
    format!("{} / {}", mib(used), mib(total))
}

/// `li: claimed by run 20261130-1-train-7f3a (pid 4180)`
fn claim(claim: &Claim) -> String {
    let user = claim
        .user
        .as_deref()
        .map_or(String::new(), |u| format!("{u}: "));
    let run = claim
        .run
        .as_deref()
        .map_or(String::new(), |r| format!(" {r}"));
    let pid = claim
        .pid
        .map_or(String::new(), |pid| format!(" (pid {pid})"));
    format!("{user}claimed by run{run}{pid}")
}

/// `li: python train.py (pid 41822, 18.0 GiB)`
fn process(process: &Process) -> String {
    let user = process
        .user
        .as_deref()
        .map_or(String::new(), |u| format!("{u}: "));
    // It may be as long as a page; `--json` has all of it.
    let command = clip(
        &clean(process.command.as_deref().unwrap_or("?")),
        WIDEST_COMMAND,
    );
    let held = match process.mem_mib {
        Some(_) => format!(", {}", mib(process.mem_mib.as_ref())),
        None => String::new(),
    };
    format!("{user}{command} (pid {}{held})", process.pid)
}

fn line(row: &[String; 8], rows: &[[String; 8]]) -> String {
    let cells = row.iter().enumerate().map(|(column, cell)| {
        let width = rows.iter().map(|r| r[column].width()).max().unwrap_or(0);
        if NUMBERS.contains(&HEAD[column]) {
            " ".repeat(width - cell.width()) + cell
        } else {
            pad(cell, width)
        }
    });
    cells.collect::<Vec<_>>().join("  ")
}
