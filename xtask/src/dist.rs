//! `cargo xtask dist`: the program as it is released, and its symbols in a file of their own.
//!
//! Debuggers find `gantry.debug` beside the program, by the link in it, and then show files and lines.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::shell::{Program, target_dir};

pub(crate) fn run(root: &Path) -> Result<()> {
    Program::cargo(root).args(["build", "--profile", "dist", "--locked", "-p", "gantry"]).run()?;
    let built = target_dir(root).join("dist").join("gantry");
    let dist = target_dir(root).join("package");
    fs::create_dir_all(&dist).with_context(|| format!("making {}", dist.display()))?;
    let objcopy = |args: &[&str]| Program::new("objcopy", &dist).args(args).run();
    let built = built.to_string_lossy();
    objcopy(&["--only-keep-debug", &built, "gantry.debug"])?;
    // A link to symbols is added anew, so it has to be the only one.
    objcopy(&["--strip-all", "--remove-section=.gnu_debuglink", &built, "gantry"])?;
    objcopy(&["--add-gnu-debuglink=gantry.debug", "gantry"])?;
    for name in ["gantry", "gantry.debug"] {
        let bytes = fs::metadata(dist.join(name)).with_context(|| format!("looking at {name}"))?.len();
        println!("{:>6.1} MB  {}", bytes as f64 / 1e6, dist.join(name).display());
    }
    Ok(())
}
