//! What a command is asked for: which log, and which of its entries.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::{Timestamp, civil, tz::TimeZone};

use super::super::{CommandError, SERVICE_SETTINGS, quickstart};
use crate::{
    audit::{CallType, Decision, Filter},
    identity::{Caller, KeyId},
    settings::{self, Settings},
};

/// Where the log is.
#[derive(Debug, clap::Args)]
pub(super) struct LogArguments {
    /// Directory of the log [default: `audit` in the data directory of the settings, else, where
    /// no --config is given and that is not there, of quickstart]
    #[arg(long, value_name = "DIRECTORY")]
    log: Option<PathBuf>,
    /// Settings file that names the data directory [default: /etc/ringway/ringway.toml, where it is
    /// there]
    #[arg(long, value_name = "FILE", env = "RINGWAY_CONFIG")]
    config: Option<PathBuf>,
}

/// Which entries.
#[derive(Debug, clap::Args)]
pub(super) struct FilterArguments {
    /// Not older: a time as 2026-03-01T12:00:00Z, a day as 2026-03-01, or how long ago as 90m, 12h
    /// or 7d
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<u64>,
    /// Older than this, written as for --since
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<u64>,
    /// Of this tenant
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Of this client application, as CLIENT or TENANT/CLIENT
    #[arg(long, value_name = "CLIENT")]
    client: Option<String>,
    /// Of this caller: the id of a key, `open`, `operator`, or as the log names it
    #[arg(long, value_name = "CALLER")]
    caller: Option<String>,
    /// Of this tool, by the name clients see or by its own
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Of this kind, as `tool_execution`
    #[arg(long = "type", value_name = "TYPE", value_parser = call_type)]
    call_type: Option<String>,
    /// `allowed` or `denied`
    #[arg(long, value_name = "DECISION", value_parser = decision)]
    decision: Option<String>,
    /// With this reason code, also where a policy only observed it
    #[arg(long, value_name = "CODE")]
    reason: Option<String>,
    /// The one with this execution id
    #[arg(long, value_name = "ID")]
    execution: Option<String>,
    /// With this correlation id of the client's
    #[arg(long, value_name = "ID")]
    correlation: Option<String>,
}

impl LogArguments {
    /// The directory named on the command line, else that of the settings file (the named one, or
    /// the service's), else that of quickstart.
    pub(super) fn directory(&self) -> Result<PathBuf, CommandError> {
        if let Some(directory) = &self.log {
            return Ok(directory.clone());
        }
        let service = Path::new(SERVICE_SETTINGS);
        let config = self.config.as_deref().or_else(|| service.exists().then_some(service));
        let settings = Settings::load(config, settings::environment().into_iter())?;
        let directory = settings.audit_directory();
        let fallback = quickstart::default_data_directory().map(|data| data.join("audit"));
        match fallback {
            Some(fallback) if self.config.is_none() && is_absent(&directory) => Ok(fallback),
            _ => Ok(directory),
        }
    }
}

/// Not there; one that may not be looked into is there.
fn is_absent(directory: &Path) -> bool {
    matches!(directory.try_exists(), Ok(false))
}

impl FilterArguments {
    pub(super) fn filter(&self) -> Result<Filter, CommandError> {
        let client = self.client.as_deref();
        let (tenant, client) = match client.and_then(|client| client.split_once('/')) {
            Some((tenant, client)) => (Some(tenant.to_owned()), Some(client.to_owned())),
            None => (None, client.map(str::to_owned)),
        };
        if let (Some(tenant), Some(own)) = (&self.tenant, &tenant)
            && tenant != own
        {
            return Err(CommandError::Usage(format!(
                "--tenant {tenant} and --client {own}/… name two tenants: name one"
            )));
        }
        Ok(Filter {
            from_ms: self.since,
            to_ms: self.until,
            tenant: self.tenant.clone().or(tenant),
            client_application: client,
            caller: self.caller.as_deref().map(caller),
            tool: self.tool.clone(),
            call_type: self.call_type.clone(),
            decision: self.decision.clone(),
            reason: self.reason.clone(),
            execution_id: self.execution.clone(),
            correlation_id: self.correlation.clone(),
        })
    }
}

/// A caller as the log names it; a key may be named by its id alone.
fn caller(text: &str) -> String {
    KeyId::parse(text).map_or_else(|| text.to_owned(), |id| Caller::Key(id).to_string())
}

fn call_type(text: &str) -> Result<String, String> {
    let known = || CallType::ALL.iter().map(|known| known.as_str()).collect::<Vec<_>>().join(", ");
    CallType::parse(text)
        .map(|known| known.as_str().to_owned())
        .ok_or_else(|| format!("no such kind of call; there are: {}", known()))
}

fn decision(text: &str) -> Result<String, String> {
    Decision::parse(text)
        .map(|known| known.as_str().to_owned())
        .ok_or_else(|| "write allowed or denied".to_owned())
}

/// A time, a day (in UTC), or how long ago; in milliseconds since the Unix epoch.
fn moment(text: &str) -> Result<u64, String> {
    let time = if let Ok(time) = text.parse::<Timestamp>() {
        Some(time)
    } else if let Ok(day) = text.parse::<civil::Date>() {
        TimeZone::UTC.to_timestamp(day.at(0, 0, 0, 0)).ok()
    } else {
        ago(text).and_then(|ago| Timestamp::now().checked_sub(ago).ok())
    };
    time.and_then(|time| u64::try_from(time.as_millisecond()).ok()).ok_or_else(|| {
        format!("{text:?} is not a time such as 2026-03-01T12:00:00Z, 2026-03-01, 90m, 12h or 7d")
    })
}

fn ago(text: &str) -> Option<Duration> {
    let unit = match text.chars().last()? {
        'd' => 86_400,
        'h' => 3_600,
        'm' => 60,
        's' => 1,
        _ => return None,
    };
    let count: u64 = text[..text.len() - 1].parse().ok()?;
    count.checked_mul(unit).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_forms() {
        assert_eq!(moment("2026-03-01T12:00:00Z"), Ok(1_772_366_400_000));
        assert_eq!(moment("2026-03-01T13:00:00+01:00"), Ok(1_772_366_400_000));
        assert_eq!(moment("2026-03-01"), Ok(1_772_323_200_000));
        let now = u64::try_from(Timestamp::now().as_millisecond()).unwrap();
        for (text, seconds) in [("90m", 5400), ("12h", 43_200), ("7d", 604_800), ("5s", 5)] {
            let ago = now - moment(text).unwrap();
            assert!(ago.abs_diff(seconds * 1000) < 5000, "{text} {ago}");
        }
        for bad in ["", "m", "7", "7w", "-1d", "yesterday", "99999999999999999d", "1€"] {
            assert!(moment(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_client_can_be_named_with_its_tenant() {
        let mut arguments = FilterArguments {
            since: None,
            until: None,
            tenant: None,
            client: Some("acme/desk".into()),
            caller: None,
            tool: None,
            call_type: None,
            decision: None,
            reason: None,
            execution: None,
            correlation: None,
        };
        let filter = arguments.filter().unwrap();
        assert_eq!(filter.tenant.as_deref(), Some("acme"));
        assert_eq!(filter.client_application.as_deref(), Some("desk"));
        arguments.client = Some("desk".into());
        assert_eq!(arguments.filter().unwrap().tenant, None);
        assert!(call_type("tools").unwrap_err().contains("tool_execution"));
        assert_eq!(decision("denied").as_deref(), Ok("denied"));
        for (given, named) in [
            ("0123456789ab", "key:0123456789ab"),
            ("key:0123456789ab", "key:0123456789ab"),
            ("open", "open"),
            ("operator", "operator"),
        ] {
            arguments.caller = Some(given.into());
            assert_eq!(arguments.filter().unwrap().caller.as_deref(), Some(named));
        }
    }
}
