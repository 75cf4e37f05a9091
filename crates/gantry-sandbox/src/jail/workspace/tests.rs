//! What is covered in which workspace, and that nothing is made for it but folders that git has anyway.

use super::{MountMode, ProtectedMount, Workspace, WorkspaceLease};
use crate::jail::{Access, JailError};
use crate::protected::ProtectedPaths;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A workspace in a folder of its own.
struct Fixture {
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let fixture = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(fixture.at("")).unwrap();
        fixture
    }

    /// A path in the workspace.
    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join("work").join(path)
    }

    fn file(&self, path: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), path).unwrap();
    }

    fn workspace(&self, hidden: &[&str], read_only: &[&str]) -> Workspace {
        let paths = |given: &[&str]| given.iter().map(|path| self.at(path)).collect();
        let protected = ProtectedPaths { hidden: paths(hidden), read_only: paths(read_only) };
        Workspace::open(&self.at(""), protected).unwrap()
    }

    /// Every path in the workspace, with a letter for its kind.
    fn entries(&self) -> Vec<String> {
        let mut found = Vec::new();
        list(&self.at(""), Path::new(""), &mut found);
        found.sort();
        found
    }

    fn git(&self, args: &[&str]) -> String {
        #[expect(clippy::disallowed_methods, reason = "the test asks git itself")]
        let ran = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "safe.directory=*"])
            .args(args)
            .current_dir(self.at(""))
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(ran.status.success(), "{args:?}: {}", text(&ran.stderr));
        text(&ran.stdout)
    }
}

fn list(folder: &Path, below: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = below.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        let letter = match kind {
            kind if kind.is_dir() => "d",
            kind if kind.is_symlink() => "l",
            kind if kind.is_socket() => "s",
            _ => "f",
        };
        found.push(format!("{letter} {}", path.display()));
        if kind.is_dir() {
            list(&entry.path(), &path, found);
        }
    }
}

fn write(workspace: &Workspace) -> WorkspaceLease {
    workspace.acquire(Access::Write).unwrap()
}

/// What one job finds covered that is over at once and has made nothing.
fn covered(workspace: &Workspace) -> Vec<String> {
    let lease = write(workspace);
    assert_eq!(lease.take_away(), None);
    lines(&lease.mounts)
}

/// One line per cover.
fn lines(covers: &[ProtectedMount]) -> Vec<String> {
    let line = |cover: &ProtectedMount| {
        let how = match cover.mode {
            MountMode::Pin => "pin",
            MountMode::ReadOnly => "seal",
            MountMode::Hide => "hide",
        };
        format!("{how} {}{}", cover.path.display(), if cover.is_dir { "/" } else { "" })
    };
    covers.iter().map(line).collect()
}

fn refusal(result: Result<impl Sized, JailError>) -> String {
    match result {
        Ok(_) => panic!("it is refused"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_exists_is_covered_and_the_folders_above_it_are_pinned() {
    let fixture = Fixture::new();
    for file in ["gantry.yaml", "a/b/secret", "agents/one.md", "plain.txt"] {
        fixture.file(file);
    }
    let workspace = fixture.workspace(&["a/b/secret"], &["gantry.yaml", "agents"]);
    let before = fixture.entries();

    let lease = write(&workspace);
    let expected = ["pin a/", "pin a/b/", "hide a/b/secret", "seal agents/", "seal gantry.yaml"];
    assert_eq!(lines(&lease.mounts), expected);
    assert_eq!(fixture.entries(), before);
    let stat = fs::metadata(fixture.at("")).unwrap();
    assert_eq!((lease.owner.uid, lease.owner.gid), (stat.uid(), stat.gid()));
}

#[test]
fn what_does_not_exist_is_neither_covered_nor_made() {
    let fixture = Fixture::new();
    fixture.file("conf/plain.txt");
    let workspace =
        fixture.workspace(&[".gantry", "my.db-journal"], &["gantry.yaml", "conf/x.json", "agents"]);
    let before = fixture.entries();
    let lease = write(&workspace);
    assert_eq!(lines(&lease.mounts), [""; 0]);
    assert_eq!((lease.absent(), lease.has_missing), (Vec::new(), true));
    // Another process makes one while the job runs, and it stays.
    fixture.file("gantry.yaml");
    assert_eq!(lease.take_away(), None);
    assert_eq!(fixture.entries(), [before, vec!["f gantry.yaml".to_owned()]].concat());
    assert_eq!(covered(&workspace), ["seal gantry.yaml"]);
}

#[test]
fn a_link_on_the_way_and_what_it_leads_to_are_both_covered() {
    let fixture = Fixture::new();
    fixture.file("real/conf/gantry.yaml");
    fixture.file("env/values");
    symlink("real", fixture.at("way")).unwrap();
    symlink(fixture.at("env/values"), fixture.at(".env")).unwrap();
    symlink("/etc/hostname", fixture.at("out")).unwrap();
    symlink("nothing/there", fixture.at("dangling")).unwrap();
    let workspace = fixture.workspace(&["out"], &["way/conf/gantry.yaml", ".env", "dangling"]);
    let expected = [
        "hide .env",
        "pin env/",
        "seal env/values",
        "hide out",
        "pin real/",
        "pin real/conf/",
        "seal real/conf/gantry.yaml",
        "hide way",
    ];
    assert_eq!(covered(&workspace), expected);
}

#[test]
fn a_path_that_is_spelled_through_links_outside_is_found_inside() {
    let fixture = Fixture::new();
    fixture.file("a/gantry.yaml");
    let link = fixture.folder.path().join("link");
    symlink(fixture.at(""), &link).unwrap();
    fixture.file(".env");
    let read_only = vec![link.join("a/../a/./gantry.yaml"), link.join(".env"), "/etc/passwd".into()];
    let workspace =
        Workspace::open(&link, ProtectedPaths { read_only, ..ProtectedPaths::default() }).unwrap();
    assert_eq!(covered(&workspace), ["seal .env", "pin a/", "seal a/gantry.yaml"]);
}

#[test]
fn covers_that_others_make_superfluous_are_left_out() {
    let fixture = Fixture::new();
    fixture.file("data/deep/db");
    fixture.file("agents/one/agent.json");
    fixture.file("agents/one/secret");
    let workspace = fixture.workspace(
        &["data", "data/deep/db", "agents/one/secret"],
        &["agents/one/agent.json", "data/deep", "agents"],
    );
    assert_eq!(covered(&workspace), ["seal agents/", "hide agents/one/secret", "hide data/"]);
}

#[test]
fn a_file_in_the_way_of_a_protected_path_is_sealed() {
    let fixture = Fixture::new();
    fixture.file("agents");
    let workspace = fixture.workspace(&[], &["agents/one/agent.json"]);
    assert_eq!(covered(&workspace), ["seal agents"]);
}

#[test]
fn who_only_reads_is_kept_from_what_is_hidden_only() {
    let fixture = Fixture::new();
    fixture.file(".gantry/db");
    fixture.file("gantry.yaml");
    fixture.git(&["init", "-q"]);
    let before = fixture.entries();
    let workspace = fixture.workspace(&[".gantry"], &["gantry.yaml"]);
    let lease = workspace.acquire(Access::Read).unwrap();
    assert_eq!((lines(&lease.mounts), lease.absent()), (vec!["hide .gantry/".to_owned()], Vec::new()));
    assert_eq!(fixture.entries(), before);
}

/// The files of a repository that a job must not make.
const ABSENT: [&str; 2] = [".git/config.worktree", ".git/commondir"];

#[test]
fn the_parts_of_a_repository_that_run_programs_are_sealed_and_git_works_on() {
    let fixture = Fixture::new();
    fixture.git(&["init", "-q"]);
    fs::remove_dir_all(fixture.at(".git/info")).unwrap();
    let workspace = fixture.workspace(&[], &[]);
    let lease = write(&workspace);
    let expected =
        ["pin .git/", "seal .git/config", "seal .git/hooks/", "seal .git/modules/", "seal .git/worktrees/"];
    assert_eq!(lines(&lease.mounts), expected);
    assert_eq!(lease.absent(), ABSENT.map(PathBuf::from));
    let owner = |path: &str| fs::metadata(fixture.at(path)).unwrap().uid();
    assert!(["modules", "worktrees"].iter().all(|made| owner(&format!(".git/{made}")) == owner(".git")));

    fixture.file("a.txt");
    fixture.git(&["add", "--all"]);
    fixture.git(&["commit", "-q", "-m", "one"]);
    assert_eq!(fixture.git(&["ls-files"]), "a.txt\n");
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    fixture.git(&["switch", "-q", "-c", "other"]);
    fixture.git(&["stash", "list"]);
    fixture.git(&["gc", "-q"]);
    fixture.git(&["fsck"]);
    fixture.git(&["worktree", "add", "-q", "../tree"]);
    assert_eq!(lease.take_away(), None);
    assert_eq!(fixture.git(&["log", "--format=%s"]), "one\n");
}

#[test]
fn a_file_that_must_not_be_made_is_taken_away_whatever_it_is() {
    let fixture = Fixture::new();
    fixture.git(&["init", "-q"]);
    fixture.file("precious");
    let lease = write(&fixture.workspace(&[], &[]));
    fs::write(fixture.at(ABSENT[0]), "[core]").unwrap();
    fs::create_dir(fixture.at(ABSENT[1])).unwrap();
    // It may be shut as well.
    fs::set_permissions(fixture.at(".git"), fs::Permissions::from_mode(0o500)).unwrap();
    let said = lease.take_away().unwrap();
    for path in ABSENT {
        assert!(said.contains(&format!("{path} (it was removed)")), "{said}");
        assert!(fixture.at(path).symlink_metadata().is_err(), "{path}");
    }
    assert_eq!(fs::metadata(fixture.at(".git")).unwrap().mode() & 0o7777, 0o500);
    fs::set_permissions(fixture.at(".git"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink(fixture.at("precious"), fixture.at(ABSENT[0])).unwrap();
    assert!(lease.take_away().unwrap().contains("(it was removed)"));
    assert!(fixture.at("precious").exists() && lease.take_away().is_none());

    // What cannot be removed is said. A folder that was renamed meanwhile is still looked into.
    fixture.file(".git/commondir/file");
    fs::rename(fixture.at(".git"), fixture.at("moved")).unwrap();
    let said = lease.take_away().unwrap();
    assert!(said.contains(".git/commondir (it cannot be removed:"), "{said}");
}

#[test]
fn a_repository_in_which_nothing_can_be_made_is_read_only() {
    if rustix::process::geteuid().is_root() {
        // Root can make everything everywhere.
        return;
    }
    let fixture = Fixture::new();
    fixture.git(&["init", "-q"]);
    fs::set_permissions(fixture.at(".git"), fs::Permissions::from_mode(0o555)).unwrap();
    assert_eq!(covered(&fixture.workspace(&[], &[])), ["seal .git/"]);
    fs::set_permissions(fixture.at(".git"), fs::Permissions::from_mode(0o0)).unwrap();
    assert_eq!(covered(&fixture.workspace(&[], &[])), ["seal .git/"]);
    fs::set_permissions(fixture.at(".git"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn there_is_nothing_to_seal_before_there_is_a_repository() {
    let fixture = Fixture::new();
    let workspace = fixture.workspace(&[], &[]);
    assert_eq!(covered(&workspace), [""; 0]);
    fs::create_dir(fixture.at(".git")).unwrap();
    assert_eq!(covered(&workspace), [""; 0]);
}

#[test]
fn a_repository_is_one_while_anything_is_left_of_it() {
    let fixture = Fixture::new();
    fixture.git(&["init", "-q"]);
    let workspace = fixture.workspace(&[], &[]);
    let before = covered(&workspace);
    fs::remove_file(fixture.at(".git/HEAD")).unwrap();
    assert_eq!(covered(&workspace), before);
}

#[test]
fn a_git_file_is_sealed_and_a_git_link_is_covered_with_where_it_leads() {
    let fixture = Fixture::new();
    fs::write(fixture.at(".git"), "gitdir: elsewhere").unwrap();
    let workspace = fixture.workspace(&[], &[]);
    // There is no repository where it leads.
    assert_eq!(covered(&workspace), ["seal .git"]);
    assert!(write(&workspace).has_missing);

    fs::remove_file(fixture.at(".git")).unwrap();
    fixture.git(&["init", "-q"]);
    fs::rename(fixture.at(".git"), fixture.at("repository")).unwrap();
    symlink("repository", fixture.at(".git")).unwrap();
    let covers = covered(&workspace);
    for expected in ["hide .git", "pin repository/", "seal repository/hooks/", "seal repository/config"] {
        assert!(covers.iter().any(|cover| cover == expected), "{covers:?}");
    }
}

#[test]
fn a_repository_that_a_git_file_leads_to_is_sealed_with_the_one_it_is_part_of() {
    let fixture = Fixture::new();
    fixture.git(&["init", "-q"]);
    fs::rename(fixture.at(".git"), fixture.at(".bare")).unwrap();
    fs::write(fixture.at(".git"), "gitdir: ./.bare\n").unwrap();
    let workspace = fixture.workspace(&[], &[]);
    let lease = write(&workspace);
    let covers = lines(&lease.mounts);
    for expected in ["seal .git", "pin .bare/", "seal .bare/config", "seal .bare/hooks/"] {
        assert!(covers.iter().any(|cover| cover == expected), "{covers:?}");
    }
    fixture.file("a.txt");
    fixture.git(&["add", "a.txt"]);
    fixture.git(&["commit", "-q", "-m", "one"]);
    assert!(lease.absent().contains(&".bare/commondir".into()) && lease.take_away().is_none());
    assert_eq!(fixture.git(&["log", "--format=%s"]), "one\n");

    fs::create_dir_all(fixture.at("tree")).unwrap();
    fs::write(fixture.at("tree/commondir"), "../.bare\n").unwrap();
    fs::write(fixture.at(".git"), "gitdir: tree").unwrap();
    let covers = covered(&workspace);
    for expected in
        ["seal .git", "seal .bare/config", "seal .bare/hooks/", "seal tree/commondir", "seal tree/hooks/"]
    {
        assert!(covers.iter().any(|cover| cover == expected), "{covers:?}");
    }
}

#[test]
fn a_git_folder_that_is_a_link_by_now_is_not_written_through() {
    let fixture = Fixture::new();
    let elsewhere = fixture.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("HEAD"), "").unwrap();
    symlink(&elsewhere, fixture.at(".git")).unwrap();
    write(&fixture.workspace(&[], &[]));
    assert!(!elsewhere.join("info").exists());
}

#[test]
fn a_workspace_that_is_itself_protected_is_refused() {
    let fixture = Fixture::new();
    for protected in [fixture.at(""), fixture.folder.path().to_owned(), "/".into()] {
        let hidden = ProtectedPaths { hidden: vec![protected], ..ProtectedPaths::default() };
        let refused = refusal(Workspace::open(&fixture.at(""), hidden));
        assert!(refused.contains("belongs to Gantry itself"), "{refused}");
    }
}

#[test]
fn a_workspace_that_is_missing_or_no_folder_or_replaced_is_refused() {
    let fixture = Fixture::new();
    fixture.file("file");
    let missing = refusal(Workspace::open(&fixture.at("none"), ProtectedPaths::default()));
    assert!(missing.contains("none") && missing.contains("No such file"), "{missing}");
    let file = refusal(Workspace::open(&fixture.at("file"), ProtectedPaths::default()));
    assert!(file.contains("Not a directory"), "{file}");

    let workspace = fixture.workspace(&[], &[]);
    fs::rename(fixture.at(""), fixture.folder.path().join("moved")).unwrap();
    refusal(workspace.acquire(Access::Write));
    fs::create_dir(fixture.at("")).unwrap();
    let replaced = refusal(workspace.acquire(Access::Write));
    assert!(replaced.contains("replaced"), "{replaced}");
}
