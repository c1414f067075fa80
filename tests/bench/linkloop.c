/* The floor of a clone by hard links: list each directory, make it again, link every file. One thread, no checks.
 *
 *     linkloop SOURCE TARGET
 *
 * TARGET must not exist. Prints the number of links and the seconds that they took. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static long links;

static void die(const char *what, const char *name)
{
    fprintf(stderr, "%s %s: %s\n", what, name, strerror(errno));
    exit(1);
}

static int open_directory(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        die("open", name);
    return fd;
}

static int is_directory(int parent, const struct dirent *entry)
{
    struct stat status;
    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    if (fstatat(parent, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        die("stat", entry->d_name);
    return S_ISDIR(status.st_mode);
}

/* Takes over both descriptors. */
static void copy_tree(int source, int target)
{
    struct dirent *entry;
    DIR *listing = fdopendir(source);
    if (listing == NULL)
        die("list", "a directory");
    while ((entry = readdir(listing)) != NULL) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (is_directory(source, entry)) {
            if (mkdirat(target, name, 0755) != 0)
                die("mkdir", name);
            copy_tree(open_directory(source, name), open_directory(target, name));
        } else {
            if (linkat(source, name, target, name, 0) != 0)
                die("link", name);
            links++;
        }
    }
    closedir(listing);
    close(target);
}

int main(int argc, char **argv)
{
    struct timespec begin, end;
    if (argc != 3) {
        fprintf(stderr, "usage: linkloop SOURCE TARGET\n");
        return 2;
    }
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (mkdir(argv[2], 0755) != 0)
        die("mkdir", argv[2]);
    copy_tree(open_directory(AT_FDCWD, argv[1]), open_directory(AT_FDCWD, argv[2]));
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%ld %.6f\n", links, (end.tv_sec - begin.tv_sec) + (end.tv_nsec - begin.tv_nsec) / 1e9);
    return 0;
}
