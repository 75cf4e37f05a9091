//! What a job cannot get at: the machine's files, processes, sockets and powers.

use super::cell::Cell;
use gantry_sandbox::jail::ExitReason;
use std::fs;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

#[tokio::test]
async fn a_job_has_three_descriptors() {
    let cell = Cell::new();
    let script = "import os\nprint(sorted(int(n) for n in os.listdir('/proc/self/fd')))\n\
        for n in range(4, 2000):\n\
        \x20   try: os.fstat(n); print('open', n)\n\
        \x20   except OSError: pass";
    // The fourth is the folder that is listed.
    assert_eq!(cell.output(cell.python(script)).await, "[0, 1, 2, 3]\n");
}

#[tokio::test]
async fn the_files_of_the_machine_are_not_there() {
    let cell = Cell::new();
    let secret = tempfile::tempdir().expect("a folder");
    fs::write(secret.path().join("secret"), "x").expect("a file");
    let paths = [
        secret.path().join("secret").display().to_string(),
        cell.path().display().to_string(),
        env!("CARGO_MANIFEST_DIR").to_owned(),
        "/etc/shadow".into(),
        "/etc/ssh".into(),
        "/root/.ssh".into(),
        "/root/.bashrc".into(),
        "/sys/kernel".into(),
        "/dev/tty".into(),
        "/dev/ptmx".into(),
        "/dev/kmsg".into(),
        "/var/run/docker.sock".into(),
        "/run/docker.sock".into(),
        "/proc/1/environ".into(),
        "/proc/1/root".into(),
        "/boot".into(),
    ];
    for path in paths {
        let ran = cell.run(cell.job("stat", &[&path])).await;
        assert_eq!(ran.end, ExitReason::Exited(1), "{path}: {}", ran.stdout.text());
        assert!(ran.stderr.text().contains("No such file"), "{path}: {}", ran.stderr.text());
    }
}

#[tokio::test]
async fn nothing_but_its_own_folders_can_be_written() {
    let cell = Cell::new();
    let script = "for d in / /usr /usr/bin /etc /dev /run /run/gantry /proc /proc/sys/kernel /home; do \
        if touch $d/x 2>/dev/null; then echo $d; fi; done; \
        for d in /workspace /tmp /dev/shm /home/gantry; do touch $d/x || echo $d; done; \
        echo x > /dev/null; mount 2>/dev/null | grep -c . || true";
    let text = cell.output(cell.shell(script)).await;
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[tokio::test]
async fn a_job_sees_only_its_own_processes() {
    let cell = Cell::new();
    let other = cell.start(cell.job("sleep", &["1000"])).await;
    let text = cell
        .run_beside(
            cell.python("import os; print([n for n in os.listdir('/proc') if n.isdigit()], os.getpid())"),
        )
        .await;
    assert_eq!(text, "['2'] 2\n");
    drop(other);
    cell.world.is_empty().await;
}

/// Calls and their numbers on x86-64, as the attacks below have them.
#[rustfmt::skip]
const POWERS: &[(u16, &str)] = &[
    (165, "mount"), (166, "umount2"), (155, "pivot_root"), (161, "chroot"), (272, "unshare"),
    (308, "setns"), (101, "ptrace"), (310, "process_vm_readv"), (311, "process_vm_writev"),
    (440, "process_madvise"), (312, "kcmp"), (438, "pidfd_getfd"), (425, "io_uring_setup"),
    (426, "io_uring_enter"), (427, "io_uring_register"), (321, "bpf"), (250, "keyctl"), (248, "add_key"),
    (249, "request_key"), (323, "userfaultfd"), (298, "perf_event_open"), (304, "open_by_handle_at"),
    (303, "name_to_handle_at"), (246, "kexec_load"), (320, "kexec_file_load"), (175, "init_module"),
    (313, "finit_module"), (176, "delete_module"), (169, "reboot"), (167, "swapon"), (168, "swapoff"),
    (164, "settimeofday"), (227, "clock_settime"), (159, "adjtimex"), (305, "clock_adjtime"), (163, "acct"),
    (179, "quotactl"), (103, "syslog"), (300, "fanotify_init"), (153, "vhangup"), (172, "iopl"),
    (173, "ioperm"), (428, "open_tree"), (429, "move_mount"), (430, "fsopen"), (431, "fsconfig"),
    (432, "fsmount"), (433, "fspick"), (442, "mount_setattr"), (447, "memfd_secret"), (170, "sethostname"),
    (29, "shmget"), (278, "vmsplice"),
];

#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn powers_of_the_machine_are_refused() {
    let cell = Cell::new();
    let names: Vec<String> = POWERS.iter().map(|(number, name)| format!("({number}, '{name}')")).collect();
    let script = format!(
        "import ctypes\n\
         c = ctypes.CDLL(None, use_errno=True)\n\
         for number, name in [{}]:\n\
         \x20   r = c.syscall(number, 0, 0, 0, 0, 0, 0)\n\
         \x20   if (r, ctypes.get_errno()) != (-1, 1): print(name, r, ctypes.get_errno())\n\
         for number, name in [(435, 'clone3'), (437, 'openat2'), (319, 'memfd_create'), (206, 'io_setup'), \
         (444, 'landlock_create_ruleset'), (445, 'landlock_add_rule'), (39 | 0x40000000, 'x32 getpid')]:\n\
         \x20   r = c.syscall(number, 0, 0, 0, 0, 0, 0)\n\
         \x20   if (r, ctypes.get_errno()) != (-1, 38): print(name, r, ctypes.get_errno())\n\
         for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):\n\
         \x20   r = c.syscall(56, flag | 17, 0, 0, 0, 0)\n\
         \x20   if (r, ctypes.get_errno()) != (-1, 1): print('clone', hex(flag), r, ctypes.get_errno())\n\
         for request in (0x5412, 0x541c, 0x5423, 0x5412 | 1 << 40):\n\
         \x20   r = c.syscall(16, 0, ctypes.c_ulong(request), 0)\n\
         \x20   if (r, ctypes.get_errno()) != (-1, 1): print('ioctl', hex(request), r, ctypes.get_errno())\n\
         for family in (16, 17, 15, 38, 40, 31, 44):\n\
         \x20   r = c.socket(family, 3, 0)\n\
         \x20   if (r, ctypes.get_errno()) != (-1, 1): print('socket', family, r, ctypes.get_errno())\n\
         r = c.personality(0x40000)\n\
         if (r, ctypes.get_errno()) != (-1, 1): print('personality', r, ctypes.get_errno())\n\
         print('done')",
        names.join(", ")
    );
    assert_eq!(cell.output(cell.python(&script)).await, "done\n");
}

#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn programs_of_another_kind_of_machine_are_ended() {
    let cell = Cell::new();
    // mov eax, 20; int 0x80; ret: the number of the process, as 32-bit programs ask for it.
    let script = "import ctypes, mmap\n\
        m = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)\n\
        m.write(b'\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3')\n\
        print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))())";
    let ran = cell.run(cell.python(script)).await;
    assert_eq!(ran.end, ExitReason::Signalled(31), "{ran:?}");
}

#[tokio::test]
async fn no_file_is_made_that_lends_its_owners_rights() {
    let cell = Cell::new();
    let script = "import ctypes, os\n\
        def no(f, *a, **k):\n\
        \x20   try: f(*a, **k)\n\
        \x20   except PermissionError: return\n\
        \x20   print('allowed', f, a)\n\
        open('f', 'w').close(); os.mkdir('d')\n\
        fd = os.open('f', os.O_RDONLY)\n\
        for bits in (0o4755, 0o2755, 0o6755):\n\
        \x20   no(os.chmod, 'f', bits); no(os.fchmod, fd, bits); no(os.chmod, 'f', bits, dir_fd=os.open('.', os.O_RDONLY))\n\
        \x20   no(os.open, 'g', os.O_CREAT | os.O_WRONLY, bits); no(os.mknod, 'h', bits | 0o100000)\n\
        \x20   no(os.open, '.', os.O_TMPFILE | os.O_WRONLY, bits)\n\
        \x20   r = ctypes.CDLL(None, use_errno=True).syscall(85, b'i', bits)\n\
        \x20   if r >= 0: print('creat')\n\
        \x20   r = ctypes.CDLL(None, use_errno=True).syscall(452, -100, b'f', bits, 0)\n\
        \x20   if r >= 0: print('fchmodat2')\n\
        os.chmod('f', 0o1777); os.open('g', os.O_CREAT | os.O_WRONLY, 0o755); os.mkdir('e', 0o2755)\n\
        print([oct(os.stat(n).st_mode & 0o6000) for n in ('f', 'g')])";
    assert_eq!(cell.output(cell.python(script)).await, "['0o0', '0o0']\n");
}

#[tokio::test]
async fn nothing_gains_rights() {
    let cell = Cell::new();
    let text = cell
        .output(cell.shell("grep -E '^(Cap|NoNewPrivs|Seccomp:|Uid|Gid|Groups)' /proc/self/status"))
        .await;
    let none = "0000000000000000";
    for line in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(text.contains(&format!("{line}:\t{none}")), "{text}");
    }
    assert!(text.contains("NoNewPrivs:\t1") && text.contains("Seccomp:\t2"), "{text}");
    assert!(
        text.contains("Uid:\t1000\t1000\t1000\t1000") && text.contains("Gid:\t1000\t1000\t1000\t1000"),
        "{text}"
    );
    let refused = "import os\n\
        for f, a in ((os.setuid, 0), (os.setgid, 0), (os.setgroups, [0]), (os.seteuid, 0)):\n\
        \x20   try: f(a); print('allowed', f)\n\
        \x20   except OSError: pass";
    assert_eq!(cell.output(cell.python(refused)).await, "");
}

#[tokio::test]
async fn sockets_of_the_machine_cannot_be_reached() {
    let cell = Cell::new();
    let name = cell.world.mark.clone();
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = tcp.local_addr().expect("its address").port();
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let abstract_socket = UnixListener::bind_addr(&address).expect("a socket");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let named_socket = UnixListener::bind(&path).expect("a socket");
    let script = format!(
        "import socket\n\
         def no(family, kind, address):\n\
         \x20   s = socket.socket(family, kind); s.settimeout(5)\n\
         \x20   try: s.connect(address); s.send(b'x')\n\
         \x20   except OSError as e: return\n\
         \x20   print('reached', address)\n\
         I, U, T, D = socket.AF_INET, socket.AF_UNIX, socket.SOCK_STREAM, socket.SOCK_DGRAM\n\
         for host in ('127.0.0.1', '1.1.1.1', '169.254.169.254', '10.0.0.1'): no(I, T, (host, {port}))\n\
         for host in ('1.1.1.1', '169.254.169.254', '255.255.255.255'): no(I, D, (host, 53))\n\
         no(socket.AF_INET6, T, ('::1', {port})); no(socket.AF_INET6, D, ('2606:4700:4700::1111', 53))\n\
         no(U, T, '\\0{name}'); no(U, T, '{}')\n\
         print('done')",
        path.display()
    );
    for network in [false, true] {
        let mut job = cell.python(&script);
        job.network = network;
        assert_eq!(cell.output(job).await, "done\n");
    }
    drop((tcp, abstract_socket, named_socket));
}

#[tokio::test]
async fn a_server_of_the_job_can_be_reached_by_the_job() {
    let cell = Cell::new();
    let script = "import socket\n\
        assert open('/proc/sys/net/ipv4/tcp_rmem').read().split() == ['4096', '65536', '262144']\n\
        s = socket.create_server(('127.0.0.1', 0))\n\
        c = socket.create_connection(s.getsockname()); a, _ = s.accept(); a.send(b'hi'); print(c.recv(2).decode())";
    assert_eq!(cell.output(cell.python(script)).await, "hi\n");
}

#[tokio::test]
async fn jobs_at_the_same_time_are_apart() {
    let cell = Cell::new();
    let script = "import os, socket, time\n\
        open('/tmp/mine', 'x').close(); open('/dev/shm/mine', 'x').close(); open('/home/gantry/mine', 'x').close()\n\
        s = socket.create_server(('127.0.0.1', 4000))\n\
        u = socket.socket(socket.AF_UNIX); u.bind('\\0mine'); u.listen()\n\
        print([n for n in os.listdir('/proc') if n.isdigit()], flush=True)\n\
        open('here-%s' % os.environ['WHO'], 'x').close()\n\
        while len([n for n in os.listdir('.') if n.startswith('here')]) < 2: time.sleep(0.01)";
    let job = |who: &str| {
        let mut job = cell.python(script);
        job.env.push(("WHO".into(), who.into()));
        job
    };
    let workspace = cell.workspace();
    let (one, two) =
        tokio::join!(cell.sandbox.start(&workspace, job("a")), cell.sandbox.start(&workspace, job("b")));
    let (one, two) = tokio::join!(one.expect("it starts").end(), two.expect("it starts").end());
    for ran in [one.expect("it runs"), two.expect("it runs")] {
        assert_eq!(
            (ran.end, ran.stdout.text().as_str()),
            (ExitReason::Exited(0), "['2']\n"),
            "{}",
            ran.stderr.text()
        );
    }
}
