//! Tools of MCP servers that say of themselves that they destroy something: they wait for a person, unless that is lifted.

use super::{Gate, only};
use crate::mcp_sdks::{PYTHON, TYPESCRIPT_1};
use crate::passthrough::{Door as Path, Talk};
use gantry_testkit::TestDir;
use gantry_testkit::real_servers::{self, Ready};
use serde_json::{Value, json};

/// A Gantry with the filesystem server, whose folder has a file.
struct Site {
    gate: Gate,
    ready: Ready,
    folder: tempfile::TempDir,
}

impl Site {
    fn new(more: &Value) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let ready = real_servers::find("filesystem").prepare(folder.path());
        let mut entry = ready.entry();
        entry["startupTimeoutMs"] = json!(60_000);
        let mut config = json!({ "mcpServers": { "filesystem": entry } });
        for (key, value) in more.as_object().expect("an object") {
            config[key] = value.clone();
        }
        let gate = Gate::at(TestDir::new().config(&config.to_string()));
        gate.server.eventually("the server has started", || {
            gate.server.get_as_admin("/api/v1/servers/filesystem").json()["status"] == "ready"
        });
        // A client that connects waits for the pool that follows from it.
        Talk::legacy(Path::Http(&gate.server, "/mcp")).tools();
        Self { gate, ready, folder }
    }

    fn write(&self) -> Value {
        let path = self.folder.path().join("new.txt");
        json!({ "name": "filesystem__write_file", "arguments": { "path": path, "content": "new" } })
    }

    fn has_written(&self) -> bool {
        self.folder.path().join("new.txt").exists()
    }

    fn read(&self) -> Value {
        json!({ "name": "filesystem__read_text_file", "arguments": self.ready.arguments })
    }
}

#[test]
fn apr_2_a_tool_that_says_it_destroys_waits_and_one_that_only_reads_does_not() {
    for (sdk, era) in [(PYTHON, "auto"), (TYPESCRIPT_1, "legacy")] {
        let site = Site::new(&json!({}));
        let (gate, options) = (&site.gate, ["--era", era]);
        let read = json!([{ "call": site.read() }]);
        let seen = sdk.play_with(&gate.home, gate.door(), &options, &read);
        assert_eq!(only(&seen)["isError"], false, "{seen}");
        assert!(gate.requests("PENDING_APPROVAL").is_empty());
        let playing = sdk.begin(&gate.home, gate.door(), &options, &json!([{ "call": site.write() }]));
        let approval = gate.pending();
        assert!(!site.has_written());
        let item = gate.item(&approval);
        assert_eq!(
            (&item["effect"], &item["provider"]),
            (&json!("destructive"), &json!("filesystem")),
            "{item}"
        );
        gate.decide(&approval, &json!({ "approved": true }));
        let seen = playing.end();
        assert_eq!(only(&seen)["isError"], false, "{seen}");
        assert!(site.has_written());
    }
}

#[test]
fn apr_2_a_rule_about_the_tool_the_configuration_and_an_agents_automatic_approval_lift_that() {
    let never = json!({ "approvals": { "toolRules": { "filesystem__write_file": "never" } } });
    let no_effects = json!({ "approvals": { "requiresApprovalEffects": [] } });
    for more in [never, no_effects] {
        let site = Site::new(&more);
        let script = json!([{ "call": site.write() }]);
        let seen = PYTHON.play_with(&site.gate.home, site.gate.door(), &["--era", "auto"], &script);
        assert!(only(&seen)["isError"] == false && site.has_written(), "{more}: {seen}");
    }
    let agents = json!({ "agents": {
        "trusted": { "tools": { "use": ["filesystem__*"], "autoApprove": ["filesystem__write_file"] } },
        "other": { "tools": ["filesystem__*"] },
    }, "approvals": { "delivery": "pending" } });
    let site = Site::new(&agents);
    let of = |agent: &str| {
        let path = format!("/mcp/default/agents/{agent}");
        Talk::legacy(Path::Http(&site.gate.server, &path)).result("tools/call", &site.write())
    };
    let held = of("other");
    assert_eq!(held["_meta"]["gantry/error"]["code"], "APPROVAL_REQUIRED", "{held}");
    assert!(!site.has_written());
    let written = of("trusted");
    assert_ne!(written["isError"], true, "{written}");
    assert!(site.has_written());
}

/// A hint makes Gantry ask; it never makes it ask less than a rule does.
#[test]
fn apr_2_a_tool_that_says_it_only_reads_waits_where_a_rule_says_so() {
    let rules = json!({ "approvals": {
        "requiresApprovalTools": ["filesystem__read_text_file"],
        "toolRules": { "filesystem__read_text_file": "never" },
        "delivery": "pending",
    } });
    let site = Site::new(&rules);
    let held = Talk::modern_with(Path::Http(&site.gate.server, "/mcp"), &json!({}))
        .result("tools/call", &site.read());
    assert_eq!(held["_meta"]["gantry/error"]["code"], "APPROVAL_REQUIRED", "{held}");
}
