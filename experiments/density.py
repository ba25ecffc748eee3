#!/usr/bin/env python3
"""The paper's tables of real data, sized for two cores: negative log-likelihood and NRMSE of three models on four sets.

  python3 experiments/density.py [--data ../shared/data/density] [--peers ../shared/peers] [--sets power,gas] [--models ar,flow,guess,default]
                                 [--minutes 20 | --steps N] [NAME=VALUE ...]

Minutes are processor time over the number of cores; GOMP_SPINCOUNT=1000 in the environment keeps waiting threads out of
it.

Models: `ar` has no transformations (the paper's autoregressive baseline, with smaller networks), `flow` has two layers
of linear, leaky ReLU and RNN coupling before it, `guess` is the same with the best-guess term in its loss, `default`
has acflow's defaults. Every model gets the same share of the minutes and the same options otherwise; NAME=VALUE are
options for all of them.

Power gets uniform noise of its columns' resolution (0.001, 0.01, 1, 1, 1, 0), as in MAF's code. Rows and masks are
otherwise those of impute_peers.py (its functions density and bernoulli are imported), so that NRMSE compares with the
imputers there, which were fitted on the same complete training rows. Values are z-scored by the training rows. NLL:
nats per row of p(x_u | x_o) on the test rows, Bernoulli(1/2) masks, mean and deviation over 5 masks. NRMSE, mask 1: of
the best guess, of the mean of 20 draws, and of the mean of the one-column conditionals.
"""
import argparse, ctypes, os, sys, time
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
PAPER = {'likelihood': 'gru', 'likelihood-units': '96', 'gmm': '0', 'encode': 'standard', 'dequantise': 'false'}
MODELS = {
    'ar': {**PAPER, 'flow': ''},
    'flow': {**PAPER, 'preset': 'flow'},
    'guess': {**PAPER, 'preset': 'flow', 'guess-weight': '1'},
    'default': {'dequantise': 'false'},
}


def clock():
    """Seconds of two cores that this program has to itself, however busy the machine is: the time of its processors over their number."""
    return time.process_time() / (os.cpu_count() or 1)


class Lib:
    """libacflow.so by ctypes: handles are pointers, arrays are C-contiguous numpy arrays."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.acf_error.restype = ctypes.c_char_p

    def call(self, name, *args):
        status = getattr(self.lib, name)(*args)
        if status and not (name == 'acf_model_fit' and self.lib.acf_status_exit(status) == 130):      # 130: interrupted at the time limit, with the best model so far
            sys.exit(f'density.py: {name}: {self.lib.acf_error().decode()}')

    def make(self, name, *args):
        out = ctypes.c_void_p()
        self.call(name, *args, ctypes.byref(out))
        return out

    def table(self, x):
        x = np.ascontiguousarray(x, 'f8')
        return self.make('acf_table_create', pointer(x), None, ctypes.c_int64(x.shape[0]), ctypes.c_int64(x.shape[1]), None, None)


def pointer(a):
    return ctypes.c_void_p(a.ctypes.data)


class Report(ctypes.Structure):
    _fields_ = [('step', ctypes.c_int64), ('steps', ctypes.c_int64), ('epoch', ctypes.c_int64), ('loss', ctypes.c_double), ('mean_loss', ctypes.c_double),
                ('valid', ctypes.c_double), ('best', ctypes.c_double)]


def fit(lib, x, options, seconds, steps):
    """A model, and what its training was like. The schedule needs the number of steps, so without it a short run measures their time first."""
    def run(steps, limit):
        o = lib.make('acf_options_create')
        for k, v in {**options, 'steps': str(steps)}.items():
            lib.call('acf_options_set', o, k.encode(), v.encode())
        seen = {}

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Report))
        def report(_, r):
            seen.setdefault('first', clock())
            seen.update(step=r[0].step, last=clock())
            return clock() > limit
        table = lib.table(x)
        model = lib.make('acf_model_fit', table, o, report, None)
        lib.lib.acf_table_free(table)
        lib.lib.acf_options_free(o)
        return model, seen

    t, limit = clock(), float('inf')
    if not steps:
        model, seen = run(10 ** 6, t + 0.1 * seconds)
        lib.lib.acf_model_free(model)
        before, each = seen['first'] - t, (seen['last'] - seen['first']) / max(seen['step'] - 1, 1)  # before the first step: the Gaussian mixture
        steps = max(int((0.9 * seconds - before) / each), 100)
        t = clock()
        limit = t + 1.1 * seconds
    model, seen = run(steps, limit)
    return model, f"{seen['step']} of {steps} steps, {clock() - t:.0f} s"


def evaluate(lib, model, x, hidden, peers, nrmse):
    """NLL per row over the masks, and NRMSE of three estimates for the first mask."""
    s = lib.make('acf_session_create', model)
    whole, out = lib.table(x), np.empty(len(x))
    nll = []
    for h in hidden:
        target = np.ascontiguousarray(h, 'u1')
        lib.call('acf_session_logp', s, whole, None, pointer(target), pointer(out))
        nll.append(-out.mean())
    if not nrmse:
        return np.mean(nll), np.std(nll), []
    holes = lib.table(np.where(hidden[0], np.nan, x))
    cat, error, y = np.zeros(x.shape[1], bool), [], np.empty(x.shape)
    score = lambda: peers.score(x, hidden[0], cat, [y])['nrmse']
    lib.call('acf_session_guess', s, holes, None, None, pointer(y))
    error.append(score())
    lib.call('acf_session_summary', s, holes, None, None, ctypes.c_uint64(1), ctypes.c_int32(20), None, 0, pointer(y), None)
    y[~hidden[0]] = x[~hidden[0]]
    error.append(score())
    if hasattr(lib.lib, 'acf_session_mean'):
        lib.call('acf_session_mean', s, holes, None, None, pointer(y))
        error.append(score())
    for t in (whole, holes):
        lib.lib.acf_table_free(t)
    lib.lib.acf_session_free(s)
    return np.mean(nll), np.std(nll), error


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--data', default='../shared/data/density')
    a.add_argument('--peers', default='../shared/peers')
    a.add_argument('--lib', default=os.path.join(HERE, '../build/libacflow.so'))
    a.add_argument('--sets', default='power,gas,hepmass,miniboone')
    a.add_argument('--models', default='ar,flow,guess,default')
    a.add_argument('--minutes', type=float, default=20)
    a.add_argument('--steps', type=int, default=0, help='so many for every model, however long they take')
    a.add_argument('--no-nrmse', action='store_true', help='log-likelihoods alone')
    a.add_argument('options', nargs='*')
    a = a.parse_args()
    if not os.path.isdir(a.data) or not os.path.isdir(a.peers):
        sys.exit(f'density.py: skipped: no {a.data} or no {a.peers}')
    sys.path.insert(0, a.peers)
    import impute_peers as peers
    os.environ.pop('OMP_NUM_THREADS', None)      # impute_peers pins it to 1 for its own methods
    lib, sets, models = Lib(a.lib), a.sets.split(','), a.models.split(',')
    seconds = 60 * a.minutes / len(sets) / len(models) * 0.93      # what remains is for the evaluation
    begun = time.time()
    print(f'{"set":10} {"model":8} {"NLL":>8} {"±":>5}   {"guess":>6} {"draws":>6} {"mean":>6}   training', flush=True)
    for name in sets:
        train, test = peers.density(name, a.data)
        if name == 'power':     # values are rounded: noise of their resolution, as MAF's code adds it, or likelihoods mean nothing
            width = np.array([.001, .01, 1, 1, 1, 0])
            noise = np.random.RandomState(42)
            train, test = train + width * noise.rand(*train.shape), test + width * noise.rand(*test.shape)
        mu, sd = train.mean(0), train.std(0)
        train, test = (train - mu) / sd, (test - mu) / sd
        hidden = [peers.bernoulli(test.shape, seed) for seed in range(1, 6)]
        for m in models:
            options = {**MODELS[m], **dict(o.split('=', 1) for o in a.options)}
            model, how = fit(lib, train, options, seconds, a.steps)
            nll, dev, error = evaluate(lib, model, test, hidden, peers, not a.no_nrmse)
            lib.lib.acf_model_free(model)
            print(f'{name:10} {m:8} {nll:8.3f} {dev:5.3f}   ' + ' '.join(f'{e:6.3f}' for e in error) + f'   {how}', flush=True)
    print(f'{(time.time() - begun) / 60:.1f} minutes')


if __name__ == '__main__':
    main()
