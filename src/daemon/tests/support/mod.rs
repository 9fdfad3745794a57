//! Real `firedrilld` processes, and just enough HTTP to talk to them.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Long enough for a busy machine; whoever waits for it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);
/// P of [`cluster_env`].
pub(crate) const PUSH: Duration = Duration::from_millis(50);
/// S of [`cluster_env`].
pub(crate) const SUSPICION: Duration = Duration::from_millis(250);
pub(crate) const SECRET: &str = "never-to-be-seen-in-any-log";

#[expect(clippy::disallowed_methods, reason = "a test of real processes measures real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Polls until `found`; panics with `what` when patience runs out.
pub(crate) fn eventually<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let start = now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain: {what}");
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// `firedrilld` in an empty directory of its own, with none of this process's environment.
pub(crate) fn firedrilld(name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firedrilld"));
    command.env_clear().current_dir(scratch(name)).stdin(Stdio::null());
    command
}

/// An empty directory for one test.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// The environment of a node with short intervals on free ports.
pub(crate) fn cluster_env(node_id: &str, seed_peers: &[SocketAddr]) -> Vec<(&'static str, String)> {
    let seed_peers: Vec<String> = seed_peers.iter().map(SocketAddr::to_string).collect();
    vec![
        ("FIREDRILL_CLUSTER__ENABLED", "true".to_owned()),
        ("FIREDRILL_CLUSTER__SECRET", SECRET.to_owned()),
        ("FIREDRILL_CLUSTER__NODE_ID", node_id.to_owned()),
        ("FIREDRILL_CLUSTER__SEED_PEERS", seed_peers.join(",")),
        ("FIREDRILL_CLUSTER__PUSH_INTERVAL_MS", "50".to_owned()),
        ("FIREDRILL_CLUSTER__SUSPICION_TIMEOUT_MS", "250".to_owned()),
    ]
}

/// A running daemon, killed when dropped.
pub(crate) struct Daemon {
    child: Child,
    pub(crate) cluster: SocketAddr,
    pub(crate) admin: SocketAddr,
    log: Arc<Mutex<Vec<String>>>,
}

impl Daemon {
    /// Starts a node configured by environment alone.
    pub(crate) fn start(test: &str, node_id: &str, seed_peers: &[SocketAddr]) -> Self {
        let mut command = firedrilld(&format!("{test}-{node_id}"));
        command.envs(cluster_env(node_id, seed_peers));
        Self::spawn(command)
    }

    /// Starts a command and waits until it listens.
    pub(crate) fn spawn(mut command: Command) -> Self {
        command.args(["--log-format", "json"]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let log = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                written.lock().unwrap().push(line);
            }
        });
        let listening = eventually("the daemon listens", || {
            if let Some(status) = child.try_wait().unwrap() {
                panic!("it ended with {status}: {:#?}", log.lock().unwrap());
            }
            let log = log.lock().unwrap();
            let fields =
                |line: &String| serde_json::from_str::<Value>(line).ok().map(|line| line["fields"].clone());
            log.iter().filter_map(fields).find(|fields| fields["message"] == "listening")
        });
        let addr = |key: &str| listening[key].as_str().unwrap().parse().unwrap();
        let (cluster, admin) = (addr("cluster_addr"), addr("admin_addr"));
        Self { child, cluster, admin, log }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        request(self.admin, "GET", path)
    }

    pub(crate) fn post(&self, path: &str) -> Answer {
        request(self.admin, "POST", path)
    }

    /// The ids in its view, itself first.
    pub(crate) fn ids(&self) -> Vec<String> {
        let members = self.get("/members").json()["members"].clone();
        members.as_array().unwrap().iter().map(|member| member["id"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits until it has ended.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        eventually("the daemon ends", || self.child.try_wait().unwrap())
    }

    /// Everything it has logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command that ends by itself.
pub(crate) fn run(mut command: Command) -> Output {
    command.output().unwrap()
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, head: head.to_lowercase(), body: body.to_owned() }
    }
}

pub(crate) fn request(addr: SocketAddr, method: &str, path: &str) -> Answer {
    let mut begun = Begun::new(addr, method, path);
    begun.finish()
}

/// A request whose last line has not been sent.
pub(crate) struct Begun(TcpStream);

impl Begun {
    pub(crate) fn new(addr: SocketAddr, method: &str, path: &str) -> Self {
        let mut stream = TcpStream::connect(addr).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n").unwrap();
        Self(stream)
    }

    pub(crate) fn finish(&mut self) -> Answer {
        self.0.write_all(b"\r\n").unwrap();
        let mut text = String::new();
        self.0.read_to_string(&mut text).unwrap();
        Answer::parse(&text)
    }
}
