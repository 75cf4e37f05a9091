//! Which IP addresses a client may connect to: public ones, and private ranges that the configuration allows.
//!
//! A name is resolved once per connection, and the connection is made to exactly the addresses that were checked. A name
//! that resolves to another address a moment later (DNS rebinding) gains nothing.

use crate::Url;
use crate::host_pattern::host_name;
pub use ipnet::IpNet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long resolving a name may take.
const LOOKUP: Duration = Duration::from_secs(5);

/// Names that one client resolves at once. The system's resolver cannot be cancelled: it holds a thread until the name
/// server answers or it gives up, whether or not a request still waits for it.
const LOOKUPS: usize = 8;

/// Addresses of one name that are tried.
const ADDRESSES: usize = 16;

/// IPv4 ranges that are not globally reachable (IANA special-purpose registry), plus Azure's metadata address.
const NON_PUBLIC_V4: [IpNet; 17] = [
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    v4([168, 63, 129, 16], 32), // Public, but serves Azure machines their secrets.
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

/// The range that holds every globally reachable IPv6 address …
const GLOBAL_V6: IpNet = v6([0x2000, 0, 0], 3);

/// … except for these: special purposes (Teredo among them), documentation, 6to4 (which may lead to any IPv4 address).
const NON_PUBLIC_V6: [IpNet; 4] =
    [v6([0x2001, 0, 0], 23), v6([0x2001, 0xdb8, 0], 32), v6([0x2002, 0, 0], 16), v6([0x3fff, 0, 0], 20)];

/// IPv6 ranges whose last four bytes are an IPv4 address: mapped addresses, and NAT64.
const V4_MAPPED: [IpNet; 2] = [v6([0, 0, 0xffff], 96), v6([0x64, 0xff9b, 0], 96)];

/// An address that a guarded client does not connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a public address and was not opened")]
pub struct NotAllowed(pub IpAddr);

/// A text that is no range of IP addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither an IP address nor a range of them, such as 10.1.2.0/24")]
pub struct InvalidRange(String);

const fn v4([a, b, c, d]: [u8; 4], bits: u8) -> IpNet {
    IpNet::new_assert(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits)
}

/// From the first two groups and the sixth; the others are zero.
const fn v6([first, second, sixth]: [u16; 3], bits: u8) -> IpNet {
    IpNet::new_assert(IpAddr::V6(Ipv6Addr::new(first, second, 0, 0, 0, sixth, 0, 0)), bits)
}

/// Parses `address/bits`; an address alone is a range of one. Stricter than [`IpNet`]'s own parser, which accepts
/// leading zeros: `010.0.0.0` means another address to many programs.
///
/// # Errors
/// The text is no range.
pub fn parse_range(text: &str) -> Result<IpNet, InvalidRange> {
    let parse = || {
        let Some((address, bits)) = text.split_once('/') else { return text.parse().ok().map(IpAddr::into) };
        let is_plain =
            bits.bytes().all(|byte| byte.is_ascii_digit()) && (bits == "0" || !bits.starts_with('0'));
        IpNet::new(address.parse().ok()?, bits.parse().ok().filter(|_| is_plain)?).ok()
    };
    parse().ok_or_else(|| InvalidRange(text.to_owned()))
}

/// A range of addresses in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpRange(IpNet);

const RANGE: &str = "an IP address or a range of them, such as 127.0.0.1/32";

impl From<IpRange> for IpNet {
    fn from(range: IpRange) -> Self {
        range.0
    }
}

impl<'de> serde::Deserialize<'de> for IpRange {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        use serde::de::{Error as _, Unexpected};
        let text = String::deserialize(input)?;
        parse_range(&text)
            .map(Self)
            .map_err(|InvalidRange(text)| D::Error::invalid_value(Unexpected::Str(&text), &RANGE))
    }
}

impl schemars::JsonSchema for IpRange {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "IpRange".into()
    }

    fn json_schema(_generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "title": RANGE })
    }
}

/// Whether the address is globally reachable and belongs to no private or special-purpose range.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    let is_in = |ranges: &[IpNet]| ranges.iter().any(|range| range.contains(&address));
    match address {
        IpAddr::V4(_) => !is_in(&NON_PUBLIC_V4),
        IpAddr::V6(mapped) if is_in(&V4_MAPPED) => {
            let [.., a, b, c, d] = mapped.octets();
            is_public(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
        }
        IpAddr::V6(_) => GLOBAL_V6.contains(&address) && !is_in(&NON_PUBLIC_V6),
    }
}

/// Checks that every address is public or in one of the allowed private ranges.
///
/// # Errors
/// The first address that is neither.
pub fn allowed(addresses: impl IntoIterator<Item = IpAddr>, private: &[IpNet]) -> Result<(), NotAllowed> {
    match addresses.into_iter().find(|address| !is_public(*address) && !is_allow_listed(*address, private)) {
        Some(address) => Err(NotAllowed(address)),
        None => Ok(()),
    }
}

/// Whether the address, or the IPv4 address that it maps, is in one of the ranges.
fn is_allow_listed(address: IpAddr, private: &[IpNet]) -> bool {
    let canonical = address.to_canonical();
    private.iter().any(|range| range.contains(&address) || range.contains(&canonical))
}

/// The host of a URL if it is an IP address instead of a name.
#[must_use]
pub fn literal_address(url: &Url) -> Option<IpAddr> {
    parse_host(url.host_str()?)
}

/// Whether the URL's host is this machine: a loopback address, or a name below `localhost`.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    match literal_address(url) {
        Some(address) => address.is_loopback(),
        None => host_name(url).is_some_and(|host| host == "localhost" || host.ends_with(".localhost")),
    }
}

fn parse_host(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Why a host has no address to connect to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResolveError {
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    #[error("the name cannot be looked up: {0}")]
    Lookup(#[from] io::Error),
    #[error("looking up the name took more than {} s", LOOKUP.as_secs())]
    Timeout,
    #[error("the name has no address")]
    NoAddress,
}

/// Resolves names for a client that connects to allowed addresses only.
#[derive(Debug, Clone)]
pub(crate) struct AddressGuard {
    private: Arc<[IpNet]>,
    lookups: Arc<Semaphore>,
    /// Resolves names in tests, in place of the system.
    #[cfg(test)]
    script: Option<tests::Script>,
}

impl AddressGuard {
    pub(crate) fn new(private: &[IpNet]) -> Self {
        Self {
            private: private.into(),
            lookups: Arc::new(Semaphore::new(LOOKUPS)),
            #[cfg(test)]
            script: None,
        }
    }

    /// Checks a URL whose host is an IP address: the client resolves nothing for it, so [`Self::addresses`] is not asked.
    pub(crate) fn check_literal(&self, url: &str) -> Result<(), NotAllowed> {
        // A URL that cannot be parsed here cannot be sent to either.
        let Some(address) = Url::parse(url).ok().as_ref().and_then(literal_address) else { return Ok(()) };
        allowed([address], &self.private)
    }

    /// Whether the configuration allows this private address.
    pub(crate) fn is_allow_listed(&self, address: IpAddr) -> bool {
        is_allow_listed(address, &self.private)
    }

    /// The addresses of a host, resolved once. All of them may be connected to: one that may not refuses the host.
    pub(crate) async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, ResolveError> {
        let mut found = match parse_host(host) {
            Some(address) => vec![address],
            None => self.look_up(host).await?,
        };
        allowed(found.iter().copied(), &self.private)?;
        found.truncate(ADDRESSES);
        if found.is_empty() { Err(ResolveError::NoAddress) } else { Ok(found) }
    }

    async fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError> {
        #[cfg(test)]
        if let Some(tests::Script(script)) = &self.script {
            return Ok(script(name));
        }
        let lookup = system_lookup(Arc::clone(&self.lookups), name.to_owned());
        Ok(tokio::time::timeout(LOOKUP, lookup).await.map_err(|_elapsed| ResolveError::Timeout)??)
    }
}

/// Resolves a name by the system's resolver, at most [`LOOKUPS`] at once.
async fn system_lookup(lookups: Arc<Semaphore>, name: String) -> io::Result<Vec<IpAddr>> {
    let permit = lookups.acquire_owned().await.map_err(io::Error::other)?;
    let lookup = tokio::task::spawn_blocking(move || {
        let found = (name.as_str(), 0).to_socket_addrs()?.map(|address| address.ip()).collect();
        drop(permit);
        Ok(found)
    });
    lookup.await.map_err(io::Error::other)?
}

impl reqwest::dns::Resolve for AddressGuard {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let guard = self.clone();
        Box::pin(async move {
            match guard.addresses(name.as_str()).await {
                Ok(found) => {
                    let found = found.into_iter().map(|address| SocketAddr::new(address, 0));
                    Ok(Box::new(found) as reqwest::dns::Addrs)
                }
                // Passed on unwrapped, so that `refusal` finds it among the causes.
                Err(ResolveError::NotAllowed(refused)) => Err(refused.into()),
                Err(error) => Err(error.into()),
            }
        })
    }
}

/// The guard's refusal among the causes of an error, if it is one.
pub(crate) fn refusal(error: &(dyn std::error::Error + 'static)) -> Option<NotAllowed> {
    std::iter::successors(Some(error), |error| error.source()).find_map(|error| error.downcast_ref().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Resolve = dyn Fn(&str) -> Vec<IpAddr> + Send + Sync;

    /// A function that resolves names.
    #[derive(Clone)]
    pub(super) struct Script(pub(super) Arc<Resolve>);

    impl std::fmt::Debug for Script {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Script")
        }
    }

    impl AddressGuard {
        /// A guard that resolves names by this function.
        pub(crate) fn scripted(
            private: &[IpNet],
            script: impl Fn(&str) -> Vec<IpAddr> + Send + Sync + 'static,
        ) -> Self {
            Self { script: Some(Script(Arc::new(script))), ..Self::new(private) }
        }
    }

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
    fn only_globally_reachable_addresses_are_public() {
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
            let parsed = parse_range(range).unwrap();
            assert!(parsed.contains(&ip(within)), "{within} is in {range}");
            assert!(!parsed.contains(&ip(without)), "{without} is not in {range}");
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
            "10.0.0.0/08",
            "010.0.0.0/8",
        ] {
            assert!(parse_range(bad).is_err(), "{bad}");
        }
        for bad in
            ["localhost", "10.0.0.0/ 8", " 10.0.0.1", "10.0.0.*", "10.0.0.0/999", "fe80::1%eth0", "010.0.0.1"]
        {
            assert_eq!(parse_range(bad), Err(InvalidRange(bad.into())));
        }
    }

    #[test]
    fn one_address_that_is_closed_closes_them_all() {
        let private = ["127.0.0.1/32", "fd00::/8"].map(|range| parse_range(range).unwrap());
        let check = |texts: &[&str]| allowed(texts.iter().map(|text| ip(text)), &private);
        assert_eq!(check(&["8.8.8.8", "2606:4700:4700::1111", "127.0.0.1", "fd00::1"]), Ok(()));
        // The same address, mapped into IPv6.
        assert_eq!(check(&["::ffff:127.0.0.1"]), Ok(()));
        for closed in ["127.0.0.2", "::1", "169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::"] {
            assert_eq!(check(&["8.8.8.8", closed]), Err(NotAllowed(ip(closed))), "{closed}");
        }
        assert_eq!(allowed([ip("127.0.0.1")], &[]), Err(NotAllowed(ip("127.0.0.1"))));
    }

    #[test]
    fn an_address_in_place_of_a_name_is_looked_at_however_it_is_written() {
        let guard = AddressGuard::new(&[parse_range("10.0.0.1").unwrap()]);
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
