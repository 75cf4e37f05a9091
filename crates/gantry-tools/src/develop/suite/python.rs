//! Which interpreter runs the tests of a Python project, and with which runner.

use super::plan::Plan;
use crate::command::runner::in_jail;
use crate::develop::act::Test;
use crate::develop::site::{Kind, Site};
use std::path::{Path, PathBuf};

/// Folders in which projects usually keep their environment.
const ENVIRONMENTS: [&str; 2] = [".venv", "venv"];
/// Folders in which projects usually keep their tests.
const TEST_FOLDERS: [&str; 2] = ["tests", "test"];
/// Entries of the project's folder that are looked at for tests.
const ENTRIES: usize = 1000;

/// The environment that a folder has, if any.
pub(in crate::develop) fn environment(site: &Site) -> Option<&'static str> {
    ENVIRONMENTS.into_iter().find(|name| site.has(python_in(name)))
}

/// The Python of an environment.
pub(in crate::develop) fn python_in(environment: &str) -> PathBuf {
    Path::new(environment).join("bin/python")
}

/// The Python of a folder: that of its environment, if it has one.
pub(super) fn interpreter(site: &Site) -> String {
    let own = environment(site).map(|name| in_jail(&site.folder.join(python_in(name))).display().to_string());
    own.unwrap_or_else(|| "python3".to_owned())
}

/// A plan with its runner: pytest where the interpreter has it, otherwise unittest.
pub(super) fn with_runner(mut plan: Plan, site: &Site, test: &Test, has_pytest: bool) -> Plan {
    let filter = test.filter.iter().flat_map(|filter| ["-k", filter.as_str()]);
    let args = test.args.iter().map(String::as_str);
    if has_pytest {
        plan.runner = "pytest";
        return plan.args(["-m", "pytest"]).args(filter).args(args);
    }
    plan.runner = "unittest";
    let plan = plan.args(["-m", "unittest"]);
    if !test.args.is_empty() {
        return plan.args(filter).args(args);
    }
    plan.args(["discover"]).args(test_folder(site).iter().flat_map(|folder| ["-s", *folder])).args(filter)
}

/// The folder that unittest has to start in: one that is no package is not found from above it.
fn test_folder(site: &Site) -> Option<&'static str> {
    let is_test = |(name, kind): &(PathBuf, Kind)| {
        let name = name.to_str().unwrap_or_default();
        *kind == Kind::File && name.starts_with("test") && name.ends_with(".py")
    };
    if site.entries(&site.folder, ENTRIES).iter().any(is_test) {
        return None;
    }
    TEST_FOLDERS.into_iter().find(|name| {
        let folder = site.folder.join(name);
        !site.is_file(&folder.join("__init__.py")) && site.entries(&folder, ENTRIES).iter().any(is_test)
    })
}
