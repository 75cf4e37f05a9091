//! Reads the command line of a server: which of its arguments are programs, and which variables lead to some.

use std::path::Path;

/// Programs that run what their first arguments name. Digits at the end of a name are its version.
const RUNNERS: &str = "node nodejs deno bun tsx ts-node nodemon electron python pypy ruby perl php lua luajit java jbang \
    dotnet go cargo make julia Rscript tclsh pwsh sh bash dash zsh ksh fish uv poetry pdm hatch conda npx npm pnpm pnpx \
    yarn bunx uvx pipx";

/// Those of them that are Node, or find modules as it does.
const NODE: &str = "node nodejs deno bun bunx tsx ts-node nodemon electron npx npm pnpm pnpx yarn";

/// Programs that run another one, which their arguments name somewhere. Others may do so too, if one of their arguments is
/// a runner.
const WRAPPERS: &str = "env sudo doas nice ionice nohup time timeout stdbuf setsid flock busybox xvfb-run";

/// Programs whose words are names of packages or images, even if there are files of these names.
const BY_NAME: &str = "npx npm pnpm pnpx yarn bunx uvx pipx docker podman nerdctl";

/// Words of such programs that stand before the program to run.
const SUBCOMMANDS: &str = "run tool exec dlx x start";

/// Options that take no value, and how more of them begin. After another one, the next argument is taken for its value.
const FLAGS: &str = "-y --yes -q --quiet -s --silent -v --verbose -u -i -B -E -I -O -S -A --offline --isolated --frozen \
    --locked --bun --";
const FLAG_STARTS: &str = "--no- --experimental- --enable- --inspect --allow-";

/// Long options with the text of a program.
const TEXTS: &str = "--eval --print --command";

/// Variables by which programs find code, and how the names of more begin.
const VARIABLES: &str = "PATH HOME ENV BASH_ENV ZDOTDIR CLASSPATH VIRTUAL_ENV JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS \
    _JAVA_OPTIONS GOPATH GOFLAGS";
const VARIABLE_STARTS: &str =
    "NODE_ PYTHON RUBY PERL GEM_ LUA_ PHP XDG_ LD_ DYLD_ NPM_CONFIG_ UV_ PIP_ BUN_ DENO_ YARN_";

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
    /// Before the name of a program that may be a runner; until then, arguments are this.
    Around(Part),
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
        let name = Path::new(command).file_name().and_then(|name| name.to_str()).unwrap_or(command);
        let name = name.trim_end_matches(|end: char| end.is_ascii_digit() || end == '.');
        let are_names = has(BY_NAME, name);
        let state = match name {
            _ if has(RUNNERS, name) => State::Before { takes_value: false },
            _ if has(WRAPPERS, name) => State::Around(Part::Program),
            _ if are_names => State::After,
            _ => State::Around(Part::Data),
        };
        Self { state, are_names }
    }

    pub(super) fn next(&mut self, argument: &str) -> Part {
        let takes_value = match self.state {
            State::After => return Part::Data,
            State::BeforeText => {
                // For some runners the option is another one, and has a file.
                let is_path = argument.starts_with(['.', '/']);
                self.state = if is_path { State::Before { takes_value: false } } else { State::After };
                return Part::Text;
            }
            State::Around(part) => {
                let inner = Self::of(argument);
                // A path may be a folder with the name of a runner.
                let is_name = part == Part::Program || !argument.contains('/');
                if is_name && inner.state != State::Around(Part::Data) {
                    *self = inner;
                }
                return part;
            }
            State::Before { takes_value } => takes_value,
        };
        self.state = if !argument.starts_with('-') {
            let is_before = takes_value || has(SUBCOMMANDS, argument);
            if is_before { State::Before { takes_value: false } } else { State::After }
        } else if takes_text(argument) {
            State::BeforeText
        } else {
            let is_flag = argument.contains('=') || has(FLAGS, argument) || has_start(FLAG_STARTS, argument);
            State::Before { takes_value: !is_flag }
        };
        Part::Program
    }
}

fn takes_text(option: &str) -> bool {
    // Letters of several options may stand together: `sh -ec`.
    let is_short = !option.starts_with("--") && option.len() <= 5 && option.ends_with(['c', 'e', 'm']);
    is_short || has(TEXTS, option)
}

pub(super) fn is_node(program: &str) -> bool {
    has(NODE, program)
}

pub(super) fn leads_to_code(variable: &str) -> bool {
    let name = variable.to_ascii_uppercase();
    has(VARIABLES, &name) || has_start(VARIABLE_STARTS, &name)
}

/// Whether a list of words has this one.
pub(super) fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|it| it == word)
}

fn has_start(list: &str, word: &str) -> bool {
    list.split(' ').any(|start| word.starts_with(start))
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
