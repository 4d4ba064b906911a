/* Accounting: bytes used, by device and process, in a file that all processes map.
 *
 * Without a file (MEMBOARD_VIRTUAL_ACCOUNTING) a process accounts for itself alone. Processes
 * that died without giving back are dropped when somebody counts. accounting.py
 * reads the same layout.
 */
#define _GNU_SOURCE
#include "vgpu.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_PROCESSES 256
#define MAX_CALLS 4096
#define VERSION 2 /* of what follows; accounting.py knows it */

/* What ended stays listed with its peaks until its place is needed. */
typedef struct {
  int32_t pid, living;
  uint64_t born; /* in ticks since the machine started; a pid may come again */
  uint64_t used[MAX_DEVICES], peak[MAX_DEVICES];
} process_t;

typedef struct {
  char name[88];
  uint64_t count;
} counted_t;

typedef struct {
  char magic[8];
  uint32_t version, devices;
  uint64_t memory;
  union {
    pthread_mutex_t mutex;
    char room[64];
  } lock;
  process_t processes[MAX_PROCESSES];
  counted_t calls[MAX_CALLS];
} accounting_t;

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static accounting_t *accounting;
static process_t *own;
static unsigned forks;
static bool used_cuda, forked;

unsigned generation(void) { return forks; }
bool forked_after_use(void) { return forked; }

static void set_up(accounting_t *new) {
  pthread_mutexattr_t shared;
  pthread_mutexattr_init(&shared);
  pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&new->lock.mutex, &shared);
  new->version = VERSION;
  new->devices = (uint32_t)spec()->count;
  new->memory = spec()->memory;
  memcpy(new->magic, "VGPUACCT", 8);
}

/* A new file, or one of ours: what else there is in a user's file stays there. */
static bool may_be_ours(int file) {
  static const char blank[8];
  char magic[8];
  struct stat status;
  if (fstat(file, &status)) return false;
  errno = EPERM;
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid()) return false;
  errno = EEXIST;
  ssize_t n = pread(file, magic, sizeof magic, 0);
  if (n != sizeof magic) return n == 0;
  return !memcmp(magic, "VGPUACCT", 8) || !memcmp(magic, blank, 8);
}

static accounting_t *map_file(const char *path) {
  /* No link is followed, and no pipe waited for. */
  int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (file < 0) return NULL;
  accounting_t *new = MAP_FAILED;
  flock(file, LOCK_EX);
  if (may_be_ours(file) && !ftruncate(file, sizeof *new))
    new = mmap(NULL, sizeof *new, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (new != MAP_FAILED && (memcmp(new->magic, "VGPUACCT", 8) || new->version != VERSION)) {
    memset(new, 0, sizeof *new);
    set_up(new);
  }
  int wrong = errno;
  flock(file, LOCK_UN); /* the mapping would hold it on */
  close(file);
  errno = wrong;
  return new == MAP_FAILED ? NULL : new;
}

static accounting_t *the_accounting(void) {
  accounting_t *mapped = __atomic_load_n(&accounting, __ATOMIC_ACQUIRE);
  if (mapped) return mapped;
  pthread_mutex_lock(&opening);
  if (!accounting) {
    const char *path = getenv("MEMBOARD_VIRTUAL_ACCOUNTING");
    mapped = path && *path ? map_file(path) : NULL;
    if (!mapped) {
      if (path && *path)
        fprintf(stderr, "virtual GPU: no accounting at %s (%s); other processes' memory "
                "is not seen\n", path, strerror(errno));
      mapped = mmap(NULL, sizeof *mapped, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      if (mapped == MAP_FAILED) abort();
      set_up(mapped);
    }
    __atomic_store_n(&accounting, mapped, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&opening);
  return accounting;
}

static accounting_t *locked(void) {
  accounting_t *all = the_accounting();
  if (pthread_mutex_lock(&all->lock.mutex) == EOWNERDEAD)
    pthread_mutex_consistent(&all->lock.mutex);
  return all;
}

static void unlocked(accounting_t *all) { pthread_mutex_unlock(&all->lock.mutex); }

/* When a living process was born; 0 for one that ended, reaped or not. */
static uint64_t birth(int pid) {
  char path[32], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return kill(pid, 0) && errno == ESRCH ? 0 : 1;
  ssize_t n = read(file, text, sizeof text - 1);
  close(file);
  if (n <= 0) return 0;
  text[n] = 0;
  char *at = strrchr(text, ')'), state = 'X'; /* the name may hold anything */
  unsigned long long born = 0;
  if (at) sscanf(at + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state, &born);
  return state == 'Z' || state == 'X' ? 0 : born ? born : 1;
}

static void ended(process_t *process) {
  process->living = 0;
  memset(process->used, 0, sizeof process->used);
}

static void drop_dead(accounting_t *all) {
  for (int i = 0; i < MAX_PROCESSES; ++i) {
    process_t *process = &all->processes[i];
    if (process->living && process != own && birth(process->pid) != process->born) ended(process);
  }
}

static void add(process_t *process, int device, size_t bytes) {
  process->used[device] += bytes;
  if (process->used[device] > process->peak[device]) process->peak[device] = process->used[device];
}

/* Under the lock. Without a free entry the process is alone with its memory. */
static process_t *self(accounting_t *all) {
  static process_t unlisted;
  if (own) return own;
  int pid = getpid();
  drop_dead(all);
  for (int i = 0; i < MAX_PROCESSES && !own; ++i)
    if (!all->processes[i].pid) own = &all->processes[i];
  for (int i = 0; i < MAX_PROCESSES && !own; ++i)
    if (!all->processes[i].living) own = &all->processes[i];
  if (!own) own = &unlisted;
  memset(own, 0, sizeof *own);
  own->born = birth(pid);
  own->pid = pid;
  own->living = 1;
  used_cuda = true;
  return own;
}

static size_t total(const accounting_t *all, int device) {
  size_t sum = 0;
  for (int i = 0; i < MAX_PROCESSES; ++i)
    if (all->processes[i].living) sum += all->processes[i].used[device];
  return sum;
}

/* `bytes` of a (physical) device, or OUT_OF_MEMORY. */
int take(int device, size_t bytes) {
  accounting_t *all = locked();
  process_t *process = self(all);
  size_t capacity = spec()->memory;
  if (bytes > capacity || total(all, device) + bytes > capacity) drop_dead(all);
  bool fits = bytes <= capacity && total(all, device) + bytes <= capacity;
  if (fits) add(process, device, bytes);
  unlocked(all);
  return fits ? SUCCESS : OUT_OF_MEMORY;
}

/* Memory from before a fork is the parent's, who gives it back. */
void give(int device, size_t bytes, unsigned taken_in) {
  if (taken_in != forks) return;
  accounting_t *all = locked();
  if (own) own->used[device] -= bytes < own->used[device] ? bytes : own->used[device];
  unlocked(all);
}

size_t used_by_all(int device) {
  accounting_t *all = locked();
  drop_dead(all);
  size_t sum = total(all, device);
  unlocked(all);
  return sum;
}

/* The context is there even where it does not fit: what follows says so. */
void context_made(int device) {
  accounting_t *all = locked();
  add(self(all), device, spec()->context);
  unlocked(all);
}

int users_of(int device, user_t *users, int room) {
  accounting_t *all = locked();
  int n = 0;
  drop_dead(all);
  for (int i = 0; i < MAX_PROCESSES && n < room; ++i)
    if (all->processes[i].living && all->processes[i].used[device])
      users[n++] = (user_t){all->processes[i].pid, all->processes[i].used[device]};
  unlocked(all);
  return n;
}

/* calls.c: where calls of this name are counted, or NULL where there is no room. */
uint64_t *counter(const char *library, const char *name) {
  char whole[sizeof accounting->calls[0].name] = {0};
  snprintf(whole, sizeof whole, "%s %s", library, name);
  accounting_t *all = locked();
  uint64_t *slot = NULL;
  for (int i = 0; i < MAX_CALLS && !slot; ++i) {
    counted_t *call = &all->calls[i];
    if (!call->name[0]) memcpy(call->name, whole, sizeof whole);
    if (!strncmp(call->name, whole, sizeof whole)) slot = &call->count;
  }
  unlocked(all);
  return slot;
}

static void before_fork(void) {
  pthread_mutex_lock(&opening);
  if (accounting) locked();
}
static void in_parent(void) {
  if (accounting) unlocked(accounting);
  pthread_mutex_unlock(&opening);
}
/* A robust mutex belongs to a thread of the parent, who lets it go. */
static void in_child(void) {
  ++forks;
  forked = forked || used_cuda;
  own = NULL;
  pthread_mutex_init(&opening, NULL);
}

__attribute__((constructor)) static void across_forks(void) {
  pthread_atfork(before_fork, in_parent, in_child);
}

__attribute__((destructor)) static void at_exit(void) {
  if (!accounting || !own || forked) return;
  accounting_t *all = locked();
  ended(own);
  unlocked(all);
}
