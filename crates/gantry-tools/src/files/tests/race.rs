//! What happens when another program changes the files at the same time.

use super::*;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Runs `work` while another thread does `disturb` again and again.
pub(super) fn while_disturbed(disturb: impl Fn() + Send + Sync, work: impl FnOnce()) {
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
        result.unwrap();
    });
}

#[test]
fn a_directory_swapped_for_a_link_never_leads_outside() {
    let bench = Bench::new();
    bench.put("d/secret", "inside");
    bench.link("../outside", "l");
    let before = bench.tree("outside");
    let (d, l) = (bench.ws("d"), bench.ws("l"));
    let swap = || renameat_with(CWD, &d, CWD, &l, RenameFlags::EXCHANGE).unwrap();
    let (mut read, mut written) = (0, 0);
    while_disturbed(swap, || {
        for n in 0..10_000 {
            let answer = bench.call("read_file", json!({ "path": "d/secret" }));
            if let Answer::Done(value) = answer {
                assert_eq!(value["content"], "inside");
                read += 1;
            } else {
                assert_eq!(answer.code(), "INVALID_PATH");
            }
            let answer = bench.call("write_file", json!({ "path": format!("d/n{n}"), "content": "x" }));
            if matches!(answer, Answer::Done(_)) {
                written += 1;
            } else {
                assert_eq!(answer.code(), "INVALID_PATH");
            }
        }
    });
    assert_eq!(bench.tree("outside"), before);
    assert!(read > 0 && written > 0, "{read} {written}");
    let inside = if fs::symlink_metadata(&d).unwrap().is_dir() { d } else { l };
    assert_eq!(
        fs::read_dir(inside).unwrap().count(),
        written + 1,
        "a write went astray or left something behind"
    );
}

#[test]
fn a_file_swapped_for_a_link_never_leads_outside() {
    let bench = Bench::new();
    bench.put("f", "inside");
    bench.link("../outside/secret", "l");
    let before = bench.tree("outside");
    let (f, l) = (bench.ws("f"), bench.ws("l"));
    let swap = || renameat_with(CWD, &f, CWD, &l, RenameFlags::EXCHANGE).unwrap();
    while_disturbed(swap, || {
        for _ in 0..5_000 {
            let answer = bench.call("read_file", json!({ "path": "f" }));
            if let Answer::Done(value) = answer {
                assert_eq!(value["content"], "inside");
            } else {
                assert_eq!(answer.code(), "INVALID_PATH");
            }
        }
    });
    assert_eq!(bench.tree("outside"), before);
}

#[test]
fn a_tree_that_is_deleted_while_parts_become_links_loses_nothing_outside() {
    const PARTS: usize = 8;
    let bench = Bench::new();
    let before = bench.tree("outside");
    bench.link("../../outside", "l");
    let l = bench.ws("l");
    let parts: Vec<_> = (0..PARTS).map(|n| bench.ws(&format!("t/{n}"))).collect();
    // Each part takes turns with the link. Most swaps find nothing to swap, because the part is deleted by then.
    let swap = || {
        for part in &parts {
            renameat_with(CWD, part, CWD, &l, RenameFlags::EXCHANGE).ok();
            renameat_with(CWD, part, CWD, &l, RenameFlags::EXCHANGE).ok();
        }
    };
    while_disturbed(swap, || {
        for _ in 0..500 {
            for part in &parts {
                // A link in its place is fine too.
                fs::create_dir_all(part).ok();
            }
            // Anything may come of it, except a change outside.
            drop(bench.approved("delete_file", json!({ "path": "t", "recursive": true })));
        }
    });
    assert_eq!(bench.tree("outside"), before);
}

#[test]
fn a_reader_never_sees_half_a_file() {
    let bench = Bench::new();
    let content = |c: &str| c.repeat(200_000);
    bench.put("f", &content("a"));
    let reader = || {
        let bytes = fs::read(bench.ws("f")).unwrap();
        assert_eq!(bytes.len(), 200_000);
        assert!(bytes.iter().all(|byte| *byte == bytes[0]));
    };
    while_disturbed(reader, || {
        for n in 0..100 {
            let letter = if n % 2 == 0 { "b" } else { "a" };
            bench.approved("write_file", json!({ "path": "f", "content": content(letter) })).done();
        }
    });
}

#[test]
fn of_many_that_create_one_file_exactly_one_succeeds() {
    let bench = Bench::new();
    for round in 0..50 {
        let path = format!("f{round}");
        let permits: Vec<_> = (0..4)
            .map(|n| bench.permit("write_file", &json!({ "path": path, "content": n.to_string() })).unwrap())
            .collect();
        let answers: Vec<Answer> = thread::scope(|scope| {
            let running: Vec<_> = permits.iter().map(|permit| scope.spawn(|| bench.run(permit))).collect();
            running.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let done = answers.iter().filter(|answer| matches!(answer, Answer::Done(_))).count();
        assert_eq!(done, 1, "{answers:?}");
        for answer in answers.into_iter().filter(|answer| !matches!(answer, Answer::Done(_))) {
            assert_eq!(answer.code(), "APPROVAL_REQUIRED");
        }
    }
}
