#ifndef STASIS_IMAGE_FIELD_KINDS_H
#define STASIS_IMAGE_FIELD_KINDS_H

/*
 * How a value of each kind of field is written and read. Internal to the image module.
 */

#include "image/fields.h"

/* One value that is read, and where to. */
struct stasis_image_field_input {
	const struct stasis_image_field *field;
	const char *where;
	const json_t *value;
	void *at;
	struct stasis_error *err;
};

struct stasis_image_field_codec {
	int (*decode)(const struct stasis_image_field_input *input);
	/* NULL: no memory. */
	json_t *(*encode)(const struct stasis_image_field *field, const void *at);
};

const struct stasis_image_field_codec *stasis_image_field_codec(enum stasis_image_field_kind kind);

#endif
