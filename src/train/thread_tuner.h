/* Chooses the threads of a training step: all, or one.
 *
 * A step is some hundred short loops, each of which waits for its slowest thread. Beside another busy program the
 * system may suspend a thread for milliseconds, and two threads then take several times as long as one. Only the time
 * of steps shows this. So now and then a few steps run the other way, and the faster way is kept. Results do not
 * depend on it. */
#ifndef ACF_TRAIN_THREAD_TUNER_H
#define ACF_TRAIN_THREAD_TUNER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct acf_thread_tuner {
    int most, now;
    bool trying;     /* the other way is on trial, for ACF_THREAD_TUNER_TRIED steps */
    int64_t period;  /* steps until the next trial */
    int64_t counted; /* steps since the last decision */
    double spent;    /* seconds of the last ACF_THREAD_TUNER_TRIED of them at most */
    double usual;    /* seconds of as many steps before the trial */
} acf_thread_tuner;

#define ACF_THREAD_TUNER_TRIED 6
#define ACF_THREAD_TUNER_FIRST 12
#define ACF_THREAD_TUNER_LAST 1536

acf_thread_tuner acf_thread_tuner_begin(int threads);

/* Reports the time of a step with p->now threads; sets p->now for the next one. */
void acf_thread_tuner_step(acf_thread_tuner *p, double seconds);

#endif
