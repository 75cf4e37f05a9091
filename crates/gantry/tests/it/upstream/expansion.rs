//! What the configuration says of a server arrives at the server: variables, switches, and which of its tools count.

use super::news::instructions;
use super::{Rig, processes_with, remote, stdio, with};
use crate::passthrough::{Door, Talk};
use gantry_testkit::TestDir;
use gantry_testkit::faulty::{Faulty, Kind};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::TcpListener;

/// A variable in each way it can be given, and one that is given twice, with what has to arrive.
const GIVEN: [(&str, &str, &str); 5] = [
    ("environment", "${FROM_ENVIRONMENT}", "of the environment"),
    ("default", "${NOT_SET:-of the entry}", "of the entry"),
    ("file", "${FROM_FILE}", "of the file"),
    ("both", "${FROM_BOTH:-of the entry}", "the environment wins"),
    ("inside", "Bearer ${FROM_FILE}/${NOT_SET:-}$${X}", "Bearer of the file/${X}"),
];

/// A home whose variables are set, and these more in the environment and in the file.
fn home(environment: &[(&str, &str)], file: &[(&str, &str)]) -> TestDir {
    let home =
        TestDir::new().env("FROM_ENVIRONMENT", "of the environment").env("FROM_BOTH", "the environment wins");
    let home = environment.iter().fold(home, |home, (name, value)| home.env(name, value));
    let lines: String = file.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    home.write(".env", &format!("FROM_FILE=of the file\nFROM_BOTH=the file loses\n{lines}"));
    home
}

fn serve(home: TestDir, servers: &Value) -> Rig {
    Rig::at(home.config(&json!({ "mcpServers": servers }).to_string()))
}

/// A listener that has to stay alone.
fn no_client_comes() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("it need not wait");
    listener
}

#[track_caller]
fn stayed_alone(listener: &TcpListener) {
    let came = listener.accept().map(|(_, address)| address);
    assert_eq!(came.map_err(|error| error.kind()), Err(ErrorKind::WouldBlock), "somebody came");
}

#[test]
fn ups_7_variables_arrive_in_the_environment_and_the_arguments_of_a_process() {
    let env: BTreeMap<String, &str> =
        GIVEN.iter().map(|(name, written, _)| (format!("GIVEN_{}", name.to_uppercase()), *written)).collect();
    let args = ["--instructions", "${FROM_FILE} and ${FROM_ENVIRONMENT} and ${NOT_SET:-of the entry}"];
    let rig = serve(home(&[], &[]), &json!({ "s": with(stdio(&args), &json!({ "env": env })) }));
    rig.ready("s");
    let found: BTreeMap<String, String> =
        serde_json::from_str(&rig.result("s__env", &json!({}))).expect("an environment");
    for (name, _, arrives) in GIVEN {
        assert_eq!(found[&format!("GIVEN_{}", name.to_uppercase())], arrives, "{name}");
    }
    // The variables themselves are none of the server's business.
    assert!(found.keys().all(|name| !name.starts_with("FROM_")), "{found:?}");
    let outcome = instructions(&rig.server);
    assert!(outcome.contains("of the file and of the environment and of the entry"), "{outcome}");
}

#[test]
fn ups_7_variables_arrive_in_headers_and_addresses_over_every_transport_that_has_them() {
    let kinds = [
        ("http", Kind::Http, "legacy"),
        ("http", Kind::Http, "modern"),
        ("sse", Kind::Sse, "legacy"),
        ("websocket", Kind::Ws, "legacy"),
        ("websocket", Kind::Ws, "modern"),
    ];
    let headers: BTreeMap<String, &str> =
        GIVEN.iter().map(|(name, written, _)| (format!("X-Given-{name}"), *written)).collect();
    for (word, kind, era) in kinds {
        let servers = [(); 3].map(|()| Faulty::start(kind, &["--era", era]));
        let ports = [0, 1].map(|n| servers[n].address.port().to_string());
        let address = |port: &str| servers[0].url.replace(&ports[0], port);
        let entry = |url: &str| with(remote(word, url), &json!({ "headers": headers }));
        let rig = serve(
            home(&[("PORT_HERE", &ports[0])], &[("WHOLE_URL", &servers[2].url)]),
            &json!({
                "part": entry(&address("${PORT_HERE}")),
                "default": entry(&address(&format!("${{NO_PORT:-{}}}", ports[1]))),
                "whole": entry("${WHOLE_URL}"),
            }),
        );
        for (id, server) in ["part", "default", "whole"].into_iter().zip(&servers) {
            let what = format!("{id} over {word}, {era}");
            rig.ready(id);
            assert_eq!(rig.result(&format!("{id}__pid"), &json!({})), server.pid().to_string(), "{what}");
            let found: Value = serde_json::from_str(&rig.headers(id)).expect("headers");
            for (name, _, arrives) in GIVEN {
                assert_eq!(found[format!("x-given-{name}")], arrives, "{what}: {found}");
            }
        }
    }
}

#[test]
fn ups_7_variables_arrive_in_the_address_of_a_tcp_server() {
    let server = Faulty::start(Kind::Tcp, &[]);
    let rig = serve(
        home(
            &[("PORT_HERE", &server.address.port().to_string())],
            &[("WHOLE_ADDRESS", &server.address.to_string())],
        ),
        &json!({
            "part": remote("tcp", "tcp://${NO_HOST:-127.0.0.1}:${PORT_HERE}"),
            "whole": { "type": "tcp", "address": "${WHOLE_ADDRESS}" },
        }),
    );
    for id in ["part", "whole"] {
        rig.ready(id);
        assert_eq!(rig.result(&format!("{id}__pid"), &json!({})), server.pid().to_string(), "{id}");
    }
}

#[test]
fn ups_7_an_unset_variable_anywhere_names_server_and_variable_and_disables_that_server_only() {
    let listener = no_client_comes();
    let address = listener.local_addr().expect("an address");
    let here = format!("http://{address}/mcp");
    let home = home(&[], &[]);
    let marker = home.path().join("never-started").to_str().expect("UTF-8").to_owned();
    let rig = serve(
        home,
        &json!({
            "in-headers": with(remote("http", &here), &json!({ "headers": { "Authorization": "Bearer ${NO_TOKEN}" } })),
            "in-url": remote("http", &format!("{here}?key=${{NO_KEY}}")),
            "in-urls": { "type": "http", "urls": [here, "http://${NO_HOST}/mcp"] },
            "in-args": stdio(&["--spawn-grandchild", &marker, "--instructions", "${NO_WORDS}"]),
            "in-env": with(stdio(&["--spawn-grandchild", &marker]), &json!({ "env": { "TOKEN": "${NO_TOKEN}" } })),
            "in-command": { "command": "${NO_PROGRAM}" },
            "good": stdio(&[]),
        }),
    );
    rig.ready("good");
    let doctor = rig.home.run(["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    for (id, place, variable) in [
        ("in-headers", "mcpServers.in-headers.headers.Authorization", "${NO_TOKEN}"),
        ("in-url", "mcpServers.in-url.url", "${NO_KEY}"),
        ("in-urls", "mcpServers.in-urls.urls[1]", "${NO_HOST}"),
        ("in-args", "mcpServers.in-args.args[3]", "${NO_WORDS}"),
        ("in-env", "mcpServers.in-env.env.TOKEN", "${NO_TOKEN}"),
        ("in-command", "mcpServers.in-command.command", "${NO_PROGRAM}"),
    ] {
        let status = rig.status(id);
        assert_eq!((&status["light"], &status["tools"]), (&json!("off"), &json!(0)), "{status}");
        let why = status["lastError"].as_str().expect("a reason");
        assert!(why.contains(&format!("{place}: {variable} is not set; set it in")), "{why}");
        let shown = doctor.stdout.lines().find(|line| line.contains(&format!("{id} ● off")));
        assert!(shown.is_some_and(|line| line.contains(variable)), "{id}: {doctor:?}");
        let refused =
            rig.error(&format!("{}__echo", id.replace('-', "_")), &json!({ "text": "x" }), "TOOL_NOT_FOUND");
        assert_eq!(refused["extras"]["effect"], "none", "{refused}");
    }
    assert_eq!(rig.result("good__echo", &json!({ "text": "x" })), "x");
    // Nothing is tried without what is missing.
    stayed_alone(&listener);
    assert_eq!(processes_with(&marker), Vec::<u32>::new());
}

#[test]
fn ups_7_a_denied_tool_is_gone_even_if_other_settings_allow_it() {
    let picked = |allowed: &[&str], denied: &[&str]| {
        with(stdio(&[]), &json!({ "toolsAllowed": allowed, "toolsDenied": denied }))
    };
    let rig = Rig::of(&json!({
        "glob": picked(&["echo", "pid", "grow", "grow-prompt", "grow-resource"], &["grow-*"]),
        "both": picked(&["echo", "pid", "e*"], &["e?v", "echo"]),
        "all": picked(&["*"], &["grow*", "ec?o"]),
        "none": picked(&["echo"], &["*"]),
        "denied": with(stdio(&[]), &json!({ "toolsDenied": ["*e*", "*o*"] })),
        "idle": with(stdio(&[]), &json!({ "toolsDenied": ["[!p]*"] })),
    }));
    for id in ["glob", "both", "all", "denied", "idle"] {
        rig.ready(id);
    }
    rig.server.eventually("none is ready", || rig.status("none")["status"] == "ready");
    assert_eq!(rig.tools_of("glob"), ["glob__echo", "glob__grow", "glob__pid"]);
    assert_eq!(rig.tools_of("both"), ["both__pid"]);
    assert_eq!(rig.tools_of("none"), [] as [&str; 0]);
    let all = rig.tools_of("all");
    assert!(all.iter().any(|name| name == "all__env"), "{all:?}");
    assert!(!all.iter().any(|name| name.contains("grow") || name == "all__echo"), "{all:?}");
    let denied = rig.tools_of("denied");
    assert!(denied.iter().any(|name| name == "denied__add"), "{denied:?}");
    let own = |name: &String| name.strip_prefix("denied__").expect("its prefix").to_owned();
    assert!(!denied.iter().any(|name| own(name).contains(['e', 'o'])), "{denied:?}");
    // A pattern that denies nothing is a mistake that a person relies on.
    let doctor = rig.home.run(["doctor"]).stdout;
    let idle = doctor.lines().filter(|line| line.contains("in toolsDenied matches no tool"));
    assert_eq!(idle.filter(|line| line.contains(r#"server idle: "[!p]*""#)).count(), 1, "{doctor}");
    let mut client = Talk::legacy(Door::Http(&rig.server, "/mcp"));
    let listed = client.tools();
    for shown in ["glob__grow_prompt", "both__echo"] {
        assert!(!listed.iter().any(|name| name == shown), "{listed:?}");
        rig.error(shown, &json!({ "text": "x" }), "TOOL_NOT_FOUND");
        let refused = client.ask("tools/call", &json!({ "name": shown, "arguments": { "text": "x" } }));
        assert!(refused["error"].is_object() || refused["result"]["isError"] == true, "{refused}");
        let why = rig.home.run(["doctor", shown]);
        assert_eq!(why.code, 1, "{why:?}");
        assert!(why.stdout.contains("toolsDenied"), "{why:?}");
    }
}

#[test]
fn ups_7_a_server_that_is_switched_off_is_neither_started_nor_called() {
    let listener = no_client_comes();
    let address = listener.local_addr().expect("an address");
    let home = home(&[("SWITCH", "false")], &[("SWITCHED_ON", "true")]);
    let marker = home.path().join("never-started").to_str().expect("UTF-8").to_owned();
    let rig = serve(
        home,
        &json!({
            "local": with(stdio(&["--spawn-grandchild", &marker]), &json!({ "enabled": false })),
            "remote": with(remote("http", &format!("http://{address}/mcp")), &json!({ "enabled": false })),
            "varied": with(remote("tcp", &format!("tcp://{address}")), &json!({ "enabled": "${SWITCH}" })),
            // What is not used may lack anything.
            "lacking": { "command": "${NO_SUCH_PROGRAM}", "enabled": false },
            "good": with(stdio(&[]), &json!({ "enabled": "${SWITCHED_ON}" })),
        }),
    );
    rig.ready("good");
    for id in ["local", "remote", "varied", "lacking"] {
        let status = rig.status(id);
        assert_eq!((&status["light"], &status["status"]), (&json!("off"), &json!("off")), "{status}");
        assert_eq!((&status["lastError"], &status["tools"]), (&Value::Null, &json!(0)), "{status}");
        assert!(rig.tools_of(id).is_empty(), "{id}");
        rig.error(&format!("{id}__echo"), &json!({ "text": "x" }), "TOOL_NOT_FOUND");
    }
    let why = rig.home.run(["doctor", "local__echo"]);
    assert!(why.stdout.contains("enabled: false"), "{why:?}");
    assert_eq!(rig.home.run(["doctor"]).code, 0, "what is switched off is no fault");
    stayed_alone(&listener);
    assert_eq!(processes_with(&marker), Vec::<u32>::new());
}
