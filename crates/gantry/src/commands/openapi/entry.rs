//! What to write into the configuration, and how to narrow a large API.

use super::Subject;
use super::look::Look;
use crate::config::is_api_id;
use crate::term;
use crate::term::{plural, thousands};
use gantry_rest::SpecPlace;
use gantry_rest::openapi::{Method, Scheme};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Tools beyond which models choose worse.
const MANY: usize = 40;
/// Tags that are named.
const TAGS: usize = 8;
/// Characters of an id that is made from a name.
const ID_CHARS: usize = 32;
/// What documents are called that are not called after their API.
const COMMON: [&str; 9] =
    ["openapi", "swagger", "api", "apis", "api-docs", "spec", "index", "schema", "definition"];

/// What a person can do next.
pub(super) fn hints(subject: &Subject, look: &Look) {
    let tools = look.import.operations.len();
    if tools > MANY {
        narrowing(look, tools);
    }
    if !subject.is_entry && tools > 0 {
        term::eprint("\nFor gantry.yaml:\n");
        term::eprint(&term::sanitize_lines(&yaml(subject, look)));
    }
}

fn narrowing(look: &Look, tools: usize) {
    term::eprint(&format!(
        "\n{} are many for one model. To narrow them, write into the entry:",
        plural(tools, "tool")
    ));
    let reads = look.import.operations.iter().filter(|it| it.method == Method::Get).count();
    if reads > 0 && reads < tools {
        term::eprint(&format!("  includeMethods: [get]  # {} of them", thousands(reads)));
    }
    let tags = tags(look);
    if let Some((tag, count)) = tags.first().filter(|(_, count)| *count < tools) {
        term::eprint(&format!("  tagFilter: [{}]  # {} of them", quoted(tag), thousands(*count)));
        let known: Vec<String> = tags
            .iter()
            .take(TAGS)
            .map(|(tag, count)| format!("{} ({})", term::sanitize(tag), thousands(*count)))
            .collect();
        let more = tags.len().saturating_sub(TAGS);
        let more = if more > 0 { format!(" and {} more", thousands(more)) } else { String::new() };
        term::eprint(&format!("    tags: {}{more}", known.join(", ")));
    }
    if let Some(operation) = look.import.operations.first() {
        let path = operation.path.split('/').nth(1).unwrap_or_default();
        let pattern = quoted(&format!("{} /{path}*", operation.method));
        term::eprint(&format!(
            "  include: [{pattern}, {}]  # single operations, with globs",
            quoted(&operation.name)
        ));
    }
    term::eprint("The options --method, --tag and --include try that out here.");
}

/// The tags of the tools, the commonest first.
fn tags(look: &Look) -> Vec<(&str, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for tag in look.import.operations.iter().flat_map(|operation| &operation.tags) {
        *counts.entry(tag).or_default() += 1;
    }
    let mut tags: Vec<_> = counts.into_iter().collect();
    tags.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    tags
}

/// The entry that gives what is shown.
fn yaml(subject: &Subject, look: &Look) -> String {
    let options = &subject.options;
    let mut yaml =
        format!("openapiSpecs:\n  {}:\n    spec: {}\n", quoted(&options.id), quoted(&subject.typed));
    let mut line = |key: &str, value: String| writeln!(yaml, "    {key}: {value}").unwrap_or_default();
    // Credentials go where the configuration says, not where a document from the web says.
    let needs_base = matches!(options.spec, SpecPlace::Url(_)) && !look.import.schemes.is_empty();
    let first = look.import.operations.first().filter(|_| needs_base).map(|operation| &operation.server);
    if let Some(url) = options.base_url.as_ref().or(first) {
        line("baseUrl", quoted(url.as_str()));
    }
    if !options.include_methods.is_empty() {
        line("includeMethods", list(options.include_methods.iter().map(|method| method.as_str())));
    }
    if !options.tag_filter.is_empty() {
        line("tagFilter", list(options.tag_filter.iter().map(String::as_str)));
    }
    if let Some(include) = &options.include {
        line("include", list(include.iter().map(|pattern| pattern.as_str())));
    }
    if !options.exclude.is_empty() {
        line("exclude", list(options.exclude.iter().map(|pattern| pattern.as_str())));
    }
    let usable = |scheme: &&Scheme| !matches!(scheme, Scheme::Unsupported(_));
    let schemes: Vec<_> = look.import.schemes.iter().filter(|(_, scheme)| usable(scheme)).collect();
    if !schemes.is_empty() {
        yaml.push_str("    auth:\n");
        for (name, scheme) in schemes {
            writeln!(yaml, "      {}: {}", quoted(name), credential(&options.id, name, scheme))
                .unwrap_or_default();
        }
    }
    yaml
}

/// What an entry says of a scheme, with variables for what is secret.
fn credential(id: &str, name: &str, scheme: &Scheme) -> String {
    let variable = |what: &str| {
        let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        let name: String = format!("{id}_{name}{what}").chars().map(word).collect();
        let name = if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name };
        format!("\"${{{name}}}\"")
    };
    match scheme {
        Scheme::ApiKey { .. } => format!("{{ apiKey: {} }}", variable("")),
        Scheme::Bearer => format!("{{ token: {} }}", variable("")),
        Scheme::Basic => {
            format!("{{ username: {}, password: {} }}", variable("_user"), variable("_password"))
        }
        Scheme::ClientCredentials { .. } => {
            format!("{{ clientId: {}, clientSecret: {} }}", variable("_id"), variable("_secret"))
        }
        Scheme::Unsupported(_) => "{}".to_owned(),
    }
}

fn list<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", texts.map(quoted).collect::<Vec<_>>().join(", "))
}

/// A text as YAML takes it for a text. A `$` of the document is no variable.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic() || "./_".contains(c))
        && text.chars().all(is_plain);
    let reads_as_other =
        ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "."].contains(&&*text.to_lowercase());
    if is_word && !reads_as_other {
        return text.to_owned();
    }
    serde_json::Value::from(text.replace("${", "$${")).to_string()
}

/// An id for the API of a document, from what the document is called.
pub(super) fn id_of(spec: &SpecPlace) -> String {
    let (name, around) = match spec {
        SpecPlace::File(file) => {
            let text = |part: Option<&std::ffi::OsStr>| {
                part.and_then(|it| it.to_str()).unwrap_or_default().to_owned()
            };
            (text(file.file_name()), text(file.parent().and_then(|folder| folder.file_name())))
        }
        SpecPlace::Url(url) => {
            let name = url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default();
            let host = url.host_str().unwrap_or_default();
            let host = ["api.", "www."].iter().find_map(|start| host.strip_prefix(start)).unwrap_or(host);
            (name.to_owned(), host.split('.').next().unwrap_or_default().to_owned())
        }
    };
    // What tells it from others is neither its extension nor a word that half of all documents are called by.
    let parts = name.rsplit_once('.').map_or(&*name, |(stem, _)| stem).split('.');
    let specific = parts.filter(|part| !COMMON.contains(&part.to_lowercase().as_str()));
    let found = specific.chain([&*around]).map(id).find(|id| is_api_id(id));
    found.unwrap_or_else(|| "api".to_owned())
}

fn id(text: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let id: String = text.chars().map(word).take(ID_CHARS).collect();
    id.trim_matches('_').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_is_called_after_its_document() {
        for (file, id) in [
            ("/x/petstore.yaml", "petstore"),
            ("/x/My Shop.v2.json", "my_shop"),
            ("/billing/openapi.json", "billing"),
            ("/swagger.yml", "api"),
            ("/x/api.github.com.json", "github"),
            ("/x/….json", "x"),
        ] {
            assert_eq!(id_of(&SpecPlace::File(file.into())), id, "{file}");
        }
        for (url, id) in [
            ("https://api.example.com/v1/openapi.json", "example"),
            ("https://example.com/petstore.yaml?x=1", "petstore"),
            ("https://example.com", "example"),
        ] {
            assert_eq!(id_of(&SpecPlace::Url(url.parse().unwrap())), id, "{url}");
        }
    }

    #[test]
    fn texts_are_quoted_where_yaml_would_read_something_else() {
        for (text, written) in [
            ("pets", "pets"),
            ("./a/b.yaml", "./a/b.yaml"),
            ("a b", "\"a b\""),
            ("no", "\"no\""),
            ("1.5", "\"1.5\""),
            ("GET /a*", "\"GET /a*\""),
            ("${X}", "\"$${X}\""),
            ("", "\"\""),
        ] {
            assert_eq!(quoted(text), written);
        }
    }

    #[test]
    fn what_is_secret_comes_from_variables() {
        assert_eq!(credential("pets", "api key", &Scheme::Bearer), "{ token: \"${PETS_API_KEY}\" }");
        assert_eq!(
            credential("2go", "b", &Scheme::Basic),
            "{ username: \"${_2GO_B_USER}\", password: \"${_2GO_B_PASSWORD}\" }"
        );
    }
}
