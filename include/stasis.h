#ifndef STASIS_H
#define STASIS_H

/*
 * Stasis: checkpoint and restore for CUDA programs on Linux. The public C interface: everything that the
 * command line can do.
 *
 * A struct stasis_library is used by one thread at a time. Nothing here prints or exits: what a call finds
 * out goes to its event function as pairs of texts, and a failed call leaves one line of text in it. Option structures are filled by the caller and begin with their size, so that a program keeps
 * running against a library that has learned new options: start from the STASIS_…_INIT value.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What became of the target. The command line exits with the same numbers; with several targets it is
 * the highest that counts.
 */
enum stasis_status {
	STASIS_OK = 0,        /* done */
	STASIS_REFUSED = 1,   /* failed or refused; the targets run as before */
	STASIS_USAGE = 2,     /* wrong usage; nothing was touched */
	STASIS_SUSPENDED = 3, /* failed; the targets are suspended and intact */
	STASIS_LOST = 4,      /* a target was lost, or its fate is unknown */
	STASIS_BAD_IMAGE = 5, /* the image is bad; the targets are as they were */
	STASIS_INTERNAL = 70, /* a bug of our own */
};

/* Who moves the bytes of private device memory. */
enum stasis_store {
	STASIS_STORE_AUTO =
		0, /* custom where the driver has it, else native; the event `store` says which */
	STASIS_STORE_CUSTOM =
		1, /* stasis, through the driver's CustomStorage interface, into an image */
	STASIS_STORE_NATIVE = 2, /* the driver, into the target's own host memory */
};

/* How files are read and written. */
enum stasis_file_store {
	STASIS_FILE_STORE_AUTO = 0,    /* by what the file system is */
	STASIS_FILE_STORE_STRIPES = 1, /* pread and pwrite, several files at once */
	STASIS_FILE_STORE_MAPPING = 2, /* copies into a mapping; loads read */
	STASIS_FILE_STORE_DIRECT = 3,  /* around the page cache */
	STASIS_FILE_STORE_PLAIN = 4,   /* through the page cache */
};

/* How chunks of an image are compressed, each where that makes it shorter. */
enum stasis_compress {
	STASIS_COMPRESS_NONE = 0,
	STASIS_COMPRESS_LZ4 = 1,
	STASIS_COMPRESS_ZSTD = 2,
};

/* When an image's digests are compared with its bytes. */
enum stasis_verify {
	STASIS_VERIFY_BEFORE = 0,  /* wholly, before the driver is asked to restore anything */
	STASIS_VERIFY_LOADING = 1, /* chunk by chunk, before each is copied in */
	STASIS_VERIFY_OFF = 2,     /* not at all */
};

/* What a round trip does to its own image before it restores from it. */
enum stasis_damage {
	STASIS_DAMAGE_NONE = 0,
	STASIS_DAMAGE_TRUNCATE = 1, /* takes the last byte off a file: must be refused */
	STASIS_DAMAGE_CORRUPT = 2,  /* changes a byte of the program's: must be found and named */
};

/*
 * One thing found out. `key` is a lower-case word, with dots where it belongs to something numbered
 * ("extent.0.bytes"); `value` is its text. Both live only during the call. Keys that may come several
 * times in one call: `phase`, `state`, `warning`, `progress` ("LABEL DONE TOTAL", in bytes).
 */
typedef void stasis_event_function(const char *key, const char *value, void *argument);

struct stasis_library;

/* NULL where there is no memory. stasis_library_free() accepts NULL. */
struct stasis_library *stasis_library_new(void);
void stasis_library_free(struct stasis_library *library);

/* Sets the function that is called, on the calling thread, for each event. NULL: nobody listens. */
void stasis_library_set_events(struct stasis_library *library, stasis_event_function *function,
			       void *argument);

/* The last failed call's cause as one line; empty after a call that did not fail. */
const char *stasis_library_error(const struct stasis_library *library);

/* Its errno and CUresult; 0: it came from elsewhere. */
int stasis_library_error_errno(const struct stasis_library *library);
int stasis_library_error_cuda(const struct stasis_library *library);

struct stasis_roundtrip_options {
	size_t size;
	const char *artifact_dir; /* becomes the image; must not exist yet */
	uint64_t bytes;           /* of the program's device memory */
	uint64_t timeout_ns;      /* for everything together */
	uint32_t device;          /* ordinal */
	enum stasis_store store;
	enum stasis_damage damage; /* needs the custom store */
	enum stasis_verify verify;
	bool is_without_fallback; /* do not reserve host memory against a failing disk */
	int cancel_fd;            /* gives the round trip up when it turns readable; -1: never */
	enum stasis_file_store file_store;
	uint64_t chunk_bytes; /* 0: the default; a multiple of 4096 from 64 KiB to 64 MiB */
	uint32_t workers;     /* threads that move bytes; 0: by processors, at most 16 */
	enum stasis_compress compress; /* with chunks of at most 16 MiB */
};

#define STASIS_ROUNDTRIP_OPTIONS_INIT                                                              \
	{                                                                                          \
		sizeof(struct stasis_roundtrip_options), NULL, UINT64_C(64) << 20,                 \
			UINT64_C(120000000000), 0, STASIS_STORE_AUTO, STASIS_DAMAGE_NONE,          \
			STASIS_VERIFY_BEFORE, false, -1, STASIS_FILE_STORE_AUTO, 0, 0,             \
			STASIS_COMPRESS_NONE                                                       \
	}

/*
 * The proof of one process: starts a program of its own that fills device memory with a pattern, captures
 * its GPU state to an image, restores it, and lets the program compare every byte. Forks, and reaps
 * every child of its own; the calling process must have one thread and must not have used CUDA.
 */
enum stasis_status stasis_library_roundtrip(struct stasis_library *library,
					    const struct stasis_roundtrip_options *options);

struct stasis_image_options {
	size_t size;
	const char *
		path; /* of the image; for stasis_library_collect(), of the directory around images */
	bool is_trusted; /* accept an image of another owner, or one that others can write */
};

#define STASIS_IMAGE_OPTIONS_INIT                                                                  \
	{                                                                                          \
		sizeof(struct stasis_image_options), NULL, false                                   \
	}

/* Reports what an image holds; reads its manifest and no contents. Needs no driver. */
enum stasis_status stasis_library_inspect(struct stasis_library *library,
					  const struct stasis_image_options *options);

/* Reads an image wholly and compares every byte with its digests. Needs no driver. */
enum stasis_status stasis_library_verify(struct stasis_library *library,
					 const struct stasis_image_options *options);

/*
 * Removes what unfinished captures left in a directory, but never the only copy of a process that is
 * still suspended: that one is reported.
 */
enum stasis_status stasis_library_collect(struct stasis_library *library,
					  const struct stasis_image_options *options);

/* Reports what this machine can do; `directory` is where images would lie. Works without a driver. */
enum stasis_status stasis_library_diagnose(struct stasis_library *library, const char *directory);

/*
 * Reports the driver's state of a process ("state") and, where the interposer is in it, its "participant" and the
 * "capture", "capture_phase" and "image" that it is in. A "warning" says why there is no state.
 */
enum stasis_status stasis_library_process_status(struct stasis_library *library, int32_t pid);

/*
 * Reports what the interposers in running programs know of their memory, and whether the programs could be captured
 * together ("capturable": "yes", or "no: " and the reason). Nothing of theirs is held or changed.
 */
enum stasis_status stasis_library_inspect_processes(struct stasis_library *library,
						    const int32_t *pids, size_t count);

/*
 * The calling process becomes a command (`arguments` ends with NULL) with the interposer in it, which makes
 * memory that its processes share survive. LD_PRELOAD is prepended to; all else stays byte for byte. The
 * command is looked at first: what the interposer cannot go into is refused. Returns only if it failed. The
 * calling process must have one thread.
 */
enum stasis_status stasis_library_run(struct stasis_library *library, char *const *arguments);

struct stasis_suspend_options {
	size_t size;
	const int32_t *pids; /* of every process that shares GPU memory with any of them */
	size_t count;
	const char *image_path;   /* becomes the image; must not exist yet. NULL: in memory */
	uint64_t timeout_ns;      /* for everything together */
	uint64_t gate_timeout_ns; /* for the programs' GPU work to come to rest */
	uint64_t memory_bytes;    /* of host memory that may be used; 0: what is available */
	uint64_t chunk_bytes;     /* as in stasis_roundtrip_options */
	uint32_t workers;         /* likewise */
	int cancel_fd;            /* gives it up when it turns readable; -1: never */
	enum stasis_file_store file_store;
	bool is_tree; /* with all descendants that use CUDA; the others run on */
};

#define STASIS_SUSPEND_OPTIONS_INIT                                                                \
	{                                                                                          \
		sizeof(struct stasis_suspend_options), NULL, 0, NULL, UINT64_C(300000000000),      \
			UINT64_C(30000000000), 0, 0, 0, -1, STASIS_FILE_STORE_AUTO, false          \
	}

/*
 * Takes the GPU away from running processes: the driver puts each one's private device memory into host memory of its
 * own, what they share goes into an image, and they go on waiting at their next CUDA call. Whatever fails gives them
 * back running. Reports "image". Forks, and reaps its children; the calling process must not have used CUDA.
 */
enum stasis_status stasis_library_suspend(struct stasis_library *library,
					  const struct stasis_suspend_options *options);

struct stasis_resume_options {
	size_t size;
	const int32_t *
		pids; /* any of those that are suspended together; none, where the image is named */
	size_t count;
	const char *image_path; /* NULL: the one that the processes name */
	uint64_t timeout_ns;
	enum stasis_verify verify;
	bool is_trusted; /* accept an image of another owner, or one that others can write */
	bool is_without_missing; /* go on without processes of the image that have ended */
	uint32_t workers;
	int cancel_fd;
	bool is_tree; /* any of their descendants, too */
};

#define STASIS_RESUME_OPTIONS_INIT                                                                 \
	{                                                                                          \
		sizeof(struct stasis_resume_options), NULL, 0, NULL, UINT64_C(300000000000),       \
			STASIS_VERIFY_LOADING, false, false, 0, -1, false                          \
	}

/*
 * Gives suspended processes their GPU back, all of an image together. An image in memory is removed then. Damage that
 * is found while loading puts the processes to sleep again, intact.
 */
enum stasis_status stasis_library_resume(struct stasis_library *library,
					 const struct stasis_resume_options *options);

struct stasis_recover_options {
	size_t size;
	const int32_t *pids; /* none: everything that is unfinished */
	size_t count;
	uint64_t timeout_ns; /* for each capture */
};

#define STASIS_RECOVER_OPTIONS_INIT                                                                \
	{                                                                                          \
		sizeof(struct stasis_recover_options), NULL, 0, UINT64_C(300000000000)             \
	}

/*
 * Finishes, or takes back, what a suspend or resume that was killed has left: "recovered" says for each whether its
 * processes are "running" or "suspended" now.
 */
enum stasis_status stasis_library_recover(struct stasis_library *library,
					  const struct stasis_recover_options *options);

struct stasis_reserve_options {
	size_t size;
	const char *path; /* the directory around images */
	uint64_t bytes;   /* of device memory that the next capture may hold; 0 with is_removing */
	bool is_removing; /* give the room back */
	int cancel_fd;    /* gives it up when it turns readable; -1: never */
	uint32_t gpus;    /* among which these bytes are divided evenly, at most 64; 0: one */
};

#define STASIS_RESERVE_OPTIONS_INIT                                                                \
	{                                                                                          \
		sizeof(struct stasis_reserve_options), NULL, 0, false, -1, 0                       \
	}

/*
 * Allocates files in a directory ahead, and touches them where they are in memory; the next capture into that
 * directory takes them over, so that neither a full disk nor the cost of fresh memory meets a paused program.
 */
enum stasis_status stasis_library_reserve(struct stasis_library *library,
					  const struct stasis_reserve_options *options);

struct stasis_bench_options {
	size_t size;
	const char *tmpfs_dir;   /* a directory in memory */
	const char *disk_dir;    /* one on a disk; NULL: the rows of the disk are left out */
	const char *rows;        /* names or shell patterns with commas between them; NULL: all */
	uint64_t transfer_bytes; /* of device memory */
	uint64_t disk_bytes;     /* likewise, for the rows of the disk; 0: a quarter of it */
	uint32_t device;         /* ordinal */
	uint32_t runs;           /* of each row, of which the median counts; at most 100 */
	bool is_quick;           /* the rows of the defaults only */
	int cancel_fd;           /* ends the benchmark when it turns readable; -1: never */
};

#define STASIS_BENCH_OPTIONS_INIT                                                                  \
	{                                                                                          \
		sizeof(struct stasis_bench_options), "/dev/shm", NULL, NULL, UINT64_C(1) << 30, 0, \
			0, 5, false, -1                                                            \
	}

/*
 * Measures transfers between device memory and files or host memory, each beside limits of the same run.
 * Rows are reported as "row.N.…"; the last event of each is its `ratio` to its limit. Leaves no file behind.
 * The calling process must not fork afterwards to use CUDA.
 */
enum stasis_status stasis_library_bench_transfer(struct stasis_library *library,
						 const struct stasis_bench_options *options);

/* The library's version, such as "0.1.0". */
const char *stasis_version(void);

#ifdef __cplusplus
}
#endif

#endif
