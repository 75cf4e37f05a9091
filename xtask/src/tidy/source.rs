//! One Rust file as the rules see it: its text, its tokens, its functions, and which of its lines are tests.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::Finding;

/// A parsed file; `path` is relative to the root.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(super) text: String,
    pub(super) tokens: TokenStream,
    /// The whole file is test code, by its place or because its module is declared `#[cfg(test)]`.
    pub(crate) is_test: bool,
    /// The functions outside tests.
    pub(crate) functions: Vec<Function>,
    test_lines: Vec<RangeInclusive<usize>>,
    test_module_start: Option<usize>,
    declared_tests: Vec<String>,
}

/// A function outside tests; its length runs from `fn` to the closing brace.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(super) line: usize,
    pub(crate) n_lines: usize,
    pub(super) n_parameters: usize,
}

impl Source {
    pub(crate) fn parse(path: &str, text: String) -> Result<Self, Finding> {
        let unparsable = |line, error: &dyn std::fmt::Display| {
            Finding::new(path, line, format!("this is not valid Rust, so nothing in it was checked: {error}"))
        };
        let tokens =
            TokenStream::from_str(&text).map_err(|error| unparsable(error.span().start().line, &error))?;
        let file: syn::File =
            syn::parse2(tokens.clone()).map_err(|error| unparsable(error.span().start().line, &error))?;

        let mut outline = Outline::default();
        outline.visit_file(&file);
        Ok(Self {
            path: path.to_owned(),
            text,
            tokens,
            // `testing.rs` is compiled only by the feature of that name, which only tests switch on.
            is_test: ["/tests.rs", "/testing.rs"].iter().any(|name| path.ends_with(name))
                || path.contains("/tests/")
                || is_test_only(&file.attrs),
            functions: outline.functions,
            test_lines: outline.test_lines,
            test_module_start: file.items.iter().find_map(inline_test_module_start),
            declared_tests: file.items.iter().filter_map(declared_test_module).collect(),
        })
    }

    /// Whether the line belongs to test code.
    pub(super) fn is_test_line(&self, line: usize) -> bool {
        self.is_test || self.test_lines.iter().any(|lines| lines.contains(&line))
    }

    /// The lines of the product: all but those of tests.
    pub(crate) fn product_lines(&self) -> usize {
        if self.is_test {
            return 0;
        }
        (1..=self.text.lines().count()).filter(|line| !self.is_test_line(*line)).count()
    }

    /// The lines before the test module at the end of the file; all of them in a test file.
    pub(super) fn lines_outside_tests(&self) -> usize {
        match self.test_module_start {
            Some(line) if !self.is_test => line - 1,
            _ => self.text.lines().count(),
        }
    }

    /// The folder in which the files of this module's children are.
    fn children_folder(&self) -> &str {
        let crate_root = ["/lib.rs", "/main.rs"].iter().find_map(|name| self.path.strip_suffix(name));
        crate_root.or_else(|| self.path.strip_suffix(".rs")).unwrap_or(&self.path)
    }
}

/// Marks the files, and all below them, that another file declares as `#[cfg(test)] mod name;`.
pub(crate) fn mark_declared_tests(sources: &mut [Source]) {
    let modules: BTreeSet<String> = sources
        .iter()
        .flat_map(|source| {
            source.declared_tests.iter().map(|name| format!("{}/{name}", source.children_folder()))
        })
        .collect();
    for source in sources {
        let path = &source.path;
        source.is_test |= modules.iter().any(|module| {
            path.strip_prefix(module.as_str()).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        });
    }
}

fn inline_test_module_start(item: &syn::Item) -> Option<usize> {
    let syn::Item::Mod(module) = item else { return None };
    (module.content.is_some() && is_test_only(&module.attrs)).then(|| first_line(&module.attrs))?
}

fn declared_test_module(item: &syn::Item) -> Option<String> {
    let syn::Item::Mod(module) = item else { return None };
    (module.content.is_none() && is_test_only(&module.attrs)).then(|| module.ident.to_string())
}

fn first_line(attrs: &[syn::Attribute]) -> Option<usize> {
    attrs.iter().map(|attr| attr.pound_token.span.start().line).min()
}

/// Whether an item carries `#[cfg(test)]`, `#[cfg(all(test, …))]`, or a test attribute such as `#[tokio::test]`.
fn is_test_only(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|attr| {
        let is_test_attribute = attr.path().segments.last().is_some_and(|last| last.ident == "test");
        let is_cfg_test = attr.path().is_ident("cfg")
            && matches!(&attr.meta, syn::Meta::List(list) if implies_test(&list.tokens));
        is_test_attribute || is_cfg_test
    })
}

fn implies_test(condition: &TokenStream) -> bool {
    let tokens: Vec<TokenTree> = condition.clone().into_iter().collect();
    match tokens.as_slice() {
        [TokenTree::Ident(name)] => name == "test",
        [TokenTree::Ident(name), TokenTree::Group(group)] if name == "all" => {
            group.delimiter() == Delimiter::Parenthesis
                && group
                    .stream()
                    .into_iter()
                    .any(|tree| matches!(tree, TokenTree::Ident(name) if name == "test"))
        }
        _ => false,
    }
}

/// Collects what the rules need from the syntax tree; it does not descend into test code.
#[derive(Default)]
struct Outline {
    functions: Vec<Function>,
    test_lines: Vec<RangeInclusive<usize>>,
}

impl Outline {
    fn skip_test(&mut self, attrs: &[syn::Attribute], end: usize) -> bool {
        let is_test = is_test_only(attrs);
        if is_test && let Some(start) = first_line(attrs) {
            self.test_lines.push(start..=end);
        }
        is_test
    }

    fn add(&mut self, signature: &syn::Signature, end: usize) {
        let line = signature.fn_token.span.start().line;
        self.functions.push(Function {
            name: signature.ident.to_string(),
            line,
            n_lines: end + 1 - line,
            n_parameters: signature.inputs.len(),
        });
    }
}

impl<'ast> Visit<'ast> for Outline {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let is_test = extent(item).is_some_and(|(attrs, end)| self.skip_test(attrs, end));
        if !is_test {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.sig, closing_line(&function.block.brace_token));
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        let end = closing_line(&function.block.brace_token);
        if !self.skip_test(&function.attrs, end) {
            self.add(&function.sig, end);
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        let end = match &function.default {
            Some(block) => closing_line(&block.brace_token),
            None => function.sig.paren_token.span.close().end().line,
        };
        if !self.skip_test(&function.attrs, end) {
            self.add(&function.sig, end);
            visit::visit_trait_item_fn(self, function);
        }
    }
}

/// The attributes of an item and its last line, for the kinds of items that tests consist of.
#[expect(clippy::wildcard_enum_match_arm, reason = "kinds that are added to the language are not looked at")]
fn extent(item: &syn::Item) -> Option<(&[syn::Attribute], usize)> {
    let line = |semi: &syn::token::Semi| semi.span.end().line;
    match item {
        syn::Item::Const(item) => Some((&item.attrs, line(&item.semi_token))),
        syn::Item::Enum(item) => Some((&item.attrs, closing_line(&item.brace_token))),
        syn::Item::Fn(item) => Some((&item.attrs, closing_line(&item.block.brace_token))),
        syn::Item::Impl(item) => Some((&item.attrs, closing_line(&item.brace_token))),
        syn::Item::Macro(item) => Some((&item.attrs, item.mac.delimiter.span().close().end().line)),
        syn::Item::Mod(item) => {
            let end = item.content.as_ref().map(|(brace, _)| closing_line(brace));
            Some((&item.attrs, end.or_else(|| item.semi.as_ref().map(line))?))
        }
        syn::Item::Static(item) => Some((&item.attrs, line(&item.semi_token))),
        syn::Item::Struct(item) => {
            let end = match &item.fields {
                syn::Fields::Named(fields) => Some(closing_line(&fields.brace_token)),
                syn::Fields::Unnamed(_) | syn::Fields::Unit => item.semi_token.as_ref().map(line),
            };
            Some((&item.attrs, end?))
        }
        syn::Item::Trait(item) => Some((&item.attrs, closing_line(&item.brace_token))),
        syn::Item::Type(item) => Some((&item.attrs, line(&item.semi_token))),
        syn::Item::Use(item) => Some((&item.attrs, line(&item.semi_token))),
        _ => None,
    }
}

fn closing_line(brace: &syn::token::Brace) -> usize {
    brace.span.close().end().line
}
