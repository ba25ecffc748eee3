/* Kernel lab of the GRU on a GPU: checks every variant against a plain kernel, and that one against double on the host.
 * Then times them, beside the bytes and operations of a pass and the time for those at the speeds measured on an H200
 * (4.3 TB/s, 790 TFLOP/s).
 *
 *     nvcc -std=c++17 -O3 -Isrc -gencode=arch=compute_90a,code=sm_90a -cudart static src/ops/gru_*.cu
 *         bench/lab/gru.cu -lcublas -o lab-gru
 *     lab-gru [small|check]        small: few small checks, for a memory checker; check: no times
 *                                  Exit status 1 when a check fails. */
#include "ops/gru_fast.h"

#include "lab.cuh"

#include <cublas_v2.h>
#include <cuda_bf16.h>

extern "C" int acf_gru_try_blocks, acf_gru_try_rows;
extern "C" int acf_gru_try_clusters(int C);
extern "C" acf_gru_fast acf_gru_try;
static const acf_gru_fast *as_backward; /* the backward's tiling when both are tried */
static bool with_image = false;         /* weights laid out beforehand: the kernels of gru_fast.cu */

#define BLAS(call) check_blas((call), __LINE__)
static void check_blas(cublasStatus_t s, int line) {
    if (!s) return;
    printf("line %d: cublas status %d\n", line, (int)s);
    exit(1);
}

static std::vector<uint16_t> as_bf16(const floats &v) {
    std::vector<uint16_t> b(v.size());
    for (size_t i = 0; i < v.size(); i++) {
        uint32_t w;
        memcpy(&w, &v[i], 4);
        b[i] = (uint16_t)((w + 0x7fff + (w >> 16 & 1)) >> 16);
    }
    return b;
}

/* ---- a problem --------------------------------------------------------------------------------------------------- */

typedef struct problem {
    int N, D, H, I;
    bool cond, h0, projected, tail;
    std::vector<int32_t> active, first, row;
    int64_t T, cap; /* true, capacity */
    floats a, x, wx, c, bx, s0, wh, bh, dh;
} problem;

/* Sizes: each column with probability p, some rows empty. */
static void make_rows(problem *q, double p) {
    std::vector<int> size((size_t)q->N);
    for (int &s : size) {
        s = 0;
        for (int j = 0; j < q->D; j++) s += uniform() < 2 * p - 1;
        if (uniform() < -0.96) s = 0;
        if (uniform() < -0.98) s = q->D;
    }
    q->row.resize((size_t)q->N);
    for (int i = 0; i < q->N; i++) q->row[(size_t)i] = i;
    std::stable_sort(q->row.begin(), q->row.end(), [&](int a, int b) { return size[(size_t)a] > size[(size_t)b]; });
    q->active.assign((size_t)q->D + 1, 0), q->first.assign((size_t)q->D + 1, 0);
    for (int t = 0; t < q->D; t++) {
        for (int s : size) q->active[(size_t)t] += s > t;
        q->first[(size_t)t + 1] = q->first[(size_t)t] + q->active[(size_t)t];
    }
    q->T = q->first[(size_t)q->D];
    q->cap = q->T + (q->tail ? 19 : 0);
}

static problem make_problem(int N, int D, int H, int I, bool cond, bool h0, bool projected, double p) {
    problem q = {};
    q.N = N, q.D = D, q.H = H, q.I = I, q.cond = cond, q.h0 = h0, q.projected = projected, q.tail = true;
    make_rows(&q, p);
    double s = 1.5 / sqrt((double)H);
    q.wh = random_floats(3LL * H * H, s), q.bh = random_floats(3 * H, s), q.bx = random_floats(3 * H, s);
    if (I) q.x = random_floats(q.cap * I, 2), q.wx = random_floats(3LL * H * I, 0.7);
    if (projected) q.a = random_floats(q.cap * 4 * H, 1.5);
    if (cond) q.c = random_floats((int64_t)N * 3 * H, 1);
    if (h0) q.s0 = random_floats((int64_t)N * H, 1);
    q.dh = random_floats(q.cap * H, 1);
    return q;
}

static void *image_of(const float *wh, int H) {
    int64_t bytes = with_image ? acf_gru_image_bytes(H) : 0;
    if (!bytes) return NULL;
    void *image = device_bytes((size_t)bytes);
    CHECK(acf_gru_images_launch(&image, &wh, 1, H, 0));
    return image;
}

/* All outputs of a pass. */
typedef struct result {
    floats h, h16, gates, grads, past, dcond, dbx, dbh, dh0;
} result;

static result run(const problem *q, acf_gru_math math) {
    bool narrow = math == ACF_GRU_BF16 && acf_gru_is_fast(q->H, math);
    int64_t H = q->H, T = q->cap, size = narrow ? 2 : 4;
    acf_gru_shape s = {q->N, q->D, T, H, to_device(q->active), to_device(q->first), to_device(q->row)};
    void *gates = device_bytes((size_t)(T * 4 * H * size));
    if (q->projected && narrow)
        gates = to_device(as_bf16(q->a));
    else if (q->projected)
        gates = to_device(q->a);
    acf_gru_forward f = {};
    f.s = s, f.gates = gates, f.projected = q->projected, f.save = true;
    if (q->I) f.x = to_device(q->x), f.wx = to_device(q->wx), f.I = q->I;
    if (q->cond) f.cond = to_device(q->c);
    f.bx = to_device(q->bx), f.wh = to_device(q->wh), f.bh = to_device(q->bh);
    if (q->h0) f.h0 = to_device(q->s0);
    f.image = math >= ACF_GRU_BF16_WIDE ? image_of(f.wh, q->H) : NULL;
    f.h = (float *)device_bytes((size_t)(T * H * 4)), f.h16 = device_bytes((size_t)(T * H * 2));
    CHECK(acf_gru_forward_launch(&f, math, 0));
    CHECK(cudaDeviceSynchronize());
    result r;
    r.h = to_host(f.h, T * H, false), r.h16 = to_host(f.h16, T * H, true), r.gates = to_host(gates, T * 4 * H, narrow);
    acf_gru_backward b = {};
    b.s = s, b.gates = gates, b.dh = to_device(q->dh), b.h = f.h, b.h0 = f.h0, b.wh = f.wh, b.image = f.image;
    b.past = device_bytes((size_t)(T * H * size));
    floats ones((size_t)q->N * 3 * (size_t)H, 1.0f); /* gradients are added to */
    b.dcond = q->cond ? to_device(ones) : NULL, b.dh0 = q->h0 ? to_device(ones) : NULL;
    floats few((size_t)(3 * H), 1.0f);
    b.dbx = to_device(few), b.dbh = to_device(few);
    b.scratch = (float *)device_bytes((size_t)acf_gru_scratch(&s) * 4);
    acf_gru_fast cut = acf_gru_try;
    acf_gru_try = as_backward ? *as_backward : acf_gru_fast{};
    CHECK(acf_gru_backward_launch(&b, math, 0));
    acf_gru_try = cut;
    CHECK(cudaDeviceSynchronize());
    r.grads = to_host(gates, T * 4 * H, narrow), r.past = to_host(b.past, T * H, narrow);
    if (q->cond) r.dcond = to_host(b.dcond, q->N * 3 * H, false);
    if (q->h0) r.dh0 = to_host(b.dh0, q->N * H, false);
    r.dbx = to_host(b.dbx, 3 * H, false), r.dbh = to_host(b.dbh, 3 * H, false);
    release_all();
    return r;
}

/* The same in double on the host, as in docs/math.md. */
static result run_host(const problem *q) {
    int64_t H = q->H, T = q->cap;
    std::vector<double> h((size_t)(T * H)), g((size_t)(T * 4 * H)), carry((size_t)(q->N * H)), past((size_t)(T * H));
    auto row_of = [&](int k) { return (int64_t)q->row[(size_t)k]; };
    for (int t = 0; t < q->D; t++)
        for (int k = 0; k < q->active[(size_t)t]; k++) {
            int64_t p = q->first[(size_t)t] + k, before = t ? q->first[(size_t)t - 1] + k : 0;
            for (int v = 0; v < H; v++)
                past[(size_t)(p * H + v)] = t ? h[(size_t)(before * H + v)] : q->h0 ? q->s0[(size_t)(k * H + v)] : 0;
            for (int u = 0; u < H; u++) {
                double a[3], b[3];
                for (int e = 0; e < 3; e++) {
                    int64_t w = e * H + u;
                    a[e] = q->cond ? q->c[(size_t)(row_of(k) * 3 * H + w)] : q->bx[(size_t)w];
                    if (q->projected) a[e] += q->a[(size_t)(p * 4 * H + (e + 1) % 3 * H + u)];
                    for (int i = 0; i < q->I; i++)
                        a[e] += (double)q->x[(size_t)(p * q->I + i)] * q->wx[(size_t)(w * q->I + i)];
                    b[e] = q->bh[(size_t)w];
                    for (int v = 0; v < H; v++) b[e] += past[(size_t)(p * H + v)] * q->wh[(size_t)(w * H + v)];
                }
                double r = 1 / (1 + exp(-a[0] - b[0])), z = 1 / (1 + exp(-a[1] - b[1])), n = tanh(a[2] + r * b[2]);
                double *o = &g[(size_t)(p * 4 * H + u)];
                o[0] = n, o[H] = r, o[2 * H] = z, o[3 * H] = b[2];
                h[(size_t)(p * H + u)] = (1 - z) * n + z * past[(size_t)(p * H + u)];
            }
        }
    result res;
    res.h.assign(h.begin(), h.end()), res.h16 = res.h, res.gates.assign(g.begin(), g.end()),
                                      res.past.assign(past.begin(), past.end());
    std::vector<double> dc((size_t)(q->N * 3 * H), 1), dx((size_t)(3 * H), 1), db((size_t)(3 * H), 1),
        d0((size_t)(q->N * H), 1);
    for (int t = q->D - 1; t >= 0; t--)
        for (int k = 0; k < q->active[(size_t)t]; k++) {
            int64_t p = q->first[(size_t)t] + k;
            bool later = t + 1 < q->D && k < q->active[(size_t)t + 1];
            for (int u = 0; u < H; u++) {
                double *o = &g[(size_t)(p * 4 * H + u)], n = o[0], r = o[H], z = o[2 * H], bn = o[3 * H];
                double dh = q->dh[(size_t)(p * H + u)] + (later ? carry[(size_t)(k * H + u)] : 0);
                double dn = dh * (1 - z) * (1 - n * n), dz = dh * (past[(size_t)(p * H + u)] - n) * z * (1 - z);
                o[0] = dn, o[H] = dn * bn * r * (1 - r), o[2 * H] = dz, o[3 * H] = dn * r;
                carry[(size_t)(k * H + u)] = dh * z;
                double *c = &dc[(size_t)(row_of(k) * 3 * H + u)];
                c[0] += o[H], c[H] += dz, c[2 * H] += dn;
                dx[(size_t)u] += o[H], dx[(size_t)(H + u)] += dz, dx[(size_t)(2 * H + u)] += dn;
                db[(size_t)u] += o[H], db[(size_t)(H + u)] += dz, db[(size_t)(2 * H + u)] += o[3 * H];
            }
            for (int v = 0; v < 3 * H; v++)
                for (int u = 0; u < H; u++)
                    carry[(size_t)(k * H + u)] += g[(size_t)(p * 4 * H + H + v)] * q->wh[(size_t)(v * H + u)];
            if (t == 0)
                for (int u = 0; u < H; u++) d0[(size_t)(k * H + u)] += carry[(size_t)(k * H + u)];
        }
    res.grads.assign(g.begin(), g.end()), res.dcond.assign(dc.begin(), dc.end()), res.dh0.assign(d0.begin(), d0.end());
    res.dbx.assign(dx.begin(), dx.end()), res.dbh.assign(db.begin(), db.end());
    return res;
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static int failures = 0;

/* ‖x - y‖ / ‖y‖, infinite where x is not a number. */
static double distance(const floats &x, const floats &y) {
    double d = 0, s = 1e-30;
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

static double compare(const problem *q, const char *name, const result *r, const result *ref, double tolerance) {
    double e[9] = {
        distance(r->h, ref->h),         distance(r->h16, ref->h16),   distance(r->gates, ref->gates),
        distance(r->grads, ref->grads), distance(r->past, ref->past), q->cond ? distance(r->dcond, ref->dcond) : 0,
        distance(r->dbx, ref->dbx),     distance(r->dbh, ref->dbh),   q->h0 ? distance(r->dh0, ref->dh0) : 0};
    double worst = e[0], allowed[9];
    for (int i = 0; i < 9; i++) allowed[i] = i == 1 && tolerance < 4e-3 ? 4e-3 : tolerance;
    bool good = tail_is_zero(r->h, q->T * q->H) && tail_is_zero(r->h16, q->T * q->H) &&
                tail_is_zero(r->gates, q->T * 4 * q->H) && tail_is_zero(r->grads, q->T * 4 * q->H) &&
                tail_is_zero(r->past, q->T * q->H);
    bool tails = good;
    for (int i = 0; i < 9; i++) {
        good = good && e[i] <= allowed[i];
        if (i != 1 && !(e[i] <= worst)) worst = e[i];
    }
    if (good) return worst;
    failures++;
    printf(
        "WRONG %-10s N %d D %d H %d I %d T %lld cond %d h0 %d proj %d blocks %d rows %d%s: h %.1e h16 %.1e gates %.1e "
        "grads %.1e past %.1e dcond %.1e "
        "dbx %.1e dbh %.1e dh0 %.1e\n",
        name, q->N, q->D, q->H, q->I, (long long)q->T, q->cond, q->h0, q->projected,
        with_image ? acf_gru_try.C : acf_gru_try_blocks,
        with_image ? 1000 * acf_gru_try.MT + 100 * acf_gru_try.teams + 10 * acf_gru_try.buffers + acf_gru_try.approx
                   : acf_gru_try_rows,
        tails ? "" : " TAIL", e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7], e[8]);
    return worst;
}

static const char *const names[] = {"float", "tf32", "bf16-wide", "bf16"};
static const double tolerances[] = {2e-5, 4e-3, 2e-2, 2.5e-2};
static double worst_of[4];

static void check(int N, int D, int H, int I, bool cond, bool h0, bool projected) {
    problem q = make_problem(N, D, H, I, cond, h0, projected, 0.5);
    result plain = run(&q, ACF_GRU_FLOAT);
    if ((double)q.T * H * H * 12 < 4e8) {
        result host = run_host(&q);
        worst_of[0] = fmax(worst_of[0], compare(&q, "float", &plain, &host, tolerances[0]));
    }
    for (int m = 1; m < 4; m++) {
        if (!acf_gru_is_fast(H, (acf_gru_math)m)) continue;
        result r = run(&q, (acf_gru_math)m);
        worst_of[m] = fmax(worst_of[m], compare(&q, names[m], &r, &plain, tolerances[m]));
    }
}

/* Tilings of gru_fast.cu: C, MT, teams, tiles, buffers, approx. */
static const acf_gru_fast forward_cuts[] = {{4, 1, 1},       {4, 1, 2},          {4, 1, 2, 30}, {4, 1, 2, 0, 0, 1},
                                            {4, 1, 2, 0, 1}, {4, 1, 4},          {2, 1, 1},     {2, 1, 2},
                                            {2, 1, 2, 0, 1}, {2, 2, 1},          {2, 2, 2},     {2, 2, 2, 0, 0, 1},
                                            {2, 4, 1},       {2, 4, 1, 0, 0, 1}, {8, 1, 3},     {8, 1, 8}};
static const acf_gru_fast backward_cuts[] = {{4, 1, 1}, {4, 1, 2}, {4, 1, 2, 30}, {4, 1, 2, 0, 0, 1},
                                             {4, 1, 3}, {4, 2, 1}, {4, 2, 2},     {4, 2, 3},
                                             {4, 3, 1}, {4, 3, 2}, {4, 3, 3}};

static void check_fast(const problem *q, const result *plain) {
    for (int m = ACF_GRU_BF16_WIDE; m <= ACF_GRU_BF16; m++) {
        result r = run(q, (acf_gru_math)m);
        worst_of[m] = fmax(worst_of[m], compare(q, names[m], &r, plain, tolerances[m]));
    }
}

/* The kernels of gru_fast.cu: their own choice at many sizes, then every tiling. */
static void check_images(bool small) {
    static const int Ns[] = {1, 17, 65, 480, 512, 1000, 2000, 4096, 4500}, Ds[] = {1, 2, 6, 21};
    with_image = true, worst_of[2] = worst_of[3] = 0;
    int k = 0;
    for (int N : Ns)
        for (int D : Ds) {
            if (small ? N > 65 || D > 6 : N > 2000 && D != 6) continue;
            int form = k++ % 4;
            problem q = make_problem(N, D, 256,
                                     form == 0   ? 1
                                     : form == 3 ? 3
                                                 : 0,
                                     form % 2 == 0, form >= 2, form == 1 || form == 2, 0.5);
            result plain = run(&q, ACF_GRU_FLOAT);
            check_fast(&q, &plain);
        }
    for (int form = 0; form < 3; form++) {
        problem q = make_problem(small ? 37 : 531, small ? 3 : 12, 256, form == 0 ? 2 : 0, form != 2, form == 1,
                                 form != 0, 0.5);
        result plain = run(&q, ACF_GRU_FLOAT);
        for (const acf_gru_fast &g : forward_cuts) acf_gru_try = g, check_fast(&q, &plain);
        for (const acf_gru_fast &g : backward_cuts) as_backward = &g, acf_gru_try = {4, 1, 2}, check_fast(&q, &plain);
        as_backward = NULL, acf_gru_try = {};
    }
    with_image = false;
    printf("checks with images: %s; worst distance bf16 products with float gates %.1e, bf16 %.1e\n\n",
           failures ? "FAILED" : "all right", worst_of[2], worst_of[3]);
}

static void check_all(bool small) {
    static const int Ns[] = {1, 3, 37, 512}, Ds[] = {1, 6, 21}, Hs[] = {16, 96, 192, 240, 256};
    int k = 0;
    for (int H : Hs)
        for (int N : Ns)
            for (int D : Ds) {
                if (small && (N > 37 || D > 6)) continue;
                int form = k++ % 4; /* narrow with cond; projected; projected with cond and h0; narrow of 3 with h0 */
                check(N, D, H, form == 0 ? 1 : form == 3 ? 3 : 0, form % 2 == 0, form >= 2, form == 1 || form == 2);
            }
    check(37, 6, 20, 1, true, false, false), check(5, 3, 33, 0, false, true, true); /* plain only */
    if (!small)
        check(4096, 63, 256, 0, false, false, true), check(4096, 21, 256, 1, true, false, false),
            check(700, 300, 64, 0, true, true, true);
    static const int tries[][2] = {{2, 16}, {2, 32}, {4, 16}, {4, 32}, {4, 64}, {4, 128}, {8, 16}, {8, 32}, {8, 64}};
    for (const int *t : tries) {
        acf_gru_try_blocks = t[0], acf_gru_try_rows = t[1];
        check(small ? 37 : 531, small ? 3 : 9, 256, 0, true, true, true);
    }
    acf_gru_try_blocks = acf_gru_try_rows = 0;
    printf("checks: %s; worst distance float %.1e, tf32 %.1e, bf16 products with float gates %.1e, bf16 %.1e\n\n",
           failures ? "FAILED" : "all right", worst_of[0], worst_of[1], worst_of[2], worst_of[3]);
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

#define BYTES_PER_US 4.3e6
#define FLOPS_PER_US 790e6

template <typename F> static double time_us(F launch) {
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin)), CHECK(cudaEventCreate(&end));
    for (int i = 0; i < 3; i++) launch();
    double times[7];
    for (double &t : times) {
        CHECK(cudaEventRecord(begin));
        for (int i = 0; i < 10; i++) launch();
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        t = ms * 100;
    }
    std::sort(times, times + 7);
    CHECK(cudaEventDestroy(begin)), CHECK(cudaEventDestroy(end));
    return times[3];
}

typedef struct buffers {
    acf_gru_forward f;
    acf_gru_backward b;
} buffers;

/* Values on the device that are not zero and within the range of gates. */
__global__ void fill_kernel(uint32_t *p, int64_t n, bool bf16, float scale) {
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
        uint32_t h = (uint32_t)i * 2654435761u;
        h ^= h >> 15, h *= 0x85ebca6bu, h ^= h >> 13;
        float a = scale * ((float)(h & 0xffff) / 65536.0f), b = scale * ((float)(h >> 16) / 65536.0f - 0.5f);
        p[i] = bf16 ? (__float_as_uint(a) & 0xffff0000u) | __float_as_uint(b) >> 16 : __float_as_uint(b);
    }
}
static void *filled(int64_t bytes, bool bf16, float scale = 1) {
    void *p = device_bytes((size_t)bytes);
    fill_kernel<<<1024, 256>>>((uint32_t *)p, bytes / 4, bf16, scale);
    return p;
}

static buffers make_buffers(const problem *q, bool narrow) {
    buffers v = {};
    int64_t H = q->H, T = q->cap, size = narrow ? 2 : 4;
    acf_gru_shape s = {q->N, q->D, T, H, to_device(q->active), to_device(q->first), to_device(q->row)};
    v.f.s = v.b.s = s;
    v.f.gates = v.b.gates = filled(T * 4 * H * size, narrow), v.f.projected = v.f.save = true;
    v.f.bx = to_device(q->bx), v.f.wh = v.b.wh = to_device(q->wh), v.f.bh = to_device(q->bh);
    v.f.h = (float *)filled(T * H * 4, false), v.b.h = v.f.h, v.f.h16 = filled(T * H * 2, true);
    v.b.dh = (float *)filled(T * H * 4, false, 1e-3f); /* the backward runs repeatedly on its own output */
    v.b.past = filled(T * H * size, narrow);
    floats few((size_t)(3 * H), 0.0f);
    v.b.dbx = to_device(few), v.b.dbh = to_device(few);
    v.b.scratch = (float *)device_bytes((size_t)acf_gru_scratch(&s) * 4);
    v.f.image = v.b.image = image_of(v.f.wh, q->H);
    return v;
}

/* Lower bound of a pass, in microseconds. gates: bytes of one number. */
static double floor_forward(const problem *q, int gates, bool save) {
    double T = (double)q->T, H = q->H, bytes = T * H * (3 * gates + 4 + 2 + (save ? 4 * gates : 0)),
           flops = 2 * T * 3 * H * H;
    return fmax(bytes / BYTES_PER_US, flops / FLOPS_PER_US);
}
static double floor_backward(const problem *q, int gates) {
    double T = (double)q->T, H = q->H, bytes = T * H * (8 * gates + 4 + 4 + gates), flops = 2 * T * 3 * H * H;
    return fmax(bytes / BYTES_PER_US, flops / FLOPS_PER_US);
}

static void time_kernels(const problem *q, acf_gru_math math, int blocks, int rows) {
    bool narrow = math == ACF_GRU_BF16;
    buffers v = make_buffers(q, narrow);
    acf_gru_try_blocks = blocks, acf_gru_try_rows = rows;
    double t[3];
    t[0] = time_us([&] { CHECK(acf_gru_forward_launch(&v.f, math, 0)); });
    acf_gru_forward light = v.f;
    light.save = false;
    t[1] = time_us([&] { CHECK(acf_gru_forward_launch(&light, math, 0)); });
    t[2] = time_us([&] { CHECK(acf_gru_backward_launch(&v.b, math, 0)); });
    double f[3] = {floor_forward(q, narrow ? 2 : 4, true), floor_forward(q, narrow ? 2 : 4, false),
                   floor_backward(q, narrow ? 2 : 4)};
    printf("%5d %3d %7lld  %-9s %2d %4d  %8.1f %7.1f %4.1f   %8.1f %7.1f %4.1f   %8.1f %7.1f %4.1f\n", q->N, q->D,
           (long long)q->T, names[math], blocks, rows, t[0], f[0], t[0] / f[0], t[1], f[1], t[1] / f[1], t[2], f[2],
           t[2] / f[2]);
    acf_gru_try_blocks = acf_gru_try_rows = 0;
    release_all();
}

/* The kernels of gru_fast.cu: their own choice (C 0), and tilings. */
static void time_fast(const problem *q, bool all) {
    buffers v = make_buffers(q, true);
    acf_gru_forward light = v.f;
    light.save = false;
    int rows_most = (int)(q->N > 2048 ? 1 << 20 : 48), rows_least = q->N > 2048 ? 32 : 16;
    double least[3] = {floor_forward(q, 2, true), floor_forward(q, 2, false), floor_backward(q, 2)};
    printf("%5d %3d %7lld  floors: forward, saved %.1f; not saved %.1f; backward %.1f\n", q->N, q->D, (long long)q->T,
           least[0], least[1], least[2]);
    auto title = [&](const acf_gru_fast &g, const char *what) {
        printf("%5d %3d  %s C %d MT %d teams %d tiles %2d buffers %d approx %d  ", q->N, q->D, what, g.C, g.MT, g.teams,
               g.tiles, g.buffers, g.approx);
    };
    auto forward = [&](const acf_gru_fast &g) {
        acf_gru_try = g, title(g, "forward ");
        double a = time_us([&] { CHECK(acf_gru_forward_launch(&v.f, ACF_GRU_BF16, 0)); });
        double b = time_us([&] { CHECK(acf_gru_forward_launch(&light, ACF_GRU_BF16, 0)); });
        printf("%8.1f  not saved %8.1f\n", a, b);
    };
    auto backward = [&](const acf_gru_fast &g) {
        acf_gru_try = g, title(g, "backward");
        printf("%8.1f\n", time_us([&] { CHECK(acf_gru_backward_launch(&v.b, ACF_GRU_BF16, 0)); }));
    };
    auto fits = [&](const acf_gru_fast &g) {
        return 16 * g.MT * g.teams >= rows_least && 16 * g.MT * g.teams <= rows_most;
    };
    forward({});
    for (const acf_gru_fast &g : forward_cuts)
        if (all && fits(g)) forward(g);
    backward({});
    for (const acf_gru_fast &g : backward_cuts)
        if (all && fits(g)) backward(g);
    acf_gru_try = {};
    release_all();
}

/* Fast kernels in float gates, and with cond and a narrow input: the first layer. */
static void time_forms(const problem *q) {
    buffers v = make_buffers(q, true);
    v.f.projected = false, v.f.I = 1, v.f.x = (float *)filled(q->cap * 4, false),
    v.f.wx = (float *)filled(3 * 256 * 4, false);
    v.f.cond = (float *)filled((int64_t)q->N * 3 * 256 * 4, false),
    v.b.dcond = (float *)filled((int64_t)q->N * 3 * 256 * 4, false);
    double a = time_us([&] { CHECK(acf_gru_forward_launch(&v.f, ACF_GRU_BF16, 0)); });
    double b = time_us([&] { CHECK(acf_gru_backward_launch(&v.b, ACF_GRU_BF16, 0)); });
    release_all();
    v = make_buffers(q, false);
    double c = time_us([&] { CHECK(acf_gru_forward_launch(&v.f, ACF_GRU_BF16_WIDE, 0)); });
    double d = time_us([&] { CHECK(acf_gru_backward_launch(&v.b, ACF_GRU_BF16_WIDE, 0)); });
    release_all();
    printf(
        "%5d %3d  first layer (narrow input, cond): forward %8.1f backward %8.1f   bf16-wide: forward %8.1f backward "
        "%8.1f\n",
        q->N, q->D, a, b, c, d);
}

/* Sixteen layers' laid-out weights in one launch; and a chain of launches in a graph, which shows the cost of a launch
 * there. */
static void time_images(const problem *q) {
    void *image[16];
    const float *wh[16];
    for (int i = 0; i < 16; i++)
        image[i] = device_bytes((size_t)acf_gru_image_bytes(256)), wh[i] = (float *)filled(3 * 256 * 256 * 4, false);
    printf("images of 16 layers %.1f us\n", time_us([&] { CHECK(acf_gru_images_launch(image, wh, 16, 256, 0)); }));
    release_all();
    buffers v = make_buffers(q, true);
    for (int back = 0; back < 2; back++) {
        cudaStream_t stream;
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        CHECK(cudaStreamCreate(&stream));
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        for (int i = 0; i < 16; i++)
            CHECK(back ? acf_gru_backward_launch(&v.b, ACF_GRU_BF16, stream)
                       : acf_gru_forward_launch(&v.f, ACF_GRU_BF16, stream));
        CHECK(cudaStreamEndCapture(stream, &graph));
        CHECK(cudaGraphInstantiate(&exec, graph, 0));
        printf("%d x %d: a %s in a graph of sixteen %.1f us\n", q->N, q->D, back ? "backward" : "forward",
               time_us([&] { CHECK(cudaGraphLaunch(exec, 0)); }) / 16);
        CHECK(cudaGraphExecDestroy(exec)), CHECK(cudaGraphDestroy(graph)), CHECK(cudaStreamDestroy(stream));
    }
    release_all();
}

/* The library products around a layer: the input's side, and dx, dwx and dwh after the backward. */
static void time_products(const problem *q, bool narrow) {
    int64_t H = q->H, T = q->cap;
    int n = (int)T, h = (int)H, size = narrow ? 2 : 4;
    cudaDataType_t type = narrow ? CUDA_R_16BF : CUDA_R_32F;
    cublasComputeType_t compute = narrow ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_FAST_TF32;
    char *gates = (char *)filled(T * 4 * H * size, narrow), *x = (char *)filled(T * H * size, narrow);
    char *w = (char *)filled(3 * H * H * size, narrow);
    float *dw = (float *)filled(3 * H * H * 4, false), *dx = (float *)filled(T * H * 4, false), one = 1, zero = 0;
    cublasHandle_t blas;
    BLAS(cublasCreate(&blas));
    double t[3];
    t[0] = time_us([&] {
        BLAS(cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, 3 * h, n, h, &one, w, type, h, x, type, h, &zero, gates, type,
                          4 * h, compute, CUBLAS_GEMM_DEFAULT));
    });
    t[1] = time_us([&] {
        BLAS(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, h, n, 3 * h, &one, w, type, h, gates, type, 4 * h, &zero, dx,
                          CUDA_R_32F, h, compute, CUBLAS_GEMM_DEFAULT));
    });
    t[2] = time_us([&] {
        BLAS(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_T, h, 3 * h, n, &one, x, type, h, gates + H * size, type, 4 * h,
                          &one, dw, CUDA_R_32F, h, compute, CUBLAS_GEMM_DEFAULT));
    });
    double flops = 2.0 * (double)T * 3 * (double)(H * H);
    printf(
        "%5d %3d %7lld  %-5s  inputs %8.1f us %4.0f TFLOP/s   dx %8.1f us %4.0f TFLOP/s   a weight's gradient %8.1f us "
        "%4.0f TFLOP/s\n",
        q->N, q->D, (long long)q->T, narrow ? "bf16" : "tf32", t[0], flops / t[0] * 1e-6, t[1], flops / t[1] * 1e-6,
        t[2], flops / t[2] * 1e-6);
    BLAS(cublasDestroy(blas));
    release_all();
}

int main(int argc, char **argv) {
    cudaDeviceProp prop;
    CHECK(cudaGetDeviceProperties(&prop, 0));
    printf("%s, %d multiprocessors, %zu bytes of shared memory a block\n", prop.name, prop.multiProcessorCount,
           prop.sharedMemPerBlockOptin);
    for (int C = 1; C <= 16; C *= 2) printf("clusters of %d that fit: %d\n", C, acf_gru_try_clusters(C));
    CHECK(cudaDeviceSynchronize());
    const char *how = argc > 1 ? argv[1] : "";
    check_images(!strcmp(how, "small"));
    if (strcmp(how, "fast")) check_all(!strcmp(how, "small"));
    if (!strcmp(how, "small") || !strcmp(how, "check")) return failures > 0;
    static const int sizes[][2] = {{512, 1},   {512, 2},   {512, 6},  {512, 21},  {512, 63},
                                   {1024, 21}, {2048, 21}, {4096, 6}, {4096, 21}, {4096, 63}};
    std::vector<problem> q;
    for (const int *s : sizes) q.push_back(make_problem(s[0], s[1], 256, 0, false, false, false, 0.5));
    with_image = true;
    printf("microseconds with images, bf16, H 256; floors: bytes at 4.3 TB/s or products at 790 TFLOP/s\n");
    for (const problem &p : q) time_fast(&p, p.D == 6 || p.D == 63);
    problem few = make_problem(512, 63, 256, 0, false, false, false, 0);
    printf("nearly no rows: the latency of 63 steps\n"), time_fast(&few, false);
    for (const problem &p : q) time_forms(&p);
    time_images(&q[2]);
    with_image = false;
    if (!strcmp(how, "fast")) return failures > 0;
    printf("\nmicroseconds without images, the floor, and their ratio\n");
    printf("    N   D       T  products   C rows   forward, gates saved      forward, not saved         backward\n");
    for (const problem &p : q)
        if (p.D > 2) time_kernels(&p, ACF_GRU_BF16, 0, 0), time_kernels(&p, ACF_GRU_TF32, 0, 0);
    printf("\nlibrary products\n");
    for (const problem &p : q)
        if (p.D > 2) time_products(&p, true), time_products(&p, false);
    return failures > 0;
}
