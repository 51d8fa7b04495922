//! Where a PCI function sits: `domain:bus:device.function`, as Linux writes it.

use core::fmt;
use core::str::FromStr;

/// The address of a PCI function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

/// A text that is no PCI address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a PCI address; it looks like 0000:3b:00.1 (`lspci -D` lists them)")]
pub struct NotPciAddress(pub String);

impl FromStr for PciAddress {
    type Err = NotPciAddress;

    /// Takes `dddd:bb:dd.f` and, for domain 0, `bb:dd.f`. Nothing else gets into a path.
    fn from_str(text: &str) -> Result<Self, NotPciAddress> {
        parse(text).ok_or_else(|| NotPciAddress(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<PciAddress> {
    let (rest, function) = text.rsplit_once('.')?;
    let (rest, device) = rest.rsplit_once(':')?;
    let (domain, bus) = rest.rsplit_once(':').unwrap_or(("0000", rest));
    let address = PciAddress {
        domain: (domain.len() >= 4).then(|| hex(domain, 8))??,
        bus: u8::try_from(hex(bus, 2)?).ok()?,
        device: u8::try_from(hex(device, 2)?).ok()?,
        function: u8::try_from(hex(function, 1)?).ok()?,
    };
    (address.device < 32 && address.function < 8).then_some(address)
}

/// At most `digits` hexadecimal digits and nothing else: `from_str_radix` would take a sign.
fn hex(text: &str, digits: usize) -> Option<u32> {
    let fits = !text.is_empty() && text.len() <= digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(text, 16).ok().filter(|_| fits)
}

impl fmt::Display for PciAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:04x}:{:02x}:{:02x}.{}", self.domain, self.bus, self.device, self.function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_as_linux_does() {
        for (text, written) in [
            ("0000:3b:00.1", "0000:3b:00.1"),
            ("3B:1f.7", "0000:3b:1f.7"),
            ("10000:e1:00.0", "10000:e1:00.0"),
            ("ffffffff:ff:1f.7", "ffffffff:ff:1f.7"),
        ] {
            assert_eq!(text.parse::<PciAddress>().unwrap().to_string(), written);
        }
    }

    #[test]
    fn nothing_else_gets_into_a_path() {
        for text in [
            "",
            ".",
            ":",
            "3b:00",
            "3b:20.0",
            "3b:00.8",
            "3b:00.10",
            "0:3b:00.0",
            "3b3:00.0",
            "+b:00.0",
            "../../etc:00.0",
            "0000:3b:00.0/../x",
            "0000:3b:00.0 ",
            "0000:3b:00.",
            "0000::00.0",
            "123456789:00:00.0",
            "0000:3b:00.٣",
        ] {
            assert_eq!(text.parse::<PciAddress>(), Err(NotPciAddress(text.to_owned())));
        }
    }
}
