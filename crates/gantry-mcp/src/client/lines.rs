//! Lines over the pipes of a process and over TCP.

use super::duplex::Duplex;
use super::limits::MESSAGE_BYTES;
use super::queue::Frames;
use super::types::IoStreams;
use crate::lines::{Line, Lines, one_line};
use futures_util::FutureExt as _;
use tokio::io::{AsyncWrite, AsyncWriteExt as _, BufWriter};
use tokio::net::TcpStream;

pub(super) fn open(frames: Frames, streams: IoStreams) -> Duplex {
    let IoStreams { reader, writer, guard } = streams;
    Duplex::start(
        frames,
        Some(guard),
        |dispatcher| async move {
            let mut lines = Lines::new(reader);
            loop {
                match lines.next().await {
                    Ok(Some(Line::Whole(line))) => dispatcher.receive_bytes(&line, None),
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
    )
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

pub(super) async fn tcp(address: &str) -> Result<IoStreams, String> {
    let refused = |error: std::io::Error| format!("cannot connect to {address}: {error}");
    let stream = TcpStream::connect(address).await.map_err(refused)?;
    stream.set_nodelay(true).map_err(refused)?;
    let (reader, writer) = stream.into_split();
    Ok(IoStreams { reader: Box::new(reader), writer: Box::new(writer), guard: Box::new(()) })
}
