//! Who is meant: a station on the Ethernet and one of its endpoints.

use std::fmt;
use std::str::FromStr;

/// The address of a station on an Ethernet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// Whether it names one station: not a group and not nobody.
    pub const fn is_station(self) -> bool {
        let [first, ..] = self.0;
        first & 1 == 0 && !matches!(self.0, [0, 0, 0, 0, 0, 0])
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(out, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

/// A text that is no address of one station.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no station address; give six octets of two hexadecimal digits, the first even: 02:00:00:00:00:01"
)]
pub struct MacAddressError {
    pub text: String,
}

impl FromStr for MacAddress {
    type Err = MacAddressError;

    fn from_str(text: &str) -> Result<Self, MacAddressError> {
        let octet = |part: &str| match part.len() {
            2 if part.bytes().all(|byte| byte.is_ascii_hexdigit()) => u8::from_str_radix(part, 16).ok(),
            _ => None,
        };
        let octets: Option<Vec<u8>> = text.split(':').map(octet).collect();
        octets
            .and_then(|octets| octets.try_into().ok())
            .map(MacAddress)
            .filter(|mac| mac.is_station())
            .ok_or_else(|| MacAddressError { text: text.to_owned() })
    }
}

/// Which endpoint of a station: several programs, or threads, can share an interface whose frames all of them see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u16);

/// An endpoint of a station. A station address alone means its port 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The station.
    pub mac: MacAddress,
    /// Its endpoint.
    pub port: Port,
}

impl Address {
    /// The station in one word, which no other station has.
    pub(crate) const fn station_key(self) -> u64 {
        self.key() >> u16::BITS
    }

    /// The address in one word, which no other address has.
    pub(crate) const fn key(self) -> u64 {
        let [a, b, c, d, e, f] = self.mac.0;
        let [g, h] = self.port.0.to_be_bytes();
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}

impl From<MacAddress> for Address {
    fn from(mac: MacAddress) -> Self {
        Address { mac, port: Port::default() }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} port {}", self.mac, self.port.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_written() {
        let mac: MacAddress = "02:ab:CD:00:00:01".parse().unwrap();
        assert_eq!(mac, MacAddress([2, 0xab, 0xcd, 0, 0, 1]));
        assert_eq!(mac.to_string(), "02:ab:cd:00:00:01");
        for text in
            ["", "02", "02:00:00:00:00", "02:00:00:00:00:00:00", "+2:00:00:00:00:01", "02:00:00:00:00:1"]
        {
            assert!(text.parse::<MacAddress>().is_err(), "{text}");
        }
        assert!("ff:ff:ff:ff:ff:ff".parse::<MacAddress>().is_err(), "a group is no station");
        assert!("00:00:00:00:00:00".parse::<MacAddress>().is_err());
    }

    #[test]
    fn keys_tell_addresses_apart() {
        let one = Address::from(MacAddress([2, 0, 0, 0, 0, 1]));
        let other = Address { port: Port(1), ..one };
        assert_eq!(one.key(), 0x0200_0000_0001_0000);
        assert_eq!(other.key(), 0x0200_0000_0001_0001);
    }
}
