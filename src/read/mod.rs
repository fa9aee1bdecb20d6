//! From bytes to marks: a small terminal, and the grammar of progress.
//!
//! Owns the screen model and everything that reads progress off it; pure, and independent
//! of how the bytes were cut into chunks. Must not know clocks, files or threads; may use
//! `model` alone.
