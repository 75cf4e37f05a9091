//! Reads an OpenAPI document and those that it refers to, from files or from the web.

use super::client::RestClient;
use super::error::describe;
use super::options::SpecPlace;
use crate::openapi::Bundle;
use gantry_egress::{OutboundRequest, Url, display_url};
use http::Method;
use http::header::{self, HeaderMap, HeaderValue};
use rustix::fs::{Mode, OFlags};
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::task::spawn_blocking;

const DOCUMENT_BYTES: usize = Bundle::DOCUMENT_BYTES;

const FETCH: Duration = Duration::from_secs(30);

const ACCEPT: &str = "application/json, application/yaml;q=0.9, */*;q=0.5";

/// Files, each with the time of its last change, its length, device and inode; nothing for one that is not there.
pub(super) type Stamps = Vec<(PathBuf, Stamp)>;
type Stamp = Option<(SystemTime, [u64; 3])>;

fn stamped(path: PathBuf) -> (PathBuf, Stamp) {
    let stamp = |file: Metadata| Some((file.modified().ok()?, [file.len(), file.dev(), file.ino()]));
    let stamp = path.metadata().ok().and_then(stamp);
    (path, stamp)
}

pub(super) async fn is_unchanged(files: Stamps) -> bool {
    blocking(move || files.iter().all(|file| stamped(file.0.clone()) == *file)).await.unwrap_or(false)
}

/// The document at a place, with those that it refers to. From the web only documents of the same origin are read, and
/// of files only those below the folder of the first. With it the files that it is made of, as they were before they were
/// read; none if it is from the web.
pub(super) async fn read(
    place: &SpecPlace,
    files: Option<&[PathBuf]>,
    client: &RestClient,
) -> Result<(Bundle, Stamps), String> {
    match place {
        SpecPlace::File(path) => {
            let (path, files) = (path.clone(), files.map(<[_]>::to_vec));
            blocking(move || from_files(&path, files.as_deref())).await?
        }
        SpecPlace::Url(url) => {
            let bundle = from_web(url, client).await.map_err(|error| placed(url, error))?;
            Ok((bundle, Vec::new()))
        }
    }
}

/// Does work that takes a while, such as looking through a large document, on a thread that may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    spawn_blocking(work).await.map_err(|crash| crash.to_string())
}

/// An error that names the document, once.
fn placed(url: &Url, error: String) -> String {
    let place = display_url(url.as_str());
    if error.contains(&place) { error } else { format!("{place}: {error}") }
}

/// The files that a document is made of, as far as they are known. A program that can write one of them can change what
/// its tools do. A document without references to others is not parsed for that.
#[must_use]
pub fn files(path: &Path) -> Vec<PathBuf> {
    let mut files = vec![path.to_owned()];
    let real = path.canonicalize();
    if real.as_ref().is_ok_and(|real| read_file(real).is_ok_and(|bytes| refers_elsewhere(&bytes)))
        && let Ok((_, stamps)) = from_files(path, None)
    {
        files.extend(stamps.into_iter().map(|(path, _)| path));
    }
    files.extend(real);
    files.sort();
    files.dedup();
    files
}

/// Whether a document may refer to others. A reference within it begins with `#` in quotes (a comment has none), and an
/// escape may spell a letter of `$ref`.
fn refers_elsewhere(document: &[u8]) -> bool {
    const WORD: &[u8] = b"$ref";
    let is_spelled = |text: &[u8]| {
        let [b'\\', escape @ ..] = text else { return false };
        matches!(escape, [b'x' | b'U' | b'\r' | b'\n', ..] | [b'u', b'0', b'0', b'2' | b'6' | b'7', ..])
    };
    if document.windows(6).any(is_spelled) {
        return true;
    }
    let mut rest = document;
    while let Some(at) = rest.windows(WORD.len()).position(|word| word == WORD) {
        rest = rest.get(at + WORD.len()..).unwrap_or_default();
        let is_before = |byte: &u8| b"\"': \t\r\n".contains(byte);
        let value = rest.iter().position(|byte| !is_before(byte)).unwrap_or(rest.len());
        let (before, value) = rest.split_at(value);
        let is_within = matches!((before.last(), value.first()), (Some(b'"' | b'\''), Some(b'#')));
        if !value.is_empty() && !is_within {
            return true;
        }
    }
    false
}

/// With `only`, other files are refused.
fn from_files(path: &Path, only: Option<&[PathBuf]>) -> Result<(Bundle, Stamps), String> {
    let is_known = |file: &Path| only.is_none_or(|only| only.iter().any(|known| known == file));
    let new = |file: &Path| format!("{} was not there when the configuration was read", file.display());
    let said = |error: String| format!("{}: {error}", path.display());
    let mut files = vec![stamped(path.to_owned())];
    // References of a document that is a link start where the link leads.
    let real = path.canonicalize().map_err(|error| said(error.to_string()))?;
    if !is_known(path) || !is_known(&real) {
        return Err(new(path));
    }
    let folder = real.parent().map(Path::to_owned).unwrap_or_default();
    let location = Url::from_file_path(&real).map_err(|()| said("its path is not absolute".to_owned()))?;
    let bytes = read_file(&real).map_err(said)?;
    let mut bundle = Bundle::open(location, &bytes).map_err(said)?;
    // A bundle wants a bounded number of documents, all below the folder by their names.
    while let Some(location) = bundle.wanted().into_iter().next() {
        let mut read = || {
            let path = location.to_file_path().map_err(|()| "it is no file of this machine".to_owned())?;
            // A file that is missing may be created later.
            files.push(stamped(path.clone()));
            let real = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
            if !real.starts_with(&folder) {
                return Err(format!("{} is not below the folder of the specification", path.display()));
            }
            if !is_known(&path) || !is_known(&real) {
                return Err(new(&path));
            }
            files.push(stamped(real.clone()));
            read_file(&real)
        };
        let found = read();
        bundle.add(&location, found.as_deref().map_err(String::clone));
    }
    Ok((bundle, files))
}

/// The content of a file at a canonical path. A link there, or a folder that became one meanwhile, is refused.
fn read_file(real: &Path) -> Result<Vec<u8>, String> {
    let read = || -> std::io::Result<Vec<u8>> {
        // Opening a pipe would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(real, flags, Mode::empty())?);
        let (opened, there) = (file.metadata()?, real.symlink_metadata()?);
        if !opened.is_file() {
            return Err(std::io::Error::other("it is no regular file"));
        }
        let is_same = (opened.dev(), opened.ino()) == (there.dev(), there.ino());
        if !is_same || real.canonicalize()? != real {
            return Err(std::io::Error::other("it was moved while it was read"));
        }
        let mut bytes = Vec::new();
        file.take(DOCUMENT_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > DOCUMENT_BYTES {
            return Err(std::io::Error::other(format!("it has more than {DOCUMENT_BYTES} bytes")));
        }
        Ok(bytes)
    };
    read().map_err(|error| error.to_string())
}

async fn from_web(url: &Url, client: &RestClient) -> Result<Bundle, String> {
    let (location, bytes) = fetch(url, client).await?;
    let mut bundle = blocking(move || Bundle::open(location, &bytes)).await??;
    // A bundle wants a bounded number of documents, all of the same origin.
    while let Some(location) = bundle.wanted().into_iter().next() {
        let found = fetch(&location, client).await.map(|(_, bytes)| bytes);
        let adding = move || {
            bundle.add(&location, found.as_deref().map_err(String::clone));
            bundle
        };
        bundle = blocking(adding).await?;
    }
    Ok(bundle)
}

/// A document from the web, and its URL after redirects. The request has no credentials.
async fn fetch(url: &Url, client: &RestClient) -> Result<(Url, Vec<u8>), String> {
    let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(ACCEPT))]);
    let request =
        OutboundRequest { method: Method::GET, url: url.clone(), headers, body: Default::default() };
    let asking = async {
        let reached = client.send(request, false).await.map_err(|missed| describe(&missed.error))?;
        let status = reached.response.status();
        if !status.is_success() {
            return Err(format!("HTTP {status}"));
        }
        let body = reached.response.body(DOCUMENT_BYTES).await.map_err(|error| describe(&error))?;
        Ok((reached.url, body.to_vec()))
    };
    let late = |_elapsed| format!("it did not come within {} s", FETCH.as_secs());
    tokio::time::timeout(FETCH, asking).await.map_err(late)?
}
