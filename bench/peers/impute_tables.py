#!/usr/bin/env python3
"""Compares imputation of real tables by acflow and by common tools, on the same removed cells.

  bench/peers/impute_tables.py [NAME=VALUE ...]
      [--peers ../shared/peers] [--data ../shared/data/tables] [--lib build/libacflow.so]
      [--tables wine,abalone,breast,yeast,mushroom,adult] [--seeds 1,2,3] [--rate 0.2] [--draws 20] [--threads 2]
      [--out results.csv]

NAME=VALUE are options of acflow (acflow help fit --all lists them), for example encode=standard steps=2000. The
protocol is that of impute_peers.py in the --peers folder, with its table(), mcar() and score(): 20 % of the observed
cells of a table are removed, a model is fitted to the rest and completes the same table.

Printed for each table and seed:
- point estimates: the best guess; the mean of the draws, most frequent class; the mean of each cell's own conditional,
  most probable class
- quality of the draws: CRPS, share of truths inside the 5 % to 95 % interval, share of truths inside acflow's own 90 %
  intervals and the length of these, Wasserstein distance of single draws, all in standard deviations
- log p of the removed cells given the others: nats per cell, in units where a column has deviation 1; a cell of a
  rounded column counts as a density over its step
- seconds of processor time (and wall time) for fitting, and for each estimate
Peers: the same figures from impute_results.csv, as means over its seeds.

Calls the library through ctypes, without installation. A table without its data is skipped with a line.
"""
import argparse, csv, ctypes as C, os, sys, time
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ALL = 'wine,abalone,breast,yeast,mushroom,adult'


# ------------------------------------------------------------------------------------------------ the library

class Report(C.Structure):
    _fields_ = [('step', C.c_int64), ('steps', C.c_int64), ('epoch', C.c_int64), ('loss', C.c_double),
                ('mean_loss', C.c_double), ('valid', C.c_double), ('best', C.c_double)]


CALLBACK = C.CFUNCTYPE(C.c_int, C.c_void_p, C.POINTER(Report))


class Acflow:
    """The calls that this script needs; every failure is an exception with acflow's message."""
    def __init__(self, path):
        self.lib = C.CDLL(path)
        self.lib.acf_error.restype = C.c_char_p

    def __call__(self, name, *args):
        if getattr(self.lib, name)(*args):
            raise RuntimeError(f'{name}: {self.lib.acf_error().decode()}')

    def table(self, x, classes):
        t = C.c_void_p()
        x = np.ascontiguousarray(x, 'f8')
        self('acf_table_create', doubles(x), None, C.c_int64(x.shape[0]), C.c_int64(x.shape[1]),
             classes.ctypes.data_as(C.c_void_p), None, C.byref(t))
        return t

    def options(self, settings):
        o = C.c_void_p()
        self('acf_options_create', C.byref(o))
        for name, value in settings.items():
            self('acf_options_set', o, name.encode(), str(value).encode())
        return o


def doubles(x):
    return x.ctypes.data_as(C.c_void_p)


# ------------------------------------------------------------------------------------------------ one table

class Fitted:
    """A model of one table and its estimates of the missing cells."""
    def __init__(self, acf, x, cat, settings, trace):
        self.acf, self.shape = acf, x.shape
        classes = np.array([int(np.nanmax(x[:, j])) + 1 if cat[j] else 0 for j in range(x.shape[1])], 'i4')
        self.classes = classes
        self.t, self.m, self.s = acf.table(x, classes), C.c_void_p(), C.c_void_p()
        self.last = {}

        def listen(_, report):
            r = report.contents
            self.last = dict(step=r.step, valid=r.valid, best=r.best)
            if trace and r.step % trace == 0:
                print(f'    step {r.step} loss {r.loss:.4f} valid {r.valid:.4f} best {r.best:.4f}', file=sys.stderr,
                      flush=True)
            return 0
        o, keep = acf.options(settings), CALLBACK(listen)
        acf('acf_model_fit', self.t, o, keep, None, C.byref(self.m))
        acf('acf_session_create', self.m, C.byref(self.s))
        acf.lib.acf_options_free(o)

    def __del__(self):
        for free, handle in (('acf_session_free', self.s), ('acf_model_free', self.m), ('acf_table_free', self.t)):
            getattr(self.acf.lib, free)(handle)

    def ask(self, name, *args):
        out = np.empty(self.shape)
        self.acf(name, self.s, self.t, None, None, *args, doubles(out))
        return out

    def guess(self):
        return self.ask('acf_session_guess')

    def mean(self):
        return self.ask('acf_session_mean')

    def draws(self, n, seed=1):
        return [self.ask('acf_session_draw', C.c_uint64(seed), C.c_uint32(i)) for i in range(n)]

    def interval(self, level=.9):
        """(low, high), as impute --intervals writes them."""
        low, high = np.empty(self.shape), np.empty(self.shape)
        self.acf('acf_session_interval', self.s, self.t, None, None, C.c_double(level), None,
                 doubles(low), doubles(high))
        return low, high

    def logp(self, x, gone):
        """Sum over rows of log p(removed | the others), in the table's units."""
        t, out = self.acf.table(x, self.classes), np.empty(len(x))
        self.acf('acf_session_logp', self.s, t, None, np.ascontiguousarray(gone, 'u1').ctypes.data_as(C.c_void_p),
                 doubles(out))
        self.acf.lib.acf_table_free(t)
        return out.sum()


def held(x, gone, cat, ends):
    """Share of the removed numbers inside their intervals, and the mean length in deviations; means over columns."""
    inside, long = [], []
    for j in np.flatnonzero(~cat):
        g, s = gone[:, j], np.nanstd(x[:, j])
        if g.any() and s > 0:
            low, high = ends[0][g, j], ends[1][g, j]
            inside.append(np.mean((x[g, j] >= low - 1e-9 * s) & (x[g, j] <= high + 1e-9 * s)))
            long.append(np.mean(high - low) / s)
    return (np.mean(inside), np.mean(long)) if inside else (None, None)


def mean_of(draws, cat):
    """Mean of the draws; most frequent class."""
    d = np.stack(draws)
    out = d.mean(0)
    for j in np.flatnonzero(cat):
        c = d[:, :, j].astype(int)
        out[:, j] = np.stack([(c == k).sum(0) for k in range(c.max() + 1)]).argmax(0)
    return out


def run(acf, peers, x, cat, gone, settings, n_draws, trace):
    row, clock = {}, time.process_time
    t0, wall = clock(), time.time()
    f = Fitted(acf, np.where(gone, np.nan, x), cat, settings, trace)
    row.update(fit_s=clock() - t0, fit_wall=time.time() - wall, **f.last)
    scores = {}
    t0 = clock()
    scores['guess'] = peers.score(x, gone, cat, [f.guess()])
    row['guess_s'], t0 = clock() - t0, clock()
    scores['mean'] = peers.score(x, gone, cat, [f.mean()])
    row['mean_s'], t0 = clock() - t0, clock()
    draws = f.draws(n_draws)
    row['draws_s'] = clock() - t0
    scores['draws'] = peers.score(x, gone, cat, [mean_of(draws, cat)])
    s = peers.score(x, gone, cat, draws, drawn=True)
    row['held90'], row['length90'] = held(x, gone, cat, f.interval())
    for e, v in scores.items():
        row.update({f'nrmse_{e}': v.get('nrmse'), f'pfc_{e}': v.get('pfc')})
    row.update({k: s.get(k) for k in ('crps', 'cov90', 'w1', 'tv')})
    sd = np.where(cat, 1, np.nanstd(x, 0))
    row['logp'] = (f.logp(x, gone) + (np.log(sd) * gone.sum(0)).sum()) / gone.sum()
    return row


# ------------------------------------------------------------------------------------------------ printing

def peer_rows(path, name, rate):
    """{method: {figure: mean over seeds}}"""
    out = {}
    for r in csv.DictReader(open(path)):
        if (r['protocol'], r['dataset'], r['status']) == ('A', name, 'ok') and float(r['rate']) == rate:
            for k in ('nrmse', 'pfc', 'crps', 'cov90', 'w1', 'seconds'):
                if r[k]:
                    out.setdefault(r['method'], {}).setdefault(k, []).append(float(r[k]))
    return {m: {k: np.mean(v) for k, v in d.items()} for m, d in out.items()}


def fmt(v, n=3):
    return '-' if v is None or v != v else f'{v:.{n}f}'


def pair(d, e):
    return fmt(d.get('nrmse_' + e)) + ' / ' + fmt(d.get('pfc_' + e))


def show(name, seed, d):
    print(f"{name:9s} {seed}  guess {pair(d, 'guess')}  draws {pair(d, 'draws')}  mean {pair(d, 'mean')}  "
          f"crps {fmt(d['crps'])} "
          f"cov90 {fmt(d['cov90'])} own {fmt(d['held90'])} (length {fmt(d['length90'])}) w1 {fmt(d['w1'])} "
          f"logp {fmt(d['logp'])}  steps {d.get('step')} valid {fmt(d.get('best'))}  "
          f"fit {d['fit_s']:.1f}s ({d['fit_wall']:.0f}s) guess {d['guess_s']:.1f}s mean {d['mean_s']:.1f}s "
          f"draws {d['draws_s']:.1f}s", flush=True)


def summary(name, rows, peers):
    mean = {k: np.mean([r[k] for r in rows if r.get(k) is not None] or [np.nan]) for k in rows[0]}
    best = [min((p[k] for p in peers.values() if k in p), default=np.nan) for k in ('nrmse', 'pfc')]
    mice = peers.get('mice', peers.get('mice_pmm', {}))
    own = [min(mean[f'{k}_{e}'] for e in ('guess', 'draws', 'mean')) for k in ('nrmse', 'pfc')]
    print(f"{name:9s} mean  guess {pair(mean, 'guess')}  draws {pair(mean, 'draws')}  mean {pair(mean, 'mean')} "
          f"| best peer {fmt(best[0])} / {fmt(best[1])}"
          f" | ratio {fmt(mean['nrmse_mean'] / best[0])} / {fmt(mean['pfc_mean'] / best[1])}"
          f" | crps {fmt(mean['crps'])} (mice {fmt(mice.get('crps'))}) cov90 {fmt(mean['cov90'])} "
          f"own {fmt(mean['held90'])} "
          f"w1 {fmt(mean['w1'])} (mice {fmt(mice.get('w1'))})"
          f" logp {fmt(mean['logp'])} | fit {mean['fit_s']:.0f}s", flush=True)
    return own


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('settings', nargs='*', metavar='NAME=VALUE')
    ap.add_argument('--peers', default=os.path.join(ROOT, '..', 'shared', 'peers'))
    ap.add_argument('--data', default=os.path.join(ROOT, '..', 'shared', 'data', 'tables'))
    ap.add_argument('--lib', default=os.path.join(ROOT, 'build', 'libacflow.so'))
    ap.add_argument('--tables', default=ALL)
    ap.add_argument('--seeds', default='1')
    ap.add_argument('--rate', type=float, default=.2)
    ap.add_argument('--draws', type=int, default=20)
    ap.add_argument('--threads', type=int, default=2)
    ap.add_argument('--trace', type=int, default=0, help='print progress every so many steps')
    ap.add_argument('--out', help='append the figures to this CSV file')
    a = ap.parse_args()
    if not os.path.exists(os.path.join(a.peers, 'impute_peers.py')) or not os.path.isdir(a.data):
        print(f'skipped: no impute_peers.py in {a.peers}, or no tables in {a.data}')
        return
    sys.path.insert(0, a.peers)
    import impute_peers as peers
    acf = Acflow(a.lib)
    settings = dict({'threads': a.threads}, **dict(s.split('=', 1) for s in a.settings))
    for name in a.tables.split(','):
        x, cat = peers.table(name, a.data)
        rows = []
        for seed in map(int, a.seeds.split(',')):
            gone = peers.mcar(x, a.rate, seed)
            rows.append(run(acf, peers, x, cat, gone, settings, a.draws, a.trace))
            show(name, seed, rows[-1])
            if a.out:
                new = not os.path.exists(a.out)
                with open(a.out, 'a', newline='') as f:
                    w = csv.writer(f)
                    if new:
                        w.writerow(['table', 'seed', 'settings'] + list(rows[-1]))
                    w.writerow([name, seed, ' '.join(a.settings)] + list(rows[-1].values()))
        summary(name, rows, peer_rows(os.path.join(a.peers, 'impute_results.csv'), name, a.rate))


if __name__ == '__main__':
    main()
