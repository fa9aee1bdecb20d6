//! One call on one GPU: what the handle means, and the answers that follow from the
//! scenario, from what live processes say, and from what is derived where nothing is said.

use std::sync::Arc;
use std::time::Instant;

use crate::abi::{
    Code, Handle, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, SUCCESS, UNINITIALIZED,
};
use crate::fault::{self, Struck};
use crate::live::Live;
use crate::scenario::{Gpu, MigDevice, Process, Scenario, Setting};
use crate::state::{self, Counters, State};

/// What a handle stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub gpu: u32,
    /// The MIG index, where it is a MIG device.
    pub mig: Option<u32>,
}

impl Target {
    /// A GPU's handle is its index plus one, in the bits above the low eight; a MIG
    /// device has its own index plus one in those.
    pub fn handle(self) -> Handle {
        let low = self.mig.map_or(0, |m| m as usize + 1);
        std::ptr::without_provenance_mut(((self.gpu as usize + 1) << 8) | low)
    }

    pub fn of(handle: Handle) -> Option<Self> {
        let value = handle.addr();
        Some(Self {
            gpu: u32::try_from((value >> 8).checked_sub(1)?).ok()?,
            mig: u32::try_from(value & 0xff).ok()?.checked_sub(1),
        })
    }
}

/// The scenario as one call sees it.
pub struct Moment {
    pub target: Target,
    pub scenario: Arc<Scenario>,
    pub struck: Struck,
    pub counters: Counters,
    live: Arc<Vec<Live>>,
}

/// A call that is about no device.
pub fn system(call: &str, answer: impl FnOnce(&Scenario) -> Code) -> Code {
    let mut state = state::lock();
    if state.initialised == 0 {
        return UNINITIALIZED;
    }
    let scenario = state.scenario();
    let struck = fault::strike(&mut state, &scenario, call, None);
    drop(state);
    match struck.play() {
        Ok(()) => answer(&scenario),
        Err(code) => code,
    }
}

/// A call on a device.
pub fn device(call: &str, handle: Handle, answer: impl FnOnce(&Moment) -> Code) -> Code {
    let mut state = state::lock();
    if state.initialised == 0 {
        return UNINITIALIZED;
    }
    let scenario = state.scenario();
    let target = Target::of(handle).filter(|t| (t.gpu as usize) < scenario.gpus.len());
    let Some(target) = target else {
        return INVALID_ARGUMENT;
    };
    let struck = fault::strike(&mut state, &scenario, call, Some(target.gpu));
    let mut moment = Moment {
        target,
        struck,
        live: state.live(),
        counters: Counters::default(),
        scenario,
    };
    moment.count_up(&mut state);
    drop(state);
    match moment.struck.play() {
        Ok(()) => answer(&moment),
        Err(code) => code,
    }
}

/// Writes an answer where the caller wants it.
///
/// # Safety
/// `out` is null or valid for a write of `T`.
pub unsafe fn put<T>(out: *mut T, value: Result<T, Code>) -> Code {
    match value {
        _ if out.is_null() => INVALID_ARGUMENT,
        Ok(value) => {
            // SAFETY: not null, and valid as the caller of this function promises.
            unsafe { out.write(value) };
            SUCCESS
        }
        Err(code) => code,
    }
}

impl<T: Clone> Setting<T> {
    /// The given value, else the derived one, else "not supported".
    pub fn or_derive(&self, derive: impl FnOnce() -> T) -> Result<T, Code> {
        match self {
            Self::Given(value) => Ok(value.clone()),
            Self::Derived => Ok(derive()),
            Self::Unsupported => Err(NOT_SUPPORTED),
        }
    }
}

const MIB: u64 = 1024 * 1024;

impl Moment {
    pub fn gpu(&self) -> &Gpu {
        &self.scenario.gpus[self.target.gpu as usize]
    }

    /// The MIG device that the handle stands for.
    pub fn mig_device(&self) -> Option<&MigDevice> {
        let mig = self.gpu().mig.as_ref()?;
        mig.devices.get(self.target.mig? as usize)?.as_ref()
    }

    /// What only a whole GPU answers.
    pub fn whole(&self) -> Result<&Gpu, Code> {
        match self.target.mig {
            None => Ok(self.gpu()),
            Some(_) => Err(NOT_SUPPORTED),
        }
    }

    pub fn live(&self) -> impl Iterator<Item = &Live> {
        self.live.iter().filter(|l| l.gpu == self.target.gpu)
    }

    /// The compute processes: the scenario's, then the live ones.
    pub fn compute(&self) -> Result<Vec<Process>, Code> {
        let mut list = self.gpu().processes.or_derive(Vec::new)?;
        list.extend(self.live().map(|l| Process {
            pid: l.pid,
            mem_mib: Some(l.share.mib),
            sm: l.share.sm,
            mem: l.share.mem,
            gi: l.share.gi,
            ci: l.share.ci,
        }));
        match self.target.mig {
            None => Ok(list),
            Some(_) => {
                let device = self.mig_device().ok_or(NOT_FOUND)?;
                list.retain(|p| (p.gi, p.ci.unwrap_or(0)) == (Some(device.gi), device.ci));
                Ok(list)
            }
        }
    }

    pub fn graphics(&self) -> Result<Vec<Process>, Code> {
        self.gpu().graphics.or_derive(Vec::new)
    }

    pub fn total_bytes(&self) -> Result<u64, Code> {
        match self.mig_device() {
            Some(device) => Ok(device.memory_mib * MIB),
            None => Ok(self.gpu().memory_mib.or_derive(|| 81_920)? * MIB),
        }
    }

    pub fn used_bytes(&self) -> Result<u64, Code> {
        let held: u64 = self
            .compute()
            .unwrap_or_default()
            .iter()
            .chain(&self.graphics().unwrap_or_default())
            .chain(&self.gpu().mps.or_derive(Vec::new).unwrap_or_default())
            .filter_map(|p| p.mem_mib)
            .sum();
        Ok(((self.gpu().base_mib + held) * MIB).min(self.total_bytes()?))
    }

    /// The device's use: what the scenario says, or more if its processes use more.
    pub fn util(&self) -> Result<u32, Code> {
        let gpu = self.whole()?;
        // A split GPU doesn't tell how busy it is.
        if gpu.mig.as_ref().is_some_and(|mig| mig.enabled) {
            return Err(NOT_SUPPORTED);
        }
        let said = gpu.util.or_derive(|| 0)?;
        let processes = self.compute().unwrap_or_default();
        let used: u32 = processes.iter().map(|p| p.sm).sum();
        Ok(said.max(used.min(100)))
    }

    pub fn mem_util(&self) -> Result<u32, Code> {
        let processes = self.compute().unwrap_or_default();
        let used: u32 = processes.iter().map(|p| p.mem).sum();
        let said = self.gpu().mem_util.unwrap_or(0);
        Ok(said.max(used.min(100)))
    }

    fn load(&self) -> f64 {
        f64::from(self.util().unwrap_or(0)) / 100.0
    }

    pub fn power_limit_w(&self) -> Result<f64, Code> {
        self.whole()?.power_limit_w.or_derive(|| 400.0)
    }

    pub fn power_w(&self) -> Result<f64, Code> {
        let limit = self.power_limit_w().unwrap_or(400.0);
        self.whole()?
            .power_w
            .or_derive(|| 50.0 + (limit - 50.0).max(0.0) * 0.85 * self.load())
    }

    pub fn temp_c(&self) -> Result<u32, Code> {
        self.whole()?
            .temp_c
            .or_derive(|| 30 + (45.0 * self.load()) as u32)
    }

    pub fn clock_mhz(&self) -> Result<u32, Code> {
        let highest = self.max_clock_mhz().unwrap_or(1410);
        self.whole()?
            .clock_mhz
            .or_derive(|| if self.load() > 0.0 { highest } else { 345 })
    }

    pub fn max_clock_mhz(&self) -> Result<u32, Code> {
        self.whole()?.max_clock_mhz.or_derive(|| 1410)
    }

    /// `nvmlClocksEventReasonGpuIdle` where nothing runs, else no reason.
    pub fn throttle(&self) -> Result<u64, Code> {
        self.whole()?
            .throttle
            .or_derive(|| u64::from(self.load() == 0.0))
    }

    pub fn pcie_mb_s(&self) -> Result<f64, Code> {
        self.whole()?.pcie_mb_s.or_derive(|| 2000.0 * self.load())
    }

    /// Energy since the driver was loaded; doesn't start at zero, as real counters don't.
    pub fn energy_j(&self) -> Result<f64, Code> {
        let base = self.whole()?.energy_j.or_derive(|| 7015.0)?;
        Ok(base + self.counters.energy_j)
    }

    /// Brings the counters up to now at the rates of now.
    fn count_up(&mut self, state: &mut State) {
        let (power, pcie) = (self.power_w(), self.pcie_mb_s());
        let counters = state.counters.entry(self.target.gpu).or_default();
        let now = Instant::now();
        let seconds = counters
            .at
            .map_or(0.0, |at| now.duration_since(at).as_secs_f64());
        counters.energy_j += power.unwrap_or(0.0) * seconds;
        counters.pcie_bytes += pcie.unwrap_or(0.0) * 1e6 * seconds;
        counters.at = Some(now);
        self.counters = *counters;
    }

    /// A percentage, or an impossible one.
    pub fn percent(&self, value: Result<u32, Code>) -> Result<u32, Code> {
        value.map(|v| if self.struck.garbage { 37_100 } else { v })
    }

    /// A number, or the largest one.
    pub fn number(&self, value: Result<u32, Code>) -> Result<u32, Code> {
        value.map(|v| if self.struck.garbage { u32::MAX } else { v })
    }

    /// A wide number, or the largest one.
    pub fn wide(&self, value: Result<u64, Code>) -> Result<u64, Code> {
        value.map(|v| if self.struck.garbage { u64::MAX } else { v })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_never_null_and_says_what_it_stands_for() {
        for target in [
            Target { gpu: 0, mig: None },
            Target { gpu: 7, mig: None },
            Target {
                gpu: 0,
                mig: Some(0),
            },
            Target {
                gpu: 3,
                mig: Some(6),
            },
        ] {
            assert!(!target.handle().is_null());
            assert_eq!(Target::of(target.handle()), Some(target));
        }
        assert_eq!(Target::of(std::ptr::null_mut()), None);
    }
}
