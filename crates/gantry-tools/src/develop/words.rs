//! Output of programs as results have it: the end of it, without colours.

use gantry_sandbox::jail::Ran;

/// The end of what a program said, in results.
pub(super) const TAIL_BYTES: usize = 20 * 1024;

/// The end of a text, in whole characters.
pub(super) fn tail(text: &str, bytes: usize) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(bytes))..).unwrap_or_default()
}

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

/// A text without the sequences that colour a terminal.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\x1b' && chars.peek() == Some(&'[') {
            chars.next();
            chars.by_ref().find(|c| ('@'..='~').contains(c));
        } else {
            out.push(c);
        }
    }
    out
}
