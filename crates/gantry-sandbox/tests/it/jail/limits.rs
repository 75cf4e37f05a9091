//! The limits of a job. A process that reaches one ends with everything it started.

use super::cell::Cell;
use super::yard::{WAYS, Yard};
use gantry_sandbox::jail::{Access, ExitReason, JobOutput};
use std::fs;
use std::time::Duration;

/// Starts daemons as daemons do it, which ignore every signal that can be ignored.
const DAEMONS: &str = "import os, signal, time\n\
    for n in range(20):\n\
    \x20   if os.fork() == 0:\n\
    \x20       os.setsid()\n\
    \x20       if os.fork(): os._exit(0)\n\
    \x20       for s in range(1, 65):\n\
    \x20           try: signal.signal(s, signal.SIG_IGN)\n\
    \x20           except OSError: pass\n\
    \x20       time.sleep(1000)\n\
    for n in range(20): os.wait()\n\
    print('ready', flush=True)\n";

#[track_caller]
pub(super) fn assert_end(ran: &JobOutput, end: ExitReason) {
    assert_eq!(ran.end, end, "{}\n{}", ran.stdout.text(), ran.stderr.text());
}

#[tokio::test]
async fn output_beyond_the_limit_is_counted_and_dropped() {
    let cell = Cell::new();
    let mut job = cell.shell("head -c 200000000 /dev/zero; head -c 100000 /dev/zero | tr '\\0' x >&2");
    job.limits.output = 1000;
    let ran = cell.run(job).await;
    assert_end(&ran, ExitReason::Exited(0));
    assert_eq!((ran.stdout.bytes, ran.stdout.total), (vec![0; 1000], 200_000_000));
    assert_eq!((ran.stderr.bytes.len(), ran.stderr.total), (1000, 100_000));
}

#[tokio::test]
async fn a_job_that_takes_too_long_is_ended_with_its_daemons() {
    let cell = Cell::new();
    let mut job = cell.python(&format!("{DAEMONS}time.sleep(1000)"));
    job.limits.wall = Duration::from_secs(2);
    let ran = cell.run(job).await;
    assert_end(&ran, ExitReason::WallLimit);
    assert_eq!(ran.stdout.text(), "ready\n");
    assert!(ran.duration >= Duration::from_secs(2));
}

#[tokio::test]
async fn a_job_that_ends_takes_its_daemons_along() {
    let cell = Cell::new();
    let ran = cell.run(cell.python(DAEMONS)).await;
    assert_end(&ran, ExitReason::Exited(0));
    assert_eq!(ran.stdout.text(), "ready\n");
}

#[tokio::test]
async fn a_job_that_spins_in_threads_and_processes_is_ended() {
    let cell = Cell::new();
    let mut job =
        cell.shell("for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; while :; do :; done");
    job.limits.wall = Duration::from_secs(1);
    assert_end(&cell.run(job).await, ExitReason::WallLimit);
}

#[tokio::test]
async fn a_fork_bomb_is_bounded() {
    let cell = Cell::new();
    let mut job = cell.python(
        "import os, time\n\
         n = 0\n\
         try:\n\
         \x20   while True:\n\
         \x20       if os.fork() == 0: time.sleep(1000)\n\
         \x20       n += 1\n\
         except OSError as e: print(n, e.errno)",
    );
    job.limits.processes = 40;
    let ran = cell.run(job).await;
    assert_end(&ran, ExitReason::Exited(0));
    assert_eq!(ran.stdout.text(), "39 11\n");

    let mut job = cell.job("bash", &["-c", ":(){ :|:& };: ; sleep 1000"]);
    job.limits.processes = 40;
    job.limits.wall = Duration::from_secs(2);
    let ran = cell.run(job).await;
    assert!(matches!(ran.end, ExitReason::WallLimit | ExitReason::Exited(_)), "{ran:?}");
}

#[tokio::test]
async fn two_jobs_have_their_own_processes_to_spend() {
    let cell = Cell::new();
    let job = || {
        let mut job = cell.shell("for i in 1 2 3 4 5 6 7 8; do sleep 1 & done; wait");
        job.limits.processes = 10;
        job
    };
    let workspace = cell.workspace();
    let (one, two) =
        tokio::join!(cell.sandbox.start(&workspace, job()), cell.sandbox.start(&workspace, job()));
    let (one, two) = tokio::join!(one.expect("it starts").end(), two.expect("it starts").end());
    assert_eq!([one.expect("it runs").end, two.expect("it runs").end], [ExitReason::Exited(0); 2]);
}

#[tokio::test]
async fn too_much_processor_time_is_the_end() {
    let cell = Cell::new();
    let ignoring = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass";
    for script in ["while True: pass", ignoring] {
        let mut job = cell.python(script);
        job.limits.cpu = Duration::from_secs(1);
        assert_end(&cell.run(job).await, ExitReason::CpuLimit);
    }
}

#[tokio::test]
async fn no_file_gets_larger_than_all_that_may_be_written() {
    let cell = Cell::new();
    let mut job = cell.python("open('big', 'wb').truncate(1 << 30)");
    job.limits.written = 1 << 20;
    let ran = cell.run(job).await;
    assert!(matches!(ran.end, ExitReason::WriteLimit | ExitReason::Exited(1)), "{ran:?}");
    let mut job = cell.shell("exec head -c 100000000 /dev/zero > big");
    job.limits.written = 1 << 20;
    assert_end(&cell.run(job).await, ExitReason::WriteLimit);
    assert_eq!(fs::metadata(cell.path().join("big")).expect("a file").len(), 1 << 20);
}

#[tokio::test]
async fn too_much_written_by_all_together_is_the_end() {
    let cell = Cell::new();
    let mut job = cell.shell("i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero > f$i; done");
    job.limits.written = 20 << 20;
    let ran = cell.run(job).await;
    assert_end(&ran, ExitReason::WriteLimit);
    let files = fs::read_dir(cell.path()).expect("a folder");
    let written: u64 = files.map(|file| file.expect("a file").metadata().expect("its size").len()).sum();
    assert!(written < 200 << 20, "{written}");
}

#[tokio::test]
async fn what_detached_children_write_counts() {
    let cell = Cell::new();
    let mut job = cell.python(
        "import os, signal, time\n\
         signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n\
         for n in range(1000):\n\
         \x20   if os.fork() == 0:\n\
         \x20       open('f%d' % n, 'wb').write(b'x' * 1000000)\n\
         \x20       time.sleep(0.1); os._exit(0)\n\
         \x20   time.sleep(0.05)",
    );
    job.limits.written = 10 << 20;
    assert_end(&cell.run(job).await, ExitReason::WriteLimit);
}

#[tokio::test]
async fn what_orphans_write_that_end_at_once_counts() {
    let cell = Cell::new();
    let mut job = cell.python(
        "import os, time\n\
         for n in range(40):\n\
         \x20   if os.fork() == 0:\n\
         \x20       if os.fork() == 0:\n\
         \x20           open('f%d' % n, 'wb').write(b'x' * 1000000)\n\
         \x20       os._exit(0)\n\
         \x20   os.wait()\n\
         time.sleep(1000)",
    );
    job.limits.written = 20 << 20;
    assert_end(&cell.run(job).await, ExitReason::WriteLimit);
}

#[tokio::test]
async fn space_cannot_be_taken_without_writing() {
    let cell = Cell::new();
    let script = "import ctypes, os\n\
        c = ctypes.CDLL(None, use_errno=True)\n\
        f = os.open('x', os.O_RDWR | os.O_CREAT)\n\
        off = ctypes.c_long\n\
        print([(c.fallocate(f, m, off(0), off(4096)), ctypes.get_errno()) for m in (0, 1, 16)])\n\
        print(c.fallocate(f, 3, off(0), off(4096)))\n\
        os.posix_fallocate(f, 0, 4096)\n\
        print(os.stat('x').st_size)";
    assert_eq!(cell.output(cell.python(script)).await, "[(-1, 95), (-1, 95), (-1, 95)]\n0\n4096\n");
}

#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn space_cannot_be_taken_by_requests_to_the_file_system() {
    let cell = Cell::new();
    // FS_IOC_RESVSP, FS_IOC_RESVSP64, BTRFS_IOC_SUBVOL_CREATE; then FICLONE, with a descriptor that is none.
    let script = "import ctypes, os, struct\n\
        c = ctypes.CDLL(None, use_errno=True)\n\
        f = os.open('x', os.O_RDWR | os.O_CREAT)\n\
        room = struct.pack('hhiqqiI4i', 0, 0, 0, 0, 1 << 30, 0, 0, 0, 0, 0, 0)\n\
        for request in (0x40305828, 0x4030582a, 0x5000940e, 0x40305828 | 1 << 32):\n\
        \x20   print(c.syscall(16, f, ctypes.c_ulong(request), room), ctypes.get_errno())\n\
        print(os.fstat(f).st_blocks)\n\
        print(c.syscall(16, f, ctypes.c_ulong(0x40049409), -1), ctypes.get_errno())";
    assert_eq!(cell.output(cell.python(script)).await, "-1 25\n-1 25\n-1 25\n-1 25\n0\n-1 9\n");
}

/// A workspace on a file system in memory.
fn cell_in_memory() -> Cell {
    let mut cell = Cell::new();
    cell.folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
    if rustix::process::geteuid().is_root() {
        // Not every kernel can show root's files there as another user's.
        std::os::unix::fs::chown(cell.path(), Some(54321), Some(54321)).expect("root may");
    }
    cell
}

#[tokio::test]
async fn a_job_that_only_reads_is_not_charged_for_what_others_write() {
    let cell = cell_in_memory();
    let mut job = cell.shell("until [ -e written ]; do sleep 0.01; done; sleep 0.2");
    job.access = Access::Read;
    job.limits.written = 5 << 20;
    let running = cell.start(job).await;
    fs::write(cell.path().join("written"), vec![0; 20 << 20]).expect("a file");
    assert_end(&running.end().await.expect("it runs"), ExitReason::Exited(0));
}

#[tokio::test]
async fn what_is_written_to_a_workspace_in_memory_counts() {
    let cell = cell_in_memory();
    let script = "for n in 1 2 3 4 5 6 7 8; do head -c 10000000 /dev/zero > f$n; done; sleep 1000";
    let mut job = cell.shell(script);
    job.limits.written = 20 << 20;
    assert_end(&cell.run(job).await, ExitReason::WriteLimit);
    for n in 1..=8 {
        fs::remove_file(cell.path().join(format!("f{n}"))).ok();
    }
    let mut job = cell.shell(script);
    job.limits.memory = 50 << 20;
    assert_end(&cell.run(job).await, ExitReason::MemoryLimit);
}

#[test]
fn who_hides_from_a_look_is_limited_all_the_same() {
    let write = "for n in range(8):\n    with open('f%d' % n, 'wb') as f: f.write(b'x' * 10000000)\n";
    for way in WAYS {
        let yard = Yard::new(way, &[]).limit("written", 20);
        let script = format!(
            "import ctypes, time\nassert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0\n{write}time.sleep(1000)\n"
        );
        fs::write(yard.at("hide.py"), script).expect("a file");
        yard.open_up();
        let ran = yard.run("exec python3 hide.py");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(said.contains("WriteLimit"), "{way:?}: {said}");
    }
}

#[test]
fn a_program_that_cannot_be_read_is_not_run_unwatched() {
    for way in WAYS {
        let yard = Yard::new(way, &[]).limit("written", 20);
        let script = "cp /usr/bin/dd mine; chmod 111 mine; for n in 1 2 3 4 5 6 7 8; do ./mine if=/dev/zero of=f$n bs=1M \
                      count=10; done; ./mine if=/dev/zero of=/dev/null";
        let ran = yard.run(script);
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(said.contains("WriteLimit") || said.contains("cannot be looked at"), "{way:?}: {said}");
    }
}

#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn a_process_whose_first_thread_has_ended_is_seen() {
    let cell = Cell::new();
    let write = "[open('f%d' % n, 'wb').write(b'x' * 10000000) for n in range(8)]";
    for (what, end) in [("bytearray(1 << 30)", ExitReason::MemoryLimit), (write, ExitReason::WriteLimit)] {
        let mut job = cell.python(&format!(
            "import ctypes, threading, time\n\
             def work():\n\
             \x20   time.sleep(0.2)\n\
             \x20   kept = {what}\n\
             \x20   time.sleep(1000)\n\
             threading.Thread(target=work).start()\n\
             ctypes.CDLL(None).syscall(60, 0)"
        ));
        job.limits.memory = 128 << 20;
        job.limits.written = 20 << 20;
        assert_end(&cell.run(job).await, end);
    }
}

#[tokio::test]
async fn a_signal_that_a_job_sends_itself_is_no_limit() {
    let cell = Cell::new();
    for (name, number) in [("XCPU", 24), ("XFSZ", 25), ("KILL", 9)] {
        assert_end(&cell.run(cell.shell(&format!("kill -{name} $$"))).await, ExitReason::Signalled(number));
    }
}

#[tokio::test]
async fn descriptors_are_bounded() {
    let cell = Cell::new();
    let script = "import os\nn = 0\n\
        try:\n\
        \x20   while True: os.dup(0); n += 1\n\
        except OSError as e: print(n, e.errno)";
    assert_eq!(cell.output(cell.python(script)).await, "1021 24\n");
}

#[tokio::test]
async fn no_limit_can_be_lifted_and_none_of_the_first_process_changed() {
    let cell = Cell::new();
    let script = "import ctypes, os, resource as r\n\
        def no(f, *a):\n\
        \x20   try: f(*a)\n\
        \x20   except (OSError, ValueError): return\n\
        \x20   print('allowed', f, a)\n\
        for l in (r.RLIMIT_CPU, r.RLIMIT_NPROC, r.RLIMIT_NOFILE, r.RLIMIT_FSIZE):\n\
        \x20   no(r.setrlimit, l, (1 << 40, 1 << 40))\n\
        \x20   no(r.prlimit, 1, l, (1, 1))\n\
        no(os.sched_setaffinity, 1, [0])\n\
        no(os.sched_setscheduler, 1, os.SCHED_IDLE, os.sched_param(0))\n\
        no(os.setpriority, os.PRIO_PROCESS, 1, 19)\n\
        no(os.setpriority, os.PRIO_PGRP, 1, 19)\n\
        for s in range(1, 65): no(os.kill, 1, s)\n\
        print('done')";
    assert_eq!(cell.output(cell.python(script)).await, "done\n");
}
