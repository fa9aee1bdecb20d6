//! Records as text for people: the summary at the end, `show`, `runs`, `gpus`.
//!
//! Owns wording and layout, pure: records in, text out. May use `model` and the types of
//! `record`.
