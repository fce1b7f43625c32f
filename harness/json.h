/* SPDX-License-Identifier: MIT */
/*
 * Small helpers over jansson. None of them changes a reference count unless its name says so.
 */
#ifndef QD_JSON_H
#define QD_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "error.h"

/* The string at key, or NULL when absent or no string. */
const char *json_str(const json_t *obj, const char *key);
/* The integer at key (a "0x..." string counts), or def. */
int64_t json_int(const json_t *obj, const char *key, int64_t def);
uint64_t json_u64(const json_t *obj, const char *key, uint64_t def);
bool json_bool(const json_t *obj, const char *key, bool def);
/* A new "0x..." string, for values that may exceed 2^63-1. */
json_t *json_hex(uint64_t value);
/* True when the array at key (or the string there) holds text. */
bool json_has(const json_t *obj, const char *key, const char *text);
bool json_array_has(const json_t *array, const char *text);

/* Whole files. json_save writes to a temporary name and renames, with indent and sorted keys
 * (golden files); returns 0 or a negative errno. */
int json_load(const char *path, json_t **ret, struct error *e);
int json_save(const char *path, const json_t *value, struct error *e);

/* Reads a JSON-lines file into a new array. A last line without newline (a writer that was killed)
 * is dropped and *ret_torn set; a broken line elsewhere is an error with its number. */
int json_load_lines(const char *path, json_t **ret_array, bool *ret_torn, struct error *e);

#endif
