/* SPDX-License-Identifier: GPL-2.0-only */
/* What the generated headers name of C's library. */
#include <linux/types.h>
