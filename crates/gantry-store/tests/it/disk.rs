//! A disk that takes no more: callers get errors, nothing is half written, and the service resumes.

use crate::fixture::{CHILD, Fixture, begin, child, database, good, head, intent, whole};
use gantry_store::{Error, Options, State, Store};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::Path;

/// The largest file this process may write.
fn allow(bytes: Option<u64>) {
    let limit = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: bytes.or(limit.maximum), ..limit }).unwrap();
}

async fn fill_and_resume(folder: &Path) {
    let (store, _) = Store::open(Options::new(database(folder))).unwrap();
    let before = begin(&store).await;
    let wal = std::fs::metadata(folder.join("gantry.db-wal")).unwrap().len();
    let stats = store.stats();

    allow(Some(wal));
    let refused = head();
    let error = store.intend(intent(&refused)).await.unwrap_err();
    assert!(matches!(error, Error::Full | Error::Disk(_)), "{error:?}");
    assert!(error.to_string().contains("retry"), "{error}");
    assert!(store.close(before.id, good()).await.is_err());
    // A plain record is accepted, fails with its group, gets its second try and is then counted as lost.
    store.record(whole(&head(), good())).await.unwrap();
    assert!(store.flush().await.is_err());
    assert!(store.flush().await.is_err());
    assert_eq!(store.stats().lost, 1);
    // This one is still waiting for its second try when the disk has room again.
    let retried = head();
    store.record(whole(&retried, good())).await.unwrap();
    assert!(store.flush().await.is_err());
    assert_eq!(store.stats().commits, stats.commits);

    allow(None);
    // There is no new request: the second try comes by itself.
    while store.stats().commits == stats.commits {
        tokio::task::yield_now().await;
    }
    store.close(before.id, good()).await.unwrap();
    assert!(store.call(refused.id).await.unwrap().is_none(), "a failed intent was recorded");
    assert_eq!(store.call(before.id).await.unwrap().unwrap().state, State::CompletedSuccess);
    assert_eq!(store.call(retried.id).await.unwrap().unwrap().state, State::CompletedSuccess);
    assert_eq!(store.stats().lost, 1);
    begin(&store).await;
    let verification = store.verify().await.unwrap();
    assert_eq!((verification.entries, verification.bad), (4, None));
    println!("\nresumed");
}

#[tokio::test]
async fn a_full_disk_fails_intents_and_the_service_resumes() {
    if let Some(folder) = std::env::var_os(CHILD) {
        return fill_and_resume(Path::new(&folder)).await;
    }
    let fixture = Fixture::new();
    let plain = child("disk::a_full_disk_fails_intents_and_the_service_resumes", fixture.folder.path());
    // A write over the limit raises a deadly signal; a shell can pass on that it is to be ignored.
    #[expect(clippy::disallowed_methods, reason = "a test needs another process of its own program")]
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(plain.get_program()).args(plain.get_args());
    let output = shell.env(CHILD, fixture.folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("resumed"), "{text}{}", String::from_utf8_lossy(&output.stderr));
}
