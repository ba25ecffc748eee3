/* The 2-D sets: see synth.h. Their modes cannot be separated by a single Gaussian, and often not by a line: given x1,
 * the other coordinate has two to eight modes. */
#include "table/synth.h"

#include <math.h>

#define PI 3.14159265358979323846

/* A point at radius and angle with the same noise in both coordinates. */
static void put(double *x, acf_row_rng *r, double radius, double angle, double noise) {
    double dx = acf_row_normal(r), dy = acf_row_normal(r);
    x[0] = radius * cos(angle) + noise * dx;
    x[1] = radius * sin(angle) + noise * dy;
}

static double whole(acf_row_rng *r, int n) { return floor(acf_row_uniform(r) * n); } /* 0 .. n-1 */

void acf_plane_8gaussians(uint64_t seed, uint64_t row, double *x) {
    acf_row_rng r = {seed, row, 0};
    put(x, &r, 3, whole(&r, 8) * PI / 4, 0.2);
}

/* With the square root, points are about evenly spread along the arm, whose radius grows with the angle. */
void acf_plane_2spirals(uint64_t seed, uint64_t row, double *x) {
    acf_row_rng r = {seed, row, 0};
    double arm = whole(&r, 2), turn = 3 * PI * sqrt(acf_row_uniform(&r));
    put(x, &r, 0.3 + 3.7 * turn / (3 * PI), turn + arm * PI, 0.1);
}

/* Columns of squares are 0..3; in even ones the dark squares are 0 and 2, in odd ones 1 and 3. */
void acf_plane_checkerboard(uint64_t seed, uint64_t row, double *x) {
    acf_row_rng r = {seed, row, 0};
    double across = 4 * acf_row_uniform(&r), up = acf_row_uniform(&r);
    double square = 2 * whole(&r, 2) + fmod(floor(across), 2);
    x[0] = 2 * across - 4;
    x[1] = 2 * (square + up) - 4;
}

void acf_plane_rings(uint64_t seed, uint64_t row, double *x) {
    acf_row_rng r = {seed, row, 0};
    double radius = 1 + whole(&r, 4);
    put(x, &r, radius, 2 * PI * acf_row_uniform(&r), 0.08);
}

/* The lower moon is the upper one rotated by half a circle and shifted, so that each tip is inside the other. */
void acf_plane_moons(uint64_t seed, uint64_t row, double *x) {
    acf_row_rng r = {seed, row, 0};
    double lower = whole(&r, 2), angle = PI * acf_row_uniform(&r) + lower * PI;
    put(x, &r, 2.4, angle, 0.18);
    x[0] += lower > 0 ? 1.2 : -1.2;
    x[1] += lower > 0 ? 0.6 : -0.6;
}

/* A blade is a long thin cluster on one side of the centre; the rotation grows with the distance. */
void acf_plane_pinwheel(uint64_t seed, uint64_t row, double *x) {
    acf_row_rng r = {seed, row, 0};
    double blade = whole(&r, 5), along = 2 + 0.6 * acf_row_normal(&r), across = 0.2 * acf_row_normal(&r);
    double angle = blade * 2 * PI / 5 + 0.9 * (along - 2);
    x[0] = along * cos(angle) - across * sin(angle);
    x[1] = along * sin(angle) + across * cos(angle);
}

void acf_plane_swissroll(uint64_t seed, uint64_t row, double *x) {
    acf_row_rng r = {seed, row, 0};
    double turn = 1.5 * PI * (1 + 2 * acf_row_uniform(&r)); /* from 1.5 π to 4.5 π */
    put(x, &r, turn * 0.3, turn, 0.12);
}

void acf_plane_circles(uint64_t seed, uint64_t row, double *x) {
    acf_row_rng r = {seed, row, 0};
    double radius = 1.5 * (1 + whole(&r, 2));
    put(x, &r, radius, 2 * PI * acf_row_uniform(&r), 0.12);
}
