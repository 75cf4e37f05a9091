//! `sandbox-probe jail WORKSPACE SCRIPT [hidden|read_only PATH | wall SECONDS | memory MIB | written MIB | store PATH]...`:
//! runs a shell script in a jail, as Gantry would.

use gantry_sandbox::jail::{Access, ExitReason, Job, Limits, STORE, Sandbox, Store, Workspace};
use gantry_sandbox::protected::ProtectedPaths;
use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// The exit code if the script was not run, or not to its end.
const FAILED: u8 = 101;

/// Passes on what the script writes and how it ends; says on standard error how the jail was built.
pub(crate) async fn run(args: impl Iterator<Item = OsString>) -> io::Result<ExitCode> {
    match ran(args).await {
        Ok(code) => Ok(code),
        Err(error) => {
            writeln!(io::stderr(), "{error}")?;
            Ok(ExitCode::from(FAILED))
        }
    }
}

async fn ran(mut args: impl Iterator<Item = OsString>) -> Result<ExitCode, Box<dyn Error>> {
    let (workspace, script) = args.next().zip(args.next()).ok_or("a workspace and a script are needed")?;
    let (mut protected, mut job) = (ProtectedPaths::default(), job(script));
    while let Some((kind, value)) = args.next().zip(args.next()) {
        let number = || value.to_str().ok_or("a number is needed")?.parse().map_err(Box::<dyn Error>::from);
        match kind.to_str() {
            Some("hidden") => protected.hidden.push(value.into()),
            Some("read_only") => protected.read_only.push(value.into()),
            Some("wall") => job.limits.wall = Duration::from_secs(number()?),
            Some("memory") => job.limits.memory = number()? << 20,
            Some("store") => {
                job.stores = vec![Store { path: value.into(), at: STORE.into(), access: Access::Read }];
            }
            Some("written") => job.limits.written = number()? << 20,
            _ => return Err("what else is to be said is not known".into()),
        }
    }
    let sandbox = Sandbox::find()?;
    writeln!(io::stderr(), "level: {}", sandbox.info().level)?;
    let workspace = Workspace::open(workspace.as_ref(), protected)?;
    let ran = sandbox.start(&workspace, job).await?.end().await?;
    io::stdout().write_all(&ran.stdout.bytes)?;
    io::stderr().write_all(&ran.stderr.bytes)?;
    let ExitReason::Exited(code) = ran.end else { return Err(format!("it came to {:?}", ran.end).into()) };
    Ok(ExitCode::from(u8::try_from(code)?))
}

fn job(script: OsString) -> Job {
    // By which the tests know the processes.
    let mark = std::env::var_os("MARK").unwrap_or_default();
    Job {
        program: "sh".into(),
        args: vec!["-c".into(), script],
        env: Vec::from([("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()), ("MARK".into(), mark)]),
        folder: PathBuf::new(),
        input: Arc::default(),
        access: Access::Write,
        network: false,
        toolchains: Vec::new(),
        stores: Vec::new(),
        files: vec![("given".into(), "a file of Gantry's\n".to_owned())],
        limits: Limits {
            wall: Duration::from_secs(60),
            cpu: Duration::from_secs(60),
            memory: 512 << 20,
            processes: 64,
            written: 256 << 20,
            output: 64 << 10,
        },
    }
}
