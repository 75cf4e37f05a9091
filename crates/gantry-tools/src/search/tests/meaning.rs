//! Ranked search with a model that puts files in a new order: a server on this machine that knows some synonyms.

use super::*;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
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
    words::for_each_word(text, |word, _| {
        let word = SYNONYMS.iter().find(|(synonym, _)| *synonym == word).map_or(word, |(_, plain)| plain);
        let hash = word.bytes().fold(7usize, |hash, byte| (hash * 31 + usize::from(byte)) % 1_000_003);
        vector[hash % DIMENSIONS] += 1.0;
    });
    vector
}

/// Two files have a word of the question. Words alone put the first name first, and the other one is nearer in meaning.
fn bench(url: String) -> Bench {
    let bench = Bench::with(Some(EmbeddingsOptions { url, model: "m1".into(), api_key: Some("k3y".into()) }));
    bench.put("a_bread.rs", "fn sell() { bread(); }\n");
    bench.put("b_garage.rs", "fn sell() { vehicle(); vehicle(); }\n");
    bench.put("fruit.rs", "fn peel_banana() {}\n");
    for n in 0..40 {
        bench.put(&format!("other{n}.rs"), format!("fn thing_{n}() {{ compute(); }}\n"));
    }
    bench
}

const QUESTION: &str = "sell automobile";

#[test]
fn the_nearest_in_meaning_comes_first_among_files_with_a_word() {
    let model = Model::default();
    let bench = bench(model.start());
    let answer = bench.search(json!({ "query": QUESTION }));
    assert_eq!(paths(&answer), ["b_garage.rs", "a_bread.rs"], "{answer}");
    assert_eq!((answer.get("note"), &answer["filesSearched"]), (None, &json!(43)));
    // One request: the question and what is shown of the two files.
    let asked = model.asked.lock().unwrap().clone();
    assert_eq!((asked.len(), &asked[0]["model"]), (1, &json!("m1")));
    let texts = asked[0]["input"].as_array().unwrap();
    assert_eq!((texts.len(), &texts[0]), (3, &json!(QUESTION)));
    assert!(texts[1..].iter().all(|text| text.as_str().unwrap().contains("sell")), "{texts:?}");
    let scores: Vec<f64> =
        answer["matches"].as_array().unwrap().iter().map(|found| found["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    // Words decide which files there are, and the model is not asked about none.
    assert_eq!(paths(&bench.search(json!({ "query": QUESTION, "glob": "a*.rs" }))), ["a_bread.rs"]);
    assert!(bench.ranked("acquire car").is_empty());
    assert_eq!(model.asked.lock().unwrap().len(), 2);
}

#[test]
fn the_best_fifty_files_get_a_new_order_and_the_others_come_after_them() {
    let model = Model::default();
    let bench = bench(model.start());
    let answer = bench.search(json!({ "query": "compute", "maxResults": 30 }));
    assert_eq!((paths(&answer).len(), &answer["truncated"]), (30, &json!(true)));
    for n in 0..40 {
        bench.put(&format!("more{n}.rs"), format!("fn thing_{n}() {{ compute(); }}\n"));
    }
    let answer = bench.search(json!({ "query": "compute", "maxResults": 100 }));
    assert_eq!(paths(&answer).len(), 80);
    let n_texts = |n: usize| model.asked.lock().unwrap()[n]["input"].as_array().unwrap().len();
    assert_eq!((n_texts(0), n_texts(1)), (41, 51));
    let scores: Vec<f64> =
        answer["matches"].as_array().unwrap().iter().map(|found| found["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
}

#[test]
fn a_model_that_fails_leaves_the_words_and_a_note() {
    let model = Model::default();
    let bench = bench(model.start());
    *model.broken.lock().unwrap() = true;
    let answer = bench.search(json!({ "query": QUESTION }));
    assert_eq!(paths(&answer), ["a_bread.rs", "b_garage.rs"]);
    let note = answer["note"].as_str().unwrap();
    assert!(note.contains("words alone") && note.contains("500") && !note.contains("k3y"), "{note}");
    *model.broken.lock().unwrap() = false;
    let answer = bench.search(json!({ "query": QUESTION }));
    assert_eq!((&answer["matches"][0]["path"], answer.get("note")), (&json!("b_garage.rs"), None));
}

#[test]
fn a_model_that_hangs_holds_up_one_search_and_not_every_one() {
    // Connections are taken by the system, and never answered.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut bench = bench(format!("http://{}/v1/", silent.local_addr().unwrap()));
    // Time passes only while a task waits for it.
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
    assert_eq!(waited(&bench), 15);
    assert_eq!((waited(&bench), waited(&bench)), (0, 0));
    bench.runtime.block_on(tokio::time::advance(std::time::Duration::from_secs(30)));
    assert_eq!(waited(&bench), 15, "it is given another chance");
}

#[test]
fn a_file_is_sent_as_it_is_now_and_the_key_is_never_shown() {
    let model = Model::default();
    let bench = bench(model.start());
    bench.ranked(QUESTION);
    bench.put("a_bread.rs", "fn sell() { vehicle(); vehicle(); vehicle(); }\n");
    bench.put("b_garage.rs", "fn sell() { horse(); }\n");
    assert_eq!(bench.ranked(QUESTION), ["a_bread.rs", "b_garage.rs"]);
    assert!(!format!("{:?}", bench.tools).contains("k3y"));
}
