//! A synthetic run, a second a sample, and what the judge says of it.

use std::time::Duration;

use crate::judge::{Finding, Input, JobFacts, Judge};
use crate::model::{
    Event, Exit, FindingSettings, FindingState, GpuSample, JudgeSettings, Limit, LineSource,
    Logged, Metric, ProcessChange, Reading, Rule, Sample, Stamp,
};

/// A run under construction.
pub struct Run {
    /// The judge.
    pub judge: Judge,
    /// The second that comes.
    pub t: f64,
    /// All that was said, with its time.
    pub said: Vec<(f64, Finding)>,
    step: u64,
    out: u64,
}

/// A job at rest that holds 40 GiB on one GPU of 400 W.
pub fn quiet() -> Sample {
    let mut sample = Sample {
        gpus: vec![GpuSample {
            util_pct: Reading::Value(0.0),
            mem_util_pct: Reading::Value(0.0),
            mem_used_mib: Reading::Value(40_005.0),
            power_w: Reading::Value(70.0),
            power_limit_w: Reading::Value(400.0),
            pcie_mb_s: Reading::Value(0.0),
            ..GpuSample::default()
        }],
        job_mem_mib: vec![Reading::Value(40_000.0)],
        job_sm_pct: vec![Reading::Value(0.0)],
        ..Sample::default()
    };
    let job = &mut sample.job;
    job.procs = Reading::Value(5);
    job.n_run = Reading::Value(0);
    job.n_sleep = Reading::Value(5);
    job.n_disk = Reading::Value(0);
    job.n_zombie = Reading::Value(0);
    job.n_stopped = Reading::Value(0);
    job.cpu_cores = Reading::Value(0.01);
    job.main_cores = Reading::Value(0.01);
    job.rss_mib = Reading::Value(4000.0);
    job.read_mb_s = Reading::Value(0.0);
    job.write_mb_s = Reading::Value(0.0);
    job.forks = Reading::Value(0);
    sample
}

/// The same, at work.
pub fn training() -> Sample {
    let mut sample = quiet();
    let gpu = &mut sample.gpus[0];
    gpu.util_pct = Reading::Value(95.0);
    gpu.mem_util_pct = Reading::Value(45.0);
    gpu.power_w = Reading::Value(310.0);
    gpu.pcie_mb_s = Reading::Value(800.0);
    sample.job_sm_pct = vec![Reading::Value(95.0)];
    sample.job.cpu_cores = Reading::Value(3.0);
    sample.job.n_run = Reading::Value(3);
    sample
}

/// A kernel that waits: all processors at low power, one core in its loop.
pub fn spinning() -> Sample {
    let mut sample = quiet();
    let gpu = &mut sample.gpus[0];
    gpu.util_pct = Reading::Value(100.0);
    gpu.power_w = Reading::Value(90.0);
    sample.job_sm_pct = vec![Reading::Value(100.0)];
    sample.job.cpu_cores = Reading::Value(1.0);
    sample.job.n_run = Reading::Value(1);
    sample
}

/// Nothing on the GPU, so many cores busy.
pub fn on_cpu(cores: f64) -> Sample {
    let mut sample = quiet();
    sample.gpus[0].mem_used_mib = Reading::Value(5.0);
    sample.job_mem_mib = vec![Reading::Value(0.0)];
    sample.job.cpu_cores = Reading::Value(cores);
    sample.job.n_run = Reading::Value(1);
    sample
}

impl Run {
    /// With default settings.
    pub fn new() -> Self {
        Self::with(JudgeSettings::default(), Vec::new())
    }

    /// With these.
    pub fn with(settings: JudgeSettings, rules: Vec<Rule>) -> Self {
        Self {
            judge: Judge::new(settings, rules, JobFacts::default()),
            t: 0.0,
            said: Vec::new(),
            step: 0,
            out: 0,
        }
    }

    /// With one setting.
    pub fn set(name: &str, change: impl FnOnce(&mut FindingSettings)) -> Self {
        let mut settings = FindingSettings::default();
        change(&mut settings);
        Self::with(
            JudgeSettings([(name.to_owned(), settings)].into()),
            Vec::new(),
        )
    }

    /// With `--stall-after`.
    pub fn stall_after(seconds: u64) -> Self {
        Self::set("stalled", |s| {
            s.after = Limit::After(Duration::from_secs(seconds));
        })
    }

    /// With these facts, before anything was seen.
    pub fn facts(&mut self, facts: JobFacts) -> &mut Self {
        self.judge = Judge::new(JudgeSettings::default(), Vec::new(), facts);
        self
    }

    /// So many seconds like this, without progress.
    pub fn go(&mut self, seconds: u32, sample: &Sample) -> &mut Self {
        self.steps(seconds, 0, sample)
    }

    /// So many seconds, with a step every so many.
    pub fn steps(&mut self, seconds: u32, every: u32, sample: &Sample) -> &mut Self {
        for i in 1..=seconds {
            self.t += 1.0;
            if every > 0 && i % every == 0 {
                self.step += 1;
                self.out += 60;
            }
            let mut sample = sample.clone();
            if self.step > 0 {
                sample.progress.step = Some(self.step);
            }
            self.look(sample);
        }
        self
    }

    /// One sample, stamped and with the output so far.
    pub fn look(&mut self, mut sample: Sample) {
        sample.stamp.elapsed_s = self.t;
        sample.out_bytes = self.out;
        let found = self.judge.step(Input::Sample(&sample));
        self.said.extend(found.into_iter().map(|f| (self.t, f)));
    }

    /// Steps with this loss.
    pub fn loss(&mut self, seconds: u32, loss: f64) -> &mut Self {
        let mut sample = training();
        sample.progress.loss = Some(Metric(loss));
        self.steps(seconds, 1, &sample)
    }

    /// An event.
    pub fn event(&mut self, event: Event) -> &mut Self {
        let logged = Logged {
            stamp: Stamp {
                time: String::new(),
                elapsed_s: self.t + 0.5,
            },
            event,
        };
        let found = self.judge.step(Input::Event(&logged));
        let at = logged.stamp.elapsed_s;
        self.said.extend(found.into_iter().map(|f| (at, f)));
        self
    }

    /// A line of output.
    pub fn line(&mut self, text: &str) -> &mut Self {
        self.out += text.len() as u64;
        self.event(Event::Line {
            stream: LineSource::Err,
            text: text.to_owned(),
            file: None,
        })
    }

    /// A change of a process.
    pub fn process(&mut self, pid: u32, change: ProcessChange, on: Option<&str>) -> &mut Self {
        self.process_of(None, pid, change, on)
    }

    /// A change of a process that is this rank.
    pub fn rank(&mut self, rank: u32, change: ProcessChange) -> &mut Self {
        self.process_of(Some(rank), 100 + rank, change, None)
    }

    fn process_of(
        &mut self,
        rank: Option<u32>,
        pid: u32,
        change: ProcessChange,
        on: Option<&str>,
    ) -> &mut Self {
        self.event(Event::Process {
            pid,
            ppid: Some(1),
            name: Some("python".to_owned()),
            rank,
            change,
            on: on.map(str::to_owned),
            code: None,
            signal: None,
        })
    }

    /// The end.
    pub fn finish(&mut self, code: i32) -> &mut Self {
        let exit = Exit {
            code: Some(code),
            signal: None,
        };
        let found = self.judge.finish(&exit, self.t);
        self.said.extend(found.into_iter().map(|f| (self.t, f)));
        self
    }

    /// `name at second` of every alarm that was raised.
    pub fn alarms(&self) -> Vec<String> {
        let alarm = |(_, f): &&(f64, Finding)| {
            f.state == FindingState::Raised && crate::judge::is_alarm(f.severity)
        };
        let alarms = self.said.iter().filter(alarm);
        alarms.map(|(t, f)| format!("{} {t}", f.name)).collect()
    }

    /// States that a finding went through, with their times.
    pub fn life(&self, name: &str) -> Vec<(FindingState, f64)> {
        let of_name = self.said.iter().filter(|(_, f)| f.name == name);
        of_name.map(|(t, f)| (f.state, *t)).collect()
    }

    /// The first word on a finding.
    pub fn first(&self, name: &str) -> &Finding {
        let found = self.said.iter().find(|(_, f)| f.name == name);
        &found
            .unwrap_or_else(|| panic!("no {name}: {:?}", self.said))
            .1
    }
}
