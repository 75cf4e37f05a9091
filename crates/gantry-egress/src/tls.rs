//! Three hints for failed TLS connections: untrusted authority, unusable certificate, no TLS at all.

use rustls::{CertificateError, Error as TlsError};
use std::{env, error::Error, io, path::Path};

/// Environment variables that name trusted authorities in place of the system's store.
const CERT_PLACES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

const UNTRUSTED: &str = "its certificate is signed by no authority that is trusted here; if it is the right server, add \
    the certificate of its authority to the system's store, or name a PEM file that has it by SSL_CERT_FILE for Gantry";

const UNUSABLE: &str = "its certificate cannot be used: check that it is for the name in the address and not for other \
    names, that it has not expired (and the clock of this machine), and that it is a server's, with basicConstraints \
    CA:FALSE";

const NO_TLS: &str =
    "it does not seem to speak TLS; if it does not, its address begins with http:// or ws://";

/// The hint and the error itself, if the connection failed because of TLS.
pub(crate) fn explain(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref::<TlsError>() {
        return hint(error).map(|hint| format!("{hint} ({error})"));
    }
    let Some(error) = error.downcast_ref::<io::Error>() else { return explain(error.source()?) };
    // An I/O error does not count what it wraps among its sources.
    let inner = error.get_ref().and_then(|inner| explain(inner));
    // The server ended the connection during the handshake.
    let hung_up = matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset);
    inner.or_else(|| hung_up.then(|| format!("{NO_TLS} ({error})")))
}

fn hint(error: &TlsError) -> Option<String> {
    use CertificateError as E;
    let TlsError::InvalidCertificate(certificate) = error else {
        return matches!(error, TlsError::InvalidMessage(_)).then(|| NO_TLS.to_owned());
    };
    // The last two mean a trusted authority of the same name with another key.
    let is_untrusted = matches!(
        certificate,
        E::UnknownIssuer | E::BadSignature | E::UnsupportedSignatureAlgorithmForPublicKeyContext { .. }
    );
    Some(if is_untrusted { untrusted() } else { UNUSABLE.to_owned() })
}

/// The hint about authorities, with what the environment names in place of the system's store.
fn untrusted() -> String {
    let named = CERT_PLACES.iter().filter_map(|name| {
        let place = env::var_os(name)?;
        Some(format!("; {name} is {}", Path::new(&place).display()))
    });
    std::iter::once(UNTRUSTED.to_owned()).chain(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(error: CertificateError) -> String {
        // As connecting wraps it.
        let error = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, TlsError::from(error)));
        explain(&error).unwrap_or_default()
    }

    #[test]
    fn a_certificate_that_is_refused_is_explained_with_what_to_do() {
        for (error, words) in [
            (CertificateError::UnknownIssuer, ["system's store", "UnknownIssuer"]),
            // An authority that was made anew under the same name.
            (CertificateError::BadSignature, ["no authority that is trusted", "BadSignature"]),
            (CertificateError::NotValidForName, ["other names", "NotValidForName"]),
            (CertificateError::Expired, ["expired", "Expired"]),
            (CertificateError::NotValidYet, ["clock", "NotValidYet"]),
        ] {
            let text = explained(error);
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        }
    }

    #[test]
    fn an_error_that_is_not_about_tls_is_not_explained() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(explain(&refused), None);
    }

    #[test]
    fn a_server_that_hangs_up_may_not_speak_tls() {
        let eof = io::Error::other(io::Error::from(io::ErrorKind::UnexpectedEof));
        assert!(explain(&eof).is_some_and(|text| text.contains("http://")));
    }
}
