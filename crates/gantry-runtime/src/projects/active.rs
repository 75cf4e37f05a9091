//! Remembers which agent of a project is active: a restart must not give callers back what the switch took from them.

use serde::{Deserialize, Serialize};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

/// The file in the project's data folder.
const FILE: &str = "active.json";

#[derive(Debug, Serialize, Deserialize)]
struct Active {
    agent: Arc<str>,
}

/// The agent that was active last. A file that cannot be read counts as an agent that does not exist: it was written for one.
pub(super) fn read(data: &Path) -> Option<Arc<str>> {
    let read = std::fs::read(data.join(FILE)).and_then(|text| Ok(serde_json::from_slice::<Active>(&text)?));
    match read {
        Ok(active) => Some(active.agent),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(format!("({FILE} cannot be read: {error})").into()),
    }
}

/// Remembers this agent, or that none is active. Blocks.
pub(super) fn write(data: &Path, agent: Option<&Arc<str>>) -> io::Result<()> {
    let path = data.join(FILE);
    let Some(agent) = agent else {
        return match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    };
    std::fs::create_dir_all(data)?;
    let fresh = path.with_extension("json.new");
    let mut file = std::fs::File::create(&fresh)?;
    file.write_all(&serde_json::to_vec(&Active { agent: Arc::clone(agent) })?)?;
    file.sync_all()?;
    std::fs::rename(fresh, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_active_agent_is_remembered_and_damage_is_not_taken_for_none() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("deep");
        assert_eq!(read(&data), None);
        write(&data, None).unwrap();
        write(&data, Some(&"a".into())).unwrap();
        assert_eq!(read(&data).as_deref(), Some("a"));
        std::fs::write(data.join(FILE), "{").unwrap();
        assert!(read(&data).is_some_and(|name| name.contains("cannot be read")));
        write(&data, None).unwrap();
        assert_eq!(read(&data), None);
    }
}
