//! Servers run outside of the sandbox, so no code of an agent becomes a part of them: what an agent tries, for each kind of
//! program. Each test also shows that the planted code would have run.

use super::{Rig, kill};
use gantry_testkit::faulty::Faulty;
use gantry_testkit::npm_registry::npm_registry;
use gantry_testkit::{TestDir, TestServer, with};
use http::Method;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The package that the registries of these tests have.
const PACKAGE: &str = "gantry-probe";

/// A Gantry whose home is the workspace, with a server `s` that an agent attacks, and a folder outside of it.
struct Scene {
    rig: Rig,
    outside: TempDir,
}

/// Where planted code leaves its mark.
fn mark(outside: &TempDir) -> PathBuf {
    outside.path().join("planted-code-ran")
}

/// Code that leaves the mark.
fn planted(outside: &TempDir, language: &str) -> String {
    let mark = mark(outside).display().to_string();
    match language {
        "node" => format!("require('fs').writeFileSync('{mark}', '')\n"),
        "python" => format!("open('{mark}', 'w').close()\n"),
        _ => format!("#!/bin/sh\ntouch {mark}\n"),
    }
}

fn executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is the test's");
}

/// An entry for a program that becomes `$FAULTY`.
fn entry(command: &str, args: &[&str]) -> Value {
    json!({ "command": command, "args": args, "env": { "FAULTY": Faulty::program() }, "startupTimeoutMs": 60_000 })
}

impl Scene {
    fn new(files: &[(&str, &str)], entry: &Value) -> Self {
        Self::at(TestDir::new(), tempfile::tempdir().expect("a folder"), files, entry)
    }

    fn at(home: TestDir, outside: TempDir, files: &[(&str, &str)], entry: &Value) -> Self {
        for (name, content) in files {
            home.write(name, content);
            if content.starts_with("#!") {
                executable(&home.path().join(name));
            }
        }
        let rig = Rig::at(home.config(&json!({ "mcpServers": { "s": entry } }).to_string()));
        Self { rig, outside }
    }

    fn pid(&self) -> String {
        self.rig.result("s__pid", &json!({}))
    }

    /// Makes a call that a person approves.
    fn approved(&self, tool: &str, arguments: &Value) {
        let call = json!({ "tool": tool, "arguments": arguments, "approve": true });
        self.rig.admin(Method::POST, "/api/v1/calls", &call);
    }

    /// Does everything that an agent can to have this in a file.
    fn plant(&self, path: &str, content: &str) {
        self.approved("write_file", &json!({ "path": path, "content": content, "createDirs": true }));
        let code = "f=/workspace/$FILE; d=$(dirname \"$f\"); t=/workspace/${FILE%%/*}
            write() { mkdir -p \"$d\"; printf %s \"$CODE\" > \"$f\"; chmod 755 \"$f\"; }
            write || { rm -f \"$f\"; write; } || { mv \"$d\" \"$d.old\"; write; } || { mv \"$t\" \"$t.old\"; write; }
            ln -sf /workspace/elsewhere \"$f\"; :";
        let env = json!({ "FILE": path, "CODE": content });
        self.rig.call("run_code", &json!({ "language": "bash", "code": code, "env": env, "timeout": 50 }));
    }

    /// Tries to move what holds a file out of the way.
    fn move_away(&self, path: &str) {
        self.approved("move_file", &json!({ "from": path.split('/').next(), "to": "moved" }));
    }

    /// Has Gantry start the server anew, then Gantry itself, and looks at what ran.
    #[track_caller]
    fn stays_the_same(self) -> Self {
        let pid = self.pid();
        kill(&pid);
        self.rig.replaced("s", &pid);
        assert!(!mark(&self.outside).exists(), "planted code ran");
        let Self { rig: Rig { server, home }, outside } = self;
        assert_eq!(server.stop().0, 0);
        let scene = Self { rig: Rig::at(home), outside };
        scene.rig.ready("s");
        assert_eq!(scene.rig.result("s__echo", &json!({ "text": "x" })), "x");
        assert!(!mark(&scene.outside).exists(), "planted code ran");
        scene
    }

    /// Waits until the server is not started because of something that has appeared.
    #[track_caller]
    fn refused(&self, name: &str) {
        let why = format!("{name} was not there when the configuration was read");
        self.rig.server.eventually(&why, || self.rig.status("s")["lastError"].to_string().contains(&why));
    }

    /// What a person writes into these files runs, so it was not for another reason that the agent's code did not.
    #[track_caller]
    fn would_have_run(&self, path: &str, code: &str) {
        self.rig.home.write(path, code);
        executable(&self.rig.home.path().join(path));
        kill(&self.pid());
        self.rig.server.eventually("the code runs", || mark(&self.outside).exists());
    }
}

/// The server survives what is planted under these names; the first of them would have run.
#[track_caller]
fn withstands(files: &[(&str, &str)], entry: &Value, names: &[&str], language: &str) {
    let scene = Scene::new(files, entry);
    scene.rig.ready("s");
    let code = planted(&scene.outside, language);
    for name in names {
        scene.plant(name, &code);
        scene.move_away(name);
    }
    let scene = scene.stays_the_same();
    scene.would_have_run(names.first().expect("a name"), &code);
}

const NODE: &str = "require('./helper').run()\n";
const NODE_HELPER: &str = "exports.run = () => require('child_process').spawn(process.env.FAULTY, [], { stdio: 'inherit' })\n\
                           .on('exit', () => process.exit(1))\n";
/// What a program for Node needs where agents write: a folder that no agent can make.
const MODULES: (&str, &str) = ("node_modules/any.js", "");
const PYTHON: &str = "import helper\nhelper.run()\n";
const PYTHON_HELPER: &str = "import os\ndef run():\n    os.execv(os.environ['FAULTY'], ['faulty'])\n";

#[test]
fn ups_20_code_of_an_agent_does_not_run_in_a_node_script_or_a_module_beside_it() {
    let files = [("mcp/package.json", "{}"), ("mcp/server.js", NODE), ("mcp/lib/helper.js", NODE_HELPER)];
    let files = [files[0], ("mcp/server.js", "require('./lib/helper').run()\n"), files[2], MODULES];
    let names = ["mcp/lib/helper.js", "mcp/server.js", "mcp/package.json", "mcp/node_modules/fs/index.js"];
    withstands(&files, &entry("node", &["mcp/server.js"]), &names, "node");
}

#[test]
fn ups_20_code_of_an_agent_does_not_run_in_a_python_script_or_a_module_beside_it() {
    let files = [("mcp/server.py", PYTHON), ("mcp/helper.py", PYTHON_HELPER)];
    let names = ["mcp/helper.py", "mcp/os.py", "mcp/server.py", "mcp/helper/__init__.py"];
    withstands(&files, &entry("python3", &["./mcp/server.py"]), &names, "python");
}

#[test]
fn ups_20_code_of_an_agent_does_not_run_in_a_shell_script_or_a_file_it_reads() {
    let files =
        [("mcp/run.sh", ". \"$(dirname \"$0\")/settings\"\nexec \"$FAULTY\"\n"), ("mcp/settings", "A=1\n")];
    withstands(&files, &entry("sh", &["mcp/run.sh"]), &["mcp/settings", "mcp/run.sh"], "shell");
}

#[test]
fn ups_20_code_of_an_agent_does_not_run_in_a_program_that_the_command_names() {
    let files = [
        (
            "mcp/run",
            "#!/usr/bin/env python3\nimport sys, os\nsys.path.insert(0, os.path.dirname(__file__))\nimport helper\nhelper.run()\n",
        ),
        ("mcp/helper.py", PYTHON_HELPER),
    ];
    withstands(&files, &entry("./mcp/run", &[]), &["mcp/helper.py", "mcp/run", "mcp/os.py"], "python");
}

#[test]
fn ups_20_code_of_an_agent_does_not_run_in_a_written_cwd() {
    let files = [("srv/server.py", PYTHON), ("srv/helper.py", PYTHON_HELPER)];
    let entry = with(entry("python3", &["server.py"]), &json!({ "cwd": "srv" }));
    withstands(&files, &entry, &["srv/helper.py", "srv/server.py"], "python");
}

#[test]
fn ups_20_a_program_of_an_agent_shadows_none_of_the_search_path() {
    let home = TestDir::new();
    let path = std::env::var("PATH").expect("every machine has it");
    let folders = ["tools-here", "not-there"].map(|name| home.path().join(name).display().to_string());
    let home = home.env("PATH", &format!("{}:{path}", folders.join(":")));
    let outside = tempfile::tempdir().expect("a folder");
    let files = [("mcp/run.sh", "exec \"$FAULTY\"\n"), ("tools-here/tool", "#!/bin/sh\n")];
    let scene = Scene::at(home, outside, &files, &entry("sh", &["mcp/run.sh"]));
    scene.rig.ready("s");
    let code = planted(&scene.outside, "shell");
    scene.plant("tools-here/sh", &code);
    let scene = scene.stays_the_same();
    // A folder that was not there is not sealed; the server does not start once it is there.
    let pid = scene.pid();
    scene.rig.home.write("not-there/sh", &code);
    executable(&scene.rig.home.path().join("not-there/sh"));
    kill(&pid);
    scene.refused("not-there");
    assert!(!mark(&scene.outside).exists(), "planted code ran");
}

#[test]
fn ups_20_what_programs_look_for_above_a_server_must_not_appear() {
    let optional = format!("try {{ require('optional') }} catch {{}}\n{NODE}");
    let files = [("mcp/server.js", optional.as_str()), ("mcp/helper.js", NODE_HELPER), MODULES];
    let scene = Scene::new(&files, &entry("node", &["mcp/server.js"]));
    scene.rig.ready("s");
    for name in ["package.json", ".npmrc"] {
        let pid = scene.pid();
        scene.plant(name, &planted(&scene.outside, "node"));
        kill(&pid);
        scene.refused(name);
        assert!(!mark(&scene.outside).exists(), "planted code ran");
        fs::rename(scene.rig.home.path().join(name), scene.outside.path().join(name)).expect("it is removed");
        scene.rig.restart("s");
        scene.rig.ready("s");
    }
    // Where it was there from the start, it cannot be changed.
    let Scene { rig: Rig { server, home }, outside } = scene;
    assert_eq!(server.stop().0, 0);
    home.write("node_modules/optional/index.js", "");
    let scene = Scene { rig: Rig::at(home), outside };
    scene.rig.ready("s");
    let code = planted(&scene.outside, "node");
    scene.plant("node_modules/optional/index.js", &code);
    scene.move_away("node_modules/optional/index.js");
    scene.stays_the_same().would_have_run("node_modules/optional/index.js", &code);
}

/// Why the server is not started, as soon as that is known.
#[track_caller]
fn off(rig: &Rig, why: &str) {
    rig.server.eventually(why, || rig.status("s")["lastError"].to_string().contains(why));
}

#[test]
fn ups_20_a_program_for_node_runs_only_where_no_agent_can_make_modules_for_it() {
    let lazy = format!("process.on('SIGUSR2', () => {{ try {{ require('optional') }} catch {{}} }})\n{NODE}");
    let files = [("mcp/server.js", lazy.as_str()), ("mcp/helper.js", NODE_HELPER)];
    let scene = Scene::new(&files, &entry("node", &["mcp/server.js"]));
    off(&scene.rig, "make that folder yourself");
    // Not even if an agent makes it, before a person has accepted it.
    scene.plant("node_modules/optional/index.js", &planted(&scene.outside, "node"));
    let Scene { rig: Rig { server, home }, outside } = scene;
    assert_eq!(server.stop().0, 0);
    let scene = Scene { rig: Rig::at(home), outside };
    off(&scene.rig, "gantry config apply");
    assert!(!mark(&scene.outside).exists(), "planted code ran");
    fs::remove_dir_all(scene.rig.home.path().join("node_modules")).expect("it is there");
    scene.rig.home.write(MODULES.0, MODULES.1);
    let applied = scene.rig.home.run(["config", "apply", "--yes"]);
    assert_eq!(applied.code, 0, "{applied:?}");
    scene.rig.ready("s");
}

#[test]
fn ups_20_a_server_that_is_refused_stays_protected() {
    let files = [("mcp/server.py", PYTHON), ("mcp/helper.py", PYTHON_HELPER)];
    let scene = Scene::new(&files, &entry("python3", &["./mcp/server.py"]));
    scene.rig.ready("s");
    scene.plant("package.json", "{}");
    let Scene { rig: Rig { server, home }, outside } = scene;
    assert_eq!(server.stop().0, 0);
    let scene = Scene { rig: Rig::at(home), outside };
    off(&scene.rig, "gantry config apply");
    scene.plant("mcp/helper.py", &planted(&scene.outside, "python"));
    fs::remove_file(scene.rig.home.path().join("package.json")).expect("it is there");
    let Scene { rig: Rig { server, home }, outside } = scene;
    assert_eq!(server.stop().0, 0);
    let scene = Scene { rig: Rig::at(home), outside };
    scene.rig.ready("s");
    assert!(!mark(&scene.outside).exists(), "planted code ran");
}

#[test]
fn ups_20_a_server_that_was_off_is_not_started_from_what_changed_meanwhile() {
    let files = [("mcp/server.py", PYTHON), ("mcp/helper.py", PYTHON_HELPER)];
    let on = entry("python3", &["./mcp/server.py"]);
    let scene = Scene::new(&files, &on);
    scene.rig.ready("s");
    let Scene { rig: Rig { server, home }, outside } = scene;
    assert_eq!(server.stop().0, 0);
    let configured = |entry: &Value| json!({ "mcpServers": { "s": entry } }).to_string();
    home.write("gantry.yaml", &configured(&with(on.clone(), &json!({ "enabled": false }))));
    let scene = Scene { rig: Rig::at(home), outside };
    scene.plant("mcp/helper.py", &planted(&scene.outside, "python"));
    let Scene { rig: Rig { server, home }, outside } = scene;
    assert_eq!(server.stop().0, 0);
    home.write("gantry.yaml", &configured(&on));
    let scene = Scene { rig: Rig::at(home), outside };
    off(&scene.rig, "gantry config apply");
    assert!(!mark(&scene.outside).exists(), "planted code ran");
}

#[test]
fn ups_20_npx_takes_no_package_and_no_option_of_an_agent() {
    let outside = tempfile::tempdir().expect("a folder");
    let program = "require('child_process').spawn(process.env.FAULTY, [], { stdio: 'inherit' }).on('exit', () => process.exit(1))\n";
    let good = npm_registry(&outside.path().join("good"), PACKAGE, program);
    let evil_code = planted(&outside, "node");
    let evil = npm_registry(&outside.path().join("evil"), PACKAGE, &evil_code);
    let user = outside.path().join("user");
    fs::create_dir(&user).expect("a folder");
    let settings = |server: &TestServer, cache: &str| {
        let cache = outside.path().join(cache);
        format!("registry={}\ncache={}\nupdate-notifier=false\n", server.url("/"), cache.display())
    };
    fs::write(user.join(".npmrc"), settings(&good, "cache")).expect("the settings of the user");
    let entry = with(
        entry("npx", &["-y", PACKAGE]),
        &json!({ "env": { "HOME": user, "FAULTY": Faulty::program() } }),
    );
    let evil_settings = settings(&evil, "other-cache");
    let scene = Scene::at(TestDir::new(), outside, &[], &entry);
    scene.rig.ready("s");
    let planted_files = [
        (".npmrc".to_owned(), evil_settings),
        (format!("node_modules/{PACKAGE}/run.js"), format!("#!/usr/bin/env node\n{evil_code}")),
        (
            format!("node_modules/{PACKAGE}/package.json"),
            json!({ "name": PACKAGE, "version": "1.0.0", "bin": { PACKAGE: "run.js" } }).to_string(),
        ),
        (format!("node_modules/.bin/{PACKAGE}"), format!("#!/usr/bin/env node\n{evil_code}")),
        (
            "package.json".to_owned(),
            json!({ "name": "ws", "dependencies": { PACKAGE: "1.0.0" } }).to_string(),
        ),
        (PACKAGE.to_owned(), planted(&scene.outside, "shell")),
    ];
    for (name, content) in &planted_files {
        let reply =
            scene.rig.call("write_file", &json!({ "path": name, "content": content, "createDirs": true }));
        assert_eq!(reply["ok"], true, "{name}: {reply}");
    }
    let code = format!("chmod 755 {PACKAGE} node_modules/.bin/{PACKAGE} node_modules/{PACKAGE}/run.js");
    let reply = scene.rig.call("run_code", &json!({ "language": "bash", "code": code }));
    assert_eq!(reply["result"]["exitCode"], 0, "{reply}");
    let scene = scene.stays_the_same();
    // In the workspace, the same command runs it.
    let mut npx = Command::new("npx");
    npx.args(["-y", PACKAGE])
        .current_dir(scene.rig.home.path())
        .env("HOME", &user)
        .env("FAULTY", "/bin/true");
    npx.output().expect("npx is installed");
    assert!(mark(&scene.outside).exists());
}

#[test]
fn ups_20_settings_in_folders_above_do_not_reach_a_program_that_looks_for_them_as_uv_does() {
    let outside = tempfile::tempdir().expect("a folder");
    // It runs what its settings say, as uv takes packages from the index that they name.
    let program = "#!/bin/sh\nfolder=$PWD\nuntil [ \"$folder\" = / ]; do\n  for name in uv.toml pyproject.toml; do\n    \
                   test -f \"$folder/$name\" && . \"$folder/$name\"\n  done\n  folder=$(dirname \"$folder\")\ndone\nexec \"$FAULTY\"\n";
    fs::write(outside.path().join("uvx"), program).expect("the program");
    executable(&outside.path().join("uvx"));
    let path =
        format!("{}:{}", outside.path().display(), std::env::var("PATH").expect("every machine has it"));
    let scene = Scene::at(TestDir::new().env("PATH", &path), outside, &[], &entry("uvx", &[PACKAGE]));
    scene.rig.ready("s");
    let code = planted(&scene.outside, "shell");
    for name in ["uv.toml", "pyproject.toml", PACKAGE] {
        let reply = scene.rig.call("write_file", &json!({ "path": name, "content": code }));
        assert_eq!(reply["ok"], true, "{name}: {reply}");
    }
    let scene = scene.stays_the_same();
    let mut uvx = Command::new(scene.outside.path().join("uvx"));
    uvx.current_dir(scene.rig.home.path()).env("FAULTY", "/bin/true").status().expect("it starts");
    assert!(mark(&scene.outside).exists());
}

#[test]
fn ups_20_a_server_beside_files_that_agents_write_is_refused_with_what_to_do() {
    let home = TestDir::new();
    let top = fs::canonicalize(home.path()).expect("a folder");
    home.write("server.py", PYTHON);
    home.write("helper.py", PYTHON_HELPER);
    home.write("real/server.py", PYTHON);
    symlink("real", home.path().join("linked")).expect("a link");
    let shell = format!("cd {} && exec python3 server.py", top.display());
    let entries = json!({
        "script": entry("python3", &["server.py"]),
        "text": entry("sh", &["-c", &shell]),
        "cwd": with(entry("python3", &["server.py"]), &json!({ "cwd": "." })),
        "home": with(entry("sh", &["-c", "exec $FAULTY"]), &json!({ "env": { "HOME": top, "FAULTY": Faulty::program() } })),
        "option": entry("node", &["--require=./hook.js", "-e", "0"]),
        "linked": entry("python3", &["linked/server.py"]),
        "good": entry("sh", &["-c", "exec $FAULTY", "."]),
    });
    home.write("hook.js", "");
    let rig = Rig::at(home.config(&json!({ "mcpServers": entries }).to_string()));
    rig.ready("good");
    for (id, named) in [
        ("script", "server.py"),
        ("text", ""),
        ("cwd", ""),
        ("home", ""),
        ("option", "hook.js"),
        ("linked", "linked"),
    ] {
        let status = rig.status(id);
        let path = top.join(named).components().collect::<PathBuf>();
        let why = status["lastError"].as_str().unwrap_or_default();
        assert!(
            why.contains(&format!("{}, beside files that agents write", path.display())),
            "{id}: {status}"
        );
        assert!(why.contains(&format!("such as {}", top.join("mcp").display())), "{id}: {why}");
        assert_eq!(status["status"], "off", "{id}: {status}");
        let said = rig.home.run(["doctor", id]);
        assert!(said.code != 0 && said.stdout.contains("beside files that agents write"), "{id}: {said:?}");
    }
}

#[test]
fn ups_20_a_server_starts_in_a_folder_of_its_own_and_doctor_shows_it() {
    let home = TestDir::new();
    home.write("mcp/run.sh", "pwd > \"$1\"/folder; exec \"$FAULTY\"\n");
    let out = tempfile::tempdir().expect("a folder");
    let args = ["mcp/run.sh", out.path().to_str().expect("UTF-8")];
    let rig = Rig::at(home.config(&json!({ "mcpServers": { "s": entry("sh", &args) } }).to_string()));
    rig.ready("s");
    let folder = rig.home.server_folder("s");
    let started = fs::read_to_string(out.path().join("folder")).expect("it has started");
    assert_eq!(Path::new(started.trim()), fs::canonicalize(&folder).expect("it is there"));
    assert_eq!(folder.metadata().expect("it is there").permissions().mode() & 0o777, 0o700);
    let sealed = format!(
        "tools and jobs cannot change {}",
        fs::canonicalize(rig.home.path()).unwrap().join("mcp").display()
    );
    for said in [rig.home.run(["doctor"]), rig.home.run(["doctor", "s"])] {
        assert!(said.stdout.contains(&format!("it starts in {}", started.trim())), "{said:?}");
        assert!(said.stdout.contains(&sealed), "{said:?}");
    }
}

#[test]
fn ups_20_without_a_folder_outside_of_the_workspaces_a_server_needs_a_cwd() {
    let home = TestDir::new();
    let inside = home.path().join("state").display().to_string();
    let home = home.env("XDG_STATE_HOME", &inside).env("HOME", &inside);
    let elsewhere = tempfile::tempdir().expect("a folder");
    let entries = json!({
        "none": entry("sh", &["-c", "exec $FAULTY"]),
        "s": with(entry("sh", &["-c", "exec $FAULTY"]), &json!({ "cwd": elsewhere.path() })),
    });
    let rig = Rig::at(home.config(&json!({ "mcpServers": entries }).to_string()));
    rig.ready("s");
    let why = rig.status("none")["lastError"].to_string();
    assert!(why.contains("there is no folder to start it in") && why.contains("write `cwd`"), "{why}");
}

#[test]
fn ups_20_a_server_that_is_added_is_not_started_from_a_workspace() {
    let home = TestDir::new();
    home.write("mcp/run.sh", "exec \"$FAULTY\"\n");
    let rig = Rig::at(home);
    let added = with(entry("sh", &["mcp/run.sh"]), &json!({ "id": "s" }));
    let answer = rig.admin(Method::POST, "/api/v1/servers", &added);
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(answer.text.contains("where agents write; write it into the configuration"), "{answer:?}");
    let outside = with(entry("sh", &["-c", "exec $FAULTY"]), &json!({ "id": "s" }));
    assert_eq!(rig.admin(Method::POST, "/api/v1/servers", &outside).status, 201);
    rig.ready("s");
}
