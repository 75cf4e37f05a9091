//! What a tool box makes of a typed tool.

mod keep_note;

use super::*;
use crate::tool::{CHANGES, READS};
use gantry_core::policy::Verdict;
use gantry_core::tool::{Annotations, ApprovalRule};
use gantry_core::{CallFailure, ErrorCode, Refusal};
use gantry_provider::testing::{answer, judged, presents_itself, toolset, yes};
use keep_note::KeepNote;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Debug)]
struct Sample<const ASKS: bool>;

/// Says what it got,
/// on one line.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Args {
    /// Lines to
    /// count.
    #[schemars(range(min = 1, max = 9))]
    line_count: u32,
    /// Seconds.
    #[serde(default = "half")]
    seconds: f64,
    /// A word, if any.
    word: Option<String>,
    /// How, if at all.
    how: Option<How>,
    /// Pairs, if any.
    pair: Option<Pair>,
}

#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum How {
    Fast,
    Slow,
}

/// Two.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Pair {
    /// One of them.
    left: u8,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Output {
    /// The lines.
    lines: u32,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

fn half() -> f64 {
    0.5
}

impl<const ASKS: bool> Tool for Sample<ASKS> {
    const NAME: &'static str = "sample";
    const TITLE: &'static str = "Sample";
    const HINTS: Annotations = if ASKS { CHANGES } else { READS };
    const APPROVAL: ApprovalRule = if ASKS { ApprovalRule::Depends } else { ApprovalRule::Never };
    const TIME_LIMIT: Option<Duration> = Some(Duration::from_secs(7));
    type Args = Args;
    type Output = Output;

    fn note(&self) -> Option<String> {
        Some("Noted.".to_owned())
    }

    async fn run(&self, call: PermittedCall<Args>) -> Result<Output> {
        let Args { line_count, seconds, word, how, pair } = call.args;
        let warning = word.map(|word| format!("{word} {seconds} {how:?} {pair:?}"));
        Ok(Output { lines: line_count, warning })
    }
}

#[test]
fn a_definition_is_what_the_types_and_their_comments_say() {
    let tools = ToolBox::new().with(Sample::<false>);
    let spec = &tools.tools()[0];
    assert_eq!(spec.description, "Says what it got, on one line. Noted.");
    assert_eq!(
        spec.input_schema.value(),
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "lineCount": { "type": "integer", "minimum": 1, "maximum": 9, "description": "Lines to count." },
                "seconds": { "type": "number", "default": 0.5, "description": "Seconds." },
                "word": { "type": "string", "description": "A word, if any." },
                "how": { "type": "string", "enum": ["fast", "slow"], "description": "How, if at all." },
                "pair": {
                    "type": "object",
                    "properties": {
                        "left": { "type": "integer", "minimum": 0, "maximum": 255, "description": "One of them." },
                    },
                    "required": ["left"],
                    "additionalProperties": false,
                    "description": "Pairs, if any.",
                },
            },
            "required": ["lineCount"],
            "additionalProperties": false,
        })
    );
    assert_eq!(
        spec.output_schema.as_ref().unwrap().value(),
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "lines": { "type": "integer", "minimum": 0, "description": "The lines." },
                "warning": { "type": "string", "description": "What went wrong." },
            },
            "required": ["lines"],
            "additionalProperties": false,
        })
    );
    assert_eq!(tools.time_limits, [("sample", Duration::from_secs(7))]);
}

#[tokio::test]
async fn a_tool_that_may_ask_and_has_no_preflight_lets_nothing_through() {
    let tools = ToolBox::new().with(Sample::<true>);
    let fault = tools.preflight("sample", r#"{"lineCount":1}"#).await.unwrap_err();
    assert_eq!(fault.error.code, ErrorCode::InternalError);
    let fault = tools.preflight("other", "{}").await.unwrap_err();
    assert_eq!(fault.error.code, ErrorCode::ToolNotFound);
}

#[tokio::test]
async fn a_permit_runs_the_tool_that_it_is_for() {
    let tools = ToolBox::new().with(Sample::<false>);
    let toolset = toolset(tools.tools());
    let arguments = json!({ "lineCount": 5.0 });
    let verdict = judged(&toolset, ("sample", &arguments), |_| panic!("it never asks")).unwrap();
    let Verdict::Allow(permit) = verdict else { panic!("{verdict:?}") };
    let cx = crate::testing::context();
    assert_eq!(tools.execute(&cx, &permit).await.unwrap(), r#"{"lines":5}"#);
}

#[test]
fn a_whole_number_is_one_however_it_is_written() {
    #[derive(Debug, Deserialize)]
    struct Call {
        lines: u32,
        seconds: f64,
    }
    let call: Call = parse_arguments(r#"{"lines":5.0,"seconds":0.5}"#).unwrap();
    assert_eq!((call.lines, call.seconds), (5, 0.5));
    for wrong in [r#"{"lines":5.5,"seconds":1}"#, r#"{"lines":-5.0,"seconds":1}"#, r#"{"lines":1e300}"#] {
        let CallFailure { error, .. } = parse_arguments::<Call>(wrong).unwrap_err();
        assert!(error.message.starts_with("the arguments do not fit the tool: "), "{error:?}");
    }
}

/// The page that says how to add a tool.
const PAGE: &str = include_str!("../../../../docs/add-a-tool.md");

#[test]
fn the_page_on_adding_a_tool_shows_the_tool_that_is_tested_here() {
    let block = PAGE.split("```rust\n").nth(1).and_then(|rest| rest.split("```\n").next()).unwrap();
    assert_eq!(block, include_str!("tests/keep_note.rs"));
    let line = PAGE.split("```text\n").nth(1).and_then(|rest| rest.lines().next()).unwrap();
    assert_eq!(line, "ToolBox::new().with(KeepNote::default())");
}

#[tokio::test]
async fn the_tool_of_the_page_works() {
    let tools = ToolBox::new().with(KeepNote::default());
    presents_itself(&tools.tools()[0]);
    let toolset = toolset(tools.tools());
    let judge = async |text: &str| {
        let arguments = json!({ "text": text });
        let looked = tools.preflight("keep_note", &arguments.to_string()).await;
        let looked = looked.map_err(|fault| Refusal::from(fault.error));
        judged(&toolset, ("keep_note", &arguments), |_| looked).unwrap()
    };
    let run = async |permit: &Permit| answer(permit, tools.execute(&crate::testing::context(), permit).await);

    let Verdict::Allow(first) = judge("one").await else { panic!("there is nothing to replace") };
    let Verdict::Allow(late) = judge("late").await else { panic!("there is nothing to replace") };
    assert_eq!(run(&first).await.done(), json!({}));
    assert_eq!(run(&late).await.code(), "APPROVAL_REQUIRED");
    let Verdict::Ask(question) = judge("two").await else { panic!("a note would be replaced") };
    assert!(question.reason().contains("the note “one” would be replaced"), "{}", question.reason());
    assert_eq!(run(&yes(question)).await.done(), json!({ "replaced": "one" }));
}
