/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The driver of a Beeline NIC: one PCI function, one network device.
 *
 * Frames leave as plain stores into a write-combining window (HotOS'25): no
 * descriptor, no doorbell, no fence. The device recovers the order of the
 * lines, and reports what it has freed by one word in memory of the host.
 * Frames arrive in a ring that the device writes and the host polls.
 */
#ifndef BEELINE_H
#define BEELINE_H

#include <linux/bits.h>
#include <linux/dma-mapping.h>
#include <linux/hrtimer.h>
#include <linux/io.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/u64_stats_sync.h>
#include <linux/workqueue.h>

/* Registers are read and written whole, by 64 bits. */
#ifndef CONFIG_64BIT
#error "a Beeline NIC needs a 64-bit kernel"
#endif

#include <beeline_formats.h>
#include <beeline_nic.h>

#define BEELINE_NAME "beeline"

/* Offset of a register of the device, and of one of a queue. */
#define BEELINE_REG(name) offsetof(beeline_nic_t, name)
#define BEELINE_QUEUE_REG(index, name) \
	(offsetof(beeline_nic_t, queue) + \
	 (index) * sizeof(beeline_nic__queuex__stride100_t) + \
	 offsetof(beeline_nic__queuex__stride100_t, name))
#define BEELINE_DOORBELL_REG(index, name) \
	(offsetof(beeline_nic_t, doorbell) + \
	 (index) * sizeof(beeline_nic__doorbellx__stride40_t) + \
	 offsetof(beeline_nic__doorbellx__stride40_t, name))

/* Queues that a network device uses: one for each way to send; the first one
 * receives, too.
 */
enum beeline_path {
	BEELINE_MMIO,
	BEELINE_KPIO,
	BEELINE_PATHS,
};
#define BEELINE_QUEUE 0

/* What a device says of itself, checked. */
struct beeline_caps {
	u64 window_offset;
	u64 window_stride;
	u32 queues;
	u32 interfaces;
	u32 max_frame_bytes;
	bool is_blank;
};

/* Counters of one direction; written by one context at a time. */
struct beeline_counts {
	u64_stats_t packets;
	u64_stats_t bytes;
	/* Transmit: waits for room. Receive: frames for which there was no
	 * memory.
	 */
	u64_stats_t held;
	u64_stats_t dropped;
	struct u64_stats_sync sync;
};

/* A window, and how far it is used. */
struct beeline_tx {
	enum beeline_path path;
	void __iomem *window;
	u32 lines;
	__le64 blank;
	u8 epoch;
	/* Lines stored since the queue was started, without wrapping. */
	u64 next;
	/* As the device has freed them; it writes the word. */
	__le64 *freed;
	dma_addr_t freed_dma;
	/* A frame on its way to the window: header word, bytes, zeros. */
	__le64 *staged;
	u32 most_lines;
	struct beeline_counts counts;
};

/* The ring of received frames. */
struct beeline_rx {
	u8 *ring;
	dma_addr_t ring_dma;
	u32 lines;
	/* Lines consumed, and those that the device was told of. */
	u64 next;
	u64 told;
	bool is_broken;
	struct napi_struct napi;
	struct beeline_counts counts;
};

struct beeline_nic {
	struct net_device *ndev;
	struct pci_dev *pdev;
	u8 __iomem *regs;
	u8 __iomem *windows;
	struct beeline_caps caps;
	struct beeline_tx tx[BEELINE_PATHS];
	/* Looks for room when a window has none. */
	struct hrtimer retry;
	/* Everything leaves by kPIO+WC: the paper's control bit. */
	bool is_kpio;
	/* Frames that kPIO+WC cannot carry, and signatures that were injected. */
	u64 marked;
	u64 injected;
	struct beeline_rx rx;
	/* Looks now and then whether a queue has failed. */
	struct delayed_work service;
	/* The service does nothing any more. */
	bool is_closing;
	/* The stack has waited for the queue for seconds. */
	bool is_stuck;
	u64 restarts;
};

static inline u64 beeline_read(struct beeline_nic *nic, size_t offset)
{
	return readq(nic->regs + offset);
}

static inline void beeline_write(struct beeline_nic *nic, size_t offset,
				 u64 value)
{
	writeq(value, nic->regs + offset);
}

/* device.c */
int beeline_identify(struct beeline_nic *nic);
int beeline_reset(struct beeline_nic *nic);
int beeline_start_queues(struct beeline_nic *nic);
void beeline_stop_queues(struct beeline_nic *nic);
int beeline_are_active(struct beeline_nic *nic);

/* transmit.c */
netdev_tx_t beeline_xmit(struct sk_buff *skb, struct net_device *ndev);
int beeline_tx_alloc(struct beeline_nic *nic);
void beeline_tx_free(struct beeline_nic *nic);
void beeline_tx_start(struct beeline_tx *tx, bool is_blank);
u64 beeline_used_lines(struct beeline_tx *tx);

/* frame.c */
u32 beeline_stage_mmio(struct beeline_tx *tx, struct sk_buff *skb);
u32 beeline_stage_kpio(struct beeline_nic *nic, struct sk_buff *skb);
bool beeline_goes_by_kpio(struct beeline_nic *nic, struct sk_buff *skb);

/* receive.c */
int beeline_poll(struct napi_struct *napi, int budget);
int beeline_rx_alloc(struct beeline_nic *nic);
void beeline_rx_free(struct beeline_nic *nic);
void beeline_rx_start(struct beeline_nic *nic);

/* ethtool.c */
extern const struct ethtool_ops beeline_ethtool_ops;

#endif
