#ifndef SIM_EXPORT_H
#define SIM_EXPORT_H

/*
 * Export descriptors: one end of a socket pair in which a message with the real descriptors waits for
 * ever. Importers look at it and leave it there, so one descriptor serves any number of imports, in any
 * process that it is handed to, and keeps the memory alive by itself. No lock is needed.
 */

#include "driver/abi.h"

#include "compiler.h"

#include <stdbool.h>
#include <stdint.h>

enum sim_export_kind { SIM_EXPORT_MEMORY = 1, SIM_EXPORT_POOL, SIM_EXPORT_DMA_BUF };

struct sim_export {
	uint32_t kind;
	uint32_t handle_types;
	uint32_t location_type;
	int32_t physical_device; /* in the simulated machine; -1: host memory */
	uint64_t bytes;
	uint64_t offset; /* in the file */
	uint64_t usage;  /* allocFlags, as they lie in memory */
};

/* Multicast objects are nowhere; memory always is somewhere. */
static inline bool sim_export_describes_multicast(const struct sim_export *export)
{
	return export->location_type == CU_MEM_LOCATION_TYPE_INVALID;
}

/* claim_fd may be -1. Both stay the caller's. 0 or an errno. */
NODISCARD int sim_export_make(const struct sim_export *export, int memory_fd, int claim_fd,
			      int *ret_fd);
/* Fresh duplicates of the descriptors inside; EINVAL: it is no export descriptor of this kind. */
NODISCARD int sim_export_open(int fd, enum sim_export_kind kind, struct sim_export *ret_export,
			      int *ret_memory_fd, int *ret_claim_fd);

/* Whether this process has a descriptor open that exports a multicast object. */
bool sim_export_is_multicast_held(void);

#endif
