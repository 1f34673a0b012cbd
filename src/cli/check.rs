//! `ringway check`: everything a start would read, checked without starting.

use std::path::PathBuf;

use super::{CommandError, output};
use crate::{
    catalog::{self, Entities, Snapshot},
    downstream,
    rt::{self, ServerTls},
    settings::{self, Settings},
};

/// Arguments of `ringway check`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Settings file to check [default: none, also not /etc/ringway/ringway.toml: settings come
    /// from the environment]
    #[arg(long, value_name = "FILE", env = "RINGWAY_CONFIG")]
    config: Option<PathBuf>,
    /// Catalog files or directories to check besides those the settings name
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let settings =
        Settings::load(arguments.config.as_deref(), settings::environment().into_iter())?;
    rt::install_crypto_provider();
    if let (Some(certificate), Some(key)) = (&settings.listen.certificate, &settings.listen.key) {
        ServerTls::load(certificate, key)
            .map_err(|error| CommandError::Start(crate::server::StartError::Tls(error)))?;
    }
    // Laid over each other as `apply` does it. One report for all: what could not be read does not
    // hide what is wrong with the rest.
    let (mut entities, mut problems) = catalog::files::read(&settings.runtime.catalog);
    let (given, more) = catalog::files::read(&arguments.paths);
    entities.overlay(given);
    problems.extend(more);
    problems.extend(entities.check());
    problems.sort();
    problems.dedup();
    if !problems.is_empty() {
        return Err(CommandError::found(&problems, entities.misses()));
    }
    if let Ok(snapshot) = Snapshot::compile(&entities, 0) {
        output::remarks(snapshot.remarks());
    }
    // Seen from here: the service may have another environment.
    let egress = downstream::Egress::new(&settings.downstream.blocked_networks);
    for problem in downstream::foreseen_failures(&entities, &egress) {
        output::remark(format_args!("warning: {problem}"));
    }
    output::line(format_args!(
        "Settings and catalog are good: {}, {}.",
        output::count(entities.len(), "entity", "entities"),
        output::count(entities.tools.len(), "tool", "tools")
    ));
    Ok(())
}

/// Reads catalog files; every problem found is in the error. What they refer to is not checked.
pub(super) fn read_catalog(paths: &[PathBuf]) -> Result<Entities, CommandError> {
    let (entities, problems) = catalog::files::read(paths);
    if problems.is_empty() { Ok(entities) } else { Err(CommandError::problems(&problems)) }
}
