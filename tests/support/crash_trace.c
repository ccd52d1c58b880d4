/* Records what a program does to the files below a folder, for tests/support/crashes.py.
 *
 * Loaded by LD_PRELOAD. CRASH_ROOT is the folder, CRASH_LOG the file of records, each of them:
 * kind (1 byte), length of path (4), path, number (8), length of data (8), data. Numbers are in the machine's
 * own order. Before a file other than SQLite's is synced its whole content is recorded, since C++ streams write
 * past these functions.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REAL(name, type) ((type)dlsym(RTLD_NEXT, name))
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int log_file = -1;

static void put(const void *data, size_t size) {
  while (size) {
    ssize_t done = syscall(SYS_write, log_file, data, size);
    if (done <= 0) abort();
    data = (const char *)data + done;
    size -= done;
  }
}

static int ours(const char *path) {
  const char *root = getenv("CRASH_ROOT");
  return root && !strncmp(path, root, strlen(root)) && !strstr(path, "-shm");
}

static void record(char kind, const char *path, int64_t number, const void *data, int64_t size) {
  uint32_t length = strlen(path);
  pthread_mutex_lock(&turn);
  if (log_file < 0) log_file = syscall(SYS_openat, AT_FDCWD, getenv("CRASH_LOG"), O_WRONLY | O_CREAT | O_APPEND, 0600);
  put(&kind, 1);
  put(&length, sizeof length);
  put(path, length);
  put(&number, sizeof number);
  put(&size, sizeof size);
  put(data, size);
  pthread_mutex_unlock(&turn);
}

static int path_of(int fd, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, 4095);
  path[size > 0 ? size : 0] = 0;
  return size > 0 && ours(path);
}

static int opened(int folder, const char *path, int flags, mode_t mode) {
  struct stat before;
  int there = !fstatat(folder, path, &before, 0);
  int fd = syscall(SYS_openat, folder, path, flags, mode);
  char full[4096];
  if (fd >= 0 && path_of(fd, full) && !(flags & O_DIRECTORY)) {
    if (!there) record('O', full, 0, "", 0);
    else if (flags & O_TRUNC) record('T', full, 0, "", 0);
  }
  return fd;
}

#define MODE(flags) va_list rest; va_start(rest, flags); mode_t mode = (flags & O_CREAT) ? va_arg(rest, int) : 0; va_end(rest)
int open(const char *path, int flags, ...) { MODE(flags); return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags); return opened(AT_FDCWD, path, flags, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE(flags); return opened(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE(flags); return opened(folder, path, flags, mode); }

ssize_t write(int fd, const void *data, size_t size) {
  char path[4096];
  int known = path_of(fd, path);
  off_t at = known ? lseek(fd, 0, SEEK_CUR) : 0;
  ssize_t done = syscall(SYS_write, fd, data, size);
  if (known && done > 0) record('W', path, at, data, done);
  return done;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) {
  char path[4096];
  ssize_t done = syscall(SYS_pwrite64, fd, data, size, at);
  if (done > 0 && path_of(fd, path)) record('W', path, at, data, done);
  return done;
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return pwrite64(fd, data, size, at); }

int ftruncate64(int fd, off_t size) {
  char path[4096];
  int failed = syscall(SYS_ftruncate, fd, size);
  if (!failed && path_of(fd, path)) record('T', path, size, "", 0);
  return failed;
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

static void contents(int fd, const char *path) {
  struct stat state;
  char *name = strrchr(path, '/');
  if (!name || !strncmp(name, "/linkstore.db", 13) || fstat(fd, &state)) return;
  int again = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY, 0);
  char *data = malloc(state.st_size + 1);
  if (again >= 0 && data && pread(again, data, state.st_size, 0) == state.st_size) record('C', path, 0, data, state.st_size);
  free(data);
  if (again >= 0) close(again);
}

static int synced(int fd, long call) {
  char path[4096];
  struct stat state;
  int known = path_of(fd, path);
  int folder = known && !fstat(fd, &state) && S_ISDIR(state.st_mode);
  if (known && !folder) contents(fd, path);
  int failed = syscall(call, fd);
  if (known && !failed) record(folder ? 'D' : 'S', path, 0, "", 0);
  return failed;
}
int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

int rename(const char *from, const char *to) {
  int failed = REAL("rename", int (*)(const char *, const char *))(from, to);
  if (!failed && ours(to)) record('R', from, 0, to, strlen(to));
  return failed;
}

int unlink(const char *path) {
  int failed = REAL("unlink", int (*)(const char *))(path);
  if (!failed && ours(path)) record('U', path, 0, "", 0);
  return failed;
}
