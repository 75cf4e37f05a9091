//! Edited arguments: the client learns what ran before it reads the result.

use super::{Gate, clients, only};
use crate::approvals::api::counted;
use gantry_testkit::TestDir;
use serde_json::json;

#[test]
fn apr_3_a_result_of_edited_arguments_begins_with_what_ran_and_its_structure_is_the_tools_own() {
    let tasks = [["--era", "auto"].as_slice(), &["--tasks"]].concat();
    let plain = clients().map(|(sdk, era)| (sdk, vec!["--era", era]));
    let as_task = [crate::mcp_sdks::PYTHON, crate::mcp_sdks::TYPESCRIPT_2].map(|sdk| (sdk, tasks.clone()));
    for (sdk, options) in plain.chain(as_task) {
        let home = TestDir::new().config("approvals: { requiresApprovalTools: [write_file] }\n");
        let gate = Gate::at(home);
        let arguments = json!({ "path": "a.txt", "content": "secret plans" });
        let call = json!({ "call": { "name": "write_file", "arguments": arguments } });
        // A client that has seen the list holds the result to the schema.
        let script = json!([{ "list": {} }, call]);
        let playing = sdk.begin(&gate.home, gate.door(), &options, &script);
        let approval = gate.pending();
        let edited = json!({ "path": "b.txt", "content": "plans" });
        gate.decide(&approval, &json!({ "approved": true, "modifiedArgs": edited }));
        let seen = playing.end();
        let step = &seen["steps"][1];
        assert_eq!(step["isError"], false, "{options:?}: {step}");
        let texts: Vec<&str> = step["content"]
            .as_array()
            .expect("content")
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect();
        let [note, result] = texts[..] else { panic!("not two texts: {step}") };
        assert!(note.starts_with("Note: person approved this call with other arguments."), "{note}");
        assert!(note.contains(r#"What ran: {"content":"plans","path":"b.txt"}"#), "{note}");
        let structure = json!({ "path": "b.txt", "size": 5 });
        assert_eq!(step["structuredContent"], structure, "{options:?}: {step}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(result).expect("JSON"), structure, "{result}");
        assert_eq!(gate.home.read("b.txt"), "plans");
        assert!(!gate.home.path().join("a.txt").exists());
    }
}

#[test]
fn apr_3_a_result_without_a_structure_says_so_likewise() {
    for (sdk, era) in clients() {
        let gate = Gate::new("");
        let playing = sdk.begin(&gate.home, gate.door(), &["--era", era], &json!([super::count("a")]));
        let approval = gate.pending();
        let edited = super::api::count("b");
        gate.decide(&approval, &json!({ "approved": true, "modifiedArgs": edited }));
        let seen = playing.end();
        let content = &only(&seen)["content"];
        let note = content[0]["text"].as_str().expect("a text");
        assert!(note.contains(r#"What ran: {"file":"counted","text":"b"}"#), "{era}: {note}");
        assert_eq!(content[1]["text"], r#"{"counted":"b"}"#, "{era}: {content}");
        assert_eq!(counted(&gate.home), ["b"], "{era}");
    }
}
