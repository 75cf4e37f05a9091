//! What a model made of the files: one vector each, for those who have a model.

use super::{SearchIndex, Stamp, cached};
use crate::error::Error;
use rusqlite::TransactionBehavior;

/// A file as it was indexed at one moment. Indexed again, it is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edition {
    /// Its number in the index.
    pub id: i64,
    /// How it was.
    pub stamp: Stamp,
}

/// The vectors of all files that have one of a model, one after the other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vectors {
    /// How long each is.
    pub dimensions: usize,
    /// Whose they are.
    pub ids: Vec<i64>,
    /// Their numbers: `dimensions` for each of `ids`.
    pub flat: Vec<f32>,
}

/// Numbers of all vectors that are held in memory: 512 MiB. Files beyond that are found by their words only.
const NUMBERS: usize = 128 * 1024 * 1024;

impl SearchIndex {
    /// Files with text that have no vector of this model, at most `limit`, with their paths.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn without_vector(&self, model: &str, limit: usize) -> Result<Vec<(Edition, String)>, Error> {
        let reader = self.reader();
        let mut query = cached(
            &reader,
            "SELECT f.path, f.size, f.modified_ns, f.changed_ns, f.inode, f.id FROM files f WHERE NOT EXISTS (
               SELECT 1 FROM vectors v WHERE v.id = f.id AND v.model = ?1
             ) AND EXISTS (SELECT 1 FROM body_docsize d WHERE d.id = f.id) ORDER BY f.id LIMIT ?2",
        )?;
        let rows = query.query_map((model, limit as i64), |row| {
            Ok((Edition { id: row.get(5)?, stamp: super::stamp(row)? }, row.get(0)?))
        });
        let rows = rows.map_err(Error::sqlite)?;
        rows.collect::<Result<_, _>>().map_err(Error::sqlite)
    }

    /// Keeps vectors of files, in place of those that they had. A file that is gone, or was indexed again as something
    /// else by now, is left out: the vector is not of what it says.
    ///
    /// # Errors
    /// When the index cannot be written, or is full.
    pub fn put_vectors(&self, model: &str, vectors: &[(Edition, Vec<f32>)]) -> Result<(), Error> {
        let mut writer = self.writer();
        let tx = writer.transaction_with_behavior(TransactionBehavior::Immediate).map_err(Error::sqlite)?;
        for (Edition { id, stamp }, vector) in vectors {
            let blob: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
            let kept = cached(
                &tx,
                "INSERT OR REPLACE INTO vectors (id, model, vector) SELECT id, ?2, ?3 FROM files
                 WHERE id = ?1 AND size = ?4 AND modified_ns = ?5 AND changed_ns = ?6 AND inode = ?7",
            )?
            .execute((
                id,
                model,
                blob,
                stamp.size,
                stamp.modified_ns,
                stamp.changed_ns,
                stamp.inode,
            ));
            kept.map_err(Error::sqlite)?;
        }
        tx.commit().map_err(Error::sqlite)
    }

    /// All vectors of this model that are as long as the first.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn vectors(&self, model: &str) -> Result<Vectors, Error> {
        let reader = self.reader();
        let mut query = cached(&reader, "SELECT id, vector FROM vectors WHERE model = ?1 ORDER BY id")?;
        let mut rows = query.query([model]).map_err(Error::sqlite)?;
        let mut all = Vectors::default();
        while let Some(row) = rows.next().map_err(Error::sqlite)? {
            let (id, blob): (i64, Vec<u8>) = row.try_into().map_err(Error::sqlite)?;
            let (numbers, _) = blob.as_chunks::<4>();
            if all.ids.is_empty() {
                all.dimensions = numbers.len();
            }
            if all.flat.len() >= NUMBERS {
                break;
            }
            if numbers.len() == all.dimensions {
                all.ids.push(id);
                all.flat.extend(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)));
            }
        }
        Ok(all)
    }
}
