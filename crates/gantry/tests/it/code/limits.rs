//! Code that takes too much: processes, memory, processor time, disk, output.

use super::site::{Site, eventually, says};
use gantry_testkit::{long, process};
use serde_json::{Value, json};
use std::os::unix::fs::MetadataExt as _;

const MIB: u64 = 1 << 20;

#[test]
fn blt_2_heavy_a_fork_bomb_gets_no_more_processes_than_its_limit_and_is_ended_whole() {
    const LIMIT: usize = 32;
    // First how many there can be, then as many as possible for as long as possible.
    let code = "
import os, signal, time
children = []
try:
    while True:
        child = os.fork()
        if child == 0:
            time.sleep(600)
        children.append(child)
except OSError as error:
    print('stopped', len(children), error.errno, flush=True)
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
while True:
    try:
        os.fork()
    except OSError:
        pass
";
    Site::each(&format!("code: {{ processes: {LIMIT} }}\n"), |site| {
        let call = site.arguments("python", code, &json!({ "timeout": 4 }));
        let (reply, most) = std::thread::scope(|scope| {
            let calling = scope.spawn(|| site.call("run_code", &call));
            let mut most = 0;
            while !calling.is_finished() {
                most = most.max(process::find_processes(&site.mark).len());
            }
            (calling.join().expect("a reply"), most)
        });
        assert_eq!(reply["error"]["code"], "TIMEOUT", "{reply}");
        let outcome = reply["error"]["details"]["stdout"].as_str().expect("what it printed");
        let count: usize =
            outcome.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{reply}"));
        assert!((LIMIT / 2..LIMIT).contains(&count), "{count} children under a limit of {LIMIT}: {reply}");
        assert!((2..=LIMIT).contains(&most), "{most} were seen at once");
        site.has_files(&[]);
    });
}

#[test]
fn blt_2_heavy_the_bash_fork_bomb_ends_with_its_time() {
    Site::each("code: { processes: 48 }\n", |site| {
        let error = site.error(
            "bash",
            "bomb() { bomb | bomb & }; bomb; while :; do :; done",
            &json!({ "timeout": 2 }),
        );
        assert_eq!(error["code"], "TIMEOUT");
        says(&error, &["run_code ran longer than 2 s", "everything it had started"]);
        site.has_files(&[]);
    });
}

#[test]
fn blt_2_two_runs_at_once_have_their_processes_each() {
    let site = Site::one("code: { processes: 24 }\n");
    let code = "
import os, sys, time
for _ in range(16):
    if os.fork() == 0:
        time.sleep(600)
open(sys.argv[1], 'w').close()
while not (os.path.exists('a') and os.path.exists('b')):
    time.sleep(0.01)
print('both')
";
    std::thread::scope(|scope| {
        for name in ["a", "b"] {
            let site = &site;
            scope.spawn(move || {
                let result = site.code_with("python", code, &json!({ "args": [name] }));
                assert_eq!(result["stdout"], "both\n", "{result}");
            });
        }
    });
    site.settled();
}

/// The error of a run that took too much memory.
#[track_caller]
fn too_much_memory(error: &Value, limit: u64) {
    assert_eq!(error["code"], "EXECUTION_ERROR", "{error}");
    says(error, &[&format!("more than {limit} MiB of memory"), "code.memoryMb"]);
}

#[test]
fn blt_2_heavy_memory_is_limited_for_all_processes_together() {
    let code = "
import os, time
print('begun', flush=True)
for _ in range(8):
    if os.fork() == 0:
        held = bytearray(150 << 20)
        time.sleep(600)
time.sleep(600)
";
    Site::each("code: { memoryMb: 256 }\n", |site| {
        let error = site.error("python", code, &json!({}));
        too_much_memory(&error, 256);
        assert_eq!(error["details"]["stdout"], "begun\n", "{error}");
        site.nothing_runs();
        // The limit is no smaller than it says either.
        let within = site.code("python", "held = bytearray(150 << 20); print(len(held))");
        assert_eq!(within["exitCode"], 0, "{within}");
    });
}

#[test]
fn blt_2_heavy_one_process_that_takes_too_much_memory_is_ended() {
    Site::each("code: { memoryMb: 128 }\n", |site| {
        let code = "import time\nheld = []\nwhile True: held.append(bytearray(8 << 20))";
        too_much_memory(&site.error("python", code, &json!({})), 128);
        site.has_files(&[]);
    });
}

#[test]
fn blt_2_heavy_memory_that_no_process_maps_is_refused_or_counts() {
    // Files in memory without a name, and segments shared by key.
    let memfd = "
import os, sys
try:
    fd = os.memfd_create('hog')
except OSError as error:
    print('refused', error.errno)
    sys.exit(0)
for _ in range(640):
    os.write(fd, b'x' * (1 << 20))
print('held')
";
    let segment = "
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.shmdt.argtypes = [ctypes.c_void_p]
held = 0
for key in range(20):
    segment = libc.shmget(0, 32 << 20, 0o600 | 0o1000)
    at = libc.shmat(segment, None, 0) if segment >= 0 else -1
    if segment < 0 or at in (None, ctypes.c_void_p(-1).value):
        print('refused', ctypes.get_errno()); sys.exit(0)
    ctypes.memset(at, 1, 32 << 20)
    libc.shmdt(at)
    held += 32
print('held')
";
    Site::each("code: { memoryMb: 256 }\n", |site| {
        for code in [memfd, segment] {
            let reply = site.reply("python", code, &json!({}));
            if reply["ok"] == true {
                let outcome = reply["result"]["stdout"].as_str().expect("a text");
                assert!(outcome.starts_with("refused "), "{reply}");
            } else {
                too_much_memory(&reply["error"], 256);
            }
        }
    });
}

#[test]
fn blt_2_heavy_folders_in_memory_count_as_memory_or_are_full_first() {
    let code = "
import sys
n = 0
try:
    for folder in ['/tmp', '/dev/shm', '/home/gantry'] * 20:
        with open(f'{folder}/{n}', 'wb') as file:
            n += 1
            for _ in range(16):
                file.write(b'x' * (1 << 20))
except OSError as error:
    print('full', error.errno)
    sys.exit(0)
print('held')
";
    Site::each("code: { memoryMb: 128 }\n", |site| {
        let reply = site.reply("python", code, &json!({}));
        if reply["ok"] == true {
            assert_eq!(reply["result"]["stdout"], "full 28\n", "{reply}");
        } else {
            too_much_memory(&reply["error"], 128);
        }
        // Not even names without content are free of a limit.
        let code = "for i in $(seq 200000); do : > /tmp/$i || { echo full; exit 0; }; done; echo held";
        let result = site.reply("bash", code, &json!({ "timeout": 30 }));
        assert_ne!(result["result"]["stdout"], "held\n", "{result}");
    });
}

#[test]
fn blt_2_heavy_a_busy_loop_ends_with_its_time_and_with_its_processor_time() {
    Site::each("code: { cpuSeconds: 1 }\n", |site| {
        for (language, code) in
            [("bash", "echo on; while :; do :; done"), ("python", "print('on')\nwhile True: pass")]
        {
            let error = site.error(language, code, &json!({}));
            assert_eq!(error["code"], "TIMEOUT", "{error}");
            says(&error, &["more than 1 s of processor time", "code.cpuSeconds"]);
            assert_eq!(error["details"]["stdout"], "on\n", "{error}");
        }
        // A program that asks the kernel for a warning first is ended all the same.
        let code = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass";
        let error = site.error("python", code, &json!({ "timeout": 20 }));
        says(&error, &["more than 1 s of processor time"]);
    });
    Site::each("", |site| {
        let error = site.error("bash", "echo on; while :; do :; done", &json!({ "timeout": 1 }));
        assert_eq!(error["code"], "TIMEOUT", "{error}");
        says(&error, &["ran longer than 1 s"]);
        let details = &error["details"];
        assert_eq!((&details["stdout"], &details["stderr"]), (&json!("on\n"), &json!("")), "{error}");
        assert!(details["duration"].as_u64() >= Some(1000), "{error}");
        assert!(details["sandbox"].is_string(), "{error}");
    });
}

#[test]
fn blt_2_heavy_a_flood_of_output_is_drained_counted_and_cut() {
    let bytes = if long() { 1024 * MIB } else { 64 * MIB };
    let code = format!("yes | head -c {bytes}; yes | head -c {} >&2; echo the end >&2", bytes / 2);
    Site::each("code: { cpuSeconds: 600 }\n", |site| {
        let pid = site.server().pid();
        let before = process::resident_kib(pid);
        let result = site.code("bash", &code);
        assert_eq!((&result["exitCode"], &result["truncated"]), (&json!(0), &json!(true)));
        assert_eq!((&result["stdoutBytes"], &result["stderrBytes"]), (&json!(bytes), &json!(bytes / 2 + 8)));
        for output in ["stdout", "stderr"] {
            assert_eq!(result[output].as_str().map(str::len), Some(1 << 20), "{output}");
        }
        let grown = process::resident_kib(pid).saturating_sub(before);
        assert!(grown < 48 * 1024, "Gantry took {grown} KiB");
        site.has_files(&[]);
    });
}

#[test]
fn blt_2_a_flood_that_never_ends_ends_with_its_time() {
    Site::each("", |site| {
        let error = site.error("bash", "yes", &json!({ "timeout": 1 }));
        assert_eq!(error["code"], "TIMEOUT");
        assert_eq!(error["details"]["stdout"].as_str().map(str::len), Some(1 << 20));
    });
}

#[test]
fn blt_2_output_that_is_no_text_is_replaced_and_control_characters_do_not_reach_a_terminal() {
    Site::each("", |site| {
        let code = r"import sys; sys.stdout.buffer.write(b'a\xff\xfe\xc3(\x00\x07\x1b[31mred\x1b]0;title\x07 \xf0\x9f\x92\xa9 \xed\xa0\x80 end')";
        let result = site.code("python", code);
        let text = result["stdout"].as_str().expect("a text");
        assert!(text.starts_with("a\u{fffd}\u{fffd}\u{fffd}(\0\u{7}\u{1b}[31mred"), "{text:?}");
        assert!(text.contains('💩') && text.ends_with("end"), "{text:?}");
        let arguments = json!({ "language": "python", "code": code }).to_string();
        let shown = site.home.run(["call", "run_code", &arguments]);
        assert_eq!(shown.code, 0, "{shown:?}");
        let unusual = |c: char| c.is_control() && c != '\n';
        assert!(!shown.stdout.contains(unusual) && !shown.stderr.contains(unusual), "{shown:?}");
    });
}

/// The space that the workspace takes on the disk.
fn taken(site: &Site) -> u64 {
    let blocks = |path: &String| site.inside(path).symlink_metadata().map_or(0, |file| file.blocks() * 512);
    site.files().iter().map(blocks).sum()
}

#[test]
fn blt_2_heavy_what_is_written_to_disk_is_limited_for_all_files_and_processes_together() {
    const LIMIT: u64 = 16;
    let many_files = "
for n in range(4096):
    with open(f'fill-{n}', 'wb') as file:
        file.write(b'x' * (1 << 20))
";
    let many_processes = "for i in $(seq 4096); do head -c 1M /dev/zero > fill-$i; done";
    let one_file = "
with open('fill', 'wb') as file:
    while True:
        file.write(b'x' * (1 << 20))
";
    let over_and_over = "
while True:
    with open('fill', 'wb') as file:
        file.write(b'x' * (1 << 20))
";
    let reserved = "
import os
for n in range(4096):
    fd = os.open(f'fill-{n}', os.O_CREAT | os.O_WRONLY)
    os.posix_fallocate(fd, 0, 1 << 20)
    os.close(fd)
";
    Site::each(&format!("code: {{ diskMb: {LIMIT} }}\n"), |site| {
        for (language, code) in [
            ("python", many_files),
            ("bash", many_processes),
            ("python", one_file),
            ("python", over_and_over),
            ("python", reserved),
        ] {
            let reply = site.reply(language, code, &json!({ "timeout": 40 }));
            if reply["ok"] == true {
                // A single file that gets too large, or a way to reserve space that is not there, fails in the program.
                assert_ne!(reply["result"]["exitCode"], 0, "{code}: {reply}");
            } else {
                assert_eq!(reply["error"]["code"], "EXECUTION_ERROR", "{code}: {reply}");
                says(&reply["error"], &[&format!("more than {LIMIT} MiB to disk"), "code.diskMb"]);
            }
            let taken = taken(site) / MIB;
            assert!(taken < 8 * LIMIT, "{code}: {taken} MiB were written under a limit of {LIMIT}");
            site.nothing_runs();
            for path in site.files() {
                std::fs::remove_file(site.inside(&path)).expect("the file");
            }
        }
        assert_eq!(
            site.code("bash", "head -c 8M /dev/zero > within")["exitCode"],
            0,
            "the limit is for one run"
        );
    });
}

#[test]
fn blt_2_code_of_50_mebibytes_is_refused_before_it_is_read() {
    let site = Site::one("");
    let arguments = json!({ "language": "bash", "code": "#".repeat(50 << 20) });
    let answer = site.server().call("run_code", &arguments);
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (413, &json!("INVALID_ARGUMENTS")));
    eventually("it answers on", || site.server().get("/healthz").status == 200);
    site.settled();
}

#[test]
fn blt_2_heavy_many_calls_of_every_kind_leave_nothing_behind() {
    // What one run leaves may be too little to see.
    let rounds = if long() { 25 } else { 4 };
    Site::each("code: { memoryMb: 64, processes: 16, diskMb: 4, cpuSeconds: 1 }\n", |site| {
        let pid = site.server().pid();
        let attacks = [
            ("bash", "bomb() { bomb | bomb & }; bomb; while :; do :; done", "TIMEOUT"),
            ("python", "held = []\nwhile True: held.append(bytearray(4 << 20))", "EXECUTION_ERROR"),
            ("bash", "for i in $(seq 64); do head -c 1M /dev/zero > fill; done", "EXECUTION_ERROR"),
            ("bash", "yes | head -c 4M", ""),
            ("bash", "for i in 1 2 3; do (setsid sleep 600 >/dev/null 2>&1 </dev/null &); done", ""),
            ("bash", "trap '' TERM INT HUP; (trap '' TERM; sleep 600) & sleep 600", "TIMEOUT"),
        ];
        let mut resident = 0;
        for round in 0..rounds {
            for (language, code, expected) in attacks {
                let reply = site.reply(language, code, &json!({ "timeout": 1 }));
                assert_eq!(reply["error"]["code"].as_str().unwrap_or_default(), expected, "{code}: {reply}");
                site.nothing_runs();
            }
            if round == 0 {
                resident = process::resident_kib(pid);
            }
        }
        let grown = process::resident_kib(pid).saturating_sub(resident);
        assert!(grown < 16 * 1024, "Gantry grew by {grown} KiB in {rounds} rounds");
        site.has_files(&["fill"]);
    });
}
