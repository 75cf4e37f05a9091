//! Tools that do what no tool should.

use super::super::exit;
use super::super::link::Request;
use super::super::server::Frame;
use super::super::wire::Reply;
use super::{Arguments, text};

const MEGABYTE: usize = 1024 * 1024;

/// A line of a flood, without its end: long enough to be quick, short enough for any limit.
const GARBAGE_LINE_BYTES: usize = 1023;

pub(super) async fn call(request: &Request, name: &str, arguments: &Arguments) -> Option<Reply> {
    Some(match name {
        "die" => die(request),
        "hang" => {
            request.stopped().await;
            Reply::Silence
        }
        "hang-up" => hang_up(request).await,
        "flood" => flood(request, arguments.mb).await,
        "long-line" => text(&"x".repeat(arguments.mb * MEGABYTE)),
        "bad-json" => {
            Reply::Verbatim(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":["#, request.id))
        }
        "forget" => {
            request.link.session.state.lock().unwrap().version = None;
            text("forgotten")
        }
        _ => return None,
    })
}

/// Exits; the journal shows how often it was called.
pub(super) fn die(request: &Request) -> ! {
    request.server().journal(&format!("died in {}", request.params.name));
    exit(7, &format!("it was told to die in {}", request.params.name))
}

/// Closes the connection; the journal shows how often it was called.
pub(super) async fn hang_up(request: &Request) -> Reply {
    request.server().journal(&format!("hung up in {}", request.params.name));
    request.send(Frame::HangUp).await;
    Reply::Silence
}

async fn flood(request: &Request, megabytes: usize) -> Reply {
    let lines =
        format!("{}\n", "garbage ".repeat(GARBAGE_LINE_BYTES / 8)).repeat(MEGABYTE / GARBAGE_LINE_BYTES);
    for _ in 0..megabytes {
        request.send(Frame::Garbage(lines.clone())).await;
    }
    text("flooded")
}
