//! Activity inside the GPU (GPM, Hopper and later): what "busy" hides.
//!
//! Runs on the NVML thread. Owns the pair of samples that a percentage is taken between.

use std::time::{Duration, Instant};

use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::{GpmSample, gpm_metrics_get};
use nvml_wrapper::{Device, Nvml};

/// From sample to sample. They must be 100 ms apart at least; four calls each are too many
/// for every tick.
pub const EVERY: Duration = Duration::from_millis(4_950);

/// What is asked for, in the order of `Activity`.
const METRICS: [GpmMetricId; 3] = [
    GpmMetricId::SmUtil,
    GpmMetricId::AnyTensorUtil,
    GpmMetricId::DramBwUtil,
];

/// SM, tensor and DRAM activity in percent, or why one isn't there.
pub type Activity = [Result<f64, NvmlError>; 3];

/// Samples of one GPU.
#[derive(Default)]
pub struct Gpm<'n> {
    supported: bool,
    last: Option<(Instant, GpmSample<'n>)>,
}

impl<'n> Gpm<'n> {
    /// Whether it is time for a sample.
    pub fn is_due(&self, now: Instant) -> bool {
        let last = self.last.as_ref();
        last.is_none_or(|(at, _)| now.duration_since(*at) >= EVERY)
    }

    /// The activity since the last sample, of one MIG GPU instance if `part` names it; None at
    /// the first.
    pub fn sample(
        &mut self,
        nvml: &'n Nvml,
        device: &Device<'n>,
        part: Option<u32>,
        now: Instant,
    ) -> Result<Option<Activity>, NvmlError> {
        if !self.supported {
            if !device.gpm_support()? {
                return Err(NvmlError::NotSupported);
            }
            self.supported = true;
        }
        let new = match part {
            Some(gi) => device.gpm_mig_sample(gi)?,
            None => device.gpm_sample()?,
        };
        let Some((_, old)) = self.last.replace((now, new)) else {
            return Ok(None);
        };
        let Some((_, new)) = &self.last else {
            return Ok(None);
        };
        let found = gpm_metrics_get(nvml, &old, new, &METRICS)?;
        let mut values = found.into_iter().map(|metric| metric.map(|m| m.value));
        let mut next = || values.next().unwrap_or(Err(NvmlError::NoData));
        Ok(Some([next(), next(), next()]))
    }
}
