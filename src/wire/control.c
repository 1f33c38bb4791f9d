/*
 * See control.h.
 *
 *      0  "STSCTRL1"    8  version   12  door   16  pid   20  phase   24  participant   40  incarnation
 *     56  operation    72  build, journal, image: each a length and its bytes; then zero
 *   8440  sum of bytes 0 to 8439
 */

#include "wire/control.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "wire/codec.h"

#define MAGIC UINT64_C(0x314c525443535453) /* the bytes "STSCTRL1" */
#define SUM_OFFSET (STASIS_WIRE_CONTROL_BYTES - 8)
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW)
/* A writer needs microseconds. */
#define READ_TRIES 1000

_Static_assert(72 + 3 * 4 + STASIS_WIRE_BUILD_TEXT_BYTES + 2 * STASIS_WIRE_PATH_BYTES <= SUM_OFFSET,
	       "the longest control file fits");

static void fields(struct stasis_wire_codec *codec, struct stasis_wire_control *control)
{
	uint64_t magic = MAGIC;
	uint32_t version = STASIS_WIRE_VERSION;

	stasis_wire_u64(codec, &magic);
	stasis_wire_check(codec, magic == MAGIC, "it is no control file of stasis");
	stasis_wire_u32(codec, &version);
	stasis_wire_check(codec, version == STASIS_WIRE_VERSION,
			  "it is of another version of the protocol; run one version of stasis");
	stasis_wire_i32(codec, &control->door_fd);
	stasis_wire_u32(codec, &control->pid);
	stasis_wire_u8(codec, &control->phase);
	stasis_wire_zero(codec, 3);
	stasis_wire_id(codec, &control->participant);
	stasis_wire_id(codec, &control->incarnation);
	stasis_wire_id(codec, &control->operation);
	stasis_wire_text(codec, control->build, sizeof(control->build));
	stasis_wire_text(codec, control->journal, sizeof(control->journal));
	stasis_wire_text(codec, control->image, sizeof(control->image));
	stasis_wire_zero_until(codec, SUM_OFFSET);
	stasis_wire_check(codec, control->door_fd >= 0, "it names no door");
	stasis_wire_check(codec, control->pid > 0 && control->pid <= INT32_MAX, "it names no pid");
	stasis_wire_check(codec, control->phase < STASIS_WIRE_PHASE_COUNT,
			  "it names no phase that is known");
}

int stasis_wire_control_encode(const struct stasis_wire_control *control,
			       uint8_t bytes[STASIS_WIRE_CONTROL_BYTES], struct stasis_error *err)
{
	struct stasis_wire_codec codec = stasis_wire_writer(bytes, STASIS_WIRE_CONTROL_BYTES);
	uint64_t sum;

	/* A codec that writes only reads the structure. */
	fields(&codec, (struct stasis_wire_control *)(uintptr_t)control);
	if (!codec.fault) {
		sum = stasis_wire_sum(bytes, SUM_OFFSET);
		stasis_wire_u64(&codec, &sum);
	}
	return stasis_wire_end(&codec, "control file of our own", err);
}

int stasis_wire_control_decode(const uint8_t *bytes, size_t byte_count,
			       struct stasis_wire_control *ret_control, struct stasis_error *err)
{
	struct stasis_wire_codec codec = stasis_wire_reader(bytes, byte_count);
	uint64_t sum = 0;

	fields(&codec, ret_control);
	stasis_wire_u64(&codec, &sum);
	if (!codec.fault)
		stasis_wire_check(&codec, sum == stasis_wire_sum(bytes, SUM_OFFSET),
				  "it is damaged: its sum is wrong");
	return stasis_wire_end(&codec, "control file", err);
}

int stasis_wire_control_write(int fd, const struct stasis_wire_control *control,
			      struct stasis_error *err)
{
	uint8_t bytes[STASIS_WIRE_CONTROL_BYTES];

	if (stasis_wire_control_encode(control, bytes, err) != 0)
		return -1;
	/* Memory files take so little whole, or fail. */
	if (pwrite(fd, bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return stasis_fail_errno(err, STASIS_REFUSED, "write the control file");
	return 0;
}

int stasis_wire_control_create(const struct stasis_wire_control *control, int *ret_fd,
			       struct stasis_error *err)
{
	CLEANUP(fd) int fd = memfd_create("stasis-control", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "create the control file");
	if (stasis_wire_control_write(fd, control, err) != 0)
		return -1;
	if (fcntl(fd, F_ADD_SEALS, SEALS) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "seal the control file");
	*ret_fd = fd_steal(&fd);
	return 0;
}

int stasis_wire_control_read(int fd, struct stasis_wire_control *ret_control,
			     struct stasis_error *err)
{
	uint8_t bytes[STASIS_WIRE_CONTROL_BYTES + 1];
	struct stasis_error last = STASIS_ERROR_INIT;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & SEALS) != SEALS || (seals & F_SEAL_WRITE) != 0)
		return stasis_fail(err, STASIS_REFUSED,
				   "control file refused: it is not sealed as one is");
	for (int i = 0; i < READ_TRIES; i++) {
		ssize_t byte_count = pread(fd, bytes, sizeof(bytes), 0);

		if (byte_count < 0 && errno != EINTR)
			return stasis_fail_errno(err, STASIS_REFUSED, "read the control file");
		if (byte_count < 0)
			continue;
		last = (struct stasis_error)STASIS_ERROR_INIT;
		if (stasis_wire_control_decode(bytes, (size_t)byte_count, ret_control, &last) == 0)
			return 0;
		(void)sched_yield();
	}
	if (!stasis_error_is_set(&last))
		return stasis_fail(err, STASIS_REFUSED, "read the control file: interrupted");
	stasis_error_take(err, &last);
	return -1;
}
