/* Simple fillings, the baselines of a model: see image_evaluate.h. */
#include "device/cpu.h"
#include "infer/image_evaluate.h"

#include <math.h>

#define SWEEPS 2000 /* at most; usual are about 100 */
#define STILL 1e-3  /* of the greatest level: a sweep with smaller changes is the last */

void acf_fill_mean(const acf_images *im, const uint8_t *b, const acf_images *seen, double *out) {
    const acf_images *from = seen ? seen : im;
    const int64_t n = im->H * im->W * im->C, others = seen ? seen->N : im->N - 1;
    for (int64_t k = 0; k < n; k++) {
        double sum = 0;
        for (int64_t i = 0; i < from->N; i++) sum += from->pixel[i * n + k];
        for (int64_t i = 0; i < im->N; i++) {
            const double own = im->pixel[i * n + k];
            out[i * n + k] = b && b[(i * n + k) / im->C] ? own
                             : others                    ? (seen ? sum : sum - own) / (double)others
                                                         : NAN;
        }
    }
}

/* ---- smooth ------------------------------------------------------------------------------------------------------ */

/* One image and channel; neighbouring pixels are C apart. */
typedef struct plane {
    int64_t H, W, C;
    const uint8_t *b; /* (H,W) */
    double *v;
} plane;

/* Starts hidden pixels at the mean of the given ones; false: none is given. */
static bool begin(const plane *p) {
    double sum = 0, given = 0;
    for (int64_t k = 0; k < p->H * p->W; k++)
        if (p->b[k]) sum += p->v[k * p->C], given++;
    for (int64_t k = 0; k < p->H * p->W && given > 0; k++)
        if (!p->b[k]) p->v[k * p->C] = sum / given;
    return given > 0;
}

static double neighbours(const plane *p, int64_t y, int64_t x) {
    const double *v = p->v + (y * p->W + x) * p->C;
    double sum = 0, n = 0;
    if (y > 0) sum += v[-p->W * p->C], n++;
    if (y < p->H - 1) sum += v[p->W * p->C], n++;
    if (x > 0) sum += v[-p->C], n++;
    if (x < p->W - 1) sum += v[p->C], n++;
    return sum / n;
}

/* One sweep of over-relaxation over hidden pixels; returns the largest change. */
static double sweep(const plane *p, double omega) {
    double most = 0;
    for (int64_t y = 0; y < p->H; y++)
        for (int64_t x = 0; x < p->W; x++) {
            if (p->b[y * p->W + x]) continue;
            double *v = p->v + (y * p->W + x) * p->C, change = omega * (neighbours(p, y, x) - *v);
            *v += change;
            most = fmax(most, fabs(change));
        }
    return most;
}

/* Uses the over-relaxation that is optimal for a square of this side with free edges: about 3 · side sweeps instead
 * of side^2. */
static void smooth(const plane *p, double still) {
    const double omega = 2 / (1 + sin(M_PI / (2.0 * (double)acf_max(p->H, p->W))));
    if (!begin(p)) return;
    for (int k = 0; k < SWEEPS && sweep(p, omega) > still; k++) {}
}

void acf_fill_smooth(const acf_device *dev, const acf_images *im, const uint8_t *b, double *out) {
    const int64_t P = im->H * im->W;
    const double still = STILL * ((1 << im->bits) - 1);
    ACF_PARALLEL_UNEVEN(dev, im->N * P * im->C * 100)
    for (int64_t i = 0; i < im->N; i++)
        for (int64_t c = 0; c < im->C && b; c++)
            smooth(&(plane){im->H, im->W, im->C, b + i * P, out + i * P * im->C + c}, still);
}
