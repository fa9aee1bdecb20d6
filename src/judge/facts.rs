//! What is known of a job before anything is judged: what `run.json` says.

use crate::model::{GpuInfo, RunRecord};

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
}

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
        }
    }

    /// The power limit of a GPU, W.
    pub fn power_limit_w(&self, index: u32) -> Option<f64> {
        let gpu = self.gpus.iter().find(|g| g.index == index)?;
        gpu.power_limit_w
    }

    /// Whether any word of the command holds this text.
    pub fn command_has(&self, text: &str) -> bool {
        self.argv.iter().any(|word| word.contains(text))
    }
}
