//! How packages are installed: by which program, in which steps, from where.

use super::{Args, package_name};
use crate::command::runner::{CommandSpec, NetworkAccess, in_jail};
use crate::dev::ecosystem::Ecosystem;
use crate::dev::project_command;
use crate::dev::project_dir::ProjectDir;
use crate::failure;
use crate::options::Registries;
use crate::text::display_text;
use gantry_core::Fault;
use gantry_core::digest::Digest;
use gantry_sandbox::jail::STORE;

/// Where the environment of a project of Python is made, if it has none.
const NEW_ENVIRONMENT: &str = ".venv";
/// The log of what modules come to. Go compares with it what any proxy gives; it has no packages.
const GO_SUMS: &str = "sum.golang.org";

/// The names of packages, in the command lines of [`Manager`].
const PACKAGES: &str = "PACKAGES";

/// A package manager.
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

const MANAGERS: [Manager; 6] = [
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
    Manager {
        name: "pip",
        ecosystem: Ecosystem::Python,
        files: &["requirements.txt", "pyproject.toml", "setup.py", "setup.cfg"],
        registry: "https://pypi.org/simple/",
        hosts: &["pypi.org", "files.pythonhosted.org"],
        // Its steps depend on the project: see `python_steps`.
        add: &[],
        install: &[],
        ..NPM
    },
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
        registry: GO_PROXY,
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
const GO_PROXY: &str = "https://proxy.golang.org";

/// How to install what a call asks for.
#[derive(Debug)]
pub(super) struct InstallPlan {
    pub(super) manager: &'static Manager,
    /// The address that packages come from.
    pub(super) source: String,
    /// The hosts that can be reached for it.
    pub(super) hosts: Vec<String>,
    /// The project's own environment of Python, if it is what runs.
    pub(super) environment: Option<&'static str>,
    /// The programs that have to be run for it; those with a network reach the hosts.
    pub(super) steps: Vec<CommandSpec>,
}

/// Files of a package manager, each with its digest, or none if it is not there.
pub(super) type FileDigests = Vec<(&'static str, Option<Digest>)>;

impl InstallPlan {
    /// Plans what a call asks for. Reads the project's files.
    pub(super) fn make(project: &ProjectDir, args: &Args, registries: &Registries) -> Result<Self, Fault> {
        if project.file.is_some() {
            return Err(failure::invalid(format!(
                "{} is a file; name the folder of a project",
                display_text(&args.path)
            )));
        }
        let ecosystem = Ecosystem::detect(project, args.ecosystem)?;
        package_name::check(ecosystem, &args.packages)?;
        let is_chosen = |manager: &&Manager| {
            manager.ecosystem == ecosystem && manager.chosen_by.is_none_or(|name| project.has(name))
        };
        let manager = MANAGERS.iter().find(is_chosen);
        let manager =
            manager.ok_or_else(|| failure::failed("no package manager is known for the project"))?;
        let configured = match ecosystem {
            Ecosystem::Node => &registries.npm,
            Ecosystem::Python => &registries.pip,
            Ecosystem::Cargo => &registries.cargo,
            Ecosystem::Go => &registries.go,
        };
        let source = configured.as_deref().unwrap_or(manager.registry);
        let python = (ecosystem == Ecosystem::Python).then_some(project);
        let environment = python.and_then(virtual_environment);
        let hosts = manager.hosts_of(source);
        let access = NetworkAccess { hosts: Some(hosts.clone()), ..NetworkAccess::default() };
        let steps = match python {
            Some(project) => python_steps(project, args, (source, access), environment)?,
            None => manager_steps(project, args, manager, (registries, &access)),
        };
        let with_env = |step| with_settings(step, ecosystem, (source, args.scripts), registries);
        let steps = steps.into_iter().map(with_env).collect();
        Ok(Self { manager, source: source.to_owned(), hosts, environment, steps })
    }

    /// The manager's files in the project's folder.
    ///
    /// # Errors
    /// One of the files is there and cannot be read.
    pub(super) fn files(&self, project: &ProjectDir) -> Result<FileDigests, Fault> {
        self.manager.files.iter().map(|name| Ok((*name, project.digest(name)?))).collect()
    }

    /// What an approval is bound to, as one text: the project's folder, the command lines, the registry with its hosts,
    /// and the manager's files.
    pub(super) fn precondition(&self, project: &ProjectDir, files: &FileDigests) -> String {
        let commands: Vec<_> = self.steps.iter().map(CommandSpec::command_line).collect();
        let files: Vec<_> =
            files.iter().map(|(name, digest)| (name, digest.map(|it| it.to_string()))).collect();
        let bound = serde_json::json!([project.folder, commands, self.source, self.hosts, files]);
        format!("judged:{}", Digest::of(bound.to_string().as_bytes()))
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
    /// What has to be installed on the machine if its program is missing.
    pub(super) fn toolchain(&self) -> &'static str {
        if self.chosen_by.is_some() { self.name } else { self.ecosystem.toolchain() }
    }

    /// The hosts of a registry: the public one has some more than its address says, any other is one host.
    fn hosts_of(&self, source: &str) -> Vec<String> {
        let host = host(source);
        if self.hosts.contains(&host) {
            return self.hosts.iter().map(|&host| host.to_owned()).collect();
        }
        let sums = (self.ecosystem == Ecosystem::Go).then_some(GO_SUMS);
        [host].into_iter().chain(sums).map(str::to_owned).collect()
    }
}

/// The host of an address, with its port if it has one.
pub(super) fn host(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or_default();
    host.rsplit('@').next().unwrap_or_default()
}

/// A program with the variables of an installation. Settings by variables outrank those of the project.
fn with_settings(
    run: CommandSpec,
    ecosystem: Ecosystem,
    (source, scripts): (&str, bool),
    registries: &Registries,
) -> CommandSpec {
    // What is reached is reached through the proxy, addresses of this machine among them.
    let run = run.env([("NO_PROXY", ""), ("no_proxy", "")]);
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
        Ecosystem::Python => run.env([("PIP_INDEX_URL", source), ("PIP_NO_COLOR", "1")]),
        Ecosystem::Go => with_go_env(run, registries),
        Ecosystem::Cargo => run,
    }
}

/// The steps of a manager, by its command lines.
fn manager_steps(
    project: &ProjectDir,
    args: &Args,
    manager: &'static Manager,
    (registries, access): (&Registries, &NetworkAccess),
) -> Vec<CommandSpec> {
    // Newer versions of yarn do not know the option against scripts; there the variable counts.
    let lock = || project.text(&project.folder.join("yarn.lock"));
    let is_new_yarn = manager.name == "yarn" && lock().is_none_or(|lock| lock.contains("__metadata:"));
    let words = |word: &'static str| match word {
        "--ignore-scripts" if args.scripts || is_new_yarn => Vec::new(),
        "--dev" | "--save-dev" if !args.dev => Vec::new(),
        PACKAGES => args.packages.clone(),
        _ => vec![word.to_owned()],
    };
    let to_step = |line: &&'static str| {
        let config = Some(registries).filter(|_| manager.ecosystem == Ecosystem::Cargo).map(cargo_config);
        let run = project_command(manager.name).args(config.into_iter().flatten());
        CommandSpec { network: Some(access.clone()), ..run.args(line.split(' ').flat_map(words)) }
    };
    let lines = if args.packages.is_empty() { manager.install } else { manager.add };
    lines.iter().map(to_step).collect()
}

/// The steps of pip, which installs into the project's own environment.
fn python_steps(
    project: &ProjectDir,
    args: &Args,
    (source, access): (&str, NetworkAccess),
    environment: Option<&str>,
) -> Result<Vec<CommandSpec>, Fault> {
    let mut steps = Vec::new();
    if environment.is_none() {
        steps.push(project_command("python3").args(["-m", "venv", NEW_ENVIRONMENT]));
    }
    let python = in_jail(&project.folder.join(python_in(environment.unwrap_or(NEW_ENVIRONMENT))));
    let options = ["-m", "pip", "install", "--no-input", "--disable-pip-version-check"];
    // pip talks to plain addresses only where an option says that they can be trusted.
    let trusted = source.starts_with("http://").then(|| host(source));
    let trusted = trusted.into_iter().flat_map(|host| ["--trusted-host", host]);
    let pip = project_command(python.display().to_string()).args(options).args(trusted);
    let run = if !args.packages.is_empty() {
        pip.args(&args.packages)
    } else if project.has("requirements.txt") {
        pip.args(["-r", "requirements.txt"])
    } else if project.has("pyproject.toml") || project.has("setup.py") {
        pip.args(["-e", "."])
    } else {
        return Err(failure::invalid(
            "the project declares no packages: there is neither a requirements.txt nor a pyproject.toml; name packages",
        ));
    };
    steps.push(CommandSpec { network: Some(access), ..run });
    Ok(steps)
}

/// The environment of Python that a project has, if any.
pub(in crate::dev) fn virtual_environment(project: &ProjectDir) -> Option<&'static str> {
    [".venv", "venv"].into_iter().find(|name| project.has(&python_in(name)))
}

/// The Python of an environment.
pub(in crate::dev) fn python_in(environment: &str) -> String {
    format!("{environment}/bin/python")
}

/// The options by which cargo takes packages from a registry that replaces crates.io.
pub(in crate::dev) fn cargo_config(registries: &Registries) -> Vec<String> {
    let Some(registry) = &registries.cargo else { return Vec::new() };
    let address = format!("sparse+{}/", registry.trim_end_matches('/'));
    let settings = [
        r#"source.crates-io.replace-with="gantry""#.to_owned(),
        format!("source.gantry.registry={}", serde_json::Value::from(address)),
    ];
    settings.into_iter().flat_map(|setting| ["--config".to_owned(), setting]).collect()
}

/// A program with the variables that go needs in a jail.
pub(in crate::dev) fn with_go_env(run: CommandSpec, registries: &Registries) -> CommandSpec {
    let proxy = registries.go.as_deref().unwrap_or(GO_PROXY);
    let path = format!("{STORE}/go");
    run.env([("GOPATH", path.as_str()), ("GOPROXY", proxy), ("GOTELEMETRY", "off")])
}
