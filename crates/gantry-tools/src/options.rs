//! The options of Gantry's own tools, in the shape of the configuration file.
//!
//! What is no configuration (the workspace, protected paths, the command runner) is an argument of the constructors.

use crate::web::UrlPattern;
use gantry_egress::address_guard::{IpNet, parse_range};
use gantry_provider::options::{Secret, millis};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What programs that tools start may take: `run_code`, `shell_exec`, git, tests, formatters, package managers. They run
/// in a sandbox on the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct CodeOptions {
    /// Whether `run_code` and `shell_exec` may use the network: through Gantry's proxy, which lets them reach public
    /// addresses and those of `web.allowPrivate`. Installing packages and pushing have it once an approver said yes.
    pub network: bool,
    /// Megabytes of memory of all processes of one run together.
    pub memory_mb: u64,
    /// Seconds of processor time of one process.
    pub cpu_seconds: u64,
    /// Processes and threads of one run at once.
    pub processes: u32,
    /// Megabytes that one run may write to disk.
    pub disk_mb: u64,
    /// The same limits for `run_tests`, `format_code` and `install_package`.
    pub builds: ResourceLimits,
    /// Folders outside the workspace that programs may read, besides the system's own and the compilers and interpreters
    /// that Gantry finds on its PATH.
    pub toolchains: Vec<PathBuf>,
    /// Where `install_package` gets packages from.
    pub registries: Registries,
}

impl Default for CodeOptions {
    fn default() -> Self {
        Self {
            network: false,
            memory_mb: 512,
            cpu_seconds: 60,
            processes: 64,
            disk_mb: 1024,
            builds: ResourceLimits::default(),
            toolchains: Vec::new(),
            registries: Registries::default(),
        }
    }
}

impl CodeOptions {
    /// The limits of code that an agent wrote.
    #[must_use]
    pub fn limits(&self) -> ResourceLimits {
        let Self { memory_mb, cpu_seconds, processes, disk_mb, .. } = *self;
        ResourceLimits { memory_mb, cpu_seconds, processes, disk_mb }
    }
}

/// How much one run may take. The defaults are those of builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceLimits {
    /// Megabytes of memory of all its processes together.
    pub memory_mb: u64,
    /// Seconds of processor time of one process.
    pub cpu_seconds: u64,
    /// Processes and threads at once.
    pub processes: u32,
    /// Megabytes that it may write to disk.
    pub disk_mb: u64,
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self { memory_mb: 2048, cpu_seconds: 600, processes: 256, disk_mb: 8192 }
    }
}

/// Where `install_package` gets packages from, by ecosystem, if not from the public registry. It reaches no other host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Registries {
    /// For npm, pnpm and yarn: the address of a registry.
    pub npm: Option<String>,
    /// For pip: the address of a simple index.
    pub pip: Option<String>,
    /// For cargo: the address of a sparse index that replaces crates.io.
    pub cargo: Option<String>,
    /// For go: the address of a module proxy.
    pub go: Option<String>,
}

/// How the git tools commit and push.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct GitOptions {
    /// What `git_push` shows to a server, by its origin: `user:password`, or a token. No program sees it: it is added on
    /// the way.
    pub credentials: BTreeMap<String, Secret>,
    /// The author of commits, where the repository does not say.
    pub author: Option<GitAuthor>,
}

/// The author of commits.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitAuthor {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
}

/// What the tools of an entry of the tool catalogue do, and where (`builtinPolicy`).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum BuiltinPolicy {
    /// The tools that read files.
    FsRead(FilePolicy),
    /// The tools that write files.
    FsWrite(FilePolicy),
    /// The tool that runs commands.
    ShellExec(ShellPolicy),
}

/// Where the file tools of an entry work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct FilePolicy {
    /// The only folders and files they touch, which need not exist yet; the whole workspace unless given. A relative path
    /// starts at the workspace, and none leaves it.
    pub allowed_paths: Vec<PathBuf>,
    /// How long a call may take, in milliseconds.
    #[serde(deserialize_with = "optional_millis")]
    #[schemars(with = "Option<u64>")]
    pub timeout: Option<Duration>,
}

/// What the tool of an entry runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ShellPolicy {
    /// The only commands that it runs: names of the system's programs, or absolute paths.
    pub allowed_commands: Vec<String>,
    /// How long a command may take, in milliseconds.
    #[serde(default, deserialize_with = "optional_millis")]
    #[schemars(with = "Option<u64>")]
    pub timeout: Option<Duration>,
}

/// What `web_fetch` and `web_search` may reach, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct WebOptions {
    /// What `web_fetch` may fetch without asking: hosts, `*.` and a domain, or addresses that may end in `*`.
    #[schemars(with = "Vec<String>")]
    pub allow: Vec<UrlPattern>,
    /// Private addresses that may be reached at all. What resolves to any other private address is refused, even if an
    /// approver allows the call.
    #[serde(deserialize_with = "address_ranges")]
    #[schemars(with = "Vec<String>")]
    pub allow_private: Vec<IpNet>,
    /// The service behind `web_search`; without one, there is no such tool.
    pub search: Option<WebSearchOptions>,
}

/// The service behind `web_search`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebSearchOptions {
    /// How it is asked.
    pub api: SearchApi,
    /// Its address; the public address of Brave or Tavily unless given. SearXNG needs one.
    pub url: Option<String>,
    /// The key that it asks for.
    pub api_key: Option<Secret>,
}

/// The protocol of a search service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SearchApi {
    Searxng,
    Brave,
    Tavily,
}

/// How `search_code` ranks what it finds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct SearchOptions {
    /// A model that puts the best files of a ranked search in order by their meaning. The question and the lines that
    /// are shown of up to 50 files are sent to it.
    pub embeddings: Option<EmbeddingsOptions>,
}

/// A model that makes embeddings, behind an endpoint that speaks the OpenAI protocol.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EmbeddingsOptions {
    /// The address below which `/embeddings` is, as OpenAI has it.
    pub url: String,
    /// The model.
    pub model: String,
    /// The key that it asks for.
    pub api_key: Option<Secret>,
}

fn optional_millis<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Duration>, D::Error> {
    millis::deserialize(input).map(Some)
}

/// Reads addresses and ranges of them, such as `10.1.2.0/24`.
fn address_ranges<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<IpNet>, D::Error> {
    let texts = Vec::<String>::deserialize(input)?;
    texts.iter().map(|text| parse_range(text).map_err(serde::de::Error::custom)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn code_options_are_read_from_the_file() {
        let file = json!({
            "network": true, "memoryMb": 64, "builds": { "processes": 9 }, "toolchains": ["/opt/x"],
            "registries": { "npm": "https://npm.example/" },
        });
        let read: CodeOptions = serde_json::from_value(file).unwrap();
        let npm = Some("https://npm.example/".to_owned());
        let expected = CodeOptions {
            network: true,
            memory_mb: 64,
            builds: ResourceLimits { processes: 9, ..ResourceLimits::default() },
            toolchains: vec!["/opt/x".into()],
            registries: Registries { npm, ..Registries::default() },
            ..CodeOptions::default()
        };
        assert_eq!(read, expected);
        assert_eq!((read.limits().memory_mb, read.limits().disk_mb), (64, 1024));
        for wrong in [json!({ "registries": { "gems": "x" } }), json!({ "builds": { "network": true } })] {
            assert!(serde_json::from_value::<CodeOptions>(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn git_options_are_read_from_the_file() {
        let author = json!({ "name": "Ada", "email": "ada@example.com" });
        let file = json!({ "credentials": { "https://g.example": "s3cret" }, "author": author });
        let read: GitOptions = serde_json::from_value(file).unwrap();
        assert!(!format!("{read:?}").contains("s3cret"));
        let author = GitAuthor { name: "Ada".to_owned(), email: "ada@example.com".to_owned() };
        let credentials = [("https://g.example".to_owned(), "s3cret".into())].into();
        assert_eq!(read, GitOptions { credentials, author: Some(author) });
    }

    #[test]
    fn policies_of_catalogue_entries_are_read_from_the_file() {
        let read = |file| serde_json::from_value::<BuiltinPolicy>(file);
        let files =
            FilePolicy { allowed_paths: vec!["./docs".into()], timeout: Some(Duration::from_secs(5)) };
        let file = json!({ "name": "fs_read", "allowedPaths": ["./docs"], "timeout": 5000 });
        assert_eq!(read(file).unwrap(), BuiltinPolicy::FsRead(files));
        let whole = read(json!({ "name": "fs_write" })).unwrap();
        assert_eq!(whole, BuiltinPolicy::FsWrite(FilePolicy::default()));
        let shell = ShellPolicy { allowed_commands: vec!["git".to_owned()], timeout: None };
        let file = json!({ "name": "shell_exec", "allowedCommands": ["git"] });
        assert_eq!(read(file).unwrap(), BuiltinPolicy::ShellExec(shell));
        for wrong in [json!({ "name": "shell_exec" }), json!({ "name": "fs_read", "allowedCommands": [] })] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn web_options_are_read_from_the_file() {
        let read: WebOptions = serde_json::from_value(json!({
            "allow": ["https://docs.rs/*", "*.example.com"],
            "allowPrivate": ["10.1.2.0/24", "127.0.0.1"],
            "search": { "api": "brave", "apiKey": "s3cret" },
        }))
        .unwrap();
        assert_eq!(
            read.allow,
            ["https://docs.rs/*", "*.example.com"].map(|it| UrlPattern::parse(it).unwrap())
        );
        assert_eq!(read.allow_private, ["10.1.2.0/24", "127.0.0.1"].map(|it| parse_range(it).unwrap()));
        let search = WebSearchOptions { api: SearchApi::Brave, url: None, api_key: Some("s3cret".into()) };
        assert!(!format!("{search:?}").contains("s3cret"));
        assert_eq!(read.search, Some(search));
        for wrong in
            [json!({ "allow": ["ftp://a"] }), json!({ "allowPrivate": ["x"] }), json!({ "deny": [] })]
        {
            assert!(serde_json::from_value::<WebOptions>(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn search_options_are_read_from_the_file() {
        let embeddings = json!({ "url": "http://127.0.0.1:11434/v1", "model": "m", "apiKey": "s3cret" });
        let read: SearchOptions = serde_json::from_value(json!({ "embeddings": embeddings })).unwrap();
        assert!(!format!("{read:?}").contains("s3cret"));
        let url = "http://127.0.0.1:11434/v1".to_owned();
        let expected = EmbeddingsOptions { url, model: "m".to_owned(), api_key: Some("s3cret".into()) };
        assert_eq!(read.embeddings, Some(expected));
    }
}
