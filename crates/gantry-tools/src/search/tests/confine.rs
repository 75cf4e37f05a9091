//! Nothing outside the workspace and nothing hidden is read, also while files change.

use super::*;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

#[test]
fn hidden_files_links_and_pipes_are_not_searched() {
    let bench = Bench::new();
    bench.put("a.rs", "needle\n");
    bench.put("hidden.txt", "needle\n");
    bench.put(".gantry/data.rs", "needle\n");
    bench.put(".ignore", "!.gantry\n");
    symlink("../outside", bench.ws("out")).unwrap();
    symlink("../outside/secret.rs", bench.ws("link.rs")).unwrap();
    symlink("a.rs", bench.ws("inner.rs")).unwrap();
    symlink(".gantry", bench.ws("data")).unwrap();
    rustix::fs::mknodat(CWD, bench.ws("pipe.rs"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert_eq!(bench.literal("needle"), ["a.rs:1"]);
    assert_eq!(bench.ranked("needle"), ["a.rs"]);
    assert!(bench.ranked("secret").is_empty());
    for mode in ["literal", "ranked"] {
        for (path, expected, words) in [
            ("out", "INVALID_PATH", "outside"),
            ("out/secret.rs", "INVALID_PATH", "outside"),
            ("link.rs", "INVALID_PATH", "outside"),
            ("inner.rs", "INVALID_PATH", "symbolic link"),
            ("data", "PERMISSION_DENIED", "Gantry"),
            ("hidden.txt", "PERMISSION_DENIED", "Gantry"),
        ] {
            let (code, message) = bench.error(json!({ "query": "needle", "mode": mode, "path": path }));
            assert!(code == expected && message.contains(words), "{path}: {code}: {message}");
        }
    }
    assert!(bench.places(json!({ "query": "needle", "mode": "literal", "path": "pipe.rs" })).is_empty());
}

#[test]
fn rules_behind_a_link_are_not_read() {
    let bench = Bench::new();
    fs::write(bench.dir.path().join("outside/rules"), "a.rs\n").unwrap();
    symlink("../outside/rules", bench.ws(".gitignore")).unwrap();
    bench.put("a.rs", "needle\n");
    assert_eq!(bench.literal("needle"), ["a.rs:1"]);
}

#[test]
fn rules_without_an_end_or_in_a_pipe_hold_nothing_up() {
    let bench = Bench::new();
    symlink("/dev/zero", bench.ws(".gitignore")).unwrap();
    rustix::fs::mknodat(CWD, bench.ws(".ignore"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    bench.put("large/.gitignore", format!("late.rs\n{}early.rs\n", "# a comment\n".repeat(100_000)));
    for path in ["a.rs", "large/early.rs", "large/late.rs"] {
        bench.put(path, "needle\n");
    }
    // Of a file with rules the first part counts.
    assert_eq!(bench.literal("needle"), ["a.rs:1", "large/early.rs:1"]);
    assert_eq!(bench.ranked("needle").len(), 2);
}

#[test]
fn a_directory_swapped_for_a_link_never_leads_outside() {
    let bench = Bench::new();
    for n in 0..20 {
        bench.put(&format!("d/{n}/inside.rs"), "needle\n");
        fs::create_dir_all(bench.dir.path().join(format!("outside/{n}"))).unwrap();
        fs::write(bench.dir.path().join(format!("outside/{n}/secret.rs")), "SECRET needle\n").unwrap();
    }
    symlink("../outside", bench.ws("l")).unwrap();
    bench.put("f.rs", "needle\n");
    symlink("../outside/secret.rs", bench.ws("g.rs")).unwrap();
    let done = AtomicBool::new(false);
    let exchange = |a: &str, b: &str| {
        renameat_with(CWD, bench.ws(a), CWD, bench.ws(b), RenameFlags::EXCHANGE).unwrap();
    };
    let swap = || {
        while !done.load(Ordering::Relaxed) {
            exchange("d", "l");
            exchange("f.rs", "g.rs");
        }
    };
    thread::scope(|scope| {
        scope.spawn(swap);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for n in 0..300 {
                let mode = if n % 3 == 0 { "ranked" } else { "literal" };
                let answer = bench.search(json!({ "query": "needle", "mode": mode })).to_string();
                assert!(!answer.to_lowercase().contains("secret"), "{answer}");
                let narrowed = bench.call(&json!({ "query": "needle", "mode": "literal", "path": "d" }));
                assert!(narrowed.map_or(true, |answer| !answer.to_string().contains("SECRET")));
            }
        }));
        done.store(true, Ordering::Relaxed);
        result.unwrap();
    });
}
