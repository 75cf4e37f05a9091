//! One message a line: stdio and TCP.

use super::super::connection::Connection;
use super::super::server::{Frame, Server};
use serde_json::json;
use std::io;
use std::sync::Arc;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader, BufWriter,
};
use tokio::sync::mpsc;

/// Bytes of a line that are read; the rest would be a message of its own, and a bad one.
const LINE_BYTES: u64 = 256 * 1024 * 1024;

/// Serves one connection until either side closes it.
pub(super) async fn serve<R, W>(server: &Arc<Server>, reader: R, writer: W) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (connection, frames) = Connection::open(server, json!({}));
    tokio::select! {
        ended = read(&connection, reader) => ended,
        ended = write(writer, frames) => ended,
    }
}

async fn read<R: AsyncRead + Unpin>(connection: &Connection, reader: R) -> io::Result<()> {
    connection.server.ready().await;
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while (&mut reader).take(LINE_BYTES).read_until(b'\n', &mut line).await? > 0 {
        connection.receive_text(&line).await;
        line.clear();
    }
    Ok(())
}

/// Writes what there is, and sends it on when nothing more waits: a flood is to be quick.
async fn write<W: AsyncWrite + Unpin>(writer: W, mut frames: mpsc::Receiver<Frame>) -> io::Result<()> {
    let mut writer = BufWriter::new(writer);
    while let Some(frame) = frames.recv().await {
        match frame {
            Frame::Answer(text, _) | Frame::Note(text) => {
                writer.write_all(format!("{text}\n").as_bytes()).await?;
            }
            Frame::Garbage(text) => writer.write_all(text.as_bytes()).await?,
            Frame::HangUp => return writer.flush().await,
        }
        if frames.is_empty() {
            writer.flush().await?;
        }
    }
    Ok(())
}
