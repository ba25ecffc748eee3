/* How many threads share a training step: all that there are, or one.
 *
 * A step is some hundred short loops, each of which waits for its slowest thread. Beside another busy program that is a
 * thread which the system has put aside for milliseconds, and two threads take several times as long as one. What the
 * system does is not known but for the time that steps take, so now and then a few steps are taken the other way, and
 * what was faster goes on. Results do not depend on it. */
#ifndef ACF_TRAIN_THREAD_TUNER_H
#define ACF_TRAIN_THREAD_TUNER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct acf_thread_tuner {
    int most, now;
    bool trying;     /* the other way, for ACF_THREAD_TUNER_TRIED steps */
    int64_t period;  /* steps until it is tried */
    int64_t counted; /* steps since it was last decided */
    double spent;    /* seconds of the last ACF_THREAD_TUNER_TRIED of them at most */
    double usual;    /* of as many steps before the other way was tried */
} acf_thread_tuner;

#define ACF_THREAD_TUNER_TRIED 6
#define ACF_THREAD_TUNER_FIRST 12
#define ACF_THREAD_TUNER_LAST 1536

acf_thread_tuner acf_thread_tuner_begin(int threads);

/* A step has taken so long with p->now threads; p->now is of the next one. */
void acf_thread_tuner_step(acf_thread_tuner *p, double seconds);

#endif
