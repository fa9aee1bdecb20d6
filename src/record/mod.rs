//! Runs on disk: the run directory, its files, the index, reading them back.
//!
//! Owns the file formats' bytes. Files are the truth: whatever is derived can be rebuilt.
//! Must not know how a sample is made or what it means; may use `model` alone.
