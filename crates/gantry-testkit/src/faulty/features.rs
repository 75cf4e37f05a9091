//! Everything but tools: pages of lists, resources, templates, prompts and completion.

use super::connection::Request;
use super::era::RequestEra;
use super::options::Options;
use super::server::Server;
use super::wire::{Failure, INVALID_PARAMS, Reply};
use serde_json::{Map, Value, json};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};

/// The resources: URI, name, type, and the content, which of the last one is base64.
const RESOURCES: [(&str, &str, &str, &str); 5] = [
    ("faulty://text/one", "one", "text/plain", "the first resource"),
    ("faulty://text/two", "two", "text/plain", "the second resource"),
    ("faulty://text/three", "three", "text/markdown", "# the third resource"),
    ("faulty://data/json", "json", "application/json", r#"{"odd":1.10}"#),
    ("faulty://data/bytes", "bytes", "application/octet-stream", "AAECAwQ="),
];

/// The templates: how a URI begins, its variable, and a name. A URI of one is answered with its last part.
const TEMPLATES: [(&str, &str, &str); 4] = [
    ("faulty://item/", "id", "item"),
    ("faulty://user/", "name", "user"),
    ("faulty://file/", "+path", "file"),
    ("faulty://day/", "date", "day"),
];

/// The prompts: name, description, arguments that must be given, and others.
const PROMPTS: [(&str, &str, &[&str], &[&str]); 4] = [
    ("greet", "Greets by name", &["name"], &["style"]),
    ("plain", "Takes nothing", &[], &[]),
    ("attach", "Brings a resource along", &[], &[]),
    ("review", "Reviews a text", &["text"], &[]),
];

/// How the URIs of resources and the names of prompts begin that were added while running.
const GROWN_RESOURCE: &str = "faulty://grown/";
const GROWN_PROMPT: &str = "grown-";

/// What completion offers for any argument.
const COMPLETIONS: [&str; 5] = ["ada", "alan", "barbara", "edsger", "grace"];

/// Entries on a page when a fault needs pages and none were asked for.
const ENTRIES_OF_ENDLESS_PAGE: usize = 1;
const ENTRIES_BEFORE_EMPTY_CURSOR: usize = 3;

/// The numbers of what was added to a list while running.
fn grown(count: &AtomicU64) -> RangeInclusive<u64> {
    1..=count.load(Ordering::Relaxed)
}

/// Whether this is the number of something that was added while running.
fn is_grown(count: &AtomicU64, number: Option<&str>) -> bool {
    number.and_then(|number| number.parse().ok()).is_some_and(|number| grown(count).contains(&number))
}

pub(super) fn resources(server: &Server) -> Vec<String> {
    let entries = RESOURCES
        .map(|(uri, name, mime, _)| json!({ "uri": uri, "name": name, "mimeType": mime, "x-vendor": name }));
    let grown = grown(&server.grown.resources)
        .map(|n| json!({ "uri": format!("{GROWN_RESOURCE}{n}"), "name": format!("grown-{n}") }));
    texts(entries.into_iter().chain(grown))
}

pub(super) fn templates() -> Vec<String> {
    let entries = TEMPLATES.map(|(start, variable, name)| {
        json!({ "uriTemplate": format!("{start}{{{variable}}}"), "name": name, "mimeType": "text/plain" })
    });
    texts(entries)
}

pub(super) fn prompts(server: &Server) -> Vec<String> {
    let argument = |required| move |name: &&str| json!({ "name": name, "required": required });
    let entries = PROMPTS.map(|(name, description, required, optional)| {
        let arguments: Vec<Value> =
            required.iter().map(argument(true)).chain(optional.iter().map(argument(false))).collect();
        json!({ "name": name, "title": name, "description": description, "arguments": arguments })
    });
    let grown = grown(&server.grown.prompts).map(|n| json!({ "name": format!("{GROWN_PROMPT}{n}") }));
    texts(entries.into_iter().chain(grown))
}

fn texts(entries: impl IntoIterator<Item = Value>) -> Vec<String> {
    entries.into_iter().map(|entry| entry.to_string()).collect()
}

/// The page of a list that the request asks for: `all` are its entries as JSON texts, `key` is what they stand under.
pub(super) fn page(request: &Request, key: &str, all: &[String]) -> Reply {
    let options = &request.server().options;
    let total = all.len();
    let size = page_size(options).unwrap_or(total).max(1);
    let start = match request.params.cursor.as_deref() {
        None => 0,
        Some("") if options.faults.empty_cursor => size,
        Some(cursor) => match cursor.strip_prefix("page:").and_then(|start| start.parse().ok()) {
            Some(start) => start,
            None => return Failure::new(INVALID_PARAMS, format!("`{cursor}` is no cursor")).into(),
        },
    };
    let endless = options.faults.endless_pages;
    let entries: Vec<&str> = if endless {
        all.iter().cycle().skip(start % total).take(size).map(String::as_str).collect()
    } else {
        all.iter().skip(start).take(size).map(String::as_str).collect()
    };
    let next = start + size;
    let cursor = match next {
        _ if next >= total && !endless => String::new(),
        _ if start == 0 && options.faults.empty_cursor => r#","nextCursor":"""#.to_owned(),
        _ => format!(r#","nextCursor":"page:{next}""#),
    };
    Reply::Cacheable(format!(r#"{{"{key}":[{}]{cursor}}}"#, entries.join(",")))
}

fn page_size(options: &Options) -> Option<usize> {
    let needed = if options.faults.endless_pages {
        Some(ENTRIES_OF_ENDLESS_PAGE)
    } else {
        options.faults.empty_cursor.then_some(ENTRIES_BEFORE_EMPTY_CURSOR)
    };
    options.page.or(needed)
}

pub(super) fn read(request: &Request) -> Reply {
    let uri = request.params.uri.as_str();
    let content = RESOURCES.iter().find(|(known, ..)| *known == uri).map(|(_, name, mime, content)| {
        let key = if *name == "bytes" { "blob" } else { "text" };
        json!({ "uri": uri, "mimeType": mime, key: content })
    });
    let content = content.or_else(|| {
        let part = TEMPLATES.iter().find_map(|(start, ..)| uri.strip_prefix(start))?;
        Some(json!({ "uri": uri, "mimeType": "text/plain", "text": part }))
    });
    let content = content.or_else(|| {
        let number = uri.strip_prefix(GROWN_RESOURCE);
        is_grown(&request.server().grown.resources, number).then(|| json!({ "uri": uri, "text": "grown" }))
    });
    match content {
        Some(content) => Reply::Cacheable(json!({ "contents": [content] }).to_string()),
        None => {
            // The code that the older era has for this is forbidden in the newer one.
            let code = if request.era == RequestEra::Legacy { -32002 } else { INVALID_PARAMS };
            Failure::new(code, "resource not found").with(json!({ "uri": uri })).into()
        }
    }
}

pub(super) fn prompt(request: &Request) -> Reply {
    let name = request.params.name.as_str();
    let known = PROMPTS.iter().find(|(known, ..)| *known == name);
    let known = known.map(|(_, description, required, _)| (*description, *required));
    let is_grown = is_grown(&request.server().grown.prompts, name.strip_prefix(GROWN_PROMPT));
    let Some((description, required)) = known.or(is_grown.then_some(("Grown while running", &[]))) else {
        return Failure::new(INVALID_PARAMS, format!("there is no prompt `{name}`")).into();
    };
    let arguments: Map<String, Value> = match request.arguments() {
        Ok(arguments) => arguments,
        Err(reply) => return reply,
    };
    if let Some(missing) = required.iter().find(|argument| !arguments.contains_key(**argument)) {
        return Failure::new(INVALID_PARAMS, format!("`{missing}` is missing")).into();
    }
    let text = |text: String| json!({ "role": "user", "content": { "type": "text", "text": text } });
    let (uri, _, mime, content) = RESOURCES[0];
    let mut messages = vec![text(format!("{name} {}", Value::Object(arguments)))];
    if name == "attach" {
        let resource = json!({ "uri": uri, "mimeType": mime, "text": content });
        messages.push(json!({ "role": "user", "content": { "type": "resource", "resource": resource } }));
    }
    Reply::Result(json!({ "description": description, "messages": messages }).to_string())
}

/// The names that begin like what was typed; a prompt or a template that does not exist is an error.
pub(super) fn complete(request: &Request) -> Reply {
    let reference = &request.params.reference;
    let known = PROMPTS.iter().any(|(name, ..)| reference["name"] == *name)
        || TEMPLATES.iter().any(|(start, variable, _)| reference["uri"] == format!("{start}{{{variable}}}"));
    if !known {
        return Failure::new(INVALID_PARAMS, format!("nothing to complete: {reference}")).into();
    }
    let typed = request.params.argument["value"].as_str().unwrap_or_default();
    let values: Vec<&str> = COMPLETIONS.into_iter().filter(|value| value.starts_with(typed)).collect();
    let completion = json!({ "total": values.len(), "values": values, "hasMore": false });
    Reply::Result(json!({ "completion": completion }).to_string())
}
