/*
 * See kept.h. The items are sorted by object, as topologies are, so that a search halves. What lies in a socket is one
 * message an item: its object and size, and one descriptor.
 */

#include "group/kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

struct parcel {
	struct stasis_id object;
	uint64_t bytes;
};

union control_room {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* Where the object is, or would be put. */
static size_t place_of(const struct stasis_kept *kept, const struct stasis_id *object)
{
	size_t low = 0;
	size_t high = kept->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (memcmp(&kept->items[middle].object, object, sizeof(*object)) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct stasis_kept_item *stasis_kept_find(const struct stasis_kept *kept,
						const struct stasis_id *object)
{
	size_t place = place_of(kept, object);

	return place < kept->count && stasis_id_equal(&kept->items[place].object, object)
		       ? &kept->items[place]
		       : NULL;
}

static int room_make(struct stasis_kept *kept, struct stasis_error *err)
{
	size_t room = kept->room ? 2 * kept->room : 64;
	struct stasis_kept_item *items;

	if (kept->count < kept->room)
		return 0;
	items = realloc(kept->items, room * sizeof(*items));
	if (!items)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "keep descriptors");
	kept->items = items;
	kept->room = room;
	return 0;
}

int stasis_kept_add(struct stasis_kept *kept, const struct stasis_id *object, uint64_t bytes,
		    int fd, struct stasis_error *err)
{
	size_t place = place_of(kept, object);
	struct stasis_kept_item item = {.object = *object, .bytes = bytes, .fd = fd};

	if (place < kept->count && stasis_id_equal(&kept->items[place].object, object)) {
		cleanup_fd(&kept->items[place].fd);
		kept->items[place] = item;
		return 0;
	}
	if (room_make(kept, err) != 0) {
		cleanup_fd(&fd);
		return -1;
	}
	memmove(&kept->items[place + 1], &kept->items[place],
		(kept->count - place) * sizeof(kept->items[0]));
	kept->items[place] = item;
	kept->count++;
	return 0;
}

int stasis_kept_take(struct stasis_kept *kept, const struct stasis_id *object)
{
	size_t place = place_of(kept, object);
	int fd;

	if (place == kept->count || !stasis_id_equal(&kept->items[place].object, object))
		return -1;
	fd = kept->items[place].fd;
	kept->count--;
	memmove(&kept->items[place], &kept->items[place + 1],
		(kept->count - place) * sizeof(kept->items[0]));
	return fd;
}

void stasis_kept_close(struct stasis_kept *kept)
{
	for (size_t i = 0; i < kept->count; i++)
		cleanup_fd(&kept->items[i].fd);
	free(kept->items);
	*kept = (struct stasis_kept){.items = NULL};
}

static int item_send(const struct stasis_kept_item *item, int socket_fd, struct stasis_error *err)
{
	struct parcel parcel = {.object = item->object, .bytes = item->bytes};
	struct iovec part = {.iov_base = &parcel, .iov_len = sizeof(parcel)};
	union control_room control = {.bytes = {0}};
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &item->fd, sizeof(int));
	if (sendmsg(socket_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return stasis_fail_errno(err, STASIS_REFUSED,
					 "leave descriptors with the supervisor");
	return 0;
}

int stasis_kept_send(const struct stasis_kept *kept, int socket_fd, struct stasis_error *err)
{
	for (size_t i = 0; i < kept->count; i++) {
		if (item_send(&kept->items[i], socket_fd, err) != 0)
			return -1;
	}
	return 0;
}

/* *ret_fd is -1 where nothing is left. */
static int parcel_receive(int socket_fd, struct parcel *ret_parcel, int *ret_fd,
			  struct stasis_error *err)
{
	struct iovec part = {.iov_base = ret_parcel, .iov_len = sizeof(*ret_parcel)};
	union control_room control = {.bytes = {0}};
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct cmsghdr *header;
	ssize_t bytes = recvmsg(socket_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*ret_fd = -1;
	if (bytes == 0 || (bytes < 0 && errno == EAGAIN))
		return 0;
	if (bytes < 0)
		return stasis_fail_errno(err, STASIS_REFUSED,
					 "take the descriptors that were kept");
	header = bytes == (ssize_t)sizeof(*ret_parcel) ? CMSG_FIRSTHDR(&message) : NULL;
	if (!header || header->cmsg_type != SCM_RIGHTS)
		return stasis_fail(err, STASIS_REFUSED,
				   "take the descriptors that were kept: they are damaged");
	memcpy(ret_fd, CMSG_DATA(header), sizeof(int));
	return 0;
}

int stasis_kept_receive(struct stasis_kept *kept, int socket_fd, struct stasis_error *err)
{
	for (;;) {
		struct parcel parcel;
		int fd;

		if (parcel_receive(socket_fd, &parcel, &fd, err) != 0)
			return -1;
		if (fd < 0)
			return 0;
		if (stasis_kept_add(kept, &parcel.object, parcel.bytes, fd, err) != 0)
			return -1;
	}
}
