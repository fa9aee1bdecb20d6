//! The values behind the names of `model::names`, as they are now.

use crate::judge::finding::Book;
use crate::judge::view::View;
use crate::model::{GpuSample, Reading, Sample};

/// The value of a name, in the unit that `model::names` gives it.
pub fn value(name: &str, sample: &Sample, v: &View<'_>, book: &Book) -> Option<f64> {
    let (job, host, progress) = (&sample.job, &sample.host, &sample.progress);
    match name {
        _ if name.starts_with("gpu.") => of_gpus(name, &sample.gpus),
        "job.mem" => sum(sample.job_mem_mib.iter().map(Reading::get)),
        "job.mem.pct" => {
            let held = sample.job_mem_mib.iter().map(Reading::get);
            let of = sample.gpus.iter().map(|g| g.mem_total_mib.get());
            most(held.zip(of).map(|(held, of)| share(held?, of?)))
        }
        "job.sm" => mean(sample.job_sm_pct.iter().map(Reading::get)),
        "job.cpu" => job.cpu_cores.get(),
        "job.rss" => job.rss_mib.get(),
        "job.procs" => job.procs.get().map(f64::from),
        "job.read" => job.read_mb_s.get(),
        "job.write" => job.write_mb_s.get(),
        "host.cpu" => host.cpu_pct.get(),
        "host.io_pressure" => host.io_pressure_pct.get(),
        "progress.age" => v.s.advances.begun.then(|| v.s.progress_age()),
        "progress.rate" => progress.rate,
        "progress.epoch" => progress.epoch,
        "progress.step" => progress.step.map(|s| s as f64),
        "progress.loss" => progress.loss.map(|l| l.0),
        "progress.percent" => progress.percent,
        "progress.overall" => progress.overall_pct,
        "progress.eta" => progress.eta_s,
        // Nobody hears what a job prints that a patrol found.
        "out.age" => (!v.facts.unheard).then_some(v.s.now.own_s - v.s.printed.own_s),
        "run.age" => Some(v.s.now.own_s),
        _ => {
            let finding = name.strip_prefix("finding.")?.replace('_', "-");
            Some(f64::from(u8::from(book.holds(&finding))))
        }
    }
}

fn of_gpus(name: &str, gpus: &[GpuSample]) -> Option<f64> {
    let util = gpus.iter().map(|g| g.util_pct.get());
    let power = gpus.iter().map(|g| g.power_w.get());
    match name {
        "gpu.util" => mean(util),
        "gpu.util.min" => least(util),
        "gpu.util.max" => most(util),
        "gpu.mem" => sum(gpus.iter().map(|g| g.mem_used_mib.get())),
        "gpu.mem.pct" => {
            let used = |g: &GpuSample| share(g.mem_used_mib.get()?, g.mem_total_mib.get()?);
            most(gpus.iter().map(used))
        }
        "gpu.power" => sum(power),
        "gpu.power.pct" => share(
            sum(power)?,
            sum(gpus.iter().map(|g| g.power_limit_w.get()))?,
        ),
        "gpu.temp" => most(gpus.iter().map(|g| g.temp_c.get())),
        "gpu.clock" => least(gpus.iter().map(|g| g.sm_clock_mhz.get())),
        "gpu.pcie" => sum(gpus.iter().map(|g| g.pcie_mb_s.get())),
        _ => None,
    }
}

/// How much of something that is, %.
fn share(part: f64, of: f64) -> Option<f64> {
    (of > 0.0).then(|| 100.0 * part / of)
}

/// The greatest of those that are told.
fn most(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().reduce(f64::max)
}

/// The least of those that are told.
fn least(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().reduce(f64::min)
}

/// Together; missing where nothing or not everything is told.
fn sum(mut values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let first = values.next()??;
    values.try_fold(first, |sum, value| Some(sum + value?))
}

/// The mean of those that are told.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let (sum, n) = values
        .flatten()
        .fold((0.0, 0_u32), |(sum, n), value| (sum + value, n + 1));
    (n > 0).then(|| sum / f64::from(n))
}
