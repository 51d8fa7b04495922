//! Bytes that may be overwritten: what is refused, in which words, and that they are as before afterwards.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod fake_sysfs;

use beeline_link_bar::{BarFile, MappedAs, Restored, Scratch, Target, Wanted};
use beeline_mmio::BarKind;
use fake_sysfs::{FakeSysfs, GOOD, GOOD_BYTES, GOOD_RESOURCE};

fn target(sysfs: &FakeSysfs, text: &str) -> Result<Target, String> {
    Target::of_text(sysfs.root(), text).map_err(|error| error.to_string())
}

fn open(sysfs: &FakeSysfs, text: &str, wanted: Wanted) -> Result<Scratch, String> {
    Scratch::open(sysfs.root(), &target(sysfs, text)?, &wanted).map_err(|error| error.to_string())
}

fn refused(sysfs: &FakeSysfs, text: &str, wanted: Wanted) -> String {
    open(sysfs, text, wanted).map(|scratch| scratch.title().to_owned()).unwrap_err()
}

/// Every byte of the range is overwritten.
fn spoil(scratch: &Scratch) {
    let region = scratch.region();
    region.fill(0, region.bytes(), 0xdead_beef_dead_beef);
}

#[test]
fn bar_is_named_by_address_file_link_or_uio_device() {
    let sysfs = FakeSysfs::with_good();
    let address = GOOD.parse().unwrap();
    assert_eq!(target(&sysfs, GOOD), Ok(Target::Function(address)));
    let file = |kind| Ok(Target::Resource(BarFile { address, index: 2, kind }));
    let path = |name: &str| sysfs.folder(GOOD).join(name).to_str().unwrap().to_owned();
    assert_eq!(target(&sysfs, &path("resource2")), file(BarKind::Uncached));
    assert_eq!(target(&sysfs, &path("resource2_wc")), file(BarKind::WriteCombining));
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("bar");
    std::os::unix::fs::symlink(path("resource2_wc"), &link).unwrap();
    assert_eq!(target(&sysfs, link.to_str().unwrap()), file(BarKind::WriteCombining));
    let uio = sysfs.root().join("class/uio/uio7");
    std::fs::create_dir_all(&uio).unwrap();
    std::os::unix::fs::symlink(sysfs.folder(GOOD), uio.join("device")).unwrap();
    assert_eq!(target(&sysfs, "/dev/uio7"), Ok(Target::Function(address)));
    let plain = elsewhere.path().join("plain");
    assert_eq!(target(&sysfs, plain.to_str().unwrap()), Ok(Target::File(plain)));
}

#[test]
fn what_is_no_bar_is_refused_in_a_sentence() {
    let sysfs = FakeSysfs::with_good();
    let elsewhere = tempfile::tempdir().unwrap();
    let platform = sysfs.root().join("class/uio/uio8");
    std::fs::create_dir_all(platform.join("device")).unwrap();
    let config = sysfs.folder(GOOD).join("config");
    let cases = [
        ("/dev/mem", "/dev/mem is all of this machine's memory and is never opened; name a BAR by"),
        ("0000:3c:00.0", "no PCI function has the address 0000:3c:00.0; `lspci -D` lists"),
        ("/dev/uio9", "there is no /dev/uio9: UIO shows no device of this number"),
        ("/dev/uio8", "/dev/uio8 belongs to no PCI function"),
        (
            config.to_str().unwrap(),
            "config belongs to sysfs and is no BAR's file; those are called resource0",
        ),
        ("/sys/kernel", "/sys/kernel belongs to sysfs and is no BAR's file"),
        ("/dev/null", "/dev/null is a character device, not a BAR"),
        ("/tmp", "/tmp is a folder, not a BAR"),
    ];
    for (text, expected) in cases {
        let error = target(&sysfs, text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
    // Whatever it is called: a device of its number, which root may make.
    let node = elsewhere.path().join("node");
    let number = rustix::fs::makedev(1, 1);
    let mode = rustix::fs::Mode::RUSR;
    if rustix::fs::mknodat(rustix::fs::CWD, &node, rustix::fs::FileType::CharacterDevice, mode, number)
        .is_ok()
    {
        assert!(target(&sysfs, node.to_str().unwrap()).unwrap_err().starts_with("/dev/mem is all"));
    }
}

#[test]
fn first_prefetchable_bar_is_mapped_write_combining_and_restored() {
    let sysfs = FakeSysfs::with_good();
    let file = sysfs.folder(GOOD).join("resource2_wc");
    let before = std::fs::read(&file).unwrap();
    let scratch = open(&sysfs, GOOD, Wanted::default()).unwrap();
    assert_eq!((scratch.mapped_as(), scratch.region().bytes()), (MappedAs::WriteCombining, GOOD_BYTES));
    assert!(scratch.region().is_device() && scratch.is_kept());
    assert_eq!(scratch.function().map(|(_, index)| index), Some(2));
    spoil(&scratch);
    assert_ne!(std::fs::read(&file).unwrap(), before);
    assert_eq!(scratch.restore(), Restored::AsBefore);
    assert_eq!(std::fs::read(&file).unwrap(), before);
    // A run that fails drops it.
    spoil(&open(&sysfs, GOOD, Wanted::default()).unwrap());
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn only_the_bytes_that_were_asked_for_are_touched() {
    let sysfs = FakeSysfs::with_good();
    let file = sysfs.folder(GOOD).join("resource2");
    let before = std::fs::read(&file).unwrap();
    let wanted = Wanted { offset_bytes: 8192, bytes: Some(4096), ..Wanted::default() };
    let scratch = open(&sysfs, file.to_str().unwrap(), wanted).unwrap();
    assert_eq!((scratch.mapped_as(), scratch.offset_bytes()), (MappedAs::Uncached, 8192));
    spoil(&scratch);
    let during = std::fs::read(&file).unwrap();
    assert_eq!((&during[..8192], &during[12288..]), (&before[..8192], &before[12288..]));
    assert!(during[8192..12288].chunks(4).all(|word| word == 0xdead_beef_u32.to_le_bytes()));
    assert_eq!(scratch.restore(), Restored::AsBefore);
    assert_eq!(std::fs::read(&file).unwrap(), before);
    let rest = Wanted { offset_bytes: 4096, ..Wanted::default() };
    assert_eq!(open(&sysfs, GOOD, rest).unwrap().region().bytes(), GOOD_BYTES / 2, "the largest that fits");
}

#[test]
fn bar_that_could_be_harmed_is_refused_and_nothing_is_stored() {
    let sysfs = FakeSysfs::with_good();
    let before = std::fs::read(sysfs.folder(GOOD).join("resource2_wc")).unwrap();
    let any = Wanted { may_overwrite: true, ..Wanted::default() };

    sysfs.bind(GOOD, "virtio-pci");
    let error = refused(&sysfs, GOOD, any);
    assert!(
        error.starts_with("BAR 2 of 0000:3b:00.0 is not touched: the kernel's driver virtio-pci"),
        "{error}"
    );
    assert!(error.contains("/sys/bus/pci/drivers/virtio-pci/unbind"), "{error}");
    sysfs.bind(GOOD, "vfio-pci");
    assert!(open(&sysfs, GOOD, Wanted::default()).is_ok());

    let registers = Wanted { region: Some(0), ..Wanted::default() };
    let error = refused(&sysfs, GOOD, registers);
    assert!(error.contains("BAR 0 of 0000:3b:00.0 is not touched: it is not prefetchable"), "{error}");
    assert!(error.ends_with("say --may-overwrite"), "{error}");
    let waived = open(&sysfs, GOOD, Wanted { may_overwrite: true, ..registers }).unwrap();
    assert_eq!(waived.mapped_as(), MappedAs::Uncached);

    let error = refused(&sysfs, GOOD, Wanted { region: Some(4), ..any });
    let list = "it has BAR 0 (4096 bytes, not prefetchable), BAR 2 (65536 bytes, prefetchable)";
    assert!(error.ends_with(list), "{error}");

    std::fs::write(sysfs.folder(GOOD).join("config"), [0; 64]).unwrap();
    assert!(refused(&sysfs, GOOD, any).contains("memory decoding is off in the command register"));
    assert_eq!(std::fs::read(sysfs.folder(GOOD).join("resource2_wc")).unwrap(), before);
}

#[test]
fn function_without_a_prefetchable_bar_is_refused_with_those_it_has() {
    let sysfs = FakeSysfs::new();
    sysfs.add(GOOD, &GOOD_RESOURCE.replace("0x000000000014220c", "0x000000000014020c"));
    let error = refused(&sysfs, GOOD, Wanted { may_overwrite: true, ..Wanted::default() });
    assert!(error.contains("has no prefetchable memory BAR") && error.contains("BAR 2 (65536"), "{error}");
}

#[test]
fn range_that_does_not_fit_is_refused_with_its_numbers() {
    let sysfs = FakeSysfs::with_good();
    let wanted = |offset_bytes, bytes| Wanted { offset_bytes, bytes, ..Wanted::default() };
    let beyond = "reach beyond BAR 2 of 0000:3b:00.0, which has 65536";
    for (wanted, expected) in [
        (wanted(0, Some(131_072)), beyond),
        (wanted(4096, Some(65_536)), beyond),
        (wanted(65_536, None), beyond),
        (wanted(u64::MAX - 4095, None), beyond),
        (wanted(100, None), "--offset 100 is no multiple of 4096"),
        (wanted(0, Some(5000)), "--bytes 5000 is no power of two from 4096"),
        (wanted(0, Some(0)), "--bytes 0 is no power of two"),
        (wanted(0, Some(1 << 40)), "to 67108864"),
    ] {
        let error = refused(&sysfs, GOOD, wanted);
        assert!(error.contains(expected), "{error}");
    }
    let named = sysfs.folder(GOOD).join("resource2_wc");
    let two = Wanted { region: Some(0), ..Wanted::default() };
    assert!(refused(&sysfs, named.to_str().unwrap(), two).contains("names one BAR already"));
}

#[test]
fn plain_file_is_made_and_used_again_and_one_of_somebody_else_is_kept() {
    let sysfs = FakeSysfs::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bar");
    let text = path.to_str().unwrap();
    let small = Wanted { bytes: Some(8192), ..Wanted::default() };
    for is_new in [true, false] {
        let scratch = open(&sysfs, text, small).unwrap();
        assert_eq!((scratch.mapped_as(), scratch.region().is_device()), (MappedAs::File, false));
        assert_eq!(scratch.title().ends_with("(made by this run)"), is_new);
        spoil(&scratch);
        assert_eq!(scratch.restore(), Restored::AsBefore);
    }
    let mut bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len(), 8192);
    bytes[8191] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let error = refused(&sysfs, text, small);
    assert!(error.contains("has 8192 bytes that this program did not write"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    let scratch = open(&sysfs, text, Wanted { may_overwrite: true, ..small }).unwrap();
    spoil(&scratch);
    drop(scratch);
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "restored, whose ever it is");

    let region = Wanted { region: Some(1), ..small };
    assert!(refused(&sysfs, text, region).contains("is a plain file and has no regions"));
    assert!(refused(&sysfs, text, Wanted { bytes: Some(16384), ..small }).contains("which has 8192"));
    assert!(refused(&sysfs, "/proc/self/comm", small).contains("the kernel's file system proc"));
    // No file is left of what cannot be made.
    let huge = Wanted { offset_bytes: (u64::MAX >> 1) & !4095, ..small };
    let other = folder.path().join("other");
    let other = other.to_str().unwrap();
    assert!(refused(&sysfs, other, huge).contains("other cannot be used: "));
    assert!(refused(&sysfs, other, Wanted { bytes: Some(5000), ..small }).contains("no power of two"));
    assert!(!std::path::Path::new(other).exists());
    let nowhere = folder.path().join("none/bar");
    assert!(refused(&sysfs, nowhere.to_str().unwrap(), small).contains("name a file that this user may"));
}
