//! Protected files stay protected, also if another process changes the workspace while a jail is built.

use super::yard::{WAYS, Way, Yard};
use crate::world::eventually;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How often a jail is built meanwhile. bubblewrap is the one that goes by paths.
fn rounds(way: Way) -> usize {
    if way == Way::OrdinaryBubblewrap { 40 } else { 10 }
}

/// Lets two paths change places until it is stopped, as quickly as a jail takes its steps.
fn flip(one: &Path, other: &Path, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).expect("they change places");
        thread::sleep(Duration::from_micros(500));
    }
}

#[test]
fn who_flips_a_protected_path_gets_nothing_else_shown() {
    for way in WAYS {
        let yard = Yard::new(way, &[".git/hooks/", ".git/info/", "../other/secret"]);
        symlink(yard.at("../other"), yard.at("swap")).expect("a link");
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| flip(&yard.at(".git/hooks"), &yard.at("swap"), &stop));
            for _ in 0..rounds(way) {
                let ran = yard.run("cat .git/hooks/secret");
                let text = String::from_utf8_lossy(&ran.stdout).into_owned();
                assert_eq!(text, "", "{way:?}");
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}

#[tokio::test]
async fn a_job_that_was_there_before_the_repository_misleads_no_other() {
    // Renames count as written, and on a busy machine there are many before the last round.
    let yard = Yard::new(Way::OrdinaryBubblewrap, &["../other/file"]).limit("written", 8 << 10);
    yard.open_up_to(&yard.at("../other"));
    // Where bubblewrap has the machine's files while it mounts.
    let planted = yard.at("../other").canonicalize().expect("a folder").join("planted");
    let flip = format!(
        "import ctypes, os, time\n\
         os.makedirs('.git/hooks'); open('.git/config', 'x').close()\n\
         os.symlink('/oldroot{}', 'swap')\n\
         open('ready', 'x').close()\n\
         end = time.time() + 30\n\
         while not os.path.exists('stop') and time.time() < end:\n\
         \x20   for n in range(2):\n\
         \x20       ctypes.CDLL(None).renameat2(-100, b'.git/config', -100, b'swap', 2)\n\
         \x20       time.sleep(0.0002)\n",
        planted.display()
    );
    fs::write(yard.at("flip.py"), flip).expect("a file");
    let flipping = yard.start("exec python3 flip.py");
    eventually("the repository", || yard.at("ready").exists().then_some(())).await;
    for _ in 0..20 {
        let ran = yard.run("true");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(!ran.status.success() && said.contains("cannot be protected"), "{said}");
    }
    fs::write(yard.at("stop"), "").expect("a file");
    let ran = flipping.wait_with_output().expect("it ends");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(!planted.exists(), "a job has made something outside of its workspace");
    assert_eq!(yard.output("cat .git/config; echo still there"), "still there\n");
}

#[tokio::test]
async fn a_job_may_make_a_repository_but_others_wait_for_its_end_where_bubblewrap_builds_the_walls() {
    for way in WAYS {
        let yard = Yard::new(way, &[]);
        let making = yard.start("git init -q && touch ready && while [ ! -e stop ]; do sleep 0.02; done");
        eventually("the repository", || yard.at("ready").exists().then_some(())).await;
        let ran = yard.run("true");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        let is_refused = said.contains("a job that still runs was started before there was a repository");
        assert_eq!(is_refused, way == Way::OrdinaryBubblewrap, "{way:?}: {said}");
        fs::write(yard.at("stop"), "").expect("a file");
        assert!(making.wait_with_output().expect("it ends").status.success(), "{way:?}");
        assert_eq!(yard.output("git status --short"), "?? ready\n?? stop\n", "{way:?}");
    }
}

#[test]
fn a_cover_that_falls_while_the_job_is_started_is_noticed() {
    for way in WAYS {
        for step in 0..12 {
            let yard = Yard::new(way, &["gantry.yaml", "new"]).protect("read_only", &["gantry.yaml"]);
            let owner = yard.start("sleep 0.1; echo bad > gantry.yaml && echo uncovered");
            // At another moment of the start each time.
            thread::sleep(Duration::from_millis(5 * step));
            fs::rename(yard.at("new"), yard.at("gantry.yaml")).expect("it is replaced");
            let ran = owner.wait_with_output().expect("it ends");
            assert_eq!(String::from_utf8_lossy(&ran.stdout), "", "{way:?} at step {step}");
            assert!(!ran.status.success(), "{way:?} at step {step}");
            assert_eq!(yard.read("gantry.yaml"), "new", "{way:?} at step {step}");
        }
    }
}

#[tokio::test]
async fn a_job_ends_when_something_protected_is_renamed_outside() {
    for way in WAYS {
        for path in ["gantry.yaml", "conf", "conf/in/x.json", ".gantry"] {
            let yard = Yard::new(way, &["gantry.yaml", "conf/in/x.json", ".gantry/db"]);
            let yard = yard.protect("read_only", &["gantry.yaml", "conf/in/x.json"]);
            let yard = yard.protect("hidden", &[".gantry"]);
            let owner = yard.start("touch ready; sleep 1000");
            eventually("the job", || yard.at("ready").exists().then_some(())).await;
            fs::rename(yard.at(path), yard.at("moved")).expect("it is renamed");
            let ran = owner.wait_with_output().expect("it ends");
            let said = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert!(said.contains("was replaced while the job ran"), "{way:?} {path}: {said}");
        }
    }
}

#[test]
fn a_job_may_shut_a_folder_with_something_protected_in_it() {
    for way in WAYS {
        let yard = Yard::new(way, &["conf/x.json"]).protect("read_only", &["conf/x.json"]);
        let script = "chmod 000 conf; sleep 0.1; chmod 755 conf; cat conf/x.json";
        assert_eq!(yard.output(script), "conf/x.json", "{way:?}");
    }
}
