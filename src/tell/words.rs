//! The words of alerts in the languages that they come in.
//!
//! Owns the wording alone; names of findings, evidence and advice are the judge's.

use crate::model::{Language, Outcome, Severity};

use super::chinese;

/// A language that alerts are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tongue {
    /// English.
    #[default]
    English,
    /// Simplified Chinese.
    Chinese,
}

impl Tongue {
    /// As set, else by the locale (the value of `LC_ALL`, `LC_MESSAGES` or `LANG`).
    pub fn new(language: Language, locale: Option<&str>) -> Self {
        let by_locale = if locale.is_some_and(|l| l.to_ascii_lowercase().starts_with("zh")) {
            Self::Chinese
        } else {
            Self::English
        };
        match language {
            Language::Auto => by_locale,
            Language::English => Self::English,
            Language::Chinese => Self::Chinese,
        }
    }

    /// Its words.
    pub fn words(self) -> &'static Words {
        match self {
            Self::English => &ENGLISH,
            Self::Chinese => &CHINESE,
        }
    }
}

/// Words; `{}` is where something is put in.
pub struct Words {
    /// Title of something that still holds.
    pub still: &'static str,
    /// Title of something that is over.
    pub over: &'static str,
    /// Name and place of a run.
    pub on: &'static str,
    /// Others were put into this alert.
    pub and_more: &'static str,
    /// A finding and how long it has held.
    pub holds: &'static str,
    /// A finding that is over, and how long it had held.
    pub lasted: &'static str,
    /// A finding and the rank that stands out.
    pub of_rank: &'static str,
    /// Before what each rank says.
    pub ranks: &'static str,
    /// What caused it.
    pub cause: &'static str,
    /// The line of output that tells it.
    pub line: &'static str,
    /// Before progress.
    pub progress: &'static str,
    /// How long ago.
    pub ago: &'static str,
    /// An epoch.
    pub epoch: &'static str,
    /// A step.
    pub step: &'static str,
    /// What is left to do.
    pub left: &'static str,
    /// Before evidence.
    pub evidence: &'static str,
    /// Before stacks.
    pub stacks: &'static str,
    /// Before advice.
    pub advice: &'static str,
    /// Before the others.
    pub also: &'static str,
    /// How often it came.
    pub times: &'static str,
    /// Before the run's id.
    pub run: &'static str,
    /// Before the command.
    pub command: &'static str,
    /// Before the time.
    pub time: &'static str,
    /// How long the run took.
    pub took: &'static str,
    /// The run began.
    pub started: &'static str,
    /// A test.
    pub test: &'static str,
    /// What a test says.
    pub test_body: &'static str,
    /// An exit code.
    pub exit_code: &'static str,
    gloss: fn(&str) -> Option<&'static str>,
    advise: fn(&str, Option<&str>) -> Option<&'static str>,
    severities: [&'static str; 3],
    outcomes: [&'static str; 7],
}

impl Words {
    /// A finding's name, and beside it what it is called in this language.
    pub fn named(&self, finding: &str) -> String {
        match (self.gloss)(finding) {
            Some(gloss) => format!("{finding}（{gloss}）"),
            None => finding.to_owned(),
        }
    }

    /// What helps, where this language has words of its own for it.
    pub fn advise(&self, finding: &str, cause: Option<&str>) -> Option<&'static str> {
        (self.advise)(finding, cause)
    }

    /// How serious.
    pub fn severity(&self, severity: Severity) -> &'static str {
        let [note, warning, critical] = self.severities;
        match severity {
            Severity::Note => note,
            Severity::Warning => warning,
            Severity::Critical => critical,
        }
    }

    /// How a run ended.
    pub fn outcome(&self, outcome: Outcome) -> &'static str {
        let [ok, failed, killed, cancelled, timed_out, stopped, lost] = self.outcomes;
        match outcome {
            Outcome::Ok => ok,
            Outcome::Failed => failed,
            Outcome::Killed => killed,
            Outcome::Cancelled => cancelled,
            Outcome::TimedOut => timed_out,
            Outcome::Stopped => stopped,
            Outcome::Lost => lost,
        }
    }
}

const ENGLISH: Words = Words {
    gloss: |_| None,
    advise: |_, _| None,
    still: "still {}",
    over: "over: {}",
    on: "{} on {}",
    and_more: "{} and {} more",
    holds: "{}: {} for {}",
    lasted: "{} is over; it lasted {}",
    of_rank: "{} (rank {})",
    ranks: "ranks: {}",
    cause: "cause: {}",
    line: "line: {}",
    progress: "last progress: {}",
    ago: "{} ago",
    epoch: "epoch {}",
    step: "step {}",
    left: "{} left",
    evidence: "evidence: {}",
    stacks: "where it stands:",
    advice: "what to do: {}",
    also: "also: {}",
    times: "raised {} times in this run",
    run: "run: {}",
    command: "command: {}",
    time: "time: {}",
    took: "it took {}",
    started: "started",
    test: "test",
    test_body: "This is a test: alerts of gpuwatch arrive here.",
    exit_code: "exit code {}",
    severities: ["note", "warning", "critical"],
    outcomes: [
        "finished",
        "failed",
        "killed",
        "cancelled",
        "timed out",
        "stopped",
        "lost",
    ],
};

const CHINESE: Words = Words {
    gloss: chinese::gloss,
    advise: chinese::advice,
    still: "仍未恢复：{}",
    over: "已恢复：{}",
    on: "{}（{}）",
    and_more: "{} 等，另有 {} 条",
    holds: "{}：{}，已持续 {}",
    lasted: "{} 已结束，持续了 {}",
    of_rank: "{}（rank {}）",
    ranks: "各 rank：{}",
    cause: "原因：{}",
    line: "输出：{}",
    progress: "最后进度：{}",
    ago: "{} 前",
    epoch: "轮次 {}",
    step: "步 {}",
    left: "剩余 {}",
    evidence: "依据：{}",
    stacks: "停在何处：",
    advice: "建议：{}",
    also: "另有：{}",
    times: "本次运行已出现 {} 次",
    run: "运行：{}",
    command: "命令：{}",
    time: "时间：{}",
    took: "用时 {}",
    started: "已开始",
    test: "测试",
    test_body: "这是一条测试消息：gpuwatch 的告警会发到这里。",
    exit_code: "退出码 {}",
    severities: ["提示", "警告", "严重"],
    outcomes: [
        "已完成",
        "失败",
        "被终止",
        "已取消",
        "超时",
        "已停止",
        "失联",
    ],
};

/// Puts values in the places of `{}`, in order.
pub fn fill(pattern: &str, values: &[&str]) -> String {
    let mut out = String::new();
    let mut values = values.iter();
    let mut parts = pattern.split("{}");
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        out.push_str(values.next().copied().unwrap_or_default());
        out.push_str(part);
    }
    out
}
