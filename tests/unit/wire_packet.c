/*
 * Description: messages arrive whole with exactly their descriptors or not at all; what is refused leaves no
 * descriptor open, a wait ends at its deadline, and a side that is gone raises no signal.
 */

#include "unit.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "wire/packet.h"

#define SOON_NS (20 * STASIS_NS_PER_MS)
#define LONG_NS (20 * STASIS_NS_PER_S)

struct pair {
	int near_fd;
	int far_fd;
};

static struct stasis_wire_message message;
static struct stasis_wire_message received;

static struct pair pair_open(void)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	return (struct pair){fds[0], fds[1]};
}

static void cleanup_pair(struct pair *pair)
{
	cleanup_fd(&pair->near_fd);
	cleanup_fd(&pair->far_fd);
}

static size_t open_count(void)
{
	CLEANUP(dir) DIR *dir = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(dir);
	while (readdir(dir)) /* NOLINT(concurrency-mt-unsafe): this program has one thread */
		count++;
	return count;
}

static void exports_begin(uint32_t count)
{
	memset(&message, 0, sizeof(message));
	message.kind = STASIS_WIRE_REPLY;
	message.phase = STASIS_WIRE_SAVE_ALLOCATIONS;
	message.sequence = 1;
	message.descriptor_count = count;
	message.exports.count = count;
	for (uint32_t i = 0; i < count && i < STASIS_WIRE_DESCRIPTORS_MAX; i++)
		message.exports.items[i].bytes = 4096;
}

static int receive(int fd, struct stasis_wire_descriptors *descriptors, bool *is_closed,
		   struct stasis_error *err)
{
	return stasis_wire_receive(fd, &received, descriptors, is_closed,
				   stasis_deadline_after_ns(SOON_NS), err);
}

/* A message as a program without our rules could send it. */
static void raw_send(int fd, const void *bytes, size_t byte_count, const int *fds, size_t fd_count)
{
	struct iovec part = {(void *)(uintptr_t)bytes, byte_count};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(200 * sizeof(int))] = {0};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	struct cmsghdr *rights;

	if (fd_count > 0) {
		header.msg_control = control;
		header.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		rights = CMSG_FIRSTHDR(&header);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(rights), fds, fd_count * sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &header, 0), (ssize_t)byte_count);
}

/* The message as it is, with `fd_count` descriptors, is refused and leaves nothing open. */
static void raw_refused(size_t fd_count, const char *text)
{
	CLEANUP(pair) struct pair pair = pair_open();
	CLEANUP(fd) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct stasis_wire_descriptors descriptors = {0};
	struct stasis_error err = STASIS_ERROR_INIT;
	uint8_t bytes[STASIS_WIRE_MESSAGE_BYTES_MAX];
	size_t byte_count = 0;
	bool is_closed = false;
	size_t before;
	int fds[200];

	for (size_t i = 0; i < ARRAY_COUNT(fds); i++)
		fds[i] = null;
	assert_done(stasis_wire_encode(&message, bytes, &byte_count, &err), &err);
	raw_send(pair.near_fd, bytes, byte_count, fds, fd_count);
	before = open_count();
	assert_refused(receive(pair.far_fd, &descriptors, &is_closed, &err), &err, STASIS_REFUSED,
		       text);
	assert_int_equal(open_count(), before);
	assert_int_equal(descriptors.count, 0);
}

static void descriptors_arrive_in_order(void **state)
{
	CLEANUP(pair) struct pair pair = pair_open();
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_wire_descriptors descriptors = {0};
	uint64_t deadline_ns = stasis_deadline_after_ns(LONG_NS);
	int fds[STASIS_WIRE_DESCRIPTORS_MAX];
	int pipe_fds[2];
	bool is_closed = true;
	char letter = 0;
	size_t before;

	(void)state;
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	for (size_t i = 0; i < ARRAY_COUNT(fds); i++)
		fds[i] = pipe_fds[0];
	fds[5] = pipe_fds[1];
	exports_begin(STASIS_WIRE_DESCRIPTORS_MAX);
	assert_done(stasis_wire_send(pair.near_fd, &message, fds, deadline_ns, &err), &err);
	before = open_count();
	assert_done(stasis_wire_receive(pair.far_fd, &received, &descriptors, &is_closed,
					deadline_ns, &err),
		    &err);
	assert_false(is_closed);
	assert_int_equal(descriptors.count, STASIS_WIRE_DESCRIPTORS_MAX);
	assert_int_equal(open_count(), before + STASIS_WIRE_DESCRIPTORS_MAX);
	for (uint32_t i = 0; i < descriptors.count; i++)
		assert_int_equal(fcntl(descriptors.fds[i], F_GETFD), FD_CLOEXEC);
	assert_int_equal(write(descriptors.fds[5], "x", 1), 1);
	assert_int_equal(read(descriptors.fds[63], &letter, 1), 1);
	assert_int_equal(letter, 'x');
	(void)close(stasis_wire_descriptors_take(&descriptors, 0));
	assert_int_equal(stasis_wire_descriptors_take(&descriptors, 64), -1);
	stasis_wire_descriptors_close(&descriptors);
	assert_int_equal(open_count(), before);
	(void)close(pipe_fds[0]);
	(void)close(pipe_fds[1]);
}

static void wrong_counts_are_refused(void **state)
{
	(void)state;
	exports_begin(2);
	raw_refused(1, "says 2 descriptors and carries 1");
	raw_refused(0, "says 2 descriptors and carries 0");
	raw_refused(3, "says 2 descriptors and carries 3");
	raw_refused(100, "did not all arrive");
	memset(&message, 0, sizeof(message));
	message.kind = STASIS_WIRE_REQUEST;
	message.phase = STASIS_WIRE_OPEN;
	message.sequence = 1;
	raw_refused(1, "says 0 descriptors and carries 1");
}

static void strangers_are_refused(void **state)
{
	static const uint8_t long_bytes[STASIS_WIRE_MESSAGE_BYTES_MAX + 1];
	CLEANUP(pair) struct pair pair = pair_open();
	CLEANUP(fd) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct stasis_wire_descriptors descriptors = {0};
	struct stasis_error err = STASIS_ERROR_INIT;
	bool is_closed = false;
	size_t before = open_count();
	int on = 1;

	(void)state;
	raw_send(pair.near_fd, long_bytes, sizeof(long_bytes), &null, 1);
	assert_refused(receive(pair.far_fd, &descriptors, &is_closed, &err), &err, STASIS_REFUSED,
		       "more than 16384 bytes");
	err = (struct stasis_error)STASIS_ERROR_INIT;
	raw_send(pair.near_fd, "GET /", 5, &null, 1);
	assert_refused(receive(pair.far_fd, &descriptors, &is_closed, &err), &err, STASIS_REFUSED,
		       "not a message of stasis");
	err = (struct stasis_error)STASIS_ERROR_INIT;
	assert_int_equal(setsockopt(pair.far_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
	raw_send(pair.near_fd, "GET /", 5, &null, 1);
	assert_refused(receive(pair.far_fd, &descriptors, &is_closed, &err), &err, STASIS_REFUSED,
		       "more than bytes and descriptors");
	assert_int_equal(open_count(), before);
}

/* The receiver has no room for descriptors: the kernel drops them, and says so. */
static void exhaustion_is_said(void **state)
{
	struct rlimit old;
	struct rlimit low;

	(void)state;
	exports_begin(STASIS_WIRE_DESCRIPTORS_MAX);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	low.rlim_cur = 32;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	raw_refused(STASIS_WIRE_DESCRIPTORS_MAX, "ulimit -n");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
}

static void waits_end(void **state)
{
	CLEANUP(pair) struct pair pair = pair_open();
	struct stasis_wire_descriptors descriptors = {0};
	struct stasis_error err = STASIS_ERROR_INIT;
	bool is_closed = false;
	int result;

	(void)state;
	assert_refused(receive(pair.far_fd, &descriptors, &is_closed, &err), &err, STASIS_REFUSED,
		       "wait for a message from the other side");
	assert_int_equal(err.os_errno, ETIMEDOUT);
	err = (struct stasis_error)STASIS_ERROR_INIT;
	exports_begin(0);
	do {
		result = stasis_wire_send(pair.near_fd, &message, NULL,
					  stasis_deadline_after_ns(SOON_NS), &err);
	} while (result == 0);
	assert_refused(result, &err, STASIS_REFUSED, "wait for the other side to take a message");
	assert_int_equal(err.os_errno, ETIMEDOUT);
}

static void closing_is_seen(void **state)
{
	CLEANUP(pair) struct pair pair = pair_open();
	CLEANUP(pair) struct pair reset = pair_open();
	struct stasis_wire_descriptors descriptors = {0};
	struct stasis_error err = STASIS_ERROR_INIT;
	bool is_closed = false;

	(void)state;
	exports_begin(0);
	cleanup_fd(&pair.near_fd);
	assert_done(receive(pair.far_fd, &descriptors, &is_closed, &err), &err);
	assert_true(is_closed);
	assert_refused(stasis_wire_send(pair.far_fd, &message, NULL, STASIS_NO_DEADLINE, &err),
		       &err, STASIS_REFUSED, "send a message");
	assert_int_equal(err.os_errno, EPIPE);
	/* Closed with a message of ours unread: the kernel resets. */
	err = (struct stasis_error)STASIS_ERROR_INIT;
	is_closed = false;
	assert_done(stasis_wire_send(reset.far_fd, &message, NULL, STASIS_NO_DEADLINE, &err), &err);
	cleanup_fd(&reset.near_fd);
	assert_done(receive(reset.far_fd, &descriptors, &is_closed, &err), &err);
	assert_true(is_closed);
	assert_refused(receive(-1, &descriptors, &is_closed, &err), &err, STASIS_REFUSED,
		       "receive a message");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptors_arrive_in_order),
		cmocka_unit_test(wrong_counts_are_refused),
		cmocka_unit_test(strangers_are_refused),
		cmocka_unit_test(exhaustion_is_said),
		cmocka_unit_test(waits_end),
		cmocka_unit_test(closing_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
