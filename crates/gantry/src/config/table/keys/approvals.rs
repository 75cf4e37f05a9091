//! The keys that say which calls wait, for whom and how long, and how a person hears of them.

use super::{DAY, NONE, key, number, section};
use crate::config::table::{Fallback, Key, Kind, Unit, Zero};
use crate::config::text::Rule;

/// The longest that a call may wait: for a person, or for its time.
const LONGEST_WAIT: u64 = 30 * DAY;
/// Costs beyond it are typing accidents.
const MAX_COST: u64 = 1_000_000_000_000_000;

const DELAY: Kind = number(Unit::Milliseconds, Zero::Off, LONGEST_WAIT);
const COST: Kind = number(Unit::Plain, Zero::Off, MAX_COST);

pub(super) const APPROVALS: &[Key] = &[
    key(
        "requiresApprovalTools",
        Kind::Gated,
        Fallback::Text("none"),
        "The tools whose calls wait for a person: `all`, `none`, or a list of names and globs.",
        r#"["write_file", "delete_*"]"#,
    ),
    key(
        "requiresApprovalEffects",
        Kind::Choices(&["read", "write", "destructive"]),
        Fallback::Absent("`[destructive]`"),
        "Calls of tools with these effects wait for a person, by what their server says of them (`destructiveHint`, \
         `readOnlyHint`). Gantry's own tools have rules of their own. `[]` is off.",
        "[write, destructive]",
    ),
    key(
        "requiresApprovalCost",
        COST,
        Fallback::Absent("never"),
        "From which estimated cost on a call waits for a person; see `estimatedCosts`.",
        "500",
    ),
    key(
        "toolRules",
        Kind::PerTool(&Kind::Text(Rule::AskWhen)),
        NONE,
        "When calls of single tools wait for a person: `always`; `never`, whatever the tool or its effect says; or a \
         condition in CEL over `args`, `tool`, `agent`, `principal`, `project` and `role`. Names count before globs, \
         and otherwise the first entry that means the tool. `never` lifts no policy and nothing that \
         `requiresApprovalTools` or `requiresApprovalCost` says.",
        r#"{ "github__*": always, delete_file: "args.path.startsWith('data/')" }"#,
    ),
    key(
        "approvers",
        Kind::PerTool(&Kind::Texts(Rule::Approver, 1)),
        Fallback::Absent("whoever may decide"),
        "Who may decide about calls of these tools: names of keys, or `person` for who has the data folder. A policy \
         may name its own.",
        r#"{ "db__*": [ann, person] }"#,
    ),
    key(
        "approvalTimeoutMs",
        number(Unit::Milliseconds, Zero::Default, LONGEST_WAIT),
        Fallback::Number(600_000),
        "How long a person has to decide. Less than 1000 counts as 1000.",
        "600000",
    ),
    key(
        "autoRejectOnTimeout",
        Kind::Flag,
        Fallback::Flag(true),
        "Whether a call is rejected when nobody decides in time. Otherwise it goes on waiting.",
        "true",
    ),
    key(
        "defaultDelayMs",
        DELAY,
        Fallback::Number(0),
        "How long every call waits before it runs. It can be cancelled until then.",
        "0",
    ),
    key(
        "toolSpecificDelays",
        Kind::PerTool(&DELAY),
        NONE,
        "The same for single tools, whatever the other delays say.",
        "{ send_message: 5000, read_file: 0 }",
    ),
    key(
        "effectDelays",
        Kind::Section(EFFECT_DELAYS),
        NONE,
        "The same by effect. Of several delays the longest counts.",
        "{ destructive: 10000 }",
    ),
    key(
        "estimatedCosts",
        Kind::PerTool(&COST),
        Fallback::Absent("0 for every tool"),
        "What a call of these tools is estimated to cost, in a unit of your choice. It is shown to who decides.",
        r#"{ "search__*": 20 }"#,
    ),
    section(
        "costDelays",
        Kind::Items(COST_DELAY),
        "Delays by estimated cost. Of several the longest counts.",
    ),
    key(
        "delivery",
        Kind::Choice(&["auto", "tasks", "url", "form", "hold", "pending"], &[]),
        Fallback::Text("auto"),
        "How a call that waits reaches the person behind an MCP client: as a task, by an address to open, by a form, by \
         holding the call open, or by an answer that says where it waits; `auto` is the best that the client can do.",
        "hold",
    ),
    key(
        "holdMs",
        number(Unit::Milliseconds, Zero::Default, DAY),
        Fallback::Number(300_000),
        "How long a call is held open for its client before that is told where it waits.",
        "60000",
    ),
    key(
        "maxPending",
        number(Unit::Plain, Zero::Default, 100_000),
        Fallback::Number(1000),
        "How many calls of one caller may wait at once; more are refused.",
        "100",
    ),
    section(
        "webhook",
        Kind::Section(WEBHOOK),
        "Where requests and decisions are announced, signed with a secret and repeated until they are taken.",
    ),
];

const EFFECT_DELAYS: &[Key] = &[
    key("read", DELAY, Fallback::Number(0), "Of tools that only read.", "0"),
    key("write", DELAY, Fallback::Number(0), "Of tools that change something.", "1000"),
    key("destructive", DELAY, Fallback::Number(0), "Of tools that may destroy something.", "10000"),
];

const COST_DELAY: &[Key] = &[
    key(
        "from",
        number(Unit::Plain, Zero::Refused, MAX_COST),
        Fallback::Required,
        "The estimated cost from which on it holds.",
        "100",
    ),
    key("delayMs", DELAY, Fallback::Required, "How long the call waits before it runs.", "5000"),
];

const WEBHOOK: &[Key] = &[
    key(
        "url",
        Kind::Text(Rule::WebUrl),
        Fallback::Required,
        "The address that they are sent to.",
        "https://hooks.example.com/gantry",
    ),
    key(
        "secret",
        Kind::Text(Rule::Secret),
        Fallback::Required,
        "The secret that they are signed with. No message ever shows it.",
        r#""${WEBHOOK_SECRET:-0123456789abcdef}""#,
    ),
    key(
        "allowPrivate",
        Kind::Texts(Rule::Network, 0),
        NONE,
        "Private addresses that it may be at. Others are not connected to, whatever the name resolves to.",
        r#"["127.0.0.1/32"]"#,
    ),
];
