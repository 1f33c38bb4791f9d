/*
 * Description: tickets and control files keep what they say, in memory files that are sealed; whatever is
 * damaged, unsealed or no file of ours is told apart, and the holder's descriptor is left as it was.
 */

#include "unit.h"

#include <sys/mman.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "wire/control.h"
#include "wire/ticket.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static const struct stasis_wire_ticket ticket = {
	.kind = STASIS_WIRE_TICKET_MULTICAST,
	.participant = {{1, 2, 3}},
	.object = {{4, 5, 6}},
	.bytes = UINT64_C(0x123456789a),
	.device_count = 8,
	.handle_types = 1,
	.flags = UINT64_C(0x1122334455667788),
};

static int file_make(const void *bytes, size_t byte_count, int seals)
{
	int fd = memfd_create("stasis-ticket", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, byte_count), (ssize_t)byte_count);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void read_refused(int fd, const char *text)
{
	enum stasis_wire_ticket_verdict verdict = STASIS_WIRE_TICKET_FOREIGN;
	struct stasis_wire_ticket copy = {.bytes = 77};
	struct stasis_error err = STASIS_ERROR_INIT;

	assert_refused(stasis_wire_ticket_read(fd, &verdict, &copy, &err), &err, STASIS_REFUSED,
		       text);
	assert_int_equal(copy.bytes, 77);
}

static void tickets_keep_what_they_say(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	enum stasis_wire_ticket_verdict verdict = STASIS_WIRE_TICKET_FOREIGN;
	struct stasis_wire_ticket copy = {0};
	CLEANUP(fd) int fd = -1;

	(void)state;
	assert_done(stasis_wire_ticket_create(&ticket, &fd, &err), &err);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GET_SEALS) & SEALS, SEALS);
	assert_int_equal(lseek(fd, 9, SEEK_SET), 9);
	assert_done(stasis_wire_ticket_read(fd, &verdict, &copy, &err), &err);
	assert_int_equal(verdict, STASIS_WIRE_TICKET_OURS);
	assert_int_equal(copy.kind, ticket.kind);
	assert_true(stasis_id_equal(&copy.participant, &ticket.participant));
	assert_true(stasis_id_equal(&copy.object, &ticket.object));
	assert_int_equal(copy.bytes, ticket.bytes);
	assert_int_equal(copy.device_count, ticket.device_count);
	assert_int_equal(copy.handle_types, ticket.handle_types);
	assert_int_equal(copy.flags, ticket.flags);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 9);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(ftruncate(fd, 4), -1);
}

static void damage_never_passes(void **state)
{
	uint8_t bytes[STASIS_WIRE_TICKET_BYTES];
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	assert_done(stasis_wire_ticket_encode(&ticket, bytes, &err), &err);
	for (size_t i = 0; i < sizeof(bytes); i++) {
		CLEANUP(fd) int fd = -1;

		bytes[i] ^= 0x10;
		fd = file_make(bytes, sizeof(bytes), SEALS);
		read_refused(fd, "refused");
		bytes[i] ^= 0x10;
	}
	for (size_t length = 0; length < sizeof(bytes); length++) {
		CLEANUP(fd) int fd = file_make(bytes, length, SEALS);

		read_refused(fd, "refused");
	}
}

static void what_is_no_ticket_is_told_apart(void **state)
{
	enum stasis_wire_ticket_verdict verdict = STASIS_WIRE_TICKET_OURS;
	struct stasis_wire_ticket copy;
	uint8_t bytes[STASIS_WIRE_TICKET_BYTES + 1] = {0};
	struct stasis_error err = STASIS_ERROR_INIT;
	CLEANUP(fd) int device = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CLEANUP(fd) int link = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CLEANUP(fd) int folder = unit_folder_make();
	CLEANUP(fd) int unsealed = -1;
	CLEANUP(fd) int longer = -1;
	CLEANUP(fd) int file = -1;

	(void)state;
	assert_done(stasis_wire_ticket_read(device, &verdict, &copy, &err), &err);
	assert_int_equal(verdict, STASIS_WIRE_TICKET_FOREIGN);
	verdict = STASIS_WIRE_TICKET_OURS;
	assert_done(stasis_wire_ticket_read(link, &verdict, &copy, &err), &err);
	assert_int_equal(verdict, STASIS_WIRE_TICKET_FOREIGN);
	assert_done(stasis_wire_ticket_encode(&ticket, bytes, &err), &err);
	unsealed = file_make(bytes, STASIS_WIRE_TICKET_BYTES, F_SEAL_SHRINK | F_SEAL_GROW);
	read_refused(unsealed, "not sealed");
	longer = file_make(bytes, sizeof(bytes), SEALS);
	read_refused(longer, "too many");
	unit_file_make(folder, "plain", "not a ticket at all");
	file = openat(folder, "plain", O_RDONLY | O_CLOEXEC);
	read_refused(file, "not sealed");
	read_refused(-1, "descriptor -1");
}

static void wrong_tickets_are_not_made(void **state)
{
	struct stasis_wire_ticket wrong = ticket;
	uint8_t bytes[STASIS_WIRE_TICKET_BYTES];
	struct stasis_error err = STASIS_ERROR_INIT;
	int fd = -7;

	(void)state;
	wrong.bytes = 0;
	assert_refused(stasis_wire_ticket_create(&wrong, &fd, &err), &err, STASIS_REFUSED,
		       "without bytes");
	assert_int_equal(fd, -7);
	wrong = ticket;
	wrong.kind = (enum stasis_wire_ticket_kind)9;
	err = (struct stasis_error)STASIS_ERROR_INIT;
	assert_refused(stasis_wire_ticket_encode(&wrong, bytes, &err), &err, STASIS_REFUSED,
		       "no kind");
	wrong = ticket;
	wrong.device_count = 0;
	err = (struct stasis_error)STASIS_ERROR_INIT;
	assert_refused(stasis_wire_ticket_encode(&wrong, bytes, &err), &err, STASIS_REFUSED,
		       "no devices");
	wrong = ticket;
	wrong.kind = STASIS_WIRE_TICKET_ALLOCATION;
	err = (struct stasis_error)STASIS_ERROR_INIT;
	assert_refused(stasis_wire_ticket_encode(&wrong, bytes, &err), &err, STASIS_REFUSED,
		       "no multicast object");
}

static void control_files_are_read_and_written_again(void **state)
{
	static struct stasis_wire_control control = {.door_fd = 3, .pid = 42, .build = "b1"};
	static struct stasis_wire_control copy;
	struct stasis_error err = STASIS_ERROR_INIT;
	CLEANUP(fd) int fd = -1;
	CLEANUP(fd) int sealed = -1;

	(void)state;
	assert_done(stasis_wire_control_create(&control, &fd, &err), &err);
	assert_int_equal(ftruncate(fd, 4), -1);
	control.phase = STASIS_WIRE_ARM;
	(void)snprintf(control.journal, sizeof(control.journal), "/run/journal");
	assert_done(stasis_wire_control_write(fd, &control, &err), &err);
	assert_done(stasis_wire_control_read(fd, &copy, &err), &err);
	assert_memory_equal(&copy, &control, sizeof(copy));
	/* What its writer left half written stays damaged, however often it is read. */
	assert_int_equal(pwrite(fd, "\377", 1, 300), 1);
	assert_refused(stasis_wire_control_read(fd, &copy, &err), &err, STASIS_REFUSED,
		       "control file refused");
	err = (struct stasis_error)STASIS_ERROR_INIT;
	sealed = file_make("", 1, SEALS);
	assert_refused(stasis_wire_control_read(sealed, &copy, &err), &err, STASIS_REFUSED,
		       "not sealed as one");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(tickets_keep_what_they_say),
		cmocka_unit_test(damage_never_passes),
		cmocka_unit_test(what_is_no_ticket_is_told_apart),
		cmocka_unit_test(wrong_tickets_are_not_made),
		cmocka_unit_test(control_files_are_read_and_written_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
