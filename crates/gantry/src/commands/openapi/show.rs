//! A document as people read it.

use super::Subject;
use super::look::Look;
use crate::term;
use crate::term::{plural, thousands};
use gantry_rest::openapi::{KeyPlace, Scheme, SkippedOperation};
use std::collections::{BTreeMap, BTreeSet};

/// Operations that are named under one reason.
const NAMED: usize = 10;

/// All of it.
pub(super) fn all(subject: &Subject, look: &Look) {
    head(subject, look).iter().for_each(|line| term::print(&term::sanitize(line)));
    let rows: Vec<Vec<String>> = look
        .tools()
        .map(|(operation, tool)| {
            let place = format!("{} {}", operation.method, operation.path);
            vec![tool.name.clone(), place, tool.effect.as_str().to_owned(), thousands(tool.tokens)]
        })
        .collect();
    term::print("");
    if rows.is_empty() {
        term::print("There are no tools in it.");
    } else {
        term::table(&["NAME", "OPERATION", "EFFECT", "TOKENS"], &rows);
    }
    if !look.import.skipped.is_empty() {
        term::print("");
        skipped(look, NAMED);
    }
    let warnings = warnings(look);
    if !warnings.is_empty() {
        term::print("\nWarnings:");
        warnings.iter().for_each(|warning| term::print(&format!("  - {}", term::sanitize(warning))));
    }
}

/// What is skipped, by reason, with so many operations under each.
pub(super) fn skipped(look: &Look, named: usize) {
    let all = &look.import.skipped;
    if all.is_empty() {
        return term::eprint("Nothing is skipped.");
    }
    term::print(&format!("Skipped {}:", plural(all.len(), "operation")));
    for (reason, operations) in grouped(all) {
        term::print(&format!("  {} ({})", term::sanitize(reason), thousands(operations.len())));
        for it in operations.iter().take(named) {
            term::print(&term::sanitize(&format!("    {} {}", it.method, it.path)));
        }
        let more = operations.len().saturating_sub(named);
        if more > 0 {
            term::print(&format!("    and {} more; --skipped names all", thousands(more)));
        }
    }
}

/// The commonest reason first.
fn grouped(skipped: &[SkippedOperation]) -> Vec<(&str, Vec<&SkippedOperation>)> {
    let mut groups: BTreeMap<&str, Vec<&SkippedOperation>> = BTreeMap::new();
    for it in skipped {
        groups.entry(&it.reason).or_default().push(it);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, operations)| std::cmp::Reverse(operations.len()));
    groups
}

/// What a person should know, with what is wrong about single tools.
pub(super) fn warnings(look: &Look) -> Vec<String> {
    let troubles = look.tools().filter_map(|(_, tool)| {
        tool.trouble.as_ref().map(|reason| format!("{} cannot be called: {reason}", tool.name))
    });
    look.import.warnings.iter().cloned().chain(troubles).collect()
}

fn head(subject: &Subject, look: &Look) -> Vec<String> {
    let import = &look.import;
    let title = if import.title.is_empty() { "An API without a title" } else { &import.title };
    let mut lines = vec![format!("{title} {} (OpenAPI {})", import.api_version, import.openapi)];
    let mut say = |what: &str, found: String| lines.push(format!("  {what:11} {found}"));
    let bytes = look.bytes.map(|bytes| format!(", {} bytes", thousands(bytes))).unwrap_or_default();
    say("document", format!("{}{bytes}", subject.shown()));
    let servers = servers(look);
    match servers.len() {
        0 => say("server", "none".to_owned()),
        _ => servers.iter().for_each(|server| say("server", server.clone())),
    }
    for (name, scheme) in &import.schemes {
        let has = match (subject.is_entry, subject.options.auth.contains_key(name)) {
            (false, _) => "",
            (true, true) => ": configured",
            (true, false) => ": no credentials",
        };
        say("auth", format!("{name}, {}{has}", words(scheme)));
    }
    let counts = format!(
        "{}: {}, {} left out by choice, {} skipped",
        thousands(import.total),
        plural(import.operations.len(), "tool"),
        thousands(import.filtered),
        thousands(look.skipped())
    );
    say("operations", counts);
    let (tokens, without) = look.tokens();
    let saved = if without < tokens {
        format!("; {} without output schemas", thousands(without))
    } else {
        String::new()
    };
    say("tokens", format!("{} for the list of tools{saved}", thousands(tokens)));
    say("took", format!("{} ms", look.elapsed.as_millis()));
    lines
}

/// Where operations are sent.
pub(super) fn servers(look: &Look) -> Vec<String> {
    let servers: BTreeSet<&str> =
        look.import.operations.iter().map(|it| it.server.as_str().trim_end_matches('/')).collect();
    servers.into_iter().map(str::to_owned).collect()
}

/// A scheme in words.
pub(super) fn words(scheme: &Scheme) -> String {
    match scheme {
        Scheme::ApiKey { place, name } => format!("an API key in the {} {name:?}", place_word(*place)),
        Scheme::Basic => "a user and a password".to_owned(),
        Scheme::Bearer => "a token".to_owned(),
        Scheme::ClientCredentials { token_url, .. } => {
            format!("OAuth 2 client credentials, tokens from {token_url}")
        }
        Scheme::Unsupported(why) => format!("not supported: {why}"),
    }
}

pub(super) fn place_word(place: KeyPlace) -> &'static str {
    match place {
        KeyPlace::Query => "query",
        KeyPlace::Header => "header",
        KeyPlace::Cookie => "cookie",
    }
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
        let groups = grouped(&all);
        let shown: Vec<(&str, usize)> = groups.iter().map(|(reason, them)| (*reason, them.len())).collect();
        assert_eq!(shown, [("y", 2), ("x", 1)]);
    }
}
