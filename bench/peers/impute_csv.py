#!/usr/bin/env python3
"""Compares imputation of any CSV files by acflow and by common tools, on the same removed cells.

  bench/peers/impute_csv.py FILE.csv ... [NAME=VALUE ...]
      [--methods acflow,mean,knn5,knn20,iter_br,trees,mice] [--seeds 1,2] [--cap 120] [--out results.csv]
      [--peers ../shared/peers] [--lib build/libacflow.so] [--threads 1] [--summary]

The protocol, the peers and the scores are those of impute_peers.py in the --peers folder; NAME=VALUE are options of
acflow. Columns of text are categories, and so are numbers with two values; dates are days. Text columns that mostly
differ from row to row (ids) and constants are left out. Every run is a row of --out, which is read first: finished runs
are not repeated. A method that takes more than --cap seconds is stopped. --summary runs nothing. It prints, for each
file, acflow's figures and the best peer's on the same cells, the worst ratio first. Seconds are processor time for
acflow and wall time for peers, so on a busy machine more peers reach the cap.
"""
import argparse, collections, csv, os, signal, sys, warnings
import numpy as np
import pandas as pd

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import impute_tables as own

FIGURES = 'nrmse pfc crps cov90 w1 tv seconds'.split()
POINT = ('mean', 'knn5', 'knn20', 'iter_br', 'trees', 'mice')


def table(path):
    """(x, cat) as impute_peers.table() gives it."""
    columns, cat = [], []
    for _, c in pd.read_csv(path).items():
        text = not pd.api.types.is_numeric_dtype(c)
        when = pd.to_datetime(c, errors='coerce') if text else c
        if text and when.notna().equals(c.notna()):
            c, text = (when - when.min()).dt.total_seconds() / 86400, False
        if c.nunique() < 2 or text and c.nunique() > .5 * c.notna().sum():
            continue
        cat.append(text or c.nunique() == 2)
        codes = pd.factorize(c, sort=True)[0].astype(float)
        columns.append(np.where(codes < 0, np.nan, codes) if cat[-1] else c.to_numpy(float))
    return np.stack(columns, 1), np.array(cat)


def by_acflow(acf, peers, x, cat, gone, settings):
    r = own.run(acf, peers, x, cat, gone, settings, 20, 0)
    return dict(nrmse=r['nrmse_mean'], pfc=r['pfc_mean'], seconds=r['fit_s'] + r['mean_s'],
                note=f"{r.get('step')} steps, {r['draws_s']:.1f} s to draw",
                **{k: r[k] for k in ('crps', 'cov90', 'w1', 'tv')})


def by_peer(peers, method, x, cat, gone, seed):
    tables, drawn, seconds, note = peers.METHODS[method](np.where(gone, np.nan, x), cat, seed, None)
    return dict(peers.score(x, gone, cat, tables, drawn), seconds=seconds, note=note)


class TooLong(Exception):
    pass


def give_up(*_):
    raise TooLong


def one(acf, peers, method, x, cat, seed, a):
    gone = peers.mcar(x, .2, seed)
    signal.alarm(0 if method == 'acflow' else a.cap)
    try:
        if method == 'acflow':
            return by_acflow(acf, peers, x, cat, gone, a.options)
        return by_peer(peers, method, x, cat, gone, seed)
    except TooLong:
        return dict(note=f'over {a.cap} s')
    except Exception as e:
        return dict(note=f'{type(e).__name__}: {e}'[:120].replace('\n', ' '))
    finally:
        signal.alarm(0)


# ------------------------------------------------------------------------------------------------ the summary

def ratio(own_figure, best):
    return own_figure / best if best and own_figure == own_figure else np.nan


def summary(path, method):
    of = collections.defaultdict(dict)
    for r in csv.DictReader(open(path)):
        for k in FIGURES:
            if r[k]:
                of[r['table'], r['method'], k][r['seed']] = float(r[k])

    def mean(t, m, k):
        """Over all of acflow's seeds only: other seeds remove other cells, which are not comparable."""
        seeds = of.get((t, method, k)) or of.get((t, method, 'seconds'), {})
        own_cells = of.get((t, m, k), {})
        return np.mean([own_cells[s] for s in seeds]) if seeds and set(seeds) <= set(own_cells) else np.nan
    rows = []
    for t in sorted({t for t, m, _ in list(of) if m == method}):
        v = {k: mean(t, method, k) for k in FIGURES}
        best = {k: min(((mean(t, m, k), m) for m in POINT if mean(t, m, k) == mean(t, m, k)), default=(np.nan, ''))
                for k in ('nrmse', 'pfc')}
        worst = np.nanmax([ratio(v[k], best[k][0]) for k in best] + [0])
        rows.append((worst, t, v, best))
    for worst, t, v, best in sorted(rows, key=lambda r: -r[0]):
        f = own.fmt
        print(f"| {t} | {f(v['nrmse'])} / {f(v['pfc'])} "
              f"| {f(best['nrmse'][0])} ({best['nrmse'][1]}) / {f(best['pfc'][0])} ({best['pfc'][1]}) "
              f"| {f(worst, 2)} | {f(v['crps'])} ({f(mean(t, 'mice', 'crps'))}) "
              f"| {f(v['cov90'])} ({f(mean(t, 'mice', 'cov90'))}) "
              f"| {f(v['w1'])} ({f(mean(t, 'mice', 'w1'))}) "
              f"| {f(v['seconds'], 0)} ({f(mean(t, 'trees', 'seconds'), 0)}) |")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('words', nargs='*', metavar='FILE.csv or NAME=VALUE')
    ap.add_argument('--peers', default=os.path.join(own.ROOT, '..', 'shared', 'peers'))
    ap.add_argument('--lib', default=os.path.join(own.ROOT, 'build', 'libacflow.so'))
    ap.add_argument('--methods', default='acflow,' + ','.join(POINT))
    ap.add_argument('--seeds', default='1,2')
    ap.add_argument('--cap', type=int, default=120, help='seconds')
    ap.add_argument('--threads', type=int, default=1)
    ap.add_argument('--out', required=True)
    ap.add_argument('--name', default='acflow', help='what acflow is called in --out')
    ap.add_argument('--summary', action='store_true')
    a = ap.parse_args()
    if a.summary:
        return summary(a.out, a.name)
    sys.path.insert(0, a.peers)
    import impute_peers as peers
    warnings.filterwarnings('ignore')
    signal.signal(signal.SIGALRM, give_up)
    a.options = dict({'threads': a.threads}, **dict(s.split('=', 1) for s in a.words if '=' in s))
    acf = own.Acflow(a.lib) if 'acflow' in a.methods.split(',') else None
    new = not os.path.exists(a.out)
    done = set() if new else {(r['table'], r['method'], r['seed']) for r in csv.DictReader(open(a.out))}
    with open(a.out, 'a', newline='') as f:
        fields = ['table', 'method', 'seed', 'rows', 'columns'] + FIGURES + ['note']
        w = csv.DictWriter(f, fields, extrasaction='ignore')
        if new:
            w.writeheader()
        for path in [s for s in a.words if '=' not in s]:
            name, (x, cat) = os.path.splitext(os.path.basename(path))[0], table(path)
            for method in a.methods.split(','):
                for seed in a.seeds.split(','):
                    called = a.name if method == 'acflow' else method
                    if (name, called, seed) not in done:
                        r = dict(one(acf, peers, method, x, cat, int(seed), a), table=name, method=called, seed=seed,
                                 rows=len(x), columns=len(cat))
                        w.writerow({k: own.fmt(v, 5) if isinstance(v, float) else v for k, v in r.items()})
                        f.flush()
                        print(*(own.fmt(v) if isinstance(v, float) else v for v in (r.get(k) for k in fields)),
                              flush=True)


if __name__ == '__main__':
    main()
