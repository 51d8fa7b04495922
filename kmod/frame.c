// SPDX-License-Identifier: GPL-2.0-only
/*
 * A frame as lines of a window, by either path, and which path it takes.
 *
 * `mmio` (HotOS'25): a header word, the frame, zeros to the end of the line.
 * A word that equals what free words of the window hold is stored as a link to
 * the one before it; the header names the last.
 *
 * kPIO+WC (Larsen and Lee, section III.A): the frame, padded to whole words,
 * and 8-byte signatures to the end of the line, a line of them where the
 * frame fills its last. A frame that holds the signature cannot be told from
 * two; it goes by the other window, unless the paper's loss is asked for.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/moduleparam.h>
#include <linux/tcp.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "beeline.h"

static ushort kpio_ports[2];
module_param_array(kpio_ports, ushort, NULL, 0600);
MODULE_PARM_DESC(kpio_ports, "First and last TCP destination port whose frames leave by kPIO+WC");

static uint kpio_mark;
module_param(kpio_mark, uint, 0600);
MODULE_PARM_DESC(kpio_mark, "Frames with this mark (SO_MARK) leave by kPIO+WC; 0: none");

static uint kpio_inject;
module_param(kpio_inject, uint, 0600);
MODULE_PARM_DESC(kpio_inject, "Every so many frames of kPIO+WC one gets a signature in its middle, and is lost; 0: none");

/* Puts a link in the place of every word that equals the blank; the index of
 * the last one, 0 if there is none.
 */
static u32 escape(__le64 *words, u32 count, __le64 blank)
{
	u32 last = 0, index;

	for (index = 1; index < count; index++) {
		if (likely(words[index] != blank))
			continue;
		words[index] = cpu_to_le64((u64)last << BEELINE_LINK_PREVIOUS_LSB);
		last = index;
	}
	return last;
}

/* The frame as a message; its lines. */
u32 beeline_stage_mmio(struct beeline_tx *tx, struct sk_buff *skb)
{
	u32 bytes = skb->len;
	u32 lines = DIV_ROUND_UP(bytes + 8, BEELINE_LINE_BYTES);
	u32 last = 0;
	u64 header;

	/* Whole words and whole lines: what is behind the frame is zeros. */
	memset(tx->staged + (8 + bytes) / 8, 0, lines * BEELINE_LINE_BYTES - round_down(8 + bytes, 8));
	skb_copy_bits(skb, 0, tx->staged + 1, bytes);
	if (tx->blank)
		last = escape(tx->staged, lines * BEELINE_WORDS_PER_LINE, tx->blank);
	header = (u64)bytes << BEELINE_HEADER_LENGTH_BYTES_LSB |
		 (u64)last << BEELINE_HEADER_ESCAPE_LAST_LSB |
		 (u64)BEELINE_MESSAGE_KIND_DATA << BEELINE_HEADER_KIND_LSB |
		 (u64)tx->epoch << BEELINE_HEADER_EPOCH_LSB;
	tx->staged[0] = cpu_to_le64(header);
	return lines;
}

static bool has_mark(const __le64 *words, u32 count, __le64 blank)
{
	const __le64 eop = cpu_to_le64(BEELINE_KPIO_EOP_DEFAULT);
	u32 index;

	for (index = 0; index < count; index++)
		if (unlikely(words[index] == eop || (blank && words[index] == blank)))
			return true;
	return false;
}

/* The frame and its signatures; its lines, or 0 if it cannot be told from
 * what marks its end, or would be too long.
 */
u32 beeline_stage_kpio(struct beeline_nic *nic, struct sk_buff *skb)
{
	struct beeline_tx *tx = &nic->tx[BEELINE_KPIO];
	u32 words = DIV_ROUND_UP(skb->len, 8);
	u32 lines = words / BEELINE_WORDS_PER_LINE + 1;
	u32 index, every = READ_ONCE(kpio_inject);

	/* What pads it to whole words stays on the wire. */
	if (words * 8 > nic->caps.max_frame_bytes)
		return 0;
	tx->staged[words - 1] = 0;
	skb_copy_bits(skb, 0, tx->staged, skb->len);
	if (has_mark(tx->staged, words, tx->blank)) {
		nic->marked++;
		return 0;
	}
	if (every && u64_stats_read(&tx->counts.packets) % every == every - 1) {
		/* The first word of a line: behind it is more of the frame, which
		 * the filter takes for damage.
		 */
		tx->staged[round_down(words / 2, BEELINE_WORDS_PER_LINE)] =
			cpu_to_le64(BEELINE_KPIO_EOP_DEFAULT);
		nic->injected++;
	}
	for (index = words; index < lines * BEELINE_WORDS_PER_LINE; index++)
		tx->staged[index] = cpu_to_le64(BEELINE_KPIO_EOP_DEFAULT);
	return lines;
}

/* Where the TCP header of a frame begins, 0 if there is none; `skb->protocol`
 * of a tagged frame says that it is tagged, so it has none.
 */
static int tcp_offset(struct sk_buff *skb)
{
	int at = skb_network_offset(skb);
	union {
		struct iphdr v4;
		struct ipv6hdr v6;
	} room;
	struct ipv6hdr *v6;
	struct iphdr *v4;
	__be16 fragment;
	u8 next;

	switch (skb->protocol) {
	case htons(ETH_P_IP):
		v4 = skb_header_pointer(skb, at, sizeof(room.v4), &room.v4);
		if (!v4 || v4->protocol != IPPROTO_TCP || ip_is_fragment(v4))
			return 0;
		return at + v4->ihl * 4;
	case htons(ETH_P_IPV6):
		v6 = skb_header_pointer(skb, at, sizeof(room.v6), &room.v6);
		if (!v6)
			return 0;
		next = v6->nexthdr;
		at = ipv6_skip_exthdr(skb, at + sizeof(*v6), &next, &fragment);
		return at > 0 && next == IPPROTO_TCP && !fragment ? at : 0;
	default:
		return 0;
	}
}

/* The TCP destination port of a frame; 0 if there is none. */
static u16 tcp_port(struct sk_buff *skb)
{
	struct tcphdr room, *tcp;
	int at = tcp_offset(skb);

	tcp = at > 0 ? skb_header_pointer(skb, at, sizeof(room), &room) : NULL;
	return tcp ? ntohs(tcp->dest) : 0;
}

/* All traffic, a range of ports, or each frame by itself: the three ways of
 * the paper's section III.B.
 */
bool beeline_goes_by_kpio(struct beeline_nic *nic, struct sk_buff *skb)
{
	u16 first = READ_ONCE(kpio_ports[0]), last = READ_ONCE(kpio_ports[1]);
	u32 mark = READ_ONCE(kpio_mark);
	u16 port;

	if (!nic->tx[BEELINE_KPIO].lines)
		return false;
	if (READ_ONCE(nic->is_kpio) || (mark && skb->mark == mark))
		return true;
	if (!last)
		return false;
	port = tcp_port(skb);
	return port && port >= first && port <= last;
}
