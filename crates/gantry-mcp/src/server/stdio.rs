//! MCP over a pair of byte streams: one message per line.

use super::{Handler, Server};
use crate::ErrorObject;
use crate::envelope::failure;
use crate::error::code;
use crate::limits::{LINE_BYTES, STDIO_ANSWERS_WAITING, STDIO_CLOSE_TIMEOUT};
use crate::lines::{self, Line, Lines};
use futures_util::stream::unfold;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

impl Server {
    /// Serves one connection until its input ends, then waits a little for requests that are still running.
    ///
    /// Dropping the future ends the connection at once; its session is still closed.
    pub async fn serve<R, W>(&self, handler: Arc<dyn Handler>, reader: R, writer: W) -> io::Result<()>
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (answers, queue) = mpsc::channel(STDIO_ANSWERS_WAITING);
        let writing = AbortOnDropHandle::new(tokio::spawn(lines::write(writer, queue)));
        let mut broken = Ok(());
        let input = Input { lines: Lines::new(reader), answers: answers.clone(), broken: &mut broken };
        let incoming = unfold(input, |mut input| async move { Some((input.next().await?, input)) });
        self.serve_messages(handler, incoming, answers).await;
        // The last sender is gone, so the writer ends, unless the client does not read.
        let written = timeout(STDIO_CLOSE_TIMEOUT, writing).await;
        broken?;
        match written {
            Ok(Ok(result)) => result,
            Ok(Err(stopped)) => Err(io::Error::other(stopped)),
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the last answers were not read")),
        }
    }
}

/// Lines as messages; one that is too long is answered here.
struct Input<'a, R> {
    lines: Lines<R>,
    answers: mpsc::Sender<String>,
    broken: &'a mut io::Result<()>,
}

impl<R: AsyncRead + Unpin> Input<'_, R> {
    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.lines.next().await {
                Ok(Some(Line::Whole(line))) => return Some(line),
                Ok(Some(Line::TooLong)) => {
                    let message = format!("a line has at most {LINE_BYTES} bytes; this one was skipped");
                    let refusal = failure(None, &ErrorObject::new(code::PARSE_ERROR, message));
                    self.answers.send(refusal).await.ok()?;
                }
                Ok(None) => return None,
                Err(error) => {
                    *self.broken = Err(error);
                    return None;
                }
            }
        }
    }
}
