//! Which arguments are paths and programs, and what follows from where they lie.

use super::*;
use std::os::unix::fs::symlink;

struct Folder(tempfile::TempDir);

impl Folder {
    /// A folder with these files; the folder `w` in it is the workspace and that of the configuration.
    fn with(files: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for file in [&["w/any", "w/node_modules/any"], files].concat() {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "text").unwrap();
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        real_path(self.0.path()).join(name)
    }

    /// The arguments as they are resolved, and what the server is started from. `{W}` stands for the workspace.
    fn launch(
        &self,
        command: &str,
        args: &[&str],
        more: impl FnOnce(&mut ServerOptions),
    ) -> (Vec<String>, Launch) {
        let (workspace, outside) = (self.path("w"), self.path("own"));
        let filled = |text: &str| text.replace("{W}", workspace.to_str().unwrap());
        let mut options = ServerOptions {
            command: Some(filled(command)),
            args: args.iter().map(|arg| Secret::from(filled(arg))).collect(),
            ..ServerOptions::default()
        };
        more(&mut options);
        let site = LaunchSite {
            folder: &workspace,
            own_folder: Ok(outside),
            workspaces: std::slice::from_ref(&workspace),
            inherited: &[("PATH", "/usr/bin:/bin".into())],
        };
        let launch = Launch::resolve(&mut options, &site);
        let prefix = format!("{}", workspace.display());
        let args = options.args.iter().map(|arg| arg.expose().replace(&prefix, "{W}"));
        (args.collect(), launch)
    }

    /// What cannot be changed, below the workspace.
    #[track_caller]
    fn code(&self, command: &str, args: &[&str]) -> Vec<String> {
        let (_, launch) = self.launch(command, args, |_| {});
        assert_eq!(launch.refusal, None);
        launch
            .code
            .iter()
            .map(|path| path.strip_prefix(self.path("w")).unwrap().display().to_string())
            .filter(|path| path != MODULES)
            .collect()
    }
}

#[test]
fn relative_paths_start_at_the_folder_of_the_configuration() {
    let folder = Folder::with(&["w/m/s.js", "w/data.db", "w/stdio", "w/pkg"]);
    let args = |command: &str, args: &[&str]| folder.launch(command, args, |_| {}).0;
    assert_eq!(
        args("node", &["m/s.js", "--db=data.db", "--to=./new", "--x=y", ".", "..", "--", "nothing.js", "m"]),
        ["{W}/m/s.js", "--db={W}/data.db", "--to={W}/new", "--x=y", "{W}", "{W}/..", "--", "nothing.js", "m"]
    );
    assert_eq!(args("x", &["stdio", "-data.db", "", "/abs"]), ["{W}/stdio", "-data.db", "", "/abs"]);
    assert_eq!(args("npx", &["-y", "pkg", "./data.db"]), ["-y", "pkg", "{W}/data.db"], "a name is no file");
    assert_eq!(args("docker", &["run", "pkg"]), ["run", "pkg"]);
    assert_eq!(args("sh", &["-c", "stdio", "data.db"]), ["-c", "stdio", "{W}/data.db"], "nor is a text");
    assert_eq!(args("sh", &["-c", "./m/s.js -x"]), ["-c", "./m/s.js -x"], "it is not looked for in a text");
    let (args, launch) =
        folder.launch("./m/s.js", &["./x.db"], |options| options.cwd = Some(folder.path("own")));
    assert_eq!((args, launch.refusal), (vec!["./x.db".to_owned()], None), "a written folder wins");
}

#[test]
fn a_package_is_what_lies_around_a_program() {
    let folder =
        Folder::with(&["w/m/dist/s.js", "w/m/package.json", "w/p/s.py", "w/v/pyvenv.cfg", "w/v/bin/x"]);
    assert_eq!(folder.code("node", &["m/dist/s.js"]), ["m"]);
    assert_eq!(folder.code("python3.12", &["-u", "./p/s.py"]), ["p"]);
    assert_eq!(folder.code("v/bin/x", &[]), ["v"]);
    assert_eq!(folder.code("node", &["--require=./m/dist/s.js", "/usr/x.js"]), ["m"]);
    assert_eq!(folder.code("npx", &["--package", "./m", "name"]), ["m"]);
    assert_eq!(folder.code("npx", &["-y", "name", "./m"]), [""; 0], "a folder that is given to a program");
    assert_eq!(folder.code("env", &["A=1", "sh", "-ec", "exec {W}/v/bin/x"]), ["v"]);
    assert_eq!(folder.code("bash", &["-e", "./m/dist/s.js"]), ["m"], "the option takes no text here");
    assert_eq!(folder.code("uvx", &["-c", "/cons.txt", "--from", "./m", "name"]), ["m"], "nor here");
    assert_eq!(
        folder.code("op", &["run", "--", "python", "./p"]),
        ["p"],
        "an unknown program runs another one"
    );
    assert_eq!(folder.code("x", &["./any"]), [""; 0]);
    let (_, launch) = folder.launch("x", &["./any"], |_| {});
    assert_eq!(launch.data, [folder.path("w/any")]);
    // What lies above is there or must not appear.
    fs::write(folder.path("w/package.json"), "{}").unwrap();
    let (_, launch) = folder.launch("python3", &["p/s.py"], |_| {});
    assert!(launch.code.contains(&folder.path("w/package.json")), "{launch:?}");
    assert!(launch.must_be_missing.contains(&folder.path("w/uv.toml")), "{launch:?}");
}

#[test]
fn modules_that_node_could_find_later_are_there_or_the_server_is_refused() {
    let folder = Folder::with(&["w/m/s.js", "w/m/s.py", "w/m/bare", "w/m/n"]);
    fs::write(folder.path("w/m/n"), "#!/usr/bin/env -S node --trace\n").unwrap();
    fs::remove_dir_all(folder.path("w/node_modules")).unwrap();
    let cases: [(&str, &[&str]); 4] =
        [("node", &["m/s.js"]), ("x", &["./m/s.js"]), ("node", &["./m/bare"]), ("./m/n", &[])];
    for (command, args) in cases {
        let (_, launch) = folder.launch(command, args, |_| {});
        let refusal = launch.refusal.as_deref().unwrap_or_default();
        assert!(refusal.contains("w/node_modules, which agents could make"), "{command}: {refusal}");
        assert!(launch.code.contains(&folder.path("w/m")), "it stays protected: {launch:?}");
    }
    assert_eq!(folder.code("python3", &["m/s.py"]), ["m"]);
    fs::create_dir(folder.path("w/node_modules")).unwrap();
    assert_eq!(folder.code("node", &["m/s.js"]), ["m"]);
}

#[test]
fn ordinary_servers_are_neither_refused_nor_sealed() {
    let folder = Folder::with(&["w/data.db", "w/build/index.js", "w/srv/pyproject.toml", "w/go/any"]);
    for (command, args, code) in [
        ("npx", &["-y", "@modelcontextprotocol/server-filesystem", "."][..], &[][..]),
        ("uvx", &["mcp-server-git", "--repository", "."], &[]),
        ("mcp-server-git", &["--repository", "./go", "."], &[]),
        ("mcp-server-sqlite", &["--db-path", "./data.db"], &[]),
        ("docker", &["run", "-i", "--rm", "-v", ".:/w", "node:18", "node", "data.db"], &[]),
        ("python", &["-m", "server", "--db", "./data.db", "."], &[]),
        ("node", &["build/index.js", "--port", "3", "./data.db"], &["build"]),
        ("uv", &["--directory", "./srv", "run", "serve", "."], &["srv"]),
    ] {
        assert_eq!(folder.code(command, args), code, "{command}");
    }
}

#[test]
fn links_count_where_they_stand_and_where_they_lead() {
    let folder = Folder::with(&["w/real/s.py", "out/s.py"]);
    symlink("../out", folder.path("w/away")).unwrap();
    symlink(folder.path("w/real"), folder.path("back")).unwrap();
    symlink("s.py", folder.path("w/real/alias.py")).unwrap();
    assert_eq!(folder.code(folder.path("back/alias.py").to_str().unwrap(), &[]), ["real"]);
    let refusal = folder.launch("python3", &["away/s.py"], |_| {}).1.refusal.unwrap();
    assert!(refusal.contains("w/away, beside files that agents write"), "{refusal}");
    symlink("loop", folder.path("w/loop")).unwrap();
    let refusal = folder.launch("./loop", &[], |_| {}).1.refusal.unwrap();
    assert!(refusal.contains("too many links"), "{refusal}");
}

#[test]
fn variables_and_first_lines_lead_to_code() {
    let folder = Folder::with(&["w/lib/a.py", "w/bin/tool", "w/py/python"]);
    fs::remove_dir_all(folder.path("w/node_modules")).unwrap();
    let set = |name: &'static str, value: &str| {
        let value = value.replace("{W}", folder.path("w").to_str().unwrap());
        folder.launch("x", &[], |options| drop(options.env.insert(name.into(), value.into()))).1
    };
    assert_eq!(set("PYTHONPATH", "/usr/lib:{W}/lib").code, [folder.path("w/lib")]);
    assert_eq!(set("NODE_OPTIONS", "--require {W}/lib/a.py").code, [folder.path("w/lib")]);
    assert_eq!(set("npm_config_userconfig", "{W}/lib/a.py").code, [folder.path("w/lib")]);
    assert_eq!(set("MEMORY_FILE", "{W}/any").code, [""; 0].map(PathBuf::from));
    assert_eq!(set("PLUGIN", "{W}/lib/a.py").code, [folder.path("w/lib")]);
    assert_eq!(set("XDG_CACHE_HOME", "{W}/lib").code, [folder.path("w/lib")]);
    let path = set("PATH", "{W}/bin:{W}/none:bin");
    assert_eq!((path.code, path.must_be_missing), (vec![folder.path("w/bin")], vec![folder.path("w/none")]));
    let torn = folder.path("my work");
    fs::create_dir(&torn).unwrap();
    let mut options = ServerOptions {
        command: Some("sh".into()),
        args: vec!["-c".into(), format!("exec '{}/x'", torn.display()).into()],
        ..ServerOptions::default()
    };
    let site = LaunchSite {
        folder: &torn,
        own_folder: Ok("/own".into()),
        workspaces: std::slice::from_ref(&torn),
        inherited: &[],
    };
    let refusal = Launch::resolve(&mut options, &site).refusal.unwrap();
    assert!(refusal.contains("my work; write each path as an argument of its own"), "{refusal}");
    assert!(set("HOME", "{W}").refusal.unwrap().starts_with("its variable HOME has "));
    let script = folder.path("out.py");
    fs::write(&script, format!("#!{}\n", folder.path("w/py/python").display())).unwrap();
    assert_eq!(folder.code(script.to_str().unwrap(), &[]), ["py"]);
}

#[test]
fn what_is_missing_and_would_run_must_stay_missing() {
    let folder = Folder::with(&[]);
    for (command, args) in [("./m/s", &[][..]), ("node", &["./m/s"]), ("x", &["--plugin=./m/s.js"])] {
        let (_, launch) = folder.launch(command, args, |_| {});
        let missing = launch.must_be_missing.iter().any(|path| path.starts_with(folder.path("w/m")));
        assert!(missing && launch.refusal.is_none(), "{command}: {launch:?}");
    }
    assert_eq!(folder.launch("x", &["--db=./new.db"], |_| {}).1.must_be_missing, [""; 0].map(PathBuf::from));
}

#[tokio::test]
async fn what_appeared_is_found_before_a_start() {
    let folder = Folder::with(&[]);
    let launch =
        Launch { must_be_missing: vec![folder.path("w/late")], has_own_folder: true, ..Launch::default() };
    launch.prepare(Some(&folder.path("own/s"))).await.unwrap();
    assert!(folder.path("own/s").is_dir());
    symlink("nowhere", folder.path("w/late")).unwrap();
    let error = launch.prepare(None).await.unwrap_err();
    assert!(error.contains("w/late was not there"), "{error}");
}
