//! Brings an OpenAPI document and those that it refers to, from files or from the web.

use super::client::{Request, RestClient};
use super::fault::ErrorContext;
use super::options::SpecPlace;
use gantry_egress::{Url, display_url};
use gantry_openapi::{Bundle, Method};
use gantry_provider::redact::Redactor;
use http::header::{self, HeaderMap, HeaderValue};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::task::spawn_blocking;

/// Bytes of one document.
const DOCUMENT_BYTES: usize = Bundle::DOCUMENT_BYTES;

/// How often documents may refer to documents that refer to documents.
const ROUNDS: usize = 10;

/// Documents that are brought.
const DOCUMENTS: usize = 200;

/// How long one document may take.
const FETCH: Duration = Duration::from_secs(30);

const ACCEPT: &str = "application/json, application/yaml;q=0.9, */*;q=0.5";

/// What was brought.
#[derive(Debug)]
pub(super) struct Brought {
    pub(super) bundle: Bundle,
    /// The files that it is made of, and what they were like before they were read; none if it is from the web.
    pub(super) files: Stamps,
}

/// What files were like: when they were written, and how long they were.
pub(super) type Stamps = Vec<(PathBuf, Option<(SystemTime, u64)>)>;

/// A file, and what it is like now. `None` for one that cannot be read.
pub(super) fn stamped(path: PathBuf) -> (PathBuf, Option<(SystemTime, u64)>) {
    let stamp = path.metadata().ok().and_then(|meta| Some((meta.modified().ok()?, meta.len())));
    (path, stamp)
}

/// The document at a place, with those that it refers to. From the web only documents of the same origin are brought, and
/// of files only those below the folder of the first.
///
/// # Errors
/// Says why it cannot be had, or cannot be used.
pub async fn load(place: &SpecPlace, client: &RestClient) -> Result<Bundle, String> {
    bring(place, client).await.map(|brought| brought.bundle)
}

pub(super) async fn bring(place: &SpecPlace, client: &RestClient) -> Result<Brought, String> {
    match place {
        SpecPlace::File(path) => {
            let path = path.clone();
            spawn_blocking(move || from_files(&path)).await.map_err(|crash| crash.to_string())?
        }
        SpecPlace::Url(url) => {
            let bundle = from_web(url, client).await.map_err(|error| placed(url, error))?;
            Ok(Brought { bundle, files: Vec::new() })
        }
    }
}

/// An error that names the document, once.
fn placed(url: &Url, error: String) -> String {
    let place = display_url(url.as_str());
    if error.contains(&place) { error } else { format!("{place}: {error}") }
}

/// The files that a document is made of, as far as they are known: a program that can write one of them has a say in what its
/// tools do. A document that refers to no other one is not taken apart for that.
#[must_use]
pub fn files(path: &Path) -> Vec<PathBuf> {
    let mut files = vec![path.to_owned()];
    let real = path.canonicalize();
    if real.as_ref().is_ok_and(|real| read_file(real).is_ok_and(|bytes| refers_elsewhere(&bytes)))
        && let Ok(brought) = from_files(path)
    {
        files.extend(brought.files.into_iter().map(|(path, _)| path));
    }
    files.extend(real);
    files.sort();
    files.dedup();
    files
}

/// Whether a document may refer to others. A reference within it begins with `#`, in any quotes.
fn refers_elsewhere(document: &[u8]) -> bool {
    const WORD: &[u8] = b"$ref";
    let mut rest = document;
    while let Some(at) = rest.windows(WORD.len()).position(|word| word == WORD) {
        rest = rest.get(at + WORD.len()..).unwrap_or_default();
        let value =
            rest.iter().find(|byte| !matches!(byte, b'"' | b'\'' | b':' | b' ' | b'\t' | b'\r' | b'\n'));
        if value.is_some_and(|first| *first != b'#') {
            return true;
        }
    }
    // The alternatives of a discriminator may be in files, too.
    document.windows(b"mapping".len()).any(|word| word == b"mapping")
}

fn from_files(path: &Path) -> Result<Brought, String> {
    let said = |error: String| format!("{}: {error}", path.display());
    let mut files = vec![stamped(path.to_owned())];
    // A document that is a link stands where the link leads, and so does what it refers to.
    let real = path.canonicalize().map_err(|error| said(error.to_string()))?;
    let folder = real.parent().map(Path::to_owned).unwrap_or_default();
    let location = Url::from_file_path(&real).map_err(|()| said("its path is not absolute".to_owned()))?;
    let bytes = read_file(&real).map_err(said)?;
    let mut bundle = Bundle::open(location, &bytes).map_err(|error| said(error.to_string()))?;
    for _ in 0..ROUNDS {
        let wanted = bundle.wanted();
        if wanted.is_empty() {
            break;
        }
        for location in wanted {
            let wanted = location.to_file_path().ok().filter(|path| path.starts_with(&folder)).map(stamped);
            let found = match below(&location, &folder) {
                _ if files.len() >= DOCUMENTS => Err(format!("there are more than {DOCUMENTS} documents")),
                Ok(file) => {
                    files.push(stamped(file.clone()));
                    read_file(&file)
                }
                Err(error) => {
                    // What is not there yet may come.
                    files.extend(wanted);
                    Err(error)
                }
            };
            bundle.add(location, found.as_deref().map_err(String::clone));
        }
    }
    Ok(Brought { bundle, files })
}

/// The file at a location, if it is really below the folder.
fn below(location: &Url, folder: &Path) -> Result<PathBuf, String> {
    let path = location.to_file_path().map_err(|()| "it is no file of this machine".to_owned())?;
    let real = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
    if real.starts_with(folder) {
        return Ok(real);
    }
    Err(format!("{} is not below the folder of the specification", path.display()))
}

/// What is in a file, if it is still there where its path says: no link, and no folder that became one meanwhile.
fn read_file(real: &Path) -> Result<Vec<u8>, String> {
    let read = || -> std::io::Result<Option<Vec<u8>>> {
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
        Ok((bytes.len() <= DOCUMENT_BYTES).then_some(bytes))
    };
    match read() {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err(format!("it has more than {DOCUMENT_BYTES} bytes")),
        Err(error) => Err(error.to_string()),
    }
}

async fn from_web(url: &Url, client: &RestClient) -> Result<Bundle, String> {
    let (location, bytes) = fetch(url, client).await?;
    let root = location.clone();
    let opening = spawn_blocking(move || Bundle::open(location, &bytes));
    let opened = opening.await.map_err(|crash| crash.to_string())?;
    let mut bundle = opened.map_err(|error| error.to_string())?;
    let mut count = 1;
    for _ in 0..ROUNDS {
        let (known, wanted) = look(bundle).await?;
        bundle = known;
        if wanted.is_empty() {
            break;
        }
        for location in wanted {
            count += 1;
            let found =
                if location.origin() != root.origin() || !matches!(location.scheme(), "http" | "https") {
                    Err("it is at another place than the specification".to_owned())
                } else if count > DOCUMENTS {
                    Err(format!("there are more than {DOCUMENTS} documents"))
                } else {
                    fetch(&location, client).await.map(|(_, bytes)| bytes)
                };
            bundle = add(bundle, location, found).await?;
        }
    }
    Ok(bundle)
}

/// What a bundle wants. Looking for that in a large document takes a while.
async fn look(bundle: Bundle) -> Result<(Bundle, Vec<Url>), String> {
    let looking = spawn_blocking(move || {
        let wanted = bundle.wanted();
        (bundle, wanted)
    });
    looking.await.map_err(|crash| crash.to_string())
}

async fn add(mut bundle: Bundle, location: Url, found: Result<Vec<u8>, String>) -> Result<Bundle, String> {
    let adding = spawn_blocking(move || {
        bundle.add(location, found.as_deref().map_err(String::clone));
        bundle
    });
    adding.await.map_err(|crash| crash.to_string())
}

/// A document from the web, and where it was in the end. The request has no credentials.
async fn fetch(url: &Url, client: &RestClient) -> Result<(Url, Vec<u8>), String> {
    let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(ACCEPT))]);
    let request =
        Request { method: Method::Get, url: url.clone(), headers, body: Vec::new(), public_only: false };
    let secrets = Redactor::default();
    let context = ErrorContext { method: Method::Get, url, reads: true, secrets: &secrets, advice: None };
    let words = |error: &gantry_egress::HttpError| context.http(error).error.message;
    let asking = async {
        let reached =
            client.send(&request).await.map_err(|missed| context.unanswered(&missed).error.message)?;
        let status = reached.response.status();
        if !status.is_success() {
            let from = Some(display_url(reached.url.as_str()))
                .filter(|reached| *reached != display_url(url.as_str()));
            return Err(format!(
                "HTTP {status}{}",
                from.map(|from| format!(" from {from}")).unwrap_or_default()
            ));
        }
        let body = reached.response.body(DOCUMENT_BYTES).await.map_err(|error| words(&error))?;
        Ok((reached.url, body.to_vec()))
    };
    let late = |_elapsed| format!("it did not come within {} s", FETCH.as_secs());
    tokio::time::timeout(FETCH, asking).await.map_err(late)?
}
