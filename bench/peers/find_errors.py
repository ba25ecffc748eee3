#!/usr/bin/env python3
"""Finds planted errors in tables: acflow score --cells against a forest and a score per column.

  bench/peers/find_errors.py [--data ../shared/data/tables] [--boys boys.csv] [--acflow build/acflow]
      [--tables boys,abalone,wine,yeast,autos] [--seeds 1,2] [--rate 0.01] [--rows 1000] [--threads 2] [--keep FOLDER]

A share of the observed cells of a table (of at most --rows rows, drawn at random) is made wrong. Numbers get three
kinds of error in turn: a shift by 2 to 5 standard deviations of the column, two neighbouring digits transposed, or the
value of another column of the row. A category becomes the value of another row. Each method then sees only the table
with its errors.

Printed for each table and seed: average precision over all observed cells, and over rows (does the row have an error?),
of

  acflow    a model of the table, fitted with default options; a cell by its rank among the first 1000 of
            acflow score --cells (the others are last), a row by its first cell
  forest    scikit-learn's IsolationForest of 500 trees (missing numbers as the median, categories as indicators); it
            scores rows, so the cells of a row are ordered by their z-score
  z-score   |x - mean| / standard deviation of each column; for a category the same of the indicator of its level

--boys: the table boys of the R package mice: Rscript -e 'write.csv(mice::boys, "boys.csv", row.names = FALSE, na = "")'
"""
import argparse, csv, os, random, subprocess, sys, tempfile, time
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ABALONE = 'sex length diameter height whole shucked viscera shell rings'.split()
YEAST = 'mcg gvh alm mit erl pox vac nuc site'.split()
AUTOS = ('symboling losses make fuel aspiration doors body drive engine_at wheelbase length width height weight type '
         'cylinders size system bore stroke compression power rpm city highway price').split()


# ------------------------------------------------------------------------------------------------ tables

def read_table(name, args):
    """(names, rows of texts); '' is a missing cell."""
    def lines(file, separator=',', folder=args.data):
        with open(os.path.join(folder, file), newline='') as f:
            records = csv.reader(f, delimiter=separator) if separator else (x.split() for x in f)
            return [[c.strip() for c in r] for r in records if r]
    if name == 'boys':
        rows = lines(os.path.abspath(args.boys))
        return rows[0], rows[1:]
    if name == 'wine':
        rows = lines('winequality-white.csv', ';')
        return rows[0], rows[1:]
    if name == 'abalone':
        return ABALONE, lines('abalone.csv')
    if name == 'yeast':
        return YEAST, [r[1:] for r in lines('yeast.data', None)]
    if name == 'autos':
        return AUTOS, [['' if c == '?' else c for c in r] for r in lines('auto_imports.csv')]
    sys.exit(f'no table {name}')


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def is_number(rows, j):
    return all(number(r[j]) is not None for r in rows if r[j]) and len({r[j] for r in rows}) > 2


# ------------------------------------------------------------------------------------------------ errors

def shifted(text, deviation, rng):
    decimals = len(text.split('.')[1]) if '.' in text else 0
    return f'{float(text) + rng.choice((-1, 1)) * rng.uniform(2, 5) * deviation:.{decimals}f}'


def transposed(text, rng):
    places = [k for k in range(len(text) - 1) if text[k].isdigit() and text[k + 1].isdigit() and text[k] != text[k + 1]]
    if not places:
        return text
    k = rng.choice(places)
    return text[:k] + text[k + 1] + text[k] + text[k + 2:]


def wrong_number(rows, i, j, numbers, kind, deviation, rng):
    """A wrong number for the cell; None where this kind of error does not change it."""
    text = rows[i][j]
    if kind == 0:
        new = shifted(text, deviation[j], rng)
    elif kind == 1:
        new = transposed(text, rng)
    else:
        others = [rows[i][k] for k in numbers if k != j and rows[i][k]]
        new = rng.choice(others) if others else text
    return None if float(new) == float(text) else new


def plant(rows, rate, seed):
    """(rows with errors, the set of cells (i, j) that are wrong)"""
    rng = random.Random(seed)
    dirty, D = [list(r) for r in rows], len(rows[0])
    numbers = [j for j in range(D) if is_number(rows, j)]
    deviation = {j: float(np.std([float(r[j]) for r in rows if r[j]])) for j in numbers}
    cells = [(i, j) for i in range(len(rows)) for j in range(D) if rows[i][j]]
    wanted, wrong = round(rate * len(cells)), set()
    rng.shuffle(cells)
    for i, j in cells:
        if len(wrong) == wanted:
            break
        if j in deviation:
            tries = (wrong_number(rows, i, j, numbers, (len(wrong) + k) % 3, deviation, rng) for k in range(3))
            new = next(filter(None, tries), None)
        else:
            others = [r[j] for r in rows if r[j] and r[j] != rows[i][j]]
            new = rng.choice(others) if others else None
        if new is not None:
            dirty[i][j] = new
            wrong.add((i, j))
    return dirty, wrong


# -------------------------------------------------------------------------------------- methods: a score of every cell

def by_column(rows):
    score = np.full((len(rows), len(rows[0])), -np.inf)
    for j in range(score.shape[1]):
        have = [i for i, r in enumerate(rows) if r[j]]
        if is_number(rows, j):
            x = np.array([float(rows[i][j]) for i in have])
            score[have, j] = np.abs(x - x.mean()) / (x.std() or 1)
        else:
            texts = [rows[i][j] for i in have]
            share = np.array([texts.count(v) for v in texts]) / max(len(texts), 1)
            score[have, j] = np.sqrt((1 - share) / share)
    return score


def by_forest(rows, seed):
    from sklearn.ensemble import IsolationForest
    parts = []
    for j in range(len(rows[0])):
        if is_number(rows, j):
            x = np.array([float(r[j]) if r[j] else np.nan for r in rows])
            parts.append(np.where(np.isnan(x), np.nanmedian(x), x)[:, None])
        else:
            parts.append(np.array([[r[j] == v for v in sorted({q[j] for q in rows} - {''})] for r in rows], float))
    x = np.hstack(parts)
    return -IsolationForest(n_estimators=500, random_state=seed).fit(x).score_samples(x)


def by_acflow(names, rows, args, seed, folder):
    table, model = os.path.join(folder, 'table.csv'), os.path.join(folder, 'model.safetensors')
    with open(table, 'w', newline='') as f:
        csv.writer(f, lineterminator='\n').writerows([names] + rows)
    run = lambda *a: subprocess.run([args.acflow, *a, '--threads', str(args.threads), '-q'], check=True,
                                    capture_output=True, text=True).stdout
    t0 = time.time()
    if not os.path.exists(model):
        run('fit', table, '-o', model, '--seed', str(seed))
    t1 = time.time()
    found = list(csv.DictReader(run('score', table, '--model', model, '--cells', '--top', '1000').splitlines()))
    score = np.full((len(rows), len(names)), -np.inf)
    for place, cell in enumerate(found):
        score[int(cell['row']) - 1, names.index(cell['column'])] = -place
    return score, t1 - t0, time.time() - t1


# ------------------------------------------------------------------------------------------------ what they find

def precisions(score, rows, wrong):
    """Average precision over cells and over rows."""
    from sklearn.metrics import average_precision_score as ap
    have = np.array([[c != '' for c in r] for r in rows])
    truth = np.zeros_like(have)
    for i, j in wrong:
        truth[i, j] = True
    rank = np.unique(score, return_inverse=True)[1].reshape(score.shape).astype(float)
    return ap(truth[have], rank[have]), ap(truth.any(1), rank.max(1))


def in_rows(row_score, cell_score):
    """Cells in the order of their rows, within a row in that of cell_score."""
    order = np.unique(row_score, return_inverse=True)[1][:, None]
    return order + np.where(np.isfinite(cell_score), cell_score / (1 + np.max(cell_score)), -np.inf) / 2


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument('--data', default=os.path.join(ROOT, '../shared/data/tables'))
    p.add_argument('--boys', default='boys.csv')
    p.add_argument('--acflow', default=os.path.join(ROOT, 'build/acflow'))
    p.add_argument('--tables', default='boys,abalone,wine,yeast,autos')
    p.add_argument('--seeds', default='1,2')
    p.add_argument('--rate', type=float, default=.01)
    p.add_argument('--rows', type=int, default=1000)
    p.add_argument('--threads', type=int, default=2)
    p.add_argument('--keep', help='a folder for the tables and their models; models that are there are used again')
    args = p.parse_args()
    print(f'{"table":8} {"seed":>4} {"errors":>6}   cells: {"acflow":>7} {"forest":>7} {"z-score":>7}   '
          f'rows: {"acflow":>7} {"forest":>7} {"z-score":>7}   seconds: {"fit":>6} {"score":>6}')
    for name in args.tables.split(','):
        source = args.boys if name == 'boys' else args.data
        if not os.path.exists(source):
            print(f'{name}: skipped, there is no {source}')
            continue
        names, all_rows = read_table(name, args)
        some = random.Random(0).sample(range(len(all_rows)), min(args.rows, len(all_rows)))
        for seed in map(int, args.seeds.split(',')):
            rows, wrong = plant([all_rows[i] for i in sorted(some)], args.rate, seed)
            with tempfile.TemporaryDirectory() as temporary:
                folder = os.path.join(args.keep, f'{name}-{seed}') if args.keep else temporary
                os.makedirs(folder, exist_ok=True)
                ours, fit, score = by_acflow(names, rows, args, seed, folder)
            forest, z = by_forest(rows, seed), by_column(rows)
            a, f, c = (precisions(score, rows, wrong) for score in (ours, in_rows(forest, z), z))
            print(f'{name:8} {seed:4} {len(wrong):6}          {a[0]:7.3f} {f[0]:7.3f} {c[0]:7.3f}         '
                  f'{a[1]:7.3f} {f[1]:7.3f} {c[1]:7.3f}            {fit:6.1f} {score:6.1f}', flush=True)


if __name__ == '__main__':
    main()
