//! Code that tries to become more than it is: system calls of administrators and debuggers, set-user-id, capabilities.

use super::site::{Site, is_root};
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};

/// Makes system calls by number, each in a process of its own so that one that succeeds changes nothing for the others.
/// All that a call needs to succeed is right, as far as that is harmless.
const CALLS: &str = "
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
X86 = {
    'ptrace': 101, 'unshare': 272, 'mount': 165, 'umount2': 166, 'pivot_root': 155, 'chroot': 161, 'setns': 308, 'clone': 56,
    'clone3': 435, 'process_vm_readv': 310, 'process_vm_writev': 311, 'io_uring_setup': 425, 'io_uring_enter': 426,
    'io_uring_register': 427, 'bpf': 321, 'keyctl': 250, 'add_key': 248, 'request_key': 249, 'userfaultfd': 323,
    'perf_event_open': 298, 'open_by_handle_at': 304, 'name_to_handle_at': 303, 'kexec_load': 246, 'init_module': 175,
    'finit_module': 313, 'delete_module': 176, 'reboot': 169, 'swapon': 167, 'swapoff': 168, 'settimeofday': 164,
    'clock_settime': 227, 'acct': 163, 'quotactl': 179, 'syslog': 103, 'fanotify_init': 300, 'open_tree': 428, 'move_mount': 429,
    'fsopen': 430, 'fsconfig': 431, 'fsmount': 432, 'fspick': 433, 'mount_setattr': 442, 'pidfd_getfd': 438, 'kcmp': 312,
    'personality': 135, 'memfd_secret': 447, 'vhangup': 153, 'sethostname': 170, 'iopl': 172, 'ioperm': 173,
}
ARM = {
    'ptrace': 117, 'unshare': 97, 'mount': 40, 'umount2': 39, 'pivot_root': 41, 'chroot': 51, 'setns': 268, 'clone': 220,
    'clone3': 435, 'process_vm_readv': 270, 'process_vm_writev': 271, 'io_uring_setup': 425, 'io_uring_enter': 426,
    'io_uring_register': 427, 'bpf': 280, 'keyctl': 219, 'add_key': 217, 'request_key': 218, 'userfaultfd': 282,
    'perf_event_open': 241, 'open_by_handle_at': 265, 'name_to_handle_at': 264, 'kexec_load': 104, 'init_module': 105,
    'finit_module': 273, 'delete_module': 106, 'reboot': 142, 'swapon': 224, 'swapoff': 225, 'settimeofday': 170,
    'clock_settime': 112, 'acct': 89, 'quotactl': 60, 'syslog': 116, 'fanotify_init': 262, 'open_tree': 428, 'move_mount': 429,
    'fsopen': 430, 'fsconfig': 431, 'fsmount': 432, 'fspick': 433, 'mount_setattr': 442, 'pidfd_getfd': 438, 'kcmp': 272,
    'personality': 92, 'memfd_secret': 447, 'vhangup': 58, 'sethostname': 161,
}
numbers = X86 if os.uname().machine == 'x86_64' else ARM
NEW = {'user': 0x10000000, 'mount': 0x20000, 'pid': 0x20000000, 'net': 0x40000000, 'ipc': 0x08000000, 'uts': 0x04000000, 'cgroup': 0x02000000, 'time': 0x80}
space = ctypes.create_string_buffer(4096)
arguments = {
    'ptrace': (0, 0, 0, 0), 'mount': (b'none', b'/tmp', b'tmpfs', 0, None), 'umount2': (b'/tmp', 2), 'pivot_root': (b'/', b'/'),
    'chroot': (b'/tmp',), 'setns': (0, 0), 'clone3': (space, 88), 'io_uring_setup': (4, space), 'bpf': (0, space, 72),
    'keyctl': (0, -3, 0), 'add_key': (b'user', b'x', b'y', 1, -3), 'request_key': (b'user', b'x', None, 0), 'userfaultfd': (1,),
    'perf_event_open': (space, 0, -1, -1, 0), 'reboot': (0, 0, 0), 'fsopen': (b'tmpfs', 0), 'open_tree': (-100, b'/', 1),
    'personality': (0x0040000,), 'pidfd_getfd': (0, 0, 0), 'kcmp': (os.getpid(), os.getpid(), 0, 0, 1),
    'process_vm_readv': (os.getpid(), None, 0, None, 0, 0), 'process_vm_writev': (os.getpid(), None, 0, None, 0, 0),
    'syslog': (10, None, 0), 'fanotify_init': (0x200, 0), 'sethostname': (b'other', 5), 'name_to_handle_at': (-100, b'/', space, space, 0),
}
def attempt(number, *rest):
    words = [word if isinstance(word, (bytes, ctypes.Array)) or word is None else ctypes.c_long(word) for word in rest]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        ctypes.set_errno(0)
        came = libc.syscall(ctypes.c_long(number), *words)
        os.write(writing, str(ctypes.get_errno() if came < 0 else 'done').encode())
        os._exit(0)
    os.close(writing)
    told = os.read(reading, 99).decode()
    os.close(reading)
    os.waitpid(child, 0)
    return int(told) if told.isdigit() else told or 'killed'
found = {name: attempt(number, *arguments.get(name, (0, 0, 0, 0, 0))) for name, number in numbers.items() if name not in ('unshare', 'clone')}
for name, flag in NEW.items():
    found['unshare ' + name] = attempt(numbers['unshare'], flag)
    if name != 'time':
        found['clone ' + name] = attempt(numbers['clone'], flag | 17, 0, 0, 0, 0)
found['clone with more'] = attempt(numbers['clone'], (1 << 32) | NEW['user'] | 17, 0, 0, 0, 0)
if os.uname().machine == 'x86_64':
    found['x32 mount'] = attempt(0x40000000 | numbers['mount'], *arguments['mount'])
    found['x32 unshare'] = attempt(0x40000000 | numbers['unshare'], NEW['user'])
    found['x32 ptrace'] = attempt(0x40000000 | 521, 0, 0, 0, 0)
print(json.dumps(found))
";

#[test]
fn blt_2_system_calls_that_mount_trace_load_or_share_are_refused() {
    const EPERM: i64 = 1;
    const ENOSYS: i64 = 38;
    Site::each("", |site| {
        let found = site.python(CALLS, &[]);
        let refused = |errno: &Value| *errno == EPERM || *errno == ENOSYS;
        let let_in: Vec<_> =
            found.as_object().expect("an object").iter().filter(|(_, errno)| !refused(errno)).collect();
        assert!(let_in.is_empty(), "{let_in:?}");
        assert!(found.as_object().is_some_and(|found| found.len() > 60), "{found}");
        site.has_files(&[]);
    });
}

#[test]
fn blt_2_code_has_no_capabilities_no_way_to_gain_any_and_a_filter() {
    Site::each("", |site| {
        let result =
            site.code("bash", "grep -E '^(Cap|NoNewPrivs|Seccomp:|Uid|Gid|Groups)' /proc/self/status");
        let status = result["stdout"].as_str().expect("a text");
        let field = |name: &str| {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap_or_else(|| panic!("{name}: {status}"));
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        for name in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
            assert_eq!(field(name), "0000000000000000", "{name}");
        }
        assert_eq!((field("NoNewPrivs:").as_str(), field("Seccomp:").as_str()), ("1", "2"));
        assert_eq!(
            (field("Uid:"), field("Gid:")),
            ("1000 1000 1000 1000".into(), "1000 1000 1000 1000".into())
        );
        // It is root neither there nor here.
        let result = site.code("bash", "cat /proc/self/uid_map; touch mine; sleep 0");
        let map = result["stdout"].as_str().expect("a text").split_whitespace().collect::<Vec<_>>();
        assert_eq!((map.len(), map[0], map[2]), (3, "1000", "1"), "{result}");
        assert_ne!(map[1], "0", "code runs as the system's root: {result}");
        site.has_files(&["mine"]);
    });
}

/// The files in the workspace that would run as another user.
fn set_ids(site: &Site) -> Vec<String> {
    let has = |path: &String| {
        let file = site.inside(path).symlink_metadata().expect("it is there");
        file.is_file() && file.mode() & 0o6000 != 0
    };
    site.files().into_iter().filter(has).collect()
}

#[test]
fn blt_2_no_file_that_would_run_as_another_user_can_be_made() {
    const MAKE: &str = "
import ctypes, json, os, shutil, subprocess, tarfile, io
shutil.copy('/bin/bash', 'shell')
came = {}
def tries(name, what):
    try:
        what(); came[name] = 'done'
    except OSError as error:
        came[name] = error.errno
def opened():
    os.umask(0)
    os.close(os.open('opened', os.O_CREAT | os.O_WRONLY, 0o6755))
def tarred():
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode='w') as archive:
        info = tarfile.TarInfo('tarred'); info.mode = 0o6755
        archive.addfile(info)
    data.seek(0)
    with tarfile.open(fileobj=data) as archive:
        archive.extractall('.')
tries('chmod 4755', lambda: os.chmod('shell', 0o4755))
tries('chmod 2755', lambda: os.chmod('shell', 0o2755))
tries('fchmod', lambda: os.fchmod(os.open('shell', os.O_RDONLY), 0o6755))
tries('fchmodat', lambda: os.chmod('shell', 0o4755, dir_fd=os.open('.', os.O_RDONLY)))
tries('open', opened)
tries('mknod', lambda: os.mknod('node', 0o104755))
tries('tar', tarred)
libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100
if libc.syscall(ctypes.c_long(452), AT_FDCWD, b'shell', 0o4755, 0) == 0:
    came['fchmodat2'] = 'done'
how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o4755, 0)
if libc.syscall(ctypes.c_long(437), AT_FDCWD, b'how', how, 24) >= 0:
    came['openat2'] = 'done'
for command in (['install', '-m', '4755', '/bin/bash', 'installed'], ['cp', '-p', '/usr/bin/passwd', 'copied'], ['chmod', 'u+s,g+s', 'shell']):
    subprocess.run(command, capture_output=True)
print(json.dumps(came))
";
    Site::each("", |site| {
        let came = site.python(MAKE, &[]);
        assert_eq!(set_ids(site), [""; 0], "{came}");
        // Unpacking an archive goes on without the bits that it may not set.
        assert!(
            came.as_object().expect("an object").iter().all(|(way, came)| way == "tar" || came != "done"),
            "{came}"
        );
        let mode = site.inside("shell").metadata().expect("the copy").mode();
        assert_eq!(mode & 0o7000, 0, "{mode:o}");
        // What is allowed of modes is still allowed.
        let result = site.code(
            "bash",
            "touch plain; chmod 700 plain; mkdir -m 1777 sticky; stat -c %a plain sticky; rm -r plain sticky",
        );
        assert_eq!(result["stdout"], "700\n1777\n", "{result}");
    });
}

#[test]
fn blt_2_files_that_run_as_another_user_run_as_the_same_user() {
    Site::each("", |site| {
        // Those of the system.
        let result = site.code("bash", "for p in $(find /usr/bin -perm /6000 -type f 2>/dev/null); do echo $p; done | head -50 | wc -l; \
            echo x | su root -c id 2>&1; passwd -S root 2>&1; sudo -n id 2>&1; mount 2>&1 | head -1; ping -c1 127.0.0.1 2>&1 | head -1; :");
        let said = result["stdout"].as_str().expect("a text");
        assert!(!said.contains("uid=0"), "{said}");
        // One that root has left in the workspace.
        std::fs::copy("/usr/bin/id", site.inside("its-id")).expect("a copy");
        std::fs::set_permissions(site.inside("its-id"), PermissionsExt::from_mode(0o6755)).expect("a mode");
        let result = site.code("bash", "./its-id -u; ./its-id -ru; ./its-id -g");
        assert_eq!(result["stdout"], "1000\n1000\n1000\n", "{result}");
    });
}

#[test]
fn blt_2_processes_of_the_host_are_neither_seen_nor_signalled() {
    const SIGNAL: &str = "
import json, os, signal, sys
came = []
for pid in [int(word) for word in sys.argv[1:]] + [1, -1]:
    try:
        if pid == -1:
            continue
        os.kill(pid, signal.SIGKILL)
        came.append(pid)
    except OSError:
        pass
print(json.dumps([came, sorted(int(name) for name in os.listdir('/proc') if name.isdigit()), os.getppid()]))
";
    Site::each("", |site| {
        let host = [site.server().pid(), std::process::id()].map(|pid| pid.to_string());
        let found = site.python(SIGNAL, &[&host[0], &host[1]]);
        assert_eq!(found[0], json!([]), "{found}");
        let seen = found[1].as_array().expect("a list");
        assert!(seen.len() <= 2, "{found}");
        assert_eq!(site.server().get("/healthz").status, 200);
    });
    // Root would see them all: this must not have run for an ordinary user alone.
    assert!(!is_root() || super::site::homes().len() == 2);
}
