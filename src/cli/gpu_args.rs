//! Flags of `gpuwatch run` about which GPUs.

use clap::Args;

use crate::model::{GpuChoice, MOST_GPU_MIB, MemLimit, Wait, units};
use crate::plan::resolve::Flags;

/// Those flags.
#[derive(Args)]
pub struct GpuArgs {
    /// Which GPUs: free (all that nobody uses or claims), a count or auto (so many, or one,
    /// claimed for the run), id: and a list of indices, UUIDs or MIG names (those, claimed, though
    /// somebody without a claim may use them, unless --wait is given), none
    /// (CUDA_VISIBLE_DEVICES is left alone and no GPU is watched). By default free, where
    /// CUDA_VISIBLE_DEVICES isn't set already and a driver answers within 3 s; set already, it is
    /// the set that is chosen from
    #[arg(
        long,
        value_name = "WHICH",
        env = "GPUWATCH_GPUS",
        hide_env_values = true,
        help_heading = "Where"
    )]
    gpus: Option<GpuChoice>,

    /// Only GPUs with so much free memory, like 8GiB
    #[arg(long, value_name = "SIZE", value_parser = size, env = "GPUWATCH_MIN_FREE", hide_env_values = true, help_heading = "Where")]
    min_free: Option<f64>,

    /// Only GPUs of this product: a part of its name, in any case, with * for anything
    #[arg(
        long,
        value_name = "PATTERN",
        env = "GPUWATCH_GPU_TYPE",
        hide_env_values = true,
        help_heading = "Where"
    )]
    gpu_type: Option<String>,

    /// Wait for GPUs that can't be had now, so long at most or for ever, in the order in which
    /// runs began to wait
    #[arg(long, value_name = "DURATION", value_parser = wait, num_args = 0..=1, default_missing_value = "", env = "GPUWATCH_WAIT", hide_env_values = true, help_heading = "Where")]
    wait: Option<Wait>,

    /// How much memory of each GPU the command is told to use, like 6GiB or 80%. JAX is told by
    /// a variable, TensorFlow and PyTorch by a start-up hook that is put on PYTHONPATH
    #[arg(
        long,
        value_name = "SIZE|PERCENT",
        env = "GPUWATCH_MEM_LIMIT",
        hide_env_values = true,
        help_heading = "Where"
    )]
    mem_limit: Option<MemLimit>,
}

impl GpuArgs {
    /// Puts them where profiles are resolved.
    pub fn fill(&self, flags: &mut Flags) {
        flags.gpus.clone_from(&self.gpus);
        flags.min_free_mib = self.min_free;
        // A variable that is set to nothing is how scripts take one away.
        flags.gpu_type = self.gpu_type.clone().filter(|t| !t.is_empty());
        flags.wait = self.wait;
        flags.mem_limit = self.mem_limit;
    }
}

fn size(text: &str) -> Result<f64, String> {
    let mib = units::size_mib(text).map_err(|e| e.to_string())?;
    if mib > MOST_GPU_MIB {
        return Err(format!("'{text}' is out of range: no GPU has so much"));
    }
    Ok(mib)
}

/// Nothing is for ever.
fn wait(text: &str) -> Result<Wait, String> {
    match text.trim() {
        "" | "true" => return Ok(Wait::Always),
        "false" => return Ok(Wait::No),
        _ => {}
    }
    let limit = units::duration(text).map_err(|e| e.to_string())?;
    Ok(if limit.is_zero() {
        Wait::No
    } else {
        Wait::For(limit)
    })
}
