//! How packages are installed: by which program, in which steps, from where.

use super::names;
use crate::develop::act::Install;
use crate::develop::ecosystem::Ecosystem;
use crate::develop::site::Site;
use crate::develop::suite::{environment, python_in};
use crate::develop::{Registries, fault};
use crate::own;
use crate::workshop::in_jail;
use gantry_core::Fault;
use gantry_sandbox::jail::{Ran, STORE};
use regex::Regex;
use std::collections::BTreeMap;
use std::sync::LazyLock;

const NPM: &str = "https://registry.npmjs.org/";
const PYPI: &str = "https://pypi.org/simple/";
const CRATES: &str = "https://index.crates.io/";
const GO: &str = "https://proxy.golang.org";
/// Where each of them has its packages, and what goes with them.
const NPM_HOSTS: [&str; 1] = ["registry.npmjs.org"];
const YARN_HOSTS: [&str; 2] = ["registry.npmjs.org", "registry.yarnpkg.com"];
const PYPI_HOSTS: [&str; 2] = ["pypi.org", "files.pythonhosted.org"];
const CRATES_HOSTS: [&str; 3] = ["index.crates.io", "static.crates.io", "crates.io"];
const GO_HOSTS: [&str; 2] = ["proxy.golang.org", GO_SUMS];
/// The log of what modules come to. Go compares with it what any proxy gives; it has no packages.
const GO_SUMS: &str = "sum.golang.org";
/// How programs tell that the proxy refused a host: in its own words, or by its status as they put it.
const REFUSAL: &str = r#"(?x)
    not\ among\ the\ hosts\ that\ this\ job\ may\ reach
    | \bE403\b | _403\b | \b403\ (?:Client\ Error:\ )?\(?Forbidden\b | \bForbidden\ -\ 403\b
    | \b(?i:response|status|error|code|got)(?:\ code)?:?\ 403\b
    | ":\ Forbidden\b"#;
/// Where the environment of a project of Python is made, if it has none.
const ENVIRONMENT: &str = ".venv";

/// How to install what a call asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) ecosystem: Ecosystem,
    /// The program that does it.
    pub(super) manager: &'static str,
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
    fn new<T: Into<String>>(program: &str, args: impl IntoIterator<Item = T>) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        // Whatever is reached is reached through the proxy, addresses of this machine among them.
        let env = [("NO_COLOR", "1"), ("CI", "1"), ("NO_PROXY", ""), ("no_proxy", "")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        Self { program: program.to_owned(), args, env, network: true }
    }

    fn env(mut self, variables: &[(&str, &str)]) -> Self {
        self.env.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        self
    }

    pub(super) fn command(&self) -> Vec<String> {
        [&self.program].into_iter().chain(&self.args).cloned().collect()
    }
}

impl Plan {
    /// What has to be installed if its program is missing.
    pub(super) fn install(&self) -> &'static str {
        match (self.ecosystem, self.manager) {
            (_, "pnpm") => "pnpm",
            (_, "yarn") => "yarn",
            (Ecosystem::Node, _) => "Node.js with npm",
            (Ecosystem::Python, _) => "Python 3 with its venv module",
            (Ecosystem::Cargo, _) => "Rust (rustup)",
            (Ecosystem::Go, _) => "Go",
        }
    }

    /// What to do about a failure whose reason is plain.
    pub(super) fn advice(&self, step: &Step, ran: &Ran) -> String {
        let said = format!("{}{}", ran.stdout.text(), ran.stderr.text());
        if said.contains("ensurepip") && step.args.iter().any(|arg| arg == "venv") {
            return "; this Python cannot make environments: ask a person to install its venv module (python3-venv)"
                .to_owned();
        }
        if step.network && is_refusal(&said) {
            return format!(
                "; it seems to have asked for a host that it may not reach: packages come from {} only, whatever the \
                 project's settings, lock files and requirements name. Take other addresses out of them, or ask a \
                 person to name the registry in code.registries (and in web.allowPrivate if it is not a public one)",
                self.hosts.join(", ")
            );
        }
        String::new()
    }
}

/// Whether a program was refused a host. Not every one says more of it than its status.
fn is_refusal(said: &str) -> bool {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(REFUSAL).ok());
    FORM.as_ref().is_some_and(|form| form.is_match(said))
}

/// The hosts of a registry: the public one has some more than its address says, any other is one host.
fn hosts(source: &str, public: &[&str]) -> Vec<String> {
    let host = host(source);
    if public.contains(&host.as_str()) {
        public.iter().map(|&host| host.to_owned()).collect()
    } else {
        vec![host]
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
    match ecosystem {
        Ecosystem::Node => Ok(node(site, install, registries)),
        Ecosystem::Python => python(site, install, registries),
        Ecosystem::Cargo => Ok(cargo(install, registries)),
        Ecosystem::Go => Ok(go(install, registries)),
    }
}

fn node(site: &Site, install: &Install, registries: &Registries) -> Plan {
    let registry = registries.npm.as_deref().unwrap_or(NPM);
    let scripts = if install.scripts { "false" } else { "true" };
    // Settings by variables outrank those of the project, and yarn has other names for some.
    let env = [
        ("NPM_CONFIG_REGISTRY", registry),
        ("NPM_CONFIG_IGNORE_SCRIPTS", scripts),
        ("NPM_CONFIG_AUDIT", "false"),
        ("NPM_CONFIG_FUND", "false"),
        ("NPM_CONFIG_UPDATE_NOTIFIER", "false"),
        ("YARN_NPM_REGISTRY_SERVER", registry),
        ("YARN_ENABLE_SCRIPTS", if install.scripts { "true" } else { "false" }),
        ("YARN_ENABLE_TELEMETRY", "0"),
    ];
    let ignore = (!install.scripts).then_some("--ignore-scripts");
    let none = install.packages.is_empty();
    let dev = install.dev && !none;
    let (manager, mut args): (_, Vec<&str>) = if site.has("pnpm-lock.yaml") {
        ("pnpm", if none { vec!["install"] } else { vec!["add"] })
    } else if site.has("yarn.lock") {
        ("yarn", if none { vec!["install"] } else { vec!["add"] })
    } else {
        ("npm", vec!["install"])
    };
    if manager == "yarn" {
        let is_classic = site.text("yarn.lock").is_some_and(|lock| !lock.contains("__metadata:"));
        args.extend(ignore.filter(|_| is_classic));
        args.extend(dev.then_some("--dev"));
    } else {
        args.extend(ignore);
        args.extend(dev.then_some("--save-dev"));
    }
    let packages = install.packages.iter().map(String::as_str);
    let step = Step::new(manager, args.into_iter().chain(packages)).env(&env);
    let public = if manager == "yarn" { &YARN_HOSTS[..] } else { &NPM_HOSTS[..] };
    Plan {
        ecosystem: Ecosystem::Node,
        manager,
        source: registry.to_owned(),
        hosts: hosts(registry, public),
        environment: None,
        steps: vec![step],
    }
}

fn python(site: &Site, install: &Install, registries: &Registries) -> Result<Plan, Fault> {
    let registry = registries.pip.as_deref().unwrap_or(PYPI);
    let mut steps = Vec::new();
    let environment = environment(site);
    if environment.is_none() {
        let make = Step::new("python3", ["-m", "venv", ENVIRONMENT]);
        steps.push(Step { network: false, ..make });
    }
    let python = site.folder.join(python_in(environment.unwrap_or(ENVIRONMENT)));
    let python = in_jail(&python).display().to_string();
    let mut args: Vec<String> =
        ["-m", "pip", "install", "--no-input", "--disable-pip-version-check"].map(str::to_owned).into();
    // pip talks to plain addresses only where it is told that they can be trusted.
    if let Some(trusted) = registry.strip_prefix("http://").and_then(|rest| rest.split('/').next()) {
        args.extend(["--trusted-host".to_owned(), trusted.to_owned()]);
    }
    let declared = if site.has("requirements.txt") {
        &["-r", "requirements.txt"][..]
    } else if site.has("pyproject.toml") || site.has("setup.py") {
        &["-e", "."][..]
    } else {
        &[][..]
    };
    match (install.packages.is_empty(), declared) {
        (true, []) => {
            return Err(fault::invalid(
                "the project declares no packages: there is neither a requirements.txt nor a pyproject.toml; name \
                 packages",
            ));
        }
        (true, declared) => args.extend(declared.iter().map(|&arg| arg.to_owned())),
        (false, _) => args.extend(install.packages.iter().cloned()),
    }
    steps.push(Step::new(&python, args).env(&[("PIP_INDEX_URL", registry), ("PIP_NO_COLOR", "1")]));
    Ok(Plan {
        ecosystem: Ecosystem::Python,
        manager: "pip",
        source: registry.to_owned(),
        hosts: hosts(registry, &PYPI_HOSTS),
        environment,
        steps,
    })
}

fn cargo(install: &Install, registries: &Registries) -> Plan {
    let cargo = |args: Vec<&str>| {
        let config = cargo_config(registries).into_iter();
        Step::new("cargo", config.chain(args.into_iter().map(str::to_owned)))
            .env(&[("CARGO_TERM_COLOR", "never")])
    };
    let mut steps = Vec::new();
    if !install.packages.is_empty() {
        let dev = install.dev.then_some("--dev");
        let packages = install.packages.iter().map(String::as_str);
        steps.push(cargo(["add"].into_iter().chain(dev).chain(packages).collect()));
    }
    steps.push(cargo(vec!["fetch"]));
    let registry = registries.cargo.as_deref().unwrap_or(CRATES);
    Plan {
        ecosystem: Ecosystem::Cargo,
        manager: "cargo",
        source: registry.to_owned(),
        hosts: hosts(registry, &CRATES_HOSTS),
        environment: None,
        steps,
    }
}

/// The options by which cargo takes packages from a registry that stands in for crates.io.
pub(in crate::develop) fn cargo_config(registries: &Registries) -> Vec<String> {
    let Some(registry) = &registries.cargo else { return Vec::new() };
    let address = format!("sparse+{}/", registry.trim_end_matches('/'));
    let settings = [
        r#"source.crates-io.replace-with="gantry""#.to_owned(),
        format!("source.gantry.registry={}", serde_json::Value::from(address)),
    ];
    settings.into_iter().flat_map(|setting| ["--config".to_owned(), setting]).collect()
}

fn go(install: &Install, registries: &Registries) -> Plan {
    let env = go_env(registries);
    let step = |args: Vec<&str>| {
        let mut step = Step::new("go", args);
        step.env.extend(env.clone());
        step
    };
    let mut steps = Vec::new();
    if !install.packages.is_empty() {
        steps.push(step(["get"].into_iter().chain(install.packages.iter().map(String::as_str)).collect()));
    }
    steps.push(step(vec!["mod", "download"]));
    let registry = registries.go.as_deref().unwrap_or(GO);
    let mut hosts = hosts(registry, &GO_HOSTS);
    if !hosts.iter().any(|host| host == GO_SUMS) {
        hosts.push(GO_SUMS.to_owned());
    }
    Plan {
        ecosystem: Ecosystem::Go,
        manager: "go",
        source: registry.to_owned(),
        hosts,
        environment: None,
        steps,
    }
}

/// The variables that go needs in a jail.
pub(in crate::develop) fn go_env(registries: &Registries) -> BTreeMap<String, String> {
    let proxy = registries.go.as_deref().unwrap_or(GO);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_status_of_403_is_a_refusal() {
        for said in [
            "npm error code E403\nnpm error 403 403 Forbidden - GET http://127.0.0.1:1/x",
            "ERR_PNPM_FETCH_403  GET https://x/y: Forbidden - 403",
            "YN0035: Response Code: 403 (Forbidden)",
            r#"error An unexpected error occurred: "https://x/y: Request failed \"403 Forbidden\"""#,
            "OSError('Tunnel connection failed: 403 Forbidden')",
            "HTTPError: 403 Client Error: Forbidden for url: https://x/y",
            "ERROR: HTTP error 403 while getting https://x/y",
            "[56] Failure when receiving data (CONNECT tunnel failed, response 403)",
            "failed to get successful HTTP response from `https://x/y` (1.2.3.4), got 403",
            r#"go: x@v1: Get "https://x/y": Forbidden"#,
            "x.example is not among the hosts that this job may reach",
        ] {
            assert!(is_refusal(said), "{said}");
        }
        for said in [
            "added 403 packages in 3s",
            "left-pad@4.0.3 1403 kB at 403 kB/s",
            "error: could not compile `x` (line 403)",
            "Downloading x-1.403.whl (403 kB)",
            "npm error code E404",
            "sha512-E4031x403",
        ] {
            assert!(!is_refusal(said), "{said}");
        }
    }
}
