//! `gantry servers`: a table that loses nothing, and changes that say what to do next.

use super::run;
use gantry_testkit::faulty::entry as faulty;
use gantry_testkit::{CommandOutput, TestDir};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Stdio;

/// A program that is not there.
const MISSING_PROGRAM: &str = "gantry-no-such-program";

/// A home with these servers.
fn home(servers: &Value) -> TestDir {
    TestDir::new().config(&json!({ "mcpServers": servers }).to_string())
}

/// A server whose variable is not set, behind words that push its name far to the right.
fn without_token() -> Value {
    let value = "Bearer ${A_TOKEN_WITH_A_NAME_OF_ITS_OWN}";
    json!({ "url": "https://mcp.example.com/mcp", "headers": { "Authorization": value } })
}

/// What a command shows on a terminal of this width.
fn on_terminal(home: &TestDir, args: &[&str], columns: u16) -> CommandOutput {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("its other side");
    let name = ptsname(&terminal, Vec::new()).expect("a name");
    let screen =
        File::options().read(true).write(true).open(OsStr::from_bytes(name.to_bytes())).expect("it opens");
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&screen, size).expect("it has a size");
    let mut command = home.command(args);
    command.env("NO_COLOR", "1").stdin(Stdio::null()).stdout(screen).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    // Our own copy of the screen would keep the terminal open for ever.
    drop(command);
    let mut stdout = Vec::new();
    // A terminal whose other side is closed ends with an error where a pipe just ends.
    File::from(terminal).read_to_end(&mut stdout).ok();
    let mut stderr = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut stderr).expect("text");
    let stdout = String::from_utf8(stdout).expect("UTF-8").replace('\r', "");
    CommandOutput { code: child.wait().expect("it ends").code().unwrap_or(-1), stdout, stderr }
}

#[test]
fn ups_7_the_table_says_below_each_row_why_a_server_is_not_there_and_cuts_nothing() {
    let home = home(
        &json!({ "good": faulty(&[]), "missing": { "command": MISSING_PROGRAM }, "novar": without_token() }),
    );
    let home = home.env("COLUMNS", "40");
    for args in [["servers"].as_slice(), &["servers", "list"]] {
        let ran = run(&home, args);
        assert_eq!(ran.code, 0, "{ran:?}");
        let lines: Vec<&str> = ran.stdout.lines().collect();
        assert!(lines[0].ends_with("SINCE (UTC)"), "{ran:?}");
        assert!(lines[1].starts_with("● green  good") && lines[2].starts_with("● red    missing"), "{ran:?}");
        assert!(lines[3].starts_with("  └ ") && lines[3].contains(MISSING_PROGRAM), "{ran:?}");
        assert!(lines[4].starts_with("● off    novar"), "{ran:?}");
        assert!(lines[5].contains("${A_TOKEN_WITH_A_NAME_OF_ITS_OWN} is not set"), "{ran:?}");
        assert!(!ran.stdout.contains('…'), "{ran:?}");
        assert!(ran.stderr.contains("gantry doctor says more"), "{ran:?}");
    }
    let on_screen = on_terminal(&home, &["servers"], 50);
    assert!(on_screen.stdout.contains("${A_TOKEN_WITH_A_NAME_OF_ITS_OWN} is not set"), "{on_screen:?}");
    assert_eq!(run(&home, &["servers", "list", "--json"]).json().as_array().map(Vec::len), Some(3));
}

#[test]
fn tables_are_as_wide_as_the_terminal_and_whole_elsewhere() {
    let home = TestDir::new().env("COLUMNS", "200");
    for columns in [60, 90] {
        let ran = on_terminal(&home, &["tools"], columns);
        assert!(ran.stdout.lines().count() > 5, "{ran:?}");
        let longest = ran.stdout.lines().map(|line| line.chars().count()).max();
        assert_eq!(longest, Some(usize::from(columns)), "the terminal knows best: {ran:?}");
        assert!(ran.stdout.contains('…'), "{ran:?}");
    }
    let piped = run(&home.env("COLUMNS", "60"), &["tools"]);
    assert!(!piped.stdout.contains('…') && piped.stdout.lines().any(|line| line.len() > 60), "{piped:?}");
}

#[test]
fn ups_13_the_table_flags_servers_whose_definitions_look_suspicious() {
    let home = home(&json!({ "bad": faulty(&["--poison"]), "good": faulty(&[]) }));
    let flags = run(&home, &["servers", "--json"]).json()[0]["flags"].as_array().map_or(0, Vec::len);
    assert!(flags > 4);
    let ran = run(&home, &["servers"]);
    let row = |id: &str| ran.stdout.lines().find(|line| line.contains(id)).expect("a row");
    assert!(row("bad").contains(&format!(" ⚠ {flags} ")), "{ran:?}");
    assert!(!row("good").contains('⚠') && ran.stderr.contains("gantry doctor"), "{ran:?}");
}

#[test]
fn changes_without_a_running_gantry_say_what_helps_instead() {
    let home = TestDir::new();
    for (args, words) in
        [(["servers", "remove", "a"], "enabled: false"), (["servers", "restart", "a"], "nothing to restart")]
    {
        let ran = run(&home, &args);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains("gantry serve") && ran.stderr.contains(words), "{ran:?}");
        assert!(!ran.stderr.contains("write the server"), "{ran:?}");
    }
    let add = run(&home, &["servers", "add", "a", "--", "x"]);
    assert!(add.code == 2 && add.stderr.contains("write the server into the configuration"), "{add:?}");
}

#[test]
fn a_program_without_its_dashes_is_answered_with_them() {
    let home = TestDir::new();
    let ran = run(&home, &["servers", "add", "x", "npx", "-y", "foo"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("write -- before the program"), "{ran:?}");
    assert!(ran.stderr.contains("gantry servers add <ID> -- npx"), "{ran:?}");
    let help = run(&home, &["servers", "add", "--help"]).stdout;
    assert!(help.contains("Usage: gantry servers add [OPTIONS] <ID> -- <COMMAND> [ARGS]...\n"), "{help}");
    assert!(help.contains("       gantry servers add [OPTIONS] <ID> --url <URL>\n"), "{help}");
}

#[test]
fn changes_are_printed_in_words_and_as_json() {
    let home = home(&json!({ "first": faulty(&[]) }));
    let _server = home.serve();
    // There are servers already, so what is to be kept goes below them.
    let added = run(&home, &["servers", "add", "late", "--", MISSING_PROGRAM, "-y"]);
    assert_eq!(
        added.stdout,
        format!("  late:\n    command: \"{MISSING_PROGRAM}\"\n    args: [\"-y\"]\n"),
        "{added:?}"
    );
    assert!(added.stderr.contains("put this under mcpServers in the configuration"), "{added:?}");
    let added = run(&home, &["servers", "add", "later", "--json", "--", MISSING_PROGRAM]);
    assert_eq!((added.code, &added.json()["id"]), (0, &json!("later")), "{added:?}");
    let restarted = run(&home, &["servers", "restart", "later", "--json"]);
    assert_eq!((restarted.code, &restarted.json()["id"]), (0, &json!("later")), "{restarted:?}");
    let removed = run(&home, &["servers", "remove", "later", "--json"]);
    assert_eq!(removed.json(), json!({ "id": "later", "removed": true }), "{removed:?}");
    let removed = run(&home, &["servers", "remove", "first"]);
    assert_eq!((removed.code, removed.stdout.as_str()), (0, ""), "{removed:?}");
    assert!(
        removed.stderr.contains("comes back") && removed.stderr.contains("enabled: false"),
        "{removed:?}"
    );
}
