//! Ids of tasks as clients hold them: signed tokens that name where a task is and whose it is.
//!
//! A server's own task id does not say who may use it. The token that a client gets names server, replica, epoch and
//! task, and is signed together with the caller (project, principal and agent) by a key of this process. So it is of no
//! use to another caller, nor to the same principal as another agent, nor after a restart of either side: a server that
//! counts its tasks may reuse an id then.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gantry_core::Caller;
use gantry_core::digest::Digest;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use uuid::Uuid;

/// Signs and verifies task tokens with a key that this process made.
#[derive(Debug)]
pub(crate) struct TaskSigner {
    /// The keyed hash, with nothing hashed yet. Its own debug output hides the key.
    blank: Hmac<Sha256>,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Task {
    pub(crate) server: String,
    pub(crate) replica: usize,
    /// The number of the connection that it ends with, or of the server if its tasks outlive connections.
    pub(crate) epoch: u64,
    /// The server's own id of it.
    pub(crate) id: String,
}

impl TaskSigner {
    pub(crate) fn new() -> Self {
        let random = [Uuid::new_v4(), Uuid::new_v4()];
        let key = Digest::of_parts(&random.each_ref().map(|random| random.as_bytes().as_slice()));
        // The block of SHA-256 is 64 bytes; a shorter key is padded with zeros.
        let mut block = [0; 64];
        block.iter_mut().zip(key.as_bytes()).for_each(|(byte, key)| *byte = *key);
        Self { blank: Hmac::new(&block.into()) }
    }

    pub(crate) fn sign(&self, task: &Task, caller: &Caller) -> String {
        let route = serde_json::json!(task).to_string();
        let code = self.keyed_hash(&route, caller).finalize().into_bytes();
        format!("{}.{}", URL_SAFE_NO_PAD.encode(route), URL_SAFE_NO_PAD.encode(code))
    }

    /// The task of a token; `None` for every token that was not made here for this caller.
    pub(crate) fn verify(&self, token: &str, caller: &Caller) -> Option<Task> {
        let (route, code) = token.split_once('.')?;
        let route = String::from_utf8(URL_SAFE_NO_PAD.decode(route).ok()?).ok()?;
        let code = URL_SAFE_NO_PAD.decode(code).ok()?;
        self.keyed_hash(&route, caller).verify_slice(&code).ok()?;
        serde_json::from_str(&route).ok()
    }

    fn keyed_hash(&self, route: &str, caller: &Caller) -> Hmac<Sha256> {
        let message = Digest::of_parts(&[
            route.as_bytes(),
            caller.project.as_bytes(),
            caller.principal.as_bytes(),
            caller.agent_name().as_bytes(),
        ]);
        let mut code = self.blank.clone();
        code.update(message.as_bytes());
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gantry_core::Role;

    fn caller(principal: &str, agent: Option<&str>) -> Caller {
        let agent = agent.map(Into::into);
        Caller {
            principal: principal.into(),
            role: Role::Agent,
            agent,
            parent_agents: std::sync::Arc::default(),
            project: "default".into(),
        }
    }

    #[test]
    fn a_task_id_opens_for_its_caller_only() {
        let signer = TaskSigner::new();
        let task = Task { server: "s".into(), replica: 1, epoch: 7, id: "täsk/1 \u{1F600}".into() };
        let ann = caller("ann", None);
        let token = signer.sign(&task, &ann);
        assert!(token.bytes().all(|b| b.is_ascii_graphic()), "it must fit an HTTP header: {token}");
        assert_eq!(signer.verify(&token, &ann), Some(task));
        assert_eq!(signer.verify(&token, &caller("bob", None)), None);
        assert_eq!(signer.verify(&token, &caller("ann", Some("reader"))), None, "another agent");
        assert_eq!(TaskSigner::new().verify(&token, &ann), None, "another process has another key");
    }

    #[test]
    fn a_changed_or_invented_id_opens_nothing() {
        let signer = TaskSigner::new();
        let token = signer
            .sign(&Task { server: "s".into(), replica: 0, epoch: 7, id: "t".into() }, &caller("ann", None));
        let (route, code) = token.split_once('.').unwrap();
        let other = URL_SAFE_NO_PAD.encode(r#"{"server":"s","replica":0,"epoch":7,"id":"u"}"#);
        for forged in [
            format!("{other}.{code}"),
            format!("{route}."),
            route.to_owned(),
            String::new(),
            format!("{token}A"),
            "t".into(),
        ] {
            assert_eq!(signer.verify(&forged, &caller("ann", None)), None, "{forged}");
        }
    }
}
