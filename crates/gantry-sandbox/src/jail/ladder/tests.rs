//! Which rung is used, and what is said when none holds.

use super::causes::Machine;
use super::{Fall, Rung, allowed, climb};
use crate::jail::plan::{Failure, Step};
use rustix::io::Errno;
use std::ffi::OsStr;

fn fall(step: Step, errno: Errno) -> Fall {
    Fall::Step(Failure { step, detail: String::new(), errno: errno.raw_os_error() })
}

fn machine() -> Machine {
    Machine { helper: "/opt/gantry".into(), ..Machine::default() }
}

/// What is said when the native rung falls like this, and there is no bubblewrap.
fn said(machine: &Machine, native: &Fall) -> String {
    let fallen = climb(&[Rung::Native, Rung::Bubblewrap], machine, |rung| match rung {
        Rung::Native => Err(native.clone()),
        Rung::Bubblewrap => Err(Fall::Missing),
    });
    fallen.unwrap_err().to_string()
}

#[test]
fn the_first_rung_that_holds_is_used() {
    let all = allowed(None).unwrap();
    let (rung, level) = climb(all, &machine(), |_| Ok(vec!["no /proc".into()])).unwrap();
    assert_eq!((rung, level.name, level.notes), (Rung::Native, "native", vec!["no /proc".to_owned()]));

    let second = |rung| if rung == Rung::Native { Err(Fall::Late) } else { Ok(Vec::new()) };
    let (rung, level) = climb(all, &machine(), second).unwrap();
    assert_eq!((rung, level.name), (Rung::Bubblewrap, "bubblewrap"));
    assert_eq!(level.notes.len(), 1);
}

#[test]
fn the_variable_only_takes_rungs_away() {
    let rungs = |value: &str| allowed(Some(OsStr::new(value)));
    assert_eq!(rungs("").unwrap(), [Rung::Native, Rung::Bubblewrap]);
    assert_eq!(rungs("native").unwrap(), [Rung::Native]);
    assert_eq!(rungs("bubblewrap").unwrap(), [Rung::Bubblewrap]);
    assert!(rungs("none").unwrap_err().to_string().contains("switched off by GANTRY_SANDBOX=none"));
    for unknown in ["Native", "off", "host", "native,bubblewrap"] {
        assert!(rungs(unknown).unwrap_err().cause.contains(unknown));
    }
}

#[test]
fn each_refusal_of_the_system_names_its_remedy() {
    let plain = machine();
    let apparmor = Machine { has_apparmor: true, ..machine() };
    let debian = Machine { is_switched_off: true, ..machine() };
    let rows = [
        (&plain, fall(Step::Namespaces, Errno::NOSPC), "user.max_user_namespaces"),
        (&plain, fall(Step::Namespaces, Errno::PERM), "--security-opt"),
        (&plain, fall(Step::View, Errno::PERM), "--security-opt"),
        (&plain, fall(Step::View, Errno::NOSYS), "Linux 5.12"),
        (&plain, fall(Step::Namespaces, Errno::INVAL), "a kernel with user"),
        (&plain, fall(Step::Find, Errno::NOENT), "`true`"),
        (&plain, fall(Step::UserMap, Errno::INVAL), "a range of users"),
        (&debian, fall(Step::Namespaces, Errno::PERM), "kernel.unprivileged_userns_clone to 1"),
        (
            &apparmor,
            fall(Step::UserMap, Errno::ACCESS),
            "profile gantry /opt/gantry flags=(unconfined) { userns, }",
        ),
        (&apparmor, fall(Step::View, Errno::ACCESS), "install the package `bubblewrap`"),
        (&plain, Fall::Said("bwrap: setting up uid map: Permission denied".into()), "--security-opt"),
        (&plain, Fall::Said(String::new()), "without a word"),
        (&plain, Fall::Late, "in time"),
        (&plain, Fall::AsRoot, "as an ordinary user"),
    ];
    for (machine, native, remedy) in rows {
        let said = said(machine, &native);
        assert!(said.contains(remedy), "{native:?}: {said}");
        assert!(said.contains("bubblewrap: there is no /usr/bin/bwrap"), "{said}");
    }
}
