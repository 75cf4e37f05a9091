//! JSON that is legal and unusual, byte for byte, so that a test can tell whether a gateway rewrites what it passes.
//!
//! Unknown fields, vendor `_meta`, keys out of order, blanks, escapes that are not needed, and numbers whose text says
//! more than their value.

macro_rules! result_fields {
    () => {
        r#""x-result": {"z":1.10,"a":[1E5, -0.0,123456789012345678901234567890]} , "structuredContent":{"b":1.0e+2,"a":"caf\u00e9 \/ \u0041"},"_meta":{"vendor.example/trace":{"n":0.10}},"isError":false,"content":[{"x-block":[],"text":"odd \u00e9 \/","type":"text","_meta":{"vendor.example/b":2.50},"annotations":{"priority":0.30,"x-a":1}}]"#
    };
}

/// The definition of the tool `odd`, exactly as it is on the wire.
pub const SAMPLE_DEFINITION: &str = r#"{"x-first":{"z":1.10,"a":2},"title":"Odd \/ caf\u00e9","inputSchema": {"x-schema":1E5,"properties":{"zeta":{"default":1.10,"type":"number","x-unit":"m"},"alpha":{"maximum":123456789012345678901234567890,"type":"integer"}},"type":"object"},"name":"odd","execution":{"taskSupport":"forbidden","x-e":-0.0},"description":"Legal and unusual","annotations":{"x-hint":"vendor","readOnlyHint":true},"_meta":{"vendor.example/pin":{"n":123456789012345678901234567890}}}"#;

/// The result of the tool `odd`, exactly as a legacy server has it on the wire.
pub const SAMPLE_RESULT: &str = concat!("{", result_fields!(), "}");

/// The same from a modern server.
pub const SAMPLE_RESULT_MODERN: &str = concat!(r#"{"resultType":"complete","#, result_fields!(), "}");

/// The result of the tool `odd-huge`: a number that no double can hold. It is legal JSON all the same.
pub const HUGE_NUMBER_RESULT: &str =
    r#"{"content":[{"type":"text","text":"huge"}],"structuredContent":{"n":1e400},"isError":false}"#;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use serde_json::value::RawValue;

    #[test]
    fn every_text_is_legal_json() {
        for text in [SAMPLE_DEFINITION, SAMPLE_RESULT, SAMPLE_RESULT_MODERN, HUGE_NUMBER_RESULT] {
            serde_json::from_str::<&RawValue>(text).unwrap();
        }
    }

    #[test]
    fn a_parser_that_keeps_values_only_changes_them() {
        for text in [SAMPLE_DEFINITION, SAMPLE_RESULT] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_ne!(value.to_string(), text);
        }
        serde_json::from_str::<Value>(HUGE_NUMBER_RESULT).unwrap_err();
    }
}
