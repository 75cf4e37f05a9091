//! What git answers to a push, and what that means.

use super::Plan;
use crate::failure;
use crate::text::{display_text, last_lines};
use gantry_core::{ErrorCode, Fault, ToolError};
use gantry_sandbox::jail::{End, Ran};

/// Lines of the server that a result has.
const SERVER_LINES: usize = 40;

/// What became of the branch there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// The commit that it was at.
    pub(super) from: Option<String>,
    pub(super) is_new: bool,
    pub(super) is_forced: bool,
    /// What the server said.
    pub(super) said: Vec<String>,
}

impl Sent {
    /// Reads the one line that tells about the branch: `flag TAB from:to TAB summary`.
    pub(super) fn read(ran: &Ran, plan: &Plan) -> Result<Self, Fault> {
        let stdout = ran.stdout.text();
        let stderr = plan.address.redact(&ran.stderr.text());
        let line = stdout.lines().find_map(|line| {
            let mut parts = line.splitn(3, '\t');
            let (flag, spec, summary) = (parts.next()?, parts.next()?, parts.next()?);
            (spec.contains(':') && flag.len() == 1).then_some((flag, summary))
        });
        let sent =
            |from, is_new, is_forced| Ok(Self { from, is_new, is_forced, said: server_lines(&stderr) });
        match (line, ran.end) {
            (Some(("!", summary)), _) => Err(rejected(summary, &stderr, plan)),
            (Some(("*", _)), End::Exited(0)) => sent(None, true, false),
            (Some(("+", summary)), End::Exited(0)) => sent(old_commit(summary), false, true),
            (Some((" ", summary)), End::Exited(0)) => sent(old_commit(summary), false, false),
            (Some(("=", _)), End::Exited(0)) => sent(Some(plan.commit.clone()), false, false),
            (Some(_) | None, _) => Err(unanswered(&stderr, plan)),
        }
    }
}

/// The first commit of `from..to`.
fn old_commit(summary: &str) -> Option<String> {
    let hash = summary.split("..").next().unwrap_or_default();
    let is_hash = !hash.is_empty() && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| hash.to_owned())
}

/// What the server said, line by line.
fn server_lines(said: &str) -> Vec<String> {
    let lines = said.lines().filter_map(|line| line.strip_prefix("remote:"));
    lines.map(|line| display_text(line.trim())).filter(|line| !line.is_empty()).take(SERVER_LINES).collect()
}

/// The branch there is what it was, unless the server did not say.
fn rejected(summary: &str, said: &str, plan: &Plan) -> Fault {
    let (to, why) = (plan.address.display(), display_text(summary));
    if summary.starts_with("[remote failure]") {
        return outcome_unknown(&why, plan);
    }
    let is_behind =
        ["non-fast-forward", "fetch first", "stale info"].iter().any(|reason| summary.contains(reason));
    let advice = if is_behind { "; let a person fetch and merge what is there, then push again" } else { "" };
    failure::failed(format!("{to} rejected the push: {why}{advice}\n{}", server_lines(said).join("\n")))
}

/// What git says before anything is sent, the code of it, and what the caller can do. The first that fits counts.
const SIGNS: [(&[&str], ErrorCode, &str); 5] = [
    (
        &["Authentication failed", "could not read Username", "could not read Password", "error: 401"],
        ErrorCode::PermissionDenied,
        "put a token for it under `git.credentials` in the configuration",
    ),
    (
        &["error: 403", "response 403"],
        ErrorCode::PermissionDenied,
        "either the credential under `git.credentials` may not do it, or the address is a private one that \
         `web.allowPrivate` does not open",
    ),
    (
        &["error: 404", "' not found"],
        ErrorCode::ExecutionError,
        "there is no repository at this address, or it shows itself only to a credential under `git.credentials`",
    ),
    (
        &["error: 301", "error: 302", "error: 307", "error: 308"],
        ErrorCode::ExecutionError,
        "let a person set the remote's new address",
    ),
    (&["unable to access"], ErrorCode::UpstreamUnavailable, "the server could not be reached"),
];

/// Git did not get as far as an answer about the branch.
fn unanswered(said: &str, plan: &Plan) -> Fault {
    let (to, text) = (plan.address.display(), last_lines(said));
    match SIGNS.iter().find(|(signs, ..)| signs.iter().any(|sign| said.contains(sign))) {
        Some((_, code, advice)) => {
            let message = format!("nothing was pushed to {to}; {advice}: {text}");
            Fault::without_effect(ToolError::new(*code, message))
        }
        None => outcome_unknown(&text, plan),
    }
}

fn outcome_unknown(text: &str, plan: &Plan) -> Fault {
    let to = plan.address.display();
    failure::effect_unknown(format!(
        "pushing to {to} failed, and whether it arrived is not known; look there: {text}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::remote::Address;
    use gantry_core::EffectState;
    use gantry_sandbox::jail::Captured;
    use std::time::Duration;

    fn plan() -> Plan {
        Plan {
            branch: "main".into(),
            commit: "bbbb".into(),
            remote: "origin".into(),
            address: Address::parse("https://me:hunter2@h/x.git").unwrap(),
            tracking: None,
            old: None,
            count: 1,
            lost: 0,
            subjects: Vec::new(),
            force: None,
        }
    }

    fn ran(stdout: &str, stderr: &str, code: i32) -> Ran {
        let captured = |text: &str| Captured { bytes: text.into(), total: text.len() as u64 };
        let (stdout, stderr) = (captured(stdout), captured(stderr));
        Ran { stdout, stderr, end: End::Exited(code), duration: Duration::ZERO }
    }

    #[test]
    fn the_line_about_the_branch_tells_what_became_of_it() {
        let sent = |line: &str| {
            let stdout = format!("To http://h/x.git\n{line}\nDone\n");
            let sent =
                Sent::read(&ran(&stdout, "remote: \nremote: hello\x1b[0m \nother\n", 0), &plan()).unwrap();
            assert_eq!(sent.said, ["hello\\u{1b}[0m"]);
            (sent.from, sent.is_new, sent.is_forced)
        };
        assert_eq!(sent("*\tbbbb:refs/heads/main\t[new branch]"), (None, true, false));
        assert_eq!(sent(" \tbbbb:refs/heads/main\taaaa..bbbb"), (Some("aaaa".into()), false, false));
        let forced = "+\tbbbb:refs/heads/main\taaaa...bbbb (forced update)";
        assert_eq!(sent(forced), (Some("aaaa".into()), false, true));
        assert_eq!(sent("=\tbbbb:refs/heads/main\t[up to date]"), (Some("bbbb".into()), false, false));
    }

    #[test]
    fn every_failure_says_what_to_do_and_whether_it_may_have_arrived() {
        let told = |why: &str| format!("!\tb:refs/heads/main\t{why}\n");
        for (stdout, stderr, code, effect, words) in [
            (told("[rejected] (fetch first)"), "", "EXECUTION_ERROR", EffectState::None, "fetch and merge"),
            (
                told("[remote rejected] (hook declined)"),
                "remote: no\n",
                "EXECUTION_ERROR",
                EffectState::None,
                "declined)\nno",
            ),
            (told("[remote failure] (no report)"), "", "EXECUTION_ERROR", EffectState::Possible, "not known"),
            (
                String::new(),
                "fatal: Authentication failed for 'x'",
                "PERMISSION_DENIED",
                EffectState::None,
                "git.credentials",
            ),
            (
                String::new(),
                "fatal: x: CONNECT tunnel failed, response 403",
                "PERMISSION_DENIED",
                EffectState::None,
                "allowPrivate",
            ),
            (
                String::new(),
                "fatal: repository 'x' not found",
                "EXECUTION_ERROR",
                EffectState::None,
                "there is no repository at",
            ),
            (
                String::new(),
                "fatal: returned error: 301",
                "EXECUTION_ERROR",
                EffectState::None,
                "new address",
            ),
            (
                String::new(),
                "fatal: unable to access 'x': no",
                "UPSTREAM_UNAVAILABLE",
                EffectState::None,
                "reached",
            ),
            (String::new(), "error: RPC failed", "EXECUTION_ERROR", EffectState::Possible, "not known"),
        ] {
            let fault = Sent::read(&ran(&stdout, stderr, 1), &plan()).unwrap_err();
            assert_eq!((fault.error.code.as_str(), fault.effect), (code, effect), "{stderr}: {fault:?}");
            assert!(fault.error.message.contains(words), "{stderr}: {fault:?}");
        }
    }

    #[test]
    fn secrets_of_an_address_are_not_repeated() {
        let long = "x".repeat(190);
        for said in [
            "fatal: https://me:hunter2@h/x.git/ broke",
            "a me:hunter2@h b",
            &format!("{long} https://me:hunter2@h/x.git"),
        ] {
            let fault = Sent::read(&ran("", said, 1), &plan()).unwrap_err();
            assert!(!fault.error.message.contains("hunter"), "{fault:?}");
        }
    }
}
