//! Another process changes the files while calls come in over HTTP.

use super::bench::{Bench, Outcome};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};

/// Calls in a race at most; what has not been seen by then never happens.
const ROUNDS: usize = 3000;
/// How often both outcomes of a race have to be seen.
const SEEN: usize = 50;

/// Runs `work` while another thread does `disturb` again and again.
fn while_disturbed<T>(disturb: impl Fn() + Send + Sync, work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                disturb();
            }
        });
        // The other thread must stop even if the work panics.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        done.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Whether a file is read, with what is inside; else it is refused as a wrong path.
#[track_caller]
fn is_read(bench: &Bench, path: &str) -> bool {
    match bench.reply("read_file", json!({ "path": path })) {
        Outcome::Done(result) => assert_eq!(result["content"], "inside"),
        Outcome::Failed(error) => {
            assert_eq!(error["code"], "INVALID_PATH", "{error}");
            return false;
        }
    }
    true
}

#[test]
fn blt_1_a_directory_that_is_swapped_for_a_link_never_leads_outside() {
    let bench = Bench::over_http();
    bench.put("d/secret", "inside");
    symlink("../outside", bench.inside("l")).unwrap();
    let (d, l) = (bench.inside("d"), bench.inside("l"));
    let swap = || renameat_with(CWD, &d, CWD, &l, RenameFlags::EXCHANGE).unwrap();
    let (mut read, mut written, mut refused) = (0, 0, 0);
    while_disturbed(swap, || {
        for n in 0..ROUNDS {
            *(if is_read(&bench, "d/secret") { &mut read } else { &mut refused }) += 1;
            match bench.reply("write_file", json!({ "path": format!("d/n{n}"), "content": "x" })) {
                Outcome::Done(_) => written += 1,
                Outcome::Failed(error) => assert_eq!(error["code"], "INVALID_PATH", "{error}"),
            }
            if read.min(written).min(refused) >= SEEN {
                break;
            }
        }
    });
    assert!(read.min(written).min(refused) > 0, "no race was seen: {read} {written} {refused}");
    bench.assert_outside_untouched();
    let real = if d.is_symlink() { &l } else { &d };
    assert_eq!(fs::read_dir(real).unwrap().count(), written + 1, "a write went astray or left something");
}

#[test]
fn blt_1_a_file_that_is_swapped_for_a_link_is_never_read_or_overwritten_outside() {
    let bench = Bench::over_http();
    bench.put("f", "inside");
    symlink("../outside/secret", bench.inside("l")).unwrap();
    let (f, l) = (bench.inside("f"), bench.inside("l"));
    let swap = || renameat_with(CWD, &f, CWD, &l, RenameFlags::EXCHANGE).unwrap();
    let (mut read, mut refused) = (0, 0);
    while_disturbed(swap, || {
        for _ in 0..ROUNDS {
            *(if is_read(&bench, "f") { &mut read } else { &mut refused }) += 1;
            if usize::min(read, refused) >= SEEN {
                break;
            }
        }
        // A write may win, and then takes the name from the file that has it by then, be it the link.
        for n in 0..2 * SEEN {
            let call = json!({ "path": "f", "content": n.to_string() });
            if let Outcome::Failed(error) = bench.approved("write_file", call) {
                let code = error["code"].as_str().expect("a code");
                // Swapped before it was found, between looking and writing, or while it was looked at.
                assert!(["INVALID_PATH", "APPROVAL_REQUIRED", "EXECUTION_ERROR"].contains(&code), "{error}");
            }
        }
    });
    assert!(usize::min(read, refused) > 0, "no race was seen: {read} {refused}");
    bench.assert_outside_untouched();
}

#[test]
fn blt_1_a_reader_never_sees_half_a_write() {
    let bench = Bench::over_http();
    let whole = |letter: &str| letter.repeat(60_000);
    bench.put("f", &whole("a"));
    let reading = || {
        let content = bench.done("read_file", json!({ "path": "f" }))["content"].clone();
        assert!([whole("a"), whole("b")].iter().any(|w| content == **w), "half a file was read");
        let on_disk = fs::read_to_string(bench.inside("f")).unwrap();
        assert!([whole("a"), whole("b")].contains(&on_disk), "half a file was on the disk");
    };
    while_disturbed(reading, || {
        for n in 0..60 {
            let content = whole(if n % 2 == 0 { "b" } else { "a" });
            bench.done_approved("write_file", json!({ "path": "f", "content": content }));
        }
    });
    let left = fs::read_dir(bench.inside(".")).unwrap().count();
    assert_eq!(left, 1, "temporary files are left behind");
}

#[test]
fn blt_1_of_many_calls_that_create_one_file_exactly_one_does() {
    let bench = Bench::over_http();
    for round in 0..10 {
        let path = format!("f{round}");
        let outcomes: Vec<Outcome> = thread::scope(|scope| {
            let calls: Vec<_> = (0..6)
                .map(|n| {
                    let call = json!({ "path": path, "content": n.to_string() });
                    let bench = &bench;
                    scope.spawn(move || (n, bench.reply("write_file", call)))
                })
                .collect();
            let mut outcomes = Vec::new();
            for call in calls {
                let (n, outcome) = call.join().unwrap();
                if matches!(outcome, Outcome::Done(_)) {
                    assert_eq!(bench.read(&path), n.to_string(), "a file that was created was overwritten");
                }
                outcomes.push(outcome);
            }
            outcomes
        });
        let (done, refused): (Vec<_>, Vec<_>) =
            outcomes.into_iter().partition(|outcome| matches!(outcome, Outcome::Done(_)));
        assert_eq!(done.len(), 1, "{done:?}");
        for outcome in refused {
            assert_eq!(outcome.code(), "APPROVAL_REQUIRED");
        }
    }
}
