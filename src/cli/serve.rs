//! `ringway serve`: the server in this process, until it is told to stop.

use std::path::PathBuf;

use super::CommandError;
use crate::{
    rt::Signals,
    server::{self, Start},
    settings::{self, Settings},
};

/// Arguments of `ringway serve`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Settings file [default: none, also not /etc/ringway/ringway.toml: settings come
    /// from the environment]
    #[arg(long, value_name = "FILE", env = "RINGWAY_CONFIG")]
    config: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let settings =
        Settings::load(arguments.config.as_deref(), settings::environment().into_iter())?;
    let signals = Signals::install().map_err(server::StartError::Signals)?;
    let running = server::start(Start { settings, ..Start::default() })?;
    running.run(signals)?;
    Ok(())
}
