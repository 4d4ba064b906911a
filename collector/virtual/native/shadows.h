/* shadows.c: small data of the host that survives on the device. */
#ifndef SHADOWS_H
#define SHADOWS_H

#include <stddef.h>
#include <stdint.h>

void keep_shadow(void *device, const void *host, size_t bytes);
void move_shadow(void *to, const void *from, size_t bytes);
void fill_shadow(void *device, int value, size_t bytes);
/* Writes zeros where nothing is known; 1 where all of it was. */
int read_shadow(void *host, const void *device, size_t bytes);
void forget(const void *device, size_t bytes);
void launch_writes(void **arguments);

#endif
