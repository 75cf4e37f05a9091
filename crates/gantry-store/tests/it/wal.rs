//! A log that was cut anywhere leaves a valid beginning of the ledger.

use crate::fixture::{Fixture, begin, database, good, head, whole};
use gantry_store::{CallFilter, Options, State, Store};
use std::fs;
use std::path::Path;

/// How far the ledger was known to be durable when the log had that length.
struct Acknowledged {
    wal: usize,
    entries: u64,
}

/// Opens a copy whose log ends at `cut`, and checks that nothing acknowledged before the cut is missing.
async fn open_cut(folder: &Path, db: &[u8], wal: &[u8], acknowledged: &[Acknowledged]) {
    fs::write(database(folder), db).unwrap();
    fs::write(folder.join("gantry.db-wal"), wal).unwrap();
    let (store, recovery) = Store::open(Options::new(database(folder))).unwrap();
    let verification = store.verify().await.unwrap();
    let cut = wal.len();
    assert_eq!(verification.bad, None, "cut at {cut}");

    let survived = verification.entries - recovery.unknown.len() as u64;
    let promised = acknowledged.iter().filter(|then| then.wal <= cut).map(|then| then.entries).max();
    assert!(survived >= promised.unwrap_or_default(), "cut at {cut}: {survived} of {promised:?} entries");
    // An outcome without its intent, or a call that is still open, would show here.
    let calls = store.calls(CallFilter { limit: 1000, ..CallFilter::default() }).await.unwrap().items;
    let unknown = calls.iter().filter(|row| row.state == State::OutcomeUnknown).count();
    assert_eq!(unknown, recovery.unknown.len(), "cut at {cut}");
    assert!(calls.iter().all(|row| row.state != State::Executing), "cut at {cut}");
}

#[tokio::test]
async fn heavy_a_torn_log_leaves_a_valid_chain_with_everything_acknowledged() {
    let fixture = Fixture::new();
    fixture.open().shutdown().await.unwrap();
    let db = fs::read(fixture.path()).unwrap();
    let wal_path = fixture.folder.path().join("gantry.db-wal");

    let store = fixture.open();
    let mut acknowledged = Vec::new();
    for n in 0..4 {
        store.record(whole(&head(), good())).await.unwrap();
        let call = begin(&store).await;
        let wal = fs::metadata(&wal_path).unwrap().len() as usize;
        acknowledged.push(Acknowledged { wal, entries: store.stats().entries });
        if n % 2 == 0 {
            store.close(call.id, good()).await.unwrap();
            let wal = fs::metadata(&wal_path).unwrap().len() as usize;
            acknowledged.push(Acknowledged { wal, entries: store.stats().entries });
        }
    }
    let wal = fs::read(&wal_path).unwrap();
    assert!(acknowledged.last().unwrap().entries == 10 && wal.len() > 40_000);

    // Limit: 200 cuts. A frame has 4120 bytes, so steps of 512 fall on ever other places inside the frames.
    let stride = (wal.len() / 512).div_ceil(150) * 512;
    let cuts: Vec<_> = (0..wal.len()).step_by(stride).chain([wal.len()]).collect();
    assert!((50..=200).contains(&cuts.len()), "{} cuts", cuts.len());
    for cut in cuts {
        let copy = tempfile::tempdir().unwrap();
        open_cut(copy.path(), &db, &wal[..cut], &acknowledged).await;
    }
}

#[tokio::test]
async fn heavy_a_log_with_a_flipped_byte_loses_at_most_what_came_after() {
    let fixture = Fixture::new();
    fixture.open().shutdown().await.unwrap();
    let db = fs::read(fixture.path()).unwrap();
    let store = fixture.open();
    for _ in 0..3 {
        begin(&store).await;
    }
    let wal = fs::read(fixture.folder.path().join("gantry.db-wal")).unwrap();
    for place in (100..wal.len()).step_by(wal.len() / 20) {
        let copy = tempfile::tempdir().unwrap();
        let mut damaged = wal.clone();
        damaged[place] ^= 0x40;
        open_cut(copy.path(), &db, &damaged, &[]).await;
    }
}
