//! Code that reaches for what is not its own: files, sockets, networks, descriptors, variables, terminals.

use super::site::{SECRET, Site, text};
use serde_json::json;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

/// Reads each argument as a file or folder, and prints its error's number, or what it got.
const READ: &str = "
import json, os, sys
found = {}
for path in sys.argv[1:]:
    try:
        found[path] = os.listdir(path) if os.path.isdir(path) else open(path, 'rb').read(99).decode('latin-1')
    except OSError as error:
        found[path] = error.errno
print(json.dumps(found))
";

const ENOENT: i64 = 2;

/// What a machine has and the sandbox has not.
const ABSENT: [&str; 33] = [
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/ssh",
    "/etc/machine-id",
    "/root/.ssh",
    "/root/.bashrc",
    "/var",
    "/opt",
    "/srv",
    "/mnt",
    "/media",
    "/boot",
    "/sys",
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/systemd",
    "/run/user",
    "/dev/mem",
    "/dev/kmsg",
    "/dev/vda",
    "/dev/sda",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/fuse",
    "/dev/kvm",
    "/dev/net/tun",
    "/workspace/to-secret",
    "/workspace/to-shadow",
    "/workspace/up/etc/shadow",
    "/old_root",
    "/.old",
];

#[test]
fn blt_2_files_of_the_host_are_not_there() {
    Site::each("", |site| {
        site.put("inside.txt", "inside");
        let home = site.home.path();
        let links = [
            ("to-secret", text(&home.join("outside/secret"))),
            ("to-shadow", "/etc/shadow".into()),
            ("up", "../..".into()),
        ];
        for (link, target) in &links {
            std::os::unix::fs::symlink(target, site.inside(link)).expect("a link");
        }
        let program = site.home.executable();
        let mut absent = vec![
            text(home),
            text(&home.join("outside/secret")),
            text(&home.join("person/.ssh/id_ed25519")),
            text(&home.join(".gantry/gantry.db")),
            text(&home.join(".gantry/admin.key")),
            text(&home.join("gantry.yaml")),
            text(&site.inside("inside.txt")),
            text(&program),
            format!("/proc/{}/environ", site.server().pid()),
            format!("/proc/{}/root{}", site.server().pid(), text(home)),
        ];
        absent.extend(ABSENT.map(str::to_owned));
        let mut arguments: Vec<&str> = absent.iter().map(String::as_str).collect();
        arguments.extend([
            "/workspace/inside.txt",
            "/proc/1/environ",
            "/proc/1/root",
            "/proc/1/maps",
            "/tmp",
        ]);
        let found = site.python(READ, &arguments);
        for path in &absent {
            assert_eq!(found[path], ENOENT, "{path}");
        }
        assert_eq!((&found["/workspace/inside.txt"], &found["/tmp"]), (&json!("inside"), &json!([])));
        for path in ["/proc/1/environ", "/proc/1/root", "/proc/1/maps"] {
            // The first process is there and belongs to another user.
            assert!([1, 2, 13].iter().any(|errno| found[path] == *errno), "{path}: {}", found[path]);
        }
        for (link, _) in links {
            std::fs::remove_file(site.inside(link)).expect("the link");
        }
        site.has_files(&["inside.txt"]);
    });
}

#[test]
fn blt_2_nothing_but_the_workspace_and_what_is_in_memory_can_be_written() {
    const WRITE: &str = "
import json, os, sys
written = []
for folder, folders, files in os.walk('/'):
    if folder in ('/proc', '/workspace', '/tmp', '/home/gantry', '/dev/shm'):
        folders.clear()
        continue
    if folder.startswith('/usr/') and folder.count('/') > 2:
        folders.clear()
    try:
        path = os.path.join(folder, 'made-by-the-code')
        open(path, 'w').close()
        written.append(path)
    except OSError:
        pass
for path in ['/usr/bin/env', '/etc/passwd', '/etc/hosts', '/run/gantry/main.py', '/bin/sh', '/dev/null']:
    for change in [lambda: os.chmod(path, 0o777), lambda: os.rename(path, path + '2'), lambda: os.unlink(path), lambda: os.truncate(path, 0),
                   lambda: os.utime(path, (0, 0)), lambda: os.link(path, path + '3'), lambda: os.symlink('x', path + '4')]:
        try:
            change()
            written.append(path)
        except OSError:
            pass
print(json.dumps(written))
";
    Site::each("", |site| {
        assert_eq!(site.python(WRITE, &[]), json!([]));
        site.has_files(&[]);
    });
}

/// Tries to reach each argument by TCP and UDP, to look up a name, and to open sockets of unusual kinds.
const REACH: &str = "
import json, socket, sys
reached = {}
def tries(name, what):
    try:
        what()
        reached[name] = 'reached'
    except OSError as error:
        reached[name] = error.errno or str(error)
for target in sys.argv[1:]:
    host, port = target.rsplit(':', 1)
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    def tcp():
        with socket.socket(family) as s:
            s.settimeout(5); s.connect((host, int(port)))
    def udp():
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            s.sendto(b'hello', (host, int(port)))
    tries('tcp ' + target, tcp)
    tries('udp ' + target, udp)
tries('name', lambda: socket.getaddrinfo('example.com', 80))
for name, family, kind, protocol in [('netlink', 16, socket.SOCK_RAW, 0), ('packet', 17, socket.SOCK_RAW, 0x300), ('raw', 2, socket.SOCK_RAW, 1),
                                     ('vsock', 40, socket.SOCK_STREAM, 0), ('alg', 38, socket.SOCK_SEQPACKET, 0), ('bluetooth', 31, socket.SOCK_RAW, 1)]:
    tries(name, lambda: socket.socket(family, kind, protocol).close())
print(json.dumps(reached))
";

#[test]
fn blt_2_there_is_no_network_neither_public_nor_private_nor_the_hosts_loopback() {
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let six = TcpListener::bind("[::1]:0").ok();
    tcp.set_nonblocking(true).expect("a listener");
    udp.set_nonblocking(true).expect("a socket");
    let (tcp_at, udp_at) = (tcp.local_addr().expect("an address"), udp.local_addr().expect("an address"));
    Site::each("", |site| {
        let gantry = site.server().address;
        let mut targets: Vec<String> = [tcp_at, udp_at, gantry].map(|at| at.to_string()).into();
        targets.extend(six.iter().map(|six| format!("::1:{}", six.local_addr().expect("an address").port())));
        targets.extend(
            [
                "1.1.1.1:443",
                "8.8.8.8:53",
                "169.254.169.254:80",
                "10.0.0.1:80",
                "192.168.0.1:80",
                "2606:4700:4700::1111:443",
            ]
            .map(str::to_owned),
        );
        let arguments: Vec<&str> = targets.iter().map(String::as_str).collect();
        let reached = site.python(REACH, &arguments);
        for (target, came) in reached.as_object().expect("an object") {
            // A datagram to one's own loopback reaches no process outside.
            let is_own = target.starts_with("udp 127.0.0.1") || target.starts_with("udp ::1");
            assert!(is_own || came != "reached", "{target} was reached");
        }
        assert!(tcp.accept().is_err(), "somebody connected");
        assert!(udp.recv(&mut [0; 16]).is_err(), "a datagram came out");
    });
}

#[test]
fn blt_2_sockets_of_the_host_cannot_be_reached_by_path_or_by_name() {
    const CONNECT: &str = "
import json, socket, sys
came = []
for address in sys.argv[1:]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            with socket.socket(socket.AF_UNIX, kind) as s:
                s.connect(address.replace('@', '\\0', 1) if address.startswith('@') else address)
            came.append('reached ' + address)
        except OSError as error:
            came.append(error.errno)
print(json.dumps(came))
";
    Site::each("", |site| {
        let path = site.home.path().join("outside/socket");
        let by_path = UnixListener::bind(&path).expect("a socket");
        let name = format!("{}-abstract", site.mark);
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let by_name = UnixListener::bind_addr(&address).expect("a socket");
        for listener in [&by_path, &by_name] {
            listener.set_nonblocking(true).expect("a listener");
        }
        let link = site.inside("link-to-socket");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        let arguments =
            [text(&path), format!("@{name}"), "/workspace/link-to-socket".into(), "/run/docker.sock".into()];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let came = site.python(CONNECT, &arguments);
        for code in came.as_array().expect("a list") {
            assert!(code.is_i64(), "{came}");
        }
        assert!(by_path.accept().is_err() && by_name.accept().is_err(), "somebody connected");
        std::fs::remove_file(link).expect("the link");
    });
}

#[test]
fn blt_2_no_descriptor_of_gantrys_is_open_in_the_sandbox() {
    // A listing has a descriptor of its own, which is shut when the next asks what it was.
    const LIST: &str = "
import json, os
fds = {}
for name in os.listdir('/proc/self/fd'):
    try:
        fds[name] = os.readlink('/proc/self/fd/' + name)
    except OSError:
        pass
print(json.dumps([fds, os.path.exists('/proc/self/fd')]))
";
    Site::each("", |site| {
        // A file without a name in the environment either: what is inherited shows.
        let found = site.python(LIST, &[]);
        assert_eq!(found[1], true, "{found}");
        let fds = found[0].as_object().expect("an object");
        let names: Vec<&str> = fds.keys().map(String::as_str).collect();
        let beyond: Vec<&&str> = names.iter().filter(|name| !["0", "1", "2"].contains(name)).collect();
        // The interpreter has the code itself open while it runs it, where it does.
        assert!(
            beyond.iter().all(|name| fds[**name].as_str().is_some_and(|to| to.starts_with("/run/gantry/"))),
            "{found}"
        );
        let host = text(site.home.path());
        assert!(!found.to_string().contains(&host), "{found}");
        let result = site.code("bash", "ls -l /proc/self/fd | grep -v ' 3 -> /proc/' | tail -n +2 | wc -l");
        assert_eq!(result["stdout"], "3\n", "{result}");
    });
}

#[test]
fn blt_2_the_environment_is_the_sandboxs_own() {
    Site::each("", |site| {
        let found = site.python("import json, os; print(json.dumps(dict(os.environ)))", &[]);
        let known = [
            "PATH",
            "HOME",
            "LANG",
            "TMPDIR",
            "MARK",
            "GOTOOLCHAIN",
            "PYTHONPATH",
            "PYTHONDONTWRITEBYTECODE",
            "PYTHONUNBUFFERED",
            "LC_CTYPE",
            "PWD",
        ];
        for (name, value) in found.as_object().expect("an object") {
            assert!(known.contains(&name.as_str()), "{name}={value}");
            assert!(!value.as_str().expect("a text").contains(&text(site.home.path())), "{name}={value}");
        }
        assert_eq!((&found["HOME"], &found["MARK"]), (&json!("/home/gantry"), &json!(site.mark)));
        assert!(!found.to_string().contains(SECRET));
        let path = found["PATH"].as_str().expect("a text");
        assert!(
            path.split(':').all(|folder| folder.starts_with('/') && !folder.starts_with("/workspace")),
            "{path}"
        );
        let who = site.code(
            "bash",
            "id -u; id -un; cd; pwd; hostname >/dev/null && cat /proc/self/loginuid 2>/dev/null; :",
        );
        assert!(
            who["stdout"].as_str().is_some_and(|text| text.starts_with("1000\ngantry\n/home/gantry\n")),
            "{who}"
        );
    });
}

#[test]
fn blt_2_there_is_no_terminal_to_type_into() {
    const TYPE: &str = "
import ctypes, json, os, pty
libc = ctypes.CDLL(None, use_errno=True)
came = {}
for name, number in [('TIOCSTI', 0x5412), ('TIOCLINUX', 0x541C), ('TIOCSETD', 0x5423)]:
    for fd in range(3):
        done = libc.ioctl(fd, ctypes.c_ulong(number), ctypes.c_char_p(b'x'))
        came[f'{name} {fd}'] = ctypes.get_errno() if done < 0 else 'done'
# The same number with bits above that the kernel ignores.
done = libc.syscall(ctypes.c_long(16), 0, ctypes.c_ulong(0x7fff00005412), b'x') if os.uname().machine == 'x86_64' else -1
came['high'] = ctypes.get_errno() if done < 0 else 'done'
try:
    pty.openpty(); came['pty'] = 'done'
except OSError as error:
    came['pty'] = error.errno
try:
    os.open('/dev/tty', os.O_RDWR); came['tty'] = 'done'
except OSError as error:
    came['tty'] = error.errno
came['session'] = os.getsid(0) == os.getpid()
print(json.dumps(came))
";
    Site::each("", |site| {
        let came = site.python(TYPE, &[]);
        for (name, errno) in
            came.as_object().expect("an object").iter().filter(|(name, _)| name.starts_with("TIOC"))
        {
            assert_eq!(errno, 1, "{name}: {came}");
        }
        assert_eq!((&came["high"], &came["tty"]), (&json!(1), &json!(2)), "{came}");
        assert!(came["pty"] != "done" && came["session"] == true, "{came}");
    });
}
