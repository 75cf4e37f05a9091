//! What a file defines, found by how lines begin. No parser: a few definitions missed or too many do no harm to a ranking.

use regex::Regex;
use std::path::Path;
use std::sync::LazyLock;

/// Bytes of a line that can define something.
const LINE_BYTES: usize = 400;

#[derive(Debug)]
pub(super) struct Language {
    extensions: &'static [&'static str],
    /// What a line looks like that defines something; the first group that takes part is its name.
    definition: LazyLock<Option<Regex>>,
}

macro_rules! languages {
    ($($extensions:expr => $text:literal),+ $(,)?) => {
        [$(Language {
            extensions: &$extensions,
            definition: LazyLock::new(|| Regex::new(concat!("^(?:", $text, ")")).ok()),
        }),+]
    };
}

static LANGUAGES: [Language; 11] = languages! {
    ["rs"] => r#"\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:default|async|const|unsafe|extern(?:\s+"[^"]*")?)\s+)*(?:(?:fn|struct|enum|trait|union|type|mod|static|const)\s+|macro_rules!\s*)(\w+)"#,
    ["py", "pyi"] => r"\s*(?:async\s+)?(?:def|class)\s+(\w+)|([A-Z][A-Z0-9_]+)\s*(?::[^=]*)?=",
    ["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue", "svelte"] => r"\s*(?:(?:export|default|declare|abstract|async)\s+)*(?:function\*?|class|interface|enum|namespace)\s+(\w+)|(?:export\s+)?(?:const|let|var|type)\s+(\w+)|\s+(?:(?:async|static|get|set|public|private|protected|readonly|override)\s+)*([A-Za-z_$][\w$]*)\s*\([^()]*\)\s*(?::[^={]*)?\{",
    ["go"] => r"func\s+(?:\([^)]*\)\s*)?(\w+)|(?:type|var|const)\s+(\w+)",
    ["java", "kt", "kts", "scala", "cs", "swift", "groovy", "dart"] => r"\s*(?:(?:public|private|protected|internal|static|final|abstract|sealed|open|override|data|partial|inline|suspend|async)\s+)*(?:class|interface|enum|record|object|struct|trait|protocol|extension|fun|func|def|typealias)\s+(?:class\s+)?(\w+)|\s+(?:(?:public|private|protected|internal|static|final|synchronized|abstract|native|default|override|virtual|async)\s+)+[\w<>\[\],.? ]+\s(\w+)\s*\(",
    ["c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx", "m", "mm", "cu"] => r"\s*(?:typedef\s+)?(?:struct|class|union|enum(?:\s+class)?|namespace)\s+(\w+)|\s*#\s*define\s+(\w+)|[A-Za-z_][\w\s*&:<>,~]*?[\s*&:](\w+)\s*\([^;]*$",
    ["rb", "rake"] => r"\s*(?:def\s+(?:self\.)?|class\s+|module\s+)([\w:]+)",
    ["php"] => r"\s*(?:(?:abstract|final|public|private|protected|static|readonly)\s+)*(?:function\s+&?|class\s+|interface\s+|trait\s+|enum\s+|const\s+)(\w+)",
    ["sh", "bash", "zsh", "ksh"] => r"\s*(?:function\s+)?([\w-]+)\s*\(\)|\s*function\s+([\w-]+)",
    ["sql"] => r#"(?i)\s*create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+|unique\s+|materialized\s+)*(?:table|view|index|function|procedure|trigger|type)\s+(?:if\s+not\s+exists\s+)?["`]?([\w.]+)"#,
    ["md", "markdown", "mdx"] => r"#{1,6}\s+(.{1,200})",
};

/// Words that look like the name of a method and are none.
const KEYWORDS: [&str; 12] = [
    "if", "for", "while", "switch", "catch", "return", "function", "else", "do", "with", "sizeof", "defined",
];

impl Language {
    /// The language of a file of that name, if it is known.
    pub(super) fn of_file(path: &str) -> Option<&'static Self> {
        let extension = Path::new(path).extension()?.to_str()?.to_ascii_lowercase();
        LANGUAGES.iter().find(|language| language.extensions.contains(&extension.as_str()))
    }

    pub(super) fn defined_by<'a>(&self, line: &'a str) -> Option<&'a str> {
        if line.len() > LINE_BYTES {
            return None;
        }
        // Most lines define nothing, and to find that out is cheaper without the groups.
        let definition = self.definition.as_ref().filter(|definition| definition.is_match(line))?;
        let groups = definition.captures(line)?;
        let name = groups.iter().skip(1).flatten().next()?.as_str();
        (!KEYWORDS.contains(&name)).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: &str) {
        let language = Language::of_file(path);
        let names: Vec<&str> = text.lines().filter_map(|line| language?.defined_by(line)).collect();
        assert_eq!(names.join(" "), expected);
    }

    #[test]
    fn every_pattern_is_one() {
        for language in &LANGUAGES {
            assert!(language.definition.is_some(), "{:?}", language.extensions);
        }
    }

    #[test]
    fn definitions_are_found_in_many_languages() {
        check(
            "a.rs",
            "pub(crate) async fn run() {}\nstruct S;\n  const N: u8 = 1;\nlet x = fn_call();\nmacro_rules! m {\npub unsafe extern \"C\" fn c() {}",
            "run S N m c",
        );
        check("a.py", "class A:\n    async def go(self):\n        x = 1\nLIMIT = 3\n", "A go LIMIT");
        check(
            "a.ts",
            "export default class K {\n  private async load(id: string): Promise<void> {\n    if (x) {\n  }\nexport const F = 1;\n  const local = 2;\ninterface I {}\ntype T = 1",
            "K load F I T",
        );
        check(
            "a.go",
            "func (s *Server) Serve(x int) {\ntype T struct {\nfunc main() {\n\tx := 1",
            "Serve T main",
        );
        check(
            "A.java",
            "public final class A {\n    public static List<String> names(int x) {\n    int y;\n",
            "A names",
        );
        check("a.kt", "data class D(val x: Int)\n  override fun f() = 1\n", "D f");
        check("a.c", "struct s {\n#define MAX 1\nstatic int go(int x)\n{\n  call(x);\n}\n", "s MAX go");
        check("a.cpp", "void Foo::bar(int x) {\nnamespace n {\n", "bar n");
        check("a.rb", "class A\n  def self.go(x)\n", "A go");
        check("a.php", "abstract class A {\n  public static function go() {\n", "A go");
        check("a.sh", "deploy() {\nfunction roll-back {\n  echo hi\n", "deploy roll-back");
        check("a.sql", "CREATE TABLE IF NOT EXISTS users (id)\nselect 1", "users");
        check("README.md", "# The title\ntext\n## Part two", "The title Part two");
        check("a.unknown", "fn x() {}", "");
        check("Makefile", "x:", "");
    }
}
