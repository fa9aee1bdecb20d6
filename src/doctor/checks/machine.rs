//! Shared memory, disks, memory's limit, tools.

use std::path::Path;

use super::Check;
use crate::doctor::facts::{Answer, Facts, Place, Space};

/// A container's default, on which a `DataLoader`'s workers die of a bus error.
const SMALL_SHM_MIB: u64 = 64;
/// So little that the next file or tensor won't fit.
const FULL_MIB: u64 = 64;
/// Less than a checkpoint.
const LITTLE_MIB: u64 = 1024;
/// Less than importing a framework and a first batch take.
const LITTLE_MEMORY_MIB: u64 = 2048;

pub fn checks(facts: &Facts) -> Vec<Check> {
    let machine = &facts.machine;
    let mut found = vec![shared_memory(facts)];
    found.extend(machine.places.iter().map(place));
    found.extend(memory(facts));
    found.push(stacks(facts));
    found
}

fn shared_memory(facts: &Facts) -> Check {
    let name = "/dev/shm";
    let Space {
        total_mib,
        free_mib,
        ..
    } = match &facts.machine.shm {
        Some(Answer::Said(space)) => *space,
        Some(Answer::Failed(_)) => return untold(name, Path::new("/dev/shm")),
        Some(Answer::Hung(_)) | None => {
            return Check::warning(
                name,
                "it isn't there or doesn't answer: DataLoader's workers and NCCL need it",
                "'mount -t tmpfs tmpfs /dev/shm'",
            );
        }
    };
    let bigger = if facts.machine.container {
        "start the container with --shm-size=8g or --ipc=host (Kubernetes: an emptyDir with medium Memory on /dev/shm)"
    } else {
        "'mount -o remount,size=50% /dev/shm', as root"
    };
    if total_mib <= SMALL_SHM_MIB {
        let what = format!(
            "it has {total_mib} MiB: DataLoader's workers pass their batches through it and die of a bus error when it is full"
        );
        return Check::warning(name, what, format!("{bigger}; else num_workers=0"));
    }
    if free_mib < FULL_MIB {
        let what = format!("{free_mib} of its {total_mib} MiB are free");
        return Check::warning(
            name,
            what,
            "remove what ended runs left in it ('ls -l /dev/shm')",
        );
    }
    Check::ok(name, format!("{free_mib} of {total_mib} MiB are free"))
}

/// Where there is no `stat` that could tell.
fn untold(name: &'static str, path: &Path) -> Check {
    let shown = path.display();
    Check::note(name, format!("{shown}: how much is free can't be told"))
}

fn place(place: &Place) -> Check {
    let Place { role, path, space } = place;
    let shown = path.display();
    let space = match space {
        Answer::Said(space) => space,
        Answer::Failed(_) => return untold(role, path),
        Answer::Hung(s) => {
            return Check::bad(
                role,
                format!("{shown}: its file system doesn't answer within {s} s"),
                "a network file system whose server is gone? 'df' on it hangs, too; use another directory",
            );
        }
    };
    let free = space.free_mib;
    let cure = "remove or move files, or use another place (checkpoints, logs and caches go there)";
    if !space.writable {
        return Check::warning(
            role,
            format!("{shown} can't be written by this user"),
            "give the user write permission, or use another directory",
        );
    }
    if space.no_files_left {
        return Check::bad(
            role,
            format!("{shown}: no more files can be made (inodes)"),
            cure,
        );
    }
    match free {
        f if f < FULL_MIB => Check::bad(
            role,
            format!("{shown} is full or nearly: {free} MiB are free"),
            cure,
        ),
        f if f < LITTLE_MIB => {
            Check::warning(role, format!("{shown}: only {free} MiB are free"), cure)
        }
        _ => Check::ok(role, format!("{shown}: {free} MiB are free")),
    }
}

fn memory(facts: &Facts) -> Option<Check> {
    let name = "memory limit";
    let limit = facts.machine.memory_limit_mib?;
    let found = format!("the cgroup allows {limit} MiB");
    Some(if limit < LITTLE_MEMORY_MIB {
        Check::warning(
            name,
            format!("{found}, of which importing a framework takes a good part"),
            "ask for more: docker run --memory, resources.limits.memory, #SBATCH --mem",
        )
    } else {
        match facts.machine.memory_used_mib {
            Some(used) => Check::ok(name, format!("{found}, {used} MiB are used")),
            None => Check::ok(name, found),
        }
    })
}

/// Whether a stalled run's stacks could be read.
fn stacks(facts: &Facts) -> Check {
    let name = "py-spy";
    let Some(file) = &facts.command.pyspy else {
        return Check::note(
            name,
            "it isn't installed: a stalled run's Python stacks can't be shown (pip install py-spy)",
        );
    };
    let file = file.display();
    match facts.machine.ptrace_scope {
        Some(scope @ 2..) => Check::note(
            name,
            format!(
                "{file} is there, but kernel.yama.ptrace_scope is {scope}: only root may use it"
            ),
        ),
        Some(1) => Check::note(
            name,
            format!(
                "{file} is there; kernel.yama.ptrace_scope is 1: it reads only what it started, unless root"
            ),
        ),
        _ => Check::ok(name, format!("{file} is there")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;
    use std::path::PathBuf;

    #[test]
    fn what_is_nearly_full_is_told_by_degrees() {
        let of = |free_mib, writable, no_files_left| {
            let space = Space {
                total_mib: 4096,
                free_mib,
                no_files_left,
                writable,
            };
            place(&Place {
                role: "disk",
                path: PathBuf::from("/d"),
                space: Answer::Said(space),
            })
            .state
        };
        assert_eq!(of(5000, true, false), State::Ok);
        assert_eq!(of(500, true, false), State::Warning);
        assert_eq!(of(5, true, false), State::Bad);
        assert_eq!(of(5000, false, false), State::Warning);
        assert_eq!(of(5000, true, true), State::Bad);
        let dead = Place {
            role: "disk",
            path: PathBuf::from("/d"),
            space: Answer::Hung(2),
        };
        assert!(place(&dead).found.contains("doesn't answer"));
    }

    #[test]
    fn a_containers_default_of_shared_memory_is_small() {
        let of = |total_mib, free_mib| {
            let mut facts = Facts::default();
            facts.machine.container = true;
            facts.machine.shm = Some(Answer::Said(Space {
                total_mib,
                free_mib,
                ..Space::default()
            }));
            shared_memory(&facts)
        };
        assert!(of(64, 64).cure.unwrap().contains("--shm-size"));
        assert_eq!(of(8192, 8000).state, State::Ok);
        assert!(of(8192, 3).found.contains("3 of its 8192 MiB"));
    }

    #[test]
    fn a_tight_limit_of_memory_is_named() {
        let mut facts = Facts::default();
        assert_eq!(memory(&facts), None);
        facts.machine.memory_limit_mib = Some(512);
        assert_eq!(memory(&facts).unwrap().state, State::Warning);
        facts.machine.memory_limit_mib = Some(16384);
        assert_eq!(memory(&facts).unwrap().state, State::Ok);
    }
}
