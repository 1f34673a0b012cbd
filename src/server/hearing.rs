//! What upstream servers say by themselves.

use std::sync::Arc;

use crate::{
    catalog::UpstreamServer,
    downstream::{Heard, Listener},
    sessions::SessionKey,
};

/// Hears them.
#[derive(Debug)]
pub(crate) struct Hearing;

impl Listener for Hearing {
    fn heard(&self, _server: &Arc<UpstreamServer>, _session: Option<SessionKey>, _heard: Heard) {}
}
