/*
 * Description: a manifest is read back as it was written, and refused, naming what is wrong, when it is cut
 * anywhere, damaged anywhere, of another version, or says anything that does not hold.
 */

#include "unit.h"

#include "base/cleanup.h"
#include "image/fields.h"
#include "image/manifest.h"
#include "image_fixture.h"

static char *good_text(size_t *ret_bytes)
{
	CLEANUP(image_manifest) struct stasis_image_manifest manifest = {0};
	struct stasis_error err = STASIS_ERROR_INIT;
	char *text = NULL;

	t_image_manifest_make(&manifest);
	assert_done(stasis_image_manifest_encode(&manifest, &text, ret_bytes, &err), &err);
	return text;
}

static json_t *good_root(void)
{
	size_t bytes = 0;
	CLEANUP(free) char *text = good_text(&bytes);
	json_t *root = json_loadb(text, bytes, 0, NULL);

	assert_non_null(root);
	return root;
}

static void text_refused(const char *text, size_t bytes, const char *wanted)
{
	struct stasis_image_manifest manifest = {0};
	struct stasis_error err = STASIS_ERROR_INIT;

	if (stasis_image_manifest_decode(text, bytes, &manifest, &err) == 0)
		fail_msg("accepted; wanted: %s", wanted);
	if (err.status != STASIS_BAD_IMAGE || !strstr(err.text, wanted))
		fail_msg("status %d, '%s' does not hold '%s'", (int)err.status, err.text, wanted);
}

static void is_read_back_as_written(void **state)
{
	CLEANUP(image_manifest) struct stasis_image_manifest wanted = {0};
	CLEANUP(image_manifest) struct stasis_image_manifest found = {0};
	CLEANUP(free) char *text = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;
	size_t bytes = 0;

	(void)state;
	text = good_text(&bytes);
	t_image_manifest_make(&wanted);
	assert_done(stasis_image_manifest_decode(text, bytes, &found, &err), &err);
	assert_string_equal(found.kernel, wanted.kernel);
	assert_string_equal(found.driver_version, wanted.driver_version);
	assert_int_equal(found.cuda_version, wanted.cuda_version);
	assert_int_equal(found.gpu_count, 2);
	assert_memory_equal(found.gpus, wanted.gpus, 2 * sizeof(*found.gpus));
	assert_int_equal(found.process_count, 1);
	assert_int_equal(found.processes[0].start_ticks, wanted.processes[0].start_ticks);
	assert_string_equal(found.processes[0].executable, wanted.processes[0].executable);
	assert_false(found.processes[0].has_participant);
	assert_int_equal(found.extent_count, 1);
	assert_memory_equal(&found.extents[0].id, &wanted.extents[0].id, sizeof(struct stasis_id));
	assert_int_equal(found.extents[0].stored_bytes, wanted.extents[0].stored_bytes);
	assert_memory_equal(found.extents[0].stripe_bytes, wanted.extents[0].stripe_bytes,
			    sizeof(wanted.extents[0].stripe_bytes));
	assert_string_equal(found.options[0].value, "before");
	assert_int_equal(found.phases[0].duration_ns, 7);
}

static void odd_texts_are_made_fit(void **state)
{
	CLEANUP(image_manifest) struct stasis_image_manifest manifest = {0};
	CLEANUP(image_manifest) struct stasis_image_manifest found = {0};
	CLEANUP(free) char *text = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;
	size_t bytes = 0;

	(void)state;
	t_image_manifest_make(&manifest);
	manifest.driver_version[0] = '\0';
	memcpy(manifest.processes[0].executable, "/a\n\"b\\/\xc3\xa9", 10);
	memcpy(manifest.gpus[0].name, "\xff GPU", 6);
	manifest.processes[0].has_participant = true;
	manifest.processes[0].participant.bytes[0] = 0xab;
	assert_done(stasis_image_manifest_encode(&manifest, &text, &bytes, &err), &err);
	assert_done(stasis_image_manifest_decode(text, bytes, &found, &err), &err);
	assert_string_equal(found.driver_version, "");
	assert_string_equal(found.processes[0].executable, "/a?\"b\\/\xc3\xa9");
	assert_string_equal(found.gpus[0].name, "? GPU");
	assert_true(found.processes[0].has_participant);
	assert_int_equal(found.processes[0].participant.bytes[0], 0xab);
}

static void is_never_written_so_that_it_would_be_refused(void **state)
{
	CLEANUP(image_manifest) struct stasis_image_manifest manifest = {0};
	struct stasis_error err = STASIS_ERROR_INIT;
	char *text = NULL;
	size_t bytes = 0;

	(void)state;
	t_image_manifest_make(&manifest);
	manifest.extents[0].stored_bytes++;
	assert_refused(stasis_image_manifest_encode(&manifest, &text, &bytes, &err), &err,
		       STASIS_REFUSED, "stored_bytes");
}

static void is_refused_when_cut_at_any_length(void **state)
{
	size_t bytes = 0;
	CLEANUP(free) char *text = good_text(&bytes);

	(void)state;
	for (size_t length = 0; length < bytes; length++) {
		CLEANUP(free) char *cut = malloc(length + 1);

		/* Memory of its own, so that a sanitizer sees a byte read too many. */
		assert_non_null(cut);
		memcpy(cut, text, length);
		text_refused(cut, length, length == 0 ? "is empty" : "manifest.json: ");
	}
}

static void is_refused_when_any_byte_is_damaged(void **state)
{
	size_t bytes = 0;
	CLEANUP(free) char *text = good_text(&bytes);

	(void)state;
	for (size_t at = 0; at < bytes; at++) {
		for (unsigned int bit = 0; bit < 8; bit++) {
			text[at] = (char)(text[at] ^ (1 << bit));
			text_refused(text, bytes, "manifest.json: ");
			text[at] = (char)(text[at] ^ (1 << bit));
		}
	}
}

static void other_versions_are_named(void **state)
{
	CLEANUP(json) json_t *root = good_root();
	CLEANUP(free) char *newer = NULL;
	CLEANUP(free) char *alien = NULL;
	CLEANUP(free) char *wordy = NULL;

	(void)state;
	assert_int_equal(json_object_set_new(root, "format_version", json_integer(27)), 0);
	/* Fields that another version may have or lack do not come into it, nor does the digest. */
	assert_int_equal(json_object_del(root, "gpus"), 0);
	newer = json_dumps(root, 0);
	text_refused(newer, strlen(newer), "format version 27, this stasis reads version 1");
	assert_int_equal(json_object_set_new(root, "format", json_string("other")), 0);
	alien = json_dumps(root, 0);
	text_refused(alien, strlen(alien), "this is no image");
	assert_int_equal(json_object_set_new(root, "format", json_string("stasis-image")), 0);
	assert_int_equal(json_object_set_new(root, "format_version", json_string("1")), 0);
	wordy = json_dumps(root, 0);
	text_refused(wordy, strlen(wordy), "field 'format_version' is missing or no number");
	text_refused("[]", 2, "this is no image");
	text_refused("{}", 2, "this is no image");
}

static void duplicate_keys_are_refused(void **state)
{
	size_t bytes = 0;
	CLEANUP(free) char *text = good_text(&bytes);
	CLEANUP(free) char *twice = NULL;
	char *at = strstr(text, "\"kernel\"");

	(void)state;
	assert_non_null(at);
	assert_true(asprintf(&twice, "%.*s\"cuda_version\": 1,\n  %s", (int)(at - text), text, at) >
		    0);
	assert_true(t_manifest_sign(twice, strlen(twice)));
	text_refused(twice, strlen(twice), "duplicate object key");
}

/* One change of a good manifest: the value at a path of keys and indices. */
struct change {
	const char *path;   /* "extents.0.name" */
	const char *value;  /* JSON; NULL: the field is taken away */
	const char *wanted; /* in the error's text */
};

#define DIGITS "000102030405060708090a0b0c0d0e0f"

static const struct change changes[] = {
	{"gpus", NULL, "field 'gpus' is missing"},
	{"kernel", NULL, "field 'kernel' is missing"},
	{"store", "\"owned\"", "field 'store' must be one of 'custom' 'native'"},
	{"store", "\"shared\"", "field 'store' must be one of 'custom' 'native'"},
	{"store", "\"host\"", "field 'store' must be one of 'custom' 'native'"},
	{"store", "\"native\"",
	 "extents[0]: the store of the image is 'native', which has no extents of private"},
	{"shared", "null", "shared: must be an object"},
	{"shared", "{}", "shared: field 'bytes' is missing"},
	{"shared", "{\"bytes\": 7}", "shared: field 'digest' is missing"},
	{"shared", "{\"bytes\": 0, \"digest\": \"" DIGITS "\"}",
	 "shared: field 'bytes' must be a whole number from 1 to 268435456"},
	{"shared", "{\"bytes\": 268435457, \"digest\": \"" DIGITS "\"}",
	 "shared: field 'bytes' must be a whole number from 1 to 268435456"},
	{"shared", "{\"bytes\": 7, \"digest\": \"7\"}", "shared: field 'digest' must be 32"},
	{"shared", "{\"bytes\": 7, \"digest\": \"" DIGITS "\", \"name\": \"shared.json\"}",
	 "shared: field 'name' is unknown"},
	{"extra", "1", "field 'extra' is unknown"},
	{"ex\\u0001tra", "1", "is unknown"},
	{"created", "\"2026-01-31 12:00:00Z\"", "a time in UTC"},
	{"interposer_build_id", "\"abc\"", "must be null"},
	{"tool_version", "\"\"", "text of 1 to 127 bytes"},
	{"tool_version", "\"a\\u001bb\"", "without control characters"},
	{"tool_version", "\"a\\u0000b\"", "manifest.json: "},
	{"cuda_version", "-1", "a whole number from 0 to 2147483647"},
	{"cuda_version", "2147483648", "a whole number"},
	{"cuda_version", "1.5", "a whole number"},
	{"cuda_version", "1e3", "a whole number"},
	{"cuda_version", "\"13\"", "a whole number"},
	{"cuda_version", "true", "a whole number"},
	{"cuda_version", "99999999999999999999999", "too big integer"},
	{"cuda_version", "-99999999999999999999999", "too big negative integer"},
	{"gpus", "{}", "field 'gpus' must be a list of at most 256"},
	{"gpus.0", "7", "gpus[0]: must be an object"},
	{"gpus.1.uuid", "\"GPU-10101010-1010-1010-1010-101010101010\"", "gpus[0] and gpus[1]"},
	{"gpus.0.uuid", "\"GPU-1\"", "gpus[0]: field 'uuid' must be a GPU's UUID"},
	{"gpus.0.bytes", "0", "gpus[0]: field 'bytes' must be a whole number from 1"},
	{"gpus.0.bytes", "9223372036854775807", "gpus[0]: field 'bytes' must be a whole number"},
	{"gpus.0.ordinal", "null", "gpus[0]: field 'ordinal'"},
	{"processes", "[]", "process 0 is not among the manifest's 0 processes"},
	{"processes.0.pid", "0", "processes[0]: field 'pid' must be a whole number from 1"},
	{"processes.0.pid", "-5", "processes[0]: field 'pid'"},
	{"processes.0.participant", "7", "'participant' must be null or 32"},
	{"processes.0.extent_count", "2", "'extent_count' must be 1"},
	{"processes.0.extent_count", "-1", "'extent_count' must be 1"},
	{"extents", "[]", "processes[0]: field 'extent_count' must be 0"},
	{"extents.0.id", "\"ABC\"", "extents[0]: field 'id' must be 32 lower-case"},
	{"extents.0.name", "\"../P0-D0-custom\"", "leads out of the image"},
	{"extents.0.name", "\"/etc/passwd\"", "leads out of the image"},
	{"extents.0.name", "\"..\"", "leads out of the image"},
	{"extents.0.name", "\"P0-D1-custom\"", "field 'name' must be 'P0-D0-custom'"},
	{"extents.0.name", "3", "field 'name' must be text"},
	{"extents.0.process", "1", "process 1 is not among"},
	{"extents.0.process", "99999", "field 'process' must be a whole number from 0 to 1023"},
	{"extents.0.gpu", "\"GPU-99999999-9999-9999-9999-999999999999\"",
	 "is not among the manifest's GPUs"},
	{"extents.0.gpu", "0", "field 'gpu' must be a GPU's UUID"},
	{"extents.0.store", "\"native\"", "field 'name' must be 'P0-D0-native'"},
	{"extents.0.store", "\"shared\"", "field 'name' must be 'P0-D0-shared'"},
	{"extents.0.store", "\"other\"", "one of 'custom' 'native' 'shared' 'host'"},
	{"extents.0.logical_bytes", "0", "'logical_bytes' must be a whole number from 1"},
	{"extents.0.logical_bytes", "-1", "'logical_bytes' must be a whole number from 1"},
	{"extents.0.logical_bytes", "1125899906842625", "'logical_bytes' must be a whole number"},
	{"extents.0.logical_bytes", "1125899906842624", "more than 16777216 chunks"},
	{"extents.0.logical_bytes", "1", "sums_bytes is"},
	{"extents.0.chunk_bytes", "4096", "'chunk_bytes' must be a whole number from 65536"},
	{"extents.0.chunk_bytes", "65537", "not a multiple of 4096"},
	{"extents.0.stripe_count", "0", "'stripe_count' must be a whole number from 1 to 16"},
	{"extents.0.stripe_count", "17", "'stripe_count' must be a whole number from 1 to 16"},
	{"extents.0.stripe_count", "1", "'stripe_bytes' must be a list of 1 numbers"},
	{"extents.0.stripe_bytes", "7", "'stripe_bytes' must be a list of 2 numbers"},
	{"extents.0.stripe_bytes.1", "-1", "stripe_bytes[1] must be a whole number"},
	{"extents.0.stripe_bytes.1", "\"x\"", "stripe_bytes[1] must be a whole number"},
	{"extents.0.stripe_bytes.1", "4095", "stripe 1 of 4095 bytes is not a multiple"},
	{"extents.0.stripe_bytes.1", "4096", "stored_bytes is"},
	{"extents.0.stored_bytes", "1", "stored_bytes is 1, but its stripes have"},
	{"extents.0.digest_algorithm", "\"sha256\"", "must be 'xxh3-128'"},
	{"extents.0.sums_bytes", "1", "sums_bytes is 1, which does not fit"},
	{"extents.0.sums_digest", "\"\"", "field 'sums_digest' must be 32 lower-case"},
	{"options", "{}", "field 'options' must be a list of at most 256"},
	{"options.0.value", "1", "options[0]: field 'value' must be text of 0 to 127 bytes"},
	{"phases.0.duration_ns", "-1", "phases[0]: field 'duration_ns'"},
	{"phases.0.name", "\"\"", "phases[0]: field 'name' must be text of 1"},
};

/* Follows a path to the value that holds the last key; returns that key. */
static const char *path_follow(const char *path, json_t **io_at)
{
	static char key[64];

	for (;;) {
		size_t length = strcspn(path, ".");

		(void)snprintf(key, sizeof(key), "%.*s", (int)length, path);
		if (!path[length])
			return key;
		*io_at = json_is_array(*io_at) ? json_array_get(*io_at, strtoul(key, NULL, 10))
					       : json_object_get(*io_at, key);
		assert_non_null(*io_at);
		path += length + 1;
	}
}

static void change_apply(json_t *root, const struct change *change)
{
	json_t *at = root;
	const char *key = path_follow(change->path, &at);
	json_t *value = change->value
				? json_loads(change->value, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)
				: NULL;

	if (!change->value)
		assert_int_equal(json_object_del(at, key), 0);
	else if (json_is_array(at))
		assert_int_equal(json_array_set_new(at, strtoul(key, NULL, 10), value), 0);
	else
		assert_int_equal(json_object_set_new(at, key, value), 0);
}

/* Numbers that no JSON library holds are put in as text, in place of a number that one does. */
static char *changed_text(const struct change *change)
{
	static const char stand_in[] = "424242424242";
	bool is_beyond = strlen(change->value ? change->value : "") > 20 &&
			 strspn(change->value, "-0123456789") == strlen(change->value);
	struct change held = *change;
	CLEANUP(json) json_t *root = good_root();
	CLEANUP(free) char *text = NULL;
	char *result = NULL;
	char *at;

	if (is_beyond)
		held.value = stand_in;
	change_apply(root, &held);
	text = t_manifest_text(root);
	if (!is_beyond)
		return ptr_steal(&text);
	at = strstr(text, stand_in);
	assert_non_null(at);
	assert_true(asprintf(&result, "%.*s%s%s", (int)(at - text), text, change->value,
			     at + strlen(stand_in)) > 0);
	assert_true(t_manifest_sign(result, strlen(result)));
	return result;
}

static void each_wrong_value_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(changes); i++) {
		CLEANUP(free) char *text = changed_text(&changes[i]);

		text_refused(text, strlen(text), changes[i].wanted);
	}
}

static void an_unchanged_one_passes_the_same_way(void **state)
{
	CLEANUP(image_manifest) struct stasis_image_manifest manifest = {0};
	CLEANUP(json) json_t *root = good_root();
	CLEANUP(free) char *text = t_manifest_text(root);
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	assert_done(stasis_image_manifest_decode(text, strlen(text), &manifest, &err), &err);
}

/* Appends a copy of an item to its list, so that there are two. */
static void item_double(json_t *root, const char *list)
{
	json_t *array = json_object_get(root, list);

	assert_int_equal(json_array_append_new(array, json_deep_copy(json_array_get(array, 0))), 0);
}

static void doubles_are_refused(void **state)
{
	static const struct change doubles[] = {
		{"gpus", NULL, "gpus[0] and gpus[2] are both GPU-"},
		{"processes", NULL, "'extent_count' must be 0"},
		{"extents", NULL, "'extent_count' must be 2"},
		{"options", NULL, "two options are named 'verify'"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(doubles); i++) {
		CLEANUP(json) json_t *root = good_root();
		CLEANUP(free) char *text = NULL;

		item_double(root, doubles[i].path);
		text = t_manifest_text(root);
		text_refused(text, strlen(text), doubles[i].wanted);
	}
}

static void two_extents_of_one_gpu_are_refused(void **state)
{
	static const struct change count = {"processes.0.extent_count", "2", NULL};
	static const struct change other_id = {"extents.1.id",
					       "\"00000000000000000000000000000001\"", NULL};
	static const struct change other_gpu = {
		"extents.1.gpu", "\"GPU-11111111-1111-1111-1111-111111111111\"", NULL};
	static const struct change other_name = {"extents.1.name", "\"P0-D1-custom\"", NULL};
	CLEANUP(json) json_t *root = good_root();
	CLEANUP(free) char *same_gpu = NULL;
	CLEANUP(free) char *same_id = NULL;

	(void)state;
	item_double(root, "extents");
	change_apply(root, &count);
	change_apply(root, &other_id);
	same_gpu = t_manifest_text(root);
	text_refused(same_gpu, strlen(same_gpu),
		     "two extents of process 0 for GPU GPU-10101010-1010-1010-1010-101010101010 "
		     "and store 'custom'");
	change_apply(root, &other_gpu);
	change_apply(root, &other_name);
	assert_int_equal(
		json_object_set(
			json_array_get(json_object_get(root, "extents"), 1), "id",
			json_object_get(json_array_get(json_object_get(root, "extents"), 0), "id")),
		0);
	same_id = t_manifest_text(root);
	text_refused(same_id, strlen(same_id), "extents[0] and extents[1] have the same id");
}

static void the_digest_must_stand_in_its_place(void **state)
{
	static const char shortest[] = "{\"format\":\"stasis-image\",\"format_version\":1}";
	CLEANUP(json) json_t *root = good_root();
	CLEANUP(free) char *compact = json_dumps(root, JSON_COMPACT);

	(void)state;
	text_refused(shortest, sizeof(shortest) - 1, "does not begin with its digest");
	text_refused(compact, strlen(compact), "does not begin with its digest");
}

static void extents_of_some_stores_are_refused(void **state)
{
	static const struct {
		struct change store;
		struct change name;
	} cases[] = {
		{{"extents.0.store", "\"native\"",
		  "extents[0]: field 'store' must be 'custom', 'shared' or 'host'"},
		 {"extents.0.name", "\"P0-D0-native\"", NULL}},
		{{"extents.0.store", "\"shared\"",
		  "extents[0]: its store is 'shared', but field 'shared' is missing"},
		 {"extents.0.name", "\"P0-D0-shared\"", NULL}},
		{{"extents.0.store", "\"host\"",
		  "extents[0]: its store is 'host', but field 'shared' is missing"},
		 {"extents.0.name", "\"P0-D0-host\"", NULL}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		CLEANUP(json) json_t *root = good_root();
		CLEANUP(free) char *text = NULL;

		change_apply(root, &cases[i].store);
		change_apply(root, &cases[i].name);
		text = t_manifest_text(root);
		text_refused(text, strlen(text), cases[i].store.wanted);
	}
}

/* An extent of each store that has extents, all of one process and GPU. */
static void stores_make(struct stasis_image_manifest *ret_manifest)
{
	struct stasis_image_extent *extents = calloc(3, sizeof(*extents));

	assert_non_null(extents);
	t_image_manifest_make(ret_manifest);
	for (uint8_t i = 0; i < 3; i++) {
		extents[i] = ret_manifest->extents[0];
		extents[i].id.bytes[5] = i;
	}
	extents[1].store = STASIS_IMAGE_STORE_SHARED;
	extents[2].store = STASIS_IMAGE_STORE_HOST;
	free(ret_manifest->extents);
	ret_manifest->extents = extents;
	ret_manifest->extent_count = 3;
	ret_manifest->shared.bytes = STASIS_IMAGE_SHARED_BYTES_MAX;
	ret_manifest->shared.digest = (struct stasis_digest){{7, 8, 9}};
}

static void stores_check(size_t first, enum stasis_image_store store)
{
	CLEANUP(image_manifest) struct stasis_image_manifest wanted = {0};
	CLEANUP(image_manifest) struct stasis_image_manifest found = {0};
	CLEANUP(free) char *text = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;
	size_t bytes = 0;

	stores_make(&wanted);
	wanted.store = store;
	wanted.extent_count -= first;
	memmove(wanted.extents, wanted.extents + first,
		wanted.extent_count * sizeof(*wanted.extents));
	assert_done(stasis_image_manifest_encode(&wanted, &text, &bytes, &err), &err);
	assert_done(stasis_image_manifest_decode(text, bytes, &found, &err), &err);
	assert_int_equal(found.store, store);
	assert_int_equal(found.extent_count, wanted.extent_count);
	for (size_t i = 0; i < found.extent_count; i++)
		assert_int_equal(found.extents[i].store, wanted.extents[i].store);
	assert_int_equal(found.shared.bytes, wanted.shared.bytes);
	assert_true(stasis_digest_equal(&found.shared.digest, &wanted.shared.digest));
}

static void shared_memory_goes_with_either_store(void **state)
{
	(void)state;
	stores_check(0, STASIS_IMAGE_STORE_CUSTOM);
	stores_check(1, STASIS_IMAGE_STORE_NATIVE);
}

static void two_extents_of_one_store_are_refused(void **state)
{
	CLEANUP(image_manifest) struct stasis_image_manifest manifest = {0};
	struct stasis_error err = STASIS_ERROR_INIT;
	char *text = NULL;
	size_t bytes = 0;

	(void)state;
	stores_make(&manifest);
	manifest.extents[1].store = STASIS_IMAGE_STORE_HOST;
	assert_refused(stasis_image_manifest_encode(&manifest, &text, &bytes, &err), &err,
		       STASIS_REFUSED, "and store 'host'");
}

static void participants_are_kept(void **state)
{
	CLEANUP(image_manifest) struct stasis_image_manifest wanted = {0};
	CLEANUP(image_manifest) struct stasis_image_manifest found = {0};
	CLEANUP(free) char *text = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;
	size_t bytes = 0;

	(void)state;
	t_image_manifest_make(&wanted);
	wanted.processes[0].has_participant = true;
	wanted.processes[0].participant = (struct stasis_id){{0xfe, 1, 2}};
	assert_done(stasis_image_manifest_encode(&wanted, &text, &bytes, &err), &err);
	assert_done(stasis_image_manifest_decode(text, bytes, &found, &err), &err);
	assert_true(found.processes[0].has_participant);
	assert_true(
		stasis_id_equal(&found.processes[0].participant, &wanted.processes[0].participant));
}

static void two_processes_of_one_pid_are_refused(void **state)
{
	static const struct change count = {"processes.1.extent_count", "0", NULL};
	CLEANUP(json) json_t *root = good_root();
	CLEANUP(free) char *text = NULL;

	(void)state;
	item_double(root, "processes");
	change_apply(root, &count);
	text = t_manifest_text(root);
	text_refused(text, strlen(text), "processes[0] and processes[1] have the same pid 1234");
}

static void a_changed_text_is_refused(void **state)
{
	size_t bytes = 0;
	CLEANUP(free) char *text = good_text(&bytes);
	char *at = strstr(text, "6.1.0");

	(void)state;
	assert_non_null(at);
	at[0] = '7';
	text_refused(text, bytes, "the file was damaged or changed");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_read_back_as_written),
		cmocka_unit_test(odd_texts_are_made_fit),
		cmocka_unit_test(is_never_written_so_that_it_would_be_refused),
		cmocka_unit_test(is_refused_when_cut_at_any_length),
		cmocka_unit_test(is_refused_when_any_byte_is_damaged),
		cmocka_unit_test(other_versions_are_named),
		cmocka_unit_test(duplicate_keys_are_refused),
		cmocka_unit_test(each_wrong_value_is_named),
		cmocka_unit_test(an_unchanged_one_passes_the_same_way),
		cmocka_unit_test(doubles_are_refused),
		cmocka_unit_test(two_extents_of_one_gpu_are_refused),
		cmocka_unit_test(the_digest_must_stand_in_its_place),
		cmocka_unit_test(extents_of_some_stores_are_refused),
		cmocka_unit_test(shared_memory_goes_with_either_store),
		cmocka_unit_test(two_extents_of_one_store_are_refused),
		cmocka_unit_test(participants_are_kept),
		cmocka_unit_test(two_processes_of_one_pid_are_refused),
		cmocka_unit_test(a_changed_text_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
