//! `ringway export`: the running server's catalog as files that `ringway apply` takes back.

use std::{
    collections::HashMap,
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{AdminArguments, CommandError, admin_client::AdminClient, output};
use crate::{
    catalog::{self, Entities, ExportFormat},
    http::Method,
};

/// Arguments of `ringway export`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// A file (.toml, .yaml, .json), a directory that gets a file for each tenant, or - for
    /// standard output
    #[arg(default_value = "-", value_name = "PATH")]
    path: PathBuf,
    /// toml, yaml or json [default: by the file's ending, else toml]
    #[arg(long, value_parser = format)]
    format: Option<ExportFormat>,
    /// Write *** in place of the secrets of connections. Applied to a server that has them, they
    /// stay as they are there
    #[arg(long)]
    mask: bool,
    #[command(flatten)]
    admin: AdminArguments,
}

fn format(text: &str) -> Result<ExportFormat, String> {
    ExportFormat::parse(text).ok_or_else(|| "expected toml, yaml or json".to_owned())
}

#[derive(Debug, Deserialize)]
struct Exported {
    rows: HashMap<String, String>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let path = &arguments.path;
    let extension = path.extension().and_then(|extension| extension.to_str());
    let named = extension.and_then(ExportFormat::parse);
    let format = arguments.format.or(named).unwrap_or(ExportFormat::Toml);
    if named.is_some_and(|named| named != format) {
        return Err(CommandError::Usage(format!(
            "{}: `apply` would read it by its ending, which is not that of {}",
            path.display(),
            format.as_str()
        )));
    }
    let target = if arguments.mask { "/export?mask=true" } else { "/export" };
    let client = AdminClient::find(&arguments.admin)?;
    let exported: Exported = client.json(Method::Get, target, None)?;
    let entities = Entities::from_rows(exported.rows).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        CommandError::Usage(lines.join("\n"))
    })?;
    if path.as_os_str() == "-" {
        output::text(&text_of(&entities, format)?);
        return Ok(());
    }
    let mut files = Vec::new();
    if named.is_some() {
        files.push((path.clone(), text_of(&entities, format)?));
    } else {
        for (tenant, entities) in entities.by_tenant() {
            let file = path.join(format!("{tenant}.{}", format.as_str()));
            files.push((file, text_of(&entities, format)?));
        }
        prepare(path, &files)?;
    }
    for (file, text) in &files {
        write_private(file, text)
            .map_err(|source| CommandError::File { path: file.clone(), source })?;
        output::line(file.display());
    }
    output::line(format_args!(
        "{} in {}.",
        output::count(entities.len(), "entity", "entities"),
        output::count(files.len(), "file", "files")
    ));
    Ok(())
}

fn text_of(entities: &Entities, format: ExportFormat) -> Result<String, CommandError> {
    catalog::export(entities, format).map_err(|error| CommandError::Usage(error.to_string()))
}

/// Makes the directory. Catalog files in it that are not written again would be applied with those
/// that are, so they are refused.
fn prepare(directory: &Path, files: &[(PathBuf, String)]) -> Result<(), CommandError> {
    let failed = |source| CommandError::File { path: directory.to_owned(), source };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        let is_catalog = extension.and_then(ExportFormat::parse).is_some();
        if is_catalog && !files.iter().any(|(file, _)| *file == path) {
            return Err(CommandError::Usage(format!(
                "{} is there already and would be applied with what is exported: remove it, or \
                 export to another directory",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Writes a file that only this user may read, whole or not at all: it holds secrets.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    let unfinished = path.with_file_name(name);
    let _ = fs::remove_file(&unfinished);
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unfinished)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}
