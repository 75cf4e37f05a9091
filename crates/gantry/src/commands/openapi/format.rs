//! A report on a document for the terminal, and the configuration entry that would use the document.

use super::SpecSource;
use super::import_report::{ImportReport, SchemeReport, ToolPreview};
use crate::commands::yaml_key;
use crate::term::{self, Column, plural, thousands};
use gantry_rest::openapi::{KeyPlace, Scheme, SkippedOperation};
use std::collections::BTreeMap;

/// Operations that are listed below one reason.
const LISTED: usize = 10;

/// Prints everything but the schemas. The entry for the configuration goes to standard error.
pub(super) fn print_report(source: &SpecSource, report: &ImportReport<'_>) {
    summary(source, report).iter().for_each(|line| term::print(&term::sanitize(line)));
    term::print("");
    if report.tools.is_empty() {
        term::print("No operation becomes a tool.");
    } else {
        let columns = [
            Column::new("NAME", |tool: &ToolPreview<'_>| tool.name.to_owned()),
            Column::new("OPERATION", |tool| format!("{} {}", tool.method, tool.path)),
            Column::new("EFFECT", |tool| tool.effect.to_string()),
            Column::new("TOKENS", |tool| thousands(tool.tokens)),
        ];
        term::print_table(&report.tools, &columns, |_| None);
    }
    if !report.skipped.is_empty() {
        term::print("");
        print_skipped(report, LISTED);
    }
    if !report.warnings.is_empty() {
        term::print("\nWarnings:");
        report.warnings.iter().for_each(|warning| term::print(&format!("  - {}", term::sanitize(warning))));
    }
    if !source.is_entry && !report.tools.is_empty() {
        term::eprint(&format!("\nFor gantry.yaml:\n\n{}", term::sanitize_lines(&config_snippet(source))));
    }
}

/// Prints the skipped operations by reason, the most frequent reason first, with so many operations below each.
pub(super) fn print_skipped(report: &ImportReport<'_>, listed: usize) {
    if report.skipped.is_empty() {
        return term::eprint("No operation is skipped.");
    }
    term::print(&format!("Skipped {}:", plural(report.skipped.len(), "operation")));
    for (reason, operations) in by_reason(report.skipped) {
        term::print(&format!("  {} ({})", term::sanitize(reason), thousands(operations.len())));
        for operation in operations.iter().take(listed) {
            term::print(&term::sanitize(&format!("    {} {}", operation.method, operation.path)));
        }
        let more = operations.len().saturating_sub(listed);
        if more > 0 {
            term::print(&format!("    and {} more; --skipped lists all", thousands(more)));
        }
    }
}

fn by_reason(skipped: &[SkippedOperation]) -> Vec<(&str, Vec<&SkippedOperation>)> {
    let mut groups: BTreeMap<&str, Vec<&SkippedOperation>> = BTreeMap::new();
    for operation in skipped {
        groups.entry(&operation.reason).or_default().push(operation);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, operations)| std::cmp::Reverse(operations.len()));
    groups
}

fn summary(source: &SpecSource, report: &ImportReport<'_>) -> Vec<String> {
    let title = if report.title.is_empty() { "An API without a title" } else { report.title };
    let bytes = report.stats.bytes.map(|bytes| format!(", {} bytes", thousands(bytes)));
    let mut fields = vec![("document", format!("{}{}", source.shown(), bytes.unwrap_or_default()))];
    if report.servers.is_empty() {
        fields.push(("server", "none".to_owned()));
    }
    fields.extend(report.servers.iter().map(|server| ("server", (*server).to_owned())));
    fields.extend(report.schemes.iter().map(|(name, SchemeReport { scheme, configured })| {
        let credentials = match (scheme, configured) {
            (Scheme::Unsupported { .. }, _) => "",
            _ if !source.is_entry => "",
            (_, true) => ": configured",
            (_, false) => ": no credentials",
        };
        ("auth", format!("{name}, {}{credentials}", describe(scheme)))
    }));
    let counts = &report.counts;
    let mut operations = format!("{}: {}", thousands(counts.operations), plural(counts.tools, "tool"));
    for (count, what) in [(counts.filtered, "left out by the options"), (counts.skipped, "skipped")] {
        if count > 0 {
            operations.push_str(&format!(", {} {what}", thousands(count)));
        }
    }
    fields.push(("operations", operations));
    fields.push(("tokens", format!("{} for the list of tools", thousands(report.tokens.listing))));
    fields.push(("took", format!("{} ms", report.stats.elapsed_ms)));
    let title = format!("{title} {} (OpenAPI {})", report.version, report.openapi);
    std::iter::once(title).chain(term::fields(11, fields)).collect()
}

fn describe(scheme: &Scheme) -> String {
    match scheme {
        Scheme::ApiKey { place, name } => {
            let place = match place {
                KeyPlace::Query => "query",
                KeyPlace::Header => "header",
                KeyPlace::Cookie => "cookie",
            };
            format!("an API key in the {place} {name:?}")
        }
        Scheme::Basic => "a user and a password".to_owned(),
        Scheme::Bearer => "a token".to_owned(),
        Scheme::ClientCredentials { token_url, .. } => {
            format!("OAuth 2 client credentials, tokens from {token_url}")
        }
        Scheme::Unsupported { reason } => format!("not supported: {reason}"),
    }
}

/// The entry that gives these tools. Its texts are quoted as JSON, which is YAML, and a `$` in them is no variable.
fn config_snippet(source: &SpecSource) -> String {
    let text = |text: &str| serde_json::Value::from(text.replace("${", "$${")).to_string();
    let (id, spec) = (yaml_key(&source.options.id), text(&source.typed));
    let mut snippet = format!("openapiSpecs:\n  {id}:\n    spec: {spec}");
    if let Some(url) = &source.options.base_url {
        snippet.push_str(&format!("\n    baseUrl: {}", text(url.as_str())));
    }
    snippet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_operations_are_grouped_by_reason() {
        let skipped = |path: &str, reason: &str| SkippedOperation {
            method: "GET".to_owned(),
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        let all = [skipped("/a", "x"), skipped("/b", "y"), skipped("/c", "y")];
        let counts: Vec<_> = by_reason(&all).iter().map(|(reason, group)| (*reason, group.len())).collect();
        assert_eq!(counts, [("y", 2), ("x", 1)]);
    }
}
