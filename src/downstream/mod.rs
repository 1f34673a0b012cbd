//! Doing a call outside.
#![allow(dead_code)]

mod content;
mod egress;
mod failure;
mod media;

pub use content::ContentError;
