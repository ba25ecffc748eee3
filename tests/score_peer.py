"""A table, cells removed from it, 20 completions, and what the comparison with other imputers scores them: score_peer.py PEERS OUT.

PEERS is the folder of impute_peers.py, whose score() is called; OUT a safetensors file. Ends with status 77 where numpy, pandas,
scipy, scikit-learn or the peer is absent."""
import json
import struct
import sys

peers, out = sys.argv[1], sys.argv[2]
sys.path.insert(0, peers)
try:
    import numpy as np
    from impute_peers import mcar, score
except ImportError:
    sys.exit(77)

rng = np.random.default_rng(7)
N, M = 211, 20
x = np.column_stack([rng.normal(size=N) * 1e-3 + 5, np.round(rng.gamma(2., 3., N)), rng.integers(0, 4, N), np.exp(3 * rng.normal(size=N)),
                     rng.integers(0, 2, N), rng.integers(0, 7, N) ** 2 // 9]).astype(float)
cat = np.array([False, False, True, False, True, True])
x[rng.random(x.shape) < .1] = np.nan
gone = mcar(x, .25, 3)
tables = []
for k in range(M):  # some cells right, some from another row, some of them shifted: ties, bias and spread
    t = x[rng.permutation(N)]
    t = np.where(np.isnan(t), np.nanmin(x, 0), t) + np.where(cat, 0, .3 * np.nanstd(x, 0) * (rng.random(x.shape) < .5))
    tables.append(np.where(rng.random(x.shape) < .3, np.where(np.isnan(x), t, x), t))

tensors = {'x': x, 'gone': gone.astype(float), 'cat': cat.astype(float), 'tables': np.stack(tables)}
for name, value in score(x, gone, cat, tables, drawn=True).items():
    tensors['score.' + name] = np.array([value])
for name, value in score(x, gone, cat, tables[:1]).items():
    if value is not None:
        tensors['point.' + name] = np.array([value])

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
