/*
 * The floor of a proxy: it parses nothing, and passes on whatever comes, from one epoll loop. Each
 * client's connection has one of its own to the backend.
 *
 * What it costs is the kernel's TCP path: two recv and two send per request, and the waits between
 * them. No proxy of one loop that copies through user space can cost less on the same machine.
 *
 * usage: forwarder ADDRESS PORT BACKEND_ADDRESS BACKEND_PORT
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS_MAX = 256, PIECE_MAX = 16384, DESCRIPTORS_MAX = 65536 };

/* The other end of each connection, by descriptor. */
static int peers[DESCRIPTORS_MAX];

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static struct sockaddr_in address_of(const char *host, const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        fail("address");
    }
    return address;
}

static void watch(int poll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) < 0) {
        fail("epoll_ctl");
    }
}

static int connected(const struct sockaddr_in *backend)
{
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)backend, sizeof *backend) < 0) {
        fail("connect");
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void accept_all(int poll, int listening, const struct sockaddr_in *backend)
{
    int on = 1;
    int client;
    while ((client = accept4(listening, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        int behind = connected(backend);
        if (client >= DESCRIPTORS_MAX || behind >= DESCRIPTORS_MAX) {
            fail("descriptors");
        }
        setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        peers[client] = behind;
        peers[behind] = client;
        watch(poll, client);
        watch(poll, behind);
    }
}

/* One recv, one send. Both ends are closed when one is. */
static void pass_on(int fd)
{
    char piece[PIECE_MAX];
    int peer = peers[fd];
    if (peer < 0) {
        return;
    }
    ssize_t length = recv(fd, piece, sizeof piece, 0);
    if (length > 0 && send(peer, piece, (size_t)length, MSG_NOSIGNAL) == length) {
        return;
    }
    peers[fd] = peers[peer] = -1;
    close(fd);
    close(peer);
}

int main(int count, char **words)
{
    if (count != 5) {
        fprintf(stderr, "usage: forwarder ADDRESS PORT BACKEND_ADDRESS BACKEND_PORT\n");
        return 2;
    }
    struct sockaddr_in address = address_of(words[1], words[2]);
    struct sockaddr_in backend = address_of(words[3], words[4]);
    int on = 1;
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listening < 0 || setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(listening, (struct sockaddr *)&address, sizeof address) < 0 || listen(listening, 4096) < 0) {
        fail("listen");
    }
    int poll = epoll_create1(EPOLL_CLOEXEC);
    watch(poll, listening);
    struct epoll_event events[EVENTS_MAX];
    for (;;) {
        int ready = epoll_wait(poll, events, EVENTS_MAX, -1);
        for (int at = 0; at < ready; at++) {
            if (events[at].data.fd == listening) {
                accept_all(poll, listening, &backend);
            } else {
                pass_on(events[at].data.fd);
            }
        }
    }
}
