/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* json.c - carries the loss of a part to the whole: the mark is the user data of objects and lists. No state. */
#include "cryptfuse/json.h"

#include <json.h>
#include <stdbool.h>
#include <string.h>

static const char mark;

static void set_lost(struct json_object *o)
{
	if (o)
		json_object_set_userdata(o, (void *)(uintptr_t)&mark, NULL);
}

static bool is_lost(struct json_object *o)
{
	return !o || json_object_get_userdata(o) == &mark;
}

/* @value has a place, or there is none. */
static void settle(struct json_object *o, struct json_object *value, int failed)
{
	if (!failed)
		return;
	json_object_put(value);
	set_lost(o);
}

void cf_json_add(struct json_object *object, const char *key, struct json_object *value)
{
	settle(object, value, !object || is_lost(value) || json_object_object_add(object, key, value) != 0);
}

void cf_json_add_text(struct json_object *object, const char *key, const char *text)
{
	cf_json_add(object, key, json_object_new_string(text));
}

void cf_json_add_number(struct json_object *object, const char *key, uint64_t n)
{
	cf_json_add(object, key, json_object_new_uint64(n));
}

void cf_json_add_flag(struct json_object *object, const char *key, bool flag)
{
	cf_json_add(object, key, json_object_new_boolean(flag));
}

void cf_json_append(struct json_object *list, struct json_object *value)
{
	settle(list, value, !list || is_lost(value) || json_object_array_add(list, value) != 0);
}

void cf_json_add_null(struct json_object *object, const char *key)
{
	settle(object, NULL, !object || json_object_object_add(object, key, NULL) != 0);
}

void cf_json_add_known(struct json_object *object, const char *key, uint64_t n, bool known)
{
	if (known)
		cf_json_add_number(object, key, n);
	else
		cf_json_add_null(object, key);
}

char *cf_json_text(struct json_object *document, int style)
{
	const char *text = is_lost(document) ? NULL : json_object_to_json_string_ext(document, style);
	char *copy = text ? strdup(text) : NULL;
	json_object_put(document);
	return copy;
}
