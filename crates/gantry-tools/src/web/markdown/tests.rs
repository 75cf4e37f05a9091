//! Pages and what they read like.

use super::*;

#[track_caller]
fn check(html: &str, expected: &str) {
    let url = Url::parse("https://a.test/dir/page.html").unwrap();
    assert_eq!(convert(html, &url).text, expected, "{html}");
}

#[test]
fn words_are_kept_and_machinery_is_not() {
    check("<p>One <!-- no -->two</p>\n\n  <p>three", "One two\n\nthree");
    check("<script>if (a<b) { '</div>' }</script>x<style>p{}</style><svg><path d='M'/></svg>y", "xy");
    check("<nav><ul><li>Home<nav>in</nav></ul></nav><main>Text</main>", "Text");
    check("a<br>b<br/>c<hr>d", "a  \nb  \nc\n\n- - -\n\nd");
    check("a &amp; b &lt;c&gt; &eacute;&#8212;&#x1F600; &unknown; &", "a & b \\<c> é—😀 &unknown; &");
    check("<div>a</div><div>b</div><span>c</span> <span>d</span>", "a\n\nb\n\nc d");
    check("5 < 6 and <3", "5 < 6 and <3");
    check("a\0b<noframes><b>no</noframes>", "ab");
    check("", "");
}

#[test]
fn the_title_is_apart() {
    let url = Url::parse("https://a.test/").unwrap();
    let page = convert(
        "<html><head><title>\n A &amp; <b>B </title><meta charset=x></head><body><h1>Head</h1>",
        &url,
    );
    assert_eq!((page.title.as_deref(), page.text.as_str()), (Some("A & <b>B"), "# Head"));
    assert_eq!(convert("<title> </title>x", &url).title, None);
}

#[test]
fn headings_emphasis_and_code_are_marked() {
    check("<h1>A</h1><h2 id=x>B <em>c</em></h2>text<p></p>more", "# A\n\n## B *c*\n\ntext\n\nmore");
    check("a<b> bold </b>c <strong></strong><i>it</i>.", "a **bold** c *it*.");
    check("use <code>x = `1`</code> or <kbd>y</kbd>", "use `` x = `1` `` or `y`");
    check(
        "<pre><code class=\"hljs language-rust\">\nfn main() {\n    a &lt; b;\n}\n</code></pre>after",
        "```rust\nfn main() {\n    a < b;\n}\n```\n\nafter",
    );
    check("<pre>a\n  <b>b</b><br>c", "```\na\n  b\nc\n```");
    check("<pre>\r\n\r\na", "```\n\na\n```");
    check("<b>open <p>two</p> lines</b>", "**open\n\ntwo\n\nlines**");
}

#[test]
fn links_are_absolute_and_only_of_the_web() {
    check("<a href='../x?a=1&amp;b=2'>up</a>", "[up](https://a.test/x?a=1&b=2)");
    check(
        "see <a href=//b.test/ >there</a>, <a href=\"mailto:a@b.test\">mail</a>",
        "see [there](https://b.test/), [mail](mailto:a@b.test)",
    );
    check("<a href='javascript:alert(1)'>j</a> <a href='data:text/html,x'>d</a> <a name=n>n</a>", "j d n");
    check(
        "<a HREF=/1 href=/2>one</a><a href>two</a href=/3>",
        "[one](https://a.test/1)[two](https://a.test/dir/page.html)",
    );
    check("<a href=/1>one<a href=/2>two</a>", "[one](https://a.test/1)[two](https://a.test/2)");
    check("<a href=/1></a><a href=/2><h3>Head\nline</h3></a>", "[### Head line](https://a.test/2)");
    check("<base href='https://c.test/y/'><a href=z>z</a>", "[z](https://c.test/y/z)");
    check(
        "<img alt='A cat' src=cat.png><img src=x><img alt=b src='data:x'>",
        "![A cat](https://a.test/dir/cat.png)b",
    );
}

#[test]
fn lists_and_quotes_are_indented() {
    check("<ul><li>a<li>b<ol start=3><li>c</li><li>d</li></ol></li></ul>e", "- a\n- b\n  3. c\n  4. d\n\ne");
    check("<ul><li><p>a</p><p>b</p></li></ul>", "- a\n\n  b");
    check("<blockquote><p>a</p>b<br>c</blockquote>d", "> a\n> \n> b  \n> c\n\nd");
    check("<ul><li><pre>x\ny</pre></li></ul>", "- ```\n  x\n  y\n  ```");
    check("<dl><dt>a<dd>b</dl>", "a\n\nb");
}

#[test]
fn simple_tables_are_tables() {
    check(
        "<table><thead><tr><th>A<th>B</thead><tr><td>1 | 2</td><td><p>x</p><a href=/l>y</a></td></tr></table>z",
        "| A | B |\n|---|---|\n| 1 \\| 2 | x [y](https://a.test/l) |\n\nz",
    );
    check("<table><tr><td>a<table><tr><td>b<td>c</table></td></tr></table>", "a\n\nb\n\nc");
    check("<tr><td>stray</td>", "stray");
}

/// Pages that take quadratic time, exhaust the stack or fill the memory when they are read carelessly.
fn hostile() -> Vec<String> {
    let many = 5000;
    let opened = [
        "<div>",
        "<b>x",
        "<p><i>",
        "<font>",
        "<nav>",
        "<td>",
        "<svg>",
        "<math><mi>",
        "<template>",
        "</b>",
        "<a '",
        "<ul><li>a",
        "<blockquote>a\n",
        "<a href=/x>x",
        "<table><tr><td>x",
        "<table><b>x",
        "<pre>\n",
        "<",
        "<a href=\"",
        "<!--",
        "<script>",
        "<script></scrip",
        "&",
        "&#x",
        "<select><option>",
        "<svg><desc><div>",
        "<b>x</b>",
        "<tr><td>y",
        "<title>",
    ];
    let mut pages: Vec<String> = opened.iter().map(|tag| tag.repeat(many)).collect();
    pages.push(format!("{}x{}", "<div>".repeat(many), "</div>".repeat(many)));
    // Unclosed marks that a browser opens anew in every paragraph.
    let marks: String = (0..500).map(|n| format!("<p><b id={n}>")).collect();
    pages.push(marks + &"<p>x".repeat(many));
    // One wide cell, and one row with many.
    pages.push(format!("<table><tr><th>{}{}", "x".repeat(many), "<tr><td>y".repeat(many)));
    pages.push(format!("<table><tr>{}{}", "<th>x".repeat(many), "<tr><td>y".repeat(many)));
    // Neighbours of one kind, of which the first is long.
    pages.push(format!("<b>{}</b>{}", "x".repeat(many * 400), "<b>y</b>".repeat(many / 4)));
    // Lines that are indented often, and addresses that start from a long one.
    pages.push(format!("{}<pre>{}", "<ol start=9999><li>".repeat(200), "x\n".repeat(many * 200)));
    pages.push(format!("<base href='/{}/'>{}", "d".repeat(8000), "<a href=x>x</a> ".repeat(many)));
    pages.push(format!("<a {}>x", (0..many).map(|n| format!("a{n} ")).collect::<String>()));
    pages
}

#[test]
fn no_page_is_too_deep_too_broken_or_too_costly() {
    let url = Url::parse("https://a.test/").unwrap();
    for html in hostile() {
        let page = convert(&html, &url);
        assert!(page.text.len() <= MARKDOWN_BYTES, "{}", page.text.len());
    }
}

#[test]
fn elements_that_are_too_deep_lose_their_marks_and_keep_their_words() {
    let url = Url::parse("https://a.test/").unwrap();
    let page = convert(&format!("{}deep <b>words</b>", "<div>".repeat(100_000)), &url);
    assert_eq!((page.text.as_str(), page.truncated), ("deep words", false));
}

#[test]
fn a_snippet_is_words_on_one_line() {
    assert_eq!(plain_text("The <strong>Rust</strong>y &amp;\n<br>old<p>tool", 100), "The Rusty & old tool");
    assert_eq!(plain_text("abcdef", 3), "abc…");
    assert_eq!(plain_text("<script>x</script>", 3), "");
}
