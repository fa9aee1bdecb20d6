//! `hardware`, `program-fault`, `xid-info`: what the driver reports of a GPU.
//!
//! Owns the catalogue of XIDs (NVIDIA's, via gpud; DETECTION section 4).

use crate::model::{Event, GpuChange, GpuSample, Logged, Sample, Severity};

use super::finding::{Book, Claim, Evidence};

/// The names of the findings.
pub const HARDWARE: &str = "hardware";
const PROGRAM: &str = "program-fault";
const INFO: &str = "xid-info";

/// The family.
#[derive(Clone, Debug, Default)]
pub struct Hardware {
    /// Uncorrectable errors since the start, by position of the GPU.
    ecc: Vec<u64>,
}

impl Hardware {
    /// Takes in an event.
    pub fn event(logged: &Logged, book: &mut Book) {
        let Event::Gpu { gpu, change, code } = &logged.event else {
            return;
        };
        let at = logged.stamp.elapsed_s;
        match change {
            GpuChange::Xid => xid(at, gpu, code.unwrap_or_default(), book),
            GpuChange::Lost => report(&LOST, at, gpu, Evidence::new(), book),
            GpuChange::Ecc => errors(at, gpu, *code, book),
            GpuChange::Recovered => {
                let lost = book.open(HARDWARE).is_some_and(|f| {
                    f.cause.as_deref() == Some("lost")
                        && f.evidence.get("gpu") == Some(&number(gpu))
                });
                if lost {
                    book.clear(HARDWARE);
                }
            }
            GpuChange::Unavailable => {}
        }
    }

    /// Takes in one sample: errors may be counted that no event told of.
    pub fn sample(&mut self, sample: &Sample, book: &mut Book) {
        for (i, now) in sample.ecc_uncorrected.iter().enumerate() {
            let Some(now) = now.get() else { continue };
            if self.ecc.len() <= i {
                self.ecc.resize(i + 1, 0);
            }
            if now > self.ecc[i] {
                self.ecc[i] = now;
                let gpu = sample.gpus.get(i).map_or(String::new(), GpuSample::label);
                errors(sample.stamp.elapsed_s, &gpu, Some(now), book);
            }
        }
    }
}

/// What one kind of report means.
pub struct Meaning {
    /// The finding.
    pub name: &'static str,
    severity: Severity,
    cause: &'static str,
    /// What to do.
    pub advice: &'static str,
}

impl Meaning {
    /// Whether it is more than a note.
    pub fn is_alarm(&self) -> bool {
        self.severity > Severity::Note
    }
}

const fn broken(cause: &'static str, advice: &'static str) -> Meaning {
    Meaning {
        name: HARDWARE,
        severity: Severity::Critical,
        cause,
        advice,
    }
}

const LOST: Meaning = broken(
    "lost",
    "The GPU no longer answers: restart the job without it; if it doesn't come back after a reboot, it is a matter for support.",
);
const ECC: Meaning = broken(
    "ecc",
    "Uncorrectable memory errors: results since then can't be trusted. Restart from a checkpoint on another GPU and have this one reset and tested.",
);
const BUS: Meaning = broken(
    "off-the-bus",
    "The GPU fell off the bus: restart the job without it; the machine needs a reboot, and a check of power and cooling.",
);
const LINK: Meaning = broken(
    "nvlink",
    "An NVLink error: restart the job; if it comes back, keep this GPU out of jobs and have the link checked (`nvidia-smi nvlink -e`).",
);
const RESET: Meaning = broken(
    "reset-needed",
    "The GPU needs a reset (`nvidia-smi --gpu-reset`, or a reboot): restart the job on another one meanwhile.",
);
const FAULT: Meaning = Meaning {
    name: PROGRAM,
    severity: Severity::Warning,
    cause: "xid",
    advice: "The program did what the GPU forbids: run it with CUDA_LAUNCH_BLOCKING=1 or under compute-sanitizer to find the operation.",
};
const HARMLESS: Meaning = Meaning {
    name: INFO,
    severity: Severity::Note,
    cause: "xid",
    advice: "The driver reported an XID that needs no action.",
};

/// What an XID means.
pub fn meaning(xid: u64) -> &'static Meaning {
    match xid {
        13 | 31 | 32 | 43 | 69 | 94 => &FAULT,
        79 => &BUS,
        48 => &ECC,
        74 | 144..=150 => &LINK,
        46 | 62 | 64 | 95 | 109 | 110 | 119 | 120 | 140 | 143 | 158 => &RESET,
        // 45 follows another error; 63, 92 and 121 record what was repaired.
        _ => &HARMLESS,
    }
}

fn xid(at: f64, gpu: &str, code: u64, book: &mut Book) {
    let evidence = Evidence::new().num("xid", code as f64);
    report(meaning(code), at, gpu, evidence, book);
}

fn errors(at: f64, gpu: &str, count: Option<u64>, book: &mut Book) {
    let evidence = Evidence::new().num("uncorrected", count.map(|n| n as f64));
    report(&ECC, at, gpu, evidence, book);
}

fn report(meaning: &Meaning, at: f64, gpu: &str, evidence: Evidence, book: &mut Book) {
    let evidence = match gpu.parse::<u32>() {
        Ok(index) => evidence.num("gpu", f64::from(index)),
        Err(_) => evidence.text("gpu", gpu.to_owned()),
    };
    if book.holds(meaning.name) {
        book.update(meaning.name, evidence);
        return;
    }
    let claim = Claim::new(meaning.name, meaning.severity, at)
        .cause(meaning.cause)
        .evidence(evidence)
        .advice(meaning.advice);
    book.raise(claim);
}

fn number(gpu: &str) -> serde_json::Value {
    gpu.parse::<u32>()
        .map_or_else(|_| gpu.into(), serde_json::Value::from)
}
