//! Credentials of `git_push`: they reach the server they are for, and nothing else ever has them.

use super::push::LOOPBACK;
use super::{Repo, git_in};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gantry_testkit::git_server::GitServer;
use gantry_testkit::tls::{Authority, HERE, Relay};
use serde_json::json;
use tempfile::TempDir;

const TOKEN: &str = "ghp_TheTokenThatNobodySees";

/// A server behind TLS, the authority that has signed for it, and a folder with its certificate.
struct Secure {
    upstream: GitServer,
    relay: Relay,
    folder: TempDir,
}

impl Secure {
    fn wanting(pair: &str) -> Self {
        let upstream = GitServer::wanting(&basic(pair));
        let authority = Authority::new("of this test");
        let folder = tempfile::tempdir().expect("a folder");
        authority.write(folder.path());
        let relay = authority.relay(upstream.address, &HERE);
        Self { upstream, relay, folder }
    }

    fn origin(&self) -> String {
        format!("https://localhost:{}", self.relay.address.port())
    }

    /// A repository with a commit to push there, and a Gantry with this credential that trusts it.
    fn repo(&self, credential: &str) -> Repo {
        let private = "web: { allowPrivate: [\"127.0.0.1/32\", \"::1/128\"] }\n";
        let yaml =
            format!("{private}git: {{ credentials: {{ \"{}\": \"{credential}\" }} }}\n", self.origin());
        let repo = Repo::with(&yaml).started();
        repo.git(&["remote", "add", "origin", &format!("{}/x.git", self.origin())]);
        let certificate = self.folder.path().join("ca.pem").display().to_string();
        repo.env("SSL_CERT_FILE", &certificate).env("GIT_TOKEN", TOKEN)
    }
}

fn basic(pair: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}

#[test]
fn blt_5_git_push_shows_a_token_to_its_server_only() {
    let secure = Secure::wanting(&format!("x-access-token:{TOKEN}"));
    let repo = secure.repo("${GIT_TOKEN}");
    repo.hook("pre-push", "env >seen; git config --list >>seen; cat .git/config >>seen; cat /proc/*/environ /proc/*/cmdline >>seen 2>/dev/null; true");
    let pushed = repo.done("git_push", &json!({}));
    assert_eq!(
        (&pushed["created"], &pushed["url"]),
        (&json!(true), &json!(format!("{}/x.git", secure.origin())))
    );
    let head = repo.head();
    assert_eq!(git_in(&secure.upstream.repository(), &["rev-parse", "main"]), head);
    let came = secure.upstream.authorizations();
    let wanted = basic(&format!("x-access-token:{TOKEN}"));
    assert!(!came.is_empty() && came.iter().all(|value| value.as_ref() == Some(&wanted)), "{came:?}");

    let encoded = wanted.trim_start_matches("Basic ").to_owned();
    let audit = repo.home.run(["audit", "--json"]).stdout;
    for (place, text) in
        [("the hook", repo.home.read("seen")), ("the result", pushed.to_string()), ("the ledger", audit)]
    {
        assert!(!text.is_empty() && !text.contains(TOKEN) && !text.contains(&encoded), "{place}: {text}");
    }
    for (file, content) in repo.inside() {
        let text = String::from_utf8_lossy(&content);
        assert!(!text.contains(TOKEN) && !text.contains(&encoded), "{file}");
    }
}

#[test]
fn blt_5_git_push_with_a_user_and_a_password_sends_much() {
    let secure = Secure::wanting("me:pass word");
    let repo = secure.repo("me:pass word");
    // More than git sends in one piece.
    let noise: String =
        (0..200_000u64).map(|n| format!("{:x}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    repo.home.write("big.txt", &noise);
    repo.done("git_commit", &json!({ "message": "Much", "all": true }));
    assert_eq!(repo.done("git_push", &json!({}))["to"], repo.head());
    assert_eq!(git_in(&secure.upstream.repository(), &["rev-parse", "main"]), repo.head());
}

#[test]
fn blt_5_git_push_with_a_wrong_token_or_none_says_where_it_belongs() {
    let secure = Secure::wanting("x-access-token:right");
    let (code, message) = secure.repo("wrong").fails("git_push", &json!({}));
    assert!(code == "PERMISSION_DENIED" && message.contains("git.credentials"), "{code} {message}");
    assert!(!message.contains("wrong"), "{message}");

    let plain = GitServer::wanting("Basic x");
    let repo = Repo::with(LOOPBACK).started();
    repo.git(&["remote", "add", "origin", &plain.url()]);
    let (code, message) = repo.fails("git_push", &json!({}));
    assert!(code == "PERMISSION_DENIED" && message.contains("git.credentials"), "{code} {message}");
}

#[test]
fn blt_5_git_push_without_a_credential_speaks_tls_to_the_server_itself() {
    let secure = Secure::wanting("me:in-the-address");
    let repo = Repo::with("web: { allowPrivate: [\"127.0.0.1/32\", \"::1/128\"] }\n").started();
    let port = secure.relay.address.port();
    repo.git(&["remote", "add", "origin", &format!("https://me:in-the-address@localhost:{port}/x.git")]);
    // No program in the jail trusts the test's authority.
    let (_, message) = repo.fails("git_push", &json!({}));
    assert!(message.contains("certificate") && !message.contains("in-the-address"), "{message}");
    assert!(secure.upstream.authorizations().is_empty());

    std::fs::copy(secure.folder.path().join("ca.pem"), repo.home.path().join("ca.pem")).expect("a copy");
    repo.git(&["config", "http.sslCAInfo", "/workspace/ca.pem"]);
    let reply = repo.home.call("git_push", &json!({}));
    assert!(!reply.to_string().contains("in-the-address"), "{reply}");
    let pushed = repo.done("git_push", &json!({}));
    assert_eq!(pushed["url"], format!("https://localhost:{port}/x.git"));
    assert_eq!(git_in(&secure.upstream.repository(), &["rev-parse", "main"]), repo.head());
    let audit = repo.home.run(["audit", "--json"]).stdout;
    assert!(!audit.contains("in-the-address"), "{audit}");
}

#[test]
fn blt_5_git_push_runs_no_program_of_the_repository_beside_a_credential() {
    let secure = Secure::wanting(&format!("x-access-token:{TOKEN}"));
    let repo = secure.repo("${GIT_TOKEN}");
    // Each of them would ask the proxy for something, with the credential that it adds.
    let origin = secure.origin().replace("https:", "http:");
    let steal = format!(
        "curl --silent --max-time 5 --proxy http://127.0.0.1:3128 --noproxy '' {origin}/x.git/stolen >/dev/null 2>&1; true"
    );
    for hook in ["pre-push", "reference-transaction", "post-update", "update"] {
        repo.hook(hook, &steal);
    }
    repo.home.write("steal.sh", &format!("#!/bin/sh\n{steal}\n"));
    let path = repo.home.path().join("steal.sh");
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its mode");
    for (key, value) in [
        ("credential.helper", "/workspace/steal.sh"),
        ("core.askPass", "/workspace/steal.sh"),
        ("core.sshCommand", "/workspace/steal.sh"),
        ("core.gitProxy", "/workspace/steal.sh"),
        ("core.fsmonitor", "/workspace/steal.sh"),
        ("push.gpgSign", "if-asked"),
        ("gpg.program", "/workspace/steal.sh"),
        ("core.alternateRefsCommand", "/workspace/steal.sh"),
        ("remote.origin.receivepack", "/workspace/steal.sh"),
        ("push.recurseSubmodules", "on-demand"),
    ] {
        repo.git(&["config", key, value]);
    }
    assert_eq!(repo.done("git_push", &json!({}))["created"], true);
    // What they asked for did not arrive: the server saw git's own requests and no other.
    let seen = secure.upstream.requests();
    assert!(!seen.is_empty() && seen.iter().all(|path| !path.contains("stolen")), "{seen:?}");
}
