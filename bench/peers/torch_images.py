"""The image model of acflow in PyTorch, layer by layer, as the peer of bench/gpu_images. Prints the lines that
bench/gpu_images.c prints.

    torch_images.py DEVICE SIDE CHANNELS BATCH SCALES BLOCKS WIDTH LIKE_BLOCKS LIKE_WIDTH [JOBS] [SECONDS]

RealNVP with arbitrary conditioning and a PixelCNN likelihood, with the layers of flow/image_flow.c, nn/pixelcnn.c and
nn/image_embed.c: the same convolutions with weight norm, the same couplings, mixtures of ten Gaussians. Channels last,
tf32. A draw runs the whole PixelCNN for every pixel, as common implementations do.
"""
import math, sys, time
import torch
from torch import nn
import torch.nn.functional as F

K, EMBED_BLOCKS = 10, 2


class Conv(nn.Module):
    """A convolution with weight norm; pad is left, right, top, bottom, and cuts where it is negative."""
    def __init__(self, kh, kw, cin, cout, pad=None, scale=1.):
        super().__init__()
        self.v = nn.Parameter(torch.randn(cout, cin, kh, kw) / math.sqrt(cin * kh * kw))
        self.g, self.b = nn.Parameter(torch.full((cout, 1, 1, 1), scale)), nn.Parameter(torch.zeros(cout))
        self.pad = (kw // 2, kw // 2, kh // 2, kh // 2) if pad is None else pad

    def forward(self, x):
        w = self.g * self.v / (self.v.square().sum((1, 2, 3), keepdim=True) + 1e-24).sqrt()
        l, r, t, b = self.pad
        if l == r and t == b and l >= 0 and t >= 0:
            return F.conv2d(x, w, self.b, padding=(t, l))
        return F.conv2d(F.pad(x, self.pad), w, self.b)


class ResNet(nn.Module):
    def __init__(self, cin, width, cout, blocks, scale):
        super().__init__()
        self.first, self.skip = Conv(3, 3, cin, width), Conv(1, 1, width, width)
        self.blocks = nn.ModuleList(nn.ModuleList([Conv(1, 1, width, width), Conv(3, 3, width, width),
                                                   Conv(1, 1, width, width), Conv(1, 1, width, width)])
                                    for _ in range(blocks))
        self.last = Conv(1, 1, width, cout, scale=scale)

    def forward(self, x):
        h = self.first(x)
        s = self.skip(h)
        for narrow, wide, back, skip in self.blocks:
            h = h + back(F.relu(wide(F.relu(narrow(F.relu(h))))))
            s = s + skip(h)
        return self.last(F.relu(s))


def squeeze(x):
    """2x2 pixels a b / c d to channels a, d, b, c."""
    return torch.cat([x[:, :, ::2, ::2], x[:, :, 1::2, 1::2], x[:, :, ::2, 1::2], x[:, :, 1::2, ::2]], 1)


def unsqueeze(y):
    a, d, b, c = y.chunk(4, 1)
    return torch.stack([torch.stack([a, b], -1), torch.stack([c, d], -1)], 3).flatten(4, 5).flatten(2, 3)


class Coupling(nn.Module):
    def __init__(self, C, side, width, blocks, quarter, other):
        super().__init__()
        self.quarter, self.other = quarter, other
        self.g, self.g0 = nn.Parameter(torch.ones(())), nn.Parameter(torch.zeros(()))
        self.net = ResNet(3 * C + side, width, 2 * C, blocks, 0.1)

    def kept(self, x):
        _, C, H, W = x.shape
        if self.quarter:
            odd = (torch.arange(C, device=x.device) * 4 // C % 2).view(1, C, 1, 1)
        else:
            row, column = torch.arange(H, device=x.device).view(-1, 1), torch.arange(W, device=x.device)
            odd = ((row + column) % 2).view(1, 1, H, W)
        return (odd == int(self.other)).float()

    def forward(self, x, b, u, side, inverse):
        kept = self.kept(x)
        known, move = b + u * kept, u * (1 - kept)
        v = x * known
        net = [F.relu(v), F.relu(-v), known] + ([side] if side is not None else [])
        raw, t = self.net(torch.cat(net, 1)).chunk(2, 1)
        s = self.g * torch.tanh(raw) + self.g0
        y = x * torch.exp(-s) - t if inverse else (x + t) * torch.exp(s)
        return torch.where(move > 0, y, x), (s * move).sum((1, 2, 3))


class Flow(nn.Module):
    def __init__(self, C, scales, blocks, width):
        super().__init__()
        self.scales, self.checkers = scales, nn.ModuleList()
        self.quarters, self.sides = nn.ModuleList(), nn.ModuleList()
        for s in range(scales):
            last, c, w, side = s == scales - 1, C << s, width << s, width if s else 0
            self.sides.append(nn.ModuleList(Conv(1, 1, 2 * C << 2 * (s + i), side) for i in range(2)
                                            if s and (i == 0 or not last)))
            self.checkers.append(nn.ModuleList(Coupling(c, side, w, blocks, False, i % 2)
                                               for i in range(4 if last else 3)))
            self.quarters.append(nn.ModuleList(Coupling(4 * c, side, 2 * w, blocks, True, i % 2)
                                               for i in range(0 if last else 3)))

    def couple(self, layers, x, b, u, side, inverse, det):
        for k in reversed(layers) if inverse else layers:
            x, d = k(x, b, u, side, inverse)
            det = det + d
        return x, det

    def forward(self, x, b, u, seen, inverse=False, s=0, det=0.):
        side = F.relu(self.sides[s][0](seen)) if s else None
        if not inverse:
            x, det = self.couple(self.checkers[s], x, b, u, side, False, det)
        if s < self.scales - 1:
            x, qb, qu, qs = squeeze(x), squeeze(b), squeeze(u), squeeze(seen)
            qside = F.relu(self.sides[s][1](qs)) if s else None
            if not inverse:
                x, det = self.couple(self.quarters[s], x, qb, qu, qside, False, det)
            on, done = x.chunk(2, 1)
            on, det = self.forward(on, qb.chunk(2, 1)[0], qu.chunk(2, 1)[0], qs, inverse, s + 1, det)
            x = torch.cat([on, done], 1)
            if inverse:
                x, det = self.couple(self.quarters[s], x, qb, qu, qside, True, det)
            x = unsqueeze(x)
        if inverse:
            x, det = self.couple(self.checkers[s], x, b, u, side, True, det)
        return x, det


def pair(x):
    return torch.cat([F.elu(x), F.elu(-x)], 1)


class PixelCNN(nn.Module):
    def __init__(self, side, C, width, blocks):
        super().__init__()
        W, n, self.C = width, 2 * C + 1, C
        self.map, self.down = ResNet(3 * C, W, W, EMBED_BLOCKS, 1.), nn.ModuleList()
        self.spread, self.up = nn.ModuleList(), nn.ModuleList()
        while side > 4:
            self.down.append(Conv(3, 3, W, W))
            self.spread.append(Conv(1, 1, W, 4 * W))
            self.up.append(Conv(3, 3, W, W, (1, 1 - side % 2, 1, 1 - side % 2)))
            side = (side + 1) // 2
        self.vector = nn.Linear(side * side * W, W)
        self.above, self.left = Conv(2, 3, n, W, (1, 1, 2, -1)), Conv(1, 3, n, W, (3, -1, 0, 0))
        self.join = Conv(1, 1, W, W)
        down, across = (1, 1, 1, 0), (2, 0, 0, 0)
        self.blocks = nn.ModuleList(nn.ModuleDict(dict(
            vin=Conv(2, 3, 2 * W, W, down), vout=Conv(2, 3, 2 * W, 2 * W, down), vcond=Conv(1, 1, W, 2 * W),
            hin=Conv(1, 3, 2 * W, W, across), haux=Conv(1, 1, 2 * W, W), hout=Conv(1, 3, 2 * W, 2 * W, across),
            hcond=Conv(1, 1, W, 2 * W))) for _ in range(blocks))
        self.head = Conv(1, 1, W, C * 3 * K + C * (C - 1) // 2 * K)

    def embed(self, given, b):
        maps = [self.map(torch.cat([F.relu(given), F.relu(-given), b], 1))]
        for layer in self.down:
            maps.append(F.max_pool2d(F.relu(layer(maps[-1])), 2, ceil_mode=True))
        e = maps[-1] + self.vector(maps[-1].flatten(1))[:, :, None, None]
        for spread, up, h in zip(reversed(self.spread), reversed(self.up), reversed(maps[:-1])):
            e = h + up(unsqueeze(F.relu(spread(e))))
        return e

    def forward(self, z, b, e):
        image = torch.cat([z, b, torch.ones_like(z[:, :1])], 1)
        v = self.above(image)
        h = self.left(image) + self.join(v)
        for k in self.blocks:
            a, g = (k['vout'](pair(k['vin'](pair(v)))) + k['vcond'](e)).chunk(2, 1)
            v = v + a * torch.sigmoid(g)
            a, g = (k['hout'](pair(k['hin'](pair(h)) + k['haux'](pair(v)))) + k['hcond'](e)).chunk(2, 1)
            h = h + a * torch.sigmoid(g)
        return self.head(F.elu(h))

    def mixture(self, p, z):
        """Logits, means and log-scales (N,C,K,H,W), means following the channels before."""
        N, _, H, W = p.shape
        m = p[:, :self.C * 3 * K].view(N, self.C, 3, K, H, W)
        slopes = torch.tanh(p[:, self.C * 3 * K:]).view(N, -1, K, H, W)
        means, at = [], 0
        for c in range(self.C):
            mean = m[:, c, 1]
            for j in range(c):
                mean, at = mean + slopes[:, at] * z[:, j:j + 1], at + 1
            means.append(mean)
        return m[:, :, 0], torch.stack(means, 1), m[:, :, 2].clamp(-7, 7)

    def logp(self, z, given, b):
        logit, mean, scale = self.mixture(self(z, b, self.embed(given, b)), z)
        e = (z[:, :, None] - mean) * torch.exp(-scale)
        return torch.logsumexp(torch.log_softmax(logit, 2) - scale - 0.5 * e * e - 0.5 * math.log(2 * math.pi), 2)

    def draw(self, given, b, u):
        e, z = self.embed(given, b), given.clone()
        for h in range(z.shape[2]):
            for w in range(z.shape[3]):
                p = self(z, b, e)[:, :, h:h + 1, w:w + 1]
                for c in range(self.C):
                    logit, mean, scale = (x[:, c, :, 0, 0] for x in self.mixture(p, z[:, :, h:h + 1, w:w + 1]))
                    k = torch.distributions.Categorical(logits=logit, validate_args=False).sample()[:, None]
                    v = mean.gather(1, k) + scale.gather(1, k).exp() * torch.randn_like(mean[:, :1])
                    z[:, c, h, w] = torch.where(u[:, c, h, w] > 0, v[:, 0], z[:, c, h, w])
        return z


class Model(nn.Module):
    def __init__(self, side, C, scales, blocks, width, like_blocks, like_width):
        super().__init__()
        self.flow = Flow(C, scales, blocks, width) if scales else None
        self.like = PixelCNN(side, C, like_width, like_blocks)

    def logp(self, x, b):
        u, given, det = 1 - b, x * b, 0.
        z = x
        if self.flow:
            z, det = self.flow(x, b, u, torch.cat([given, b], 1))
        return (self.like.logp(z, given, b) * u).sum((1, 2, 3)) + det

    def draw(self, x, b):
        u, given = 1 - b, x * b
        z = self.like.draw(given, b, u)
        return self.flow(z, b, u, torch.cat([given, b], 1), inverse=True)[0] if self.flow else z


def measure(job, device, seconds, warm=3):
    def sync():
        if device == 'cuda':
            torch.cuda.synchronize()
    for _ in range(warm):
        job()
    sync()
    each, begin = [], time.perf_counter()
    while len(each) < 1 or (time.perf_counter() - begin < seconds and len(each) < 200):
        t = time.perf_counter()
        job()
        sync()
        each.append(time.perf_counter() - t)
    return sorted(each)[len(each) // 2]


def main():
    device = sys.argv[1]
    side, C, N, scales, blocks, width, like_blocks, like_width = map(int, sys.argv[2:10])
    jobs = (sys.argv[10] if len(sys.argv) > 10 else 'train,loglik,sample').split(',')
    seconds = float(sys.argv[11]) if len(sys.argv) > 11 else 2.
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    model = Model(side, C, scales, blocks, width, like_blocks, like_width)
    model = model.to(device).to(memory_format=torch.channels_last)
    x = torch.randn(N, C, side, side, device=device).to(memory_format=torch.channels_last)
    b = (torch.rand(N, 1, side, side, device=device) < 0.5).float().expand(-1, C, -1, -1)
    b = b.contiguous(memory_format=torch.channels_last)
    adam = torch.optim.Adam(model.parameters(), 1e-4, fused=device == 'cuda')

    def train():
        adam.zero_grad(set_to_none=True)
        (-model.logp(x, b).mean()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.)
        adam.step()

    @torch.no_grad()
    def loglik():
        model.logp(x, b)

    @torch.no_grad()
    def sample():
        model.draw(x, b)

    precision = 'tf32' if device == 'cuda' else 'float'
    print(f"note,PyTorch {torch.__version__}; {sum(p.numel() for p in model.parameters())} parameters", flush=True)
    for name, job in (('train', train), ('loglik', loglik), ('sample', sample)):
        if name not in jobs:
            continue
        try:
            t = measure(job, device, seconds, 0 if name == 'sample' else 3)
            print(f"images,eager,{precision},{side},{N},{name},{N / t:.1f},{1e3 * t:.4f}", flush=True)
        except Exception as e:
            print(f"failed,eager,{precision},{side},{N},{name},{' '.join(str(e).split())[:160]}", flush=True)


if __name__ == '__main__':
    main()
