//! Several hundred spellings of the way out, made by combining what naive checks overlook.

use super::bench::{Bench, Outcome};
use serde_json::json;
use std::collections::BTreeSet;

/// Spellings of "one up".
const UPS: [&str; 10] =
    ["..", "%2e%2e", "%252e%252e", ".%2e", "..%00", "..;", "....", "\u{ff0e}\u{ff0e}", "\u{2025}", ". ."];
/// Spellings of the separator.
const SEPARATORS: [&str; 9] = ["/", "//", "/./", "\\", "\\/", "%2f", "%5c", "%c0%af", "\u{2215}"];
/// What may come first.
const STARTS: [&str; 3] = ["", "./sub/", "sub/../sub/"];

/// All combinations that a check could see differently from the kernel.
fn spellings() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for start in STARTS {
        for up in UPS {
            for separator in SEPARATORS {
                for depth in [1, 3] {
                    let way = format!("{up}{separator}").repeat(depth);
                    all.insert(format!("{start}{way}outside{separator}secret"));
                }
            }
        }
    }
    all
}

/// Whether the kernel, which knows only `/` and `..`, would leave the workspace on this path. `sub` exists.
fn leaves(path: &str) -> bool {
    let mut depth = 0;
    path.split('/').filter(|name| !matches!(*name, "" | ".")).any(|name| {
        depth += if name == ".." { -1 } else { 1 };
        depth < 0
    })
}

#[test]
fn blt_1_no_spelling_of_the_way_out_leaves_the_workspace() {
    let bench = Bench::over_http();
    bench.put("sub/file", "sub");
    let all = spellings();
    let (out, literal): (Vec<_>, Vec<_>) = all.iter().partition(|path| leaves(path));
    assert!(all.len() > 500 && out.len() > 10, "{} {}", all.len(), out.len());
    for path in &out {
        for (tool, arguments) in [
            ("read_file", json!({ "path": path })),
            ("list_directory", json!({ "path": path })),
            ("write_file", json!({ "path": path, "content": "x", "createDirs": true })),
            ("delete_file", json!({ "path": path, "recursive": true })),
            ("move_file", json!({ "from": "sub/file", "to": path, "overwrite": true })),
        ] {
            assert_eq!(bench.approved(tool, arguments).code(), "INVALID_PATH", "{tool} {path:?}");
        }
    }
    // Everything else is an unusual name, taken as it is written: not there, and created within if asked to.
    for path in &literal {
        assert_eq!(bench.code("read_file", json!({ "path": path })), "FILE_NOT_FOUND", "{path:?}");
    }
    for path in &literal {
        let call = json!({ "path": path, "content": "x", "createDirs": true });
        match bench.reply("write_file", call) {
            Outcome::Done(_) => assert_eq!(bench.read(path), "x", "{path:?}"),
            // Another spelling of a file that is there by now.
            Outcome::Failed(error) => assert_eq!(error["code"], "APPROVAL_REQUIRED", "{path:?}: {error}"),
        }
    }
    bench.assert_outside_untouched();
    assert_eq!(bench.read("sub/file"), "sub");
}
