//! Which part of a distributed job this run is, from the environment.
//!
//! Owns the names of the variables that schedulers and launchers set. Pure.

use crate::model::JobIds;

/// Job ids, in order of trust: Slurm, PBS, LSF.
const IDS: [&str; 3] = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"];

/// Rank, number of ranks and rank on this machine, by who sets them; the innermost launcher
/// first. They are taken from one source only: ranks of one and the size of another don't fit.
///
/// `SLURM_STEP_NUM_TASKS` is the step's size, `SLURM_NTASKS` the allocation's.
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
        ];
        assert_eq!(ids(&slurm), expected(Some("4711"), Some((9, 16, 1))));
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
}
