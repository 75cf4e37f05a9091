//! What a job is given: arguments, environment, input, folders, files, and a partner in the network.

use super::cell::{Cell, kept};
use gantry_sandbox::jail::{Access, BUILDS, ExitReason, JailError, Store};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};

#[tokio::test]
async fn a_job_ends_with_its_own_code() {
    let cell = Cell::new();
    let ran = cell.run(cell.shell("echo out; echo err >&2; exit 7")).await;
    assert_eq!(ran.end, ExitReason::Exited(7));
    assert_eq!(ran.stdout.text(), "out\n");
    assert_eq!(ran.stderr.text(), "err\n");
    assert!(!ran.stdout.is_truncated());
}

#[tokio::test]
async fn a_job_can_end_by_a_signal() {
    let cell = Cell::new();
    assert_eq!(cell.run(cell.shell("kill -TERM $$")).await.end, ExitReason::Signalled(15));
    assert_eq!(cell.run(cell.shell("kill -KILL $$")).await.end, ExitReason::Signalled(9));
}

#[tokio::test]
async fn arguments_arrive_as_they_are() {
    let cell = Cell::new();
    let unusual = ["", "a b", "'\"$x`", "line\nbreak", "ä€𝄞", "--", "*"];
    let text = cell.output(cell.job("printf", &[&["[%s]"][..], &unusual].concat())).await;
    assert_eq!(text, unusual.map(|arg| format!("[{arg}]")).concat());
}

#[tokio::test]
async fn bytes_that_are_no_text_arrive_and_come_back() {
    use std::os::unix::ffi::OsStringExt as _;
    let cell = Cell::new();
    let mut job = cell.job("printf", &["%s"]);
    job.args.push(std::ffi::OsString::from_vec(vec![0xff, 0xfe, b'x']));
    let ran = cell.run(job).await;
    assert_eq!(ran.stdout.bytes, [0xff, 0xfe, b'x']);
}

#[tokio::test]
async fn the_environment_is_what_the_job_says_and_a_home() {
    let cell = Cell::new();
    let mut job = cell.job("env", &[]);
    job.env.push(("LD_PRELOAD".into(), String::new().into()));
    job.env.push(("LANG".into(), "de_DE.UTF-8".into()));
    let text = cell.output(job).await;
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let mark = format!("MARK={}", cell.world.mark);
    let path = "PATH=/usr/local/bin:/usr/bin:/bin";
    assert_eq!(lines, ["HOME=/home/gantry", "LANG=de_DE.UTF-8", "LD_PRELOAD=", &mark, path, "TMPDIR=/tmp"]);
}

#[tokio::test]
async fn input_arrives_whole() {
    let cell = Cell::new();
    let mut job = cell.job("sha256sum", &[]);
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    fs::write(cell.path().join("same"), &bytes).expect("a file");
    job.input = bytes.into();
    let text = cell.output(job).await;
    let same = cell.output(cell.shell("sha256sum < same")).await;
    assert_eq!(text, same);
}

#[tokio::test]
async fn a_job_that_does_not_want_its_input_ends_all_the_same() {
    let cell = Cell::new();
    let mut job = cell.job("true", &[]);
    job.input = vec![b'x'; 10 << 20].into();
    assert_eq!(cell.run(job).await.end, ExitReason::Exited(0));
}

#[tokio::test]
async fn no_input_is_the_end_of_input() {
    let cell = Cell::new();
    assert_eq!(cell.output(cell.job("cat", &[])).await, "");
}

#[tokio::test]
async fn a_job_starts_in_its_folder() {
    let cell = Cell::new();
    fs::create_dir_all(cell.path().join("a/b")).expect("folders");
    symlink("a/b", cell.path().join("inside")).expect("a link");
    assert_eq!(cell.output(cell.job("pwd", &[])).await, "/workspace\n");
    for (folder, place) in
        [("a/b", "/workspace/a/b"), ("a/../a", "/workspace/a"), ("inside", "/workspace/a/b")]
    {
        let mut job = cell.job("pwd", &["-P"]);
        job.folder = folder.into();
        assert_eq!(cell.output(job).await, format!("{place}\n"));
    }
}

#[tokio::test]
async fn a_folder_outside_of_the_workspace_is_refused() {
    let cell = Cell::new();
    symlink("/tmp", cell.path().join("out")).expect("a link");
    symlink("../..", cell.path().join("up")).expect("a link");
    fs::write(cell.path().join("file"), "").expect("a file");
    for folder in ["..", "out", "up", "/", "/tmp", "missing", "file"] {
        let mut job = cell.job("pwd", &[]);
        job.folder = folder.into();
        let error = cell.try_run(job).await.expect_err(folder);
        assert!(matches!(error, JailError::Folder { .. }), "{folder}: {error}");
        assert!(!error.has_run());
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let cell = Cell::new();
    for program in ["no-such-program", "/no/such", "", "/usr", "./x"] {
        let error = cell.try_run(cell.job(program, &[])).await.expect_err(program);
        assert!(matches!(&error, JailError::NoProgram { program: named } if named == program), "{error}");
    }
}

#[tokio::test]
async fn a_path_that_is_too_long_for_a_message_is_named_all_the_same() {
    let cell = Cell::new();
    let long = "/x".repeat(50_000);
    let error = cell.try_run(cell.job(&long, &[])).await.expect_err("no program");
    assert!(matches!(&error, JailError::NoProgram { program } if *program == *long), "{error}");
    let mut job = cell.job("pwd", &[]);
    job.folder = long.trim_start_matches('/').into();
    let error = cell.try_run(job).await.expect_err("no folder");
    assert!(matches!(error, JailError::Folder { .. }), "{error}");
}

#[tokio::test]
async fn programs_are_not_looked_for_in_the_workspace() {
    let cell = Cell::new();
    let planted = cell.path().join("true");
    fs::write(&planted, "#!/bin/sh\necho planted\n").expect("a file");
    fs::set_permissions(&planted, fs::Permissions::from_mode(0o755)).expect("rights");
    symlink("/workspace", cell.path().join("link")).expect("a link");
    for path in
        ["/workspace:/usr/bin", ".::/usr/bin", "/tmp/../workspace:/usr/bin", "/proc/self/cwd:/usr/bin"]
    {
        let mut job = cell.job("true", &[]);
        job.env.push(("PATH".into(), path.into()));
        assert_eq!(cell.output(job).await, "", "{path}");
    }
    assert_eq!(cell.output(cell.job("/workspace/true", &[])).await, "planted\n");
}

#[tokio::test]
async fn something_that_cannot_be_executed_is_an_error() {
    let cell = Cell::new();
    let broken = cell.path().join("broken");
    fs::write(&broken, "#!/no/such/interpreter\n").expect("a file");
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).expect("rights");
    let error = cell.try_run(cell.job("/workspace/broken", &[])).await.expect_err("no interpreter");
    assert!(matches!(error, JailError::Step { .. }), "{error}");
}

#[tokio::test]
async fn what_no_process_can_be_given_is_refused() {
    let cell = Cell::new();
    let mut jobs = vec![
        cell.job("true", &["a\0b"]),
        cell.job("tr\0ue", &[]),
        cell.job("true", &[]),
        cell.job("true", &[]),
    ];
    jobs[2].env.push(("A=B".into(), "".into()));
    jobs[3].files.push(("../x".to_owned(), String::new()));
    for job in jobs {
        let error = cell.try_run(job).await.expect_err("refused");
        assert!(matches!(error, JailError::Setup { .. }), "{error}");
    }
}

#[tokio::test]
async fn the_workspace_is_read_and_written() {
    let cell = Cell::new();
    fs::write(cell.path().join("in"), "hello").expect("a file");
    cell.output(
        cell.shell("mkdir d && mv in d/ && tr a-z A-Z < d/in > out && ln -s out link && chmod 755 out"),
    )
    .await;
    assert_eq!(fs::read_to_string(cell.path().join("link")).expect("a file"), "HELLO");
    assert_eq!(fs::read_to_string(cell.path().join("d/in")).expect("a file"), "hello");
}

#[tokio::test]
async fn a_job_that_may_only_read_changes_nothing() {
    let cell = Cell::new();
    fs::write(cell.path().join("in"), "hello").expect("a file");
    let mut job =
        cell.shell("cat in; echo x > new; echo x >> in; rm in; mkdir d; chmod 777 in; touch in; mv in b");
    job.access = Access::Read;
    let ran = cell.run(job).await;
    assert_eq!(ran.stdout.text(), "hello");
    assert_eq!(ran.stderr.text().lines().count(), 7, "{}", ran.stderr.text());
    assert_eq!(fs::read_dir(cell.path()).expect("a folder").count(), 1);
    assert_eq!(fs::read_to_string(cell.path().join("in")).expect("a file"), "hello");
}

#[tokio::test]
async fn files_of_the_job_can_be_read_and_executed_but_not_changed() {
    let cell = Cell::new();
    let mut job = cell.shell(
        "cat /run/gantry/data | wc -c; /run/gantry/tool; echo x > /run/gantry/data; touch /run/gantry/x",
    );
    job.files = vec![
        ("data".to_owned(), "x".repeat(3 << 20)),
        ("tool".to_owned(), "#!/bin/sh\necho tool\n".to_owned()),
        ("empty".to_owned(), String::new()),
    ];
    let ran = cell.run(job).await;
    assert_eq!(ran.stdout.text(), format!("{}\ntool\n", 3 << 20));
    assert_eq!(ran.stderr.text().lines().count(), 2, "{}", ran.stderr.text());
}

#[tokio::test]
async fn the_store_keeps_what_jobs_put_there() {
    let cell = Cell::new();
    let store = tempfile::tempdir().expect("a folder");
    let mut job = cell.shell("echo kept > /store/it && cat /store/it");
    job.stores = vec![kept(store.path(), Access::Write)];
    assert_eq!(cell.output(job).await, "kept\n");
    assert_eq!(fs::read_to_string(store.path().join("it")).expect("a file"), "kept\n");
    let mut job = cell.shell("cat /store/it");
    job.stores = vec![kept(store.path(), Access::Write)];
    job.access = Access::Read;
    assert_eq!(cell.output(job).await, "kept\n");
}

#[tokio::test]
async fn a_store_to_read_is_changed_by_nothing_beside_one_that_is_written() {
    let cell = Cell::new();
    let (store, builds) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    fs::write(store.path().join("it"), "kept").expect("a file");
    let script = "cat /store/it; for try in 'echo x > /store/it' 'rm /store/it' 'touch /store/new' 'chmod 777 /store/it'                   'ln /store/it /workspace/it' 'mv /store/it /builds/it' 'mount -o remount,rw /store' 'umount /store';                   do sh -c \"$try\" 2>/dev/null && echo \"$try\"; done; echo built > /builds/new";
    let mut job = cell.shell(script);
    let written = Store { at: BUILDS.into(), ..kept(builds.path(), Access::Write) };
    job.stores = vec![kept(store.path(), Access::Read), written];
    assert_eq!(cell.output(job).await, "kept");
    assert_eq!(fs::read_to_string(store.path().join("it")).expect("a file"), "kept");
    assert_eq!(fs::read_dir(store.path()).expect("a folder").count(), 1);
    assert_eq!(fs::read_to_string(builds.path().join("new")).expect("a file"), "built\n");
}

#[tokio::test]
async fn a_store_that_is_not_there_is_an_error() {
    let cell = Cell::new();
    let mut job = cell.job("true", &[]);
    job.stores = vec![kept("/no/such/folder", Access::Write)];
    let error = cell.try_run(job).await.expect_err("no store");
    assert!(matches!(error, JailError::Workspace { .. }), "{error}");
}

#[tokio::test]
async fn toolchains_are_read_where_they_are() {
    let cell = Cell::new();
    let tools = tempfile::tempdir().expect("a folder");
    fs::create_dir(tools.path().join("bin")).expect("a folder");
    let tool = tools.path().join("bin/tool");
    fs::write(&tool, "#!/bin/sh\necho works\n").expect("a file");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).expect("rights");
    fs::set_permissions(tools.path(), fs::Permissions::from_mode(0o755)).expect("rights");
    let mut job = cell.shell(&format!("tool; touch {}/x", tools.path().display()));
    let path = format!("{}:/usr/bin:/bin", tools.path().join("bin").display());
    job.env.push(("PATH".into(), path.into()));
    job.toolchains = [tools.path().to_owned(), "/no/such/toolchain".into()].into();
    let ran = cell.run(job).await;
    assert_eq!(ran.stdout.text(), "works\n");
    assert!(ran.stderr.text().contains("Read-only file system"), "{}", ran.stderr.text());
}

#[tokio::test]
async fn no_toolchain_shows_the_machine_itself() {
    let cell = Cell::new();
    for path in
        ["/", "/proc", "/sys/kernel", "/dev", "/run", "/etc", "relative", "/opt/../etc", "/workspace/x"]
    {
        let mut job = cell.job("true", &[]);
        job.toolchains = [path.into()].into();
        let error = cell.try_run(job).await.expect_err(path);
        assert!(matches!(error, JailError::Step { .. }), "{path}: {error}");
    }
}

#[tokio::test]
async fn a_job_with_a_network_has_one_partner() {
    let cell = Cell::new();
    let mut job = cell.python(
        "import socket\n\
         s = socket.create_connection(('127.0.0.1', 3128))\n\
         s.sendall(b'ping')\n\
         print(s.recv(4).decode())",
    );
    job.network = true;
    let mut running = cell.start(job).await;
    let listener = running.listener().expect("a listener");
    assert!(running.listener().is_none());
    let partner = tokio::net::TcpListener::from_std(listener).expect("it does not block");
    let (stream, _) = partner.accept().await.expect("a connection");
    let mut stream = stream.into_std().expect("a stream");
    stream.set_nonblocking(false).expect("it blocks");
    let answered = tokio::task::spawn_blocking(move || {
        let mut word = [0; 4];
        stream.read_exact(&mut word).expect("a word");
        stream.write_all(b"pong").expect("it is sent");
        word
    });
    assert_eq!(&answered.await.expect("no panic"), b"ping");
    let ran = running.end().await.expect("it runs");
    assert_eq!((ran.end, ran.stdout.text().as_str()), (ExitReason::Exited(0), "pong\n"));
}

#[tokio::test]
async fn a_job_without_a_network_has_no_partner() {
    let cell = Cell::new();
    let mut running = cell.start(cell.job("true", &[])).await;
    assert!(running.listener().is_none());
    running.end().await.expect("it runs");
}

#[tokio::test]
async fn what_people_build_with_works() {
    let cell = Cell::new();
    let script = "set -e\n\
        git init -q . && git -c user.name=a -c user.email=b commit -q --allow-empty -m x && git log --oneline | wc -l\n\
        printf 'int main(void){return 0;}' > a.c && gcc a.c -o a && ./a && echo built\n\
        cat <(echo sub) && tar cf a.tar a.c && cp -p a.c b.c\n\
        python3 -c 'import multiprocessing as m; p = m.Pool(2); print(sum(p.map(abs, [-1, 2])))'\n\
        python3 -c 'import sqlite3; c = sqlite3.connect(\"db\"); c.execute(\"pragma journal_mode=wal\"); c.execute(\"create table t(a)\"); c.commit()'\n\
        id -un; hostname; ls /proc/self/fd >/dev/null";
    let text = cell.output(cell.job("bash", &["-c", script])).await;
    assert_eq!(text, "1\nbuilt\nsub\n3\ngantry\ngantry\n");
}

#[tokio::test]
async fn a_program_that_reserves_much_memory_starts() {
    let cell = Cell::new();
    let script = "new WebAssembly.Memory({ initial: 1, maximum: 65536 });\
        new (require('worker_threads').Worker)('console.log(1)', { eval: true })";
    let ran = cell.try_run(cell.job("node", &["-e", script])).await;
    match ran {
        Ok(ran) => {
            assert_eq!((ran.end, ran.stdout.text().as_str()), (ExitReason::Exited(0), "1\n"), "{ran:?}")
        }
        // There is no such program on this machine.
        Err(error) => assert!(matches!(error, JailError::NoProgram { .. }), "{error}"),
    }
}
