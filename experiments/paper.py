#!/usr/bin/env python3
"""One row of the paper's tables of real data: makes the data, trains, evaluates, appends the row.
experiments/paper.sh calls it for many.

  python3 experiments/paper.py NAME RATE MODEL [--quick] [--data DIR] [--out FILE] [--seed N] [--until T] [NAME=VALUE]
  python3 experiments/paper.py --show FILE            the rows of FILE as a table in Markdown

NAME is power, gas, hepmass, miniboone or bsds. RATE is the part of the training cells that is missing, completely at
random: 0, 0.1 or 0.5 in the paper. MODEL is ar, acflow, acflow-bg-L, where L is the weight of the best guess in the
loss, or attention, the attention likelihood without transformations, which the paper does not have. NAME=VALUE are
options of acflow; they replace those below.

A row that FILE has (same set, rate, model and seed) is not made again. A training that is interrupted (^C) leaves a
checkpoint beside FILE, and the same command goes on from there. --until: seconds of the epoch; a training that still
runs then is ended, evaluated and marked "cut"; one that would begin later is left out. --quick: few rows, steps and
units, to see that all of it works on two cores.

Data: docs/paper.md. Values are standardised by the mean and deviation of the complete training rows. NLL:
-log p(x_u | x_o) in nats a row. NRMSE: of the best guess of x_u, the error of a column in deviations of its test
values, mean over columns. Both on the first 10,000 test rows, u by Bernoulli(1/2) from five fixed seeds: mean and
standard deviation of the five. nll_250k: NLL of 250,000 test patches of bsds under the first mask; nll_orders: under
it, with --orders 10.
"""
import argparse, csv, ctypes, fcntl, json, os, signal, subprocess, sys, time
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from density import Lib, Report, pointer

# The paper's table: NLL and NRMSE of AR, ACFlow and ACFlow+BG (weight 1) for each part of missing cells.
PAPER = {
    'bsds': {'0': (-1.73, .652, -5.269, .603, -4.841, .572), '0.1': (3.233, .752, -4.225, .610, -3.187, .586),
             '0.5': (11.348, .879, 1.508, .667, 3.497, .645)},
    'gas': {'0': (-7.646, .457, -8.086, .567, -7.593, .369), '0.1': (-7.536, .472, -7.568, .588, -7.212, .384),
            '0.5': (-5.723, .483, -5.405, .488, -4.818, .421)},
    'hepmass': {'0': (6.428, .903, 8.197, .909, 6.833, .861), '0.1': (7.824, .915, 7.784, .908, 9.670, .863),
                '0.5': (9.760, .937, 10.538, .938, 10.975, .890)},
    'miniboone': {'0': (-.057, .460, .972, .478, 1.098, .442), '0.1': (5.409, .539, 5.150, .533, 3.577, .468),
                  '0.5': (11.024, .644, 9.892, .614, 10.849, .582)},
    'power': {'0': (-.399, .877, -.561, .877, -.528, .833), '0.1': (-.466, .876, -.557, .877, -.510, .836),
              '0.5': (-.363, .882, -.458, .890, -.417, .843)},
}
HEAD = ['set', 'missing', 'model', 'paper_nll', 'paper_nrmse', 'nll', 'nll_sd', 'nrmse', 'nrmse_sd', 'nll_250k', 'seed',
        'rows_seen', 'steps', 'seconds', 'device', 'options', 'nll_orders']

# How our models are trained: the paper gives only the models. In wide sets the best guess diverged with lr 0.001.
OPTIONS = {'lr': '0.001', 'warmup': '100', 'decay': 'cosine', 'halve-every': '0', 'loss-per': 'row', 'ema': '0.998',
           'valid-every': '250'}
OF_SET = {'power': {'batch': '1024', 'steps': '4000'}, 'gas': {'batch': '512', 'steps': '5000'},
          'hepmass': {'batch': '512', 'steps': '3000', 'dropout': '0.2'},
          'miniboone': {'batch': '512', 'steps': '2400', 'dropout': '0.2'},
          'bsds': {'batch': '2048', 'steps': '14000', 'valid-every': '1000'}}
ATTENTION = {'likelihood': 'attention', 'masks': 'joint', 'likelihood-units': '256', 'likelihood-layers': '4', 'lr': '0.0006',
             'warmup': '300', 'dropout': '0.1', 'batch': '512'}
ATTENTION_OF_SET = {'power': {'batch': '1024', 'steps': '8000', 'dropout': '0'}, 'hepmass': {'dropout': '0.2'},
                    'miniboone': {'dropout': '0.2', 'steps': '3000'},
                    'bsds': {'likelihood-units': '384', 'likelihood-layers': '6', 'components': '64', 'dropout': '0', 'ema': '0.999',
                             'steps': '50000', 'valid-every': '5000'}}
GUESS = {'miniboone': {'lr': '0.0003'}, 'bsds': {'lr': '0.0003'}}
QUICK = {'steps': '20', 'batch': '64', 'valid-every': '10', 'mlp-width': '64', 'coupling-units': '64',
         'likelihood-units': '64', 'likelihood-layers': '2'}
MASKS = range(1, 6)
ORDERS = '10'               # of the attention likelihood, which nll_orders averages


# ---- data ------------------------------------------------------------------------------------------------------------

def table(name, data):
    """Power, gas, hepmass and miniboone: complete rows, split as docs/paper.md says."""
    get = lambda file: np.load(os.path.join(data, name, file + '.npy')).astype('f8')
    if name == 'hepmass':
        return get('train'), get('test')
    x = get('data')
    if name == 'gas':
        return x[:20000], x[-10000:]
    if name == 'power':     # as MAF's code: shuffled, two columns left out, noise of each column's resolution
        random = np.random.RandomState(42)
        random.shuffle(x)
        x = x[:, [0, 2, 4, 5, 6, 7]]
        n = len(x)
        noise = [width * random.rand(n, columns) for width, columns in ((.001, 1), (.01, 1), (1, 3))]
        x = x + np.hstack(noise + [np.zeros((n, 1))])
    tenth = len(x) // 10
    return x[:-tenth], x[-tenth:]


def patches(images, n, seed):
    """n patches of 8 x 8 grey levels as in the literature: noise added, /256, less their mean, without the last."""
    random = np.random.RandomState(seed)
    which = random.randint(len(images), size=n)
    x = np.empty((n, 8, 8), 'f4')
    for k, image in enumerate(images):
        rows = np.flatnonzero(which == k)
        windows = np.lib.stride_tricks.sliding_window_view(image, (8, 8))
        top, left = (random.randint(size, size=len(rows)) for size in windows.shape[:2])
        x[rows] = windows[top, left]
    x = (x.reshape(n, 64) + random.rand(n, 64).astype('f4')) / 256
    return (x - x.mean(1, keepdims=True))[:, :63]


def bsds(data, quick):
    """Patches: a million of the first 180 training images, 5,000 of the other 20 to validate on, and of test images."""
    get = lambda part, shape: np.load(os.path.join(data, 'bsds300', f'{part}_{shape}.npy'))
    images = {part: [*get(part, 'landscape'), *get(part, 'portrait')] for part in ('train', 'test')}
    n = (2000, 200, 200, 400) if quick else (1000000, 5000, 20000, 250000)
    return {'x': patches(images['train'][:180], n[0], 1), 'valid': patches(images['train'][180:], n[1], 2),
            'test': patches(images['test'], n[2], 3), 'more': patches(images['test'], n[3], 4)}


def make(name, rate, data, quick, keep):
    """Standardised arrays: x to train on and, of bsds, valid, both with missing cells; test and, of bsds, more of it.
    Patches are kept in the file `keep`."""
    if name != 'bsds':
        t = dict(zip(('x', 'test'), table(name, data)))
    elif not quick and os.path.exists(keep):
        t = dict(np.load(keep))
    else:
        t = bsds(data, quick)
        if not quick:
            np.savez(f'{keep}.{os.getpid()}.npz', **t)
            os.replace(f'{keep}.{os.getpid()}.npz', keep)
    mean, deviation = t['x'].mean(0, dtype='f8'), t['x'].std(0, dtype='f8')
    t = {k: (v - mean) / deviation for k, v in t.items()}
    random = np.random.default_rng(round(1000 * rate))
    for k in ('x', 'valid'):
        if rate and k in t:
            t[k][random.random(t[k].shape, 'f4') < rate] = np.nan
    if quick:
        t['x'] = t['x'][:2000]
    t['test'] = t['test'][:100 if quick else 10000]
    return t


# ---- training and evaluation -----------------------------------------------------------------------------------------

stopped = []                # signals that came: training ends at its next step


def options_of(lib, settings):
    o = lib.make('acf_options_create')
    for name, value in settings.items():
        lib.call('acf_options_set', o, name.encode(), str(value).encode())
    return o


def fit(lib, t, settings, until):
    """A model, the last report of its training, and whether the time was over before its steps were."""
    o, last, cut = options_of(lib, settings), {}, []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Report))
    def report(_, r):
        last.setdefault('begun', (r[0].step, time.time()))
        last.update(step=r[0].step, loss=r[0].mean_loss, valid=r[0].best, now=time.time())
        if time.time() > until:
            cut.append(True)
        return bool(stopped or cut)
    x, valid = lib.table(t['x']), lib.table(t['valid']) if 'valid' in t else None
    model = ctypes.c_void_p()
    status = lib.lib.acf_model_fit_validated(x, valid, o, report, None, ctypes.byref(model))
    if stopped:
        sys.exit(130)
    if status and not cut:
        sys.exit(f'paper.py: {lib.lib.acf_error().decode()}')
    lib.lib.acf_table_free(x)
    lib.lib.acf_table_free(valid)
    lib.lib.acf_options_free(o)
    return model, last, bool(cut)


def hide(x, mask):
    """u: half of the cells, from the seed `mask`."""
    return np.random.default_rng(mask).random(x.shape) < .5


class Model:
    """A model file opened with options such as query-precision=bf16."""

    def __init__(self, lib, path, settings):
        o = options_of(lib, settings)
        self.lib, self.model = lib, lib.make('acf_model_load', path.encode(), o)
        self.session = lib.make('acf_session_create', self.model)
        lib.lib.acf_options_free(o)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lib.lib.acf_session_free(self.session)
        self.lib.lib.acf_model_free(self.model)

    def ask(self, what, x, u, out):
        t, asked = self.lib.table(x), np.ascontiguousarray(u, 'u1')
        self.lib.call(what, self.session, t, None, pointer(asked), pointer(out))
        self.lib.lib.acf_table_free(t)
        return out

    def nll(self, x, u):
        return -self.ask('acf_session_logp', x, u, np.empty(len(x))).mean()

    def nrmse(self, x, u):
        y = self.ask('acf_session_guess', x, u, np.empty(x.shape))
        return np.mean(np.sqrt(np.where(u, (y - x) ** 2, 0).sum(0) / u.sum(0)) / x.std(0))


def evaluate(lib, path, device, t, orders):
    """NLL and NRMSE under each mask; under the first NLL of more test patches, and where there is more than one order
    NLL of so many. A GPU answers in tf32, and best guesses in bf16: its fast loops are of that precision."""
    def asked(how, what, x, masks, orders='1'):
        with Model(lib, path, {'device': device, 'query-precision': how if device != 'cpu' else 'float', 'orders': orders}) as m:
            return [getattr(m, what)(x, hide(x, mask)) for mask in masks]
    nll, nrmse = asked('tf32', 'nll', t['test'], MASKS), asked('bf16', 'nrmse', t['test'], MASKS)
    more = asked('tf32', 'nll', t['more'], MASKS[:1])[0] if 'more' in t else None
    return nll, nrmse, more, asked('tf32', 'nll', t['test'], MASKS[:1], orders)[0] if orders != '1' else None


def device_name(lib, settings):
    """What is computed on. Who asks for a GPU gets one here, or no row."""
    name, needed = ctypes.create_string_buffer(256), ctypes.c_size_t()
    o = options_of(lib, settings)
    lib.call('acf_device_used', o, name, ctypes.c_size_t(len(name)), ctypes.byref(needed))
    lib.lib.acf_options_free(o)
    name = name.value.decode()
    if settings['device'] == 'cuda' and not name.startswith('cuda'):
        text = ctypes.create_string_buffer(4096)
        lib.call('acf_devices', 0, text, ctypes.c_size_t(len(text)), ctypes.byref(needed))
        sys.exit('paper.py: no GPU: ' + text.value.decode())
    return f'{os.cpu_count()} cores' if name == 'cpu' else name[name.find('(') + 1:-1]


def training(lib, model):
    """What the model says of its training: rows, steps, and seconds, also of those before an interruption."""
    info, needed = ctypes.create_string_buffer(1 << 20), ctypes.c_size_t()
    lib.call('acf_model_info', model, 1, info, ctypes.c_size_t(len(info)), ctypes.byref(needed))
    return json.loads(info.value)['training']


# ---- the table of results --------------------------------------------------------------------------------------------

def read(path):
    if not os.path.exists(path):
        return []
    with open(path, newline='') as f:
        return list(csv.DictReader(f))


def append(path, row):
    with open(path, 'a', newline='') as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        w = csv.writer(f)
        if f.tell() == 0:
            w.writerow(HEAD)
        w.writerow(row)


def paper_figures(name, rate, model):
    """The paper has figures for weight 1 alone; it says that 0.1 and 10 give comparable likelihoods."""
    at = {'ar': 0, 'acflow': 2, 'acflow-bg-1': 4}.get(model)
    figures = PAPER[name].get(rate)
    return ('', '') if at is None or figures is None else figures[at:at + 2]


def show(path):
    print('| set | missing | model | NLL: paper | ours | NRMSE: paper | ours | rows seen, millions | steps | seconds |')
    print('|---|---|---|---|---|---|---|---|---|---|')
    rows = read(path)
    rows.sort(key=lambda r: (list(PAPER).index(r['set']), float(r['missing']), r['model'] != 'ar', r['model']))
    plus_minus = lambda r, what: f"{float(r[what]):.3f} ± {float(r[what + '_sd']):.3f}"
    for r in rows:
        cells = [r['set'], r['missing'], r['model'], r['paper_nll'], plus_minus(r, 'nll'), r['paper_nrmse'],
                 plus_minus(r, 'nrmse'), f"{int(r['rows_seen']) / 1e6:.2f}", r['steps'], f"{float(r['seconds']):.0f}"]
        print('|', ' | '.join(cells), '|')
    for r in rows:
        if r['nll_250k']:
            print(f"{r['set']} {r['missing']} {r['model']}: NLL of 250,000 test patches {float(r['nll_250k']):.3f}")
        if r.get('nll_orders'):
            print(f"{r['set']} {r['missing']} {r['model']}: NLL of the first mask with 10 orders {float(r['nll_orders']):.3f}")


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('job', nargs='*', metavar='NAME RATE MODEL [NAME=VALUE ...]')
    a.add_argument('--data', default='../shared/data/density')
    a.add_argument('--lib', default=os.path.join(HERE, '../build/libacflow.so'))
    a.add_argument('--out', default='build/paper/results.csv')
    a.add_argument('--device', default='cpu', choices=['cpu', 'cuda'])
    a.add_argument('--seed', default='1')
    a.add_argument('--until', type=float, default=float('inf'))
    a.add_argument('--quick', action='store_true')
    a.add_argument('--show', metavar='FILE')
    a = a.parse_intermixed_args()
    if a.show:
        return show(a.show)
    name, rate, kind = a.job[:3]
    if name not in PAPER or not (kind in ('ar', 'acflow', 'attention') or kind.startswith('acflow-bg-')):
        sys.exit(f'paper.py: {name} {kind}: expected one of {", ".join(PAPER)} and ar, acflow, acflow-bg-L or attention')
    folder = os.path.join(a.data, 'bsds300' if name == 'bsds' else name)
    if not os.path.isdir(folder):
        return print(f'{name} {rate} {kind}: skipped, there is no {folder}')
    if any((r['set'], r['missing'], r['model'], r['seed']) == (name, rate, kind, a.seed) for r in read(a.out)):
        return print(f'{name} {rate} {kind}: is in {a.out}')
    if time.time() > a.until:
        return print(f'{name} {rate} {kind}: not begun, the time is over')

    signal.signal(signal.SIGINT, lambda *_: stopped.append(True))
    folder = os.path.dirname(os.path.abspath(a.out))
    os.makedirs(folder, exist_ok=True)
    begun = time.time()
    t = make(name, float(rate), a.data, a.quick, os.path.join(folder, 'bsds.npz'))
    table = os.path.splitext(os.path.basename(a.out))[0]
    path = os.path.join(folder, f'{table}-{name}-{rate}-{kind}-{a.seed}.safetensors')
    settings = {'preset': 'ar' if kind in ('ar', 'attention') else 'paper', **OPTIONS, **OF_SET[name]}
    if kind == 'attention':
        settings.update({**ATTENTION, **ATTENTION_OF_SET.get(name, {})})
    if a.device == 'cuda':
        settings['precision'] = 'bf16'
    if kind.startswith('acflow-bg-'):
        settings.update({'guess-weight': kind[len('acflow-bg-'):], **GUESS.get(name, {})})
    settings.update({**(QUICK if a.quick else {}), **dict(o.split('=', 1) for o in a.job[3:]), 'seed': a.seed})
    lib, checkpoint = Lib(os.path.abspath(a.lib)), path + '.checkpoint'
    work = {'device': a.device, 'checkpoint': checkpoint, 'resume': 'true'}
    device = device_name(lib, {**settings, **work})
    ready = time.time()
    model, last, cut = fit(lib, t, {**settings, **work}, a.until)
    trained = time.time()
    lib.call('acf_model_save', model, path.encode())
    told = training(lib, model)
    epoch = -(-told['rows'] // int(settings['batch']))      # steps, all of the same size
    seen = round(last['step'] * told['rows'] / epoch)
    seconds = max(trained - ready, told['seconds'])
    lib.lib.acf_model_free(model)
    if os.path.exists(checkpoint):
        os.remove(checkpoint)
    nll, nrmse, more, ordered = evaluate(lib, path, a.device, t, ORDERS if kind == 'attention' else '1')
    figures = [f'{f(v):.4f}' for v in (nll, nrmse) for f in (np.mean, np.std)] + ['' if more is None else f'{more:.4f}']
    steps = f"{last['step']} of {settings['steps']}, cut" if cut else str(last['step'])
    append(a.out, [name, rate, kind, *paper_figures(name, rate, kind), *figures, a.seed, seen, steps,
                   f'{seconds:.1f}', device, ' '.join(f'{k}={v}' for k, v in settings.items()),
                   '' if ordered is None else f'{ordered:.4f}'])
    each = 1000 * (last['now'] - last['begun'][1]) / max(last['step'] - last['begun'][0], 1)
    print(f'{name} {rate} {kind}: NLL {figures[0]} ± {figures[1]}, NRMSE {figures[2]} ± {figures[3]}; {steps} steps of '
          f'{each:.2f} ms; seconds: data {ready - begun:.1f}, training {seconds:.1f}, evaluation '
          f'{time.time() - trained:.1f}', flush=True)


if __name__ == '__main__':
    main()
