#ifndef STASIS_H
#define STASIS_H

/*
 * Stasis: checkpoint and restore for CUDA programs on Linux. The public C interface: everything that the
 * command line can do.
 */

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What became of the target. The command line exits with the same numbers; with several targets it is
 * the highest that counts.
 */
enum stasis_status {
	STASIS_OK = 0,        /* done */
	STASIS_REFUSED = 1,   /* failed or refused; the targets run as before */
	STASIS_USAGE = 2,     /* wrong usage; nothing was touched */
	STASIS_SUSPENDED = 3, /* failed; the targets are suspended and intact */
	STASIS_LOST = 4,      /* a target was lost, or its fate is unknown */
	STASIS_BAD_IMAGE = 5, /* the image is bad; the targets are as they were */
	STASIS_INTERNAL = 70, /* a bug of our own */
};

#ifdef __cplusplus
}
#endif

#endif
