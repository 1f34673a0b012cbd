//! What a service demands beyond its messages: WS-Policy, and extensions that must be understood.
//!
//! A policy is a choice of alternatives (WS-Policy 1.5, section 4). The first one that can be
//! honoured is taken; where there is none, the operation is refused with the first reason.

use std::collections::HashMap;

use super::names::{HTTP, SOAP_1_1, SOAP_1_2, WSDL};
use crate::xml::{Element, XML_NAMESPACE};

const POLICY: &[&str] =
    &["http://schemas.xmlsoap.org/ws/2004/09/policy", "http://www.w3.org/ns/ws-policy"];
const UTILITY: &str =
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd";
/// The header of WS-Security, where a description has it among its messages.
pub(super) const SECURITY: &str =
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd";
/// How deep policies may nest or lead to each other.
const DEPTH_MAX: usize = 32;
/// Most assertions looked at for one place.
const STEPS_MAX: usize = 5_000;
/// Most elements of a document that are looked through for policies with names.
const LOOKED_MAX: usize = 200_000;

/// What a caller has to prove itself with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Asked {
    /// A name and a password in the SOAP header.
    UsernameToken {
        /// The password as a digest.
        is_digest: bool,
    },
    /// HTTP Basic.
    Basic,
    /// A certificate of the client, for TLS.
    Certificate,
    /// A time stamp in the SOAP header.
    Timestamp,
}

/// Adds the policies of a document that have a name. They stand near the top.
pub(super) fn collect<'t>(root: Element<'t>, policies: &mut HashMap<&'t str, Element<'t>>) {
    let mut looked = 0_usize;
    let mut waiting: Vec<(Element<'t>, usize)> = vec![(root, 0)];
    while let Some((element, depth)) = waiting.pop() {
        for child in element.children() {
            looked += 1;
            if looked > LOOKED_MAX {
                return;
            }
            if is_policy(child, "Policy") {
                let id = child.attribute_in(UTILITY, "Id");
                let id = id.or_else(|| child.attribute_in(XML_NAMESPACE, "id"));
                if let Some(id) = id.or_else(|| child.attribute("Name")) {
                    policies.entry(id).or_insert(child);
                }
            } else if depth < 4 && child.local() != "schema" {
                waiting.push((child, depth + 1));
            }
        }
    }
}

fn is_policy(element: Element<'_>, local: &str) -> bool {
    element.local() == local && POLICY.contains(&element.namespace())
}

/// What stands at a place of a description is demanded there.
pub(super) fn demands<'t>(
    at: Element<'t>,
    policies: &HashMap<&'t str, Element<'t>>,
    asked: &mut Vec<Asked>,
) -> Result<(), String> {
    let mut reader = Reader { policies, steps: 0 };
    for child in at.children() {
        if is_policy(child, "Policy") || is_policy(child, "PolicyReference") {
            asked.extend(reader.alternative(child, false, DEPTH_MAX)?);
            continue;
        }
        let is_own = [WSDL, SOAP_1_1, SOAP_1_2, HTTP].contains(&child.namespace());
        let is_required = child.attribute_in(WSDL, "required").is_some_and(is_true);
        if is_required && !is_own {
            return Err(format!(
                "it requires the extension {} of {}",
                child.local(),
                child.namespace()
            ));
        }
    }
    for namespace in POLICY {
        let named = at.attribute_in(namespace, "PolicyURIs").unwrap_or_default();
        for reference in named.split_ascii_whitespace() {
            asked.extend(reader.named(reference, false, DEPTH_MAX)?);
        }
    }
    asked.sort_unstable();
    asked.dedup();
    Ok(())
}

fn is_true(value: &str) -> bool {
    matches!(value.trim(), "true" | "1")
}

struct Reader<'p, 't> {
    policies: &'p HashMap<&'t str, Element<'t>>,
    steps: usize,
}

impl<'t> Reader<'_, 't> {
    /// What an alternative asks for, or why it cannot be honoured. Among tokens only tokens count.
    fn alternative(
        &mut self,
        element: Element<'t>,
        among_tokens: bool,
        left: usize,
    ) -> Result<Vec<Asked>, String> {
        self.steps += 1;
        let left = left.checked_sub(1).filter(|_| self.steps < STEPS_MAX);
        let left = left.ok_or("its policy is too large or leads to itself")?;
        if POLICY.contains(&element.namespace()) {
            return match element.local() {
                "Policy" | "All" => {
                    let mut asked = Vec::new();
                    for child in element.children() {
                        asked.extend(self.alternative(child, among_tokens, left)?);
                    }
                    Ok(asked)
                }
                "ExactlyOne" => {
                    let mut reason = "its policy has no alternative".to_owned();
                    for (index, child) in element.children().enumerate() {
                        match self.alternative(child, among_tokens, left) {
                            Ok(asked) => return Ok(asked),
                            Err(problem) if index == 0 => reason = problem,
                            Err(_) => {}
                        }
                    }
                    Err(reason)
                }
                "PolicyReference" => {
                    self.named(element.attribute("URI").unwrap_or_default(), among_tokens, left)
                }
                // `UsingPolicy` and the like say nothing of messages.
                _ => Ok(Vec::new()),
            };
        }
        let says = |key: &str| {
            POLICY.iter().any(|namespace| element.attribute_in(namespace, key).is_some_and(is_true))
        };
        if says("Optional") || says("Ignorable") {
            return Ok(Vec::new());
        }
        if among_tokens { token(element) } else { self.assertion(element, left) }
    }

    fn named(
        &mut self,
        reference: &str,
        among_tokens: bool,
        left: usize,
    ) -> Result<Vec<Asked>, String> {
        let found =
            reference.trim().strip_prefix('#').and_then(|id| self.policies.get(id)).copied();
        match found {
            Some(policy) => self.alternative(policy, among_tokens, left),
            None => Err(format!("its policy {reference:?} is not described")),
        }
    }

    fn assertion(&mut self, element: Element<'t>, left: usize) -> Result<Vec<Asked>, String> {
        let local = element.local();
        match local {
            "TransportBinding" => Ok(transport(element)),
            name if name.ends_with("SupportingTokens") => {
                let mut asked = Vec::new();
                for child in element.children() {
                    asked.extend(self.alternative(child, true, left)?);
                }
                Ok(asked)
            }
            // What these say is true of every message sent, or says only what may be.
            "Wss10"
            | "Wss11"
            | "Trust10"
            | "Trust13"
            | "AutomaticallySelectOptimalEncoding"
            | "AutomaticallySelectFastInfoset" => Ok(Vec::new()),
            "BasicAuthentication" | "HttpBasicAuthentication" => Ok(vec![Asked::Basic]),
            _ => Err(format!("its policy demands {local}, which is not supported")),
        }
    }
}

/// What TLS has to bring along.
fn transport(element: Element<'_>) -> Vec<Asked> {
    let mut asked = Vec::new();
    let mut waiting = vec![element];
    let mut looked = 0_usize;
    while let Some(next) = waiting.pop() {
        looked += 1;
        if looked > STEPS_MAX {
            break;
        }
        match next.local() {
            "HttpBasicAuthentication" => asked.push(Asked::Basic),
            "RequireClientCertificate" => asked.push(Asked::Certificate),
            "IncludeTimestamp" => asked.push(Asked::Timestamp),
            "HttpsToken" if next.attribute("RequireClientCertificate").is_some_and(is_true) => {
                asked.push(Asked::Certificate);
            }
            _ => {}
        }
        waiting.extend(next.children());
    }
    asked
}

fn token(element: Element<'_>) -> Result<Vec<Asked>, String> {
    let local = element.local();
    if local == "UsernameToken" {
        let mut waiting = vec![element];
        let mut looked = 0_usize;
        let mut is_digest = false;
        while let Some(next) = waiting.pop().filter(|_| looked < STEPS_MAX) {
            looked += 1;
            is_digest |= next.local() == "HashPassword";
            waiting.extend(next.children());
        }
        return Ok(vec![Asked::UsernameToken { is_digest }]);
    }
    if local.ends_with("Token") || local.ends_with("Parts") || local.ends_with("Elements") {
        return Err(format!("its policy demands {local}, which is not supported"));
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::{Document, Limits};

    fn asked(policy: &str) -> Result<Vec<Asked>, String> {
        let text = format!(
            "<d xmlns:wsp='http://www.w3.org/ns/ws-policy' xmlns:sp='urn:sp' xmlns:w='{WSDL}'>\
             <wsp:Policy Name='a'><sp:Kerberos/></wsp:Policy>\
             <wsp:Policy Name='loop'><wsp:PolicyReference URI='#loop'/></wsp:Policy>\
             <b>{policy}</b></d>"
        );
        let document = Document::read(&text, Limits::MESSAGE).unwrap();
        let mut policies = HashMap::new();
        collect(document.root(), &mut policies);
        let mut asked = Vec::new();
        demands(document.root().child("", "b").unwrap(), &policies, &mut asked).map(|()| asked)
    }

    #[test]
    fn the_first_alternative_that_can_be_honoured_counts() {
        let username = |inside: &str| {
            format!(
                "<sp:SignedSupportingTokens><wsp:Policy><sp:UsernameToken><wsp:Policy>{inside}\
                 </wsp:Policy></sp:UsernameToken></wsp:Policy></sp:SignedSupportingTokens>"
            )
        };
        let digest = username("<sp:HashPassword/>");
        let policy = |inside: &str| asked(&format!("<wsp:Policy>{inside}</wsp:Policy>"));
        assert_eq!(
            policy(&format!(
                "<wsp:ExactlyOne><wsp:All><sp:Rm/></wsp:All><wsp:All>{digest}</wsp:All></wsp:ExactlyOne>"
            )),
            Ok(vec![Asked::UsernameToken { is_digest: true }])
        );
        let plain = Ok(vec![Asked::UsernameToken { is_digest: false }]);
        assert_eq!(policy(&format!("{0}{0}", username(""))), plain);
        assert_eq!(policy("<sp:Rm wsp:Optional='true'/>"), Ok(vec![]));
        assert_eq!(
            policy(
                "<sp:TransportBinding><wsp:Policy><sp:IncludeTimestamp/></wsp:Policy></sp:TransportBinding>"
            ),
            Ok(vec![Asked::Timestamp])
        );
    }

    #[test]
    fn what_cannot_be_honoured_is_a_reason() {
        for (policy, reason) in [
            ("<wsp:Policy><sp:Rm/></wsp:Policy>", "Rm"),
            ("<wsp:PolicyReference URI='#a'/>", "Kerberos"),
            ("<wsp:PolicyReference URI='#gone'/>", "#gone"),
            ("<wsp:PolicyReference URI='#loop'/>", "leads to itself"),
            ("<wsp:Policy><wsp:ExactlyOne/></wsp:Policy>", "no alternative"),
            ("<sp:Thing w:required='true'/>", "the extension Thing of urn:sp"),
            (
                "<wsp:Policy><sp:SupportingTokens><wsp:Policy><sp:X509Token/></wsp:Policy>\
                 </sp:SupportingTokens></wsp:Policy>",
                "X509Token",
            ),
        ] {
            let refused = asked(policy).unwrap_err();
            assert!(refused.contains(reason), "{refused}");
        }
    }
}
