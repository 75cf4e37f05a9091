//! What counts as memory of a job, and what happens when it is too much.

use super::cell::Cell;
use super::limits::assert_end;
use super::yard::{WAYS, Yard};
use gantry_sandbox::jail::ExitReason;
use std::fs;

#[tokio::test]
async fn too_much_memory_in_one_process_is_the_end() {
    let cell = Cell::new();
    let mut job = cell.python("b = bytearray(1 << 30)\nprint('survived')");
    job.limits.memory = 128 << 20;
    let ran = cell.run(job).await;
    assert_end(&ran, ExitReason::MemoryLimit);
    assert_eq!(ran.stdout.text(), "");
}

#[tokio::test]
async fn too_much_memory_in_many_processes_is_the_end() {
    let cell = Cell::new();
    let mut job = cell.python(
        "import os, time\n\
         for n in range(8):\n\
         \x20   if os.fork() == 0:\n\
         \x20       b = bytearray(60 << 20)\n\
         \x20       time.sleep(1000)\n\
         time.sleep(1000)",
    );
    job.limits.memory = 256 << 20;
    assert_end(&cell.run(job).await, ExitReason::MemoryLimit);
}

#[tokio::test]
async fn a_process_that_hides_is_seen_all_the_same() {
    let cell = Cell::new();
    let mut job = cell.python(
        "import ctypes, os, time\n\
         ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n\
         if os.fork() == 0: time.sleep(1000)\n\
         b = bytearray(1 << 30)\nprint('survived')",
    );
    job.limits.memory = 128 << 20;
    assert_end(&cell.run(job).await, ExitReason::MemoryLimit);
}

/// Processes that hand on what they have to a copy, get more of it there, and end: that many of them, up to that many MiB.
/// Others, that have to be looked at first, sleep, or start ever more that end at once.
const HANDED_ON: &str = "import mmap, os, sys, time\n\
    sleepers, chains, most, busy = map(int, sys.argv[1:])\n\
    def again():\n\
    \x20   while True:\n\
    \x20       try: return os.fork()\n\
    \x20       except OSError: pass\n\
    for n in range(sleepers):\n\
    \x20   if os.fork() == 0: time.sleep(1000)\n\
    for n in range(busy):\n\
    \x20   if os.fork() == 0:\n\
    \x20       while True:\n\
    \x20           if again() == 0: os._exit(0)\n\
    \x20           os.wait()\n\
    for n in range(chains):\n\
    \x20   if os.fork(): continue\n\
    \x20   b = mmap.mmap(-1, most << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n\
    \x20   have = links = 0\n\
    \x20   while True:\n\
    \x20       if have < most: b[have << 20:have + 2 << 20] = b'x' * (2 << 20); have += 2\n\
    \x20       else: links += 1\n\
    \x20       if links == 100: open('done%d' % n, 'x').close()\n\
    \x20       if again(): os._exit(0)\n\
    while not all(os.path.exists('done%d' % n) for n in range(chains)): time.sleep(0.02)\n\
    print('survived')\n";

#[test]
fn memory_that_processes_hand_on_counts() {
    // One that has too much, two that have it together, and the same in a crowd that comes and goes.
    for words in ["50 1 400 0", "50 2 100 0", "20 2 100 6"] {
        for way in WAYS {
            let yard = Yard::new(way, &[]).limit("memory", 160);
            fs::write(yard.at("chain.py"), HANDED_ON).expect("a file");
            let ran = yard.run(&format!("exec python3 chain.py {words}"));
            let said = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert!(said.contains("MemoryLimit"), "{way:?} {words}: {said}");
        }
    }
}

#[test]
fn processes_that_come_and_go_are_left_alone() {
    for way in WAYS {
        let yard = Yard::new(way, &[]).limit("memory", 160);
        fs::write(yard.at("chain.py"), HANDED_ON).expect("a file");
        // What is handed on is less than the limit, and counts once.
        assert_eq!(yard.output("exec python3 chain.py 10 1 60 6"), "survived\n", "{way:?}");
        let script = "for p in 1 2 3 4; do (n=0; while [ $n -lt 300 ]; do /bin/true; n=$((n+1)); done; echo done) & done; wait";
        assert_eq!(yard.output(script), "done\ndone\ndone\ndone\n", "{way:?}");
    }
}

#[tokio::test]
async fn memory_that_processes_share_counts_once() {
    let cell = Cell::new();
    let mut job = cell.python(
        "import os, time\n\
         b = bytearray(100 << 20)\n\
         for n in range(8):\n\
         \x20   if os.fork() == 0: time.sleep(1); os._exit(0)\n\
         for n in range(8): os.wait()",
    );
    job.limits.memory = 256 << 20;
    assert_end(&cell.run(job).await, ExitReason::Exited(0));
}

#[tokio::test]
async fn memory_that_belongs_to_no_process_counts_or_cannot_be_had() {
    let cell = Cell::new();
    let mut job = cell.python("import os\ntry: os.memfd_create('x')\nexcept OSError as e: print(e.errno)");
    job.limits.memory = 64 << 20;
    assert_eq!(cell.output(job).await, "38\n");

    for path in ["/tmp/x", "/home/gantry/x"] {
        let mut job = cell.shell(&format!("head -c 60000000 /dev/zero > {path}; sleep 1000"));
        job.limits.memory = 50 << 20;
        assert_end(&cell.run(job).await, ExitReason::MemoryLimit);
    }

    let script = "import ctypes\n\
        c = ctypes.CDLL(None, use_errno=True)\n\
        print(c.msgget(0, 0o1600), ctypes.get_errno(), c.semget(0, 1, 0o1600), ctypes.get_errno())\n\
        print(c.shmget(0, 4096, 0o1600), ctypes.get_errno())";
    assert_eq!(cell.output(cell.python(script)).await, "-1 1 -1 1\n-1 1\n");
}

#[tokio::test]
async fn memory_that_outlives_its_mapping_cannot_be_had() {
    let cell = Cell::new();
    let script = "import mmap, os\n\
        def no(f):\n\
        \x20   try: f(); print('mapped')\n\
        \x20   except OSError as e: print(e.errno)\n\
        no(lambda: mmap.mmap(-1, 4096))\n\
        zero = os.open('/dev/zero', os.O_RDWR)\n\
        no(lambda: mmap.mmap(zero, 4096, flags=mmap.MAP_SHARED))\n\
        print(os.read(zero, 3), len(mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)))";
    assert_eq!(cell.output(cell.python(script)).await, "1\n19\nb'\\x00\\x00\\x00' 4096\n");
}

#[tokio::test]
async fn pages_of_files_do_not_count_however_often_they_are_mapped() {
    let cell = Cell::new();
    let mut job = cell.python(
        "import mmap, os, time\n\
         with open('f', 'wb') as f: f.write(b'x' * (60 << 20))\n\
         f = os.open('f', os.O_RDONLY)\n\
         maps = [mmap.mmap(f, 0, prot=mmap.PROT_READ) for _ in range(4)]\n\
         for m in maps:\n\
         \x20   for n in range(0, 60 << 20, 4096): m[n]\n\
         del m\n\
         time.sleep(0.2)\n\
         print('done')",
    );
    job.limits.memory = 100 << 20;
    assert_eq!(cell.output(job).await, "done\n");
}

#[tokio::test]
async fn processes_that_work_together_still_can() {
    let cell = Cell::new();
    fs::write(
        cell.path().join("together.py"),
        "import multiprocessing as mp\n\
         from multiprocessing import shared_memory\n\
         def add(value, queue, name):\n\
         \x20   with value.get_lock(): value.value += 1\n\
         \x20   memory = shared_memory.SharedMemory(name); queue.put(bytes(memory.buf[:2]))\n\
         def square(n): return n * n\n\
         if __name__ == '__main__':\n\
         \x20   memory = shared_memory.SharedMemory(create=True, size=4096); memory.buf[:2] = b'hi'\n\
         \x20   value, queue = mp.Value('i', 0), mp.Queue()\n\
         \x20   jobs = [mp.Process(target=add, args=(value, queue, memory.name)) for _ in range(3)]\n\
         \x20   for job in jobs: job.start()\n\
         \x20   found = [queue.get() for _ in jobs]\n\
         \x20   for job in jobs: job.join()\n\
         \x20   memory.unlink()\n\
         \x20   with mp.Pool(2) as pool: print(value.value, found[0], pool.map(square, range(4)))\n",
    )
    .expect("a file");
    let job = cell.job("/usr/bin/python3", &["together.py"]);
    assert_eq!(cell.output(job).await, "3 b'hi' [0, 1, 4, 9]\n");
}

#[tokio::test]
async fn tables_of_pages_that_are_not_there_count() {
    let cell = Cell::new();
    let mut job = cell.python(
        "import mmap, time\n\
         m = mmap.mmap(-1, 60 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)\n\
         for n in range(0, 60 << 30, 2 << 20): m[n]\n\
         time.sleep(1000)",
    );
    job.limits.memory = 64 << 20;
    assert_end(&cell.run(job).await, ExitReason::MemoryLimit);
    let huge = "import mmap\nmmap.mmap(-1, 2 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)";
    assert!(cell.run(cell.python(huge)).await.stderr.text().contains("PermissionError"));
}

#[tokio::test]
async fn what_waits_in_sockets_counts() {
    let cell = Cell::new();
    let script = |pairs: u32| {
        format!(
            "import os, socket, time\n\
             for n in range(4):\n\
             \x20   if os.fork() == 0: break\n\
             kept = []\n\
             for n in range({pairs}):\n\
             \x20   kept += socket.socketpair()\n\
             \x20   kept[-1].setblocking(False)\n\
             \x20   try:\n\
             \x20       while True: kept[-1].send(b'x' * 65536)\n\
             \x20   except BlockingIOError: pass\n\
             time.sleep({pairs} / 10)"
        )
    };
    let mut job = cell.python(&script(500));
    job.limits.memory = 200 << 20;
    assert_end(&cell.run(job).await, ExitReason::MemoryLimit);
    let mut job = cell.python(&script(8));
    job.limits.memory = 200 << 20;
    assert_end(&cell.run(job).await, ExitReason::Exited(0));
}

#[tokio::test]
async fn files_in_memory_are_bounded() {
    let cell = Cell::new();
    let script = "for d in /tmp /dev/shm /home/gantry; do head -c 300000000 /dev/zero > $d/x || true; stat -c %s $d/x; rm $d/x; done";
    let mut job = cell.shell(script);
    job.limits.memory = 4 << 30;
    job.limits.written = 4 << 30;
    let sizes: Vec<u64> = cell.output(job).await.lines().map(|size| size.parse().expect("a size")).collect();
    assert_eq!(sizes, [256 << 20, 64 << 20, 64 << 20]);
}
