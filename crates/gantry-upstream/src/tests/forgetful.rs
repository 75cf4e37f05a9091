//! A server over HTTP that forgets its sessions soon.

use super::memory::started_at;
use super::*;
use gantry_mcp::client::UpstreamError;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Answers a handshake and lists; it knows the session of no other request.
fn answer(verb: &str, request: &Value) -> (u16, Value) {
    let result = match request["method"].as_str() {
        _ if verb != "POST" => return (405, json!({})),
        Some("initialize") => json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} } }),
        Some("notifications/initialized") => return (202, json!({})),
        Some("tools/list") => json!({ "tools": [] }),
        _ => return (404, json!({})),
    };
    (200, json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }))
}

async fn serve(stream: TcpStream) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (Vec::new(), 0);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            let line = line.trim().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            head.push(line);
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let verb = head[0].split(' ').next().unwrap().to_ascii_uppercase();
        let (status, body) = answer(&verb, &serde_json::from_slice(&body).unwrap_or_default());
        let body = if status == 200 { body.to_string() } else { String::new() };
        let head = "content-type: application/json\r\nmcp-session-id: s\r\ncontent-length:";
        let text = format!("HTTP/1.1 {status} X\r\n{head} {}\r\n\r\n{body}", body.len());
        stream.write_all(text.as_bytes()).await?;
    }
}

#[tokio::test]
async fn a_server_that_forgets_its_sessions_soon_is_reconnected_at_once_every_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    let replica = Replica::new("1".into(), Transport::Http { url, headers: Vec::new() }, None);
    let server = started_at(&context(Arc::<Changes>::default()), vec![replica]).await;
    let mut picked = server.pick_any().unwrap();
    for n in 0..4 {
        let lost = picked.ready.connection.ping(Duration::from_secs(10)).await;
        assert!(matches!(lost, Err(UpstreamError::NotSent(_))), "{n}: {lost:?}");
        let next = server.pick_reconnected(None, &CancellationToken::new()).await;
        picked = next.unwrap_or_else(|| panic!("{n}: it is not tried at once"));
    }
    server.close().await;
}
