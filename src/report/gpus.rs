//! What the GPUs of a run did at one tick, a line each, for evidence.
//!
//! Owns the words. What isn't known is left out.

use std::fmt::Write as _;

use crate::model::{GpuSample, Reading, Sample};

/// `GPU 0: use 100 %, memory 20480 of 40960 MiB, ... ; on it: 4242 (20480 MiB)`
pub fn lines(sample: &Sample) -> Vec<String> {
    let of_job = |all: &[Reading<f64>], n: usize| all.get(n).and_then(Reading::get);
    let gpus = sample.gpus.iter().enumerate();
    gpus.map(|(n, gpu)| {
        let job_mib = of_job(&sample.job_mem_mib, n);
        let job_sm = of_job(&sample.job_sm_pct, n);
        line(gpu, job_mib, job_sm)
    })
    .collect()
}

fn line(gpu: &GpuSample, job_mib: Option<f64>, job_sm: Option<f64>) -> String {
    let facts = [
        of(gpu.util_pct.get(), |v| format!("use {v:.0} %")),
        of(job_sm, |v| format!("the job's {v:.0} %")),
        of(gpu.mem_util_pct.get(), |v| {
            format!("memory controller {v:.0} %")
        }),
        of(
            gpu.mem_used_mib.get().zip(gpu.mem_total_mib.get()),
            |(used, all)| format!("memory {used:.0} of {all:.0} MiB"),
        ),
        of(job_mib, |v| format!("the job's {v:.0} MiB")),
        of(
            gpu.power_w.get().zip(gpu.power_limit_w.get()),
            |(now, limit)| format!("{now:.0} of {limit:.0} W"),
        ),
        of(gpu.temp_c.get(), |v| format!("{v:.0} C")),
        of(gpu.sm_clock_mhz.get(), |v| format!("{v:.0} MHz")),
        of(gpu.throttle.get(), |v| format!("held back by {}", v.text())),
        of(gpu.pcie_mb_s.get(), |v| format!("PCIe {v:.1} MB/s")),
        of(gpu.ecc_uncorrected_total.get().filter(|n| *n > 0), |n| {
            format!("{n} uncorrected errors of memory")
        }),
        of(gpu.sm_active_pct.get(), |v| format!("SMs active {v:.0} %")),
        of(gpu.tensor_active_pct.get(), |v| {
            format!("tensor cores {v:.0} %")
        }),
    ];
    let known: Vec<String> = facts.into_iter().flatten().collect();
    let mut text = format!("GPU {}: ", gpu.label());
    text.push_str(&if known.is_empty() {
        "nothing is known of it".to_owned()
    } else {
        known.join(", ")
    });
    for (n, one) in gpu.processes.value().into_iter().flatten().enumerate() {
        text.push_str(if n == 0 { "; on it: " } else { ", " });
        let _ = write!(text, "{}", one.pid);
        if let Some(mib) = one.mem_mib.get() {
            let _ = write!(text, " ({mib:.0} MiB)");
        }
    }
    text
}

fn of<T>(value: Option<T>, words: impl Fn(T) -> String) -> Option<String> {
    value.map(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{GpuProcess, Throttle};

    #[test]
    fn what_is_not_known_is_left_out() {
        let value = Reading::Value;
        let process = GpuProcess {
            pid: 42,
            mem_mib: value(20480.0),
            sm_pct: Reading::default(),
            compute: true,
            mps_server: false,
        };
        let known = GpuSample {
            util_pct: value(100.0),
            power_w: value(80.2),
            power_limit_w: value(400.0),
            throttle: Reading::Value(Throttle(1)),
            processes: Reading::Value(vec![process]),
            ..GpuSample::default()
        };
        let unknown = GpuSample {
            index: 1,
            ..GpuSample::default()
        };
        let sample = Sample {
            gpus: vec![known, unknown],
            job_mem_mib: vec![value(20480.0)],
            ..Sample::default()
        };
        assert_eq!(
            lines(&sample),
            [
                "GPU 0: use 100 %, the job's 20480 MiB, 80 of 400 W, held back by gpu_idle; on it: 42 (20480 MiB)",
                "GPU 1: nothing is known of it",
            ]
        );
    }
}
