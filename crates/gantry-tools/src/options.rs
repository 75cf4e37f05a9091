//! The options of Gantry's own tools, in the shape of the configuration file.
//!
//! What is no configuration (the workspace, protected paths, the command runner) is an argument of the constructors.

use crate::web::UrlPattern;
use gantry_egress::address_guard::{IpNet, IpRange};
use gantry_provider::options::{
    DAY, Key, Limit, Millis, NotEmpty, OneOrMore, Origin, PathText, PlainValue, Secret, Title, WebUrl,
    read_as, read_list, read_map, read_some,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The most megabytes that a limit can say.
const MEGABYTES: u64 = 1 << 20;

/// Limits of the programs that tools start: `run_code`, `shell_exec`, git, tests, formatters, package managers. They
/// run in a sandbox on the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct CodeOptions {
    /// Whether `run_code` and `shell_exec` may use the network: through Gantry's proxy, which lets them reach public
    /// addresses and those of `web.allowPrivate`. Installing packages and pushing use it after an approval.
    pub network: bool,
    /// Megabytes of memory of all processes of one run together.
    pub memory_mb: Limit<512, MEGABYTES>,
    /// Seconds of processor time of one process.
    pub cpu_seconds: Limit<60, 86_400>,
    /// Processes and threads of one run at once.
    pub processes: Limit<64, 65_536>,
    /// Megabytes that one run may write to disk.
    pub disk_mb: Limit<1024, MEGABYTES>,
    /// The same limits for `run_tests`, `format_code` and `install_package`.
    pub builds: BuildLimits,
    /// Folders outside the workspace that programs may read, besides the system's own and the compilers and interpreters
    /// that Gantry finds on its PATH.
    #[serde(deserialize_with = "read_list::<PathText, _, _>")]
    #[schemars(with = "Vec<PathText>")]
    pub toolchains: Vec<PathBuf>,
    /// Where `install_package` gets packages from, by ecosystem, if not from the public registry. It reaches no other host.
    pub registries: Registries,
}

impl CodeOptions {
    /// The limits of code that an agent wrote.
    #[must_use]
    pub fn limits(&self) -> ResourceLimits {
        let Self { memory_mb, cpu_seconds, processes, disk_mb, .. } = *self;
        ResourceLimits {
            memory_mb: memory_mb.get(),
            cpu_seconds: cpu_seconds.get(),
            processes: processes.into(),
            disk_mb: disk_mb.get(),
        }
    }
}

/// How much one run of a build may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildLimits {
    /// Megabytes of memory of all its processes together.
    pub memory_mb: Limit<2048, MEGABYTES>,
    /// Seconds of processor time of one process.
    pub cpu_seconds: Limit<600, 86_400>,
    /// Processes and threads at once.
    pub processes: Limit<256, 65_536>,
    /// Megabytes that it may write to disk.
    pub disk_mb: Limit<8192, MEGABYTES>,
}

impl BuildLimits {
    /// The limits of builds, tests and installations.
    #[must_use]
    pub fn limits(&self) -> ResourceLimits {
        let Self { memory_mb, cpu_seconds, processes, disk_mb } = *self;
        ResourceLimits {
            memory_mb: memory_mb.get(),
            cpu_seconds: cpu_seconds.get(),
            processes: processes.into(),
            disk_mb: disk_mb.get(),
        }
    }
}

/// How much one run may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Where `install_package` gets packages from, by ecosystem.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Registries {
    /// For npm, pnpm and yarn: the address of a registry.
    #[serde(deserialize_with = "read_some::<WebUrl, _, _>")]
    #[schemars(with = "WebUrl")]
    pub npm: Option<String>,
    /// For pip: the address of a simple index.
    #[serde(deserialize_with = "read_some::<WebUrl, _, _>")]
    #[schemars(with = "WebUrl")]
    pub pip: Option<String>,
    /// For cargo: the address of a sparse index that replaces crates.io.
    #[serde(deserialize_with = "read_some::<WebUrl, _, _>")]
    #[schemars(with = "WebUrl")]
    pub cargo: Option<String>,
    /// For go: the address of a module proxy.
    #[serde(deserialize_with = "read_some::<WebUrl, _, _>")]
    #[schemars(with = "WebUrl")]
    pub go: Option<String>,
}

/// How the git tools commit and push.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct GitOptions {
    /// Credentials for `git_push`, by the origin of the server: `user:password`, or a token. No program in the
    /// sandbox sees them: Gantry's proxy adds them.
    #[serde(deserialize_with = "read_map::<HttpsOrigin, PlainValue, _, _, _, _>")]
    #[schemars(with = "BTreeMap<String, PlainValue>")]
    pub credentials: BTreeMap<String, Secret>,
    /// The author of commits, if the repository names none.
    pub author: Option<GitAuthor>,
}

gantry_core::option_texts! {
    /// The origin of a server that is shown a secret.
    plain HttpsOrigin = "an https:// origin without path, such as https://github.com: secrets are sent over https only",
        |text| text.starts_with("https://") && text.parse::<Origin>().is_ok();
}

/// The author of commits.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitAuthor {
    /// The name.
    #[serde(deserialize_with = "read_as::<Title, _, _>")]
    #[schemars(with = "Title")]
    pub name: String,
    /// The address.
    #[serde(deserialize_with = "read_as::<NotEmpty, _, _>")]
    #[schemars(with = "NotEmpty")]
    pub email: String,
}

/// What the tools of an entry of the tool catalogue do, and where (`builtinPolicy`).
// The reader of the configuration takes the name of the variant from the key `name`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename = "$tag:name", rename_all = "snake_case")]
#[schemars(rename = "BuiltinPolicy", tag = "name")]
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
    /// The only folders and files that the tools touch, which need not exist yet; the whole workspace unless given. A
    /// relative path starts at the workspace, and no path leaves it.
    #[serde(deserialize_with = "read_as::<OneOrMore<PathText>, _, _>")]
    #[schemars(with = "OneOrMore<PathText>")]
    pub allowed_paths: Vec<PathBuf>,
    /// Another spelling of `requestTimeoutMs`.
    #[serde(deserialize_with = "read_as::<Millis<0, DAY>, _, _>")]
    #[schemars(with = "Millis<0, DAY>")]
    pub timeout: Option<Duration>,
}

/// What the tool of an entry runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ShellPolicy {
    /// The only commands that it runs: names of the system's programs, or absolute paths.
    #[serde(deserialize_with = "read_as::<OneOrMore<NotEmpty>, _, _>")]
    #[schemars(with = "OneOrMore<NotEmpty>")]
    pub allowed_commands: Vec<String>,
    /// Another spelling of `requestTimeoutMs`.
    #[serde(default, deserialize_with = "read_as::<Millis<0, DAY>, _, _>")]
    #[schemars(with = "Millis<0, DAY>")]
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
    #[serde(deserialize_with = "read_list::<IpRange, _, _>")]
    #[schemars(with = "Vec<IpRange>")]
    pub allow_private: Vec<IpNet>,
    /// The service behind `web_search`; without one, there is no such tool.
    pub search: Option<WebSearchOptions>,
}

/// The service behind `web_search`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebSearchOptions {
    /// The interface of the service.
    pub api: SearchApi,
    /// Its address; the public address of Brave or Tavily unless given. SearXNG needs one.
    #[serde(default, deserialize_with = "read_some::<WebUrl, _, _>")]
    #[schemars(with = "WebUrl")]
    pub url: Option<String>,
    /// The key for the service. Brave and Tavily need one.
    #[serde(default, deserialize_with = "read_some::<Key, _, _>")]
    #[schemars(with = "Key")]
    pub api_key: Option<Secret>,
}

impl WebSearchOptions {
    /// What the service needs to be asked at all and is not said, in words that follow its key.
    #[must_use]
    pub fn missing(&self) -> Option<&'static str> {
        match self.api {
            SearchApi::Searxng if self.url.is_none() => {
                Some("searxng needs the key \"url\": the address of your instance")
            }
            SearchApi::Brave if self.api_key.is_none() => Some("brave needs the key \"apiKey\""),
            SearchApi::Tavily if self.api_key.is_none() => Some("tavily needs the key \"apiKey\""),
            SearchApi::Searxng | SearchApi::Brave | SearchApi::Tavily => None,
        }
    }
}

/// The protocol of a search service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SearchApi {
    Searxng,
    Brave,
    Tavily,
}

/// How `search_code` ranks what it finds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct SearchOptions {
    /// A model that sorts the best files of a ranked search by their meaning. Gantry sends it the query and the lines
    /// that are shown of up to 50 files.
    pub embeddings: Option<EmbeddingsOptions>,
}

/// A model that makes embeddings, behind an endpoint that speaks the OpenAI protocol.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EmbeddingsOptions {
    /// The address below which `/embeddings` is, as OpenAI has it.
    #[serde(deserialize_with = "read_as::<WebUrl, _, _>")]
    #[schemars(with = "WebUrl")]
    pub url: String,
    /// The model.
    #[serde(deserialize_with = "read_as::<NotEmpty, _, _>")]
    #[schemars(with = "NotEmpty")]
    pub model: String,
    /// The key for the service.
    #[serde(default, deserialize_with = "read_some::<Key, _, _>")]
    #[schemars(with = "Key")]
    pub api_key: Option<Secret>,
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
            memory_mb: 64.into(),
            builds: BuildLimits { processes: 9.into(), ..BuildLimits::default() },
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
        let files: FilePolicy =
            serde_json::from_value(json!({ "allowedPaths": ["./docs"], "timeout": 5000 })).unwrap();
        assert_eq!(files.allowed_paths, [PathBuf::from("./docs")]);
        assert_eq!(files.timeout, Some(Duration::from_secs(5)));
        let shell: ShellPolicy = serde_json::from_value(json!({ "allowedCommands": ["git"] })).unwrap();
        assert_eq!((shell.allowed_commands, shell.timeout), (vec!["git".to_owned()], None));
        serde_json::from_value::<ShellPolicy>(json!({ "allowedCommands": [] })).unwrap_err();
        serde_json::from_value::<FilePolicy>(json!({ "allowedPaths": [] })).unwrap_err();
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
        assert_eq!(read.allow_private, ["10.1.2.0/24", "127.0.0.1/32"].map(|it| it.parse().unwrap()));
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
