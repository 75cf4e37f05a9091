//! Claims of ARCHITECTURE.md that types alone do not keep: calls that only named places may make.
//!
//! The rules look at tokens outside tests, so comments, strings and tests may name these functions.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Finding;
use super::source::Source;

/// Functions that only some places may call.
struct Claim {
    /// The last path segments of the call, such as `["Permit", "new"]`; a method call is one segment.
    call: &'static [&'static str],
    /// Where the rule holds: beginnings of paths.
    within: &'static [&'static str],
    /// The files that may call it: beginnings of paths.
    allowed: &'static [&'static str],
    what: &'static str,
}

/// The crates of the engine and the providers.
const ENGINE: &[&str] = &[
    "crates/gantry-provider/src/",
    "crates/gantry-tools/src/",
    "crates/gantry-rest/src/",
    "crates/gantry-upstream/src/",
    "crates/gantry-runtime/src/",
    "crates/gantry-egress/src/",
];
const CRATES: &[&str] = &["crates/"];
const CORE: &str = "crates/gantry-core/src/";
/// Behind a feature that only tests switch on.
const TESTING: &str = "crates/gantry-provider/src/testing.rs";

const MINTED: &str = "a permit is minted by the verdict of pipeline/authorise.rs and by the redemption in \
                      pipeline/approve.rs, nowhere else; let the call go through the pipeline";
const CLOCK: &str = "the wall clock is read in clock.rs of gantry-provider; take the time from there";
const SPAWNED: &str =
    "tasks are spawned by gantry_provider::task::spawn or a TaskTracker, so that each has an owner";

const CLAIMS: &[Claim] = &[
    Claim {
        call: &["Permit", "new"],
        within: CRATES,
        allowed: &["crates/gantry-core/src/policy.rs", "crates/gantry-core/src/approval.rs"],
        what: MINTED,
    },
    Claim {
        call: &["into_verdict"],
        within: CRATES,
        allowed: &["crates/gantry-runtime/src/pipeline/authorise.rs", CORE, TESTING],
        what: MINTED,
    },
    Claim {
        call: &["redeem"],
        within: ENGINE,
        allowed: &["crates/gantry-runtime/src/pipeline/approve.rs", TESTING],
        what: MINTED,
    },
    Claim {
        call: &["redeem_grant"],
        within: CRATES,
        allowed: &["crates/gantry-runtime/src/pipeline/approve.rs", CORE],
        what: MINTED,
    },
    Claim {
        call: &["SystemTime", "now"],
        within: ENGINE,
        allowed: &["crates/gantry-provider/src/clock.rs"],
        what: CLOCK,
    },
    Claim {
        call: &["Timestamp", "now"],
        within: ENGINE,
        allowed: &["crates/gantry-provider/src/clock.rs"],
        what: CLOCK,
    },
    Claim {
        call: &["tokio", "spawn"],
        within: ENGINE,
        // A connection of the proxy is driven by a task that ends with the body it carries.
        allowed: &["crates/gantry-provider/src/task.rs", "crates/gantry-egress/src/proxy/relay.rs"],
        what: SPAWNED,
    },
];

pub(super) fn check(source: &Source, findings: &mut Vec<Finding>) {
    let starts = |places: &[&str]| places.iter().any(|place| source.path.starts_with(place));
    for claim in CLAIMS.iter().filter(|claim| starts(claim.within) && !starts(claim.allowed)) {
        let mut lines = Vec::new();
        find(&source.tokens, claim.call, &mut lines);
        for line in lines.into_iter().filter(|line| !source.is_test_line(*line)) {
            findings.push(Finding::new(&source.path, line, claim.what));
        }
    }
}

/// The lines on which the function is called.
fn find(stream: &TokenStream, call: &[&str], lines: &mut Vec<usize>) {
    let trees: Vec<TokenTree> = stream.clone().into_iter().collect();
    for start in 0..trees.len() {
        let Some(rest) = trees.get(start..) else { break };
        if let Some(line) = call_line(rest, call) {
            // `fn redeem(…)` defines what the others call.
            let defines =
                start > 0 && matches!(trees.get(start - 1), Some(TokenTree::Ident(word)) if word == "fn");
            if !defines {
                lines.push(line);
            }
        }
        if let Some(TokenTree::Group(group)) = rest.first() {
            find(&group.stream(), call, lines);
        }
    }
}

/// The line of a call that `rest` begins with: its segments, joined by `::`, and parentheses.
fn call_line(rest: &[TokenTree], call: &[&str]) -> Option<usize> {
    let mut trees = rest.iter();
    for (n, segment) in call.iter().enumerate() {
        if n > 0 {
            for _ in 0..2 {
                matches!(trees.next()?, TokenTree::Punct(colon) if colon.as_char() == ':').then_some(())?;
            }
        }
        matches!(trees.next()?, TokenTree::Ident(ident) if ident == segment).then_some(())?;
    }
    matches!(trees.next()?, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis)
        .then_some(rest.first()?.span().start().line)
}
