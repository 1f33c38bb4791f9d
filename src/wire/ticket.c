/*
 * See ticket.h.
 *
 *      0  "STSTICKT"    8  version   12  kind   16  participant   32  object   48  bytes
 *     56  devices of a team   60  its handle types   64  its flags   72  zero   120  sum of bytes 0 to 119
 */

#include "wire/ticket.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "wire/codec.h"

#define MAGIC UINT64_C(0x544b434954535453) /* the bytes "STSTICKT" */
#define VERSION 1
#define SUM_OFFSET (STASIS_WIRE_TICKET_BYTES - 8)
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static void fields(struct stasis_wire_codec *codec, struct stasis_wire_ticket *ticket)
{
	static const struct stasis_id none;
	uint64_t magic = MAGIC;
	uint32_t version = VERSION;
	uint32_t kind = (uint32_t)ticket->kind;

	stasis_wire_u64(codec, &magic);
	stasis_wire_check(codec, magic == MAGIC, "it is no ticket of stasis");
	stasis_wire_u32(codec, &version);
	stasis_wire_check(codec, version == VERSION, "it is of another version");
	stasis_wire_u32(codec, &kind);
	stasis_wire_id(codec, &ticket->participant);
	stasis_wire_id(codec, &ticket->object);
	stasis_wire_u64(codec, &ticket->bytes);
	stasis_wire_u32(codec, &ticket->device_count);
	stasis_wire_u32(codec, &ticket->handle_types);
	stasis_wire_u64(codec, &ticket->flags);
	stasis_wire_zero_until(codec, SUM_OFFSET);
	stasis_wire_check(codec,
			  kind == STASIS_WIRE_TICKET_ALLOCATION ||
				  kind == STASIS_WIRE_TICKET_MULTICAST,
			  "it is of no kind that is known");
	stasis_wire_check(codec, !stasis_id_equal(&ticket->participant, &none),
			  "it names no participant");
	stasis_wire_check(codec, !stasis_id_equal(&ticket->object, &none), "it names no object");
	stasis_wire_check(codec, ticket->bytes > 0, "it names an object without bytes");
	if (kind == STASIS_WIRE_TICKET_MULTICAST)
		stasis_wire_check(codec, ticket->device_count > 0, "it names a team of no devices");
	else
		stasis_wire_check(codec,
				  ticket->device_count == 0 && ticket->handle_types == 0 &&
					  ticket->flags == 0,
				  "it names a team, but no multicast object");
	if (!codec->fault)
		ticket->kind = (enum stasis_wire_ticket_kind)kind;
}

int stasis_wire_ticket_encode(const struct stasis_wire_ticket *ticket,
			      uint8_t bytes[STASIS_WIRE_TICKET_BYTES], struct stasis_error *err)
{
	struct stasis_wire_codec codec = stasis_wire_writer(bytes, STASIS_WIRE_TICKET_BYTES);
	struct stasis_wire_ticket copy = *ticket;
	uint64_t sum;

	fields(&codec, &copy);
	if (!codec.fault) {
		sum = stasis_wire_sum(bytes, SUM_OFFSET);
		stasis_wire_u64(&codec, &sum);
	}
	return stasis_wire_end(&codec, "ticket of our own", err);
}

int stasis_wire_ticket_decode(const uint8_t *bytes, size_t byte_count,
			      struct stasis_wire_ticket *ret_ticket, struct stasis_error *err)
{
	struct stasis_wire_codec codec = stasis_wire_reader(bytes, byte_count);
	struct stasis_wire_ticket ticket = {0};
	uint64_t sum = 0;

	fields(&codec, &ticket);
	stasis_wire_u64(&codec, &sum);
	if (!codec.fault)
		stasis_wire_check(&codec, sum == stasis_wire_sum(bytes, SUM_OFFSET),
				  "it is damaged: its sum is wrong");
	if (stasis_wire_end(&codec, "ticket", err) != 0)
		return -1;
	*ret_ticket = ticket;
	return 0;
}

int stasis_wire_ticket_create(const struct stasis_wire_ticket *ticket, int *ret_fd,
			      struct stasis_error *err)
{
	uint8_t bytes[STASIS_WIRE_TICKET_BYTES];
	CLEANUP(fd) int fd = -1;

	if (stasis_wire_ticket_encode(ticket, bytes, err) != 0)
		return -1;
	fd = memfd_create("stasis-ticket", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "create a ticket");
	/* Memory files take so little whole, or fail. */
	if (pwrite(fd, bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return stasis_fail_errno(err, STASIS_REFUSED, "write a ticket");
	if (fcntl(fd, F_ADD_SEALS, SEALS) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "seal a ticket");
	*ret_fd = fd_steal(&fd);
	return 0;
}

int stasis_wire_ticket_read(int fd, enum stasis_wire_ticket_verdict *ret_verdict,
			    struct stasis_wire_ticket *ret_ticket, struct stasis_error *err)
{
	uint8_t bytes[STASIS_WIRE_TICKET_BYTES + 1];
	struct stat status;
	ssize_t byte_count;
	int seals;

	if (fstat(fd, &status) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "look at descriptor %d", fd);
	if (!S_ISREG(status.st_mode)) {
		*ret_verdict = STASIS_WIRE_TICKET_FOREIGN;
		return 0;
	}
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & SEALS) != SEALS)
		return stasis_fail(err, STASIS_REFUSED,
				   "descriptor %d is a file that is not sealed as a ticket is", fd);
	do {
		byte_count = pread(fd, bytes, sizeof(bytes), 0);
	} while (byte_count < 0 && errno == EINTR);
	if (byte_count < 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "read the ticket of descriptor %d",
					 fd);
	if (stasis_wire_ticket_decode(bytes, (size_t)byte_count, ret_ticket, err) != 0) {
		stasis_error_context(err, "descriptor %d", fd);
		return -1;
	}
	*ret_verdict = STASIS_WIRE_TICKET_OURS;
	return 0;
}
