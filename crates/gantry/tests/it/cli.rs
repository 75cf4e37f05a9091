//! The command line: `call`, `tools`, `audit`, `runs`, `events`, `doctor`, exit codes and what people read.

use gantry_testkit::Home;
use serde_json::json;

#[test]
fn blt_1_a_file_is_written_and_read_through_the_command_line() {
    let home = Home::new();
    let written = home.call("write_file", &json!({ "path": "a.txt", "content": "hi" }));
    assert_eq!(written["ok"], true);
    assert_eq!(written["result"], json!({ "path": "a.txt", "size": 2 }));
    assert_eq!((&written["kind"], &written["namespace"]), (&json!("builtin"), &json!("workspace")));
    let read = home.call("read_file", &json!({ "path": "a.txt" }));
    assert_eq!(read["result"]["content"], "hi");
    assert_eq!(read["result"]["size"], 2);
    assert_eq!(home.read("a.txt"), "hi");
}
