//! The machine as something that is judged: its job is whatever holds GPU memory.
//!
//! Owns what of a look explains the memory in use. Pure but for what it hands on.

use crate::model::{GpuInfo, GpuProcess, GpuSample, Reading, Sample, Stamp, Why};

/// The sample of the machine. `whole`: whether the driver's lists leave nobody out; in a PID
/// namespace they do.
pub fn sample(stamp: &Stamp, devices: &[GpuInfo], gpus: &[GpuSample], whole: bool) -> Sample {
    let explained = |gpu: &GpuSample| {
        let split = devices.iter().any(|d| gpu.is_of(d) && d.mig_mode);
        match &gpu.processes {
            _ if split => Reading::Missing(Why::NotSupported),
            _ if !whole => Reading::Missing(Why::HostPids),
            Reading::Value(list) => sum(list),
            Reading::Missing(why) => Reading::Missing(why.clone()),
        }
    };
    Sample {
        stamp: stamp.clone(),
        job_mem_mib: gpus.iter().map(explained).collect(),
        gpus: gpus.to_vec(),
        ..Sample::default()
    }
}

/// What they hold together; one that isn't told makes it unknown.
fn sum(list: &[GpuProcess]) -> Reading<f64> {
    let mut total = 0.0;
    for process in list {
        match &process.mem_mib {
            Reading::Value(mib) => total += mib,
            Reading::Missing(why) => return Reading::Missing(why.clone()),
        }
    }
    Reading::Value(total)
}

/// Whether memory is in use that is worth watching closely, MiB.
pub fn most_unexplained(sample: &Sample) -> f64 {
    let rest = |(i, gpu): (usize, &GpuSample)| {
        let held = sample.job_mem_mib.get(i)?.get()?;
        Some(gpu.mem_used_mib.get()? - held)
    };
    let rests = sample.gpus.iter().enumerate().filter_map(rest);
    rests.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Input, JobFacts, Judge};
    use crate::model::{FindingState, JudgeSettings};

    fn gpu(index: u32, used: f64, processes: Reading<Vec<GpuProcess>>) -> GpuSample {
        GpuSample {
            index,
            mem_used_mib: Reading::Value(used),
            processes,
            ..GpuSample::default()
        }
    }

    fn holder(mem_mib: Reading<f64>) -> GpuProcess {
        GpuProcess {
            pid: 7,
            mem_mib,
            sm_pct: Reading::default(),
            compute: true,
            mps_server: false,
        }
    }

    /// What is said over ten minutes of this, and an hour later without it.
    fn said(gpu: &GpuSample, whole: bool) -> Vec<(FindingState, f64)> {
        let facts = JobFacts {
            machine: true,
            ..JobFacts::default()
        };
        let mut judge = Judge::new(JudgeSettings::default(), Vec::new(), facts);
        let free = super::tests::gpu(gpu.index, 0.0, Reading::Value(Vec::new()));
        let mut said = Vec::new();
        for i in 0..130 {
            let stamp = Stamp {
                time: String::new(),
                elapsed_s: f64::from(i) * 5.0,
            };
            let gpus = [if i < 120 { gpu } else { &free }.clone()];
            let sample = sample(&stamp, &[], &gpus, whole);
            let found = judge.step(Input::Sample(&sample));
            said.extend(found.into_iter().map(|f| (f.state, stamp.elapsed_s)));
        }
        said
    }

    #[test]
    fn memory_that_nobody_explains_is_said_and_what_isn_t_told_is_not() {
        use FindingState::{Cleared, Raised};
        let list = |mib: f64| Reading::Value(vec![holder(Reading::Value(mib))]);
        let nobody = Reading::Value(Vec::new());
        let found = [(Raised, 60.0), (Cleared, 600.0)];
        assert_eq!(said(&gpu(0, 9000.0, nobody.clone()), true), found);
        assert_eq!(said(&gpu(1, 9000.0, list(4000.0)), true), found);
        for (what, gpu, whole) in [
            ("held", gpu(0, 9000.0, list(8500.0)), true),
            ("a driver's own", gpu(0, 700.0, nobody.clone()), true),
            ("in a namespace", gpu(0, 9000.0, nobody.clone()), false),
            (
                "no list",
                gpu(0, 9000.0, Reading::Missing(Why::NotSupported)),
                true,
            ),
            (
                "memory of a process unknown",
                gpu(
                    0,
                    9000.0,
                    Reading::Value(vec![holder(Reading::Missing(Why::NotSupported))]),
                ),
                true,
            ),
        ] {
            assert_eq!(said(&gpu, whole), [], "{what}");
        }
    }

    #[test]
    fn a_gpu_that_is_split_is_explained_by_its_parts_alone() {
        let device = GpuInfo {
            mig_mode: true,
            ..GpuInfo::default()
        };
        let stamp = Stamp::default();
        let gpus = [gpu(0, 9000.0, Reading::Value(Vec::new()))];
        let split = sample(&stamp, &[device], &gpus, true);
        assert!(most_unexplained(&split) <= 0.0);
        assert!(most_unexplained(&sample(&stamp, &[], &gpus, true)) >= 9000.0);
    }
}
