/* Model files made by hand: a writer that follows docs/format.md and shares no code with acflow's, and the expected
 * answers of such a model from the formulas. Weights follow a fixed rule, so every file has the same bytes on every
 * machine.
 *
 * Matrices whose input differs from row to row (contexts, values, states) are zero; biases and the layers after them
 * are not. So each network has the same output for every row, and a log-density can be computed here in a few lines.
 * Yet every tensor has to be found under its name, with its shape, in its order. */
#ifndef ACF_HARNESS_GOLDEN_H
#define ACF_HARNESS_GOLDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ACF_GOLDEN_COLUMNS = 6, ACF_GOLDEN_TENSORS = 256 };

typedef struct acf_golden_spec {
    const char *name, *preset;
    const char *flow;       /* kinds, a space between */
    const char *likelihood; /* ar, gaussian or set */
    int mlp_layers, coupling_layers, likelihood_layers, rank, column_embedding;
    int gmm;    /* components, all standard normal: a mixture that changes nothing; -1: not in the config */
    int reader; /* width of the network that reads the context; -1: not in the config */
    bool deep;
    bool wide; /* F64 tensors */
    int columns;
    int classes[ACF_GOLDEN_COLUMNS]; /* 0: real */
} acf_golden_spec;

typedef struct acf_golden_tensor {
    char name[64];
    const char *dtype;
    int ndim;
    int64_t dim[3], count;
    double *value; /* each a float */
} acf_golden_tensor;

/* Tensors and metadata, which tests may change before acf_golden_bytes. */
typedef struct acf_golden {
    acf_golden_spec spec;
    int reals, categories, real[ACF_GOLDEN_COLUMNS], category[ACF_GOLDEN_COLUMNS]; /* columns of each kind */
    acf_golden_tensor tensor[ACF_GOLDEN_TENSORS];
    int n;
    char config[2048], encoder[1024], training[256], version[8], kind[16];
    bool checked; /* with a checksum; true after make */
} acf_golden;

void acf_golden_make(acf_golden *g, const acf_golden_spec *spec);
void acf_golden_free(acf_golden *g);
acf_golden_tensor *acf_golden_find(acf_golden *g, const char *name); /* fails the test when there is none */
acf_golden_tensor *acf_golden_add(acf_golden *g, const char *name, int ndim, int64_t rows, int64_t cols);

/* The file; free it. */
unsigned char *acf_golden_bytes(const acf_golden *g, size_t *n);

/* log p(x_u | x_o) of one row in the table's units; modelled[j]: column j is a target. The given values do not matter
 * here. */
double acf_golden_logp(acf_golden *g, const double *x, const bool *modelled);

#endif
