/* Lets one call of the C library fail, fall short, or be the last of its process.
 *
 *   FAULT_CALL    name of the call, such as "fsync"; with FAULT_BELOW the only one that is counted
 *   FAULT_BELOW   only calls on paths that begin so
 *   FAULT_NTH     which call of all processes, from 0; -1: every one
 *   FAULT_DO      an errno; 0: write half of what was asked; -1: SIGKILL; -2: all clocks jump ten years forward
 *   FAULT_SHARED  a file of two 64-bit numbers: calls counted so far, seconds that clocks are ahead
 *   FAULT_TOLD    a file that gets a line for each fault
 *
 * And lets one process be killed, as the kernel does that has no memory left. The first is called 0, the second that
 * it forks 0.2, and +0.2 once that is another program; of each, the files that it opens and its writes are counted.
 *
 *   FAULT_PROCESS which process
 *   FAULT_NAME    what this one is called; set by this library when it begins another program
 *   FAULT_AT      before which of its calls, from 1; 0: as it begins; -1: as it ends
 *   FAULT_HALF    set: half of that call, a write, is done before
 *   FAULT_LIVES   a file that gets a line for each process that begins, and one for each that ends
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
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

static const char *lives;
static const char *dying;
static long long dying_at;
static char self[200];
static int by_half, forks;
static _Atomic long long calls, last_write, ended;

static struct {
    __typeof__(&write) write;
    __typeof__(&open) open;
    __typeof__(&openat) openat;
    __typeof__(&fork) fork;
    __typeof__(&execve) execve;
    __typeof__(&_exit) exit;
} next;

/* Looked up once, before anything forks: a fork of a process with threads must not wait for the loader's lock. */
static void look_up(void)
{
    if (next.exit)
        return;
    next.write = NEXT(write);
    next.open = NEXT(open);
    next.openat = NEXT(openat);
    next.fork = NEXT(fork);
    next.execve = NEXT(execve);
    next.exit = NEXT(_exit);
}

static void tell_life(const char *what)
{
    char line[700], words[200];
    int size = snprintf(line, sizeof line, "%s %s %lld %lld ", what, self, atomic_load(&calls), atomic_load(&last_write));
    int fd = next.open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, words, sizeof words) : 0;
    if (fd >= 0)
        close(fd);
    for (ssize_t i = 0; i < got; i++)
        line[size++] = words[i] < ' ' ? ' ' : words[i];
    line[size++] = '\n';
    fd = next.open(lives, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0) {
        ssize_t written = next.write(fd, line, size);
        (void)written;
        close(fd);
    }
}

static void die(void)
{
    tell_life("killed");
    kill(getpid(), SIGKILL);
}

static int to_die(long long at)
{
    return dying && dying_at == at && !strcmp(self, dying);
}

static void begin_life(void)
{
    if (!lives)
        return;
    forks = 0;
    atomic_store(&calls, 0);
    atomic_store(&last_write, 0);
    atomic_store(&ended, 0);
    tell_life("begins");
    if (to_die(0))
        die();
}

static void end_life(void)
{
    if (!lives || atomic_exchange(&ended, 1))
        return;
    tell_life("ends");
    if (to_die(-1))
        die();
}

/* Counts a call; returns whether half of it, a write, is to be done before the process dies. */
static int live(int writes)
{
    if (!lives)
        return 0;
    long long number = atomic_fetch_add(&calls, 1) + 1;
    if (writes)
        atomic_store(&last_write, number);
    if (!to_die(number))
        return 0;
    if (writes && by_half)
        return 1;
    die();
    return 0;
}

__attribute__((constructor)) static void start(void)
{
    look_up();
    lives = getenv("FAULT_LIVES");
    dying = getenv("FAULT_PROCESS");
    snprintf(self, sizeof self, "%s", getenv("FAULT_NAME") ? getenv("FAULT_NAME") : "0");
    if (getenv("FAULT_AT"))
        dying_at = atoll(getenv("FAULT_AT"));
    by_half = getenv("FAULT_HALF") && *getenv("FAULT_HALF");
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
    begin_life();
}

__attribute__((destructor)) static void stop(void)
{
    end_life();
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
    if (what == -2) {
        atomic_store(&shared->ahead, 10LL * 366 * 86400);
        return NOTHING;
    }
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
    look_up();
    if (live(1)) {
        ssize_t half = next.write(fd, buffer, size / 2);
        (void)half;
        die();
    }
    int number = fault("write", fd, NULL);
    if (number > 0) {
        errno = number;
        return -1;
    }
    return next.write(fd, buffer, number == SHORT && size > 1 ? size / 2 : size);
}

/* What opens a file has its mode behind the flags where it may create one. */
#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & O_CREAT || ((flags) & O_TMPFILE) == O_TMPFILE) { \
        va_list more; \
        va_start(more, flags); \
        mode = va_arg(more, mode_t); \
        va_end(more); \
    } \
    look_up(); \
    live(0)

int open(const char *path, int flags, ...)
{
    MODE(flags);
    return next.open(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    MODE(flags);
    return next.open(path, flags | O_LARGEFILE, mode);
}

int openat(int directory, const char *path, int flags, ...)
{
    MODE(flags);
    return next.openat(directory, path, flags, mode);
}

int openat64(int directory, const char *path, int flags, ...)
{
    MODE(flags);
    return next.openat(directory, path, flags | O_LARGEFILE, mode);
}

pid_t fork(void)
{
    look_up();
    int number = ++forks;
    pid_t child = next.fork();
    if (child == 0) {
        size_t size = strlen(self);
        snprintf(self + size, sizeof self - size, ".%d", number);
        begin_life();
    }
    return child;
}

/* A fork that copies is one that shares, but slower; this one can be heard of. */
pid_t vfork(void)
{
    return fork();
}

int execve(const char *path, char *const words[], char *const variables[])
{
    look_up();
    if (!lives)
        return next.execve(path, words, variables);
    int count = 0, kept = 0;
    while (variables && variables[count])
        count++;
    char name[sizeof self + 20], *named[count + 2];
    snprintf(name, sizeof name, "FAULT_NAME=+%s", self);
    for (int i = 0; i < count; i++)
        if (strncmp(variables[i], "FAULT_NAME=", 11))
            named[kept++] = variables[i];
    named[kept++] = name;
    named[kept] = NULL;
    return next.execve(path, words, named);
}

/* Both hand on the variables of this process, which is about to be another program. */
static void hand_on_name(void)
{
    char name[sizeof self + 1];
    snprintf(name, sizeof name, "+%s", self);
    if (lives)
        setenv("FAULT_NAME", name, 1);
}

int execv(const char *path, char *const words[])
{
    hand_on_name();
    return NEXT(execv)(path, words);
}

int execvp(const char *file, char *const words[])
{
    hand_on_name();
    return NEXT(execvp)(file, words);
}

void _exit(int status)
{
    look_up();
    end_life();
    next.exit(status);
    __builtin_unreachable();
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
