//! Builds what Gantry's own tools besides those on files may do.

use super::view::{View, entries, owned};
use super::{Base, absolute};
use crate::config::model::{Code, Embeddings, Git, Own, Web, WebSearch, WebSearchApi};
use crate::config::text;
use gantry_tools::options::ResourceLimits;

const ECOSYSTEMS: [&str; 4] = ["npm", "pip", "cargo", "go"];

pub(super) fn own(view: &View<'_>, base: &Base) -> Own {
    let embeddings = view.section("search").section("embeddings");
    Own {
        code: code(&view.section("code"), base),
        web: web(&view.section("web")),
        git: git(&view.section("git")),
        embeddings: embeddings.node.map(|_| Embeddings {
            url: embeddings.text("url").unwrap_or_default(),
            model: embeddings.text("model").unwrap_or_default(),
            key: embeddings.text("apiKey"),
        }),
    }
}

fn code(view: &View<'_>, base: &Base) -> Code {
    let toolchains = view.texts("toolchains").unwrap_or_default();
    let registries = view.section("registries");
    let address = |name: &str| Some((name.to_owned(), registries.text(name)?));
    Code {
        network: view.flag("network"),
        code: limits(view),
        builds: limits(&view.section("builds")),
        toolchains: toolchains.iter().map(|path| absolute(&base.folder, &path.value)).collect(),
        registries: ECOSYSTEMS.into_iter().filter_map(address).collect(),
    }
}

fn limits(view: &View<'_>) -> ResourceLimits {
    let number = |name| view.number(name).unwrap_or_default();
    ResourceLimits {
        memory_mb: number("memoryMb"),
        cpu_seconds: number("cpuSeconds"),
        processes: u32::try_from(number("processes")).unwrap_or_default(),
        disk_mb: number("diskMb"),
    }
}

fn web(view: &View<'_>) -> Web {
    let texts = |name| view.texts(name).unwrap_or_default().into_iter().map(|text| text.value);
    let search = view.section("search");
    let api = match search.text("api").as_deref() {
        Some("brave") => WebSearchApi::Brave,
        Some("tavily") => WebSearchApi::Tavily,
        _ => WebSearchApi::Searxng,
    };
    Web {
        allow: texts("allow").collect(),
        private: texts("allowPrivate").filter_map(|range| text::network(&range)).collect(),
        search: search.node.map(|_| WebSearch {
            api,
            url: search.text("url"),
            key: search.text("apiKey"),
            at: search.here(),
        }),
    }
}

fn git(view: &View<'_>) -> Git {
    let author = view.section("author");
    let secret = |entry: &crate::config::tree::Entry| Some((entry.key.clone(), owned(&entry.node.value)?));
    Git {
        credentials: entries(view.get("credentials")).iter().filter_map(secret).collect(),
        author: author.text("name").zip(author.text("email")),
    }
}
