//! The Prometheus text format (version 0.0.4).
//!
//! Absent: escaping. Every name, label and help text is a constant of the core without quotes or newlines; a
//! test holds it to that.

use std::fmt::Write as _;

use firedrill_core::metrics::{Series, SeriesKind};

/// The content type of [`render`].
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All series, with one head per name.
pub(crate) fn render(series: impl Iterator<Item = Series>) -> String {
    let mut text = String::new();
    let mut name = "";
    // Writing to a String cannot fail.
    for series in series {
        if series.name != name {
            name = series.name;
            let kind = match series.kind {
                SeriesKind::Counter => "counter",
                SeriesKind::Gauge => "gauge",
            };
            let _ = write!(text, "# HELP {name} {}\n# TYPE {name} {kind}\n", series.help);
        }
        let _ = match series.label {
            Some((label, value)) => writeln!(text, "{name}{{{label}=\"{value}\"}} {}", series.value),
            None => writeln!(text, "{name} {}", series.value),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use firedrill_core::metrics::Metrics;

    use super::*;

    #[test]
    fn every_name_has_one_head_and_needs_no_escaping() {
        let text = render(Metrics::default().series());
        let heads: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        let names: BTreeSet<&str> = Metrics::default().series().map(|series| series.name).collect();
        assert_eq!(heads.len(), names.len(), "{text}");
        assert!(Metrics::default().series().all(|series| !series.help.contains(['\\', '\n'])));
        assert!(text.contains("# TYPE firedrill_cluster_members gauge\nfiredrill_cluster_members 0\n"));
        assert!(text.contains("firedrill_cluster_frames_rejected_total{reason=\"mac\"} 0\n"));
    }
}
