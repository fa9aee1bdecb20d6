//! What several test files share.

pub mod fake_driver;
