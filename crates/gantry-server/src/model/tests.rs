//! What is on the wire: every text here is read and written again without a change, and fits the schema of the document.

use super::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn check<T: DeserializeOwned + Serialize + JsonSchema>(text: &str) {
    let parsed: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(serde_json::to_string(&parsed).unwrap(), text);
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let instance: Value = serde_json::from_str(text).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&instance).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}: {text}");
}

const CALL: &str = "call_00000000000000000000000000000001";
const RUN: &str = "run_00000000000000000000000000000002";
const APPROVAL: &str = "appr_00000000000000000000000000000003";

fn digest() -> String {
    "0a".repeat(32)
}

#[test]
fn a_reply_is_whole_or_says_only_how_the_call_stands() {
    for text in [
        format!(
            r#"{{"ok":true,"result":{{"n":1.50}},"latencyMs":3,"kind":"builtin","namespace":"workspace","extras":{{"tool":"read_file"}},"id":"{CALL}","state":"COMPLETED_SUCCESS"}}"#
        ),
        format!(
            r#"{{"ok":false,"error":{{"code":"TOOL_NOT_FOUND","message":"no"}},"latencyMs":0,"kind":null,"namespace":null,"extras":{{"effect":"none","cached":true}},"id":"{CALL}","state":"REFUSED"}}"#
        )
        .replace(r#""effect":"none","cached":true"#, r#""cached":true,"effect":"none""#),
        format!(r#"{{"ok":false,"id":"{CALL}","state":"EXECUTING"}}"#),
        format!(
            r#"{{"ok":false,"error":{{"code":"APPROVAL_REQUIRED","message":"m"}},"id":"{CALL}","state":"PENDING_APPROVAL","approvalId":"{APPROVAL}"}}"#
        ),
    ] {
        check::<CallReply>(&text);
    }
}

fn record() -> String {
    format!(
        r#"{{"id":"{CALL}","state":"CALL_STATE","tool":"read_file","provider":"workspace","original":"read_file","kind":"builtin","namespace":"workspace","effect":"read","fingerprint":null,"arguments":"{{}}","argumentsDigest":"{}","project":"default","principal":"local","agent":null,"door":"http","session":"{RUN}","parent":null,"turn":0,"decision":null,"startedAt":"2026-11-19T15:00:00Z""#,
        digest()
    )
}

#[test]
fn a_record_has_what_it_costs_once_it_has_ended() {
    let open = record().replace("CALL_STATE", "EXECUTING") + "}";
    check::<List<CallRecord>>(&format!(r#"{{"items":[{open}],"next":"{CALL}"}}"#));
    let ended = record().replace("CALL_STATE", "COMPLETED_FAILURE")
        + r#","finishedAt":"2026-11-19T15:00:00.000001Z","accounting":{"latencyMs":1,"charactersIn":2,"charactersOut":3,"status":"failed","namespace":"workspace","actor":"local","costMicros":0},"effectState":"possible","cached":false,"error":{"code":"TIMEOUT","message":null},"refusedDecisions":[{"approvalId":"APPR","by":"bot","via":"http","approved":null,"why":"no","at":"2026-11-19T15:00:00Z"}]}"#;
    check::<CallRecord>(&ended.replace("APPR", APPROVAL));
}

#[test]
fn a_run_is_a_tree() {
    let run = format!(
        r#""id":"{RUN}","project":"default","principal":"mcp","agent":"a","door":"mcp","parent":null,"startedAt":"2026-11-19T15:00:00Z","lastAt":"2026-11-19T15:00:00Z","endedAt":null,"totals":{{"toolsRun":1,"failed":0,"refused":0,"unknown":0,"latencyMs":2,"charactersIn":3,"charactersOut":4,"costMicros":5}}"#
    );
    check::<Run>(&format!("{{{run}}}"));
    let op = format!(
        r#""opId":"{CALL}","kind":"session","name":"t","startedAt":"2026-11-19T15:00:00Z","status":"ok","state":"COMPLETED_SUCCESS","request":{{"payload":"{{}}"}}"#
    );
    let below = format!(r#"{{{run},"status":"ended","turns":[],"truncated":false}}"#);
    check::<RunTree>(&format!(
        r#"{{{run},"status":"idle","turns":[{{"index":0,"startedAt":"2026-11-19T15:00:00Z","endedAt":null,"ops":[{{{op},"response":{{"size":1,"cached":true}},"ops":[{{{op}}}],"childSessions":[{below}]}}]}}],"truncated":true}}"#
    ));
}

#[test]
fn arguments_of_an_approval_keep_every_digit() {
    let digest = digest();
    let approval = format!(
        r#"{{"id":"{APPROVAL}","callId":"{CALL}","state":"APPROVED_READY","tool":"t","arguments":{{"n": 1.50, "big": 12345678901234567890123}},"argumentsBytes":41,"reason":"r","stepId":"{CALL}","agentPath":["a"],"caller":{{"principal":"local","agent":null,"project":"default","door":"mcp","session":"{RUN}"}},"rule":"x","rules":["x"],"remember":{{"x":"session"}},"scopes":["once"],"approvers":[["ann"]],"effect":"write","provider":"p","fingerprint":"{digest}","createdAt":"2026-11-19T15:00:00Z","expiresAt":null,"scheduledFor":null,"attempts":0,"estimatedCost":0,"delayMs":0,"sessionGrant":false,"decidedBy":"ann","decidedVia":"cli","decidedAt":"2026-11-19T15:00:00Z","decision":{{"approved":true,"reason":null,"scope":"once","modifiedArgs":{{"n": 1e2}},"modifiedArgsBytes":10}}}}"#
    );
    check::<Approval>(&approval);
    check::<List<Approval>>(&format!(r#"{{"items":[{approval}],"next":null}}"#));
    check::<Conflict>(&format!(
        r#"{{"ok":false,"error":{{"code":"ALREADY_DECIDED","message":"m","details":{{"approval":{approval}}}}}}}"#
    ));
}

#[test]
fn a_key_shows_its_secret_once() {
    let key = r#""id":"key_00000000000000000000000000000004","name":"ann","role":"approver","projects":null,"agent":null,"tools":["db__*"],"state":"active","createdAt":"2026-11-19T15:00:00Z","expiresAt":null,"revokedAt":null"#;
    check::<List<Key>>(&format!(r#"{{"items":[{{{key}}}],"next":null}}"#));
    let made = format!(r#"{{{key},"key":"gk_x"}}"#);
    check::<MadeKey>(&made);
    let made: MadeKey = serde_json::from_str(&made).unwrap();
    assert!(!format!("{made:?}").contains("gk_x"), "nor in logs");
    check::<Revoked>(r#"{"id":"key_x","name":"ann","revoked":true,"held":false}"#);
    check::<Revoked>(r#"{"id":"grant_x","revoked":true,"held":true}"#);
}

#[test]
fn the_secrets_of_a_server_to_add_are_not_in_logs() {
    let new: NewServer =
        serde_json::from_str(r#"{"id":"x","command":"c","env":{"TOKEN":"hunter2"}}"#).unwrap();
    assert!(!format!("{new:?}").contains("hunter2"), "{new:?}");
}

#[test]
fn a_grant_ends_with_a_session_or_by_a_person() {
    check::<Grant>(&format!(
        r#"{{"id":"grant_00000000000000000000000000000005","project":"default","principal":"mcp","agentPath":[],"provider":"p","tool":"t","original":"t","fingerprint":"{}","rules":["x"],"scope":"session","session":"{RUN}","grantedBy":"ann","approvalId":"{APPROVAL}","createdAt":"2026-11-19T15:00:00Z","expiresAt":null,"revokedAt":null,"revokedBy":null}}"#,
        digest()
    ));
}

#[test]
fn servers_agents_and_projects_show_what_the_reader_may_see() {
    let server = r#""id":"files","project":"default","type":"stdio","light":"yellow","status":"starting","since":"2026-11-19T15:00:00Z","era":null,"latencyMs":1.5,"tools":0,"quarantined":0,"resources":0,"prompts":0,"lastError":null,"retryAt":null,"flags":[]"#;
    check::<List<Server>>(&format!(r#"{{"items":[{{{server}}}],"next":null}}"#));
    check::<ChangedServer>(&format!(r#"{{{server},"warnings":["w"]}}"#));
    check::<ChangedServer>(r#"{"id":"files","project":"default"}"#);
    let agent = r#""name":"a","project":"default","description":null,"model":"main","active":true,"tools":1,"aliases":{"b":"c"}"#;
    check::<Agent>(&format!("{{{agent}}}"));
    check::<AgentDetails>(&format!(r#"{{{agent},"toolNames":["c"]}}"#));
    check::<AgentDetails>(&format!(
        r#"{{{agent},"toolNames":null,"uses":["c"],"allowed":null,"autoApprove":[],"prompt":null}}"#
    ));
    check::<Project>(r#"{"name":"default","active":null,"agents":0,"servers":0,"tools":null}"#);
}

#[test]
fn a_request_says_what_differs_from_the_defaults() {
    let call: CallRequest = serde_json::from_str(r#"{"tool":"t","arguments":{"n":1.50}}"#).unwrap();
    assert_eq!(call.arguments.unwrap().get(), r#"{"n":1.50}"#);
    let decision: Decision = serde_json::from_value(json!({ "approved": true })).unwrap();
    assert_eq!((decision.scope, decision.modified_args.is_none()), (Scope::Once, true));
}
