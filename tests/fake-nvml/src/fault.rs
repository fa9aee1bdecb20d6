//! What goes wrong: decided under the state's lock, then played without it.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::thread;
use std::time::Duration;

use crate::abi::Code;
use crate::scenario::{Fault, Hang, Scenario};
use crate::state::{self, State};

/// The faults that strike one call.
#[derive(Clone, Debug, Default)]
pub struct Struck {
    code: Option<Code>,
    hang: Option<Hang>,
    slow_ms: u64,
    call: String,
    gpu: Option<u32>,
    /// Numbers of this call's answer are impossible ones.
    pub garbage: bool,
    /// See `Fault::race`.
    pub race: u32,
}

/// Which faults strike this call; counts it.
pub fn strike(state: &mut State, scenario: &Scenario, call: &str, gpu: Option<u32>) -> Struck {
    log(call, gpu);
    let elapsed_s = state.elapsed_s();
    let mut struck = Struck {
        call: call.to_owned(),
        gpu,
        ..Struck::default()
    };
    for (place, fault) in scenario.faults.iter().enumerate() {
        if !fault.concerns(call, gpu) || !fault.is_due(elapsed_s) {
            continue;
        }
        let before = state.concerned.entry(place).or_insert(0);
        let nth = *before;
        *before += 1;
        let until = fault.times.map(|n| fault.after_calls.saturating_add(n));
        if nth < fault.after_calls || until.is_some_and(|u| nth >= u) {
            continue;
        }
        struck.add(fault);
    }
    struck
}

/// Notes the call in the file that `FAKE_NVML_CALLS` names, if it does.
fn log(call: &str, gpu: Option<u32>) {
    let Some(path) = env::var_os("FAKE_NVML_CALLS") else {
        return;
    };
    if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path) {
        let gpu = gpu.map_or_else(|| "-".to_owned(), |g| g.to_string());
        let _ = file.write_all(format!("{call} {gpu}\n").as_bytes());
    }
}

impl Struck {
    fn add(&mut self, fault: &Fault) {
        self.code = self.code.or(fault.code);
        self.hang = self.hang.or(fault.hang);
        self.slow_ms += fault.slow_ms;
        self.garbage |= fault.garbage;
        self.race += fault.race;
    }

    /// Sleeps and hangs as told, then says whether the call fails.
    pub fn play(&self) -> Result<(), Code> {
        if self.slow_ms > 0 {
            thread::sleep(Duration::from_millis(self.slow_ms));
        }
        match self.hang {
            None => {}
            Some(Hang::Forever) => for_ever(),
            Some(Hang::Uninterruptible) => {
                uninterruptibly();
                for_ever();
            }
            Some(Hang::UntilRemoved) => {
                while self.still_hangs() {
                    thread::sleep(Duration::from_millis(10));
                }
            }
        }
        self.code.map_or(Ok(()), Err)
    }

    fn still_hangs(&self) -> bool {
        state::lock()
            .scenario()
            .faults
            .iter()
            .any(|f| f.hang == Some(Hang::UntilRemoved) && f.concerns(&self.call, self.gpu))
    }
}

fn for_ever() -> ! {
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

/// Puts this thread into state D: the parent of a vfork waits so until its child is gone,
/// and this child only sleeps. A fatal signal to us ends the wait, and the child with it.
fn uninterruptibly() {
    const STACK: usize = 64 * 1024;
    let stack = Box::leak(vec![0_u8; STACK].into_boxed_slice());
    let top = stack.as_mut_ptr_range().end;
    // SAFETY: the child runs `sleep_as_child` on its own leaked stack, which is 16-byte
    // aligned at its top after rounding down, and makes nothing but system calls.
    unsafe {
        let aligned = top.sub(top as usize % 16);
        libc::clone(
            sleep_as_child,
            aligned.cast(),
            libc::CLONE_VM | libc::CLONE_VFORK,
            std::ptr::null_mut(),
        );
    }
}

extern "C" fn sleep_as_child(_: *mut libc::c_void) -> libc::c_int {
    // SAFETY: both are system calls without pointers; errno, which they may set, is the
    // suspended parent's.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        loop {
            libc::pause();
        }
    }
}
