//! `gantry openapi`: what would become of an OpenAPI document.

mod entry;
mod look;
mod report;
mod sample;
mod show;
mod tool;

pub(super) use look::{Look, look};

use crate::cli::{Cli, Inspect, OpenapiAction};
use crate::config::{Api, Project};
use crate::exit::{Done, Usage};
use crate::output;
use gantry_egress::Url;
use gantry_rest::{ApiOptions, SpecPlace};
use gantry_upstream::options::DisabledReason;
use report::Report;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long something may take before a person hears that it goes on, and how often they hear it.
const FIRST_NOTICE: Duration = Duration::from_secs(1);
const NEXT_NOTICE: Duration = Duration::from_secs(10);

pub(super) async fn run(cli: &Cli, action: &OpenapiAction) -> anyhow::Result<Done> {
    let OpenapiAction::Inspect(asked) = action;
    let loaded = super::policy::configuration(cli)?;
    let project = asked.place.name();
    let project = loaded.config.project(project);
    let project = project.ok_or_else(|| Usage(format!("there is no project {:?}", asked.place.name())))?;
    let subject = Subject::of(asked, project)?;
    let shown = subject.shown();
    let look = match with_notices(&shown, look(&subject.options, project)).await {
        Ok(look) => look,
        Err(reason) => {
            output::talk(&format!("error: {}", output::clean_lines(&unusable(&shown, &reason))));
            if subject.is_entry {
                let id = &asked.spec;
                output::talk(&format!(
                    "It is what \"spec\" in openapiSpecs.{id} names; correct that, or the document."
                ));
            }
            return Ok(Done::Badly);
        }
    };
    match &asked.tool {
        Some(name) => tool::show(&subject, &look, name, asked.json)?,
        None if asked.json && asked.skipped => output::json(&report::skipped(&look)),
        None if asked.json => output::json_of(&Report { subject: &subject, look: &look }),
        None if asked.skipped => show::skipped(&look, usize::MAX),
        None => {
            show::all(&subject, &look);
            entry::hints(&subject, &look);
        }
    }
    Ok(Done::Well)
}

/// What is looked at.
struct Subject {
    options: ApiOptions,
    /// Whether it is an entry of the configuration, so that it is known what it has to show.
    is_entry: bool,
    /// The document as it was typed.
    typed: String,
}

impl Subject {
    fn of(asked: &Inspect, project: &Project) -> anyhow::Result<Self> {
        let mut options = match project.apis.get(&asked.spec) {
            Some(api) => {
                let missing = || Usage(format!("the entry {} is switched off: {}", asked.spec, reason(api)));
                api.options.clone().ok_or_else(missing)?
            }
            None => without_entry(asked, project)?,
        };
        let is_entry = project.apis.contains_key(&asked.spec);
        if let Some(DisabledReason::Unusable(reason)) =
            project.apis.get(&asked.spec).and_then(|api| api.off.as_ref())
        {
            output::talk(&format!("The entry {} is switched off: {reason}", asked.spec));
        }
        if is_entry && Path::new(&asked.spec).is_file() {
            let file = output::shell_word(&format!("./{}", asked.spec));
            output::talk(&format!(
                "This is the entry {} of the configuration; write {file} for the file.",
                asked.spec
            ));
        }
        // What is typed goes before what is configured; what is left out stays out.
        if !asked.methods.is_empty() {
            options.include_methods.clone_from(&asked.methods);
        }
        if !asked.tags.is_empty() {
            options.tag_filter.clone_from(&asked.tags);
        }
        if !asked.include.is_empty() {
            options.include = Some(asked.include.clone());
        }
        options.exclude.extend(asked.exclude.iter().cloned());
        options.base_url = asked.base_url.clone().or(options.base_url);
        if let Some(name) = &asked.name {
            options.id.clone_from(name);
        }
        Ok(Self { options, is_entry, typed: asked.spec.clone() })
    }

    /// The document as people are shown it: without a query, which may hold a key.
    fn shown(&self) -> String {
        shown(&self.options.spec)
    }
}

/// Why an entry cannot be used.
fn reason(api: &Api) -> &str {
    match &api.off {
        Some(DisabledReason::Unusable(reason)) => reason,
        Some(DisabledReason::Disabled) | None => "a variable is not set",
    }
}

/// A document as people are shown it: without a query, which may hold a key.
pub(super) fn shown(spec: &SpecPlace) -> String {
    match spec {
        SpecPlace::File(file) => file.display().to_string(),
        SpecPlace::Url(url) => {
            let mut url = url.clone();
            url.set_query(url.query().map(|_| "…"));
            url.to_string().replace("%E2%80%A6", "…")
        }
    }
}

/// Why a document cannot be used; what is wrong with it may already say which one it is.
pub(super) fn unusable(shown: &str, reason: &str) -> String {
    let mut reason = reason;
    while let Some(rest) = reason.strip_prefix(shown).and_then(|rest| rest.strip_prefix(": ")) {
        reason = rest;
    }
    format!("{shown} cannot be used: {reason}")
}

/// A document that no entry names.
fn without_entry(asked: &Inspect, project: &Project) -> anyhow::Result<ApiOptions> {
    let spec = match Url::parse(&asked.spec).ok().filter(|_| asked.spec.contains("://")) {
        Some(url) if !url.username().is_empty() || url.password().is_some() => {
            return Err(Usage("an address of a document has no user and no password".to_owned()).into());
        }
        Some(url) if ["http", "https"].contains(&url.scheme()) => SpecPlace::Url(url),
        Some(_) => {
            return Err(Usage("an address of a document begins with http:// or https://".to_owned()).into());
        }
        None => SpecPlace::File(std::path::absolute(&asked.spec)?),
    };
    if let SpecPlace::File(file) = &spec
        && !file.is_file()
    {
        let known: Vec<&str> = project.apis.keys().map(String::as_str).collect();
        let ids = match known.as_slice() {
            [] => "and there is no entry under openapiSpecs".to_owned(),
            known => format!("and entries under openapiSpecs are {}", known.join(", ")),
        };
        let message = format!("there is no file {}, {ids}", output::shell_word(&asked.spec));
        return Err(Usage(message).into());
    }
    Ok(ApiOptions {
        id: entry::id_of(&spec),
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

/// Does something, and tells a person that it goes on where it takes long.
async fn with_notices<T>(what: &str, work: impl Future<Output = T>) -> T {
    let begun = Instant::now();
    let mut work = std::pin::pin!(work);
    let mut wait = FIRST_NOTICE;
    loop {
        match timeout(wait, &mut work).await {
            Ok(done) => return done,
            Err(_) => {
                let seconds = begun.elapsed().as_secs();
                output::talk(&format!("Reading {} … {seconds} s", output::clean(what)));
                wait = NEXT_NOTICE;
            }
        }
    }
}
