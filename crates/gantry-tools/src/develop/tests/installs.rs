//! What an installation asks, what it is bound to, and what is no package.

use super::*;

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
    // Nor after one of its members did, wherever in their workspace the call was for.
    let json = r#"{"workspaces":["m/*"]}"#;
    let toml = "[workspace]\nmembers = [\"m/*\"]\n";
    for (files, path, changed) in [
        (["package.json", "m/a/package.json"], ".", "m/a/package.json"),
        (["package.json", "m/a/package.json"], ".", "m/new/package.json"),
        (["package.json", "m/a/package.json"], "m/a", "m/b/package.json"),
        (["pnpm-workspace.yaml", "m/a/package.json"], "m/a", "m/b/package.json"),
        (["Cargo.toml", "m/a/Cargo.toml"], "m/a", "m/b/Cargo.toml"),
        (["go.work", "m/a/go.mod"], "m/a", "go.work"),
        (["go.work", "m/a/go.mod"], "m/a", "m/b/go.mod"),
        (["requirements.txt", "m/a/setup.cfg"], ".", "m/a/setup.cfg"),
    ] {
        let content = |file: &str| match file {
            "package.json" => json,
            "Cargo.toml" => toml,
            "requirements.txt" => "-e ./m/a\n",
            _ => "",
        };
        let bench = files.iter().fold(Bench::new(), |bench, file| bench.put(file, content(file)));
        let arguments = json!({ "path": path }).to_string();
        let verdict = bench.develop.look("install_package", &arguments).await.unwrap();
        let bench = bench.put(changed, "changed");
        let Ok(Act::Install(call)) = Act::parse("install_package", &arguments) else { panic!() };
        let fault = install::run(&bench.develop, call, verdict.precondition.as_deref()).await.unwrap_err();
        assert_eq!(fault.error.code.as_str(), "APPROVAL_REQUIRED", "{files:?} {changed}");
    }
    // A permit that was never looked at is worth nothing either.
    let bench = Bench::new().put("package.json", "{}");
    let Ok(Act::Install(call)) = Act::parse("install_package", "{}") else { panic!() };
    let fault = install::run(&bench.develop, call, None).await.unwrap_err();
    assert_eq!(fault.error.code.as_str(), "APPROVAL_REQUIRED");
}

#[tokio::test]
async fn what_is_no_member_can_change() {
    let arguments = r#"{"path":"p"}"#;
    let bench =
        Bench::new().put("package.json", "{}").put("p/package.json", "{}").put("q/package.json", "{}");
    let before = bench.develop.look("install_package", arguments).await.unwrap();
    let bench = bench
        .put("q/package.json", "changed")
        .put("p/node_modules/x/package.json", "{}")
        .put(".gantry/store/package.json", "{}")
        .put("p/src/a.js", "");
    let after = bench.develop.look("install_package", arguments).await.unwrap();
    assert_eq!(before.precondition, after.precondition);
}
