//! `gpuwatch run -- python train.py`: a launcher and job supervisor for GPU training.
//!
//! ARCHITECTURE.md maps the rooms; `tests/architecture.rs` keeps their borders.

pub mod act;
pub mod cli;
pub mod doctor;
pub mod export;
pub mod judge;
pub mod launch;
pub mod live;
pub mod model;
pub mod nvml;
pub mod observe;
pub mod patrol;
pub mod place;
pub mod plan;
pub mod read;
pub mod record;
pub mod report;
pub mod serve;
pub mod supervise;
pub mod sys;
pub mod tell;
