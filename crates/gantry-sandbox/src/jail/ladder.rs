//! The ladder: the ways to build a jail, the best one first, of which one is used that has really worked.
//!
//! Which one it is never depends on what a job asks for. Where none works, nothing is run: there is no rung below.

mod causes;

use super::bubblewrap;
use super::launch::Refused;
use super::plan::Failure;
use super::{Level, Unavailable};
use causes::Machine;
use std::ffi::OsStr;
use std::path::Path;

/// Takes rungs away, for operators and for tests: `native` and `bubblewrap` leave that one, `none` leaves nothing.
pub(crate) const VARIABLE: &str = "GANTRY_SANDBOX";

/// A way to build a jail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rung {
    /// By the helper itself.
    Native,
    /// By the program of that name, which some systems trust where they do not trust us.
    Bubblewrap,
}

/// Why a rung does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fall {
    /// A step failed.
    Step(Failure),
    /// The program is not installed where it is looked for.
    Missing,
    /// Programs would run as root.
    AsRoot,
    /// The program said this, or nothing.
    Said(String),
    /// It took too long.
    Late,
}

impl Rung {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Bubblewrap => "bubblewrap",
        }
    }
}

impl From<Refused> for Fall {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Failed(failure) => Self::Step(failure),
            Refused::Late => Self::Late,
            Refused::Silent(said) => Self::Said(said),
            Refused::Error(error) => Self::Said(error.to_string()),
        }
    }
}

/// The best rung that holds, with what is missing on it. `probe` runs a program that does nothing, and `helper` is the
/// executable that builds jails.
pub(crate) fn find(
    helper: &Path,
    probe: impl Fn(Rung) -> Result<Vec<String>, Refused>,
) -> Result<(Rung, Level), Unavailable> {
    let allowed = allowed(std::env::var_os(VARIABLE).as_deref())?;
    climb(allowed, &Machine::read(helper), |rung| {
        if rung == Rung::Bubblewrap {
            if !bubblewrap::is_installed() {
                return Err(Fall::Missing);
            }
            if rustix::process::geteuid().is_root() {
                return Err(Fall::AsRoot);
            }
        }
        Ok(probe(rung)?)
    })
}

/// The rungs that may be tried.
fn allowed(variable: Option<&OsStr>) -> Result<&'static [Rung], Unavailable> {
    let refuse = |cause: String, fix: &str| Err(Unavailable { cause, fix: fix.to_owned() });
    match variable.map(|value| value.to_string_lossy()).as_deref() {
        None | Some("") => Ok(&[Rung::Native, Rung::Bubblewrap]),
        Some("native") => Ok(&[Rung::Native]),
        Some("bubblewrap") => Ok(&[Rung::Bubblewrap]),
        Some("none") => refuse(
            format!("the sandbox is switched off by {VARIABLE}=none"),
            "unset that variable to switch it on",
        ),
        Some(other) => refuse(
            format!("the variable {VARIABLE} is `{other}`"),
            "set it to native, bubblewrap or none, or unset it",
        ),
    }
}

/// Tries one rung after the other.
fn climb(
    rungs: &[Rung],
    machine: &Machine,
    mut attempt: impl FnMut(Rung) -> Result<Vec<String>, Fall>,
) -> Result<(Rung, Level), Unavailable> {
    let mut falls = Vec::new();
    for rung in rungs {
        match attempt(*rung) {
            Ok(mut notes) => {
                notes.extend(machine.notes(*rung));
                return Ok((*rung, Level { name: rung.name(), notes }));
            }
            Err(fall) => falls.push((*rung, fall)),
        }
    }
    Err(machine.explain(&falls))
}

#[cfg(test)]
mod tests;
