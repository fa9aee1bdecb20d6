//! From processes to the job's numbers.
//!
//! Owns the sums of one tick. Pure. A sum that lacks a part is missing, for the part's reason;
//! a process of which only one look was had adds nothing to what needs two.

use crate::model::{JobSample, Reading, Why};

use super::parse::Statm;
use super::process::{Gains, Memory, Process, ProcessState};
use super::rates;

/// Bytes of a MiB.
const MIB: f64 = 1_048_576.0;

/// In what this machine's kernel counts.
#[derive(Clone, Copy, Debug)]
pub struct Units {
    /// Clock ticks of a second of CPU time.
    pub ticks_per_s: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
}

/// A sum, or why there is none.
#[derive(Debug, Default)]
struct Sum {
    total: u64,
    missing: Option<Why>,
}

impl Sum {
    fn add(&mut self, part: Reading<u64>) {
        match part {
            Reading::Value(n) => self.total += n,
            Reading::Missing(why) => self.missing = Some(why),
        }
    }

    fn reading(&self) -> Reading<u64> {
        self.missing
            .clone()
            .map_or(Reading::Value(self.total), Reading::Missing)
    }
}

/// The sums of one tick.
#[derive(Debug, Default)]
pub struct Totals {
    by_call: bool,
    first: bool,
    states: [u32; 5],
    cpu_ticks: Sum,
    /// CPU ticks of each process that gained any: who was busy depends on the tick's length.
    each: Vec<u64>,
    main_ticks: Option<u64>,
    majflt: Sum,
    rss_pages: Sum,
    anon_pages: Sum,
    shmem_kib: Sum,
    read: Sum,
    written: Sum,
    /// Processes with two looks, and with one.
    compared: u32,
    met: u32,
}

impl Totals {
    /// Nothing yet. `by_call`: bytes are counted as they were read and written by call, because
    /// the job works on a file system that storage counters don't see. `first`: there was no
    /// tick before this one.
    pub fn new(by_call: bool, first: bool) -> Self {
        Self {
            by_call,
            first,
            ..Self::default()
        }
    }

    /// Adds a process and what it did since the last tick.
    pub fn add(&mut self, process: &Process, gains: Option<&Gains>) {
        let slot = match process.state {
            ProcessState::Running => 0,
            ProcessState::Sleeping => 1,
            ProcessState::Disk => 2,
            ProcessState::Stopped => 3,
            ProcessState::Zombie => 4,
        };
        if let Some(count) = self.states.get_mut(slot) {
            *count += 1;
        }
        if !process.is_zombie() {
            self.add_memory(&process.memory);
        }
        if let Some(why) = &process.unread {
            self.cpu_ticks.add(Reading::Missing(why.clone()));
            self.majflt.add(Reading::Missing(why.clone()));
        }
        let Some(gains) = gains else {
            self.met += 1;
            return;
        };
        self.compared += 1;
        self.cpu_ticks.add(Reading::Value(gains.cpu_ticks));
        self.each.push(gains.cpu_ticks);
        self.majflt.add(Reading::Value(gains.majflt));
        let by_call = self.by_call;
        // Looked at for the first time this tick: the next one has both ends.
        if gains.io.why() != Some(&Why::NotYet) {
            let (read, written) = (gains.io.clone(), gains.io.clone());
            self.read
                .add(read.map(|io| if by_call { io.rchar } else { io.read_bytes }));
            self.written
                .add(written.map(|io| if by_call { io.wchar } else { io.write_bytes }));
        }
    }

    /// Says that the process added last is the main one.
    pub fn main(&mut self, gains: Option<&Gains>) {
        self.main_ticks = gains.map(|gains| gains.cpu_ticks);
    }

    fn add_memory(&mut self, memory: &Reading<Memory>) {
        match memory {
            Reading::Value(memory) => {
                let Statm { resident, shared } = memory.pages;
                self.rss_pages.add(Reading::Value(resident));
                let anon = resident.saturating_sub(shared);
                self.anon_pages.add(Reading::Value(anon));
                self.shmem_kib.add(memory.shmem_kib.clone());
            }
            Reading::Missing(why) => {
                for sum in [
                    &mut self.rss_pages,
                    &mut self.anon_pages,
                    &mut self.shmem_kib,
                ] {
                    sum.add(Reading::Missing(why.clone()));
                }
            }
        }
    }

    /// The job's sample, without `forks`.
    pub fn sample(&self, elapsed_s: f64, units: Units) -> JobSample {
        let [run, sleep, disk, stopped, zombie] = self.states;
        // Nobody could be compared with the last tick.
        let nothing_yet = self.first || (self.compared == 0 && self.met > 0);
        let rate = |sum: &Sum| {
            if nothing_yet {
                Reading::Missing(Why::NotYet)
            } else {
                sum.reading()
            }
        };
        let per_second = |reading: Reading<u64>, f: &dyn Fn(u64) -> Reading<f64>| match reading {
            Reading::Value(n) => f(n),
            Reading::Missing(why) => Reading::Missing(why),
        };
        let cores = |ticks| rates::cores(ticks, units.ticks_per_s, elapsed_s);
        let mb_s = |bytes| rates::mb_per_second(bytes, elapsed_s);
        let mib = |sum: &Sum, unit: u64| sum.reading().map(|n| (n * unit) as f64 / MIB);
        let (page, kib) = (units.page_bytes, 1024);
        JobSample {
            procs: Reading::Value(run + sleep + disk + stopped),
            n_run: Reading::Value(run),
            n_sleep: Reading::Value(sleep),
            n_disk: Reading::Value(disk),
            n_zombie: Reading::Value(zombie),
            n_stopped: Reading::Value(stopped),
            n_busy: rate(&self.cpu_ticks).map(|_| {
                let busy =
                    |ticks: &&u64| cores(**ticks).get().is_some_and(|c| c > rates::BUSY_CORES);
                self.each.iter().filter(busy).count() as u32
            }),
            cpu_cores: per_second(rate(&self.cpu_ticks), &cores),
            main_cores: per_second(Reading::from(self.main_ticks), &cores),
            rss_mib: mib(&self.rss_pages, page),
            anon_mib: mib(&self.anon_pages, page),
            shmem_mib: mib(&self.shmem_kib, kib),
            read_mb_s: per_second(rate(&self.read), &mb_s),
            write_mb_s: per_second(rate(&self.written), &mb_s),
            majflt_s: per_second(rate(&self.majflt), &|n| {
                rates::per_second(n as f64, elapsed_s)
            }),
            forks: Reading::default(),
        }
    }
}
