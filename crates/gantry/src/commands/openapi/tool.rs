//! All about one tool of a document.

use super::Subject;
use super::look::{Look, Shown};
use super::{report, sample, show};
use crate::exit::UsageError;
use crate::term;
use gantry_rest::openapi::{Operation, Prepared, SecurityRequirement};
use serde_json::{Map, Value, json};

/// Characters of a body that are shown.
const BODY_CHARS: usize = 2000;
/// Names that are offered where one is not found.
const NEAR: usize = 5;

/// Shows a tool.
pub(super) fn show(subject: &Subject, look: &Look, name: &str, as_json: bool) -> anyhow::Result<()> {
    let (operation, shown) = find(look, name)?;
    let arguments = sample::arguments(&operation.input_schema.value());
    let request = operation.prepare(&arguments);
    if as_json {
        let mut report = report::tool(operation, shown);
        if let Some(report) = report.as_object_mut() {
            report.insert("title".into(), json!(operation.title));
            report.insert("security".into(), json!(needs(operation)));
            let sample = match &request {
                Ok(prepared) => sent(operation, prepared, &arguments),
                Err(reason) => json!({ "arguments": arguments, "error": reason }),
            };
            report.insert("sample".into(), sample);
        }
        term::print_json(&report);
        return Ok(());
    }
    head(subject, look, operation, shown);
    term::print("\nInput:");
    term::print(&term::pretty_json(operation.input_schema.as_str()));
    match &operation.output_schema {
        Some(schema) => {
            term::print("\nOutput:");
            term::print(&term::pretty_json(schema.as_str()));
        }
        None => term::print("\nOutput: the document does not say."),
    }
    let arguments = Value::Object(arguments).to_string();
    term::print(&format!("\nA call with {} would send:", term::sanitize(&arguments)));
    match request {
        Ok(prepared) => lines(operation, &prepared).iter().for_each(|line| term::print(&format!("  {line}"))),
        Err(reason) => term::print(&format!("  nothing: {}", term::sanitize(&reason))),
    }
    Ok(())
}

fn head(subject: &Subject, look: &Look, operation: &Operation, shown: &Shown) {
    let mut say = Vec::new();
    say.push(format!("{}: {} {}", shown.name, operation.method, operation.path));
    let mut line = |what: &str, found: String| {
        if !found.is_empty() {
            say.push(format!("  {what:12} {found}"));
        }
    };
    line("title", operation.title.clone().unwrap_or_default());
    line("operationId", operation.id.clone().unwrap_or_default());
    line("tags", operation.tags.join(", "));
    line("effect", shown.effect.as_str().to_owned());
    line("server", operation.server.to_string());
    line("tokens", format!("{}; {} without its output schema", shown.tokens, shown.without_output));
    let credentials = &subject.options.auth;
    for (n, need) in needs(operation).iter().enumerate() {
        let schemes: Vec<String> = need
            .iter()
            .map(|name| {
                let what = look
                    .import
                    .schemes
                    .get(name)
                    .map_or_else(|| "not in the document".to_owned(), show::words);
                let has = match (subject.is_entry, credentials.contains_key(name)) {
                    (false, _) => "",
                    (true, true) => ", configured",
                    (true, false) => ", no credentials",
                };
                format!("{name} ({what}{has})")
            })
            .collect();
        let words = if schemes.is_empty() { "nothing".to_owned() } else { schemes.join(" and ") };
        line(if n == 0 { "auth" } else { "or" }, words);
    }
    line("trouble", shown.trouble.clone().unwrap_or_default());
    say.iter().for_each(|line| term::print(&term::sanitize(line)));
    term::print("");
    term::print_untrusted(&operation.description);
}

/// The schemes that are needed together, for each way to be let in.
fn needs(operation: &Operation) -> Vec<Vec<String>> {
    let names = |needed: &SecurityRequirement| needed.0.iter().map(|(name, _)| name.clone()).collect();
    operation.security.iter().map(names).collect()
}

/// The request in lines, as HTTP would have it.
fn lines(operation: &Operation, prepared: &Prepared) -> Vec<String> {
    let mut lines = vec![format!("{} {}", operation.method, address(operation, prepared))];
    lines.extend(prepared.headers.iter().map(|(name, value)| format!("{name}: {value}")));
    if let Some((media, bytes)) = &prepared.body {
        lines.push(format!("Content-Type: {media}"));
        lines.push(String::new());
        let text: String = String::from_utf8_lossy(bytes).chars().take(BODY_CHARS).collect();
        lines.extend(text.lines().map(str::to_owned));
    }
    lines.iter().map(|line| term::sanitize(line)).collect()
}

fn sent(operation: &Operation, prepared: &Prepared, arguments: &Map<String, Value>) -> Value {
    let headers: Vec<Value> =
        prepared.headers.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let body = prepared.body.as_ref().map(|(media, bytes)| {
        let text: String = String::from_utf8_lossy(bytes).chars().take(BODY_CHARS).collect();
        json!({ "mediaType": media, "text": text })
    });
    json!({
        "arguments": arguments,
        "method": operation.method.to_string(),
        "url": address(operation, prepared),
        "headers": headers,
        "body": body,
    })
}

fn address(operation: &Operation, prepared: &Prepared) -> String {
    let server = operation.server.as_str().trim_end_matches('/');
    let query = if prepared.query.is_empty() { String::new() } else { format!("?{}", prepared.query) };
    format!("{server}{}{query}", prepared.path)
}

/// The tool of this name, or the operation of it.
fn find<'a>(look: &'a Look, name: &str) -> Result<(&'a Operation, &'a Shown), UsageError> {
    let place = |operation: &Operation| format!("{} {}", operation.method, operation.path);
    let by = |is: &dyn Fn(&Operation, &Shown) -> bool| {
        look.tools().find(|(operation, shown)| is(operation, shown))
    };
    let found = by(&|_, shown| shown.name == name)
        .or_else(|| by(&|_, shown| shown.own_name == name))
        .or_else(|| by(&|operation, _| operation.name == name))
        .or_else(|| by(&|operation, _| operation.id.as_deref() == Some(name)))
        .or_else(|| by(&|operation, _| place(operation).eq_ignore_ascii_case(name)));
    found.ok_or_else(|| {
        let skipped = look.import.skipped.iter().find(|it| format!("{} {}", it.method, it.path) == name);
        if let Some(skipped) = skipped {
            return UsageError(format!("{name} is skipped: {}", skipped.reason));
        }
        let mut near: Vec<(f64, &str)> = look
            .tools()
            .map(|(operation, shown)| (strsim::jaro_winkler(&operation.name, name), shown.name.as_str()))
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0));
        let near: Vec<&str> = near.into_iter().take(NEAR).map(|(_, name)| name).collect();
        let known = if near.is_empty() {
            "there are none".to_owned()
        } else {
            format!("near ones are {}", near.join(", "))
        };
        UsageError(format!("there is no tool {name:?}; {known}"))
    })
}
