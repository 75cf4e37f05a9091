//! The first page: how the servers are doing, which agents there are, and where to connect. Written here, without a
//! script; it shows what the agent role may see and nothing else.

use crate::api::agents;
use crate::api::query::Sender;
use crate::model::{Agent, HealthStatus, Server};
use gantry_runtime::projects::DEFAULT;
use http::{HeaderMap, header};

/// What the browser may do with the page: show it, with the style and the picture that are in it.
pub(super) const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page, for a browser that came by this host: what its sender may know of.
pub(super) fn render(sender: &Sender, headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let host = escaped(host);
    let projects = agents::visible_projects(sender);
    let mut servers = sender.app.projects.servers(None);
    servers.retain(|server| sender.can_access_project(&server.project));
    let agents: Vec<Agent> = agents::visible(sender, None).collect();
    fill(&[
        ("version", env!("CARGO_PKG_VERSION")),
        ("host", &host),
        ("summary", &summary(&servers, projects.iter().filter_map(|project| project.tools).sum())),
        ("servers", &server_table(&servers)),
        ("agents", &agent_section(&agents)),
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
fn summary(servers: &[Server], tools: usize) -> String {
    let lights = [HealthStatus::Green, HealthStatus::Yellow, HealthStatus::Red, HealthStatus::Off]
        .into_iter()
        .filter_map(|light| {
            let count = servers.iter().filter(|server| server.health == light).count();
            (count > 0).then(|| format!("{count} {}", light.as_str()))
        });
    lights.chain([format!("{tools} tools")]).collect::<Vec<_>>().join(" · ")
}

fn server_table(servers: &[Server]) -> String {
    if servers.is_empty() {
        return "<p>There are none yet. Write them under <code>mcpServers</code> in <code>gantry.yaml</code>, in the \
                shape that your editor uses, or try <code>gantry servers add --help</code>.</p>"
            .to_owned();
    }
    let rows: String = servers.iter().map(server_row).collect();
    format!(
        "<table><tr><th>Server</th><th>Status</th><th class=\"n\">Tools</th><th class=\"n\">Protocol</th></tr>\
         {rows}</table>\n    <p class=\"hint\">As it is now; reload to look again. <code>gantry doctor</code> says why \
         one is not green.</p>"
    )
}

fn server_row(server: &Server) -> String {
    let light = server.health.as_str();
    let agent =
        server.agent.as_ref().map(|agent| format!(" <span class=\"of\">for {}</span>", escaped(agent)));
    format!(
        "\n<tr><td>{}{}{}</td><td class=\"s\"><span class=\"light {light}\" role=\"img\" aria-label=\"{light}\" \
         title=\"{light}\"></span>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
        escaped(&server.id),
        of_project(&server.project),
        agent.unwrap_or_default(),
        escaped(&server.status),
        server.tools,
        server.era.as_deref().map_or_else(|| "—".to_owned(), escaped)
    )
}

/// The project of something, where that is not the one that is meant anyway.
fn of_project(project: &str) -> String {
    if project == DEFAULT {
        return String::new();
    }
    format!(" <span class=\"of\">in {}</span>", escaped(project))
}

/// The agents and which of them are active; nothing where there are none.
fn agent_section(agents: &[Agent]) -> String {
    if agents.is_empty() {
        return String::new();
    }
    let rows: String = agents.iter().map(agent_row).collect();
    format!(
        "<section class=\"wide\">\n    <h2>Agents</h2>\n    <table><tr><th>Agent</th><th>What for</th>\
         <th class=\"n\">Tools</th></tr>{rows}</table>\n    <p class=\"hint\">Callers who name no agent are callers of \
         the active one, if there is one. <code>gantry agents switch NAME</code> makes another one active.</p>\n  </section>"
    )
}

fn agent_row(agent: &Agent) -> String {
    format!(
        "\n<tr><td>{}{}{}</td><td><div class=\"short\">{}</div></td><td class=\"n\">{}</td></tr>",
        escaped(&agent.name),
        of_project(&agent.project),
        if agent.active { "<span class=\"badge\">active</span>" } else { "" },
        escaped(agent.description.as_deref().unwrap_or_default()),
        agent.tools.map_or_else(|| "—".to_owned(), |tools| tools.to_string())
    )
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

    fn agent(name: &str, project: &str, active: bool) -> Agent {
        Agent {
            name: name.into(),
            project: project.into(),
            description: Some(format!("<{}>", "x".repeat(200))),
            model: None,
            active,
            tools: active.then_some(12),
            aliases: None,
        }
    }

    #[test]
    fn the_active_agent_is_marked_and_projects_other_than_the_default_one_are_named() {
        let section = agent_section(&[agent("researcher", "default", true), agent("writer", "other", false)]);
        let researcher =
            "<td>researcher<span class=\"badge\">active</span></td><td><div class=\"short\">&lt;xxx";
        assert!(section.contains(researcher), "{section}");
        assert!(section.contains("<td class=\"n\">12</td>") && section.contains("—"), "{section}");
        assert!(section.contains("<td>writer <span class=\"of\">in other</span></td>"), "{section}");
        assert_eq!(agent_section(&[]), "");
    }
}
