//! Finds the backend that builds jails on this machine: the first one that really runs a program.
//!
//! The choice never depends on what a job asks for. Where no backend works, no job is run.

use super::bubblewrap::BUBBLEWRAP;
use super::error::Step;
use super::launch::{self, Builder};
use super::{JailError, SandboxInfo};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Takes backends away, for operators and for tests: `native` and `bubblewrap` leave that one, `none` leaves none.
const VARIABLE: &str = "GANTRY_SANDBOX";

/// What a jail by bubblewrap lacks on every machine.
const BUBBLEWRAP_NOTE: &str = "built by bubblewrap: the number of files in memory is not limited, and jobs see the process that watches over them";

/// The program that makes the namespaces and mounts of a jail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Backend {
    /// The helper itself.
    Native,
    /// bubblewrap, which some systems permit it where they do not permit it to the helper.
    Bubblewrap,
}

impl Backend {
    fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Bubblewrap => "bubblewrap",
        }
    }
}

/// The first backend that works. `helper` is the executable that builds jails.
pub(crate) fn find(helper: PathBuf) -> Result<(Builder, SandboxInfo), JailError> {
    let allowed = allowed(std::env::var_os(VARIABLE).as_deref())?;
    let machine = Machine::read(&helper);
    let attempt = |backend| match backend {
        Backend::Bubblewrap if !Path::new(BUBBLEWRAP).is_file() => Err(unavailable(
            &format!("there is no {BUBBLEWRAP}"),
            &format!("install the package `bubblewrap`, which brings {BUBBLEWRAP}"),
        )),
        Backend::Bubblewrap if rustix::process::geteuid().is_root() => {
            Err(unavailable("it would run programs as root", "run Gantry as an ordinary user"))
        }
        Backend::Native | Backend::Bubblewrap => launch::probe(&Builder { backend, helper: helper.clone() }),
    };
    let (backend, info) = first_working(allowed, &machine, attempt)?;
    Ok((Builder { backend, helper }, info))
}

fn unavailable(cause: &str, fix: &str) -> JailError {
    JailError::Unavailable { cause: cause.to_owned(), fix: fix.to_owned() }
}

fn allowed(variable: Option<&OsStr>) -> Result<&'static [Backend], JailError> {
    match variable.map(|value| value.to_string_lossy()).as_deref() {
        None | Some("") => Ok(&[Backend::Native, Backend::Bubblewrap]),
        Some("native") => Ok(&[Backend::Native]),
        Some("bubblewrap") => Ok(&[Backend::Bubblewrap]),
        Some("none") => Err(unavailable(
            &format!("the sandbox is switched off by {VARIABLE}=none"),
            "unset that variable to switch it on",
        )),
        Some(other) => Err(unavailable(
            &format!("the variable {VARIABLE} is `{other}`"),
            "set it to native, bubblewrap or none, or unset it",
        )),
    }
}

/// Tries one backend after the other. If all fail, the error says why each does, and what to do about the first.
fn first_working(
    backends: &[Backend],
    machine: &Machine,
    mut attempt: impl FnMut(Backend) -> Result<Vec<String>, JailError>,
) -> Result<(Backend, SandboxInfo), JailError> {
    let (mut causes, mut first_fix) = (Vec::new(), None);
    for backend in backends {
        match attempt(*backend) {
            Ok(mut notes) => {
                notes.extend((*backend == Backend::Bubblewrap).then(|| BUBBLEWRAP_NOTE.to_owned()));
                return Ok((*backend, SandboxInfo { level: backend.name(), notes }));
            }
            Err(error) => {
                let (cause, fix) = machine.diagnose(error);
                causes.push(format!("{}: {cause}", backend.name()));
                first_fix.get_or_insert(fix);
            }
        }
    }
    Err(unavailable(&causes.join("; "), &first_fix.unwrap_or_default()))
}

/// The settings of this machine that explain a failure.
#[derive(Debug, Clone, Default)]
struct Machine {
    helper: PathBuf,
    /// AppArmor permits user namespaces only to programs with a profile for it, as on Ubuntu from 23.10 on.
    has_apparmor: bool,
    /// Debian's switch is off.
    is_switched_off: bool,
}

impl Machine {
    fn read(helper: &Path) -> Self {
        let is = |setting: &str, value: &str| {
            fs::read_to_string(format!("/proc/sys/kernel/{setting}")).is_ok_and(|text| text.trim() == value)
        };
        Self {
            helper: fs::canonicalize(helper).unwrap_or_else(|_| helper.to_owned()),
            has_apparmor: is("apparmor_restrict_unprivileged_userns", "1"),
            is_switched_off: is("unprivileged_userns_clone", "0"),
        }
    }

    /// Why a backend does not work, and what to do about it.
    fn diagnose(&self, error: JailError) -> (String, String) {
        match error {
            JailError::Unavailable { cause, fix } => (cause, fix),
            JailError::Step { step, detail, errno } => {
                (step.with(&detail, errno), self.remedy(step, Errno::from_raw_os_error(errno)))
            }
            JailError::NoProgram { .. } => {
                (error.to_string(), "install the program `true` in /usr/bin or /bin".to_owned())
            }
            JailError::HelperExited { stderr } if stderr.is_empty() => {
                ("it ended without output".to_owned(), "run Gantry on a machine that permits it".to_owned())
            }
            JailError::HelperExited { stderr } => {
                let lower = stderr.to_lowercase();
                let is_forbidden = ["permission", "permitted"].iter().any(|word| lower.contains(word));
                let fix =
                    if is_forbidden { self.permit() } else { "mend what it complains about".to_owned() };
                (stderr, fix)
            }
            JailError::Workspace { .. }
            | JailError::Folder { .. }
            | JailError::Setup { .. }
            | JailError::Broken(_) => (error.to_string(), "mend what it complains about".to_owned()),
        }
    }

    fn remedy(&self, step: Step, errno: Errno) -> String {
        let remedy = match (step, errno) {
            (Step::Namespaces, Errno::NOSPC) => {
                "there may be no more user namespaces: set the sysctl user.max_user_namespaces to a number such as 15000"
            }
            (_, Errno::NOSYS) => "use Linux 5.12 or newer",
            (Step::Namespaces, Errno::INVAL) => {
                "use a kernel with user, mount, process, network and IPC namespaces"
            }
            (Step::UserMap, Errno::INVAL) => {
                "Gantry is root of a user namespace that has no other user: run it as an ordinary user, or in a container \
                 with a range of users"
            }
            (Step::Execute, _) => "install the program `true` in /usr/bin or /bin",
            (_, Errno::PERM | Errno::ACCESS) => return self.permit(),
            _ => "run Gantry on a machine that permits it",
        };
        remedy.to_owned()
    }

    /// How to get the permission to make namespaces and to mount.
    fn permit(&self) -> String {
        if self.has_apparmor {
            return format!(
                "AppArmor permits user namespaces only to programs with a profile for it: write to /etc/apparmor.d/gantry \
                 the lines `abi <abi/4.0>,` and `profile gantry {} flags=(unconfined) {{ userns, }}` and run \
                 `apparmor_parser -r /etc/apparmor.d/gantry` as root; or install the package `bubblewrap`, for which Ubuntu \
                 has a profile: from 25.04 on it is loaded, on 24.04 install `apparmor-profiles`, copy \
                 /usr/share/apparmor/extra-profiles/bwrap-userns-restrict to /etc/apparmor.d and load it in the same way; or \
                 set the sysctl kernel.apparmor_restrict_unprivileged_userns to 0",
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

#[cfg(test)]
mod tests;
