/* slower: makes a server spend SLOWER_NS more of CPU time on every answer. Loaded by LD_PRELOAD.
 *
 * It is there to show that `lab/run --compare` finds a slowdown that is known to be one. Answers
 * are counted by the calls that send a head; sendfile, which follows one, is left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

static long long cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void burn(void) {
    static long long each = -1;
    if (each < 0) {
        const char *given = getenv("SLOWER_NS");
        each = given ? atoll(given) : 0;
    }
    long long until = cpu_ns() + each;
    while (cpu_ns() < until) {}
}

#define NEXT(name) static typeof(name) *next; if (!next) next = (typeof(name) *)dlsym(RTLD_NEXT, #name)

ssize_t send(int fd, const void *data, size_t size, int flags) {
    NEXT(send);
    burn();
    return next(fd, data, size, flags);
}

ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
               socklen_t to_size) {
    NEXT(sendto);
    burn();
    return next(fd, data, size, flags, to, to_size);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    NEXT(sendmsg);
    burn();
    return next(fd, message, flags);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    NEXT(writev);
    burn();
    return next(fd, parts, count);
}
