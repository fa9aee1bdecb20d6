//! `gpu-unused`: GPUs were given, training goes on, and none of their memory is the job's.
//!
//! Owns when that is certain and what the output says of the reason.

use crate::model::Severity;
use crate::read::fingerprint::Kind;

use super::finding::{Book, Claim, Evidence};
use super::view::View;

/// The finding's name.
pub const UNUSED: &str = "gpu-unused";
/// After the beginning of training, with a line that says so and without, seconds.
const TOLD_S: f64 = 60.0;
const UNTOLD_S: f64 = 100.0;
/// A shorter run isn't worth a word, seconds.
const SHORT_S: f64 = 10.0;
/// Without GPUs that were used before, training goes on when so many advances were seen.
const GOES_ON: u64 = 3;
/// Who reads so much may be preparing, 10^6 bytes a second.
const READS_MB_S: f64 = 10.0;

/// The family.
#[derive(Clone, Debug, Default)]
pub struct Unused {
    used: bool,
    /// Since when memory that was the job's is no longer, in seconds of the run.
    gone_s: Option<f64>,
    /// The loss that was shown last while it was.
    loss: Option<f64>,
    unsure: bool,
    began_own_s: Option<f64>,
    /// Advances then.
    began_count: u64,
    began_s: f64,
    busy_s: f64,
    shows_loss: bool,
}

impl Unused {
    /// Takes in one sample. `loss`: as it is displayed.
    pub fn sample(&mut self, loss: Option<f64>, v: &View<'_>, book: &mut Book) {
        let s = v.s;
        if s.held == Some(true) {
            *self = Self {
                used: true,
                loss,
                ..Self::default()
            };
            book.clear(UNUSED);
            return;
        }
        if !s.has_gpus() || book.holds(UNUSED) {
            return;
        }
        self.unsure = s.held.is_none();
        if self.used && !self.unsure {
            self.gone_s.get_or_insert(s.now.elapsed_s);
        }
        self.shows_loss |= loss.is_some();
        // Steps that are counted after the GPU was given back may be anything. With a loss of
        // their own they are training.
        let trains = if self.used {
            s.advanced && loss.is_some() && loss.map(f64::to_bits) != self.loss.map(f64::to_bits)
        } else {
            true
        };
        if s.advances.trains && trains && self.began_own_s.is_none() {
            self.began_own_s = Some(s.now.own_s);
            self.began_s = s.now.elapsed_s;
            self.began_count = s.advances.count;
        }
        if self.is_due(v) && !v.may_be_silent() {
            self.raise(v, book);
        }
    }

    fn is_due(&mut self, v: &View<'_>) -> bool {
        let s = v.s;
        let told = self.reason(v).is_some_and(|r| r.is_told);
        if told && s.cores.is_some_and(|c| c >= 1.0) {
            self.busy_s += s.dt;
        }
        let trains_s = self.began_own_s.map_or(0.0, |at| s.now.own_s - at);
        if self.used {
            let goes_on = s.advances.count >= self.began_count + GOES_ON;
            return trains_s >= UNTOLD_S && goes_on && !self.unsure;
        }
        if told {
            return trains_s.max(self.busy_s) >= TOLD_S;
        }
        let preparing = s.io_mean > READS_MB_S && !self.shows_loss;
        trains_s >= UNTOLD_S && !preparing && !self.unsure
    }

    /// Why, as far as is known: what was said before the GPU was given back is no reason.
    fn reason(&self, v: &View<'_>) -> Option<Reason> {
        reason(v).filter(|r| self.gone_s.is_none_or(|gone| r.at_s >= gone))
    }

    /// The run is over after so many seconds.
    pub fn finish(&self, elapsed_s: f64, v: &View<'_>, book: &mut Book) {
        let certain = !self.used && !self.unsure && v.s.has_gpus();
        if certain && elapsed_s >= SHORT_S && self.began_own_s.is_some() {
            self.raise(v, book);
        }
    }

    fn raise(&self, v: &View<'_>, book: &mut Book) {
        let reason = self.reason(v);
        let cause = reason.as_ref().map_or("unknown", |r| r.cause);
        let since = if self.began_own_s.is_some() {
            self.began_s
        } else {
            reason.as_ref().map_or(0.0, |r| r.at_s)
        };
        let evidence = Evidence::new()
            .num("gpus", v.s.gpus.len() as f64)
            .num("job_mem_mib", v.s.held_mib.or(Some(0.0)))
            .num("cpu_cores", v.s.cores)
            .num("step", v.s.step)
            .text("line", reason.and_then(|r| r.line));
        let claim = Claim::new(UNUSED, Severity::Warning, since)
            .cause(cause)
            .evidence(evidence)
            .advice(advice(cause, v.framework()));
        book.raise(claim);
    }
}

struct Reason {
    cause: &'static str,
    /// A line of the output says so, and not the command alone.
    is_told: bool,
    at_s: f64,
    line: Option<String>,
}

/// Why, as far as is known: the strongest word first.
fn reason(v: &View<'_>) -> Option<Reason> {
    let causes = [
        (Kind::NoiseMismatch, "version-mismatch"),
        (Kind::NoiseHidden, "hidden"),
        (Kind::NoiseNoDriver, "no-driver"),
        (Kind::NoiseNoLibrary, "library-missing"),
        (Kind::NoiseCpuBuild, "cpu-build"),
        (Kind::OnCpu, "placed-on-cpu"),
        (Kind::GpuFound, "placed-on-cpu"),
    ];
    let told = causes
        .into_iter()
        .find_map(|(kind, cause)| by_line(kind, cause, v));
    // A TensorFlow with GPU support would have named a GPU, or said why there is none.
    told.or_else(|| by_build(v))
        .or_else(|| by_command(v))
        .or_else(|| by_line(Kind::TensorFlowStarted, "cpu-build", v))
}

fn by_line(kind: Kind, cause: &'static str, v: &View<'_>) -> Option<Reason> {
    let line = v.story.lines.iter().find(|l| l.kind == kind)?;
    Some(Reason {
        cause,
        is_told: !matches!(kind, Kind::GpuFound | Kind::TensorFlowStarted),
        at_s: line.at_s,
        line: Some(line.text.chars().take(200).collect()),
    })
}

/// A build without GPU support, by the libraries that it has loaded.
fn by_build(v: &View<'_>) -> Option<Reason> {
    let loaded = v.story.loaded.as_ref()?;
    (loaded.gpu == Some(false)).then_some(Reason {
        cause: "cpu-build",
        is_told: false,
        at_s: loaded.at_s,
        line: None,
    })
}

fn by_command(v: &View<'_>) -> Option<Reason> {
    let hidden = v
        .facts
        .visible_devices
        .as_deref()
        .is_some_and(|d| d.is_empty() || d == "-1");
    let words = &v.facts.argv;
    let on_cpu = words.iter().any(|w| {
        [
            "--device=cpu",
            "--no-cuda",
            "--no_cuda",
            "--cpu",
            "--accelerator=cpu",
        ]
        .contains(&w.as_str())
    }) || words
        .windows(2)
        .any(|w| ["--device", "--accelerator"].contains(&w[0].as_str()) && w[1] == "cpu");
    let cause = match (hidden, on_cpu) {
        (true, _) => "hidden",
        (false, true) => "placed-on-cpu",
        (false, false) => return None,
    };
    Some(Reason {
        cause,
        is_told: false,
        at_s: 0.0,
        line: None,
    })
}

fn advice(cause: &str, framework: Option<&str>) -> String {
    let install = match framework {
        Some("tensorflow") => "`pip install 'tensorflow[and-cuda]'`",
        Some("pytorch") => {
            "install PyTorch from the CUDA index (`pip install torch --index-url https://download.pytorch.org/whl/cu126`)"
        }
        Some("jax") => "`pip install 'jax[cuda12]'`",
        _ => "install the build of the framework with GPU support",
    };
    match cause {
        "cpu-build" => format!("The installed library has no GPU support: {install}."),
        "no-driver" => "The program finds no NVIDIA driver: on the host check `nvidia-smi`; in a container start it with `--gpus all`; reload nvidia_uvm if cuInit says 999.".to_owned(),
        "library-missing" => format!("CUDA libraries can't be loaded, so the CPU is used: {install}, with matching versions."),
        "version-mismatch" => "The driver's kernel module and its library differ: reboot after a driver upgrade, or use the container's matching driver.".to_owned(),
        "hidden" => "CUDA_VISIBLE_DEVICES is empty or names a GPU that isn't there: unset it, or let gpuwatch choose with --gpus.".to_owned(),
        "placed-on-cpu" => "A GPU is there and the program works on the CPU: move model and data (`.to('cuda')`, accelerator='gpu'), or remove tf.device('/CPU:0').".to_owned(),
        _ => format!("No GPU memory is the job's although training goes on: check that the framework sees the GPU (`gpuwatch doctor`), and {install} if not. TF_CPP_MIN_LOG_LEVEL of 2 or more hides TensorFlow's own word on it."),
    }
}
