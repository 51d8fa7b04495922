//! The kernel inside a bzImage. QEMU starts an ELF with a PVH note directly, which saves the guest from decompressing it under
//! emulation: three to four seconds a boot.

use std::fs;
use std::path::Path;

use crate::failure::{Context, Failure, Outcome};
use crate::install;
use crate::run::Program;

/// Where the setup header says what is where (Documentation/arch/x86/boot.rst).
const SETUP_SECTORS_AT: usize = 0x1f1;
const MAGIC_AT: usize = 0x202;
const VERSION_AT: usize = 0x206;
const PAYLOAD_OFFSET_AT: usize = 0x248;
const PAYLOAD_BYTES_AT: usize = 0x24c;
/// The first version of the header that names the payload.
const VERSION_WITH_PAYLOAD: u16 = 0x0208;
const XZ: &[u8] = b"\xfd7zXZ\0";
/// The size of the kernel stands behind the compressed kernel.
const SIZE_BYTES: usize = 4;

/// Writes the kernel that `image` holds compressed to `kernel`.
pub fn extract(image: &Path, kernel: &Path) -> Outcome {
    install::program("xz", &["xz-utils"], "Debian's kernel is compressed by it")?;
    let bytes = fs::read(image).while_doing(format!("read {}", image.display()))?;
    let (compressed, expected) = payload(&bytes)?;
    let packed = kernel.with_extension("xz");
    fs::write(&packed, compressed).while_doing(format!("write {}", packed.display()))?;
    Program::new("xz").args(["--decompress", "--force"]).arg(&packed).quiet().output()?;
    let is = fs::metadata(kernel).while_doing("look at the kernel")?.len();
    if is == u64::from(expected) {
        Ok(())
    } else {
        Err(Failure::new(format!("the kernel has {is} bytes, and its image says {expected}")))
    }
}

/// The compressed kernel in a bzImage, and the size of what it holds.
fn payload(image: &[u8]) -> Outcome<(&[u8], u32)> {
    let cut = || Failure::new("the kernel's image ends before its header says");
    if image.get(MAGIC_AT..MAGIC_AT + 4).ok_or_else(cut)? != b"HdrS" {
        return Err(Failure::new("the kernel's image is no bzImage"));
    }
    let version = u16::from_le_bytes(array(image, VERSION_AT).ok_or_else(cut)?);
    if version < VERSION_WITH_PAYLOAD {
        return Err(Failure::new(format!("boot protocol {version:#x} does not say where the kernel is")));
    }
    let word = |at| array(image, at).map(u32::from_le_bytes).and_then(|word| usize::try_from(word).ok());
    let sectors = usize::from(*image.get(SETUP_SECTORS_AT).ok_or_else(cut)?);
    let start = (sectors + 1) * 512 + word(PAYLOAD_OFFSET_AT).ok_or_else(cut)?;
    let end = start + word(PAYLOAD_BYTES_AT).ok_or_else(cut)?;
    let payload = image.get(start..end).ok_or_else(cut)?;
    if !payload.starts_with(XZ) {
        return Err(Failure::new(format!(
            "the kernel is not compressed by xz: it begins with {:02x?}",
            payload.get(..XZ.len()).unwrap_or(payload)
        )));
    }
    let (compressed, size) = payload.split_last_chunk::<SIZE_BYTES>().ok_or_else(cut)?;
    Ok((compressed, u32::from_le_bytes(*size)))
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sectors of setup, a payload of `payload` 16 bytes behind them.
    fn image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 3 * 512 + 16];
        image[SETUP_SECTORS_AT] = 2;
        image[MAGIC_AT..MAGIC_AT + 4].copy_from_slice(b"HdrS");
        image[VERSION_AT..VERSION_AT + 2].copy_from_slice(&0x020f_u16.to_le_bytes());
        image[PAYLOAD_OFFSET_AT..PAYLOAD_OFFSET_AT + 4].copy_from_slice(&16_u32.to_le_bytes());
        let bytes = u32::try_from(payload.len()).unwrap();
        image[PAYLOAD_BYTES_AT..PAYLOAD_BYTES_AT + 4].copy_from_slice(&bytes.to_le_bytes());
        image.extend_from_slice(payload);
        image.extend_from_slice(b"what is behind it");
        image
    }

    #[test]
    fn payload_is_found_with_the_size_behind_it() {
        let image = image(b"\xfd7zXZ\0kernel\x40\x30\x20\x10");
        assert_eq!(payload(&image).unwrap(), (&b"\xfd7zXZ\0kernel"[..], 0x1020_3040));
    }

    #[test]
    fn image_that_is_cut_or_of_another_kind_is_told() {
        let message = |image: &[u8]| payload(image).unwrap_err().to_string();
        let good = image(b"\xfd7zXZ\0kernel\x40\x30\x20\x10");
        assert!(message(&good[..good.len() - 30]).contains("ends before"));
        assert!(message(&good[..100]).contains("ends before"));
        assert!(message(&[0; 2000]).contains("no bzImage"));
        assert!(message(&image(b"\x28\xb5\x2f\xfd zstd of some bytes")).contains("not compressed by xz"));
        let mut old = good;
        old[VERSION_AT..VERSION_AT + 2].copy_from_slice(&0x0207_u16.to_le_bytes());
        assert!(message(&old).contains("0x207"));
    }
}
