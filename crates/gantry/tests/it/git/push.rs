//! `git_push`: exactly the commit that a person saw goes to exactly the place that they saw.

use super::{Repo, git_in, held};
use gantry_testkit::git_server::GitServer;
use serde_json::json;
use std::io::{BufRead as _, BufReader, Write as _};

/// Lets pushes reach the servers of these tests.
pub(super) const LOOPBACK: &str = "web: { allowPrivate: [\"127.0.0.1/32\"] }\n";

/// A repository with one commit whose remote `origin` is a server of the test.
fn connected(server: &GitServer) -> Repo {
    let repo = Repo::with(LOOPBACK).started();
    repo.git(&["remote", "add", "origin", &server.url()]);
    repo
}

fn branch(server: &GitServer, name: &str) -> String {
    git_in(&server.repository(), &["for-each-ref", "--format=%(objectname)", &format!("refs/heads/{name}")])
}

#[test]
fn blt_5_git_push_sends_what_a_person_has_seen() {
    let upstream = GitServer::open();
    let repo = connected(&upstream);
    let server = repo.home.serve();
    let before = repo.inside();
    let first = held(&server, "git_push", &json!({}));
    for words in ["branch main would be made", &upstream.url(), "remote origin", "1 commit", "First"] {
        assert!(first.reason.contains(words), "{words}: {}", first.reason);
    }
    assert_eq!(repo.inside(), before, "looking changes nothing");
    assert!(upstream.authorizations().is_empty(), "and talks to nobody");

    let reply = first.approve(&server);
    assert_eq!(reply["ok"], true, "{reply}");
    let pushed = &reply["result"];
    repo.fits("git_push", pushed);
    assert_eq!(pushed["url"], upstream.url());
    assert_eq!((&pushed["ref"], &pushed["to"]), (&json!("refs/heads/main"), &json!(repo.head())));
    assert_eq!(
        (&pushed["created"], &pushed["forced"], pushed.get("from")),
        (&json!(true), &json!(false), None)
    );
    assert_eq!(branch(&upstream, "main"), repo.head());
    assert_eq!(repo.git(&["rev-parse", "refs/remotes/origin/main"]), repo.head());

    let old = repo.head();
    repo.home.write("a.txt", "more\n");
    repo.git(&["commit", "--quiet", "--all", "--message=Second"]);
    let second = held(&server, "git_push", &json!({ "remote": "origin", "branch": "main" }));
    assert!(
        second.reason.contains("branch main would be moved") && second.reason.contains("Second"),
        "{}",
        second.reason
    );
    assert!(!second.reason.contains("First"), "{}", second.reason);
    let reply = second.approve(&server);
    assert_eq!(
        (&reply["result"]["from"], &reply["result"]["to"]),
        (&json!(old), &json!(repo.head())),
        "{reply}"
    );
    assert_eq!(branch(&upstream, "main"), repo.head());
    let again = repo.done("git_push", &json!({}));
    assert_eq!(again["from"], again["to"]);
}

#[test]
fn blt_5_git_push_sends_nothing_if_branch_or_remote_changed_after_the_question() {
    let (upstream, other) = (GitServer::open(), GitServer::open());
    let repo = connected(&upstream);
    let server = repo.home.serve();
    let asked = held(&server, "git_push", &json!({}));
    repo.git(&["commit", "--quiet", "--allow-empty", "--message=Meanwhile"]);
    let asked = asked.approve_too_late(&server);
    assert!(asked.reason.contains("2 commits") && asked.reason.contains("Meanwhile"), "{}", asked.reason);
    repo.git(&["config", &format!("url.{}.insteadOf", other.url()), &upstream.url()]);
    let asked = asked.approve_too_late(&server);
    assert!(upstream.authorizations().is_empty() && other.authorizations().is_empty());

    // Once it is seen where it would really go, it goes there.
    assert!(asked.reason.contains(&other.url()), "{}", asked.reason);
    assert_eq!(asked.approve(&server)["ok"], true);
    assert_eq!((branch(&other, "main"), branch(&upstream, "main")), (repo.head(), String::new()));
}

#[test]
fn blt_5_git_push_that_would_lose_commits_needs_force_and_a_lease() {
    let upstream = GitServer::open();
    let repo = connected(&upstream);
    repo.done("git_push", &json!({}));
    let first = repo.head();
    repo.git(&["commit", "--quiet", "--amend", "--message=First, again"]);
    let (_, message) = repo.fails("git_push", &json!({}));
    assert!(
        message.contains("has 1 commit that the local one has not") && message.contains("with-lease"),
        "{message}"
    );

    let server = repo.home.serve();
    let asked = held(&server, "git_push", &json!({ "force": "with-lease" }));
    assert!(
        asked.reason.contains("would be replaced and lose 1 commit") && asked.reason.contains("force"),
        "{}",
        asked.reason
    );
    let reply = asked.approve(&server);
    assert_eq!(
        (&reply["result"]["forced"], &reply["result"]["from"]),
        (&json!(true), &json!(first)),
        "{reply}"
    );
    assert_eq!(branch(&upstream, "main"), repo.head());
    drop(server);

    // Another repository pushes, and this one does not know.
    let theirs = tempfile::tempdir().expect("a folder");
    git_in(theirs.path(), &["clone", "--quiet", &upstream.repository().display().to_string(), "."]);
    git_in(theirs.path(), &["commit", "--quiet", "--allow-empty", "--message=Theirs"]);
    git_in(theirs.path(), &["push", "--quiet", "origin", "main"]);
    let stands = branch(&upstream, "main");
    repo.git(&["commit", "--quiet", "--allow-empty", "--message=Mine"]);
    for arguments in [json!({}), json!({ "force": "with-lease" })] {
        let (code, message) = repo.fails("git_push", &arguments);
        assert!(code == "EXECUTION_ERROR" && message.contains("rejected the push"), "{code} {message}");
        assert!(message.contains("fetch and merge"), "{message}");
    }
    assert_eq!(branch(&upstream, "main"), stands);
}

#[test]
fn blt_5_git_push_takes_only_remotes_that_go_through_the_proxy() {
    let repo = Repo::with(LOOPBACK).started();
    let marker = repo.home.path().join("ran");
    let bare = repo.home.path().join("bare.git").display().to_string();
    repo.git(&["init", "--quiet", "--bare", "bare.git"]);
    for (url, words) in [
        ("git@example.com:me/x.git", "ssh"),
        ("ssh://example.com/x.git", "ssh"),
        ("git://example.com/x.git", "protocol git"),
        (&format!("file://{bare}"), "folder"),
        (&bare, "folder"),
        ("bare.git", "folder"),
        (&format!("ext::touch {}", marker.display()), "address"),
        ("ext::true", "program"),
    ] {
        repo.git(&["config", "remote.origin.url", url]);
        let reply = repo.home.call("git_push", &json!({}));
        assert_eq!(reply["error"]["code"], "PERMISSION_DENIED", "{url}: {reply}");
        let message = reply["error"]["message"].as_str().unwrap();
        assert!(message.contains(words) && message.contains("https"), "{url}: {message}");
    }
    assert!(!marker.exists());
    repo.git(&["config", "remote.origin.url", "https://example.com/x.git"]);
    repo.git(&["config", "remote.origin.vcs", "evil"]);
    assert_eq!(repo.fails("git_push", &json!({})).0, "PERMISSION_DENIED");
}

#[test]
fn blt_5_git_push_says_what_is_missing() {
    let repo = Repo::new();
    for (arguments, words) in [
        (json!({}), "there is no remote origin"),
        (json!({ "remote": "nowhere" }), "there is no remote nowhere"),
        (json!({ "branch": "nothing" }), "there is no branch nothing"),
        (json!({ "branch": "-d" }), "branch"),
        (json!({ "branch": "a:b" }), "not the name of a branch"),
        (json!({ "branch": "main~0" }), "not the name of a branch"),
        (json!({ "branch": "a/.b" }), "not the name of a branch"),
        (json!({ "branch": "HEAD" }), "not the name of a branch"),
        (json!({ "branch": "refs/heads/@" }), "not the name of a branch"),
        (json!({ "force": "yes" }), "force"),
    ] {
        let reply = repo.home.call("git_push", &arguments);
        assert!(reply["error"]["message"].as_str().unwrap().contains(words), "{arguments}: {reply}");
    }
    repo.git(&["checkout", "--quiet", "--detach"]);
    assert!(repo.fails("git_push", &json!({})).1.contains("no branch is checked out"));
    assert!(Repo::empty().fails("git_push", &json!({})).1.contains("no commit yet"));
}

#[test]
fn blt_5_git_push_does_not_reach_private_addresses_that_are_not_open() {
    let upstream = GitServer::open();
    let repo = Repo::new();
    repo.git(&["remote", "add", "origin", &upstream.url()]);
    let (code, message) = repo.fails("git_push", &json!({}));
    assert!(code == "PERMISSION_DENIED" && message.contains("web.allowPrivate"), "{code} {message}");
    assert!(upstream.authorizations().is_empty());
}

#[test]
fn blt_5_git_push_asks_the_repositorys_own_hook_first() {
    let upstream = GitServer::open();
    let repo = connected(&upstream);
    repo.hook("pre-push", "echo \"$1 $2\" >hook-args; cat >hook-input; echo 'tests fail' >&2; exit 1");
    let (code, message) = repo.fails("git_push", &json!({}));
    assert!(
        code == "EXECUTION_ERROR" && message.contains("tests fail") && message.contains("pre-push"),
        "{message}"
    );
    assert!(upstream.authorizations().is_empty());
    assert_eq!(repo.home.read("hook-args").trim(), format!("origin {}", upstream.url()));
    let zero = "0".repeat(40);
    assert_eq!(
        repo.home.read("hook-input"),
        format!("refs/heads/main {} refs/heads/main {zero}\n", repo.head())
    );
    repo.hook("pre-push", "exit 0");
    assert_eq!(repo.done("git_push", &json!({}))["created"], true);
}

#[test]
fn blt_5_git_push_tells_what_the_server_says() {
    let upstream = GitServer::open();
    let repo = connected(&upstream);
    let hook = |script: &str| {
        let path = upstream.repository().join("hooks/pre-receive");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a hook");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("its mode");
    };
    hook("echo 'main is protected'; exit 1");
    let (code, message) = repo.fails("git_push", &json!({}));
    assert!(
        code == "EXECUTION_ERROR" && message.contains("rejected") && message.contains("main is protected"),
        "{message}"
    );
    assert_eq!(branch(&upstream, "main"), "");
    hook("echo 'Create a pull request by visiting https://example.com/pr'");
    let pushed = repo.done("git_push", &json!({}));
    assert!(pushed["output"].as_str().unwrap().contains("pull request by visiting"), "{pushed}");
    std::fs::remove_dir_all(upstream.repository()).expect("it is there");
    repo.git(&["commit", "--quiet", "--allow-empty", "--message=Late"]);
    let (_, message) = repo.fails("git_push", &json!({}));
    assert!(message.contains("there is no repository at"), "{message}");
}

/// A server that redirects every client to another one, for as long as the test runs.
fn redirecting_to(target: &str) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    let target = target.trim_end_matches("/x.git").to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).expect("a request");
            let path = line.split(' ').nth(1).expect("a path");
            let answer = format!(
                "HTTP/1.1 302 Found\r\nLocation: {target}{path}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            stream.write_all(answer.as_bytes()).expect("an answer");
        }
    });
    format!("http://{address}/x.git")
}

#[test]
fn blt_5_git_push_goes_to_no_other_server_despite_the_repositorys_redirects() {
    let other = GitServer::open();
    let shown = redirecting_to(&other.url());
    let repo = Repo::with(LOOPBACK).started();
    repo.git(&["remote", "add", "origin", &shown]);
    for address in [&shown, shown.trim_end_matches("/x.git"), shown.trim_end_matches("x.git")] {
        repo.git(&["config", &format!("http.{address}.followRedirects"), "true"]);
    }
    let server = repo.home.serve();
    let asked = held(&server, "git_push", &json!({}));
    assert!(asked.reason.contains(&shown), "{}", asked.reason);
    let reply = asked.approve(&server);
    assert_eq!(reply["ok"], false, "{reply}");
    assert!(other.authorizations().is_empty(), "nobody came");
    assert_eq!(branch(&other, "main"), "");
    repo.git(&["-c", "http.proxy=", "push", "--quiet", "origin", "main"]);
    assert_eq!(branch(&other, "main"), repo.head(), "git itself does go there");
}
