// SPDX-License-Identifier: MIT
// blocked: threads in many kinds of blocking calls. A call must not fail with EINTR, a wait must
// not be shorter than asked for, and each thing sent must be received once. On AArch64 a call that
// begins at the moment of a stop may fail with EINTR (docs/design/attach.md), and is made again.
#include "until_eof.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

enum {
    WAIT_MS = 25,
#ifdef __aarch64__
    MAY_SEE_EINTR = true,
#else
    MAY_SEE_EINTR = false,
#endif
};

static const struct timespec wait_time = {.tv_nsec = WAIT_MS * 1000000L};
static int g_idle[2]; // a pipe into which nothing is written

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct timespec later(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += wait_time.tv_nsec;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

// Waits that must end by their time: each returns 0 or the errno that says so.

static int wait_nanosleep(void)
{
    return nanosleep(&wait_time, NULL) == 0 ? 0 : errno;
}

static int wait_clock(void)
{
    struct timespec until = later(CLOCK_MONOTONIC);
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static int wait_futex(void)
{
    static uint32_t word;
    return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &wait_time, NULL, 0) < 0 &&
                   errno == ETIMEDOUT
               ? 0
               : errno;
}

static int wait_condition(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    struct timespec until = later(CLOCK_REALTIME);
    pthread_mutex_lock(&mutex);
    int result;
    while ((result = pthread_cond_timedwait(&condition, &mutex, &until)) == 0) {
    }
    pthread_mutex_unlock(&mutex);
    return result == ETIMEDOUT ? 0 : result;
}

static int wait_semaphore(void)
{
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    struct timespec until = later(CLOCK_REALTIME);
    return sem_timedwait(&semaphore, &until) < 0 && errno == ETIMEDOUT ? 0 : errno;
}

static int wait_poll(void)
{
    struct pollfd fd = {.fd = g_idle[0], .events = POLLIN};
    return poll(&fd, 1, WAIT_MS) == 0 ? 0 : errno;
}

static int wait_ppoll(void)
{
    struct pollfd fd = {.fd = g_idle[0], .events = POLLIN};
    sigset_t none;
    sigemptyset(&none);
    return ppoll(&fd, 1, &wait_time, &none) == 0 ? 0 : errno;
}

static int wait_select(void)
{
    struct timeval time = {.tv_usec = WAIT_MS * 1000L};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(g_idle[0], &set);
    return select(g_idle[0] + 1, &set, NULL, NULL, &time) == 0 ? 0 : errno;
}

static int epoll_of_idle(void)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(epoll, EPOLL_CTL_ADD, g_idle[0], &event);
    return epoll;
}

static int wait_epoll(void)
{
    struct epoll_event event;
    int epoll = epoll_of_idle();
    int result = epoll_wait(epoll, &event, 1, WAIT_MS) == 0 ? 0 : errno;
    close(epoll);
    return result;
}

static int wait_epoll_pwait(void)
{
    struct epoll_event event;
    sigset_t none;
    sigemptyset(&none);
    int epoll = epoll_of_idle();
    int result = epoll_pwait(epoll, &event, 1, WAIT_MS, &none) == 0 ? 0 : errno;
    close(epoll);
    return result;
}

static int wait_semop(void)
{
    static int set = -1;
    if (set < 0) {
        set = semget(IPC_PRIVATE, 1, 0600);
    }
    struct sembuf take = {.sem_op = -1};
    int result = semtimedop(set, &take, 1, &wait_time) < 0 && errno == EAGAIN ? 0 : errno;
    if (g_is_over) {
        semctl(set, 0, IPC_RMID);
    }
    return result;
}

static int wait_signal(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2); // blocked in all threads, never sent
    return sigtimedwait(&set, NULL, &wait_time) < 0 && errno == EAGAIN ? 0 : errno;
}

static int wait_receive(void)
{
    int pair[2];
    char byte;
    struct timeval time = {.tv_usec = WAIT_MS * 1000L};
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
    int result = recv(pair[0], &byte, 1, 0) < 0 && errno == EAGAIN ? 0 : errno;
    close(pair[0]);
    close(pair[1]);
    return result;
}

static int wait_timer(void)
{
    uint64_t count;
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec time = {.it_value = wait_time};
    timerfd_settime(timer, 0, &time, NULL);
    int result = read(timer, &count, sizeof(count)) == sizeof(count) ? 0 : errno;
    close(timer);
    return result;
}

static int wait_queue(void)
{
    char name[64];
    char buffer[16];
    struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = sizeof(buffer)};
    snprintf(name, sizeof(name), "/cairn-blocked-%d", getpid());
    mqd_t queue = mq_open(name, O_RDONLY | O_CREAT, 0600, &attributes);
    mq_unlink(name);
    struct timespec until = later(CLOCK_REALTIME);
    int result =
        mq_timedreceive(queue, buffer, sizeof(buffer), NULL, &until) < 0 && errno == ETIMEDOUT
            ? 0
            : errno;
    mq_close(queue);
    return result;
}

static int wait_child(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        nanosleep(&wait_time, NULL);
        _exit(7);
    }
    return waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7 ? 0 : errno;
}

struct wait {
    const char *name;
    int (*wait)(void);
};

static const struct wait waits[] = {
    {"nanosleep", wait_nanosleep},
    {"clock_nanosleep", wait_clock},
    {"futex", wait_futex},
    {"cond_timedwait", wait_condition},
    {"sem_timedwait", wait_semaphore},
    {"poll", wait_poll},
    {"ppoll", wait_ppoll},
    {"select", wait_select},
    {"epoll_wait", wait_epoll},
    {"epoll_pwait", wait_epoll_pwait},
    {"semtimedop", wait_semop},
    {"sigtimedwait", wait_signal},
    {"recv", wait_receive},
    {"timerfd", wait_timer},
    {"mq_timedreceive", wait_queue},
    {"waitpid", wait_child},
};

static void *run_wait(void *argument)
{
    const struct wait *wait = argument;
    while (!g_is_over) {
        const uint64_t before = now_ns(CLOCK_MONOTONIC);
        const uint64_t tick_before = now_ns(CLOCK_MONOTONIC_COARSE);
        errno = 0;
        int result = wait->wait();
        if (MAY_SEE_EINTR && result == EINTR) {
            continue;
        }
        // Some waits count ticks, and the first may come at once. A virtual processor that waited
        // for a real one gets ticks that it has missed all together.
        const uint64_t least = (WAIT_MS - 4) * 1000000u;
        const uint64_t waited = now_ns(CLOCK_MONOTONIC) - before;
        const uint64_t ticks = now_ns(CLOCK_MONOTONIC_COARSE) - tick_before;
        if (result != 0 || (waited < least && ticks < least)) {
            fail("%s: %s after %lu ns, by ticks %lu ns", wait->name, strerror(result),
                 (unsigned long)waited, (unsigned long)ticks);
        }
        g_checks++;
    }
    return NULL;
}

// Channels: a sender and a receiver; what was sent is received, once and in order.

enum {
    FIRST = 0,
    SECOND = 1,
    QUEUE_TYPE = 1
};

struct channel {
    const char *name;
    bool (*send)(struct channel *channel, uint32_t number);
    bool (*receive)(struct channel *channel, uint32_t *number);
    int fds[2];
    uint32_t last;
};

static bool send_write(struct channel *channel, uint32_t number)
{
    return write(channel->fds[SECOND], &number, sizeof(number)) == sizeof(number);
}

static bool receive_read(struct channel *channel, uint32_t *number)
{
    return read(channel->fds[FIRST], number, sizeof(*number)) == sizeof(*number);
}

static bool receive_message(struct channel *channel, uint32_t *number)
{
    struct iovec part = {.iov_base = number, .iov_len = sizeof(*number)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    return recvmsg(channel->fds[FIRST], &message, 0) == sizeof(*number);
}

struct queued {
    long type;
    uint32_t number;
};

static bool send_queue(struct channel *channel, uint32_t number)
{
    struct queued message = {.type = QUEUE_TYPE, .number = number};
    return msgsnd(channel->fds[FIRST], &message, sizeof(number), 0) == 0;
}

static bool receive_queue(struct channel *channel, uint32_t *number)
{
    struct queued message;
    if (msgrcv(channel->fds[FIRST], &message, sizeof(*number), QUEUE_TYPE, 0) < 0) {
        return false;
    }
    *number = message.number;
    return true;
}

static bool receive_epoll(struct channel *channel, uint32_t *number)
{
    struct epoll_event event = {.events = EPOLLIN};
    int epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, channel->fds[FIRST], &event);
    int got = epoll_wait(epoll, &event, 1, -1);
    close(epoll);
    return got == 1 && receive_read(channel, number);
}

static bool receive_accept(struct channel *channel, uint32_t *number)
{
    int fd = accept(channel->fds[FIRST], NULL, NULL);
    bool is_read = fd >= 0 && read(fd, number, sizeof(*number)) == sizeof(*number);
    if (fd >= 0) {
        close(fd);
    }
    return is_read;
}

static bool send_connect(struct channel *channel, uint32_t number)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t len = sizeof(address);
    getsockname(channel->fds[FIRST], (struct sockaddr *)&address, &len);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    bool is_sent = connect(fd, (struct sockaddr *)&address, len) == 0 &&
                   write(fd, &number, sizeof(number)) == sizeof(number);
    close(fd);
    return is_sent;
}

static struct channel channels[] = {
    {.name = "pipe", .send = send_write, .receive = receive_read},
    {.name = "socket", .send = send_write, .receive = receive_message},
    {.name = "epoll", .send = send_write, .receive = receive_epoll},
    {.name = "msgrcv", .send = send_queue, .receive = receive_queue},
    {.name = "accept", .send = send_connect, .receive = receive_accept},
};

static void open_channels(void)
{
    (void)!pipe(channels[0].fds);
    socketpair(AF_UNIX, SOCK_DGRAM, 0, channels[1].fds);
    (void)!pipe(channels[2].fds);
    channels[3].fds[FIRST] = msgget(IPC_PRIVATE, 0600);
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    channels[4].fds[FIRST] = socket(AF_UNIX, SOCK_STREAM, 0);
    bind(channels[4].fds[FIRST], (struct sockaddr *)&any, sizeof(any.sun_family)); // a free name
    listen(channels[4].fds[FIRST], 16);
}

static void *run_receiver(void *argument)
{
    struct channel *channel = argument;
    for (uint32_t expected = 1;; expected++) {
        uint32_t number = 0;
        if (!channel->receive(channel, &number)) {
            if (MAY_SEE_EINTR && errno == EINTR) {
                expected--; // it has not come yet
                continue;
            }
            fail("%s: %s", channel->name, strerror(errno));
        } else if (number == 0) {
            return NULL; // the last one
        } else if (number != expected) {
            fail("%s: %u instead of %u", channel->name, number, expected);
            expected = number;
        } else {
            channel->last = number;
            g_checks++;
        }
    }
}

static void *run_sender(void *argument)
{
    struct channel *channel = argument;
    struct timespec pause = {.tv_nsec = 3000000};
    uint32_t number = 1;
    for (; !g_is_over; number++) {
        nanosleep(&pause, NULL);
        if (!channel->send(channel, number)) {
            fail("%s: cannot send: %s", channel->name, strerror(errno));
        }
    }
    channel->send(channel, 0);
    return (void *)(uintptr_t)(number - 1);
}

int main(void)
{
    enum {
        WAITS = sizeof(waits) / sizeof(waits[0]),
        CHANNELS = sizeof(channels) / sizeof(channels[0])
    };
    pthread_t waiters[WAITS];
    pthread_t senders[CHANNELS];
    pthread_t receivers[CHANNELS];
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)!pipe(g_idle);
    open_channels();
    for (size_t i = 0; i < WAITS; i++) {
        waiters[i] = start(run_wait, (void *)(uintptr_t)&waits[i]);
    }
    for (size_t i = 0; i < CHANNELS; i++) {
        receivers[i] = start(run_receiver, &channels[i]);
        senders[i] = start(run_sender, &channels[i]);
    }
    begin();
    for (size_t i = 0; i < WAITS; i++) {
        pthread_join(waiters[i], NULL);
    }
    for (size_t i = 0; i < CHANNELS; i++) {
        void *sent;
        pthread_join(senders[i], &sent);
        pthread_join(receivers[i], NULL);
        if (channels[i].last != (uint32_t)(uintptr_t)sent) {
            fail("%s: %u received of %u", channels[i].name, channels[i].last,
                 (uint32_t)(uintptr_t)sent);
        }
    }
    msgctl(channels[3].fds[FIRST], IPC_RMID, NULL);
    return verdict();
}
