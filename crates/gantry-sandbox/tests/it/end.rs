//! However a program ends, nothing of it is left: not even a daemon that has gone its own way.

use crate::world::{DAEMON, LONG, PROBE, World, all_processes, eventually, kill, this_process};
use gantry_sandbox::{Exit, spawn};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A program with a daemon and an ordinary child, that ends when its input does.
fn with_daemon() -> String {
    format!("{DAEMON}; sleep 1000 & echo ready; exec cat")
}

#[tokio::test]
async fn a_program_that_ends_takes_its_daemons_along() {
    let world = World::new();
    let mut child = world.start(&format!("{DAEMON}; echo ready; read line; exit 3")).await;
    world.daemon(&child).await;
    drop(child.stdin.take());

    assert_eq!(child.wait().await.expect("an exit"), Exit::Code(3));
    assert_eq!(world.processes(), []);
    assert_eq!(child.wait().await.expect("the same again"), Exit::Code(3));
}

#[tokio::test]
async fn a_program_that_crashes_takes_its_daemons_along() {
    let world = World::new();
    let mut child = world.start(&with_daemon()).await;
    world.daemon(&child).await;
    kill(child.pid());

    assert_eq!(child.wait().await.expect("an exit"), Exit::Signal(9));
    assert_eq!(world.processes(), []);
}

#[tokio::test]
async fn a_stopped_program_leaves_nothing() {
    let world = World::new();
    let child = world.start(&with_daemon()).await;
    world.daemon(&child).await;

    assert_eq!(child.stop(LONG).await.expect("an exit"), Exit::Code(0));
    assert_eq!(world.processes(), []);
}

#[tokio::test]
async fn a_dropped_program_leaves_nothing() {
    let world = World::new();
    let child = world.start(&with_daemon()).await;
    world.daemon(&child).await;
    let outer = world.outer_guard(&child).pid;
    drop(child);
    world.is_empty().await;
    eventually("no dead guard", || all_processes().iter().all(|p| p.pid != outer).then_some(())).await;
}

#[tokio::test]
async fn nothing_survives_a_killed_gantry() {
    let world = World::new();
    let mut gantry = Command::new(PROBE)
        .arg(with_daemon())
        .env("MARK", &world.mark)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    BufReader::new(gantry.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    // The probe, its two guards, the program, its child and its daemon.
    eventually("the whole tree", || (world.processes().len() == 6).then_some(())).await;

    gantry.kill().expect("it is killed");
    gantry.wait().expect("it ended");
    world.is_empty().await;
}

#[tokio::test]
async fn nothing_survives_a_killed_outer_guard() {
    let world = World::new();
    let mut child = world.start(&with_daemon()).await;
    world.daemon(&child).await;
    kill(world.outer_guard(&child).pid);

    assert_eq!(child.wait().await.expect("an exit"), Exit::Signal(9));
    // The inner one is left, and ends the rest and then itself.
    world.is_empty().await;
}

#[tokio::test]
async fn nothing_survives_a_killed_inner_guard() {
    let world = World::new();
    let mut child = world.start(&with_daemon()).await;
    world.daemon(&child).await;
    kill(world.inner_guard(&child).pid);

    assert_eq!(child.wait().await.expect("an exit"), Exit::Signal(9));
    assert_eq!(world.processes(), []);
}

#[tokio::test]
async fn the_group_of_the_program_survives_not_even_two_killed_guards() {
    let world = World::new();
    let mut child = world.start("sleep 1000 & echo ready; exec cat").await;
    let (outer, inner) = (world.outer_guard(&child).pid, world.inner_guard(&child).pid);
    // The inner one first and in one breath: what the outer one manages to do in between is no harm.
    kill(inner);
    kill(outer);

    assert_eq!(child.wait().await.expect("an exit"), Exit::Signal(9));
    world.is_empty().await;
}

#[tokio::test]
async fn a_stop_asks_by_signal_when_the_closed_input_is_ignored() {
    let world = World::new();
    let child = world.start("trap 'exit 5' TERM; echo ready; while :; do sleep 1000; done").await;
    // Long enough for the half that waits to pass, and for the trap to run in the other.
    assert_eq!(child.stop(Duration::from_secs(4)).await.expect("an exit"), Exit::Code(5));
    assert_eq!(world.processes(), []);
}

#[tokio::test]
async fn a_program_that_ignores_everything_is_killed() {
    let world = World::new();
    let child =
        world.start(&format!("trap '' TERM; {DAEMON}; echo ready; while :; do sleep 1000; done")).await;
    world.daemon(&child).await;
    assert_eq!(child.stop(Duration::from_millis(200)).await.expect("an exit"), Exit::Signal(9));
    assert_eq!(world.processes(), []);
}

#[tokio::test]
async fn signals_for_gantry_do_not_end_the_guards() {
    let world = World::new();
    let mut child = world.start("echo ready; read line; exit 4").await;
    for guard in [world.outer_guard(&child), world.inner_guard(&child)] {
        let status = std::fs::read_to_string(format!("/proc/{}/status", guard.pid)).expect("it runs");
        // Bits 0, 1 and 14: SIGHUP, SIGINT, SIGTERM.
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:\t")).expect("a mask");
        assert_eq!(u64::from_str_radix(blocked, 16).expect("a number") & 0x4003, 0x4003);
        assert_ne!(guard.session, this_process().session);
    }
    drop(child.stdin.take());
    assert_eq!(child.wait().await.expect("an exit"), Exit::Code(4));
}

#[tokio::test]
async fn orphans_that_end_do_not_pile_up_while_the_program_runs() {
    let world = World::new();
    let script = "for i in 1 2 3 4 5 6 7 8; do setsid sh -c 'true &'; done; echo ready; exec cat";
    let child = world.start(script).await;
    let inner = world.inner_guard(&child).pid;
    eventually("no dead child of the guard", || {
        let dead: Vec<_> =
            all_processes().into_iter().filter(|p| p.parent == inner && p.state == "Z").collect();
        if dead.is_empty() { Ok(()) } else { Err(dead) }
    })
    .await;
    assert!(world.process(child.pid()).is_some());
}

#[tokio::test]
async fn fifty_programs_dropped_at_once_leave_nothing() {
    let world = World::new();
    let script = with_daemon();
    let starts: Vec<_> = (0..50)
        .map(|_| {
            let spec = world.shell(&script);
            tokio::spawn(async move { spawn(&spec).await.expect("it starts") })
        })
        .collect();
    let mut children = Vec::new();
    for start in starts {
        children.push(start.await.expect("no panic"));
    }
    eventually("all daemons", || {
        let sleepers = world.processes().iter().filter(|process| process.name == "sleep").count();
        if sleepers == 100 { Ok(()) } else { Err(sleepers) }
    })
    .await;
    drop(children);
    world.is_empty().await;
}
