#ifndef STASIS_TESTS_FAKE_PINNED_H
#define STASIS_TESTS_FAKE_PINNED_H

/*
 * What the fake device knows of pinned memory. Called under its lock; the counts of fake_device.h by anyone.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pins `memory`, or where that is NULL memory of the fake's own, and returns it; NULL: there is no more room. */
uint8_t *t_fake_pinned_add(uint8_t *memory, size_t bytes);

/* False: it is not pinned, or in the other way. */
bool t_fake_pinned_remove(const uint8_t *memory, bool is_registered);

/* Bytes that begin there; 0: none. */
size_t t_fake_pinned_size(const uint8_t *memory);
bool t_fake_pinned_holds(const uint8_t *memory, size_t bytes);

/* Frees all that is left, and forgets the counts. */
void t_fake_pinned_clear(void);

#endif
