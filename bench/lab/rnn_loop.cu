/* Kernel lab of the recurrent loops on a GPU. Checks the plain form against double on the host, every tiling of the
 * narrow form against the plain one, and draws against base/rng.c. Then times them, beside the time for streaming the
 * weights at 137 GB/s per block.
 *
 *     nvcc -std=c++17 -O3 -Isrc -gencode=arch=compute_90a,code=sm_90a -cudart static
 *         src/ops/rnn_loop_*.cu bench/lab/rnn_loop.cu rng.o -lcublas -o lab-loop
 *                                   (rng.o: gcc -Isrc -O2 -c src/base/rng.c)
 *     lab-loop [small|check]        small: few small checks, for a memory checker; check: no times
 *                                   Exit status 1 when a check fails. */
#include "ops/rnn_loop_stream.cuh"
extern "C" {
#include "base/rng.h"
}

#include "lab.cuh"

#include <cublas_v2.h>

typedef std::vector<double> doubles;

/* ---- a problem --------------------------------------------------------------------------------------------------- */

typedef struct problem {
    int N, D, L, H, F, O, E, act;
    acf_loop_kind kind;
    bool cond, biases, tail;
    float bound, lo, hi;
    std::vector<int32_t> active, first, row, row_of, col_of;
    std::vector<uint64_t> row_id;
    int64_t T, cap; /* true, capacity */
    floats c[4], wx[4], bx[4], wh[4], bh[4], w1, b1, w2, b2, input, z, dy;
} problem;

/* Sizes: each column with probability p, some rows empty, some full. */
static void make_rows(problem *q, double p) {
    std::vector<int> size((size_t)q->N);
    for (int &s : size) {
        s = 0;
        for (int j = 0; j < q->D; j++) s += uniform() < 2 * p - 1;
        if (uniform() < -0.96) s = 0;
        if (uniform() < -0.98) s = q->D;
    }
    q->row.resize((size_t)q->N), q->row_id.resize((size_t)q->N);
    for (int i = 0; i < q->N; i++)
        q->row[(size_t)i] = i, q->row_id[(size_t)i] = 1000003ull * (uint64_t)i + (1ull << 33);
    std::stable_sort(q->row.begin(), q->row.end(), [&](int a, int b) { return size[(size_t)a] > size[(size_t)b]; });
    q->active.assign((size_t)q->D + 1, 0), q->first.assign((size_t)q->D + 1, 0);
    for (int t = 0; t < q->D; t++) {
        for (int s : size) q->active[(size_t)t] += s > t;
        q->first[(size_t)t + 1] = q->first[(size_t)t] + q->active[(size_t)t];
        for (int k = 0; k < q->active[(size_t)t]; k++)
            q->row_of.push_back(q->row[(size_t)k]), q->col_of.push_back(t * 2);
    }
    q->T = q->first[(size_t)q->D];
    q->cap = q->T + (q->tail ? 19 : 0);
}

static problem make_problem(acf_loop_kind kind, int N, int D, int L, int H, int O, int form, double p = 0.5) {
    problem q = {};
    q.kind = kind, q.N = N, q.D = D, q.L = L, q.H = H, q.F = form % 3 == 2 && H > 16 ? H - 16 : H, q.O = O,
    q.tail = true;
    q.E = form % 4 == 3 ? 3 : 0, q.act = form % 7, q.cond = form % 2 == 0, q.biases = form % 5 != 4;
    q.bound = 2, q.lo = -2, q.hi = 1;
    make_rows(&q, p);
    double s = 1.5 / sqrt((double)H);
    for (int l = 0; l < L; l++) {
        q.wx[l] = random_floats(3LL * H * (l ? H : 1 + q.E), l ? s : 0.7), q.wh[l] = random_floats(3LL * H * H, s);
        q.bx[l] = random_floats(3 * H, s), q.bh[l] = random_floats(3 * H, s);
        if (q.cond && (l == 0 || form % 4))
            q.c[l] = random_floats((int64_t)N * 3 * H, 1); /* all layers, or the first alone */
    }
    q.w1 = random_floats((int64_t)q.F * H, s), q.b1 = random_floats(q.F, s);
    q.w2 = random_floats((int64_t)O * q.F, s), q.b2 = random_floats(O, 1);
    if (q.E) q.input = random_floats(q.cap * 3 * H, 0.5);
    q.z = random_floats(q.cap, 2), q.dy = random_floats(q.cap, 1);
    return q;
}

/* All outputs of a pass. */
typedef struct result {
    floats y, out, hidden, h[4], gates[4], grads[4], past[4], dout, dhidden, dz, dcond[4], dbx[4], dbh[4];
} result;

static int64_t size_of(bool narrow) { return narrow ? 2 : 4; }

/* The problem on the device, with memory for saved arrays. */
static acf_loop upload(const problem *q, bool narrow, bool save) {
    acf_loop f = {};
    int64_t T = q->cap, H = q->H, size = size_of(narrow);
    f.s = {q->N, q->D, T, H, to_device(q->active), to_device(q->first), to_device(q->row)};
    f.kind = q->kind, f.layers = q->L, f.act = q->act, f.E = q->E, f.F = q->F, f.O = q->O;
    f.bound = q->bound, f.lo = q->lo, f.hi = q->hi;
    for (int l = 0; l < q->L; l++) {
        acf_loop_layer &y = f.layer[l];
        y.cond = q->c[l].empty() ? NULL : to_device(q->c[l]), y.bx = q->biases ? to_device(q->bx[l]) : NULL;
        y.wx = to_device(q->wx[l]), y.wh = to_device(q->wh[l]), y.bh = to_device(q->bh[l]);
        if (!save) continue;
        y.gates = device_bytes(T * 4 * H * size), y.h = device_bytes(T * H * size), y.past = device_bytes(T * H * size);
    }
    f.w1 = to_device(q->w1), f.w2 = to_device(q->w2);
    if (q->biases) f.b1 = to_device(q->b1), f.b2 = to_device(q->b2);
    if (q->E) f.input = to_device(q->input);
    f.z = to_device(q->z), f.y = (float *)device_bytes(T * 4), f.dy = to_device(q->dy);
    f.seed = 77, f.draw = 3, f.row_id = to_device(q->row_id), f.row_of = to_device(q->row_of),
    f.col_of = to_device(q->col_of);
    if (save) {
        f.hidden = device_bytes(T * q->F * size), f.out = (float *)device_bytes(T * q->O * 4);
        f.dout = device_bytes(T * q->O * size), f.dhidden = device_bytes(T * q->F * size),
        f.dz = to_device(floats((size_t)T)); /* added to */
    }
    f.scratch = (float *)device_bytes(acf_loop_scratch(&f, narrow) * 4);
    if (narrow) {
        void *image = device_bytes(acf_loop_image_bytes(&f));
        CHECK(acf_loop_image_launch(image, &f, 0));
        f.image = image;
    }
    return f;
}

static result run(const problem *q, bool narrow) {
    result r;
    acf_loop f = upload(q, narrow, true);
    int64_t T = q->cap, H = q->H;
    CHECK(acf_loop_forward_launch(&f, narrow, 0));
    CHECK(cudaDeviceSynchronize());
    r.y = to_host(f.y, T, false), r.out = to_host(f.out, T * q->O, false),
    r.hidden = to_host(f.hidden, T * q->F, narrow);
    for (int l = 0; l < q->L; l++)
        r.gates[l] = to_host(f.layer[l].gates, T * 4 * H, narrow), r.h[l] = to_host(f.layer[l].h, T * H, narrow);
    acf_loop light = f; /* the same without saving */
    light.y = (float *)device_bytes(T * 4), light.hidden = NULL, light.out = NULL;
    for (int l = 0; l < q->L; l++) light.layer[l].gates = light.layer[l].h = NULL;
    CHECK(acf_loop_forward_launch(&light, narrow, 0));
    CHECK(cudaDeviceSynchronize());
    floats again = to_host(light.y, T, false);
    if (T && memcmp(again.data(), r.y.data(), (size_t)T * 4)) r.y[0] = NAN; /* printed as WRONG */
    if (q->kind != ACF_LOOP_SAMPLE) {
        CHECK(acf_loop_backward_launch(&f, narrow, 0));
        float *parts = (float *)device_bytes(128 * 4 * H * 4);
        floats ones((size_t)(q->N * 3 * H), 1.0f), few((size_t)(3 * H), 1.0f); /* gradients are added to */
        for (int l = 0; l < q->L; l++) {
            float *dcond = to_device(ones), *dbx = to_device(few), *dbh = to_device(few);
            CHECK(acf_loop_sums_launch(&f, l, dcond, dbx, dbh, parts, narrow, 0));
            r.dcond[l] = to_host(dcond, q->N * 3 * H, false), r.dbx[l] = to_host(dbx, 3 * H, false),
            r.dbh[l] = to_host(dbh, 3 * H, false);
            r.grads[l] = to_host(f.layer[l].gates, T * 4 * H, narrow),
            r.past[l] = to_host(f.layer[l].past, T * H, narrow);
        }
        r.dout = to_host(f.dout, T * q->O, narrow), r.dhidden = to_host(f.dhidden, T * q->F, narrow);
        if (q->kind == ACF_LOOP_INVERSE) r.dz = to_host(f.dz, T, false);
    }
    CHECK(cudaDeviceSynchronize());
    release_all();
    return r;
}

/* ---- the same in double on the host, as in docs/math.md ---------------------------------------------------------- */

static double act_host(int act, double x) {
    switch (act) {
    case 1: return x < 0 ? 0 : x;
    case 2: return x < 0 ? 0.01 * x : x;
    case 3: return tanh(x);
    case 4: return 1 / (1 + exp(-x));
    case 5: return log1p(exp(x));
    case 6: return x < 0 ? expm1(x) : x;
    default: return x;
    }
}
static double slope_host(int act, double y) {
    switch (act) {
    case 1: return y > 0;
    case 2: return y < 0 ? 0.01 : 1;
    case 3: return 1 - y * y;
    case 4: return y * (1 - y);
    case 5: return -expm1(-y);
    case 6: return y < 0 ? y + 1 : 1;
    default: return 1;
    }
}

/* A draw by the CPU's formula (mixture.c). */
static double draw_host(const problem *q, const double *o, int64_t p) {
    int K = q->O / 3;
    doubles w((size_t)K);
    double top = *std::max_element(o, o + K);
    for (int k = 0; k < K; k++) w[(size_t)k] = exp(o[k] - top);
    acf_rng_counter at = {77, q->row_id[(size_t)q->row_of[(size_t)p]], ACF_STREAM_COMPONENT,
                          (uint32_t)q->col_of[(size_t)p], 3};
    int64_t k = acf_rng_categorical(at, w.data(), K);
    at.stream = ACF_STREAM_NORMAL;
    return o[K + k] + exp(fmin(fmax(o[2 * K + k], q->lo), q->hi)) * acf_rng_normal(at);
}

static double mean_host(const double *o, int K, doubles *w) {
    double top = *std::max_element(o, o + K), sum = 0, mean = 0;
    w->resize((size_t)K);
    for (int k = 0; k < K; k++) sum += (*w)[(size_t)k] = exp(o[k] - top);
    for (int k = 0; k < K; k++) (*w)[(size_t)k] /= sum, mean += (*w)[(size_t)k] * o[K + k];
    return mean;
}

/* given: values that steps see instead of their own, or NULL. Otherwise a draw from another component would change all
 * that follows. */
static result run_host(const problem *q, const floats *given) {
    int64_t H = q->H, T = q->cap, F = q->F, O = q->O;
    size_t cap = (size_t)T;
    doubles h[4], g[4], past[4], y(cap), out(cap * (size_t)O), hid(cap * (size_t)F);
    for (int l = 0; l < q->L; l++)
        h[l].resize(cap * (size_t)H), g[l].resize(cap * 4 * (size_t)H), past[l].resize(cap * (size_t)H);
    auto row_of = [&](int k) { return (int64_t)q->row[(size_t)k]; };
    for (int t = 0; t < q->D; t++)
        for (int k = 0; k < q->active[(size_t)t]; k++) {
            int64_t p = q->first[(size_t)t] + k, before = t ? q->first[(size_t)t - 1] + k : -1;
            double v = before < 0 ? -1 : given ? (*given)[(size_t)before] : y[(size_t)before];
            for (int l = 0; l < q->L; l++) {
                for (int u = 0; u < H; u++)
                    past[l][(size_t)(p * H + u)] = before < 0 ? 0 : h[l][(size_t)(before * H + u)];
                for (int u = 0; u < H; u++) {
                    double a[3], b[3];
                    for (int e = 0; e < 3; e++) {
                        int64_t w = e * H + u;
                        a[e] = !q->c[l].empty() ? q->c[l][(size_t)(row_of(k) * 3 * H + w)]
                               : q->biases      ? q->bx[l][(size_t)w]
                                                : 0;
                        if (l == 0) a[e] += v * q->wx[0][(size_t)(w * (1 + q->E))];
                        if (l == 0 && q->E) a[e] += q->input[(size_t)(p * 3 * H + w)];
                        b[e] = q->bh[l][(size_t)w];
                        for (int i = 0; i < H; i++)
                            b[e] += past[l][(size_t)(p * H + i)] * q->wh[l][(size_t)(w * H + i)];
                        for (int i = 0; l && i < H; i++)
                            a[e] += h[l - 1][(size_t)(p * H + i)] * q->wx[l][(size_t)(w * H + i)];
                    }
                    double r = 1 / (1 + exp(-a[0] - b[0])), z = 1 / (1 + exp(-a[1] - b[1])), n = tanh(a[2] + r * b[2]);
                    double *o = &g[l][(size_t)(p * 4 * H + u)];
                    o[0] = n, o[H] = r, o[2 * H] = z, o[3 * H] = b[2];
                    h[l][(size_t)(p * H + u)] = (1 - z) * n + z * past[l][(size_t)(p * H + u)];
                }
            }
            for (int j = 0; j < F; j++) {
                double s = q->biases ? q->b1[(size_t)j] : 0;
                for (int i = 0; i < H; i++) s += h[q->L - 1][(size_t)(p * H + i)] * q->w1[(size_t)(j * H + i)];
                hid[(size_t)(p * F + j)] = act_host(q->act, s);
            }
            double *o = &out[(size_t)(p * O)];
            for (int j = 0; j < O; j++) {
                o[j] = q->biases ? q->b2[(size_t)j] : 0;
                for (int i = 0; i < F; i++) o[j] += hid[(size_t)(p * F + i)] * q->w2[(size_t)(j * F + i)];
            }
            doubles w;
            double s = O == 2 ? q->bound * tanh(o[0] / q->bound) : 0;
            y[(size_t)p] = q->kind == ACF_LOOP_MEAN     ? mean_host(o, (int)O / 3, &w)
                           : q->kind == ACF_LOOP_SAMPLE ? draw_host(q, o, p)
                                                        : (q->z[(size_t)p] - o[O - 1]) * exp(-s);
        }
    result res;
    auto single = [](const doubles &v) { return floats(v.begin(), v.end()); };
    res.y = single(y), res.out = single(out), res.hidden = single(hid);
    for (int l = 0; l < q->L; l++) res.h[l] = single(h[l]), res.gates[l] = single(g[l]);
    if (q->kind == ACF_LOOP_SAMPLE) return res;
    doubles dy(q->dy.begin(), q->dy.end()), dout(cap * (size_t)O), dhid(cap * (size_t)F), dz(cap), carry[4],
        top((size_t)H), next((size_t)H);
    doubles dc[4], dx[4], db[4];
    for (int l = 0; l < q->L; l++)
        carry[l].resize((size_t)(q->N * H)), dc[l].assign((size_t)(q->N * 3 * H), 1), dx[l].assign((size_t)(3 * H), 1),
            db[l] = dx[l];
    for (int t = q->D - 1; t >= 0; t--)
        for (int k = 0; k < q->active[(size_t)t]; k++) {
            int64_t p = q->first[(size_t)t] + k;
            bool later = t + 1 < q->D && k < q->active[(size_t)t + 1];
            double *o = &out[(size_t)(p * O)], *d = &dout[(size_t)(p * O)], gy = dy[(size_t)p];
            if (q->kind == ACF_LOOP_MEAN) {
                doubles w;
                int K = (int)O / 3;
                double mean = mean_host(o, K, &w);
                for (int i = 0; i < K; i++) d[i] = gy * w[(size_t)i] * (o[K + i] - mean), d[K + i] = gy * w[(size_t)i];
            } else {
                double th = O == 2 ? tanh(o[0] / q->bound) : 0;
                dz[(size_t)p] = gy * exp(-q->bound * th), d[O - 1] = -dz[(size_t)p];
                if (O == 2) d[0] = -gy * y[(size_t)p] * (1 - th * th);
            }
            std::fill(top.begin(), top.end(), 0.0);
            for (int j = 0; j < F; j++) {
                double s = 0;
                for (int i = 0; i < O; i++) s += d[i] * q->w2[(size_t)(i * F + j)];
                s *= slope_host(q->act, hid[(size_t)(p * F + j)]), dhid[(size_t)(p * F + j)] = s;
                for (int i = 0; i < H; i++) top[(size_t)i] += s * q->w1[(size_t)(j * H + i)];
            }
            for (int l = q->L - 1; l >= 0; l--) {
                double dv = 0;
                std::fill(next.begin(), next.end(), 0.0);
                for (int u = 0; u < H; u++) {
                    double *e = &g[l][(size_t)(p * 4 * H + u)], n = e[0], r = e[H], z = e[2 * H], bn = e[3 * H],
                           *c = &carry[l][(size_t)(k * H + u)];
                    double gh = top[(size_t)u] + (later ? *c : 0), dn = gh * (1 - z) * (1 - n * n);
                    e[2 * H] = gh * (past[l][(size_t)(p * H + u)] - n) * z * (1 - z);
                    e[0] = dn, e[H] = dn * bn * r * (1 - r), e[3 * H] = dn * r, *c = gh * z;
                    double a[3] = {e[H], e[2 * H], dn}, *m = &dc[l][(size_t)(row_of(k) * 3 * H + u)];
                    for (int i = 0; i < 3; i++) {
                        m[i * H] += a[i], dx[l][(size_t)(i * H + u)] += a[i],
                            db[l][(size_t)(i * H + u)] += i < 2 ? a[i] : e[3 * H];
                        if (l == 0) dv += a[i] * q->wx[0][(size_t)((i * H + u) * (1 + q->E))];
                    }
                }
                for (int v = 0; v < 3 * H; v++) {
                    double s = g[l][(size_t)(p * 4 * H + H + v)],
                           a = g[l][(size_t)(p * 4 * H + (v < 2 * H ? H + v : v - 2 * H))];
                    for (int u = 0; u < H; u++) {
                        carry[l][(size_t)(k * H + u)] += s * q->wh[l][(size_t)(v * H + u)];
                        if (l) next[(size_t)u] += a * q->wx[l][(size_t)(v * H + u)];
                    }
                }
                top = next;
                if (l == 0 && t) dy[(size_t)(q->first[(size_t)t - 1] + k)] += dv;
            }
        }
    for (int l = 0; l < q->L; l++) {
        res.grads[l] = single(g[l]), res.past[l] = single(past[l]);
        res.dcond[l] = single(dc[l]), res.dbx[l] = single(dx[l]), res.dbh[l] = single(db[l]);
    }
    res.dout = single(dout), res.dhidden = single(dhid);
    if (q->kind == ACF_LOOP_INVERSE) res.dz = single(dz);
    return res;
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static int failures = 0, compared = 0;
static double worst_ahead[2], worst_back[2]; /* plain, narrow */

/* ‖x - y‖ / ‖y‖, infinite where x is not a number. */
static double distance(const floats &x, const floats &y) {
    double d = 0, s = 1e-30;
    if (x.size() != y.size()) return INFINITY;
    for (size_t i = 0; i < x.size(); i++) {
        if (!isfinite(x[i])) return INFINITY;
        d += ((double)x[i] - y[i]) * ((double)x[i] - y[i]), s += (double)y[i] * y[i];
    }
    return sqrt(d / s);
}

static bool tail_is_zero(const floats &x, int64_t from) {
    for (size_t i = (size_t)from; i < x.size(); i++)
        if (x[i] != 0) return false;
    return true;
}

/* Of values. A mean may be close to zero because its components cancel, so the error is relative to their scale. */
static double value_distance(const problem *q, const floats &y, const floats &ref, const floats &out) {
    double d = 0, s = 1e-30;
    int64_t K = q->O / 3;
    if (q->kind == ACF_LOOP_SAMPLE) return 0;
    if (q->kind == ACF_LOOP_INVERSE) return distance(y, ref);
    for (int64_t p = 0; p < q->T; p++) {
        if (!isfinite(y[(size_t)p])) return INFINITY;
        d += pow((double)y[(size_t)p] - ref[(size_t)p], 2);
        for (int64_t k = 0; k < K; k++) s += pow(out[(size_t)(p * q->O + K + k)], 2) / (double)K;
    }
    return sqrt(d / s);
}

static const char *const kinds[] = {"inverse", "mean", "sample"};

static void compare(const problem *q, const result *r, const result *ref, bool narrow) {
    double a[5] = {value_distance(q, r->y, ref->y, ref->out), distance(r->out, ref->out),
                   distance(r->hidden, ref->hidden), 0, 0};
    double b[8] = {distance(r->dout, ref->dout), distance(r->dhidden, ref->dhidden), distance(r->dz, ref->dz)};
    bool tails = tail_is_zero(r->y, q->T) && tail_is_zero(r->out, q->T * q->O) &&
                 tail_is_zero(r->hidden, q->T * q->F) && tail_is_zero(r->dout, q->T * q->O) &&
                 tail_is_zero(r->dhidden, q->T * q->F) && tail_is_zero(r->dz, q->T);
    for (int l = 0; l < q->L; l++) {
        a[3] = fmax(a[3], distance(r->gates[l], ref->gates[l])), a[4] = fmax(a[4], distance(r->h[l], ref->h[l]));
        b[3] = fmax(b[3], distance(r->grads[l], ref->grads[l])), b[4] = fmax(b[4], distance(r->past[l], ref->past[l]));
        b[5] = fmax(b[5], distance(r->dcond[l], ref->dcond[l])), b[6] = fmax(b[6], distance(r->dbx[l], ref->dbx[l]));
        b[7] = fmax(b[7], distance(r->dbh[l], ref->dbh[l]));
        tails = tails && tail_is_zero(r->gates[l], q->T * 4 * q->H) && tail_is_zero(r->h[l], q->T * q->H) &&
                tail_is_zero(r->grads[l], q->T * 4 * q->H) && tail_is_zero(r->past[l], q->T * q->H);
    }
    double ahead = *std::max_element(a, a + 5), back = *std::max_element(b, b + 8);
    compared++;
    worst_ahead[narrow] = fmax(worst_ahead[narrow], ahead), worst_back[narrow] = fmax(worst_back[narrow], back);
    double kink = q->act == 1 || q->act == 2
                      ? 4
                      : 1; /* rounding turns some hidden units on or off, and their gradients then differ completely */
    if (tails && ahead <= (narrow ? 3e-2 : 1e-4) && back <= (narrow ? 8e-2 : 5e-4) * kink) return;
    failures++;
    printf(
        "WRONG %s %s N %d D %d L %d H %d F %d O %d E %d act %d cond %d T %lld cut %d %d %d%s: y %.1e out %.1e hidden "
        "%.1e gates %.1e h %.1e; "
        "dout %.1e dhidden %.1e dz %.1e grads %.1e past %.1e dcond %.1e dbx %.1e dbh %.1e\n",
        narrow ? "narrow" : "plain", kinds[q->kind], q->N, q->D, q->L, q->H, q->F, q->O, q->E, q->act, q->cond,
        (long long)q->T, acf_loop_try.C, acf_loop_try.W, acf_loop_try.MT, tails ? "" : " TAIL", a[0], a[1], a[2], a[3],
        a[4], b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]);
}

/* Draws must equal the CPU's formula on the saved outputs. */
static void check_draws(const problem *q, const result *r, bool narrow) {
    double worst = 0;
    int64_t wrong = 0;
    for (int64_t p = 0; p < q->T; p++) {
        doubles o(r->out.begin() + p * q->O, r->out.begin() + (p + 1) * q->O);
        double v = draw_host(q, o.data(), p), e = fabs(v - r->y[(size_t)p]) / (1 + fabs(v));
        wrong += !(e < 1e-5), worst = fmax(worst, e);
    }
    if (!wrong) return;
    failures++;
    printf("WRONG draws %s N %d D %d O %d: %lld of %lld, worst %.1e\n", narrow ? "narrow" : "plain", q->N, q->D, q->O,
           (long long)wrong, (long long)q->T, worst);
}

/* plain against the host where that is not too slow; narrow (its own choice, or the tiling under test) against
 * plain. */
static void check(const problem *q, bool host) {
    acf_loop sizes = {};
    sizes.s.H = q->H, sizes.F = q->F, sizes.O = q->O, sizes.layers = q->L;
    bool draws = q->kind == ACF_LOOP_SAMPLE, narrow = acf_loop_is_narrow(&sizes);
    double work = (double)q->T * ((2 * q->L - 1) * 3.0 * q->H * q->H + (double)q->F * (q->H + q->O));
    result plain = run(q, false);
    host = host && work < 2e7;
    if (host) {
        result ref = run_host(q, draws ? &plain.y : NULL);
        compare(q, &plain, &ref, false);
    }
    if (draws) check_draws(q, &plain, false);
    if (!narrow) return;
    result r = run(q, true);
    if (draws) {
        check_draws(q, &r, true);
        if (host) {
            result ref = run_host(q, &r.y);
            compare(q, &r, &ref, true);
        }
    } else
        compare(q, &r, &plain, true);
}

static const int cuts[][4] = {{1, 8, 1}, {1, 8, 2}, {2, 8, 1},    {2, 8, 2},
                              {4, 4, 1}, {4, 4, 2}, {4, 4, 2, 30}}; /* C, W, MT, tiles */
#define CUTS (sizeof cuts / sizeof *cuts)
static void try_cut(const int *c) {
    acf_loop_try = {}, acf_loop_try.C = c[0], acf_loop_try.W = c[1], acf_loop_try.MT = c[2], acf_loop_try.tiles = c[3];
}

static void check_all(bool small) {
    static const int Ns[] = {1, 3, 37, 512}, Ds[] = {1, 6, 21}, Hs[] = {16, 96, 256}, Ls[] = {1, 2, 4};
    int form = 0;
    for (int H : Hs)
        for (int L : Ls)
            for (int N : Ns)
                for (int D : Ds) {
                    if (small && (N > 37 || D > 6 || L > 2)) continue;
                    form++;
                    acf_loop_kind kind = (acf_loop_kind)(form % 3);
                    int O = kind == ACF_LOOP_INVERSE ? 1 + form / 3 % 2 : form / 3 % 2 ? 15 : 120;
                    problem q = make_problem(kind, N, D, L, H, O, form / 3);
                    check(&q, true);
                }
    for (int i = 0; i < 6; i++) { /* sizes that have no narrow form; many layers of outputs */
        problem q = make_problem((acf_loop_kind)(i % 3), 13, 5, 1 + i % 3, i < 3 ? 33 : 64, i % 3 ? 300 : 2, 3 * i);
        check(&q, true);
    }
    for (const int *c : cuts) {
        try_cut(c);
        for (int i = 0; i < 6; i++) {
            problem q = make_problem((acf_loop_kind)(i % 3),
                                     small   ? 37
                                     : i < 3 ? 531
                                             : 70,
                                     small ? 3 : 9, i < 3 ? 2 : 4, 256, i % 3 ? 120 : 2, i);
            q.F == 256 ? (void)0
                       : (void)(q.F = 256, q.w1 = random_floats(256 * 256, 0.09), q.b1 = random_floats(256, 0.1),
                                q.w2 = random_floats(q.O * 256, 0.09));
            check(&q, false);
        }
    }
    acf_loop_try = {};
    if (!small) {
        problem q = make_problem(ACF_LOOP_MEAN, 4500, 8, 4, 256, 120, 0),
                p = make_problem(ACF_LOOP_INVERSE, 4096, 20, 2, 256, 2, 6);
        check(&q, false), check(&p, false);
    }
    printf("checks: %d, %s; worst distance plain %.1e and back %.1e, narrow %.1e and back %.1e\n\n", compared,
           failures ? "FAILED" : "all right", worst_ahead[0], worst_back[0], worst_ahead[1], worst_back[1]);
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

template <typename F> static double time_us(F launch) {
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin)), CHECK(cudaEventCreate(&end));
    launch(), launch();
    double times[5];
    for (double &t : times) {
        CHECK(cudaEventRecord(begin));
        for (int i = 0; i < 4; i++) launch();
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        t = ms * 250;
    }
    std::sort(times, times + 5);
    CHECK(cudaEventDestroy(begin)), CHECK(cudaEventDestroy(end));
    return times[2];
}

/* Weight gradients of a loop: library products over all elements. */
static double time_products(const acf_loop *f) {
    cublasHandle_t blas;
    if (cublasCreate(&blas)) return NAN;
    int n = (int)f->s.T, h = (int)f->s.H;
    float *dw = (float *)device_bytes(3LL * h * h * 4), one = 1;
    auto gradient = [&](int rows, int cols, const void *g, int ldg, const void *x, int ldx) {
        if (cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_T, cols, rows, n, &one, x, CUDA_R_16BF, ldx, g, CUDA_R_16BF, ldg,
                         &one, dw, CUDA_R_32F, cols, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT))
            printf("cublas failed\n"), exit(1);
    };
    float *parts = (float *)device_bytes(128 * 4 * h * 4), *b = (float *)device_bytes(3 * h * 4),
          *dc = (float *)device_bytes(f->s.N * 3 * h * 4);
    double us = time_us([&] {
        for (int l = 0; l < f->layers; l++) {
            const acf_loop_layer &y = f->layer[l];
            gradient(3 * h, h, (bf16 *)y.gates + h, 4 * h, y.past, h);
            if (l) gradient(3 * h, h, y.gates, 4 * h, f->layer[l - 1].h, h);
            CHECK(acf_loop_sums_launch(f, l, l ? NULL : dc, b, b, parts, true, 0));
        }
        gradient((int)f->F, h, f->dhidden, (int)f->F, f->layer[f->layers - 1].h, h);
        gradient((int)f->O, (int)f->F, f->dout, (int)f->O, f->hidden, (int)f->F);
    });
    cublasDestroy(blas);
    return us;
}

typedef struct times {
    double light, ahead, back, sample, products;
} times;

static times time_loop(const problem *q, bool narrow) {
    times r = {};
    acf_loop f = upload(q, narrow, true), light = f;
    light.hidden = NULL, light.out = NULL;
    for (int l = 0; l < q->L; l++) light.layer[l].gates = light.layer[l].h = NULL;
    r.light = time_us([&] { CHECK(acf_loop_forward_launch(&light, narrow, 0)); });
    r.ahead = time_us([&] { CHECK(acf_loop_forward_launch(&f, narrow, 0)); });
    r.back = time_us([&] { CHECK(acf_loop_backward_launch(&f, narrow, 0)); });
    if (q->kind == ACF_LOOP_MEAN) {
        light.kind = ACF_LOOP_SAMPLE;
        r.sample = time_us([&] { CHECK(acf_loop_forward_launch(&light, narrow, 0)); });
    }
    if (narrow) r.products = time_products(&f);
    release_all();
    return r;
}

static double stream_us(const problem *q, int C) { /* for the weights, all steps of the longest row */
    int steps = 0;
    for (int t = 0; t < q->D; t++) steps += q->active[(size_t)t] > 0;
    double bytes = 2.0 * ((2 * q->L - 1) * 3.0 * q->H * q->H / C + (double)q->F * q->H / C + (double)q->F * q->O);
    return steps * bytes / 137e3;
}

static void time_size(int N, int D) {
    problem inverse = make_problem(ACF_LOOP_INVERSE, N, D, 2, 256, 2, 0),
            mean = make_problem(ACF_LOOP_MEAN, N, D, 4, 256, 120, 0);
    inverse.act = mean.act = 1;
    for (size_t i = 0; i <= CUTS; i++) {
        bool own = i == CUTS;
        if (!own && N > 2112 && (cuts[i][0] == 4 || (cuts[i][0] == 2 && cuts[i][2] == 1))) continue;
        acf_loop_try = {};
        if (!own) try_cut(cuts[i]);
        int C = own ? 1 : cuts[i][0];
        times a = time_loop(&inverse, true), b = time_loop(&mean, true);
        printf(
            "%4d %2d  %s %d %d %2d  inverse %6.0f saved %6.0f back %6.0f products %5.0f   mean %6.0f saved %6.0f back "
            "%6.0f sample %6.0f products %5.0f   "
            "streams %5.0f %5.0f   sampling %6.2f ms  best guess %6.2f ms\n",
            N, D, own ? "own " : "C MT", own ? 0 : C, own ? 0 : cuts[i][2], own ? 0 : cuts[i][3], a.light, a.ahead,
            a.back, a.products, b.light, b.ahead, b.back, b.sample, b.products, stream_us(&inverse, C),
            stream_us(&mean, C), (6 * a.light + b.sample) * 1e-3,
            (6 * (a.ahead + a.back + a.products) + b.ahead + b.back + b.products) * 1e-3);
    }
    acf_loop_try = {};
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    check_all(!strcmp(how, "small"));
    if (!strcmp(how, "small") || !strcmp(how, "check")) return failures > 0;
    printf("microseconds; streams: weights at 137 GB/s a block; sampling: 6 inverses of 2 layers, a sample of 4; best "
           "guess: the same with means, saved,\n"
           "backward and weights' gradients (products: library and sums)\n");
    static const int sizes[][2] = {{512, 6}, {512, 21}, {512, 63}, {4096, 6}, {4096, 63}};
    for (const int *s : sizes) time_size(s[0], s[1]);
    problem few = make_problem(ACF_LOOP_INVERSE, 512, 6, 2, 256, 2, 0),
            many = make_problem(ACF_LOOP_MEAN, 512, 6, 4, 256, 120, 0);
    times a = time_loop(&few, false), b = time_loop(&many, false);
    printf(
        " 512  6  plain      inverse %6.0f saved %6.0f back %6.0f   mean %6.0f saved %6.0f back %6.0f sample %6.0f\n",
        a.light, a.ahead, a.back, b.light, b.ahead, b.back, b.sample);
    acf_loop f = upload(&many, true, false);
    printf("image of 4 layers and head, %.2f MB: %.1f us\n", (double)acf_loop_image_bytes(&f) * 1e-6,
           time_us([&] { CHECK(acf_loop_image_launch((void *)f.image, &f, 0)); }));
    release_all();
    return failures > 0;
}
