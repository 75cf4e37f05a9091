//! Lines over the pipes of a process and over TCP.

use super::{
    dispatcher::Dispatcher,
    duplex::{Duplex, Ends, Frames},
    limits::MESSAGE_BYTES,
    types::IoStreams,
};
use crate::lines::{Line, Lines, one_line};
use futures_util::FutureExt as _;
use std::sync::Arc;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _, BufWriter},
    net::TcpStream,
};

/// A link over these streams.
pub(super) fn open(dispatcher: &Arc<Dispatcher>, streams: IoStreams) -> Duplex {
    let IoStreams { reader, writer, guard } = streams;
    let (duplex, ends) = Duplex::open(dispatcher, Some(guard));
    ends.run(
        |dispatcher, outbox| async move {
            let mut lines = Lines::new(reader);
            loop {
                match lines.next().await {
                    Ok(Some(Line::Whole(line))) => Ends::receive(&dispatcher, &line, &outbox),
                    Ok(Some(Line::TooLong)) => {
                        dispatcher
                            .fail_all(&format!("the server sent a line of more than {MESSAGE_BYTES} bytes"));
                    }
                    Ok(None) => return "the server closed its output".to_owned(),
                    Err(error) => return error.to_string(),
                }
                // A flood of lines must not keep other tasks from running.
                tokio::task::coop::consume_budget().await;
            }
        },
        |frames| async {
            let written = write(writer, frames).await;
            written.map_err(|error| format!("the server does not take input: {error}"))
        },
    );
    duplex
}

async fn write(writer: impl AsyncWrite + Unpin, mut frames: Frames) -> std::io::Result<()> {
    let mut writer = BufWriter::new(writer);
    loop {
        let ready = frames.next().now_or_never();
        let frame = match ready {
            Some(frame) => frame,
            None => {
                writer.flush().await?;
                frames.next().await
            }
        };
        let Some(frame) = frame else { break };
        writer.write_all(&one_line(frame.text)).await?;
    }
    writer.shutdown().await
}

/// Connects to `host:port`.
pub(super) async fn tcp(address: &str) -> Result<IoStreams, String> {
    let refused = |error: std::io::Error| format!("cannot connect to {address}: {error}");
    let stream = TcpStream::connect(address).await.map_err(refused)?;
    stream.set_nodelay(true).map_err(refused)?;
    let (reader, writer) = stream.into_split();
    Ok(IoStreams { reader: Box::new(reader), writer: Box::new(writer), guard: Box::new(()) })
}
