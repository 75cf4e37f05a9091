//! The page at `/`: how the servers are doing and where to connect, for every browser on this machine.

#![cfg(test)]

use gantry_testkit::TestDir;
use gantry_testkit::faulty::Faulty;
use serde_json::json;

/// A value that must never be seen.
const SECRET: &str = "hunter2-and-more";

#[test]
fn ups_4_the_page_shows_the_lights() {
    let waiting = "cd \"$0\"; until test -f go; do sleep 0.02; done; exec $FAULTY";
    let home = TestDir::new().config(
        &json!({ "mcpServers": {
            "a green/one": { "command": Faulty::program() },
            "b-yellow": { "command": "sh", "args": ["-c", waiting, "."], "env": { "FAULTY": Faulty::program() },
                          "startupTimeoutMs": 600_000 },
            "c-red": { "command": "gantry-no-such-program", "env": { "TOKEN": SECRET } },
            "d-off": { "command": "x", "enabled": false },
            "e-off": { "command": "x", "env": { "TOKEN": format!("{SECRET}${{NO_SUCH_TOKEN}}") } },
        } })
        .to_string(),
    );
    let server = home.serve();
    let light = |id: &str| server.get_as_admin(&format!("/api/v1/servers/{id}")).json()["light"].clone();
    server.eventually("they are settled", || light("a%20green%2Fone") == "green" && light("c-red") == "red");
    let page = server.get("/");
    assert_eq!(page.status, 200);
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    let policy = page.headers["content-security-policy"].to_str().expect("text");
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    let row = |id: &str| {
        let rows = page.text.split("<tr>").find(|row| row.starts_with(&format!("<td>{id}</td>")));
        rows.unwrap_or_else(|| panic!("no row of {id}: {}", page.text)).to_owned()
    };
    for (id, light, status) in [
        ("a green/one", "green", "ready"),
        ("b-yellow", "yellow", "starting"),
        ("c-red", "red", "down"),
        ("d-off", "off", "off"),
        ("e-off", "off", "off"),
    ] {
        let row = row(id);
        assert!(
            row.contains(&format!("class=\"light {light}\"")) && row.contains(&format!(">{status}<")),
            "{row}"
        );
    }
    let tools = server.get("/api/v1/servers").json()["items"][0]["tools"].to_string();
    let green = row("a green/one");
    assert!(green.contains(&format!(">{tools}<")) && green.contains(">2025-11-25<"), "{green}");
    let address = server.address;
    for words in [
        &format!(">http://{address}/mcp<"),
        &format!(">http://{address}/sse<"),
        &format!(">ws://{address}/ws<"),
        ">gantry mcp<",
        "needs the key",
        "rel=\"icon\" href=\"data:",
        "1 green · 1 yellow · 1 red · 2 off · ",
    ] {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    // What went wrong, and what is secret, is for those who administer and ask for it.
    let seen_by_admin = server.get_as_admin("/").text;
    for text in [&page.text, &seen_by_admin] {
        for hidden in [SECRET, "no-such-program", "NO_SUCH_TOKEN", &server.key, "<script", "{{"] {
            assert!(!text.contains(hidden), "{hidden}: {text}");
        }
    }
    home.write("go", "");
    server.eventually("the page follows", || {
        let text = server.get("/").text;
        text.contains("2 green · 1 red") && !text.contains("class=\"light yellow\"")
    });
}

#[test]
fn the_page_says_which_of_its_links_need_the_key() {
    let home = TestDir::new();
    let server = home.serve();
    let empty = server.get("/").text;
    assert!(empty.contains("mcpServers") && !empty.contains("<table"), "{empty}");
    // Every link of it leads somewhere; without the key, those that say so are refused.
    let links: Vec<&str> =
        empty.split("<a href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(links.len() > 6, "{links:?}");
    for link in links {
        let entry =
            empty.split(&format!("<a href=\"{link}\"")).nth(1).and_then(|rest| rest.split("</li>").next());
        let status = if entry.expect("an entry").contains("needs the key") { 403 } else { 200 };
        assert_eq!(server.get(link).status, status, "{link}");
        assert_eq!(server.get_as_admin(link).status, 200, "{link}");
    }
}
