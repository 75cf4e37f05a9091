//! What git answers to a push, and what that means.

use super::{Output, Plan};
use crate::failure::{self, Result};
use crate::git::remote::{display, redact};
use crate::text::{display_text, last_lines};
use gantry_core::{CallFailure, ErrorCode, ToolError};
use gantry_sandbox::jail::{ExitReason, JobOutput};

const SERVER_LINES: usize = 40;

/// What git says before anything is sent, the code of it, and what the caller can do. The first that fits counts.
const SIGNS: [(&[&str], ErrorCode, &str); 3] = [
    (
        &[
            "Authentication failed",
            "could not read Username",
            "could not read Password",
            "error: 401",
            "error: 403",
            "response 403",
        ],
        ErrorCode::PermissionDenied,
        "look at `git.credentials` in the configuration, and for a private address at `web.allowPrivate`",
    ),
    (
        &["error: 404", "' not found", "error: 301", "error: 302", "error: 307", "error: 308"],
        ErrorCode::ExecutionError,
        "there is no repository at this address, or none that this credential shows",
    ),
    (&["unable to access"], ErrorCode::UpstreamUnavailable, "the server could not be reached"),
];

/// Reads the one line that tells about the branch: `flag TAB from:to TAB summary`.
pub(super) fn read(ran: &JobOutput, plan: &Plan) -> Result<Output> {
    let stdout = ran.stdout.text();
    let stderr = redact(&plan.url, &ran.stderr.text());
    let line = stdout.lines().find_map(|line| {
        let mut parts = line.splitn(3, '\t');
        let (flag, spec, summary) = (parts.next()?, parts.next()?, parts.next()?);
        (spec.contains(':') && flag.len() == 1).then_some((flag, summary))
    });
    let (flag, from) = match (line, ran.end) {
        (Some(("!", summary)), _) => return Err(rejected(summary, &stderr, plan)),
        (Some(("=", _)), ExitReason::Exited(0)) => ("=", Some(plan.commit.clone())),
        (Some((flag @ ("*" | "+" | " "), summary)), ExitReason::Exited(0)) => {
            (flag, summary.split_once("..").map(|(from, _)| from.to_owned()))
        }
        (Some(_) | None, _) => return Err(unanswered(&stderr, plan)),
    };
    Ok(Output {
        remote: plan.remote.clone(),
        url: display(&plan.url),
        reference: plan.reference(),
        from,
        to: plan.commit.clone(),
        created: flag == "*",
        forced: flag == "+",
        output: server_lines(&stderr),
        warning: None,
    })
}

fn server_lines(said: &str) -> String {
    let lines = said.lines().filter_map(|line| line.strip_prefix("remote:"));
    let shown = lines.map(|line| display_text(line.trim())).filter(|line| !line.is_empty());
    shown.take(SERVER_LINES).collect::<Vec<_>>().join("\n")
}

/// The branch there is what it was, unless the server did not say.
fn rejected(summary: &str, said: &str, plan: &Plan) -> CallFailure {
    let (to, why) = (display(&plan.url), display_text(summary));
    if summary.starts_with("[remote failure]") {
        return outcome_unknown(&why, plan);
    }
    let is_behind =
        ["non-fast-forward", "fetch first", "stale info"].iter().any(|reason| summary.contains(reason));
    let advice = if is_behind { "; let a person fetch and merge what is there, then push again" } else { "" };
    failure::failed(format!("{to} rejected the push: {why}{advice}\n{}", server_lines(said)))
}

/// Git did not get as far as an answer about the branch.
fn unanswered(said: &str, plan: &Plan) -> CallFailure {
    let (to, text) = (display(&plan.url), last_lines(said));
    // What the server says is no sign of how far git got.
    let shows = |sign: &str| said.lines().any(|line| !line.starts_with("remote:") && line.contains(sign));
    match SIGNS.iter().find(|(signs, ..)| signs.iter().any(|sign| shows(sign))) {
        Some((_, code, advice)) => {
            let message = format!("nothing was pushed to {to}; {advice}: {text}");
            CallFailure::without_effect(ToolError::new(*code, message))
        }
        None => outcome_unknown(&text, plan),
    }
}

fn outcome_unknown(text: &str, plan: &Plan) -> CallFailure {
    let to = display(&plan.url);
    failure::effect_unknown(format!(
        "pushing to {to} failed, and whether it arrived is not known; look there: {text}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::remote::parse_address;
    use crate::git::script::captured;
    use gantry_core::EffectState;
    use std::time::Duration;

    fn plan() -> Plan {
        Plan {
            branch: "main".into(),
            commit: "bbbb".into(),
            remote: "origin".into(),
            url: parse_address("https://me:hunter2@h/x.git").unwrap(),
            old: None,
            count: 1,
            lost: 0,
            subjects: Vec::new(),
            force: None,
        }
    }

    fn ran(stdout: &str, stderr: &str, code: i32) -> JobOutput {
        let (stdout, stderr) = (captured(stdout.as_bytes()), captured(stderr.as_bytes()));
        JobOutput { stdout, stderr, end: ExitReason::Exited(code), duration: Duration::ZERO }
    }

    #[test]
    fn the_line_about_the_branch_tells_what_became_of_it() {
        let sent = |line: &str| {
            let stdout = format!("To http://h/x.git\n{line}\nDone\n");
            let sent = read(&ran(&stdout, "remote: \nremote: hello\x1b[0m \nother\n", 0), &plan()).unwrap();
            assert_eq!(sent.output, "hello\\u{1b}[0m");
            (sent.from, sent.created, sent.forced)
        };
        assert_eq!(sent("*\tbbbb:refs/heads/main\t[new branch]"), (None, true, false));
        assert_eq!(sent(" \tbbbb:refs/heads/main\taaaa..bbbb"), (Some("aaaa".into()), false, false));
        let forced = "+\tbbbb:refs/heads/main\taaaa...bbbb (forced update)";
        assert_eq!(sent(forced), (Some("aaaa".into()), false, true));
        assert_eq!(sent("=\tbbbb:refs/heads/main\t[up to date]"), (Some("bbbb".into()), false, false));
    }

    #[test]
    fn every_failure_says_what_to_do_and_whether_it_may_have_arrived() {
        let answer = |why: &str| format!("!\tb:refs/heads/main\t{why}\n");
        for (stdout, stderr, code, effect, words) in [
            (answer("[rejected] (fetch first)"), "", "EXECUTION_ERROR", EffectState::None, "fetch and merge"),
            (
                answer("[remote rejected] (hook declined)"),
                "remote: no\n",
                "EXECUTION_ERROR",
                EffectState::None,
                "declined)\nno",
            ),
            (
                answer("[remote failure] (no report)"),
                "",
                "EXECUTION_ERROR",
                EffectState::Possible,
                "not known",
            ),
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
                "there is no repository at",
            ),
            (
                String::new(),
                "fatal: unable to access 'x': no",
                "UPSTREAM_UNAVAILABLE",
                EffectState::None,
                "reached",
            ),
            (String::new(), "error: RPC failed", "EXECUTION_ERROR", EffectState::Possible, "not known"),
            (String::new(), "remote: error: 403", "EXECUTION_ERROR", EffectState::Possible, "not known"),
        ] {
            let fault = read(&ran(&stdout, stderr, 1), &plan()).unwrap_err();
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
            let fault = read(&ran("", said, 1), &plan()).unwrap_err();
            assert!(!fault.error.message.contains("hunter"), "{fault:?}");
        }
    }
}
