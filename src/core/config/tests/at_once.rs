//! Several problems together: their order, lines and spans.

use super::*;

#[test]
fn all_problems_are_told_in_the_order_of_the_text() {
    let text = "\
[cluster]
enabled = true
secret = \"short\"
cluster_name = \"\"
bind_addr = \"0.0.0.0:7946\"
seed_peers = [\"10.0.1.8:7946\", \"db:7946\"]
push_interval_ms = 1000
interval = 3

[servr]
bind_addr = 5
";
    let variables = [("FIREDRILL_CLUSTER__NODE_ID", "a#b"), ("FIREDRILL_CLUSTER__SUSPICION_TIMEOUT", "9")];
    let problems = Config::parse(text, &env(&variables)).unwrap_err();
    let expected = "\
the configuration has 9 problems
line 3: cluster.secret is 5 bytes long, but at least 16 are needed: a short secret can be guessed, and whoever has it can be a member
  help: draw one at random: openssl rand -hex 32
line 4: cluster.cluster_name \"\" is blank; give it 1 to 64 bytes
  help: choose a plain name, such as web-1 or eu-staging
line 5: cluster.bind_addr is the wildcard \"0.0.0.0:7946\", which no peer can dial, and cluster.advertise_addr is not given
  help: set cluster.advertise_addr to the address at which peers reach this node, such as 10.0.1.7:7946
line 6: cluster.seed_peers[1] must be an address such as \"10.0.1.7:7946\", not \"db:7946\"
  help: host names are not resolved: give the IP address
line 7: cluster.suspicion_timeout_ms is 2500 (the default), but cluster.push_interval_ms is 1000 (line 7) and at least 3 times that, 3000, is needed: otherwise one late push evicts a healthy member
  help: raise suspicion_timeout_ms to 3000 or more, or lower push_interval_ms to 833 or less
line 8: \"interval\" is not a key of [cluster]
  help: did you mean push_interval_ms?
line 10: \"servr\" is not a section of the configuration
  help: did you mean [server]?
environment FIREDRILL_CLUSTER__NODE_ID: cluster.node_id \"a#b\" contains '#', which separates the parts of a counter cell's key
  help: choose a plain name, such as web-1 or eu-staging
environment: FIREDRILL_CLUSTER__SUSPICION_TIMEOUT overrides nothing: there is no such key
  help: did you mean FIREDRILL_CLUSTER__SUSPICION_TIMEOUT_MS?";
    assert_eq!(problems.to_string(), expected);
}

#[test]
fn a_span_covers_what_is_at_fault() {
    let text = "[cluster]\nnode_id = 'a#b'\nsecrte = 'x'\nseed_peers = ['::1', '10.0.0.1:1']\n";
    let problems = parse(text).unwrap_err();
    let spans: Vec<&str> = problems
        .iter()
        .map(|problem| match &problem.place {
            Place::File { span, .. } => &text[span.clone()],
            Place::Env { .. } | Place::Missing => panic!("{problem}"),
        })
        .collect();
    assert_eq!(spans, ["'a#b'", "secrte", "'::1'"]);
}
