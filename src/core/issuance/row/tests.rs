//! Rows read, written and ranked.

use alloc::format;
use alloc::string::ToString;

use proptest::prelude::*;

use super::*;
use crate::issuance::support::{any_row, decimal, lease, node, origin, row, stamped};

/// The first takeover row of a measured drill, as an older writer put it.
const TAKEOVER: &str = r#"{ "key": "zeq-issuance-v1:w2301676684", "window": 2301676684, "from_window": 2301676606,
    "elapsed": 8, "rate": 0.999999999999, "amount": "7.999999999992", "phase": 0.9999813435332383,
    "genesis_pegged": true, "epoch": 1, "issuer": "drill-b" }"#;

fn read(text: &str) -> Result<Row, String> {
    serde_json::from_str(text).map_err(|problem| problem.to_string())
}

#[test]
fn an_older_writers_row_reads_and_is_written_with_exact_texts() {
    let row = read(TAKEOVER).unwrap();
    let text = concat!(
        r#"{"key":"zeq-issuance-v1:w2301676684","window":2301676684,"from_window":2301676606,"elapsed":8,"#,
        r#""rate":"0.999999999999","amount":"7.999999999992","phase":"0.999981343533","genesis_pegged":true,"#,
        r#""epoch":1,"issuer":"drill-b"}"#
    );
    assert_eq!(row.to_text(), text);
    assert_eq!(read(text).unwrap(), row);
}

#[test]
fn a_row_covers_what_elapsed_and_forfeits_the_rest_of_the_gap() {
    let takeover = read(TAKEOVER).unwrap();
    assert_eq!(takeover.covers(), 2_301_676_677..=2_301_676_684);
    assert_eq!(takeover.forfeited(), 2_301_676_607..=2_301_676_676);
    assert_eq!(takeover.forfeited().count(), 70);
    let whole = row(6, 10, 4, None);
    assert_eq!(whole.covers(), 7..=10);
    assert!(whole.forfeited().is_empty());
    assert_eq!(row(0, 1, 1, None).covers(), 1..=1);
}

#[test]
fn an_unsound_row_is_refused_with_its_reason() {
    for (sound, unsound, reason) in [
        (r#""elapsed": 8"#, r#""elapsed": 0"#, "elapsed is 0"),
        (r#""elapsed": 8"#, r#""elapsed": 79"#, "elapsed is 79, but only 78 windows passed"),
        (r#""from_window": 2301676606"#, r#""from_window": 2301676685"#, "only 0 windows passed"),
        ("w2301676684", "w2301676685", "the key names window 2301676685, the row says window 2301676684"),
        ("zeq-issuance-v1", "zeq-issuance-v2", "is not a key"),
        ("7.999999999992", "8", "amount is 8, but rate times elapsed is 7.999999999992"),
        ("0.9999813435332383", "\"1\"", "phase is 1;"),
        ("0.9999813435332383", "1.5", "phase is 1.5;"),
        ("0.9999813435332383", "-0.5", "carries the sign '-'"),
        ("0.9999813435332383", "\"0.9999813435332383\"", "has 16 decimal places; at most 12"),
        (r#""rate": 0.999999999999"#, r#""rate": "1e3""#, r#""1e3" has an exponent"#),
        (r#""rate": 0.999999999999"#, r#""rate": "340282366920938463463374607""#, "exceeds"),
        (r#", "issuer": "drill-b""#, "", "epoch and issuer belong together"),
        (r#""epoch": 1, "#, "", "epoch and issuer belong together"),
        (r#""genesis_pegged": true,"#, "", "missing field"),
    ] {
        let text = TAKEOVER.replace(sound, unsound);
        assert_ne!(text, TAKEOVER, "{sound}");
        let told = read(&text).expect_err(unsound);
        assert!(told.contains(reason), "{unsound}: {told}");
    }
}

#[test]
fn a_refusal_names_the_row() {
    let told = read(&TAKEOVER.replace(r#""elapsed": 8"#, r#""elapsed": 0"#)).unwrap_err();
    assert!(told.starts_with("row of window 2301676684: elapsed is 0"), "{told}");
}

#[test]
fn a_row_without_a_claim_is_a_legacy_row() {
    let legacy = read(&TAKEOVER.replace(r#", "epoch": 1, "issuer": "drill-b""#, "")).unwrap();
    assert_eq!((legacy.epoch(), legacy.issuer(), legacy.lease.as_ref()), (None, None, None));
    let nulls =
        TAKEOVER.replace(r#""epoch": 1, "issuer": "drill-b""#, r#""epoch": null, "issuer": null, "new": 1"#);
    assert_eq!(read(&nulls).unwrap(), legacy);
    assert!(!legacy.to_text().contains("epoch"));
}

#[test]
fn the_higher_epoch_then_the_lower_issuer_then_the_smaller_text_wins() {
    let winners_first = [
        row(1, 9, 2, lease(2, "c")),
        row(1, 9, 1, lease(1, "a")),
        row(1, 9, 2, lease(1, "a")),
        row(1, 9, 1, lease(1, "b")),
        row(1, 9, 1, lease(0, "a")),
        row(1, 9, 1, None),
        row(1, 9, 2, None),
    ];
    for (one_at, one) in winners_first.iter().enumerate() {
        for (other_at, other) in winners_first.iter().enumerate() {
            assert_eq!(one.precedence(other), one_at.cmp(&other_at), "{} {}", one.to_text(), other.to_text());
        }
    }
}

#[test]
fn an_origin_is_split_at_its_last_point() {
    let dotted = origin("node.eu-1.example.1765430001204");
    assert_eq!((dotted.node.as_str(), dotted.boot.0), ("node.eu-1.example", 1_765_430_001_204));
    assert_eq!(dotted.to_string(), "node.eu-1.example.1765430001204");
    for bad in ["", "a", ".1", "a.", "a.01", "a.+1", "a.-1", "a.b", "a#b.1", "a.18446744073709551616"] {
        assert_eq!(bad.parse::<Origin>(), Err(OriginError), "{bad}");
    }
    let cursors = alloc::collections::BTreeMap::from([(dotted, Seq(3))]);
    let text = serde_json::to_string(&cursors).unwrap();
    assert_eq!(text, r#"{"node.eu-1.example.1765430001204":3}"#);
    assert_eq!(serde_json::from_str::<alloc::collections::BTreeMap<Origin, Seq>>(&text).unwrap(), cursors);
}

#[test]
fn a_row_is_as_small_as_the_spine_says() {
    assert_eq!(size_of::<Row>(), 96);
}

#[test]
fn sharing_a_name_changes_no_row() {
    let mut shared = row(1, 9, 1, lease(1, "a"));
    let before = shared.clone();
    shared.share_issuer(&node("a"));
    shared.share_issuer(&node("b"));
    assert_eq!(shared, before);
}

fn lines(text: &impl Serialize) -> String {
    serde_json::to_string(text).unwrap()
}

proptest! {
    #[test]
    fn the_encoder_the_measure_and_serde_agree(
        name in "\\PC{1,8}|[\"\\\\\u{1}\n]{1,4}x", boot: u64, seq: u64, from: u32, gap in 1_u64..u64::from(u32::MAX),
        part in 0_u64..100, units in 0..u128::from(u64::MAX), phase in 0..10_u128.pow(12), epoch: u64, claimed: bool,
    ) {
        prop_assume!(NodeId::new(&name).is_ok());
        let holder = NodeId::new(&name).unwrap();
        let fields = Fields {
            window: Window(u64::from(from) + gap),
            from_window: Window(u64::from(from)),
            elapsed: (gap * part / 100).max(1),
            rate: Decimal::from_units(units),
            phase: Decimal::from_units(phase),
            genesis_pegged: claimed,
            lease: claimed.then(|| Lease { epoch: Epoch(epoch), holder: holder.clone() }),
        };
        let row = Row::new(fields).unwrap();
        prop_assert_eq!(row.to_text(), lines(&row));
        prop_assert_eq!(read(&row.to_text()).unwrap(), row.clone());

        let origin = Origin { node: holder, boot: Incarnation(boot) };
        let stamped = Stamped { origin, seq: Seq(seq), row: Arc::new(row) };
        let mut text = String::new();
        stamped.encode(&mut text);
        prop_assert_eq!(&text, &lines(&stamped));
        prop_assert_eq!(stamped.measure().bytes, text.len());
        prop_assert_eq!(stamped.measure().escaped_bytes + 2, lines(&text).len());
        prop_assert_eq!(serde_json::from_str::<Stamped>(&text).unwrap(), stamped);
    }

    #[test]
    fn rivals_for_a_key_are_in_a_total_order(rows in prop::collection::vec(any_row(), 3)) {
        let [a, b, c] = [&rows[0], &rows[1], &rows[2]];
        prop_assert_eq!(a.precedence(b), b.precedence(a).reverse());
        prop_assert_eq!(a.precedence(b).is_eq(), a == b);
        if a.precedence(b).is_le() && b.precedence(c).is_le() {
            prop_assert!(a.precedence(c).is_le());
        }
    }

    #[test]
    fn a_row_never_issues_for_more_windows_than_passed(from: u64, window: u64, elapsed: u64) {
        let fields = Fields { window: Window(window), from_window: Window(from), elapsed, ..(*row(0, 1, 1, None)).clone() };
        match Row::new(fields) {
            Ok(row) => {
                prop_assert!(elapsed >= 1 && from < window && elapsed <= window - from);
                prop_assert!(*row.covers().start() > from && *row.covers().end() == window);
                prop_assert_eq!(row.amount(), decimal("0.999999999999").checked_mul(elapsed).unwrap());
            }
            Err(_) => prop_assert!(elapsed == 0 || from >= window || elapsed > window - from),
        }
    }
}

/// Messages are told apart by a tag, for which serde holds their fields back and hands them on.
#[test]
fn a_row_reads_inside_a_tagged_message() {
    #[derive(Debug, Deserialize)]
    #[serde(tag = "type", rename_all = "snake_case")]
    enum Tagged {
        Rows { rows: alloc::vec::Vec<Stamped>, after: alloc::collections::BTreeMap<Origin, Seq> },
    }
    let text = format!(
        r#"{{"rows":[{{"row":{TAKEOVER},"seq":3,"origin":"drill-b.7"}}],"after":{{"a.1":5}},"type":"rows"}}"#
    );
    let Tagged::Rows { rows, after } = serde_json::from_str(&text).unwrap();
    assert_eq!(rows, [stamped("drill-b.7", 3, read(TAKEOVER).unwrap())]);
    assert_eq!(after[&origin("a.1")], Seq(5));
}

#[test]
fn a_stamped_row_reads_as_it_is_written() {
    let text = format!(r#"{{"origin":"a.7","seq":3,"row":{}}}"#, row(1, 9, 1, None).to_text());
    assert_eq!(lines(&stamped("a.7", 3, row(1, 9, 1, None))), text);
}
