//! Texts of programs as results and questions have them: cut to a size, without what could mislead a reader.

pub(super) use crate::text::{head, strip_ansi as plain, tail};

use gantry_sandbox::jail::Ran;

/// The end of what a program said, in results.
pub(super) const TAIL_BYTES: usize = 20 * 1024;

/// The end of what a program said on both its outputs, and whether there was more. What it said on its standard error
/// comes last: there it says why it failed.
pub(super) fn output(ran: &Ran) -> (String, bool) {
    let (stdout, stderr) = (plain(&ran.stdout.text()), plain(&ran.stderr.text()));
    let gap = if stdout.is_empty() || stderr.is_empty() || stdout.ends_with('\n') { "" } else { "\n" };
    // Neither output takes all the room from the other.
    let half = TAIL_BYTES / 2;
    let said = if stdout.len() > half && stderr.len() > half {
        format!("{}\n{}", tail(&stdout, half - 1), tail(&stderr, half))
    } else {
        format!("{stdout}{gap}{stderr}")
    };
    let kept = tail(&said, TAIL_BYTES).to_owned();
    let cut = kept.len() < stdout.len() + gap.len() + stderr.len();
    (kept, cut || ran.stdout.is_truncated() || ran.stderr.is_truncated())
}
