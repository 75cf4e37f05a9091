//! `${VAR}` and `${VAR:-default}` in text values.
//!
//! One pass over text that is already parsed: what a variable holds is never parsed or expanded again, so a secret
//! with a quote or a `${` in it cannot change the configuration. Only plain names count as variables; everything else
//! in `${…}` stays as it is, so that shell code and templates such as `${parameters.city}` survive. `$${` writes `${`.
//! In the entry of an MCP server, `${env:VAR}` is `${VAR}`, as editors write it.

use super::dotenv::Variables;

/// Whose spelling of variables is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VariableSyntax {
    Gantry,
    /// Also what editors write in the entries of MCP servers.
    Editor,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ExpandError {
    /// The text is right, and the environment lacks what it names.
    Missing(String),
    /// The text itself is wrong.
    Wrong(String),
}

/// The text with its variables put in, or `None` when it has none and no escape.
pub(super) fn expand(
    text: &str,
    variables: &Variables<'_>,
    dialect: VariableSyntax,
) -> Result<Option<String>, ExpandError> {
    if !text.contains("${") {
        return Ok(None);
    }
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.find('$').and_then(|at| rest.split_at_checked(at)) {
        expanded.push_str(before);
        if let Some(after) = from.strip_prefix("$${") {
            expanded.push_str("${");
            rest = after;
        } else if let Some((reference, after)) = Reference::parse(from, dialect) {
            expanded.push_str(&reference.value(variables)?);
            rest = after;
        } else {
            expanded.push('$');
            rest = from.strip_prefix('$').unwrap_or_default();
        }
    }
    expanded.push_str(rest);
    Ok((expanded != text).then_some(expanded))
}

struct Reference<'a> {
    name: &'a str,
    default: Option<&'a str>,
    /// Whether an editor would ask a person for it.
    asked: bool,
}

impl<'a> Reference<'a> {
    /// Reads a reference at the start of a text and returns what follows it.
    fn parse(text: &'a str, dialect: VariableSyntax) -> Option<(Self, &'a str)> {
        let (inside, after) = text.strip_prefix("${")?.split_once('}')?;
        if dialect == VariableSyntax::Editor
            && let Some(name) = inside.strip_prefix("input:")
        {
            return Some((Self { name, default: None, asked: true }, after));
        }
        let editors = inside.strip_prefix("env:").filter(|_| dialect == VariableSyntax::Editor);
        let inside = editors.unwrap_or(inside);
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        is_name(name).then_some((Self { name, default, asked: false }, after))
    }

    fn value(&self, variables: &Variables<'_>) -> Result<String, ExpandError> {
        let name = self.name;
        if self.asked {
            return Err(ExpandError::Missing(format!(
                "an editor asks for ${{input:{name}}} and Gantry cannot; write ${{VAR}} instead and set VAR"
            )));
        }
        if self.default.is_some_and(|default| default.contains("${")) {
            let message =
                format!("the default of ${{{name}}} holds another variable; a default is plain text");
            return Err(ExpandError::Wrong(message));
        }
        // As in a shell, `:-` also covers a variable that is set to nothing.
        match (variables.get(name).map_err(ExpandError::Missing)?, self.default) {
            (Some(value), None) => Ok(value),
            (Some(value), Some(_)) if !value.is_empty() => Ok(value),
            (_, Some(default)) => Ok(default.to_owned()),
            (None, None) => Err(ExpandError::Missing(format!(
                "${{{name}}} is not set; set it in the environment or in .env, or write ${{{name}:-default}}"
            ))),
        }
    }
}

pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, proptest};

    use super::{ExpandError, VariableSyntax, expand};
    use crate::config::dotenv::{Env, Variables};

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        check_as(VariableSyntax::Gantry, text, expected);
    }

    #[track_caller]
    fn check_as(dialect: VariableSyntax, text: &str, expected: Result<&str, &str>) {
        let env = Env::from([("CITY", "Bern"), ("EMPTY", ""), ("TRICKY", "${CITY} $${")]);
        let variables = Variables::new(&env);
        let found = expand(text, &variables, dialect).map(|new| new.unwrap_or_else(|| text.to_owned()));
        let found = found.map_err(|(ExpandError::Missing(message) | ExpandError::Wrong(message))| message);
        assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{text}");
    }

    #[test]
    fn variables_and_defaults_are_put_in() {
        check("in ${CITY}!", Ok("in Bern!"));
        check("${CITY}${CITY}", Ok("BernBern"));
        check("${EMPTY}", Ok(""));
        check("${NONE:-Rome}", Ok("Rome"));
        check("${NONE:-}", Ok(""));
        check("${NONE:-a:-b}", Ok("a:-b"));
        check("${EMPTY:-Rome}", Ok("Rome"));
        check("${CITY:-Rome}", Ok("Bern"));
    }

    #[test]
    fn values_are_not_expanded_again() {
        check("${TRICKY}", Ok("${CITY} $${"));
    }

    #[test]
    fn an_escape_writes_the_braces() {
        check("$${CITY}", Ok("${CITY}"));
        check("$${CITY} ${CITY}", Ok("${CITY} Bern"));
        check("$$${CITY}", Ok("$${CITY}"));
        check("$$5 $", Ok("$$5 $"));
    }

    #[test]
    fn other_braces_stay_as_they_are() {
        for text in [
            "${parameters.city}",
            "${x%y}",
            "${x:+y}",
            "${x-y}",
            "${}",
            "${1A}",
            "${env:CITY}",
            "$CITY",
            "${CITY",
            "${CITY:-x",
            "{CITY}",
            "${ CITY }",
            "${é}",
            "$",
            "${ünset:-x}",
        ] {
            check(text, Ok(text));
        }
    }

    #[test]
    fn an_unset_variable_says_what_to_do() {
        check(
            "${NONE}",
            Err("${NONE} is not set; set it in the environment or in .env, or write ${NONE:-default}"),
        );
    }

    #[test]
    fn the_spelling_of_editors_is_read_where_editors_write() {
        let check = |text, expected| check_as(VariableSyntax::Editor, text, expected);
        check("${env:CITY} ${CITY} ${env:NONE:-Rome}", Ok("Bern Bern Rome"));
        check("${parameters.city}", Ok("${parameters.city}"));
        check(
            "${input:token}",
            Err("an editor asks for ${input:token} and Gantry cannot; write ${VAR} instead and set VAR"),
        );
    }

    #[test]
    fn a_variable_inside_a_default_is_refused() {
        check(
            "${NONE:-${CITY}}",
            Err("the default of ${NONE} holds another variable; a default is plain text"),
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn text_without_references_is_untouched(text in r"([^{]|\{\PC?)*") {
            if !text.contains("${") {
                check(&text, Ok(&text));
            }
        }

        #[test]
        fn an_escaped_text_comes_back_whole(text in r"[a-zA-Z${}:_% -]*") {
            // A `$` before `${` would pair up with the escape, which the test avoids by a space.
            let plain = text.replace("$$", "$ ");
            check(&plain.replace("${", "$${"), Ok(&plain));
        }
    }
}
