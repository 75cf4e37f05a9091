//! A file that cannot be used changes nothing, is reported with its line and its reason in every place, and once.

use super::trouble;
use crate::projects::{Site, faulty};
use gantry_testkit::TestDir;
use serde_json::{Value, json};

/// What holds before anything is broken.
const GOOD: &str = r#"
queues: { disk: { concurrent: 2 } }
tools: { workspace: { queue: disk } }
agents: { a: { tools: ["s__echo", "s__pid"] } }
policies:
  - { name: no-fail, tools: ["s__fail"], decide: deny }
"#;

/// A Gantry with [`GOOD`] and a server.
fn site() -> Site {
    Site::at(TestDir::new().config(&good("")))
}

/// The file with something more in it.
fn good(more: &str) -> String {
    format!("mcpServers: {{ s: {} }}\n{}{more}", faulty(&[]), GOOD.trim_start())
}

/// That everything of [`GOOD`] holds, by the same process.
#[track_caller]
fn holds(site: &Site, pid: &str) {
    assert_eq!(site.pid("default", "s"), pid, "the server is the same");
    site.error("default", "s__fail", &json!({ "text": "x" }), "PERMISSION_DENIED");
    let listed = site.server.get("/api/v1/tools?agent=a").json();
    assert_eq!(crate::passthrough::names(&listed["items"]), ["s__echo", "s__pid"]);
    assert_eq!(crate::queues::queue(&site.server, "disk")["concurrent"], 2);
    assert!(site.tools("default").contains(&"read_file".to_owned()));
}

/// A file that cannot be used: what is wrong with it, where, and a word of what is said.
struct Broken {
    what: &'static str,
    text: String,
    line: usize,
    word: &'static str,
}

fn broken() -> Vec<Broken> {
    let lines = good("").lines().count() + 1;
    let table = [
        ("syntax", good("agents: [\n"), lines, "not valid YAML"),
        ("an unknown key", good("wrkspace: .\n"), lines, "workspace"),
        ("an unknown queue", good("").replace("queue: disk", "queue: disc"), 3, "did you mean \"disk\""),
        (
            "a rule that fails its own example",
            good(
                "  - { name: p, tools: [\"*\"], decide: deny, when: \"args.a == 1\", examples: { deny: [{ a: 2 }] } }\n",
            ),
            lines,
            "example",
        ),
        (
            "a rule that is none",
            good("  - { name: p, tools: [\"*\"], decide: deny, when: \"args.a ==\" }\n"),
            lines,
            "policy p",
        ),
        ("a workspace that is not there", good("workspace: nowhere\n"), lines, "nowhere"),
        ("a key of a later version", good("models: {}\n"), lines, "not available in this version"),
        (
            "a bad project beside good ones",
            good(
                "projects: { fine: { workspace: . }, bad: { workspace: ., agents: { a: { tols: [] } } } }\n",
            ),
            lines,
            "tols",
        ),
        (
            "two owners of one id",
            good("").replace(
                "workspace: { queue: disk }",
                "workspace: { queue: disk }, s: { kind: builtin, builtinPolicy: { name: fs_read } }",
            ),
            3,
            "the id \"s\" is already taken",
        ),
    ];
    table.into_iter().map(|(what, text, line, word)| Broken { what, text, line, word }).collect()
}

#[test]
fn pol_2_a_broken_file_is_refused_with_its_line_everywhere_and_the_one_before_holds() {
    let site = site();
    let pid = site.pid("default", "s");
    for Broken { what, text, line, word } in broken() {
        let from = site.now();
        let why = site.refused("gantry.yaml", &text);
        let place = format!("gantry.yaml:{line}:");
        assert!(why.starts_with(&place) && why.contains(word), "{what}: {why}");
        assert_eq!(trouble(&site), json!(why), "{what}: the API says the same");
        let answer = site.reload();
        assert_eq!(
            (answer.status, &answer.json()["error"]["message"]),
            (422, &json!(why)),
            "{what}: {answer:?}"
        );
        let first = why.lines().next().expect("a line").to_owned();
        let quoted = json!(first).to_string();
        let log = format!("[ERR] configuration_refused reason={}", quoted.strip_suffix('"').expect("a text"));
        site.server.eventually("it is in the log", || site.server.stderr().contains(&log));
        assert_eq!(site.server.stderr().matches(&log).count(), 1, "{what}: {}", site.server.stderr());
        assert_eq!(site.events("configuration_refused", from).len(), 1, "{what}: once in the stream");
        let doctor = site.home.run(["doctor"]);
        assert_eq!(doctor.code, 1, "{what}: {doctor:?}");
        assert!(
            doctor.stdout.contains("✗ configuration") && doctor.stdout.contains(&first),
            "{what}: {doctor:?}"
        );
        holds(&site, &pid);
        // Mended, it is as if it had never been.
        site.home.write("gantry.yaml", &good(""));
        site.server.eventually("it is mended", || trouble(&site).is_null());
        holds(&site, &pid);
    }
    assert_eq!(site.events("configuration_applied", 0), [] as [Value; 0], "nothing was ever applied");
}

#[test]
fn pol_2_what_only_a_running_gantry_can_know_is_refused_as_well() {
    let site = site();
    super::activate(&site, "a");
    let pid = site.pid("default", "s");
    // The agent that is active at the moment cannot be taken away.
    let why = site.refused("gantry.yaml", &good("").replace("agents: { a:", "agents: { b:"));
    assert!(why.contains("agent a is active") && why.contains("gantry agents switch"), "{why}");
    assert_eq!(trouble(&site), json!(why));
    let doctor = site.home.run(["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains("agent a is active"), "{doctor:?}");
    assert_eq!(site.tools("default"), ["s__echo", "s__pid"]);
    assert_eq!(site.pid("default", "s"), pid);
    // Nor a queue that a server needs which was added since.
    let entry =
        json!({ "id": "late", "command": gantry_testkit::faulty::Faulty::program(), "queue": "disk" });
    let added = site.admin(http::Method::POST, "/api/v1/servers", &entry);
    assert_eq!(added.status, 201, "{added:?}");
    let without = good("")
        .replace("queues: { disk: { concurrent: 2 } }", "")
        .replace("tools: { workspace: { queue: disk } }", "");
    let why = site.refused("gantry.yaml", &without);
    assert!(why.contains("disk") && why.contains("late"), "{why}");
    assert_eq!(crate::queues::queue(&site.server, "disk")["concurrent"], 2);
    // Made anew after the reason is gone, the same file holds.
    let removed = site.admin(http::Method::DELETE, "/api/v1/servers/late", &Value::Null);
    assert_eq!(removed.status, 200, "{removed:?}");
    let answer = site.reload();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(trouble(&site).is_null());
    assert_eq!(crate::queues::queue(&site.server, "disk"), Value::Null);
    assert_eq!(site.pid("default", "s"), pid);
}

#[test]
fn pol_2_names_that_clash_are_refused() {
    let home = TestDir::with_test_tools().env("TEST_GANTRY_COORDINATION", "1");
    let site = Site::at(home.config("{}"));
    let before = site.tools("default");
    // The test tools are a provider, too, and its name is taken.
    let why = site.refused("gantry.yaml", &json!({ "mcpServers": { "test": faulty(&[]) } }).to_string());
    assert!(why.contains("two providers are called test"), "{why}");
    let why = site.refused("gantry.yaml", &json!({ "mcpServers": { "agent": faulty(&[]) } }).to_string());
    assert!(why.contains("\"agent\"") && why.contains("a name of Gantry's own"), "{why}");
    assert_eq!(site.tools("default"), before);
}

#[test]
fn pol_2_the_same_mistake_is_reported_once_and_another_one_again() {
    let site = site();
    let from = site.now();
    let why = site.refused("gantry.yaml", &good("wrkspace: .\n"));
    for n in 0..3 {
        // The file is another one each time, its mistake is not.
        site.home.write("gantry.yaml", &good(&format!("wrkspace: .\n# {n}\n")));
        assert_eq!(site.reload().json()["error"]["message"], json!(why));
    }
    assert_eq!(site.events("configuration_refused", from).len(), 1);
    let other = site.refused("gantry.yaml", &good("agent: {}\n"));
    assert_ne!(other, why);
    assert_eq!(site.events("configuration_refused", from).len(), 2);
    // Mended and broken again it is reported again.
    site.home.write("gantry.yaml", &good(""));
    site.server.eventually("it is mended", || trouble(&site).is_null());
    assert_eq!(site.refused("gantry.yaml", &good("agent: {}\n")), other);
    let outcome = || site.server.stderr().matches("[ERR] configuration_refused ").count();
    site.server.eventually("all is in the log", || outcome() == 3);
}

#[test]
fn pol_2_reading_the_configuration_again_takes_the_key_and_says_what_it_came_to() {
    let site = site();
    assert_eq!(site.server.post("/api/v1/config/reload", "").status, 403);
    assert_eq!(site.server.get("/api/v1/config").status, 403);
    assert_eq!(site.reload().json(), json!({ "projects": [] }), "nothing has changed");
    site.home.write("gantry.yaml", &good("projects: { more: { workspace: . } }\n"));
    let projects = site.reload().json()["projects"].clone();
    assert!(projects.as_array().unwrap().contains(&json!("more")), "{projects}");
    assert_eq!(site.server.get("/api/v1/tools?project=more").status, 200);
}

#[test]
fn pol_2_settings_that_need_a_restart_are_named_and_break_nothing() {
    let site = site();
    let pid = site.pid("default", "s");
    let address = site.server.address;
    site.edit_file(
        "gantry.yaml",
        &good("server: { bind: \"127.0.0.1:1\" }\nstore: { url: \"sqlite://.gantry/other.db\" }\nprojects: { more: { workspace: . } }\n"),
    );
    for key in ["server", "store"] {
        let warning = format!("[WRN] {key} has changed; that takes effect when Gantry starts the next time");
        site.server.eventually("it is named", || site.server.stderr().contains(&warning));
        assert_eq!(site.server.stderr().matches(&warning).count(), 1, "{}", site.server.stderr());
    }
    assert_eq!(site.server.address, address);
    assert_eq!(site.server.get("/readyz").status, 200);
    holds(&site, &pid);
    assert!(!site.home.path().join(".gantry/other.db").exists());
    assert_eq!(site.server.get("/api/v1/tools?project=more").status, 200, "what can apply does");
    // Nothing was lost of what is on record, and commands still find the server.
    assert_eq!(site.home.run(["doctor"]).code, 0);
    let rows = site.server.get_as_admin("/api/v1/audit/verify").json();
    assert_eq!(rows["ok"], true, "{rows}");
}
