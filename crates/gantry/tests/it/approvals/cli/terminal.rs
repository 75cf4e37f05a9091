//! A terminal with a program at it, as a person has one.

use gantry_testkit::process::ChildGuard;
use gantry_testkit::{CommandOutput, TestDir};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a program may take to show what a test waits for.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A program whose keyboard and talk are a terminal; its data go elsewhere.
pub(super) struct Terminal {
    child: ChildGuard,
    side: File,
    screen: Arc<Mutex<String>>,
    seen: usize,
    listening: Option<JoinHandle<()>>,
    data: Option<JoinHandle<String>>,
}

impl Terminal {
    /// Starts the program.
    pub(super) fn start(home: &TestDir, args: &[&str]) -> Self {
        let side = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&side).and_then(|()| unlockpt(&side)).expect("its other side");
        let name = ptsname(&side, Vec::new()).expect("a name");
        let open = || {
            let path = OsStr::from_bytes(name.to_bytes());
            File::options().read(true).write(true).open(path).expect("it opens")
        };
        let mut command = home.command(args);
        command.env("NO_COLOR", "1").stdin(open()).stderr(open()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        // Our own copy of the other side would keep the terminal open for ever.
        drop(command);
        let mut stdout = child.stdout.take().expect("a pipe");
        let data = std::thread::spawn(move || {
            let mut data = String::new();
            stdout.read_to_string(&mut data).expect("text");
            data
        });
        let side = File::from(side);
        let screen = Arc::new(Mutex::new(String::new()));
        let listening = listen(side.try_clone().expect("another handle"), Arc::clone(&screen));
        Self { child: ChildGuard(child), side, screen, seen: 0, listening: Some(listening), data: Some(data) }
    }

    /// Everything on the screen.
    pub(super) fn screen(&self) -> String {
        self.screen.lock().expect("nobody panicked").clone()
    }

    /// Waits until this is on the screen, after what was waited for before, and returns what came before.
    #[track_caller]
    pub(super) fn until(&mut self, words: &str) -> String {
        let end = Instant::now() + TIMEOUT;
        loop {
            let screen = self.screen();
            let new = screen.get(self.seen..).expect("a screen only grows");
            if let Some((before, _)) = new.split_once(words) {
                self.seen += before.len() + words.len();
                return before.to_owned();
            }
            assert!(Instant::now() < end, "never on the screen: {words}\n{screen}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Types a line.
    pub(super) fn enter(&mut self, line: &str) {
        self.side.write_all(format!("{line}\n").as_bytes()).expect("it is typed");
    }

    /// Presses Ctrl-C.
    pub(super) fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child.0), Signal::INT).expect("it runs");
    }

    /// Waits until the program ends.
    pub(super) fn end(mut self) -> CommandOutput {
        let code = self.child.0.wait().expect("it ends").code().unwrap_or(-1);
        self.listening.take().expect("it was not waited for").join().expect("its last words are read");
        let stdout = self.data.take().expect("it was not waited for").join().expect("its data are read");
        CommandOutput { code, stdout, stderr: self.screen() }
    }
}

/// Notes what the program shows. A terminal whose other side is closed ends with an error where a pipe just ends.
fn listen(mut side: File, screen: Arc<Mutex<String>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut chunk = [0; 4096];
        while let Ok(read @ 1..) = side.read(&mut chunk) {
            bytes.extend_from_slice(&chunk[..read]);
            // A character may have come in halves.
            if let Ok(text) = str::from_utf8(&bytes) {
                screen.lock().expect("nobody panicked").push_str(&text.replace('\r', ""));
                bytes.clear();
            }
        }
    })
}
