/*
 * See store.h. Here: the table of stores, and the opening and closing of an extent's files.
 */

#include "transfer/store.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/log.h"
#include "base/number.h"

/* Below this, one file serves as well as many. */
#define STRIPE_BYTES_MIN (UINT64_C(16) << 20)

struct store_row {
	const char *name;
	const struct stasis_transfer_store_ops *ops;
};

static const struct store_row stores[] = {
	[STASIS_TRANSFER_STORE_AUTO] = {"auto", NULL},
	[STASIS_TRANSFER_STORE_STRIPES] = {"stripes", &stasis_transfer_store_stripes},
	[STASIS_TRANSFER_STORE_MAPPING] = {"mapping", &stasis_transfer_store_mapping},
	[STASIS_TRANSFER_STORE_DIRECT] = {"direct", &stasis_transfer_store_direct},
	[STASIS_TRANSFER_STORE_PLAIN] = {"plain", &stasis_transfer_store_plain},
	[STASIS_TRANSFER_STORE_MEMORY] = {"memory", &stasis_transfer_store_memory},
};

const char *stasis_transfer_store_name(enum stasis_transfer_store store)
{
	return (size_t)store < ARRAY_COUNT(stores) ? stores[store].name : "unknown";
}

bool stasis_transfer_store_parse(const char *name, enum stasis_transfer_store *ret_store)
{
	for (size_t i = 0; i < ARRAY_COUNT(stores); i++) {
		if (strcmp(stores[i].name, name) == 0) {
			*ret_store = (enum stasis_transfer_store)i;
			return true;
		}
	}
	return false;
}

uint32_t stasis_transfer_stripe_count(uint64_t extent_bytes, uint64_t chunk_bytes)
{
	uint64_t least = chunk_bytes > STRIPE_BYTES_MIN ? chunk_bytes : STRIPE_BYTES_MIN;
	uint64_t count = extent_bytes / least;

	return count < 1 ? 1 : (uint32_t)stasis_min_u64(count, STASIS_STRIPES_MAX);
}

uint64_t stasis_transfer_reserve_bytes(uint64_t extent_bytes, uint64_t chunk_bytes,
				       uint32_t stripe_count, uint32_t stripe_index)
{
	uint64_t chunk_count = stasis_chunk_count(extent_bytes, chunk_bytes);
	uint64_t own = chunk_count / stripe_count + (stripe_index < chunk_count % stripe_count);
	uint64_t bytes = own * chunk_bytes;
	uint64_t last;

	/* The stripe that holds the last chunk needs less where that is short. */
	if (chunk_count > 0 && (chunk_count - 1) % stripe_count == stripe_index) {
		last = stasis_chunk_bytes(extent_bytes, chunk_bytes, chunk_count - 1);
		bytes -= chunk_bytes - stasis_round_up(last, STASIS_STORED_ALIGNMENT);
	}
	return bytes;
}

/* Whether the caller's mappings take all that a save may write. */
static bool extent_is_mapped(const struct stasis_transfer_extent *extent)
{
	for (uint32_t i = 0; i < extent->stripe_count; i++) {
		if (!extent->stripe_maps[i] ||
		    extent->stripe_map_bytes[i] <
			    stasis_transfer_reserve_bytes(extent->bytes, extent->chunk_bytes,
							  extent->stripe_count, i))
			return false;
	}
	return true;
}

static int file_open(struct stasis_transfer_file_set *files, uint32_t index,
		     const struct stasis_transfer_extent *extent, bool is_saving,
		     struct stasis_error *err)
{
	struct stasis_transfer_file *file = &files->files[index];
	uint64_t reserve_bytes;
	struct stat info;

	file->name = extent->stripe_names[index] ? extent->stripe_names[index] : extent->name;
	file->fd = extent->stripe_fds[index];
	file->status_flags = -1;
	file->is_saving = is_saving;
	if (fstat(file->fd, &info) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "stat '%s'", file->name);
	if (!S_ISREG(info.st_mode))
		return stasis_fail(err, STASIS_REFUSED, "'%s' is not a regular file", file->name);
	file->bytes = (uint64_t)info.st_size;
	file->is_lent = is_saving && files->store == STASIS_TRANSFER_STORE_MAPPING &&
			extent_is_mapped(extent);
	if (file->is_lent) {
		file->base = extent->stripe_maps[index];
		file->mapped_bytes = extent->stripe_map_bytes[index];
	}
	reserve_bytes = stasis_transfer_reserve_bytes(extent->bytes, extent->chunk_bytes,
						      extent->stripe_count, index);
	/* A file that was cut after it was mapped has lost pages: touching them can be SIGBUS. */
	file->is_resident = file->is_lent && file->bytes >= reserve_bytes &&
			    (uint64_t)info.st_blocks * 512 >= reserve_bytes;
	return files->ops->open(file, reserve_bytes, err);
}

static int memory_open(struct stasis_transfer_file_set *files,
		       const struct stasis_transfer_extent *extent, bool is_saving,
		       struct stasis_error *err)
{
	files->count = 1;
	files->files[0] = (struct stasis_transfer_file){
		.name = extent->name,
		.fd = -1,
		.status_flags = -1,
		.is_saving = is_saving,
		.bytes = extent->memory->bytes,
		.base = extent->memory->base,
	};
	return files->ops->open(
		&files->files[0],
		stasis_transfer_reserve_bytes(extent->bytes, extent->chunk_bytes, 1, 0), err);
}

static int store_choose(const struct stasis_transfer_extent *extent,
			enum stasis_transfer_store forced, bool is_saving,
			enum stasis_transfer_store *ret_store, struct stasis_error *err)
{
	if (extent->memory) {
		*ret_store = STASIS_TRANSFER_STORE_MEMORY;
		return 0;
	}
	if (forced == STASIS_TRANSFER_STORE_MEMORY)
		return stasis_fail(
			err, STASIS_REFUSED,
			"extent '%s': the store 'memory' was asked for, but it has files",
			extent->name);
	if (forced != STASIS_TRANSFER_STORE_AUTO) {
		*ret_store = forced;
		return 0;
	}
	if (is_saving && extent_is_mapped(extent)) {
		*ret_store = STASIS_TRANSFER_STORE_MAPPING;
		return 0;
	}
	return stasis_transfer_store_detect(
		extent->stripe_fds[0],
		extent->stripe_names[0] ? extent->stripe_names[0] : extent->name, ret_store, err);
}

/* Host memory that was reserved ahead is there: nothing is opened that could fail. */
static bool open_is_faulty(const struct stasis_transfer_extent *extent, struct stasis_error *err)
{
	int code = 0;

	if (extent->memory)
		return false;
	do {
		code = stasis_fault_point("transfer_open");
	} while (code == EINTR);
	if (!code)
		return false;
	(void)stasis_fail_code(err, STASIS_REFUSED, code, "open the files of extent '%s'",
			       extent->name);
	return true;
}

static const char *store_why(const struct stasis_transfer_extent *extent,
			     enum stasis_transfer_store store, enum stasis_transfer_store forced)
{
	if (extent->memory)
		return ", since it lies in host memory";
	if (forced != STASIS_TRANSFER_STORE_AUTO)
		return ", as was asked for";
	if (store == STASIS_TRANSFER_STORE_MAPPING)
		return ", since its files were mapped ahead";
	return ", by what the file system is";
}

int stasis_transfer_files_open(struct stasis_transfer_file_set *files,
			       const struct stasis_transfer_extent *extent,
			       enum stasis_transfer_store forced, bool is_saving,
			       struct stasis_error *err)
{
	enum stasis_transfer_store store = STASIS_TRANSFER_STORE_AUTO;

	memset(files, 0, sizeof(*files));
	if (open_is_faulty(extent, err))
		return -1;
	if (store_choose(extent, forced, is_saving, &store, err) != 0)
		return -1;
	stasis_log_info("transfer: extent '%s': store '%s'%s", extent->name, stores[store].name,
			store_why(extent, store, forced));
	files->store = store;
	files->ops = stores[store].ops;
	if (extent->memory)
		return memory_open(files, extent, is_saving, err);
	for (uint32_t i = 0; i < extent->stripe_count; i++) {
		files->count = i + 1;
		if (file_open(files, i, extent, is_saving, err) != 0)
			return -1;
	}
	return 0;
}

void stasis_transfer_files_close(struct stasis_transfer_file_set *files)
{
	for (uint32_t i = 0; i < files->count; i++)
		files->ops->close(&files->files[i]);
	files->count = 0;
	files->ops = NULL;
}

int stasis_transfer_files_finish(struct stasis_transfer_file_set *files,
				 uint64_t stripe_bytes[STASIS_STRIPES_MAX],
				 struct stasis_error *err)
{
	for (uint32_t i = 0; i < files->count; i++) {
		struct stasis_transfer_file *file = &files->files[i];
		uint64_t end = atomic_load_explicit(&file->cursor, memory_order_relaxed);
		int code = 0;

		if (files->ops->cut)
			code = files->ops->cut(file, end);
		if (code)
			return stasis_fail_code(err, STASIS_REFUSED, code, "cut '%s' to %llu bytes",
						file->name, (unsigned long long)end);
		stripe_bytes[i] = end;
	}
	return 0;
}
