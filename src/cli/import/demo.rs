//! The API of `ringway quickstart`: read before the server starts, published once it runs.
//!
//! It goes the way of `ringway import`, so that what was changed by hand since the last start
//! stays.

use std::net::{IpAddr, ToSocketAddrs};

use url::Url;

use super::source::{Reading, Source, shown};
use super::{Applying, carry_out, catalog_of};
use crate::cli::{AuthorArguments, CommandError, admin_client::AdminClient, output};
use crate::{
    catalog::{
        Assignment, ClientApplicationId, Entities, Entry, Origin, TenantId, ToolsetId, ToolsetKind,
    },
    import::{self, Consent, Description, Options, Plan, Report, Selection, Target},
    settings::{self, Network},
};

/// The toolset where the API's title is the name of another one.
const OTHER_TOOLSET: &str = "api";

/// A description that was read and makes tools.
#[derive(Debug)]
pub(in crate::cli) struct DemoApi {
    /// As it is shown to the operator.
    source: String,
    description: Description,
    target: Target,
    client_application: ClientApplicationId,
    /// What of the operator's own machine and network the tools reach.
    pub(in crate::cli) allowances: Vec<Network>,
}

/// Whose the tools are.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct Owner<'a> {
    pub(in crate::cli) tenant: &'a str,
    pub(in crate::cli) client_application: &'a str,
}

impl DemoApi {
    /// Reads the description, and sees to it that it makes tools in a catalog of `entities`.
    pub(in crate::cli) fn read(
        text: &str,
        base_url: Option<&str>,
        entities: &Entities,
        owner: Owner<'_>,
        settings: &settings::Downstream,
    ) -> Result<Self, CommandError> {
        let source = Source::open(text, None)?;
        let source_url = source.url().and_then(|url| Url::parse(url.as_str()).ok());
        let reading = Reading {
            format: None,
            options: Options { base_url: base_url.map(str::to_owned), ..Options::default() },
            allow_remote: false,
            // What is tried out is the operator's own, as are the addresses its tools reach.
            allow_private: true,
            tenant: owner.tenant,
            allowances: Vec::new(),
            settings,
        };
        let description = reading.read(source)?;
        let usage = |error: &dyn std::fmt::Display| CommandError::Usage(error.to_string());
        let title = description.title.as_deref().unwrap_or(OTHER_TOOLSET);
        let mut toolset = import::id_of(title);
        if entities.toolsets.iter().any(|entry| entry.value.id.as_str() == toolset) {
            OTHER_TOOLSET.clone_into(&mut toolset);
        }
        let target = Target {
            tenant: TenantId::new(owner.tenant).map_err(|error| usage(&error))?,
            toolset: ToolsetId::new(&toolset).map_err(|error| usage(&error))?,
            connection: None,
            base_url: base_url.map(str::to_owned),
            origin: format!("import of {}", shown(text)),
        };
        let client_application = ClientApplicationId::new(owner.client_application);
        let client_application = client_application.map_err(|error| usage(&error))?;
        let source = shown(text);
        let mut api = Self { source, description, target, client_application, allowances: vec![] };
        let report = api.plan(entities)?.report;
        if report.counts.tools() == 0 {
            super::report::print(&report);
            return Err(CommandError::NothingImported);
        }
        let urls = report.connections.iter().map(|one| one.base_url.as_str());
        // What the operator names: a file of his, an address of his, or the host it came from.
        let is_named = |url: &&str| match (&source_url, base_url) {
            (Some(source), None) => Url::parse(url).is_ok_and(|url| url.host() == source.host()),
            _ => true,
        };
        api.allowances = own_networks(urls.filter(is_named));
        Ok(api)
    }

    fn plan(&self, published: &Entities) -> Result<Plan, CommandError> {
        let consent = Consent { publish: true, accept_breaking: true };
        let everything = Selection::default();
        import::plan(published, &self.description, &self.target, &everything, consent)
            .map_err(|error| CommandError::Usage(error.to_string()))
    }

    /// Publishes the tools for the client application.
    pub(in crate::cli) fn publish(&self, client: &AdminClient) -> Result<Report, CommandError> {
        let (before, published) = catalog_of(client)?;
        let mut plan = self.plan(&published)?;
        let Target { tenant, toolset, origin, .. } = &self.target;
        let is_assigned = published.assignments.iter().any(|entry| {
            entry.value.tenant == *tenant
                && entry.value.toolset == *toolset
                && entry.value.client_application == self.client_application
        });
        if !is_assigned {
            let assignment = Assignment {
                tenant: tenant.clone(),
                client_application: self.client_application.clone(),
                toolset: toolset.clone(),
                enabled: true,
                include_client_prompt: false,
                prompt: None,
                prompt_mode: crate::catalog::PromptMode::default(),
                discovery_mode: None,
                policy: crate::catalog::Policy::default(),
            };
            plan.entities.assignments.push(Entry::new(assignment, Origin::new(origin, 0)));
        }
        let author = AuthorArguments { author: None, comment: origin.clone() };
        let applying = Applying { author: &author, comment: origin, dry_run: false };
        carry_out(client, &applying, before, &plan)?;
        Ok(plan.report)
    }

    /// Says what came of it, and where the operator finds the rest.
    pub(in crate::cli) fn introduce(&self, report: &Report) {
        let counts = report.counts;
        output::line(format_args!(
            "{}: {} of {} operations are tools of toolset {}; {} skipped, {} with notes.",
            report.title.as_deref().unwrap_or("The API"),
            counts.tools(),
            counts.operations,
            report.toolset,
            counts.skipped,
            counts.imported_with_notes,
        ));
        if counts.skipped + counts.imported_with_notes > 0 {
            let format = match self.description.kind {
                ToolsetKind::Soap => "wsdl",
                _ => "openapi",
            };
            let base_url = self.target.base_url.as_ref();
            let base_url = base_url.map(|url| format!(" --base-url {url}")).unwrap_or_default();
            output::line(format_args!(
                "Which, and why: ringway import {format} {}{base_url} --toolset {} --dry-run",
                self.source, report.toolset
            ));
        }
        for connection in &report.connections {
            for note in &connection.notes {
                output::line(format_args!("connection {}: {note}", connection.id));
            }
        }
        if !self.allowances.is_empty() {
            let networks: Vec<String> = self.allowances.iter().map(ToString::to_string).collect();
            output::line(format_args!("Its tools may reach {}.", networks.join(", ")));
        }
        output::line("");
    }
}

/// The networks of these URLs' hosts that are not public and the operator's own.
fn own_networks<'a>(urls: impl Iterator<Item = &'a str>) -> Vec<Network> {
    let urls = urls.filter_map(|url| Url::parse(url).ok());
    let mut networks: Vec<Network> = urls.flat_map(|url| own_addresses(&url)).collect();
    networks.sort_unstable_by_key(ToString::to_string);
    networks.dedup();
    networks
}

/// The addresses of a URL's host that are this machine's or of a private network. Link-local ones
/// are not among them: no tool is let near a cloud's metadata unasked.
fn own_addresses(url: &Url) -> Vec<Network> {
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Vec::new();
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let Ok(addresses) = (host, port).to_socket_addrs() else { return Vec::new() };
    let own = addresses.map(|address| address.ip().to_canonical()).filter(is_own);
    own.map(Network::from).collect()
}

fn is_own(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback() || address.is_private(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unique_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_and_private_networks_are_allowed() {
        let of = |url: &str| -> Vec<String> {
            let networks = own_addresses(&Url::parse(url).unwrap());
            networks.iter().map(ToString::to_string).collect()
        };
        assert_eq!(of("http://127.0.0.1:5000/v1"), ["127.0.0.1/32"]);
        assert_eq!(of("http://[::1]:5000/v1"), ["::1/128"]);
        assert_eq!(of("http://10.1.2.3"), ["10.1.2.3/32"]);
        for url in ["http://169.254.169.254/", "https://8.8.8.8/", "http://[fe80::1]/"] {
            assert!(of(url).is_empty(), "{url}");
        }
    }
}
