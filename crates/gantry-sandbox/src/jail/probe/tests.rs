//! Which backend is used, and what is said when none works.

use super::{Backend, JailError, Machine, Step, allowed, first_working, unavailable};
use rustix::io::Errno;
use std::ffi::OsStr;

fn step(step: Step, errno: Errno) -> JailError {
    JailError::Step { step, detail: String::new(), errno: errno.raw_os_error() }
}

fn exited(stderr: &str) -> JailError {
    JailError::HelperExited { stderr: stderr.to_owned() }
}

fn machine() -> Machine {
    Machine { helper: "/opt/gantry".into(), ..Machine::default() }
}

/// What is said when the native backend fails like this, and there is no bubblewrap.
fn said(machine: &Machine, native: &JailError) -> String {
    let failed = first_working(&[Backend::Native, Backend::Bubblewrap], machine, |backend| match backend {
        Backend::Native => Err(native.clone()),
        Backend::Bubblewrap => Err(unavailable("there is no /usr/bin/bwrap", "install it")),
    });
    failed.unwrap_err().to_string()
}

#[test]
fn the_first_backend_that_works_is_used() {
    let all = allowed(None).unwrap();
    let (backend, info) = first_working(all, &machine(), |_| Ok(vec!["no /proc".into()])).unwrap();
    assert_eq!((backend, info.level, info.notes), (Backend::Native, "native", vec!["no /proc".to_owned()]));

    let second = |backend| if backend == Backend::Native { Err(exited("")) } else { Ok(Vec::new()) };
    let (backend, info) = first_working(all, &machine(), second).unwrap();
    assert_eq!((backend, info.level), (Backend::Bubblewrap, "bubblewrap"));
    assert_eq!(info.notes.len(), 1);
}

#[test]
fn the_variable_only_takes_backends_away() {
    let backends = |value: &str| allowed(Some(OsStr::new(value)));
    assert_eq!(backends("").unwrap(), [Backend::Native, Backend::Bubblewrap]);
    assert_eq!(backends("native").unwrap(), [Backend::Native]);
    assert_eq!(backends("bubblewrap").unwrap(), [Backend::Bubblewrap]);
    assert!(backends("none").unwrap_err().to_string().contains("switched off by GANTRY_SANDBOX=none"));
    for unknown in ["Native", "off", "host", "native,bubblewrap"] {
        assert!(backends(unknown).unwrap_err().to_string().contains(unknown));
    }
}

#[test]
fn each_refusal_of_the_system_names_its_remedy() {
    let plain = machine();
    let apparmor = Machine { has_apparmor: true, ..machine() };
    let debian = Machine { is_switched_off: true, ..machine() };
    let rows = [
        (&plain, step(Step::Namespaces, Errno::NOSPC), "user.max_user_namespaces"),
        (&plain, step(Step::Namespaces, Errno::PERM), "--security-opt"),
        (&plain, step(Step::Rootfs, Errno::PERM), "--security-opt"),
        (&plain, step(Step::Rootfs, Errno::NOSYS), "Linux 5.12"),
        (&plain, step(Step::Namespaces, Errno::INVAL), "a kernel with user"),
        (&plain, JailError::NoProgram { program: "true".into() }, "`true` in /usr/bin"),
        (&plain, step(Step::UserMap, Errno::INVAL), "a range of users"),
        (&debian, step(Step::Namespaces, Errno::PERM), "kernel.unprivileged_userns_clone to 1"),
        (
            &apparmor,
            step(Step::UserMap, Errno::ACCESS),
            "profile gantry /opt/gantry flags=(unconfined) { userns, }",
        ),
        (&apparmor, step(Step::Rootfs, Errno::ACCESS), "install the package `bubblewrap`"),
        (&apparmor, step(Step::Rootfs, Errno::ACCESS), "extra-profiles/bwrap-userns-restrict"),
        (&plain, exited("bwrap: setting up uid map: Permission denied"), "--security-opt"),
        (
            &apparmor,
            exited("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted"),
            "apparmor_parser",
        ),
        (&plain, exited(""), "without output"),
        (&plain, unavailable("it is late", "restart Gantry"), "restart Gantry"),
        (&plain, JailError::Broken("it fell".to_owned()), "it fell"),
    ];
    for (machine, native, remedy) in rows {
        let said = said(machine, &native);
        assert!(said.contains(remedy), "{native:?}: {said}");
        assert!(said.contains("bubblewrap: there is no /usr/bin/bwrap"), "{said}");
    }
}
