//! Constants of SISCI: flags and queries, which are data symbols too, and numbers.

/// Defines constants, and exports each as the data symbol that older headers declare.
macro_rules! exported {
    ($list:ident, $prefix:literal: $($name:ident = $value:literal;)*) => {
        /// Every name with its value.
        #[cfg(test)]
        const $list: &[(&str, u32)] = &[$((stringify!($name), $value)),*];

        $(
        #[allow(dead_code, reason = "programs have all of them")]
        pub(crate) const $name: u32 = $value;
        const _: () = {
            #[unsafe(export_name = concat!($prefix, stringify!($name)))]
            static EXPORTED: u32 = $value;
        };
    )*};
}

exported! {
    EXPORTED, "_SISCI_PUBLIC_CONST_":
    SCI_FLAG_USE_CALLBACK = 0x1;
    SCI_FLAG_EMPTY = 0x2;
    SCI_FLAG_PRIVATE = 0x4;
    SCI_FLAG_DMA_SOURCE_ONLY = 0x8;
    SCI_FLAG_PHYSICAL = 0x1000;
    SCI_FLAG_CUDA_BUFFER = 0x2000;
    SCI_FLAG_SCIF_BUFFER = 0x4000;
    SCI_FLAG_LOCK_USER_MEM = 0x400;
    SCI_FLAG_AUTO_ID = 0x20000000;
    SCI_FLAG_BROADCAST = 0x40000;
    SCI_FLAG_FORCE_REMOVE = 0x20;
    SCI_FLAG_ALLOW_UNICAST = 0x80;
    SCI_FLAG_SHARE_EXTERNAL = 0x40;
    SCI_FLAG_DMA_WAIT = 0x4;
    SCI_FLAG_DMA_READ = 0x10;
    SCI_FLAG_DMA_PHDMA = 0x20;
    SCI_FLAG_DMA_GLOBAL = 0x40;
    SCI_FLAG_DMA_SYSDMA = 0x100;
    SCI_FLAG_DMA_USER_MEM = 0x200;
    SCI_FLAG_DMA_ADAPTER = 0x800;
    SCI_FLAG_DMA_CHANNEL_SHARED = 0x1;
    SCI_FLAG_FIXED_INTNO = 0x2;
    SCI_FLAG_SHARED_INT = 0x4;
    SCI_FLAG_CONDITIONAL_INTERRUPT = 0x8;
    SCI_FLAG_COUNTING_INT = 0x20;
    SCI_FLAG_FIXED_MAP_ADDR = 0x1;
    SCI_FLAG_READONLY_MAP = 0x2;
    SCI_FLAG_LOCK_OPERATION = 0x4;
    SCI_FLAG_CONDITIONAL_INTERRUPT_MAP = 0x8;
    SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP = 0x10;
    SCI_FLAG_IO_MAP_IOSPACE = 0x80;
    SCI_FLAG_NO_MEMORY_LOOPBACK = 0x800;
    SCI_FLAG_SHARED_MAP = 0x2000;
    SCI_FLAG_WRITE_BACK_CACHE_MAP = 0x8000000;
    SCI_FLAG_CACHE_FLUSH = 0x100000;
    SCI_FLAG_CACHE_INVALIDATE = 0x200000;
    SCI_FLAG_PCIE_REQUESTER_GLOBAL = 0x1;
    SCI_FLAG_EXCLUSIVE = 0x1000000;
    SCI_FLAG_DEVICE_SIDE_ONLY = 0x2001000;
    SCI_FLAG_LOCAL_ONLY = 0x2002000;
    SCI_FLAG_SPECIFY_PATH = 0x10000000;
    SCI_FLAG_BLOCK_READ = 0x1;
    SCI_FLAG_ERROR_CHECK = 0x2;
    SCI_FLAG_NO_FLUSH = 0x4;
    SCI_FLAG_NO_STORE_BARRIER = 0x8;
    SCI_FLAG_FAST_BARRIER = 0x10;
    SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY = 0x20;
    SCI_FLAG_FORCE_DISCONNECT = 0x1;
    SCI_FLAG_NOTIFY = 0x2;
    SCI_FLAG_ASYNCHRONOUS_CONNECT = 0x2;
    SCI_FLAG_THREAD_SAFE = 0x1;
    SCI_FLAG_DMA_POST = 0x1;
    SCI_FLAG_DMA_RESET = 0x2;
    SCI_FLAG_DMOVE_MAP = 0x20;
    SCI_FLAG_READ_PREFETCH_AGGR_HOLD_MAP = 0x100;
    SCI_FLAG_READ_PREFETCH_NO_HOLD_MAP = 0x200;

    SCI_Q_VENDORID = 0x1;
    SCI_Q_API = 0x2;
    SCI_Q_SISCI_DRIVER_VERSION = 0x3;
    SCI_Q_ADAPTER = 0x4;
    SCI_Q_SYSTEM = 0x5;
    SCI_Q_DMA = 0x6;
    SCI_Q_DEVICE = 0x7;
    SCI_Q_LOCAL_SEGMENT = 0x8;
    SCI_Q_REMOTE_SEGMENT = 0x9;
    SCI_Q_MAP = 0xa;
    SCI_Q_ADAPTER_NODEID = 0x101;
    SCI_Q_ADAPTER_DMA_MTU = 0x102;
    SCI_Q_ADAPTER_DMA_SIZE_ALIGNMENT = 0x103;
    SCI_Q_ADAPTER_DMA_OFFSET_ALIGNMENT = 0x104;
    SCI_Q_ADAPTER_SUGGESTED_MIN_DMA_SIZE = 0x105;
    SCI_Q_ADAPTER_SERIAL_NUMBER = 0x106;
    SCI_Q_ADAPTER_CARD_TYPE = 0x107;
    SCI_Q_ADAPTER_CONFIGURED = 0x108;
    SCI_Q_ADAPTER_LINK_OPERATIONAL = 0x109;
    SCI_Q_ADAPTER_LINK_WIDTH = 0x10a;
    SCI_Q_ADAPTER_LINK_SPEED = 0x10b;
    SCI_Q_ADAPTER_LINK_UPTIME = 0x10c;
    SCI_Q_ADAPTER_BDF = 0x10d;
    SCI_Q_DMA_CAPABILITIES = 0x201;
    SCI_Q_LOCAL_SEGMENT_IOADDR = 0x301;
    SCI_Q_LOCAL_SEGMENT_PHYS_ADDR = 0x302;
    SCI_Q_REMOTE_SEGMENT_IOADDR = 0x401;
    SCI_Q_MAP_IOADDR = 0x501;
    SCI_Q_MAP_PHYS_ADDR = 0x502;
}

exported! {
    EXPORTED_OF_SCILIB, "_SCIL_PUBLIC_CONST_":
    SCIL_FLAG_ERROR_CHECK_DATA = 0x1;
    SCIL_FLAG_ERROR_CHECK_PROT = 0x2;
    SCIL_FLAG_FULL_ERROR_CHECK = 0x3;
    SCIL_FLAG_MSG_FLUSH = 0x4;
    SCIL_FLAG_SEND_RECEIVE_PAIRS_ONLY = 0x8;
}

/// Set in the numbers of segments that are those of message queues.
pub(crate) const MSG_QUEUE_LIB_IDENTIFIER_MASK: u32 = 0x1000_0000;

/// A time that is never over.
pub(crate) const SCI_INFINITE_TIMEOUT: u32 = 0xffff_ffff;

/// `sci_sequence_status_t`
pub(crate) const SCI_SEQ_OK: u32 = 0;
pub(crate) const SCI_SEQ_RETRIABLE: u32 = 1;
pub(crate) const SCI_SEQ_NOT_RETRIABLE: u32 = 2;
pub(crate) const SCI_SEQ_PENDING: u32 = 3;

/// `sci_segment_cb_reason_t`
pub(crate) const SCI_CB_CONNECT: u32 = 1;
pub(crate) const SCI_CB_DISCONNECT: u32 = 2;
pub(crate) const SCI_CB_NOT_OPERATIONAL: u32 = 3;
pub(crate) const SCI_CB_OPERATIONAL: u32 = 4;
pub(crate) const SCI_CB_LOST: u32 = 5;

#[cfg(test)]
mod tests {
    use toml::Table;

    use super::*;

    #[test]
    fn flags_and_queries_are_those_of_the_facts() {
        let facts: Table = include_str!("../facts.toml").parse().unwrap();
        let mut known = 0;
        let exported = [EXPORTED, EXPORTED_OF_SCILIB].concat();
        let kinds = ["flags", "queries", "scil_flags"];
        for (name, fact) in kinds.iter().flat_map(|kind| facts[*kind].as_table().unwrap()) {
            let value =
                exported.iter().find(|(exported, _)| exported == name).map(|(_, value)| i64::from(*value));
            assert_eq!(value, fact["value"].as_integer(), "{name}");
            known += 1;
        }
        assert_eq!(exported.len(), known);
    }

    #[test]
    fn numbers_and_enumerations_are_those_of_the_facts() {
        let facts: Table = include_str!("../facts.toml").parse().unwrap();
        let number = |name: &str| facts["numbers"][name]["value"].as_integer();
        assert_eq!(number("SCI_INFINITE_TIMEOUT"), Some(i64::from(SCI_INFINITE_TIMEOUT)));
        assert_eq!(number("MSG_QUEUE_LIB_IDENTIFIER_MASK"), Some(i64::from(MSG_QUEUE_LIB_IDENTIFIER_MASK)));
        let reasons =
            [SCI_CB_CONNECT, SCI_CB_DISCONNECT, SCI_CB_NOT_OPERATIONAL, SCI_CB_OPERATIONAL, SCI_CB_LOST];
        let statuses = [SCI_SEQ_OK, SCI_SEQ_RETRIABLE, SCI_SEQ_NOT_RETRIABLE, SCI_SEQ_PENDING];
        for (kind, ours) in [("sci_segment_cb_reason_t", &reasons[..]), ("sci_sequence_status_t", &statuses)]
        {
            let first = facts["enums"][kind]["first"].as_integer().unwrap();
            assert_eq!(facts["enums"][kind]["names"].as_array().unwrap().len(), ours.len());
            assert!(ours.iter().zip(first..).all(|(value, fact)| i64::from(*value) == fact), "{kind}");
        }
    }
}
