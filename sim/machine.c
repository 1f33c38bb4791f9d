#include "machine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "config.h"

#define LEDGER_NAME "machine"
#define LEDGER_MAGIC 0x314843414d4d4953ULL
#define SLOTS_MAX 65536
#define SLOT_NONE (-1)
#define LOCKS_OFFSET (1L << 40) /* of the lock of slot 0: beyond the end of the file */

/*
 * The file:
 *
 *     header | slot 0 | slot 1 | ...
 *
 * Slots are read and written under flock. A slot that nobody has locked is free, whatever it says.
 */
struct ledger_header {
	uint64_t magic;
	uint64_t memory_bytes;
	int32_t device_count;
	int32_t reserved[11];
};

enum slot_kind {
	SLOT_PROCESS = 1, /* has called cuInit */
	SLOT_OWN,         /* what a process has on a device */
	SLOT_CLAIM,       /* held by the descriptor that travels with exported memory */
};

struct ledger_slot {
	int32_t kind;
	int32_t device;
	int32_t pid;
	int32_t reserved;
	uint64_t bytes;
};

_Static_assert(sizeof(struct ledger_header) == 64, "the header is a part of the format");
_Static_assert(sizeof(struct ledger_slot) == 24, "a slot is a part of the format");

static struct sim_mutex machine_mutex = SIM_MUTEX_INITIALIZER;
static struct {
	bool is_observer GUARDED_BY(machine_mutex);
	bool is_joined GUARDED_BY(machine_mutex);
	struct ledger_header header GUARDED_BY(machine_mutex);
	int file_fd
		GUARDED_BY(machine_mutex); /* reads, writes and asks for locks, but holds none */
	int locks_fd GUARDED_BY(machine_mutex); /* holds the locks of this process's slots */
	int own_slot[SIM_DEVICES_MAX] GUARDED_BY(machine_mutex);
	uint64_t own_bytes[SIM_DEVICES_MAX] GUARDED_BY(machine_mutex);
} machine = {
	.file_fd = -1,
	.locks_fd = -1,
};

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static int ledger_open(int flags)
{
	char path[PATH_MAX];
	int path_bytes = snprintf(path, sizeof(path), "%s/" LEDGER_NAME, sim_config()->dir);

	if (path_bytes >= (int)sizeof(path))
		sim_die("STASIS_SIM_DIR is too long");
	return open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
}

static off_t slot_offset(int index)
{
	return (off_t)sizeof(struct ledger_header) +
	       (off_t)index * (off_t)sizeof(struct ledger_slot);
}

static void slot_write_locked(int index, const struct ledger_slot *slot) REQUIRES(machine_mutex)
{
	if (pwrite(machine.file_fd, slot, sizeof(*slot), slot_offset(index)) !=
	    (ssize_t)sizeof(*slot))
		sim_die("cannot write to %s/" LEDGER_NAME ": errno %d", sim_config()->dir, errno);
}

static struct flock slot_lock(int index, short type)
{
	return (struct flock){
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = LOCKS_OFFSET + index,
		.l_len = 1,
	};
}

static bool slot_is_live_locked(int index) REQUIRES(machine_mutex)
{
	struct flock lock = slot_lock(index, F_WRLCK);

	if (fcntl(machine.file_fd, F_OFD_GETLK, &lock) != 0)
		sim_die("cannot ask for locks of %s/" LEDGER_NAME ": errno %d", sim_config()->dir,
			errno);
	return lock.l_type != F_UNLCK;
}

static int slot_count_locked(void) REQUIRES(machine_mutex)
{
	struct stat found;

	if (fstat(machine.file_fd, &found) != 0)
		sim_die("cannot stat %s/" LEDGER_NAME ": errno %d", sim_config()->dir, errno);
	return (int)((found.st_size - (off_t)sizeof(struct ledger_header)) /
		     (off_t)sizeof(struct ledger_slot));
}

/* The next live slot from 'index' on; SLOT_NONE at the end. */
static int slot_next_locked(int index, struct ledger_slot *ret_slot) REQUIRES(machine_mutex)
{
	for (int count = slot_count_locked(); index < count; index++) {
		if (pread(machine.file_fd, ret_slot, sizeof(*ret_slot), slot_offset(index)) !=
		    (ssize_t)sizeof(*ret_slot))
			sim_die("cannot read %s/" LEDGER_NAME ": errno %d", sim_config()->dir,
				errno);
		if (ret_slot->kind != 0 && slot_is_live_locked(index))
			return index;
	}
	return SLOT_NONE;
}

/* Finds a free slot, fills it, and has 'fd' hold it. */
static int slot_new_locked(int fd, const struct ledger_slot *slot) REQUIRES(machine_mutex)
{
	int index = 0;
	struct flock lock;

	while (index < SLOTS_MAX && slot_is_live_locked(index))
		index++;
	if (index == SLOTS_MAX)
		sim_die("more than %d accounts", SLOTS_MAX);
	lock = slot_lock(index, F_WRLCK);
	if (fcntl(fd, F_OFD_SETLK, &lock) != 0)
		sim_die("cannot lock in %s/" LEDGER_NAME ": errno %d", sim_config()->dir, errno);
	slot_write_locked(index, slot);
	return index;
}

static bool ledger_has_live_slot_locked(void) REQUIRES(machine_mutex)
{
	struct ledger_slot slot;

	return slot_next_locked(0, &slot) != SLOT_NONE;
}

/* One machine is one number of GPUs of one size; with nobody in it, it may become another. */
static void ledger_check_header_locked(void) REQUIRES(machine_mutex)
{
	const struct sim_config *config = sim_config();
	struct ledger_header wanted = {
		.magic = LEDGER_MAGIC,
		.memory_bytes = config->memory_bytes,
		.device_count = config->device_count,
	};
	ssize_t got = pread(machine.file_fd, &machine.header, sizeof(machine.header), 0);

	if (got == (ssize_t)sizeof(machine.header) &&
	    (machine.is_observer || memcmp(&machine.header, &wanted, sizeof(wanted)) == 0))
		return;
	if (got == (ssize_t)sizeof(machine.header) && machine.header.magic == LEDGER_MAGIC &&
	    ledger_has_live_slot_locked())
		sim_die("the machine in %s has %d GPUs of %llu bytes, this process asks for %d of "
			"%llu",
			config->dir, machine.header.device_count,
			(unsigned long long)machine.header.memory_bytes, config->device_count,
			(unsigned long long)config->memory_bytes);
	machine.header = wanted;
	if (pwrite(machine.file_fd, &wanted, sizeof(wanted), 0) != (ssize_t)sizeof(wanted))
		sim_die("cannot write to %s/" LEDGER_NAME ": errno %d", config->dir, errno);
}

/* The child has none of its parent's memory; it would only keep it taken after the parent's death. */
static void forget_in_child(void) NO_THREAD_SAFETY_ANALYSIS
{
	machine_mutex = (struct sim_mutex)SIM_MUTEX_INITIALIZER;
	cleanup_fd(&machine.file_fd);
	cleanup_fd(&machine.locks_fd);
	machine.is_joined = false;
	memset(machine.own_bytes, 0, sizeof(machine.own_bytes));
}

static void watch_forks(void)
{
	if (pthread_atfork(NULL, NULL, forget_in_child) != 0)
		sim_die("pthread_atfork failed");
}

static void ledger_begin(void) ACQUIRE(machine_mutex) NO_THREAD_SAFETY_ANALYSIS
{
	bool is_new;

	(void)pthread_once(&fork_once, watch_forks);
	sim_mutex_lock(&machine_mutex);
	is_new = machine.file_fd < 0;
	if (is_new)
		machine.file_fd = ledger_open(machine.is_observer ? 0 : O_CREAT);
	if (machine.file_fd < 0)
		sim_die("cannot open %s/" LEDGER_NAME ": errno %d", sim_config()->dir, errno);
	while (flock(machine.file_fd, LOCK_EX) != 0)
		if (errno != EINTR)
			sim_die("cannot lock %s/" LEDGER_NAME ": errno %d", sim_config()->dir,
				errno);
	if (is_new)
		ledger_check_header_locked();
}

static void ledger_end(void) RELEASE(machine_mutex) NO_THREAD_SAFETY_ANALYSIS
{
	(void)flock(machine.file_fd, LOCK_UN);
	sim_mutex_unlock(&machine_mutex);
}

bool sim_machine_observe(void)
{
	CLEANUP(fd) int fd = ledger_open(0);

	sim_mutex_lock(&machine_mutex);
	machine.is_observer = true;
	sim_mutex_unlock(&machine_mutex);
	return fd >= 0;
}

static bool is_observed(void)
{
	bool is_observer;

	sim_mutex_lock(&machine_mutex);
	is_observer = machine.is_observer;
	sim_mutex_unlock(&machine_mutex);
	return is_observer;
}

int sim_machine_device_count(void)
{
	int count;

	ledger_begin();
	count = machine.header.device_count;
	ledger_end();
	return count;
}

static CUresult join_locked(void) REQUIRES(machine_mutex)
{
	struct ledger_slot slot = {.kind = SLOT_PROCESS, .pid = (int32_t)getpid()};

	if (machine.is_joined)
		return CUDA_SUCCESS;
	machine.locks_fd = ledger_open(0);
	if (machine.locks_fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	(void)slot_new_locked(machine.locks_fd, &slot);
	for (int device = 0; device < SIM_DEVICES_MAX; device++)
		machine.own_slot[device] = SLOT_NONE;
	machine.is_joined = true;
	return CUDA_SUCCESS;
}

CUresult sim_machine_join(void)
{
	CUresult result;

	ledger_begin();
	result = join_locked();
	ledger_end();
	return result;
}

static uint64_t free_bytes_locked(int device) REQUIRES(machine_mutex)
{
	struct ledger_slot slot;
	uint64_t taken = 0;

	for (int i = slot_next_locked(0, &slot); i != SLOT_NONE; i = slot_next_locked(i + 1, &slot))
		if (slot.kind != SLOT_PROCESS && slot.device == device)
			taken += slot.bytes;
	if (taken > machine.header.memory_bytes)
		sim_die("GPU %d has %llu bytes taken, more than it has", device,
			(unsigned long long)taken);
	return machine.header.memory_bytes - taken;
}

static void own_set_locked(int device, uint64_t bytes) REQUIRES(machine_mutex)
{
	struct ledger_slot slot = {
		.kind = SLOT_OWN,
		.device = device,
		.pid = (int32_t)getpid(),
		.bytes = bytes,
	};

	if (!machine.is_joined)
		sim_die("memory is taken before cuInit");
	machine.own_bytes[device] = bytes;
	if (machine.own_slot[device] == SLOT_NONE)
		machine.own_slot[device] = slot_new_locked(machine.locks_fd, &slot);
	else
		slot_write_locked(machine.own_slot[device], &slot);
}

CUresult sim_machine_take(int device, uint64_t bytes)
{
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	ledger_begin();
	if (bytes <= free_bytes_locked(device)) {
		own_set_locked(device, machine.own_bytes[device] + bytes);
		result = CUDA_SUCCESS;
	}
	ledger_end();
	return result;
}

void sim_machine_give(int device, uint64_t bytes)
{
	ledger_begin();
	if (bytes > machine.own_bytes[device])
		sim_die("GPU %d is given back %llu bytes, but %llu were taken", device,
			(unsigned long long)bytes, (unsigned long long)machine.own_bytes[device]);
	own_set_locked(device, machine.own_bytes[device] - bytes);
	ledger_end();
}

static CUresult claim_locked(int device, uint64_t bytes, int *ret_claim_fd) REQUIRES(machine_mutex)
{
	struct ledger_slot slot = {
		.kind = SLOT_CLAIM,
		.device = device,
		.pid = (int32_t)getpid(),
		.bytes = bytes,
	};
	int fd = ledger_open(0);

	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	(void)slot_new_locked(fd, &slot);
	*ret_claim_fd = fd;
	return CUDA_SUCCESS;
}

CUresult sim_machine_claim(int device, uint64_t bytes, int *ret_claim_fd)
{
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	ledger_begin();
	if (bytes <= free_bytes_locked(device))
		result = claim_locked(device, bytes, ret_claim_fd);
	ledger_end();
	return result;
}

CUresult sim_machine_claim_own(int device, uint64_t bytes, int *ret_claim_fd)
{
	CUresult result;

	ledger_begin();
	if (bytes > machine.own_bytes[device])
		sim_die("GPU %d: a claim on %llu bytes, but %llu were taken", device,
			(unsigned long long)bytes, (unsigned long long)machine.own_bytes[device]);
	result = claim_locked(device, bytes, ret_claim_fd);
	if (result == CUDA_SUCCESS)
		own_set_locked(device, machine.own_bytes[device] - bytes);
	ledger_end();
	return result;
}

uint64_t sim_machine_total_bytes(int device)
{
	uint64_t bytes = sim_config()->memory_bytes;

	(void)device;
	if (!is_observed())
		return bytes;
	ledger_begin();
	bytes = machine.header.memory_bytes;
	ledger_end();
	return bytes;
}

uint64_t sim_machine_free_bytes(int device)
{
	uint64_t bytes;

	ledger_begin();
	bytes = free_bytes_locked(device);
	ledger_end();
	return bytes;
}

uint64_t sim_machine_own_bytes(int device)
{
	uint64_t bytes;

	sim_mutex_lock(&machine_mutex);
	bytes = machine.own_bytes[device];
	sim_mutex_unlock(&machine_mutex);
	return bytes;
}

uint64_t sim_machine_process_bytes(pid_t pid, int device)
{
	struct ledger_slot slot;
	uint64_t bytes = 0;

	ledger_begin();
	for (int i = slot_next_locked(0, &slot); i != SLOT_NONE; i = slot_next_locked(i + 1, &slot))
		if (slot.kind != SLOT_PROCESS && slot.device == device && slot.pid == (int32_t)pid)
			bytes += slot.bytes;
	ledger_end();
	return bytes;
}

bool sim_machine_is_used(void)
{
	struct ledger_slot slot;
	bool is_used = false;

	ledger_begin();
	for (int i = slot_next_locked(0, &slot); i != SLOT_NONE; i = slot_next_locked(i + 1, &slot))
		is_used = is_used || slot.kind == SLOT_PROCESS;
	ledger_end();
	return is_used;
}

void sim_machine_leave(void)
{
	if (sim_breaks("checkpoint_frees_memory"))
		return;
	ledger_begin();
	cleanup_fd(&machine.locks_fd);
	machine.is_joined = false;
	ledger_end();
	sim_mutex_lock(&machine_mutex);
	cleanup_fd(&machine.file_fd);
	sim_mutex_unlock(&machine_mutex);
}

void sim_machine_move(const int device_of[])
{
	uint64_t moved[SIM_DEVICES_MAX] = {0};

	sim_mutex_lock(&machine_mutex);
	for (int device = 0; device < SIM_DEVICES_MAX && !machine.is_joined; device++)
		moved[device_of[device]] += machine.own_bytes[device];
	if (!machine.is_joined)
		memcpy(machine.own_bytes, moved, sizeof(moved));
	sim_mutex_unlock(&machine_mutex);
}

static CUresult resume_locked(void) REQUIRES(machine_mutex)
{
	CUresult result;

	for (int device = 0; device < machine.header.device_count; device++)
		if (machine.own_bytes[device] > free_bytes_locked(device))
			return CUDA_ERROR_OUT_OF_MEMORY;
	result = join_locked();
	if (result != CUDA_SUCCESS)
		return result;
	for (int device = 0; device < machine.header.device_count; device++)
		if (machine.own_bytes[device] != 0)
			own_set_locked(device, machine.own_bytes[device]);
	return CUDA_SUCCESS;
}

CUresult sim_machine_resume(void)
{
	CUresult result = CUDA_SUCCESS;

	ledger_begin();
	if (!machine.is_joined)
		result = resume_locked();
	ledger_end();
	return result;
}
