//! `oom` and `host-oom`: memory that ran out.
//!
//! Owns both, raised at once, even if the run goes on.

use std::collections::VecDeque;

use crate::model::{Event, Logged, Severity};
use crate::read::fingerprint::Kind;

use super::ended::Held;
use super::finding::{Book, Claim, Evidence, Finding};
use super::leak::LEAK;
use super::near_oom::NEAR_OOM;
use super::view::View;

/// The names of the findings.
pub const OOM: &str = "oom";
/// As above.
pub const HOST_OOM: &str = "host-oom";
/// So many samples tell how memory grew.
const HISTORY: usize = 32;
/// Without another line for so long, and with progress, it is over, seconds.
const OVER_S: f64 = 600.0;

/// The family.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    held: VecDeque<(f64, f64)>,
    rss_mib: Option<f64>,
    limit_mib: Option<f64>,
    lines: u64,
    last_own_s: f64,
}

impl Memory {
    /// Takes in an event; `kind` is what its line says.
    pub fn event(&mut self, logged: &Logged, kind: Option<Kind>, v: &View<'_>, book: &mut Book) {
        let at = logged.stamp.elapsed_s;
        let host = matches!(logged.event, Event::Host { .. });
        match kind {
            Some(kind) if kind.is_oom() || kind == Kind::HostMemory => self.oom(at, kind, v, book),
            Some(Kind::KernelOom) => self.host(at, v, book),
            _ if host => self.host(at, v, book),
            _ => {}
        }
    }

    /// Takes in one sample.
    pub fn sample(&mut self, rss: Option<f64>, limit: Option<f64>, v: &View<'_>, book: &mut Book) {
        if let Some(mib) = v.s.held_mib {
            if self.held.len() == HISTORY {
                self.held.pop_front();
            }
            self.held.push_back((v.s.now.elapsed_s, mib));
        }
        self.rss_mib = rss.or(self.rss_mib);
        self.limit_mib = limit.or(self.limit_mib);
        if self.lines > 0 && v.s.advanced && v.s.now.own_s - self.last_own_s > OVER_S {
            self.lines = 0;
            book.clear(OOM);
        }
    }

    /// What the job held of main memory at last.
    pub fn held(&self) -> Held {
        Held {
            rss_mib: self.rss_mib,
            limit_mib: self.limit_mib,
        }
    }

    fn oom(&mut self, at: f64, kind: Kind, v: &View<'_>, book: &mut Book) {
        self.lines += 1;
        self.last_own_s = v.s.now.own_s;
        let on_host = kind == Kind::HostMemory;
        let evidence = if on_host {
            self.host_evidence()
        } else {
            self.gpu_evidence(v)
        };
        let claim = Claim::new(OOM, Severity::Warning, at)
            .cause(if on_host { "host" } else { "gpu" })
            .because(before(on_host, book))
            .evidence(evidence)
            .advice(oom_advice(kind));
        book.raise(claim);
    }

    fn host(&mut self, at: f64, v: &View<'_>, book: &mut Book) {
        let held = self.rss_mib.zip(self.limit_mib);
        // A group of processes with a limit of its own is the job's. What was held may be a look
        // old, and the killed one's share of it new.
        let machine = v.facts.host_mem_mib.unwrap_or_default();
        let own_limit = self.limit_mib.is_some_and(|limit| limit < 0.999 * machine);
        let of_job = own_limit || held.is_none_or(|(rss, limit)| rss > 0.5 * limit);
        let advice = if of_job {
            "The kernel killed a process for its memory: fewer DataLoader workers, a smaller cache or prefetch, or a higher memory limit."
        } else {
            "The kernel killed a process for its memory, and the job held less than half of it: look for other processes on the machine."
        };
        let evidence = self.host_evidence().num("gpu_mem_mib", v.s.held_mib);
        let claim = Claim::new(HOST_OOM, Severity::Critical, at)
            .because(before(true, book).filter(|_| of_job))
            .evidence(evidence)
            .advice(advice);
        book.raise(claim);
    }

    fn host_evidence(&self) -> Evidence {
        Evidence::new()
            .num("rss_mib", self.rss_mib)
            .num("mem_limit_mib", self.limit_mib)
    }

    /// From x to y in n seconds, and who else was on the card.
    fn gpu_evidence(&self, v: &View<'_>) -> Evidence {
        let last = self.held.back().copied();
        let lowest = self
            .held
            .iter()
            .copied()
            .reduce(|a, b| if b.1 < a.1 { b } else { a });
        let over = last.zip(lowest).map(|(last, low)| last.0 - low.0);
        let others = v.s.gpus.iter().filter_map(|g| g.others_mib);
        Evidence::new()
            .num("from_mib", lowest.map(|l| l.1))
            .num("to_mib", last.map(|l| l.1))
            .num("over_s", over)
            .num("others_mib", others.reduce(f64::max))
    }
}

/// What was told before of memory that grew, and now ran out.
fn before(on_host: bool, book: &Book) -> Option<String> {
    let told = [LEAK, NEAR_OOM]
        .into_iter()
        .filter_map(|name| book.told(name));
    let of = |f: &&Finding| (f.cause.as_deref() != Some("gpu")) == on_host;
    told.filter(of).map(|f| f.name.clone()).next()
}

/// What helps, by whose words they are.
pub fn oom_advice(kind: Kind) -> &'static str {
    match kind {
        Kind::OomTorch => {
            "A smaller batch with gradient accumulation, bf16, or activation checkpointing; if much is reserved but unallocated, PYTORCH_ALLOC_CONF=expandable_segments:True."
        }
        Kind::OomTensorFlow => {
            "A smaller batch, mixed_float16, gradient accumulation or recompute_grad; memory growth or a logical-device limit where the GPU is shared; jit_compile=True saves temporaries."
        }
        Kind::OomJax => {
            "A smaller batch, jax.checkpoint, bf16 or donated buffers; XLA_PYTHON_CLIENT_MEM_FRACTION says how much is preallocated."
        }
        Kind::OomCache => {
            "The model leaves no room for the key-value cache: raise gpu_memory_utilization, lower max_model_len, or use more GPUs."
        }
        Kind::OomCublas => {
            "cuBLAS or cuDNN couldn't get its workspace, which usually means that memory ran out: a smaller batch, or free the GPU of others."
        }
        Kind::HostMemory => {
            "Main memory ran out: a smaller batch, fewer DataLoader workers, or a check of the size that was asked for."
        }
        _ => "GPU memory ran out: a smaller batch, or a memory limit for what else is on the GPU.",
    }
}
