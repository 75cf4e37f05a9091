//! Direct calls over the pipes of one process, from many workers at once.

use super::super::load::Worker;
use anyhow::{Context as _, Result, ensure};
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

/// The pipes, shared by the workers. Threads of its own read and write, as cheaply as it gets.
#[derive(Debug)]
struct Shared {
    input: Mutex<ChildStdin>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<String>>>,
    next: AtomicU64,
}

/// One worker.
#[derive(Debug)]
pub(super) struct Pipe(Arc<Shared>);

impl Pipe {
    /// Workers that call over these pipes.
    pub(super) fn workers((input, output): (ChildStdin, ChildStdout), n: usize) -> Vec<Self> {
        let shared = Arc::new(Shared {
            input: Mutex::new(input),
            waiting: Mutex::default(),
            next: AtomicU64::new(100_000_000),
        });
        let reading = Arc::clone(&shared);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let id = line.strip_prefix(r#"{"jsonrpc":"2.0","id":"#).and_then(|rest| rest.get(..9));
                let waiter = id
                    .and_then(|id| id.parse().ok())
                    .and_then(|id: u64| reading.waiting.lock().unwrap().remove(&id));
                if let Some(waiter) = waiter {
                    waiter.send(line).ok(); // A worker that has given up needs no answer.
                }
            }
        });
        (0..n).map(|_| Self(Arc::clone(&shared))).collect()
    }
}

impl Worker for Pipe {
    async fn call(&mut self) -> Result<()> {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.0.waiting.lock().unwrap().insert(id, sender);
        let request = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"noop\",\"arguments\":{{}}}}}}\n"
        );
        self.0.input.lock().unwrap().write_all(request.as_bytes())?;
        let answer = receiver.await.context("the server is gone")?;
        ensure!(answer.contains(r#""text":"ok""#), "a wrong answer: {answer}");
        Ok(())
    }
}
