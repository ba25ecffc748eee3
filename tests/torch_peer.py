"""Weights, inputs and answers of the PyTorch ACFlow, in the names of our network: torch_peer.py PEERS OUT D LAYERS.

PEERS is the folder of torch_acflow.py, OUT a safetensors file. Our context is (x·b, b, m), the peer's (x·b, b): the weights of m
are zero. Ends with status 77 where PyTorch or the peer is absent."""
import json
import struct
import sys

peers, out, d, layers = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
sys.path.insert(0, peers)
try:
    import torch
    import torch_acflow
except ImportError:
    sys.exit(77)

torch.manual_seed(4)
hidden, comps = 12, 5
model = torch_acflow.ACFlow(d, layers=layers, hidden=hidden, coupling_layers=2, ar_layers=3, comps=comps).double()
with torch.no_grad():  # away from the identity, or nothing would be tested
    for p in model.parameters():
        p.add_(0.15 * torch.randn_like(p))

tensors = {}


def put(name, x):
    tensors[name] = x.detach().to(torch.float64).contiguous()


def with_m(w):
    """(rows, 2d) -> (rows, 3d)"""
    return torch.cat([w, torch.zeros(w.shape[0], d, dtype=w.dtype)], 1)


def put_rnn(name, rnn):
    for layer in range(rnn.gru.num_layers):
        wx = getattr(rnn.gru, f'weight_ih_l{layer}')
        if layer == 0:
            put(f'{name}.0.wx', wx[:, :1])
            put(f'{name}.0.wc', with_m(wx[:, 1:]))
        else:
            put(f'{name}.{layer}.wx', wx)
        put(f'{name}.{layer}.bx', getattr(rnn.gru, f'bias_ih_l{layer}'))
        put(f'{name}.{layer}.wh', getattr(rnn.gru, f'weight_hh_l{layer}'))
        put(f'{name}.{layer}.bh', getattr(rnn.gru, f'bias_hh_l{layer}'))
    for k, part in enumerate((rnn.head[0], rnn.head[2]), 1):
        put(f'{name}.head.w{k}', part.weight)
        put(f'{name}.head.b{k}', part.bias)


place = 0
for k, (linear, leaky, coupling) in enumerate(model.flows):
    place += k > 0  # a reverse has no parameters, but a place in the chain
    for n, part in enumerate((linear.net[0], linear.net[2], linear.net[4])):
        put(f'flow.{place}.linear.w{n}', with_m(part.weight) if n == 0 else part.weight)
        put(f'flow.{place}.linear.b{n}', part.bias)
    put(f'flow.{place}.linear.base', linear.base)
    put(f'flow.{place + 1}.leaky.a', leaky.a)
    put_rnn(f'flow.{place + 2}.rnn', coupling.rnn)
    place += 3
put_rnn('likelihood', model.ar)

rows = 40
x = torch.randn(rows, d, dtype=torch.float64)
m = (torch.rand(rows, d) < 0.8).double()
b = (torch.rand(rows, d) < 0.5).double() * m
put('peer.x', x * m)
put('peer.m', m)
put('peer.b', b)
with torch.no_grad():
    put('peer.logp', model.log_prob(x * m, b, m))
    put('peer.guess', model.decode(x * m, b, m, 'mean'))

header, at, data = {}, 0, b''
for name, t in tensors.items():
    raw = t.numpy().tobytes()
    header[name] = {'dtype': 'F64', 'shape': list(t.shape), 'data_offsets': [at, at + len(raw)]}
    at += len(raw)
    data += raw
text = json.dumps(header).encode()
text += b' ' * (-len(text) % 8)
with open(out, 'wb') as f:
    f.write(struct.pack('<Q', len(text)) + text + data)
