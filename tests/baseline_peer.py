"""Real tables with a fifth of their cells removed, and how well scikit-learn's chained Bayesian ridge regression fills them:
baseline_peer.py SHARED OUT.

SHARED is the folder of peers/ and data/tables/, OUT a safetensors file. For each table NAME: NAME.x (N,D) with NaN in the holes,
NAME.truth, NAME.classes (0: a number), and NAME.score: NRMSE and PFC (NaN without categories), then CRPS, coverage of 90 % and
Wasserstein distance that R's mice was recorded with on the same cells (peers/impute_results.csv). Ends with status 77 where something is
absent."""
import csv
import json
import os
import struct
import sys

shared, out = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.path.join(shared, 'peers'))
try:
    import numpy as np
    from impute_peers import METHODS, mcar, score, table
except ImportError:
    sys.exit(77)

tensors = {}
for name in ('wine', 'abalone', 'breast', 'yeast'):
    try:
        with open(os.path.join(shared, 'peers', 'impute_results.csv')) as f:
            mice, = [r for r in csv.DictReader(f)
                     if (r['protocol'], r['dataset'], r['rate'], r['seed'], r['method']) == ('A', name, '0.2', '1', 'mice')]
        x, cat = table(name, os.path.join(shared, 'data', 'tables'))
    except OSError:
        sys.exit(77)
    gone = mcar(x, .2, 1)
    holes = np.where(gone, np.nan, x)
    found = score(x, gone, cat, METHODS['iter_br'](holes, cat, 1, None)[0])
    tensors[name + '.x'], tensors[name + '.truth'] = holes, x
    tensors[name + '.classes'] = np.where(cat, np.nanmax(x, 0) + 1, 0)
    tensors[name + '.score'] = np.array([found['nrmse'], found.get('pfc', np.nan)] + [float(mice[k]) for k in ('crps', 'cov90', 'w1')])

header, at, data = {}, 0, b''
for name, t in tensors.items():
    raw = np.ascontiguousarray(t, 'f8').tobytes()
    header[name] = {'dtype': 'F64', 'shape': list(t.shape), 'data_offsets': [at, at + len(raw)]}
    at += len(raw)
    data += raw
text = json.dumps(header).encode()
text += b' ' * (-len(text) % 8)
with open(out, 'wb') as f:
    f.write(struct.pack('<Q', len(text)) + text + data)
