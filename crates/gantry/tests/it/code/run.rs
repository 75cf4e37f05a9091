//! What `run_code` is for: code, arguments, variables, input, files, and how a program ended.

use super::site::{Site, says};
use serde_json::json;

#[test]
fn blt_2_python_and_bash_run_and_say_how_they_were_confined() {
    Site::each("", |site| {
        let level = site.home.run(["doctor", "--json"]).json();
        let mut checks = level.as_array().into_iter().flatten();
        let level = checks.find(|check| check["check"] == "sandbox").expect("a check")["found"].clone();
        for (language, code) in [("python", "print(6 * 7)"), ("bash", "echo $((6 * 7))")] {
            let result = site.code(language, code);
            assert_eq!((&result["stdout"], &result["stderr"]), (&json!("42\n"), &json!("")), "{result}");
            assert_eq!((&result["exitCode"], &result["truncated"]), (&json!(0), &json!(null)), "{result}");
            assert!(result["duration"].is_u64(), "{result}");
            let sandbox = result["sandbox"].as_str().expect("a level");
            assert!(["native", "bubblewrap"].contains(&sandbox), "{result}");
            assert!(level.as_str().expect("a level").starts_with(sandbox), "doctor says {level}: {result}");
        }
        site.has_files(&[]);
    });
}

#[test]
fn blt_2_input_arguments_and_variables_reach_the_code_as_they_are() {
    Site::each("", |site| {
        let unusual = "a b\n\"c\" $HOME `id` größer \\";
        let more =
            json!({ "args": [unusual, "", "--version"], "env": { "GREETING": unusual }, "stdin": unusual });
        let code = "import json, os, sys\n\
                    print(json.dumps([sys.argv[1:], os.environ['GREETING'], sys.stdin.read()]))";
        let result = site.code_with("python", code, &more);
        let outcome: serde_json::Value =
            serde_json::from_str(result["stdout"].as_str().expect("a text")).expect("JSON");
        assert_eq!(outcome, json!([[unusual, "", "--version"], unusual, unusual]));
        let result = site.code_with("bash", r#"printf '%s|' "$@" "$GREETING"; cat"#, &more);
        assert_eq!(result["stdout"], format!("{unusual}||--version|{unusual}|{unusual}"));
        let result = site.code("bash", "wc -c");
        assert_eq!(result["stdout"], "0\n", "without input there is an end, not a wait");
    });
}

#[test]
fn blt_2_input_larger_than_a_pipe_is_read_whole_and_need_not_be_read_at_all() {
    let site = Site::one("");
    let input = "x".repeat(3 << 20);
    let result = site.code_with("bash", "wc -c", &json!({ "stdin": input }));
    assert_eq!(result["stdout"], format!("{}\n", input.len()));
    let result = site.code_with("bash", "echo done", &json!({ "stdin": input }));
    assert_eq!((&result["stdout"], &result["exitCode"]), (&json!("done\n"), &json!(0)));
    site.settled();
}

#[test]
fn blt_2_files_of_the_workspace_are_read_written_and_stay() {
    Site::each("", |site| {
        site.put("data/in.txt", "three\nlines\nhere\n");
        let code = "set -e; pwd; sort data/in.txt > out.txt; mkdir -p made/deep; echo x > made/deep/y; rm data/in.txt";
        let result = site.code("bash", code);
        assert_eq!((&result["stdout"], &result["exitCode"]), (&json!("/workspace\n"), &json!(0)), "{result}");
        site.has_files(&["data", "made", "made/deep", "made/deep/y", "out.txt"]);
        assert_eq!(site.home.read("ws/out.txt"), "here\nlines\nthree\n");
        // What was written belongs to the workspace's owner: the file tools and the person can go on with it.
        use std::os::unix::fs::MetadataExt as _;
        let owner = site.inside("").metadata().expect("the workspace").uid();
        assert_eq!(site.inside("out.txt").metadata().expect("the file").uid(), owner);
        let read = site.call("read_file", &json!({ "path": "out.txt" }));
        assert_eq!(read["result"]["content"], "here\nlines\nthree\n", "{read}");
        // And what the file tools write, code reads.
        site.call("write_file", &json!({ "path": "tool.txt", "content": "from a tool" }));
        assert_eq!(site.code("bash", "cat tool.txt; echo more >> tool.txt")["stdout"], "from a tool");
        assert_eq!(site.home.read("ws/tool.txt"), "from a toolmore\n");
    });
}

#[test]
fn blt_2_python_imports_modules_of_the_workspace_and_leaves_no_compiled_ones() {
    Site::each("", |site| {
        site.put("lib/__init__.py", "");
        site.put("lib/sums.py", "def double(n):\n    return 2 * n\n");
        let result = site.code("python", "from lib.sums import double\nprint(double(21))");
        assert_eq!((&result["stdout"], &result["exitCode"]), (&json!("42\n"), &json!(0)), "{result}");
        site.has_files(&["lib", "lib/__init__.py", "lib/sums.py"]);
    });
}

#[test]
fn blt_2_exit_codes_and_signals_are_results_and_no_errors_of_the_tool() {
    Site::each("", |site| {
        for (language, code, exit) in [
            ("bash", "exit 7", 7),
            ("bash", "no_such_command", 127),
            ("bash", "kill -TERM $$", 128 + 15),
            ("bash", "kill -KILL $$", 128 + 9),
            ("bash", "kill -SEGV $$", 128 + 11),
            ("python", "import sys; sys.exit(255)", 255),
            ("python", "import os; os.abort()", 128 + 6),
            ("python", "raise ValueError('odd')", 1),
            ("python", "this is no python", 1),
        ] {
            let result = site.code(language, code);
            assert_eq!(result["exitCode"], exit, "{code}: {result}");
        }
        let failed = site.code("python", "print('before')\nraise ValueError('odd')");
        assert_eq!(failed["stdout"], "before\n");
        assert!(failed["stderr"].as_str().expect("a text").contains("ValueError: odd"), "{failed}");
        site.has_files(&[]);
    });
}

#[test]
fn blt_2_common_programs_work_in_the_sandbox() {
    Site::each("", |site| {
        let code = "set -e
            cat <(echo substituted) | tr a-z A-Z
            mkfifo pipe; (echo through > pipe &) ; cat pipe; rm pipe
            tar cf a.tar --files-from /dev/null; rm a.tar
            seq 3 | xargs -P 3 -n 1 echo | sort | tr '\\n' ' '
            git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one && git log --oneline | wc -l";
        let result = site.code("bash", code);
        assert_eq!(result["stdout"], "SUBSTITUTED\nthrough\n1 2 3 1\n", "{result}");
        let code = "
import asyncio, json, multiprocessing, socket, sqlite3, subprocess, tempfile, threading
def double(n): return 2 * n
if __name__ == '__main__':
    with multiprocessing.Pool(2) as pool: pooled = pool.map(double, [1, 2])
    ran = subprocess.run(['echo', 'hi'], capture_output=True, text=True).stdout
    async def wait(): await asyncio.sleep(0); return 3
    base = sqlite3.connect('a.db'); base.execute('pragma journal_mode=wal'); base.execute('create table t (x)'); base.close()
    server = socket.create_server(('127.0.0.1', 0))
    socket.create_connection(server.getsockname()).close()
    thread = threading.Thread(target=print, args=('',), kwargs={'end': ''}); thread.start(); thread.join()
    tempfile.TemporaryFile().write(b'x')
    print(json.dumps([pooled, ran, asyncio.run(wait())]))
";
        assert_eq!(site.python(code, &[]), json!([[2, 4], "hi\n", 3]));
        std::fs::remove_dir_all(site.inside(".git")).expect("the repository");
        site.has_files(&["a.db"]);
    });
}

#[test]
fn blt_2_arguments_that_do_not_fit_are_refused_and_nothing_runs() {
    let site = Site::one("");
    for arguments in [
        json!({ "language": "perl", "code": "print 1" }),
        json!({ "language": "bash" }),
        json!({ "code": "touch made" }),
        json!({ "language": "bash", "code": ["touch made"] }),
        json!({ "language": "bash", "code": "touch made", "timeout": 0 }),
        json!({ "language": "bash", "code": "touch made", "timeout": 3601 }),
        json!({ "language": "bash", "code": "touch made", "timeout": -1.5 }),
        json!({ "language": "bash", "code": "touch made", "env": { "A": 1 } }),
        json!({ "language": "bash", "code": "touch made", "env": { "A=B": "x" } }),
        json!({ "language": "bash", "code": "touch made", "env": { "": "x" } }),
        json!({ "language": "bash", "code": "touch made", "args": "x" }),
        json!({ "language": "bash", "code": "touch made", "cwd": "/" }),
        json!({ "language": "bash", "code": "touch made", "args": vec!["x"; 1001] }),
    ] {
        let reply = site.call("run_code", &arguments);
        assert_eq!(reply["error"]["code"], "INVALID_ARGUMENTS", "{arguments}: {reply}");
    }
    // A NUL ends a word where programs are started; it is refused, or the word is whole.
    for more in [json!({ "args": ["a\u{0}b"] }), json!({ "env": { "A": "x\u{0}LD_PRELOAD=/x" } })] {
        let reply = site.reply("bash", "touch made", &more);
        assert_eq!(reply["ok"], false, "{reply}");
        assert_eq!(reply["extras"]["effect"], "none", "{reply}");
    }
    site.has_files(&[]);
    site.settled();
}

#[test]
fn blt_2_code_with_a_nul_or_without_anything_runs_as_the_interpreter_takes_it() {
    let site = Site::one("");
    assert_eq!(site.code("bash", "")["exitCode"], 0);
    assert_eq!(site.code("python", "")["exitCode"], 0);
    let result = site.code("python", "print('a\u{0}b')");
    assert_ne!(result["exitCode"], 0, "python refuses it: {result}");
    let large = format!("#{}\necho large", "x".repeat(2 << 20));
    assert_eq!(site.code("bash", &large)["stdout"], "large\n", "code is no argument of a program");
    site.settled();
}

#[test]
fn blt_2_a_large_output_is_stored_and_can_be_read_in_parts() {
    let home = gantry_testkit::TestDir::new();
    home.write("ws/.keep", "");
    let home = home.config("workspace: ws\n");
    let reply = home.call("run_code", &json!({ "language": "bash", "code": "seq 100000" }));
    assert_eq!(reply["ok"], true, "{reply}");
    let handle = &reply["result"]["tool_output"];
    assert_eq!(handle["reason"], "size_limit_exceeded", "{reply}");
}

#[test]
fn blt_2_a_workspace_that_was_replaced_is_not_used() {
    let site = Site::one("");
    std::fs::rename(site.inside(""), site.home.path().join("old")).expect("a move");
    std::fs::create_dir(site.inside("")).expect("another folder");
    let error = site.error("bash", "touch made", &json!({}));
    assert_eq!(error["code"], "EXECUTION_ERROR");
    says(&error, &["workspace", "replaced"]);
    site.has_files(&[]);
    assert_eq!(std::fs::read_dir(site.home.path().join("old")).expect("the old one").count(), 0);
}
