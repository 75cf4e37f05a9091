//! `sandbox-probe`: starts the shell script it is given, passes on its first line, and then waits to be killed; or runs a
//! script in a jail.

mod jail;

use std::io::{self, Write as _};
use std::process::ExitCode;
use tokio::io::{AsyncBufReadExt as _, BufReader};

fn main() -> ExitCode {
    if let Some(code) = gantry_sandbox::guard_main(std::env::args_os()) {
        return code;
    }
    let started =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().and_then(
            |runtime| match std::env::args_os().nth(1) {
                Some(word) if word == "jail" => runtime.block_on(jail::run(std::env::args_os().skip(2))),
                _ => runtime.block_on(hold()).map(|()| ExitCode::SUCCESS),
            },
        );
    match started {
        Ok(code) => code,
        Err(error) => {
            io::stderr().write_all(error.to_string().as_bytes()).ok();
            ExitCode::FAILURE
        }
    }
}

async fn hold() -> io::Result<()> {
    let mut spec = gantry_sandbox::Spec::new("sh");
    spec.args = ["-c".into()].into_iter().chain(std::env::args_os().skip(1)).collect();
    spec.env = std::env::vars_os().collect();
    let mut child = gantry_sandbox::spawn(&spec).await.map_err(io::Error::other)?;

    let stdout = child.stdout.take().ok_or_else(|| io::Error::other("no standard output"))?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).await?;
    io::stdout().write_all(line.as_bytes())?;
    io::stdout().flush()?;
    child.wait().await.map_err(io::Error::other)?;
    Ok(())
}
