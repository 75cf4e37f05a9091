//! Names that are reserved for Gantry's own tools.

use super::spelling::prefixes;
use super::{SEPARATOR, expand_at_syntax, sanitised};

/// Namespaces that no configured provider may take, in any case.
const RESERVED_NAMESPACES: [&str; 3] = ["agent", "rest", "router"];

/// Names of the tools that every agent run brings itself.
const RESERVED_TOOLS: [&str; 4] = ["final_report", "task_status", "batch", "tool_output"];

/// Gantry's own tools by which agents start agents; agents below the first one have them only by name.
pub(crate) const COORDINATION_TOOLS: [&str; 2] = ["spawn_agents", "list_available_agents"];

/// Whether every run brings a tool of this name itself.
pub(crate) fn is_reserved_tool(name: &str) -> bool {
    let own = name.split_once(SEPARATOR).filter(|(namespace, _)| namespace.eq_ignore_ascii_case("agent"));
    RESERVED_TOOLS.contains(&own.map_or(name, |(_, tool)| tool))
}

/// Whether a provider of this id would have names in a reserved namespace.
pub fn is_reserved_namespace(id: &str) -> bool {
    prefixes(id, id).iter().any(|prefix| is_within_reserved(prefix))
}

/// Whether a name that is displayed unchanged would pass for one of a run's own tools or of a reserved namespace, as it is
/// written or as calls, patterns and model interfaces may read it.
pub fn is_reserved_name(name: &str) -> bool {
    readings(name).iter().any(|it| RESERVED_TOOLS.contains(&it.as_str()) || is_within_reserved(it))
}

/// Whether a name that is displayed unchanged would pass for a tool that starts agents.
pub fn is_coordination_name(name: &str) -> bool {
    readings(name).iter().any(|it| COORDINATION_TOOLS.contains(&it.as_str()))
}

/// A name as it can be read. The name that models are shown keeps more of it than sanitising does, so it is reserved only
/// if the sanitised name is.
fn readings(name: &str) -> [String; 4] {
    let expanded = expand_at_syntax(name).into_owned();
    [name.to_owned(), sanitised(name), sanitised(&expanded), expanded]
}

fn is_within_reserved(name: &str) -> bool {
    let namespace = name.split_once(SEPARATOR).map(|(namespace, _)| namespace);
    namespace.is_some_and(|it| RESERVED_NAMESPACES.iter().any(|reserved| reserved.eq_ignore_ascii_case(it)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nam_3_a_reserved_name_is_one_however_it_is_read() {
        for name in [
            "final_report",
            "final.report",
            "tool-output",
            "agent__final_report",
            "agent..final_report",
            "Agent__x",
            "@router/handoff-to",
            "router__handoff-to",
            "@REST/x",
            "rest./x",
        ] {
            assert!(is_reserved_name(name), "{name}");
        }
        for name in ["agents__x", "agent_x", "report", "final_reports", "my_agent__x", "@x/agent__y", ""] {
            assert!(!is_reserved_name(name), "{name}");
        }
        assert!(is_coordination_name("spawn.agents") && !is_coordination_name("spawn"));
        assert!(is_reserved_tool("Agent__batch") && !is_reserved_tool("x__batch"));
    }

    #[test]
    fn nam_3_a_reserved_namespace_is_one_in_every_case_and_as_the_beginning_of_an_id() {
        for id in ["agent", "Agent", "REST", "router", "agent__x", "@agent/x", "rest/x", "@router"] {
            assert!(is_reserved_namespace(id), "{id}");
        }
        for id in ["agents", "agent-x", "my-agent", "re.st", "x/agent", "@x/agent"] {
            assert!(!is_reserved_namespace(id), "{id}");
        }
    }
}
