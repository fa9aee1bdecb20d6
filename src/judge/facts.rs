//! What is known of a job before anything is judged: what `run.json` says.

use crate::model::{GpuInfo, GpuSample, Origin, RunRecord};

/// The facts. Everything may be missing; what a sample says goes before it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobFacts {
    /// The watched GPUs, with power limits and slowdown temperatures.
    pub gpus: Vec<GpuInfo>,
    /// `CUDA_VISIBLE_DEVICES` as we set it for the command.
    pub visible_devices: Option<String>,
    /// The framework, where no event tells it.
    pub framework: Option<String>,
    /// The command.
    pub argv: Vec<String>,
    /// The main process.
    pub pid: Option<u32>,
    /// How many ranks the whole job has, on all machines.
    pub world: Option<u32>,
    /// Whether this run is one rank of several that were started elsewhere.
    pub local_rank: Option<u32>,
    /// Nobody hears what the job prints: a patrol found it.
    pub unheard: bool,
    /// The machine's main memory, MiB: a limit below it is a cgroup's.
    pub host_mem_mib: Option<f64>,
    /// This is no job: what is judged is the machine as a patrol sees it.
    pub machine: bool,
}

/// Names and words that tell of a notebook.
pub const NOTEBOOKS: [&str; 3] = ["ipykernel", "jupyter", "ipython"];

impl JobFacts {
    /// As the record has them.
    pub fn of(record: &RunRecord) -> Self {
        Self {
            gpus: record.gpus.clone(),
            visible_devices: record
                .env
                .get("CUDA_VISIBLE_DEVICES")
                .map(|set| set.value.clone()),
            framework: record.framework.clone(),
            argv: record.argv.clone(),
            pid: record.pid,
            world: record.job.world,
            local_rank: record.job.local_rank,
            unheard: record.origin.is_some(),
            host_mem_mib: record.host_mem_mib,
            machine: record.origin == Some(Origin::Machine),
        }
    }

    /// The power limit of a GPU, W.
    pub fn power_limit_w(&self, index: u32) -> Option<f64> {
        let gpu = self.gpus.iter().find(|g| g.index == index)?;
        gpu.power_limit_w
    }

    /// Where the hardware slows a GPU down, degrees Celsius.
    pub fn slowdown_c(&self, index: u32) -> Option<f64> {
        let gpu = self.gpus.iter().find(|g| g.index == index)?;
        gpu.slowdown_c.map(f64::from)
    }

    /// A device's memory, MiB.
    pub fn memory_mib(&self, gpu: &GpuSample) -> Option<f64> {
        let known = self.gpus.iter().find(|g| gpu.is_of(g))?;
        known.memory_mib.map(|mib| mib as f64)
    }

    /// A device's product name.
    pub fn product(&self, index: u32) -> Option<&str> {
        let gpu = self.gpus.iter().find(|g| g.index == index)?;
        gpu.name.as_deref()
    }

    /// Whether any word of the command holds this text.
    pub fn command_has(&self, text: &str) -> bool {
        self.argv.iter().any(|word| word.contains(text))
    }

    /// Whether a person works at it: a notebook, or an interpreter without a program.
    pub fn is_interactive(&self) -> bool {
        NOTEBOOKS.iter().any(|name| self.command_has(name)) || self.is_bare_interpreter()
    }

    fn is_bare_interpreter(&self) -> bool {
        let Some((program, options)) = self.argv.split_first() else {
            return false;
        };
        let name = program.rsplit('/').next().unwrap_or_default();
        let version = name.strip_prefix("python").or(name.strip_prefix("pypy"));
        let versioned = |v: &str| v.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        // Words that name a program, and options that do (`-c`, `-m`), make it a program's.
        let plain = |word: &String| {
            word.strip_prefix('-')
                .is_some_and(|flags| !flags.is_empty() && !flags.contains(['c', 'm']))
        };
        let asked = options.iter().any(|word| word == "-i");
        version.is_some_and(versioned) && (asked || options.iter().all(plain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_works_at_a_notebook_or_at_an_interpreter_without_a_program() {
        for (command, wanted) in [
            ("python3", true),
            ("/usr/bin/python3.12 -q", true),
            ("python -i train.py", true),
            ("python -m ipykernel_launcher -f k.json", true),
            ("/opt/venv/bin/python /opt/venv/bin/jupyter-lab", true),
            ("python train.py", false),
            ("python -u train.py", false),
            ("python3 -c pass", false),
            ("python -m torch.distributed.run t.py", false),
            ("pythonista", false),
            ("", false),
        ] {
            let facts = JobFacts {
                argv: command.split_whitespace().map(str::to_owned).collect(),
                ..JobFacts::default()
            };
            assert_eq!(facts.is_interactive(), wanted, "{command}");
        }
    }
}
