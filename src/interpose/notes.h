#ifndef STASIS_INTERPOSE_NOTES_H
#define STASIS_INTERPOSE_NOTES_H

/*
 * What was passed through though nothing is known about it: entries of a driver newer than our list, a
 * second libcuda. Kept for the report; nothing is printed. Any thread.
 */

#include <stdint.h>

#define STASIS_NOTES_MAX 256

/* Keeps the name, once; names beyond the table are counted only. `name` may be any string, or NULL. */
void stasis_notes_add(const char *name);

/* The number of names, or of attempts beyond the table. */
uint32_t stasis_notes_count(void);
uint32_t stasis_notes_lost(void);

/* Copies the name with its NUL; 0 if there is none of that index. */
int stasis_notes_get(uint32_t index, char ret_name[64]);

#endif
