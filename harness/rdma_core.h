/* SPDX-License-Identifier: MIT */
/* Which rdma-core a library is of: it names its files so, and has no call that says it. */
#ifndef QD_RDMA_CORE_H
#define QD_RDMA_CORE_H

#include <stdbool.h>
#include <stddef.h>

/* "libibverbs.so.1.14.44.0", to which path leads, is of rdma-core 44.0. False, and an untouched buf, where the name says nothing.
 */
bool rdma_core_version(const char *path, char *buf, size_t size);

#endif
