//! A changed configuration applies while Gantry runs: all of it or nothing, and never more than either of the two allows.

mod applied;
mod files;
mod held;
mod kept;
mod looser;
mod planted;
mod refused;
mod settings;

use crate::projects::Site;
use gantry_testkit::faulty::Faulty;
use gantry_testkit::process;
use http::Method;
use serde_json::{Value, json};

/// An agent's `count`, which writes a line, and how often it has run.
fn ran(site: &Site) -> usize {
    crate::pipeline::lines(&site.home, "count.txt")
}

/// The arguments of a `test__count` that can be seen by [`ran`].
fn count(site: &Site) -> Value {
    json!({ "file": crate::pipeline::file(&site.home, "count.txt"), "text": "ran" })
}

/// What is wrong with the file on the disk, as the API tells it.
#[track_caller]
fn trouble(site: &Site) -> Value {
    let answer = site.server.get_as_admin("/api/v1/config");
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["refused"].clone()
}

/// Makes an agent of the default project the active one.
#[track_caller]
fn activate(site: &Site, agent: &str) {
    let answer = site.admin(Method::POST, &format!("/api/v1/agents/{agent}/activate"), &Value::Null);
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// How many of its servers run.
fn running_servers(site: &Site) -> usize {
    let below = process::descendants(site.server.pid());
    // Each has a guard as well, which names it among its arguments.
    let program = Faulty::program().display().to_string();
    below.into_iter().filter(|pid| process::command_line(*pid).starts_with(&program)).count()
}
