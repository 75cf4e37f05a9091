//! The first page: how the servers are doing, which agents there are, and where to connect. Written here, without a
//! script; it shows what the agent role may see and nothing else.

use crate::api::{agents, projects};
use crate::model::{Agent, Project};
use crate::{App, Identity};
use gantry_provider::{HealthStatus, ProviderStatus};
use gantry_runtime::projects::DEFAULT;
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

/// Agents that the page shows; the API lists all.
const AGENTS: usize = 50;

/// Characters of a description that it shows.
const DESCRIPTION: usize = 160;

/// The page, for a browser that came by this host: what its sender may know of.
pub(super) fn render(app: &App, who: &Identity, headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let host = escaped(host);
    let projects = projects::visible(app, who);
    let mut servers = app.projects.servers(None);
    servers.retain(|server| who.can_access_project(&server.project));
    let mut agents: Vec<Agent> = agents::visible(app, who, None).collect();
    let more = agents.split_off(agents.len().min(AGENTS)).len();
    fill(&[
        ("version", env!("CARGO_PKG_VERSION")),
        ("host", &host),
        ("summary", &summary(&servers, projects.iter().filter_map(|project| project.tools).sum())),
        ("servers", &server_table(&servers, projects.len() > 1)),
        ("agents", &agent_section(&agents, more, &projects)),
        ("doors", &doors(&host, &agents, &projects)),
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
fn summary(servers: &[ProviderStatus], tools: usize) -> String {
    let lights = [HealthStatus::Green, HealthStatus::Yellow, HealthStatus::Red, HealthStatus::Off]
        .into_iter()
        .filter_map(|light| {
            let count = servers.iter().filter(|server| server.health == light).count();
            (count > 0).then(|| format!("{count} {}", light.as_str()))
        });
    lights.chain([format!("{tools} tools")]).collect::<Vec<_>>().join(" · ")
}

fn server_table(servers: &[ProviderStatus], several: bool) -> String {
    if servers.is_empty() {
        return "<p>There are none yet. Write them under <code>mcpServers</code> in <code>gantry.yaml</code>, in the \
                shape that your editor uses, or try <code>gantry servers add --help</code>.</p>"
            .to_owned();
    }
    let rows: String = servers.iter().map(|server| server_row(server, several)).collect();
    let project = if several { "<th>Project</th>" } else { "" };
    format!(
        "<table><tr><th>Server</th>{project}<th>Status</th><th class=\"n\">Tools</th><th class=\"n\">Protocol</th></tr>\
         {rows}</table>\n    <p class=\"hint\">As it is now; reload to look again. <code>gantry doctor</code> says why \
         one is not green.</p>"
    )
}

fn server_row(server: &ProviderStatus, several: bool) -> String {
    let light = server.health.as_str();
    let agent =
        server.agent.as_ref().map(|agent| format!(" <span class=\"of\">for {}</span>", escaped(agent)));
    format!(
        "\n<tr><td>{}{}</td>{}<td class=\"s\"><span class=\"light {light}\" role=\"img\" aria-label=\"{light}\" \
         title=\"{light}\"></span>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
        escaped(&server.id),
        agent.unwrap_or_default(),
        project_cell(&server.project, several),
        escaped(&server.status),
        server.tools,
        server.era.as_deref().map_or_else(|| "—".to_owned(), escaped)
    )
}

fn project_cell(project: &str, several: bool) -> String {
    if several { format!("<td>{}</td>", escaped(project)) } else { String::new() }
}

/// The agents and which of them are active; nothing where there are none.
fn agent_section(agents: &[Agent], more: usize, projects: &[Project]) -> String {
    let several = projects.len() > 1;
    let active = active(projects);
    if agents.is_empty() && active.is_none() {
        return String::new();
    }
    let rows: String = agents.iter().map(|agent| agent_row(agent, several)).collect();
    let project = if several { "<th>Project</th>" } else { "" };
    let more = match more {
        0 => String::new(),
        more => format!(" <a href=\"/api/v1/agents\">{more} more</a> are not shown."),
    };
    let active = active.unwrap_or_else(|| "no agent is active".to_owned());
    format!(
        "<section class=\"wide\">\n    <h2>Agents <small>{active}</small></h2>\n    <table><tr><th>Agent</th>{project}\
         <th>What for</th><th class=\"n\">Tools</th></tr>{rows}</table>\n    <p class=\"hint\">Callers who name no agent \
         are callers of the active one, if there is one. <code>gantry agents switch NAME</code> makes another one \
         active.{more}</p>\n  </section>"
    )
}

/// Which agents are active, in words; nothing if none is.
fn active(projects: &[Project]) -> Option<String> {
    let of = |project: &Project| match projects.len() {
        0 | 1 => String::new(),
        _ => format!(" in {}", escaped(&project.name)),
    };
    let active = projects.iter().filter_map(|it| Some(format!("{}{}", escaped(it.active.as_ref()?), of(it))));
    match active.collect::<Vec<_>>().as_slice() {
        [] => None,
        [one] => Some(format!("active agent: {one}")),
        several => Some(format!("active agents: {}", several.join(" · "))),
    }
}

fn agent_row(agent: &Agent, several: bool) -> String {
    let description = agent.description.as_deref().unwrap_or_default();
    let mut shown: String = description.chars().take(DESCRIPTION).collect();
    if shown.len() < description.len() {
        shown.push('…');
    }
    format!(
        "\n<tr><td>{}{}</td>{}<td>{}</td><td class=\"n\">{}</td></tr>",
        escaped(&agent.name),
        if agent.active { "<span class=\"badge\">active</span>" } else { "" },
        project_cell(&agent.project, several),
        escaped(&shown),
        agent.tools.map_or_else(|| "—".to_owned(), |tools| tools.to_string())
    )
}

/// Where to come in as an agent, or to another project.
fn doors(host: &str, agents: &[Agent], projects: &[Project]) -> String {
    let door = |what: &str, path: String| {
        format!("<dt>{what}</dt><dd><code class=\"copy\">http://{host}/mcp/{}</code></dd>", escaped(&path))
    };
    let another = projects.iter().find(|project| *project.name != *DEFAULT);
    let another = another.map(|project| door("In another project", project.name.to_string()));
    let agent = agents.first().map(|agent| {
        door("As one agent, with its tools alone", format!("{}/agents/{}", agent.project, agent.name))
    });
    another.into_iter().chain(agent).collect::<Vec<_>>().join("\n      ")
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

    fn project(name: &str, active: Option<&str>) -> Project {
        Project { name: name.into(), active: active.map(Into::into), agents: 0, servers: 0, tools: None }
    }

    #[test]
    fn the_active_agent_is_named_and_projects_only_where_there_are_several() {
        let agents = [agent("researcher", "default", true), agent("writer", "default", false)];
        let one = agent_section(&agents, 0, &[project("default", Some("researcher"))]);
        assert!(one.contains("<small>active agent: researcher</small>"), "{one}");
        assert!(one.contains("researcher<span class=\"badge\">active</span></td><td>&lt;xxx"), "{one}");
        assert!(one.contains("…</td><td class=\"n\">12</td>") && one.contains("—"), "{one}");
        assert!(!one.contains("<th>Project</th>") && !one.contains("more</a>"), "{one}");
        let several = [project("default", None), project("other", Some("writer"))];
        let two = agent_section(&agents, 3, &several);
        assert!(two.contains("active agent: writer in other</small>"), "{two}");
        assert!(two.contains("<th>Project</th>") && two.contains(">3 more</a>"), "{two}");
        assert_eq!(agent_section(&[], 0, &several[..1]), "");
    }

    #[test]
    fn there_is_a_door_for_an_agent_and_for_another_project() {
        let agents = [agent("researcher", "default", false)];
        let all = doors("h", &agents, &[project("default", None), project("other", None)]);
        assert!(
            all.contains("http://h/mcp/default/agents/researcher<") && all.contains("http://h/mcp/other<")
        );
        assert_eq!(doors("h", &[], &[project("default", None)]), "");
    }
}
