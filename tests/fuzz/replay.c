/*
 * Feeds a decoder without libFuzzer: every file of the corpus as it is, cut at every length, with every
 * byte changed, and then random mixtures of these for as long as asked. `make test` runs it with no time
 * for the last part, tools/fuzz.sh with some where clang has no libFuzzer.
 *
 * usage: fuzz_NAME CORPUS-FOLDER [SECONDS [SEED]]
 *
 * An input that crashes the decoder lies in the file "last-input" of the working folder.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"

#define INPUT_BYTES_MAX ((size_t)1 << 20)
/* Cuts and changes at every place are for small inputs; large ones are sampled. */
#define PLACES_MAX ((size_t)4096)

struct input {
	uint8_t *bytes;
	size_t count;
};

struct corpus {
	struct input inputs[1024];
	size_t count;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct corpus corpus;
/* Shared with the file "last-input", so that it survives a crash. */
static uint8_t *scratch;
static uint64_t random_state;
static uint64_t run_count;

/* xorshift64: the same sequence for the same seed everywhere. */
static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static size_t random_below(size_t limit)
{
	return limit ? (size_t)(random_next() % limit) : 0;
}

/* The decoder gets memory of exactly this size, so that a sanitizer sees the first byte too many. */
static void input_feed(const uint8_t *bytes, size_t count)
{
	uint8_t *exact = malloc(count ? count : 1);

	if (!exact)
		abort();
	if (bytes != scratch)
		memcpy(scratch, bytes, count);
	memcpy(exact, bytes, count);
	(void)LLVMFuzzerTestOneInput(exact, count);
	free(exact);
	run_count++;
}

static int scratch_open(struct stasis_error *err)
{
	CLEANUP(fd) int fd = open("last-input", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, (off_t)INPUT_BYTES_MAX) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "create 'last-input'");
	scratch = mmap(NULL, INPUT_BYTES_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (scratch == MAP_FAILED)
		return stasis_fail_errno(err, STASIS_REFUSED, "map 'last-input'");
	return 0;
}

static int corpus_read(const char *path, struct stasis_error *err)
{
	CLEANUP(dir) DIR *dir = opendir(path);

	if (!dir)
		return stasis_fail_errno(err, STASIS_REFUSED, "open corpus '%s'", path);
	for (struct dirent *entry = stasis_dir_next(dir); entry; entry = stasis_dir_next(dir)) {
		char *text = NULL;
		struct input *input = &corpus.inputs[corpus.count];

		if (corpus.count == ARRAY_COUNT(corpus.inputs))
			return stasis_fail(err, STASIS_REFUSED, "corpus '%s': more than %zu files",
					   path, corpus.count);
		if (stasis_file_read(dirfd(dir), entry->d_name, INPUT_BYTES_MAX, STASIS_REFUSED,
				     &text, &input->count, err) != 0)
			return -1;
		input->bytes = (uint8_t *)text;
		corpus.count++;
	}
	if (corpus.count == 0)
		return stasis_fail(err, STASIS_REFUSED, "corpus '%s' is empty", path);
	return 0;
}

static void cuts_feed(const struct input *input)
{
	size_t step = input->count / PLACES_MAX + 1;

	for (size_t count = 0; count <= input->count; count += step)
		input_feed(input->bytes, count);
}

static void changes_feed(const struct input *input)
{
	static const uint8_t masks[] = {0x01, 0x80, 0xff};
	size_t step = input->count / PLACES_MAX + 1;

	for (size_t at = 0; at < input->count; at += step) {
		for (size_t i = 0; i < ARRAY_COUNT(masks); i++) {
			input->bytes[at] ^= masks[i];
			input_feed(input->bytes, input->count);
			input->bytes[at] ^= masks[i];
		}
	}
}

static void mixture_feed(void)
{
	const struct input *first = &corpus.inputs[random_below(corpus.count)];
	const struct input *second = &corpus.inputs[random_below(corpus.count)];
	size_t head = random_below(first->count + 1);
	size_t from = random_below(second->count + 1);
	size_t tail = second->count - from;

	if (head + tail > INPUT_BYTES_MAX)
		tail = INPUT_BYTES_MAX - head;
	memcpy(scratch, first->bytes, head);
	memcpy(scratch + head, second->bytes + from, tail);
	for (size_t changes = random_below(8); changes > 0 && head + tail > 0; changes--)
		scratch[random_below(head + tail)] = (uint8_t)random_next();
	input_feed(scratch, head + tail);
}

static int replay(int argument_count, char **arguments, struct stasis_error *err)
{
	uint64_t seconds = 0;
	uint64_t deadline_ns;

	random_state = 1;
	if (argument_count < 2 || argument_count > 4)
		return stasis_fail(err, STASIS_USAGE, "usage: %s CORPUS [SECONDS [SEED]]",
				   arguments[0]);
	if (argument_count > 2 && stasis_parse_u64("SECONDS", arguments[2], &seconds, err) != 0)
		return -1;
	if (argument_count > 3 && stasis_parse_u64("SEED", arguments[3], &random_state, err) != 0)
		return -1;
	random_state = random_state ? random_state : 1;
	if (scratch_open(err) != 0 || corpus_read(arguments[1], err) != 0)
		return -1;
	for (size_t i = 0; i < corpus.count; i++) {
		input_feed(corpus.inputs[i].bytes, corpus.inputs[i].count);
		cuts_feed(&corpus.inputs[i]);
		changes_feed(&corpus.inputs[i]);
	}
	deadline_ns = stasis_deadline_after_ns(seconds * STASIS_NS_PER_S);
	while (!stasis_deadline_passed(deadline_ns))
		mixture_feed();
	return 0;
}

int main(int argument_count, char **arguments)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	if (replay(argument_count, arguments, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	for (size_t i = 0; i < corpus.count; i++)
		free(corpus.inputs[i].bytes);
	(void)unlink("last-input");
	(void)printf("%zu files of corpus, %llu inputs\n", corpus.count,
		     (unsigned long long)run_count);
	return 0;
}
