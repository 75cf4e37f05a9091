//! Protected files of a workspace stay as they are, no matter what a job tries, and nothing is made for that.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::yard::{WAYS, Way, Yard, survivors};
use crate::world::eventually;

#[test]
fn a_job_can_not_read_what_is_hidden() {
    for way in WAYS {
        let yard = Yard::new(way, &[".gantry/db", "deep/er/key.pem", "plain"]);
        let yard = yard.protect("hidden", &[".gantry", "deep/er/key.pem"]);
        let before = yard.entries();
        let attempts = survivors(&[
            "cat .gantry/db",
            "grep . deep/er/key.pem",
            "rm -r .gantry",
            "mv .gantry elsewhere",
            "touch .gantry/x",
            "mv deep dope",
            "mv deep/er deep/err",
            "ln deep/er/key.pem copy && grep . copy",
            "chmod 777 .gantry deep/er/key.pem",
            "truncate -s 0 deep/er/key.pem",
            "echo x > deep/er/key.pem",
            "umount .gantry",
            "cat .gantry/../.gantry/db",
            "cat /proc/self/root/workspace/.gantry/db",
            "grep -r gantry/db .",
        ]);
        assert_eq!(yard.output(&format!("{attempts} ls -A .gantry; cat plain")), "plain", "{way:?}");
        assert_eq!(yard.entries(), before);
        assert_eq!(yard.read(".gantry/db"), ".gantry/db");
        assert_eq!(yard.read("deep/er/key.pem"), "deep/er/key.pem");
    }
}

#[test]
fn a_job_can_not_change_what_is_sealed() {
    for way in WAYS {
        let yard = Yard::new(way, &["gantry.yaml", "conf/in/x.json", "agents/one.md", "free/file"]);
        let yard = yard.protect("read_only", &["gantry.yaml", "conf/in/x.json", "agents"]);
        let before = yard.entries();
        let attempts = survivors(&[
            "echo x > gantry.yaml",
            "echo x >> gantry.yaml",
            "rm -f gantry.yaml && test ! -e gantry.yaml",
            "mv gantry.yaml other",
            "mv free/file gantry.yaml",
            "ln -sf free/file gantry.yaml && cat gantry.yaml",
            "ln gantry.yaml other",
            "chmod 777 gantry.yaml",
            "touch gantry.yaml",
            "truncate -s 0 gantry.yaml",
            "mv conf other",
            "rm -r conf",
            "mv conf/in conf/out",
            "echo x > conf/in/x.json",
            "touch agents/two.md",
            "rm agents/one.md",
            "mv agents other",
            "mv free agents",
            "mount --bind free agents",
            "umount agents",
        ]);
        let shown = yard.output(&format!("{attempts} cat gantry.yaml conf/in/x.json agents/one.md"));
        assert_eq!(shown, "gantry.yamlconf/in/x.jsonagents/one.md", "{way:?}");
        assert_eq!(yard.entries(), before, "{way:?}");
        for file in ["gantry.yaml", "conf/in/x.json", "agents/one.md"] {
            assert_eq!(yard.read(file), file);
        }
    }
}

#[test]
fn a_name_that_does_not_exist_is_as_any_other() {
    for way in WAYS {
        let yard = Yard::new(way, &["gantry.yaml", "free/file"]);
        let yard = yard.protect("read_only", &["gantry.yaml", ".env", "new/y.json", "agents"]);
        let yard = yard.protect("hidden", &[".gantry", "my.db-journal"]);
        assert_eq!(yard.output("ls -A"), "free\ngantry.yaml\n", "{way:?}");
        yard.output(
            "echo x > .env && mkdir -p agents .gantry && touch agents/one.md my.db-journal && mv free new",
        );
        let made = ["d .gantry", "d agents", "d new", "f .env", "f agents/one.md", "f gantry.yaml"];
        assert_eq!(yard.entries()[..6], made, "{way:?}");
    }
}

#[test]
fn what_is_not_protected_can_be_changed() {
    for way in WAYS {
        let yard = Yard::new(way, &["gantry.yaml", "conf/in/x.json", "free/file"]);
        let yard = yard.protect("read_only", &["gantry.yaml", "conf/in/x.json"]);
        yard.output(
            "echo new > free/file && mv free fried && touch conf/other conf/in/other && rm conf/other \
             && echo x > GANTRY.YAML && mkdir -p .ENV/d && ln fried/file copy",
        );
        assert_eq!(yard.read("fried/file"), "new\n");
        assert_eq!(yard.read("GANTRY.YAML"), "x\n", "another spelling is another file here");
        assert_eq!(yard.read("gantry.yaml"), "gantry.yaml");
        let expected = [
            "d .ENV",
            "d .ENV/d",
            "d conf",
            "d conf/in",
            "d fried",
            "f GANTRY.YAML",
            "f conf/in/other",
            "f conf/in/x.json",
            "f copy",
            "f fried/file",
            "f gantry.yaml",
        ];
        assert_eq!(yard.entries(), expected, "{way:?}");
    }
}

#[test]
fn a_link_to_what_is_protected_can_not_be_turned_elsewhere() {
    for way in [Way::Native, Way::OrdinaryNative] {
        let yard = Yard::new(way, &["real/gantry.yaml", "evil/gantry.yaml"]);
        symlink("real", yard.at("conf")).expect("a link");
        symlink("real/gantry.yaml", yard.at("link.yaml")).expect("a link");
        yard.open_up();
        let yard = yard.protect("read_only", &["conf/gantry.yaml", "link.yaml"]);
        let before = yard.entries();
        let attempts = survivors(&[
            "rm conf",
            "ln -sfn evil conf && ls -l conf | grep evil",
            "mv -T evil conf",
            "mv conf other",
            "rm link.yaml",
            "mv evil/gantry.yaml link.yaml",
            "echo x > link.yaml",
            "mv real other",
            "echo x > real/gantry.yaml",
        ]);
        assert_eq!(yard.output(&attempts), "", "{way:?}");
        assert_eq!(yard.entries(), before);
        assert_eq!(yard.read("conf/gantry.yaml"), "real/gantry.yaml");
        assert_eq!(yard.read("link.yaml"), "real/gantry.yaml");
    }
}

#[test]
fn bubblewrap_refuses_what_it_can_not_cover() {
    let yard = Yard::new(Way::OrdinaryBubblewrap, &["real.yaml"]);
    symlink("real.yaml", yard.at("gantry.yaml")).expect("a link");
    let yard = yard.protect("read_only", &["gantry.yaml"]);
    let ran = yard.run("touch made");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(!ran.status.success() && said.contains("it is a link"), "{said}");
    assert!(!yard.at("made").exists());
}

#[test]
fn who_swaps_folders_all_the_time_gets_nothing_else_mounted_over_or_made() {
    for way in WAYS {
        let yard = Yard::new(way, &["a/b/gantry.yaml", "a/c/.env", "free/b/gantry.yaml"]);
        let yard = yard.protect("read_only", &["a/b/gantry.yaml", "a/c/.env"]);
        let swap = "for n in $(seq 60); do mv a x; ln -s free a; mv free y; ln -s a free; rm -f a free; mv y free; \
                    mv x a; mv a/c y; ln -sfn /etc a/c; done 2>/dev/null; true";
        let mut swapping = yard.start(swap);
        for _ in 0..4 {
            // It may be refused at a bad moment, but it must not do harm.
            let ran = yard.run("echo x > a/b/gantry.yaml; echo x > a/c/.env; rm -r a/c; test ! -e a/c");
            assert!(!ran.status.success(), "{way:?}");
        }
        swapping.wait().expect("it ends");
        assert_eq!(yard.read("a/b/gantry.yaml"), "a/b/gantry.yaml", "{way:?}");
        assert_eq!(yard.read("a/c/.env"), "a/c/.env", "{way:?}");
    }
}

#[test]
fn processes_that_share_a_workspace_do_not_uncover_each_other() {
    for way in WAYS {
        let yard = Yard::new(way, &["gantry.yaml", ".env", "a/b.json", ".gantry/db"]);
        let yard =
            yard.protect("read_only", &["gantry.yaml", ".env", "a/b.json"]).protect("hidden", &[".gantry"]);
        let before = yard.entries();
        let script = "for n in $(seq 40); do echo x > .env && exit 9; rm -rf a && exit 8; mv .gantry g && exit 7; \
                      touch a/b.json && exit 6; cat .gantry/db && exit 5; done 2>/dev/null; true";
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..4).for_each(|_| drop(yard.output(script))));
            }
        });
        assert_eq!(yard.entries(), before, "{way:?}");
        assert!([".env", "a/b.json"].iter().all(|path| yard.read(path) == *path));
    }
}

#[tokio::test]
async fn a_killed_gantry_leaves_nothing() {
    for way in WAYS {
        let yard = Yard::new(way, &["gantry.yaml"]);
        let yard = yard.protect("read_only", &["gantry.yaml", ".env"]).protect("hidden", &[".gantry"]);
        let mut owner = yard.start("echo x > ready; sleep 1000");
        eventually("the job", || yard.at("ready").exists().then_some(())).await;
        owner.kill().expect("it runs");
        owner.wait().expect("it is dead");
        yard.world.is_empty().await;
        assert_eq!(yard.entries(), ["f gantry.yaml", "f ready"], "{way:?}");
        assert_eq!(
            yard.output("rm ready; touch gantry.yaml 2>/dev/null || echo sealed"),
            "sealed\n",
            "{way:?}"
        );
    }
}

#[tokio::test]
async fn a_job_ends_when_something_protected_is_replaced_outside() {
    for way in WAYS {
        let yard = Yard::new(way, &["gantry.yaml"]);
        let yard = yard.protect("read_only", &["gantry.yaml"]);
        let owner = yard.start("touch ready; sleep 1000");
        eventually("the job", || yard.at("ready").exists().then_some(())).await;
        fs::write(yard.at("new"), "replaced").expect("a file");
        fs::rename(yard.at("new"), yard.at("gantry.yaml")).expect("it is replaced");
        let ran = owner.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(said.contains("was replaced while the job ran"), "{way:?}: {said}");
        assert_eq!(yard.read("gantry.yaml"), "replaced");
    }
}

/// The only child of a process.
fn child_of(pid: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_ascii_whitespace().next()?.parse().ok()
}

#[tokio::test]
async fn a_job_that_keeps_its_first_process_busy_ends_as_well() {
    for way in [Way::Native, Way::OrdinaryNative] {
        let yard = Yard::new(way, &["gantry.yaml"]);
        let yard = yard.protect("read_only", &["gantry.yaml"]);
        let owner = yard.start("touch ready; sleep 1000");
        eventually("the job", || yard.at("ready").exists().then_some(())).await;
        // A thread of the owner that has started the helper need not be the first one.
        let tasks = fs::read_dir(format!("/proc/{}/task", owner.id())).expect("it runs");
        let helper = tasks.filter_map(|task| {
            let children = fs::read_to_string(task.ok()?.path().join("children")).ok()?;
            children.split_ascii_whitespace().next()?.parse::<u32>().ok()
        });
        let first = helper.last().and_then(child_of).expect("a first process");
        let first = rustix::process::Pid::from_raw(first.cast_signed()).expect("a process");
        rustix::process::kill_process(first, rustix::process::Signal::STOP).expect("it is stopped");
        fs::write(yard.at("new"), "replaced").expect("a file");
        fs::rename(yard.at("new"), yard.at("gantry.yaml")).expect("it is replaced");
        let ran = owner.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(said.contains("was replaced while the job ran"), "{way:?}: {said}");
    }
}

#[test]
fn git_works_and_what_it_runs_can_not_be_changed() {
    let git = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a \
               GIT_COMMITTER_EMAIL=a@example.com";
    for way in WAYS {
        let yard = Yard::new(way, &["file"]);
        yard.output(&format!("{git}; git init -q && git add --all && git commit -q -m one"));
        let config = yard.read(".git/config");
        let attempts = survivors(&[
            "echo x > .git/hooks/pre-commit",
            "mv .git/hooks .git/other",
            "git config core.fsmonitor evil",
            "echo x >> .git/config",
            "rm -f .git/config && test ! -e .git/config",
            "mv .git other",
            "rm -rf .git && git init -q",
            "mkdir .git/modules/x",
            "mkdir .git/worktrees/x",
            "rmdir .git/modules",
            "git worktree add ../wt",
        ]);
        // Removing it all would leave no repository to go on with.
        let attempts = attempts.replace("rm -rf .git &&", "false &&");
        let work = "echo more > file; git add --all; git commit -q -m two; git switch -q -c other; git stash list; \
                    git gc -q; git status --porcelain; git log --format=%s";
        assert_eq!(yard.output(&format!("{git}; {attempts} {work}")), "two\none\n", "{way:?}");
        assert_eq!(yard.read(".git/config"), config);
        for gone in ["commondir", "config.worktree", "modules/x", "worktrees/x", "hooks/pre-commit"] {
            assert!(!yard.at(".git").join(gone).exists(), "{way:?}: {gone}");
        }
        assert_eq!(yard.output("git ls-files"), "file\n");
    }
}

/// Ways to other settings of a repository, none of which exists.
const SETTINGS: [&str; 2] = [".git/commondir", ".git/config.worktree"];

#[test]
fn a_job_that_makes_settings_of_a_repository_ends_and_they_are_taken_away() {
    for way in WAYS {
        let yard = Yard::new(way, &["file", "evil/config"]);
        yard.output("git init -q");
        yard.output("true");
        let before = yard.entries();
        let made = ["echo x >", "ln -s ../evil/config", "mkdir", "mkfifo", "mv copy"];
        // Jobs that wait to be found, that end at once by themselves, and that shut the folder on their way.
        let rest = ["sleep 1000", "exit 0", "chmod 0 .git; exit 0", "chmod 0 .git/info; exit 0"];
        for (n, made) in made.iter().enumerate() {
            let (path, rest) = (SETTINGS[n % SETTINGS.len()], rest[n % rest.len()]);
            let ran = yard.run(&format!("cp file copy; {made} {path}; {rest}"));
            let said = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert!(!ran.status.success(), "{way:?}: {made} {path}: {said}");
            assert!(said.contains(&format!("{path} (it was removed)")), "{way:?}: {made} {path}: {said}");
            [".git", ".git/info"].iter().for_each(|folder| set_mode(&yard, folder, 0o755));
            fs::remove_file(yard.at("copy")).ok();
            assert_eq!(yard.entries(), before, "{way:?}: {made} {path}");
        }
    }
}

#[test]
fn a_job_can_not_use_settings_that_it_makes_and_removes_all_the_time() {
    for way in WAYS {
        let yard = Yard::new(way, &["file"]);
        yard.output("git init -q");
        let ran = yard.run("for n in $(seq 100000); do echo x > .git/commondir; rm .git/commondir; done");
        assert!(!ran.status.success(), "{way:?}");
        assert!(!yard.at(".git/commondir").exists(), "{way:?}");
    }
}

#[test]
fn what_is_mounted_below_the_workspace_is_not_part_of_it() {
    if !rustix::process::geteuid().is_root() {
        // Only root can mount something to try it with.
        return;
    }
    for owner in [0, 54321] {
        let yard = Yard::new(Way::Native, &["a/m/under", "p/", "plain"]);
        std::os::unix::fs::chown(yard.at(""), Some(owner), Some(owner)).expect("root may");
        let job = yard.command("ls -A a/m p; touch a/m/x p/x 2>/dev/null || cat plain");
        let mount = "mount -t tmpfs none \"$0/a/m\" && echo x > \"$0/a/m/secret\" && mount -t proc none \"$0/p\" && exec \"$@\"";
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", mount])
            .arg(yard.at(""))
            .arg(job.get_program())
            .args(job.get_args());
        command.env("GANTRY_SANDBOX", "native").env("MARK", &yard.world.mark);
        let ran = command.output().expect("it runs");
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert_eq!(text, "a/m:\n\np:\nplain", "{owner}: {}", String::from_utf8_lossy(&ran.stderr));
    }
}

#[test]
fn a_repository_elsewhere_in_the_workspace_can_not_be_changed() {
    for way in WAYS {
        let yard = Yard::new(way, &["file", ".bare/hooks/"]);
        yard.output("git init -q --separate-git-dir=.bare . && printf 'gitdir: ./.bare' > .git");
        let attempts = survivors(&[
            "echo x >> .bare/config",
            "git config core.fsmonitor evil",
            "echo x > .bare/hooks/pre-commit",
            "mv .bare other",
            "echo x > .git",
            "mkdir .bare/modules/x",
        ]);
        assert_eq!(yard.output(&format!("{attempts} git add file; git ls-files")), "file\n", "{way:?}");
    }
}

#[test]
fn a_job_with_a_workspace_that_belongs_to_gantry_is_not_run() {
    let yard = Yard::new(Way::Native, &["inner/file"]).protect("hidden", &[""]);
    let ran = yard.run("touch made");
    assert!(!ran.status.success());
    assert!(String::from_utf8_lossy(&ran.stderr).contains("belongs to Gantry itself"));
    assert_eq!(yard.entries(), ["d inner", "f inner/file"]);
}

/// The ways in which a right can be taken from Gantry: root has them all.
const ORDINARY: [Way; 2] = [Way::OrdinaryNative, Way::OrdinaryBubblewrap];

fn set_mode(yard: &Yard, path: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(yard.at(path), fs::Permissions::from_mode(mode)).expect("it is there");
}

#[test]
fn a_repository_that_a_job_has_shut_keeps_no_job_from_running() {
    for way in ORDINARY {
        let yard = Yard::new(way, &[".git/HEAD", ".git/hooks/", ".git/config"]);
        yard.output("chmod 000 .git");
        // What cannot be looked into cannot be opened up again either, or the hooks in it could be changed.
        let attempts = survivors(&["chmod 755 .git", "mv .git other", "rmdir .git", "echo x > .git/config"]);
        assert_eq!(yard.output(&format!("{attempts} touch made")), "", "{way:?}");
        assert!(yard.at("made").exists(), "{way:?}");
        set_mode(&yard, ".git", 0o755);
        assert_eq!(yard.output("rm made; cat .git/HEAD"), ".git/HEAD", "{way:?}");
        let folders = ["hooks", "modules", "worktrees"].map(|name| format!("d .git/{name}"));
        let left = [vec!["d .git".to_owned()], folders.to_vec()].concat();
        let left = [left, vec!["f .git/HEAD".to_owned(), "f .git/config".to_owned()]].concat();
        assert_eq!(yard.entries(), left, "{way:?}");
    }
}

#[test]
fn a_repository_in_which_nothing_can_be_made_is_covered_itself() {
    for way in ORDINARY {
        let yard = Yard::new(way, &[".git/HEAD", ".git/config"]);
        set_mode(&yard, ".git", 0o555);
        let attempts =
            survivors(&["chmod 755 .git", "mv .git other", "mkdir .git/hooks", "echo x > .git/HEAD"]);
        assert_eq!(yard.output(&format!("{attempts} cat .git/HEAD")), ".git/HEAD", "{way:?}");
        set_mode(&yard, ".git", 0o755);
        assert_eq!(yard.entries(), ["d .git", "f .git/HEAD", "f .git/config"], "{way:?}");
    }
}

#[test]
fn a_workspace_that_a_job_has_shut_is_refused_with_what_to_do() {
    for way in ORDINARY {
        let yard = Yard::new(way, &["file"]).protect("read_only", &["gantry.yaml"]);
        yard.run("chmod 000 .");
        let ran = yard.run("true");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        let advice = format!("chmod u+rwx {}", yard.at("").display());
        assert!(!ran.status.success() && said.contains(advice.trim_end_matches('/')), "{way:?}: {said}");
        set_mode(&yard, "", 0o755);
        yard.output("true");
        assert_eq!(yard.entries(), ["f file"], "{way:?}");
    }
}
