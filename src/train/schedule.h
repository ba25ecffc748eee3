/* The step size of each step: a function of the step alone, so that a resumed run continues where it was.
 *
 *     lr        ______
 *              /      \__            warm-up: lr · step / warmup, never 0
 *             /          \___        decay:   from lr at the end of warm-up to lr · to at the last step,
 *     lr·to  /               \____            linear, half a cosine, or none
 *            0  warmup      total
 *
 * With halve_every, the result is halved after each so many steps. */
#ifndef ACF_TRAIN_SCHEDULE_H
#define ACF_TRAIN_SCHEDULE_H

#include "base/real.h"

/* In the order of the enum, for an option. */
typedef enum acf_decay { ACF_DECAY_CONSTANT, ACF_DECAY_LINEAR, ACF_DECAY_COSINE } acf_decay;

typedef struct acf_schedule {
    double lr;      /* the largest step size */
    int64_t warmup; /* steps */
    int64_t total;  /* steps of the run; 0: unknown, and nothing decays */
    acf_decay decay;
    double to;           /* fraction of lr at the end, 0..1 */
    int64_t halve_every; /* the step size is halved after each so many steps; 0: never */
} acf_schedule;

/* The step size of a step, counted from 1; constant after the last step. */
double acf_schedule_at(const acf_schedule *s, int64_t step);

#endif
