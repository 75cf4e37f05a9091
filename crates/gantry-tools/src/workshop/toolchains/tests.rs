//! Searches in homes that are made for them.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// A home folder.
struct House {
    dir: TempDir,
    path: Vec<PathBuf>,
    vars: BTreeMap<&'static str, OsString>,
    apart: Vec<PathBuf>,
}

impl House {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        Self { dir, path: Vec::new(), vars: BTreeMap::new(), apart: Vec::new() }
    }

    fn at(&self, path: &str) -> PathBuf {
        real(self.dir.path()).join(path)
    }

    /// A file that can be run.
    fn program(&self, path: &str) -> PathBuf {
        let path = self.put(path, "\x7fELF");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn put(&self, path: &str, content: &str) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn link(&self, target: impl AsRef<Path>, path: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        symlink(target, self.at(path)).unwrap();
    }

    fn on_path(mut self, folder: &str) -> Self {
        self.path.push(self.at(folder));
        self
    }

    fn search(&self, more: &[PathBuf]) -> Toolchains {
        let search = Search {
            home: Some(self.at("")),
            path: std::env::join_paths(&self.path).unwrap(),
            vars: self.vars.clone(),
            apart: self.apart.clone(),
        };
        search.run(more)
    }

    /// What is found, relative to the home: the folders of the PATH and the mounts.
    fn found(&self) -> (Vec<String>, Vec<String>) {
        let toolchains = self.search(&[]);
        let short = |paths: &[PathBuf]| -> Vec<String> {
            paths.iter().map(|path| path.strip_prefix(self.at("")).unwrap().display().to_string()).collect()
        };
        (short(&toolchains.folders), short(&toolchains.mounts))
    }

    #[track_caller]
    fn check(&self, folders: &[&str], mounts: &[&str]) {
        let owned = |list: &[&str]| list.iter().map(|&item| item.to_owned()).collect::<Vec<_>>();
        assert_eq!(self.found(), (owned(folders), owned(mounts)));
    }
}

#[test]
fn the_proxies_of_rustup_lead_to_the_active_toolchain_alone() {
    let mut house = House::new().on_path(".cargo/bin");
    house.program(".cargo/bin/rustup");
    house.link("rustup", ".cargo/bin/cargo");
    // Rustup makes hard links too.
    fs::hard_link(house.at(".cargo/bin/rustup"), house.at(".cargo/bin/rustc")).unwrap();
    house.put(".cargo/credentials.toml", "SECRET");
    for name in ["stable", "nightly"] {
        for program in ["cargo", "rustc"] {
            house.program(&format!(".rustup/toolchains/{name}/bin/{program}"));
        }
        house.put(&format!(".rustup/toolchains/{name}/lib/rustlib/components"), "");
        house.put(&format!(".rustup/toolchains/{name}/etc/x"), "");
    }
    house.put(".rustup/settings.toml", "version = \"12\"\ndefault_toolchain = \"stable\"\n[overrides]\n");
    house.check(
        &[".rustup/toolchains/stable/bin"],
        &[".rustup/toolchains/stable/bin", ".rustup/toolchains/stable/lib"],
    );
    house.vars.insert("RUSTUP_TOOLCHAIN", "nightly".into());
    house.check(
        &[".rustup/toolchains/nightly/bin"],
        &[".rustup/toolchains/nightly/bin", ".rustup/toolchains/nightly/lib"],
    );
    // A name that leads elsewhere is no toolchain.
    house.vars.insert("RUSTUP_TOOLCHAIN", "../toolchains/nightly".into());
    house.check(&[], &[]);
}

#[test]
fn shims_of_pyenv_asdf_and_volta_lead_to_the_chosen_version() {
    let house = House::new().on_path(".pyenv/shims").on_path(".asdf/shims").on_path(".volta/bin");
    for shim in [".pyenv/shims/python3", ".pyenv/shims/pip3", ".asdf/shims/node", ".volta/bin/volta-shim"] {
        house.program(shim);
    }
    house.link("volta-shim", ".volta/bin/pnpm");
    house.program(".pyenv/versions/3.11.7/bin/python3");
    house.put(".pyenv/versions/3.11.7/lib/python3.11/os.py", "");
    house.put(".pyenv/version", "3.11.7\n");
    house.program(".asdf/installs/nodejs/20.1.0/bin/node");
    house.put(".asdf/installs/nodejs/20.1.0/include/node/node.h", "");
    house.put(".tool-versions", "ruby 3\nnodejs 20.1.0\n");
    house.program(".volta/tools/image/node/22.0.0/bin/pnpm");
    house.put(".volta/tools/image/node/22.0.0/include/node/node.h", "");
    house.put(".volta/tools/user/platform.json", r#"{"node":{"runtime":"22.0.0","npm":null}}"#);
    let (folders, _) = house.found();
    let expected = [
        ".asdf/installs/nodejs/20.1.0/bin",
        ".volta/tools/image/node/22.0.0/bin",
        ".pyenv/versions/3.11.7/bin",
    ];
    assert_eq!(folders, expected);
}

#[test]
fn a_linked_program_brings_its_installation_but_not_the_folder_of_the_link() {
    let house = House::new().on_path(".local/bin");
    house.put(".local/share/keyrings/login", "SECRET");
    house.put(".local/bin/my-script", "TOKEN=SECRET");
    house.put(".local/lib/python3.11/site-packages/x.py", "");
    let base = "tools/cpython-3.12";
    house.program(&format!("{base}/bin/python3.12"));
    house.link("python3.12", &format!("{base}/bin/python3"));
    house.put(&format!("{base}/lib/python3.12/os.py"), "");
    // A tool in an environment of its own, made from that Python.
    house.program("venvs/black/bin/black");
    house.put("venvs/black/pyvenv.cfg", "");
    house.link(house.at(&format!("{base}/bin/python3")), "venvs/black/bin/python");
    house.link(house.at("venvs/black/bin/black"), ".local/bin/black");
    house.program(".local/bin/ruff");
    // A home that looks like an installation is none.
    house.program("bin/zig");
    house.link("../../bin/zig", ".local/bin/zig");
    house.put("lib/python3.11/os.py", "");
    // A script with parts that nobody knows.
    let script = house.program(".local/bin/poetry");
    fs::write(script, "#!/usr/bin/env python3").unwrap();
    house.check(
        &[".local/bin", "venvs/black/bin", "bin"],
        &[
            ".local/bin/ruff",
            "venvs/black/bin",
            "venvs/black/pyvenv.cfg",
            "tools/cpython-3.12/bin",
            "tools/cpython-3.12/lib",
            "bin/zig",
        ],
    );
}

#[test]
fn npm_is_found_beside_node_and_settings_stay_behind() {
    let house = House::new().on_path("multishell/bin");
    house.program("versions/v20/bin/node");
    house.program("versions/v20/lib/node_modules/npm/bin/npm-cli.js");
    house.link("../lib/node_modules/npm/bin/npm-cli.js", "versions/v20/bin/npm");
    house.put("versions/v20/include/node/node.h", "");
    house.put("versions/v20/etc/npmrc", "SECRET");
    house.link(house.at("versions/v20"), "multishell");
    house.check(&["versions/v20/bin"], &["versions/v20/bin", "versions/v20/lib", "versions/v20/include"]);
    assert_eq!(house.search(&[]).program("npm"), Some(house.at("versions/v20/bin/npm")));
}

#[test]
fn what_is_kept_apart_is_never_shown() {
    let mut house = House::new().on_path("sdk/go/bin").on_path("work/.venv/bin");
    house.program("sdk/go/bin/go");
    house.put("sdk/go/src/runtime/runtime.go", "");
    house.program("work/.venv/bin/ruff");
    house.apart = vec![house.at("work"), house.at("sdk/go/src/mine")];
    house.check(&[], &[]);
    house.apart = vec![house.at("work")];
    house.check(&["sdk/go/bin"], &["sdk/go/bin", "sdk/go/src"]);
    let refused = [
        "/".into(),
        house.at(""),
        house.at("..").canonicalize().unwrap(),
        house.at("work"),
        "/proc".into(),
        "relative".into(),
    ];
    assert_eq!(house.search(&refused).mounts().len(), 2);
    fs::create_dir_all(house.at("tools/bin")).unwrap();
    fs::create_dir_all(house.at("plain")).unwrap();
    let named = house.search(&[house.at("tools"), house.at("plain")]);
    assert_eq!(named.folders[..2], [house.at("tools/bin"), house.at("plain")]);
    let path = named.path().into_string().unwrap();
    assert!(path.starts_with(house.at("tools/bin").to_str().unwrap()) && path.ends_with(":/sbin"));
}

#[test]
fn the_systems_programs_need_nothing() {
    let mut house = House::new();
    house.path.push("/usr/bin".into());
    let house = house.on_path(".local/bin");
    house.program(".local/bin/shfmt");
    let toolchains = house.search(&[]);
    assert!(toolchains.program("env").is_some_and(|path| is_system(&path)));
    assert!(toolchains.program("no-such-program").is_none());
    assert_eq!(toolchains.mounts()[..], [house.at(".local/bin/shfmt")]);
}
