/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file testlib.h
 * Programs that were written for other implementations include a file of this name beside sisci_demolib.h, which has all of it here.
 */
#ifndef SISCI_TESTLIB_H
#define SISCI_TESTLIB_H

#include "sisci_demolib.h"

#endif
