//! Where MCP servers are started, and what they are started from, once all workspaces are known.

use super::accepted::objection;
use super::dotenv::Env;
use super::resolve::Base;
use super::schema::{Config, McpServer};
use gantry_core::digest::Digest;
use gantry_upstream::launch::{Launch, LaunchSite, real_path};
use gantry_upstream::options::TransportType;
use std::ffi::OsString;
use std::path::PathBuf;

/// Variables that servers inherit and by which programs find code.
const INHERITED: [&str; 2] = ["PATH", "HOME"];

/// The folder for those of servers.
const SERVERS: &str = "servers";

pub(super) struct Launcher {
    /// The folder of the configuration.
    folder: PathBuf,
    workspaces: Vec<PathBuf>,
    inherited: Vec<(&'static str, OsString)>,
    /// The folder for the folders that servers start in, or why there is none.
    servers: Result<PathBuf, String>,
}

impl Launcher {
    pub(super) fn new(config: &Config, base: &Base, env: &Env) -> Self {
        let workspaces: Vec<PathBuf> =
            config.all().map(|(_, project)| real_path(&project.workspace)).collect();
        let data = real_path(&base.data);
        let of_data = Digest::of(data.as_os_str().as_encoded_bytes()).short(16);
        let state = |folder: PathBuf| folder.join("gantry").join(SERVERS).join(&of_data);
        let var = |name| env.var(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
        let of_data_folder = Some(data.join(SERVERS));
        // Beside the configuration is where agents usually write, and a server is not to move when a workspace does.
        let is_apart = !data.starts_with(real_path(&base.folder));
        let candidates = [
            of_data_folder.clone().filter(|_| is_apart),
            var("XDG_STATE_HOME").map(state),
            var("HOME").map(|home| state(home.join(".local/state"))),
            of_data_folder,
        ];
        let candidates: Vec<PathBuf> = candidates.into_iter().flatten().map(|it| real_path(&it)).collect();
        let is_outside = |folder: &&PathBuf| {
            !workspaces.iter().any(|workspace| folder.starts_with(workspace) || workspace.starts_with(folder))
        };
        let servers = candidates.iter().find(is_outside).cloned().ok_or_else(|| {
            let tried: Vec<_> = candidates.iter().map(|folder| folder.display().to_string()).collect();
            format!(
                "there is no folder to start it in, outside of what agents write: {} is in a workspace; write `cwd`, or set \
                 XDG_STATE_HOME to another folder",
                tried.join(", ")
            )
        });
        let inherited = INHERITED.into_iter().filter_map(|name| Some((name, env.var(name)?)));
        Self { folder: base.folder.clone(), workspaces, inherited: inherited.collect(), servers }
    }

    /// Resolves what a server is started from. A server that is not started needs nothing.
    pub(super) fn server(&self, project: &str, id: &str, server: &mut McpServer) {
        if server.options.transport() != TransportType::Stdio || server.off().is_some() {
            return;
        }
        let own = |servers: &PathBuf| servers.join(folder_name(project)).join(folder_name(id));
        let site = LaunchSite {
            folder: &self.folder,
            own_folder: self.servers.as_ref().map(own).map_err(Clone::clone),
            workspaces: &self.workspaces,
            inherited: &self.inherited,
        };
        server.launch = Launch::resolve(&mut server.options, &site);
    }
}

/// What the servers of all projects are started from in workspaces. A server that would be started from what a tool may have
/// made is refused. First what decides what runs, then the other files that they are given, which a server may make itself.
pub(super) fn resolve_all(config: &mut Config, base: &Base, env: &Env) -> [Vec<PathBuf>; 2] {
    let launcher = Launcher::new(config, base, env);
    let (mut code, mut data) = (Vec::new(), Vec::new());
    for (name, project) in &mut config.projects {
        for (id, server) in &mut project.mcp_servers {
            launcher.server(name, id, server);
            let suspect = server.launch.code.iter().find(|path| base.leaves_out(path)).cloned();
            if let Some(path) = suspect {
                let refusal = format!("it is started from {}: {}", path.display(), objection("not started"));
                server.launch.refusal = Some(refusal);
                // The rest stays protected: a tool must not get at it by making a file that is refused.
                server.launch.code.retain(|path| !base.leaves_out(path));
            }
            code.extend(server.launch.code.iter().cloned());
            data.extend(server.launch.data.iter().cloned());
        }
    }
    [code, data].map(|mut list| {
        list.sort();
        list.dedup();
        list
    })
}

/// A name that is one folder, and another one for each id.
fn folder_name(id: &str) -> String {
    let plain: String =
        id.chars().map(|at| if at.is_ascii_alphanumeric() || at == '-' { at } else { '_' }).collect();
    if plain == id { plain } else { format!("{plain}-{}", Digest::of(id.as_bytes()).short(8)) }
}
