//! Which port of a service is taken, and where it is.
//!
//! Ports of one service that have the same port type are ways to the same operations: one is taken,
//! with SOAP 1.1 before 1.2 unless the operator says otherwise. Those with port types of their own
//! have operations of their own.

use url::Url;

use super::super::Options;
use super::definitions::{Definitions, named, parts};
use super::names::{HTTP, QName, SOAP_1_1, SOAP_1_2};
use super::notes::Notes;
use crate::mapping::SoapVersion;
use crate::xml::Element;

/// Most ports of a service that are looked at.
const PORTS_MAX: usize = 500;
/// Transports that are HTTP, by the URIs of both versions.
const TRANSPORTS: &[&str] = &[
    "http://schemas.xmlsoap.org/soap/http",
    "http://schemas.xmlsoap.org/soap/http/",
    "http://www.w3.org/2003/05/soap/bindings/HTTP/",
    "http://www.w3.org/2003/05/soap/bindings/HTTP",
    "http://schemas.xmlsoap.org/wsdl/soap12/http",
    "",
];

/// A port that is taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Port<'t> {
    /// The name of its service; of its binding, where nobody offers it.
    pub(super) service: &'t str,
    pub(super) name: &'t str,
    /// Its port type.
    pub(super) interface: QName<'t>,
    pub(super) binding: Element<'t>,
    /// The port itself and its service, where there are; policies stand there too.
    pub(super) around: [Option<Element<'t>>; 2],
    pub(super) address: Option<&'t str>,
    /// How messages are written, or why they cannot be.
    pub(super) kind: Result<Binding<'t>, &'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Binding<'t> {
    pub(super) version: SoapVersion,
    /// The namespace of its elements.
    pub(super) namespace: &'t str,
    pub(super) is_rpc: bool,
}

/// The ports whose operations are read, in the order of the description.
pub(super) fn chosen<'t>(
    definitions: &Definitions<'t>,
    options: &Options,
    notes: &mut Notes,
) -> Vec<Port<'t>> {
    let mut chosen = Vec::new();
    for (service_name, service) in &definitions.services {
        let mut ports: Vec<Port<'t>> = Vec::new();
        for port in parts(*service, "port").take(PORTS_MAX) {
            let name = port.attribute("name").unwrap_or_default();
            let binding = port.attribute("binding").and_then(|value| named(port, value));
            let Some(binding) = binding.and_then(|binding| definitions.binding(binding)) else {
                notes.add(format!("the binding of the port {name} is not described"));
                continue;
            };
            let address = port.children().find(|child| {
                child.local() == "address"
                    && [SOAP_1_1, SOAP_1_2, HTTP].contains(&child.namespace())
            });
            let address = address.and_then(|address| address.attribute("location"));
            let around = [Some(port), Some(*service)];
            ports.extend(bound(service_name.local, name, binding, around, address));
        }
        one_of_each(&ports, options, notes, &mut chosen);
    }
    if definitions.services.is_empty() {
        let mut ports = Vec::new();
        for (name, binding) in definitions.all_bindings.iter().take(PORTS_MAX) {
            ports.extend(bound(name.local, name.local, *binding, [None, None], None));
        }
        one_of_each(&ports, options, notes, &mut chosen);
    }
    chosen
}

fn bound<'t>(
    service: &'t str,
    name: &'t str,
    binding: Element<'t>,
    around: [Option<Element<'t>>; 2],
    address: Option<&'t str>,
) -> Option<Port<'t>> {
    let interface = binding.attribute("type").and_then(|value| named(binding, value))?;
    let kind = kind_of(binding);
    Some(Port { service, name, interface, binding, around, address, kind })
}

fn kind_of(binding: Element<'_>) -> Result<Binding<'_>, &'static str> {
    for child in binding.children().filter(|child| child.local() == "binding") {
        let version = match child.namespace() {
            SOAP_1_1 => SoapVersion::V1_1,
            SOAP_1_2 => SoapVersion::V1_2,
            HTTP => return Err("its binding is plain HTTP; only SOAP bindings are read"),
            _ => continue,
        };
        if !TRANSPORTS.contains(&child.attribute("transport").unwrap_or_default().trim()) {
            return Err("its transport is not HTTP");
        }
        let is_rpc = child.attribute("style") == Some("rpc");
        return Ok(Binding { version, namespace: child.namespace(), is_rpc });
    }
    Err("its binding is not one of SOAP")
}

/// Takes the best port of each port type.
fn one_of_each<'t>(
    ports: &[Port<'t>],
    options: &Options,
    notes: &mut Notes,
    out: &mut Vec<Port<'t>>,
) {
    let wished = options.soap_version.unwrap_or(SoapVersion::V1_1);
    let rank = |port: &Port<'t>| match port.kind {
        Ok(binding) if binding.version == wished => 0,
        Ok(_) => 1,
        Err(_) => 2,
    };
    let any_usable = ports.iter().any(|port| port.kind.is_ok());
    let mut done: Vec<QName<'t>> = Vec::new();
    for port in ports {
        if done.contains(&port.interface) {
            continue;
        }
        done.push(port.interface);
        let same: Vec<&Port<'t>> =
            ports.iter().filter(|other| other.interface == port.interface).collect();
        let Some(best) = same.iter().min_by_key(|port| rank(port)) else { continue };
        for other in same.iter().filter(|other| other.name != best.name) {
            notes.add(format!(
                "{}: the port {} is taken, {} is another way to the same",
                best.service, best.name, other.name
            ));
        }
        match best.kind {
            // The same operations, as a rule, under a port type of their own.
            Err(reason) if any_usable => {
                notes
                    .add(format!("{}: the port {} is left out: {reason}", best.service, best.name));
            }
            _ => out.push(**best),
        }
    }
}

/// Where an endpoint is: the URL of its host, and path and query there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) base_url: Option<String>,
    pub(super) path: String,
}

/// Takes an address apart. One that the operator gives counts: whole where it has a path, else its
/// host with the path of the description.
pub(super) fn address(given: Option<&str>, options: &Options, notes: &mut Notes) -> Address {
    let parse = |text: &str| Url::parse(text.trim()).ok().filter(is_http);
    let own = given.and_then(parse);
    let wished = options.base_url.as_deref().and_then(parse);
    if let (Some(given), None) = (given.filter(|given| !given.trim().is_empty()), &own) {
        notes.add(format!("{given:?} is no http or https address of a service"));
    }
    let host = wished.as_ref().or(own.as_ref());
    let place = wished.as_ref().filter(|url| url.path() != "/").or(own.as_ref());
    let base_url = host.map(|url| url.origin().ascii_serialization());
    let path = place.map_or_else(
        || "/".to_owned(),
        |url| {
            let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
            // Braces would be placeholders.
            format!("{}{query}", url.path())
                .replace('{', "%7B")
                .replace('}', "%7D")
                .replace('\\', "%5C")
        },
    );
    Address { base_url, path }
}

fn is_http(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_host_and_path() {
        let at = |given: Option<&str>, wished: Option<&str>| {
            let options = Options { base_url: wished.map(str::to_owned), ..Options::default() };
            let found = address(given, &options, &mut Notes::default());
            (found.base_url.unwrap_or_default(), found.path)
        };
        let pair = |base: &str, path: &str| (base.to_owned(), path.to_owned());
        let own = Some(" http://api.test:8080/a b/{x}.asmx?v={1}#f ");
        assert_eq!(at(own, None), pair("http://api.test:8080", "/a%20b/%7Bx%7D.asmx?v=%7B1%7D"));
        assert_eq!(at(Some("https://api.test"), None), pair("https://api.test", "/"));
        assert_eq!(
            at(Some("https://api.test/a"), Some("https://b.test")),
            pair("https://b.test", "/a")
        );
        assert_eq!(
            at(Some("https://api.test/a"), Some("http://b.test/c")),
            pair("http://b.test", "/c")
        );
        for none in [None, Some(""), Some("REPLACE_WITH_ACTUAL_URL"), Some("jms:queue")] {
            assert_eq!(at(none, None), pair("", "/"));
        }
    }
}
