//! Each way to build a jail gives the same walls, and who asks for none gets none.

use super::yard::{WAYS, Way, Yard, survivors};
use crate::world::{DAEMON, all_processes, eventually, kill};

#[test]
fn a_job_sees_the_same_in_every_kind_of_jail() {
    let look = "id; pwd; ls -A / /dev /etc /home /store 2>/dev/null; cat /etc/passwd /etc/group /etc/hosts /run/gantry/*; \
                hostname; env | grep -v MARK | sort; ulimit -a | grep -v process; \
                grep -E 'Cap|NoNewPrivs|Seccomp:' /proc/self/status; ls -A /proc/self/fd; df --output=size,target /tmp /dev/shm";
    let [native, ordinary, bubblewrap] = WAYS.map(|way| Yard::new(way, &["file"]).output(look));
    assert!(native.contains("uid=1000(gantry) gid=1000(gantry)") && native.contains("a file of Gantry's"));
    assert_eq!(native, ordinary);
    assert_eq!(native, bubblewrap);
}

#[test]
fn a_store_to_read_is_so_in_every_kind_of_jail() {
    for way in WAYS {
        let yard = Yard::new(way, &[]);
        let store = tempfile::tempdir().expect("a folder");
        std::fs::write(store.path().join("it"), "kept").expect("a file");
        yard.open_up_to(store.path());
        let yard = yard.store(store.path());
        let said = yard.output(
            "cat /store/it; (echo x > /store/it; touch /store/new; rm /store/it) 2>&1 | grep -c Read-only",
        );
        assert_eq!(said, "kept3\n", "{way:?}");
    }
}

/// The number of the call that sets the priority of input and output.
const IOPRIO_SET: u32 = if cfg!(target_arch = "x86_64") { 251 } else { 30 };

#[test]
fn what_a_job_may_do_to_itself_it_can() {
    let itself = format!(
        "import ctypes, os, socket\n\
         os.setpriority(os.PRIO_PROCESS, 0, 19)\n\
         assert ctypes.CDLL(None).syscall({IOPRIO_SET}, 1, 0, 3 << 13) == 0\n\
         one, other = socket.socketpair()\n\
         print(os.nice(1))\n"
    );
    for way in WAYS {
        let yard = Yard::new(way, &[]);
        std::fs::write(yard.at("itself.py"), &itself).expect("a file");
        assert_eq!(yard.output("python3 itself.py"), "19\n", "{way:?}");
    }
}

#[test]
fn the_walls_hold() {
    for way in WAYS {
        let yard = Yard::new(way, &["file"]);
        let outside = yard.at("").parent().expect("a folder").display().to_string();
        let attempts = survivors(&[
            "cat /etc/shadow",
            "ls /root /sys /boot",
            &format!("ls {outside}"),
            "touch /x",
            "touch /usr/x",
            "touch /etc/x",
            "touch /run/gantry/x",
            "touch /dev/x",
            "cat /proc/1/environ",
            "cat /proc/1/maps",
            "ls -l /proc/1/fd/",
            "kill -9 1 && sleep 1 && test ! -d /proc/1",
            "unshare --user true",
            "unshare --net true",
            "mount -t tmpfs none /tmp",
            "umount /proc",
            "chroot / true",
            "chmod u+s file",
            "python3 -c 'import socket; socket.create_connection((\"1.1.1.1\", 53), 3)'",
            "python3 -c 'import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)'",
            "python3 -c 'import os; os.setuid(0)'",
            "python3 -c 'import os; os.setpriority(os.PRIO_PROCESS, 1, 19)'",
            "python3 -c 'import os; os.setpriority(os.PRIO_USER, 0, 19)'",
            "python3 -c 'import os; os.setpriority(os.PRIO_USER, 1000, 19)'",
            "python3 -c 'import os; os.setpriority(os.PRIO_PGRP, 0, 19)'",
            &format!(
                "python3 -c 'import ctypes; exit(ctypes.CDLL(None).syscall({IOPRIO_SET}, 3, 0, 3 << 13))'"
            ),
            &format!(
                "python3 -c 'import ctypes; exit(ctypes.CDLL(None).syscall({IOPRIO_SET}, 2, 0, 3 << 13))'"
            ),
            // What is not to be had of them says another error.
            "python3 -c 'import socket; socket.socketpair(socket.AF_INET)' 2>&1 | grep -v PermissionError | grep OSError",
            "python3 -c 'import socket; socket.socketpair(30)' 2>&1 | grep -v PermissionError | grep OSError",
        ]);
        assert_eq!(yard.output(&attempts), "", "{way:?}");
        // A device or a program that became root's would be worth having.
        assert_eq!(yard.entries(), ["f file"], "{way:?}");
    }
}

#[test]
fn the_limits_hold() {
    for way in WAYS {
        let said = |yard: Yard, script: &str| String::from_utf8_lossy(&yard.run(script).stderr).into_owned();
        let late = said(Yard::new(way, &[]).limit("wall", 1), "sleep 1000");
        assert!(late.contains("WallLimit"), "{way:?}: {late}");
        let hog = "python3 -c 'x = bytearray(200 << 20); import time; time.sleep(1000)'";
        let large = said(Yard::new(way, &[]).limit("memory", 64), hog);
        assert!(large.contains("MemoryLimit"), "{way:?}: {large}");
    }
}

#[test]
fn a_job_has_as_many_processes_as_it_may() {
    let count = "import os, time\nn = 1\ntry:\n    while os.fork(): n += 1\n    time.sleep(1000)\nexcept OSError: print(n)\n";
    for way in WAYS {
        let yard = Yard::new(way, &[]);
        std::fs::write(yard.at("count.py"), count).expect("a file");
        assert_eq!(yard.output("exec python3 count.py"), "64\n", "{way:?}");
    }
}

#[test]
fn nothing_outlives_a_job() {
    for way in WAYS {
        let yard = Yard::new(way, &[]);
        assert_eq!(yard.output(&format!("{DAEMON}; echo started")), "started\n", "{way:?}");
        assert_eq!(yard.world.processes(), [], "{way:?}");
    }
}

#[tokio::test]
async fn a_job_ends_when_its_jail_builder_is_killed() {
    for way in WAYS {
        let yard = Yard::new(way, &[]);
        let owner = yard.start(&format!("{DAEMON}; touch ready; sleep 1000"));
        eventually("the job", || yard.at("ready").exists().then_some(())).await;
        let parent = i32::try_from(owner.id()).expect("a process id");
        let builders: Vec<_> =
            all_processes().into_iter().filter(|process| process.parent == parent).collect();
        assert_eq!(builders.len(), 1, "{way:?}: {builders:?}");
        builders.iter().for_each(|builder| kill(builder.pid));
        let ran = owner.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(said.contains("the sandbox broke"), "{way:?}: {said}");
        yard.world.is_empty().await;
    }
}

#[test]
fn the_variable_takes_ways_away_and_adds_none() {
    let yard = Yard::new(Way::Native, &[]);
    let said = |value: &str| {
        let ran = yard.command("touch made").env("GANTRY_SANDBOX", value).output().expect("it runs");
        assert!(!ran.status.success(), "{value}");
        String::from_utf8_lossy(&ran.stderr).into_owned()
    };
    assert!(said("none").contains("switched off by GANTRY_SANDBOX=none"));
    assert!(said("host").contains("`host`"));
    if rustix::process::geteuid().is_root() {
        let refused = said("bubblewrap");
        assert!(refused.contains("would run programs as root"), "{refused}");
    }
    assert_eq!(yard.entries(), [""; 0]);
}
