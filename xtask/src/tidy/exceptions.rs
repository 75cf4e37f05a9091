//! The files that may pass a ceiling, each with its reason.
//!
//! A long pure table is easy to read, a long function is not: only tables and generated code belong here.
//! An entry that excuses nothing is itself a finding, so the list cannot rot.

use super::Finding;
use super::ceilings::{Ceiling, Excess};

/// A path from the root, the ceiling it may pass, and why.
pub(super) type Exception = (&'static str, Ceiling, &'static str);

pub(super) const EXCEPTIONS: &[Exception] = &[];

/// The findings that remain once the exceptions are honoured, and those about the exceptions themselves.
pub(super) fn apply(exceptions: &[Exception], excess: Vec<Excess>) -> Vec<Finding> {
    let excuses =
        |&(path, ceiling, _): &Exception, e: &Excess| path == e.finding.path && ceiling == e.ceiling;
    let unused = exceptions.iter().filter(|x| !excess.iter().any(|e| excuses(x, e)));
    let mut findings: Vec<Finding> = unused
        .map(|(path, ceiling, reason)| {
            let what = format!(
                "the exception for {ceiling} ({reason}) excuses nothing; remove it from xtask/src/tidy/exceptions.rs"
            );
            Finding::new(path, 1, what)
        })
        .collect();
    let remaining = excess.into_iter().filter(|e| !exceptions.iter().any(|x| excuses(x, e)));
    findings.extend(remaining.map(|e| e.finding));
    findings
}
