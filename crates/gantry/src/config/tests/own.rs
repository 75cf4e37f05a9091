//! What Gantry's own tools may do.

use super::refused::check;
use super::yaml;
use crate::config::WebSearchApi;
use expect_test::expect;

#[test]
fn what_is_not_said_is_at_its_default_and_nothing_is_open() {
    for text in
        ["", "code: { memoryMb: 0, cpuSeconds: 0, processes: 0, diskMb: 0 }\nweb: {}\ngit: {}\nsearch: {}\n"]
    {
        let own = yaml(text).main.own;
        let (code, builds) = (own.code.code, own.code.builds);
        assert!(!own.code.network && own.code.toolchains.is_empty() && own.code.registries.is_empty());
        assert_eq!((code.memory_mb, code.disk_mb), (512, 1024));
        assert_eq!((code.cpu_seconds, code.processes), (60, 64));
        assert_eq!((builds.memory_mb, builds.disk_mb), (2048, 8192));
        assert_eq!((builds.cpu_seconds, builds.processes), (600, 256));
        assert!(own.web.allow.is_empty() && own.web.private.is_empty() && own.web.search.is_none());
        assert!(own.git.credentials.is_empty() && own.git.author.is_none() && own.embeddings.is_none());
    }
}

#[test]
fn what_is_said_is_read_for_each_project_by_itself() {
    let config = yaml(
        "code: { network: true, memoryMb: 64, builds: { processes: 9 }, toolchains: [sdk, /opt/x], registries: { npm: 'http://n/' } }\n\
         web: { allow: [docs.rs], allowPrivate: [10.0.0.1], search: { api: tavily, apiKey: k } }\n\
         git: { credentials: { 'https://g.example': 'a:b' }, author: { name: A, email: a@b } }\n\
         search: { embeddings: { url: 'http://e/v1', model: m } }\n\
         projects: { other: { workspace: o } }\n",
    );
    let own = &config.main.own;
    assert!(own.code.network);
    assert_eq!((own.code.code.memory_mb, own.code.builds.processes), (64, 9));
    assert_eq!(own.code.toolchains, ["/home/project/sdk", "/opt/x"].map(std::path::PathBuf::from));
    assert_eq!(own.code.registries["npm"], "http://n/");
    assert_eq!(
        (own.web.allow.clone(), own.web.private.clone()),
        (vec!["docs.rs".into()], vec!["10.0.0.1/32".into()])
    );
    let search = own.web.search.as_ref().unwrap();
    assert_eq!((search.api, search.key.as_deref()), (WebSearchApi::Tavily, Some("k")));
    assert_eq!(own.git.credentials, [("https://g.example".to_owned(), "a:b".to_owned())]);
    assert_eq!(own.git.author, Some(("A".to_owned(), "a@b".to_owned())));
    assert_eq!(own.embeddings.as_ref().unwrap().model, "m");
    // Nothing of it is another project's.
    assert_eq!(config.projects["other"].own, yaml("").main.own);
    // What is secret is not shown.
    let shown = format!("{own:?}");
    assert!(!shown.contains("a:b") && !shown.contains("\"k\""), "{shown}");
}

#[test]
fn mistakes_are_named() {
    check(
        "code: { network: yes please, memoryMb: -1, memory: 5 }\n\
         web:\n  allow: ['https://a b', 'ftp://x']\n  allowPrivate: [localhost]\n  search: { api: google }\n\
         git: { credentials: { github.com: x }, author: { name: A } }\n\
         search: { embeddings: { url: nowhere } }\n",
        expect![[r#"
            gantry.yaml:1: code.network must be true or false, found "yes please"
            gantry.yaml:1: code.memoryMb must be a whole number of megabytes, found -1
            gantry.yaml:1: unknown key "memory" in code; did you mean "memoryMb"?
            gantry.yaml:3: web.allow[0] must be a host, *. and a domain, or an http:// or https:// address that may end in *, found "https://a b"
            gantry.yaml:3: web.allow[1] must be a host, *. and a domain, or an http:// or https:// address that may end in *, found "ftp://x"
            gantry.yaml:4: web.allowPrivate[0] must be an IP address or a range of them, such as 127.0.0.1/32, found "localhost"
            gantry.yaml:5: web.search.api must be searxng or brave or tavily, found "google"
            gantry.yaml:6: "github.com" in git.credentials must be an origin without path and wildcard, such as https://app.example.com
            gantry.yaml:6: git.author needs the key "email"
            gantry.yaml:7: search.embeddings.url must be an http:// or https:// address without user and password, such as https://hooks.example.com/gantry
            gantry.yaml:7: search.embeddings needs the key "model""#]],
    );
}
