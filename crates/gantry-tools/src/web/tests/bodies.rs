//! What comes back, and how much of it.

use super::*;

#[tokio::test]
async fn a_result_has_the_status_the_headers_and_the_body() {
    let headers = "Content-Type: application/json\r\nX-Two: a\r\nx-two: b\r\nSet-Cookie: s3cret\r\nX-Bytes: \u{00e9}\r\n";
    let answer = String::from_utf8(ok(headers, "{\"a\":\"ä\"}")).unwrap().replace("200 OK", "404 Not Found");
    let server = Server::saying(answer).await;
    let result = Bench::for_server(&server).fetch(&server.url("/x")).await.done();
    assert_eq!((&result["status"], &result["body"]), (&json!(404), &json!("{\"a\":\"ä\"}")));
    assert_eq!(
        (&result["contentType"], &result["url"]),
        (&json!("application/json"), &json!(server.url("/x")))
    );
    assert_eq!(result["headers"]["x-two"], "a, b");
    assert!(!result.to_string().contains("s3cret"), "{result}");
    assert_eq!((result.get("truncated"), result.get("encoding")), (None, None));
}

#[tokio::test]
async fn text_is_read_in_its_own_characters_and_the_rest_is_base64() {
    let check = async |kind: &str, body: &[u8], text: &str, encoding: Option<&str>| {
        let kind = if kind.is_empty() { String::new() } else { format!("content-type: {kind}\r\n") };
        let server = Server::saying(ok(&kind, body)).await;
        let result = Bench::for_server(&server).fetch(&server.url("/")).await.done();
        assert_eq!(
            (&result["body"], result.get("encoding")),
            (&json!(text), encoding.map(|it| json!(it)).as_ref()),
            "{kind}"
        );
    };
    check("text/plain; charset=utf-8", "grün".as_bytes(), "grün", None).await;
    check("text/plain; charset=ISO-8859-1", b"gr\xfcn", "grün", None).await;
    check("text/plain; Charset=\"windows-1252\"", b"\x80", "€", None).await;
    check("text/plain", b"gr\xfcn", "grün", None).await;
    check("text/html", b"<meta charset='shift_jis'>\x93\xfa", "<meta charset='shift_jis'>日", None).await;
    check("application/json", b"\xef\xbb\xbf{}", "{}", None).await;
    check("text/plain; charset=utf-16le", b"a\0b\0", "ab", None).await;
    check("image/svg+xml", b"<svg/>", "<svg/>", None).await;
    check("", b"plain", "plain", None).await;
    check("application/octet-stream", b"text after all", "text after all", None).await;
    check("application/octet-stream", b"a\0b", "YQBi", Some("base64")).await;
    check("image/png", b"\x89PNG\xff", "iVBOR/8=", Some("base64")).await;
    check("text/plain", b"", "", None).await;
}

#[tokio::test]
async fn a_page_is_read_as_markdown_when_asked() {
    let page = "<html><title>T</title><nav>no</nav><h1>Head</h1><p>See <a href='/x'>there</a></p><script>no()</script>";
    let server = Server::saying(ok("content-type: text/html; charset=utf-8\r\n", page)).await;
    let bench = Bench::for_server(&server);
    let result =
        bench.call("web_fetch", json!({ "url": server.url("/"), "format": "markdown" })).await.done();
    assert_eq!(result["body"], format!("# Head\n\nSee [there]({})", server.url("/x")));
    assert_eq!(result["title"], "T");
    assert!(server.asked().join("").contains("accept: text/markdown"));
    assert_eq!(bench.fetch(&server.url("/")).await.done()["body"], page);
    let plain = Server::saying(ok("content-type: text/plain\r\n", "<b>")).await;
    let bench = Bench::for_server(&plain);
    let result = bench.call("web_fetch", json!({ "url": plain.url("/"), "format": "markdown" })).await.done();
    assert_eq!(result["body"], "<b>");
}

#[tokio::test]
async fn a_page_of_a_hundred_thousand_nested_tags_is_read() {
    let many = 100_000;
    let closed = format!("{}words{}", "<div>".repeat(many), "</div>".repeat(many));
    let pages = [
        (closed, "words"),
        (format!("{}words", "<b>".repeat(many)), "words"),
        (format!("words{}", "<table><tr><td>".repeat(many / 3)), "words"),
        (format!("words{}", "<math><mi><table>".repeat(many / 3)), "words"),
        (format!("words{}", "<svg><foreignObject>".repeat(many / 2)), "words"),
    ];
    for (page, words) in pages {
        let server = Server::saying(ok("content-type: text/html\r\n", &page)).await;
        let arguments = json!({ "url": server.url("/"), "format": "markdown" });
        let result = Bench::for_server(&server).call("web_fetch", arguments).await.done();
        let body = result["body"].as_str().unwrap();
        assert!(body.contains(words) && body.len() < 2000, "{}", body.len());
    }
}

/// Bits, as deflate packs them.
#[derive(Default)]
struct Bits(Vec<u8>, u32);

impl Bits {
    /// The low bits first, or for codes the high ones.
    fn push(&mut self, value: u32, count: u32, high_first: bool) {
        for n in 0..count {
            let bit = value >> if high_first { count - 1 - n } else { n } & 1;
            if self.1.is_multiple_of(8) {
                self.0.push(0);
            }
            *self.0.last_mut().unwrap() |= u8::try_from(bit << (self.1 % 8)).unwrap();
            self.1 += 1;
        }
    }
}

/// Very few bytes that unpack to so many times 258 letters.
fn bomb(times: usize) -> Vec<u8> {
    let mut bits = Bits::default();
    bits.push(0b011, 3, false);
    bits.push(0x30 + u32::from(b'a'), 8, true);
    for _ in 0..times {
        // The longest run, at distance one.
        bits.push(0b1100_0101, 8, true);
        bits.push(0, 5, true);
    }
    bits.push(0, 7, true);
    let mut gzip = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    gzip.extend(bits.0);
    gzip
}

/// The same bytes, packed as they are.
fn gzip(data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap();
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    packed.extend(length.to_le_bytes());
    packed.extend((!length).to_le_bytes());
    packed.extend(data);
    let crc = data.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 },
        )
    });
    packed.extend((!crc).to_le_bytes());
    packed.extend(u32::from(length).to_le_bytes());
    packed
}

#[tokio::test]
async fn packed_bodies_are_unpacked_up_to_the_limit() {
    let kind = "content-type: text/plain\r\ncontent-encoding: gzip\r\n";
    let server = Server::saying(ok(kind, gzip("grün".as_bytes()))).await;
    let result = Bench::for_server(&server).fetch(&server.url("/")).await.done();
    assert_eq!((&result["body"], result["headers"].get("content-encoding")), (&json!("grün"), None));
    assert!(server.asked().join("").contains("accept-encoding: "), "{:?}", server.asked());
    // 1.6 MB that would be 258 MB.
    let server = Server::saying(ok(kind, bomb(1_000_000))).await;
    let result = Bench::for_server(&server).fetch(&server.url("/")).await.done();
    assert_eq!(
        (result["body"].as_str().unwrap().len(), &result["truncated"]),
        (page::BODY_BYTES, &json!(true))
    );
    let other = Server::saying(ok("content-type: text/plain\r\ncontent-encoding: br\r\n", b"\x8b\x00")).await;
    let result = Bench::for_server(&other).fetch(&other.url("/")).await.done();
    assert_eq!((&result["body"], &result["encoding"]), (&json!("iwA="), &json!("base64")));
    let broken = Server::saying(ok(kind, b"no gzip")).await;
    let (code, message) = Bench::for_server(&broken).fetch(&broken.url("/")).await.code_and_message();
    assert!(code == "EXECUTION_ERROR" && message.contains("broke"), "{message}");
}

/// A server that begins an answer, and then sends this over and over, or nothing any more.
async fn going_on(start: &'static str, more: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                stream.read_u8().await.unwrap();
                stream.write_all(start.as_bytes()).await.unwrap();
                while !more.is_empty() && stream.write_all(more).await.is_ok() {}
                // Until the other side hangs up.
                stream.read_to_end(&mut Vec::new()).await.ok();
            });
        }
    });
    url
}

#[tokio::test]
async fn a_body_without_end_is_cut() {
    // The limit is within a character.
    let url = going_on("HTTP/1.1 200 OK\r\n\r\na", "ä".repeat(4096).leak().as_bytes()).await;
    let result = Bench::new(&[&url]).fetch(&url).await.done();
    let body = result["body"].as_str().unwrap();
    assert!(body.len() == page::BODY_BYTES - 1 && body.ends_with('ä'), "{}", body.len());
    assert_eq!(result["truncated"], true);
}

#[tokio::test]
async fn who_does_not_answer_in_time_is_not_waited_for() {
    for (start, method) in
        [("", "GET"), ("", "POST"), ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx", "GET")]
    {
        let url = going_on(start, b"").await;
        let arguments = json!({ "url": url, "timeout": 0.2, "method": method });
        let Answer::Failed(fault) = Bench::new(&[&url]).call("web_fetch", arguments).await else {
            panic!("{start}")
        };
        assert_eq!(fault.error.code.as_str(), "TIMEOUT");
        // What was posted may have arrived.
        let effect = if method == "POST" { EffectState::Possible } else { EffectState::None };
        assert_eq!(fault.effect, effect);
        assert!(fault.error.message.contains("within 0.2 s"), "{}", fault.error.message);
    }
}

#[tokio::test]
async fn a_broken_answer_is_reported_without_its_details() {
    for answer in ["", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx", "SSH-2.0-OpenSSH\r\n"] {
        let server = Server::saying(answer).await;
        let (code, message) = Bench::for_server(&server).fetch(&server.url("/")).await.code_and_message();
        assert!(code == "EXECUTION_ERROR" && !message.contains("SSH"), "{answer}: {message}");
    }
    let server = Server::saying("").await;
    let arguments = json!({ "url": server.url("/"), "method": "POST" });
    let answer = Bench::for_server(&server).call("web_fetch", arguments).await;
    assert!(
        matches!(answer, Answer::Failed(gantry_core::CallFailure { effect: EffectState::Possible, .. })),
        "{answer:?}"
    );
}

#[tokio::test]
async fn more_headers_than_anybody_reads_are_left_out() {
    let many: String = (0..20).map(|n| format!("x-{n}: {}\r\n", "v".repeat(5000))).collect();
    let server = Server::saying(ok(&many, "x")).await;
    let result = Bench::for_server(&server).fetch(&server.url("/")).await.done();
    assert_eq!(result["truncated"], true);
    assert!(result["headers"].to_string().len() < 70_000);
}
