//! The health document: the process, and `cluster:membership` as its one component.
//!
//! Always UP: a node alone in its view is healthy, and a probe must never kill a survivor for it.

use firedrill_core::id::{ClusterName, Incarnation, NodeId};
use firedrill_core::node::{MemberStatus, MemberView, NodeView};
use firedrill_core::wire::message::Addr;
use serde::Serialize;

/// The answer of `/health`.
#[derive(Debug, Serialize)]
pub(crate) struct Health {
    status: Status,
    components: Components,
}

/// The answer of `/health/ready`.
#[derive(Debug, Serialize)]
pub(crate) struct Ready {
    pub(crate) status: Status,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Status {
    Up,
    OutOfService,
}

#[derive(Debug, Serialize)]
struct Components {
    #[serde(rename = "cluster:membership")]
    membership: Membership,
}

#[derive(Debug, Serialize)]
struct Membership {
    status: Status,
    details: Details,
}

#[derive(Debug, Serialize)]
struct Details {
    node_id: NodeId,
    cluster: ClusterName,
    local_addr: String,
    member_count: usize,
    members: Vec<Member>,
}

/// A member as the admin server shows it.
#[derive(Debug, Serialize)]
pub(crate) struct Member {
    id: NodeId,
    addr: Addr,
    status: MemberStatus,
    incarnation: Incarnation,
}

impl From<MemberView> for Member {
    fn from(MemberView { id, addr, status, incarnation }: MemberView) -> Self {
        Self { id, addr, status, incarnation }
    }
}

impl Health {
    pub(crate) fn of(view: NodeView) -> Self {
        let details = Details {
            node_id: view.node_id,
            cluster: view.cluster,
            local_addr: view.local_addr.to_string(),
            member_count: view.members.len(),
            members: view.members.into_iter().map(Member::from).collect(),
        };
        let membership = Membership { status: Status::Up, details };
        Self { status: Status::Up, components: Components { membership } }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_document_has_the_published_shape() {
        let member = |id: &str, port: u16, status, incarnation| MemberView {
            id: NodeId::new(id).unwrap(),
            addr: Addr::new(&format!("127.0.0.1:{port}")),
            status,
            incarnation: Incarnation(incarnation),
        };
        let view = NodeView {
            node_id: NodeId::new("node-b").unwrap(),
            cluster: ClusterName::new("firedrill").unwrap(),
            local_addr: "127.0.0.1:7947".parse().unwrap(),
            incarnation: Incarnation(17),
            members: vec![
                member("node-b", 7947, MemberStatus::Alive, 17),
                member("node-a", 7946, MemberStatus::Suspect, 4),
            ],
            counters: BTreeMap::new(),
        };
        let text = serde_json::to_string(&Health::of(view)).unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"status":"UP","components":{"cluster:membership":{"status":"UP","details":{"#,
                r#""node_id":"node-b","cluster":"firedrill","local_addr":"127.0.0.1:7947","member_count":2,"members":["#,
                r#"{"id":"node-b","addr":"127.0.0.1:7947","status":"alive","incarnation":17},"#,
                r#"{"id":"node-a","addr":"127.0.0.1:7946","status":"suspect","incarnation":4}]}}}}"#
            )
        );
    }
}
