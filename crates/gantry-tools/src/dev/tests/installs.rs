//! What an installation asks, what it is bound to, and what is no package.

use super::*;

#[tokio::test]
async fn an_installation_always_asks_and_says_what_from_where() {
    let bench = Bench::new().put("package.json", "{}");
    let said = bench.asks(json!({ "packages": ["left-pad@1.3.0", "@types/node"] })).await;
    let expected = "it installs packages of others with npm from registry.npmjs.org into the workspace: left-pad@1.3.0, @types/node, \
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
        cargo: Some("http://127.0.0.1:6000/index".into()),
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
async fn an_installation_by_the_projects_own_python_says_so() {
    let bench = Bench::new().put("p/requirements.txt", "").put("p/.venv/bin/python", "#!/bin/sh\n");
    let said = bench.asks(json!({ "path": "p", "ecosystem": "python", "packages": ["x"] })).await;
    let expected = "with pip, by the project's own /workspace/p/.venv/bin/python, from pypi.org into p: x;";
    assert!(said.contains(expected), "{said}");
}

#[tokio::test]
async fn a_project_of_python_that_declares_no_packages_needs_their_names() {
    for (file, expected) in [
        ("a.py", "INVALID_ARGUMENTS: the project declares no packages"),
        ("setup.cfg", "INVALID_ARGUMENTS: the project declares no packages"),
        ("setup.py", "it installs"),
        ("pyproject.toml", "it installs"),
    ] {
        let bench = Bench::new().put(file, "");
        let said = bench.asks(json!({})).await;
        assert!(said.starts_with(expected), "{file}: {said}");
        assert!(bench.asks(json!({ "packages": ["x"] })).await.starts_with("it installs"));
    }
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
        ("python", "ruamel.yaml==0.18.*"),
        ("python", "uvicorn[standard,x]>=0.30,<1"),
        ("python", "typing_extensions~=4.1"),
        ("cargo", "serde"),
        ("cargo", "rand@0.9"),
        ("cargo", "tokio@=1.40.0"),
        ("go", "golang.org/x/text"),
        ("go", "github.com/google/uuid@v1.6.0"),
        ("node", "x@1.x||>=2.5.0"),
        ("python", "a!=1.0,>2"),
    ];
    for (ecosystem, package) in fine {
        let said = bench.asks(json!({ "ecosystem": ecosystem, "packages": [package] })).await;
        assert!(said.contains(package) && said.starts_with("it installs"), "{package}: {said}");
    }
    let unusual = [
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
        "a.whl[x]",
        "a;rm",
        "$(x)",
        "é",
        "file:x",
        "a@https://x",
        "@scope",
        "@scope/a/b",
        "@/a",
        "a//b",
        "a[b",
        "a@1@https://x",
        "github.com/../x",
        "x/y@v1",
    ];
    for ecosystem in ["node", "python", "cargo", "go"] {
        for package in unusual {
            let said = bench.asks(json!({ "ecosystem": ecosystem, "packages": [package] })).await;
            assert!(said.starts_with("INVALID_ARGUMENTS"), "{ecosystem} {package:?}: {said}");
        }
    }
    let said = bench.asks(json!({ "ecosystem": "node", "packages": vec!["a"; 51] })).await;
    assert!(said.contains("at most 50"), "{said}");
    let said = bench.asks(json!({ "ecosystem": "node", "packages": ["a".repeat(300)] })).await;
    assert!(said.starts_with("INVALID_ARGUMENTS"), "{said}");
}

/// The error of an installation with a yes to what there was before a change; none if the yes still holds.
async fn after_change(
    arguments: Value,
    bench: Bench,
    change: impl FnOnce(Bench) -> Bench,
) -> Option<CallFailure> {
    let permit = bench.approve(&arguments).await;
    let bench = change(bench);
    let now = bench.preflight(&arguments).await.unwrap();
    if now.precondition.as_deref() == permit.precondition() {
        return None;
    }
    Some(bench.install(&permit).await.unwrap_err())
}

#[tokio::test]
async fn a_yes_is_worth_nothing_after_the_project_changed() {
    for (project, files) in [
        ("package.json", &["package.json", "package-lock.json", ".npmrc", "yarn.lock", "pnpm-lock.yaml"][..]),
        ("requirements.txt", &["requirements.txt", "pyproject.toml", ".venv/bin/python"]),
        ("Cargo.toml", &["Cargo.toml", "Cargo.lock", ".cargo/config.toml"]),
        ("go.mod", &["go.mod", "go.sum", "go.work"]),
    ] {
        for file in files {
            let bench = Bench::new().put(&format!("p/{project}"), "");
            let change = |bench: Bench| bench.put(&format!("p/{file}"), "changed");
            let fault = after_change(json!({ "path": "p" }), bench, change).await.unwrap();
            assert_eq!(fault.error.code.as_str(), "APPROVAL_REQUIRED", "{file}");
            assert_eq!(fault.effect, EffectState::None);
        }
    }
    // A permit that was never looked at is worth nothing either.
    let bench = Bench::new().put("package.json", "{}");
    let (toolset, call) = (toolset(bench.tools.tools()), json!({}));
    let asks = Preflight { ask: Some("?".to_owned()), precondition: None };
    let Ok(Verdict::Ask(question)) = judged(&toolset, ("install_package", &call), |_| Ok(asks)) else {
        panic!()
    };
    let fault = bench.install(&yes(question)).await.unwrap_err();
    assert_eq!(fault.error.code.as_str(), "APPROVAL_REQUIRED");
}

#[tokio::test]
async fn a_yes_is_bound_to_the_registry() {
    let arguments = json!({ "packages": ["a"] });
    let asked = async |npm: &str| {
        let registries = Registries { npm: Some(npm.to_owned()), ..Registries::default() };
        let bench = Bench::with(registries).put("package.json", "{}");
        bench.preflight(&arguments).await.unwrap().precondition
    };
    assert_eq!(asked("https://a.example/").await, asked("https://a.example/").await);
    assert_ne!(asked("https://a.example/").await, asked("https://b.example/").await);
    assert_ne!(asked("https://a.example/").await, asked("https://a.example/other/").await);
}

#[tokio::test]
async fn files_outside_of_the_projects_folder_can_change() {
    let bench = Bench::new().put("package.json", "{}").put("p/package.json", "{}");
    let change = |bench: Bench| {
        bench.put("q/package.json", "{}").put("p/node_modules/x/package.json", "{}").put("p/src/a.js", "")
    };
    assert!(after_change(json!({ "path": "p" }), bench, change).await.is_none());
}
