//! tmp
#![allow(dead_code)]
mod alert;
mod cut;
mod payload;
pub mod policy;
mod text;
mod words;
