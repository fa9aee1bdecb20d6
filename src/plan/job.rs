//! Which part of a distributed job this run is, from the environment.
//!
//! Owns the names of the variables that schedulers and launchers set. Pure.

use crate::model::{JobIds, Seat};

/// Job ids, in order of trust: Slurm, PBS, LSF.
const IDS: [&str; 3] = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"];

/// Rank, number of ranks and rank on this machine, by who sets them; the innermost launcher
/// first. They are taken from one source only: ranks of one and the size of another don't fit.
///
/// `SLURM_STEP_NUM_TASKS` is the step's size, `SLURM_NTASKS` the allocation's. A batch script has
/// `SLURM_PROCID` 0 and no step: it is around all ranks, and none.
const RANKS: [[&[&str]; 3]; 4] = [
    [&["RANK"], &["WORLD_SIZE"], &["LOCAL_RANK"]],
    [
        &["OMPI_COMM_WORLD_RANK"],
        &["OMPI_COMM_WORLD_SIZE"],
        &["OMPI_COMM_WORLD_LOCAL_RANK"],
    ],
    [
        &["SLURM_PROCID"],
        &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"],
        &["SLURM_LOCALID"],
    ],
    [
        &["PMI_RANK"],
        &["PMI_SIZE"],
        &["MPI_LOCALRANKID", "PMI_LOCAL_RANK"],
    ],
];

/// Reads them by `lookup`. What isn't set, or isn't a number, stays `None`.
pub fn job_ids(lookup: &dyn Fn(&str) -> Option<String>) -> JobIds {
    let number = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| lookup(name)?.trim().parse::<u32>().ok())
    };
    let id = IDS
        .iter()
        .find_map(|name| lookup(name).filter(|value| !value.trim().is_empty()));
    let ranks = RANKS
        .iter()
        .filter(|[rank, ..]| rank[0] != "SLURM_PROCID" || lookup("SLURM_STEP_ID").is_some())
        .find_map(|[rank, world, local]| Some((number(rank)?, number(world), number(local))));
    let (rank, world, local_rank) = match ranks {
        Some((rank, world, local)) => (Some(rank), world, local),
        None => (None, None, None),
    };
    JobIds {
        id,
        rank,
        world,
        local_rank,
    }
}

/// What tells the start of one job from every other on this machine, by who starts ranks: the
/// word that comes first, what must be set, and what may be set besides. A launcher's restart of
/// all ranks is another start.
const STARTS: [(&str, &[&str], &[&str]); 4] = [
    (
        "RANK",
        &["TORCHELASTIC_RUN_ID"],
        &["MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"],
    ),
    ("RANK", &["MASTER_ADDR", "MASTER_PORT"], &[]),
    ("OMPI_COMM_WORLD_RANK", &["PMIX_NAMESPACE"], &[]),
    (
        "SLURM_PROCID",
        &["SLURM_JOB_ID", "SLURM_STEP_ID"],
        &["SLURM_RESTART_COUNT"],
    ),
];

/// This rank's seat among those of its job on this machine. None: it is no rank, or the only one.
///
/// `parent` stands for the process that started us; ranks of a launcher that names no job have
/// it in common.
pub fn seat(lookup: &dyn Fn(&str) -> Option<String>, parent: &str) -> Option<Seat> {
    let ids = job_ids(lookup);
    let rank = ids.rank.filter(|_| ids.world != Some(1))?;
    let set = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
    let number = |name: &str| set(name).is_some_and(|value| value.trim().parse::<u32>().is_ok());
    let by = RANKS
        .iter()
        .map(|[rank, ..]| rank[0])
        .find(|name| number(name))?;
    let start = STARTS
        .iter()
        .filter(|(first, ..)| *first == by)
        .find_map(|(_, must, may)| {
            let must: Vec<String> = must.iter().map(|name| set(name)).collect::<Option<_>>()?;
            let may = may.iter().map(|name| set(name).unwrap_or_default());
            Some(must.into_iter().chain(may).collect::<Vec<_>>())
        });
    let start = start.unwrap_or_else(|| vec![parent.to_owned()]);
    // Ranks of a launcher within a scheduler's job have that in common, too.
    let words = [by.to_owned(), ids.id.unwrap_or_default()];
    let job = words.into_iter().chain(start).collect();
    Some(Seat { job, rank })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(env: &[(&str, &str)]) -> JobIds {
        job_ids(&|name| {
            let (_, value) = env.iter().find(|(known, _)| *known == name)?;
            Some((*value).to_owned())
        })
    }

    fn expected(id: Option<&str>, ranks: Option<(u32, u32, u32)>) -> JobIds {
        JobIds {
            id: id.map(str::to_owned),
            rank: ranks.map(|r| r.0),
            world: ranks.map(|r| r.1),
            local_rank: ranks.map(|r| r.2),
        }
    }

    #[test]
    fn each_launcher_in_its_own_words() {
        assert_eq!(ids(&[]), JobIds::default());
        let slurm = [
            ("SLURM_JOB_ID", "4711"),
            ("SLURM_PROCID", "9"),
            ("SLURM_NTASKS", "16"),
            ("SLURM_LOCALID", "1"),
            ("SLURM_STEP_ID", "0"),
        ];
        assert_eq!(ids(&slurm), expected(Some("4711"), Some((9, 16, 1))));
        let script = slurm.split_last().unwrap().1;
        assert_eq!(ids(script), expected(Some("4711"), None), "a batch script");
        let torch = [("RANK", "3"), ("WORLD_SIZE", "8"), ("LOCAL_RANK", "3")];
        assert_eq!(ids(&torch), expected(None, Some((3, 8, 3))));
        let open_mpi = [
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "0"),
        ];
        assert_eq!(ids(&open_mpi), expected(None, Some((1, 2, 0))));
        let pmi = [
            ("PMI_RANK", "1"),
            ("PMI_SIZE", "4"),
            ("MPI_LOCALRANKID", "1"),
        ];
        assert_eq!(ids(&pmi), expected(None, Some((1, 4, 1))));
    }

    #[test]
    fn the_innermost_launcher_names_all_ranks() {
        let env = [
            ("SLURM_JOB_ID", "4711"),
            ("SLURM_PROCID", "0"),
            ("SLURM_NTASKS", "2"),
            ("SLURM_LOCALID", "0"),
            ("RANK", "5"),
            ("LOCAL_RANK", "5"),
        ];
        let found = ids(&env);
        assert_eq!((found.rank, found.world), (Some(5), None));
        assert_eq!(found.id.as_deref(), Some("4711"));
    }

    #[test]
    fn a_word_is_no_rank() {
        assert_eq!(
            ids(&[("RANK", "general"), ("SLURM_JOB_ID", "")]),
            JobIds::default()
        );
        let found = ids(&[("RANK", "x"), ("PMI_RANK", " 2 ")]);
        assert_eq!(found.rank, Some(2));
    }

    fn seat_of(env: &[(&str, &str)]) -> Option<Seat> {
        let lookup = |name: &str| {
            let (_, value) = env.iter().find(|(known, _)| *known == name)?;
            Some((*value).to_owned())
        };
        seat(&lookup, "launcher 7")
    }

    #[test]
    fn ranks_of_one_start_share_a_job_and_no_others_do() {
        let slurm = |job, step, rank| {
            seat_of(&[
                ("SLURM_JOB_ID", job),
                ("SLURM_STEP_ID", step),
                ("SLURM_PROCID", rank),
                ("SLURM_NTASKS", "2"),
            ])
            .unwrap()
        };
        let (first, second) = (slurm("1", "0", "0"), slurm("1", "0", "1"));
        assert_eq!((first.rank, second.rank), (0, 1));
        assert_eq!(first.job, second.job);
        assert_ne!(first.job, slurm("1", "1", "0").job, "another step");
        assert_ne!(first.job, slurm("2", "0", "0").job, "another job");
        let torch = |port, restart| {
            let env = [
                ("TORCHELASTIC_RUN_ID", "none"),
                ("MASTER_ADDR", "localhost"),
                ("MASTER_PORT", port),
                ("TORCHELASTIC_RESTART_COUNT", restart),
                ("RANK", "1"),
                ("WORLD_SIZE", "2"),
            ];
            seat_of(&env).unwrap().job
        };
        assert_eq!(torch("29500", "0"), torch("29500", "0"));
        assert_ne!(torch("29500", "0"), torch("29501", "0"), "another port");
        assert_ne!(torch("29500", "0"), torch("29500", "1"), "started again");
    }

    #[test]
    fn without_a_name_the_launcher_is_what_ranks_share() {
        let found = seat_of(&[("PMI_RANK", "1"), ("PMI_SIZE", "2")]).unwrap();
        assert_eq!(found.job, ["PMI_RANK", "", "launcher 7"]);
        assert_eq!(seat_of(&[]), None);
        let alone = [("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_PORT", "1")];
        assert_eq!(seat_of(&alone), None);
    }
}
