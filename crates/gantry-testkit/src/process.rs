//! Processes: one that ends with its test, and what the system knows of any.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Child;

/// A process that is killed when this is dropped.
#[must_use]
#[derive(Debug)]
pub struct ChildGuard(pub Child);

impl ChildGuard {
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// The first line of its standard output, which is then closed.
    pub fn first_line(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.0.stdout.take().expect("a pipe")).read_line(&mut line).expect("UTF-8");
        line.trim_end().to_owned()
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Whether a process runs; one that has ended and is not yet fetched does not.
pub fn is_running(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, _)| state != 'Z')
}

/// The processes below this one, however deep, that run.
pub fn descendants(pid: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for child in all() {
        if let Some((_, parent)) = stat(child).filter(|(state, _)| *state != 'Z') {
            children.entry(parent).or_default().push(child);
        }
    }
    let (mut found, mut open) = (Vec::new(), vec![pid]);
    while let Some(parent) = open.pop() {
        let below = children.remove(&parent).unwrap_or_default();
        found.extend(&below);
        open.extend(below);
    }
    found
}

/// The command line of a process, its words separated by blanks; empty if it is gone.
pub fn command_line(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// The processes anywhere on the machine that run and have this text among their words or variables, with their words. Those
/// of other users can be looked into by root only.
pub fn find_processes(text: &str) -> Vec<(u32, String)> {
    let has = |pid: u32, file: &str| {
        let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    let found = all().into_iter().filter(|pid| has(*pid, "cmdline") || has(*pid, "environ"));
    found.filter(|pid| is_running(*pid)).map(|pid| (pid, command_line(pid))).collect()
}

/// The processes that this one has started and that run.
pub fn children(pid: u32) -> impl Iterator<Item = u32> {
    let runs = move |(state, parent)| state != 'Z' && parent == pid;
    all().into_iter().filter(move |child| stat(*child).is_some_and(runs))
}

/// How many children of a process have ended and were not fetched by it.
pub fn zombies(pid: u32) -> usize {
    all().into_iter().filter(|child| stat(*child) == Some(('Z', pid))).count()
}

/// How many files, pipes and sockets a process has open.
pub fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

pub fn threads(pid: u32) -> usize {
    status(pid, "Threads:")
}

/// The memory that a process has at the moment, in KiB.
pub fn resident_kib(pid: u32) -> usize {
    status(pid, "VmRSS:")
}

/// How many TCP connections are open to this port of the loopback address, as the side that listens sees it.
pub fn connections(port: u16) -> usize {
    const ESTABLISHED: &str = "01";
    let local = format!("0100007F:{port:04X}");
    let table = fs::read_to_string("/proc/net/tcp").expect("the table of connections");
    let is_one = |line: &&str| {
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some(&*local) && words.nth(1) == Some(ESTABLISHED)
    };
    table.lines().filter(is_one).count()
}

fn status(pid: u32, name: &str) -> usize {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("its line");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}

/// The state of a process and its parent.
fn stat(pid: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold any others.
    let (_, rest) = text.rsplit_once(") ")?;
    let mut words = rest.split(' ');
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("the process file system");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_child_is_found_with_its_words_and_is_gone_when_it_has_ended() {
        let own = std::process::id();
        let mark = format!("a mark of {own}");
        let mut child = Command::new("sleep").arg("600").env("MARK", &mark).spawn().expect("it starts");
        let pid = child.id();
        assert!(descendants(own).contains(&pid) && is_running(pid));
        assert_eq!(find_processes(&mark), [(pid, "sleep 600 ".to_owned())]);
        child.kill().expect("it runs");
        while is_running(pid) {
            std::thread::yield_now();
        }
        assert!(zombies(own) >= 1 && find_processes(&mark).is_empty());
        child.wait().expect("it ends");
        assert!(!descendants(own).contains(&pid) && !is_running(pid));
        assert_eq!(command_line(pid), "");
    }

    #[test]
    fn the_connections_to_a_port_are_counted_while_they_are_open() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        assert_eq!(connections(port), 0);
        let client = std::net::TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        let (served, _) = listener.accept().expect("the client");
        assert_eq!(connections(port), 1);
        drop((client, served));
        assert_eq!(connections(port), 0);
    }

    #[test]
    fn what_a_process_holds_is_counted() {
        let own = std::process::id();
        let before = open_files(own);
        let held: Vec<_> = (0..50).map(|_| fs::File::open("/dev/null").expect("it is there")).collect();
        assert!(open_files(own) >= before + held.len() / 2);
        assert!(threads(own) >= 1 && resident_kib(own) > 100);
    }
}
