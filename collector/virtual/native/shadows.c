#include "shadows.h"
#include <string.h>
void keep_shadow(void *device, const void *host, size_t bytes) {}
void move_shadow(void *to, const void *from, size_t bytes) {}
void fill_shadow(void *device, int value, size_t bytes) {}
int read_shadow(void *host, const void *device, size_t bytes) { memset(host, 0, bytes); return 0; }
void forget(const void *device, size_t bytes) {}
void launch_writes(void **arguments) {}
