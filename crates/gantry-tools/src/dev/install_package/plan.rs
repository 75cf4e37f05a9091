//! How packages are installed: by which program, in which steps, from where.

use super::{Args, package_name};
use crate::command::runner::{CommandSpec, NetworkAccess};
use crate::dev::ecosystem::Ecosystem;
use crate::dev::project_dir::ProjectDir;
use crate::dev::{NEW_PYTHON, cargo_config, own_python, project_command};
use crate::failure::{self, Result};
use crate::options::Registries;
use gantry_core::digest::Digest;
use gantry_sandbox::jail::{Access, STORE};
use std::path::PathBuf;

/// The log of what modules come to. Go compares with it what any proxy gives; it has no packages.
const GO_SUMS: &str = "sum.golang.org";

/// The names of packages, in the command lines of [`Manager`].
const PACKAGES: &str = "PACKAGES";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Manager {
    pub(super) name: &'static str,
    pub(super) ecosystem: Ecosystem,
    /// The file by which a project chooses it; the last manager of an ecosystem needs none.
    chosen_by: Option<&'static str>,
    /// Manifests, lock files and settings in the project's folder: an approval is bound to their content.
    files: &'static [&'static str],
    /// The public registry, and the hosts that it consists of.
    registry: &'static str,
    hosts: &'static [&'static str],
    /// Command lines to add packages. [`PACKAGES`] stands for their names; options for development packages and against
    /// install scripts are left out where a call does not ask for them.
    add: &'static [&'static str],
    /// Command lines to install what the project declares.
    install: &'static [&'static str],
}

const MANAGERS: [Manager; 7] = [
    Manager {
        name: "pnpm",
        chosen_by: Some("pnpm-lock.yaml"),
        files: &["package.json", "pnpm-lock.yaml", "pnpm-workspace.yaml", ".npmrc", ".pnpmfile.cjs"],
        add: &["add --ignore-scripts --save-dev PACKAGES"],
        ..NPM
    },
    Manager {
        name: "yarn",
        chosen_by: Some("yarn.lock"),
        files: &["package.json", "yarn.lock", ".yarnrc", ".yarnrc.yml", ".npmrc"],
        hosts: &["registry.npmjs.org", "registry.yarnpkg.com"],
        add: &["add --ignore-scripts --dev PACKAGES"],
        ..NPM
    },
    NPM,
    Manager { chosen_by: Some("requirements.txt"), install: &["-m pip install -r requirements.txt"], ..PIP },
    PIP,
    Manager {
        name: "cargo",
        ecosystem: Ecosystem::Cargo,
        files: &[
            "Cargo.toml",
            "Cargo.lock",
            ".cargo/config.toml",
            ".cargo/config",
            "rust-toolchain.toml",
            "rust-toolchain",
        ],
        registry: "https://index.crates.io/",
        hosts: &["index.crates.io", "static.crates.io", "crates.io"],
        add: &["add --dev PACKAGES", "fetch"],
        install: &["fetch"],
        ..NPM
    },
    Manager {
        name: "go",
        ecosystem: Ecosystem::Go,
        files: &["go.mod", "go.sum", "go.work", "go.work.sum"],
        registry: "https://proxy.golang.org",
        hosts: &["proxy.golang.org", GO_SUMS],
        add: &["get PACKAGES", "mod download"],
        install: &["mod download"],
        ..NPM
    },
];
const NPM: Manager = Manager {
    name: "npm",
    ecosystem: Ecosystem::Node,
    chosen_by: None,
    files: &["package.json", "package-lock.json", "npm-shrinkwrap.json", ".npmrc"],
    registry: "https://registry.npmjs.org/",
    hosts: &["registry.npmjs.org"],
    add: &["install --ignore-scripts --save-dev PACKAGES"],
    install: &["install --ignore-scripts"],
};
/// It is run by the interpreter of the project's own environment.
const PIP: Manager = Manager {
    name: "pip",
    ecosystem: Ecosystem::Python,
    files: &["requirements.txt", "pyproject.toml", "setup.py", "setup.cfg"],
    registry: "https://pypi.org/simple/",
    hosts: &["pypi.org", "files.pythonhosted.org"],
    add: &["-m pip install PACKAGES"],
    install: &["-m pip install -e ."],
    ..NPM
};

#[derive(Debug)]
pub(super) struct InstallPlan {
    pub(super) manager: &'static Manager,
    /// The address that packages come from.
    pub(super) source: String,
    /// The hosts that can be reached for it.
    pub(super) hosts: Vec<String>,
    /// The programs that have to be run for it; those with a network reach the hosts.
    pub(super) steps: Vec<CommandSpec>,
    /// The manager's files in the project's folder and in those above it, which managers read as well: paths relative to
    /// the workspace, each with its digest, or none if it is not there.
    pub(super) files: Vec<(PathBuf, Option<Digest>)>,
    /// What an approval is bound to, as one text: the project's folder, the command lines, the registry with its hosts,
    /// and the manager's files.
    pub(super) precondition: String,
}

impl InstallPlan {
    /// Plans what a call asks for. Reads the project's files; one that is there and cannot be read is an error.
    pub(super) fn make(project: &ProjectDir, args: &Args, registries: &Registries) -> Result<Self> {
        let ecosystem = Ecosystem::detect(project, args.ecosystem)?;
        package_name::check(ecosystem, &args.packages)?;
        let has_declarations =
            || ["requirements.txt", "pyproject.toml", "setup.py"].iter().any(|name| project.has(name));
        if ecosystem == Ecosystem::Python && args.packages.is_empty() && !has_declarations() {
            return Err(failure::invalid(
                "the project declares no packages: there is neither a requirements.txt nor a pyproject.toml; name packages",
            ));
        }
        let is_chosen = |manager: &&Manager| {
            manager.ecosystem == ecosystem && manager.chosen_by.is_none_or(|name| project.has(name))
        };
        let manager = MANAGERS.iter().find(is_chosen);
        let manager =
            manager.ok_or_else(|| failure::internal("no package manager is known for the project"))?;
        let (configured, config) = match ecosystem {
            Ecosystem::Node => (&registries.npm, Vec::new()),
            Ecosystem::Python => (&registries.pip, Vec::new()),
            Ecosystem::Cargo => (&registries.cargo, cargo_config(registries)),
            Ecosystem::Go => (&registries.go, Vec::new()),
        };
        let source = configured.as_deref().unwrap_or(manager.registry).to_owned();
        let hosts = manager.hosts_of(&source);
        let access = NetworkAccess { hosts: Some(hosts.clone()), ..NetworkAccess::default() };
        let to_step = |run: CommandSpec| with_settings(run, ecosystem, &source, args.scripts);
        let steps: Vec<_> = manager.steps(project, args, &config, &access).into_iter().map(to_step).collect();
        let paths = project.folder.ancestors().flat_map(|at| manager.files.iter().map(|name| at.join(name)));
        let files = paths.map(|path| project.digest(&path).map(|digest| (path, digest)));
        let files = files.collect::<Result<Vec<_>>>()?;
        let commands: Vec<_> = steps.iter().map(CommandSpec::command_line).collect();
        let bound = serde_json::json!([project.folder, commands, source, hosts, files]);
        let precondition = format!("judged:{}", Digest::of(bound.to_string().as_bytes()));
        Ok(Self { manager, source, hosts, steps, files, precondition })
    }

    /// What to do about a step that failed.
    pub(super) fn advice(&self, step: &CommandSpec) -> String {
        if step.network.is_none() {
            return "if this Python cannot make environments, ask a person to install its venv module (python3-venv)"
                .to_owned();
        }
        format!(
            "packages come from {} only, and it may not reach any other host, even if the project's settings, lock files \
             and requirements name one: if it asked for another one, take its address out of them, or ask a person to name the \
             registry in code.registries (and in web.allowPrivate if it is not a public one)",
            self.hosts.join(", ")
        )
    }
}

impl Manager {
    /// The hosts of a registry: the public one has some more than its address says, any other is one host.
    fn hosts_of(&self, source: &str) -> Vec<String> {
        let host = host(source);
        if self.hosts.contains(&host) {
            return self.hosts.iter().map(|&host| host.to_owned()).collect();
        }
        let sums = (self.ecosystem == Ecosystem::Go).then_some(GO_SUMS);
        [host].into_iter().chain(sums).map(str::to_owned).collect()
    }
    /// The programs to run, by the manager's command lines.
    fn steps(
        &self,
        project: &ProjectDir,
        args: &Args,
        config: &[String],
        access: &NetworkAccess,
    ) -> Vec<CommandSpec> {
        // Newer versions of yarn do not know the option against scripts; there the variable counts.
        let lock = || project.text(&project.folder.join("yarn.lock"));
        let is_new_yarn = self.name == "yarn" && lock().is_none_or(|lock| lock.contains("__metadata:"));
        let words = |word: &'static str| match word {
            "--ignore-scripts" if args.scripts || is_new_yarn => Vec::new(),
            "--dev" | "--save-dev" if !args.dev => Vec::new(),
            PACKAGES => args.packages.clone(),
            _ => vec![word.to_owned()],
        };
        let is_python = self.ecosystem == Ecosystem::Python;
        let own = own_python(project);
        let makes_environment = is_python && own.is_none();
        let program =
            if is_python { own.unwrap_or_else(|| project.in_jail(NEW_PYTHON)) } else { self.name.into() };
        let to_step = |line: &&'static str| {
            let run = project_command(&program).args(config).args(line.split(' ').flat_map(words));
            CommandSpec { network: Some(access.clone()), packages: Some(Access::Write), ..run }
        };
        let first = makes_environment.then(|| project_command("python3").args(["-m", "venv", ".venv"]));
        let lines = if args.packages.is_empty() { self.install } else { self.add };
        first.into_iter().chain(lines.iter().map(to_step)).collect()
    }
}

/// The host of an address, with its port if it has one.
pub(super) fn host(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or_default();
    host.rsplit('@').next().unwrap_or_default()
}

/// A program with the variables of an installation. Settings by variables outrank those of the project.
fn with_settings(run: CommandSpec, ecosystem: Ecosystem, source: &str, scripts: bool) -> CommandSpec {
    // What is reached is reached through the proxy, addresses of this machine among them.
    let run = run.env([("NO_PROXY", ""), ("no_proxy", "")]);
    // By itself, pnpm keeps its store in the workspace, where every job can write. npm warns of the setting.
    let store = (run.program == "pnpm").then(|| format!("{STORE}/pnpm"));
    let stores = store
        .iter()
        .flat_map(|at| ["NPM_CONFIG_STORE_DIR", "PNPM_CONFIG_STORE_DIR"].map(|name| (name, at.as_str())));
    let run = run.env(stores);
    match ecosystem {
        Ecosystem::Node => run.env([
            ("NPM_CONFIG_REGISTRY", source),
            ("NPM_CONFIG_IGNORE_SCRIPTS", if scripts { "false" } else { "true" }),
            ("NPM_CONFIG_AUDIT", "false"),
            ("NPM_CONFIG_FUND", "false"),
            ("NPM_CONFIG_UPDATE_NOTIFIER", "false"),
            // Newer versions of yarn have names of their own for some.
            ("YARN_NPM_REGISTRY_SERVER", source),
            ("YARN_ENABLE_SCRIPTS", if scripts { "true" } else { "false" }),
            ("YARN_ENABLE_TELEMETRY", "0"),
        ]),
        Ecosystem::Python => {
            // pip talks to plain addresses only where it is told that they can be trusted.
            let trusted = source.starts_with("http://").then(|| ("PIP_TRUSTED_HOST", host(source)));
            let quiet =
                [("PIP_NO_COLOR", "1"), ("PIP_NO_INPUT", "1"), ("PIP_DISABLE_PIP_VERSION_CHECK", "1")];
            // An environment in the workspace can have a pip.conf, of which an approver hears nothing.
            run.env([("PIP_INDEX_URL", source), ("PIP_CONFIG_FILE", "/dev/null")]).env(quiet).env(trusted)
        }
        Ecosystem::Go => run.env([("GOPROXY", source)]),
        Ecosystem::Cargo => run,
    }
}
