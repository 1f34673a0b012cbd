//! Doing a call outside.

#[allow(dead_code)]
mod content;

pub use content::ContentError;
