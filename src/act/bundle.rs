//! The whole of what was seen, for a person who reads it after the run.
//!
//! Owns its order and its words. Pure.

use super::descriptors::Open;
use super::seen::Seen;
use super::stacks::{PROCESSES, Request, clean};

/// Everything, a process after the other.
pub fn text(request: &Request, seen: &[Seen], open: &Open, dumps: &[String]) -> String {
    let mut out = format!(
        "Where the job stood at {}, {:.1} s into the run ({}).\n",
        request.at.time, request.at.elapsed_s, request.about
    );
    let mut line = |text: &str| {
        out.push_str(&clean(text));
        out.push('\n');
    };
    for one in seen {
        process(one, &mut line);
        let opened = open.lines(one.pid, request.is_network);
        part("open:", &opened, &mut line);
    }
    let left_out = request.subjects.len().saturating_sub(PROCESSES);
    if left_out > 0 {
        line(&format!("\n{left_out} more processes were not looked at"));
    }
    part("\n== GPUs", &request.gpus, &mut line);
    part("\n== what collectives left", dumps, &mut line);
    part(
        "\n== the last lines of output",
        &request.last_lines,
        &mut line,
    );
    out
}

fn process(one: &Seen, line: &mut impl FnMut(&str)) {
    let standing = &one.standing;
    let rank = one.rank.map_or_else(String::new, |n| format!(", rank {n}"));
    let threads = standing.threads;
    let threads = threads.map_or_else(String::new, |n| format!(", {n} threads"));
    line(&format!(
        "\n== {} {}{rank}{threads}: {}",
        one.pid,
        standing.name,
        one.waits()
    ));
    if !standing.status.is_empty() {
        line(&standing.status.join(", "));
    }
    let waits = standing
        .waits
        .iter()
        .map(|(place, n)| format!("{n} in {place}"));
    let waits: Vec<String> = waits.collect();
    if waits.len() > 1 {
        line(&format!("threads: {}", waits.join(", ")));
    }
    match &one.dump {
        Some(Ok(dump)) => dump.text.lines().for_each(&mut *line),
        Some(Err(why)) => line(why),
        None => {}
    }
    let stack = standing.stack.iter().flat_map(|stack| stack.lines());
    let stack: Vec<String> = stack.map(str::to_owned).collect();
    part("kernel stack:", &stack, line);
}

/// A head and what stands below it, if anything does.
fn part(head: &str, lines: &[String], line: &mut impl FnMut(&str)) {
    if !lines.is_empty() {
        line(head);
        for text in lines {
            line(text);
        }
    }
}
