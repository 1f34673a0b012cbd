//! What a change of the catalog costs, off the cores: a whole compilation, and one tool of many.

use crate::cases::median;
use crate::setup::{TENANT, tool};
use ringway::catalog::{Entities, Grace, Snapshot, files};
use std::io;
use std::path::Path;
use std::time::Instant;

pub(crate) const COMPILE: &str = "snapshot_compile_5000";
pub(crate) const CHANGE: &str = "snapshot_change_one";
pub(crate) const HEADER: &str = "# case\ttools\tclient_applications\tms";

const TOOLS: usize = 5000;
const TOOLSETS: usize = 100;
const CLIENTS: usize = 50;

/// The median time of a compilation, or of one that only has one tool changed.
pub(crate) fn measure(name: &str, rounds: usize) -> io::Result<String> {
    let before = entities("before")?;
    let first = Snapshot::compile(&before, 1).map_err(shown)?;
    let mut times = Vec::new();
    for round in 0..rounds {
        let milliseconds = if name == COMPILE {
            // Read anew: nothing of an earlier compilation is to be found again.
            let fresh = entities("before")?;
            let started = Instant::now();
            let snapshot = Snapshot::compile(&fresh, 1).map_err(shown)?;
            let milliseconds = started.elapsed().as_secs_f64() * 1000.0;
            if snapshot.views().count() != CLIENTS {
                return Err(io::Error::other("a client application has no view"));
            }
            milliseconds
        } else {
            let grace = Grace { now_ms: 1, callable_ms: 1 };
            let declared = one_tool(&format!("Changed in round {round}."))?;
            let started = Instant::now();
            // As a change is published, but for the store.
            let mut newer = before.clone();
            newer.overlay(declared);
            newer.unmask_secrets(&before).map_err(shown)?;
            let changes = before.changes(&newer);
            let snapshot = Snapshot::recompile(&first, &newer, 2, grace).map_err(shown)?;
            let rows = snapshot.deprecated_rows();
            let views = snapshot.changes(&first);
            let milliseconds = started.elapsed().as_secs_f64() * 1000.0;
            if (changes.len(), rows.len(), views.len()) != (1, 0, CLIENTS) {
                return Err(io::Error::other("one tool changed, and not all who have it see it"));
            }
            milliseconds
        };
        times.push(milliseconds);
    }
    let time = median(times.into_iter());
    Ok(format!("{name}\t{TOOLS}\t{CLIENTS}\t{time:.2}"))
}

fn shown(problems: impl std::fmt::Debug) -> io::Error {
    io::Error::other(format!("{problems:?}"))
}

/// The API is on this machine.
const ALLOWED: &str = "egress_allowances = [\"127.0.0.0/8\", \"::1/128\"]";

/// Client applications that differ in every way that makes their lists differ, each with all tools.
fn entities(word: &str) -> io::Result<Entities> {
    let mut text = format!(
        "[[tenant]]\nid = \"{TENANT}\"\n{ALLOWED}\n[[connection]]\ntenant = \"{TENANT}\"\nid = \"api\"\n\
         base_url = \"http://127.0.0.1:1\"\n"
    );
    for toolset in 0..TOOLSETS {
        text += &format!(
            "[[toolset]]\ntenant = \"{TENANT}\"\nid = \"set{toolset}\"\nkind = \"rest\"\n\
             connection = \"api\"\nsystem_prompt = \"Set {toolset}.\"\n"
        );
    }
    for client in 0..CLIENTS {
        let dialect = ["full", "portable", "gemini", "openai_strict"][client % 4];
        text += &format!(
            "[[client_application]]\ntenant = \"{TENANT}\"\nid = \"client{client}\"\n\
             schema_dialect = \"{dialect}\"\nsystem_prompt = \"Client {client}.\"\n\
             policy = {{ rules = [{{ effect = \"deny\", tools = [\"set{client}/tool_{client}7*\"] }}] }}\n"
        );
        for toolset in 0..TOOLSETS {
            text += &format!(
                "[[assignment]]\ntenant = \"{TENANT}\"\nclient_application = \"client{client}\"\n\
                 toolset = \"set{toolset}\"\ninclude_client_prompt = true\n"
            );
        }
    }
    for number in 0..TOOLS {
        let about = format!("Tool number {number}: looks something up. {word}");
        text += &tool(&format!("set{}", number % TOOLSETS), &format!("tool_{number}"), &about);
    }
    read(&text)
}

fn one_tool(description: &str) -> io::Result<Entities> {
    read(&tool("set77", "tool_77", description))
}

fn read(text: &str) -> io::Result<Entities> {
    let (entities, problems) = files::read_text(Path::new("catalog.toml"), text);
    if problems.is_empty() {
        return Ok(entities);
    }
    Err(shown(problems))
}
