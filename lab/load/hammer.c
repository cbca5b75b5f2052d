/* hammer: the lab's own load tool, for what packaged tools can't do.
 *
 *   hammer ADDRESS PORT [-c CLIENTS] [-d SECONDS | -n EACH] [-r RATE] [-k] [-t] [-s SEED] FILE
 *
 * Closed loop (no -r): each client asks again when it has its answer, for SECONDS or EACH times.
 * Open loop (-r): requests are due at RATE per second whatever the server does, and a request's
 * time counts from when it was due, not from when a connection was free to send it: what wrk2
 * calls the correction of coordinated omission. -k keeps connections, -t prints every request.
 * FILE has the heads, as load/heads.py writes them. Each response's status is compared with its
 * kind's, its body with the page's, unless LENGTH is -1 or HASH 0. The hash is 64-bit FNV-1a.
 * Prints one line of JSON. One thread: start several for more load.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define KINDS_MAX 16
#define STATUS_MAX 600
#define REQUEST_MAX 2048
#define HEAD_MAX 16384
#define BUCKETS 4096
#define DRAIN_NS 10000000000LL
#define REQUEST_LIMIT_NS 30000000000LL

typedef struct {
    char *path, *host;
    long long length;
    uint64_t hash;
} Page;
/* Kinds of requests: `bare` responses have no body, whatever length they name. */
typedef struct {
    int weight, status, bare;
    char *template;
} Kind;
typedef enum { IDLE, CONNECTING, SENDING, HEAD, BODY, CHUNK_SIZE, CHUNK, DONE } State;
typedef struct {
    int fd, used, close_after, chunked, sent, head_size, status, retried, size;
    State state;
    const Page *page;
    const Kind *kind;
    char request[REQUEST_MAX];
    long long left, body, begun_ns, remaining, line;
    uint64_t hash;
    char head[HEAD_MAX];
} Client;

static struct sockaddr_storage address;
static socklen_t address_size;
static Page *pages;
static Kind kinds[KINDS_MAX];
static int kind_count, weights, in_turn, next_page;
static unsigned long long number;
static char own_host[128];
static int page_count, clients_count = 1, keep, timeline, poll_fd;
static long long each, rate, began_ns, end_ns, issued, answered_ns;
static double seconds = 1;
static Client *clients;
static Client **idle;
static int idle_count;
static uint64_t chance = 88172645463325252ULL;
static long long requests, bytes, e_connect, e_read, e_status, e_timeout, wrong;
static long long statuses[STATUS_MAX];
static long long counts[BUCKETS], over_100ms, over_1s, over_10s;
static double sum_us, squares_us, max_us;
static struct { float at_ms, took_ms; } *points;
static long long points_count, points_room;

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static uint64_t next_chance(void) {
    chance ^= chance << 13; chance ^= chance >> 7; chance ^= chance << 17;
    return chance;
}

/* Seven leading bits of a latency are kept: exact to 128 µs, 64 steps per power of two above. */
static int bucket_of(long long us) {
    if (us <= 128) return (int)us;
    int shift = 63 - __builtin_clzll((unsigned long long)(us - 1)) - 6;
    long long top = (us + (1LL << shift) - 1) >> shift;
    int bucket = 128 + shift * 64 + (int)(top - 128) ;
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

static long long bound_of(int bucket) {
    if (bucket <= 128) return bucket;
    int shift = (bucket - 129) / 64 ;
    /* bucket = 128 + shift * 64 + top - 128, top in (64, 128] */
    long long top = bucket - shift * 64;
    while (top > 128) { shift++; top -= 64; }
    while (top <= 64) { shift--; top += 64; }
    return top << shift;
}

static void record(long long begun, long long ended) {
    double us = (ended - begun) / 1000.0;
    answered_ns = ended;
    requests++;
    sum_us += us; squares_us += us * us;
    if (us > max_us) max_us = us;
    over_100ms += us > 1e5; over_1s += us > 1e6; over_10s += us > 1e7;
    counts[bucket_of((long long)ceil(us) > 0 ? (long long)ceil(us) : 1)]++;
    if (!timeline) return;
    if (points_count == points_room) {
        points_room = points_room ? points_room * 2 : 4096;
        points = realloc(points, points_room * sizeof *points);
        if (!points) exit(3);
    }
    points[points_count].at_ms = (begun - began_ns) / 1e6;
    points[points_count++].took_ms = us / 1000;
}

static void watch(Client *c, uint32_t events, int op) {
    struct epoll_event event = { .events = events, .data.ptr = c };
    epoll_ctl(poll_fd, op, c->fd, &event);
}

static void hang_up(Client *c) {
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
    c->used = 0;
}

static void send_request(Client *c);

static void open_connection(Client *c) {
    c->fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (c->fd < 0) { e_connect++; c->state = DONE; return; } /* no descriptors: one client less */
    int one = 1;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->state = CONNECTING;
    if (connect(c->fd, (struct sockaddr *)&address, address_size) < 0 && errno != EINPROGRESS) {
        e_connect++;
        hang_up(c);
        c->state = IDLE;
        if (rate) idle[idle_count++] = c;
        return;
    }
    watch(c, EPOLLOUT, EPOLL_CTL_ADD);
}

static const Kind *some_kind(void) {
    int at = kind_count > 1 ? (int)(next_chance() % weights) : 0;
    const Kind *kind = kinds;
    while (at >= kind->weight && kind < kinds + kind_count - 1) at -= kind++->weight;
    return kind;
}

/* Puts the head together: the names in braces are heads.py's. A head that is too long is cut. */
static void make_request(Client *c) {
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", number++);
    const struct { const char *name, *value; } names[] = {
        { "{path}", c->page->path }, { "{host}", *c->page->host ? c->page->host : own_host },
        { "{from}", pages[next_chance() % page_count].path }, { "{n}", digits } };
    int size = 0;
    for (const char *at = c->kind->template; *at && size < REQUEST_MAX - 1;) {
        const char *value = NULL;
        for (int i = 0; *at == '{' && i < 4 && !value; i++)
            if (!strncmp(at, names[i].name, strlen(names[i].name))) {
                value = names[i].value;
                at += strlen(names[i].name);
            }
        if (!value) { c->request[size++] = *at++; continue; }
        while (*value && size < REQUEST_MAX - 1) c->request[size++] = *value++;
    }
    c->size = size;
}

static void begin(Client *c, long long from_ns) {
    c->begun_ns = from_ns;
    c->kind = some_kind();
    if (in_turn) c->page = &pages[next_page++ % page_count];
    else c->page = &pages[page_count > 1 ? next_chance() % page_count : 0];
    make_request(c);
    c->retried = 0;
    c->sent = 0;
    if (c->fd < 0) open_connection(c);
    else send_request(c);
}

/* The client is free: in the closed loop it goes on, in the open loop it waits for what is due. */
static void rest(Client *c) {
    if (!keep) hang_up(c);
    c->state = IDLE;
    if (rate) { idle[idle_count++] = c; return; }
    long long now = now_ns();
    if (each ? c->remaining-- <= 0 : now >= end_ns) { hang_up(c); c->state = DONE; return; }
    begin(c, now);
    /* A refused connection comes back at once: the next turn of the loop tries again. */
}

static void fail(Client *c, long long *kind) {
    (*kind)++;
    hang_up(c);
    rest(c);
}

/* A kept connection that the server closed before it saw the request is opened again, once. */
static void broken(Client *c) {
    if (c->used && !c->retried && c->head_size == 0 && c->state != BODY) {
        hang_up(c);
        c->retried = 1;
        c->sent = 0;
        open_connection(c);
        return;
    }
    fail(c, &e_read);
}

static void finish(Client *c) {
    long long now = now_ns();
    if (c->status >= 0 && c->status < STATUS_MAX) statuses[c->status]++;
    if (c->status != c->kind->status) { fail(c, &e_status); return; }
    const Page *page = c->page;
    if ((page->length >= 0 && page->length != c->body) || (page->hash && page->hash != c->hash))
        wrong++;
    record(c->begun_ns, now);
    c->used = 1;
    if (c->close_after) hang_up(c);
    rest(c);
}

static void send_request(Client *c) {
    c->state = SENDING;
    c->head_size = 0;
    ssize_t n = send(c->fd, c->request + c->sent, c->size - c->sent, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN) { broken(c); return; }
    if (n > 0) c->sent += n;
    if (c->sent < c->size) { watch(c, EPOLLOUT, EPOLL_CTL_MOD); return; }
    c->state = HEAD;
    watch(c, EPOLLIN, EPOLL_CTL_MOD);
}

static const char *field(const char *head, const char *name) {
    size_t size = strlen(name);
    for (const char *line = strchr(head, '\n'); line; line = strchr(line, '\n')) {
        line++;
        if (!strncasecmp(line, name, size) && line[size] == ':') {
            line += size + 1;
            while (*line == ' ' || *line == '\t') line++;
            return line;
        }
    }
    return NULL;
}

static void understand(Client *c) {
    const char *value;
    c->status = atoi(c->head + 9);
    c->close_after = !keep || !strncmp(c->head, "HTTP/1.0", 8);
    if ((value = field(c->head, "Connection")))
        c->close_after = !strncasecmp(value, "close", 5) ? 1
                       : !strncasecmp(value, "keep-alive", 10) ? 0 : c->close_after;
    c->left = -1;
    c->chunked = (value = field(c->head, "Transfer-Encoding")) && !strncasecmp(value, "chunked", 7);
    if (!c->chunked && (value = field(c->head, "Content-Length"))) c->left = atoll(value);
    if (c->kind->bare || c->status == 304) c->chunked = 0, c->left = 0;
    c->body = 0;
    c->line = 0;
    c->hash = 14695981039346656037ULL;
    c->state = c->chunked ? CHUNK_SIZE : BODY;
}

static void take(Client *c, const char *data, long long size) {
    c->body += size;
    if (!c->page->hash) return;
    uint64_t hash = c->hash;
    for (long long i = 0; i < size; i++) hash = (hash ^ (unsigned char)data[i]) * 1099511628211ULL;
    c->hash = hash;
}

/* Chunked bodies: `line` collects the size, `left` counts what is missing with its line end. */
static int chunks(Client *c, const char *data, long long size) {
    for (long long i = 0; i < size;) {
        if (c->state == CHUNK_SIZE) {
            char byte = data[i++];
            if (byte == '\n') {
                c->state = CHUNK;
                c->left = c->line + 2;
            } else if (byte != '\r') {
                int digit = byte <= '9' ? byte - '0' : (byte | 32) - 'a' + 10;
                if (digit >= 0 && digit < 16) c->line = c->line * 16 + digit;
            }
            continue;
        }
        long long part = size - i < c->left ? size - i : c->left;
        long long body = part < c->left - 2 ? part : c->left - 2;
        if (body > 0) take(c, data + i, body);
        i += part;
        c->left -= part;
        if (c->left == 0) {
            if (c->line == 0) return 1;
            c->state = CHUNK_SIZE;
            c->line = 0;
        }
    }
    return 0;
}

static int body(Client *c, const char *data, long long size) {
    if (c->chunked) return chunks(c, data, size);
    take(c, data, size);
    if (c->left < 0) return 0;
    c->left -= size;
    return c->left <= 0;
}

static void receive(Client *c) {
    static char buffer[262144];
    ssize_t n = recv(c->fd, buffer, sizeof buffer, 0);
    if (n < 0) { if (errno != EAGAIN) broken(c); return; }
    if (n == 0) {
        if (c->state == BODY && c->left < 0) { c->close_after = 1; finish(c); return; }
        broken(c);
        return;
    }
    bytes += n;
    const char *data = buffer;
    if (c->state == HEAD) {
        long long room = HEAD_MAX - 1 - c->head_size, part = n < room ? n : room;
        int before = c->head_size;
        memcpy(c->head + before, buffer, part);
        c->head_size += part;
        c->head[c->head_size] = 0;
        char *end = strstr(c->head, "\r\n\r\n");
        if (!end) { if (part < n || part == room) fail(c, &e_read); return; }
        long long used = end + 4 - c->head - before;
        end[2] = 0;
        understand(c);
        data += used;
        n -= used;
        if (c->state == BODY && c->left == 0) { finish(c); return; }
    }
    if (n > 0 && body(c, data, n)) finish(c);
}

static void ready(Client *c, uint32_t events) {
    if (c->fd < 0) return;
    if (c->state == CONNECTING) {
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error) { fail(c, &e_connect); return; }
        send_request(c);
    } else if (c->state == SENDING) {
        send_request(c);
    } else if (c->state == IDLE) {
        hang_up(c);
    } else if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        receive(c);
    }
}

/* Open loop: hands what is due to free clients; returns the ns to wait for the next. */
static long long issue(long long now) {
    if (!rate) return 100000000;
    for (;;) {
        long long due = began_ns + issued * 1000000000LL / rate;
        if (due >= end_ns) return 10000000;
        if (due > now) return due - now;
        if (!idle_count) return 10000000;
        issued++;
        begin(idle[--idle_count], due);
    }
}

static void turn(void) {
    struct epoll_event events[512];
    static int no_pwait2;
    long long wait = issue(now_ns());
    struct timespec limit = { wait / 1000000000LL, wait % 1000000000LL };
    int n = -1;
    if (!no_pwait2) n = syscall(SYS_epoll_pwait2, poll_fd, events, 512, &limit, NULL, 0);
    if (n < 0 && errno == ENOSYS) no_pwait2 = 1;
    if (no_pwait2) n = epoll_wait(poll_fd, events, 512, rate ? 0 : 50);
    for (int i = 0; i < n; i++) ready(events[i].data.ptr, events[i].events);
}

static int all_done(long long now) {
    int open = 0;
    for (int i = 0; i < clients_count; i++) {
        Client *c = &clients[i];
        int busy = c->state != IDLE && c->state != DONE;
        if (!rate && c->state == IDLE) { rest(c); open = 1; }
        if (busy && now - c->begun_ns > REQUEST_LIMIT_NS) { fail(c, &e_timeout); continue; }
        open += busy;
    }
    if (rate && began_ns + issued * 1000000000LL / rate < end_ns) open = 1;
    return !open;
}

static void run(void) {
    long long checked = 0;
    began_ns = now_ns();
    end_ns = each ? INT64_MAX : began_ns + (long long)(seconds * 1e9);
    for (int i = 0; i < clients_count; i++) { clients[i].fd = -1; clients[i].remaining = each; }
    for (int i = 0; i < clients_count; i++) rest(&clients[i]);
    for (;;) {
        turn();
        long long now = now_ns();
        if (now - checked < 2000000) continue;
        checked = now;
        if (all_done(now)) break;
        if (!each && now > end_ns + (rate ? DRAIN_NS : 0)) break;
    }
    if (rate) { /* what was due and never answered is no answer at all */
        long long due = (long long)(seconds * rate);
        if (due > requests + e_connect + e_read + e_status + e_timeout)
            e_timeout += due - requests - e_connect - e_read - e_status - e_timeout;
    }
}

/* Answers that came late, while the open loop was draining, count: so does the time they took. */
static double took_s(void) {
    if (each) return (now_ns() - began_ns) / 1e9;
    double until_last = (answered_ns - began_ns) / 1e9;
    return until_last > seconds ? until_last : seconds;
}

static void print(void) {
    double mean = requests ? sum_us / requests : 0;
    double variance = requests ? squares_us / requests - mean * mean : 0;
    printf("{\"requests\":%lld,\"duration_s\":%.6f,\"bytes\":%lld,\"connect\":%lld,\"read\":%lld,"
           "\"status\":%lld,\"timeout\":%lld,\"wrong\":%lld,\"mean_us\":%.3f,\"stdev_us\":%.3f,"
           "\"max_us\":%.3f,\"over_100ms\":%lld,\"over_1s\":%lld,\"over_10s\":%lld,\"histogram\":[",
           requests, took_s(), bytes, e_connect, e_read, e_status, e_timeout, wrong, mean,
           variance > 0 ? sqrt(variance) : 0, max_us, over_100ms, over_1s, over_10s);
    const char *comma = "";
    for (int i = 0; i < BUCKETS; i++)
        if (counts[i]) { printf("%s[%lld,%lld]", comma, bound_of(i), counts[i]); comma = ","; }
    printf("],\"statuses\":{");
    comma = "";
    for (int i = 0; i < STATUS_MAX; i++)
        if (statuses[i]) { printf("%s\"%d\":%lld", comma, i, statuses[i]); comma = ","; }
    printf("},\"timeline\":[");
    for (long long i = 0; i < points_count; i++)
        printf("%s[%.2f,%.3f]", i ? "," : "", points[i].at_ms, points[i].took_ms);
    printf("]}\n");
}

static void usage(void) {
    fprintf(stderr, "hammer ADDRESS PORT [-c CLIENTS] [-d SECONDS | -n EACH] [-r RATE] [-k] [-t] "
                    "[-s SEED] FILE\n");
    exit(2);
}

/* In place: \r\n as two letters each becomes a line end. */
static void unescape(char *text) {
    char *to = text;
    for (; *text; text++) {
        if (text[0] == '\\' && (text[1] == 'r' || text[1] == 'n'))
            *to++ = *++text == 'r' ? '\r' : '\n';
        else *to++ = *text;
    }
    *to = 0;
}

static void read_kind(char **fields) {
    if (kind_count == KINDS_MAX) usage();
    Kind *kind = &kinds[kind_count++];
    *kind = (Kind){ atoi(fields[1]), atoi(fields[2]), !strcmp(fields[3], "HEAD"),
                    strdup(fields[4]) };
    unescape(kind->template);
    weights += kind->weight;
}

static void read_page(char **fields) {
    static int room;
    if (page_count == room) {
        room = room ? room * 2 : 64;
        pages = realloc(pages, room * sizeof *pages);
        if (!pages) exit(3);
    }
    pages[page_count++] = (Page){ strdup(fields[1]), strdup(fields[2]), atoll(fields[3]),
                                  strtoull(fields[4], NULL, 10) };
}

static void read_heads(const char *name) {
    static char line[8192];
    FILE *file = fopen(name, "r");
    if (!file) { perror(name); exit(2); }
    while (fgets(line, sizeof line, file)) {
        char *fields[5] = { 0 }, *rest = line;
        line[strcspn(line, "\n")] = 0;
        for (int i = 0; i < 5 && rest; i++) fields[i] = strsep(&rest, "\t");
        if (!strcmp(fields[0], "order")) in_turn = fields[1] && !strcmp(fields[1], "turn");
        else if (!fields[4]) usage();
        else if (!strcmp(fields[0], "kind")) read_kind(fields);
        else read_page(fields);
    }
    fclose(file);
}

static void resolve(const char *host, int port) {
    struct sockaddr_in *four = (struct sockaddr_in *)&address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address;
    if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
        four->sin_family = AF_INET; four->sin_port = htons(port); address_size = sizeof *four;
    } else if (inet_pton(AF_INET6, host, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6; six->sin6_port = htons(port); address_size = sizeof *six;
    } else usage();
}

int main(int argc, char **argv) {
    int option;
    if (argc < 3) usage();
    resolve(argv[1], atoi(argv[2]));
    const char *host = argv[1], *port = argv[2];
    argv += 2; argc -= 2;
    while ((option = getopt(argc, argv, "c:d:n:r:kts:")) != -1) {
        if (option == 'c') clients_count = atoi(optarg);
        else if (option == 'd') seconds = atof(optarg);
        else if (option == 'n') each = atoll(optarg);
        else if (option == 'r') rate = atoll(optarg);
        else if (option == 'k') keep = 1;
        else if (option == 't') timeline = 1;
        else if (option == 's') chance ^= strtoull(optarg, NULL, 10) * 2654435761ULL + 1;
        else usage();
    }
    if (optind + 1 != argc) usage();
    read_heads(argv[optind]);
    snprintf(own_host, sizeof own_host, "%s:%s", host, port);
    /* Two processes of one load may have equal seeds: each begins elsewhere all the same. */
    number = 100000000000000ULL + (next_chance() ^ (unsigned)getpid()) % 800000 * 1000000000ULL;
    if (!page_count || !kind_count || weights < 1 || clients_count < 1) usage();
    struct rlimit limit;
    if (!getrlimit(RLIMIT_NOFILE, &limit)) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    clients = calloc(clients_count, sizeof *clients);
    idle = calloc(clients_count, sizeof *idle);
    poll_fd = epoll_create1(0);
    if (!clients || !idle || poll_fd < 0) return 3;
    run();
    print();
    return 0;
}
