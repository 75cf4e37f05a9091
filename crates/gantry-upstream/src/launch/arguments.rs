//! Reads the command line of a server: which of its arguments are programs, and which variables lead to some.

use std::path::Path;

/// Programs that run what their first arguments name. Digits at the end of a name are its version.
const RUNNERS: [&str; 37] = [
    "node", "nodejs", "deno", "bun", "tsx", "ts-node", "python", "pypy", "ruby", "perl", "php", "lua",
    "luajit", "java", "dotnet", "go", "cargo", "make", "sh", "bash", "dash", "zsh", "ksh", "fish", "uv",
    "poetry", "pdm", "hatch", "conda", "npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "uvx", "pipx",
];

/// Programs that run another one, which their arguments name somewhere.
const WRAPPERS: [&str; 9] =
    ["env", "sudo", "nice", "nohup", "timeout", "stdbuf", "setsid", "busybox", "xvfb-run"];

/// Programs whose words are names of packages or images, even if there are files of these names.
const BY_NAME: [&str; 11] =
    ["npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "uvx", "pipx", "docker", "podman", "nerdctl"];

/// Words of such programs that stand before the program to run.
const SUBCOMMANDS: [&str; 6] = ["run", "tool", "exec", "dlx", "x", "start"];

/// Options that take no value. After another one, the next argument is taken for its value.
const FLAGS: [&str; 22] = [
    "-y",
    "--yes",
    "-q",
    "--quiet",
    "-s",
    "--silent",
    "-v",
    "--verbose",
    "-u",
    "-i",
    "-B",
    "-E",
    "-I",
    "-O",
    "-S",
    "-A",
    "--offline",
    "--isolated",
    "--frozen",
    "--locked",
    "--bun",
    "--",
];

/// How such options begin.
const FLAG_STARTS: [&str; 5] = ["--no-", "--experimental-", "--enable-", "--inspect", "--allow-"];

/// Long options with the text of a program.
const TEXTS: [&str; 3] = ["--eval", "--print", "--command"];

/// Variables by which programs find code.
const VARIABLES: [&str; 20] = [
    "PATH",
    "HOME",
    "ENV",
    "BASH_ENV",
    "NODE_PATH",
    "NODE_OPTIONS",
    "CLASSPATH",
    "VIRTUAL_ENV",
    "RUBYLIB",
    "RUBYOPT",
    "PERLLIB",
    "PERL5LIB",
    "PERL5OPT",
    "GEM_HOME",
    "GEM_PATH",
    "LUA_PATH",
    "LUA_CPATH",
    "JAVA_TOOL_OPTIONS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];

/// How the names of more such variables begin.
const VARIABLE_STARTS: [&str; 9] =
    ["PYTHON", "LD_", "DYLD_", "NPM_CONFIG_", "UV_", "PIP_", "BUN_", "DENO_", "YARN_"];

/// What an argument is to the program that gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// A path here is run or loaded.
    Program,
    /// The text of a program.
    Text,
    Data,
}

/// Goes through the arguments of a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts {
    state: State,
    /// Whether words among them are names of packages and never files.
    pub(super) are_names: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the name of a program that may be a runner.
    Wrapper,
    /// Before the program that a runner runs; after an option that may take a value.
    Before {
        takes_value: bool,
    },
    /// After an option that takes the text of a program.
    BeforeText,
    After,
}

impl Parts {
    pub(super) fn of(command: &str) -> Self {
        let name = name(command);
        let state = match name {
            _ if RUNNERS.contains(&name) => State::Before { takes_value: false },
            _ if WRAPPERS.contains(&name) => State::Wrapper,
            _ => State::After,
        };
        Self { state, are_names: BY_NAME.contains(&name) }
    }

    pub(super) fn next(&mut self, argument: &str) -> Part {
        let is_option = argument.starts_with('-');
        let takes_value = match self.state {
            State::After => return Part::Data,
            State::BeforeText => {
                self.state = State::After;
                return Part::Text;
            }
            State::Wrapper => {
                let inner = Self::of(argument);
                if inner.state != State::After || inner.are_names {
                    *self = inner;
                }
                return Part::Program;
            }
            State::Before { takes_value } => takes_value,
        };
        self.state = match argument {
            _ if is_option && takes_text(argument) => State::BeforeText,
            _ if is_option => State::Before { takes_value: !is_flag(argument) },
            _ if takes_value || SUBCOMMANDS.contains(&argument) => State::Before { takes_value: false },
            _ => State::After,
        };
        Part::Program
    }
}

fn takes_text(option: &str) -> bool {
    // Letters of several options may stand together: `sh -ec`.
    let is_short = !option.starts_with("--") && option.len() <= 5 && option.ends_with(['c', 'e', 'm']);
    is_short || TEXTS.contains(&option)
}

fn is_flag(option: &str) -> bool {
    option.contains('=')
        || FLAGS.contains(&option)
        || FLAG_STARTS.iter().any(|start| option.starts_with(start))
}

fn name(command: &str) -> &str {
    let name = Path::new(command).file_name().and_then(|name| name.to_str()).unwrap_or(command);
    name.trim_end_matches(|end: char| end.is_ascii_digit() || end == '.')
}

pub(super) fn leads_to_code(variable: &str) -> bool {
    let name = variable.to_ascii_uppercase();
    VARIABLES.contains(&name.as_str()) || VARIABLE_STARTS.iter().any(|start| name.starts_with(start))
}

/// The absolute paths in a text: a script, a list, an option with its value.
pub(super) fn absolute_paths(text: &str) -> impl Iterator<Item = &str> {
    let ends = |at: char| at.is_whitespace() || "=:,;|&()<>{}[]'\"`$!".contains(at);
    // A short option has its value right behind it: `-I/lib`.
    let words = text.split(ends).filter_map(|word| {
        let start = if word.starts_with('-') { word.find('/')? } else { 0 };
        word.get(start..)
    });
    words.filter(|word| word.starts_with('/'))
}
