//! The table of styles, row by row, and what it leaves open.

use super::*;
use serde_json::json;

const STYLES: [Style; 8] = [
    Style::Simple,
    Style::Label,
    Style::Matrix,
    Style::Form,
    Style::SpaceDelimited,
    Style::PipeDelimited,
    Style::TabDelimited,
    Style::DeepObject,
];

fn styled(style: Style, explode: bool) -> Form {
    Form::Styled { style, explode, allow_reserved: false }
}

/// The values of the table: empty, string, list, object.
fn values() -> [Value; 4] {
    [json!(""), json!("blue"), json!(["blue", "black", "brown"]), json!({"R": 100, "G": 200, "B": 150})]
}

fn path(name: &str, form: Form, value: &Value) -> Option<String> {
    let parameter = Parameter { argument: name.to_owned(), name: name.to_owned(), place: Place::Path, form };
    in_path(&parameter, value).unwrap()
}

fn pairs(sheet: Sheet, name: &str, form: &Form, value: &Value) -> String {
    let mut pairs = Pairs::new(sheet, ADDRESS_BYTES);
    pairs.write(name, value, form).unwrap();
    pairs.join(if sheet == Sheet::Cookie { "; " } else { "&" })
}

fn query(form: &Form, value: &Value) -> String {
    pairs(Sheet::Query, "color", form, value)
}

#[test]
fn rst_2_each_style_of_a_path_is_written_as_the_table_says() {
    // Without a value, a path of `simple` or `label` would be another path: that is refused by whoever asks.
    let rows = [
        (Style::Simple, false, ["-", "blue", "blue,black,brown", "R,100,G,200,B,150"]),
        (Style::Simple, true, ["-", "blue", "blue,black,brown", "R=100,G=200,B=150"]),
        (Style::Label, false, ["-", ".blue", ".blue,black,brown", ".R,100,G,200,B,150"]),
        (Style::Label, true, ["-", ".blue", ".blue.black.brown", ".R=100.G=200.B=150"]),
        (
            Style::Matrix,
            false,
            [";color", ";color=blue", ";color=blue,black,brown", ";color=R,100,G,200,B,150"],
        ),
        (
            Style::Matrix,
            true,
            [";color", ";color=blue", ";color=blue;color=black;color=brown", ";R=100;G=200;B=150"],
        ),
    ];
    for (style, explode, expected) in rows {
        for (value, expected) in values().iter().zip(expected) {
            let text = path("color", styled(style, explode), value);
            assert_eq!(text.as_deref().unwrap_or("-"), expected, "{style:?} {explode} {value}");
        }
    }
}

#[test]
fn rst_2_each_style_of_a_query_is_written_as_the_table_says() {
    let exploded = ["color=", "color=blue", "color=blue&color=black&color=brown", "R=100&G=200&B=150"];
    let deep = [
        "color=",
        "color=blue",
        "color%5B0%5D=blue&color%5B1%5D=black&color%5B2%5D=brown",
        "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150",
    ];
    let joined = |list, object| ["color=", "color=blue", list, object];
    let rows = [
        (Style::Form, false, joined("color=blue,black,brown", "color=R,100,G,200,B,150")),
        (Style::Form, true, exploded),
        (
            Style::SpaceDelimited,
            false,
            joined("color=blue%20black%20brown", "color=R%20100%20G%20200%20B%20150"),
        ),
        (Style::SpaceDelimited, true, exploded),
        (
            Style::PipeDelimited,
            false,
            joined("color=blue%7Cblack%7Cbrown", "color=R%7C100%7CG%7C200%7CB%7C150"),
        ),
        (Style::PipeDelimited, true, exploded),
        (
            Style::TabDelimited,
            false,
            joined("color=blue%09black%09brown", "color=R%09100%09G%09200%09B%09150"),
        ),
        (Style::TabDelimited, true, exploded),
        (Style::DeepObject, false, deep),
        (Style::DeepObject, true, deep),
    ];
    for (style, explode, expected) in rows {
        for (value, expected) in values().iter().zip(expected) {
            assert_eq!(query(&styled(style, explode), value), expected, "{style:?} {explode} {value}");
        }
    }
}

#[test]
fn rst_2_headers_are_simple_and_cookies_are_form() {
    let headers = [
        (false, ["", "blue", "blue,black,brown", "R,100,G,200,B,150"]),
        (true, ["", "blue", "blue,black,brown", "R=100,G=200,B=150"]),
    ];
    for (explode, expected) in headers {
        for (value, expected) in values().iter().zip(expected) {
            let text = in_header(&styled(Style::Simple, explode), value);
            assert_eq!(text.as_deref(), Some(expected), "{explode} {value}");
        }
    }
    let cookies = [
        (false, ["color=", "color=blue", "color=blue,black,brown", "color=R,100,G,200,B,150"]),
        (true, ["color=", "color=blue", "color=blue; color=black; color=brown", "R=100; G=200; B=150"]),
    ];
    for (explode, expected) in cookies {
        for (value, expected) in values().iter().zip(expected) {
            let text = pairs(Sheet::Cookie, "color", &styled(Style::Form, explode), value);
            assert_eq!(text, expected, "{explode} {value}");
        }
    }
}

#[test]
fn a_style_that_a_place_does_not_have_is_its_usual_one() {
    let [_, _, list, _] = values();
    for style in [Style::Simple, Style::Label, Style::Matrix] {
        assert_eq!(query(&styled(style, true), &list), "color=blue&color=black&color=brown");
        assert_eq!(query(&styled(style, false), &list), "color=blue,black,brown");
    }
    for style in [Style::Form, Style::DeepObject] {
        assert_eq!(path("color", styled(style, false), &list).unwrap(), "blue,black,brown");
        assert_eq!(in_header(&styled(style, true), &list).unwrap(), "blue,black,brown");
    }
}

#[test]
fn rst_2_lists_of_swagger_have_their_delimiter_in_paths_and_headers_too() {
    let [_, one, list, _] = values();
    for (style, in_a_path, in_a_header) in [
        (Style::PipeDelimited, "blue%7Cblack%7Cbrown", "blue|black|brown"),
        (Style::SpaceDelimited, "blue%20black%20brown", "blue black brown"),
        (Style::TabDelimited, "blue%09black%09brown", "blue\tblack\tbrown"),
    ] {
        let form = styled(style, false);
        assert_eq!(path("color", form.clone(), &list).unwrap(), in_a_path);
        assert_eq!(path("color", form.clone(), &one).unwrap(), "blue");
        assert_eq!(in_header(&form, &list).unwrap(), in_a_header);
    }
}

#[test]
fn a_list_in_an_object_that_is_spread_repeats_its_name() {
    let value = json!({"sort": ["a", null, "b"], "none": [], "deep": [[1]], "n": 1, "objects": [{"x": 1}]});
    let expected = "sort=a&sort=b&deep=%5B%5B1%5D%5D&n=1&objects=%5B%7B%22x%22%3A1%7D%5D";
    assert_eq!(query(&styled(Style::Form, true), &value), expected);
    let cookies = pairs(Sheet::Cookie, "color", &styled(Style::Form, true), &json!({"a": [1, 2]}));
    assert_eq!(cookies, "a=1; a=2");
    let body = pairs(Sheet::Form, "color", &styled(Style::Form, true), &json!({"a": ["x y", 2]}));
    assert_eq!(body, "a=x+y&a=2");
    let long = json!({"k".repeat(8000): vec![1; 100_000]});
    let mut sheet = Pairs::new(Sheet::Query, ADDRESS_BYTES);
    assert_eq!(sheet.write("x", &long, &styled(Style::Form, true)), Err(TooLong));
}

#[test]
fn what_is_null_or_has_no_members_is_not_written() {
    for value in [json!(null), json!([]), json!({}), json!([null]), json!({"a": null})] {
        for style in STYLES {
            for explode in [false, true] {
                let form = styled(style, explode);
                assert_eq!(path("color", form.clone(), &value), None, "{style:?} {value}");
                let empty = query(&form, &value);
                assert_eq!(empty, "", "{style:?} {value}");
                assert_eq!(in_header(&form, &value), None, "{style:?} {value}");
            }
        }
    }
    assert_eq!(query(&styled(Style::Form, true), &json!([1, null, 2])), "color=1&color=2");
    assert_eq!(query(&styled(Style::Form, false), &json!({"a": null, "b": 1})), "color=b,1");
    assert_eq!(query(&Form::Json, &json!(null)), "");
    assert_eq!(path("color", styled(Style::Matrix, true), &json!(["", "x"])).unwrap(), ";color;color=x");
}

#[test]
fn numbers_keep_their_digits_and_have_no_exponent() {
    let rows = [
        ("1", "1"),
        ("-0.5", "-0.5"),
        ("1.0", "1.0"),
        ("18446744073709551615", "18446744073709551615"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("1e21", "1000000000000000000000"),
        ("123456789012345678901234567890", "123456789012345680000000000000"),
        ("1e-7", "0.0000001"),
        ("true", "true"),
        ("false", "false"),
    ];
    for (value, expected) in rows {
        let value: Value = serde_json::from_str(value).unwrap();
        assert_eq!(query(&styled(Style::Form, true), &value), format!("color={expected}"));
    }
}

#[test]
fn what_is_nested_is_json_except_in_a_deep_object() {
    let nested = json!([{"a": [1]}, [2, 3]]);
    assert_eq!(query(&styled(Style::Form, true), &nested), "color=%7B%22a%22%3A%5B1%5D%7D&color=%5B2%2C3%5D");
    assert_eq!(query(&styled(Style::Form, false), &json!({"a": {"b": 1}})), "color=a,%7B%22b%22%3A1%7D");
    assert_eq!(in_header(&styled(Style::Simple, true), &json!({"a": {"b": 1}})).unwrap(), r#"a={"b":1}"#);
    let deep = json!({"a": {"b": {"c": "x y"}}, "list": [1, null, {"k": true}], "none": null, "empty": {}});
    let text = query(&styled(Style::DeepObject, true), &deep);
    assert_eq!(
        text.replace("%5B", "[").replace("%5D", "]"),
        "color[a][b][c]=x%20y&color[list][0]=1&color[list][1][k]=true"
    );
}

#[test]
fn json_is_compact_and_encoded_for_its_place() {
    let value = json!({"a b": ["ä", "&"], "n": 1});
    let encoded = "%7B%22a%20b%22%3A%5B%22%C3%A4%22%2C%22%26%22%5D%2C%22n%22%3A1%7D";
    assert_eq!(query(&Form::Json, &value), format!("color={encoded}"));
    assert_eq!(path("color", Form::Json, &value).unwrap(), encoded);
    assert_eq!(in_header(&Form::Json, &value).unwrap(), r#"{"a b":["\u00e4","&"],"n":1}"#);
    assert_eq!(in_header(&Form::Json, &json!("\u{1f600}\u{7f}")).unwrap(), r#""\ud83d\ude00\u007f""#);
    assert_eq!(
        pairs(Sheet::Cookie, "color", &Form::Json, &value),
        "color={%22a%20b%22:[%22%C3%A4%22%2C%22&%22]%2C%22n%22:1}"
    );
}

#[test]
fn values_and_names_are_encoded_down_to_what_is_unreserved() {
    let hostile = json!("a/b?c#d&e=f+g %2e;é\u{0}\r\n~-._");
    let encoded = "a%2Fb%3Fc%23d%26e%3Df%2Bg%20%252e%3B%C3%A9%00%0D%0A~-._";
    assert_eq!(path("x", styled(Style::Simple, false), &hostile).unwrap(), encoded);
    assert_eq!(query(&styled(Style::Form, true), &hostile), format!("color={encoded}"));
    assert_eq!(pairs(Sheet::Query, "a[]&b=", &styled(Style::Form, true), &json!(1)), "a%5B%5D%26b%3D=1");
    assert_eq!(query(&styled(Style::Form, true), &json!({"x&admin=1#": "y"})), "x%26admin%3D1%23=y");
    assert_eq!(query(&styled(Style::Form, false), &json!(["a,b", "c"])), "color=a%2Cb,c");
    assert_eq!(query(&styled(Style::DeepObject, true), &json!({"a&b=c": 1})), "color%5Ba%26b%3Dc%5D=1");
    assert_eq!(
        path("c;d", styled(Style::Matrix, true), &json!(["a;b=c/d"])).unwrap(),
        ";c%3Bd=a%3Bb%3Dc%2Fd"
    );
}

#[test]
fn reserved_characters_stay_where_that_is_allowed_unless_they_end_the_value() {
    let form = |style| Form::Styled { style, explode: true, allow_reserved: true };
    let value = json!(":/?#[]@!$&'()*+,;= %2F%zz%4");
    assert_eq!(query(&form(Style::Form), &value), "color=:/?%23%5B%5D@!$%26'()*%2B,;=%20%2F%25zz%254");
    assert_eq!(
        path("x", form(Style::Simple), &value).unwrap(),
        ":%2F%3F%23%5B%5D@!$&'()*+,;=%20%2F%25zz%254"
    );
    assert_eq!(query(&form(Style::Form), &json!({"a/b": "a/b"})), "a%2Fb=a/b");
}

#[test]
fn a_cookie_encodes_what_its_syntax_has_no_room_for() {
    let value = json!("YWJj/+==; admin=1, \"x\" \\ 100% é\r\n");
    assert_eq!(
        pairs(Sheet::Cookie, "session", &styled(Style::Form, true), &value),
        "session=YWJj/+==%3B%20admin=1%2C%20%22x%22%20%5C%20100%25%20%C3%A9%0D%0A"
    );
    assert_eq!(
        pairs(Sheet::Cookie, "c", &styled(Style::Form, true), &json!({"a=b; c": "d"})),
        "a%3Db%3B%20c=d"
    );
}

#[test]
fn a_long_name_with_many_members_is_refused_before_it_costs_anything() {
    let many = Value::Array(vec![json!("x"); 100_000]);
    let name = "n".repeat(8000);
    for style in [Style::Form, Style::DeepObject] {
        let mut pairs = Pairs::new(Sheet::Query, ADDRESS_BYTES);
        assert_eq!(pairs.write(&name, &many, &styled(style, true)), Err(TooLong));
        assert!(pairs.into_pairs().len() < 3);
    }
    let form = styled(Style::Matrix, true);
    let parameter = Parameter { argument: name.clone(), name, place: Place::Path, form };
    assert_eq!(in_path(&parameter, &many), Err(TooLong));
    let long_key = json!({"k".repeat(1 << 20): vec![json!({"a": {}}); 100_000]});
    assert_eq!(query(&styled(Style::DeepObject, true), &long_key), "");
}
