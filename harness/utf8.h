/* SPDX-License-Identifier: MIT */
/* UTF-8: what a valid sequence is, and which characters a screen or a page does not show as they stand. */
#ifndef QD_UTF8_H
#define QD_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_MAX 4

/* Length of the valid sequence at s (1..4), and its character; 0 when there is none. Overlong forms, surrogates and values beyond
 * U+10FFFF are none (Unicode 15, table 3-7). max: bytes that may be read; of a text that ends with a 0, UTF8_MAX: none beyond it
 * is. */
size_t utf8_decode(const void *s, size_t max, uint32_t *ret_char);
/* A control character, or one without a shape that changes how others are shown: directions of writing, joiners, separators of
 * lines. A text that holds one may look like another. */
bool utf8_hides(uint32_t c);

#endif
