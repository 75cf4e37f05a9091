//! A Gantry whose workspace holds a project.

use gantry_core::schema::Schema;
use gantry_testkit::TestDir;
use serde_json::{Value, json};

/// What no program in a sandbox may read. It lies beside the workspace.
pub(super) const SECRET: &str = "the canary sings outside";

/// A user that no machine has.
const ORDINARY: u32 = 61_235;

pub(super) struct Yard {
    pub(super) home: TestDir,
}

impl Yard {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        Self::with("", files)
    }

    /// Does something in a yard of the user who runs the tests, and, where that is root, in one of an ordinary user.
    pub(super) fn each(config: &str, files: &[(&str, &str)], scenario: impl Fn(&Self)) {
        let ordinary = rustix::process::geteuid().is_root().then(|| TestDir::new().run_by(ORDINARY));
        for home in [TestDir::new()].into_iter().chain(ordinary) {
            scenario(&Self::at(home, config, files));
        }
    }

    /// The same with more configuration. The workspace is the folder `ws`.
    pub(super) fn with(config: &str, files: &[(&str, &str)]) -> Self {
        Self::at(TestDir::new(), config, files)
    }

    fn at(home: TestDir, config: &str, files: &[(&str, &str)]) -> Self {
        let home = home.config(&format!("workspace: ws\n{config}"));
        home.write("secret", SECRET);
        std::fs::create_dir_all(home.path().join("ws")).expect("the workspace");
        let yard = Self { home };
        for (path, content) in files {
            yard.put(path, content);
        }
        yard
    }

    pub(super) fn put(&self, path: &str, content: &str) {
        self.home.write(&format!("ws/{path}"), content);
    }

    pub(super) fn read(&self, path: &str) -> String {
        self.home.read(&format!("ws/{path}"))
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.home.path().join("ws").join(path).exists()
    }

    /// The result of a call without an approval.
    #[track_caller]
    pub(super) fn done(&self, tool: &str, arguments: &Value) -> Value {
        self.result(tool, self.home.call(tool, arguments))
    }

    /// The result of a call to which a person says yes.
    #[track_caller]
    pub(super) fn approved(&self, tool: &str, arguments: &Value) -> Value {
        self.result(tool, self.home.call_yes(tool, arguments))
    }

    /// The result of a reply, which fits the schema of the tool.
    #[track_caller]
    fn result(&self, tool: &str, mut reply: Value) -> Value {
        assert_eq!(reply["ok"], true, "{reply:#}");
        let result = reply["result"].take();
        let tools = self.home.run(["tools", "--format", "json"]).json();
        let mut tools = tools.as_array().expect("a list").iter();
        let found = tools.find(|known| known["name"] == tool).expect("the tool is listed");
        let schema = Schema::compile(&found["outputSchema"]).expect("a schema");
        schema.check(&result).unwrap_or_else(|errors| panic!("{errors:?}\n{result:#}"));
        result
    }

    /// The error of a call without an approval.
    #[track_caller]
    pub(super) fn error(&self, tool: &str, arguments: &Value) -> Value {
        let mut reply = self.home.call(tool, arguments);
        assert_eq!(reply["ok"], false, "{reply:#}");
        reply["error"].take()
    }

    /// The error of a call to which a person says yes.
    #[track_caller]
    pub(super) fn approved_error(&self, tool: &str, arguments: &Value) -> Value {
        let mut reply = self.home.call_yes(tool, arguments);
        assert_eq!(reply["ok"], false, "{reply:#}");
        reply["error"].take()
    }

    /// The result of `run_tests` with these arguments.
    #[track_caller]
    pub(super) fn tested(&self, arguments: &Value) -> Value {
        self.done("run_tests", arguments)
    }
}

/// Passed, failed and skipped.
pub(super) fn counts(result: &Value) -> [u64; 3] {
    assert_eq!(result["parsed"], true, "{result:#}");
    ["passed", "failed", "skipped"].map(|name| result[name].as_u64().expect("a count"))
}

/// A text that has all of these words.
#[track_caller]
pub(super) fn says(text: &Value, words: &[&str]) {
    let said = text.as_str().unwrap_or_else(|| panic!("no text: {text}"));
    for word in words {
        assert!(said.contains(word), "{word:?} is not in {said:?}");
    }
}

/// A package of Rust with this library.
pub(super) fn cargo(library: &str) -> Vec<(&'static str, String)> {
    let manifest = "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    vec![("Cargo.toml", manifest.to_owned()), ("src/lib.rs", library.to_owned())]
}

/// Arguments without any.
pub(super) fn nothing() -> Value {
    json!({})
}
