//! Every user may run Gantry and own the workspace: files get the right owner, and all else is the same.

use super::cell::{Cell, kept, probe};
use gantry_sandbox::jail::Access;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// A user id without an account on this machine.
const ORDINARY: u32 = 12345;

fn owner(path: &Path) -> (u32, u32) {
    let metadata = fs::symlink_metadata(path).expect("it is there");
    (metadata.uid(), metadata.gid())
}

#[tokio::test]
async fn new_files_belong_to_whom_the_workspace_belongs() {
    let cell = Cell::new();
    fs::write(cell.path().join("old"), "x").expect("a file");
    let script = "id -u; id -g; echo y >> old; touch new; mkdir d; ln -s new link; stat -c %u:%g old new d .";
    let text = cell.output(cell.shell(script)).await;
    assert_eq!(text, "1000\n1000\n1000:1000\n1000:1000\n1000:1000\n1000:1000\n");
    for name in ["old", "new", "d", "link"] {
        assert_eq!(owner(&cell.path().join(name)), owner(cell.path()), "{name}");
    }
}

#[tokio::test]
async fn the_store_belongs_to_whom_it_did() {
    let cell = Cell::new();
    let store = tempfile::tempdir().expect("a folder");
    let mut job = cell.shell("touch /store/new /workspace/new && stat -c %u:%g /store/new");
    job.stores = vec![kept(store.path(), Access::Write)];
    assert_eq!(cell.output(job).await, "1000:1000\n");
    assert_eq!(owner(&store.path().join("new")), owner(store.path()));
}

#[tokio::test]
async fn a_workspace_of_another_user_stays_that_users() {
    if !rustix::process::geteuid().is_root() {
        return; // Only root can give a folder away; the same test runs as root.
    }
    for ids in [(ORDINARY, ORDINARY), (ORDINARY, 0), (0, ORDINARY)] {
        let cell = Cell::new();
        chown(cell.path(), Some(ids.0), Some(ids.1)).expect("root may");
        fs::set_permissions(cell.path(), fs::Permissions::from_mode(0o700)).expect("root may");
        let store = tempfile::tempdir().expect("a folder");
        let mut job = cell.shell("touch new && touch /store/new && stat -c %u:%g new .");
        job.stores = vec![kept(store.path(), Access::Write)];
        assert_eq!(cell.output(job).await, "1000:1000\n1000:1000\n");
        assert_eq!(owner(&cell.path().join("new")), ids);
        assert_eq!(owner(&store.path().join("new")), (0, 0));
    }
}

#[tokio::test]
async fn everything_holds_for_an_ordinary_user_too() {
    if !rustix::process::geteuid().is_root() {
        return; // It does: this is it.
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("rights");
    let temporary = folder.path().join("tmp");
    fs::create_dir(&temporary).expect("a folder");
    chown(&temporary, Some(ORDINARY), Some(ORDINARY)).expect("root may");
    let tests = folder.path().join("it");
    let helper = folder.path().join("sandbox-probe");
    fs::copy(std::env::current_exe().expect("this program"), &tests).expect("a copy");
    fs::copy(probe(), &helper).expect("a copy");
    for program in [&tests, &helper] {
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).expect("rights");
    }
    let ran = Command::new(&tests)
        .args(["jail::", "--test-threads", "4", "--skip", "everything_holds"])
        // It counts what is open in this whole process, which runs all the tests.
        .args(["--skip", "jobs_leave_no_descriptor_behind"])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("TMPDIR", &temporary)
        .env("SANDBOX_PROBE", &helper)
        .current_dir(&temporary)
        .uid(ORDINARY)
        .gid(ORDINARY)
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{text}\n{}", String::from_utf8_lossy(&ran.stderr));
    assert!(
        text.contains("everything_holds") || text.contains("1 filtered out") || text.contains("passed"),
        "{text}"
    );
}
