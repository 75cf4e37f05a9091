//! Finding and reading files: flags, variables, names, `.env`, limits.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use super::{Folder, refused};
use crate::config::dotenv::parse_dotenv;
use crate::config::{Config, Env, Source};

#[test]
fn no_file_means_defaults() {
    let folder = Folder::with(&[]);
    let loaded = folder.load();
    assert_eq!(loaded.file, None);
    assert_eq!(loaded.data, folder.path(".gantry"));
    assert_eq!(loaded.config.main().workspace, folder.0.path());
    assert_eq!(loaded.config.store, folder.path(".gantry/gantry.db"));
}

#[test]
fn each_name_is_found() {
    for (name, text) in [
        ("gantry.yaml", "workspace: ."),
        ("gantry.yml", "{}"),
        ("gantry.json", "{}"),
        ("gantry.toml", "workspace = '.'"),
    ] {
        let folder = Folder::with(&[(name, text)]);
        assert_eq!(folder.load().file, Some(folder.path(name)));
    }
}

#[test]
fn two_files_at_once_are_refused() {
    let folder = Folder::with(&[("gantry.yaml", "{}"), ("gantry.toml", "workspace = '.'")]);
    let message = folder.refused();
    assert!(message.starts_with("both gantry.yaml and gantry.toml are in "), "{message}");
    let source = Source { config: Some("gantry.toml".into()), ..folder.source() };
    assert!(Config::load(&source, &Env::from([])).is_ok());
}

#[test]
fn the_flag_wins_over_the_variable_and_the_variable_over_the_folder() {
    let folder =
        Folder::with(&[("gantry.yaml", "{}"), ("b/flag.json", "{}"), ("c/env.toml", "workspace = '.'")]);
    let env = Env::from([("GANTRY_CONFIG", "c/env.toml")]);
    let loaded = Config::load(&folder.source(), &env).unwrap();
    assert_eq!(loaded.file, Some(folder.path("c/env.toml")));
    assert_eq!(loaded.data, folder.path("c/.gantry"));
    assert_eq!(loaded.config.main().workspace, folder.path("c"));
    let source = Source { config: Some("b/flag.json".into()), ..folder.source() };
    assert_eq!(Config::load(&source, &env).unwrap().file, Some(folder.path("b/flag.json")));
    let empty = Env::from([("GANTRY_CONFIG", "")]);
    assert_eq!(Config::load(&folder.source(), &empty).unwrap().file, Some(folder.path("gantry.yaml")));
}

#[test]
fn a_file_that_is_named_must_be_there_and_have_a_known_ending() {
    let folder = Folder::with(&[("gantry.conf", "")]);
    let named = |name: &str| Source { config: Some(name.into()), ..folder.source() };
    let none = Env::from([]);
    assert_eq!(refused(&named("no.yaml"), &none), "no.yaml: there is no such file; check the path");
    assert_eq!(
        refused(&named("gantry.conf"), &none),
        "gantry.conf: the name of a configuration must end in .yaml, .yml, .json or .toml"
    );
    assert_eq!(
        refused(&folder.source(), &Env::from([("GANTRY_CONFIG", "x.yaml")])),
        "x.yaml: there is no such file ($GANTRY_CONFIG); check the path"
    );
}

#[test]
fn what_only_has_the_name_of_a_configuration_is_refused() {
    let folder = Folder::with(&[("gantry.yaml/inside", "")]);
    assert_eq!(folder.refused(), "gantry.yaml: this is not a file; remove it or name another");
    #[cfg(unix)]
    {
        let folder = Folder::with(&[]);
        std::os::unix::fs::symlink("gone", folder.path("gantry.json")).unwrap();
        assert_eq!(folder.refused(), "gantry.json: there is no such file; check the path");
    }
}

#[test]
fn a_socket_is_no_configuration() {
    let folder = Folder::with(&[]);
    for name in ["gantry.yaml", "gantry.toml", ".env"] {
        make_socket(&folder.path(name));
    }
    assert_eq!(folder.load().file, None);
    folder.write("gantry.json", r#"{ "agents": { "a": {} } }"#);
    let loaded = folder.load();
    assert!(loaded.config.main().agents.contains_key("a"), "the one that is there counts");

    make_socket(&folder.path("named.yaml"));
    let named = Source { config: Some("named.yaml".into()), ..folder.source() };
    let refusal = refused(&named, &Env::from([]));
    assert_eq!(refusal, "named.yaml: this is not a file; remove it or name another");
}

/// Makes a socket that nothing can open.
fn make_socket(path: &Path) {
    UnixListener::bind(path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o0)).unwrap();
}

#[test]
fn the_data_folder_follows_flag_variable_and_file() {
    let folder = Folder::with(&[("gantry.yaml", "{}")]);
    let env = Env::from([("GANTRY_DATA", "by-variable")]);
    let loaded = Config::load(&folder.source(), &env).unwrap();
    assert_eq!(loaded.data, folder.path("by-variable"));
    assert_eq!(loaded.config.store, folder.path("by-variable/gantry.db"));
    let source = Source { data: Some("/by/flag".into()), ..folder.source() };
    assert_eq!(Config::load(&source, &env).unwrap().data, Path::new("/by/flag"));
}

#[test]
fn the_workspace_must_be_a_folder() {
    let folder = Folder::with(&[("gantry.yaml", "\nworkspace: ./gone\n")]);
    let gone = folder.path("gone");
    assert_eq!(
        folder.refused(),
        format!("gantry.yaml:2: workspace: {} is not a folder; create it", gone.display())
    );
    fs::create_dir(&gone).unwrap();
    assert_eq!(folder.load().config.main().workspace, gone);
}

#[test]
fn dotenv_stands_beside_the_file_and_the_process_wins() {
    let folder = Folder::with(&[
        ("in/gantry.yaml", "agents: { a: { description: '${A} ${B}' } }"),
        ("in/.env", "A=file\nexport B='from file'\nGANTRY_DATA=/x\n"),
    ]);
    let source = Source { config: Some("in/gantry.yaml".into()), ..folder.source() };
    let loaded = Config::load(&source, &Env::from([("A", "process")])).unwrap();
    assert_eq!(loaded.config.main().agents["a"].description.as_deref(), Some("process from file"));
    assert_eq!(loaded.data, folder.path("in/.gantry"));
    assert_eq!(loaded.warnings, ["in/.env: GANTRY_DATA has no effect here; set it in the environment"]);
}

#[test]
fn a_folder_named_dotenv_is_not_read() {
    let folder = Folder::with(&[("gantry.yaml", "{}"), (".env/pyvenv.cfg", "")]);
    assert!(folder.load().warnings.is_empty());
}

#[test]
fn a_bad_line_of_dotenv_is_refused() {
    let folder = Folder::with(&[("gantry.yaml", "{}"), (".env", "A=1\n\nB\n")]);
    assert_eq!(folder.refused(), ".env:3: expected KEY=value, with a name of letters, digits and _");
}

#[test]
fn large_and_binary_files_are_refused() {
    let folder = Folder::with(&[("gantry.yaml", &"#".repeat((1 << 20) + 1))]);
    assert_eq!(folder.refused(), "gantry.yaml: the file is larger than 1 MiB, which no configuration needs");
    fs::write(folder.path("gantry.yaml"), "#".repeat((1 << 20) - 3) + "\n{}").unwrap();
    folder.load();
    fs::write(folder.path("gantry.yaml"), b"# fine\nworkspace: \xff\n").unwrap();
    assert_eq!(folder.refused(), "gantry.yaml:2: not UTF-8 text; save the file as UTF-8");
}

#[test]
fn a_byte_order_mark_is_skipped() {
    let folder = Folder::with(&[("gantry.json", "\u{feff}{}")]);
    folder.load();
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_refused() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    let bytes = OsString::from_vec(vec![0xff]);
    let env = Env::Fixed([("RAW".to_owned(), bytes)].into());
    let folder = Folder::with(&[("gantry.yaml", "workspace: ${RAW}")]);
    let error = Config::load(&folder.source(), &env).unwrap_err();
    assert_eq!(
        error.to_string(),
        "gantry.yaml:1: workspace: ${RAW} is not UTF-8 text in the environment; set it to text"
    );
}

#[test]
fn dotenv_lines_are_read_as_a_shell_would() {
    let text = r#"
# comment
  A = 1
export B=two words # comment
C='single # $X \n'
D="double \"q\" \\ \n \$ \x" # comment
E=
F= # nothing
G=a#b
H="two
lines"
export=word
A=last
"#;
    let found = parse_dotenv(&text.replace('\n', "\r\n").replace("two\r\nlines", "two\nlines")).unwrap();
    let expected = [
        ("A", "last"),
        ("B", "two words"),
        ("C", r"single # $X \n"),
        ("D", "double \"q\" \\ \n $ \\x"),
        ("E", ""),
        ("F", ""),
        ("G", "a#b"),
        ("H", "two\nlines"),
        ("export", "word"),
    ];
    assert_eq!(found.len(), expected.len());
    for (name, value) in expected {
        assert_eq!(found.get(name).map(String::as_str), Some(value), "{name}");
    }
}

#[test]
fn bad_dotenv_lines_are_named() {
    let bad = |text: &str| parse_dotenv(text).map_err(|(line, _)| line);
    assert_eq!(bad("A=1\nB='x\n\n"), Err(2));
    assert_eq!(bad("A=\"1\n2\"\nB=\"x"), Err(3));
    assert_eq!(bad("A=\"1\" 2"), Err(1));
    assert_eq!(bad("A-B=1"), Err(1));
    assert_eq!(bad("=1"), Err(1));
    assert_eq!(bad("A\nB=1"), Err(1));
}
