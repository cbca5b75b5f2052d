/* naive: a deliberately naive web server, of the kind that is written in a weekend.
 *
 *   naive ADDRESS PORT FOLDER
 *
 * One thread per connection, a listen queue of ten, the file read afresh for every request,
 * one request per connection, no time limits. Don't mend it: it is what the others are measured
 * against. It does send right bytes: a length, a type, 404 where there is nothing.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *folder;

static void send_all(int client, const char *data, size_t size) {
    while (size > 0) {
        ssize_t sent = send(client, data, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        data += sent;
        size -= sent;
    }
}

static void answer(int client, const char *path) {
    char name[4096], head[256];
    struct stat about;
    FILE *file = NULL;
    snprintf(name, sizeof name, "%s%s", folder, path);
    if (!strstr(path, "..") && stat(name, &about) == 0 && S_ISREG(about.st_mode))
        file = fopen(name, "rb");
    if (!file) {
        const char *text = "HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        send_all(client, text, strlen(text));
        return;
    }
    snprintf(head, sizeof head,
             "HTTP/1.0 200 OK\r\nContent-Type: text/html\r\nContent-Length: %lld\r\n\r\n",
             (long long)about.st_size);
    send_all(client, head, strlen(head));
    char *data = malloc(about.st_size + 1);
    if (data) {
        size_t size = fread(data, 1, about.st_size, file);
        send_all(client, data, size);
        free(data);
    }
    fclose(file);
}

static void *serve(void *argument) {
    int client = (int)(long)argument;
    char request[8192];
    size_t size = 0;
    for (;;) {
        ssize_t got = recv(client, request + size, sizeof request - 1 - size, 0);
        if (got <= 0)
            break;
        size += got;
        request[size] = 0;
        if (!strstr(request, "\r\n\r\n"))
            continue;
        char path[2048];
        if (sscanf(request, "GET %2047s", path) == 1)
            answer(client, path);
        break;
    }
    shutdown(client, SHUT_WR);
    close(client);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "naive ADDRESS PORT FOLDER\n");
        return 2;
    }
    struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[2])) };
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    folder = argv[3];
    signal(SIGPIPE, SIG_IGN);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (inet_pton(AF_INET, argv[1], &here.sin_addr) != 1 ||
        bind(listener, (struct sockaddr *)&here, sizeof here) < 0 || listen(listener, 10) < 0) {
        perror("naive");
        return 1;
    }
    for (;;) {
        int client = accept(listener, NULL, NULL);
        pthread_t thread;
        if (client < 0)
            continue;
        if (pthread_create(&thread, NULL, serve, (void *)(long)client) != 0)
            close(client);
        else
            pthread_detach(thread);
    }
}
