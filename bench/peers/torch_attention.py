"""The PyTorch peer of bench/gpu --model attention: prints the lines that bench/gpu.c prints, for the same jobs.

    torch_attention.py FOLDER DEVICE DIMS BATCHES JOBS SECONDS LIMIT [MODES]

FOLDER holds torch_attn_net.py, the network. This file runs each job in two ways:

    rows,compiled,PRECISION,D,BATCH,JOB,ROWS_PER_SECOND,MODE     torch.compile, in bf16 on a GPU
    rows,captured,...                                            the same, replayed from one CUDA graph
    failed,WAY,PRECISION,D,BATCH,JOB,MESSAGE

train   a step on rows of a table that is on the device, each in an order of its own: AdamW (fused), clipping, a moving
        average of the weights. The loss is compiled with the network, so the mean that the network also gives is free.
loglik  log p of a batch on the host, results back to the host; Bernoulli(1/2) masks, given cells first.
sample  a draw for the same masks, ancestral: the network has no cache, so every place of the sequence, from the first
        one that a row of the batch models, takes a pass over whole rows.

MODES: of torch.compile, separated by commas, default `default`. Compiling takes longer than measuring, so each size has
a process. All of them compile a job at the same time; then they measure it one after the other. Other modes time
kernels while compiling, so there sizes run one by one. LIMIT: seconds after which no new part begins.
"""
import fcntl, os, subprocess, sys, tempfile, threading, time

WIDTH, LAYERS, HEADS, COMPONENTS = 384, 6, 6, 64
WARM, BLOCKS = 3, 5


# ---- one size ----------------------------------------------------------------------------------------------------

def tune_in_turn(path):
    """Lets one process at a time run the timings of kernel variants by torch.compile."""
    from torch._inductor.runtime import triton_heuristics
    tuner = getattr(triton_heuristics, 'CachingAutotuner', None)
    together = getattr(tuner, 'benchmark_all_configs', None)

    def alone(*args, **more):
        with open(path) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return together(*args, **more)

    if together:
        tuner.benchmark_all_configs = alone


class Job:
    """work() can run in a graph; before() and after() are the host's part of a run."""
    def __init__(self, work, before=lambda: None, after=lambda: None):
        self.work, self.before, self.after = work, before, after


class Size:
    def __init__(self, folder, device, d, n, seconds, mode):
        sys.path.insert(0, folder)
        import torch
        from torch_attn_net import Attn
        self.torch, self.device, self.d, self.n, self.seconds, self.mode = torch, device, d, n, seconds, mode
        self.network = lambda: Attn(d, WIDTH, LAYERS, HEADS, COMPONENTS).to(device)
        self.cuda, self.jobs = device == 'cuda', {}
        torch.manual_seed(1)
        torch.backends.cuda.matmul.allow_tf32 = True    # the head is float
        self.host_x = self.pinned(torch.randn(n, d))
        self.host_given = self.pinned((torch.rand(n, d) < 0.5).float())
        self.x, self.given = self.host_x.to(device), self.host_given.to(device)

    def pinned(self, x):
        return x.pin_memory() if self.cuda else x

    def sync(self):
        if self.cuda:
            self.torch.cuda.synchronize()

    def compile(self, f):
        return self.torch.compile(f, dynamic=False, mode=self.mode)

    def send(self):
        self.x.copy_(self.host_x, non_blocking=True)
        self.given.copy_(self.host_given, non_blocking=True)

    def order(self):
        return self.torch.argsort(1 - self.given, dim=1, stable=True)

    def train(self):
        torch, net = self.torch, self.network()
        data = torch.randn(max(4 * self.n, 8192), self.d, device=self.device)
        weights = list(net.parameters())
        now, average = [p.detach() for p in weights], [p.detach().clone() for p in weights]
        adam = torch.optim.AdamW(weights, 1e-4, weight_decay=0.01, betas=(0.9, 0.99), fused=True, capturable=self.cuda)
        loss = self.compile(lambda x, order: -net(x, order)[0].sum(1).mean() / self.d)

        def step():
            x = data[torch.randint(len(data), (self.n,), device=self.device)]
            adam.zero_grad(set_to_none=True)
            loss(x, torch.argsort(torch.rand_like(x), 1)).backward()
            torch.nn.utils.clip_grad_norm_(weights, 1.)
            adam.step()
            torch._foreach_lerp_(average, now, 0.001)

        return Job(step)

    def loglik(self):
        net, out = self.network(), self.x.new_empty(self.n)
        host = self.pinned(self.torch.empty(self.n))
        logp = self.compile(lambda x, order, modelled: (net(x, order)[0] * modelled).sum(1))

        def work():
            with self.torch.no_grad():
                order = self.order()
                out.copy_(logp(self.x, order, 1 - self.given.gather(1, order)))

        def after():
            host.copy_(out, non_blocking=True)
            self.sync()

        return Job(work, self.send, after)

    def sample(self):
        torch, net, kept = self.torch, self.network(), {}
        host, first = self.pinned(torch.empty(self.n, self.d)), int(self.host_given.sum(1).min())
        net.norm.register_forward_hook(lambda module, given, h: kept.update(h=h))

        def hidden(x, order):
            net(x, order)
            return kept['h']

        hidden = self.compile(hidden)

        def draw(order, t):
            h = hidden(self.x, order)[:, t].float()
            weight, mean, scale = torch.nn.functional.linear(h, net.head.weight, net.head.bias).chunk(3, -1)
            k = (weight - torch.empty_like(weight).exponential_().log()).argmax(-1, keepdim=True)   # Gumbel-max draw
            value = mean.gather(1, k) + scale.gather(1, k).clamp(-7, 5).exp() * torch.randn_like(mean[:, :1])
            column = order[:, t:t + 1]
            known = self.given.gather(1, column) > 0
            self.x.scatter_(1, column, torch.where(known, self.x.gather(1, column), value))

        def work():
            with torch.no_grad():
                order = self.order()
                for t in range(first, self.d):
                    draw(order, t)

        def after():
            host.copy_(self.x, non_blocking=True)
            self.sync()

        return Job(work, self.send, after)

    def prepare(self, name):
        """Compiles."""
        job = getattr(self, name)()
        self.block(job, 2)
        self.jobs[name] = job

    def capture(self, job):
        torch, graph, side = self.torch, self.torch.cuda.CUDAGraph(), self.torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM):
                job.work()
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(graph):
            job.work()
        return Job(graph.replay, job.before, job.after)

    def block(self, job, times):
        begin = time.perf_counter()
        for _ in range(times):
            job.before(), job.work(), job.after()
        self.sync()
        return (time.perf_counter() - begin) / times

    def rate(self, job):
        """Rows per second: the median of blocks, each of as many runs as fill its part of the time."""
        self.block(job, 1)
        guess = self.block(job, 2)
        times = int(max(1, min(self.seconds / BLOCKS / max(guess, 1e-6), 1e5)))
        return self.n / sorted(self.block(job, times) for _ in range(BLOCKS))[BLOCKS // 2]

    def measure(self, name):
        if name not in self.jobs:
            return
        self.say('rows', 'compiled', name, f'{self.rate(self.jobs[name]):.0f},{self.mode}')
        if self.cuda and self.mode != 'reduce-overhead':    # that mode has its own graphs
            try:
                self.say('rows', 'captured', name, f'{self.rate(self.capture(self.jobs[name])):.0f},{self.mode}')
            except Exception as e:
                self.say('failed', 'captured', name, reason(e))
        del self.jobs[name]

    def about(self):
        torch = self.torch
        where = torch.cuda.get_device_name() if self.cuda else 'CPU'
        with torch.no_grad():
            q = torch.zeros(1, HEADS, self.d, WIDTH // HEADS, device=self.device, dtype=torch.bfloat16)
            kernel = torch.nn.attention.SDPBackend(torch._fused_sdp_choice(q, q, q, is_causal=True)).name
        count = sum(p.numel() for p in self.network().parameters())
        print(f'note,PyTorch {torch.__version__} on {where}: {count} parameters at d = {self.d}; attention by {kernel}')

    def say(self, kind, way, job, text):
        print(f"{kind},{way},{'bf16' if self.cuda else 'float'},{self.d},{self.n},{job},{text}")

    def serve(self):
        """Runs each command line, 'about', 'prepare JOB' or 'measure JOB', and prints 'end' after it."""
        for line in sys.stdin:
            what, *job = line.split()
            try:
                getattr(self, what)(*job)
            except Exception as e:
                self.say('failed', 'compiled', *(job or ['all']), reason(e))
            print('end', flush=True)


def reason(e):
    return ' '.join(str(e).split())[:160] or type(e).__name__


# ---- all of them -------------------------------------------------------------------------------------------------

class Worker:
    """The process of a size."""
    def __init__(self, a, d, n, mode, lock, cores):
        self.d, self.n, self.precision, self.alive = d, n, 'bf16' if a.device == 'cuda' else 'float', True
        env = dict(os.environ, TORCHINDUCTOR_COMPILE_THREADS=str(cores))
        arguments = ['--size', a.folder, a.device, str(d), str(n), str(a.seconds), mode, lock]
        self.process = subprocess.Popen([sys.executable, __file__, *arguments], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=env)

    def ask(self, what):
        try:
            self.process.stdin.write(what + '\n')
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        for line in self.process.stdout:
            if line == 'end\n':
                return
            print(line, end='', flush=True)
        if self.alive:
            self.fail(what.split()[-1], 'its process ended')

    def fail(self, job, why):
        print(f'failed,compiled,{self.precision},{self.d},{self.n},{job},{why}', flush=True)
        self.alive = False
        self.process.kill()


def together(workers, what, until):
    """All workers run it at the same time; one that takes too long is stopped."""
    threads = [threading.Thread(target=w.ask, args=(what,), daemon=True) for w in workers]
    for t in threads:
        t.start()
    for w, t in zip(workers, threads):
        t.join(max(0, until - time.time()))
        if t.is_alive():
            w.fail(what.split()[-1], 'no time was left for compiling')


class Arguments:
    def __init__(self, folder, device, dims, batches, jobs, seconds, limit, modes='default'):
        self.folder, self.device, self.seconds = folder, device, float(seconds)
        self.sizes = [(int(d), int(n)) for d in dims.split(',') for n in batches.split(',')]
        self.jobs = [j for j in jobs.split(',') if j in ('train', 'loglik', 'sample')]
        self.modes, self.until = modes.split(','), time.time() + float(limit)


def measure_sizes(a, sizes, mode, lock, cores, first):
    workers = [Worker(a, d, n, mode, lock, cores) for d, n in sizes]
    if first:
        workers[0].ask('about')
    for job in a.jobs:
        reserve = 3 * a.seconds * len(workers)    # two ways, and their warm-up
        together([w for w in workers if w.alive], f'prepare {job}', a.until - reserve)
        for w in workers:
            if w.alive and time.time() > a.until:
                w.fail(job, 'no time was left')
            if w.alive:
                w.ask(f'measure {job}')
    for w in workers:
        w.process.stdin.close()
    for w in workers:
        w.process.wait()


def main(a):
    cores, first = os.cpu_count() or 1, True
    with tempfile.NamedTemporaryFile() as lock:
        for mode in a.modes:
            at_once = max(1, cores // 2) if mode == 'default' else 1
            for k in range(0, len(a.sizes), at_once):
                sizes = a.sizes[k:k + at_once]
                measure_sizes(a, sizes, mode, lock.name, cores // len(sizes) + 1, first)
                first = False


if sys.argv[1] == '--size':
    folder, device, d, n, seconds, mode, lock = sys.argv[2:]
    try:
        if device == 'cuda':
            tune_in_turn(lock)
        size = Size(folder, device, int(d), int(n), float(seconds), mode)
    except Exception as e:
        print(f'failed,compiled,all,{d},{n},all,{reason(e)}', flush=True)
        sys.exit(1)
    size.serve()
else:
    main(Arguments(*sys.argv[1:]))
