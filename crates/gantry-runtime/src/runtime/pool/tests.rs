//! Tests of what gets into a pool and what does not.

use super::*;
use crate::context::CallCx;
use crate::options::ProviderOptions;
use crate::provider::{BoxFuture, Provider, RawOutput};
use gantry_core::policy::OwnVerdict;
use gantry_core::tool::{Annotations, Origin, OwnRule};
use gantry_core::{Fault, Permit, Refusal, ResolvedCall};

#[derive(Debug)]
struct Fake {
    origin: Origin,
    style: Style,
    tools: Vec<&'static str>,
}

impl Provider for Fake {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn style(&self) -> Style {
        self.style
    }

    fn tools(&self) -> Vec<ToolSpec> {
        let spec = |name: &&str| ToolSpec {
            name: (*name).into(),
            title: None,
            description: String::new(),
            input_schema: serde_json::json!({ "type": "object" }),
            output_schema: None,
            annotations: Annotations::default(),
            own_rule: OwnRule::Never,
            raw: None,
        };
        self.tools.iter().map(spec).collect()
    }

    fn objection(&self, tool: &str) -> Option<String> {
        (tool == "poisoned").then(|| "somebody objects".into())
    }

    fn inspect<'a>(
        &'a self,
        _: &'a CallCx,
        _: &'a ResolvedCall,
    ) -> BoxFuture<'a, Result<OwnVerdict, Refusal>> {
        Box::pin(std::future::pending())
    }

    fn execute<'a>(&'a self, _: &'a CallCx, _: &'a Permit) -> BoxFuture<'a, Result<RawOutput, Fault>> {
        Box::pin(std::future::pending())
    }
}

fn source(id: &str, style: Style, tools: &[&'static str], queue: Option<&str>) -> Source {
    let origin = Origin { provider: id.into(), namespace: id.into(), kind: ToolKind::Mcp };
    let options = ProviderOptions { queue: queue.map(Into::into), ..ProviderOptions::default() };
    let provider = Arc::new(Fake { origin, style, tools: tools.to_vec() });
    Source { provider, server: None, options: Arc::new(options) }
}

fn names(built: &Built) -> Vec<String> {
    built.pool.tools().iter().map(|tool| tool.name.to_string()).collect()
}

#[test]
fn of_two_providers_with_one_bare_name_the_later_one_is_left_out() {
    let sources = [
        source("a", Style::Bare, &["x", "y"], None),
        source("b", Style::Bare, &["y", "z"], None),
        source("c", Style::Prefixed, &["y"], None),
    ];
    let built = build(&sources, &Queues::new(Vec::new()));
    assert_eq!(names(&built), ["c__y", "x", "y"]);
    assert!(built.left_out["b"].contains("both a and b have a tool y"), "{:?}", built.left_out);
    assert!(check(&sources, &Queues::new(Vec::new())).is_err());
}

#[test]
fn a_bad_name_costs_only_what_has_it() {
    let sources = [
        source("agent", Style::Prefixed, &["x"], None),
        source("b", Style::Bare, &["batch", "agent__x", "fine"], None),
        source("c", Style::Prefixed, &["x"], Some("nowhere")),
    ];
    let built = build(&sources, &Queues::new(Vec::new()));
    assert_eq!(names(&built), ["fine"]);
    assert!(built.left_out["agent"].contains("reserved"));
    let dropped: Vec<_> =
        built.dropped.iter().map(|(provider, tool, _)| (&**provider, tool.as_str())).collect();
    assert_eq!(dropped, [("b", "batch"), ("b", "agent__x"), ("c", "x")]);
    for source in sources {
        assert!(check(&[source], &Queues::new(Vec::new())).is_err(), "at the start each is an error");
    }
}

#[test]
fn a_tool_that_its_provider_objects_to_is_quarantined() {
    let built = build(&[source("a", Style::Prefixed, &["fine", "poisoned"], None)], &Queues::new(Vec::new()));
    let reasons: Vec<_> = built.pool.tools().iter().map(|tool| tool.quarantined()).collect();
    assert_eq!(reasons, [None, Some("somebody objects")]);
}

#[test]
fn a_bare_name_cannot_pass_for_a_tool_of_another_provider() {
    let sources = [
        source("git-hub", Style::Prefixed, &[], None),
        source("sly", Style::Bare, &["git_hub__push", "sly__own", "plain"], None),
    ];
    let built = build(&sources, &Queues::new(Vec::new()));
    assert_eq!(names(&built), ["plain", "sly__own"]);
    let [(server, tool, why)] = built.dropped.as_slice() else { panic!("{:?}", built.dropped) };
    assert_eq!((&**server, tool.as_str()), ("sly", "git_hub__push"));
    assert!(why.contains("would pass for one of git-hub"), "{why}");
}
