/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* json.h - JSON that is whole or not there. json-c says that it has no memory with a NULL, which it would take for null
 * or stumble over: here such a NULL marks what it was meant for, and all that holds it, as lost. */
#ifndef CRYPTFUSE_JSON_H
#define CRYPTFUSE_JSON_H

#include <stdbool.h>

#include "cryptfuse/base.h"

struct json_object;

/** cf_json_add, cf_json_append - give @value, which may be NULL for no memory, to an object or a list, which may be too
 */
void cf_json_add(struct json_object *object, const char *key, struct json_object *value);
void cf_json_append(struct json_object *list, struct json_object *value);

/** cf_json_add_text, cf_json_add_number, cf_json_add_flag - the same with a value made here. */
void cf_json_add_text(struct json_object *object, const char *key, const char *text);
void cf_json_add_number(struct json_object *object, const char *key, uint64_t n);
void cf_json_add_flag(struct json_object *object, const char *key, bool flag);

/** cf_json_add_null - what is meant to be null; cf_json_add_known - a number, or null if it is not known */
void cf_json_add_null(struct json_object *object, const char *key);
void cf_json_add_known(struct json_object *object, const char *key, uint64_t n, bool known);

/** cf_json_text - the document as text, owned by the caller (free); NULL: something was lost
 * @document: taken, NULL is lost     @style: JSON_C_TO_STRING_… */
char *cf_json_text(struct json_object *document, int style) CF_MUST_CHECK;

#endif
