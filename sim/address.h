#ifndef SIM_ADDRESS_H
#define SIM_ADDRESS_H

/*
 * The device's address space: the window that cuInit reserves PROT_NONE, so that a CPU touch of device
 * memory faults as on hardware; reservations in it; and the table of mapped ranges, each with its
 * memory object and the rights of every location. All functions want the core lock held.
 */

#include "memory.h"
#include "table.h"

#define SIM_WINDOW_START 0x7e9000000000ull
#define SIM_WINDOW_END 0x7ef000000000ull

struct sim_range {
	struct sim_span span;
	struct sim_memory *memory; /* a reference is held */
	uint64_t memory_offset;
	CUmemAccess_flags device_rights[SIM_DEVICES_MAX];
	CUmemAccess_flags host_rights;
	bool is_vmm; /* mapped by cuMemMap: rights are the table's alone; else peer access opens it */
	bool is_shown; /* the CPU has a mapping of it */
};

struct sim_reservation {
	struct sim_span span;
	bool is_application; /* made by cuMemAddressReserve */
};

CUresult sim_address_window_reserve(void);

/* hint 0: anywhere. A hint that is taken is not honoured, as with the driver. */
CUresult sim_address_reserve(uint64_t bytes, uint64_t alignment, uint64_t hint, bool is_application,
			     uint64_t *ret_start);
/* INVALID_VALUE unless it is exactly one reservation with nothing mapped. */
CUresult sim_address_free(uint64_t start, uint64_t bytes, bool is_application);
const struct sim_reservation *sim_address_reservation(uint64_t address);

/* Maps onto free, reserved addresses, without any rights; takes a reference of its own. */
CUresult sim_address_map(uint64_t start, uint64_t bytes, struct sim_memory *memory,
			 uint64_t memory_offset, bool is_vmm, struct sim_range **ret_range);
/* Unmaps the ranges in [start, start + bytes): INVALID_VALUE if one is cut, or if there is none. */
CUresult sim_address_unmap(uint64_t start, uint64_t bytes);
/* Of the driver's own: a reservation with the whole object in it. Displace undoes both. */
CUresult sim_address_place(struct sim_memory *memory, struct sim_range **ret_range);
void sim_address_displace(uint64_t start);
/* Which ranges fill [start, start + bytes) without a gap or a cut; else INVALID_VALUE. */
CUresult sim_address_whole(uint64_t start, uint64_t bytes, size_t *ret_first, size_t *ret_count);
/* Rights for the CPU have changed: makes its mapping follow. */
CUresult sim_address_show(struct sim_range *range);
/* Around an eviction: PROT_NONE over every range, and the CPU's mappings back. */
void sim_address_hide_all(void);
CUresult sim_address_show_all(void);

struct sim_range *sim_address_find(uint64_t address); /* NULL: nothing is mapped there */
size_t sim_address_range_count(void);
struct sim_range *sim_address_range_at(size_t index); /* by rising start */

static inline bool sim_address_in_window(uint64_t address)
{
	return address >= SIM_WINDOW_START && address < SIM_WINDOW_END;
}

#endif
