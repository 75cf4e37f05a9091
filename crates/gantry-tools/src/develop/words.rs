//! Output of programs as results have it: the end of it, without colours.

pub(super) use crate::text::{strip_ansi as plain, tail};

use gantry_sandbox::jail::Ran;

/// The end of what a program said, in results.
pub(super) const TAIL_BYTES: usize = 20 * 1024;

/// The end of what a program printed on both its outputs, and whether there was more.
pub(super) fn output(ran: &Ran) -> (String, bool) {
    let (kept, cut) = joined(&plain(&ran.stdout.text()), &plain(&ran.stderr.text()));
    (kept, cut || ran.stdout.is_truncated() || ran.stderr.is_truncated())
}

/// The end of two outputs, and whether there was more. The standard error comes last: there programs say why they failed.
pub(super) fn joined(stdout: &str, stderr: &str) -> (String, bool) {
    let gap = if stdout.is_empty() || stderr.is_empty() || stdout.ends_with('\n') { "" } else { "\n" };
    // Neither output takes all the room from the other.
    let half = TAIL_BYTES / 2;
    let said = if stdout.len() > half && stderr.len() > half {
        format!("{}\n{}", tail(stdout, half - 1), tail(stderr, half))
    } else {
        format!("{stdout}{gap}{stderr}")
    };
    let kept = tail(&said, TAIL_BYTES).to_owned();
    let cut = kept.len() < stdout.len() + gap.len() + stderr.len();
    (kept, cut)
}
