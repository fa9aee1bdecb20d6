//! `gpuwatch gpus`: the GPUs, who holds them, which are free.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::Serialize;
use serde_json::Number;

use super::gpus_table;
use crate::model::{GpuInfo, GpuProcess, GpuSample, Inventory, Reading, Why};
use crate::nvml::client::{self, HelperLink};
use crate::nvml::protocol::{FromHelper, ToHelper, Watched};
use crate::place::choose::{self, Standing};
use crate::place::holder::{Holder, holder};
use crate::place::visible::{Device, visible};

/// How long the driver may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// What was typed.
#[derive(Debug, clap::Args)]
pub struct GpusArgs {
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// Prints the GPUs. Exit code 1 and one line on standard error where there is no driver
/// or it doesn't answer in time.
pub fn run(args: &GpusArgs) -> ExitCode {
    let answer = match ask() {
        Ok(answer) => answer,
        Err(why) => {
            let _ = writeln!(io::stderr(), "gpuwatch: {why}");
            return ExitCode::from(1);
        }
    };
    let document = document(&answer);
    let text = if args.json {
        serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
    } else {
        gpus_table::table(&document)
    };
    // A reader that closed the pipe has what it wanted.
    let _ = io::stdout().write_all(text.as_bytes());
    if let Some(why) = answer.incomplete {
        let _ = writeln!(io::stderr(), "gpuwatch: {why}");
        return ExitCode::from(1);
    }
    ExitCode::SUCCESS
}

/// What the helper said.
struct Answer {
    inventory: Inventory,
    samples: Vec<GpuSample>,
    /// Why there are no readings beside the inventory.
    incomplete: Option<String>,
}

fn ask() -> Result<Answer, String> {
    let (mut link, _child) =
        client::spawn().map_err(|e| format!("can't start the process that reads the GPUs: {e}"))?;
    let deadline = Instant::now() + PATIENCE;
    let mut inventory = None;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return late(inventory);
        }
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let _ = poll(&mut [PollFd::new(link.as_fd(), PollFlags::POLLIN)], timeout);
        let messages = link
            .receive()
            .map_err(|_| "the process that reads the GPUs ended early".to_owned())?;
        for message in messages {
            match message {
                FromHelper::Inventory(found) => {
                    watch_all(&mut link);
                    inventory = Some(found);
                }
                FromHelper::Failed { why } => return Err(why),
                // Whoever waits no longer than a hang takes to be noticed sees it by himself.
                FromHelper::Stuck { .. } | FromHelper::Unstuck | FromHelper::Xid { .. } => {}
                FromHelper::Tick { gpus, .. } => {
                    let _ = link.send(&ToHelper::Bye);
                    return Ok(Answer {
                        inventory: inventory.unwrap_or_default(),
                        samples: gpus,
                        incomplete: None,
                    });
                }
            }
        }
    }
}

/// One tick is all that is wanted.
fn watch_all(link: &mut HelperLink) {
    let _ = link.send(&ToHelper::Watch {
        gpus: Watched::All,
        interval_ms: 60_000,
    });
}

fn late(inventory: Option<Inventory>) -> Result<Answer, String> {
    let nothing = |what| {
        format!(
            "the NVIDIA driver doesn't answer: no {what} after {} s",
            PATIENCE.as_secs()
        )
    };
    let inventory = inventory.ok_or_else(|| nothing("GPUs"))?;
    Ok(Answer {
        inventory,
        samples: Vec::new(),
        incomplete: Some(nothing("readings")),
    })
}

/// The document of `--json`.
#[derive(Debug, Serialize)]
pub struct Document {
    schema: u32,
    /// Driver version.
    pub driver: Option<String>,
    /// The newest CUDA that it supports.
    pub cuda: Option<String>,
    /// By NVML index.
    pub gpus: Vec<Gpu>,
}

/// One GPU of the document; null is a reading that there isn't.
#[derive(Debug, Serialize)]
pub struct Gpu {
    /// NVML's.
    pub index: u32,
    /// CUDA's for a program started here with `CUDA_DEVICE_ORDER=PCI_BUS_ID`; null: hidden from it.
    pub cuda_index: Option<usize>,
    /// `GPU-...`
    pub uuid: Option<String>,
    /// The product.
    pub name: Option<String>,
    /// %
    pub util_pct: Option<Number>,
    /// MiB
    pub mem_used_mib: Option<Number>,
    /// MiB
    pub mem_total_mib: Option<Number>,
    /// °C
    pub temp_c: Option<Number>,
    /// W
    pub power_w: Option<Number>,
    /// `free`, `busy`, `lost`, or `unknown` where too little can be read.
    pub state: &'static str,
    /// Who claimed it.
    pub claim: Option<Claim>,
    /// Compute and graphics processes.
    pub processes: Vec<Process>,
}

/// A claim of another run.
#[derive(Debug, Serialize)]
pub struct Claim {
    run: String,
    user: Option<String>,
    since: Option<String>,
}

/// A process on a GPU.
#[derive(Debug, Serialize)]
pub struct Process {
    /// Its PID.
    pub pid: u32,
    /// Its user.
    pub user: Option<String>,
    /// Its command line.
    pub command: Option<String>,
    /// MiB on this GPU.
    pub mem_mib: Option<Number>,
    /// % of SM time.
    pub sm_pct: Option<Number>,
    /// When it was started.
    pub since: Option<String>,
    /// The gpuwatch run that it belongs to.
    pub run: Option<String>,
}

fn document(answer: &Answer) -> Document {
    let inventory = &answer.inventory;
    let setting = std::env::var_os("CUDA_VISIBLE_DEVICES");
    let setting = setting.as_ref().map(|v| v.to_string_lossy());
    let visible = visible(setting.as_deref(), inventory);
    let standings = choose::standings(inventory, &answer.samples, &BTreeSet::new(), &|_| None);
    let gpus = inventory
        .gpus
        .iter()
        .zip(&standings)
        .map(|(info, standing)| {
            let sample = answer.samples.iter().find(|s| s.index == info.index);
            gpu(info, standing, sample, &visible)
        });
    Document {
        schema: 1,
        driver: inventory.driver.clone(),
        cuda: inventory.cuda.clone(),
        gpus: gpus.collect(),
    }
}

fn gpu(info: &GpuInfo, standing: &Standing, sample: Option<&GpuSample>, visible: &[Device]) -> Gpu {
    let unread = GpuSample::default();
    let read = sample.unwrap_or(&unread);
    let processes = read.processes.value().map_or(&[][..], Vec::as_slice);
    Gpu {
        index: info.index,
        cuda_index: visible.iter().position(|d| d.gpu() == Some(info.index)),
        uuid: info.uuid.clone(),
        name: info.name.clone(),
        util_pct: number(&read.util_pct, 1.0),
        mem_used_mib: number(&read.mem_used_mib, 1.0),
        mem_total_mib: number(&read.mem_total_mib, 1.0)
            .or_else(|| info.memory_mib.map(Number::from)),
        temp_c: number(&read.temp_c, 1.0),
        power_w: number(&read.power_w, 10.0),
        state: state(standing, read),
        claim: None,
        processes: processes.iter().map(process).collect(),
    }
}

fn state(standing: &Standing, read: &GpuSample) -> &'static str {
    match (&standing.busy, &read.processes, &read.mem_used_mib) {
        (None, ..) => "free",
        (_, Reading::Missing(Why::Lost), _) => "lost",
        (_, Reading::Missing(_), Reading::Missing(_)) => "unknown",
        _ => "busy",
    }
}

fn process(listed: &GpuProcess) -> Process {
    let Holder {
        user,
        command,
        since,
        ..
    } = holder(Path::new("/proc"), listed.pid);
    Process {
        pid: listed.pid,
        user,
        command,
        mem_mib: number(&listed.mem_mib, 1.0),
        sm_pct: number(&listed.sm_pct, 1.0),
        since: since.and_then(local_time),
        run: None,
    }
}

/// RFC 3339 with milliseconds and the local offset.
fn local_time(seconds: f64) -> Option<String> {
    let at = jiff::Timestamp::from_millisecond((seconds * 1e3) as i64).ok()?;
    let zoned = at.to_zoned_datetime(jiff::tz::TimeZone::system());
    Some(zoned.strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string())
}

/// A reading rounded to whole `1 / parts`; whole numbers are written without a fraction.
fn number(reading: &Reading<f64>, parts: f64) -> Option<Number> {
    let rounded = (reading.get()? * parts).round() / parts;
    if rounded.fract() == 0.0 {
        Some(Number::from(rounded as i64))
    } else {
        Number::from_f64(rounded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_short_as_they_are_exact() {
        let shown = |value, parts| number(&Reading::Value(value), parts).map(|n| n.to_string());
        assert_eq!(shown(95.0, 1.0).as_deref(), Some("95"));
        assert_eq!(shown(310.24, 10.0).as_deref(), Some("310.2"));
        assert_eq!(shown(0.0, 1.0).as_deref(), Some("0"));
        assert_eq!(number(&Reading::Missing(Why::Lost), 1.0), None);
    }
}
