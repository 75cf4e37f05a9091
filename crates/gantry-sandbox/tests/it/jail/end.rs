//! However a job ends, and whichever of its processes died, nothing of it is left.

use super::cell::{Cell, probe};
use crate::world::{all_processes, eventually, kill};
use gantry_sandbox::jail::{Workspace, wait_idle};
use gantry_sandbox::protected::ProtectedPaths;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Command, Stdio};

/// Starts daemons that ignore signals, says so by a file, and waits.
const STUBBORN: &str = "for i in 1 2 3; do (trap '' HUP INT TERM; setsid sleep 1000 </dev/null >/dev/null 2>&1 &); done; \
    touch ready; trap '' HUP INT TERM; sleep 1000; sleep 1000";

async fn is_ready(cell: &Cell) {
    eventually("a job", || fs::metadata(cell.path().join("ready"))).await;
    // The shell, its child and three daemons.
    eventually("the whole tree", || (cell.world.processes().len() == 5).then_some(())).await;
}

#[tokio::test]
async fn a_dropped_job_leaves_nothing() {
    let cell = Cell::new();
    let running = cell.start(cell.shell(STUBBORN)).await;
    is_ready(&cell).await;
    let helper = helper(&cell, std::process::id());
    drop(running);
    cell.world.is_empty().await;
    is_gone(helper).await;
}

#[tokio::test]
async fn a_wait_that_is_given_up_leaves_nothing() {
    let cell = Cell::new();
    let running = cell.start(cell.shell(STUBBORN)).await;
    let end = tokio::spawn(running.end());
    is_ready(&cell).await;
    end.abort();
    cell.world.is_empty().await;
}

#[tokio::test]
async fn a_start_that_is_given_up_leaves_nothing() {
    let cell = Cell::new();
    let workspace = cell.workspace();
    for micros in [0, 300, 1000, 2000, 4000, 8000, 16000] {
        let start = cell.sandbox.start(&workspace, cell.shell("sleep 1000"));
        let waited = tokio::time::timeout(std::time::Duration::from_micros(micros), start).await;
        drop(waited);
    }
    cell.world.is_empty().await;
}

#[tokio::test]
async fn nothing_survives_a_killed_gantry() {
    let cell = Cell::new();
    let mut gantry = Command::new(probe())
        .arg("jail")
        .arg(cell.path())
        .arg(STUBBORN)
        .env("MARK", &cell.world.mark)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    eventually("a job", || fs::metadata(cell.path().join("ready"))).await;
    eventually("the whole tree", || (cell.world.processes().len() == 6).then_some(())).await;
    let helper = helper(&cell, gantry.id());

    gantry.kill().expect("it is killed");
    gantry.wait().expect("it ended");
    cell.world.is_empty().await;
    eventually("no helper", || {
        all_processes().iter().all(|process| process.pid != helper || process.state == "Z").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_killed_helper_takes_the_job_along() {
    let cell = Cell::new();
    let running = cell.start(cell.shell(STUBBORN)).await;
    is_ready(&cell).await;
    kill(helper(&cell, std::process::id()));
    running.end().await.expect_err("its helper is gone");
    cell.world.is_empty().await;
}

#[tokio::test]
async fn jobs_leave_no_descriptor_behind() {
    let cell = Cell::new();
    let open = || fs::read_dir("/proc/self/fd").expect("descriptors").count();
    cell.run(cell.job("true", &[])).await;
    let before = open();
    for _ in 0..20 {
        let mut job = cell.job("true", &[]);
        job.network = true;
        cell.run(job).await;
    }
    eventually("no descriptor more", || (open() <= before).then_some(())).await;
}

/// A workspace with something protected in it, which does not exist.
fn guarded(cell: &Cell) -> Workspace {
    let missing = ["gantry.yaml", ".env"].map(|name| cell.path().join(name));
    Workspace::open(cell.path(), ProtectedPaths { read_only: missing.into(), ..ProtectedPaths::default() })
        .expect("a workspace")
}

fn names(cell: &Cell) -> Vec<String> {
    let entries = fs::read_dir(cell.path()).expect("a folder").map(|entry| entry.expect("an entry"));
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().expect("a name")).collect();
    names.sort();
    names
}

#[tokio::test]
async fn nothing_is_left_of_jobs_whose_caller_has_gone() {
    let cell = Cell::new();
    // There is nothing to wait for.
    wait_idle().await;
    let workspace = guarded(&cell);
    let running = cell.sandbox.start(&workspace, cell.shell(STUBBORN)).await.expect("it starts");
    is_ready(&cell).await;
    assert_eq!(names(&cell), ["ready"]);
    drop(running);
    wait_idle().await;
    assert_eq!(names(&cell), ["ready"]);
    assert_eq!(cell.world.processes(), []);
}

#[tokio::test]
async fn a_killed_helper_leaves_nothing() {
    let cell = Cell::new();
    let workspace = guarded(&cell);
    let running = cell.sandbox.start(&workspace, cell.shell(STUBBORN)).await.expect("it starts");
    is_ready(&cell).await;
    kill(helper(&cell, std::process::id()));
    running.end().await.expect_err("its helper is gone");
    // The jail dies by itself, a moment after its helper.
    cell.world.is_empty().await;
    assert_eq!(names(&cell), ["ready"]);
}

#[tokio::test]
async fn a_helper_that_does_not_end_is_killed() {
    let cell = Cell::new();
    let workspace = guarded(&cell);
    let script = "touch ready; while [ -e ready ]; do sleep 0.01; done";
    let running = cell.sandbox.start(&workspace, cell.shell(script)).await.expect("it starts");
    eventually("a job", || fs::metadata(cell.path().join("ready"))).await;
    let helper = eventually("a helper", || find_helper(&cell, std::process::id())).await;
    kill_process(Pid::from_raw(helper).expect("a process"), Signal::STOP).expect("it is stopped");
    fs::remove_file(cell.path().join("ready")).expect("the job ends");
    let error = running.end().await.expect_err("the helper never said that it was over").to_string();
    assert!(error.contains("its helper was killed"), "{error}");
    is_gone(helper).await;
    assert_eq!(cell.world.processes(), []);
    assert_eq!(names(&cell), [""; 0]);
}

/// The helper of the jobs of this cell: the process between them and the one that started it.
fn helper(cell: &Cell, gantry: u32) -> i32 {
    find_helper(cell, gantry).expect("a job runs, with a helper above it")
}

fn find_helper(cell: &Cell, gantry: u32) -> Option<i32> {
    let processes = all_processes();
    let parent = |pid: i32| processes.iter().find(|process| process.pid == pid).map(|process| process.parent);
    let of_job = |name: &str| matches!(name, "sh" | "sleep");
    let found = cell.world.processes().into_iter().filter(|process| of_job(&process.name));
    // The oldest of them: one that came after all were listed has no parent among those.
    let mut pid = found.map(|process| process.pid).min()?;
    loop {
        let above = parent(pid)?;
        if above == gantry.cast_signed() {
            return Some(pid);
        }
        pid = above;
    }
}

async fn is_gone(pid: i32) {
    eventually("no helper, dead or alive", || {
        all_processes().iter().all(|process| process.pid != pid).then_some(())
    })
    .await;
}
