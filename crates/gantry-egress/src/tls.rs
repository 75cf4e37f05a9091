//! Why a TLS connection failed, in words that say what to do about it.

use rustls::{CertificateError, Error as TlsError};
use std::{env, error::Error, io, path::PathBuf};

/// Names the file with the authorities that are trusted instead of the system's.
const CERT_FILE: &str = "SSL_CERT_FILE";
/// Names folders of such files.
const CERT_DIR: &str = "SSL_CERT_DIR";

/// The systems that judge certificates themselves, whatever the environment says.
const SYSTEM_JUDGES: bool = cfg!(any(target_vendor = "apple", windows));

const NO_TLS: &str =
    "it does not seem to speak TLS; if it does not, its address begins with http:// or ws://";

/// Says what is wrong, if it is about TLS. `roots` says whether there is anybody to trust at all.
pub(crate) fn explained(error: &(dyn Error + 'static), roots: bool) -> Option<String> {
    match cause(error)? {
        Cause::Tls(error) => advice(error, roots).map(|advice| format!("{advice} ({error})")),
        Cause::HungUp(error) => Some(format!("{NO_TLS} ({error})")),
    }
}

enum Cause<'a> {
    Tls(&'a TlsError),
    /// The other side ended the connection before the handshake was over.
    HungUp(&'a io::Error),
}

/// The innermost cause that is known here. What an I/O error wraps is not among its sources, so it is looked into.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<Cause<'a>> {
    if let Some(error) = error.downcast_ref::<TlsError>() {
        return Some(Cause::Tls(error));
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        let inner = error.get_ref().and_then(|inner| cause(inner));
        let hung_up = matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset);
        return inner.or_else(|| hung_up.then_some(Cause::HungUp(error)));
    }
    error.source().and_then(cause)
}

fn advice(error: &TlsError, roots: bool) -> Option<String> {
    if let TlsError::InvalidCertificate(error) = error {
        return certificate(error, roots);
    }
    matches!(error, TlsError::InvalidMessage(_)).then(|| NO_TLS.to_owned())
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "there are many more, which are rare and speak for themselves"
)]
fn certificate(error: &CertificateError, roots: bool) -> Option<String> {
    use CertificateError as E;
    Some(match error {
        // The last two: an authority of the same name is trusted, with another key.
        E::UnknownIssuer
        | E::BadSignature
        | E::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => untrusted(roots),
        E::NotValidForName | E::NotValidForNameContext { .. } => {
            "its certificate is for other names; use one of them in the address, or have it made for this one".into()
        }
        E::Expired | E::ExpiredContext { .. } | E::NotValidYet | E::NotValidYetContext { .. } => {
            "the time of its certificate is over or has not begun; renew it, or set the clock of this machine".into()
        }
        // rustls passes this on without a name of its own.
        E::Other(inner) if format!("{inner:?}").contains("CaUsedAsEndEntity") => {
            "its certificate is that of an authority; it needs one of its own, made with basicConstraints CA:FALSE"
                .into()
        }
        _ => return None,
    })
}

fn untrusted(roots: bool) -> String {
    let named = named_instead();
    let why = match (roots, &named) {
        (true, _) => "its certificate is signed by nobody who is trusted here".to_owned(),
        (false, None) => "there are no trusted authorities in the system's store".to_owned(),
        (false, Some(places)) => format!("no trusted authority could be read from {places}"),
    };
    let remedy = match named {
        Some(places) => format!("as PEM to {places}, which replaces the system's store"),
        None if SYSTEM_JUDGES => "to the system's store".to_owned(),
        None => format!("to the system's store, or name a PEM file that has it by {CERT_FILE} for Gantry"),
    };
    format!("{why}; if it is the right server, add the certificate of its authority {remedy}")
}

/// What the environment names in place of the system's store.
fn named_instead() -> Option<String> {
    let named = |name: &str| {
        let path = env::var_os(name).filter(|_| !SYSTEM_JUDGES).map(PathBuf::from)?;
        Some(format!("{name} ({})", path.display()))
    };
    let places: Vec<String> = [CERT_FILE, CERT_DIR].into_iter().filter_map(named).collect();
    (!places.is_empty()).then(|| places.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(error: CertificateError, roots: bool) -> String {
        // As connecting wraps it.
        let error = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, TlsError::from(error)));
        explained(&error, roots).unwrap_or_default()
    }

    #[test]
    fn a_certificate_that_cannot_be_trusted_is_told_with_what_to_do() {
        for (error, words) in [
            (CertificateError::UnknownIssuer, ["system's store", "UnknownIssuer"]),
            // An authority that was made anew under the same name.
            (CertificateError::BadSignature, ["nobody who is trusted", "BadSignature"]),
            (CertificateError::NotValidForName, ["other names", "NotValidForName"]),
            (CertificateError::Expired, ["renew it", "Expired"]),
            (CertificateError::NotValidYet, ["clock", "NotValidYet"]),
        ] {
            let text = told(error, true);
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        }
        let none = told(CertificateError::UnknownIssuer, false);
        assert!(none.contains("authorit") && !none.contains("signed by nobody"), "{none}");
    }

    #[test]
    fn what_is_no_trouble_with_tls_is_not_explained() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(explained(&refused, true), None);
        assert_eq!(told(CertificateError::Revoked, true), "");
    }

    #[test]
    fn somebody_who_hangs_up_may_not_speak_tls() {
        let eof = io::Error::other(io::Error::from(io::ErrorKind::UnexpectedEof));
        assert!(explained(&eof, true).is_some_and(|text| text.contains("http://")));
    }
}
