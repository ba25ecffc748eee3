/* Compares a whole image model on a GPU with the same one on the CPU: likelihoods, gradients, draws, training by
 * CUDA graphs. Run by acflow-test --device cuda. With --device cpu both are the same, which tests this file. */
#include "harness/image_lab.h"
#include "ops/adam.h"
#include "ops/arith.h"
#include "ops/reduce.h"
#include "tensor/tape_graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void must(acf_status status) {
    if (status) fail_msg("%s", acf_error());
}

/* ---- the same model twice ---------------------------------------------------------------------------------------- */

typedef struct pair {
    acf_image_lab cpu, gpu;
} pair;

static void open_pair(pair *p, const acf_image_sizes *s, int64_t N, acf_image_mask mask, double away) {
    acf_test_device()->precision = ACF_PRECISION_FLOAT;
    acf_image_lab_open(&p->cpu, 2, s, N, mask, away);
    acf_image_lab_open_on(&p->gpu, acf_test_device(), s, N, mask, away);
}

static void close_pair(pair *p) {
    acf_image_lab_close(&p->gpu);
    acf_image_lab_close(&p->cpu);
}

static void mask_both(pair *p, acf_image_mask mask) {
    acf_image_lab_mask(&p->cpu, mask);
    acf_image_lab_mask(&p->gpu, mask);
}

/* Models of every likelihood, with and without a flow. */
static acf_image_sizes sizes_of(int k) {
    static const acf_image_like_kind *const likes[] = {&acf_image_normal, &acf_image_gaussian, &acf_image_pixelcnn,
                                                       &acf_image_pixelcnn};
    acf_image_sizes s = acf_image_lab_sizes(8, k == 3 ? 3 : 1, k == 2 ? 0 : k == 3 ? 2 : 3, likes[k]);
    s.width = 12, s.like_width = 12;
    return s;
}
#define KINDS 4

/* ---- likelihoods and transformations ----------------------------------------------------------------------------- */

static acf_real *fetch_logp(acf_image_lab *l) {
    acf_tape_begin(l->t, false);
    acf_tensor *y = acf_image_net_logp(l->t, acf_image_net_view(l->t, l->net, &l->q, NULL));
    must(acf_tape_status(l->t));
    return acf_lab_fetch(l->dev, y->data, l->N);
}

static void same_likelihoods(void **state) {
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        pair p;
        const acf_image_sizes s = sizes_of(k);
        open_pair(&p, &s, 5, ACF_IMAGE_SOME, 0.1);
        for (int mask = 0; mask < ACF_IMAGE_MASKS; mask++) {
            mask_both(&p, (acf_image_mask)mask);
            acf_real *x = fetch_logp(&p.cpu), *y = fetch_logp(&p.gpu);
            for (int64_t n = 0; n < 5; n++)
                if (!(fabs((double)(x[n] - y[n])) <= 1e-3))
                    fail_msg("%s, mask %d, image %d: log p is %.6f here and %.6f there", s.like->name, mask, (int)n,
                             (double)x[n], (double)y[n]);
            free(x), free(y);
        }
        close_pair(&p);
    }
}

/* On the device alone: inverse of forward is the identity, and given pixels stay, bit for bit. */
static void check_inverse(acf_image_lab *l, acf_image_mask mask) {
    acf_image_lab_mask(l, mask);
    acf_tape_begin(l->t, false);
    acf_image_view *v = acf_image_net_view(l->t, l->net, &l->q, NULL);
    acf_tensor *logdet, *z = acf_image_net_forward(l->t, v, &logdet), *x = acf_image_net_inverse(l->t, v, z);
    must(acf_tape_status(l->t));
    const int64_t n = acf_tensor_count(z);
    acf_real *there = acf_lab_fetch(l->dev, z->data, n), *back = acf_lab_fetch(l->dev, x->data, n);
    for (int64_t i = 0; i < n; i++) {
        const acf_real was = l->role[i / l->C] != ACF_PIXEL_ABSENT ? l->x[i] : 0;
        if (acf_image_lab_modelled(l, i))
            acf_assert_close((double)back[i], (double)was, 1e-4, "x again");
        else
            assert_true(memcmp(&there[i], &was, sizeof was) == 0 && memcmp(&back[i], &was, sizeof was) == 0);
    }
    free(there), free(back);
}

static void inverts_for_every_mask(void **state) {
    (void)state;
    acf_image_lab l;
    acf_image_sizes s = acf_image_lab_sizes(8, 3, 3, &acf_image_normal);
    acf_test_device()->precision = ACF_PRECISION_FLOAT;
    acf_image_lab_open_on(&l, acf_test_device(), &s, 3, ACF_IMAGE_NONE, 0.2);
    for (int mask = 0; mask < ACF_IMAGE_MASKS; mask++) check_inverse(&l, (acf_image_mask)mask);
    acf_image_lab_close(&l);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* -mean log p per number, plus the best guess's error if it has a derivative. */
static acf_tensor *loss_of(acf_image_lab *l, const acf_image_query *q, const acf_pass *pass, bool guess) {
    acf_image_view *v = acf_image_net_view(l->t, l->net, q, pass);
    acf_tensor *loss =
        acf_scale(l->t, -2.0 / (double)(l->H * l->W * l->C), acf_mean(l->t, acf_image_net_logp(l->t, v)));
    acf_tensor *error = guess ? acf_image_net_guess_error(l->t, v) : NULL;
    return error ? acf_axpy(l->t, 0.1, acf_mean(l->t, error), loss) : loss;
}

static acf_real *fetch_gradient(acf_image_lab *l) {
    acf_params *ps = acf_image_net_params(l->net);
    const acf_pass pass = {.dropout = 0.2, .seed = 3, .step = 1};
    must(acf_params_zero_grad(ps));
    acf_tape_begin(l->t, true);
    must(acf_tape_backward(l->t, loss_of(l, &l->q, &pass, true)));
    return acf_lab_fetch(l->dev, ps->grad, ps->total);
}

static void same_gradients(void **state) {
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        pair p;
        const acf_image_sizes s = sizes_of(k);
        open_pair(&p, &s, 6, ACF_IMAGE_SOME, 0.1);
        acf_real *x = fetch_gradient(&p.cpu), *y = fetch_gradient(&p.gpu);
        double apart = 0, norm = 0;
        for (int64_t i = 0; i < acf_image_net_params(p.cpu.net)->total; i++) {
            apart += pow((double)x[i] - (double)y[i], 2), norm += pow((double)x[i], 2);
        }
        if (!(norm > 0 && sqrt(apart) <= 1e-3 * sqrt(norm)))
            fail_msg("kind %d: gradients of norm %g are %g apart", k, sqrt(norm), sqrt(apart));
        free(x), free(y);
        close_pair(&p);
    }
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/* A draw close to the border of two components may fall on the other side and change the rest of its image. So at
 * most `most` images may differ. */
static void assert_same_images(const acf_image_lab *l, const acf_real *x, const acf_real *y, int most,
                               const char *what) {
    int others = 0;
    for (int64_t n = 0; n < l->N; n++) {
        const int64_t size = l->H * l->W * l->C;
        bool same = true;
        for (int64_t i = n * size; i < (n + 1) * size; i++)
            same = same && fabs((double)(x[i] - y[i])) <= 5e-3 * (1 + fabs((double)x[i]));
        others += !same;
    }
    if (others > most) fail_msg("%s: %d of %d images differ", what, others, (int)l->N);
}

static void same_answers(void **state) {
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        pair p;
        const acf_image_sizes s = sizes_of(k);
        open_pair(&p, &s, 6, ACF_IMAGE_SOME, 0.1);
        const size_t n = (size_t)(6 * s.H * s.W * s.C);
        acf_real *x = calloc(n, sizeof *x), *y = calloc(n, sizeof *y);
        assert_true(x && y);
        for (uint32_t draw = 0; draw < 3; draw++) {
            const acf_draw d = {.seed = 4, .draw = draw, .log_temperature = draw == 1 ? -0.3 : 0};
            for (int side = 0; side < 2; side++) {
                acf_image_lab *l = side ? &p.gpu : &p.cpu;
                acf_tape_begin(l->t, false);
                acf_image_view *v = acf_image_net_view(l->t, l->net, &l->q, NULL);
                must(draw < 2 ? acf_image_net_draw(l->t, v, &d, side ? y : x)
                              : acf_image_net_guess(l->t, v, side ? y : x));
            }
            assert_same_images(&p.cpu, x, y, draw < 2 ? 1 : 0, draw < 2 ? "draws" : "best guesses");
        }
        free(x), free(y);
        close_pair(&p);
    }
}

/* ---- CUDA graphs ------------------------------------------------------------------------------------------------- */

/* The query's arrays in device memory, and what a captured run needs there. */
typedef struct capture_args {
    acf_image_lab *l;
    acf_image_query there;
    uint32_t *now;
    acf_tensor *answer;
    bool train;
} capture_args;

static void *place(acf_device *dev, const void *data, size_t bytes) {
    void *p = dev->memory.alloc(dev->memory.ctx, bytes);
    assert_non_null(p);
    must(acf_device_copy(dev, p, data, bytes, ACF_TO_DEVICE));
    must(acf_device_sync(dev));
    return p;
}

static void open_capture(capture_args *e, acf_image_lab *l) {
    const size_t pixels = (size_t)(l->N * l->H * l->W);
    const uint32_t zero = 0;
    *e = (capture_args){.l = l, .now = place(l->dev, &zero, sizeof zero)};
    e->there = (acf_image_query){.N = l->N,
                                 .x = place(l->dev, l->x, pixels * (size_t)l->C * sizeof *l->x),
                                 .role = place(l->dev, l->role, pixels),
                                 .there = true};
}

static void close_capture(capture_args *e) {
    const acf_memory *m = &e->l->dev->memory;
    m->free(m->ctx, (void *)e->there.x), m->free(m->ctx, (void *)e->there.role), m->free(m->ctx, e->now);
}

static acf_status enqueue_draw(void *ctx) {
    capture_args *e = ctx;
    acf_tape *t = e->l->t;
    acf_tape_begin(t, false);
    e->answer = acf_image_net_answer(t, acf_image_net_view(t, e->l->net, &e->there, NULL),
                                     &(acf_draw){.seed = 4, .now = e->l->dev->plugin ? e->now : NULL});
    return acf_tape_status(t);
}

/* Draws from a CUDA graph equal uncaptured ones bit for bit. The number of the draw is not part of the graph. */
static void replays_give_distinct_draws(void **state) {
    (void)state;
    if (!acf_test_device()->plugin) acf_skip("nothing is captured on the CPU");
    for (int k = 1; k < KINDS; k++) {
        acf_image_lab l;
        capture_args e;
        acf_tape_graph r = {0};
        const acf_image_sizes s = sizes_of(k);
        acf_test_device()->precision = ACF_PRECISION_FLOAT;
        acf_image_lab_open_on(&l, acf_test_device(), &s, 6, ACF_IMAGE_SOME, 0.1);
        open_capture(&e, &l);
        const int64_t n = 6 * s.H * s.W * s.C;
        acf_real *hand[4], *replayed[4];
        for (uint32_t draw = 0; draw < 4; draw++) {
            acf_tape_begin(l.t, false);
            acf_tensor *y = acf_image_net_answer(l.t, acf_image_net_view(l.t, l.net, &l.q, NULL),
                                                 &(acf_draw){.seed = 4, .draw = draw});
            must(acf_tape_status(l.t));
            hand[draw] = acf_lab_fetch(l.dev, y->data, n);
        }
        for (uint32_t draw = 0; draw < 4; draw++) {
            must(acf_device_copy(l.dev, e.now, &draw, sizeof draw, ACF_TO_DEVICE));
            must(acf_tape_graph_run(&r, l.t, enqueue_draw, &e, 1));
            replayed[draw] = acf_lab_fetch(l.dev, e.answer->data, n);
        }
        assert_true(acf_tape_graph_ready(&r));
        for (int draw = 0; draw < 4; draw++) {
            assert_memory_equal(hand[draw], replayed[draw], (size_t)n * sizeof(acf_real));
            if (draw) assert_memory_not_equal(hand[draw], hand[0], (size_t)n * sizeof(acf_real));
        }
        for (int draw = 0; draw < 4; draw++) free(hand[draw]), free(replayed[draw]);
        acf_tape_graph_free(&r, l.dev);
        close_capture(&e);
        acf_image_lab_close(&l);
    }
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static const acf_adam adam = {.lr = 3e-3, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8};

static acf_status enqueue_step(void *ctx) {
    capture_args *e = ctx;
    acf_tape *t = e->l->t;
    acf_params *ps = acf_image_net_params(e->l->net);
    acf_tape_begin(t, true);
    ACF_TRY(acf_params_zero_grad(ps));
    acf_tensor *loss = loss_of(e->l, &e->there, NULL, false);
    ACF_TRY(acf_tape_backward(t, loss));
    ACF_TRY(acf_device_copy(t->dev, &ps->pace->loss[0], loss->data, sizeof(acf_real), ACF_ON_DEVICE));
    return acf_optimise(ps, &adam, 1, 0);
}

/* Images of a slanted edge; the given pixels determine its position. */
static void draw_edges(acf_image_lab *l, int step) {
    for (int64_t i = 0; i < l->N * 64; i++) {
        const int64_t n = i / 64, h = i / 8 % 8, w = i % 8, id = step * l->N + n;
        const double slope = acf_lab_random(1, id, -1, 1), at = acf_lab_random(2, id, 2, 6);
        l->x[i] = (acf_real)(((double)w - at > slope * ((double)h - 3.5) ? 1 : -1) +
                             0.2 * acf_lab_random(3, id * 64 + h * 8 + w, -1, 1));
        l->role[i] = acf_lab_random(4, id * 64 + h * 8 + w, 0, 1) < 0.5;
    }
}

/* Losses of so many steps, on the CPU or, captured, on the GPU. */
static void train(acf_image_lab *l, int steps, double *losses) {
    acf_params *ps = acf_image_net_params(l->net);
    const bool captured = l->dev->plugin;
    capture_args e;
    acf_tape_graph r = {0};
    open_capture(&e, l);
    const acf_pace pace = {.lr = adam.lr, .step = 1};
    if (captured) must(acf_device_copy(l->dev, ps->pace, &pace, sizeof pace, ACF_TO_DEVICE));
    for (int k = 0; k < steps; k++) {
        const size_t pixels = (size_t)(l->N * 64);
        acf_real loss = 0;
        double norm;
        draw_edges(l, k);
        if (captured) {
            must(acf_device_copy(l->dev, (void *)e.there.x, l->x, pixels * sizeof *l->x, ACF_TO_DEVICE));
            must(acf_device_copy(l->dev, (void *)e.there.role, l->role, pixels, ACF_TO_DEVICE));
            must(acf_tape_graph_run(&r, l->t, enqueue_step, &e, 1));
            must(acf_device_copy(l->dev, &loss, &ps->pace->loss[0], sizeof loss, ACF_TO_HOST));
            must(acf_device_sync(l->dev));
        } else {
            must(acf_params_zero_grad(ps));
            acf_tape_begin(l->t, true);
            acf_tensor *y = loss_of(l, &l->q, NULL, false);
            must(acf_tape_backward(l->t, y));
            must(acf_grad_norm(ps, &norm));
            must(acf_adam_step(ps, &adam, k + 1, acf_clip_factor(norm, 1)));
            loss = y->data[0];
        }
        losses[k] = (double)loss;
    }
    if (captured) assert_true(acf_tape_graph_ready(&r));
    acf_tape_graph_free(&r, l->dev);
    close_capture(&e);
}

/* The first losses are equal until rounding grows; the final ones are similar. */
static void same_training(void **state) {
    (void)state;
    enum { STEPS = 40 };
    const acf_image_sizes kinds[] = {
        {.H = 8, .W = 8, .C = 1, .scales = 2, .blocks = 1, .width = 12, .like = &acf_image_normal},
        {.H = 8,
         .W = 8,
         .C = 1,
         .like = &acf_image_pixelcnn,
         .like_width = 12,
         .like_blocks = 2,
         .embed_blocks = 1,
         .embed_deep = 2,
         .components = 3}};
    for (int k = 0; k < 2; k++) {
        pair p;
        double x[STEPS], y[STEPS], end[2] = {0, 0};
        open_pair(&p, &kinds[k], 24, ACF_IMAGE_NONE, 0);
        train(&p.cpu, STEPS, x);
        train(&p.gpu, STEPS, y);
        for (int i = 0; i < 8; i++) acf_assert_close(y[i], x[i], 2e-3, "the loss of a step");
        for (int i = STEPS - 10; i < STEPS; i++) end[0] += x[i] / 10, end[1] += y[i] / 10;
        print_message("%s: nats a number after %d steps: %.3f here, %.3f there, %.3f at first\n", kinds[k].like->name,
                      STEPS, end[0], end[1], x[0]);
        assert_true(end[1] < x[0] - 0.3 && fabs(end[0] - end[1]) < 0.1);
        close_pair(&p);
    }
}

ACF_DEVICE_TESTS(gpu_image, cmocka_unit_test(same_likelihoods), cmocka_unit_test(inverts_for_every_mask),
                 cmocka_unit_test(same_gradients), cmocka_unit_test(same_answers),
                 cmocka_unit_test(replays_give_distinct_draws), cmocka_unit_test(same_training))
