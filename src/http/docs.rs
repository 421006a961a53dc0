//! `docs/metrics.md`, written from the tables, and a check of `docs/grafana.json` against them. After a change of a
//! table: `UPDATE_DOCS=1 cargo test -p ringmain --lib http::docs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::Value;
use shards::metrics::{BUSY_SECONDS, CORE_METRICS, Family, Metric, MetricKind};
use storage::{DISK_METRICS, DISK_WRITE_SECONDS, STORAGE_METRICS};

use super::metrics::PREFIX;
use crate::shard::{SHARD_FAMILIES, SHARD_METRICS};

fn plain<T>(table: &'static [Metric<T>]) -> Vec<Family> {
    let families = table.iter().map(|metric| Family {
        name: metric.name,
        help: metric.help,
        kind: metric.kind,
        labels: &["core"],
    });
    families.collect()
}

/// Every number that there is, by what it is about.
fn sections() -> Vec<(&'static str, Vec<Family>)> {
    let mut core = plain(CORE_METRICS);
    core.push(BUSY_SECONDS);
    let mut storage = plain(STORAGE_METRICS);
    storage.extend(DISK_METRICS.iter().map(|(family, _)| *family));
    storage.push(DISK_WRITE_SECONDS);
    let mut broker = plain(SHARD_METRICS);
    broker.extend(SHARD_FAMILIES);
    vec![
        ("The runtime of a core (`shards`)", core),
        ("Logs and disks (`storage`)", storage),
        ("The broker", broker),
    ]
}

/// The name as Prometheus shows it.
fn shown(family: &Family) -> String {
    match family.kind {
        MetricKind::Counter => format!("{PREFIX}_{}_total", family.name),
        MetricKind::Gauge | MetricKind::Histogram => format!("{PREFIX}_{}", family.name),
    }
}

fn page() -> String {
    let mut page = String::from(
        "# Metrics\n\n\
         Written from the tables in the code; do not edit by hand (`UPDATE_DOCS=1 cargo test -p ringmain --lib http::docs`).\n\n\
         They are told at `/metrics` of `ringmain.http.listener`, in the text format of OpenMetrics. Numbers with the \
         label `core` are told by every core; add them up. Histograms have `_bucket`, `_sum` and `_count`, in seconds. \
         Those of single partitions are there with `ringmain.metrics.partitions=true` only. `grafana.json` beside this \
         page is a dashboard that draws them.\n",
    );
    for (title, families) in sections() {
        let _ = write!(
            page,
            "\n## {title}\n\n| metric | type | labels | what it is |\n|---|---|---|---|\n"
        );
        for family in families {
            let kind = format!("{:?}", family.kind).to_lowercase();
            let labels: Vec<String> = family.labels.iter().map(|it| format!("`{it}`")).collect();
            let (name, labels) = (shown(&family), labels.join(" "));
            let _ = writeln!(page, "| `{name}` | {kind} | {labels} | {} |", family.help);
        }
    }
    page
}

#[test]
fn the_page_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/metrics.md");
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page,
        "docs/metrics.md is old; run: UPDATE_DOCS=1 cargo test -p ringmain --lib http::docs"
    );
}

#[test]
fn every_name_is_used_once() {
    let all: Vec<Family> = sections().into_iter().flat_map(|(_, it)| it).collect();
    let names: BTreeSet<&str> = all.iter().map(|family| family.name).collect();
    assert_eq!(names.len(), all.len());
}

/// Every name that Prometheus will know, with its labels.
fn known() -> BTreeMap<String, Vec<&'static str>> {
    let mut known = BTreeMap::new();
    for family in sections().into_iter().flat_map(|(_, it)| it) {
        let mut labels = family.labels.to_vec();
        let name = shown(&family);
        if family.kind == MetricKind::Histogram {
            known.insert(format!("{name}_sum"), labels.clone());
            known.insert(format!("{name}_count"), labels.clone());
            labels.push("le");
            known.insert(format!("{name}_bucket"), labels);
        } else {
            known.insert(name, labels);
        }
    }
    known
}

/// Every name that Prometheus will know.
pub(crate) fn metric_names() -> BTreeSet<String> {
    known().into_keys().collect()
}

fn dashboard() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/grafana.json");
    let text = std::fs::read_to_string(path).expect("the dashboard is checked in");
    serde_json::from_str(&text).expect("it is JSON")
}

/// All panels, also those inside of rows.
fn panels(dashboard: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        found.push(panel);
        found.extend(panel["panels"].as_array().into_iter().flatten());
    }
    found
}

/// The words of a query that are names of ours.
fn names_in(query: &str) -> BTreeSet<String> {
    let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = words.filter(|word| word.starts_with(&format!("{PREFIX}_")));
    ours.map(str::to_owned).collect()
}

/// Label names of a query: those in braces, and those that it groups by.
fn labels_in(query: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for braces in query.split('{').skip(1) {
        let inside = braces.split('}').next().unwrap_or_default();
        for part in inside.split(',').filter(|part| !part.is_empty()) {
            let end = part.find(['=', '!']).expect("a matcher");
            found.insert(part[..end].trim().to_owned());
        }
    }
    for by in query.split("by (").skip(1) {
        let inside = by.split(')').next().unwrap_or_default();
        found.extend(inside.split(',').map(|label| label.trim().to_owned()));
    }
    found
}

#[test]
fn the_dashboard_draws_what_there_is() {
    let (dashboard, known) = (dashboard(), known());
    let mut drawn = BTreeSet::new();
    for panel in panels(&dashboard) {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let query = target["expr"].as_str().expect("a query");
            let names = names_in(query);
            assert!(!names.is_empty(), "{query}");
            let mut labels = BTreeSet::from(["instance", "job"]);
            for name in &names {
                let of_name = known
                    .get(name)
                    .unwrap_or_else(|| panic!("{name} is no metric: {query}"));
                labels.extend(of_name);
            }
            for label in labels_in(query) {
                assert!(labels.contains(&*label), "no label {label}: {query}");
            }
            drawn.extend(names);
        }
    }
    // What somebody looks at first must be there.
    for name in [
        "ringmain_requests_total",
        "ringmain_request_errors_total",
        "ringmain_request_stage_seconds_bucket",
        "ringmain_parked",
        "ringmain_drops_total",
        "ringmain_partitions_offline",
        "ringmain_disk_free_bytes",
        "ringmain_disk_write_seconds_bucket",
        "ringmain_core_busy_seconds_total",
        "ringmain_core_mailbox_depth",
        "ringmain_groups_rebalancing",
        "ringmain_old_version_requests_total",
        "ringmain_process_resident_bytes",
        "ringmain_partition_log_end_offset",
    ] {
        assert!(drawn.contains(name), "{name} is not drawn");
    }
}

#[test]
fn the_dashboard_is_one_that_grafana_takes() {
    let dashboard = dashboard();
    for text in ["title", "uid"] {
        assert!(!dashboard[text].as_str().expect(text).is_empty());
    }
    assert!(dashboard["schemaVersion"].as_i64().expect("a version") >= 36);
    // Whoever imports it chooses the data source.
    let variables = dashboard["templating"]["list"].as_array().expect("a list");
    let source = variables.iter().find(|it| it["type"] == "datasource");
    assert_eq!(source.expect("a data source")["query"], "prometheus");
    let (mut ids, mut places) = (BTreeSet::new(), Vec::new());
    for panel in panels(&dashboard) {
        assert!(
            ids.insert(panel["id"].as_i64().expect("an id")),
            "{panel:?}"
        );
        assert!(!panel["title"].as_str().expect("a title").is_empty());
        let side = |name: &str| panel["gridPos"][name].as_i64().expect("a place");
        let (x, y, w, h) = (side("x"), side("y"), side("w"), side("h"));
        assert!(x >= 0 && w > 0 && x + w <= 24 && h > 0, "{panel:?}");
        for (x2, y2, w2, h2) in &places {
            let apart = x + w <= *x2 || x2 + w2 <= x || y + h <= *y2 || y2 + h2 <= y;
            assert!(apart, "panels overlap: {}", panel["title"]);
        }
        places.push((x, y, w, h));
        if panel["type"] == "row" {
            continue;
        }
        assert_eq!(panel["datasource"]["uid"], "${source}", "{panel:?}");
        let targets = panel["targets"].as_array().expect("queries");
        let letters: BTreeSet<_> = targets.iter().map(|it| it["refId"].to_string()).collect();
        assert_eq!(letters.len(), targets.len(), "{}", panel["title"]);
        assert!(!panel["fieldConfig"]["defaults"]["unit"].is_null());
    }
}
