//! Which addresses may be connected to: public ones, and those private ones that somebody has opened by name.
//!
//! A name is looked up once for each connection, and what was looked at here is what is connected to. So a name that
//! points elsewhere a moment later gains nothing.

use crate::Url;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long looking up a name may take.
const LOOKUP: Duration = Duration::from_secs(5);
/// Names that are looked up at once for one client. The system's way to do that cannot be given up: it holds a thread
/// for as long as a silent name server lets it wait, whoever has stopped waiting for it.
const LOOKUPS: usize = 8;

/// Addresses of one name that are tried.
const ADDRESSES: usize = 16;

/// What is not public in the fourth version: private, local, shared, reserved, for documents, for many.
const CLOSED_4: [Cidr; 17] = [
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    // Azure answers machines inside it at this public address, with their secrets.
    v4([168, 63, 129, 16], 32),
    v4([169, 254, 0, 0], 16),
    v4([172, 16, 0, 0], 12),
    v4([192, 0, 0, 0], 24),
    v4([192, 0, 2, 0], 24),
    v4([192, 88, 99, 0], 24),
    v4([192, 168, 0, 0], 16),
    v4([198, 18, 0, 0], 15),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    v4([224, 0, 0, 0], 4),
    v4([240, 0, 0, 0], 4),
    v4([255, 255, 255, 255], 32),
];

/// All that is public in the sixth version is in here …
const OPEN_6: Cidr = v6([0x2000, 0], 3);

/// … except for these: special purposes (Teredo among them), documents, and 6to4, which may lead to any address of the
/// fourth version.
const CLOSED_6: [Cidr; 4] =
    [v6([0x2001, 0], 23), v6([0x2001, 0xdb8], 32), v6([0x2002, 0], 16), v6([0x3fff, 0], 20)];

/// Addresses of the fourth version as the sixth writes them, and as a translator (NAT64) reaches them.
const CARRIES_4: [Cidr; 2] = [
    Cidr { base: IpAddr::V6(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0)), bits: 96 },
    Cidr { base: IpAddr::V6(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0)), bits: 96 },
];

/// A text that is no range of addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither an IP address nor a range of them, such as 10.1.2.0/24")]
pub struct NoCidr(String);

/// An address that must not be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a public address and was not opened")]
pub struct NotAllowed(pub IpAddr);

/// A range of IP addresses, read from `address/bits`; an address alone is a range of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    base: IpAddr,
    bits: u8,
}

const fn v4([a, b, c, d]: [u8; 4], bits: u8) -> Cidr {
    Cidr { base: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits }
}

const fn v6([a, b]: [u16; 2], bits: u8) -> Cidr {
    Cidr { base: IpAddr::V6(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0)), bits }
}

impl Cidr {
    /// Whether the address is in it.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                let host = 32_u32.saturating_sub(self.bits.into());
                (base.to_bits() ^ address.to_bits()).checked_shr(host).unwrap_or(0) == 0
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                let host = 128_u32.saturating_sub(self.bits.into());
                (base.to_bits() ^ address.to_bits()).checked_shr(host).unwrap_or(0) == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for Cidr {
    type Err = NoCidr;

    fn from_str(text: &str) -> Result<Self, NoCidr> {
        let parse = || {
            let (base, bits) = text.split_once('/').map_or((text, None), |(base, bits)| (base, Some(bits)));
            let base: IpAddr = base.parse().ok()?;
            let most = if base.is_ipv4() { 32 } else { 128 };
            let bits = match bits {
                None => most,
                // `parse` would take a sign.
                Some(bits) if !bits.bytes().all(|byte| byte.is_ascii_digit()) => return None,
                Some(bits) => bits.parse().ok().filter(|bits| *bits <= most)?,
            };
            Some(Self { base, bits })
        };
        parse().ok_or_else(|| NoCidr(text.to_owned()))
    }
}

/// Whether the address can be reached by everybody on the Internet and is nobody's in particular here.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => !CLOSED_4.iter().any(|range| range.contains(address)),
        IpAddr::V6(carrier) if CARRIES_4.iter().any(|range| range.contains(address)) => {
            let [.., a, b, c, d] = carrier.octets();
            is_public(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
        }
        IpAddr::V6(_) => OPEN_6.contains(address) && !CLOSED_6.iter().any(|range| range.contains(address)),
    }
}

/// Whether all of these addresses may be connected to: each is public or in one of the ranges that were opened.
///
/// # Errors
/// The first one that is neither.
pub fn allowed(addresses: impl IntoIterator<Item = IpAddr>, private: &[Cidr]) -> Result<(), NotAllowed> {
    match addresses.into_iter().find(|address| !is_public(*address) && !is_opened(*address, private)) {
        Some(address) => Err(NotAllowed(address)),
        None => Ok(()),
    }
}

/// Whether an address is in one of the ranges; one of the fourth version also as the sixth writes it.
fn is_opened(address: IpAddr, private: &[Cidr]) -> bool {
    let plain = address.to_canonical();
    private.iter().any(|range| range.contains(address) || range.contains(plain))
}

/// The address that stands in place of a name, however it is written.
#[must_use]
pub fn literal(url: &Url) -> Option<IpAddr> {
    url.host_str()?.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Why there is no address to connect to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unresolved {
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    #[error("the name cannot be looked up: {0}")]
    Lookup(#[from] io::Error),
    #[error("looking up the name took more than {} s", LOOKUP.as_secs())]
    Slow,
    #[error("the name has no address")]
    Nowhere,
}

/// Looks up names for a client that connects to allowed addresses only.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    private: Arc<[Cidr]>,
    names: Names,
    turns: Arc<Semaphore>,
}

/// Who knows where a name leads.
#[derive(Clone)]
enum Names {
    System,
    #[cfg(test)]
    Script(Arc<Script>),
}

#[cfg(test)]
type Script = dyn Fn(&str) -> Vec<IpAddr> + Send + Sync;

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Names")
    }
}

impl Guard {
    pub(crate) fn new(private: &[Cidr]) -> Self {
        Self::with(private, Names::System)
    }

    /// The same with names that a test makes up.
    #[cfg(test)]
    pub(crate) fn scripted(
        private: &[Cidr],
        script: impl Fn(&str) -> Vec<IpAddr> + Send + Sync + 'static,
    ) -> Self {
        Self::with(private, Names::Script(Arc::new(script)))
    }

    fn with(private: &[Cidr], names: Names) -> Self {
        Self { private: private.into(), names, turns: Arc::new(Semaphore::new(LOOKUPS)) }
    }

    /// Checks an address whose host is no name: nothing is looked up for it.
    pub(crate) fn check_literal(&self, url: &str) -> Result<(), NotAllowed> {
        // What cannot be read here cannot be sent to either.
        let Some(address) = Url::parse(url).ok().as_ref().and_then(literal) else { return Ok(()) };
        allowed([address], &self.private)
    }

    /// Whether the address may be connected to because somebody has opened it by name.
    pub(crate) fn is_opened(&self, address: IpAddr) -> bool {
        is_opened(address, &self.private)
    }

    /// Where a host is: looked up once, and every address may be connected to.
    pub(crate) async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, Unresolved> {
        let mut found = match host.trim_start_matches('[').trim_end_matches(']').parse() {
            Ok(address) => vec![address],
            Err(_) => self.look_up(host).await?,
        };
        allowed(found.iter().copied(), &self.private)?;
        found.truncate(ADDRESSES);
        if found.is_empty() { Err(Unresolved::Nowhere) } else { Ok(found) }
    }

    async fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, Unresolved> {
        match &self.names {
            Names::System => {
                let asking = ask(Arc::clone(&self.turns), name.to_owned());
                Ok(tokio::time::timeout(LOOKUP, asking).await.map_err(|_elapsed| Unresolved::Slow)??)
            }
            #[cfg(test)]
            Names::Script(script) => Ok(script(name)),
        }
    }
}

/// Asks the system where a name leads, when it is this one's turn.
async fn ask(turns: Arc<Semaphore>, name: String) -> io::Result<Vec<IpAddr>> {
    let turn = turns.acquire_owned().await.map_err(io::Error::other)?;
    let asking = tokio::task::spawn_blocking(move || {
        let found = (name.as_str(), 0).to_socket_addrs()?.map(|address| address.ip()).collect();
        drop(turn);
        Ok(found)
    });
    asking.await.map_err(io::Error::other)?
}

impl reqwest::dns::Resolve for Guard {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let guard = self.clone();
        Box::pin(async move {
            match guard.addresses(name.as_str()).await {
                Ok(found) => {
                    let found = found.into_iter().map(|address| SocketAddr::new(address, 0));
                    Ok(Box::new(found) as reqwest::dns::Addrs)
                }
                // As itself, so that it is found among the causes.
                Err(Unresolved::NotAllowed(refused)) => Err(refused.into()),
                Err(error) => Err(error.into()),
            }
        })
    }
}

/// The refusal among the causes of an error, if it is one.
pub(crate) fn refusal(error: &(dyn std::error::Error + 'static)) -> Option<NotAllowed> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(*found);
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// The first and the last address of each range that is closed, and what a text may hide them in.
    const CLOSED: &str = "0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.100.100.200 100.127.255.255
        127.0.0.1 127.255.255.255 168.63.129.16 169.254.0.0 169.254.169.254 169.254.255.255 172.16.0.0 172.31.255.255
        192.0.0.0 192.0.0.192 192.0.0.255 192.0.2.0 192.0.2.255 192.88.99.0 192.88.99.255 192.168.0.0 192.168.255.255
        198.18.0.0 198.19.255.255 198.51.100.0 198.51.100.255 203.0.113.0 203.0.113.255 224.0.0.0 239.255.255.255
        240.0.0.0 255.255.255.254 255.255.255.255
        :: ::1 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:168.63.129.16
        ::ffff:0:8.8.8.8 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b::a00:1 64:ff9b:1::808:808 100::1
        1fff:ffff:: 2001:: 2001:0:53aa:64c::1 2001:1ff:ffff::1 2001:db8:: 2001:db8:ffff::1 2002:7f00:1:: 2002:808:808::
        2002:ffff:: 3fff:: 3fff:fff:ffff::1 4000:: 5f00::1 fc00::1 fd00:ec2::254 fdff:ffff::1 fe80::1 febf::1 fec0::1
        feff::1 ff02::1 ffff::1";

    /// The neighbours of those ranges, and addresses of well-known servers.
    const OPEN: &str = "1.0.0.0 1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255
        128.0.0.0 168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255
        192.0.1.0 192.0.3.0 192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0
        198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255
        ::ffff:8.8.8.8 64:ff9b::808:808 2000::1 2001:200::1 2001:4860:4860::8888 2001:db7:ffff::1 2001:db9::1
        2003::1 2606:4700:4700::1111 2a00::1 3ffe:ffff::1 3fff:1000::1";

    #[test]
    fn only_what_everybody_can_reach_is_public() {
        for text in CLOSED.split_whitespace() {
            assert!(!is_public(ip(text)), "{text} is not public");
        }
        for text in OPEN.split_whitespace() {
            assert!(is_public(ip(text)), "{text} is public");
        }
    }

    #[test]
    fn ranges_are_read_and_everything_else_is_refused() {
        for (range, within, without) in [
            ("127.0.0.1", "127.0.0.1", "127.0.0.2"),
            ("127.0.0.1/32", "127.0.0.1", "127.0.0.0"),
            ("10.1.2.3/8", "10.255.0.1", "11.0.0.0"),
            ("10.1.2.0/23", "10.1.3.255", "10.1.4.0"),
            ("0.0.0.0/0", "192.168.1.1", "::1"),
            ("::1", "::1", "::2"),
            ("fd00::/8", "fdff::1", "fc00::1"),
            ("fd12:3456::/33", "fd12:3456:7fff::1", "fd12:3456:8000::1"),
            ("::/0", "fe80::1", "127.0.0.1"),
        ] {
            let parsed: Cidr = range.parse().unwrap();
            assert!(parsed.contains(ip(within)), "{within} is in {range}");
            assert!(!parsed.contains(ip(without)), "{without} is not in {range}");
        }
        for bad in [
            "",
            "/8",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "10.0.0.0/-1",
            "::/129",
            "10/8",
            "10.0.0.0/8/8",
        ] {
            assert!(bad.parse::<Cidr>().is_err(), "{bad}");
        }
        for bad in
            ["localhost", "10.0.0.0/ 8", " 10.0.0.1", "10.0.0.*", "10.0.0.0/999", "fe80::1%eth0", "010.0.0.1"]
        {
            assert_eq!(bad.parse::<Cidr>(), Err(NoCidr(bad.into())));
        }
    }

    #[test]
    fn one_address_that_is_closed_closes_them_all() {
        let private: Vec<Cidr> = vec!["127.0.0.1/32".parse().unwrap(), "fd00::/8".parse().unwrap()];
        let check = |texts: &[&str]| allowed(texts.iter().map(|text| ip(text)), &private);
        assert_eq!(check(&["8.8.8.8", "2606:4700:4700::1111", "127.0.0.1", "fd00::1"]), Ok(()));
        // The same address, as the sixth version writes it.
        assert_eq!(check(&["::ffff:127.0.0.1"]), Ok(()));
        for closed in ["127.0.0.2", "::1", "169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::"] {
            assert_eq!(check(&["8.8.8.8", closed]), Err(NotAllowed(ip(closed))), "{closed}");
        }
        assert_eq!(allowed([ip("127.0.0.1")], &[]), Err(NotAllowed(ip("127.0.0.1"))));
    }

    #[test]
    fn an_address_in_place_of_a_name_is_looked_at_however_it_is_written() {
        let guard = Guard::new(&["10.0.0.1".parse().unwrap()]);
        for url in [
            "http://127.0.0.1/",
            "http://0x7f000001/",
            "http://2130706433:8080/x",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://0/",
            "https://[::1]/",
            "http://[::ffff:169.254.169.254]/",
            "http://①②⑦.⓪.⓪.①/",
            "http://127。0。0。1/",
            "http://example.com@127.0.0.1/",
            "http://127.0.0.1./",
        ] {
            assert!(guard.check_literal(url).is_err(), "{url}");
        }
        for url in ["http://8.8.8.8/", "http://example.com/", "http://10.0.0.1:9/", "https://[2606:4700::1]/"]
        {
            assert_eq!(guard.check_literal(url), Ok(()), "{url}");
        }
    }
}
