//! What of a GPU is this job's.
//!
//! Pure. A list that was read and has nothing of ours is a true zero; a list that wasn't is
//! no reason to say so.

use std::collections::BTreeSet;

use crate::model::{GpuProcess, GpuSample, Reading, Why};

/// The job's share of one GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// Memory that its processes hold, MiB.
    pub mem_mib: Reading<f64>,
    /// SM time that its processes used since the last look, %.
    pub sm_pct: Reading<f64>,
}

/// The share of the processes `job` in what was read of a GPU.
pub fn share(sample: &GpuSample, job: &BTreeSet<u32>) -> Share {
    let list = sample.processes.value().map_or(&[][..], Vec::as_slice);
    if list.iter().any(|p| p.mps_server && !job.contains(&p.pid)) {
        // Memory that a client is listed with is its own; none listed may be with the server.
        let mem_mib = sum(&sample.processes, job, |p| &p.mem_mib);
        return Share {
            mem_mib: match mem_mib {
                Reading::Value(mib) if mib <= 0.0 => Reading::Missing(Why::Mps),
                other => other,
            },
            sm_pct: Reading::Missing(Why::Mps),
        };
    }
    Share {
        mem_mib: sum(&sample.processes, job, |p| &p.mem_mib),
        // Several processes' samples may add up to more than there is.
        sm_pct: sum(&sample.processes, job, |p| &p.sm_pct).map(|sm| sm.min(100.0)),
    }
}

/// The sum over the job's processes; one that is missing makes the sum missing.
fn sum(
    list: &Reading<Vec<GpuProcess>>,
    job: &BTreeSet<u32>,
    pick: impl Fn(&GpuProcess) -> &Reading<f64>,
) -> Reading<f64> {
    let list = match list {
        Reading::Value(list) => list,
        Reading::Missing(why) => return Reading::Missing(why.clone()),
    };
    let mut total = 0.0;
    for process in list.iter().filter(|p| job.contains(&p.pid)) {
        match pick(process) {
            Reading::Value(v) => total += v,
            Reading::Missing(why) => return Reading::Missing(why.clone()),
        }
    }
    Reading::Value(total)
}

/// How well the watched GPUs tell this job from others: the text of `run.json`.
///
/// `exact`; `device-wide: why` where what a process holds isn't told but nobody else is there,
/// so that the device's readings are the job's; `unknown: why` where neither is known.
/// None where no GPU was read.
pub fn attribution(samples: &[GpuSample], job: &BTreeSet<u32>) -> Option<String> {
    let worst = samples.iter().map(|s| of_one(s, job)).max()?;
    Some(match worst {
        Attribution::Exact => "exact".to_owned(),
        Attribution::DeviceWide(why) => format!("device-wide: {why}"),
        Attribution::Unknown(why) => format!("unknown: {why}"),
    })
}

/// Whether it is settled that the processes on a GPU aren't told. Otherwise a moment without an
/// answer says nothing about who is there.
pub fn is_settled(processes: &Reading<Vec<GpuProcess>>) -> bool {
    use Why::{HostPids, NoPermission, NotSupported};
    matches!(
        processes,
        Reading::Value(_) | Reading::Missing(HostPids | NoPermission | NotSupported)
    )
}

/// From best to worst.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Attribution {
    Exact,
    DeviceWide(String),
    Unknown(String),
}

fn of_one(sample: &GpuSample, job: &BTreeSet<u32>) -> Attribution {
    let list = match &sample.processes {
        Reading::Value(list) => list,
        Reading::Missing(why) => {
            return Attribution::Unknown(format!(
                "who is on GPU {} isn't told ({})",
                sample.label(),
                because(why)
            ));
        }
    };
    if share(sample, job).mem_mib == Reading::Missing(Why::Mps) {
        return Attribution::Unknown(format!(
            "an MPS server on GPU {} holds its clients' memory",
            sample.label()
        ));
    }
    let (ours, others): (Vec<_>, Vec<_>) = list.iter().partition(|p| job.contains(&p.pid));
    let Some(why) = ours.iter().find_map(|p| p.mem_mib.why()) else {
        return Attribution::Exact;
    };
    let said = format!(
        "memory per process isn't told on GPU {} ({})",
        sample.label(),
        because(why)
    );
    if others.iter().any(|p| p.compute) {
        Attribution::Unknown(said + ", and others are on it")
    } else {
        Attribution::DeviceWide(said)
    }
}

fn because(why: &Why) -> String {
    match why {
        Why::NotSupported => "not supported".to_owned(),
        Why::NoPermission => "no permission".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, mem_mib: Reading<f64>, sm: f64) -> GpuProcess {
        GpuProcess {
            pid,
            mem_mib,
            sm_pct: Reading::Value(sm),
            compute: true,
            mps_server: false,
        }
    }

    fn gpu(processes: Reading<Vec<GpuProcess>>) -> GpuSample {
        GpuSample {
            index: 1,
            processes,
            ..GpuSample::default()
        }
    }

    fn ours() -> BTreeSet<u32> {
        BTreeSet::from([1, 2])
    }

    #[test]
    fn nothing_of_ours_is_a_true_zero_and_no_list_is_none() {
        let other = gpu(Reading::Value(vec![process(
            9,
            Reading::Value(500.0),
            50.0,
        )]));
        let zero = Reading::Value(0.0);
        for sample in [other, gpu(Reading::Value(vec![]))] {
            let share = share(&sample, &ours());
            assert_eq!((&share.mem_mib, &share.sm_pct), (&zero, &zero));
        }
        let missing = Reading::Missing(Why::NoPermission);
        let share = share(&gpu(Reading::Missing(Why::NoPermission)), &ours());
        assert_eq!((&share.mem_mib, &share.sm_pct), (&missing, &missing));
    }

    #[test]
    fn ours_adds_up_and_one_unknown_makes_the_sum_unknown() {
        let mut list = vec![
            process(1, Reading::Value(100.0), 70.0),
            process(2, Reading::Value(50.0), 60.0),
            process(9, Reading::Value(500.0), 50.0),
        ];
        let full = share(&gpu(Reading::Value(list.clone())), &ours());
        assert_eq!(full.mem_mib, Reading::Value(150.0));
        assert_eq!(full.sm_pct, Reading::Value(100.0));
        list[1].mem_mib = Reading::Missing(Why::NotSupported);
        let part = share(&gpu(Reading::Value(list)), &ours());
        assert_eq!(part.mem_mib, Reading::Missing(Why::NotSupported));
    }

    #[test]
    fn what_an_mps_server_holds_may_be_the_jobs() {
        let server = GpuProcess {
            mps_server: true,
            ..process(9, Reading::Value(5000.0), 80.0)
        };
        let missing = Reading::Missing(Why::Mps);
        let alone = gpu(Reading::Value(vec![server.clone()]));
        let found = share(&alone, &ours());
        assert_eq!((&found.mem_mib, &found.sm_pct), (&missing, &missing));
        assert_eq!(
            attribution(&[alone], &ours()).as_deref(),
            Some("unknown: an MPS server on GPU 1 holds its clients' memory")
        );
        let client = process(1, Reading::Value(700.0), 0.0);
        let listed = gpu(Reading::Value(vec![client, server]));
        let found = share(&listed, &ours());
        assert_eq!(
            (found.mem_mib, found.sm_pct),
            (Reading::Value(700.0), missing)
        );
        assert_eq!(attribution(&[listed], &ours()).as_deref(), Some("exact"));
    }

    #[test]
    fn attribution_is_as_good_as_the_worst_gpu() {
        let unknown = || Reading::Missing(Why::NotSupported);
        let exact = gpu(Reading::Value(vec![process(1, Reading::Value(1.0), 0.0)]));
        let alone = gpu(Reading::Value(vec![process(1, unknown(), 0.0)]));
        let shared = gpu(Reading::Value(vec![
            process(1, unknown(), 0.0),
            process(9, unknown(), 0.0),
        ]));
        let blind = gpu(Reading::Missing(Why::NoPermission));
        let text = |list: &[&GpuSample]| {
            let list: Vec<_> = list.iter().map(|s| (*s).clone()).collect();
            attribution(&list, &ours()).unwrap_or_default()
        };
        assert_eq!(text(&[]), "");
        assert_eq!(text(&[&exact]), "exact");
        assert_eq!(
            text(&[&exact, &alone]),
            "device-wide: memory per process isn't told on GPU 1 (not supported)"
        );
        assert_eq!(
            text(&[&shared, &alone]),
            "unknown: memory per process isn't told on GPU 1 (not supported), and others are on it"
        );
        assert_eq!(
            text(&[&exact, &blind]),
            "unknown: who is on GPU 1 isn't told (no permission)"
        );
    }
}
