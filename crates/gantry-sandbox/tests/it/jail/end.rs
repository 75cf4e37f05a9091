//! However a job ends, and whoever is gone, nothing of it is left.

use std::fs;
use std::process::{Command, Stdio};

use super::cell::{Cell, probe};
use crate::world::{all_processes, eventually, kill};

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
    let ground = cell.ground();
    for micros in [0, 300, 1000, 2000, 4000, 8000, 16000] {
        let start = cell.sandbox.start(&ground, cell.shell("sleep 1000"));
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
    running.end().await.expect_err("nobody knows how it ended");
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

/// The helper of the jobs of this cell: the one between them and whoever started it.
fn helper(cell: &Cell, gantry: u32) -> i32 {
    let processes = all_processes();
    let parent = |pid: i32| processes.iter().find(|process| process.pid == pid).map(|process| process.parent);
    let job = cell.world.processes().into_iter().find(|process| process.name == "sleep").expect("a job runs");
    let mut pid = job.pid;
    while let Some(above) = parent(pid) {
        if above == gantry.cast_signed() {
            return pid;
        }
        pid = above;
    }
    panic!("no helper above {job:?}")
}

async fn is_gone(pid: i32) {
    eventually("no helper, dead or alive", || {
        all_processes().iter().all(|process| process.pid != pid).then_some(())
    })
    .await;
}
