//! What would be run, for each kind of project.

use super::*;

#[test]
fn installations_are_planned_for_each_manager() {
    let registries = Registries {
        pip: Some("http://127.0.0.1:5000/simple/".into()),
        cargo: Some("http://127.0.0.1:6000/index".into()),
        ..Registries::default()
    };
    let check = |files: &[&str], arguments: Value, expected: &[&str]| {
        let bench = files.iter().fold(Bench::new(), |bench, file| bench.put(file, ""));
        let args = serde_json::from_value(arguments).unwrap();
        let steps = install_package::steps_of(&bench.project(".").unwrap(), &args, &registries).unwrap();
        let commands: Vec<_> = steps.iter().map(|step| step.command_line().join(" ")).collect();
        assert_eq!(commands, expected);
        // An address without TLS is trusted by itself, and no other one.
        let trusted = steps.iter().find_map(|step| step.env.get("PIP_TRUSTED_HOST")).map(String::as_str);
        let is_pip = expected.iter().any(|command| command.contains("-m pip"));
        assert_eq!(trusted, is_pip.then_some("127.0.0.1:5000"));
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
    let pip = "-m pip install";
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
        let path = arguments["path"].as_str().unwrap_or(".");
        let project = bench.project(path).unwrap();
        let has_pytest = bench.ws(".venv/pytest").exists();
        let args = serde_json::from_value(arguments.clone()).unwrap();
        match (run_tests::plan_of(&project, &args, has_pytest), expected) {
            (Ok(command), Ok(expected)) => assert_eq!(command.join(" "), expected),
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
        ("node --test test/", "", Ok("node --test-reporter=spec --test test/")),
        ("node --test", "a b", Ok("node --test-reporter=spec --test-name-pattern=a b --test")),
        ("jest", "a", Ok("npm test --silent -- --testNamePattern=a")),
        ("vitest", "", Ok("npm test --silent -- --run")),
        ("mocha", "a", Ok("npm test --silent -- --grep=a")),
        ("make test", "", Ok("npm test --silent")),
        ("node test.js", "", Ok("npm test --silent")),
        ("tsc && node --test", "", Ok("npm test --silent")),
        ("echo \"Error: no test specified\" && exit 1", "", Ok("node --test-reporter=spec --test")),
        ("", "", Ok("node --test-reporter=spec --test")),
        ("make test", "a", Err("none whose tests can be chosen by name")),
    ] {
        let [(name, content)] = package(script);
        let arguments = if filter.is_empty() { json!({}) } else { json!({ "filter": filter }) };
        check(&[(name, &content)], arguments, expected);
    }
    check(&[("package.json", "not json")], json!({}), Ok("node --test-reporter=spec --test"));
    let python = [("requirements.txt", "")];
    check(&python, json!({ "filter": "x" }), Ok("python3 -m unittest discover -k x"));
    let beside = [("requirements.txt", ""), ("tests/test_a.py", "")];
    check(&beside, json!({}), Ok("python3 -m unittest discover -s tests"));
    check(&beside, json!({ "args": ["tests.test_a"] }), Ok("python3 -m unittest tests.test_a"));
    let packaged = [("tests/test_a.py", ""), ("tests/__init__.py", "")];
    check(&packaged, json!({}), Ok("python3 -m unittest discover"));
    let with_pytest = [("requirements.txt", ""), (".venv/bin/python", ""), (".venv/pytest", "")];
    let python = "/workspace/.venv/bin/python";
    check(&with_pytest, json!({ "args": ["-q"], "filter": "x" }), Ok(&format!("{python} -m pytest -k x -q")));
    check(&[("go.mod", "")], json!({ "filter": "TestA" }), Ok("go test -v -run=TestA ./..."));
}

#[test]
fn a_formatter_is_chosen_by_the_file_or_the_project() {
    let check = |files: &[&str], path: &str, expected: Result<(&str, &str), &str>| {
        let bench = files.iter().fold(Bench::new(), |bench, file| bench.put(file, ""));
        let project = bench.project(path).unwrap();
        let commands = format_code::commands_of(&project, None, &bench.context.runner.toolchains);
        match (commands, expected) {
            (Ok([fix, check]), Ok(expected)) => assert_eq!((fix.as_str(), check.as_str()), expected),
            (Err(fault), Err(words)) => assert!(fault.error.message.contains(words), "{:?}", fault.error),
            (chosen, _) => panic!("{chosen:?}"),
        }
    };
    // What has the name of a program of Rust among the packages is not taken for it.
    check(&["Cargo.toml", ".venv/bin/cargo"], ".", Ok(("cargo fmt", "cargo fmt -- --check")));
    check(
        &["Cargo.toml", "node_modules/.bin/rustfmt", "src/a.rs"],
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
    let bench = Bench::new().put("a.rs", "");
    let toolchains = &bench.context.runner.toolchains;
    let chosen = format_code::commands_of(&bench.project(".").unwrap(), Some(Ecosystem::Cargo), toolchains);
    let error = chosen.unwrap_err().error;
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("INVALID_ARGUMENTS", "the workspace has no Cargo.toml; name a file of Rust instead")
    );
}
