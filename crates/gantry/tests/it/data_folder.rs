//! The data folder goes away under a running Gantry: what could not be found on record afterwards is not run.

use gantry_testkit::{Server, TestDir};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

fn write(server: &Server, path: &str) -> Value {
    server.call("write_file", &json!({ "path": path, "content": "x" })).json()
}

fn data(home: &TestDir) -> PathBuf {
    home.path().join(".gantry")
}

/// A server whose store works, and how many calls it has on record.
fn working(home: &TestDir) -> Server {
    let server = home.serve();
    assert_eq!(write(&server, "before.txt")["ok"], true);
    assert_eq!(server.get("/readyz").status, 200);
    server
}

/// That no call is run, and that everyone who asks is told why.
#[track_caller]
fn refuses(home: &TestDir, server: &Server, file: &str) {
    let why = format!("{file} was removed or replaced while Gantry runs");
    let answers = [
        write(server, "after.txt"),
        server.call("read_file", &json!({ "path": "before.txt" })).json(),
        server.call("run_code", &json!({ "language": "bash", "code": "touch after.txt" })).json(),
    ];
    for answer in answers {
        assert_eq!((&answer["ok"], &answer["error"]["code"]), (&json!(false), &json!("INTERNAL_ERROR")));
        let message = answer["error"]["message"].as_str().expect("a text");
        assert!(message.contains(&why) && message.contains("restart Gantry"), "{message}");
    }
    assert!(!home.path().join("after.txt").exists(), "it was run all the same");
    let ready = server.get("/readyz");
    assert_eq!((ready.status, &ready.json()["status"]), (503, &json!("unavailable")));
    assert!(ready.json()["reason"].as_str().expect("a text").contains(&why), "{ready:?}");
    server.says(&why);
}

/// Copies the files of a folder.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_file() {
            fs::copy(&entry, to.join(entry.file_name().expect("a name"))).expect("a copy");
        }
    }
}

#[test]
fn cal_16_nothing_is_run_when_the_data_folder_is_deleted() {
    let home = TestDir::new();
    let server = working(&home);
    fs::remove_dir_all(data(&home)).expect("it can be deleted");
    refuses(&home, &server, "gantry.db");
    // Nor when something else lies there now.
    fs::create_dir(data(&home)).expect("a folder");
    fs::write(data(&home).join("gantry.db"), "").expect("a file");
    refuses(&home, &server, "gantry.db");
    fs::remove_dir_all(data(&home)).expect("it can be deleted");
    server.stop();
    // The next start begins a new folder.
    let server = home.serve();
    assert_eq!(write(&server, "after.txt")["ok"], true);
}

#[test]
fn cal_16_a_data_folder_that_is_moved_away_and_back_goes_on() {
    let home = TestDir::new();
    let server = working(&home);
    let away = home.path().join("away");
    fs::rename(data(&home), &away).expect("it can be moved");
    refuses(&home, &server, "gantry.db");
    fs::rename(&away, data(&home)).expect("it can be moved back");
    assert_eq!(server.get("/readyz").status, 200);
    let answer = write(&server, "after.txt");
    assert_eq!(answer["ok"], true, "{answer}");
    let id = answer["id"].as_str().expect("an id").to_owned();
    server.stop();
    // All of it is on record for the next start.
    let server = home.serve();
    assert_eq!(server.get(&format!("/api/v1/calls/{id}")).json()["record"]["state"], "COMPLETED_SUCCESS");
    assert_eq!(server.get_as_admin("/api/v1/audit/verify").json()["ok"], true);
}

#[test]
fn cal_16_nothing_is_run_on_a_copy_of_the_database_or_without_its_log() {
    let home = TestDir::new();
    let server = working(&home);
    let (away, log) = (home.path().join("away"), data(&home).join("gantry.db-wal"));
    fs::rename(data(&home), &away).expect("it can be moved");
    copy(&away, &data(&home));
    refuses(&home, &server, "gantry.db");
    fs::remove_dir_all(data(&home)).expect("it can be deleted");
    fs::rename(&away, data(&home)).expect("it can be moved back");
    assert_eq!(server.get("/readyz").status, 200);
    fs::remove_file(&log).expect("it can be deleted");
    refuses(&home, &server, "gantry.db-wal");
}
