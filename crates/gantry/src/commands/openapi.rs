//! `gantry openapi`: what would become of an OpenAPI document.

mod entry;
mod look;
mod report;
mod sample;
mod show;
mod tool;

pub(super) use look::{Look, look};

use crate::cli::{Cli, Inspect, OpenapiAction};
use crate::config::{Error, Project};
use crate::exit::{Outcome, UsageError};
use crate::{term, wiring};
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

pub(super) async fn run(cli: &Cli, action: &OpenapiAction) -> anyhow::Result<Outcome> {
    let OpenapiAction::Inspect(asked) = action;
    let loaded = super::policy::configuration(cli)?;
    let project = asked.project.name();
    let project = loaded.config.project(project);
    let project =
        project.ok_or_else(|| UsageError(format!("there is no project {:?}", asked.project.name())))?;
    let subject = Subject::of(asked, project)?;
    let shown = subject.shown();
    let look = match with_notices(&shown, look(&subject.options, project)).await {
        Ok(look) => look,
        Err(reason) => {
            term::eprint(&format!("error: {}", term::sanitize_lines(&unusable(&shown, &reason))));
            if subject.is_entry {
                let id = &asked.spec;
                term::eprint(&format!(
                    "It is what \"spec\" in openapiSpecs.{id} names; correct that, or the document."
                ));
            }
            return Ok(Outcome::Failure);
        }
    };
    match &asked.tool {
        Some(name) => tool::show(&subject, &look, name, cli.json)?,
        None if cli.json && asked.skipped => term::print_json(&report::skipped(&look)),
        None if cli.json => term::print_json(&Report { subject: &subject, look: &look }),
        None if asked.skipped => show::skipped(&look, usize::MAX),
        None => {
            show::all(&subject, &look);
            entry::hints(&subject, &look);
        }
    }
    Ok(Outcome::Success)
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
        let mut options = match project.rest.apis.get(&asked.spec) {
            Some(api) => {
                let mut problems = Vec::new();
                let options = wiring::api_options(&asked.spec, api, &mut problems);
                if let Some(error) = Error::all(problems) {
                    return Err(error.into());
                }
                options
            }
            None => without_entry(asked, project)?,
        };
        let is_entry = project.rest.apis.contains_key(&asked.spec);
        if let Some(DisabledReason::Unusable(reason)) =
            project.rest.apis.get(&asked.spec).and_then(|api| api.off.as_ref())
        {
            term::eprint(&format!("The entry {} is switched off: {reason}", asked.spec));
        }
        if is_entry && Path::new(&asked.spec).is_file() {
            let file = term::shell_word(&format!("./{}", asked.spec));
            term::eprint(&format!(
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
            return Err(UsageError("an address of a document has no user and no password".to_owned()).into());
        }
        Some(url) if ["http", "https"].contains(&url.scheme()) => SpecPlace::Url(url),
        Some(_) => {
            return Err(
                UsageError("an address of a document begins with http:// or https://".to_owned()).into()
            );
        }
        None => SpecPlace::File(std::path::absolute(&asked.spec)?),
    };
    if let SpecPlace::File(file) = &spec
        && !file.is_file()
    {
        let known: Vec<&str> = project.rest.apis.keys().map(String::as_str).collect();
        let ids = match known.as_slice() {
            [] => "and there is no entry under openapiSpecs".to_owned(),
            known => format!("and entries under openapiSpecs are {}", known.join(", ")),
        };
        let message = format!("there is no file {}, {ids}", term::shell_word(&asked.spec));
        return Err(UsageError(message).into());
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
                term::eprint(&format!("Reading {} … {seconds} s", term::sanitize(what)));
                wait = NEXT_NOTICE;
            }
        }
    }
}
