/*
 * Description: the example of docs/format.md is what it says: a manifest and sums that the decoders accept
 * and that belong together.
 */

#include "unit.h"

#include "base/cleanup.h"
#include "image_fixture.h"

/* The text between a line that begins a block of the page and the line that ends it. */
static char *block_find(const char *page, const char *begin, size_t skipped)
{
	const char *from = strstr(page, begin);
	const char *end;

	assert_non_null(from);
	from += skipped;
	end = strstr(from, "\n```");
	assert_non_null(end);
	return strndup(from, (size_t)(end + 1 - from));
}

static char *page_load(void)
{
	const char *source = secure_getenv("STASIS_SOURCE_DIR");
	size_t bytes = 0;

	return source ? t_file_load(source, "docs/format.md", &bytes) : NULL;
}

/* "000010  ec 6a …": sixteen bytes at most, then what they mean. */
static size_t line_read(const char *line, uint8_t *bytes)
{
	size_t count = 0;

	for (const char *at = line + 8; count < 16; at += 3) {
		char digits[3] = "";
		char *end = NULL;

		at += count == 8;
		(void)snprintf(digits, sizeof(digits), "%.2s", at);
		bytes[count] = (uint8_t)strtoul(digits, &end, 16);
		if (end != digits + 2)
			break;
		count++;
	}
	return count;
}

static size_t dump_read(const char *dump, uint8_t *data, size_t data_bytes)
{
	size_t count = 0;

	while (*dump) {
		assert_true(count + 16 <= data_bytes);
		count += line_read(dump, data + count);
		dump += strcspn(dump, "\n") + 1;
	}
	return count;
}

static void the_example_is_an_image(void **state)
{
	static const char dump_begin[] = "```\n000000  53 54";
	CLEANUP(image_manifest) struct stasis_image_manifest manifest = {0};
	CLEANUP(image_sums) struct stasis_image_sums sums = {0};
	CLEANUP(free) char *page = page_load();
	CLEANUP(free) char *text = NULL;
	CLEANUP(free) char *dump = NULL;
	const struct stasis_image_extent *extent;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_digest digest;
	uint8_t data[512];
	size_t bytes;

	(void)state;
	if (!page) {
		skip();
		return;
	}
	text = block_find(page, "```json\n{\n  \"digest\"", strlen("```json\n"));
	dump = block_find(page, dump_begin, strlen("```\n"));
	assert_done(stasis_image_manifest_decode(text, strlen(text), &manifest, &err), &err);
	assert_int_equal(manifest.extent_count, 1);
	extent = &manifest.extents[0];
	bytes = dump_read(dump, data, sizeof(data));
	assert_int_equal(bytes, extent->sums_bytes);
	digest = stasis_digest_of(data, bytes);
	assert_true(stasis_digest_equal(&digest, &extent->sums_digest));
	assert_done(stasis_image_sums_decode("docs", data, bytes, &sums, &err), &err);
	assert_true(stasis_id_equal(&sums.extent_id, &extent->id));
	assert_done(stasis_image_sums_check("docs", &sums, extent->stripe_bytes, &err), &err);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_example_is_an_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
