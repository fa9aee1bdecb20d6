//! What would be done to the job on which finding, in words. Pure.

use crate::model::{ActSettings, Action, EndSettings, duration_text};

/// One line a finding, and one for another start; nothing where only evidence is taken.
pub fn planned(act: &ActSettings, end: &EndSettings) -> Vec<String> {
    let deeds = act.0.iter().filter(|(_, actions)| {
        let only_stacks = actions.iter().all(|action| *action == Action::Stacks);
        !only_stacks
    });
    let mut lines: Vec<String> = deeds
        .map(|(finding, actions)| {
            let words = |action| words(action, finding, end);
            let list: Vec<String> = actions.iter().map(words).collect();
            format!("when {finding}: {}", list.join(", then "))
        })
        .collect();
    let restart = &end.restart;
    let by_act = act.0.values().flatten().any(|a| *a == Action::Restart);
    if restart.max > 0 && (by_act || !restart.on.is_empty()) {
        let pause = duration_text(restart.pause(1));
        let max = restart.max;
        let after = if restart.on.is_empty() {
            String::new()
        } else {
            format!(" after {}", restart.on.join(", "))
        };
        lines.push(format!(
            "the command is started again{after}: {max} times at most, {pause} after its end, then twice as long each time"
        ));
    }
    lines
}

fn words(action: &Action, finding: &str, end: &EndSettings) -> String {
    let grace = duration_text(end.grace_of_limit());
    let is_again = end.restart.on.iter().any(|on| on == finding);
    match action {
        Action::Stacks => "stacks as evidence".to_owned(),
        Action::Command(argv) => {
            let program = argv.first().map_or("", String::as_str);
            format!("run {program}")
        }
        Action::Signal(name) => format!("{name} to the main process"),
        Action::Stop if !is_again => format!("TERM, KILL {grace} later, exit code 123"),
        Action::Stop | Action::Restart => format!("TERM, KILL {grace} later, and another start"),
    }
}
