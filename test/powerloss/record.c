/*
 * Records what a process does to the files of one folder, in the order in which it happens, so that a power cut can be
 * played at any moment of it: preloaded into the process, with the folder and the log's path in the environment.
 *
 * One record is appended for each open, write, truncation, removal and renaming after it happened, and two for each
 * sync: one before it starts, one after it ended well. The log is opened for appending and every record is one write,
 * so its order is the order of time, also between threads and processes: a write that stands before the start of a
 * sync had returned before that sync was asked for.
 *
 * Not recorded: files in folders below, and names that end in -shm, the index that SQLite maps into memory and makes
 * anew after a crash. Calls that neither SQLite nor Node.js makes are left alone; whoever plays a log compares its end
 * with the real files and so finds out when something went past us.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* Numbers in the machine's own order; `length` bytes follow: the data of a write, or names. */
struct record {
  uint32_t kind;
  uint32_t length;
  uint64_t file; /* inode */
  uint64_t at;   /* open: 1 = it was made; write: offset; truncate: size; sync: number of the sync */
};
enum { OPEN = 1, WRITE, TRUNCATE, UNLINK, RENAME, SYNC_START, SYNC_END };

static char folder[PATH_MAX];
static size_t folder_length;
static int log_fd = -1;
static long sync_delay_us;
static atomic_uint_fast64_t syncs;

/* Which descriptors lead to a file of ours. A number may be closed and used again unseen: fstat decides. */
enum { FDS = 65536 };
static struct { dev_t dev; ino_t ino; atomic_int ours; } fds[FDS];

static void die(const char *what) {
  fprintf(stderr, "record: %s: %s\n", what, strerror(errno));
  abort();
}

__attribute__((constructor)) static void begin(void) {
  const char *where = getenv("PIECEWORK_RECORD_FOLDER");
  const char *log = getenv("PIECEWORK_RECORD_LOG");
  const char *delay = getenv("PIECEWORK_RECORD_SYNC_US");
  if (!where || !log || strlen(where) >= sizeof folder) return;
  strcpy(folder, where);
  folder_length = strlen(folder);
  if (delay) sync_delay_us = atol(delay);
  log_fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (log_fd < 0) die("cannot open the log");
}

static void put(uint32_t kind, ino_t file, uint64_t at, const struct iovec *data, int parts) {
  struct iovec all[18];
  struct record head = { kind, 0, file, at };
  size_t length = sizeof head;
  if (parts > 17) parts = -1, errno = EINVAL, die("too many parts");
  all[0] = (struct iovec){ &head, sizeof head };
  for (int i = 0; i < parts; i++) {
    all[i + 1] = data[i];
    head.length += (uint32_t)data[i].iov_len;
    length += data[i].iov_len;
  }
  int before = errno;
  if (syscall(SYS_writev, log_fd, all, parts + 1) != (long)length) die("cannot write the log");
  errno = before;
}

static void put_text(uint32_t kind, ino_t file, uint64_t at, const char *text, size_t length) {
  struct iovec part = { (void *)text, length };
  put(kind, file, at, &part, 1);
}

/* The name inside the folder, "." for the folder itself; null for everything else. */
static const char *ours(const char *path) {
  if (log_fd < 0 || !path || strncmp(path, folder, folder_length) != 0) return NULL;
  const char *name = path + folder_length;
  if (*name == '\0') return ".";
  if (*name++ != '/' || *name == '\0' || strchr(name, '/')) return NULL;
  size_t length = strlen(name);
  if (length > 4 && strcmp(name + length - 4, "-shm") == 0) return NULL;
  return name;
}

/* The inode behind a descriptor of ours, or 0. */
static ino_t file_of(int fd) {
  struct stat now;
  if (log_fd < 0 || fd < 0 || fd >= FDS || !atomic_load(&fds[fd].ours)) return 0;
  if (fstat(fd, &now) != 0 || now.st_ino != fds[fd].ino || now.st_dev != fds[fd].dev) return 0;
  return now.st_ino;
}

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int opened(int fd, const char *name, int made, int flags) {
  struct stat now;
  if (fd < 0 || fd >= FDS) return fd;
  atomic_store(&fds[fd].ours, 0);
  if (!name || fstat(fd, &now) != 0) return fd;
  fds[fd].dev = now.st_dev;
  fds[fd].ino = now.st_ino;
  atomic_store(&fds[fd].ours, 1);
  put_text(OPEN, now.st_ino, (uint64_t)made, name, strlen(name));
  if ((flags & O_TRUNC) && !made) put(TRUNCATE, now.st_ino, 0, NULL, 0);
  return fd;
}

/* Whether an open makes the file must be known for certain: first without making, then making only what is not there. */
static int open_ours(int (*real)(const char *, int, ...), const char *path, const char *name, int flags, mode_t mode) {
  if (!(flags & O_CREAT)) return opened(real(path, flags), name, 0, flags);
  for (;;) {
    int fd = flags & O_EXCL ? -1 : real(path, flags & ~O_CREAT);
    if (fd >= 0) return opened(fd, name, 0, flags);
    if (!(flags & O_EXCL) && errno != ENOENT) return fd;
    fd = real(path, flags | O_EXCL, mode);
    if (fd >= 0 || (flags & O_EXCL) || errno != EEXIST) return opened(fd, name, 1, flags);
  }
}

#define OPENER(open_name) \
  int open_name(const char *path, int flags, ...) { \
    REAL(open_name); \
    mode_t mode = 0; \
    if (flags & O_CREAT) { \
      va_list rest; \
      va_start(rest, flags); \
      mode = va_arg(rest, mode_t); \
      va_end(rest); \
    } \
    const char *name = ours(path); \
    if (!name) return opened(real(path, flags, mode), NULL, 0, flags); \
    return open_ours(real, path, name, flags, mode); \
  }
OPENER(open)
OPENER(open64)

static ssize_t written(int fd, ssize_t count, off_t at, const struct iovec *parts, int number) {
  ino_t file = count > 0 ? file_of(fd) : 0;
  if (!file) return count;
  size_t left = (size_t)count;
  struct iovec done[17];
  int used = 0;
  for (int i = 0; i < number && left > 0; i++) {
    if (used == 17) errno = EINVAL, die("too many parts in one write");
    done[used] = parts[i];
    if (done[used].iov_len > left) done[used].iov_len = left;
    left -= done[used++].iov_len;
  }
  if (at < 0) at = lseek(fd, 0, SEEK_CUR) - count;
  put(WRITE, file, (uint64_t)at, done, used);
  return count;
}

static ssize_t written_one(int fd, ssize_t count, off_t at, const void *data, size_t length) {
  struct iovec part = { (void *)data, length };
  return written(fd, count, at, &part, 1);
}

ssize_t write(int fd, const void *data, size_t length) {
  REAL(write);
  return written_one(fd, real(fd, data, length), -1, data, length);
}
ssize_t writev(int fd, const struct iovec *parts, int number) {
  REAL(writev);
  return written(fd, real(fd, parts, number), -1, parts, number);
}
ssize_t pwrite(int fd, const void *data, size_t length, off_t at) {
  REAL(pwrite);
  return written_one(fd, real(fd, data, length, at), at, data, length);
}
ssize_t pwrite64(int fd, const void *data, size_t length, off64_t at) {
  REAL(pwrite64);
  return written_one(fd, real(fd, data, length, at), at, data, length);
}
ssize_t pwritev64(int fd, const struct iovec *parts, int number, off64_t at) {
  REAL(pwritev64);
  return written(fd, real(fd, parts, number, at), at, parts, number);
}

static int truncated(int fd, int answer, off_t size) {
  ino_t file = answer == 0 ? file_of(fd) : 0;
  if (file) put(TRUNCATE, file, (uint64_t)size, NULL, 0);
  return answer;
}
int ftruncate(int fd, off_t size) {
  REAL(ftruncate);
  return truncated(fd, real(fd, size), size);
}
int ftruncate64(int fd, off64_t size) {
  REAL(ftruncate64);
  return truncated(fd, real(fd, size), size);
}

int unlink(const char *path) {
  REAL(unlink);
  const char *name = ours(path);
  int answer = real(path);
  if (name && answer == 0) put_text(UNLINK, 0, 0, name, strlen(name));
  return answer;
}
int rename(const char *from, const char *to) {
  REAL(rename);
  const char *old = ours(from), *now = ours(to);
  int answer = real(from, to);
  if (answer != 0 || (!old && !now)) return answer;
  struct iovec names[3] = { { (void *)(old ? old : ""), old ? strlen(old) : 0 }, { "/", 1 },
                            { (void *)(now ? now : ""), now ? strlen(now) : 0 } };
  put(RENAME, 0, 0, names, 3);
  return answer;
}

/* A delay between the start and the real sync makes commits fall into it on any disk, also on one that is memory. */
static int synced(int (*real)(int), int fd, long delay_us) {
  ino_t file = file_of(fd);
  if (!file) return real(fd);
  uint64_t number = ((uint64_t)getpid() << 32) | (atomic_fetch_add(&syncs, 1) & 0xffffffff);
  put(SYNC_START, file, number, NULL, 0);
  struct timespec pause = { delay_us / 1000000, delay_us % 1000000 * 1000 };
  if (delay_us > 0) nanosleep(&pause, NULL);
  int answer = real(fd);
  if (answer == 0) put(SYNC_END, file, number, NULL, 0);
  return answer;
}
int fsync(int fd) {
  REAL(fsync);
  return synced(real, fd, 0);
}
int fdatasync(int fd) {
  REAL(fdatasync);
  return synced(real, fd, sync_delay_us);
}
