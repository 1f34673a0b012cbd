//! Doing a call outside.
#![allow(dead_code)]

mod answer;
mod builtin;
mod call;
mod content;
mod egress;
mod error;
mod exchange;
mod failure;
mod media;
mod pool;
mod request;
mod rest;
#[cfg(test)]
mod tests;

pub(crate) use answer::Shaped;
pub use content::ContentError;
pub use rest::{CallEnvironment, RestCaller};
