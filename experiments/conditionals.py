#!/usr/bin/env python3
"""Checks that scores and draws of one model agree. Conditionals on few columns, and tails.

  python3 experiments/conditionals.py agree     TABLE.csv [NAME=VALUE ...]   scores against draws of 50 random queries
  python3 experiments/conditionals.py calibrated TABLE.csv [NAME=VALUE ...]  held-out rows, a column given 0, 1, 2 or 3 others
  python3 experiments/conditionals.py tails     [NAME=VALUE ...]             draws beyond the observed range, of known columns
      [--lib build/libacflow.so] [--seed 1] [--rows 5000] [--runs 20]

agree: a query gives 0 to 3 columns of a random row and has one other as its target. Its conditional distribution is
computed from scores, and compared with 4,000 draws: total variation of a category, largest distance of the distribution
functions of a number. `same` draws the one column, as in the score; `row` draws all columns at once, as acflow sample
does.

calibrated: the model is fitted to four fifths of the rows. NLL in nats a cell, where a number has deviation 1; PIT: the
largest distance of the probability integral transforms of the held-out cells from the uniform distribution, among 49
draws.

tails: tables of 200 and 2,000 rows with five independent columns. Shares of 10,000 draws at the extreme observed values
over theirs in the data, the means of the draws' upper and lower 1 % less the truth in deviations, and how many new
values the 98 % intervals hold; means over the runs.

Reads the library through ctypes; needs NumPy.
"""
import argparse, ctypes as C, os, sys
import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def pointer(a):
    return None if a is None else a.ctypes.data_as(C.c_void_p)


class Acflow:
    def __init__(self, path):
        self.lib = C.CDLL(path)
        self.lib.acf_error.restype = C.c_char_p
        self.lib.acf_table_values.restype = C.POINTER(C.c_double)
        self.lib.acf_table_rows.restype = self.lib.acf_table_columns.restype = C.c_int64

    def __call__(self, name, *args):
        if getattr(self.lib, name)(*args):
            sys.exit(f'conditionals.py: {name}: {self.lib.acf_error().decode()}')

    def make(self, name, *args):
        out = C.c_void_p()
        self(name, *args, C.byref(out))
        return out

    def read(self, path):
        """Values (NaN is missing), and classes of the columns: 0 of numbers."""
        t = self.make('acf_table_read', path.encode(), None, None)
        rows, columns = self.lib.acf_table_rows(t), self.lib.acf_table_columns(t)
        x = np.ctypeslib.as_array(self.lib.acf_table_values(t), (rows, columns)).copy()
        classes = np.array([self.lib.acf_table_classes(t, C.c_int64(j)) for j in range(columns)], 'i4')
        self.lib.acf_table_free(t)
        return x, classes

    def table(self, x, classes):
        x = np.ascontiguousarray(x, 'f8')
        return self.make('acf_table_create', pointer(x), None, C.c_int64(x.shape[0]), C.c_int64(x.shape[1]), pointer(classes), None)


class Model:
    def __init__(self, acf, x, classes, settings):
        self.acf, self.x, self.classes = acf, x, classes
        o, t = acf.make('acf_options_create'), acf.table(x, classes)
        for s in settings:
            acf('acf_options_set', o, *(part.encode() for part in s.split('=', 1)))
        self.m = acf.make('acf_model_fit', t, o, None, None)
        self.s = acf.make('acf_session_create', self.m)

    def ask(self, name, x, given, target, *args, shape=None):
        t, out = self.acf.table(x, self.classes), np.empty(x.shape if shape is None else shape)
        masks = [None if m is None else np.ascontiguousarray(m, 'u1') for m in (given, target)]
        self.acf(name, self.s, t, *map(pointer, masks), *args, pointer(out))
        self.acf.lib.acf_table_free(t)
        return out

    def logp(self, x, given, target):
        return self.ask('acf_session_logp', x, given, target, shape=len(x))

    def draw(self, x, given, target, seed, draw=0):
        return self.ask('acf_session_draw', x, given, target, C.c_uint64(seed), C.c_uint32(draw))


def query(D, row, cols, j, values):
    """Rows that give row[cols], and hold values in column j, with their masks."""
    x, given, target = np.full((len(values), D), np.nan), np.zeros((len(values), D)), np.zeros((len(values), D))
    x[:, cols], given[:, cols], x[:, j], target[:, j] = row[cols], 1, values, 1
    return x, given, target


# ------------------------------------------------------------------------------------------------ scores against draws

def step_of(values):
    """What all distinct values are multiples of, counted from the least; 0: nothing."""
    u = np.unique(values)
    d = np.diff(u).min() if len(u) > 1 else 0
    k = (u - u[0]) / d if d else u
    return d if d and np.all(np.abs(k - np.round(k)) < 1e-3) else 0


def scored(m, row, cols, j, drawn):
    """(values, P(X <= value)) by scores, between the values that column j may have; of a class its probability. A cell that was rounded has the
    density of one point of its step: eight rows with points of their own stand for each. Values of donors are atoms of the density."""
    D, own = m.x.shape[1], m.x[~np.isnan(m.x[:, j]), j]
    density = lambda v, copies=1: np.exp(m.logp(*query(D, row, cols, j, np.repeat(v, copies)))).reshape(-1, copies).mean(1)
    if m.classes[j]:
        v = np.arange(m.classes[j], dtype=float)
        p = density(v)
        return v, p / p.sum()
    h, lo, hi = step_of(own), min(own.min(), drawn.min()), max(own.max(), drawn.max())
    if h and (hi - lo) / h < 1500 and len(np.unique(drawn)) < 0.5 * len(drawn):
        v = lo + h * np.arange(-2, round((hi - lo) / h) + 3)
        p = density(v, 8) * h
        return v + h / 2, np.cumsum(p) / p.sum()
    q = np.quantile(drawn, np.linspace(0, 1, 1500))
    grid = np.unique(np.concatenate([q, np.linspace(q[0], q[-1], 1000)]))
    grid += 0.37 * np.diff(np.append(grid, grid[-1] + 1e-9))              # between the atoms
    p = density(grid)
    smooth = np.append(0, np.cumsum(np.diff(grid) * .5 * (p[1:] + p[:-1])))
    atoms = np.unique(own)
    width = np.diff(atoms).min() if len(atoms) > 1 else 1
    mass = np.maximum(density(atoms) - np.interp(atoms, grid, p, 0, 0), 0) * width
    mass[mass < 1e-3 * mass.max(initial=0)] = 0
    F = smooth + np.append(0, np.cumsum(mass))[np.searchsorted(atoms, grid, side='right')]
    return grid, F / F[-1]


SETS = 40       # draws of a row: each has its own ensemble member and parameters


def distance(m, j, v, F, drawn):
    if m.classes[j]:
        return .5 * np.abs(np.bincount(drawn.astype(int), minlength=len(v)) / len(drawn) - F).sum()
    return np.abs(np.searchsorted(np.sort(drawn), v, side='right') / len(drawn) - F).max()


def agree(m, rng, queries=50, draws=4000):
    D, same, row = m.x.shape[1], [], []
    for q in range(queries):
        given = m.x[rng.integers(len(m.x))]
        cols = rng.permutation(np.flatnonzero(~np.isnan(given)))[:rng.integers(0, 4)]
        j = int(rng.choice(np.setdiff1d(np.arange(D), cols)))
        x, g, a = query(D, given, cols, j, np.full(draws // SETS, np.nan))
        one, all_of_it = (np.concatenate([m.draw(x, *masks, seed + q, i)[:, j] for i in range(SETS)])
                          for masks, seed in (((g, a), 11), ((None, None), 500)))
        v, F = scored(m, given, cols, j, one)
        same.append(distance(m, j, v, F, one)), row.append(distance(m, j, v, F, all_of_it))
    for name, d in (('same', np.array(same)), ('row', np.array(row))):
        print(f'  {name:5s} mean {d.mean():.3f}  95 % below {np.quantile(d, .95):.3f}  below 0.05: {np.mean(d < .05):.0%}')


# ------------------------------------------------------------------------------------------------ held-out rows

def uniformity(u):
    u, n = np.sort(u), len(u)
    return max(np.max(np.arange(1, n + 1) / n - u), np.max(u - np.arange(n) / n)) if n else np.nan


def calibrated(m, test, rng, cells=4000, draws=49):
    D, sd = m.x.shape[1], np.where(m.classes > 0, 1, np.nanstd(m.x, 0))
    print('  given   NLL numbers  classes   CRPS of numbers    PIT numbers  classes')
    for k in (0, 1, 2, 3, D - 1):
        rows, cols, column = [], [], []
        for row in np.tile(test, (max(1, cells // len(test)) if k < 4 else 1, 1)):
            seen = rng.permutation(np.flatnonzero(~np.isnan(row)))
            if len(seen) > min(k, 1) and (k == D - 1 or len(seen) > k):
                rows.append(row), column.append(seen[0]), cols.append(seen[1:1 + k])
        parts = [query(D, r, c, j, r[[j]]) for r, c, j in zip(rows, cols, column)]
        x, g, a = (np.concatenate(p) for p in zip(*parts))
        j, real = np.array(column), m.classes[column] == 0
        truth, nll = x[np.arange(len(x)), j], -np.clip(m.logp(x, g, a) + np.log(sd[j]), -20, None)
        drawn = np.stack([m.draw(np.where(a > 0, np.nan, x), g, a, 7, i)[np.arange(len(x)), j] for i in range(draws)])
        u = ((drawn < truth).sum(0) + rng.random(len(x)) * ((drawn == truth).sum(0) + 1)) / (draws + 1)
        spread = (np.sort(drawn, 0) * (2 * np.arange(draws) - draws + 1)[:, None]).sum(0)
        crps = (np.abs(drawn - truth).mean(0) - spread / draws / (draws - 1)) / sd[j]
        mean = lambda v: f'{v.mean():8.3f}' if len(v) else '       -'
        print(f"  {k if k < D - 1 else 'all':>5}      {mean(nll[real])} {mean(nll[~real])}          {mean(crps[real])}       {uniformity(u[real]):8.3f} {uniformity(u[~real]):8.3f}")


# ------------------------------------------------------------------------------------------------ tails

def known(n, r):
    """Columns whose truth is known."""
    return np.stack([r.normal(size=n), r.lognormal(size=n), r.standard_t(4, n), r.random(n), np.where(r.random(n) < .4, 0, r.lognormal(size=n))], 1)


def tails(acf, settings, seed, runs):
    names = 'Gaussian log-normal Student-t(4) uniform zero-inflated'.split()
    truth = known(4000000, np.random.default_rng(0))
    sd, end = truth.std(0), np.sort(truth, 0)
    top, bottom = end[-40000:].mean(0), end[:40000].mean(0)
    classes = np.zeros(5, 'i4')
    for n in (200, 2000):
        share, high, low, inside = (np.zeros((runs, 5)) for _ in range(4))
        for k in range(runs):
            x = known(n, np.random.default_rng(seed + 100 * k + n))
            m = Model(acf, x, classes, settings)
            d = np.concatenate([m.draw(np.full((10000 // SETS, 5), np.nan), None, None, 3, i) for i in range(SETS)])
            s = np.sort(d, 0)
            at = lambda v: np.mean(v == x.min(0), 0) + np.mean(v == x.max(0), 0)
            share[k], high[k], low[k] = at(d) / at(x), (s[-100:].mean(0) - top) / sd, (s[:100].mean(0) - bottom) / sd
            lo, hi = s[100], s[-101]
            inside[k] = np.mean((truth[:200000] >= lo) & (truth[:200000] <= hi), 0)
        print(f'  {n} rows, {runs} runs       share at ends   upper 1 %   lower 1 %   98 % interval holds')
        for j, name in enumerate(names):
            print(f'  {name:22s} {share[:, j].mean():8.2f}      {high[:, j].mean():8.2f}    {low[:, j].mean():8.2f}          {inside[:, j].mean():8.3f}', flush=True)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('job', choices=['agree', 'calibrated', 'tails'])
    a.add_argument('rest', nargs='*', metavar='TABLE or NAME=VALUE')
    a.add_argument('--lib', default=os.path.join(ROOT, 'build', 'libacflow.so'))
    a.add_argument('--seed', type=int, default=1)
    a.add_argument('--rows', type=int, default=5000)
    a.add_argument('--runs', type=int, default=20)
    a = a.parse_intermixed_args()
    acf, rng = Acflow(os.path.abspath(a.lib)), np.random.default_rng(a.seed)
    settings, files = [r for r in a.rest if '=' in r], [r for r in a.rest if '=' not in r]
    if a.job == 'tails':
        tails(acf, settings, a.seed, a.runs)
    for path in files:
        if not os.path.exists(path):
            print(f'{path}: skipped, it is not there')
            continue
        x, classes = acf.read(path)
        x = x[rng.permutation(len(x))][:a.rows]
        n = len(x) if a.job == 'agree' else int(.8 * len(x))
        print(f'{os.path.basename(path)}: {len(x)} rows, {x.shape[1]} columns', flush=True)
        m = Model(acf, x[:n], classes, settings)
        agree(m, rng) if a.job == 'agree' else calibrated(m, x[n:], rng)


if __name__ == '__main__':
    main()
