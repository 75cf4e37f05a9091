//! The table of styles, row by row, and what it leaves open.

use super::*;
use crate::openapi::limits::ADDRESS_BYTES;
use serde_json::json;

/// The values of the table: empty, string, list, object.
fn values() -> [Value; 4] {
    [json!(""), json!("blue"), json!(["blue", "black", "brown"]), json!({"R": 100, "G": 200, "B": 150})]
}

fn named(name: &str, style: Style, value: &Value) -> String {
    let mut pairs = Pairs::encoded(ADDRESS_BYTES);
    pairs.write(name, value, Serialization::new(style)).unwrap();
    pairs.join()
}

fn query(style: Style, value: &Value) -> String {
    named("color", style, value)
}

#[test]
fn rst_2_each_style_of_a_path_is_written_as_the_table_says() {
    // Without a value, the path would be another path: the caller refuses that.
    let rows = [
        (Style::Joined, ["-", "blue", "blue,black,brown", "R,100,G,200,B,150"]),
        (Style::Exploded, ["-", "blue", "blue,black,brown", "R=100,G=200,B=150"]),
    ];
    for (style, expected) in rows {
        for (value, expected) in values().iter().zip(expected) {
            assert_eq!(in_path(style, value).as_deref().unwrap_or("-"), expected, "{style:?} {value}");
        }
    }
}

#[test]
fn rst_2_each_style_of_a_query_is_written_as_the_table_says() {
    let rows = [
        (Style::Joined, ["color=", "color=blue", "color=blue,black,brown", "color=R,100,G,200,B,150"]),
        (
            Style::Exploded,
            ["color=", "color=blue", "color=blue&color=black&color=brown", "R=100&G=200&B=150"],
        ),
        (
            Style::DeepObject,
            [
                "color=",
                "color=blue",
                "color%5B0%5D=blue&color%5B1%5D=black&color%5B2%5D=brown",
                "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150",
            ],
        ),
    ];
    for (style, expected) in rows {
        for (value, expected) in values().iter().zip(expected) {
            assert_eq!(query(style, value), expected, "{style:?} {value}");
        }
    }
}

#[test]
fn rst_2_headers_are_simple() {
    let headers = [
        (Style::Joined, ["", "blue", "blue,black,brown", "R,100,G,200,B,150"]),
        (Style::Exploded, ["", "blue", "blue,black,brown", "R=100,G=200,B=150"]),
    ];
    for (style, expected) in headers {
        for (value, expected) in values().iter().zip(expected) {
            assert_eq!(in_header(style, value).as_deref(), Some(expected), "{style:?} {value}");
        }
    }
}

#[test]
fn a_list_in_an_object_that_is_spread_repeats_its_name() {
    let value = json!({"sort": ["a", null, "b"], "none": [], "deep": [[1]], "n": 1, "objects": [{"x": 1}]});
    let expected = "sort=a&sort=b&deep=%5B%5B1%5D%5D&n=1&objects=%5B%7B%22x%22%3A1%7D%5D";
    assert_eq!(query(Style::Exploded, &value), expected);
    let long = json!({"k".repeat(8000): vec![1; 100_000]});
    let mut pairs = Pairs::encoded(ADDRESS_BYTES);
    assert_eq!(pairs.write("x", &long, Serialization::new(Style::Exploded)), Err(TooLong));
}

#[test]
fn what_is_null_or_has_no_members_is_not_written() {
    for value in [json!(null), json!([]), json!({}), json!([null]), json!({"a": null})] {
        for style in [Style::Joined, Style::Exploded, Style::DeepObject] {
            assert_eq!(in_path(style, &value), None, "{style:?} {value}");
            assert_eq!(query(style, &value), "", "{style:?} {value}");
            assert_eq!(in_header(style, &value), None, "{style:?} {value}");
        }
    }
    assert_eq!(query(Style::Exploded, &json!([1, null, 2])), "color=1&color=2");
    assert_eq!(query(Style::Joined, &json!({"a": null, "b": 1})), "color=b,1");
    assert_eq!(query(Style::Json, &json!(null)), "");
    assert_eq!(in_header(Style::Json, &json!(null)), None);
    assert_eq!(in_path(Style::Json, &json!(null)), None);
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
        assert_eq!(query(Style::Exploded, &value), format!("color={expected}"));
    }
}

#[test]
fn what_is_nested_is_json_except_in_a_deep_object() {
    let nested = json!([{"a": [1]}, [2, 3]]);
    assert_eq!(query(Style::Exploded, &nested), "color=%7B%22a%22%3A%5B1%5D%7D&color=%5B2%2C3%5D");
    assert_eq!(query(Style::Joined, &json!({"a": {"b": 1}})), "color=a,%7B%22b%22%3A1%7D");
    assert_eq!(in_header(Style::Exploded, &json!({"a": {"b": 1}})).unwrap(), r#"a={"b":1}"#);
    let deep = json!({"a": {"b": {"c": "x y"}}, "list": [1, null, {"k": true}], "none": null, "empty": {}});
    assert_eq!(
        query(Style::DeepObject, &deep).replace("%5B", "[").replace("%5D", "]"),
        "color[a][b][c]=x%20y&color[list][0]=1&color[list][1][k]=true"
    );
}

#[test]
fn json_is_compact_and_encoded_for_its_place() {
    let value = json!({"a b": ["ä", "&"], "n": 1});
    let encoded = "%7B%22a%20b%22%3A%5B%22%C3%A4%22%2C%22%26%22%5D%2C%22n%22%3A1%7D";
    assert_eq!(query(Style::Json, &value), format!("color={encoded}"));
    assert_eq!(in_path(Style::Json, &value).unwrap(), encoded);
    assert_eq!(in_header(Style::Json, &value).unwrap(), r#"{"a b":["\u00e4","&"],"n":1}"#);
    assert_eq!(in_header(Style::Json, &json!("\u{1f600}\u{7f}")).unwrap(), r#""\ud83d\ude00\u007f""#);
}

#[test]
fn values_and_names_are_encoded_down_to_what_is_unreserved() {
    let hostile = json!("a/b?c#d&e=f+g %2e;é\u{0}\r\n~-._");
    let encoded = "a%2Fb%3Fc%23d%26e%3Df%2Bg%20%252e%3B%C3%A9%00%0D%0A~-._";
    assert_eq!(in_path(Style::Joined, &hostile).unwrap(), encoded);
    assert_eq!(query(Style::Exploded, &hostile), format!("color={encoded}"));
    assert_eq!(named("a[]&b=", Style::Exploded, &json!(1)), "a%5B%5D%26b%3D=1");
    assert_eq!(query(Style::Exploded, &json!({"x&admin=1#": "y"})), "x%26admin%3D1%23=y");
    assert_eq!(query(Style::Joined, &json!(["a,b", "c"])), "color=a%2Cb,c");
    assert_eq!(query(Style::DeepObject, &json!({"a&b=c": 1})), "color%5Ba%26b%3Dc%5D=1");
}

#[test]
fn reserved_characters_stay_where_that_is_allowed_unless_they_end_the_value() {
    let free = |value: &Value| {
        let mut pairs = Pairs::encoded(ADDRESS_BYTES);
        let how = Serialization { style: Style::Exploded, allow_reserved: true };
        pairs.write("color", value, how).unwrap();
        pairs.join()
    };
    let value = json!(":/?#[]@!$&'()*+,;= %2F%zz%4");
    assert_eq!(free(&value), "color=:/?%23%5B%5D@!$%26'()*%2B,;=%20%2F%25zz%254");
    assert_eq!(free(&json!({"a/b": "a/b"})), "a%2Fb=a/b");
}

#[test]
fn a_long_name_with_many_members_is_refused_before_it_costs_anything() {
    let many = Value::Array(vec![json!("x"); 100_000]);
    let name = "n".repeat(8000);
    for style in [Style::Exploded, Style::DeepObject] {
        let mut pairs = Pairs::encoded(ADDRESS_BYTES);
        assert_eq!(pairs.write(&name, &many, Serialization::new(style)), Err(TooLong));
        assert!(pairs.into_pairs().len() < 3);
    }
    let long_key = json!({"k".repeat(1 << 20): vec![json!({"a": {}}); 100_000]});
    assert_eq!(query(Style::DeepObject, &long_key), "");
}
