//! The first page: how the servers are doing, and where to connect. Written here, without a script; it shows what the
//! agent role may see and nothing else.

use crate::App;
use gantry_runtime::servers::{Light, ServerStatus};
use http::header;
use http::{HeaderMap, HeaderName};

/// What the browser may do with the page: show it, with the style and the picture that are in it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The headers that go with the page.
pub(super) const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_TYPE, "text/html; charset=utf-8"),
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
];

/// The page, for a browser that came by this host.
pub(super) fn render(app: &App, headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let servers = app.runtime.servers();
    let tools = app.runtime.pool().tools().len();
    fill(&[
        ("version", env!("CARGO_PKG_VERSION")),
        ("host", &escaped(host)),
        ("summary", &summary(&servers, tools)),
        ("servers", &table(&servers)),
    ])
}

/// The template with its gaps filled. What fills one is not looked at for further gaps.
fn fill(values: &[(&str, &str)]) -> String {
    let mut page = String::new();
    let mut rest = include_str!("page.html");
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        page.push_str(before);
        page.push_str(values.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value));
        rest = after;
    }
    page + rest
}

/// How many there are of each light, and how many tools in all, Gantry's own among them.
fn summary(servers: &[ServerStatus], tools: usize) -> String {
    let lights = [Light::Green, Light::Yellow, Light::Red, Light::Off].into_iter().filter_map(|light| {
        let count = servers.iter().filter(|server| server.light == light).count();
        (count > 0).then(|| format!("{count} {}", name(light)))
    });
    lights.chain([format!("{tools} tools")]).collect::<Vec<_>>().join(" · ")
}

fn table(servers: &[ServerStatus]) -> String {
    if servers.is_empty() {
        return "<p>There are none yet. Write them under <code>mcpServers</code> in <code>gantry.yaml</code>, in the \
                shape that your editor uses, or try <code>gantry servers add --help</code>.</p>"
            .to_owned();
    }
    let rows: String = servers.iter().map(row).collect();
    format!(
        "<table><tr><th>Server</th><th>Status</th><th class=\"n\">Tools</th><th class=\"n\">Protocol</th></tr>{rows}\
         </table>\n    <p class=\"hint\">As it is now; reload to look again. <code>gantry doctor</code> says why one \
         is not green.</p>"
    )
}

fn row(server: &ServerStatus) -> String {
    let light = name(server.light);
    format!(
        "\n<tr><td>{}</td><td><span class=\"light {light}\" role=\"img\" aria-label=\"{light}\" title=\"{light}\">\
         </span>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
        escaped(&server.id),
        escaped(server.status),
        server.tools,
        server.era.map_or_else(|| "—".to_owned(), escaped)
    )
}

fn name(light: Light) -> &'static str {
    match light {
        Light::Green => "green",
        Light::Yellow => "yellow",
        Light::Red => "red",
        Light::Off => "off",
    }
}

/// A text that a browser shows and does not obey.
fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '"' => shown.push_str("&quot;"),
            '\'' => shown.push_str("&#39;"),
            c if c.is_control() => shown.push(' '),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_shown_and_not_obeyed() {
        assert_eq!(escaped("<b a='\"&\n"), "&lt;b a=&#39;&quot;&amp; ");
    }

    #[test]
    fn what_fills_a_gap_has_no_gaps_of_its_own() {
        let page = fill(&[("host", "{{version}}"), ("version", "1")]);
        assert!(page.contains("http://{{version}}/mcp"));
        assert!(page.contains("<small>1</small>"));
        assert_eq!(page.matches("{{").count(), page.matches("{{version}}").count());
    }
}
