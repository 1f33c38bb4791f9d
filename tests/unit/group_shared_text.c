/*
 * Description: a text of shared.json is refused, naming the place, when it is cut anywhere, of another version, or
 * says anything that does not hold; what people and other programs make of it is read.
 */

#include "unit.h"

#include <jansson.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "group_shared_fixture.h"
#include "image/fields.h"

static void text_refused(const char *text, size_t bytes, const char *wanted)
{
	struct stasis_topology topology = {.members = NULL};
	struct stasis_shared_place *places = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;
	size_t count = 99;

	if (stasis_shared_decode(text, bytes, &topology, &places, &count, &err) == 0)
		fail_msg("accepted; wanted: %s", wanted);
	if (err.status != STASIS_BAD_IMAGE || !strstr(err.text, wanted))
		fail_msg("status %d, '%s' does not hold '%s'", (int)err.status, err.text, wanted);
	assert_int_equal(topology.member_count, 0);
	assert_null(places);
	assert_int_equal(count, 99);
}

static void is_refused_when_cut_at_any_length(void **state)
{
	size_t bytes = 0;
	CLEANUP(free) char *text = t_group_small_text(&bytes);

	(void)state;
	/* But for the end of its last line. */
	for (size_t length = 0; length + 1 < bytes; length++) {
		CLEANUP(free) char *cut = malloc(length + 1);

		/* Memory of its own, so that a sanitizer sees a byte read too many. */
		assert_non_null(cut);
		memcpy(cut, text, length);
		text_refused(cut, length, length == 0 ? "is empty" : "shared.json: line ");
	}
}

/* Damage is for the digest to find; here nothing but an answer is asked for. */
static void any_damage_is_answered(void **state)
{
	size_t bytes = 0;
	CLEANUP(free) char *text = t_group_small_text(&bytes);

	(void)state;
	for (size_t at = 0; at < bytes; at++) {
		struct stasis_error err = STASIS_ERROR_INIT;
		struct t_group found = {.places = NULL};

		text[at] = (char)(text[at] ^ 1);
		if (stasis_shared_decode(text, bytes, &found.topology, &found.places,
					 &found.place_count, &err) != 0)
			assert_int_equal(err.status, STASIS_BAD_IMAGE);
		t_group_free(&found);
		text[at] = (char)(text[at] ^ 1);
	}
}

/* One change of a good text: the value at a path of keys and indices. */
struct change {
	const char *path;   /* "members.0.name" */
	const char *value;  /* JSON; NULL: the field is taken away */
	const char *wanted; /* in the error's text */
};

#define RECORD(index) "members.0.records." #index "."
#define ZEROS "\"00000000000000000000000000000000\""

static const struct change changes[] = {
	{"format", "\"stasis-image\"", "field 'format' is not 'stasis-shared'"},
	{"version", "2", "it has version 2, this stasis reads version 1"},
	{"version", "\"1\"", "field 'version' is missing or no number"},
	{"version", NULL, "field 'version' is missing or no number"},
	{"members", NULL, "shared.json: field 'members' is missing"},
	{"members", "{}", "shared.json: field 'members' must be a list of at most 256"},
	{"members", "[]", "of which no member has an allocation"},
	{"places", NULL, "shared.json: field 'places' is missing"},
	{"places", "7", "shared.json: field 'places' must be a list of at most 16777216"},
	{"extra", "1", "shared.json: field 'extra' is unknown"},
	{"members.0", "[]", "shared.json: members[0]: must be an object"},
	{"members.0.extra", "1", "members[0]: field 'extra' is unknown"},
	{"members.0.participant", "\"9\"", "members[0]: field 'participant' must be 32 lower-case"},
	{"members.0.pid", "0", "members[0]: field 'pid' must be a whole number from 1"},
	{"members.0.pid", "2147483648", "members[0]: field 'pid' must be a whole number from 1"},
	{"members.0.pid", "1.5", "members[0]: field 'pid' must be a whole number from 1"},
	{"members.0.start_ticks", "-1",
	 "field 'start_ticks' must be a whole number from 0 to 9007"},
	{"members.0.start_ticks", "9007199254740993", "field 'start_ticks' must be a whole number"},
	{"members.0.start_ticks", "\"0x7\"", "'start_ticks' must be a number, or above 2^53 text"},
	{"members.0.start_ticks", "\"0x20000000000000\"", "must be a number, or above 2^53 text"},
	{"members.0.start_ticks", "\"0x10000000000000000\"", "must be a number, or above"},
	{"members.0.name", "\"0123456789abcdef\"", "'name' must be text of 0 to 15 bytes"},
	{"members.0.name", "\"a\\u001bb\"", "'name' must be text without control characters"},
	{"members.0.build", "null", "members[0]: field 'build' must be text of 0 to 64 bytes"},
	{"members.0.records", "{}", "members[0]: field 'records' must be a list of at most"},
	{"members.0.records.0", "7", "members[0].records[0]: must be an object"},
	{RECORD(0) "type", NULL, "members[0].records[0]: field 'type' is missing"},
	{RECORD(0) "type", "\"other\"",
	 "must be one of 'allocation' 'handle' 'mapping' 'access' 'multicast' 'team_device' "
	 "'binding' 'note'"},
	{RECORD(0) "type", "1", "records[0]: field 'type' must be one of 'allocation'"},
	{RECORD(0) "type", "\"handle\"", "records[0]: field 'handle' is missing"},
	{RECORD(0) "object", ZEROS, "members[0].records[0]: a record names no object"},
	{RECORD(0) "object", "null", "records[0]: field 'object' must be 32"},
	{RECORD(0) "creator", ZEROS, "records[0]: a record names no object"},
	{RECORD(0) "role", "\"owner\"", "field 'role' must be one of 'creator' 'importer'"},
	{RECORD(0) "role", "\"importer\"", "an importer claims an allocation's content"},
	{RECORD(0) "device", "\"GPU-00000000-0000-0000-0000-000000000000\"",
	 "field 'device' must be null, or not all zeros"},
	{RECORD(0) "device", "7", "field 'device' must be a GPU's UUID"},
	{RECORD(0) "bytes", "0", "records[0]: an allocation has no bytes"},
	{RECORD(0) "bytes", "-1", "records[0]: field 'bytes' must be a whole number from 0"},
	{RECORD(0) "bytes", "99999999999999999999999", "too big integer"},
	{RECORD(0) "bytes", "4096.0", "records[0]: field 'bytes' must be a whole number from 0"},
	{RECORD(0) "is_shared", "1", "records[0]: field 'is_shared' must be true or false"},
	{RECORD(0) "has_content", NULL, "records[0]: field 'has_content' is missing"},
	{RECORD(0) "location_type", "4294967296", "'location_type' must be a whole number from 0"},
	{RECORD(0) "location_id", "-2147483649", "whole number from -2147483648 to 2147483647"},
	{RECORD(0) "handle_types", "null", "'handle_types' must be a whole number from 0"},
	{RECORD(0) "compression", "256", "'compression' must be a whole number from 0 to 255"},
	{RECORD(0) "gpu_direct_rdma", "-1", "'gpu_direct_rdma' must be a whole number from 0"},
	{RECORD(0) "usage", "65536", "'usage' must be a whole number from 0 to 65535"},
	{RECORD(1) "handle", "7", "records[1]: field 'handle' must be text such as '0x7f"},
	{RECORD(1) "handle", "\"0x07\"", "records[1]: field 'handle' must be text such as"},
	{RECORD(1) "handle", "\"0xA\"", "records[1]: field 'handle' must be text such as"},
	{RECORD(1) "handle", "\"0x\"", "records[1]: field 'handle' must be text such as"},
	{RECORD(1) "handle", "\"7\"", "records[1]: field 'handle' must be text such as"},
	{RECORD(1) "handle", "\"0x1 \"", "records[1]: field 'handle' must be text such as"},
	{RECORD(1) "count", "0", "records[1]: a handle is held by nobody"},
	{RECORD(2) "address", "\"0x0\"", "records[2]: a mapping is at address 0"},
	{RECORD(2) "address", "\"0xfffffffffffff001\"", "a mapping is empty or past the last"},
	{RECORD(2) "bytes", "0", "records[2]: a mapping is empty or past the last address"},
	{RECORD(2) "offset", "\"0xfffffffffffff001\"", "a mapping is past the end of what it maps"},
	{RECORD(3) "address", "\"0x0\"", "records[3]: a right is at address 0"},
	{RECORD(4) "device_count", "0", "records[4]: a multicast team has no devices"},
	{RECORD(4) "bytes", "0", "records[4]: a multicast object has no bytes"},
	{RECORD(5) "device", "null", "records[5]: a record names no object"},
	{RECORD(5) "ordinal", "-1", "records[5]: a device has no ordinal"},
	{RECORD(6) "kind", "\"address\"", "a binding's address does not suit its kind"},
	{RECORD(6) "kind", "2", "field 'kind' must be one of 'memory' 'address'"},
	{RECORD(6) "member", "null", "records[6]: a binding has no member"},
	{RECORD(6) "member", ZEROS, "field 'member' must be null, or not all zeros"},
	{RECORD(6) "ordinal", "-1", "records[6]: a binding has no device"},
	{RECORD(6) "call_version", "3", "a binding was made by no call that is known"},
	{RECORD(7) "kind", "\"x\"",
	 "one of 'unknown_function' 'foreign_import' 'unsupported' 'remark'"},
	{RECORD(7) "text", "\"\"", "records[7]: a note says nothing"},
	{RECORD(7) "text", "\"\\u0007\"", "field 'text' must be text without control characters"},
	{"places.0.object", "\"00000000000000000000000000000002\"",
	 "a place of object 00000000000000000000000000000002, of which no member"},
	/* A multicast object has no content. */
	{"places.0.object", "\"02000000000000000000000000000000\"", "of which no member"},
	{"places.0.extent", "null", "places[0]: field 'extent' must be 32"},
	{"places.0.offset", "-1", "places[0]: field 'offset' must be a whole number from 0"},
	{"places.0.bytes", "4096", "places[0]: field 'bytes' is unknown"},
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

static void change_apply(json_t *root, const char *path, json_t *value)
{
	json_t *at = root;
	const char *key = path_follow(path, &at);

	if (!value)
		assert_int_equal(json_object_del(at, key), 0);
	else if (json_is_array(at))
		assert_int_equal(json_array_set_new(at, strtoul(key, NULL, 10), value), 0);
	else
		assert_int_equal(json_object_set_new(at, key, value), 0);
}

static json_t *small_root(void)
{
	size_t bytes = 0;
	CLEANUP(free) char *text = t_group_small_text(&bytes);
	json_t *root = json_loadb(text, bytes, 0, NULL);

	assert_non_null(root);
	return root;
}

/* The value goes in as text, so that numbers come through that no JSON library holds. */
static char *changed_text(const struct change *change)
{
	static const char stand_in[] = "\"the value\"";
	CLEANUP(json) json_t *root = small_root();
	CLEANUP(free) char *text = NULL;
	char *result = NULL;
	char *at;

	change_apply(root, change->path, change->value ? json_string("the value") : NULL);
	text = json_dumps(root, 0);
	assert_non_null(text);
	if (!change->value)
		return ptr_steal(&text);
	at = strstr(text, stand_in);
	assert_non_null(at);
	assert_true(asprintf(&result, "%.*s%s%s", (int)(at - text), text, change->value,
			     at + strlen(stand_in)) > 0);
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

/* Appends a copy of the first item of a list. */
static char *doubled_text(const char *list, const char *field, json_t *value)
{
	CLEANUP(json) json_t *root = small_root();
	json_t *array = json_object_get(root, list);
	json_t *copy = json_deep_copy(json_array_get(array, 0));

	if (field)
		assert_int_equal(json_object_set_new(copy, field, value), 0);
	assert_int_equal(json_array_append_new(array, copy), 0);
	return json_dumps(root, 0);
}

static void doubles_are_refused(void **state)
{
	CLEANUP(free) char *process = doubled_text("members", NULL, NULL);
	CLEANUP(free) char *participant = doubled_text("members", "pid", json_integer(78));
	CLEANUP(free) char *place = doubled_text("places", "offset", json_integer(4096));
	static const char keys[] =
		"{\"format\": \"stasis-shared\", \"version\": 1, \"version\": 1}";

	(void)state;
	text_refused(process, strlen(process), "shared.json: members[1]: process 77");
	text_refused(participant, strlen(participant), "it is the same participant as process 77");
	text_refused(place, strlen(place), "two places of object 01000000000000000000000000000000");
	text_refused(keys, strlen(keys), "duplicate object key");
}

static void too_many_members_are_refused(void **state)
{
	CLEANUP(json) json_t *root = small_root();
	CLEANUP(free) char *text = NULL;
	json_t *members = json_object_get(root, "members");

	(void)state;
	for (int i = 0; i < STASIS_WIRE_PEERS_MAX; i++)
		assert_int_equal(json_array_append_new(members, json_object()), 0);
	text = json_dumps(root, 0);
	text_refused(text, strlen(text), "field 'members' must be a list of at most 256");
}

static void it_is_for_people_too(void **state)
{
	static const char *const lines[] = {
		"  \"version\": 1,\n",
		"      \"pid\": 77,\n",
		"        {\"type\": \"mapping\", \"object\": \"01",
		"\", \"address\": \"0x7f0000200000\", \"bytes\": 4096, \"offset\": 0, ",
		" \"count\": 1, \"text\": \"hello\"}\n",
	};
	size_t bytes = 0;
	CLEANUP(free) char *text = t_group_small_text(&bytes);

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
		if (!strstr(text, lines[i]))
			fail_msg("no line '%s' in: %s", lines[i], text);
	}
}

/* Other programs may write it in another way. */
static void another_layout_is_read(void **state)
{
	CLEANUP(json) json_t *root = small_root();
	CLEANUP(free) char *text = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
	struct t_group wanted;
	struct t_group found;

	(void)state;
	t_group_small(&wanted);
	t_group_read(text, strlen(text), &found);
	assert_int_equal(found.topology.members[0].record_count, STASIS_WIRE_NOTE);
	assert_memory_equal(&found.topology.members[0].records[0],
			    &wanted.topology.members[0].records[0],
			    sizeof(struct stasis_wire_record));
	t_group_free(&wanted);
	t_group_free(&found);
}

/* The example of docs/format.md is what it says. */
static void the_example_is_read(void **state)
{
	static const char begin[] = "```json\n{\n  \"format\": \"stasis-shared\"";
	const char *source = secure_getenv("STASIS_SOURCE_DIR");
	CLEANUP(fd) int fd = -1;
	CLEANUP(free) char *page = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct t_group group;
	size_t bytes = 0;
	const char *text;

	(void)state;
	if (!source) {
		skip();
		return;
	}
	fd = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_done(stasis_file_read(fd, "docs/format.md", (size_t)1 << 20, STASIS_REFUSED, &page,
				     &bytes, &err),
		    &err);
	text = strstr(page, begin);
	assert_non_null(text);
	text += strlen("```json\n");
	t_group_read(text, (size_t)(strstr(text, "\n```") - text), &group);
	assert_int_equal(group.topology.member_count, 1);
	assert_int_equal(group.place_count, 1);
	assert_done(stasis_topology_check(&group.topology, &err), &err);
	t_group_free(&group);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_refused_when_cut_at_any_length),
		cmocka_unit_test(any_damage_is_answered),
		cmocka_unit_test(each_wrong_value_is_named),
		cmocka_unit_test(doubles_are_refused),
		cmocka_unit_test(too_many_members_are_refused),
		cmocka_unit_test(it_is_for_people_too),
		cmocka_unit_test(another_layout_is_read),
		cmocka_unit_test(the_example_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
