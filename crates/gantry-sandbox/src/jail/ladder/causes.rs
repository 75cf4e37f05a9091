//! Why no jail can be built on this machine, and what to do about it.

use super::{Fall, Rung};
use crate::jail::Unavailable;
use crate::jail::bubblewrap::BUBBLEWRAP;
use crate::jail::plan::{Failure, Step};
use rustix::io::Errno;
use std::fs;
use std::path::{Path, PathBuf};

/// What is known of this machine that explains a failure.
#[derive(Debug, Clone, Default)]
pub(super) struct Machine {
    /// The executable that is the helper.
    pub(super) helper: PathBuf,
    /// AppArmor permits user namespaces only to programs that it knows, as on Ubuntu from 23.10 on.
    pub(super) has_apparmor: bool,
    /// Debian's switch is off.
    pub(super) is_switched_off: bool,
}

impl Machine {
    pub(super) fn read(helper: &Path) -> Self {
        let is = |setting: &str, value: &str| {
            fs::read_to_string(format!("/proc/sys/kernel/{setting}")).is_ok_and(|text| text.trim() == value)
        };
        Self {
            helper: fs::canonicalize(helper).unwrap_or_else(|_| helper.to_owned()),
            has_apparmor: is("apparmor_restrict_unprivileged_userns", "1"),
            is_switched_off: is("unprivileged_userns_clone", "0"),
        }
    }

    /// What differs on a rung from the whole of it, on every machine.
    pub(super) fn notes(&self, rung: Rung) -> Option<String> {
        let note = "built by bubblewrap: the number of files in memory is not limited, and jobs see the process that \
                    watches over them";
        (rung == Rung::Bubblewrap).then(|| note.to_owned())
    }

    /// Why none of the rungs holds. The first is the one to mend, unless the last needs less.
    pub(super) fn explain(&self, falls: &[(Rung, Fall)]) -> Unavailable {
        let told: Vec<_> = falls.iter().map(|(rung, fall)| (*rung, self.cause_and_fix(fall))).collect();
        let causes: Vec<_> =
            told.iter().map(|(rung, (cause, _))| format!("{}: {cause}", rung.name())).collect();
        let fix = told.into_iter().next().map(|(_, (_, fix))| fix);
        Unavailable { cause: causes.join("; "), fix: fix.unwrap_or_default() }
    }

    fn cause_and_fix(&self, fall: &Fall) -> (String, String) {
        match fall {
            Fall::Step(failure) => self.of_step(failure),
            Fall::Missing => {
                let fix = format!("install the package `bubblewrap`, which brings {BUBBLEWRAP}");
                (format!("there is no {BUBBLEWRAP}"), fix)
            }
            Fall::AsRoot => {
                ("it would run programs as root".to_owned(), "run Gantry as an ordinary user".to_owned())
            }
            Fall::Said(said) if said.is_empty() => {
                ("it ended without a word".to_owned(), "run Gantry on a machine that permits it".to_owned())
            }
            Fall::Said(said) => {
                let lower = said.to_lowercase();
                let is_forbidden = ["permission", "permitted"].iter().any(|word| lower.contains(word));
                let fix =
                    if is_forbidden { self.permit() } else { "mend what it complains about".to_owned() };
                (said.clone(), fix)
            }
            Fall::Late => (
                "a program that does nothing did not end in time".to_owned(),
                "restart Gantry when the machine is less busy".to_owned(),
            ),
        }
    }

    fn of_step(&self, failure: &Failure) -> (String, String) {
        let Failure { step, detail, .. } = failure;
        let detail = if detail.is_empty() { String::new() } else { format!(" ({detail})") };
        let cause = format!("{step}{detail}: {}", failure.error());
        let fix = match (step, Errno::from_raw_os_error(failure.errno)) {
            (Step::Namespaces, Errno::NOSPC) => {
                "there may be no more user namespaces: set the sysctl user.max_user_namespaces to a number such as 15000"
                    .to_owned()
            }
            (_, Errno::NOSYS) => "use Linux 5.12 or newer".to_owned(),
            (Step::Namespaces, Errno::INVAL) => {
                "use a kernel with user, mount, process, network and IPC namespaces".to_owned()
            }
            (Step::UserMap, Errno::INVAL) => "Gantry is root of a user namespace that has no other user: run it as an \
                                              ordinary user, or in a container with a range of users"
                .to_owned(),
            (Step::Find | Step::Execute, _) => "install the program `true` in /usr/bin or /bin".to_owned(),
            (_, Errno::PERM | Errno::ACCESS) => self.permit(),
            _ => "run Gantry on a machine that permits it".to_owned(),
        };
        (cause, fix)
    }

    /// How to get the permission to make namespaces and to mount.
    fn permit(&self) -> String {
        if self.has_apparmor {
            return format!(
                "AppArmor permits user namespaces only to programs that it knows: install the package `bubblewrap`; or \
                 write to /etc/apparmor.d/gantry the lines `abi <abi/4.0>,` and `profile gantry {} flags=(unconfined) \
                 {{ userns, }}` and run `apparmor_parser -r /etc/apparmor.d/gantry` as root; or set the sysctl \
                 kernel.apparmor_restrict_unprivileged_userns to 0",
                self.helper.display()
            );
        }
        if self.is_switched_off {
            return "set the sysctl kernel.unprivileged_userns_clone to 1".to_owned();
        }
        "user namespaces or mounts are forbidden, as containers do by default: start the container with `--security-opt \
         seccomp=unconfined --security-opt apparmor=unconfined`, or run Gantry outside of it"
            .to_owned()
    }
}
