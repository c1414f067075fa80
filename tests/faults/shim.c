/* Lets one call of the C library fail, fall short, or be the last of its process.
 *
 *   FAULT_CALL    name of the call, such as "fsync"; with FAULT_BELOW the only one that is counted
 *   FAULT_BELOW   only calls on paths that begin so
 *   FAULT_NTH     which call of all processes, from 0; -1: every one
 *   FAULT_DO      an errno; 0: write half of what was asked; -1: SIGKILL
 *   FAULT_SHARED  a file of two 64-bit numbers: calls counted so far, seconds that clocks are ahead
 *   FAULT_TOLD    a file that gets a line for each fault
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
enum { NOTHING = 0, SHORT = -2 };

struct shared {
    _Atomic long long count;
    _Atomic long long ahead;
};

static struct shared *shared;
static const char *call, *below, *told;
static long long nth;
static int what;

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("FAULT_SHARED");
    call = getenv("FAULT_CALL");
    below = getenv("FAULT_BELOW");
    told = getenv("FAULT_TOLD");
    if (getenv("FAULT_NTH"))
        nth = atoll(getenv("FAULT_NTH"));
    if (getenv("FAULT_DO"))
        what = atoi(getenv("FAULT_DO"));
    if (!path)
        return;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    void *found = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (found != MAP_FAILED)
        shared = found;
    close(fd);
}

static void tell(const char *path)
{
    char line[4400];
    int size = snprintf(line, sizeof line, "%s %s\n", call, path);
    int fd = told ? open(told, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (fd >= 0) {
        ssize_t written = NEXT(write)(fd, line, size);
        (void)written;
        close(fd);
    }
}

/* NOTHING, SHORT, or the errno that the call shall fail with. */
static int fault(const char *name, int directory, const char *path)
{
    char link[64], full[4200];
    if (!shared || !call || strcmp(name, call))
        return NOTHING;
    if (!path || path[0] != '/') {
        ssize_t size = -1;
        if (directory != AT_FDCWD) {
            snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
            size = readlink(link, full, 4000);
        }
        if (size < 0)
            return NOTHING;
        full[size] = 0;
        if (path)
            snprintf(full + size, sizeof full - size, "/%.190s", path);
        path = full;
    }
    if (below && strncmp(path, below, strlen(below)))
        return NOTHING;
    long long number = atomic_fetch_add(&shared->count, 1);
    if (nth != -1 && number != nth)
        return NOTHING;
    tell(path);
    if (what == -1)
        kill(getpid(), SIGKILL);
    return what == 0 ? SHORT : what;
}

#define FAIL(name, directory, path) \
    do { \
        int number = fault(name, directory, path); \
        if (number > 0) { \
            errno = number; \
            return -1; \
        } \
    } while (0)

ssize_t write(int fd, const void *buffer, size_t size)
{
    int number = fault("write", fd, NULL);
    if (number > 0) {
        errno = number;
        return -1;
    }
    return NEXT(write)(fd, buffer, number == SHORT && size > 1 ? size / 2 : size);
}

ssize_t copy_file_range(int source, off64_t *from, int target, off64_t *to, size_t size, unsigned flags)
{
    int number = fault("copy_file_range", target, NULL);
    if (number > 0) {
        errno = number;
        return -1;
    }
    return NEXT(copy_file_range)(source, from, target, to, number == SHORT && size > 1 ? size / 2 : size, flags);
}

int fsync(int fd)
{
    FAIL("fsync", fd, NULL);
    return NEXT(fsync)(fd);
}

int syncfs(int fd)
{
    FAIL("syncfs", fd, NULL);
    return NEXT(syncfs)(fd);
}

int rename(const char *from, const char *to)
{
    FAIL("rename", AT_FDCWD, from);
    return NEXT(rename)(from, to);
}

int renameat2(int source, const char *from, int target, const char *to, unsigned flags)
{
    FAIL("renameat2", source, from);
    return NEXT(renameat2)(source, from, target, to, flags);
}

int link(const char *from, const char *to)
{
    FAIL("link", AT_FDCWD, to);
    return NEXT(link)(from, to);
}

int linkat(int source, const char *from, int target, const char *to, int flags)
{
    FAIL("link", target, to);
    return NEXT(linkat)(source, from, target, to, flags);
}

int mkdir(const char *path, mode_t mode)
{
    FAIL("mkdir", AT_FDCWD, path);
    return NEXT(mkdir)(path, mode);
}

int mkdirat(int directory, const char *path, mode_t mode)
{
    FAIL("mkdir", directory, path);
    return NEXT(mkdirat)(directory, path, mode);
}

int unlink(const char *path)
{
    FAIL("unlink", AT_FDCWD, path);
    return NEXT(unlink)(path);
}

int unlinkat(int directory, const char *path, int flags)
{
    FAIL("unlink", directory, path);
    return NEXT(unlinkat)(directory, path, flags);
}

int rmdir(const char *path)
{
    FAIL("rmdir", AT_FDCWD, path);
    return NEXT(rmdir)(path);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = NEXT(clock_gettime)(clock, now);
    if (result == 0 && shared && clock == CLOCK_REALTIME)
        now->tv_sec += atomic_load(&shared->ahead);
    return result;
}

time_t time(time_t *where)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where)
        *where = now.tv_sec;
    return now.tv_sec;
}
