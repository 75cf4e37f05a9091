//! What Gantry's own tools besides those on files may do: run code, reach the web, use git, search.

use super::{NONE, key, number, section};
use crate::config::table::{Fallback, Key, Kind, Unit, Zero};
use crate::config::text::Rule;

pub(super) const CODE: Key = section(
    "code",
    Kind::Section(CODE_KEYS),
    "What programs that tools start may take: `run_code`, `shell_exec`, git, tests, formatters, package managers. They \
     run in a sandbox on the workspace.",
);
pub(super) const WEB: Key =
    section("web", Kind::Section(WEB_KEYS), "What `web_fetch` and `web_search` may reach, and how.");
pub(super) const GIT: Key = section("git", Kind::Section(GIT_KEYS), "How the git tools commit and push.");
pub(super) const SEARCH: Key =
    section("search", Kind::Section(SEARCH_KEYS), "How `search_code` ranks what it finds.");

const MEGABYTES: u64 = 1 << 20;

const CODE_KEYS: &[Key] = &[
    key(
        "network",
        Kind::Flag,
        Fallback::Flag(false),
        "Whether `run_code` and `shell_exec` may use the network: through Gantry's proxy, which lets them reach public \
         addresses and those of `web.allowPrivate`. Installing packages and pushing have it once a person said yes.",
        "true",
    ),
    memory(512, "1024"),
    cpu(60, "120"),
    processes(64, "128"),
    disk(1024, "2048"),
    section(
        "builds",
        Kind::Section(&[memory(2048, "4096"), cpu(600, "1200"), processes(256, "512"), disk(8192, "16384")]),
        "The same for `run_tests`, `format_code` and `install_package`.",
    ),
    key(
        "toolchains",
        Kind::Texts(Rule::Path, 0),
        NONE,
        "Folders outside the workspace that programs may read, besides the system's own and the compilers and \
         interpreters that Gantry finds on its PATH.",
        "[/opt/sdk]",
    ),
    section(
        "registries",
        Kind::Section(&[registry("npm"), registry("pip"), registry("cargo"), registry("go")]),
        "Where `install_package` gets packages from, by ecosystem, if not from the public registry. It reaches no other host.",
    ),
];

const fn memory(default: u64, example: &'static str) -> Key {
    key(
        "memoryMb",
        number(Unit::Megabytes, Zero::Default, MEGABYTES),
        Fallback::Number(default),
        "Memory of all processes of one run together.",
        example,
    )
}

const fn cpu(default: u64, example: &'static str) -> Key {
    key(
        "cpuSeconds",
        number(Unit::Seconds, Zero::Default, 24 * 3600),
        Fallback::Number(default),
        "Processor time of one process.",
        example,
    )
}

const fn processes(default: u64, example: &'static str) -> Key {
    key(
        "processes",
        number(Unit::Plain, Zero::Default, 65_536),
        Fallback::Number(default),
        "Processes and threads of one run at once.",
        example,
    )
}

const fn disk(default: u64, example: &'static str) -> Key {
    key(
        "diskMb",
        number(Unit::Megabytes, Zero::Default, MEGABYTES),
        Fallback::Number(default),
        "What one run may write to disk.",
        example,
    )
}

const fn registry(name: &'static str) -> Key {
    key(name, Kind::Text(Rule::WebUrl), NONE, "Its address.", "https://packages.example.com/")
}

const WEB_KEYS: &[Key] = &[
    key(
        "allow",
        Kind::Texts(Rule::Site, 0),
        NONE,
        "What `web_fetch` may fetch without asking: hosts, `*.` and a domain, or addresses that may end in `*`.",
        r#"["https://docs.rs/*", "*.example.com"]"#,
    ),
    key(
        "allowPrivate",
        Kind::Texts(Rule::Network, 0),
        NONE,
        "Private addresses that may be reached at all. What resolves to any other private address is refused, whoever \
         approves it.",
        "[10.1.2.0/24]",
    ),
    section(
        "search",
        Kind::Section(WEB_SEARCH),
        "The service behind `web_search`; without one, there is no such tool.",
    ),
];

const WEB_SEARCH: &[Key] = &[
    key(
        "api",
        Kind::Choice(&["searxng", "brave", "tavily"], &[]),
        Fallback::Required,
        "How it is asked.",
        "searxng",
    ),
    key(
        "url",
        Kind::Text(Rule::WebUrl),
        Fallback::Absent("the public address of Brave or Tavily; SearXNG needs one"),
        "Its address.",
        "https://searx.example.com",
    ),
    key("apiKey", Kind::Text(Rule::Key), NONE, "The key that it asks for.", "${SEARCH_KEY:-key}"),
];

const GIT_KEYS: &[Key] = &[
    key(
        "credentials",
        Kind::Secrets(Rule::Origin),
        NONE,
        "What `git_push` shows to a server, by its origin: `user:password`, or a token. No program sees it: it is added \
         on the way.",
        r#"{ "https://github.com": "${GITHUB_TOKEN:-token}" }"#,
    ),
    section(
        "author",
        Kind::Section(&[
            key("name", Kind::Text(Rule::Title), Fallback::Required, "The name.", "Ada Lovelace"),
            key("email", Kind::Text(Rule::NotEmpty), Fallback::Required, "The address.", "ada@example.com"),
        ]),
        "Who commits, if the repository does not say.",
    ),
];

const SEARCH_KEYS: &[Key] = &[section(
    "embeddings",
    Kind::Section(&[
        key(
            "url",
            Kind::Text(Rule::WebUrl),
            Fallback::Required,
            "The address below which `/embeddings` is, as OpenAI has it.",
            "http://127.0.0.1:11434/v1",
        ),
        key("model", Kind::Text(Rule::NotEmpty), Fallback::Required, "The model.", "nomic-embed-text"),
        key("apiKey", Kind::Text(Rule::Key), NONE, "The key that it asks for.", "${KEY:-key}"),
    ]),
    "A model that puts the best files of a ranked search in order by their meaning. The question and the lines that are shown of up to 50 files are sent to it.",
)];
