//! Metrics as Prometheus text: the cores' figures summed when they are asked for.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::core_metrics::CoreMetrics;
use super::figures::{Gauge, LATENCY_BOUNDS_MICROSECONDS, LatencyTotal};
use super::labels::{DownstreamLabel, Label, MethodLabel, OutcomeLabel};
use super::process::{AuditFigures, ProcessFigures, UpstreamFigures, UpstreamsFigures};

/// `Content-Type` of what [`Metrics::render`] returns.
pub const METRICS_CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// Begins every metric's name.
const PREFIX: &str = "ringway";

/// Everything that is measured. Clones are equal.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    cores: Arc<Vec<Arc<CoreMetrics>>>,
}

impl Metrics {
    /// Metrics of `cores` cores of a process that started at `start_ms`. `process` is asked at
    /// every rendering, on the thread that renders.
    pub fn new(
        cores: usize,
        start_ms: u64,
        process: impl Fn() -> ProcessFigures + Send + Sync + 'static,
    ) -> Self {
        let cores: Vec<_> = (0..cores).map(|_| Arc::new(CoreMetrics::default())).collect();
        let cores = Arc::new(cores);
        let mut registry = Registry::with_prefix(PREFIX);
        registry.register_collector(Box::new(Figures {
            cores: Arc::clone(&cores),
            start_ms,
            process: Box::new(process),
        }));
        Self { registry: Arc::new(registry), cores }
    }

    /// The figures of one core, to be written by that core only.
    pub fn core(&self, index: usize) -> Option<&Arc<CoreMetrics>> {
        self.cores.get(index)
    }

    /// The figures of every core, in order.
    pub fn cores(&self) -> &[Arc<CoreMetrics>] {
        &self.cores
    }

    /// All metrics as Prometheus text, for [`METRICS_CONTENT_TYPE`].
    pub fn render(&self) -> String {
        let mut text = String::with_capacity(16 << 10);
        // Writing into a String does not fail.
        let _ = prometheus_text::encode(&mut text, &self.registry);
        text
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("cores", &self.cores.len()).finish_non_exhaustive()
    }
}

struct Figures {
    cores: Arc<Vec<Arc<CoreMetrics>>>,
    start_ms: u64,
    process: Box<dyn Fn() -> ProcessFigures + Send + Sync>,
}

impl fmt::Debug for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Figures").finish_non_exhaustive()
    }
}

impl Collector for Figures {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page { encoder, cores: &self.cores };
        page.requests()?;
        page.downstream()?;
        page.core_figures()?;
        page.process((self.process)(), self.start_ms)
    }
}

/// Writes one metric after the other. Counters get their `_total` from the encoder.
struct Page<'e, 'c> {
    encoder: DescriptorEncoder<'e>,
    cores: &'c [Arc<CoreMetrics>],
}

impl Page<'_, '_> {
    fn requests(&mut self) -> fmt::Result {
        let cores = self.cores;
        let help = "JSON-RPC requests by method and outcome";
        let mut family = self.begin("requests", help, None, MetricType::Counter)?;
        for &method in MethodLabel::ALL {
            for &outcome in OutcomeLabel::ALL {
                let place = |core: &Arc<CoreMetrics>| {
                    core.requests[method as usize][outcome as usize].value()
                };
                let count: u64 = cores.iter().map(place).sum();
                // Combinations that never occur would be most of the page.
                if count > 0 {
                    let labels = [("method", method.text()), ("outcome", outcome.text())];
                    counter(&mut family.encode_family(&labels)?, count)?;
                }
            }
        }
        let help = "Time from a request's dispatch to its answer, by method";
        let name = "request_duration";
        let mut family = self.begin(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        for &method in MethodLabel::ALL {
            let mut total = LatencyTotal::default();
            for core in cores {
                core.request_latency[method as usize].add_to(&mut total);
            }
            if total.count() > 0 {
                let labels = [("method", method.text())];
                histogram(&mut family.encode_family(&labels)?, &total)?;
            }
        }
        Ok(())
    }

    fn downstream(&mut self) -> fmt::Result {
        let cores = self.cores;
        let help = "Calls to the services behind the tools, by outcome";
        let mut family = self.begin("downstream_calls", help, None, MetricType::Counter)?;
        for &outcome in DownstreamLabel::ALL {
            let place = |core: &Arc<CoreMetrics>| core.downstream_calls[outcome as usize].value();
            let count = cores.iter().map(place).sum();
            counter(&mut family.encode_family(&[("outcome", outcome.text())])?, count)?;
        }
        let help = "Time of calls to the services behind the tools";
        let name = "downstream_duration";
        let mut metric = self.begin(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        let mut total = LatencyTotal::default();
        for core in cores {
            core.downstream_latency.add_to(&mut total);
        }
        histogram(&mut metric, &total)
    }

    fn core_figures(&mut self) -> fmt::Result {
        let bytes = Some(&Unit::Bytes);
        self.summed("sessions_opened", "Sessions that began", None, |core| {
            core.sessions_opened.value()
        })?;
        self.summed("sessions_ended", "Sessions that ended", None, |core| {
            core.sessions_ended.value()
        })?;
        self.summed("connections_accepted", "Connections accepted", None, |core| {
            core.connections_accepted.value()
        })?;
        let help = "Connections closed at once because a core carried as many as it may";
        self.summed("connections_refused", help, None, |core| core.connections_refused.value())?;
        let help = "Requests refused by guards, credentials, sessions or limits";
        self.summed("requests_refused", help, None, |core| core.requests_refused.value())?;
        let help = "Requests that were not well-formed HTTP";
        self.summed("requests_malformed", help, None, |core| core.requests_malformed.value())?;
        let help = "Messages between cores dropped because the other core's inbox was full";
        self.summed("messages_undelivered", help, None, |core| core.messages_undelivered.value())?;
        self.summed("http_requests", "HTTP requests read", None, |core| {
            core.http_requests.value()
        })?;
        self.summed("received", "Bytes read from clients, without TLS", bytes, |core| {
            core.received_bytes.value()
        })?;
        self.summed(
            "sent",
            "Bytes of answers to clients, without TLS and without event streams",
            bytes,
            |core| core.sent_bytes.value(),
        )?;
        let help =
            "Changes of streams a restart will not find: the store was too slow to take them";
        self.summed("journal_left_out", help, None, |core| core.journal_left_out.value())?;
        self.summed("cross_core_hops", "Messages handed to another core", None, |core| {
            core.cross_core_hops.value()
        })?;
        self.by_core("connections_open", "Connections open", None, |core| &core.connections_open)?;
        self.by_core("streams_open", "Event streams with a client attached", None, |core| {
            &core.streams_open
        })?;
        self.by_core("retained", "Bytes kept for replay", bytes, |core| &core.retained_bytes)
    }

    fn process(&mut self, figures: ProcessFigures, start_ms: u64) -> fmt::Result {
        let help = "Panics that were contained";
        self.single_counter("panics_contained", help, figures.panics_contained)?;
        let help = "Log lines dropped because their queue was full";
        self.single_counter("log_lines_dropped", help, figures.log_lines_dropped)?;
        let help = "Readings of the catalog files that changed nothing: something was wrong";
        let failures = figures.catalog_reload_failures;
        self.single_counter("catalog_reload_failures", help, failures)?;
        let help = "Whether the store takes writes: 1, or 0 while it is read-only";
        self.single_gauge("store_writable", help, None, i64::from(figures.store_writable))?;
        let sessions = i64::try_from(figures.sessions_open).unwrap_or(i64::MAX);
        self.single_gauge("sessions_open", "Sessions alive", None, sessions)?;
        self.audit(figures.audit)?;
        self.upstreams(&figures.upstreams)?;
        let help = "Whether the catalog files are bad and an older catalog is served: 1, else 0";
        let bad = i64::from(figures.catalog_files_bad);
        self.single_gauge("catalog_reload_bad", help, None, bad)?;
        let help = "Start of the process, since the Unix epoch";
        let seconds = i64::try_from(start_ms / 1000).unwrap_or(i64::MAX);
        self.single_gauge("start_time", help, Some(&Unit::Seconds), seconds)
    }

    fn audit(&mut self, audit: AuditFigures) -> fmt::Result {
        let help = "Records written to the audit log";
        self.single_counter("audit_records", help, audit.records)?;
        let help = "Audit records lost because the disk was too slow or full";
        self.single_counter("audit_records_dropped", help, audit.dropped)?;
        let help = "Payloads left out of audit records because there was no room";
        self.single_counter("audit_payloads_left_out", help, audit.payloads_left_out)?;
        let help = "Bytes written to the audit log";
        let unit = Some(&Unit::Bytes);
        let mut metric = self.begin("audit_written", help, unit, MetricType::Counter)?;
        counter(&mut metric, audit.bytes)?;
        let help = "Writes of the audit log that failed";
        self.single_counter("audit_write_errors", help, audit.write_errors)?;
        let segments = i64::try_from(audit.segments).unwrap_or(i64::MAX);
        self.single_gauge("audit_segments", "Segments of the audit log", None, segments)?;
        let help = "Whether the audit log takes writes: 1, or 0 while they fail or hang";
        self.single_gauge("audit_writable", help, None, i64::from(audit.writable))
    }

    fn upstreams(&mut self, figures: &UpstreamsFigures) -> fmt::Result {
        let help = "Times that MCP servers behind toolsets were asked what they offer, by outcome";
        let mut family = self.begin("upstream_discoveries", help, None, MetricType::Counter)?;
        for (outcome, count) in [("answered", figures.answered), ("failed", figures.failed)] {
            counter(&mut family.encode_family(&[("outcome", outcome)])?, count)?;
        }
        let help = "Whether an MCP server behind a toolset answered when last asked: 1, else 0";
        self.by_upstream("upstream_up", help, figures, |upstream| upstream.is_up.map(u64::from))?;
        let help = "Definitions of an MCP server behind a toolset that wait for approval";
        let name = "upstream_definitions_pending";
        self.by_upstream(name, help, figures, |upstream| Some(upstream.pending))?;
        let help = "Sessions open at an MCP server behind a toolset";
        self.by_upstream("upstream_sessions", help, figures, |upstream| upstream.sessions)
    }

    fn by_upstream(
        &mut self,
        name: &str,
        help: &str,
        figures: &UpstreamsFigures,
        value: impl Fn(&UpstreamFigures) -> Option<u64>,
    ) -> fmt::Result {
        if figures.upstreams.iter().all(|upstream| value(upstream).is_none()) {
            return Ok(());
        }
        let mut family = self.begin(name, help, None, MetricType::Gauge)?;
        for upstream in &figures.upstreams {
            let labels =
                [("tenant", upstream.tenant.as_str()), ("toolset", upstream.toolset.as_str())];
            let Some(value) = value(upstream) else { continue };
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            family.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn begin<'s>(
        &'s mut self,
        name: &'s str,
        help: &str,
        unit: Option<&'s Unit>,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.encoder.encode_descriptor(name, help, unit, kind)
    }

    fn summed(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        value: impl Fn(&CoreMetrics) -> u64,
    ) -> fmt::Result {
        let sum = self.cores.iter().map(|core| value(core)).sum();
        counter(&mut self.begin(name, help, unit, MetricType::Counter)?, sum)
    }

    fn by_core(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        gauge: impl Fn(&CoreMetrics) -> &Gauge,
    ) -> fmt::Result {
        let cores = self.cores;
        let mut family = self.begin(name, help, unit, MetricType::Gauge)?;
        for (index, core) in cores.iter().enumerate() {
            let value = gauge(core).value();
            family.encode_family(&[("core", index)])?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn single_counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        counter(&mut self.begin(name, help, None, MetricType::Counter)?, value)
    }

    fn single_gauge(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        value: i64,
    ) -> fmt::Result {
        self.begin(name, help, unit, MetricType::Gauge)?.encode_gauge(&value)
    }
}

fn counter(encoder: &mut MetricEncoder<'_>, value: u64) -> fmt::Result {
    encoder.encode_counter::<NoLabelSet, _, u64>(&value, None)
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus numbers are floats")]
fn histogram(encoder: &mut MetricEncoder<'_>, total: &LatencyTotal) -> fmt::Result {
    let seconds = |microseconds: u64| microseconds as f64 / 1e6;
    let bounds = LATENCY_BOUNDS_MICROSECONDS.iter().map(|&bound| seconds(bound));
    // The encoder adds the bucket without a bound.
    let buckets: Vec<(f64, u64)> = bounds.zip(total.buckets.iter().copied()).collect();
    let sum = seconds(total.sum_microseconds);
    encoder.encode_histogram::<NoLabelSet>(sum, total.count(), &buckets, None)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn metrics() -> Metrics {
        Metrics::new(2, 1_796_000_000_999, || ProcessFigures {
            panics_contained: 3,
            log_lines_dropped: 4,
            store_writable: true,
            sessions_open: 5,
            audit: AuditFigures {
                records: 6,
                dropped: 7,
                bytes: 8,
                segments: 9,
                write_errors: 10,
                payloads_left_out: 11,
                writable: true,
            },
            catalog_reload_failures: 6,
            catalog_files_bad: true,
            upstreams: UpstreamsFigures {
                answered: 12,
                failed: 13,
                upstreams: vec![UpstreamFigures {
                    tenant: "acme".to_owned(),
                    toolset: "docs".to_owned(),
                    is_up: Some(true),
                    pending: 2,
                    sessions: Some(3),
                }],
            },
        })
    }

    fn assert_line(text: &str, line: &str) {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }

    #[test]
    fn cores_are_summed() {
        let metrics = metrics();
        let elapsed = Duration::from_micros(300);
        metrics.core(0).unwrap().request(MethodLabel::Ping, OutcomeLabel::Ok, elapsed);
        metrics.core(1).unwrap().request(MethodLabel::Ping, OutcomeLabel::Ok, elapsed * 2);
        metrics.core(1).unwrap().downstream_call(DownstreamLabel::TimedOut, elapsed);
        metrics.core(1).unwrap().received_bytes.add(10);
        metrics.core(1).unwrap().retained_bytes.set(7);
        metrics.core(0).unwrap().streams_open.add(2);
        let text = metrics.render();
        for line in [
            "ringway_requests_total{method=\"ping\",outcome=\"ok\"} 2",
            "ringway_request_duration_seconds_bucket{method=\"ping\",le=\"0.00025\"} 0",
            "ringway_request_duration_seconds_bucket{method=\"ping\",le=\"0.0005\"} 1",
            "ringway_request_duration_seconds_bucket{method=\"ping\",le=\"0.001\"} 2",
            "ringway_request_duration_seconds_bucket{method=\"ping\",le=\"+Inf\"} 2",
            "ringway_request_duration_seconds_count{method=\"ping\"} 2",
            "ringway_request_duration_seconds_sum{method=\"ping\"} 0.0009",
            "ringway_downstream_calls_total{outcome=\"timed_out\"} 1",
            "ringway_downstream_calls_total{outcome=\"ok\"} 0",
            "ringway_downstream_duration_seconds_count 1",
            "ringway_received_bytes_total 10",
            "ringway_retained_bytes{core=\"1\"} 7",
            "ringway_streams_open{core=\"0\"} 2",
            "ringway_panics_contained_total 3",
            "ringway_log_lines_dropped_total 4",
            "ringway_store_writable 1",
            "ringway_sessions_open 5",
            "ringway_audit_records_total 6",
            "ringway_audit_records_dropped_total 7",
            "ringway_audit_written_bytes_total 8",
            "ringway_audit_segments 9",
            "ringway_audit_write_errors_total 10",
            "ringway_audit_payloads_left_out_total 11",
            "ringway_audit_writable 1",
            "ringway_upstream_discoveries_total{outcome=\"answered\"} 12",
            "ringway_upstream_discoveries_total{outcome=\"failed\"} 13",
            "ringway_upstream_up{tenant=\"acme\",toolset=\"docs\"} 1",
            "ringway_upstream_definitions_pending{tenant=\"acme\",toolset=\"docs\"} 2",
            "ringway_upstream_sessions{tenant=\"acme\",toolset=\"docs\"} 3",
            "ringway_catalog_reload_failures_total 6",
            "ringway_catalog_reload_bad 1",
            "ringway_start_time_seconds 1796000000",
            "# TYPE ringway_requests_total counter",
            "# TYPE ringway_request_duration_seconds histogram",
        ] {
            assert_line(&text, line);
        }
    }

    #[test]
    fn every_metric_is_described_once_and_prefixed() {
        let text = metrics().render();
        let mut names: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE "))
            .filter_map(|line| line.split(' ').next())
            .collect();
        assert!(names.len() > 15, "{text}");
        assert!(names.iter().all(|name| name.starts_with("ringway_")), "{names:?}");
        let described = text.lines().filter(|line| line.starts_with("# HELP ")).count();
        assert_eq!(described, names.len());
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn the_page_has_a_bound() {
        let metrics = metrics();
        for core in metrics.cores() {
            for &method in MethodLabel::ALL {
                for &outcome in OutcomeLabel::ALL {
                    core.request(method, outcome, Duration::from_secs(1));
                }
            }
        }
        assert!(metrics.render().len() < 64 << 10);
        assert!(metrics.core(2).is_none());
    }
}
