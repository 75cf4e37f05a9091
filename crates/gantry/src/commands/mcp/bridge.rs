//! Standard input and output in front of the server that already runs on the data folder, so that its queues, cache
//! and events are the client's too. Each line becomes a frame of a WebSocket to the server, and each frame a line.

use crate::client::encoded;
use anyhow::Context as _;
use gantry_egress::{LocalServer, SocketReader, SocketWriter};
use gantry_mcp::error::code::PARSE_ERROR;
use gantry_mcp::lines::{self, Line, Lines};
use tokio::sync::mpsc;

/// Answers that wait to be written.
const ANSWERS: usize = 64;

/// Carries lines until the client closes its end and every answer is written.
pub(super) async fn run(server: LocalServer, project: &str, agent: Option<&str>) -> anyhow::Result<()> {
    let mut path = format!("/ws/{}", encoded(project));
    if let Some(agent) = agent {
        path.push_str(&format!("/agents/{}", encoded(agent)));
    }
    let (reader, writer) = server.websocket(&path).await?;
    let (answers, written) = mpsc::channel::<String>(ANSWERS);
    let writing = tokio::spawn(lines::write(tokio::io::stdout(), written));
    let saying = say(writer, answers.clone());
    let heard = tokio::select! {
        heard = hear(reader, answers) => heard,
        // What was asked before the end is still answered, so only a failure ends it here.
        said = async { match saying.await { Ok(()) => std::future::pending().await, Err(error) => error } } => Err(said),
    };
    let ended = writing.await?;
    heard?;
    ended.context("standard output broke")
}

/// Sends every line to the server, and then that there are no more.
async fn say(mut writer: SocketWriter, answers: mpsc::Sender<String>) -> anyhow::Result<()> {
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

/// Passes on what the server says until it ends the connection.
async fn hear(mut reader: SocketReader, answers: mpsc::Sender<String>) -> anyhow::Result<()> {
    while let Some(text) = reader.next().await.context("the Gantry server is gone; start the client again")? {
        if answers.send(text).await.is_err() {
            return Ok(()); // The client is gone; so is its interest.
        }
    }
    Ok(())
}

fn unreadable(message: &str) -> String {
    let error = serde_json::json!({ "code": PARSE_ERROR, "message": message });
    format!("{{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{error}}}")
}
