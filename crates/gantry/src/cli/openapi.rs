//! The arguments of `gantry openapi`.

use super::ProjectArg;
use clap::{Args, Subcommand};
use gantry_core::pattern::Pattern;
use gantry_egress::Url;
use gantry_rest::openapi::Method;

#[derive(Debug, Subcommand)]
pub(crate) enum OpenapiAction {
    /// Show the tools of a document, the skipped operations with their reasons, and the tokens that the tools cost
    #[command(
        long_about = "Show the tools of an OpenAPI document with their names, effects and tokens, the skipped operations with their reasons, and an entry for gantry.yaml. Only the document is read; no operation is called. Exit code 1 means that the document cannot be used; skipped operations do not change it.",
        after_help = "Examples:\n  gantry openapi inspect petstore.yaml\n  gantry openapi inspect https://api.example.com/openapi.json --method get --tag pets\n  gantry openapi inspect petstore --skipped\n  gantry openapi inspect petstore.yaml --json | jq '.skipped'"
    )]
    Inspect(Box<Inspect>),
}

#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// A file, an http:// or https:// address, or an entry of openapiSpecs, whose options then apply
    pub(crate) spec: String,
    /// Only operations with this method; repeatable
    #[arg(long = "method", value_name = "METHOD", value_parser = method)]
    pub(crate) methods: Vec<Method>,
    /// Only operations with this tag; repeatable
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Only these operations: a name, an operationId or METHOD /path, with globs; repeatable
    #[arg(long, value_name = "PATTERN", value_parser = Pattern::parse)]
    pub(crate) include: Vec<Pattern>,
    /// None of these operations; repeatable
    #[arg(long, value_name = "PATTERN", value_parser = Pattern::parse)]
    pub(crate) exclude: Vec<Pattern>,
    /// The address of the API, instead of the servers of the document
    #[arg(long, value_name = "URL", value_parser = web_url)]
    pub(crate) base_url: Option<Url>,
    /// The id in the names of the tools [default: from the name of the document]
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) name: Option<String>,
    /// Show only the skipped operations, all of them
    #[arg(long)]
    pub(crate) skipped: bool,
    #[command(flatten)]
    pub(crate) project: ProjectArg,
}

fn method(word: &str) -> Result<Method, String> {
    let known = || Method::ALL.map(Method::as_str).join(", ");
    Method::parse(word).ok_or_else(|| format!("the methods are {}", known()))
}

fn web_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok().filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
    url.ok_or_else(|| "expected an http:// or https:// address".to_owned())
}

fn id(text: &str) -> Result<String, String> {
    match text.parse::<crate::config::ApiId>().is_ok() {
        true => Ok(text.to_owned()),
        false => Err("an id has 1 to 32 letters, digits, _ and -".to_owned()),
    }
}
