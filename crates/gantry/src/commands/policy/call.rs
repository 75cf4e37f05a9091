//! `gantry policy test TOOL`: predicts the decision about one call.

use crate::cli::TestPolicy;
use crate::client::{ApiClient, CommandContext, Scope};
use crate::commands::arguments;
use crate::commands::unavailable_servers::warn_unavailable;
use crate::config::MAIN_PROJECT;
use crate::exit::Outcome;
use crate::term;
use gantry_core::ErrorCode;
use gantry_core::approval::Approvers;
use gantry_server::model::{PolicyOutcome, PolicyTest, PolicyTestRequest};

pub(super) async fn run(context: CommandContext, tool: &str, args: &TestPolicy) -> anyhow::Result<Outcome> {
    let (json, project) = (context.json, args.project.as_deref().unwrap_or(MAIN_PROJECT));
    let request = PolicyTestRequest {
        tool: tool.to_owned(),
        arguments: Some(arguments::read(&args.arguments)?),
        agent: args.agent.clone(),
        project: Some(project.to_owned()),
        principal: Some(args.principal.clone()),
        role: Some(args.role),
    };
    let work = async |client: &ApiClient| {
        let result: PolicyTest = client.post("/api/v1/policy/test", &request).await?;
        if json {
            term::print_json(&result);
        } else {
            describe(tool, &result).iter().for_each(|line| term::print(&term::sanitize(line)));
        }
        if result.error.as_ref().is_some_and(|error| error.code == ErrorCode::ToolNotFound) {
            warn_unavailable(client, project).await?;
        }
        Ok(if result.outcome == PolicyOutcome::Allowed { Outcome::Success } else { Outcome::Failure })
    };
    context.with_client(Scope::Project(project), work).await
}

/// The decision, in lines.
fn describe(typed: &str, result: &PolicyTest) -> Vec<String> {
    let tool = result.tool.as_deref().unwrap_or(typed);
    let error = || {
        let error = result.error.as_ref();
        error.map(|error| format!("  - {} [{}]", error.message, error.code)).unwrap_or_default()
    };
    let mut lines = match result.outcome {
        PolicyOutcome::Allowed => vec![format!("{tool} would run")],
        PolicyOutcome::Held => vec![
            format!("{tool} would need an approval"),
            format!("  - by {}", result.rules.join(", ")),
            format!("  - because {}", result.reason.as_deref().unwrap_or_default()),
            format!("  - {}", approvers(result)),
        ],
        PolicyOutcome::Denied => vec![format!("{tool} would be denied"), error()],
        PolicyOutcome::Refused => vec![format!("{tool} would be refused"), error()],
    };
    if result.delay_ms > 0 {
        lines.push(format!("  - it would wait {} ms before it runs", result.delay_ms));
    }
    if result.estimated_cost > 0 {
        lines.push(format!("  - its estimated cost is {}", result.estimated_cost));
    }
    lines
}

fn approvers(result: &PolicyTest) -> String {
    match Approvers::by(result.approvers.iter().map(|names| names.iter().map(|name| &**name))) {
        approvers @ (Approvers::Any | Approvers::OneOf(_)) => format!("{approvers} may decide"),
        none @ Approvers::None(_) => format!("{none}; change the rules"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_call_names_rules_reason_and_approvers() {
        let list = |names: &[&str]| names.iter().map(|name| (*name).into()).collect();
        let held = |approvers| PolicyTest {
            outcome: PolicyOutcome::Held,
            tool: Some("db__drop".into()),
            rules: list(&["policy a", "toolRules"]),
            reason: Some("it is Friday; it always asks".into()),
            approvers,
            delay_ms: 500,
            ..PolicyTest::default()
        };
        assert_eq!(
            describe("drop", &held(vec![list(&["ann", "ben"]), list(&["ann", "ben"])])),
            [
                "db__drop would need an approval",
                "  - by policy a, toolRules",
                "  - because it is Friday; it always asks",
                "  - ann or ben may decide",
                "  - it would wait 500 ms before it runs",
            ]
        );
        for (lists, words) in [
            (vec![], "any approver may decide"),
            (vec![list(&["ann"]), list(&["ben", "ann"])], "ann may decide"),
            (
                vec![list(&["ann"]), list(&["ben"])],
                "no approver is in every list (ann; ben), so it cannot be approved; change the rules",
            ),
        ] {
            assert_eq!(approvers(&held(lists)), words);
        }
    }
}
