//! Lines over pipes and sockets.

use super::{
    dispatcher::Dispatcher,
    duplex::{Duplex, Ends, Frame},
    limits::{MESSAGE_BYTES, WRITE_BROKE},
    types::Wires,
};
use crate::lines::{Line, Lines, one_line};
use std::sync::Arc;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _, BufWriter},
    net::TcpStream,
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

/// A link over these pipes.
pub(super) fn open(dispatcher: &Arc<Dispatcher>, wires: Wires) -> Duplex {
    let Wires { reader, writer, guard } = wires;
    let (duplex, ends) = Duplex::open(dispatcher, Some(guard));
    let Ends { dispatcher, outbox, frames, no_more, stop } = ends;
    tokio::spawn({
        let (dispatcher, stop) = (Arc::clone(&dispatcher), stop.clone());
        async move {
            let write = write(writer, frames, &no_more);
            let written = tokio::select! { written = write => written, () = stop.cancelled() => Ok(()) };
            if let Err(error) = written {
                // What the reader finds out says more; it comes at once if the process has ended.
                tokio::time::sleep(WRITE_BROKE).await;
                dispatcher.end(format!("the server does not take input: {error}"));
            }
        }
    });
    tokio::spawn(async move {
        let read = async {
            let mut lines = Lines::new(reader);
            loop {
                match lines.next().await {
                    Ok(Some(Line::Whole(line))) => match std::str::from_utf8(&line) {
                        Ok(text) => dispatcher.receive(text, None, &outbox),
                        Err(_) => dispatcher.count_garbage("(not UTF-8)"),
                    },
                    Ok(Some(Line::TooLong)) => {
                        dispatcher
                            .fail_all(&format!("the server sent a line of more than {MESSAGE_BYTES} bytes"));
                    }
                    Ok(None) => return "the server closed its output".to_owned(),
                    Err(error) => return error.to_string(),
                }
                // A flood of lines must not keep others from their turn.
                tokio::task::coop::consume_budget().await;
            }
        };
        tokio::select! {
            reason = read => dispatcher.end(reason),
            () = stop.cancelled() => dispatcher.end("the connection was dropped"),
        }
    });
    duplex
}

async fn write(
    writer: impl AsyncWrite + Unpin,
    mut frames: mpsc::Receiver<Frame>,
    no_more: &CancellationToken,
) -> std::io::Result<()> {
    let mut writer = BufWriter::new(writer);
    while let Some(frame) = Ends::next_frame(&mut frames, no_more).await {
        writer.write_all(&one_line(frame.text)).await?;
        if frames.is_empty() {
            writer.flush().await?;
        }
    }
    writer.shutdown().await
}

/// Pipes over TCP to `host:port`.
pub(super) async fn tcp(address: &str) -> Result<Wires, String> {
    let refused = |error: std::io::Error| format!("cannot connect to {address}: {error}");
    let stream = TcpStream::connect(address).await.map_err(refused)?;
    stream.set_nodelay(true).map_err(refused)?;
    let (reader, writer) = stream.into_split();
    Ok(Wires { reader: Box::new(reader), writer: Box::new(writer), guard: Box::new(()) })
}
