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
    excluded: Vec<PathBuf>,
}

impl House {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        Self { dir, path: Vec::new(), vars: BTreeMap::new(), excluded: Vec::new() }
    }

    fn at(&self, path: &str) -> PathBuf {
        real(self.dir.path()).join(path)
    }

    /// A file that can be run.
    fn program(&self, path: &str) -> PathBuf {
        let path = self.put(path, "");
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
        let mut vars: BTreeMap<OsString, OsString> =
            self.vars.iter().map(|(name, value)| (name.into(), value.clone())).collect();
        vars.insert("HOME".into(), self.at("").into());
        vars.insert("PATH".into(), std::env::join_paths(&self.path).unwrap());
        Search { vars, excluded: self.excluded.clone() }.run(more)
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
fn rustup_brings_the_active_toolchain_alone_and_the_programs_of_cargo() {
    let mut house = House::new().on_path(".cargo/bin");
    house.program(".cargo/bin/rustup");
    house.link("rustup", ".cargo/bin/cargo");
    house.put(".cargo/credentials.toml", "SECRET");
    for name in ["stable-x86_64-unknown-linux-gnu", "nightly-x86_64-unknown-linux-gnu"] {
        house.program(&format!(".rustup/toolchains/{name}/bin/cargo"));
        house.put(&format!(".rustup/toolchains/{name}/lib/rustlib/components"), "");
        house.put(&format!(".rustup/toolchains/{name}/etc/x"), "");
    }
    let stable = ".rustup/toolchains/stable-x86_64-unknown-linux-gnu";
    let nightly = ".rustup/toolchains/nightly-x86_64-unknown-linux-gnu";
    let check = |house: &House, chosen: &str| {
        let (bin, lib) = (format!("{chosen}/bin"), format!("{chosen}/lib"));
        house.check(&[&bin, ".cargo/bin"], &[&bin, &lib, ".cargo/bin"]);
        // The toolchain's own program comes before rustup's, which only chooses one.
        assert_eq!(house.search(&[]).program("cargo"), Some(house.at(&bin).join("cargo")));
    };
    let settings =
        |name: &str| format!("version = \"12\"\ndefault_toolchain = \"{name}\"\nprofile = \"default\"\n");
    house.put(".rustup/settings.toml", &settings("stable-x86_64-unknown-linux-gnu"));
    check(&house, stable);
    house.put(".rustup/settings.toml", &settings("nightly"));
    check(&house, nightly);
    house.vars.insert("RUSTUP_TOOLCHAIN", "stable".into());
    check(&house, stable);
    // A toolchain that is not there, and a name that leads elsewhere.
    for other in ["1.90.0", "../../.ssh"] {
        house.vars.insert("RUSTUP_TOOLCHAIN", other.into());
        house.check(&[".cargo/bin"], &[".cargo/bin"]);
    }
}

#[test]
fn version_managers_bring_the_chosen_version() {
    let house = House::new().on_path(".pyenv/shims").on_path(".asdf/shims").on_path(".volta/bin");
    for shim in [".pyenv/shims/python3", ".asdf/shims/node", ".volta/bin/volta-shim"] {
        house.program(shim);
    }
    for version in ["3.11.7", "3.12.1"] {
        house.program(&format!(".pyenv/versions/{version}/bin/python3"));
    }
    house.put(".pyenv/version", "3.11.7\n");
    house.program(".asdf/installs/nodejs/20.1.0/bin/node");
    house.program(".asdf/installs/ruby/3.3.0/bin/ruby");
    house.put(".tool-versions", "ruby 3\nnodejs 20.1.0\n");
    house.program(".volta/tools/image/node/22.0.0/bin/pnpm");
    house.put(".volta/tools/user/platform.json", r#"{"node":{"runtime":"22.0.0","npm":null}}"#);
    let chosen = [
        ".pyenv/versions/3.11.7/bin",
        ".volta/tools/image/node/22.0.0/bin",
        ".asdf/installs/nodejs/20.1.0/bin",
    ];
    house.check(&chosen, &chosen);
    house.put(".pyenv/version", "system\n");
    house.check(&chosen[1..], &chosen[1..]);
}

#[test]
fn a_version_on_the_path_comes_first_and_settings_stay_behind() {
    let house = House::new().on_path("multishell/bin");
    for version in ["v18.0.0", "v20.1.0"] {
        house.program(&format!(".nvm/versions/node/{version}/bin/node"));
        house.put(&format!(".nvm/versions/node/{version}/etc/npmrc"), "SECRET");
        house.put(&format!(".nvm/versions/node/{version}/.npmrc"), "SECRET");
    }
    house.put(".nvm/alias/default", "v18.0.0\n");
    house.link(house.at(".nvm/versions/node/v20.1.0"), "multishell");
    let both = [".nvm/versions/node/v20.1.0/bin", ".nvm/versions/node/v18.0.0/bin"];
    house.check(&both, &both);
}

#[test]
fn nothing_else_of_a_home_is_taken() {
    let house =
        House::new().on_path(".local/bin").on_path("bin").on_path("sdk/go/bin").on_path(".nvm/versions/node");
    house.put(".local/share/keyrings/login", "SECRET");
    house.program(".local/bin/ruff");
    house.program("bin/zig");
    house.program("sdk/go/bin/go");
    house.program(".nvm/versions/node/node");
    house.check(&[], &[]);
    let named = house.search(&[house.at("sdk/go")]);
    assert_eq!(named.program("go"), Some(house.at("sdk/go/bin/go")));
}

#[test]
fn what_is_excluded_is_never_shown() {
    let mut house = House::new();
    house.program(".pyenv/versions/3.11.7/bin/python3");
    house.put(".pyenv/versions/3.11.7/lib/mine/x.py", "");
    house.put(".pyenv/version", "3.11.7\n");
    house.excluded = vec![house.at(".pyenv/versions/3.11.7/lib/mine")];
    house.check(&[], &[]);
    house.excluded = vec![house.at("work")];
    fs::create_dir_all(house.at("work")).unwrap();
    assert_eq!(house.found().1.len(), 2);
    let refused = [
        "/".into(),
        house.at(""),
        house.at("..").canonicalize().unwrap(),
        house.at("work"),
        "/proc".into(),
        "relative".into(),
    ];
    assert_eq!(house.search(&refused).mounts.len(), 2);
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
    house.path.push("/usr/lib".into());
    let toolchains = house.search(&[]);
    assert!(toolchains.program("env").is_some_and(|path| is_system(&path)));
    assert!(toolchains.program("no-such-program").is_none());
    assert_eq!(toolchains.mounts.len(), 0);
    // A folder of the system is looked into where the PATH has it.
    assert_eq!(toolchains.folders, [PathBuf::from("/usr/lib")]);
}
