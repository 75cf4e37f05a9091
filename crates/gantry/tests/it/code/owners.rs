//! Gantry as root: the code is never root, with any owner of the workspace.

use super::site::{Site, eventually, is_root};
use crate::queues::{cancel, defer};
use gantry_testkit::test_dir::give;
use gantry_testkit::{TestDir, process};
use serde_json::json;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};

/// The user that a process runs as.
fn user_of(pid: u32) -> u32 {
    std::fs::metadata(format!("/proc/{pid}/status")).map_or(u32::MAX, |file| file.uid())
}

/// Whom code runs as, as the system sees it, while it runs.
fn runs_as(site: &Site) -> Vec<u32> {
    let arguments = site.arguments("bash", "touch begun; sleep 600", &json!({ "timeout": 600 }));
    let id = defer(site.server(), &json!({ "tool": "run_code", "arguments": arguments }));
    eventually("it runs", || site.inside("begun").exists());
    let users = process::find_processes(&site.mark).into_iter().map(|(pid, _)| user_of(pid)).collect();
    cancel(site.server(), &id);
    site.nothing_runs();
    std::fs::remove_file(site.inside("begun")).expect("the file");
    users
}

/// An ordinary user has neither root's workspaces nor another user's, so this is what there is to see.
fn runs_as_oneself(site: &Site) {
    let users = runs_as(site);
    let own = rustix::process::geteuid().as_raw();
    assert!(!users.is_empty() && users.iter().all(|user| *user == own), "{users:?}");
}

#[test]
fn blt_2_code_on_a_workspace_of_root_is_a_user_that_owns_nothing() {
    let site = Site::one("");
    if !is_root() {
        return runs_as_oneself(&site);
    }
    site.put("theirs.txt", "of root\n");
    std::fs::set_permissions(site.inside("theirs.txt"), PermissionsExt::from_mode(0o600)).expect("a mode");
    let users = runs_as(&site);
    assert!(!users.is_empty() && users.iter().all(|user| *user > 65_536), "{users:?}");
    let result = site.code(
        "bash",
        "cat theirs.txt; echo more >> theirs.txt; mkdir d; echo x > d/new; stat -c %u . theirs.txt d/new",
    );
    assert_eq!(result["stdout"], "of root\n1000\n1000\n1000\n", "{result}");
    for path in ["theirs.txt", "d", "d/new"] {
        let file = site.inside(path).metadata().expect("it is there");
        assert_eq!((file.uid(), file.gid()), (0, 0), "{path}");
    }
    assert_eq!(site.home.read("ws/theirs.txt"), "of root\nmore\n");
    site.settled();
}

#[test]
fn blt_2_code_on_a_users_workspace_is_that_user_and_leaves_roots_files_in_it_alone() {
    const OTHER_USER: u32 = 61_300;
    if !is_root() {
        return runs_as_oneself(&Site::one(""));
    }
    let home = TestDir::new();
    home.write("ws/theirs.txt", "of somebody\n");
    give(&home.path().join("ws"), OTHER_USER);
    // The way to the workspace is open to root alone; the code needs none.
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o700)).expect("a mode");
    let site = Site::at(home, "");
    site.home.write("ws/roots.txt", "of root\n");
    std::fs::set_permissions(site.inside("roots.txt"), PermissionsExt::from_mode(0o600)).expect("a mode");
    let users = runs_as(&site);
    assert!(!users.is_empty() && users.iter().all(|user| *user == OTHER_USER), "{users:?}");
    let result = site.code("bash", "cat theirs.txt; echo more >> theirs.txt; echo x > new; cat roots.txt");
    assert_eq!((&result["stdout"], &result["exitCode"]), (&json!("of somebody\n"), &json!(1)), "{result}");
    assert_eq!(site.inside("new").metadata().expect("the file").uid(), OTHER_USER);
    assert_eq!(site.home.read("ws/roots.txt"), "of root\n");
    site.settled();
}
