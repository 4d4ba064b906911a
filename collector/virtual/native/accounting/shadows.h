/* shadows.c: small data of the host that survives on the device. */
#ifndef SHADOWS_H
#define SHADOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHADOW_BYTES ((size_t)1 << 20) /* the largest upload that is kept */

void keep_shadow(void *device, const void *host, size_t bytes);
void move_shadow(void *to, const void *from, size_t bytes);
void fill_shadow(void *device, int value, size_t bytes);
/* Writes zeros where nothing is known; whether all of it was known. */
bool read_shadow(void *host, const void *device, size_t bytes);
bool any_shadow(void);
void forget(const void *device, size_t bytes);
/* Where a kernel may write: to any address among its arguments, or only to the
 * one that its first or third argument begins with. */
typedef enum { ANY_ADDRESS, FIRST_ARGUMENT, THIRD_ARGUMENT } writes_t;
void launch_writes(void **arguments, writes_t writes);

#endif
