//! Control groups on a folder that only looks like one: what is read, and what is written where.

use super::{Cgroups, own_group};
use crate::jail::Limits;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A delegated group with the files that the kernel would put there.
fn delegated(controllers: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let files =
        [("cgroup.controllers", controllers), ("cgroup.subtree_control", ""), ("cgroup.procs", "11\n12\n")];
    for (name, content) in files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

fn read(folder: &Path, path: &str) -> String {
    fs::read_to_string(folder.join(path)).unwrap()
}

#[test]
fn the_own_group_is_that_of_version_2() {
    let mixed = "4:memory:/a\n0::/system.slice/gantry.service\n";
    assert_eq!(own_group(mixed), Some(PathBuf::from("/sys/fs/cgroup/system.slice/gantry.service")));
    for without in ["4:memory:/a\n", "0::/\n", "0::/../outside\n", ""] {
        assert_eq!(own_group(without), None, "{without:?}");
    }
}

#[test]
fn the_processes_of_the_unit_move_down_before_limits_are_enabled() {
    let folder = delegated("cpu memory pids");
    Cgroups::open(folder.path(), folder.path()).unwrap();
    assert_eq!(read(folder.path(), "gantry-own/cgroup.procs"), "12");
    assert_eq!(read(folder.path(), "cgroup.subtree_control"), "+memory +pids");
}

#[test]
fn nothing_moves_where_the_system_has_already_put_gantry_below() {
    let folder = delegated("memory pids");
    fs::write(folder.path().join("cgroup.subtree_control"), "memory pids").unwrap();
    Cgroups::open(folder.path(), &folder.path().join("main")).unwrap();
    assert!(!folder.path().join("gantry-own").exists());
    assert_eq!(read(folder.path(), "cgroup.subtree_control"), "memory pids");
}

#[test]
fn a_group_without_the_limits_is_of_no_use() {
    let folder = delegated("cpu io");
    Cgroups::open(folder.path(), folder.path()).unwrap_err();
    assert!(!folder.path().join("gantry-own").exists());
}

const LIMITS: Limits = Limits {
    wall: Duration::from_secs(1),
    cpu: Duration::from_secs(1),
    memory: 5 << 20,
    processes: 10,
    written: 0,
    output: 0,
};

#[test]
fn a_job_gets_a_group_with_its_limits() {
    let folder = delegated("memory pids");
    let cgroups = Cgroups::open(folder.path(), folder.path()).unwrap();
    let cgroup = cgroups.job(&LIMITS).unwrap();
    cgroup.admit(4711).unwrap();
    let expected = [
        ("cgroup.procs", "4711"),
        ("memory.max", "5242880"),
        ("memory.swap.max", "0"),
        ("memory.oom.group", "1"),
        ("pids.max", "14"),
    ];
    for (file, value) in expected {
        assert_eq!(read(&cgroup.0, file), value, "{file}");
    }
    assert_ne!(cgroups.job(&LIMITS).unwrap().0, cgroup.0);

    assert!(!cgroup.ran_out_of_memory());
    fs::write(cgroup.0.join("memory.events"), "oom 0\noom_kill 0\n").unwrap();
    assert!(!cgroup.ran_out_of_memory());
    fs::write(cgroup.0.join("memory.events"), "oom 1\noom_kill 3\n").unwrap();
    assert!(cgroup.ran_out_of_memory());
}

#[test]
fn groups_that_a_killed_gantry_has_left_are_passed_over() {
    let folder = delegated("memory pids");
    let group = |number: u32| folder.path().join(format!("gantry-job-{}-{number}", std::process::id()));
    for number in [0, 1] {
        fs::create_dir(group(number)).unwrap();
    }
    let cgroups = Cgroups::open(folder.path(), folder.path()).unwrap();
    assert_eq!(cgroups.job(&LIMITS).unwrap().0, group(2));
    assert_eq!(fs::read_dir(group(0)).unwrap().count(), 0);

    // Any other error is one, and is not repeated.
    fs::remove_dir_all(folder.path()).unwrap();
    assert_eq!(cgroups.job(&LIMITS).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(cgroups.n_made.load(Ordering::Relaxed), 4);
}

#[test]
fn a_group_is_killed_before_it_is_removed() {
    let folder = delegated("memory pids");
    let group = folder.path().join("gantry-job-1-0");
    fs::create_dir(&group).unwrap();
    // Here it keeps the folder from being removed; in a real group it does not.
    fs::write(group.join("cgroup.kill"), "").unwrap();
    drop(super::JobCgroup(group.clone()));
    assert_eq!(read(&group, "cgroup.kill"), "1");
}
