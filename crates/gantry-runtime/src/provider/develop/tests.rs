//! The tools for developers as far as they run nothing: what they find in a project, what they would run, what they
//! refuse, what they ask. That they really run things is tested with the whole program, which the jail needs.

use super::act::{Format, Install, Test};
use super::ecosystem::Ecosystem;
use super::site::Site;
use super::*;
use crate::provider::workshop::{Quota, WorkshopOptions};
use crate::provider::workspace::Fenced;
use gantry_core::schema::Schema;
use gantry_core::tool::{Effect, OwnRule};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// A workspace with Gantry's data in it, beside a folder that nothing may touch.
struct Bench {
    dir: TempDir,
    develop: Develop,
}

impl Bench {
    fn new() -> Self {
        Self::with(Registries::default())
    }

    fn with(registries: Registries) -> Self {
        let dir = TempDir::new().unwrap();
        fs::create_dir_all(dir.path().join("ws/.gantry")).unwrap();
        fs::create_dir_all(dir.path().join("outside")).unwrap();
        let quota = Quota { memory: 1 << 30, cpu: Duration::from_mins(1), processes: 64, written: 1 << 30 };
        let workshop = Workshop::open(WorkshopOptions {
            workspace: dir.path().join("ws"),
            fenced: Fenced { hidden: vec![dir.path().join("ws/.gantry")], ..Fenced::default() },
            store: dir.path().join("ws/.gantry/store"),
            code: quota,
            builds: quota,
            network: false,
            private: Vec::new(),
            toolchains: Vec::new(),
        });
        let develop = Develop::new(Arc::new(workshop), DevelopOptions { registries });
        Self { dir, develop }
    }

    fn ws(&self, path: &str) -> PathBuf {
        self.dir.path().join("ws").join(path)
    }

    fn put(self, path: &str, content: &str) -> Self {
        fs::create_dir_all(self.ws(path).parent().unwrap()).unwrap();
        fs::write(self.ws(path), content).unwrap();
        self
    }

    fn site(&self, path: &str) -> Result<Site, Fault> {
        Site::find(self.develop.workshop.options(), path)
    }

    /// The question about an installation, or why it is refused.
    async fn asks(&self, arguments: Value) -> String {
        match self.develop.look("install_package", &arguments.to_string()).await {
            Ok(verdict) => {
                assert!(verdict.precondition.is_some(), "a yes is bound to something");
                verdict.ask.unwrap()
            }
            Err(refusal) => format!("{}: {}", refusal.error().code.as_str(), refusal.error().message),
        }
    }
}

fn argv(program: &str, args: &[String]) -> String {
    [program].into_iter().chain(args.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_tools_present_themselves_completely() {
    let bench = Bench::new();
    let tools = bench.develop.tools();
    let shown: Vec<_> =
        tools.iter().map(|tool| (tool.name.as_str(), tool.annotations.effect(), tool.own_rule)).collect();
    let expected = [
        ("run_tests", Effect::Write, OwnRule::Never),
        ("format_code", Effect::Write, OwnRule::Never),
        ("install_package", Effect::Write, OwnRule::Depends),
    ];
    assert_eq!(shown, expected);
    for tool in &tools {
        assert!(tool.title.is_some() && tool.description.len() > 80, "{}", tool.name);
        for schema in [&tool.input_schema, tool.output_schema.as_ref().unwrap()] {
            Schema::compile(schema).unwrap();
            assert_eq!(schema["additionalProperties"], false);
            for (name, property) in schema["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "{}: {name}", tool.name);
            }
        }
        // Everything may be left out.
        let input = Schema::compile(&tool.input_schema).unwrap();
        input.check(&json!({})).unwrap();
        Act::parse(&tool.name, "{}").unwrap();
    }
    assert!(bench.develop.has_tool("run_tests") && !bench.develop.has_tool("run_code"));
    assert_eq!(Act::parse("run_code", "{}").unwrap_err().code.as_str(), "TOOL_NOT_FOUND");
}

#[test]
fn a_project_is_known_by_its_files() {
    let check = |files: &[&str], expected: Result<&str, &str>| {
        let bench = files.iter().fold(Bench::new(), |bench, file| bench.put(&format!("p/{file}"), ""));
        fs::create_dir_all(bench.ws("p")).unwrap();
        let found = Ecosystem::detect(&bench.site("p").unwrap(), None);
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found.name(), expected, "{files:?}"),
            (Err(fault), Err(words)) => assert!(fault.error.message.contains(words), "{:?}", fault.error),
            (found, _) => panic!("{files:?}: {found:?}"),
        }
    };
    check(&["Cargo.toml", "src/lib.rs"], Ok("cargo"));
    check(&["package.json"], Ok("node"));
    check(&["pyproject.toml"], Ok("python"));
    check(&["requirements.txt", "setup.py"], Ok("python"));
    check(&["go.mod"], Ok("go"));
    check(&["tests/test_a.py"], Ok("python"));
    check(&["a.test.js"], Ok("node"));
    check(&[], Err("holds no project that is known"));
    check(&["main.rs", "notes.txt"], Err("holds no project that is known"));
    check(&["package.json", "Cargo.toml"], Err("holds several projects: cargo, node; choose one"));
    let bench = Bench::new().put("package.json", "").put("Cargo.toml", "");
    let chosen = Ecosystem::detect(&bench.site(".").unwrap(), Some(Ecosystem::Node)).unwrap();
    assert_eq!(chosen, Ecosystem::Node);
}

#[test]
fn only_the_workspace_is_looked_at() {
    let bench = Bench::new().put("a/b.txt", "x").put(".gantry/Cargo.toml", "");
    std::os::unix::fs::symlink(bench.dir.path().join("outside"), bench.ws("away")).unwrap();
    std::os::unix::fs::symlink(bench.ws(".gantry"), bench.ws("alias")).unwrap();
    std::os::unix::fs::symlink("a", bench.ws("link")).unwrap();
    fs::write(bench.dir.path().join("outside/package.json"), r#"{"scripts":{"test":"x"}}"#).unwrap();
    std::os::unix::fs::symlink(bench.dir.path().join("outside/package.json"), bench.ws("package.json"))
        .unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, bench.ws("pipe"), rustix::fs::Mode::RUSR).unwrap();
    let code = |path: &str| bench.site(path).unwrap_err().error.code.as_str();
    assert_eq!(code("../outside"), "INVALID_PATH");
    assert_eq!(code("/etc"), "INVALID_PATH");
    assert_eq!(code("away"), "INVALID_PATH");
    assert_eq!(code("a/../../outside"), "INVALID_PATH");
    assert_eq!(code(".gantry"), "PERMISSION_DENIED");
    assert_eq!(code("none"), "FILE_NOT_FOUND");
    assert_eq!(code("a/b.txt/c"), "FILE_NOT_FOUND");
    assert_eq!(code(""), "INVALID_ARGUMENTS");
    assert_eq!(code("pipe"), "INVALID_ARGUMENTS");
    assert!(matches!(code("alias"), "PERMISSION_DENIED" | "INVALID_PATH"));
    let site = bench.site(".").unwrap();
    assert!(site.has("package.json"), "the link itself is there");
    assert_eq!(site.text("package.json"), None);
    assert_eq!(site.read("pipe"), None);
    assert_eq!(bench.site("link").unwrap().folder, PathBuf::from("a"));
    let file = bench.site("./a/b.txt").unwrap();
    assert_eq!((file.folder, file.file), ("a".into(), Some("b.txt".into())));
}

#[tokio::test]
async fn an_installation_always_asks_and_says_what_from_where() {
    let bench = Bench::new().put("package.json", "{}");
    let said = bench.asks(json!({ "packages": ["left-pad@1.3.0", "@types/node"] })).await;
    let expected = "it installs packages of others with npm from registry.npmjs.org into .: left-pad@1.3.0, @types/node, \
                    without the packages' install scripts; what the project's own settings name, such as .pnpmfile.cjs \
                    or plugins of yarn, still runs in the sandbox; while it runs it can reach the network, and there only \
                    registry.npmjs.org";
    assert_eq!(said, expected);
    let said = bench.asks(json!({ "scripts": true })).await;
    assert!(
        said.contains("everything that the project declares, running the packages' own install scripts"),
        "{said}"
    );
    let said = bench.asks(json!({ "packages": ["serde"], "ecosystem": "cargo" })).await;
    assert!(said.contains("with cargo from index.crates.io"), "{said}");
    let registries =
        Registries { npm: Some("http://user:pass@127.0.0.1:4873/npm/".into()), ..Registries::default() };
    let bench = Bench::with(registries).put("p/package.json", "{}").put("p/pnpm-lock.yaml", "");
    let said = bench.asks(json!({ "path": "p", "packages": ["a"] })).await;
    assert!(said.contains("with pnpm from 127.0.0.1:4873 into p: a,"), "{said}");
}

#[tokio::test]
async fn an_installation_reaches_the_hosts_of_its_registry_only() {
    let check = async |registries: Registries, files: &[&str], ecosystem: &str, hosts: &str| {
        let bench = files.iter().fold(Bench::with(registries), |bench, file| bench.put(file, ""));
        let said = bench.asks(json!({ "packages": ["golang.org"], "ecosystem": ecosystem })).await;
        assert!(said.ends_with(&format!("it can reach the network, and there only {hosts}")), "{said}");
    };
    let public = Registries::default;
    check(public(), &[], "python", "pypi.org, files.pythonhosted.org").await;
    check(public(), &["pnpm-lock.yaml"], "node", "registry.npmjs.org").await;
    check(public(), &["yarn.lock"], "node", "registry.npmjs.org, registry.yarnpkg.com").await;
    check(public(), &[], "go", "proxy.golang.org, sum.golang.org").await;
    let bench = Bench::new();
    let said = bench.asks(json!({ "packages": ["serde"], "ecosystem": "cargo" })).await;
    assert!(said.ends_with("there only index.crates.io, static.crates.io, crates.io"), "{said}");
    assert!(said.contains("wrappers of the compiler, runs in the sandbox"), "{said}");
    let own = || Registries {
        pip: Some("http://u:p@127.0.0.1:5000/simple/".into()),
        npm: Some("https://npm.example.com/x/".into()),
        cargo: Some("sparse+http://127.0.0.1:6000/index".into()),
        go: Some("https://go.example.com".into()),
    };
    check(own(), &[], "python", "127.0.0.1:5000").await;
    check(own(), &["yarn.lock"], "node", "npm.example.com").await;
    check(own(), &[], "go", "go.example.com, sum.golang.org").await;
    let said = Bench::with(own()).asks(json!({ "packages": ["serde"], "ecosystem": "cargo" })).await;
    assert!(said.ends_with("there only 127.0.0.1:6000"), "{said}");
    // The public registry has its other hosts even where it is named.
    let named = Registries { pip: Some("https://pypi.org/simple".into()), ..Registries::default() };
    check(named, &[], "python", "pypi.org, files.pythonhosted.org").await;
}

#[tokio::test]
async fn an_installation_by_the_projects_own_python_says_so_and_is_bound_to_it() {
    let arguments = r#"{"path":"p","ecosystem":"python","packages":["x"]}"#;
    let bench = || {
        let bench = Bench::new()
            .put("p/requirements.txt", "-r more/a.txt\n")
            .put("p/more/a.txt", "--constraint=b.txt\n")
            .put("p/more/b.txt", "y==1\n")
            .put("p/env/bin/python3", "#!/bin/sh\n")
            .put("p/env/pyvenv.cfg", "home = /usr/bin\n");
        std::os::unix::fs::symlink("env", bench.ws("p/.venv")).unwrap();
        std::os::unix::fs::symlink("python3", bench.ws("p/env/bin/python")).unwrap();
        bench
    };
    let said = bench().asks(serde_json::from_str(arguments).unwrap()).await;
    assert!(said.contains("with pip, by the project's own .venv, from pypi.org into p: x;"), "{said}");
    let relink = |path: &str, target: &str| {
        let (path, target) = (path.to_owned(), target.to_owned());
        Box::new(move |bench: &Bench| {
            fs::remove_file(bench.ws(&path)).unwrap();
            std::os::unix::fs::symlink(&target, bench.ws(&path)).unwrap();
        }) as Box<dyn Fn(&Bench)>
    };
    let rewrite = |path: &str| {
        let path = path.to_owned();
        Box::new(move |bench: &Bench| fs::write(bench.ws(&path), "other").unwrap()) as Box<dyn Fn(&Bench)>
    };
    let changes = [
        rewrite("p/env/bin/python3"),
        rewrite("p/env/pyvenv.cfg"),
        rewrite("p/env/pip.conf"),
        rewrite("p/more/a.txt"),
        rewrite("p/more/b.txt"),
        relink("p/env/bin/python", "/usr/bin/python3"),
        relink("p/env/bin/python", "/workspace/p/env/bin/python3"),
        relink("p/.venv", "./env"),
    ];
    for (number, change) in changes.iter().enumerate() {
        let bench = bench();
        let verdict = bench.develop.look("install_package", arguments).await.unwrap();
        change(&bench);
        let Ok(Act::Install(call)) = Act::parse("install_package", arguments) else { panic!() };
        let fault = install::run(&bench.develop, call, verdict.precondition.as_deref()).await.unwrap_err();
        assert_eq!(fault.error.code.as_str(), "APPROVAL_REQUIRED", "{number}");
    }
    // By these ways it comes to files that nobody looked at.
    for target in
        ["/store/python", "/tmp/python", "/proc/self/cwd/x", "/usr/../workspace/x", "../../../../x", "python"]
    {
        let bench = bench();
        relink("p/env/bin/python", target)(&bench);
        let said = bench.asks(serde_json::from_str(arguments).unwrap()).await;
        assert!(said.contains("p/.venv/bin/python is too large or not a plain file"), "{target}: {said}");
    }
    let bench = bench().put("p/requirements.txt", "-r /store/x.txt\n");
    let said = bench.asks(serde_json::from_str(arguments).unwrap()).await;
    assert!(said.contains("include /store/x.txt, which is no path in the workspace"), "{said}");
}

#[tokio::test]
async fn a_file_that_cannot_be_looked_at_is_not_taken_for_none() {
    let says = async |bench: Bench| bench.asks(json!({ "path": "p", "ecosystem": "node" })).await;
    let expected = "p/.npmrc is too large or not a plain file; installing needs a plain file";
    let bench = || Bench::new().put("p/package.json", "{}");
    assert!(says(bench()).await.starts_with("it installs"));

    let large = bench().put("p/.npmrc", "");
    fs::File::options().write(true).open(large.ws("p/.npmrc")).unwrap().set_len((16 << 20) + 1).unwrap();
    let outside = bench();
    fs::write(outside.dir.path().join("outside/npmrc"), "").unwrap();
    std::os::unix::fs::symlink("../../outside/npmrc", outside.ws("p/.npmrc")).unwrap();
    let folder = bench().put("p/.npmrc/x", "");
    let pipe = bench();
    rustix::fs::mkfifoat(rustix::fs::CWD, pipe.ws("p/.npmrc"), rustix::fs::Mode::RUSR).unwrap();
    for bench in [large, outside, folder, pipe] {
        let said = says(bench).await;
        assert!(said.starts_with("EXECUTION_ERROR") && said.contains(expected), "{said}");
    }
    // A link within the workspace is as good as the file.
    let inside = bench().put("npmrc", "");
    std::os::unix::fs::symlink("../npmrc", inside.ws("p/.npmrc")).unwrap();
    assert!(says(inside).await.starts_with("it installs"));
}

#[test]
fn packages_that_say_too_much_about_themselves_are_left_out() {
    let manifest = |name: &str, filler: usize| {
        json!({ "name": name, "version": "1.0.0", "filler": "x".repeat(filler) }).to_string()
    };
    let bench = Bench::new()
        .put("node_modules/a/package.json", &manifest("a", 0))
        .put("node_modules/@s/b/package.json", &manifest("@s/b", 1 << 10))
        .put("node_modules/c/package.json", &manifest("c", 1 << 20));
    assert_eq!(install::packages_of(&bench.site(".").unwrap(), Ecosystem::Node), ["@s/b", "a"]);
}

#[tokio::test]
async fn a_crash_after_a_program_has_run_does_not_say_that_nothing_happened() {
    let before = site::off_thread(|| panic!("on purpose")).await.map(|(): ()| ()).unwrap_err();
    let after = site::after_run(|| panic!("on purpose")).await.map(|(): ()| ()).unwrap_err();
    assert_eq!(
        (before.effect, after.effect),
        (gantry_core::EffectState::None, gantry_core::EffectState::Done)
    );
    assert!(after.error.message.contains("the program has run"), "{}", after.error.message);
}

#[tokio::test]
async fn only_names_of_the_registry_are_packages() {
    let bench =
        Bench::new().put("package.json", "{}").put("Cargo.toml", "").put("go.mod", "").put("setup.py", "");
    let fine = [
        ("node", "left-pad"),
        ("node", "JSONStream@1.0.3"),
        ("node", "@scope/name@^1.2.0"),
        ("node", "react@>=18.0.0"),
        ("node", "x@latest"),
        ("python", "requests"),
        ("python", "ruamel.yaml==0.18.*"),
        ("python", "uvicorn[standard,x]>=0.30,<1"),
        ("python", "typing_extensions~=4.1"),
        ("cargo", "serde"),
        ("cargo", "rand@0.9"),
        ("cargo", "tokio@=1.40.0"),
        ("go", "golang.org/x/text"),
        ("go", "github.com/google/uuid@v1.6.0"),
    ];
    for (ecosystem, package) in fine {
        let said = bench.asks(json!({ "ecosystem": ecosystem, "packages": [package] })).await;
        assert!(said.contains(package) && said.starts_with("it installs"), "{package}: {said}");
    }
    let odd = [
        "",
        "-g",
        "--registry=http://evil",
        "./local",
        "../up",
        "/etc",
        "~/x",
        "a b",
        "a\nb",
        "http://x/y.tgz",
        "git+https://x/y",
        "git@github.com:a/b",
        "user/repo",
        "a.tgz",
        "a@x.tar.gz",
        "a@file:../b",
        "a@npm:b",
        "a@../b",
        "a@.",
        "pkg @ https://x",
        "a.whl",
        "a;rm",
        "$(x)",
        "é",
        "file:x",
        "a@https://x",
    ];
    for ecosystem in ["node", "python", "cargo", "go"] {
        for package in odd {
            let said = bench.asks(json!({ "ecosystem": ecosystem, "packages": [package] })).await;
            assert!(said.starts_with("INVALID_ARGUMENTS"), "{ecosystem} {package:?}: {said}");
        }
    }
    let said = bench.asks(json!({ "ecosystem": "node", "packages": vec!["a"; 51] })).await;
    assert!(said.contains("at most 50"), "{said}");
    let said = bench.asks(json!({ "ecosystem": "node", "packages": ["a".repeat(300)] })).await;
    assert!(said.starts_with("INVALID_ARGUMENTS"), "{said}");
}

#[tokio::test]
async fn a_yes_is_worth_nothing_after_the_project_changed() {
    for file in ["p/package.json", "p/package-lock.json", "p/.npmrc", ".npmrc", ".cargo/config.toml"] {
        let bench = Bench::new().put("p/package.json", "{}");
        let arguments = r#"{"path":"p"}"#;
        let verdict = bench.develop.look("install_package", arguments).await.unwrap();
        let bench = bench.put(file, "{\"dependencies\":{\"evil\":\"1\"}}");
        let Ok(Act::Install(call)) = Act::parse("install_package", arguments) else { panic!() };
        let fault = install::run(&bench.develop, call, verdict.precondition.as_deref()).await.unwrap_err();
        assert_eq!(fault.error.code.as_str(), "APPROVAL_REQUIRED", "{file}");
        assert_eq!(fault.effect, gantry_core::EffectState::None);
    }
    // A permit that was never looked at is worth nothing either.
    let bench = Bench::new().put("package.json", "{}");
    let Ok(Act::Install(call)) = Act::parse("install_package", "{}") else { panic!() };
    let fault = install::run(&bench.develop, call, None).await.unwrap_err();
    assert_eq!(fault.error.code.as_str(), "APPROVAL_REQUIRED");
}

#[test]
fn installations_are_planned_for_each_manager() {
    let registries = Registries {
        pip: Some("http://127.0.0.1:5000/simple/".into()),
        cargo: Some("http://127.0.0.1:6000/index".into()),
        ..Registries::default()
    };
    let check = |files: &[&str], arguments: Value, expected: &[&str]| {
        let bench = files.iter().fold(Bench::new(), |bench, file| bench.put(file, ""));
        let install: Install = serde_json::from_value(arguments).unwrap();
        let plan = install::plan_of(&bench.site(".").unwrap(), &install, &registries).unwrap();
        let steps: Vec<String> = plan.iter().map(|(program, args)| argv(program, args)).collect();
        assert_eq!(steps, expected);
    };
    check(&["package.json"], json!({}), &["npm install --ignore-scripts"]);
    let packages = json!({ "packages": ["a", "b@1"], "dev": true });
    check(&["package.json"], packages.clone(), &["npm install --ignore-scripts --save-dev a b@1"]);
    check(&["package.json"], json!({ "packages": ["a"], "scripts": true }), &["npm install a"]);
    check(
        &["package.json", "pnpm-lock.yaml"],
        packages.clone(),
        &["pnpm add --ignore-scripts --save-dev a b@1"],
    );
    check(&["package.json", "yarn.lock"], packages, &["yarn add --ignore-scripts --dev a b@1"]);
    let pip = "-m pip install --no-input --disable-pip-version-check --trusted-host 127.0.0.1:5000";
    check(
        &["requirements.txt"],
        json!({}),
        &["python3 -m venv .venv", &format!("/workspace/.venv/bin/python {pip} -r requirements.txt")],
    );
    check(
        &["pyproject.toml", "venv/bin/python"],
        json!({}),
        &[&format!("/workspace/venv/bin/python {pip} -e .")],
    );
    check(
        &["setup.cfg", ".venv/bin/python"],
        json!({ "packages": ["x==1"] }),
        &[&format!("/workspace/.venv/bin/python {pip} x==1")],
    );
    let cargo = r#"cargo --config source.crates-io.replace-with="gantry" --config source.gantry.registry="sparse+http://127.0.0.1:6000/index/""#;
    check(
        &["Cargo.toml"],
        json!({ "packages": ["serde@1"], "dev": true }),
        &[&format!("{cargo} add --dev serde@1"), &format!("{cargo} fetch")],
    );
    check(
        &["go.mod"],
        json!({ "packages": ["golang.org/x/text"] }),
        &["go get golang.org/x/text", "go mod download"],
    );
}

#[test]
fn tests_are_planned_for_each_runner() {
    let check = |files: &[(&str, &str)], arguments: Value, expected: Result<&str, &str>| {
        let bench = files.iter().fold(Bench::new(), |bench, (file, content)| bench.put(file, content));
        let test: Test = serde_json::from_value(arguments).unwrap();
        let plan = suite::plan_of(&bench.site(&test.path).unwrap(), &test, &Registries::default());
        match (plan, expected) {
            (Ok((program, args)), Ok(expected)) => assert_eq!(argv(&program, &args), expected),
            (Err(fault), Err(words)) => assert!(fault.error.message.contains(words), "{:?}", fault.error),
            (plan, _) => panic!("{plan:?}"),
        }
    };
    let cargo = [("Cargo.toml", "")];
    check(&cargo, json!({}), Ok("cargo test --offline --no-fail-fast"));
    let chosen = json!({ "filter": "adds", "args": ["--lib", "--", "--nocapture"] });
    check(&cargo, chosen, Ok("cargo test --offline --no-fail-fast adds --lib -- --nocapture"));
    check(&cargo, json!({ "filter": "--list" }), Err("starts with a dash"));
    check(&cargo, json!({ "filter": "" }), Err("filter is empty"));
    check(&cargo, json!({ "args": vec!["x"; 51] }), Err("at most 50 args"));
    check(&cargo, json!({ "path": "Cargo.toml" }), Err("is a file; name the folder"));
    let node = |script: &str| json!({ "scripts": { "test": script } }).to_string();
    let package = |script: &str| [("package.json", node(script))];
    for (script, filter, expected) in [
        ("node --test test/", "", Ok("node --test-reporter=tap --test test/")),
        ("node --test", "a b", Ok("node --test-reporter=tap --test-name-pattern=a b --test")),
        ("jest", "a", Ok("npm test --silent -- --json --testNamePattern=a")),
        ("vitest", "", Ok("npm test --silent -- --run --reporter=json")),
        ("mocha", "a", Ok("npm test --silent -- --reporter=json --grep=a")),
        ("make test", "", Ok("npm test --silent")),
        ("make test", "a", Err("none whose tests can be chosen by name")),
    ] {
        let [(name, content)] = package(script);
        let arguments = if filter.is_empty() { json!({}) } else { json!({ "filter": filter }) };
        check(&[(name, &content)], arguments, expected);
    }
    let python = [("requirements.txt", "")];
    check(&python, json!({ "filter": "x" }), Ok("python3 /run/gantry/run_tests.py x"));
    let with_environment = [("requirements.txt", ""), (".venv/bin/python", "")];
    check(
        &with_environment,
        json!({ "args": ["-q"] }),
        Ok("/workspace/.venv/bin/python /run/gantry/run_tests.py  -q"),
    );
    check(&[("go.mod", "")], json!({ "filter": "TestA" }), Ok("go test -json -run=TestA ./..."));
}

#[test]
fn a_formatter_is_chosen_by_the_file_or_the_project() {
    let check = |files: &[&str], path: &str, expected: Result<(&str, &str), &str>| {
        let bench = files.iter().fold(Bench::new(), |bench, file| bench.put(file, ""));
        let format: Format = serde_json::from_value(json!({ "path": path })).unwrap();
        let chosen =
            format::choice(&bench.site(path).unwrap(), format.ecosystem, bench.develop.workshop.toolchains());
        match (chosen, expected) {
            (Ok((fix, check)), Ok(expected)) => assert_eq!((fix.as_str(), check.as_str()), expected),
            (Err(fault), Err(words)) => assert!(fault.error.message.contains(words), "{:?}", fault.error),
            (chosen, _) => panic!("{chosen:?}"),
        }
    };
    check(&["Cargo.toml"], ".", Ok(("cargo fmt", "cargo fmt -- --check")));
    check(
        &["Cargo.toml", "src/a.rs"],
        "src/a.rs",
        Ok(("rustfmt --edition=2024 -- a.rs", "rustfmt --check --edition=2024 -- a.rs")),
    );
    let prettier = "/workspace/node_modules/.bin/prettier";
    check(
        &["package.json", "node_modules/.bin/prettier", "src/a.ts"],
        "src/a.ts",
        Ok((
            &format!("{prettier} --write --log-level=warn -- a.ts"),
            &format!("{prettier} --list-different -- a.ts"),
        )),
    );
    let ruff = "/workspace/.venv/bin/ruff";
    check(
        &["pyproject.toml", ".venv/bin/ruff", ".venv/bin/black"],
        ".",
        Ok((&format!("{ruff} format --no-cache -- ."), &format!("{ruff} format --no-cache --diff -- ."))),
    );
    check(&["notes.xyz"], "notes.xyz", Err("no formatter is known for notes.xyz"));
    check(&["a.txt"], ".", Err("holds no project"));
}
