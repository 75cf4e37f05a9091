//! The document to inspect: an entry of `openapiSpecs`, a file or an address, with the options of the command line.

use crate::cli::Inspect;
use crate::config::{Api, ApiId, Project};
use crate::exit::UsageError;
use crate::term;
use gantry_egress::{Url, display_url};
use gantry_rest::{ApiOptions, SpecPlace};
use gantry_upstream::options::DisabledReason;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

/// Characters of an id that is made from the name of a document.
const ID_CHARS: usize = 32;

/// Names of documents that say nothing about their API.
const COMMON_NAMES: [&str; 10] =
    ["openapi", "swagger", "api", "apis", "api-docs", "spec", "index", "schema", "definition", "www"];

/// A document, and which of its operations to import.
pub(super) struct SpecSource {
    pub(super) options: ApiOptions,
    /// Whether it is an entry of the configuration, which has its credentials.
    pub(super) is_entry: bool,
    /// The document as it was typed.
    pub(super) typed: String,
}

impl SpecSource {
    pub(super) fn of(args: &Inspect, project: &Project) -> anyhow::Result<Self> {
        let entry = project.apis.get(args.spec.as_str());
        let mut options = match entry {
            Some(api) => {
                let missing =
                    || UsageError(format!("the entry {} is switched off: {}", args.spec, reason(api)));
                api.options.clone().ok_or_else(missing)?
            }
            None => without_entry(&args.spec, project)?,
        };
        if let Some(DisabledReason::Unusable(reason)) = entry.and_then(Api::off) {
            term::eprint(&format!("The entry {} is switched off: {reason}", args.spec));
        }
        // The command line replaces what the entry chooses, and leaves out what the entry leaves out.
        if !args.methods.is_empty() {
            options.include_methods.clone_from(&args.methods);
        }
        if !args.tags.is_empty() {
            options.tag_filter.clone_from(&args.tags);
        }
        if !args.include.is_empty() {
            options.include = Some(args.include.clone());
        }
        options.exclude.extend(args.exclude.iter().cloned());
        options.base_url = args.base_url.clone().or(options.base_url);
        if let Some(name) = &args.name {
            options.id.clone_from(name);
        }
        Ok(Self { options, is_entry: entry.is_some(), typed: args.spec.clone() })
    }

    /// The document for people; an address without its query, which may hold a key.
    pub(super) fn shown(&self) -> String {
        match &self.options.spec {
            SpecPlace::File(file) => file.display().to_string(),
            SpecPlace::Url(url) => display_url(url.as_str()),
        }
    }
}

/// Why an entry cannot be used.
fn reason(api: &Api) -> String {
    match api.off() {
        Some(DisabledReason::Unusable(reason)) => reason,
        Some(DisabledReason::Disabled) | None => "a variable is not set".to_owned(),
    }
}

/// A document that no entry names, with no options.
fn without_entry(typed: &str, project: &Project) -> anyhow::Result<ApiOptions> {
    let spec = match Url::parse(typed).ok().filter(|_| typed.contains("://")) {
        Some(url) if !url.username().is_empty() || url.password().is_some() => {
            return Err(UsageError("the address of a document has no user and no password".to_owned()).into());
        }
        Some(url) if ["http", "https"].contains(&url.scheme()) => SpecPlace::Url(url),
        Some(_) => {
            return Err(
                UsageError("the address of a document begins with http:// or https://".to_owned()).into()
            );
        }
        None => SpecPlace::File(std::path::absolute(typed)?),
    };
    if let SpecPlace::File(file) = &spec
        && !file.is_file()
    {
        let entries: Vec<&str> = project.apis.keys().map(|id| &**id).collect();
        let entries = match entries.as_slice() {
            [] => "openapiSpecs has no entries".to_owned(),
            entries => format!("the entries of openapiSpecs are {}", entries.join(", ")),
        };
        let message = format!("there is no file {}, and {entries}", term::shell_word(typed));
        return Err(UsageError(message).into());
    }
    Ok(ApiOptions {
        id: default_id(&spec),
        spec,
        base_url: None,
        server_variables: BTreeMap::new(),
        headers: Vec::new(),
        auth: BTreeMap::new(),
        include_methods: Vec::new(),
        tag_filter: Vec::new(),
        include: None,
        exclude: Vec::new(),
        effects: Vec::new(),
    })
}

/// An id for an API: the first part of its document's name that says something, else of the folder's or host's name.
fn default_id(spec: &SpecPlace) -> String {
    let text =
        |part: Option<&OsStr>| part.map(|part| part.to_string_lossy().into_owned()).unwrap_or_default();
    let (name, around) = match spec {
        SpecPlace::File(file) => (text(file.file_stem()), text(file.parent().and_then(Path::file_name))),
        SpecPlace::Url(url) => {
            (text(Path::new(url.path()).file_stem()), text(url.host_str().map(OsStr::new)))
        }
    };
    let parts = name.split('.').chain(around.split('.'));
    let specific = parts.filter(|part| !COMMON_NAMES.contains(&part.to_lowercase().as_str()));
    specific.map(as_id).find(|id| id.parse::<ApiId>().is_ok()).unwrap_or_else(|| "api".to_owned())
}

fn as_id(text: &str) -> String {
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
            assert_eq!(default_id(&SpecPlace::File(file.into())), id, "{file}");
        }
        for (url, id) in [
            ("https://api.example.com/v1/openapi.json", "example"),
            ("https://example.com/petstore.yaml?x=1", "petstore"),
            ("https://example.com", "example"),
        ] {
            assert_eq!(default_id(&SpecPlace::Url(url.parse().unwrap())), id, "{url}");
        }
    }
}
