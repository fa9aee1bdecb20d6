//! What a patrol sees at this moment: the GPUs, the jobs on them and what was found.
//!
//! Owns the form in which others get it (metrics, `--json`) and its lines for people. Pure.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::judge::Finding;
use crate::model::units::seconds_text;
use crate::model::{FindingState, GpuInfo, GpuSample, Severity};
use crate::report::text::clean;

use super::group::Kind;
use super::job::Job;

/// The longest command that is shown, in characters.
const SHOWN: usize = 80;

/// All of it; each look makes a new one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Present {
    /// RFC 3339.
    pub time: String,
    /// Whole GPUs and MIG devices.
    pub gpus: Vec<PresentGpu>,
    /// The jobs that hold a GPU.
    pub jobs: Vec<PresentJob>,
    /// What was found about the machine itself and holds.
    pub findings: Vec<PresentFinding>,
}

/// One GPU; null is a reading that there isn't.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PresentGpu {
    /// NVML's index, or `MIG-<uuid>`.
    pub gpu: String,
    /// `GPU-...` or `MIG-...`
    pub uuid: Option<String>,
    /// The product.
    pub name: Option<String>,
    /// %
    pub util_pct: Option<f64>,
    /// MiB
    pub mem_used_mib: Option<f64>,
    /// MiB
    pub mem_total_mib: Option<f64>,
    /// W
    pub power_w: Option<f64>,
}

/// What a job is to a patrol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Judged.
    #[default]
    Found,
    /// Judged, and watched by the gpuwatch that launched it.
    Run,
    /// The settings say that nobody is told of it.
    Exempt,
    /// It is another user's, and this patrol may not look.
    Unread,
}

/// One job.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PresentJob {
    /// The id of its record, or of its run; absent without one.
    pub id: Option<String>,
    /// What it is to the patrol.
    pub standing: Standing,
    /// The owner.
    pub user: String,
    /// The owner's number.
    pub uid: u32,
    /// The main process.
    pub pid: u32,
    /// The command, secrets masked.
    pub argv: Vec<String>,
    /// When its main process was started, RFC 3339.
    pub since: String,
    /// NVML's indices, or `MIG-<uuid>`.
    pub gpus: Vec<String>,
    /// GPU memory, MiB.
    pub mem_mib: Option<f64>,
    /// Its own use of its GPUs, mean, %.
    pub use_pct: Option<f64>,
    /// What was found and holds.
    pub findings: Vec<PresentFinding>,
}

/// A finding that holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PresentFinding {
    /// Its name.
    pub name: String,
    /// Which of its causes.
    pub cause: Option<String>,
    /// How serious.
    pub severity: Severity,
    /// The finding that explains it.
    pub because: Option<String>,
    /// Numbers.
    pub evidence: Map<String, Value>,
    /// What to do.
    pub advice: Option<String>,
}

impl From<&Finding> for PresentFinding {
    fn from(finding: &Finding) -> Self {
        Self {
            name: finding.name.clone(),
            cause: finding.cause.clone(),
            severity: finding.severity,
            because: finding.because.clone(),
            evidence: finding.evidence.clone(),
            advice: finding.advice.clone(),
        }
    }
}

/// A GPU as it was read.
pub fn gpu(device: &GpuInfo, sample: Option<&GpuSample>) -> PresentGpu {
    PresentGpu {
        gpu: device.label(),
        uuid: device.uuid.clone(),
        name: device.name.clone(),
        util_pct: sample.and_then(|s| s.util_pct.get()),
        mem_used_mib: sample.and_then(|s| s.mem_used_mib.get()),
        mem_total_mib: sample.and_then(|s| s.mem_total_mib.get()),
        power_w: sample.and_then(|s| s.power_w.get()),
    }
}

impl From<&Job> for PresentJob {
    fn from(job: &Job) -> Self {
        let judged = job.judged.as_ref();
        let run = match &job.group.kind {
            Kind::Run(id) => Some(id.clone()),
            _ => None,
        };
        let standing = match (&job.who.exempt, judged, &run) {
            (Some(_), ..) => Standing::Exempt,
            (_, None, _) => Standing::Unread,
            (.., Some(_)) => Standing::Run,
            _ => Standing::Found,
        };
        Self {
            id: run.or_else(|| judged.and_then(|j| j.id()).map(str::to_owned)),
            standing,
            user: job.who.user.clone(),
            uid: job.group.uid,
            pid: job.group.main.pid,
            argv: job.who.argv.clone(),
            since: job.who.since.clone(),
            gpus: job.gpus().iter().map(GpuInfo::label).collect(),
            mem_mib: job.mem_mib,
            use_pct: job.use_pct,
            findings: judged.map_or_else(Vec::new, |j| {
                j.open().values().map(PresentFinding::from).collect()
            }),
        }
    }
}

/// Something that was said, as one line of `--json`.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    /// RFC 3339.
    pub time: &'a str,
    /// Raised, updated or cleared.
    pub state: FindingState,
    /// How long it has held, seconds.
    pub held_s: f64,
    /// What.
    #[serde(flatten)]
    pub finding: &'a PresentFinding,
    /// Of which job; null: of the machine.
    pub job: Option<&'a PresentJob>,
}

impl Line<'_> {
    /// For people.
    pub fn text(&self) -> String {
        let name = &self.finding.name;
        let held = seconds_text(self.held_s.max(0.0));
        let what = match self.state {
            FindingState::Cleared => format!("over: {name} (it lasted {held})"),
            _ => format!("{}: {name} for {held}", severity(self.finding.severity)),
        };
        let whose = self
            .job
            .map_or_else(String::new, |job| format!(": {}", of_job(job)));
        let advice = match (self.state, &self.finding.advice) {
            (FindingState::Cleared, _) | (_, None) => String::new(),
            (_, Some(advice)) => format!(": {advice}"),
        };
        clean(&format!("{what}{whose}{advice}"))
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Critical => "critical",
    }
}

fn found(finding: &PresentFinding) -> String {
    let advice = finding.advice.as_deref().unwrap_or_default();
    format!(
        "  {}: {}: {advice}",
        severity(finding.severity),
        finding.name
    )
}

/// `ana's python train.py (PID 42) on GPU 0, 8192 MiB`
fn of_job(job: &PresentJob) -> String {
    let command: String = job.argv.join(" ").chars().take(SHOWN).collect();
    let memory = job
        .mem_mib
        .map_or_else(String::new, |mib| format!(", {mib:.0} MiB"));
    let gpus = job.gpus.join(", ");
    format!(
        "{}'s {command} (PID {}) on GPU {gpus}{memory}",
        job.user, job.pid
    )
}

impl Present {
    /// All of it for people: a line a job, below it what was found.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        for job in &self.jobs {
            let standing = match job.standing {
                Standing::Found => "",
                Standing::Run => ", watched by gpuwatch run",
                Standing::Exempt => ", exempt",
                Standing::Unread => ", not judged: another user's",
            };
            let since = job.since.get(..16).unwrap_or(&job.since).replace('T', " ");
            let busy = job
                .use_pct
                .map_or_else(String::new, |pct| format!(", {pct:.0} % used"));
            lines.push(format!("{}{busy}, since {since}{standing}", of_job(job)));
            lines.extend(job.findings.iter().map(found));
        }
        lines.extend(self.findings.iter().map(found));
        if lines.is_empty() {
            let nothing = if self.gpus.is_empty() {
                "the driver shows no GPU"
            } else {
                "nobody holds a GPU"
            };
            lines.push(nothing.to_owned());
        }
        lines.iter().map(|line| clean(line) + "\n").collect()
    }

    /// How many alarms hold.
    pub fn alarms(&self) -> usize {
        let of_jobs = self.jobs.iter().flat_map(|job| &job.findings);
        let all = of_jobs.chain(&self.findings);
        all.filter(|f| f.severity > Severity::Note).count()
    }
}
