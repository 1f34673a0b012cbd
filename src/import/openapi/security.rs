//! What an operation asks of its caller: the first of its alternatives that a connection's
//! credentials can satisfy.

use serde_json::{Map, Value};

use super::clean;
use super::library::Spot;
use super::{Reader, Version, items, members, texts};
use crate::catalog::ApiKeyPlace;

/// Most alternatives of one operation, and most schemes of each.
const ALTERNATIVES_MAX: usize = 20;

/// A scheme as far as a connection can use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scheme {
    ApiKey {
        place: ApiKeyPlace,
        name: String,
    },
    Basic,
    Bearer,
    /// A token endpoint for clients on their own.
    ClientCredentials {
        token_url: String,
    },
    /// A token that the operator has to come by, and how it is described.
    Token(String),
    /// What no credential can do, and why.
    Unusable(String),
}

impl Scheme {
    /// How well it can be satisfied; less is better.
    const fn rank(&self) -> u8 {
        match self {
            Self::ApiKey { .. } | Self::Basic | Self::Bearer | Self::ClientCredentials { .. } => 0,
            Self::Token(_) => 1,
            Self::Unusable(_) => 2,
        }
    }

    /// Where it is sent.
    fn place(&self) -> (ApiKeyPlace, String) {
        match self {
            Self::ApiKey { place: ApiKeyPlace::Header, name } => {
                (ApiKeyPlace::Header, name.to_ascii_lowercase())
            }
            Self::ApiKey { place, name } => (*place, name.clone()),
            _ => (ApiKeyPlace::Header, "authorization".to_owned()),
        }
    }
}

/// A scheme that an operation asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Demand {
    pub(super) name: String,
    pub(super) scheme: Scheme,
    pub(super) scopes: Vec<String>,
}

/// What is asked for, all of it together.
#[derive(Debug, Default)]
pub(super) struct Security {
    pub(super) demands: Vec<Demand>,
    /// The operation needs none.
    pub(super) is_open: bool,
    /// What else would do, and what cannot be sent besides: matters of the connection.
    pub(super) of_connection: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// One header or parameter holds one credential: of several that are asked for there the best is
/// taken, of equals the first. Some generators write each flow of one OAuth token as a scheme.
fn one_for_each_place(demands: &[Demand]) -> (Vec<Demand>, Option<String>) {
    let mut kept: Vec<Demand> = Vec::new();
    let mut left: Vec<&Demand> = Vec::new();
    let mut ranked: Vec<&Demand> = demands.iter().collect();
    ranked.sort_by_key(|demand| demand.scheme.rank());
    for demand in ranked {
        let place = demand.scheme.place();
        if kept.iter().any(|other| other.scheme.place() == place) {
            left.push(demand);
        } else {
            kept.push(demand.clone());
        }
    }
    kept.sort_by_key(|demand| demands.iter().position(|other| other == demand));
    let names: Vec<String> = left.iter().map(|demand| clean::quoted(&demand.name)).collect();
    let note = (!names.is_empty()).then(|| {
        let left = names.join(" and ");
        let kept = shown(&kept);
        format!("{left} is asked for too, and would be sent in the place of {kept}")
    });
    (kept, note)
}

impl<'a> Reader<'a> {
    /// What an operation asks for.
    pub(super) fn security(&self, operation: Spot<'a>) -> Security {
        let listed = operation.get("security").or_else(|| self.root.get("security"));
        let mut security = Security::default();
        let alternatives: Vec<Vec<Demand>> = items(listed)
            .take(ALTERNATIVES_MAX)
            .filter_map(Value::as_object)
            .map(|alternative| self.demands(alternative))
            .collect();
        let is_optional = alternatives.iter().any(Vec::is_empty);
        let rank = |demands: &[Demand]| demands.iter().map(|demand| demand.scheme.rank()).max();
        let ranked = alternatives.iter().filter_map(|demands| Some((rank(demands)?, demands)));
        // Of equals the first.
        let best = ranked.min_by_key(|(rank, _)| *rank);
        let Some((rank, demands)) = best else {
            security.is_open = true;
            return security;
        };
        if rank == 2 {
            for demand in demands {
                if let Scheme::Unusable(reason) = &demand.scheme {
                    let name = clean::quoted(&demand.name);
                    security.notes.push(format!("it asks for {name}, {reason}"));
                }
            }
            security.is_open = is_optional;
            return security;
        }
        let taken = shown(demands);
        let mut others: Vec<String> = Vec::new();
        for other in alternatives.iter().filter(|other| !other.is_empty()).map(|one| shown(one)) {
            if other != taken && !others.contains(&other) {
                others.push(other);
            }
        }
        let (demands, doubled) = one_for_each_place(demands);
        security.of_connection.extend(doubled);
        if !others.is_empty() {
            let others = others.join(" or ");
            let note = format!("of credentials {taken} is taken; {others} would do too");
            security.of_connection.push(note);
        }
        if is_optional {
            security.notes.push("it can be called without credentials too".to_owned());
        }
        security.demands = demands;
        security
    }

    fn demands(&self, alternative: &'a Map<String, Value>) -> Vec<Demand> {
        let demand = |(name, scopes): (&'a String, &'a Value)| Demand {
            name: name.clone(),
            scheme: self.scheme(name),
            scopes: texts(Some(scopes)).map(ToOwned::to_owned).collect(),
        };
        alternative.iter().take(ALTERNATIVES_MAX).map(demand).collect()
    }

    fn scheme(&self, name: &str) -> Scheme {
        let holder = if self.version == Version::V20 {
            self.index.member(self.root, "securityDefinitions")
        } else {
            let components = self.index.member(self.root, "components");
            components.and_then(|components| self.index.member(components, "securitySchemes"))
        };
        let found = holder.and_then(|holder| self.index.member(holder, name));
        let Some(spot) = found.and_then(|found| self.index.follow(found).ok()) else {
            return Scheme::Unusable("which is not described".to_owned());
        };
        let lower = |word| spot.text(word).unwrap_or_default().to_ascii_lowercase();
        match lower("type").as_str() {
            "basic" => Scheme::Basic,
            "apikey" => api_key(spot, &lower("in")),
            "http" => match lower("scheme").as_str() {
                "basic" => Scheme::Basic,
                "bearer" => Scheme::Bearer,
                other => {
                    let other = clean::quoted(other);
                    Scheme::Unusable(format!("the HTTP scheme {other}, which no credential does"))
                }
            },
            "oauth2" => self.oauth(spot),
            "openidconnect" => {
                let url = clean::quoted(spot.text("openIdConnectUrl").unwrap_or_default());
                Scheme::Token(format!("a token of the OpenID provider at {url}"))
            }
            "mutualtls" => Scheme::Unusable(
                "a client certificate; set `client_certificate` of the connection".to_owned(),
            ),
            other => {
                let other = clean::quoted(other);
                Scheme::Unusable(format!("of the type {other}, which no credential does"))
            }
        }
    }

    fn oauth(&self, spot: Spot<'a>) -> Scheme {
        let flows = spot.get("flows");
        let own = if self.version == Version::V20 {
            (spot.text("flow") == Some("application")).then_some(spot.value)
        } else {
            flows.and_then(|flows| flows.get("clientCredentials"))
        };
        let url = own.and_then(|flow| flow.get("tokenUrl")?.as_str());
        let joined = url.and_then(|url| self.index.base(spot)?.join(url).ok());
        if let Some(url) = joined.filter(|url| matches!(url.scheme(), "http" | "https")) {
            return Scheme::ClientCredentials { token_url: url.to_string() };
        }
        let names: Vec<String> = members(flows).map(|(name, _)| name.clone()).collect();
        let named = spot.text("flow").map(ToOwned::to_owned).into_iter().chain(names);
        let named: Vec<String> = named.map(|name| clean::quoted(&name)).take(5).collect();
        Scheme::Token(format!("a token of the OAuth flow {}", named.join(" or ")))
    }
}

fn api_key(spot: Spot<'_>, place: &str) -> Scheme {
    let place = match place {
        "header" => ApiKeyPlace::Header,
        "query" => ApiKeyPlace::Query,
        "cookie" => ApiKeyPlace::Cookie,
        _ => return Scheme::Unusable("a key in no known place".to_owned()),
    };
    match spot.text("name").filter(|name| !name.is_empty()) {
        Some(name) => Scheme::ApiKey { place, name: name.to_owned() },
        None => Scheme::Unusable("a key without a name".to_owned()),
    }
}

fn shown(demands: &[Demand]) -> String {
    let names: Vec<String> = demands.iter().map(|demand| clean::quoted(&demand.name)).collect();
    names.join(" with ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(name: &str, scheme: Scheme) -> Demand {
        Demand { name: name.to_owned(), scheme, scopes: Vec::new() }
    }

    fn key(name: &str, header: &str) -> Demand {
        let scheme = Scheme::ApiKey { place: ApiKeyPlace::Header, name: header.to_owned() };
        demand(name, scheme)
    }

    #[test]
    fn one_header_holds_one_credential() {
        let token = || Scheme::Token("a token".to_owned());
        let cases: [(&[Demand], &[&str], Option<&str>); 4] = [
            (
                // Google's descriptions ask for both, which are flows of one token.
                &[demand("Oauth2", token()), demand("Oauth2c", token())],
                &["Oauth2"],
                Some("`Oauth2c` is asked for too, and would be sent in the place of `Oauth2`"),
            ),
            (
                &[demand("a", token()), demand("b", Scheme::Basic)],
                &["b"],
                Some("`a` is asked for too"),
            ),
            (
                &[demand("a", Scheme::Basic), key("b", "AUTHORIZATION")],
                &["a"],
                Some("`b` is asked for too"),
            ),
            (&[key("a", "X-App"), demand("b", token()), key("c", "X-Key")], &["a", "b", "c"], None),
        ];
        for (demands, wanted, said) in cases {
            let (kept, note) = one_for_each_place(demands);
            let kept: Vec<&str> = kept.iter().map(|demand| demand.name.as_str()).collect();
            assert_eq!(kept, wanted);
            assert_eq!(note.is_some(), said.is_some(), "{note:?}");
            assert!(said.is_none_or(|said| note.unwrap().contains(said)));
        }
    }
}
