//! What a program is given, and why one does not start.

use crate::world::{PROBE, World};
use gantry_sandbox::{Error, Exit, Spec, spawn};
use std::error::Error as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Runs a program to its end and returns what it wrote.
async fn output(spec: &Spec) -> (Exit, String, String) {
    let mut child = spawn(spec).await.expect("it starts");
    drop(child.stdin.take());
    let (mut out, mut err) = (String::new(), String::new());
    let (mut stdout, mut stderr) =
        (child.stdout.take().expect("a pipe"), child.stderr.take().expect("a pipe"));
    let (read_out, read_err) = tokio::join!(stdout.read_to_string(&mut out), stderr.read_to_string(&mut err));
    read_out.expect("text");
    read_err.expect("text");
    (child.wait().await.expect("an exit"), out, err)
}

async fn refusal(spec: &Spec) -> Error {
    spawn(spec).await.expect_err("it does not start")
}

#[tokio::test]
async fn the_environment_is_exactly_the_one_that_is_given() {
    let world = World::new();
    let mut spec = world.shell("");
    (spec.program, spec.args) = ("env".into(), Vec::new());
    let path = spec.env.get(std::ffi::OsStr::new("PATH")).expect("a PATH").clone();
    let given =
        [("PATH", path.to_str().expect("text")), ("TOKEN", "a b=c"), ("GUARDED_X", "kept"), ("EMPTY", "")];
    spec.env = given.iter().map(|(name, value)| (name.into(), value.into())).collect();

    let (exit, out, _) = output(&spec).await;

    assert_eq!(exit, Exit::Code(0));
    let mut lines: Vec<&str> = out.lines().collect();
    let mut expected: Vec<String> = given.iter().map(|(name, value)| format!("{name}={value}")).collect();
    lines.sort_unstable();
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn the_base_environment_has_no_other_variable_of_this_process() {
    let base = gantry_sandbox::base_environment();
    assert_eq!(base.get(std::ffi::OsStr::new("PATH")).cloned(), std::env::var_os("PATH"));
    let allowed = ["PATH", "HOME", "LANG", "TMPDIR"];
    assert!(base.keys().all(|name| allowed.iter().any(|allowed| name == allowed)), "{base:?}");
}

#[tokio::test]
async fn arguments_and_working_folder_arrive_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut spec = World::new().shell(r#"pwd; printf '%s|' "$0" "$@"; echo oops >&2; exit 7"#);
    spec.args.extend(["zero".into(), "two words".into(), "".into(), "--flag".into()]);
    spec.cwd = Some(folder.path().canonicalize().expect("a path"));

    let (exit, out, err) = output(&spec).await;

    let expected = format!("{}\nzero|two words||--flag|", spec.cwd.expect("a folder").display());
    assert_eq!((exit, out, err.as_str()), (Exit::Code(7), expected, "oops\n"));
}

#[tokio::test]
async fn the_pipes_connect_gantry_and_the_program_only() {
    let world = World::new();
    let mut child = spawn(&world.shell("read line; echo \"got $line\"; exec >&- 2>&-; read line; exit 6"))
        .await
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(b"one\n").await.expect("it reads");
    let mut out = String::new();

    // The program lives on after it has closed its output: were a copy in a guard, this would not end.
    child.stdout.take().expect("a pipe").read_to_string(&mut out).await.expect("text");
    child.stderr.take().expect("a pipe").read_to_string(&mut String::new()).await.expect("text");
    assert_eq!(out, "got one\n");
    assert!(world.process(child.pid()).is_some());

    // And this reaches it only if no guard holds the other end of its input.
    drop(stdin);
    assert_eq!(child.wait().await.expect("an exit"), Exit::Code(6));
}

#[tokio::test]
async fn the_program_leads_its_own_session_and_blocks_no_signal() {
    let world = World::new();
    let child = world.start("echo ready; exec cat").await;
    let status = fs::read_to_string(format!("/proc/{}/status", child.pid())).expect("it runs");
    assert!(status.contains("SigBlk:\t0000000000000000"), "{status}");
    assert_eq!(world.process(child.pid()).expect("it runs").session, child.pid());
}

#[tokio::test]
async fn descriptors_that_gantry_was_started_with_are_not_handed_on() {
    let world = World::new();
    let script = format!("exec 9</dev/null; exec {PROBE} 'echo /proc/$$/fd/*'");
    let ran = Command::new("sh").args(["-c", &script]).env("MARK", &world.mark).output().expect("it runs");
    let out = String::from_utf8_lossy(&ran.stdout);
    assert!(out.contains("/fd/2") && !out.contains("/fd/9"), "{ran:?}");
}

#[tokio::test]
async fn a_command_that_is_not_on_the_path_is_named_with_the_path() {
    let mut spec = World::new().shell("");
    spec.program = "no-such-command".into();
    spec.env.insert("PATH".into(), "/nowhere:/usr/nothing".into());
    let text = refusal(&spec).await.to_string();
    assert_eq!(
        text,
        "command `no-such-command` was not found on the PATH `/nowhere:/usr/nothing`; \
         install it, correct its name, or give its absolute path"
    );

    spec.program = "".into();
    assert!(matches!(refusal(&spec).await, Error::CommandNotFound { .. }));
}

#[tokio::test]
async fn the_path_of_the_program_decides_not_that_of_gantry() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut spec = World::new().shell("");
    (spec.program, spec.args) = ("tool".into(), Vec::new());
    let file = folder.path().join("tool");
    fs::write(&file, "#!/bin/sh\necho \"$0\"\n").expect("a file");
    spec.env.insert("PATH".into(), format!(":/nowhere:{}", folder.path().display()).into());

    let error = refusal(&spec).await;
    assert!(matches!(&error, Error::NotExecutable { program } if *program == file), "{error}");
    assert!(error.to_string().contains("chmod +x"), "{error}");

    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a mode");
    assert_eq!(output(&spec).await.1, format!("{}\n", file.display()));

    // The same file by a path from the working folder; but an empty entry of the PATH is not that folder.
    spec.cwd = Some(folder.path().into());
    spec.program = "./tool".into();
    assert_eq!(output(&spec).await.0, Exit::Code(0));
    spec.program = "tool".into();
    spec.env.insert("PATH".into(), ":/nowhere".into());
    assert!(matches!(refusal(&spec).await, Error::CommandNotFound { .. }));
}

#[tokio::test]
async fn what_cannot_be_executed_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let world = World::new();
    let mut spec = world.shell("");
    let file = folder.path().join("tool");
    spec.program = file.clone().into();
    assert!(matches!(refusal(&spec).await, Error::ProgramNotFound { program } if program == file));

    fs::write(&file, "#!/nowhere/interpreter\n").expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a mode");
    let error = refusal(&spec).await;
    assert!(matches!(error, Error::Execute { .. }) && error.to_string().contains("interpreter"), "{error}");
    assert!(error.source().is_some_and(|source| source.to_string().contains("No such file")), "{error:?}");

    spec.cwd = Some(folder.path().join("missing"));
    let error = refusal(&spec).await;
    assert!(matches!(error, Error::WorkingFolder { .. }) && error.to_string().contains("missing"), "{error}");
    spec.cwd = Some(file);
    assert!(matches!(refusal(&spec).await, Error::WorkingFolder { .. }));
    world.is_empty().await;
}

#[tokio::test]
async fn text_that_no_process_can_get_is_refused() {
    let mut spec = World::new().shell("true");
    spec.args.push("a\0b".into());
    assert_eq!(
        refusal(&spec).await.to_string(),
        "argument 3 contains a NUL byte, which cannot be handed to a process; remove it"
    );
    spec.args.pop();
    for name in ["", "A=B", "A\0"] {
        let mut spec = spec.clone();
        spec.env.insert(name.into(), "x".into());
        assert!(matches!(refusal(&spec).await, Error::VariableName { .. }), "{name:?}");
    }
}

#[tokio::test]
async fn a_program_that_cannot_be_a_guard_starts_nothing() {
    let mut spec = World::new().shell("true");
    spec.guard = None;
    assert!(matches!(refusal(&spec).await, Error::NoGuard));
    spec.guard = Some("/bin/true".into());
    assert!(matches!(refusal(&spec).await, Error::GuardLost { .. }));
}

/// Runs on a runtime whose only thread for work that blocks is held up, as by a file system that does not answer.
fn with_threads_held_up<T>(test: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build().expect("a runtime");
    runtime.block_on(async {
        let (release, held) = std::sync::mpsc::channel::<()>();
        let holding = tokio::task::spawn_blocking(move || held.recv());
        let outcome = test.await;
        drop(release);
        holding.await.expect("it ends").expect_err("nothing is sent");
        outcome
    })
}

#[test]
fn a_file_system_that_does_not_answer_holds_up_its_own_start_only_and_not_for_ever() {
    let world = World::new();
    let spec = world.shell("sleep 1000");
    let outcome = with_threads_held_up(async {
        let starting = tokio::spawn(async move { spawn(&spec).await });
        // Were the system asked right here, the program would run by now.
        tokio::task::yield_now().await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(11)).await;
        starting.await.expect("no panic")
    });
    let error = outcome.expect_err("it does not start").to_string();
    assert_eq!(error, "sh was not started within 10 s; check that its file system answers");
    assert_eq!(world.processes(), []);
}

#[test]
fn the_guard_by_hand_says_that_it_is_not_for_that() {
    for args in [&["__guard"][..], &["__guard", "1", "sh", "sh"], &["__guard", "77", "sh", "sh"]] {
        let ran = Command::new(PROBE).args(args).output().expect("it runs");
        assert_eq!(ran.status.code(), Some(125));
        assert!(String::from_utf8_lossy(&ran.stderr).contains("own use"), "{ran:?}");
    }
}

#[test]
fn a_specification_in_a_log_shows_no_values() {
    let mut spec = Spec::new("npx");
    spec.env.insert("TOKEN".into(), "hunter2".into());
    let shown = format!("{spec:?}");
    assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
}
