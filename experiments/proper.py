#!/usr/bin/env python3
"""Multiple imputation, checked by simulation: do 95 % intervals by Rubin's rules cover, and is their standard error the
deviation of the estimates?

  python3 experiments/proper.py [--cells mcar-100-60,...] [--reps 300] [--jobs 16] [--out proper.csv] [--mice mice.csv]
  python3 experiments/proper.py --write DATA         the same tables as CSV files, for experiments/proper.R
  Rscript experiments/proper.R DATA mice.csv [REPS]  mice's methods norm and pmm on them
  python3 experiments/proper.py --boys boys.csv      fraction of missing information and standard errors of lm(tv ~ age + hgt)

A table has x, z and y, normal: z = x/2 + noise, y = 1 + x/2 + z/2 + noise. A cell of the simulation is
MECHANISM-ROWS-PERCENT: so many percent of y are missing, completely at random (mcar) or the more likely the larger x is
(mar), and a third as many of z, completely at random. Every table is fitted with NAME=VALUE options of acflow, or the
defaults, and imputed m times, each repetition from a seed of its own: with one seed for all, what 20 draws happen to
have in common would look like a bias. Estimands: the mean of y, the slope of x in lm(y ~ x + z), the correlation of x
and y (by Fisher's z). Degrees of freedom are Barnard and Rubin's.

Printed for each cell and estimand: bias, coverage, mean standard error over the deviation of the estimates, fraction of
missing information; and mice's coverage and ratio beside them where there are such figures. NumPy alone is needed.
boys.csv: write.csv(mice::boys, 'boys.csv', row.names = FALSE, na = '')
"""
import argparse, csv, ctypes, math, multiprocessing, os, sys, time

os.environ.setdefault('OMP_NUM_THREADS', '1')
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
CELLS = [f'{how}-{n}-{percent}' for how in ('mcar', 'mar') for n in (100, 500) for percent in (30, 60)]
ESTIMANDS = ('mean', 'slope', 'correlation')
TRUTH = {'mean': 1.0, 'slope': 0.5, 'correlation': math.atanh(0.75 / math.sqrt(9 / 16 + 1 / 4 + 1))}


def make_table(cell, rep):
    """The table of a repetition, NaN where it is missing: the same for every program."""
    how, n, percent = cell.split('-')
    n, share = int(n), int(percent) / 100
    rng = np.random.default_rng([CELLS.index(cell), rep])
    x = rng.standard_normal(n)
    z = 0.5 * x + rng.standard_normal(n)
    y = 1 + 0.5 * x + 0.5 * z + rng.standard_normal(n)
    u, v = rng.random(n), rng.random(n)
    chance = np.full(n, share)
    if how == 'mar':
        shift = {30: -1.0, 60: 0.52}[int(percent)]
        chance = 1 / (1 + np.exp(-(1.5 * x + shift)))
    y[u < chance] = np.nan
    z[v < share / 3] = np.nan
    return np.column_stack([x, z, y])


# ---- what is estimated from a completed table
# ------------------------------------------------------------------------------------

def regress(y, columns):
    """Coefficients and variances of a linear regression with an intercept."""
    X = np.column_stack([np.ones(len(y))] + columns)
    inverse = np.linalg.inv(X.T @ X)
    b = inverse @ (X.T @ y)
    s2 = np.sum((y - X @ b) ** 2) / (len(y) - X.shape[1])
    return b, s2 * np.diag(inverse)


def estimate(t):
    """Estimate, variance and degrees of freedom of each estimand."""
    x, z, y = t.T
    n = len(y)
    b, v = regress(y, [x, z])
    r = np.corrcoef(x, y)[0, 1]
    return [(y.mean(), y.var(ddof=1) / n, n - 1), (b[1], v[1], n - 3), (math.atanh(r), 1 / (n - 3), n - 1)]


def t_quantile(df):
    """The 97.5 % quantile of Student's t, by Hill's expansion."""
    q = 1.959963984540054
    if df > 1e6:
        return q
    g = [(q**3 + q) / 4, (5 * q**5 + 16 * q**3 + 3 * q) / 96, (3 * q**7 + 19 * q**5 + 17 * q**3 - 15 * q) / 384,
         (79 * q**9 + 776 * q**7 + 1482 * q**5 - 1920 * q**3 - 945 * q) / 92160]
    return q + sum(a / df ** (k + 1) for k, a in enumerate(g))


def pool(estimates, variances, df_complete):
    """Rubin's rules: estimate, standard error, degrees of freedom, fraction of missing information."""
    m, q, within, between = len(estimates), np.mean(estimates), np.mean(variances), np.var(estimates, ddof=1)
    total = within + (1 + 1 / m) * between
    share = max((1 + 1 / m) * between / total, 1e-9)
    old, seen = (m - 1) / share**2, (df_complete + 1) / (df_complete + 3) * df_complete * (1 - share)
    df = old * seen / (old + seen)
    r = share / (1 - share)
    return q, math.sqrt(total), df, (r + 2 / (df + 3)) / (r + 1)


# ---- acflow
# ----------------------------------------------------------------------------------------------------------------------

class Lib:
    """libacflow.so by ctypes."""

    def __init__(self, path, settings):
        self.lib = ctypes.CDLL(path)
        self.lib.acf_error.restype = ctypes.c_char_p
        self.options = self.make('acf_options_create')
        for name, value in settings:
            self.call('acf_options_set', self.options, name.encode(), value.encode())

    def call(self, name, *args):
        if getattr(self.lib, name)(*args):
            sys.exit(f'proper.py: {name}: {self.lib.acf_error().decode()}')

    def make(self, name, *args):
        out = ctypes.c_void_p()
        self.call(name, *args, ctypes.byref(out))
        return out

    def impute(self, table, shape, m, seed=1):
        """m completed tables of a handle, which is freed."""
        self.call('acf_options_set', self.options, b'seed', str(seed).encode())
        model = self.make('acf_model_fit', table, self.options, None, None)
        session = self.make('acf_session_create', model)
        out = np.empty((m, *shape))
        for i in range(m):
            self.call('acf_session_draw', session, table, None, None, ctypes.c_uint64(seed), ctypes.c_uint32(i), ctypes.c_void_p(out[i].ctypes.data))
        for kind, handle in (('session', session), ('model', model), ('table', table)):
            getattr(self.lib, f'acf_{kind}_free')(handle)
        return out

    def impute_matrix(self, x, m, seed):
        x = np.ascontiguousarray(x, 'f8')
        table = self.make('acf_table_create', ctypes.c_void_p(x.ctypes.data), None, ctypes.c_int64(x.shape[0]), ctypes.c_int64(x.shape[1]), None, None)
        return self.impute(table, x.shape, m, seed)


def begin(path, settings):
    global LIB
    LIB = Lib(path, settings)


def work(job):
    cell, rep, m = job
    done = [estimate(t) for t in LIB.impute_matrix(make_table(cell, rep), m, rep + 1)]
    return [(cell, rep, 'acflow', name, *pool([d[k][0] for d in done], [d[k][1] for d in done], done[0][k][2])) for k, name in enumerate(ESTIMANDS)]


# ---- what is printed
# -------------------------------------------------------------------------------------------------------------

HEAD = ('cell', 'rep', 'method', 'estimand', 'estimate', 'se', 'df', 'fmi')


def read(path):
    with open(path, newline='') as f:
        return [(r['cell'], int(r['rep']), r['method'], r['estimand'], *(float(r[k]) for k in HEAD[4:])) for r in csv.DictReader(f)]


def figures(rows, name):
    """bias, coverage, standard error over the deviation of the estimates, fraction of missing information."""
    q, se, df, fmi = (np.array([r[k] for r in rows]) for k in (4, 5, 6, 7))
    covered = np.abs(q - TRUTH[name]) <= se * np.array([t_quantile(d) for d in df])
    return q.mean() - TRUTH[name], covered.mean(), se.mean() / q.std(ddof=1), fmi.mean()


def show(rows):
    group = {}
    for r in rows:
        group.setdefault((r[0], r[3], r[2]), []).append(r)
    methods = [m for m in ('acflow', 'norm', 'pmm') if any(k[2] == m for k in group)]
    print(f'{"cell":<12} {"estimand":<12}' + ''.join(f' | {m:<6} {"reps":>4} {"bias":>6} {"cover":>5} {"se/sd":>5} {"fmi":>4}' for m in methods))
    for cell in CELLS:
        for name in ESTIMANDS:
            if not any((cell, name, m) in group for m in methods):
                continue
            line = f'{cell:<12} {name:<12}'
            for m in methods:
                of = group.get((cell, name, m), [])
                line += (' | {:<6} {:>4} {:>6.3f} {:>5.3f} {:>5.2f} {:>4.2f}'.format('', len(of), *figures(of, name)) if len(of) > 1 else f' | {"":<35}')
            print(line.rstrip())


def boys(lib, path, m):
    """lm(tv ~ age + hgt) of the file's imputations."""
    table = lib.make('acf_table_read', path.encode(), None, lib.options)
    lib.lib.acf_table_name.restype = ctypes.c_char_p
    lib.lib.acf_table_rows.restype = lib.lib.acf_table_columns.restype = ctypes.c_int64
    shape = lib.lib.acf_table_rows(table), lib.lib.acf_table_columns(table)
    names = [lib.lib.acf_table_name(table, ctypes.c_int64(j)).decode() for j in range(shape[1])]
    at = [names.index(k) for k in ('tv', 'age', 'hgt')]
    done = [regress(t[:, at[0]], [t[:, at[1]], t[:, at[2]]]) for t in lib.impute(table, shape, m)]
    print(f'{"":<10} {"estimate":>9} {"se":>7} {"fmi":>5}')
    for k, name in enumerate(('intercept', 'age', 'hgt')):
        q, se, _, fmi = pool([d[0][k] for d in done], [d[1][k] for d in done], shape[0] - 3)
        print(f'{name:<10} {q:>9.4f} {se:>7.4f} {fmi:>5.2f}')


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('settings', nargs='*', metavar='NAME=VALUE', help='options of acflow')
    p.add_argument('--cells', default=','.join(CELLS))
    p.add_argument('--reps', type=int, default=300)
    p.add_argument('--first', type=int, default=0, help='the first repetition')
    p.add_argument('--draws', type=int, default=20, help='imputations of a table')
    p.add_argument('--jobs', type=int, default=os.cpu_count() or 1)
    p.add_argument('--lib', default=os.path.join(HERE, '..', 'build', 'libacflow.so'))
    p.add_argument('--out', help='CSV file for the estimates')
    p.add_argument('--mice', help="CSV file of experiments/proper.R")
    p.add_argument('--show', help='print the table of this CSV file and compute nothing')
    p.add_argument('--write', metavar='FOLDER', help='write the tables as CSV files and compute nothing')
    p.add_argument('--boys', metavar='FILE', help="impute mice's boys instead")
    a = p.parse_args()
    cells = a.cells.split(',')
    reps = range(a.first, a.first + a.reps)
    if wrong := [c for c in cells if c not in CELLS]:
        sys.exit(f'proper.py: no cell {wrong[0]}; there are {", ".join(CELLS)}')
    settings = [('threads', '1')] + [tuple(s.split('=', 1)) for s in a.settings]
    if a.boys:
        return boys(Lib(a.lib, settings), a.boys, a.draws)
    if a.write:
        os.makedirs(a.write, exist_ok=True)
        for cell in cells:
            rows = np.vstack([np.column_stack([np.full(int(cell.split('-')[1]), rep), make_table(cell, rep)]) for rep in reps])
            np.savetxt(os.path.join(a.write, f'{cell}.csv'), rows, '%.17g', ',', header='rep,x,z,y', comments='')
        return
    rows = read(a.show) if a.show else []
    started = time.time()
    if not a.show:
        jobs = [(cell, rep, a.draws) for cell in sorted(cells, key=lambda c: -int(c.split('-')[1])) for rep in reps]      # long ones first
        with multiprocessing.Pool(a.jobs, begin, (a.lib, settings)) as workers:
            for done in workers.imap_unordered(work, jobs):
                rows += done
        rows.sort(key=lambda r: (CELLS.index(r[0]), r[1]))
    if a.out:
        with open(a.out, 'w', newline='') as f:
            csv.writer(f).writerows([HEAD, *rows])
    show(rows + (read(a.mice) if a.mice else []))
    if not a.show:
        print(f'{len(rows) // len(ESTIMANDS)} tables in {time.time() - started:.0f} s')


if __name__ == '__main__':
    main()
