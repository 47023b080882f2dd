//! What an address is for: the public internet, this machine and its network, or nothing that should be reached.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where an address leads, and in a few words why it is not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Public,
    /// This machine or its network: open when the settings say so.
    Inside(&'static str),
    /// Open only for hosts that are named: here cloud machines give out their credentials, among others.
    Closed(&'static str),
    /// No address to send a request to.
    Never(&'static str),
}

/// Addresses at which cloud machines answer questions about themselves, outside of the link-local range.
const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(192, 0, 0, 192)];
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

pub fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) => reach_v6(address),
    }
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    if METADATA_V4.contains(&address) {
        return Reach::Closed("a metadata address");
    }
    match address.octets() {
        [0, ..] => Reach::Never("an unspecified address"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Reach::Inside("a private address"),
        [127, ..] => Reach::Inside("a loopback address"),
        [100, 64..=127, ..] => Reach::Inside("a carrier's private address"),
        [169, 254, ..] => Reach::Closed("a link-local or metadata address"),
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18..=19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => {
            Reach::Closed("a reserved address")
        }
        [224..=239, ..] => Reach::Never("a multicast address"),
        [255, 255, 255, 255] => Reach::Never("the broadcast address"),
        [240..=255, ..] => Reach::Closed("a reserved address"),
        [..] => Reach::Public,
    }
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    if address == METADATA_V6 {
        return Reach::Closed("a metadata address");
    }
    if let Some(inner) = carried(address) {
        return reach_v4(inner);
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Reach::Never("an unspecified address"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Reach::Inside("a loopback address"),
        [0xfc00..=0xfdff, ..] => Reach::Inside("a private address"),
        [0xfe80..=0xfebf, ..] => Reach::Closed("a link-local address"),
        [0xfec0..=0xfeff, ..] => Reach::Inside("a site-local address"),
        [0xff00..=0xffff, ..] => Reach::Never("a multicast address"),
        // What is given out for use is 2000::/3; of that, Teredo, benchmarks, ORCHID and documentation are not public.
        [0x2001, 0 | 2, ..] | [0x2001, 0x10..=0x2f, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => {
            Reach::Closed("a reserved address")
        }
        [0x2000..=0x3fff, ..] => Reach::Public,
        [..] => Reach::Closed("a reserved address"),
    }
}

/// The IPv4 address that an IPv6 address carries: mapped, compatible, translated (NAT64) or 6to4.
fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Some(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 1, _, _, _, high, low]
        | [0x2002, high, low, ..] => v4(high, low),
        [..] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(address: &str) -> Reach {
        reach(address.parse().unwrap())
    }

    #[test]
    fn the_internet_is_public() {
        for address in [
            "1.1.1.1",
            "93.184.215.14",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.0.1",
            "2606:4700::1111",
            "64:ff9b::1.1.1.1",
        ] {
            assert_eq!(of(address), Reach::Public, "{address}");
        }
    }

    #[test]
    fn what_is_inside_is_told_apart_in_every_spelling() {
        for address in [
            "127.0.0.1",
            "127.255.255.254",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "::1",
            "fc00::1",
            "fd12::1",
            "fec0::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::10.0.0.1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "::ffff:0:10.0.0.1",
        ] {
            assert!(matches!(of(address), Reach::Inside(_)), "{address} {:?}", of(address));
        }
    }

    #[test]
    fn what_gives_out_credentials_and_what_is_reserved_is_closed() {
        for address in [
            "169.254.169.254",
            "169.254.170.2",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "fd00:ec2::254",
            "fe80::1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::",
            "192.0.2.1",
            "198.18.0.1",
            "203.0.113.9",
            "240.0.0.1",
            "2001:db8::1",
            "2001::1",
            "100::1",
            "5f00::1",
            "1::1",
        ] {
            assert!(matches!(of(address), Reach::Closed(_)), "{address} {:?}", of(address));
        }
    }

    #[test]
    fn some_addresses_are_nobodys() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "239.255.255.255",
            "255.255.255.255",
            "::",
            "ff02::1",
            "::ffff:0.0.0.0",
        ] {
            assert!(matches!(of(address), Reach::Never(_)), "{address} {:?}", of(address));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn an_address_carried_in_another_is_judged_as_itself(bits in any::<u32>()) {
            let (inner, [a, b, c, d]) = (Ipv4Addr::from(bits), bits.to_be_bytes());
            let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            let wanted = reach(inner.into());
            prop_assert_eq!(reach(inner.to_ipv6_mapped().into()), wanted);
            prop_assert_eq!(reach(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low).into()), wanted);
            prop_assert_eq!(reach(Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1).into()), wanted);
        }
    }
}
