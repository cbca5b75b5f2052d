/*
 * The floor of a server that runs CGI scripts: it parses nothing. For whatever comes it starts the
 * script by vfork and execve, reads its output to the end, waits for it, and sends that output
 * behind a canned head.
 *
 * Processes with one epoll loop each, as many as the server has CPUs: a loop waits for its script,
 * whose work is what the CPU is needed for.
 *
 * usage: starter ADDRESS PORT SCRIPT PROCESSES
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EVENTS_MAX = 256, REQUEST_MAX = 16384, HEAD_MAX = 128, OUTPUT_MAX = 65536 };

static char *script[2];
/* As many variables as a request has at least. */
static char *const environment[] = {
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "GATEWAY_INTERFACE=CGI/1.1", "SERVER_PROTOCOL=HTTP/1.1", "SERVER_SOFTWARE=starter",
    "REQUEST_METHOD=GET", "QUERY_STRING=", "REMOTE_ADDR=127.0.0.1", NULL};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int listener(const char *host, const char *port)
{
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    if (fd < 0 || inet_pton(AF_INET, host, &address.sin_addr) != 1 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
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

/* Between vfork and execve only system calls. */
static pid_t start(int output)
{
    pid_t child = vfork();
    if (child == 0) {
        dup2(output, STDOUT_FILENO);
        execve(script[0], script, environment);
        _exit(127);
    }
    return child;
}

/* The length of the script's output, or -1. */
static ssize_t run(char *output)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return -1;
    }
    pid_t child = start(ends[1]);
    close(ends[1]);
    ssize_t length = 0, got = 0;
    while (child > 0 && length < OUTPUT_MAX &&
           (got = read(ends[0], output + length, (size_t)(OUTPUT_MAX - length))) > 0) {
        length += got;
    }
    close(ends[0]);
    return child > 0 && waitpid(child, NULL, 0) == child ? length : -1;
}

/* One recv, one script, one send: whatever came in is taken for one request. */
static void serve(int fd)
{
    char request[REQUEST_MAX];
    char response[HEAD_MAX + OUTPUT_MAX];
    ssize_t length = recv(fd, request, sizeof request, 0);
    if (length < 0 && errno == EAGAIN) {
        return;
    }
    if (length > 0 && (length = run(response + HEAD_MAX)) >= 0) {
        char head[HEAD_MAX];
        int used = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nServer: starter\r\n"
                            "Content-Length: %zd\r\n\r\n", length);
        char *begin = response + HEAD_MAX - used;
        memcpy(begin, head, (size_t)used);
        if (send(fd, begin, (size_t)(used + length), MSG_NOSIGNAL) == used + length) {
            return;
        }
    }
    close(fd);
}

static void loop(int listening)
{
    int on = 1;
    int poll = epoll_create1(EPOLL_CLOEXEC);
    watch(poll, listening);
    struct epoll_event events[EVENTS_MAX];
    for (;;) {
        int ready = epoll_wait(poll, events, EVENTS_MAX, -1);
        for (int at = 0; at < ready; at++) {
            int fd = events[at].data.fd;
            if (fd != listening) {
                serve(fd);
                continue;
            }
            while ((fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                watch(poll, fd);
            }
        }
    }
}

int main(int count, char **words)
{
    if (count != 5) {
        fprintf(stderr, "usage: starter ADDRESS PORT SCRIPT PROCESSES\n");
        return 2;
    }
    script[0] = words[3];
    int listening = listener(words[1], words[2]);
    for (int more = atoi(words[4]); more > 0; more--) {
        pid_t child = fork();
        if (child < 0) {
            fail("fork");
        }
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            loop(listening);
        }
    }
    for (;;) {
        pause();
    }
}
