/*
 * The floor: it parses nothing and sends a canned response, from one epoll loop, from threads that
 * have one connection each, or from processes that do.
 *
 * What it costs is the kernel's TCP path and one recv and one send per request, and with threads
 * and processes a switch to whoever waits for it; no server of that shape that answers over a
 * socket can cost less on the same machine.
 *
 * usage: floor ADDRESS PORT FILE [threads COUNT | processes COUNT]
 *
 * An ADDRESS with a slash is the path of a UNIX socket, without a port. FILE holds the whole response, head and body; it is read once.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { RESPONSE_MAX = 1 << 20, EVENTS_MAX = 256, REQUEST_MAX = 16384 };

static char response[RESPONSE_MAX];
static size_t response_length;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void read_response(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        fail(path);
    }
    response_length = fread(response, 1, sizeof response, file);
    fclose(file);
    if (response_length == 0 || response_length == sizeof response) {
        fprintf(stderr, "floor: %s is empty or over %d bytes\n", path, RESPONSE_MAX - 1);
        exit(1);
    }
}

static int unix_listener(const char *path, int flags)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || chmod(path, 0666) < 0 ||
        listen(fd, 4096) < 0) {
        fail("listen");
    }
    return fd;
}

static int listener(const char *host, int port, int flags)
{
    if (strchr(host, '/')) {
        return unix_listener(host, flags);
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    int on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (fd < 0 || inet_pton(AF_INET, host, &address.sin_addr) != 1 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 4096) < 0) {
        fail("listen");
    }
    return fd;
}

static void watch(int poll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) < 0) {
        fail("epoll_ctl");
    }
}

static void accept_all(int poll, int listening)
{
    int on = 1;
    int fd;
    while ((fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        watch(poll, fd);
    }
}

/* One recv, one send: whatever came in is taken for one request. False when it is over. */
static int serve(int fd)
{
    char request[REQUEST_MAX];
    ssize_t length = recv(fd, request, sizeof request, 0);
    if (length < 0 && errno == EAGAIN) {
        return 1;
    }
    if (length > 0 && send(fd, response, response_length, MSG_NOSIGNAL) == (ssize_t)response_length) {
        return 1;
    }
    close(fd);
    return 0;
}

static void loop(int listening)
{
    int poll = epoll_create1(EPOLL_CLOEXEC);
    watch(poll, listening);
    struct epoll_event events[EVENTS_MAX];
    for (;;) {
        int ready = epoll_wait(poll, events, EVENTS_MAX, -1);
        for (int at = 0; at < ready; at++) {
            if (events[at].data.fd == listening) {
                accept_all(poll, listening);
            } else {
                serve(events[at].data.fd);
            }
        }
    }
}

/* One connection after the other, each to its end. */
static void *block(void *argument)
{
    int listening = *(int *)argument;
    int on = 1;
    for (;;) {
        int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            while (serve(fd)) {
            }
        }
    }
    return NULL;
}

static void threads(int listening, int count)
{
    while (--count > 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, block, &listening) != 0) {
            fail("pthread_create");
        }
    }
    block(&listening);
}

static void processes(int listening, int count)
{
    while (count-- > 0) {
        pid_t child = fork();
        if (child < 0) {
            fail("fork");
        }
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            block(&listening);
        }
    }
    for (;;) {
        pause();
    }
}

int main(int count, char **words)
{
    const char *shape = count == 6 ? words[4] : "loop";
    int is_loop = strcmp(shape, "loop") == 0;
    if ((count != 4 && count != 6) ||
        (!is_loop && strcmp(shape, "threads") != 0 && strcmp(shape, "processes") != 0)) {
        fprintf(stderr, "usage: floor ADDRESS PORT FILE [threads COUNT | processes COUNT]\n");
        return 2;
    }
    read_response(words[3]);
    int listening = listener(words[1], atoi(words[2]), is_loop ? SOCK_NONBLOCK : 0);
    if (is_loop) {
        loop(listening);
    } else if (strcmp(shape, "threads") == 0) {
        threads(listening, atoi(words[5]));
    } else {
        processes(listening, atoi(words[5]));
    }
}
