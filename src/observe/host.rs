//! The machine around the job: cores, waiting for storage, limits, the out-of-memory killer.
//!
//! Owns two looks at the host's and our cgroup's counters and what lies between them. I/O only.

use std::fs;
use std::path::{Path, PathBuf};

use crate::model::{Event, HostSample, Reading, Why};

use super::cgroup::{self, Cgroups};
use super::parse::{self, CpuTimes, Quota};
use super::proc_fs::{Kept, ProcFs, not_understood, why};
use super::rates;

/// Cgroups are moved and their limits changed rarely: how often to look for that.
const LIMITS_EVERY_S: f64 = 5.0;

/// What one tick gave.
#[derive(Clone, Debug, Default)]
pub struct HostTick {
    /// The numbers.
    pub sample: HostSample,
    /// How many processes the out-of-memory killer took so far: of our cgroup where it counts
    /// them, else of the host.
    pub oom_kills: Reading<u64>,
    /// That counter, if it rose since the last tick.
    pub oom_rose: Option<u64>,
}

impl HostTick {
    /// The event of a rise of `oom_kills`.
    pub fn event(&self) -> Option<Event> {
        self.oom_rose.map(|oom_kill| Event::Host { oom_kill })
    }
}

/// Looks at the host.
#[derive(Debug)]
pub struct HostReader {
    fs: ProcFs,
    cgroup_root: PathBuf,
    who: String,
    stat: Kept,
    pressure: Kept,
    cpu: Option<CpuTimes>,
    waited_us: Option<u64>,
    limits: Limits,
    since_limits_s: f64,
    quotas: Vec<(PathBuf, Quota)>,
    oom: Option<(Option<PathBuf>, u64)>,
    begun: bool,
}

/// What was found out about our cgroups lately.
#[derive(Debug, Default)]
struct Limits {
    memory_mib: Reading<f64>,
    with_quota: Vec<PathBuf>,
    shows_cpu: bool,
    oom_file: Option<PathBuf>,
}

impl HostReader {
    /// The host of `/proc` and `/sys/fs/cgroup` (or of what imitates them). `process` is whose
    /// cgroups count: our own, which the job shares, or those of a process that we attach to.
    pub fn new(fs: ProcFs, cgroup_root: impl Into<PathBuf>, process: Option<u32>) -> Self {
        Self {
            fs,
            cgroup_root: cgroup_root.into(),
            who: process.map_or_else(|| "self".to_owned(), |pid| pid.to_string()),
            stat: Kept::default(),
            pressure: Kept::default(),
            cpu: None,
            waited_us: None,
            limits: Limits::default(),
            since_limits_s: 0.0,
            quotas: Vec::new(),
            oom: None,
            begun: false,
        }
    }

    /// Looks, `elapsed_s` (monotonic seconds) after the last tick.
    pub fn tick(&mut self, elapsed_s: f64) -> HostTick {
        self.since_limits_s += elapsed_s;
        if !std::mem::replace(&mut self.begun, true) || self.since_limits_s >= LIMITS_EVERY_S {
            self.since_limits_s = 0.0;
            self.limits = self.find_limits();
        }
        let (oom_kills, oom_rose) = self.oom();
        HostTick {
            sample: HostSample {
                cpu_pct: self.cpu_pct(),
                io_pressure_pct: self.io_pressure_pct(elapsed_s),
                cpu_throttled_pct: self.throttled_pct(),
                mem_limit_mib: self.limits.memory_mib.clone(),
            },
            oom_kills,
            oom_rose,
        }
    }

    fn cpu_pct(&mut self) -> Reading<f64> {
        let times = self
            .stat
            .read(&mut self.fs, true, format_args!("stat"))
            .and_then(|text| parse::cpu_times(text).ok_or_else(not_understood));
        match times {
            Ok(now) => match self.cpu.replace(now) {
                Some(before) => rates::busy_pct(before, now),
                None => Reading::Missing(Why::NotYet),
            },
            Err(error) => Reading::Missing(why(&error)),
        }
    }

    fn io_pressure_pct(&mut self, elapsed_s: f64) -> Reading<f64> {
        let waited = self
            .pressure
            .read(&mut self.fs, true, format_args!("pressure/io"))
            .and_then(|text| parse::pressure_some_us(text).ok_or_else(not_understood));
        match waited {
            Ok(now) => match self.waited_us.replace(now) {
                Some(before) => rates::time_share_pct(before, now, elapsed_s),
                None => Reading::Missing(Why::NotYet),
            },
            Err(error) => Reading::Missing(why(&error)),
        }
    }

    /// The most that any level with a quota was held back: each of them holds the job.
    fn throttled_pct(&mut self) -> Reading<f64> {
        if self.limits.with_quota.is_empty() {
            self.quotas.clear();
            return if self.limits.shows_cpu {
                Reading::Value(0.0)
            } else {
                Reading::Missing(Why::NotSupported)
            };
        }
        let mut looked = Vec::with_capacity(self.limits.with_quota.len());
        let mut worst = Reading::Missing(Why::NotYet);
        for level in &self.limits.with_quota {
            let now = match cgroup::quota(level) {
                Ok(now) => now,
                Err(error) => return Reading::Missing(why(&error)),
            };
            if let Some((_, before)) = self.quotas.iter().find(|(known, _)| known == level) {
                let share = rates::throttled_pct(*before, now);
                worst = Reading::Value(worst.get().map_or(share, |worst: f64| worst.max(share)));
            }
            looked.push((level.clone(), now));
        }
        self.quotas = looked;
        worst
    }

    fn oom(&mut self) -> (Reading<u64>, Option<u64>) {
        let file = self.limits.oom_file.clone();
        let counted = if let Some(path) = &file {
            fs::read(path).map(|text| parse::keyed(&text, b"oom_kill"))
        } else {
            let text = self.fs.read(format_args!("vmstat"));
            text.map(|text| parse::keyed(text, b"oom_kill"))
        };
        match counted {
            Ok(Some(now)) => {
                let before = self.oom.replace((file.clone(), now));
                // Another file counts something else: its first number is no rise.
                let rose = before.is_some_and(|(from, before)| from == file && before < now);
                (Reading::Value(now), rose.then_some(now))
            }
            // Kernels before 4.13 count none.
            Ok(None) => (Reading::Missing(Why::NotSupported), None),
            Err(error) => (Reading::Missing(why(&error)), None),
        }
    }

    fn find_limits(&mut self) -> Limits {
        let groups = Cgroups::of(&mut self.fs, &self.who, &self.cgroup_root);
        Limits {
            memory_mib: self.memory_limit(&groups),
            with_quota: groups.with_quota(),
            shows_cpu: groups.shows_cpu(),
            oom_file: groups.oom_file(),
        }
    }

    fn memory_limit(&mut self, groups: &Cgroups) -> Reading<f64> {
        let total = match self.fs.read(format_args!("meminfo")) {
            Ok(text) => parse::keyed(text, b"MemTotal")
                .map_or(Reading::Missing(Why::Garbage), |kib| {
                    Reading::Value(kib * 1024)
                }),
            Err(error) => Reading::Missing(why(&error)),
        };
        let bytes = match (groups.memory_limit(), total) {
            (Some(limit), Reading::Value(total)) => Reading::Value(limit.min(total)),
            // Version 1 writes a number where there is no limit; without the host's memory to
            // compare, only a plausible one (under 2^53) is believed.
            (Some(limit), Reading::Missing(_)) if limit < 1 << 53 => Reading::Value(limit),
            (_, total) => total,
        };
        bytes.map(|bytes| bytes as f64 / f64::from(1 << 20))
    }
}

/// Where the kernel's cgroups are.
pub fn cgroup_root() -> &'static Path {
    Path::new("/sys/fs/cgroup")
}

#[cfg(test)]
mod tests {
    use super::super::fake::FakeProc;
    use super::*;

    /// A host with 64 GiB, and its cgroups beside its processes.
    fn host() -> FakeProc {
        let fake = FakeProc::new();
        fake.file("meminfo", "MemTotal:       67108864 kB\nMemFree: 1 kB\n");
        fake.file("stat", "cpu  100 0 0 900 0 0 0 0 0 0\n");
        fake.file("pressure/io", "some avg10=0.00 total=1000\nfull total=5\n");
        fake.file("vmstat", "nr_free_pages 5\noom_kill 3\n");
        fake
    }

    fn reader(fake: &FakeProc) -> HostReader {
        HostReader::new(fake.fs(), fake.path("cg"), None)
    }

    #[test]
    fn two_looks_make_a_rate() {
        let fake = host();
        let mut reader = reader(&fake);
        let first = reader.tick(0.0).sample;
        assert_eq!(first.cpu_pct, Reading::Missing(Why::NotYet));
        assert_eq!(first.io_pressure_pct, Reading::Missing(Why::NotYet));
        assert_eq!(first.cpu_throttled_pct, Reading::Missing(Why::NotSupported));
        assert_eq!(first.mem_limit_mib, Reading::Value(65_536.0));
        fake.file("stat", "cpu  200 0 50 950 0 0 0 0 0 0\n");
        fake.file("pressure/io", "some avg10=0.00 total=501000\n");
        let second = reader.tick(2.0).sample;
        assert_eq!(second.cpu_pct, Reading::Value(75.0));
        assert_eq!(second.io_pressure_pct, Reading::Value(25.0));
    }

    #[test]
    fn a_kernel_without_pressure_says_so() {
        let fake = host();
        std::fs::remove_dir_all(fake.path("pressure")).unwrap();
        let sample = reader(&fake).tick(1.0).sample;
        assert_eq!(sample.io_pressure_pct, Reading::Missing(Why::NotSupported));
    }

    #[test]
    fn the_smallest_limit_on_the_way_up_is_in_force() {
        let fake = host();
        fake.file("self/cgroup", "0::/slurm/job7/step0\n");
        fake.file("cg/slurm/job7/step0/memory.max", "max\n");
        fake.file("cg/slurm/job7/memory.max", "1073741824\n");
        fake.file("cg/slurm/memory.max", "4294967296\n");
        let mut reader = reader(&fake);
        let limit = reader.tick(0.0).sample.mem_limit_mib;
        assert_eq!(limit, Reading::Value(1024.0));
        fake.file("cg/slurm/memory.max", "536870912\n");
        assert_eq!(reader.tick(1.0).sample.mem_limit_mib, limit);
        let changed = reader.tick(4.0).sample.mem_limit_mib;
        assert_eq!(changed, Reading::Value(512.0));
    }

    #[test]
    fn a_container_sees_its_own_cgroup_at_the_root() {
        for path in ["/", "/docker/5f3a", "/../../kubepods/pod1"] {
            let fake = host();
            fake.file("self/cgroup", &format!("0::{path}\n"));
            fake.file("cg/memory.max", "2147483648\n");
            let limit = reader(&fake).tick(0.0).sample.mem_limit_mib;
            assert_eq!(limit, Reading::Value(2048.0), "{path}");
        }
    }

    #[test]
    fn version_one_counts_too() {
        let fake = host();
        fake.file("self/cgroup", "4:memory:/job\n2:cpu,cpuacct:/job\n0::/\n");
        fake.file("cg/memory/memory.limit_in_bytes", "9223372036854771712\n");
        fake.file("cg/memory/job/memory.limit_in_bytes", "1073741824\n");
        fake.file(
            "cg/memory/job/memory.oom_control",
            "under_oom 0\noom_kill 1\n",
        );
        fake.file("cg/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
        fake.file("cg/cpu,cpuacct/job/cpu.cfs_quota_us", "200000\n");
        let stat = "cg/cpu,cpuacct/job/cpu.stat";
        fake.file(stat, "nr_periods 10\nnr_throttled 0\nthrottled_time 0\n");
        let mut reader = reader(&fake);
        let first = reader.tick(0.0);
        assert_eq!(first.sample.mem_limit_mib, Reading::Value(1024.0));
        assert_eq!(
            first.sample.cpu_throttled_pct,
            Reading::Missing(Why::NotYet)
        );
        assert_eq!(first.oom_kills, Reading::Value(1));
        fake.file(stat, "nr_periods 20\nnr_throttled 5\nthrottled_time 9\n");
        let second = reader.tick(1.0).sample;
        assert_eq!(second.cpu_throttled_pct, Reading::Value(50.0));
    }

    #[test]
    fn without_a_quota_nothing_is_held_back() {
        let fake = host();
        fake.file("self/cgroup", "0::/a\n");
        fake.file("cg/a/cpu.max", "max 100000\n");
        let sample = reader(&fake).tick(0.0).sample;
        assert_eq!(sample.cpu_throttled_pct, Reading::Value(0.0));
    }

    #[test]
    fn the_worst_level_with_a_quota_counts() {
        let fake = host();
        fake.file("self/cgroup", "0::/a/b\n");
        fake.file("cg/a/b/cpu.max", "50000 100000\n");
        fake.file("cg/a/cpu.max", "90000 100000\n");
        fake.file("cg/a/b/cpu.stat", "nr_periods 0\nnr_throttled 0\n");
        fake.file("cg/a/cpu.stat", "nr_periods 0\nnr_throttled 0\n");
        let mut reader = reader(&fake);
        reader.tick(0.0);
        fake.file("cg/a/b/cpu.stat", "nr_periods 10\nnr_throttled 1\n");
        fake.file("cg/a/cpu.stat", "nr_periods 10\nnr_throttled 9\n");
        let sample = reader.tick(1.0).sample;
        assert_eq!(sample.cpu_throttled_pct, Reading::Value(90.0));
    }

    #[test]
    fn a_rise_of_the_killers_counter_is_an_event() {
        let fake = host();
        let mut reader = reader(&fake);
        assert_eq!(reader.tick(0.0).event(), None);
        assert_eq!(reader.tick(1.0).event(), None);
        fake.file("vmstat", "oom_kill 5\n");
        assert_eq!(reader.tick(1.0).event(), Some(Event::Host { oom_kill: 5 }));
        // Our own cgroup comes into sight: its count is another one.
        fake.file("self/cgroup", "0::/a\n");
        fake.file("cg/a/memory.events", "oom 9\noom_kill 9\n");
        assert_eq!(reader.tick(5.0).event(), None);
        fake.file("cg/a/memory.events", "oom 9\noom_kill 10\n");
        assert_eq!(reader.tick(1.0).event(), Some(Event::Host { oom_kill: 10 }));
    }
}
