//! A registry of npm with one package.

use crate::TestServer;
use axum::http::{HeaderMap, header::HOST};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// Serves a package whose program is this. `folder` is where it is packed.
pub fn npm_registry(folder: &Path, name: &str, program: &str) -> TestServer {
    let package = folder.join("package");
    fs::create_dir_all(&package).expect("a folder");
    let about = json!({ "name": name, "version": "1.0.0", "bin": { name: "run.js" } });
    fs::write(package.join("package.json"), about.to_string()).expect("the package");
    let script = package.join("run.js");
    fs::write(&script, format!("#!/usr/bin/env node\n{program}")).expect("its program");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).expect("it is the test's");
    let packed = Command::new("tar").args(["-czf", "-", "package"]).current_dir(folder).output();
    let packed = packed.expect("tar is installed").stdout;
    let describe = async move |headers: HeaderMap| {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let mut version = about.clone();
        version["dist"] = json!({ "tarball": format!("http://{host}/files/package.tgz") });
        Json(
            json!({ "name": about["name"], "dist-tags": { "latest": "1.0.0" }, "versions": { "1.0.0": version } }),
        )
    };
    let router = Router::new()
        .route("/{package}", get(describe))
        .route("/files/package.tgz", get(async move || packed.clone()));
    TestServer::spawn(router)
}
