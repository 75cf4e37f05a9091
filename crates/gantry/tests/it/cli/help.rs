//! What the program says about itself.

use super::run;
use expect_test::expect;
use gantry_testkit::TestDir;

const COMMANDS: [&str; 14] = [
    "serve",
    "mcp",
    "call",
    "tools",
    "approvals",
    "servers",
    "agents",
    "lock",
    "events",
    "audit",
    "runs",
    "keys",
    "policy",
    "doctor",
];

#[test]
fn the_help_of_the_program_reads_well() {
    let ran = run(&TestDir::new(), &["--help"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    expect![[r#"
        A governed gateway between AI agents and their tools.

        Gantry gives agents tools through one pipeline. Each call is resolved, authorised, approved by a
        person where a rule asks for it, cached, queued, executed under limits, and recorded. Without a
        configuration file Gantry runs on defaults: the working folder is the workspace, and the built-in
        tools are on.

        Usage: gantry [OPTIONS] <COMMAND>

        Commands:
          serve      Serve MCP clients, the HTTP API and metrics
          mcp        Speak MCP on standard input and output, for a client that starts Gantry itself
          call       Call a tool and print its result
          tools      List the tools
          approvals  List calls that wait for an approval; show, approve, deny or watch them
          servers    List the MCP servers and their state; add, remove or restart one
          agents     List the agents, show one, or switch the active agent of a project
          lock       Pin the tool definitions of the MCP servers in gantry.lock; compare them, accept
                     changes
          events     Show events: sessions, calls, MCP servers, agents, changes of the configuration
          audit      List the recorded calls, or verify the ledger
          runs       List runs, show one with its operations, or cancel it
          keys       List, create and revoke API keys of agents, approvers and administrators
          policy     Test the policies against their examples, against one call, or against recorded calls
          config     Check or show the configuration, apply held changes, or print its schema for editors
          openapi    Inspect an OpenAPI document: its tools, and which operations are skipped and why
          doctor     Check the whole setup, or explain one MCP server or tool
          help       Print this message or the help of the given subcommand(s)

        Options:
          -h, --help
                  Print help (see a summary with '-h')

          -V, --version
                  Print version

        Global options:
          -c, --config <FILE>
                  Configuration file [default: gantry.yaml, .json or .toml in the working folder] [env:
                  GANTRY_CONFIG]

              --data <FOLDER>
                  Data folder [default: .gantry beside the configuration] [env: GANTRY_DATA]

              --json
                  Print data as JSON instead of text

          -v, --verbose...
                  Log more: -v logs every call, -vv everything

        Examples:
          gantry serve
          gantry tools
          gantry call read_file '{"path": "README.md"}'
          gantry audit --since 1h
    "#]]
    .assert_eq(&ran.stdout);
}

#[test]
fn every_command_explains_itself_within_a_hundred_columns() {
    let home = TestDir::new();
    for command in COMMANDS {
        for args in [[command, "--help"], ["help", command], [command, "-h"]] {
            let ran = run(&home, &args);
            assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
            assert!(ran.stdout.contains(&format!("Usage: gantry {command}")), "{args:?}:\n{}", ran.stdout);
            assert!(!ran.stdout.starts_with("Usage"), "{args:?} does not say what it is for");
            for line in ran.stdout.lines() {
                assert!(line.chars().count() <= 100, "{args:?}: {line}");
            }
            // Every option says what it does: no line ends where its explanation should begin.
            for line in
                ran.stdout.lines().filter(|line| line.trim_start().starts_with("--") && args[1] == "-h")
            {
                assert!(line.trim().contains("  "), "{args:?}: {line}");
            }
        }
    }
    let verify = run(&home, &["audit", "verify", "--help"]);
    assert!(verify.stdout.contains("Usage: gantry audit verify"), "{verify:?}");
}

#[test]
fn without_a_command_the_help_is_shown_as_a_mistake() {
    let ran = run(&TestDir::new(), &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    for command in COMMANDS {
        assert!(ran.stderr.contains(&format!("\n  {command} ")), "{command} is missing:\n{}", ran.stderr);
    }
}

#[test]
fn a_mistyped_command_or_option_is_answered_with_the_nearest_one() {
    let home = TestDir::new();
    let ran = run(&home, &["toolz"]);
    assert!(ran.code == 2 && ran.stderr.contains("'tools'"), "{ran:?}");
    let ran = run(&home, &["tools", "--formt", "json"]);
    assert!(ran.code == 2 && ran.stderr.contains("'--format'"), "{ran:?}");
}

#[test]
fn the_version_is_printed() {
    for args in [["--version"], ["-V"]] {
        let ran = run(&TestDir::new(), &args);
        assert_eq!((ran.code, ran.stdout), (0, format!("gantry {}\n", env!("CARGO_PKG_VERSION"))));
    }
}

#[test]
fn help_and_version_touch_nothing() {
    let home = TestDir::new().config("this is: no configuration\n");
    for args in [["--help"].as_slice(), &["--version"], &["call", "--help"], &["help"]] {
        assert_eq!(run(&home, args).code, 0, "{args:?}");
    }
    assert!(!home.path().join(".gantry").exists());
}
