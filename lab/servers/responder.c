/*
 * A FastCGI responder on a UNIX socket: it reads the records of a request and sends a canned
 * response, from one epoll loop. Connections are kept if the request asks for it.
 *
 * usage: responder SOCKET FILE
 *
 * FILE holds the response as a script prints it, head and body; it is read once.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BEGIN = 1, END = 3, STDIN = 5, STDOUT = 6, KEEP = 1, HEADER = 8 };
enum { EVENTS_MAX = 256, INPUT_MAX = 1 << 17, RESPONSE_MAX = 60000, DESCRIPTORS_MAX = 65536 };

typedef struct {
    size_t used;
    int keeps;
    uint8_t input[INPUT_MAX];
} Connection;

static Connection *connections[DESCRIPTORS_MAX];
/* The record of the output, and that of the end. */
static uint8_t response[RESPONSE_MAX + 4 * HEADER];
static size_t response_length;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static size_t record(uint8_t *at, int type, size_t length)
{
    uint8_t header[HEADER] = {1, (uint8_t)type, 0, 1, (uint8_t)(length >> 8), (uint8_t)length, 0, 0};
    memcpy(at, header, HEADER);
    return HEADER;
}

static void read_response(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        fail(path);
    }
    size_t length = fread(response + HEADER, 1, RESPONSE_MAX, file);
    fclose(file);
    if (length == 0 || length == RESPONSE_MAX) {
        fprintf(stderr, "responder: %s is empty or over %d bytes\n", path, RESPONSE_MAX - 1);
        exit(1);
    }
    record(response, STDOUT, length);
    response_length = HEADER + length;
    response_length += record(response + response_length, STDOUT, 0);
    response_length += record(response + response_length, END, 8);
    memset(response + response_length, 0, 8);
    response_length += 8;
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
    int fd;
    while ((fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (fd >= DESCRIPTORS_MAX || !(connections[fd] = malloc(sizeof(Connection)))) {
            fail("accept");
        }
        connections[fd]->used = 0;
        watch(poll, fd);
    }
}

static void end(int fd)
{
    free(connections[fd]);
    close(fd);
}

/* Whether the connection stays open after the records that have arrived. */
static int take_records(int fd, Connection *connection)
{
    size_t at = 0;
    while (connection->used - at >= HEADER) {
        uint8_t *head = connection->input + at;
        size_t length = (size_t)head[4] << 8 | head[5];
        size_t whole = HEADER + length + head[6];
        if (connection->used - at < whole) {
            break;
        }
        at += whole;
        if (head[1] == BEGIN && length == 8) {
            connection->keeps = head[HEADER + 2] & KEEP;
            response[2] = head[2];
            response[3] = head[3];
        } else if (head[1] == STDIN && length == 0) {
            ssize_t sent = send(fd, response, response_length, MSG_NOSIGNAL);
            if (sent != (ssize_t)response_length || !connection->keeps) {
                return 0;
            }
        }
    }
    memmove(connection->input, connection->input + at, connection->used - at);
    connection->used -= at;
    return connection->used < INPUT_MAX;
}

static void serve(int fd)
{
    Connection *connection = connections[fd];
    size_t room = INPUT_MAX - connection->used;
    ssize_t length = recv(fd, connection->input + connection->used, room, 0);
    if (length <= 0) {
        end(fd);
        return;
    }
    connection->used += (size_t)length;
    if (!take_records(fd, connection)) {
        end(fd);
    }
}

static int listener(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || chmod(path, 0666) < 0 ||
        listen(fd, 4096) < 0) {
        fail("listen");
    }
    return fd;
}

int main(int count, char **words)
{
    if (count != 3) {
        fprintf(stderr, "usage: responder SOCKET FILE\n");
        return 2;
    }
    read_response(words[2]);
    int listening = listener(words[1]);
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
