/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What every stream program in C begins with, after start.h: a message, and the sum over messages, as lab/floor has it.
 */
struct message {
	_Alignas(64) uint64_t words[8];
};

/* Adds a message, every word of which is read. */
static inline void add(uint64_t *sum, const struct message *message)
{
	uint64_t all = 0;
	for (int i = 0; i < 8; i++)
		all ^= message->words[i];
	*sum = (*sum << 5 | *sum >> 59) + all;
}

/* Lets the other side, or the other thread of this core, go on. */
static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}
