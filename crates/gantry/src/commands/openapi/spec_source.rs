//! The document to inspect: an entry of `openapiSpecs`, a file or an address, with the options of the command line.

use crate::cli::Inspect;
use crate::config::{Api, ApiId, Project};
use crate::exit::UsageError;
use crate::term;
use gantry_egress::display_url;
use gantry_rest::{ApiOptions, SpecPlace};
use gantry_upstream::options::DisabledReason;
use serde_json::json;
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
    pub(super) typed: String,
}

impl SpecSource {
    pub(super) fn of(args: &Inspect, project: &Project) -> anyhow::Result<Self> {
        let entry = project.apis.get(args.spec.as_str());
        let unusable = entry.and_then(Api::off).and_then(|off| match off {
            DisabledReason::Unusable(reason) => Some(reason),
            DisabledReason::Disabled => None,
        });
        let mut options = match entry {
            Some(api) => api.options.clone().ok_or_else(|| {
                let reason = unusable.as_deref().unwrap_or("a variable is not set");
                UsageError(format!("the entry {} is switched off: {reason}", args.spec))
            })?,
            None => without_entry(&args.spec, project)?,
        };
        if let Some(reason) = &unusable {
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

/// A document that no entry names, as an entry with nothing but this document would be read.
fn without_entry(typed: &str, project: &Project) -> anyhow::Result<ApiOptions> {
    let refused = || {
        UsageError(
            "the document is a file, or an http:// or https:// address without user and password".into(),
        )
    };
    let options: Option<ApiOptions> = serde_json::from_value(json!({ "spec": typed })).ok();
    let mut options = options.ok_or_else(refused)?;
    if let SpecPlace::File(file) = &mut options.spec {
        *file = std::path::absolute(&*file)?;
        if !file.is_file() {
            let entries = match project.apis.keys().map(|id| &**id).collect::<Vec<&str>>().join(", ") {
                none if none.is_empty() => "openapiSpecs has no entries".to_owned(),
                entries => format!("the entries of openapiSpecs are {entries}"),
            };
            let message = format!("there is no file {}, and {entries}", term::shell_word(typed));
            return Err(UsageError(message).into());
        }
    }
    options.id = default_id(&options.spec);
    Ok(options)
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
