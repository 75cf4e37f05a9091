//! What Gantry's own tools may do.

use super::refused::check;
use super::yaml;
use crate::config::Project;
use expect_test::expect;
use gantry_tools::options::SearchApi;

#[test]
fn what_is_not_said_is_at_its_default_and_nothing_is_open() {
    for text in [
        "{}",
        "code: { memoryMb: 0, cpuSeconds: 0, processes: 0, diskMb: 0 }\nweb: {}\ngit: {}\nsearch: {}\n",
    ] {
        let config = yaml(text);
        let Project { code, web, git, search, .. } = config.main();
        let builds = &code.builds;
        assert!(!code.network && code.toolchains.is_empty() && code.registries.npm.is_none());
        assert_eq!((code.memory_mb.get(), code.disk_mb.get()), (512, 1024));
        assert_eq!((code.cpu_seconds.get(), code.processes.get()), (60, 64));
        assert_eq!((builds.memory_mb.get(), builds.disk_mb.get()), (2048, 8192));
        assert_eq!((builds.cpu_seconds.get(), builds.processes.get()), (600, 256));
        assert!(web.allow.is_empty() && web.allow_private.is_empty() && web.search.is_none());
        assert!(git.credentials.is_empty() && git.author.is_none() && search.embeddings.is_none());
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
    let Project { code, web, git, search, .. } = config.main();
    assert!(code.network);
    assert_eq!((code.memory_mb.get(), code.builds.processes.get()), (64, 9));
    assert_eq!(code.toolchains, ["/home/project/sdk", "/opt/x"].map(std::path::PathBuf::from));
    assert_eq!(code.registries.npm.as_deref(), Some("http://n/"));
    assert_eq!((web.allow.len(), web.allow_private[0].to_string()), (1, "10.0.0.1/32".to_owned()));
    let found = web.search.as_ref().unwrap();
    assert_eq!((found.api, found.api_key.as_ref().map(|key| key.expose())), (SearchApi::Tavily, Some("k")));
    assert_eq!(git.credentials["https://g.example"].expose(), "a:b");
    assert_eq!(git.author.as_ref().map(|author| &*author.email), Some("a@b"));
    assert_eq!(search.embeddings.as_ref().unwrap().model, "m");
    // Nothing of it is another project's.
    let (other, empty) = (&config.projects["other"], yaml("{}"));
    assert_eq!((&other.code, &other.web), (&empty.main().code, &empty.main().web));
    // What is secret is not shown.
    let shown = format!("{git:?}{web:?}");
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
            gantry.yaml:1: code.memoryMb must be a whole number, found -1
            gantry.yaml:1: unknown key "memory" in code; did you mean "memoryMb"?
            gantry.yaml:3: web.allow[0] must be an address with a host, such as example.com, *.example.com for all below it, or * for any, perhaps with :port, found "https://a b"
            gantry.yaml:3: web.allow[1] must be an address with http:// or https://, or without a scheme, found "ftp://x"
            gantry.yaml:4: web.allowPrivate[0] must be an IP address or a range of them, such as 127.0.0.1/32, found "localhost"
            gantry.yaml:5: web.search.api must be searxng or brave or tavily, found "google"
            gantry.yaml:6: "github.com" in git.credentials must be an https:// origin without path, such as https://github.com: secrets are sent over https only
            gantry.yaml:6: git.author needs the key "email"
            gantry.yaml:7: search.embeddings.url must be an http:// or https:// address without user and password, such as https://example.com/path
            gantry.yaml:7: search.embeddings needs the key "model""#]],
    );
}
