//! What a cgroup's path says of a job.
//!
//! Owns the names that schedulers, container engines and `systemd-run` give. Pure. What holds a
//! whole login (`session-3.scope`, `user@1000.service`) or a whole service is no job.

/// The letters of a container's id that people use.
const SHORT: usize = 12;

/// The unit in the text of `/proc/PID/cgroup`, as people would name it.
pub fn unit_of(cgroup: &str) -> Option<String> {
    let mut paths = cgroup.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    paths.find_map(unit_in)
}

fn unit_in(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    if path.contains("slurm") {
        let job = parts.iter().find_map(|part| part.strip_prefix("job_"));
        if let Some(job) = job.filter(|job| is_number(job)) {
            return Some(format!("slurm job {job}"));
        }
    }
    // The innermost one: containers may lie in each other.
    parts.iter().rev().find_map(|part| {
        container(part)
            .map(|id| format!("container {id}"))
            .or_else(|| transient(part).map(|unit| format!("unit {unit}")))
    })
}

fn container(part: &str) -> Option<&str> {
    let name = part.strip_suffix(".scope").unwrap_or(part);
    let id = name.rsplit('-').next()?;
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let is_id = id.len() == 64 && id.bytes().all(hex);
    is_id.then(|| id.get(..SHORT)).flatten()
}

/// `run-r5f3e.scope`, `run-u12.service`, `run-p12-i13.scope`.
fn transient(part: &str) -> Option<&str> {
    let name = part
        .strip_suffix(".scope")
        .or(part.strip_suffix(".service"))?;
    let id = name.strip_prefix("run-")?;
    let kind = id.get(..1)?;
    let rest = id.get(1..)?;
    let numbered = match kind {
        "u" => is_number(rest),
        "r" => rest.bytes().all(|b| b.is_ascii_hexdigit()),
        "p" => rest
            .split_once("-i")
            .is_some_and(|(p, i)| is_number(p) && is_number(i)),
        _ => false,
    };
    (numbered && !rest.is_empty()).then_some(part)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_containers_and_transient_units_are_jobs_and_logins_are_not() {
        let id = "3f0c".repeat(16);
        for (text, unit) in [
            (
                "0::/system.slice/slurmstepd.scope/job_1234/step_0/user/task_0",
                Some("slurm job 1234"),
            ),
            (
                "5:devices:/slurm/uid_1000/job_77/step_batch\n1:name=systemd:/system.slice/slurmd.service",
                Some("slurm job 77"),
            ),
            (
                &*format!("0::/system.slice/docker-{id}.scope"),
                Some("container 3f0c3f0c3f0c"),
            ),
            (
                &*format!("4:memory:/docker/{id}"),
                Some("container 3f0c3f0c3f0c"),
            ),
            (
                &*format!("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope"),
                Some("container 3f0c3f0c3f0c"),
            ),
            (
                "0::/user.slice/run-r5f3eab.scope",
                Some("unit run-r5f3eab.scope"),
            ),
            (
                "0::/system.slice/run-u12.service",
                Some("unit run-u12.service"),
            ),
            (
                "0::/system.slice/run-p12-i13.scope",
                Some("unit run-p12-i13.scope"),
            ),
            ("0::/user.slice/user-1000.slice/session-3.scope", None),
            (
                "0::/user.slice/user-1000.slice/user@1000.service/init.scope",
                None,
            ),
            ("0::/system.slice/jupyterhub.service", None),
            ("0::/system.slice/run-user-1000.mount", None),
            ("0::/", None),
            ("", None),
        ] {
            assert_eq!(unit_of(text).as_deref(), unit, "{text}");
        }
    }
}
