"""The PyTorch peers for bench/gpu: prints the lines that bench/gpu.c prints, for the same jobs.

    torch_gpu.py eager|captured FOLDER DEVICE DIMS BATCHES [ITERATIONS]

FOLDER holds torch_acflow.py and torch_acflow_graph.py, which measure themselves. One process runs all sizes, because
starting PyTorch takes longer than most measurements. A size that fails gives a line with the reason. After a failed
capture the CUDA context is unreliable, so the captured peer ends there.
"""
import contextlib, io, json, runpy, sys

which, folder, device, dims, batches = sys.argv[1:6]
iterations = int(sys.argv[6]) if len(sys.argv) > 6 else 10
sizes = [(int(d), int(n)) for d in dims.split(',') for n in batches.split(',')]
sys.path.insert(0, folder)


def say(kind, precision, d, batch, job, text):
    print(f"{kind},{which},{precision},{d},{batch},{job},{text}", flush=True)


def reason(e):
    return ' '.join(str(e).split())[:160] or type(e).__name__


def eager():
    import torch, torch_acflow
    precision = 'tf32' if device == 'cuda' else 'float'
    name = torch.cuda.get_device_name() if device == 'cuda' else 'CPU'
    print(f"note,PyTorch {torch.__version__} on {name}", flush=True)
    for d, batch in sizes:
        for lam, train in ((0., 'train'), (1., 'guess')):
            # A step with best guess takes up to a second: only three of them.
            count = iterations if lam == 0 else min(iterations, 3)
            try:
                r = torch_acflow.bench(d, batch, lam, device, count)
            except Exception as e:
                say('failed', precision, d, batch, train, reason(e))
                continue
            say('rows', precision, d, batch, train, r['train_rows_s'])
            if lam == 0:
                say('rows', precision, d, batch, 'loglik', r['loglik_rows_s'])
                say('rows', precision, d, batch, 'sample', r['sample_rows_s'])


def captured():
    # Sizes where capture is known to work come first: training without best guess, few columns.
    for lam, job in ((0, 'train'), (1, 'guess')):
        for d, batch in sizes:
            sys.argv = ['torch_acflow_graph.py', str(d), str(batch), str(lam)]
            out = io.StringIO()
            try:
                with contextlib.redirect_stdout(out):
                    runpy.run_path(f'{folder}/torch_acflow_graph.py', run_name='__main__')
                say('rows', 'tf32', d, batch, job, json.loads(out.getvalue())['graph_train_rows_s'])
            except Exception as e:
                say('failed', 'tf32', d, batch, job, reason(e) + '; larger sizes were not tried')
                return


eager() if which == 'eager' else captured()
