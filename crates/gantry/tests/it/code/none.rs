//! No sandbox: the tools that need one say why they cannot be called, and nothing runs without.

use super::site::{Site, homes, says};
use serde_json::{Value, json};

const SHELL: &str =
    "tools:\n  files: { kind: builtin, builtinPolicy: { name: shell_exec, allowedCommands: [touch] } }\n";

#[test]
fn blt_2_without_a_sandbox_nothing_runs_and_the_cause_and_the_fix_are_shown() {
    for home in homes() {
        let site = Site::prepared(home.env("GANTRY_SANDBOX", "none"), SHELL);
        for (tool, arguments) in [
            ("run_code", json!({ "language": "bash", "code": "touch made" })),
            ("files__shell_exec", json!({ "command": "touch", "args": ["made"] })),
        ] {
            let listed = site.home.run(["tools", "--json"]).json();
            let mut all = listed.as_array().into_iter().flatten();
            let listed: &Value =
                all.find(|it| it["name"] == tool).unwrap_or_else(|| panic!("{tool} is not listed"));
            assert_eq!(listed["status"], "quarantined", "{listed}");
            let reason = listed.to_string();
            assert!(reason.contains("cannot be confined") && reason.contains("GANTRY_SANDBOX"), "{listed}");
            for reply in [site.home.call(tool, &arguments), site.home.call_yes(tool, &arguments)] {
                let error = &reply["error"];
                assert_eq!(error["code"], "TOOL_QUARANTINED", "{reply}");
                says(error, &["cannot be confined", "GANTRY_SANDBOX"]);
            }
            let row = site.home.run(["audit", "--json"]).json()[0].take();
            assert_eq!(
                (&row["tool"], &row["state"], &row["effectState"]),
                (&json!(tool), &json!("REFUSED"), &json!("none"))
            );
        }
        site.has_files(&[]);
        let doctor = site.home.run(["doctor"]);
        let line = doctor.stdout.lines().find(|line| line.contains("sandbox")).expect("a line");
        assert!(line.starts_with('!') && line.contains("none") && line.contains("GANTRY_SANDBOX"), "{line}");
        assert_eq!(doctor.code, 0, "odd is not broken: {doctor:?}");
        let about = site.home.run(["doctor", "run_code"]);
        assert!(about.code == 1 && about.stdout.contains("cannot be confined"), "{about:?}");
        // The others work as before.
        let written = site.home.call("write_file", &json!({ "path": "a.txt", "content": "a" }));
        assert_eq!(written["ok"], true, "{written}");
    }
}

#[test]
fn blt_2_over_http_and_mcp_a_tool_without_a_sandbox_is_refused_too() {
    let site = Site::prepared(gantry_testkit::TestDir::new().env("GANTRY_SANDBOX", "none"), SHELL);
    let server = site.home.serve();
    let answer = server.call("run_code", &json!({ "language": "bash", "code": "touch made" }));
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (503, &json!("TOOL_QUARANTINED")),
        "{answer:?}"
    );
    assert!(!crate::results::mcp_tools(&server, "/mcp").contains(&"run_code".to_owned()));
    let outcome = crate::results::mcp_call(
        &server,
        "/mcp",
        "run_code",
        &json!({ "language": "bash", "code": "touch made" }),
    );
    assert_ne!(outcome["result"]["isError"], false, "{outcome}");
    site.has_files(&[]);
}

#[test]
fn blt_2_a_level_that_is_not_known_is_no_sandbox() {
    let site = Site::prepared(gantry_testkit::TestDir::new().env("GANTRY_SANDBOX", "off"), "");
    let reply = site.home.call("run_code", &json!({ "language": "bash", "code": "touch made" }));
    assert_eq!(reply["error"]["code"], "TOOL_QUARANTINED", "{reply}");
    says(&reply["error"], &["GANTRY_SANDBOX"]);
    site.has_files(&[]);
}
