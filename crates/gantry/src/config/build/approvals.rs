//! Builds what says which calls wait, for whom and how long.

use super::view::{View, owned};
use crate::config::model::{Approvals, Gated, Located};
use crate::config::text;
use crate::config::tree::Node;
use gantry_core::tool::Effect;
use gantry_runtime::options::{ApprovalOptions, Webhook};
use serde_json::Number;
use std::sync::Arc;
use std::time::Duration;

/// The least time that a person has to decide; nobody can in less.
const MIN_TIMEOUT: Duration = Duration::from_secs(1);

const EFFECTS: [Effect; 3] = [Effect::Read, Effect::Write, Effect::Destructive];

pub(super) fn approvals(view: &View<'_>) -> Approvals {
    let requires = match view.texts("requiresApprovalTools") {
        Some(patterns) => Gated::Tools(patterns),
        None if view.text("requiresApprovalTools").is_some_and(|word| word == "none") => Gated::None,
        None => Gated::All,
    };
    let by_effect = view.section("effectDelays");
    let effect_delay = |effect: Effect| Some((effect, by_effect.duration(effect.as_str())?));
    let cost_delay = |view: View<'_>| Some((view.number("from")?, view.duration("delayMs")?));
    Approvals {
        requires,
        effects: effects(view),
        from_cost: view.number("requiresApprovalCost").filter(|cost| *cost > 0),
        tool_rules: view.per_pattern("toolRules", |node| {
            Some(Located { value: owned(&node.value)?, at: view.at(node.line) })
        }),
        approvers: view.per_pattern("approvers", |node| Some(texts(node))),
        default_delay: view.duration("defaultDelayMs").unwrap_or_default(),
        // Here 0 says that there is no delay, whatever the other delays are.
        tool_delays: view.per_pattern("toolSpecificDelays", |node| count(node).map(Duration::from_millis)),
        effect_delays: EFFECTS.into_iter().filter_map(effect_delay).collect(),
        costs: view.per_pattern("estimatedCosts", count),
        cost_delays: view.items("costDelays").filter_map(cost_delay).collect(),
        options: options(view),
    }
}

fn options(view: &View<'_>) -> ApprovalOptions {
    let delivery = view.text("delivery").and_then(|word| serde_json::from_value(word.into()).ok());
    ApprovalOptions {
        timeout: view.duration("approvalTimeoutMs").unwrap_or_default().max(MIN_TIMEOUT),
        auto_reject: view.flag("autoRejectOnTimeout"),
        delivery: delivery.unwrap_or_default(),
        hold: view.duration("holdMs").unwrap_or_default(),
        max_pending: u32::try_from(view.size("maxPending")).unwrap_or(u32::MAX),
        webhook: view.get("webhook").map(|_| webhook(&view.section("webhook"))),
    }
}

fn webhook(view: &View<'_>) -> Webhook {
    let ranges = view.texts("allowPrivate").unwrap_or_default();
    Webhook {
        url: view.text("url").unwrap_or_default().into(),
        secret: view.text("secret").unwrap_or_default().into(),
        allow_private: ranges.iter().filter_map(|range| text::network(&range.value)).map(Arc::from).collect(),
    }
}

/// The effects that a person is asked about; a file that says nothing asks about what cannot be got back.
fn effects(view: &View<'_>) -> Vec<Effect> {
    let Some(words) = view.texts("requiresApprovalEffects") else { return vec![Effect::Destructive] };
    let effect = |word: &Located<String>| EFFECTS.into_iter().find(|effect| effect.as_str() == word.value);
    words.iter().filter_map(effect).collect()
}

fn texts(list: &Node) -> Vec<String> {
    list.value.items().iter().filter_map(|item| owned(&item.value)).collect()
}

fn count(node: &Node) -> Option<u64> {
    node.value.as_number().and_then(Number::as_u64)
}
