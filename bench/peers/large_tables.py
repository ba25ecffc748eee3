#!/usr/bin/env python3
"""Compares imputation of large tables by acflow, on a CPU or a GPU, and by common tools, on the same removed cells.

  bench/peers/large_tables.py [NAME=VALUE ...]
      [--tables power,gas,adult,mammography,amounts] [--methods acflow,trees,knn20,hgb] [--seeds 1] [--rows N]
      [--out results.csv] [--peers ../shared/peers] [--data ../shared/data] [--lib build/libacflow.so] [--threads 2]

NAME=VALUE are options of acflow (acflow help fit --all lists them), for example device=cuda effort=best.

Tables: power and gas are 20,000 rows of the density sets, drawn at random; adult is that of impute_peers.py in the
--peers folder (10,000 rows); mammography is as impute_csv.py reads it, without the class (11,182 rows of six numbers);
amounts is generated here (20,000 rows): heavy-tailed, collinear and often zero amounts, and categories. --rows N keeps
N rows of each, chosen at random, for a quick test. A table without its data is skipped with a line.

Protocol: 20 % of the observed cells are removed (mcar() of impute_peers.py); a method is fitted to the rest and
completes the same table. Methods: acflow; trees and knn20 of impute_peers.py; hgb, gradient boosting of
scikit-learn (HistGradientBoosting), each column from all others, three rounds from the means and most frequent classes.

Figures, by score() of impute_peers.py, which gives their definitions:
  nrmse, pfc     of single values; acflow's are acf_session_mean, the mean or the most probable class of each cell
  worst          NRMSE of the column with the largest
  crps, cov90    of 20 draws; the peers here have no draws
  w1             Wasserstein distance of a completed table: mean of the first five of 20 draws, or the peer's table
  fit_s          wall seconds for fitting; for peers, which fit and impute in one call, the whole
  answer_s       wall seconds for the single values and the 20 draws
--threads applies to acflow; impute_peers.py sets peers to one thread.

Each run is a row of --out. A finished run (same table, method, options, seed and number of rows) is
not repeated. A run that fails prints its error and leaves no row.
"""
import argparse, csv, os, sys, time, warnings
import numpy as np
import impute_tables as own

ROWS, DRAWS = 20000, 20
METHODS = ('acflow', 'trees', 'knn20', 'hgb')
FIGURES = ('nrmse', 'worst', 'pfc', 'crps', 'cov90', 'w1', 'fit_s', 'answer_s')
KEY = ('table', 'method', 'options', 'seed', 'rows')


# ------------------------------------------------------------------------------------------------ tables
# Each returns (x, cat), as table() of impute_peers.py does.

def density(name, data):
    x = np.load(os.path.join(data, 'density', name, 'data.npy'), mmap_mode='r')
    x = x[np.random.default_rng(0).permutation(len(x))[:ROWS]].astype('f8')
    return x, np.zeros(x.shape[1], bool)


def adult(data):
    import impute_peers as peers
    return peers.table('adult', os.path.join(data, 'tables'))


def mammography(data):
    import impute_csv
    x, cat = impute_csv.table(os.path.join(data, 'tables', 'mammography.csv'))
    return x[:, :6], cat[:6]    # without the class: pandas may read '-1' as a date


def amounts(data):
    """Customers: six months of bills and of payments, a limit, delays, demographics, defaults."""
    r, n = np.random.default_rng(7), ROWS
    group, risk = r.integers(0, 5, n), r.normal(size=n)
    bill = np.exp(8 + 1.2 * risk + .3 * group + r.normal(size=n) * .5)
    bills = []
    for _ in range(6):
        bill = bill * np.exp(.25 * r.normal(size=n))
        none = r.random(n) < 1 / (1 + np.exp(1.5 + risk))
        bills.append(np.where(none, 0, np.round(bill)))
    paid = [np.where(r.random(n) < .25, 0, np.round(b * np.minimum(1, np.exp(-2 + 1.2 * r.normal(size=n)))))
            for b in bills]
    late = np.clip(np.round(1.2 * risk + r.normal(size=n)), -2, 6)
    school, sex = r.integers(0, 4, n), r.integers(0, 2, n)
    age = np.clip(np.round(38 + 8 * r.normal(size=n) + 3 * school), 21, 80)
    default = r.random(n) < 1 / (1 + np.exp(2 - 1.0 * risk - .4 * late))
    limit = np.round(np.exp(11 + .5 * risk + .4 * r.normal(size=n)) / 1e4) * 1e4
    x = np.column_stack([limit, sex, school, group, age, late] + bills + paid + [default]).astype('f8')
    return x, np.array([0, 1, 1, 1, 0, 0] + [0] * 12 + [1], bool)


TABLES = {'power': lambda data: density('power', data), 'gas': lambda data: density('gas', data), 'adult': adult,
          'mammography': mammography, 'amounts': amounts}


# ------------------------------------------------------------------------------------------------ methods

def hgb(x, cat, seed):
    """Chained gradient boosting, the columns with the fewest missing cells first."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    miss, y = np.isnan(x), x.copy()
    for j in range(x.shape[1]):
        v = x[~miss[:, j], j]
        y[miss[:, j], j] = np.bincount(v.astype(int)).argmax() if cat[j] else v.mean()
    for _ in range(3):
        for j in np.argsort(miss.sum(0)):
            seen = ~miss[:, j]
            if seen.all():
                continue
            others = np.delete(np.arange(x.shape[1]), j)
            categories = [bool(cat[k]) and len(np.unique(y[:, k])) < 250 for k in others]    # 255 is its limit
            model = HistGradientBoostingClassifier if cat[j] else HistGradientBoostingRegressor
            model = model(categorical_features=categories, random_state=seed).fit(y[seen][:, others], y[seen, j])
            y[~seen, j] = model.predict(y[~seen][:, others])
    return y


def worst(peers, x, gone, cat, tables):
    per = [peers.score(x[:, [j]], gone[:, [j]], cat[[j]], [t[:, [j]] for t in tables])['nrmse']
           for j in np.flatnonzero(~cat)]
    return max((v for v in per if v is not None), default=None)


def by_acflow(acf, peers, x, cat, gone, options):
    t0 = time.time()
    f = own.Fitted(acf, np.where(gone, np.nan, x), cat, options, 0)
    t1 = time.time()
    mean, draws = f.mean(), f.draws(DRAWS)
    t2 = time.time()
    single, drawn = peers.score(x, gone, cat, [mean]), peers.score(x, gone, cat, draws, drawn=True)
    return dict(nrmse=single['nrmse'], pfc=single.get('pfc'), worst=worst(peers, x, gone, cat, [mean]),
                **{k: drawn[k] for k in ('crps', 'cov90', 'w1')}, fit_s=t1 - t0, answer_s=t2 - t1,
                note=f"{f.last.get('step')} steps")


def by_peer(peers, method, x, cat, gone, seed):
    t0, holed, note = time.time(), np.where(gone, np.nan, x), ''
    if method == 'hgb':
        tables = [hgb(holed, cat, seed)]
    else:
        tables, _, _, note = peers.METHODS[method](holed, cat, seed, None)
    seconds = time.time() - t0
    return dict(peers.score(x, gone, cat, tables), worst=worst(peers, x, gone, cat, tables), fit_s=seconds, note=note)


def main():
    shared = os.path.join(own.ROOT, '..', 'shared')
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('settings', nargs='*', metavar='NAME=VALUE')
    ap.add_argument('--tables', default=','.join(TABLES))
    ap.add_argument('--methods', default=','.join(METHODS))
    ap.add_argument('--seeds', default='1')
    ap.add_argument('--rows', type=int, help='keep this many rows of each table')
    ap.add_argument('--out', help='append the figures to this CSV file')
    ap.add_argument('--peers', default=os.path.join(shared, 'peers'))
    ap.add_argument('--data', default=os.path.join(shared, 'data'))
    ap.add_argument('--lib', default=os.path.join(own.ROOT, 'build', 'libacflow.so'))
    ap.add_argument('--threads', type=int, default=2)
    a = ap.parse_args()
    names, methods = a.tables.split(','), a.methods.split(',')
    for word, known in [(n, TABLES) for n in names] + [(m, METHODS) for m in methods]:
        if word not in known:
            ap.error(f"{word} is none of {', '.join(known)}")
    sys.path.insert(0, a.peers)
    try:
        import impute_peers as peers
    except ImportError as e:
        print(f'skipped: impute_peers.py of {a.peers}: {e}')
        return
    warnings.filterwarnings('ignore')
    options = dict({'threads': a.threads}, **dict(s.split('=', 1) for s in a.settings))
    acf = own.Acflow(a.lib) if 'acflow' in methods else None
    done = set()
    if a.out and os.path.exists(a.out):
        with open(a.out, newline='') as f:
            done = {tuple(r[k] for k in KEY) for r in csv.DictReader(f)}
    for name in names:
        try:
            x, cat = TABLES[name](a.data)
        except FileNotFoundError as e:
            print(f'skipped: {name}: no file {e.filename}')
            continue
        if a.rows:
            x = x[np.random.default_rng(0).permutation(len(x))[:a.rows]]
        for method, seed in ((m, s) for m in methods for s in a.seeds.split(',')):
            key = (name, method, ' '.join(a.settings) if method == 'acflow' else '', seed, str(len(x)))
            if key in done:
                continue
            gone = peers.mcar(x, .2, int(seed))
            try:
                r = by_acflow(acf, peers, x, cat, gone, options) if method == 'acflow' else \
                    by_peer(peers, method, x, cat, gone, int(seed))
            except Exception as e:
                print(f'{name:11s} {method:6s} {seed}  failed: {type(e).__name__}: {e}', flush=True)
                continue
            figures = [f'{k} {own.fmt(r.get(k))}' for k in FIGURES]
            print(f'{name:11s} {method:6s} {seed} ', *figures, r['note'], flush=True)
            if a.out:
                new = not os.path.exists(a.out)
                with open(a.out, 'a', newline='') as f:
                    w = csv.DictWriter(f, KEY + ('columns',) + FIGURES + ('note',), extrasaction='ignore')
                    if new:
                        w.writeheader()
                    w.writerow(dict({k: f'{v:.5g}' if isinstance(v, float) else v for k, v in r.items()},
                                    **dict(zip(KEY, key)), columns=len(cat)))


if __name__ == '__main__':
    main()
