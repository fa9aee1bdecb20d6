//! How numbers are rounded in `samples.csv`: the one place. Pure.
//!
//! The judge is fed rounded samples, so that a replay of the file finds what it found.

use crate::model::{GpuSample, HostSample, JobSample, Metric, ProgressState, Reading, Sample};

/// Decimals of percentages.
const PCT: i32 = 1;
/// Decimals of MiB.
const MIB: i32 = 1;
/// Decimals of degrees, watts, joules and remaining seconds.
const UNIT: i32 = 1;
/// Decimals of MHz.
const MHZ: i32 = 0;
/// Decimals of 10^6 bytes a second, page faults a second, and cores.
const RATE: i32 = 2;
/// Decimals of elapsed seconds.
const SECONDS: i32 = 3;

/// The sample as it will be read back from `samples.csv`.
///
/// Numbers are rounded, what was displayed (epoch, step, percent, loss, rate) isn't; a
/// reading that is no finite number is missing, and why a reading is missing isn't kept; what
/// has no column (the driver's own counters, the processes) is missing; zeroes have no sign.
pub fn rounded(sample: &Sample) -> Sample {
    let gpus: Vec<GpuSample> = sample.gpus.iter().map(gpu).collect();
    let n = gpus.len();
    let mut stamp = sample.stamp.clone();
    stamp.elapsed_s = finite(stamp.elapsed_s, SECONDS).unwrap_or_default();
    Sample {
        stamp,
        job_mem_mib: per_gpu(&sample.job_mem_mib, n, |r| number(r, MIB)),
        job_sm_pct: per_gpu(&sample.job_sm_pct, n, |r| number(r, PCT)),
        energy_j: per_gpu(&sample.energy_j, n, |r| number(r, UNIT)),
        ecc_uncorrected: per_gpu(&sample.ecc_uncorrected, n, count),
        gpus,
        job: job(&sample.job),
        host: host(&sample.host),
        out_bytes: sample.out_bytes,
        progress: progress(&sample.progress),
    }
}

fn per_gpu<T>(
    list: &[Reading<T>],
    n: usize,
    keep: impl Fn(&Reading<T>) -> Reading<T>,
) -> Vec<Reading<T>> {
    let known = list.iter().map(keep);
    known
        .chain(std::iter::repeat_with(Reading::default))
        .take(n)
        .collect()
}

fn gpu(g: &GpuSample) -> GpuSample {
    GpuSample {
        index: g.index,
        mig: g.mig.clone(),
        util_pct: number(&g.util_pct, PCT),
        mem_util_pct: number(&g.mem_util_pct, PCT),
        mem_used_mib: number(&g.mem_used_mib, MIB),
        mem_total_mib: number(&g.mem_total_mib, MIB),
        temp_c: number(&g.temp_c, UNIT),
        power_w: number(&g.power_w, UNIT),
        power_limit_w: number(&g.power_limit_w, UNIT),
        energy_total_j: Reading::default(),
        sm_clock_mhz: number(&g.sm_clock_mhz, MHZ),
        throttle: g
            .throttle
            .get()
            .and_then(|t| crate::model::Throttle::from_text(&t.text()))
            .into(),
        pcie_mb_s: number(&g.pcie_mb_s, RATE),
        ecc_uncorrected_total: Reading::default(),
        sm_active_pct: number(&g.sm_active_pct, PCT),
        tensor_active_pct: number(&g.tensor_active_pct, PCT),
        dram_active_pct: number(&g.dram_active_pct, PCT),
        processes: Reading::default(),
    }
}

fn job(j: &JobSample) -> JobSample {
    JobSample {
        procs: count(&j.procs),
        n_run: count(&j.n_run),
        n_sleep: count(&j.n_sleep),
        n_disk: count(&j.n_disk),
        n_zombie: count(&j.n_zombie),
        n_stopped: count(&j.n_stopped),
        n_busy: count(&j.n_busy),
        cpu_cores: number(&j.cpu_cores, RATE),
        main_cores: number(&j.main_cores, RATE),
        rss_mib: number(&j.rss_mib, MIB),
        anon_mib: number(&j.anon_mib, MIB),
        shmem_mib: number(&j.shmem_mib, MIB),
        read_mb_s: number(&j.read_mb_s, RATE),
        write_mb_s: number(&j.write_mb_s, RATE),
        majflt_s: number(&j.majflt_s, RATE),
        forks: count(&j.forks),
    }
}

fn host(h: &HostSample) -> HostSample {
    HostSample {
        cpu_pct: number(&h.cpu_pct, PCT),
        io_pressure_pct: number(&h.io_pressure_pct, PCT),
        cpu_throttled_pct: number(&h.cpu_throttled_pct, PCT),
        mem_limit_mib: number(&h.mem_limit_mib, MIB),
    }
}

fn progress(p: &ProgressState) -> ProgressState {
    ProgressState {
        epoch: displayed(p.epoch),
        epochs: displayed(p.epochs),
        step: p.step,
        steps: p.steps,
        percent: displayed(p.percent),
        loss: p.loss.map(|Metric(x)| Metric(x + 0.0)),
        rate: displayed(p.rate),
        overall_pct: p.overall_pct.and_then(|x| finite(x, PCT)),
        eta_s: p.eta_s.and_then(|x| finite(x, UNIT)),
    }
}

fn number(reading: &Reading<f64>, decimals: i32) -> Reading<f64> {
    reading.get().and_then(|x| finite(x, decimals)).into()
}

fn count<T: Copy>(reading: &Reading<T>) -> Reading<T> {
    reading.get().into()
}

fn displayed(x: Option<f64>) -> Option<f64> {
    x.filter(|x| x.is_finite()).map(|x| x + 0.0)
}

/// Rounded to so many decimals; `None` for what is no finite number.
pub(in crate::record) fn finite(x: f64, decimals: i32) -> Option<f64> {
    let scale = 10_f64.powi(decimals);
    let scaled = (x * scale).round();
    // Past the range in which a double has decimals there is nothing to round; adding 0
    // makes a negative zero a plain one.
    let rounded = if scaled.abs() < 9e15 {
        scaled / scale
    } else {
        x
    };
    x.is_finite().then_some(rounded + 0.0)
}
