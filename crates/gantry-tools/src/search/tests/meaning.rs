//! Ranked search with a model that reads along: a server on this machine that knows some synonyms.

use super::*;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::thread;

const DIMENSIONS: usize = 64;
const SYNONYMS: [(&str, &str); 4] =
    [("car", "vehicle"), ("automobile", "vehicle"), ("purchase", "buy"), ("acquire", "buy")];

/// A model that turns words into numbers, a synonym into those of its word.
#[derive(Clone, Default)]
struct Model {
    asked: Arc<Mutex<Vec<Value>>>,
    broken: Arc<Mutex<bool>>,
}

impl Model {
    fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1/", listener.local_addr().unwrap());
        let model = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let model = model.clone();
                thread::spawn(move || model.serve(stream.unwrap()));
            }
        });
        url
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        loop {
            let (mut length, mut line, mut key) = (0, String::new(), String::new());
            while reader.read_line(&mut line).unwrap_or(0) > 2 {
                let lower = line.to_lowercase();
                if let Some(text) = lower.strip_prefix("content-length: ") {
                    length = text.trim().parse().unwrap();
                }
                if let Some(text) = lower.strip_prefix("authorization: ") {
                    text.trim().clone_into(&mut key);
                }
                line.clear();
            }
            if length == 0 {
                return;
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let asked: Value = serde_json::from_slice(&body).unwrap();
            let texts = asked["input"].as_array().unwrap().clone();
            self.asked.lock().unwrap().push(asked);
            let data: Vec<Value> = texts.iter().enumerate().rev()
                .map(|(n, text)| json!({ "index": n, "object": "embedding", "embedding": embed(text.as_str().unwrap()) }))
                .collect();
            let (status, body) = match *self.broken.lock().unwrap() || key != "bearer k3y" {
                true => ("500 Broken", "{}".to_owned()),
                false => ("200 OK", json!({ "data": data }).to_string()),
            };
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
            reader.get_mut().write_all((head + &body).as_bytes()).unwrap();
        }
    }
}

fn embed(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0; DIMENSIONS];
    words::each(text, |word, _| {
        let word = SYNONYMS.iter().find(|(synonym, _)| *synonym == word).map_or(word, |(_, meant)| meant);
        let hash = word.bytes().fold(7usize, |hash, byte| (hash * 31 + usize::from(byte)) % 1_000_003);
        vector[hash % DIMENSIONS] += 1.0;
    });
    vector
}

fn bench(url: String) -> Bench {
    let bench = Bench::with(Some(Embeddings { url, model: "m1".into(), api_key: Some("k3y".into()) }));
    bench.put("vehicle.rs", "fn buy_vehicle() {}\n");
    bench.put("fruit.rs", "fn peel_banana() {}\n");
    for n in 0..40 {
        bench.put(&format!("other{n}.rs"), format!("fn thing_{n}() {{ compute(); }}\n"));
    }
    bench
}

#[test]
fn a_file_is_found_by_what_it_means() {
    let model = Model::default();
    let bench = bench(model.start());
    let answer = bench.search(json!({ "query": "purchase automobile", "maxResults": 2 }));
    assert_eq!(answer["matches"][0]["path"], "vehicle.rs", "{answer}");
    assert_eq!(answer["matches"][0]["line"], 1);
    assert_eq!((answer.get("note"), &answer["indexed"]["done"]), (None, &json!(true)));
    // Each file was sent once, in portions, and the question beside them.
    let n_texts = || -> usize {
        model.asked.lock().unwrap().iter().map(|asked| asked["input"].as_array().unwrap().len()).sum()
    };
    assert_eq!(n_texts(), 42 + 1);
    assert!(model.asked.lock().unwrap().iter().all(|asked| asked["model"] == "m1"));
    // Words and meaning together.
    assert_eq!(bench.ranked("peel")[0], "fruit.rs");
    assert_eq!(paths(&bench.search(json!({ "query": "acquire car", "glob": "f*.rs" }))), ["fruit.rs"]);
    assert_eq!(
        bench.search(json!({ "query": "acquire car", "path": "vehicle.rs" }))["matches"][0]["path"],
        "vehicle.rs"
    );
}

#[test]
fn a_model_that_fails_leaves_the_words_and_a_note() {
    let model = Model::default();
    let bench = bench(model.start());
    *model.broken.lock().unwrap() = true;
    let answer = bench.search(json!({ "query": "banana" }));
    assert_eq!(paths(&answer), ["fruit.rs"]);
    let note = answer["note"].as_str().unwrap();
    assert!(note.contains("words alone") && note.contains("500") && !note.contains("k3y"), "{note}");
    // Once it works again, what it missed is made up for.
    *model.broken.lock().unwrap() = false;
    let answer = bench.search(json!({ "query": "purchase automobile" }));
    assert_eq!((&answer["matches"][0]["path"], answer.get("note")), (&json!("vehicle.rs"), None));
}

#[test]
fn a_model_that_hangs_holds_up_one_search_and_not_every_one() {
    // Connections are taken by the system, and never answered.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut bench = bench(format!("http://{}/v1/", silent.local_addr().unwrap()));
    // Time passes only where somebody waits for it.
    bench.runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let waited = |bench: &Bench| {
        let now = || bench.runtime.block_on(async { tokio::time::Instant::now() });
        let before = now();
        let answer = bench.search(json!({ "query": "banana" }));
        assert_eq!(paths(&answer), ["fruit.rs"]);
        let note = answer["note"].as_str().unwrap();
        assert!(
            note.contains("ranked by words alone") && note.contains("did not answer within 15s"),
            "{note}"
        );
        (now() - before).as_secs()
    };
    assert_eq!(waited(&bench), 25);
    assert_eq!((waited(&bench), waited(&bench)), (0, 0));
    // A change of files is no reason to ask it either.
    bench.put("more.rs", "fn more() {}\n");
    assert_eq!(waited(&bench), 0);
    bench.runtime.block_on(tokio::time::advance(std::time::Duration::from_secs(30)));
    assert!(waited(&bench) >= 15, "it is given another chance");
}

#[test]
fn a_file_that_changed_is_sent_again_and_the_key_is_never_shown() {
    let model = Model::default();
    let bench = bench(model.start());
    bench.ranked("anything");
    bench.put("fruit.rs", "fn acquire_car() {}\n");
    let found = bench.ranked("purchase automobile");
    assert!(found[..2].contains(&"fruit.rs".to_owned()), "{found:?}");
    assert!(!format!("{:?}", bench.provider).contains("k3y"));
}
