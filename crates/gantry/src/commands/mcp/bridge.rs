//! Connects standard input and output to the running server by WebSocket, so that the client shares its queues, cache and
//! events. Each line becomes a frame, and each frame a line.

use crate::client::encoded;
use anyhow::Context as _;
use gantry_egress::{LocalServer, SocketReader, SocketWriter};
use gantry_mcp::error::code::PARSE_ERROR;
use gantry_mcp::lines::{self, Line, Lines};
use tokio::sync::mpsc;

/// How many answers may wait to be written.
const ANSWER_QUEUE: usize = 64;

/// Forwards lines until the client closes standard input and every answer is written.
pub(super) async fn run(server: &LocalServer, project: &str, agent: Option<&str>) -> anyhow::Result<()> {
    let mut path = format!("/ws/{}", encoded(project));
    if let Some(agent) = agent {
        path.push_str(&format!("/agents/{}", encoded(agent)));
    }
    let (reader, writer) = server.websocket(&path).await?;
    let (answers, queue) = mpsc::channel::<String>(ANSWER_QUEUE);
    let writing = tokio::spawn(lines::write(tokio::io::stdout(), queue));
    let sending = send(writer, answers.clone());
    let received = tokio::select! {
        received = receive(reader, answers) => received,
        // At the end of the input, requests before it are still answered; only an error ends the bridge here.
        error = async { match sending.await { Ok(()) => std::future::pending().await, Err(error) => error } } => Err(error),
    };
    let written = writing.await?;
    received?;
    written.context("standard output broke")
}

/// Sends every line to the server, and an empty frame at the end of the input.
async fn send(mut writer: SocketWriter, answers: mpsc::Sender<String>) -> anyhow::Result<()> {
    let mut lines = Lines::new(tokio::io::stdin());
    while let Some(line) = lines.next().await.context("standard input broke")? {
        match line {
            Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => {}
            Line::Whole(line) => match String::from_utf8(line) {
                Ok(text) => writer.send(text).await?,
                Err(_) => answers.send(unreadable("the line is not UTF-8 text")).await?,
            },
            Line::TooLong => answers.send(unreadable("the line is too long")).await?,
        }
    }
    drop(answers);
    Ok(writer.send(String::new()).await?)
}

async fn receive(mut reader: SocketReader, answers: mpsc::Sender<String>) -> anyhow::Result<()> {
    while let Some(text) = reader.next().await.context("the Gantry server is gone; start the client again")? {
        if answers.send(text).await.is_err() {
            return Ok(()); // The client has closed standard output.
        }
    }
    Ok(())
}

fn unreadable(message: &str) -> String {
    let error = serde_json::json!({ "code": PARSE_ERROR, "message": message });
    format!("{{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{error}}}")
}
