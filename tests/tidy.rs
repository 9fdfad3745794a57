//! House rules that are executed: what compiler and lints cannot see.
//!
//! Each rule is one test. It collects every offence before it fails, and its message says what to do. An
//! exception is a line in [`EXCEPTIONS`] with its reason, or it does not exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use firedrill_sim::engine::EngineKind;
use firedrill_sim::oracles::RULES;
use firedrill_sim::scenario::{LoadOptions, Scenario};

/// Longest source file: about 600 lines, the last function included.
const LINES_MAX: usize = 620;
/// Files that a rule does not apply to: rule, path, reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("machine paths", "tests/tidy.rs", "names what it forbids"),
    ("hash maps", "tests/tidy.rs", "names what it forbids"),
    ("hash maps", "clippy.toml", "forbids them"),
    ("leftovers", "tests/tidy.rs", "names what it forbids"),
    ("citations", "tests/tidy.rs", "names what it looks for"),
    (
        "citations",
        "src/command/ci/snapshots/firedrill__command__ci__tests__github_safety.snap",
        "ends its lines in an escape",
    ),
    (
        "citations",
        "src/command/ci/snapshots/firedrill__command__ci__tests__sarif_safety.snap",
        "ends its lines in an escape",
    ),
];
/// The descriptions of the protocols, which the code cites; decisions and findings are numbered in the first.
const PAGES: [&str; 2] = ["docs/protocol.md", "docs/issuance.md"];

/// A text file of the repository.
struct File {
    /// From the root, with `/`.
    path: String,
    text: String,
}

impl File {
    /// Lines of code with their numbers: no comments, nothing behind a trailing test module.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let tests = self.text.find("#[cfg(test)]\nmod ").unwrap_or(self.text.len());
        let lines = self.text[..tests].lines().enumerate();
        lines.filter(|(_, line)| !line.trim_start().starts_with("//")).map(|(index, line)| (index + 1, line))
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every text file with one of these extensions, sorted; build output and hidden folders excepted.
fn files(extensions: &[&str]) -> Vec<File> {
    let mut found = Vec::new();
    let mut folders = vec![root().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the repository can be read") {
            let path = entry.expect("an entry can be read").path();
            let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
            let is_ours = !(name.starts_with('.') && name != ".ci" && name != ".cargo") && name != "target";
            if path.is_dir() && is_ours {
                folders.push(path);
            } else if path.is_file() && is_ours && has_extension(&path, extensions) {
                let text = fs::read_to_string(&path).expect("a text file is UTF-8");
                let relative = path.strip_prefix(root()).expect("found below the root");
                found.push(File { path: relative.to_string_lossy().replace('\\', "/"), text });
            }
        }
    }
    assert!(!found.is_empty(), "no files with the extensions {extensions:?}: does the walk still work?");
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().is_some_and(|found| extensions.iter().any(|wanted| found == *wanted))
}

fn is_excepted(rule: &str, path: &str) -> bool {
    EXCEPTIONS.iter().any(|(of, file, _)| *of == rule && *file == path)
}

/// Fails with every offence and the remedy.
#[track_caller]
fn report(offences: &[String], remedy: &str) {
    assert!(offences.is_empty(), "\n\n{}\n\n{remedy}\n", offences.join("\n"));
}

#[test]
fn every_exception_names_a_file_that_exists() {
    let gone: Vec<_> = EXCEPTIONS
        .iter()
        .filter(|(_, path, reason)| !root().join(path).exists() || reason.is_empty())
        .map(|(rule, path, _)| format!("{rule}: {path}"))
        .collect();
    report(&gone, "Remove the exception: its file is gone, or it has no reason.");
}

#[test]
fn no_file_is_longer_than_a_reader_can_hold() {
    let long: Vec<_> = files(&["rs"])
        .iter()
        .filter(|file| file.text.lines().count() > LINES_MAX && !is_excepted("length", &file.path))
        .map(|file| format!("{}: {} lines", file.path, file.text.lines().count()))
        .collect();
    report(&long, "Above 600 lines a file is asking to be two: split it along a seam that has a name.");
}

#[test]
fn every_module_begins_with_what_it_is_for() {
    let bare: Vec<_> = files(&["rs"])
        .iter()
        .filter(|file| !file.text.starts_with("//! "))
        .map(|file| file.path.clone())
        .collect();
    report(&bare, "Begin the file with `//!`: what it is for, its invariants, what is absent on purpose.");
}

#[test]
fn the_core_names_no_clock_socket_or_thread() {
    let mut offences = Vec::new();
    for file in files(&["rs"]).iter().filter(|file| file.path.starts_with("src/core/")) {
        if ["src/core/tests/", "src/core/benches/"].iter().any(|tests| file.path.starts_with(tests)) {
            continue;
        }
        for (number, line) in file.code() {
            if ["std::", "extern crate std", "tokio", "turmoil"].iter().any(|word| line.contains(word)) {
                offences.push(format!("{}:{number}: {}", file.path, line.trim()));
            }
        }
    }
    report(
        &offences,
        "The core is no_std: take time, randomness and bytes as inputs, and leave effects in an Outbox.",
    );
}

#[test]
fn the_core_is_no_std() {
    let lib = fs::read_to_string(root().join("src/core/lib.rs")).expect("the core has a lib.rs");
    assert!(
        lib.contains("#![no_std]"),
        "src/core/lib.rs must keep `#![no_std]`: it is the fence of the core"
    );
}

/// Names of the packages that `package` is built from.
fn dependencies(package: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "-p", package, "-e", "normal", "--prefix", "none"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree failed:\n{errors}");
    let names = String::from_utf8_lossy(&output.stdout);
    let names: BTreeSet<_> =
        names.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    assert!(names.contains(package), "cargo tree does not list {package} itself: did its format change?");
    names
}

#[test]
fn the_core_pulls_in_no_runtime() {
    let forbidden = [
        "tokio",
        "turmoil",
        "mio",
        "socket2",
        "async-std",
        "smol",
        "futures",
        "hyper",
        "axum",
        "rand",
        "getrandom",
        "tracing",
        "firedrill-runtime",
        "firedrill-sim",
        "firedrill-daemon",
    ];
    let found = dependencies("firedrill-core");
    let found: Vec<_> =
        forbidden.into_iter().filter(|name| found.contains(*name)).map(str::to_owned).collect();
    report(
        &found,
        "The core must not depend on these (`cargo tree -p firedrill-core -e normal -i NAME` shows why it does).",
    );
}

#[test]
fn the_command_pulls_in_neither_a_web_server_nor_a_database() {
    let forbidden = [
        "axum",
        "hyper",
        "tower",
        "sqlx",
        "sqlx-core",
        "rusqlite",
        "libsqlite3-sys",
        "tokio-postgres",
        "diesel",
        "firedrill-daemon",
    ];
    let found = dependencies("firedrill");
    let found: Vec<_> =
        forbidden.into_iter().filter(|name| found.contains(*name)).map(str::to_owned).collect();
    report(&found, "A newcomer would wait minutes longer for the first drill: keep these in the daemon.");
}

#[test]
fn packages_depend_only_downwards() {
    let allowed: &[(&str, &[&str])] = &[
        ("src/core", &[]),
        ("src/runtime", &["firedrill-core"]),
        ("src/daemon", &["firedrill-core", "firedrill-runtime"]),
        ("sim", &["firedrill-core", "firedrill-runtime"]),
        (".", &["firedrill-core", "firedrill-sim"]),
    ];
    let mut offences = Vec::new();
    for (folder, allowed) in allowed {
        let manifest =
            fs::read_to_string(root().join(folder).join("Cargo.toml")).expect("a package has a manifest");
        let section = manifest.split("\n[dependencies]\n").nth(1).unwrap_or("");
        let lines = section.lines().take_while(|line| !line.starts_with('['));
        for name in lines.filter_map(|line| line.split(['.', ' ', '=']).next()) {
            if name.starts_with("firedrill") && !allowed.contains(&name) {
                offences.push(format!("{folder}: {name}"));
            }
        }
    }
    report(
        &offences,
        "Arrows between packages: command → sim → runtime → core, daemon → runtime → core, no others.",
    );
}

#[test]
fn no_package_has_features_and_every_package_takes_the_house_lints() {
    let mut offences = Vec::new();
    for file in files(&["toml"]).iter().filter(|file| file.path.ends_with("Cargo.toml")) {
        if file.text.contains("[features]") {
            offences.push(format!("{}: has features; they unify across the workspace", file.path));
        }
        if !file.text.contains("[lints]\nworkspace = true") {
            offences.push(format!("{}: lacks `[lints] workspace = true`", file.path));
        }
    }
    report(&offences, "Select by type or value instead of a feature, and take the lints of the workspace.");
}

#[test]
fn production_never_turns_a_guard_off() {
    let mut offences = Vec::new();
    for file in files(&["rs"]) {
        if !["src/daemon/", "src/runtime/"].iter().any(|folder| file.path.starts_with(folder)) {
            continue;
        }
        for (number, line) in file.text.lines().enumerate() {
            let names = ["guards", "sabotage"].iter().any(|word| line.to_lowercase().contains(word));
            if names {
                offences.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
            }
        }
    }
    for package in ["daemon", "runtime"] {
        let manifest =
            files(&["toml"]).into_iter().find(|file| file.path == format!("src/{package}/Cargo.toml"));
        let manifest = manifest.expect("the package has a manifest");
        if manifest.text.contains("firedrill-sim") {
            offences.push(format!("{}: depends on the testbed, which can turn guards off", manifest.path));
        }
    }
    report(&offences, "Guards are switched off in simulations only; a production node is built by `new`.");
}

#[test]
fn nothing_iterates_in_an_order_that_differs_from_run_to_run() {
    let mut offences = Vec::new();
    for file in files(&["rs"]).iter().filter(|file| !is_excepted("hash maps", &file.path)) {
        for (number, line) in file.text.lines().enumerate() {
            if line.contains("HashMap") || line.contains("HashSet") {
                offences.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
            }
        }
    }
    report(&offences, "Use BTreeMap or BTreeSet: the same seed has to give the same run.");
}

#[test]
fn nothing_speaks_of_the_machine_it_was_written_on() {
    let paths = ["/work/", "/root/", "/home/", "/Users/", "/tmp/", "C:\\"];
    let mut offences = Vec::new();
    for file in files(&["rs", "toml", "md", "snap", "json", "yml", "yaml"]) {
        if is_excepted("machine paths", &file.path) {
            continue;
        }
        for (number, line) in file.text.lines().enumerate() {
            if paths.iter().any(|path| line.contains(path)) {
                offences.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
            }
        }
    }
    report(&offences, "Write paths relative to the repository: nobody else has this machine.");
}

#[test]
fn no_work_is_left_lying_about() {
    let mut offences = Vec::new();
    for file in files(&["rs", "md", "toml"]).iter().filter(|file| !is_excepted("leftovers", &file.path)) {
        for (number, line) in file.text.lines().enumerate() {
            let leftover = ["TODO", "FIXME", "XXX", "unimplemented!(", "#[ignore]"];
            if leftover.iter().any(|word| line.contains(word)) {
                offences.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
            }
        }
    }
    report(&offences, "Do it, or say in the module's header that it is absent; `#[ignore]` needs a reason.");
}

#[test]
fn every_limit_says_what_it_limits() {
    let limits =
        fs::read_to_string(root().join("src/core/limits.rs")).expect("the core has its limits in one file");
    let lines: Vec<_> = limits.lines().collect();
    let mut offences = Vec::new();
    let mut count = 0;
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("pub const ")) {
        count += 1;
        let documented = index > 0 && lines[index - 1].starts_with("/// ");
        let name = line.trim_start_matches("pub const ").split(':').next().unwrap_or(line);
        if !documented {
            offences.push(name.to_owned());
        }
    }
    assert!(count > 10, "limits.rs holds {count} limits: did they move?");
    report(&offences, "Give the limit its unit, its reason and its source.");
}

fn scenario_files() -> Vec<PathBuf> {
    let scenarios: Vec<_> = files(&["toml"])
        .into_iter()
        .map(|file| file.path)
        .filter(|path| path.starts_with("scenarios/"))
        .filter(|path| !path.split('/').any(|part| part.starts_with('_')))
        .map(PathBuf::from)
        .collect();
    assert!(!scenarios.is_empty(), "there are no scenarios");
    scenarios
}

#[test]
fn every_scenario_tells_its_story_under_a_name_of_its_own() {
    let mut names = BTreeSet::new();
    let mut offences = Vec::new();
    for path in scenario_files() {
        let options = LoadOptions::for_engine(EngineKind::Event);
        let scenario = match Scenario::load(&root().join(&path), options) {
            Ok(scenario) => scenario,
            Err(problems) => {
                offences.push(format!("{}: {problems}", path.display()));
                continue;
            }
        };
        if path.file_stem().is_none_or(|stem| stem != scenario.name.as_str()) {
            offences.push(format!("{}: is named {:?} inside", path.display(), scenario.name));
        }
        if scenario.about.split_whitespace().count() < 5 {
            offences.push(format!("{}: its `about` is no story", path.display()));
        }
        if !names.insert(scenario.name.clone()) {
            offences.push(format!("{}: another scenario is named {:?}", path.display(), scenario.name));
        }
    }
    report(
        &offences,
        "A scenario is found by its name: make it the file's, unique, and tell in `about` what happens and why.",
    );
}

#[test]
fn every_oracle_has_a_file_and_a_source() {
    let oracles: Vec<_> =
        files(&["rs"]).into_iter().filter(|file| file.path.starts_with("sim/src/oracles/")).collect();
    let mut offences = Vec::new();
    for file in &oracles {
        let oracles_inside = file.code().filter(|(_, line)| line.contains("impl Oracle for")).count();
        if oracles_inside > 1 {
            offences.push(format!("{}: holds {oracles_inside} oracles", file.path));
        }
    }
    let mut names = BTreeSet::new();
    assert!(!RULES.is_empty(), "there are no oracles");
    for oracle in RULES {
        if oracle.source.trim().is_empty() || oracle.invariant.trim().is_empty() {
            offences.push(format!("{}: lacks its invariant or its source", oracle.name));
        }
        if !names.insert(oracle.name) {
            offences.push(format!("{}: two oracles have this name", oracle.name));
        }
    }
    report(
        &offences,
        "One invariant a file, each with a name of its own, a sentence and the place it comes from.",
    );
}

/// The text of a page, and what of it may be cited: `decision 9`, `finding 1`, other headings as they stand.
fn page(path: &str) -> (String, BTreeSet<String>) {
    let text = fs::read_to_string(root().join(path)).expect("the protocol is described");
    let headings = text.lines().filter_map(|line| line.strip_prefix("## ").or(line.strip_prefix("### ")));
    let citable = headings.map(|heading| match heading.split_once(". ") {
        Some((numbered, _)) => numbered.to_lowercase(),
        None => heading.to_owned(),
    });
    let citable = citable.collect();
    (text, citable)
}

/// The decisions and findings that a line cites: `decisions 4, 5 and 9` are three.
fn cited_by_number(line: &str) -> Vec<String> {
    let mut cited = Vec::new();
    for word in ["decision", "finding"] {
        for (at, _) in line.match_indices(word) {
            let rest = &line[at + word.len()..];
            let Some(mut rest) = rest.strip_prefix("s ").or(rest.strip_prefix(' ')) else { continue };
            loop {
                let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                if digits == 0 {
                    break;
                }
                cited.push(format!("{word} {}", &rest[..digits]));
                rest = &rest[digits..];
                let joint = [", ", " and ", " to "].into_iter().find_map(|joint| rest.strip_prefix(joint));
                rest = joint.unwrap_or("");
            }
        }
    }
    cited
}

/// The sections that a line cites: `docs/protocol.md, Limits; Liveness (why); decision 9` are two.
fn cited_by_heading(line: &str, page: &str) -> Vec<String> {
    let mut cited = Vec::new();
    for tail in line.split(&format!("{page}, ")).skip(1) {
        let list = tail.split(['"', '`']).next().unwrap_or(tail);
        let list = list.split(". ").next().unwrap_or(list).trim_end().trim_end_matches(['.', ',']);
        for item in list.split("; ") {
            let name = item.split(" (").next().unwrap_or(item);
            if !name.is_empty() && cited_by_number(name).is_empty() {
                cited.push(name.to_owned());
            }
        }
    }
    cited
}

#[test]
fn every_citation_of_the_protocol_leads_somewhere() {
    let [(_, citable), (_, of_issuance)] = PAGES.map(page);
    assert!(citable.contains("decision 17") && citable.contains("Limits"), "what is citable: {citable:?}");
    let mut offences = Vec::new();
    let mut citations = 0;
    for file in files(&["rs", "toml", "snap", "md"]) {
        if is_excepted("citations", &file.path) {
            continue;
        }
        let names_the_source = file.text.contains(PAGES[0]) || !file.path.ends_with(".rs");
        for (number, line) in file.text.lines().enumerate() {
            let mut wrong = |what: &str| offences.push(format!("{}:{}: {what}", file.path, number + 1));
            let numbered = cited_by_number(line);
            if !numbered.is_empty() && !names_the_source {
                wrong(&format!("cites {}, and the file does not say of what", numbered.join(", ")));
            }
            let [gossip, issuance] = PAGES.map(|page| cited_by_heading(line, page));
            let gossip = numbered.into_iter().chain(gossip).map(|cited| (PAGES[0], &citable, cited));
            let issuance = issuance.into_iter().map(|cited| (PAGES[1], &of_issuance, cited));
            for (page, citable, cited) in gossip.chain(issuance) {
                citations += 1;
                if !citable.contains(&cited) {
                    wrong(&format!("{page} has no {cited:?}"));
                }
            }
            if line.contains("spec/gossip") {
                wrong("spec/gossip.md is not in the repository");
            }
        }
    }
    assert!(citations > 80, "only {citations} citations: does the search still work?");
    report(
        &offences,
        "Cite on one line: `docs/protocol.md, HEADING; decision N`, and name the file once in each module.",
    );
}

#[test]
fn the_protocol_names_code_and_drills_that_exist() {
    let text = PAGES.map(|path| page(path).0).concat();
    let drills: Vec<_> = scenario_files();
    let is_drill = |name: &str| {
        let (stem, open) = name.strip_suffix('*').map_or((name, false), |stem| (stem, true));
        drills.iter().filter_map(|path| path.file_stem()?.to_str()).any(|drill| match open {
            true => drill.starts_with(stem),
            false => drill == stem,
        })
    };
    let exists = |path: &str| root().join(path).exists() || root().join("src/core").join(path).exists();
    let quoted = |text: &str| -> Vec<String> {
        text.split('`').skip(1).step_by(2).map(|word| word.replace('\n', " ")).collect()
    };
    let paths = quoted(&text).into_iter().filter(|word| word.ends_with(".rs") || word.ends_with(".toml"));
    let mut gone: Vec<_> = paths.filter(|path| !exists(path)).collect();
    let mut named = 0;
    for tail in text.split("Drill:").skip(1).chain(text.split("Drills:").skip(1)) {
        let list = tail.split(".\n").next().unwrap_or(tail);
        for name in quoted(list.split(". ").next().unwrap_or(list)) {
            named += 1;
            if !is_drill(&name) && !exists(&name) {
                gone.push(name);
            }
        }
    }
    assert!(named > 30, "only {named} drills are named: does the search still work?");
    report(
        &gone,
        "The protocol's description names what is not there: say where the rule stands and shows now.",
    );
}

/// The lines of README's shell blocks, prompt and comment removed.
fn readme_commands(readme: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut inside = false;
    for line in readme.lines() {
        if line.starts_with("```") {
            inside = !inside && line.trim_end() == "```sh";
        } else if inside {
            let line = line.split(" # ").next().unwrap_or(line).trim();
            if !line.is_empty() && !line.starts_with('#') {
                commands.push(line.to_owned());
            }
        }
    }
    commands
}

#[test]
fn every_command_of_the_readme_exists() {
    let readme = fs::read_to_string(root().join("README.md")).expect("there is a README");
    let commands = readme_commands(&readme);
    for wanted in
        ["cargo run --release -- run scenarios/gossip/partition-heal.toml", "cargo test --workspace"]
    {
        assert!(commands.iter().any(|command| command == wanted), "the README lacks `{wanted}`");
    }
    let mut offences = Vec::new();
    for command in &commands {
        let words: Vec<_> = command.split_whitespace().collect();
        let arguments = match words.as_slice() {
            ["cargo", "run", "--release", "--", arguments @ ..] | ["firedrill", arguments @ ..] => arguments,
            _ => continue,
        };
        let help = help_of(arguments);
        for word in arguments {
            let is_flag = word.starts_with("--");
            if is_flag && !help.contains(word) {
                offences.push(format!("{command}: there is no {word}"));
            }
            if word.starts_with("scenarios") && !root().join(word).exists() {
                offences.push(format!("{command}: {word} does not exist"));
            }
        }
        if help.is_empty() {
            offences.push(format!("{command}: there is no such subcommand"));
        }
    }
    report(&offences, "The README is the first thing a newcomer types: make it true.");
}

/// The help of the subcommand that `arguments` begin with; empty when there is none.
fn help_of(arguments: &[&str]) -> String {
    let subcommand = arguments.iter().take(1).filter(|word| !word.starts_with('-'));
    let output = Command::new(env!("CARGO_BIN_EXE_firedrill"))
        .args(subcommand)
        .arg("--help")
        .output()
        .expect("the command starts");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_map_of_the_readme_is_the_territory() {
    let readme = fs::read_to_string(root().join("README.md")).expect("there is a README");
    let map = readme.split("\n## Map").nth(1).expect("the README has a section `Map`");
    let map = map.split("\n## ").next().unwrap_or(map);
    let paths: Vec<_> = map.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert!(paths.len() > 5, "the map has become small: {paths:?}");
    let gone: Vec<_> =
        paths.into_iter().filter(|path| !root().join(path).exists()).map(str::to_owned).collect();
    report(&gone, "The README's map names what is not there.");
}
