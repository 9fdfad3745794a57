//! The way back: a checked [`Scenario`] as a scenario file that a person likes to read.
//!
//! The file says what a person would have said: no defaults, nothing that the harness supplies, one value for
//! all hosts in `[config]` and exceptions in `[config_for.X]`, the largest unit that fits. Reading it again gives
//! the same scenario, so a run of it has the same digest; writing that gives the same text. What includes held
//! stands in the one file.
//!
//! A scenario that was changed after it was read keeps this promise as long as it is one that the reader would
//! accept, hosts of `nodes.later` stand last, and a step that others refer to has an id where it does not stand
//! right above them. One that lacks it is given one; since symbols are drawn by a label made of the id, `any`
//! in it may then mean another host. Steps of an include that fire after those of the file are put in the order they
//! fire when they are read, because the reader demands it of one file.
//!
//! Absent: comments of the original, and its spelling of what can be spelled in several ways.

mod config;
mod drill;
mod page;
mod values;

use super::catalog::NODES;
use super::hosts::{Seeds, made_up};
use super::model::{Host, LinkSpec, SEED_DEFAULT, Scenario, Workload};
pub(crate) use config::reread_issuance;
use config::{Entries, Layers};
use drill::Drill;
use page::{Page, Value, key};

pub(super) use drill::put_in_order;

/// Above so many hosts, names that the reader would make up are counted instead.
const NAMES_MAX: usize = 8;
impl Scenario {
    /// The scenario as a file.
    pub fn to_toml(&self) -> String {
        self.to_toml_with_comment("")
    }

    /// The scenario as a file that begins with this comment, `# ` before each of its lines.
    pub fn to_toml_with_comment(&self, comment: &str) -> String {
        let mut page = Page::default();
        page.comment(comment);
        self.write_head(&mut page);
        let layers = Layers::of(&self.hosts);
        self.write_nodes(layers.seeds, &mut page);
        self.write_config(&layers, &mut page);
        self.write_net(&mut page);
        self.write_oracles(&mut page);
        for workload in &self.workloads {
            self.write_workload(workload, &mut page);
        }
        let drill = Drill::of(self);
        drill.write_steps(&mut page);
        drill.write_expects(&mut page);
        page.finish()
    }

    fn write_head(&self, page: &mut Page) {
        page.entry("name", &Value::text(&self.name));
        page.entry("about", &Value::text(&self.about));
        if self.seed != SEED_DEFAULT {
            page.entry("seed", &Value::number(self.seed));
        }
        page.entry("time_limit", &Value::duration(self.time_limit));
    }

    fn write_nodes(&self, seeds: Seeds, page: &mut Page) {
        let names = |from_start: bool| -> Vec<&str> {
            let hosts = self.hosts.iter().filter(|host| host.from_start == from_start);
            hosts.map(|host| host.name.as_str()).collect()
        };
        let (starters, later) = (names(true), names(false));
        let many = starters.len();
        let counted = || starters.iter().enumerate().all(|(n, name)| *name == made_up(n, many));
        page.section("[nodes]");
        if many > NAMES_MAX && counted() {
            page.entry("count", &Value::number(many as u64));
        } else {
            page.entry("names", &Value::texts(starters));
        }
        if !later.is_empty() {
            page.entry("later", &Value::texts(later));
        }
        if seeds != Seeds::All {
            page.entry("seeds", &Value::text(word(seeds)));
        }
        let is_off = |host: &&Host| host.wall_offset_us != 0;
        let walls: Vec<(String, Value)> = self
            .hosts
            .iter()
            .filter(is_off)
            .map(|host| (key(&host.name), Value::offset(host.wall_offset_us)))
            .collect();
        if !walls.is_empty() {
            page.entry("wall", &Value::Table(walls));
        }
        if self.same_millisecond {
            page.entry("same_millisecond", &Value::Atom("true".to_owned()));
        }
    }

    fn write_config(&self, layers: &Layers, page: &mut Page) {
        write_section("cluster", &layers.shared, &self.hosts, &layers.single, page);
        if let Some(issuance) = &layers.issuance {
            write_section("issuance", &issuance.shared, &self.hosts, &issuance.single, page);
        }
    }

    fn write_net(&self, page: &mut Page) {
        let net = &self.net;
        if *net == LinkSpec::DEFAULT {
            return;
        }
        page.section("[net]");
        if (net.latency_min, net.latency_max)
            != (LinkSpec::DEFAULT.latency_min, LinkSpec::DEFAULT.latency_max)
        {
            page.entry("latency", &Value::latency(net.latency_min, net.latency_max));
        }
        let shares = [("loss", net.loss_ppm), ("duplicate", net.duplicate_ppm), ("reorder", net.reorder_ppm)];
        for (key, ppm) in shares.into_iter().filter(|(_, ppm)| *ppm > 0) {
            page.entry(key, &Value::share(ppm));
        }
        if let Some(bytes) = net.bandwidth {
            page.entry("bandwidth", &Value::bandwidth(bytes));
        }
    }

    fn write_oracles(&self, page: &mut Page) {
        if !self.oracles_off.is_empty() {
            page.section("[oracles.off]");
            self.oracles_off.iter().for_each(|(name, reason)| page.entry(&key(name), &Value::text(reason)));
        }
        if let Some(within) = self.settle_within {
            page.section("[liveness]");
            page.entry("settle_within", &Value::duration(within));
        }
    }

    fn write_workload(&self, workload: &Workload, page: &mut Page) {
        page.section("[[workload]]");
        page.entry("increment", &Value::text(workload.counter.as_str()));
        page.entry("every", &Value::duration(workload.every));
        if workload.by != 1 {
            page.entry("by", &Value::number(workload.by));
        }
        if !workload.on.is_empty() {
            page.entry("on", &Value::hosts(self, &workload.on));
        }
        if workload.from != workload.every {
            page.entry("from", &Value::duration(workload.from));
        }
        if let Some(until) = workload.until {
            page.entry("until", &Value::duration(until));
        }
    }
}

/// A section of the configuration: what hosts share, then what is theirs alone.
fn write_section(name: &str, shared: &Entries, hosts: &[Host], single: &[Entries], page: &mut Page) {
    if !shared.is_empty() {
        page.section(&format!("[config.{name}]"));
        shared.iter().for_each(|(key, value)| page.entry(key, value));
    }
    for (host, entries) in hosts.iter().zip(single) {
        if !entries.is_empty() {
            page.section(&format!("[config_for.{}.{name}]", key(&host.name)));
            entries.iter().for_each(|(key, value)| page.entry(key, value));
        }
    }
}

/// The catalog's word for an arrangement of seeds.
fn word(seeds: Seeds) -> &'static str {
    let words = NODES.iter().find(|key| key.name == "seeds").map_or([].as_slice(), |key| key.kind.words());
    let known = Seeds::EVERY.into_iter().zip(words);
    known.filter(|(known, _)| *known == seeds).map(|(_, word)| *word).next().unwrap_or_default()
}
