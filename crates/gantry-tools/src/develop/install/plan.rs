//! How packages are installed: by which program, in which steps, from where.

use super::names;
use crate::command::runner::in_jail;
use crate::develop::act::Install;
use crate::develop::ecosystem::Ecosystem;
use crate::develop::site::{MANIFEST_BYTES, Print, Site};
use crate::develop::suite::{environment, python_in};
use crate::develop::{Registries, fault};
use crate::own;
use gantry_core::Fault;
use gantry_core::digest::Digest;
use gantry_sandbox::jail::STORE;
use std::collections::BTreeMap;

/// Where the environment of a project of Python is made, if it has none.
const ENVIRONMENT: &str = ".venv";
/// The log of what modules come to. Go compares with it what any proxy gives; it has no packages.
const GO_SUMS: &str = "sum.golang.org";

/// A package manager.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Manager {
    pub(super) name: &'static str,
    ecosystem: Ecosystem,
    /// The file by which a project chooses it; the last manager of an ecosystem needs none.
    chosen_by: Option<&'static str>,
    /// Manifests, lock files and settings in the project's folder: a yes is bound to their content.
    files: &'static [&'static str],
    /// The public registry, and the hosts that it consists of.
    registry: &'static str,
    hosts: &'static [&'static str],
    /// Arguments to add packages; none adds them by those that install.
    add: &'static [&'static str],
    /// Arguments to install what the project declares.
    install: &'static [&'static str],
    /// Whether that is also needed after packages were added.
    installs_added: bool,
    /// The options for development packages, and against install scripts.
    dev: Option<&'static str>,
    no_scripts: Option<&'static str>,
    /// What has to be installed on the machine if the program is missing.
    pub(super) toolchain: &'static str,
}

const MANAGERS: [Manager; 6] = [
    Manager {
        name: "pnpm",
        chosen_by: Some("pnpm-lock.yaml"),
        files: &["package.json", "pnpm-lock.yaml", "pnpm-workspace.yaml", ".npmrc", ".pnpmfile.cjs"],
        add: &["add"],
        toolchain: "pnpm",
        ..NPM
    },
    Manager {
        name: "yarn",
        chosen_by: Some("yarn.lock"),
        files: &["package.json", "yarn.lock", ".yarnrc", ".yarnrc.yml", ".npmrc"],
        hosts: &["registry.npmjs.org", "registry.yarnpkg.com"],
        add: &["add"],
        dev: Some("--dev"),
        toolchain: "yarn",
        ..NPM
    },
    NPM,
    Manager {
        name: "pip",
        ecosystem: Ecosystem::Python,
        files: &["requirements.txt", "pyproject.toml", "setup.py", "setup.cfg"],
        registry: "https://pypi.org/simple/",
        hosts: &["pypi.org", "files.pythonhosted.org"],
        add: &[],
        install: &[],
        dev: None,
        no_scripts: None,
        toolchain: "Python 3 with its venv module",
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
        add: &["add"],
        install: &["fetch"],
        installs_added: true,
        dev: Some("--dev"),
        no_scripts: None,
        toolchain: "Rust (rustup)",
        ..NPM
    },
    Manager {
        name: "go",
        ecosystem: Ecosystem::Go,
        files: &["go.mod", "go.sum", "go.work", "go.work.sum"],
        registry: GO_PROXY,
        hosts: &["proxy.golang.org", GO_SUMS],
        add: &["get"],
        install: &["mod", "download"],
        installs_added: true,
        dev: None,
        no_scripts: None,
        toolchain: "Go",
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
    add: &["install"],
    install: &["install"],
    installs_added: false,
    dev: Some("--save-dev"),
    no_scripts: Some("--ignore-scripts"),
    toolchain: "Node.js with npm",
};
const GO_PROXY: &str = "https://proxy.golang.org";

/// How to install what a call asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) ecosystem: Ecosystem,
    pub(super) manager: &'static Manager,
    /// The address that packages come from.
    pub(super) source: String,
    /// The hosts that can be reached for it.
    pub(super) hosts: Vec<String>,
    /// The project's own environment of Python, if it is what runs.
    pub(super) environment: Option<&'static str>,
    pub(super) steps: Vec<Step>,
}

/// One program that has to be run for it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) program: String,
    pub(super) args: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) network: bool,
}

impl Step {
    pub(super) fn command(&self) -> Vec<String> {
        [&self.program].into_iter().chain(&self.args).cloned().collect()
    }
}

impl Plan {
    /// The digests of the manager's files in the project's folder; none for a file that is not there.
    ///
    /// # Errors
    /// One of the files is there and cannot be read.
    pub(super) fn files(&self, site: &Site) -> Result<Vec<(&'static str, Option<Print>)>, Fault> {
        let digest = |name: &&'static str| Ok((*name, site.print(&site.folder.join(name), MANIFEST_BYTES)?));
        self.manager.files.iter().map(digest).collect()
    }

    /// What a yes is bound to, as one text: the project's folder, the command lines, the registry with its hosts, and the manager's files.
    ///
    /// # Errors
    /// One of the files is there and cannot be read.
    pub(super) fn precondition(&self, site: &Site) -> Result<String, Fault> {
        let commands: Vec<_> = self.steps.iter().map(Step::command).collect();
        let folder = site.folder.as_os_str().as_encoded_bytes();
        let bound = serde_json::json!([folder, commands, self.source, self.hosts, self.files(site)?]);
        Ok(format!("judged:{}", Digest::of(bound.to_string().as_bytes())))
    }

    /// What to do about a step that failed.
    pub(super) fn advice(&self, step: &Step) -> String {
        if !step.network {
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

/// How to install what a call asks for. Reads the project's files.
pub(super) fn of(site: &Site, install: &Install, registries: &Registries) -> Result<Plan, Fault> {
    if site.file.is_some() {
        let path = own::shown(&install.path);
        return Err(fault::invalid(format!("{path} is a file; name the folder of a project")));
    }
    let ecosystem = Ecosystem::detect(site, install.ecosystem)?;
    names::check(ecosystem, &install.packages)?;
    let is_chosen = |manager: &&Manager| {
        manager.ecosystem == ecosystem && manager.chosen_by.is_none_or(|name| site.has(name))
    };
    let manager = MANAGERS.iter().find(is_chosen);
    let manager = manager.ok_or_else(|| fault::failed("no package manager is known for the project"))?;
    let configured = match ecosystem {
        Ecosystem::Node => &registries.npm,
        Ecosystem::Python => &registries.pip,
        Ecosystem::Cargo => &registries.cargo,
        Ecosystem::Go => &registries.go,
    };
    let source = configured.clone().unwrap_or_else(|| manager.registry.to_owned());
    let environment = (ecosystem == Ecosystem::Python).then(|| environment(site)).flatten();
    let steps = match ecosystem {
        Ecosystem::Python => python(site, install, &source, environment)?,
        Ecosystem::Node | Ecosystem::Cargo | Ecosystem::Go => steps(site, install, manager, registries),
    };
    let hosts = hosts(&source, manager);
    let env = env(ecosystem, &source, install.scripts, registries);
    let steps = steps.into_iter().map(|step| Step { env: env.clone(), ..step }).collect();
    Ok(Plan { ecosystem, manager, source, hosts, environment, steps })
}

/// The hosts of a registry: the public one has some more than its address says, any other is one host.
fn hosts(source: &str, manager: &Manager) -> Vec<String> {
    let host = host(source);
    if manager.hosts.contains(&host.as_str()) {
        return manager.hosts.iter().map(|&host| host.to_owned()).collect();
    }
    [host].into_iter().chain((manager.ecosystem == Ecosystem::Go).then(|| GO_SUMS.to_owned())).collect()
}

/// The variables of a step. Settings by variables outrank those of the project.
fn env(
    ecosystem: Ecosystem,
    source: &str,
    scripts: bool,
    registries: &Registries,
) -> BTreeMap<String, String> {
    // What is reached is reached through the proxy, addresses of this machine among them.
    let common =
        [("NO_PROXY", ""), ("no_proxy", ""), ("NO_COLOR", "1"), ("CI", "1"), ("CARGO_TERM_COLOR", "never")];
    let own: &[(&str, &str)] = match ecosystem {
        Ecosystem::Node => &[
            ("NPM_CONFIG_REGISTRY", source),
            ("NPM_CONFIG_IGNORE_SCRIPTS", if scripts { "false" } else { "true" }),
            ("NPM_CONFIG_AUDIT", "false"),
            ("NPM_CONFIG_FUND", "false"),
            ("NPM_CONFIG_UPDATE_NOTIFIER", "false"),
            // Newer versions of yarn have names of their own for some.
            ("YARN_NPM_REGISTRY_SERVER", source),
            ("YARN_ENABLE_SCRIPTS", if scripts { "true" } else { "false" }),
            ("YARN_ENABLE_TELEMETRY", "0"),
        ],
        Ecosystem::Python => &[("PIP_INDEX_URL", source), ("PIP_NO_COLOR", "1")],
        Ecosystem::Cargo | Ecosystem::Go => &[],
    };
    let go = if ecosystem == Ecosystem::Go { go_env(registries) } else { BTreeMap::new() };
    let plain = common.iter().chain(own).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    plain.chain(go).collect()
}

fn step<T: Into<String>>(program: &str, args: impl IntoIterator<Item = T>) -> Step {
    let args = args.into_iter().map(Into::into).collect();
    Step { program: program.to_owned(), args, env: BTreeMap::new(), network: true }
}

/// The steps of a manager that adds packages and installs what is declared by commands of its own.
fn steps(site: &Site, install: &Install, manager: &Manager, registries: &Registries) -> Vec<Step> {
    let config = if manager.ecosystem == Ecosystem::Cargo { cargo_config(registries) } else { Vec::new() };
    // Newer versions of yarn do not know the option; there the variable counts.
    let is_new_yarn =
        manager.name == "yarn" && site.text("yarn.lock").is_none_or(|lock| lock.contains("__metadata:"));
    let no_scripts = manager.no_scripts.filter(|_| !install.scripts && !is_new_yarn);
    let one = |args: &[&str], dev: Option<&str>, packages: &[String]| {
        let args = args.iter().copied().chain(no_scripts).chain(dev).map(str::to_owned);
        step(manager.name, config.iter().cloned().chain(args).chain(packages.iter().cloned()))
    };
    let mut steps = Vec::new();
    if !install.packages.is_empty() {
        steps.push(one(manager.add, manager.dev.filter(|_| install.dev), &install.packages));
    }
    if steps.is_empty() || manager.installs_added {
        steps.push(one(manager.install, None, &[]));
    }
    steps
}

/// The steps of pip, which installs into the project's own environment.
fn python(
    site: &Site,
    install: &Install,
    source: &str,
    environment: Option<&str>,
) -> Result<Vec<Step>, Fault> {
    let mut steps = Vec::new();
    if environment.is_none() {
        steps.push(Step { network: false, ..step("python3", ["-m", "venv", ENVIRONMENT]) });
    }
    let mut args = vec!["-m", "pip", "install", "--no-input", "--disable-pip-version-check"];
    // pip talks to plain addresses only where an option says that they can be trusted.
    if let Some(trusted) = source.strip_prefix("http://").and_then(|rest| rest.split('/').next()) {
        args.extend(["--trusted-host", trusted]);
    }
    if !install.packages.is_empty() {
        args.extend(install.packages.iter().map(String::as_str));
    } else if site.has("requirements.txt") {
        args.extend(["-r", "requirements.txt"]);
    } else if site.has("pyproject.toml") || site.has("setup.py") {
        args.extend(["-e", "."]);
    } else {
        return Err(fault::invalid(
            "the project declares no packages: there is neither a requirements.txt nor a pyproject.toml; name packages",
        ));
    }
    let python = in_jail(&site.folder.join(python_in(environment.unwrap_or(ENVIRONMENT))));
    steps.push(step(&python.display().to_string(), args));
    Ok(steps)
}

/// The options by which cargo takes packages from a registry that replaces crates.io.
pub(in crate::develop) fn cargo_config(registries: &Registries) -> Vec<String> {
    let Some(registry) = &registries.cargo else { return Vec::new() };
    let address = format!("sparse+{}/", registry.trim_end_matches('/'));
    let settings = [
        r#"source.crates-io.replace-with="gantry""#.to_owned(),
        format!("source.gantry.registry={}", serde_json::Value::from(address)),
    ];
    settings.into_iter().flat_map(|setting| ["--config".to_owned(), setting]).collect()
}

/// The variables that go needs in a jail.
pub(in crate::develop) fn go_env(registries: &Registries) -> BTreeMap<String, String> {
    let proxy = registries.go.as_deref().unwrap_or(GO_PROXY);
    let path = format!("{STORE}/go");
    let env =
        [("GOPATH", path.as_str()), ("GOPROXY", proxy), ("GOTOOLCHAIN", "local"), ("GOTELEMETRY", "off")];
    env.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// The host of an address, with its port if it has one.
pub(super) fn host(address: &str) -> String {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or_default();
    host.rsplit('@').next().unwrap_or_default().to_owned()
}
