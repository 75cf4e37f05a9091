//! Gantry's own tools in a project.

use crate::config::{self, BuiltinPolicy, Own as Settings, Problem, Project, WebSearchApi};
use gantry_egress::address_guard::{IpNet, parse_range};
use gantry_provider::Provider;
use gantry_runtime::options::ProviderOptions;
use gantry_tools::builtin::{BuiltinProvider, NAMESPACE};
use gantry_tools::command::runner::CommandRunner;
use gantry_tools::command::{MAX_TIMEOUT, code_tools, shell_tools};
use gantry_tools::dev::dev_tools;
use gantry_tools::files::{FsTools, catalogue_tools, file_tools};
use gantry_tools::git::git_tools;
use gantry_tools::options::{
    CodeOptions, EmbeddingsOptions, FilePolicy, GitAuthor, GitOptions, Registries, SearchApi, SearchOptions,
    ShellPolicy, WebOptions, WebSearchOptions,
};
use gantry_tools::search::search_tools;
use gantry_tools::toolbox::ToolBox;
use gantry_tools::web::{UrlPattern, web_tools};
use gantry_tools::workspace::ProtectedPaths;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How much longer a call may take than what it waits for. The tool itself ends what runs too long and says what came
/// of it; the limit of the call is the last resort.
const GRACE: Duration = Duration::from_secs(10);
/// The folder for packages in the data of a project.
const PACKAGES: &str = "packages";
/// Files of the index that `search_code` had there in earlier versions.
const OLD_INDEX: [&str; 3] = ["search.db", "search.db-wal", "search.db-shm"];

/// Gantry's own tools in a project.
pub(super) struct OwnTools {
    /// Those of the workspace, and those of the catalogue.
    pub(super) providers: Vec<Arc<dyn Provider>>,
    /// The tools of the workspace that have a time limit of their own, and the longest that one can be.
    time_limits: Vec<(&'static str, Duration)>,
}

/// Opens the workspace; starts nothing.
pub(super) fn tools(project: &Project, protected: &ProtectedPaths) -> anyhow::Result<OwnTools> {
    // The first one says best what is wrong with a workspace.
    let files = file_tools(&project.workspace, protected.clone())?;
    let runner = Arc::new(runner(project, protected));
    let mut providers: Vec<Arc<dyn Provider>> = Vec::new();
    let mut time_limits = Vec::new();
    if project.tools.workspace.enabled {
        let workspace = BuiltinProvider::workspace(families(files, project, protected, &runner)?);
        time_limits.extend(workspace.time_limits());
        providers.push(Arc::new(workspace));
    }
    for (id, builtin) in project.tools.builtin.iter().filter(|(_, builtin)| builtin.source.enabled) {
        let files = |tools, allowed: &[_]| {
            let policy = FilePolicy { allowed_paths: allowed.to_vec(), ..FilePolicy::default() };
            catalogue_tools(id, &project.workspace, protected.clone(), tools, &policy)
        };
        let family = match &builtin.policy {
            BuiltinPolicy::FsRead(allowed) => files(FsTools::Read, allowed)?,
            BuiltinPolicy::FsWrite(allowed) => files(FsTools::Write, allowed)?,
            BuiltinPolicy::ShellExec { commands } => {
                let timeout = builtin.source.request_timeout;
                let policy = ShellPolicy { allowed_commands: commands.clone(), timeout };
                shell_tools(Arc::clone(&runner), policy)
            }
        };
        providers.push(Arc::new(BuiltinProvider::entry(id, family)));
    }
    Ok(OwnTools { providers, time_limits })
}

/// The families of tools under the id of the workspace.
fn families(
    files: ToolBox,
    project: &Project,
    protected: &ProtectedPaths,
    runner: &Arc<CommandRunner>,
) -> anyhow::Result<Vec<ToolBox>> {
    let Settings { git, embeddings, .. } = &project.own;
    for name in OLD_INDEX {
        // It only takes space, so that a file which stays is no reason to fail.
        std::fs::remove_file(project.data.join(name)).ok();
    }
    let embeddings = embeddings.clone().map(|it| EmbeddingsOptions {
        url: it.url,
        model: it.model,
        api_key: it.key.map(Into::into),
    });
    let credentials = git.credentials.iter().map(|(origin, secret)| (origin.clone(), secret.as_str().into()));
    let author = git.author.clone().map(|(name, email)| GitAuthor { name, email });
    let git = GitOptions { credentials: credentials.collect(), author };
    Ok(vec![
        files,
        search_tools(&project.workspace, protected.clone(), SearchOptions { embeddings })?,
        code_tools(Arc::clone(runner)),
        dev_tools(Arc::clone(runner))?,
        git_tools(Arc::clone(runner), git),
        web_tools(web(&project.own.web)?)?,
    ])
}

fn web(web: &config::Web) -> anyhow::Result<WebOptions> {
    let patterns = web.allow.iter().map(|pattern| UrlPattern::parse(pattern).map_err(anyhow::Error::msg));
    let search = web.search.clone().map(|search| WebSearchOptions {
        api: match search.api {
            WebSearchApi::Searxng => SearchApi::Searxng,
            WebSearchApi::Brave => SearchApi::Brave,
            WebSearchApi::Tavily => SearchApi::Tavily,
        },
        url: search.url,
        api_key: search.key.map(Into::into),
    });
    Ok(WebOptions { allow: patterns.collect::<Result<_, _>>()?, allow_private: private(web), search })
}

/// What a search service needs to be asked at all, and where credentials can go.
pub(super) fn check(project: &Project, problems: &mut Vec<Problem>) {
    for (origin, _) in
        project.own.git.credentials.iter().filter(|(origin, _)| !origin.starts_with("https://"))
    {
        let advice = "what is secret is sent over https only; correct the origin, or remove it";
        problems.push(Problem::general(format!("git.credentials: {origin}: {advice}")));
    }
    let Some(search) = &project.own.web.search else { return };
    let missing = match search.api {
        WebSearchApi::Searxng if search.url.is_none() => {
            "searxng needs the key \"url\": the address of your instance"
        }
        WebSearchApi::Brave if search.key.is_none() => "brave needs the key \"apiKey\"",
        WebSearchApi::Tavily if search.key.is_none() => "tavily needs the key \"apiKey\"",
        WebSearchApi::Searxng | WebSearchApi::Brave | WebSearchApi::Tavily => return,
    };
    problems.push(Problem::at(&search.at, format!("web.search: {missing}")));
}

/// The private addresses that may be reached.
pub(crate) fn private(web: &config::Web) -> Vec<IpNet> {
    web.private.iter().filter_map(|range| parse_range(range).ok()).collect()
}

/// Opens the workspace for programs.
fn runner(project: &Project, protected: &ProtectedPaths) -> CommandRunner {
    let code = &project.own.code;
    let registry = |name: &str| code.registries.get(name).cloned();
    let options = CodeOptions {
        network: code.network,
        memory_mb: code.code.memory_mb,
        cpu_seconds: code.code.cpu_seconds,
        processes: code.code.processes,
        disk_mb: code.code.disk_mb,
        builds: code.builds,
        toolchains: code.toolchains.clone(),
        registries: Registries {
            npm: registry("npm"),
            pip: registry("pip"),
            cargo: registry("cargo"),
            go: registry("go"),
        },
    };
    let store = project.data.join(PACKAGES);
    CommandRunner::open(
        project.workspace.clone(),
        protected.clone(),
        store,
        private(&project.own.web),
        options,
    )
}

impl OwnTools {
    /// Lets calls take as long as what they may ask for, unless the configuration says otherwise.
    pub(super) fn give_time(&self, project: &Project, providers: &mut HashMap<Arc<str>, ProviderOptions>) {
        if let Some(own) = providers.get_mut(NAMESPACE).filter(|own| own.timeout.is_none()) {
            for (tool, longest) in &self.time_limits {
                own.tools_timeout.entry((*tool).to_owned()).or_insert(*longest + GRACE);
            }
        }
        for (id, builtin) in &project.tools.builtin {
            let Some(options) = providers.get_mut(id.as_str()) else { continue };
            if matches!(builtin.policy, BuiltinPolicy::ShellExec { .. }) {
                let longest = options.timeout.unwrap_or(Duration::from_secs(MAX_TIMEOUT));
                options.timeout = Some(longest + GRACE);
            }
        }
    }
}
