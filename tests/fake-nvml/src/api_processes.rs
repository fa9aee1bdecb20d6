//! Who is on a device, and what each uses.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::abi::{
    Accounting, Code, Handle, INSUFFICIENT_SIZE, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED,
    Process, ProcessUtilization, SUCCESS, WideProcess,
};
use crate::moment::{Moment, device, put};
use crate::scenario;

const MIB: u64 = 1024 * 1024;
/// What the driver writes where there is no instance, and no memory figure.
const NO_INSTANCE: u32 = u32::MAX;
const UNKNOWN: u64 = u64::MAX;
/// What the probe of process utilisation announces, however many there are.
const UTILISATION_CAPACITY: u32 = 100;

/// Microseconds since 1970.
pub fn now_us() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_micros() as u64)
}

fn entry(m: &Moment, p: &scenario::Process) -> Process {
    let known = p.mem_mib.filter(|_| !m.struck.garbage);
    Process {
        pid: p.pid,
        used: known.map_or(UNKNOWN, |mib| mib * MIB),
        gpu_instance: p.gi.unwrap_or(NO_INSTANCE),
        compute_instance: p.ci.unwrap_or(NO_INSTANCE),
    }
}

/// Drivers 535.43 to 535.86 wrote wider entries through `_v3` than callers had room for.
fn writes_wide_entries(driver: &str) -> bool {
    let mut parts = driver.split('.').map(|p| p.parse::<u32>().unwrap_or(0));
    parts.next() == Some(535) && parts.next().is_some_and(|minor| (43..=86).contains(&minor))
}

/// Fills the caller's buffer, or says how many entries there are.
///
/// # Safety
/// `count` is valid; `out` is null or valid for `*count` entries.
unsafe fn list(
    m: &Moment,
    processes: Result<Vec<scenario::Process>, Code>,
    count: *mut u32,
    out: *mut Process,
    version: u32,
) -> Code {
    if count.is_null() {
        return INVALID_ARGUMENT;
    }
    let processes = match processes {
        Ok(list) => list,
        Err(code) => return code,
    };
    // SAFETY: valid, as the caller promises.
    let room = unsafe { *count };
    let needed = processes.len() as u32;
    if out.is_null() || room < needed {
        let told = match m.struck.race {
            0 => needed,
            // The list grows between the probe and the call: the probe told too few.
            race => needed.saturating_sub(race).max(1).min(needed),
        };
        // SAFETY: valid, as the caller promises.
        unsafe { count.write(told) };
        return if needed == 0 {
            SUCCESS
        } else {
            INSUFFICIENT_SIZE
        };
    }
    let wide = version == 3
        && m.scenario
            .driver_version()
            .is_ok_and(|d| writes_wide_entries(&d));
    for (place, process) in processes.iter().enumerate() {
        let process = entry(m, process);
        // SAFETY: there is room for `needed` entries; a wide one overruns it, which is
        // the very defect of those drivers.
        unsafe {
            if wide {
                out.cast::<WideProcess>().add(place).write(WideProcess {
                    process,
                    protected: 0,
                });
            } else {
                out.add(place).write(process);
            }
        }
    }
    // SAFETY: valid, as the caller promises.
    unsafe { count.write(needed) };
    SUCCESS
}

macro_rules! lists {
    ($($name:ident, $version:literal => $processes:expr;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(handle: Handle, count: *mut u32, out: *mut Process) -> Code {
            let processes: fn(&Moment) -> Result<Vec<scenario::Process>, Code> = $processes;
            device(stringify!($name), handle, |m| {
                // SAFETY: pointers as nvml.h demands.
                unsafe { list(m, processes(m), count, out, $version) }
            })
        }
    )* };
}

lists! {
    nvmlDeviceGetComputeRunningProcesses_v2, 2 => Moment::compute;
    nvmlDeviceGetComputeRunningProcesses_v3, 3 => Moment::compute;
    nvmlDeviceGetGraphicsRunningProcesses_v2, 2 => Moment::graphics;
    nvmlDeviceGetGraphicsRunningProcesses_v3, 3 => Moment::graphics;
    nvmlDeviceGetMPSComputeRunningProcesses_v2, 2 => |m| m.gpu().mps.or_derive(Vec::new);
    nvmlDeviceGetMPSComputeRunningProcesses_v3, 3 => |m| m.gpu().mps.or_derive(Vec::new);
}

/// The samples newer than `since`: none of an idle process, as in the real ring.
fn samples(m: &Moment, since: u64) -> Result<Vec<ProcessUtilization>, Code> {
    let gpu = m.whole()?;
    if !gpu.process_util.or_derive(|| true)? || gpu.mig.as_ref().is_some_and(|g| g.enabled) {
        return Err(NOT_SUPPORTED);
    }
    let now = now_us();
    let sample = |pid, sm, mem, timestamp| ProcessUtilization {
        pid,
        timestamp,
        sm,
        mem,
        enc: 0,
        dec: 0,
    };
    let used = m.compute().unwrap_or_default();
    let used = used.iter().filter(|p| p.sm > 0 || p.mem > 0);
    let mut found: Vec<_> = used.map(|p| sample(p.pid, p.sm, p.mem, now)).collect();
    found.extend(
        gpu.samples
            .iter()
            .map(|s| sample(s.pid, s.sm, s.mem, now.saturating_sub(s.age_us))),
    );
    if m.struck.garbage {
        for s in &mut found {
            s.sm = 37_100;
        }
        found.push(sample(0, 37_100, 0, now));
    }
    found.retain(|s| s.timestamp > since);
    Ok(found)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetProcessUtilization(
    handle: Handle,
    out: *mut ProcessUtilization,
    count: *mut u32,
    since: u64,
) -> Code {
    device("nvmlDeviceGetProcessUtilization", handle, |m| {
        if count.is_null() {
            return INVALID_ARGUMENT;
        }
        let found = match samples(m, since) {
            Ok(found) => found,
            Err(code) => return code,
        };
        // SAFETY: valid, as nvml.h demands.
        let room = unsafe { *count };
        if out.is_null() || (room as usize) < found.len() {
            // SAFETY: valid, as nvml.h demands.
            unsafe { count.write(UTILISATION_CAPACITY) };
            return INSUFFICIENT_SIZE;
        }
        if found.is_empty() {
            return NOT_FOUND;
        }
        // SAFETY: there is room for as many, and `count` is valid.
        unsafe {
            out.copy_from_nonoverlapping(found.as_ptr(), found.len());
            count.write(found.len() as u32);
        }
        SUCCESS
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetAccountingMode(handle: Handle, out: *mut u32) -> Code {
    // SAFETY: a pointer to an enum, as nvml.h demands.
    device("nvmlDeviceGetAccountingMode", handle, |_| unsafe {
        put(out, Ok(0))
    })
}

/// Fills with the processes' PIDs and leaves zeros behind them, as the real one does.
#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetAccountingPids(
    handle: Handle,
    count: *mut u32,
    out: *mut u32,
) -> Code {
    device("nvmlDeviceGetAccountingPids", handle, |m| {
        if count.is_null() {
            return INVALID_ARGUMENT;
        }
        let pids: Vec<u32> = m
            .compute()
            .unwrap_or_default()
            .iter()
            .map(|p| p.pid)
            .collect();
        // SAFETY: valid, as nvml.h demands.
        let room = unsafe { *count } as usize;
        if out.is_null() || room < pids.len() {
            // SAFETY: valid, as nvml.h demands.
            unsafe { count.write(pids.len() as u32) };
            return INSUFFICIENT_SIZE;
        }
        // SAFETY: there is room for `room` numbers.
        unsafe {
            out.write_bytes(0, room);
            out.copy_from_nonoverlapping(pids.as_ptr(), pids.len());
        }
        SUCCESS
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetAccountingStats(
    handle: Handle,
    pid: u32,
    out: *mut Accounting,
) -> Code {
    device("nvmlDeviceGetAccountingStats", handle, |m| {
        let processes = m.compute().unwrap_or_default();
        let found = processes.iter().find(|p| p.pid == pid).ok_or(NOT_FOUND);
        let stats = found.map(|p| Accounting {
            gpu: p.sm,
            mem: p.mem,
            max_memory: p.mem_mib.map_or(UNKNOWN, |mib| mib * MIB),
            time_ms: 0,
            start_us: now_us(),
            is_running: 1,
            reserved: [0; 5],
        });
        // SAFETY: a pointer to nvmlAccountingStats_t, as nvml.h demands.
        unsafe { put(out, stats) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_that_overrun_buffers() {
        for (driver, wide) in [
            ("535.43.02", true),
            ("535.54.03", true),
            ("535.86.10", true),
            ("535.98", false),
            ("535.113.01", false),
            ("530.41.03", false),
            ("580.95.05", false),
        ] {
            assert_eq!(writes_wide_entries(driver), wide, "{driver}");
        }
    }
}
