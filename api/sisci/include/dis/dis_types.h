/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file dis_types.h
 * The types of names that begin with `dis_`, for programs that include this file: they are in sisci_types.h.
 */
#ifndef DIS_TYPES_H
#define DIS_TYPES_H

#include "../sisci_types.h"

#endif
