//! `gantry runs`: lists runs, shows one as a tree of operations, or cancels it.

use crate::cli::Runs;
use crate::client::{ApiClient, encoded};
use crate::config::MAIN_PROJECT;
use crate::exit::Outcome;
use crate::term::{self, Column};
use gantry_server::model::{Canceled, Operation, Run, RunTree, Turn};
use http::Method;

const COLUMNS: [Column<Run>; 8] = [
    Column::new("RUN", |run| run.id.to_string()),
    Column::unless("PROJECT", &[MAIN_PROJECT], |run| run.project.to_string()),
    Column::new("VIA", |run| run.door.to_string()),
    Column::new("CALLER", |run| run.principal.to_string()),
    Column::new("AGENT", |run| run.agent.as_deref().unwrap_or_default().to_owned()),
    Column::new("CALLS", |run| run.totals.tools_run.to_string()),
    Column::new("FAILED", |run| run.totals.failed.to_string()),
    Column::new("LAST USED (UTC)", |run| term::timestamp(run.last_at)),
];

pub(super) async fn run(client: &ApiClient, args: &Runs) -> anyhow::Result<Outcome> {
    match &args.id {
        Some(id) if args.cancel => cancel(client, id).await,
        Some(id) => {
            let path = format!("/api/v1/runs/{}", encoded(id));
            term::print_value(&client.get(&path, &[]).await?, client.json, describe);
            Ok(Outcome::Success)
        }
        None => {
            let limit = args.limit.to_string();
            let query = [("project", args.project.name()), ("limit", Some(&*limit))];
            let runs = client.list("/api/v1/runs", &query).await?;
            term::print_list(&runs, &COLUMNS, "There are no runs yet.", client.json);
            Ok(Outcome::Success)
        }
    }
}

fn describe(RunTree { run, turns, .. }: &RunTree) -> Vec<String> {
    let mut lines = vec![format!("{} by {} ({})", run.id, run.principal, run.door)];
    add_turns(&mut lines, turns, 0);
    lines
}

fn add_turns(lines: &mut Vec<String>, turns: &[Turn], depth: usize) {
    for turn in turns {
        lines.push(format!("{}└ turn {}", "  ".repeat(depth), turn.index));
        turn.ops.iter().for_each(|operation| add_operation(lines, operation, depth + 1));
    }
}

fn add_operation(lines: &mut Vec<String>, operation: &Operation, depth: usize) {
    let error = operation.error.as_ref().map(|error| format!(" {}", error.code)).unwrap_or_default();
    let time = operation.accounting.as_ref().map(|it| format!(" {} ms", it.latency_ms)).unwrap_or_default();
    let Operation { status, name, request, .. } = operation;
    lines.push(format!("{}└ {status} {name}{error}{time}  {}", "  ".repeat(depth), request.payload));
    operation.ops.iter().for_each(|below| add_operation(lines, below, depth + 1));
    for child in &operation.child_sessions {
        let agent = child.run.agent.as_deref().unwrap_or_default();
        lines.push(format!("{}└ agent {agent} ({})", "  ".repeat(depth + 1), child.run.id));
        add_turns(lines, &child.turns, depth + 2);
    }
}

async fn cancel(client: &ApiClient, id: &str) -> anyhow::Result<Outcome> {
    let path = format!("/api/v1/runs/{}/cancel", encoded(id));
    let answer: Canceled = client.act(Method::POST, &path).await?;
    if client.json {
        term::print_json(&answer);
    } else if answer.canceled {
        term::eprint(&format!("Canceled {id} and its calls."));
    } else {
        term::eprint(&format!("{id} is not running."));
    }
    Ok(Outcome::of(answer.canceled))
}
