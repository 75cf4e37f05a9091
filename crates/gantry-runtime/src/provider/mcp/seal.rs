//! Ids of tasks as clients hold them: where the task is and whose it is, sealed so that nobody can make one up.
//!
//! An upstream's own task id says nothing about who may use it. The id that a client gets names the server and the
//! replica, and carries a code over these, the id and the caller (project, principal and agent) that only this process
//! can make; so it is worth nothing to anybody else, nor to the same principal as another agent, and nothing after a
//! restart.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gantry_core::Caller;
use gantry_core::digest::Digest;
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

/// The block size of SHA-256, which HMAC pads its key to.
const BLOCK: usize = 64;

/// The key of this process.
pub(crate) struct Seal {
    key: [u8; 32],
}

/// A task of an upstream.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Task {
    /// The server.
    pub(crate) server: String,
    /// Which of its replicas.
    pub(crate) replica: usize,
    /// The upstream's own id.
    pub(crate) id: String,
}

impl Seal {
    /// A seal with a key of its own.
    pub(crate) fn new() -> Self {
        let mut key = [0; 32];
        let random = [Uuid::new_v4(), Uuid::new_v4()];
        for (byte, random) in key.iter_mut().zip(random.iter().flat_map(Uuid::as_bytes)) {
            *byte = *random;
        }
        Self { key: *Digest::of(&key).as_bytes() }
    }

    /// The id for this caller.
    pub(crate) fn wrap(&self, task: &Task, caller: &Caller) -> String {
        let route = serde_json::json!(task).to_string();
        let code = self.code(&route, caller);
        format!("{}.{}", URL_SAFE_NO_PAD.encode(route), URL_SAFE_NO_PAD.encode(code.as_bytes()))
    }

    /// The task that this caller means; `None` for every id that was not made for it here.
    pub(crate) fn open(&self, wrapped: &str, caller: &Caller) -> Option<Task> {
        let (route, code) = wrapped.split_once('.')?;
        let route = String::from_utf8(URL_SAFE_NO_PAD.decode(route).ok()?).ok()?;
        let code = URL_SAFE_NO_PAD.decode(code).ok()?;
        let expected = self.code(&route, caller);
        if !bool::from(expected.as_bytes().as_slice().ct_eq(&code)) {
            return None;
        }
        serde_json::from_str(&route).ok()
    }

    /// HMAC-SHA-256 over both.
    fn code(&self, route: &str, caller: &Caller) -> Digest {
        let message = Digest::of_parts(&[
            route.as_bytes(),
            caller.project.as_bytes(),
            caller.principal.as_bytes(),
            caller.agent_name().as_bytes(),
        ]);
        let padded = |pad: u8, rest: &Digest| {
            let mut block = vec![pad; BLOCK];
            for (byte, key) in block.iter_mut().zip(self.key) {
                *byte ^= key;
            }
            block.extend_from_slice(rest.as_bytes());
            Digest::of(&block)
        };
        padded(0x5c, &padded(0x36, &message))
    }
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seal").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gantry_core::Role;

    fn caller(principal: &str, agent: Option<&str>) -> Caller {
        let agent = agent.map(Into::into);
        Caller { principal: principal.into(), role: Role::Agent, agent, project: "default".into() }
    }

    #[test]
    fn a_task_id_opens_for_its_caller_only() {
        let seal = Seal::new();
        let task = Task { server: "s".into(), replica: 1, id: "täsk/1 \u{1F600}".into() };
        let ann = caller("ann", None);
        let wrapped = seal.wrap(&task, &ann);
        assert!(wrapped.bytes().all(|b| b.is_ascii_graphic()), "it must fit an HTTP header: {wrapped}");
        assert_eq!(seal.open(&wrapped, &ann), Some(task));
        assert_eq!(seal.open(&wrapped, &caller("bob", None)), None);
        assert_eq!(seal.open(&wrapped, &caller("ann", Some("reader"))), None, "another agent");
        assert_eq!(Seal::new().open(&wrapped, &ann), None, "another process has another key");
    }

    #[test]
    fn a_changed_or_invented_id_opens_nothing() {
        let seal = Seal::new();
        let wrapped =
            seal.wrap(&Task { server: "s".into(), replica: 0, id: "t".into() }, &caller("ann", None));
        let (route, code) = wrapped.split_once('.').unwrap();
        let other = URL_SAFE_NO_PAD.encode(r#"{"server":"s","replica":0,"id":"u"}"#);
        for forged in [
            format!("{other}.{code}"),
            format!("{route}."),
            route.to_owned(),
            String::new(),
            format!("{wrapped}A"),
            "t".into(),
        ] {
            assert_eq!(seal.open(&forged, &caller("ann", None)), None, "{forged}");
        }
    }
}
