/* On-board software in C, fed by WaVeSim's mailbox.
 *
 *   cc -o reader reader.c -lrt
 *   ./reader /auv.in &                                   # prints its process ID
 *   wavesim mailbox lauv --queue /auv.in --signal USR1 --pid PID
 *
 * The mailbox joins the server as "lauv", drops every message into the queue, and sends SIGUSR1 after
 * each. This program sleeps until the signal comes and then empties the queue. It ends when the run
 * has ended, or after the number of states given as second argument.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wavesim_mailbox.h"

static volatile sig_atomic_t told;

static void on_signal(int number)
{
    (void)number;
    told++;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s QUEUE [STATES]\n", argv[0]);
        return 2;
    }
    long wanted = argc > 2 ? atol(argv[2]) : 0;
    long states = 0, receptions = 0;
    int ended = 0;

    /* Block the signal while not waiting for it, so that none is missed between check and sleep. */
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t blocked, before;
    sigaction(SIGUSR1, &action, NULL);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, &before);

    struct mq_attr attributes = {.mq_maxmsg = 8, .mq_msgsize = WAVESIM_MESSAGE_BYTES};
    mqd_t queue = mq_open(argv[1], O_RDONLY | O_CREAT | O_NONBLOCK, 0600, &attributes);
    if (queue == (mqd_t)-1) {
        fprintf(stderr, "cannot open the queue %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    printf("pid %ld\n", (long)getpid());
    fflush(stdout);

    while (!ended && (wanted == 0 || states < wanted)) {
        char message[WAVESIM_MESSAGE_BYTES];
        ssize_t bytes = mq_receive(queue, message, sizeof message, NULL);
        if (bytes < 0 && errno == EAGAIN) {
            sigsuspend(&before); /* until the mailbox says that there is something */
            continue;
        }
        if (bytes < 0) {
            fprintf(stderr, "cannot read the queue: %s\n", strerror(errno));
            return 1;
        }
        struct wavesim_head head;
        memcpy(&head, message, sizeof head);
        if (bytes < (ssize_t)sizeof head || head.bytes != bytes - (ssize_t)sizeof head)
            continue;
        if (head.kind == WAVESIM_STATE && head.bytes == sizeof(struct wavesim_mailbox_state)) {
            struct wavesim_mailbox_state state;
            memcpy(&state, message + sizeof head, sizeof state);
            states++;
            printf("state %" PRId64 " %.3f %.6f %.6f %.6f %.6f\n", state.tick, state.time_ns * 1e-9, state.p_WB_W[0],
                   state.p_WB_W[1], state.p_WB_W[2], state.actuation[0]);
        } else if (head.kind == WAVESIM_RECEPTION && head.bytes == sizeof(struct wavesim_mailbox_reception)) {
            struct wavesim_mailbox_reception heard;
            memcpy(&heard, message + sizeof head, sizeof heard);
            receptions++;
            printf("heard %" PRId64 " %.9f %.1f Hz %.1f dB\n", heard.id, heard.reception_ns * 1e-9, heard.frequency,
                   heard.level);
        } else if (head.kind == WAVESIM_RUN_STATE && head.bytes == sizeof(int64_t)) {
            int64_t run_state;
            memcpy(&run_state, message + sizeof head, sizeof run_state);
            ended = run_state == 3;
        }
    }
    printf("done states %ld receptions %ld signals %d\n", states, receptions, (int)told);
    mq_close(queue);
    mq_unlink(argv[1]);
    return 0;
}
